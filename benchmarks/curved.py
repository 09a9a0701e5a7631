"""Ellipsoids, cylinders and discs that meet, for `meeting.py`: against mj_geomDistance,
and against brute force.
"""

import numpy as np

import meeting

PAIRS = [("ellipsoid", "ellipsoid"), ("ellipsoid", "needle"), ("needle", "needle"),
         ("ball", "ellipsoid"), ("ball", "needle"), ("ball", "cylinder"), ("ball", "disc")]  # fmt: skip


def support(shape, A: np.ndarray, n: np.ndarray) -> np.ndarray:
    """h(n) of an ellipsoid or a ball, for rows of n."""
    semi = [shape.radius] * 3 if hasattr(shape, "radius") else [shape.x, shape.y, shape.z]
    return np.linalg.norm(n @ A * np.array(semi), axis=-1)


def from_disc(x: np.ndarray, radius: float, half: float = 0.0) -> float:
    """Distance of a point from a disc, or a cylinder, about the z axis: from the nearest point of it."""
    rho = np.hypot(x[0], x[1])
    near = np.append(x[:2] * min(1.0, radius / rho) if rho > 0.0 else x[:2], np.clip(x[2], -half, half))
    return float(np.linalg.norm(x - near))


def matrices(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import mujoco

    out = []
    for p in (q[3:7], q[10:]):
        A = np.zeros(9)
        mujoco.mju_quat2Mat(A, p)
        out.append(A.reshape(3, 3))
    return out[0], out[1]


def apart(shapes, q: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How far two ellipsoids are apart along unit vectors n, from the second to the first."""
    return n @ (q[:3] - q[7:10]) - sum(support(s, A, n) for s, A in zip(shapes, matrices(q), strict=True))


def gaps(
    first: str, second: str, poses: int = 1000, seed: int = 0, wrong: float = 0.0
) -> tuple[float, float, int]:
    """(largest deviation from mj_geomDistance; largest one beyond what MuJoCo's own result leaves open; of
    how many poses that is more than 1e-10).

    MuJoCo's distance is that of two points, so not smaller than the true one, and between ellipsoids its
    iteration stops early where they are slender. How far they are apart along the line of these points is not
    larger than the true one. Where the two differ by more than 1e-10 the gap must lie between them.
    """
    import jax
    import jax.numpy as jnp
    import mujoco

    (a, *_), (b, *_) = (meeting.kinds()[name] for name in (first, second))
    flat = second == "disc"  # which MuJoCo does not have
    model = None if flat else meeting.oracle(first, second)[0]
    data = None if flat else mujoco.MjData(model)
    larger = type(a)(*(getattr(a, name) + wrong for name in a.lengths))
    system = meeting.pair(larger, b)
    gap = jax.jit(lambda q: system.g_N(0.0, q)[0])
    random, fromto = np.random.default_rng(seed), np.zeros(6)
    off, beyond, wide, count = 0.0, 0.0, 0, 0
    while count < poses:
        q = meeting.pose(random, 0.25, 1.2)
        if flat:
            distance = lower = from_disc(matrices(q)[1].T @ (q[:3] - q[7:10]), b.radius) - a.radius
        else:
            data.qpos[:] = q
            mujoco.mj_kinematics(model, data)
            distance = lower = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto)
        if distance <= 1e-3:
            continue
        own, count = float(gap(jnp.asarray(q))), count + 1
        if second in ("ellipsoid", "needle"):
            way = fromto[:3] - fromto[3:]
            lower = float(apart((a, b), q, way / np.linalg.norm(way)))
        if distance - lower > 1e-10:
            wide += 1
        else:
            off = max(off, abs(own - distance))
        beyond = max(beyond, own - distance, lower - own)
    return off, beyond, wide


def certificate(first: str, second: str, poses: int = 1000, seed: int = 3) -> float:
    """How far the gap may be from the distance of ellipsoids at most:
    between their two points, and along their normal.
    """
    import jax
    import jax.numpy as jnp

    (a, *_), (b, *_) = (meeting.kinds()[name] for name in (first, second))
    system = meeting.pair(a, b)
    at = jax.jit(lambda q: system.places(system.tree.poses(0.0, q)))
    random, worst = np.random.default_rng(seed), 0.0
    for _ in range(poses):
        q = meeting.pose(random, 0.6, 1.2)
        found = at(jnp.asarray(q))
        n, p, gap = np.asarray(found.frame)[0, :, 2], np.asarray(found.point)[0], float(found.gap[0])
        A, B = matrices(q)
        semi = np.array([b.radius] * 3 if hasattr(b, "radius") else [b.x, b.y, b.z])
        other = q[7:10] + B @ (semi**2 * (B.T @ n)) / support(b, B, n)
        own = np.array([a.radius] * 3 if hasattr(a, "radius") else [a.x, a.y, a.z])
        for local, size in ((A.T @ (p - q[:3]), own), (B.T @ (other - q[7:10]), semi)):
            worst = max(worst, abs(np.linalg.norm(local / size) - 1.0))  # both lie on their ellipsoids
        worst = max(
            worst, np.linalg.norm(p - other) - apart((a, b), q, n), abs(gap - np.linalg.norm(p - other))
        )
    return float(worst)


def depth(first: str, second: str, poses: int = 300, seed: int = 1) -> float:
    """Largest deviation in penetration from the best of many directions,
    then of many near the best, again and again.
    """
    import jax
    import jax.numpy as jnp

    (a, *_), (b, *_) = (meeting.kinds()[name] for name in (first, second))
    system = meeting.pair(a, b)
    gap = jax.jit(lambda q: system.g_N(0.0, q)[0])
    random, worst, count = np.random.default_rng(seed), 0.0, 0
    while count < poses:
        q = meeting.pose(random, 0.02, 0.4)
        if second in ("cylinder", "disc"):
            x = matrices(q)[1].T @ (q[:3] - q[7:10])
            half = 0.5 * b.length if second == "cylinder" else 0.0
            deep = from_disc(x, b.radius, half) - a.radius
            if deep == -a.radius:  # the centre is inside: the nearest of side and faces
                deep = max(np.hypot(x[0], x[1]) - b.radius, abs(x[2]) - half) - a.radius
        else:
            n = random.standard_normal((4000, 3))
            for k in range(35):
                n /= np.linalg.norm(n, axis=1)[:, None]
                s = apart((a, b), q, n)
                deep, best = float(s.max()), n[np.argsort(-s)[:20]]
                around = best[:, None] + 0.2 * 0.5**k * random.standard_normal((20, 12, 3))
                n = np.concatenate([best, around.reshape(-1, 3)])
        if deep > 0.0:
            continue
        count += 1
        worst = max(worst, abs(float(gap(jnp.asarray(q))) - deep))
    return worst


def pairs(poses: int) -> bool:
    good, judged = True, meeting.judged
    for first, second in PAIRS:
        name, of_ellipsoids = f"{first}-{second}", second in ("ellipsoid", "needle")
        off, beyond, wide = gaps(first, second, poses)
        oracle = "the closed form" if second == "disc" else "mj_geomDistance"
        good &= judged(f"{name:19s} g against {oracle}, {poses - wide} poses", off, 1e-10)
        if wide:
            good &= judged(
                f"{name:19s} g outside of what MuJoCo leaves open, {wide} poses by > 1e-10", beyond, 1e-13
            )
        if of_ellipsoids:
            good &= judged(
                f"{name:19s} g between a distance of points and a separation",
                certificate(first, second, poses),
                1e-13,
            )
        good &= judged(f"{name:19s} penetration against brute force", depth(first, second), 1e-10)
        slope, curvature = meeting.derivatives(first, second)
        good &= judged(f"{name:19s} first derivatives against differences", slope, 1e-6)
        good &= judged(f"{name:19s} second derivatives against differences", curvature, 1e-5)
    return good
