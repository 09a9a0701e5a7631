"""Shapes that meet each other, for `benchmarks/scenes.py`: against mj_geomDistance,
a form for the plane, brute force.
"""

import itertools

import numpy as np

POINTS = np.random.default_rng(5).standard_normal((10, 3)).astype(np.float32).astype(float) * [0.25, 0.2, 0.3]


def kinds() -> dict[str, tuple]:
    """By name: the shape, its MJCF, the corners of its core and its radius."""
    from stickslip.scene import Ball, Box, Capsule, Cylinder, Disc, Ellipsoid, Hull

    cube = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    vertex = " ".join(f"{x:.17g}" for x in POINTS.ravel())
    mesh = f'<asset><mesh name="m" vertex="{vertex}"/></asset>'
    ends = np.array([[0, 0, -0.5], [0, 0, 0.5]])
    return {
        "ball": (Ball(0.2), 'type="sphere" size="0.2"', "", np.zeros((1, 3)), 0.2),
        "capsule": (Capsule(0.1, 0.5), 'type="capsule" size="0.1 0.25"', "", 0.5 * ends, 0.1),
        "box": (Box(0.4, 0.3, 0.2), 'type="box" size="0.2 0.15 0.1"', "", cube * [0.4, 0.3, 0.2], 0.0),
        "hull": (Hull(POINTS), 'type="mesh" mesh="m"', mesh, POINTS, 0.0),
        # these have no corners, and formulas of their own: `curved`
        "ellipsoid": (Ellipsoid(0.3, 0.2, 0.1), 'type="ellipsoid" size="0.3 0.2 0.1"', "", None, 0.0),
        "needle": (Ellipsoid(0.03, 0.25, 0.05), 'type="ellipsoid" size="0.03 0.25 0.05"', "", None, 0.0),
        "cylinder": (Cylinder(0.15, 0.5), 'type="cylinder" size="0.15 0.25"', "", None, 0.0),
        "disc": (Disc(0.25), "", "", None, 0.0),
    }


PAIRS = [*itertools.combinations_with_replacement(("ball", "capsule", "box", "hull"), 2)]
STILL = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def pair(a, b, **options):
    from stickslip.scene import Body, Contact, Scene

    still = {"mass": 1.0, "inertia": 1.0} if options else STILL
    return Scene(Body("a", a, **still), Body("b", b, **still), Contact("a", "b"), **options).compile()[0]


def oracle(first: str, second: str):
    """MuJoCo's model, and the two shapes as it has them:
    a mesh is moved to its own centre and axes, in single precision.
    """
    import mujoco

    from stickslip.scene import Hull

    (a, geom_a, asset, *_), (b, geom_b, other, *_) = kinds()[first], kinds()[second]
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option ccd_tolerance="1e-12" '
        f'ccd_iterations="500"/>{asset or other}<worldbody><body><freejoint/>'
        f"<geom {geom_a}/></body><body><freejoint/><geom {geom_b}/></body></worldbody></mujoco>"
    )
    placed = [
        Hull(model.mesh_vert.astype(float), at=model.geom_pos[k].copy(), rotation=model.geom_quat[k].copy())
        if isinstance(shape, Hull) else shape for k, shape in enumerate((a, b))
    ]  # fmt: skip
    return model, *placed


def random_rotation(random) -> np.ndarray:
    p = random.standard_normal(4)
    return p / np.linalg.norm(p)


def pose(random, low: float, high: float) -> np.ndarray:
    way = random.standard_normal(3)
    way *= random.uniform(low, high) / np.linalg.norm(way)
    return np.concatenate([np.zeros(3), random_rotation(random), way, random_rotation(random)])


def placed_corners(model, data, k: int, corners: np.ndarray) -> np.ndarray:
    if model.geom_dataid[k] >= 0:
        corners = model.mesh_vert.astype(float)
    return data.geom_xpos[k] + corners @ data.geom_xmat[k].reshape(3, 3).T


def gaps(
    first: str, second: str, poses: int = 1000, seed: int = 0, wrong: float = 0.0
) -> tuple[float, float, int, int]:
    """(largest deviation where the nearest features are told by the separation along one direction; largest
    excess over the distance elsewhere; how many of either). ``wrong`` makes one ball or box larger, as a
    control."""
    import jax
    import jax.numpy as jnp
    import mujoco

    model, a, b = oracle(first, second)
    data = mujoco.MjData(model)
    cores = [kinds()[name][3:] for name in (first, second)]
    system = pair(a, b) if not wrong else pair(type(a)(*(getattr(a, name) + wrong for name in a.lengths)), b)
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    random, fromto = np.random.default_rng(seed), np.zeros(6)
    off, above, told, others = 0.0, 0.0, 0, 0
    while told + others < poses:
        data.qpos[:] = pose(random, 0.25, 1.2)
        mujoco.mj_kinematics(model, data)
        distance = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto)
        if distance <= 1e-3:
            continue
        excess = float(smallest(jnp.asarray(data.qpos.copy()))) - distance
        if round_pair(cores) or _one_direction(model, data, cores, fromto):
            off, told = max(off, abs(excess)), told + 1
        else:
            above, others = max(above, excess), others + 1
    return off, above, told, others


def round_pair(cores) -> bool:
    """Where one of the two is round, corners and edges are, too: there the distance is exact everywhere."""
    return any(radius > 0.0 for _, radius in cores)


def _one_direction(model, data, cores, fromto) -> bool:
    """Whether the nearest features are a corner and a face or two edges,
    by how many corners lie at the distance.
    """
    n = fromto[3:] - fromto[:3]
    n /= np.linalg.norm(n)
    counts = []
    for k, ((corners, _), sign) in enumerate(zip(cores, (1.0, -1.0), strict=True)):
        heights = sign * placed_corners(model, data, k, corners) @ n
        counts.append(int(np.sum(heights > heights.max() - 1e-7)))
    return max(counts) >= 3 or min(counts) >= 2


# ---- penetration


def signed_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Of the hulls of two sets of points: by all their differences,
    whose hull has the origin inside where they overlap.
    """
    from scipy.optimize import nnls
    from scipy.spatial import ConvexHull, QhullError

    apart = (b[None] - a[:, None]).reshape(-1, a.shape[1])
    try:
        hull = ConvexHull(apart)
        if np.all(hull.equations[:, -1] < 0.0):
            return float(hull.equations[:, -1].max())
    except (QhullError, ValueError):
        pass  # flat: nothing is inside of it
    heavy = 1e5 * np.linalg.norm(apart, axis=1).max()
    share, _ = nnls(np.vstack([apart.T, np.full(len(apart), heavy)]), np.append(np.zeros(a.shape[1]), heavy))
    return float(np.linalg.norm(share @ apart) / share.sum())


def depth(first: str, second: str, poses: int = 100, seed: int = 1) -> float:
    """Largest deviation from brute force where shapes overlap;
    lines inside of other shapes have no gap and are left out.
    """
    import jax
    import jax.numpy as jnp

    from stickslip.rigid import rotation_matrix

    (a, _, _, corners_a, r_a), (b, _, _, corners_b, r_b) = kinds()[first], kinds()[second]
    system = pair(a, b)
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    turn = jax.jit(rotation_matrix)
    random, worst, count = np.random.default_rng(seed), 0.0, 0
    while count < poses:
        q = pose(random, 0.05, 0.5)
        x, y = (corners @ np.asarray(turn(p)).T + at for corners, at, p in
                ((corners_a, q[:3], q[3:7]), (corners_b, q[7:10], q[10:])))  # fmt: skip
        deep = signed_distance(x, y)
        if deep > r_a + r_b or ("capsule" in (first, second) and deep < 1e-3):
            continue
        count += 1
        worst = max(worst, abs(float(smallest(jnp.asarray(q))) - (deep - r_a - r_b)))
    return worst


# ---- derivatives


def derivatives(
    first: str, second: str, poses: int = 10, seed: int = 2, held: bool = False
) -> tuple[float, float]:
    """First and second derivatives of gaps against central differences, of shapes that do not overlap.

    Not of slots that change their feature there, and not of those that hold none: these have a gap, but no
    direction. ``held``, a control: derivatives that take rotations as given.
    """
    import jax
    import jax.numpy as jnp

    system = pair(kinds()[first][0], kinds()[second][0])

    def value(q):
        return system.g_N(0.0, q)

    def looked(q):
        return value(jnp.where(np.arange(14) % 7 < 3, q, jax.lax.stop_gradient(q)) if held else q)

    slope = jax.jit(jax.jacfwd(looked))
    curvature = jax.jit(lambda q, d: jax.jvp(lambda q: jax.jvp(looked, (q,), (d,))[1], (q,), (d,))[1])
    plain = jax.jit(value)
    random, worst = np.random.default_rng(seed), np.zeros(2)
    for _ in range(poses):
        q, along, h = jnp.asarray(pose(random, 0.4, 0.8)), random.standard_normal(14), 1e-5
        at = [np.asarray(plain(q + k * h * along)) for k in (-1, 0, 1)]
        rates = [np.asarray(slope(q + k * h * along)) @ along for k in (-1, 0, 1)]
        if held:
            rates[0] = rates[2] = rates[1]
        smooth = (np.abs(at[2] - 2 * at[1] + at[0]) < 1e-6) & (np.abs(rates[2] - rates[0]) < 1e-2)
        second_ = np.asarray(curvature(q, along))
        by_rates = (rates[2] - rates[0]) / (2 * h)
        if at[1].min() < 0.0:
            continue
        smooth &= np.any(rates[1] != 0.0) if held else np.abs(np.asarray(slope(q))).max(axis=1) > 0.0
        size = 1.0 + np.abs(second_)
        worst[0] = max(worst[0], np.abs(rates[1] - (at[2] - at[0]) / (2 * h))[smooth].max(initial=0.0))
        worst[1] = max(worst[1], (np.abs(second_ - by_rates) / size)[smooth].max(initial=0.0))
    return float(worst[0]), float(worst[1])


# ---- in the plane


def flat_kinds() -> dict[str, tuple]:
    from stickslip.scene import Box, Capsule, Disc, Hull

    five = np.array([[0.3, 0.0], [0.1, 0.25], [-0.2, 0.15], [-0.25, -0.1], [0.05, -0.2]])
    return {
        "disc": (Disc(0.2), np.zeros((1, 2)), 0.2),
        "capsule": (Capsule(0.1, 0.5, axis=(1, 0, 0)), np.array([[-0.25, 0.0], [0.25, 0.0]]), 0.1),
        "box": (Box(0.4, 0.3), np.array([[-0.2, -0.15], [0.2, -0.15], [0.2, 0.15], [-0.2, 0.15]]), 0.0),
        "polygon": (Hull(five), five, 0.0),
    }


FLAT_PAIRS = [*itertools.combinations_with_replacement(("disc", "capsule", "box", "polygon"), 2)]


def distance_in_the_plane(a: np.ndarray, b: np.ndarray) -> tuple[float, bool]:
    """Of two polygons that do not overlap, and whether a corner is nearest to the inside of a side."""
    best = (np.inf, False)
    for corners, sides in ((a, b), (b, a)):
        for p in corners:
            for s, e in zip(sides, np.roll(sides, -1, axis=0), strict=True):
                along = e - s
                t = 0.0 if not along.any() else np.clip((p - s) @ along / (along @ along), 0.0, 1.0)
                best = min(best, (float(np.linalg.norm(p - s - t * along)), not 0.0 < t < 1.0))
    return best[0], not best[1]


def flat_gaps(first: str, second: str, poses: int = 300, seed: int = 0) -> tuple[float, float, float, int]:
    """(deviation where exact, excess elsewhere, deviation of penetration, poses that overlap)"""
    import jax
    import jax.numpy as jnp

    (a, corners_a, r_a), (b, corners_b, r_b) = flat_kinds()[first], flat_kinds()[second]
    system = pair(a, b, planar=True)
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    random = np.random.default_rng(seed)
    off = above = inside = 0.0
    overlaps = 0
    for _ in range(poses):
        way, turn = random.standard_normal(2), random.uniform(-np.pi, np.pi, 2)
        way *= random.uniform(0.15, 0.9) / np.linalg.norm(way)
        x, y = (corners @ np.array([[np.cos(s), np.sin(s)], [-np.sin(s), np.cos(s)]]) + at
                for corners, s, at in ((corners_a, turn[0], 0.0), (corners_b, turn[1], way)))  # fmt: skip
        own = float(smallest(jnp.asarray([0.0, 0.0, turn[0], *way, turn[1]])))
        deep = signed_distance(x, y)
        if deep < 1e-6:
            if "capsule" not in (first, second):
                inside, overlaps = max(inside, abs(own - (deep - r_a - r_b))), overlaps + 1
            continue
        distance, exact = distance_in_the_plane(x, y)
        if exact or r_a + r_b > 0.0:
            off = max(off, abs(own - (distance - r_a - r_b)))
        else:
            above = max(above, own - distance)
    return off, above, inside, overlaps


# ---- what is asked


def judged(words: str, value: float, most: float) -> bool:
    good = value <= most
    print(f"{'met   ' if good else 'MISSED'} {words}: {value:.1e} (asked {most:.0e})")
    return good


def pairs(extra=None, poses: int = 1000) -> bool:
    import curved
    import surfaces

    good = polyhedra(poses) & curved.pairs(poses) & surfaces.pairs(poses)
    return good & controls()


def controls() -> bool:
    """Shapes that are a micrometre too large, and derivatives that leave rotations out, must be seen."""
    import curved
    import surfaces

    seen = {
        "ball-box, a micrometre too large": gaps("ball", "box", 20, wrong=1e-6)[0] > 1e-10,
        "ellipsoid-needle, a micrometre too large": curved.gaps("ellipsoid", "needle", 20, wrong=1e-6)[0]
        > 1e-10,
        "ball-cylinder, a micrometre too large": curved.gaps("ball", "cylinder", 20, wrong=1e-6)[0] > 1e-10,
        "ball-disc, a micrometre too large": curved.gaps("ball", "disc", 20, wrong=1e-6)[0] > 1e-10,
        "ball-star, a micrometre too large": surfaces.gaps("star", 20, wrong=1e-6)[0] > 1e-10,
        "ball-hills, a micrometre too large": surfaces.gaps("hills", 20, wrong=1e-6)[0] > 1e-10,
        "ball-hills, the other diagonal": surfaces.against_mujoco(20, turned=True) > 1e-10,
        "needle-ellipsoid, derivatives without rotations": derivatives("needle", "ellipsoid", 3, held=True)[0]
        > 1e-2,
        "ball-star, derivatives without rotations": surfaces.derivatives("star", 3, held=True)[0] > 1e-2,
    }
    for words, red in seen.items():
        print(f"{'met   ' if red else 'MISSED'} control: {words}: {'seen' if red else 'NOT SEEN'}")
    return all(seen.values())


def polyhedra(poses: int) -> bool:
    good = True
    for first, second in PAIRS:
        name = f"{first}-{second}"
        off, above, told, others = gaps(first, second, poses)
        good &= judged(f"{name:15s} g against mj_geomDistance, {told} poses", off, 1e-10)
        if others:
            good &= judged(
                f"{name:15s} g above it, nearest corners or edges otherwise, {others} poses", above, 1e-10
            )
        good &= judged(f"{name:15s} penetration against brute force", depth(first, second), 1e-7)
        slope, curvature = derivatives(first, second)
        good &= judged(f"{name:15s} first derivatives against differences", slope, 1e-6)
        good &= judged(f"{name:15s} second derivatives against differences", curvature, 1e-5)
    for first, second in FLAT_PAIRS:
        name = f"{first}-{second}"
        off, above, inside, overlaps = flat_gaps(first, second, poses)
        good &= judged(f"{name:15s} in the plane, g against the distance", max(off, above), 1e-10)
        if overlaps:
            good &= judged(f"{name:15s} in the plane, penetration, {overlaps} poses", inside, 1e-7)
    return good
