"""S2 section 10, the footnotes: Newton steps (143) of all examples,
with the paper's step sizes, rho_inf and tolerances.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .. import benchmarks
from ..methods import GeneralizedAlpha
from ..methods.base import Method
from ..solution import Solution
from ..solvers import Automatic, SemismoothNewton, Solver
from .controls import unsolved
from .entries import Sheet, entry
from .s0_rattle import largest_violation


class Footnote(NamedTuple):
    """What the paper prints of a run, and what it does not print: its end."""

    benchmark: str
    case: int
    dt: float
    rho_inf: float
    TOL_n: float
    most: int  # nu_max
    mean: float  # nu_avg
    t1: float
    smooth_until: float  # beyond it another tolerance may lead elsewhere
    judged: str = ""  # what is at most the paper's here
    r: float | None = None  # the paper's, where it is taken in place of the estimate


FOOTNOTES = {
    "bouncing ball": Footnote("bouncing-ball", 1, 2e-3, 0.5, 1e-6, 1, 0.01, 1.5, 1.5, "max."),
    "ball, omega = 50": Footnote("bouncing-ball", 2, 2e-3, 0.5, 1e-6, 1, 0.01, 1.5, 1.5, "max., avg."),
    "ball, omega = 10": Footnote("bouncing-ball", 3, 2e-3, 0.5, 1e-6, 1, 0.01, 1.5, 1.5, "avg."),
    "ball in corner": Footnote("ball-in-corner", 1, 1e-4, 0.5, 1e-6, 7, 0.36, 1.6, 1.6, "avg."),
    "ball in cylinder": Footnote("ball-in-cylinder", 1, 1e-2, 0.5, 1e-6, 74, 0.37, 2.0, 2.0, "max."),
    "Painlevé's rod": Footnote("painleve-rod", 1, 8e-4, 0.9, 1e-8, 2, 0.07, 1.5, 0.7),
    "guided hopper": Footnote("guided-hopper", 1, 5e-5, 0.0, 1e-6, 5, 1.23, 0.3, 0.3, "avg.", r=0.15),
    "tippe top": Footnote("tippe-top", 1, 1e-3, 0.5, 1e-6, 3, 0.36, 8.0, 1.25),
}
QUICK = ("bouncing ball", "ball, omega = 50", "ball, omega = 10", "ball in cylinder")
NOT_UNIQUE = 13  # steps of the ball in the corner in which the paper goes over to fixed-point iterations


def printed_law(row: Footnote, **tolerances: Any) -> Method:
    """With the paper's r Newton's method alone, as in the paper; else the default,
    which has other ways where it fails.
    """
    if row.r is None:
        solver: Solver = Automatic(newton=SemismoothNewton(**tolerances))
    else:
        solver = SemismoothNewton(proximal=row.r, **tolerances)
    return GeneralizedAlpha(rho_inf=row.rho_inf, friction="printed", solver=solver)


def must_move(sol: Solution, TOL_n: float) -> np.ndarray:
    """Steps whose guess is none: without a Newton step forces stay as they were,
    and here they change by 10 TOL_n.
    """
    la = np.column_stack([sol.la_g, sol.la_gamma, sol.la_N, sol.la_F])
    return np.abs(np.diff(la, axis=0)).max(axis=1) > 10 * TOL_n


def judge_solves(sheet: Sheet, name: str, row: Footnote, b: Any, sol: Solution) -> None:
    """A count says nothing about a solve that was none."""
    source = "constraints, gaps and cones, evaluated from outside; TOL_n as printed"
    sheet.at_most(f"{name}: largest violation of a law", largest_violation(sol), row.TOL_n, source=source)
    tight = sheet.run_sound(b, printed_law(row), dt=row.dt, t1=row.smooth_until)
    n = len(tight.t)
    off = max(np.abs(x[:n] - y).max() / np.abs(y).max() for x, y in ((sol.q, tight.q), (sol.u, tight.u)))
    source = f"the default tolerance, 1e-13; a hundred TOL_n for all steps up to t = {row.smooth_until:g}"
    sheet.at_most(f"{name}: motion less that of a tight run", off, 100 * row.TOL_n, source=source)


def judge_counts(sheet: Sheet, name: str, row: Footnote, sol: Solution) -> None:
    k, source = sol.stats.newton_iterations[:, 0], "S2, footnotes to section 10; fewer are better"
    for what, found, printed in (("max.", k.max(), row.most), ("avg.", k.mean(), row.mean)):
        if what in row.judged:
            sheet.at_most(f"{name}: Newton steps, {what}", found, printed, source=source)
    if name == "ball in corner":
        what = f"{name}: steps that take more than {row.most} Newton steps"
        sheet.at_most(
            what, (k > row.most).sum(), NOT_UNIQUE, source="S2: 13, by fixed-point iterations instead"
        )
    if name in ("ball in cylinder", "Painlevé's rod", "tippe top"):
        what, share = f"{name}: share of steps that need a Newton step", must_move(sol, row.TOL_n).mean()
        source = (
            "more than S2's average: a step without a Newton step leaves the forces as they were, and they "
            "change"
        )
        sheet.at_least(what, share, row.mean, source=source)


def count(sheet: Sheet, names: Iterable[str]) -> None:
    runs: dict[str, Solution] = {}
    for name in names:
        row = FOOTNOTES[name]
        b = benchmarks.load(row.benchmark, row.case)
        if name == "ball in corner":
            b = dataclasses.replace(b, system=dataclasses.replace(b.system, gravity=9.81))
        sol = sheet.run(b, printed_law(row, atol=row.TOL_n, rtol=0.0), dt=row.dt, t1=row.t1)
        runs[name] = sol
        judge_solves(sheet, name, row, b, sol)
        judge_counts(sheet, name, row, sol)
    draw(sheet, runs)


def draw(sheet: Sheet, runs: dict[str, Solution]) -> None:
    """Newton steps over time, and the numbers of the paper beside those found."""
    columns = 4
    panels = sheet.axes(
        -(-len(runs) // columns), columns, "Newton steps of a step; dotted: largest of the paper", (13, 5.6)
    )
    for axis in panels.flat[len(runs) :]:
        axis.set_axis_off()
    for axis, (name, sol) in zip(panels.flat, runs.items(), strict=False):
        row, k = FOOTNOTES[name], sol.stats.newton_iterations[:, 0]
        axis.plot(sol.t[1:], k, ".", ms=2.5)
        axis.set_yscale("symlog", linthresh=1.0)
        top = max(int(k.max()), row.most)
        ticks = [n for n in (0, 1, 2, 5, 10, 20, 50, 100) if n <= 1.6 * top]
        axis.set(yticks=ticks, yticklabels=[str(n) for n in ticks], ylim=(-0.3, 2 * top), xlabel="t")
        axis.minorticks_off()
        axis.axhline(row.most, color="k", lw=0.8, ls=":")
        found = f"paper: max. {row.most}, avg. {row.mean:g}\nhere: max. {k.max()}, avg. {k.mean():.3g}"
        axis.set_title(f"{name}\n{found}", fontsize=9)


ALL = tuple(dict.fromkeys(row.benchmark for row in FOOTNOTES.values()))


@entry("S2", "Newton steps", "Newton steps of all examples", shows=ALL, cost=88)
def newton_steps(sheet: Sheet) -> None:
    """Largest and mean number of Newton steps (143) beside those in the paper's footnotes, with its dt,
    rho_inf, TOL_n and friction law. Judged where the printed numbers can be compared; that all laws are met,
    and the motion, in any case."""
    count(sheet, QUICK if sheet.quick else FOOTNOTES)
    sheet.note(
        "TOL_n is an absolute tolerance of the paper's residual and the relative one of a row here. The ends "
        "of the runs are"
        " not printed, so averages depend on how long a ball lies still. The three balls share a footnote, "
        "which may mean"
        " the first; with omega = 10 the impact takes 2 Newton steps here, as the guess slips and the "
        "solution sticks."
    )
    sheet.note(
        "The printed averages of the cylinder, the rod and the tippe top are below the share of steps whose "
        "forces change by"
        " more than ten TOL_n, and a step without a Newton step cannot change them: they can hardly be "
        "averages of (143)"
        " over all steps (of the rod only if its run lasted 12 s, not 1.5 as here). How they were counted is "
        "not said."
    )
    if not sheet.quick:
        sheet.note(
            "Above the paper's are the largest numbers of the corner, where other ways are tried until one "
            "leads to a result"
            " (all their Newton steps are counted), of the hopper, of the rod, next to its singularity, and "
            "of the top; and"
            " the averages of the first ball and of the three examples named above. The hopper has the "
            "paper's r = 0.15;"
            " with the estimated one Newton's method alone fails at t = 0.1503."
        )


@entry("S2", "Newton steps", "Nothing is solved", shows=("bouncing-ball", "ball-in-cylinder"),
       control="largest violation of a law", cost=8)  # fmt: skip
def newton_steps_of_no_solve(sheet: Sheet) -> None:
    """With a solver that accepts its guess: no Newton steps, fewer than printed, and no law is met."""
    count(sheet.breaking(unsolved), ("bouncing ball", "ball in cylinder"))
