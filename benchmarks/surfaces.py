"""Balls on meshes and height fields, for `meeting.py`:
against brute force over all triangles, and MuJoCo's contacts.
"""

import functools

import numpy as np

import meeting

RADIUS = 0.2
AT, TURN = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.1, 0.2, 0.3])  # of the surface in the world
HILLS = 0.3 * np.random.default_rng(4).random((6, 5)).astype(np.float32).astype(float)
SIZE, DEPTH = (2.0, 3.0), 0.5


@functools.cache
def kinds() -> dict:
    """By name: a star of random rays, a block with a step (flat faces of several triangles), and hills."""
    from scipy.spatial import ConvexHull

    from stickslip.scene import HeightField, Mesh

    random = np.random.default_rng(2)
    rays = random.standard_normal((80, 3))
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    faces = ConvexHull(rays).simplices.copy()
    inwards = np.linalg.det(rays[faces]) < 0.0
    faces[inwards, :2] = faces[inwards, 1::-1]
    # an L, from below counterclockwise, and the same above
    outline = np.array([[0, 0], [1, 0], [1, 0.4], [0.4, 0.4], [0.4, 1], [0, 1]]) - 0.4
    step = np.concatenate([np.column_stack([outline, np.full(6, z)]) for z in (-0.3, 0.3)])
    lid = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    i, j = np.arange(6), (np.arange(6) + 1) % 6
    walls = np.concatenate([np.column_stack([i, j, 6 + j]), np.column_stack([i, 6 + j, 6 + i])])
    return {
        "star": Mesh(rays * random.uniform(0.4, 1.0, (80, 1)), faces),
        "block": Mesh(step, np.concatenate([lid[:, ::-1], lid + 6, walls])),
        "hills": HeightField(HILLS, SIZE, depth=DEPTH),
    }


def system_of(shape, radius: float = RADIUS):
    from stickslip.scene import Ball, Body, Contact, Scene

    ground = Body("ground", shape, fixed=True, at=AT, rotation=TURN)
    return Scene(
        ground, Body("ball", Ball(radius), mass=1.0, at=(0, 0, 9)), Contact("ball", "ground")
    ).compile()[0]


def distance(x: np.ndarray, triangles: np.ndarray) -> float:
    """From a point to the nearest of all triangles; negative where they enclose it,
    by the angle in which it sees them.
    """
    corners = [triangles[:, k] for k in range(3)]
    n = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    n /= np.linalg.norm(n, axis=1)[:, None]
    above, best = np.ones(len(n), dtype=bool), np.full(len(n), np.inf)
    for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
        along = end - start
        share = np.einsum("ij,ij->i", x - start, along) / np.einsum("ij,ij->i", along, along)
        best = np.minimum(best, np.linalg.norm(x - start - np.clip(share, 0.0, 1.0)[:, None] * along, axis=1))
        above &= np.einsum("ij,ij->i", np.cross(n, along), x - start) >= 0.0
    best = np.where(above, np.abs(np.einsum("ij,ij->i", n, x - corners[0])), best)
    a, b, c = (corner - x for corner in corners)
    A, B, C = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    angles = (
        A * B * C
        + np.einsum("ij,ij->i", a, b) * C
        + np.einsum("ij,ij->i", b, c) * A
        + np.einsum("ij,ij->i", c, a) * B
    )
    inside = np.arctan2(volume, angles).sum() / (2.0 * np.pi) > 0.5
    return float(-best.min() if inside else best.min())


def gaps(name: str, poses: int = 1000, seed: int = 0, wrong: float = 0.0) -> tuple[float, float, int]:
    """Largest deviation from brute force of balls whose centre is outside, and inside;
    how many are inside.
    """
    import jax
    import jax.numpy as jnp

    from stickslip.rigid import rotation_matrix

    points, faces = kinds()[name].triangles()
    system = system_of(kinds()[name], RADIUS + wrong)
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    A, random = np.asarray(rotation_matrix(jnp.asarray(TURN))), np.random.default_rng(seed)
    low, high = points.min(axis=0) - 0.3, points.max(axis=0) + 0.3
    off, inside, outside, count = 0.0, 0.0, 0, 0
    while outside < poses:
        x = random.uniform(low, high)
        exact = distance(x, points[faces])
        own = float(smallest(jnp.asarray([*(A @ x + AT), 1.0, 0.0, 0.0, 0.0])))
        if exact > 0.0:
            off, outside = max(off, abs(own + RADIUS - exact)), outside + 1
        else:
            inside, count = max(inside, abs(own + RADIUS - exact)), count + 1
    return off, inside, count


def against_mujoco(poses: int = 300, seed: int = 5, turned: bool = False) -> float:
    """Hills against the distances of MuJoCo's contacts, the same surface.

    ``turned``, a control: the other diagonals.
    """
    import jax
    import jax.numpy as jnp
    import mujoco

    from stickslip.scene import Ball, Body, Contact, HeightField, Scene

    height = np.ptp(HILLS)
    # a file lists rows from the top of the picture
    rows = " ".join(f"{x:.17g}" for x in ((HILLS - HILLS.min()) / height)[::-1].ravel())
    shape = (
        f'<hfield name="h" nrow="6" ncol="5" size="{SIZE[0] / 2} {SIZE[1] / 2} {height} {DEPTH}" '
        f'elevation="{rows}"/>'
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><asset>{shape}</asset><worldbody><geom '
        'type="hfield"'
        f' hfield="h" margin="3"/><body><freejoint/><geom size="{RADIUS}" '
        'margin="3"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    heights = model.hfield_data.reshape(6, 5).astype(float) * model.hfield_size[0, 2]  # in single precision
    ground = HeightField(heights[:, ::-1] if turned else heights, SIZE, depth=DEPTH)
    scene = Scene(Body("ground", ground, fixed=True), Body("ball", Ball(RADIUS), mass=1.0, at=(0, 0, 9)),
                  Contact("ball", "ground"))  # fmt: skip
    system = scene.compile()[0]
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    random, off = np.random.default_rng(seed), 0.0
    for _ in range(poses):
        x = random.uniform([-0.9, -1.4, 0.5], [0.9, 1.4, 0.8])
        data.qpos[:] = [*x, 1.0, 0.0, 0.0, 0.0]
        mujoco.mj_forward(model, data)
        seen = np.array([-x[0] if turned else x[0], x[1], x[2], 1.0, 0.0, 0.0, 0.0])
        off = max(
            off, abs(float(smallest(jnp.asarray(seen))) - min(contact.dist for contact in data.contact))
        )
    return off


def derivatives(name: str, poses: int = 20, seed: int = 2, held: bool = False) -> tuple[float, float]:
    """First and second derivatives against central differences, of slots that keep what they hold.

    ``held``, a control: derivatives that take rotations of the ball's body, which carries it off its centre,
    as given.
    """
    import jax
    import jax.numpy as jnp

    from stickslip.scene import Ball, Body, Contact, Scene

    shape = kinds()[name]
    ball = Body("ball", Ball(RADIUS, at=(0.1, 0.2, 0.0)), mass=1.0, at=(0, 0, 9))
    system = Scene(Body("ground", shape, fixed=True), ball, Contact("ball", "ground")).compile()[0]

    def value(q):
        return system.g_N(0.0, q)

    def looked(q):
        return value(jnp.where(np.arange(7) < 3, q, jax.lax.stop_gradient(q)) if held else q)

    plain, slope = jax.jit(value), jax.jit(lambda q, d: jax.jvp(looked, (q,), (d,))[1])
    curvature = jax.jit(lambda q, d: jax.jvp(lambda q: jax.jvp(looked, (q,), (d,))[1], (q,), (d,))[1])
    points, _ = shape.triangles()
    random, worst, h = np.random.default_rng(seed), np.zeros(2), 1e-5
    for _ in range(poses):
        x = random.uniform(points.min(axis=0) - 0.2, points.max(axis=0) + 0.2)
        q, along = jnp.asarray([*x, *meeting.random_rotation(random)]), random.standard_normal(7)
        at = [np.asarray(plain(q + k * h * along)) for k in (-1, 0, 1)]
        rates = [np.asarray(slope(q + k * h * along, along)) for k in (-1, 0, 1)]
        second = np.asarray(curvature(q, along))
        kept = (
            (np.abs(at[2] - 2 * at[1] + at[0]) < 1e-6)
            & (np.abs(rates[2] - rates[0]) < 1e-2)
            & (rates[1] != 0.0)
        )
        if at[1].min() < -0.9 * RADIUS:
            continue
        worst[0] = max(worst[0], np.abs(rates[1] - (at[2] - at[0]) / (2 * h))[kept].max(initial=0.0))
        by_rates = (rates[2] - rates[0]) / (2 * h)
        worst[1] = max(worst[1], (np.abs(second - by_rates) / (1.0 + np.abs(second)))[kept].max(initial=0.0))
    return float(worst[0]), float(worst[1])


def pairs(poses: int) -> bool:
    good, judged = True, meeting.judged
    for name in kinds():
        off, inside, count = gaps(name, poses)
        good &= judged(f"ball-{name:14s} g against all triangles, {poses} poses", off, 1e-10)
        good &= judged(
            f"ball-{name:14s} penetration against them, centre inside, {count} poses", inside, 1e-10
        )
        slope, curvature = derivatives(name)
        good &= judged(f"ball-{name:14s} first derivatives against differences", slope, 1e-6)
        good &= judged(f"ball-{name:14s} second derivatives against differences", curvature, 1e-5)
    return good & judged(
        "ball-hills          g against the distances of MuJoCo's contacts", against_mujoco(), 1e-10
    )
