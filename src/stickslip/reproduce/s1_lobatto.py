"""S1: Capobianco, Harsch, Leyendecker, Lobatto-type variational integrators for mechanical systems with frictional contact,
CMAME. The examples are those of S0, with three and more stages."""

from typing import Any

import numpy as np

from .. import benchmarks
from ..benchmarks import Benchmark
from ..methods import LobattoIIIAB
from ..solvers import Automatic, SemismoothNewton
from .s0_rattle import (
    ENFORCED,
    across_event,
    ball_comes_to_rest,
    ball_slips_or_rolls,
    exact_slide,
    gap_and_rate,
    gap_rates,
    grid,
    judge_crank,
    path_of_the_slider,
    reference_lines,
    tilt,
    trajectories,
)
from .sheet import Sheet, entry

THREE = "Lobatto IIIA-IIIB, s = 3"


def ball(case: int) -> Benchmark:
    return benchmarks.load("bouncing-ball", case)


@entry("S1", "3", "A bouncing ball comes to rest", shows="bouncing-ball", cost=10)
def ball_gap(sheet: Sheet) -> None:
    """The contact distance through an accumulation point with three stages. Closed form: impacts, rest, impact law."""
    ball_comes_to_rest(sheet, THREE, LobattoIIIAB(stages=3))


@entry("S1", "4", "A spinning ball slips or rolls after its impact", shows="bouncing-ball", cost=10)
def ball_percussions(sheet: Sheet) -> None:
    """Normal and friction percussions of cases 2 and 3. Closed form: momentum of every step, rolling, time of stick; the
    number of stages makes no difference."""
    ball_slips_or_rolls(sheet, THREE, LobattoIIIAB(stages=3))
    for s in () if sheet.quick else (2, 4):
        runs = [[sheet.run(ball(case), LobattoIIIAB(stages=k)).u for k in (3, s)] for case in (2, 3)]
        difference = max(np.abs(three - other).max() for three, other in runs)
        source = "S1 section 6.1: the number of stages makes hardly a difference"
        sheet.at_most(f"s = {s} instead of s = 3: difference in u", difference, 10 * ENFORCED, source=source)


@entry("S1", "6", "The slider of a slider-crank rattles itself straight", shows="slider-crank", quick=False, cost=12)
def slider_crank(sheet: Sheet) -> None:
    """Gaps, tilt and path of the slider with three stages and dt = 1e-4. Judged by its laws, the tilt that vanishes, the
    time of a revolution and the energy."""
    b = benchmarks.load("slider-crank")
    sol: Any = sheet.run(b, LobattoIIIAB(stages=3))
    judge_crank(sheet, b, sol)
    E = sol.energy()
    source = "friction and impacts only take energy; the oscillation of a scheme of order 4 is not seen"
    sheet.at_most("energy above its start, relative", E.max() / E[0] - 1, 1e-9, source=source)
    rates = gap_rates(sol)
    (a, c), (d, e) = sheet.axes(2, 2, f"Slider-crank, {THREE}, dt = 1e-4")
    gap_and_rate(a, sol, rates, 0)
    gap_and_rate(c, sol, rates, 2)
    tilt(d, sol)
    path_of_the_slider(e, sol)


@entry("S1", "8", "A point mass slides on a slope, from rest and after an impact", shows="mass-on-slope", cost=7)
def slope_trajectories(sheet: Sheet) -> None:
    """Positions and velocities of both cases with three stages and dt = 1e-2. Converged reference: impact, time and place of
    rest."""
    trajectories(sheet, LobattoIIIAB(stages=3), {"case 1: sliding": 5, "case 2: dropped": 6}, 1e-2, "qu")


def norm_74(dt: float, difference: np.ndarray) -> float:
    """S1 (74): all components."""
    return float(dt * np.abs(difference).sum())


T1 = 1.6384  # four of the largest steps; the printed 1.6 is no multiple of them


@entry("S1", "9", "Lobatto IIIA-IIIB has order 2 s - 2 in sliding, 1 across an impact", shows="mass-on-slope", cost=25)
def slope_orders(sheet: Sheet) -> None:
    """Errors of q and v over the printed step sizes for s = 2, 3, 4, norm (74), before the mass sticks. Reference: the exact
    motion (one degree of freedom, classical Runge-Kutta method in steps of 4e-4)."""
    tight = Automatic(newton=SemismoothNewton(atol=1e-14, rtol=1e-14, max_iterations=50))
    methods = {f"s = {s}": LobattoIIIAB(stages=s, solver=tight) for s in ((3,) if sheet.quick else (2, 3, 4))}
    dts: Any = np.array([4.096e-1 * 0.5**k for k in range(8)])
    panels = sheet.axes(2, 2, "Point mass on slope, Lobatto IIIA-IIIB: errors in norm (74), t up to 1.6384")
    for case, row in zip((1, 2), panels, strict=True):
        b = benchmarks.load("mass-on-slope", case + 4)
        exact = exact_slide(b, grid(4e-4, T1))
        for i, (name, method) in enumerate(methods.items()):
            runs: list[Any] = [sheet.run(b, method, dt=dt, t1=T1) for dt in dts]
            for axis, quantity in zip(row, "qu", strict=True):
                true = getattr(exact, quantity)
                errors: Any = np.array([
                    norm_74(dt, (getattr(sol, quantity) - true[:: round(dt / 4e-4)])[1:])
                    for dt, sol in zip(dts, runs, strict=True)
                ])  # fmt: skip
                axis.loglog(dts, errors, "osd"[i] + "-", ms=4, lw=1, label=name)
                axis.set(title=f"case {case}: error of {'v' if quantity == 'u' else 'q'}", xlabel="dt")
                what = f"case {case}, {name}: e_{quantity}"
                if case == 1:  # the order begins below the largest step and ends in round-off
                    use = (dts < 0.4) & (errors > 1e-12)
                    sheet.order(what, dts[use], errors[use], method.order, source="S1 Fig. 9: 2 s - 2")
                elif method.stages == 4 and quantity == "u":
                    source = "S1 Fig. 9; where in a step the impact falls is chance: standard deviation 0.2 over 8 octaves"
                    sheet.order(what, dts, errors, 1, tolerance=0.4, source=source)
    more = across_event(sheet, b, {f"case 2, {name}": m for name, m in methods.items()}, 5.12e-2, T1, norm_74)
    for i, (name, method) in enumerate(methods.items()):
        more.judge(sheet, f"case 2, {name}", "q" if method.stages == 4 else "qu")
        for k, axis in enumerate(panels[1]):
            axis.loglog(more.dts.flat, more.errors[f"case 2, {name}"][:, :, k].flat, ".", ms=2, color=f"C{i}")
    for axis in panels[0]:
        reference_lines(axis, dts, {2: 5e-3, 4: 1e-4, 6: 1e-6})
        axis.set_ylim(1e-15, None)
    for axis in panels[1]:
        reference_lines(axis, dts, {1: 5e-3})
    panels[1, 0].legend(fontsize=8)
    sheet.note("Printed is the time span [0, 1.6], which is no multiple of the printed step sizes: 1.6384 is.")
    if not sheet.quick:
        sheet.note(
            "With four or more stages an impact in the first part of a step (0.276 for s = 4) may close inner stages only. The"
            " contact then counts as open at the end of the step, (67), and the velocity jumps one or more steps later, the"
            " more the smaller the step: positions stay first order, velocities err by about dt log(1/dt)."
        )
