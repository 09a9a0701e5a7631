"""Stacks, fast bodies, edges, stairs and dominoes, for `benchmarks/scenes.py`."""

import time

import numpy as np

from meeting import judged

HALF = 0.05


def stack(count: int = 10, mu: float = 0.5, planar: bool = False):
    from stickslip.scene import Body, Box, Contact, Plane, Scene

    size, up = ((0.2, 2 * HALF), (0,)) if planar else ((0.2, 0.2, 2 * HALF), (0, 0))
    boxes = [Body(f"box{i}", Box(*size), mass=1.0, at=(*up, HALF + 2 * HALF * i)) for i in range(count)]
    return Scene(
        *boxes, Body("floor", Plane(), fixed=True), Contact("box0", "floor", mu=mu),
        *(Contact(f"box{i}", f"box{i + 1}", mu=mu) for i in range(count - 1)), planar=planar,
    )  # fmt: skip


def stacked(method: str, dt: float, t1: float, count: int = 10) -> tuple[float, float, float]:
    """(how far the top box sinks, how far it drifts, seconds of the run)"""
    began = time.perf_counter()
    sol = stack(count).simulate(method, t1=t1, dt=dt)
    top = sol[f"box{count - 1}"].position
    off = np.abs(top - top[0]).max(axis=0)
    return off[2], np.hypot(*off[:2]), time.perf_counter() - began


def stacks(extra=None) -> bool:
    good = True
    dt, t1 = 1e-3, 10.0
    for method in ("rattle", "radau2", "generalized-alpha"):
        try:
            sinks, drifts, spent = stacked(method, dt, t1)
        except Exception as error:  # it says why: the figure is missed
            print(f"MISSED ten boxes, {method}: {error}")
            good = False
            continue
        good &= judged(
            f"ten boxes, {method}, dt {dt:g}, {t1:g} s ({spent:.0f} s): the top sinks", sinks, 1e-8
        )
        good &= judged(f"ten boxes, {method}: the top drifts", drifts, 1e-8)
    return good


# ---- fast bodies


def thrown_at_a_wall(shape, y: float = 0.01, dt: float = 1e-3, method: str = "rattle"):
    """At a wall of 1 mm that ends at y = 0.5, with 100 m/s."""
    from stickslip.scene import Body, Box, Contact, Scene

    return Scene(
        Body("thrown", shape, mass=0.01, at=(-0.55, y, 0.0), velocity=(100.0, 0, 0)),
        Body("wall", Box(1e-3, 1.0, 1.0), fixed=True), Contact("thrown", "wall", e_N=0.2), gravity=0.0,
    ).simulate(method, t1=0.02, dt=dt)  # fmt: skip


def bullet(beside: float | None = None, dt: float = 1e-3, method: str = "rattle"):
    """A ball; or past the wall's edge, at a distance."""
    from stickslip.scene import Ball

    radius = 2e-3
    return thrown_at_a_wall(Ball(radius), 0.01 if beside is None else 0.5 + radius + beside, dt, method)


def swept(
    first: str, second: str, ways: int = 60, seed: int = 0, blind: bool = False
) -> tuple[int, int, int, int]:
    """Ways in one step, seen by MuJoCo at 200 places: (how many hit and are not stopped, beside and are,
    hit, beside).

    Only ways that end apart count. ``blind``: whoever looks at the end alone.
    """
    import jax
    import jax.numpy as jnp
    import mujoco

    from meeting import oracle, pair, random_rotation

    model, a, b = oracle(first, second)
    data, system = mujoco.MjData(model), pair(a, b)
    random, fromto = np.random.default_rng(seed), np.zeros(6)

    @jax.jit
    def at_the_end(q, way):
        step = system if blind else system._during(0.0, q, jnp.concatenate([way, jnp.zeros(9)]), 1.0)
        return jnp.min(step.g_N(0.0, q.at[:3].add(way)))

    missed, held, counts = 0, 0, [0, 0]
    while sum(counts) < ways:
        aside = 0.4 * random.standard_normal(3)
        x = random.standard_normal(3)
        x *= random.uniform(0.8, 1.2) / np.linalg.norm(x)
        q = np.concatenate([x, random_rotation(random), np.zeros(3), random_rotation(random)])
        way = random.uniform(1.5, 2.5) * (aside - x)
        distances = []
        for share in np.linspace(0.0, 1.0, 200):
            data.qpos[:] = q
            data.qpos[:3] += share * way
            mujoco.mj_kinematics(model, data)
            distances.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto))
        if min(distances[0], distances[-1]) < 1e-3 or abs(min(distances)) < 1e-2:
            continue
        hits, gap = min(distances) < 0.0, float(at_the_end(q, way))
        counts[not hits] += 1
        missed, held = missed + (hits and gap > 0.0), held + (not hits and gap <= 0.0)
    return missed, held, *counts


def fast(extra=None) -> bool:
    from meeting import PAIRS
    from stickslip.scene import Ball, Box, Capsule, Hull

    hull = Hull([(0.01, 0.01, 0), (0.01, -0.01, 0.01), (0.01, -0.01, -0.01), (-0.02, 0, 0)])
    good = True
    shapes = {  # with its extent along x and along y
        "ball": (Ball(2e-3), 2e-3, 2e-3),
        "box": (Box(0.02, 0.03, 0.01), 0.01, 0.015),
        "capsule": (Capsule(2e-3, 0.02), 2e-3, 2e-3),
        "hull": (hull, 0.01, 0.01),
    }
    for name, (shape, half, width) in shapes.items():
        stopped, past = thrown_at_a_wall(shape), thrown_at_a_wall(shape, 0.5 + width + 1e-3)
        behind = stopped["thrown"].position[:, 0].max() + half + 5e-4
        good &= judged(f"{name} of 100 m/s: farthest behind the face of a wall of 1 mm, m", behind, 1e-9)
        if name != "hull":  # which turns
            good &= judged(
                f"{name}: velocity of its rebound, off -20 m/s by", abs(stopped.u[-1, 0] + 20.0), 1e-9
            )
        good &= judged(f"{name} 1 mm beside the edge: percussions", past["thrown", "wall"].P_N.sum(), 0.0)
    for first, second in PAIRS:
        missed, held, hits, beside = swept(first, second, 1000)
        good &= judged(f"{first}, {second}: of {hits} ways that hit and end apart, not stopped", missed, 0)
        good &= judged(f"{first}, {second}: of {beside} ways that pass, stopped", held, 0)
    return good


# ---- a ball rolls over an edge


def over_the_edge(dt: float, radius: float = 0.1, speed: float = 0.05) -> float:
    """The cosine at which a ball that slides over a table's edge without friction leaves it."""
    from stickslip.scene import Ball, Body, Box, Contact, Scene

    scene = Scene(
        Body("ball", Ball(radius), mass=1.0, at=(-0.01, 0, radius), velocity=(speed, 0, 0)),
        Body("table", Box(1.0, 1.0, 0.2, at=(-0.5, 0, -0.1)), fixed=True),
        Contact("ball", "table"),
    )
    sol = scene.simulate("rattle", t1=1.5, dt=dt)
    last = np.flatnonzero(sol["ball", "table"].P_N[:, 0] > 0.0)[-1]
    x, _, z = sol["ball"].position[last]
    assert sol.g_N().min() > -1e-10
    return z / np.hypot(x, z)


def edge(extra=None) -> bool:
    """A ball of speed v at the edge leaves where g cos = v^2/R + 2 g (1 - cos)."""
    speed, radius = 0.3, 0.1
    exact = (2.0 + speed**2 / (9.81 * radius)) / 3.0
    good = True
    errors = [abs(over_the_edge(dt, radius, speed) - exact) for dt in (2e-3, 1e-3, 5e-4)]
    good &= judged(f"ball over an edge, dt 2e-3, cos {exact:.4f}", errors[0], 6e-3)
    print(f"       with dt 2e-3, 1e-3, 5e-4: {', '.join(f'{e:.1e}' for e in errors)}")
    return good and errors[2] < errors[0]


# ---- a box falls down stairs


def stairs(extra=None, count: int = 2, t1: float = 0.6) -> bool:
    """With tolerances of 1e-8; distances are MuJoCo's, at 2000 instants of the dense output."""
    import mujoco

    from stickslip.scene import Body, Box, Contact, Plane, Scene

    depth, height, half = 0.3, 0.15, np.array([0.1, 0.08, 0.06])
    tops = [height * (count - i) for i in range(count)]
    treads = [Box(depth, 1.0, top, at=(depth * i, 0, 0.5 * top)) for i, top in enumerate(tops)]
    box = Body(
        "box", Box(*2 * half), mass=1.0, at=(0, 0, tops[0] + 0.2), velocity=(0.8, 0.05, 0), spin=(0.5, 2, 1)
    )
    sol = Scene(
        box, Body("stairs", *treads, fixed=True), Body("floor", Plane(), fixed=True),
        Contact("box", ("stairs", "floor"), e_N=0.3, mu=0.4),
    ).simulate(t1=t1, rtol=1e-8, atol=1e-8)  # fmt: skip
    geoms = "".join(
        f'<geom type="box" size="{depth / 2} 0.5 {top / 2}" pos="{depth * i} 0 {top / 2}"/>'
        for i, top in enumerate(tops)
    )
    size = " ".join(map(str, half))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><worldbody>{geoms}<geom type="plane" '
        'size="1 1 1"/>'
        f'<body><freejoint/><geom type="box" size="{size}"/></body></worldbody></mujoco>'
    )
    data, fromto, lowest = mujoco.MjData(model), np.zeros(6), np.inf
    for q in np.asarray(sol(np.linspace(0.0, t1, 2000))[0]):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        for k in range(count + 1):
            lowest = min(lowest, mujoco.mj_geomDistance(model, data, k, count + 1, 10.0, fromto))
    energy = sol.energy()
    good = judged(f"box down {count} stairs, {len(sol.events)} events: deepest penetration, m", -lowest, 1e-7)
    return good & judged("box down stairs: largest rise of energy", np.diff(energy).max() / energy[0], 1e-7)


# ---- dominoes


def dominoes(count: int = 20, order=None, gap: float = 0.03):
    from stickslip.scene import Body, Box, Contact, Plane, Scene

    width, height = 0.01, 0.05
    bodies = [
        Body(f"d{i}", Box(width, height), density=1000.0, at=(gap * i, 0.5 * height)) for i in range(count)
    ]
    tilt = 0.25  # of the first: beyond its balance
    x = 0.5 * np.array([np.cos(tilt), np.sin(tilt)]) * width
    up = 0.5 * height * np.cos(tilt) + 0.5 * width * np.sin(tilt)
    bodies[0] = Body("d0", Box(width, height), density=1000.0, at=(x[0], up), rotation=-tilt)
    order = range(count) if order is None else order
    return Scene(
        *(bodies[i] for i in order), Body("floor", Plane(), fixed=True), Contact("d*", "floor", mu=0.6),
        *(Contact(f"d{i}", f"d{i + 1}", mu=0.2) for i in range(count - 1)), planar=True,
    )  # fmt: skip


def wave(dt: float, t1: float = 0.82, count: int = 20, order=None) -> float:
    """Speed between dominoes 5 and the last but 4: by the times at which they have turned by 0.1."""
    sol = dominoes(count, order).simulate("rattle", t1=t1, dt=dt)
    times = []
    for i in (5, count - 4):
        angle = -np.asarray(sol[f"d{i}"].angle if hasattr(sol[f"d{i}"], "angle") else sol[f"d{i}"].rotation)
        k = int(np.argmax(angle > 0.1))
        assert k > 0, "the wave did not arrive"
        times.append(
            sol.t[k - 1] + (0.1 - angle[k - 1]) / (angle[k] - angle[k - 1]) * (sol.t[k] - sol.t[k - 1])
        )
    return 0.03 * (count - 9) / (times[1] - times[0])


def domino(extra=None) -> bool:
    dts = (2e-3, 1e-3, 5e-4, 2.5e-4)
    speeds = [wave(dt) for dt in dts]
    steps = np.abs(np.diff(speeds))
    order = np.polyfit(np.log(dts[:-1]), np.log(steps), 1)[0]
    print(f"       speeds {', '.join(f'{v:.5f}' for v in speeds)} m/s with dt {dts}; order {order:.2f}")
    mixed = np.random.default_rng(0).permutation(20)
    return judged(
        "twenty dominoes, listed in another order: speed", abs(wave(1e-3, order=mixed) - speeds[1]), 1e-9
    )


PARTS = {"stacks": stacks, "fast": fast, "edge": edge, "stairs": stairs, "domino": domino}
