"""S3 Algorithm 2, the solver of all examples of chapter 7, and Fig. 8.1, the choice of a method."""

from typing import Any, NamedTuple

import jax
import numpy as np

from .. import benchmarks, methods
from .. import tableaus as tb
from ..methods import RadauIIA
from ..solution import Solution
from ..solvers import FixedPoint
from . import decision_tree
from .entries import Sheet, entry
from .shared import CAPTURED, exact_percussions, since

# ---- Algorithm 2

TOL = 1e-6  # S3 chapter 7: rtol = atol = 1e-6 for the fixed point and for the inexact Newton method
MANY_STEPS = 100 * TOL  # what the errors of all steps may add up to
AS_ASKED = "what rtol = atol = 1e-6 allows"


class Pair(NamedTuple):
    """The same run with the thesis' solver and with the default one."""

    name: str
    b: Any
    sol: Any
    default: Any


def run_both(sheet: Sheet, name: str, b: Any) -> Pair:
    """With the friction law as printed."""
    projection = RadauIIA(stages=2, friction="printed", solver=FixedPoint(atol=TOL, rtol=TOL))
    return Pair(name, b, sheet.run(b, projection), sheet.run_sound(b, RadauIIA(stages=2, friction="printed")))


def judge_laws(sheet: Sheet, p: Pair) -> None:
    sol = p.sol
    sheet.at_least(f"{p.name}: smallest gap", sol.g_N().min(), -TOL, source=f"no penetration; {AS_ASKED}")
    sheet.at_least(
        f"{p.name}: smallest percussion", sol.P_N.min(), 0.0, source="contacts only push: projected"
    )
    newton = int(sol.stats.newton_iterations.sum())
    sheet.at_most(f"{p.name}: semismooth Newton iterations", newton, 0, source="Algorithm 2 alone solves")


def judge_same(sheet: Sheet, p: Pair) -> None:
    off = max(
        np.abs(x - y).max() / np.abs(y).max() for x, y in ((p.sol.q, p.default.q), (p.sol.u, p.default.u))
    )
    source = f"the default solver, to 1e-13; a hundred times {AS_ASKED}, for all steps"
    sheet.at_most(f"{p.name}: motion less that of the default solver", off, MANY_STEPS, source=source)


def judge_bouncing(sheet: Sheet, p: Pair) -> None:
    """Case 1. No comparison step by step: with g = 10 and h = 1e-2 the ball ends a step on the ground to
    round-off.
    """
    r, h, sol = p.b.reference, p.b.dt, p.sol
    hits = np.flatnonzero((sol.P_N[1:, 0] > 0) & (sol.u[:-1, 1] < -0.2)) + 1
    law = np.abs(sol.u[hits, 1] + 0.5 * sol.u[hits - 1, 1]).max()
    sheet.at_most(
        f"{p.name}: impact law u+ + e u- at {len(hits)} impacts", law, TOL, source=f"Newton's law; {AS_ASKED}"
    )
    for k, (t, exact) in enumerate(zip(sol.t[hits], r["impact_times"], strict=False), start=1):
        sheet.close(
            f"{p.name}: time of impact {k}", t, exact, atol=2 * k * h, source=f"closed form; {CAPTURED}, each"
        )
    apart = np.abs(sol.u - p.default.u).max(axis=1) > 1e-3
    tie = int(np.argmax(apart)) if apart.any() else len(apart) - 1
    before = np.abs(sol.u[:tie] - p.default.u[:tie]).max()
    sheet.at_most(
        f"{p.name}: velocity less that of the default solver, before the tie", before, TOL, source=AS_ASKED
    )
    grazes = np.abs(sol.g_N()[tie, 0])
    sheet.at_most(
        f"{p.name}: gap where both part (t = {sol.t[tie]:.2f})",
        grazes,
        TOL,
        source="0 in exact arithmetic: a tie",
    )


def judge_spinning(sheet: Sheet, p: Pair) -> None:
    """Cases 2 and 3: percussions of every step, and rolling."""
    r, sol = p.b.reference, p.sol
    exact = exact_percussions(p.b, sol.t)
    for i, (symbol, P) in enumerate((("P_N", sol.P_N), ("P_F", sol.P_F))):
        off = np.abs(P[1:, 0] - exact[:, i]).max()
        source = f"closed form; of Lambda_N, {AS_ASKED}"
        sheet.at_most(f"{p.name}: error of {symbol} in any step", off, TOL * r["Lambda_N"], source=source)
    rolling = np.abs(sol.u[-1] - r["u_rolling"]).max()
    sheet.at_most(f"{p.name}: rolling velocities", rolling, TOL, source=f"closed form; {AS_ASKED}")


def judge_crank(sheet: Sheet, p: Pair) -> None:
    s, sol = p.b.system, p.sol
    g = np.abs(jax.vmap(lambda q: s.g(0.0, q))(sol.q)).max()
    sheet.at_most(f"{p.name}: largest bilateral constraint", g, TOL, source=f"g = 0; {AS_ASKED}")
    cone = (np.abs(sol.P_F) - s.mu * sol.P_N).max()
    sheet.at_most(f"{p.name}: |P_F| - mu P_N", cone, 1e-15, source="Coulomb's law: projected, to round-off")


def judge_tetrahedron(sheet: Sheet, p: Pair) -> None:
    r, h, sol = p.b.reference, p.b.dt, p.sol
    slides = sol.t > r["impact_time"] + 3 * h
    weight = np.abs(sol.P_N[slides].sum(axis=1) / h - r["lambda_N"]).max() / r["lambda_N"]
    source = f"closed form m g, relative; a hundred times {AS_ASKED}"
    sheet.at_most(f"{p.name}: resultant normal force less the weight", weight, MANY_STEPS, source=source)
    away = np.abs(sol.q[-1, :2] - r["rest_xy"]).max()
    sheet.at_most(
        f"{p.name}: distance from the place of rest",
        away,
        4.0 * h,
        source=f"{r['source']}; a step at the speed 4",
    )
    rest = sol.t[since(np.abs(sol.u).max(axis=1) < TOL)]
    sheet.close(
        f"{p.name}: rest",
        rest,
        r["rest_time"],
        atol=3 * h,
        source=f"{r['source']}; {CAPTURED}, impact and rest",
    )


@entry("S3", "Algorithm 2", "The examples with the thesis' own solver", cost=30,
       shows=("bouncing-ball", "slider-crank", "tetrahedron"))  # fmt: skip
def iterative_projection(sheet: Sheet) -> None:
    """Fixed-point iterations with an inexact Newton method and rtol = atol = 1e-6, as chapter 7 says, for the
    bouncing ball, the slider-crank and the tetrahedron: iterations of each step beside those of the default
    solver. Judged by closed forms and by the default solver, to what the tolerance allows."""
    cases = {f"ball, case {k}": benchmarks.load("bouncing-ball", k, g=10.0) for k in (1, 2, 3)}
    if not sheet.quick:
        cases |= {
            "slider-crank": benchmarks.load("slider-crank"),
            "tetrahedron": benchmarks.load("tetrahedron"),
        }
    judges = {"slider-crank": judge_crank, "tetrahedron": judge_tetrahedron, "ball, case 1": judge_bouncing}
    pairs = [run_both(sheet, name, b) for name, b in cases.items()]
    for p in pairs:
        judge_laws(sheet, p)
        judges.get(p.name, judge_spinning)(sheet, p)
        if p.name != "ball, case 1":
            judge_same(sheet, p)
    size = 2.9 * len(pairs), 3.4
    panels = sheet.axes(1, len(pairs), "Iterations of a step, two-stage Radau IIA", size)[0]
    for axis, p in zip(panels, pairs, strict=True):
        draw_iterations(axis, p)
    panels[0].set_ylabel("iterations of both solves")
    panels[0].legend(fontsize=7, loc="lower left")
    sheet.note(
        "Unlike in (6.15), convergence is tested on percussions too, and the proximal parameters are the "
        "default estimate of"
        " this package, not (6.18), (6.19): with the printed minimum in (6.19) the tippedisk diverges."
    )


def counts(sol: Solution) -> np.ndarray:
    """Fixed-point and Newton iterations of both solves of a step."""
    stats: Any = sol.stats
    return np.asarray(stats.fixed_point_iterations.sum(axis=1) + stats.newton_iterations.sum(axis=1))


def draw_iterations(axis: Any, p: Pair) -> None:
    title = f"{p.name}, h = {p.b.dt:g}"
    for sol, name, style in ((p.sol, "Algorithm 2, 1e-6", "."), (p.default, "default solver", "x")):
        k = counts(sol)
        axis.plot(sol.t[1:], k, style, ms=2.5, label=name)
        title += f"\n{name}: avg. {k.mean():.3g}, max. {k.max()}"
    axis.set_yscale("symlog", linthresh=1.0)
    top = max(counts(p.sol).max(), counts(p.default).max())
    ticks = [n for n in (0, 1, 10, 100, 1000, 10_000) if n <= top]
    axis.set(xlabel="t", yticks=ticks, yticklabels=[f"{n}" for n in ticks], ylim=(-0.3, 2.0 * top))
    axis.set_title(title, fontsize=8.5)
    axis.minorticks_off()


# ---- Fig. 8.1


@entry("S3", "8.1", "How to choose a method", cost=0.5)
def choice_of_a_method(sheet: Sheet) -> None:
    """A decision tree from the recommendations of section 8.1, in the words of this package. Judged: every
    leaf is a method by that name, and has the property for which it is recommended."""
    for leaf in decision_tree.leaves():
        method = methods.by_name(leaf.name)
        written = leaf.call.removeprefix("ss.").partition("(")[0]
        sheet.holds(
            f"{leaf.name} is {leaf.call}", written == type(method).__name__, expected=written,
            got=type(method).__name__, source="the registry of methods",
        )  # fmt: skip
    for s in (2, 3):
        L = tb.radau_iia(s).is_L_stable()
        what, says = f"stiff forces: Radau IIA, s = {s}", {True: "L-stable", False: "not L-stable"}
        sheet.holds(
            what,
            L,
            expected="L-stable",
            got=says[L],
            source="S3 8.1: for stiff measure differential inclusions",
        )
    for rho in (0.0, 0.5, 0.9):
        R = tb.tr_theta(rho).stability_at_infinity()
        sheet.close(f"damping as asked: TR-theta({rho:g})", R, rho, atol=1e-10, source="S3 8.1, (4.55)")
    for s, name in ((2, "rattle"), (3, "lobatto3")):
        pair = tb.lobatto_iiia(s), tb.lobatto_iiib(s)
        good, stiff = tb.is_symplectic_pair(*pair), any(t.is_L_stable() for t in pair)
        got = ("symplectic" if good else "not symplectic") + (", L-stable" if stiff else ", not L-stable")
        expected, source = "symplectic, not L-stable", "S3 8.1: long-term energy, limited stability"
        sheet.holds(
            f"energy over a long time: {name}", good and not stiff, expected=expected, got=got, source=source
        )
    levels = {leaf.name: methods.by_name(leaf.name).level for leaf in decision_tree.leaves()}
    overlap = [name for name, level in levels.items() if level != "position"]
    source = "S3 8.1: penetration is prohibited by the proposed methods"
    sheet.holds(
        "may overlap", overlap == ["moreau"], expected="moreau only", got=", ".join(overlap), source=source
    )
    sheet.note(
        "The boxes of the printed figure are not in the text; the questions are those of section 8.1 and of "
        "the guide of"
        " this package, with tolerances and located events, and with hundreds of contacts, which the thesis "
        "does not have."
    )
    ((axis,),) = sheet.axes(1, 1, size=(10.6, 5.6))
    decision_tree.draw(axis)
