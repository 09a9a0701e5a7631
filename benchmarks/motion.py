"""Stacks, fast bodies, edges, stairs and dominoes, for `benchmarks/scenes.py`."""

import time

import numpy as np

from meeting import judged

HALF = 0.05


def stack(count: int = 10, mu: float = 0.5):
    from stickslip.scene import Body, Box, Contact, Plane, Scene

    boxes = [Body(f"box{i}", Box(0.2, 0.2, 2 * HALF), mass=1.0, at=(0, 0, HALF + 2 * HALF * i)) for i in range(count)]
    return Scene(
        *boxes, Body("floor", Plane(), fixed=True), Contact("box0", "floor", mu=mu),
        *(Contact(f"box{i}", f"box{i + 1}", mu=mu) for i in range(count - 1)),
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
    for method, dt, t1 in (("rattle", 1e-3, 10.0), ("radau2", 1e-3, 10.0), ("generalized-alpha", 1e-3, 10.0)):
        try:
            sinks, drifts, spent = stacked(method, dt, t1)
        except Exception as error:  # it says why: the figure is missed
            print(f"MISSED ten boxes, {method}: {error}")
            good = False
            continue
        good &= judged(f"ten boxes, {method}, dt {dt:g}, {t1:g} s ({spent:.0f} s): the top sinks", sinks, 1e-8)
        good &= judged(f"ten boxes, {method}: the top drifts", drifts, 1e-8)
    return good


# ---- a bullet


def bullet(beside: float | None = None, dt: float = 1e-3, method: str = "rattle"):
    """At a wall of 1 mm with 100 m/s, or past its edge at a distance."""
    from stickslip.scene import Ball, Body, Box, Contact, Scene

    radius = 2e-3
    y = 0.01 if beside is None else 0.5 + radius + beside
    return Scene(
        Body("bullet", Ball(radius), mass=0.01, at=(-0.55, y, 0.0), velocity=(100.0, 0, 0)),
        Body("wall", Box(1e-3, 1.0, 1.0), fixed=True), Contact("bullet", "wall", e_N=0.2), gravity=0.0,
    ).simulate(method, t1=0.02, dt=dt)  # fmt: skip


def fast(extra=None) -> bool:
    stopped, past = bullet(), bullet(beside=1e-3)
    good = judged("bullet: farthest behind the face of the wall, m", stopped["bullet"].position[:, 0].max() + 2.5e-3, 1e-9)
    good &= judged("bullet: velocity of its rebound, off -20 m/s by", abs(stopped.u[-1, 0] + 20.0), 1e-9)
    return good & judged("bullet 1 mm beside the edge: percussions", past["bullet", "wall"].P_N.sum(), 0.0)


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


# ---- dominoes


def dominoes(count: int = 20, order=None, gap: float = 0.03):
    from stickslip.scene import Body, Box, Contact, Plane, Scene

    width, height = 0.01, 0.05
    bodies = [Body(f"d{i}", Box(width, height), density=1000.0, at=(gap * i, 0.5 * height)) for i in range(count)]
    tilt = 0.25  # of the first: beyond its balance
    x = 0.5 * np.array([np.cos(tilt), np.sin(tilt)]) * width
    up = 0.5 * height * np.cos(tilt) + 0.5 * width * np.sin(tilt)
    bodies[0] = Body("d0", Box(width, height), density=1000.0, at=(x[0], up), rotation=-tilt)
    order = range(count) if order is None else order
    return Scene(
        *(bodies[i] for i in order), Body("floor", Plane(), fixed=True), Contact("d*", "floor", mu=0.6),
        *(Contact(f"d{i}", f"d{i + 1}", mu=0.2) for i in range(count - 1)), planar=True,
    )  # fmt: skip


def wave(dt: float, t1: float = 1.2, count: int = 20, order=None) -> float:
    """Speed between dominoes 5 and the last but 4: by the times at which they have turned by 0.1."""
    sol = dominoes(count, order).simulate("rattle", t1=t1, dt=dt)
    times = []
    for i in (5, count - 4):
        angle = -np.asarray(sol[f"d{i}"].angle if hasattr(sol[f"d{i}"], "angle") else sol[f"d{i}"].rotation)
        k = int(np.argmax(angle > 0.1))
        assert k > 0, "the wave did not arrive"
        times.append(sol.t[k - 1] + (0.1 - angle[k - 1]) / (angle[k] - angle[k - 1]) * (sol.t[k] - sol.t[k - 1]))
    return 0.03 * (count - 9) / (times[1] - times[0])


def domino(extra=None) -> bool:
    dts = (2e-3, 1e-3, 5e-4, 2.5e-4)
    speeds = [wave(dt) for dt in dts]
    steps = np.abs(np.diff(speeds))
    order = np.polyfit(np.log(dts[:-1]), np.log(steps), 1)[0]
    print(f"       speeds {', '.join(f'{v:.5f}' for v in speeds)} m/s with dt {dts}; order {order:.2f}")
    mixed = np.random.default_rng(0).permutation(20)
    return judged("twenty dominoes, listed in another order: speed", abs(wave(1e-3, order=mixed) - speeds[1]), 1e-9)


PARTS = {"stacks": stacks, "fast": fast, "edge": edge, "domino": domino}
