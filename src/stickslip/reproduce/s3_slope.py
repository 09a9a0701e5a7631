"""S3 section 7.7: a point mass on a slope, and the orders of the methods."""

import math
from typing import Any

import numpy as np

from .. import benchmarks
from ..benchmarks import Benchmark
from ..benchmarks.mass_on_slope import exact
from ..methods import (
    LobattoIIIAB,
    RadauIIA,
)
from ..methods.base import Method
from .entries import Sheet, entry
from .shared import CAPTURED, EXACT, PENETRATION, TIGHT, first, since


@entry("S3", ("7.10", "7.11"), "A point mass falls and slides on a slope", shows="mass-on-slope", cost=6)
def point_mass_on_slope(sheet: Sheet) -> None:
    """Starts, positions, velocities and percussions of both cases with two-stage Radau IIA at h = 1e-2,
    judged by an event-driven integration: impact, place on the way, stick."""
    panels = sheet.axes(2, 4, size=(14.0, 5.6))
    for row, case, name in zip(
        panels, (5, 6), ("case 1: at rest on the slope", "case 2: dropped"), strict=True
    ):
        b = benchmarks.load("mass-on-slope", case)
        h, source = b.dt, b.reference["source"]
        sol: Any = sheet.run(b, RadauIIA(stages=2))
        speed = np.linalg.norm(sol.u, axis=1)
        stuck = since(speed < 1e-9)
        atol = 2 * h
        sheet.close(
            f"stick, {name}",
            sol.t[stuck],
            b.reference["stick_time"],
            atol=atol,
            source=f"{source}; {CAPTURED}",
        )
        # order 3 without an impact; an impact may be a step late, at speeds below 2.8
        atol, why = (10 * h**3, "ten h^3") if case == 5 else (2.8 * h, "a step at the largest speed")
        for t in (0.8192, 1.6) if case == 6 else (1.6,):
            x = np.interp(t, sol.t, sol.q[:, 0])
            sheet.close(
                f"x at t = {t}, {name}", x, b.reference[f"x({t})"], atol=atol, source=f"{source}; {why}"
            )
        if case == 5:
            atol, why = h**2, "h^2 for stopping inside a step"
        x = sol.q[-1, 0]
        sheet.close(
            f"x where it sticks, {name}", x, b.reference["stick_x"], atol=atol, source=f"{source}; {why}"
        )
        sheet.at_least(
            f"smallest gap, {name}", sol.g_N().min(), -PENETRATION, source="enforced by the method"
        )
        if case == 6:
            hit = first(sol.P_N[:, 0] > 0)
            t_1, Lambda_N = b.reference["impact_time"], math.sqrt(10.0) / math.sqrt(2.0)
            sheet.close("impact, case 2", sol.t[hit], t_1, atol=2 * h, source=f"closed form; {CAPTURED}")
            source = "closed form Lambda_N, and at most h lambda_N = 8 h more or less"
            sheet.close(
                "percussion of the impact, case 2", sol.P_N[hit, 0], Lambda_N, atol=8 * h, source=source
            )
        _draw_slope(row, b, sol, name)


def _draw_slope(row: Any, b: Benchmark, sol: Any, name: str) -> None:
    t = np.linspace(0.0, b.t1, 1500)
    true = exact(b, t)
    q, u = true.q, true.u
    x = np.linspace(-0.5, 3.6, 200)
    sketch, positions, velocities, percussions = row
    sketch.fill_between(x, np.exp(-x), color="0.85")
    sketch.plot(x, np.exp(-x), "k-", lw=0.9)
    sketch.plot(sol.q[:, 0], sol.q[:, 1], ".", ms=3, label="path")
    sketch.plot(*np.asarray(b.q0), "o", ms=8, label="start")
    sketch.set(title=name, xlabel="x", ylabel="y", ylim=(0.0, 1.7))
    for panel, values, reference, of in ((positions, sol.q, q, "xy"), (velocities, sol.u, u, ("u_x", "u_y"))):
        for i in (0, 1):
            panel.plot(sol.t, values[:, i], lw=1.4, label=f"${of[i]}$")
            panel.plot(t, reference[:, i], "k:", lw=1.2, label="reference" if i else None)
    v = np.linalg.norm(u, axis=1)
    closed, h = t >= b.reference.get("impact_time", 0.0), b.dt
    for P, of in ((sol.P_N, "N"), (sol.P_F, "T")):
        percussions.plot(sol.t[1:], P[1:, 0], ".", ms=2, label=rf"$\Delta\pi_{of}$")
    sliding = closed & (v > 0)
    for factor in (1.0, -0.3):
        label = r"reference $h \lambda$" if factor > 0 else None
        percussions.plot(t[sliding], factor * h * true.la[sliding, 0], **EXACT, label=label)
    percussions.set(ylim=(-0.08, 0.16))
    if b.case == 6:
        hit = first(sol.P_N[:, 0] > 0)
        percussions.annotate(
            f"impact: {sol.P_N[hit, 0]:.2f}, {sol.P_F[hit, 0]:.2f}", (sol.t[hit], 0.145), fontsize=7
        )
    for panel, title in ((positions, "positions"), (velocities, "velocities"), (percussions, "percussions")):
        panel.set(xlabel="t", title=title)
    for panel in row:
        panel.legend(fontsize=7)


def l1_errors(b: Benchmark, sol: Any) -> np.ndarray:
    """(4.56): h sum |e|_1 of q and of u."""
    h, true = sol.t[1] - sol.t[0], exact(b, sol.t)
    return np.array([h * np.abs(a - e)[1:].sum() for a, e in ((sol.q, true.q), (sol.u, true.u))])


def _printed_methods(quick: bool) -> dict[str, tuple[Method, int]]:
    """With the order that section 7.7 states for case 1; 0 where it only says that order is lost."""
    methods: dict[str, tuple[Method, int]] = {"Radau IIA, s = 2": (RadauIIA(stages=2, solver=TIGHT), 3)}
    if not quick:
        methods |= {
            "Lobatto IIIA-IIIB, s = 3": (LobattoIIIAB(stages=3, solver=TIGHT), 4),
            "Radau IIA, s = 3": (RadauIIA(stages=3, solver=TIGHT), 5),
            "Lobatto IIIA-IIIB, s = 2": (LobattoIIIAB(stages=2, solver=TIGHT), 2),
            "s = 3, integrated differences": (LobattoIIIAB(stages=3, integrated=True, solver=TIGHT), 0),
        }
    return methods


@entry("S3", "7.12", "Orders of convergence on the slope", shows="mass-on-slope", cost=34)
def convergence_on_the_slope(sheet: Sheet) -> None:
    """Errors (4.56) over h up to t = 0.8192: orders 2s - 1 and 2s - 2 while it slides (case 1), first order
    across the impact (case 2). The reference is integrated in a minimal coordinate, not by a method of the
    figure."""
    sheet.note(
        "In the plane, while slip keeps its sign, the printed friction law and the stagewise one used here "
        "are the same. "
        "Case 2 is not monotone: its error depends on where in a step the impact falls, so the worst of some "
        "step sizes "
        "stands for each octave."
    )
    t1 = 0.8192
    panels = sheet.axes(2, 2, size=(10.0, 7.6))
    steps = 2 ** np.arange(3, 11)  # h = 1.024e-1 to 8e-4
    b = benchmarks.load("mass-on-slope", 5)
    for name, (method, order) in _printed_methods(sheet.quick).items():
        errors = np.array([l1_errors(b, sheet.run(b, method, t1=t1, dt=t1 / n)) for n in steps])
        for panel, error, of in zip(panels[0], errors.T, "qu", strict=True):
            above = error > 1e-13  # below is round-off
            h, e = list(t1 / steps[above]), list(error[above])
            if order:
                slope = sheet.order(
                    f"case 1, {of}, {name}", h, e, order, source="S3 7.7: 2s - 1 (Radau), 2s - 2 (Lobatto)"
                )
            else:
                slope = float(np.polyfit(np.log(h), np.log(e), 1)[0])
                sheet.at_most(
                    f"case 1, {of}, {name}: order", slope, 3.5, source="S3 7.7: less than 2s - 2 = 4"
                )
            panel.loglog(t1 / steps, error, "o-", ms=3, lw=1, label=f"{name} ({slope:.2f})")
    _across_the_impact(sheet, panels[1], steps)
    for row, case in zip(panels, (1, 2), strict=True):
        for panel, of in zip(row, "qu", strict=True):
            panel.set(title=f"case {case}: error in {of}", xlabel="h")
            panel.legend(fontsize=6.5, title="method (measured order)", title_fontsize=7)


def _across_the_impact(sheet: Sheet, panels: Any, steps: np.ndarray) -> None:
    b = benchmarks.load("mass-on-slope", 6)
    t1, rng = 0.8192, np.random.default_rng(0)
    octaves = steps[1:-2] if sheet.quick else steps
    for name, (method, _) in list(_printed_methods(sheet.quick).items())[:2]:
        run = lambda n, m=method: l1_errors(b, sheet.run(b, m, t1=t1, dt=t1 / n))
        sizes = [[o, *rng.integers(o, 2 * o, 11)] for o in octaves]
        every = np.array([[run(n) for n in of_octave] for of_octave in sizes])
        printed, worst = every[:, 0], every.max(axis=1)
        for k, (panel, of) in enumerate(zip(panels, "qu", strict=True)):
            source = "S3 7.7: first order; worst of 12 step sizes per octave"
            h = list(t1 / octaves)
            slope = sheet.order(f"case 2, {of}, {name}", h, list(worst[:, k]), 1, source=source)
            (line,) = panel.loglog(
                h, worst[:, k], "o-", ms=3, lw=1, label=f"{name}, worst of 12 ({slope:.2f})"
            )
            panel.loglog(
                h,
                printed[:, k],
                "x--",
                ms=5,
                lw=0.5,
                color=line.get_color(),
                label=f"{name}, steps of the paper",
            )
