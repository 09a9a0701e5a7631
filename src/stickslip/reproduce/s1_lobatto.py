"""S1: Capobianco, Harsch, Leyendecker, Lobatto-type variational integrators for mechanical systems with
frictional contact, CMAME. The examples are those of S0, with three and more stages."""

from typing import Any, Literal

import numpy as np

from .. import benchmarks
from ..benchmarks import Benchmark
from ..benchmarks.mass_on_slope import Motion, exact
from ..methods import LobattoIIIAB
from ..solvers import Automatic, SemismoothNewton
from .entries import Sheet, entry
from .shared import (
    ENFORCED,
    AcrossEvent,
    across_event,
    ball_comes_to_rest,
    ball_slips_or_rolls,
    gap_and_rate,
    gap_rates,
    grid,
    judge_crank,
    path_of_the_slider,
    reference_lines,
    tilt,
    trajectories,
)

THREE = "Lobatto IIIA-IIIB, s = 3"
# The paper's law, one direction for the whole step, and friction stage by stage, this package's default.
LAWS: dict[str, Literal["stagewise", "printed"]] = {"stage by stage": "stagewise", "printed law": "printed"}


def ball(case: int) -> Benchmark:
    return benchmarks.load("bouncing-ball", case)


@entry("S1", "3", "A bouncing ball comes to rest", shows="bouncing-ball", cost=5)
def ball_gap(sheet: Sheet) -> None:
    """The contact distance through an accumulation point with three stages.

    Closed form: impacts, rest, impact law.
    """
    for name, law in LAWS.items():
        with sheet.under(name):
            ball_comes_to_rest(sheet, THREE, LobattoIIIAB(stages=3, friction=law), draw=law == "stagewise")


@entry("S1", "4", "A spinning ball slips or rolls after its impact", shows="bouncing-ball", cost=12)
def ball_percussions(sheet: Sheet) -> None:
    """Normal and friction percussions of cases 2 and 3. Closed form: momentum of every step, rolling, time of
    stick; the number of stages makes no difference."""
    for name, law in LAWS.items():
        with sheet.under(name):
            ball_slips_or_rolls(sheet, THREE, LobattoIIIAB(stages=3, friction=law), draw=law == "stagewise")
    for s in () if sheet.quick else (2, 4):
        runs = [[sheet.run(ball(case), LobattoIIIAB(stages=k)).u for k in (3, s)] for case in (2, 3)]
        difference = max(np.abs(three - other).max() for three, other in runs)
        source = "S1 section 6.1: the number of stages makes hardly a difference"
        sheet.at_most(f"s = {s} instead of s = 3: difference in u", difference, 10 * ENFORCED, source=source)


@entry(
    "S1",
    "6",
    "The slider of a slider-crank rattles itself straight",
    shows="slider-crank",
    quick=False,
    cost=10,
)
def slider_crank(sheet: Sheet) -> None:
    """Gaps, tilt and path of the slider with three stages and dt = 1e-4. Judged by its laws, the tilt that
    vanishes, the time of a revolution and the energy."""
    b = benchmarks.load("slider-crank")
    sols: list[Any] = [sheet.run(b, LobattoIIIAB(stages=3, friction=law)) for law in LAWS.values()]
    for name, run in zip(LAWS, sols, strict=True):
        with sheet.under(name):
            judge_crank(sheet, b, run)
            E = run.energy()
            source = (
                "friction and impacts only take energy; the oscillation of a scheme of order 4 is not seen"
            )
            sheet.at_most("energy above its start, relative", E.max() / E[0] - 1, 1e-9, source=source)
    sol = sols[0]
    rates = gap_rates(sol)
    (a, c), (d, e) = sheet.axes(2, 2, f"Slider-crank, {THREE}, dt = 1e-4")
    gap_and_rate(a, sol, rates, 0)
    gap_and_rate(c, sol, rates, 2)
    tilt(d, sol)
    path_of_the_slider(e, sol)


@entry(
    "S1",
    "8",
    "A point mass slides on a slope, from rest or after an impact",
    shows="mass-on-slope",
    quick=False,
    cost=6,
)
def slope_trajectories(sheet: Sheet) -> None:
    """Positions and velocities of both cases with three stages and dt = 1e-2. Converged reference: impact,
    time and place of rest."""
    for name, law in LAWS.items():
        with sheet.under(name):
            cases, drawn = {"case 1: sliding": 5, "case 2: dropped": 6}, "qu" if law == "stagewise" else ""
            trajectories(sheet, LobattoIIIAB(stages=3, friction=law), cases, 1e-2, drawn)


def norm_74(dt: float, difference: np.ndarray) -> float:
    """S1 (74): all components."""
    return float(dt * np.abs(difference).sum())


T1 = 1.6384  # four of the largest steps; the printed 1.6 is no multiple of them
DTS = 4.096e-1 * 0.5 ** np.arange(8)


def printed_errors(sheet: Sheet, b: Benchmark, method: LobattoIIIAB, exact: Motion) -> np.ndarray:
    """Of q and v, a row for each printed step size."""
    errors = []
    for dt in DTS:
        every = round(dt / 4e-4)
        sol: Any = sheet.run(b, method, dt=dt, t1=T1)
        errors.append(
            [norm_74(dt, (x - true[::every])[1:]) for x, true in ((sol.q, exact.q), (sol.u, exact.u))]
        )
    return np.array(errors)


def judge_sliding(sheet: Sheet, name: str, method: LobattoIIIAB, errors: np.ndarray) -> None:
    for quantity, error in zip("qu", errors.T, strict=True):
        use = (DTS < 0.4) & (error > 1e-12)  # the order begins below the largest step and ends in round-off
        what, source = f"case 1, {name}: e_{quantity}", "S1 Fig. 9: 2 s - 2"
        sheet.order(what, list(DTS[use]), list(error[use]), method.order, source=source)


def judge_drop(sheet: Sheet, name: str, method: LobattoIIIAB, errors: np.ndarray, more: AcrossEvent) -> None:
    late = method.stages >= 4
    more.judge(sheet, f"case 2, {name}", "q" if late else "qu")
    if late:
        source = (
            "S1 Fig. 9; where in a step the impact falls is chance: standard deviation 0.2 over 8 octaves"
        )
        what = f"case 2, {name}: e_u, printed step sizes"
        sheet.order(what, list(DTS), list(errors[:, 1]), 1, tolerance=0.4, source=source)
        sheet.note(
            "With four or more stages an impact in the first part of a step (0.276 for s = 4) may close "
            "inner stages only."
            " The contact then counts as open at the end of the step, (67), and the velocity jumps one or "
            "more steps later,"
            " more of them the smaller the step: positions stay first order, velocities err by about dt "
            "log(1/dt). For"
            " them order 1 is judged over the printed steps only, with a wider tolerance."
        )


@entry(
    "S1",
    "9",
    "Lobatto IIIA-IIIB has order 2 s - 2 in sliding, 1 across an impact",
    shows="mass-on-slope",
    cost=20,
)
def slope_orders(sheet: Sheet) -> None:
    """Errors of q and v over the printed step sizes for s = 2, 3, 4, norm (74), before the mass sticks.
    Reference: the exact motion (one degree of freedom, DOP853 from event to event)."""
    tight = Automatic(newton=SemismoothNewton(atol=1e-14, rtol=1e-14, max_iterations=50))
    panels = sheet.axes(2, 2, "Point mass on slope, Lobatto IIIA-IIIB: errors in norm (74), t up to 1.6384")
    sliding, dropped = (benchmarks.load("mass-on-slope", case) for case in (5, 6))
    exact_sliding, exact_dropped = (exact(b, grid(4e-4, T1)) for b in (sliding, dropped))
    for i, s in enumerate((3,) if sheet.quick else (2, 3, 4)):
        method, name = LobattoIIIAB(stages=s, solver=tight), f"s = {s}"
        slide_errors = printed_errors(sheet, sliding, method, exact_sliding)
        drop_errors = printed_errors(sheet, dropped, method, exact_dropped)
        more = across_event(sheet, dropped, method, 5.12e-2, T1, norm_74)
        judge_sliding(sheet, name, method, slide_errors)
        judge_drop(sheet, name, method, drop_errors, more)
        with sheet.under("printed law"):
            printed = LobattoIIIAB(stages=s, solver=tight, friction="printed")
            judge_sliding(sheet, name, printed, printed_errors(sheet, sliding, printed, exact_sliding))
        for k, (above, below) in enumerate(panels.T):
            style: dict[str, Any] = {"marker": "osd"[i], "ms": 4, "lw": 1, "label": name}
            above.loglog(DTS, slide_errors[:, k], **style)
            below.loglog(DTS, drop_errors[:, k], **style)
            more.draw(below, k, color=f"C{i}")
    for quantity, (above, below) in zip("qv", panels.T, strict=True):
        reference_lines(above, DTS, {2: 5e-3, 4: 1e-4, 6: 1e-6})
        reference_lines(below, DTS, {1: 5e-3})
        above.set(title=f"case 1: error of {quantity}", xlabel="dt", ylim=(1e-15, None))
        below.set(title=f"case 2: error of {quantity} (dots: more step sizes)", xlabel="dt")
    panels[1, 0].legend(fontsize=8)
    sheet.note(
        "Printed is the time span [0, 1.6], which is no multiple of the printed step sizes: 1.6384 is."
    )
