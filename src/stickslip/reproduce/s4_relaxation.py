"""S4: force elements with any interval (1), and its examples with its own solvers, PJOR and PSOR, counted."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import benchmarks
from ..laws import FrictionElement
from ..methods import Extrapolation, MoreauMidpoint, Rattle
from ..simulate import simulate
from ..solvers import PJOR, PSOR, Automatic, SemismoothNewton
from ..stepsize import SwitchingPoints
from ..system import System
from .entries import Sheet, entry
from .s4_examples import moreau_steps
from .s4_step_size import COLORS

NEWTON = Automatic(newton=SemismoothNewton(atol=1e-15))


def solvers(laws: int) -> dict[str, Any]:
    """As in S4 (22), (23): r_i = omega_ii/D_ii, and what finds the same solution otherwise.

    A system has so many laws.
    """
    tight: dict[str, Any] = {"atol": 1e-15, "rtol": 1e-14}
    return {
        "Newton": NEWTON,
        "PSOR, omega = 1": PSOR(**tight),
        "PJOR, omega = 1/2": PJOR(**tight, proximal="diagonal", relaxation=(0.5,) * laws),
    }


def extrapolated(order: int, solver: Any, fixed_order: bool = False) -> Extrapolation:
    return Extrapolation(order, base=MoreauMidpoint(solver=solver), fixed_order=fixed_order)


def iterations(sol: Any) -> int:
    """All of them, of rejected steps too."""
    return int(sol.stats.newton_iterations.sum() + sol.stats.fixed_point_iterations.sum())


EXAMPLES = {  # figure: (benchmark, largest order, laws, end, steps)
    "Fig. 10": ("falling-mass", 4, 1, None, None),
    "Fig. 11": ("sliding-mass", 6, 1, None, SwitchingPoints(1e-7, 0.05)),
    "Fig. 12": ("impact-oscillator", 4, 1, None, SwitchingPoints(1e-8, 0.01)),
    "Fig. 13": ("woodpecker", 6, 6, None, None),
}


@entry("S4", ("10", "11", "12", "13"), "The examples with PJOR and PSOR, counted", cost=45, quick=False,
       shows=("falling-mass", "sliding-mass", "impact-oscillator", "woodpecker"))  # fmt: skip
def own_solvers(sheet: Sheet) -> None:
    """Each example with the relaxation of S4 (22), (23) in the place of Newton's method: the same switching
    points and the same motion, and the number of iterations, which the paper takes for the work; Fig. 12(f)
    over that number."""
    counts: dict[str, list[int]] = {}
    for figure, (name, order, laws, t1, control) in EXAMPLES.items():
        b = benchmarks.load(name)
        runs = {
            kind: sheet.run(b, extrapolated(order, solver), t1=t1 or b.t1, stepsize=control or b.stepsize)
            for kind, solver in solvers(laws).items()
        }
        first, *others = runs.items()
        scale = np.abs(first[1].q).max()
        for kind, sol in others:
            with sheet.under(f"{figure}, {kind}"):
                same = [(p.law, p.after) for p in sol.switching_points()] == [
                    (p.law, p.after) for p in first[1].switching_points()
                ]
                n = len(sol.switching_points())
                sheet.holds(
                    "switching incidents",
                    same,
                    expected="those of Newton's method",
                    got=str(n),
                    source="one solution",
                )
                off = np.abs(sol.q[-1] - first[1].q[-1]).max() / scale
                sheet.at_most(
                    "end less that of Newton's method, relative",
                    off,
                    1e-6,
                    source="dt_min per incident, S4 5.2",
                )
        for kind, sol in runs.items():
            counts.setdefault(kind, []).append(iterations(sol))
            if "PJOR" in kind or "PSOR" in kind:
                did = int(sol.stats.fixed_point_iterations.sum())
                sheet.at_least(
                    f"{figure}, {kind}: iterations", did, 10, source="they were made by the relaxation"
                )
    bars, work = sheet.axes(1, 2, "The paper's own solvers", size=(10.5, 3.4))[0]
    for k, (kind, numbers) in enumerate(counts.items()):
        bars.bar(np.arange(len(EXAMPLES)) + 0.27 * (k - 1), numbers, width=0.25, label=kind)
    bars.set(yscale="log", ylabel="iterations of a run, rejected steps too")
    bars.set_xticks(range(len(EXAMPLES)), [f"{f}\n{x[0]}" for f, x in EXAMPLES.items()], fontsize=7)
    bars.legend(fontsize=8)
    _work(sheet, work)


def _work(sheet: Sheet, axis: Any) -> None:
    """Fig. 12(f), over PSOR iterations."""
    b = benchmarks.load("impact-oscillator")
    spent: dict[int, tuple[list[int], list[float]]] = {}
    for p in (1, 2, 3, 4):
        dts = np.geomspace(1e-4, 1e-3, 4) if p == 1 else np.geomspace(2e-3, 1e-2, 4)
        runs = [
            sheet.run(
                b, extrapolated(p, PSOR(atol=1e-15), fixed_order=True), stepsize=SwitchingPoints(dt**p, dt)
            )
            for dt in dts
        ]
        errors = [float(np.abs(run.q[:, 0] - b.reference["exact"](run.t)).max()) for run in runs]
        # the guess of every step is looked at, which the count of a solver leaves out
        spent[p] = [iterations(run) + moreau_steps(run, p) for run in runs], errors
        axis.loglog(*spent[p], "o-", ms=3, lw=1, color=COLORS[p - 1], label=f"p = {p}")
    (dear, e_1), (cheap, e_4) = (max(spent[1][0]), min(spent[1][1])), (min(spent[4][0]), max(spent[4][1]))
    sheet.holds(
        "p = 4 at its cheapest, p = 1 at its dearest", cheap < dear and e_4 < e_1 / 100,
        expected="a hundredth, for less",
        got=f"{e_4:.1e} after {cheap} iterations against {e_1:.1e} after {dear}", source="S4 Fig. 12(f)",
    )  # fmt: skip
    axis.set(xlabel="steps and PSOR iterations, rejected ones too", ylabel="$e_G$", title="Fig. 12(f)")
    axis.legend(fontsize=8)


# -- (1): force elements
# ------------------------------------------------------------------------------------------------


class Pushed(System):
    """A mass of 1 in an element, pushed by a force that swings."""

    lower: Any
    upper: Any
    F: float = 4.0

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return jnp.array([self.F * jnp.sin(2.0 * t) - 1.0])

    def gamma_F(self, t, q, u):
        return u

    @property
    def laws(self):
        return (FrictionElement(lower=self.lower, upper=self.upper),)


class PushedForwards(Pushed):
    """The same with a freewheel."""

    @property
    def laws(self):
        return (FrictionElement(lower=self.lower, upper=math.inf),)


ELEMENTS = {
    "symmetric: dry friction": (-2.0, 2.0),
    "a slip clutch": (-1.0, 3.0),
    "prestressed": (0.5, 2.0),
    "a freewheel": (0.0, math.inf),
}


@entry("S4", "(1)", "Force elements: clutches, freewheels, prestress", shows="freewheel", cost=12)
def force_elements(sheet: Sheet) -> None:
    """-gamma in N_C(la) with any interval C. Judged by the law itself at every step, and for the freewheel by
    its closed form."""
    (top, bottom) = sheet.axes(
        2, 4, "Force elements, pushed by 4 sin 2t - 1 (dotted: what would hold that)", size=(13.0, 5.4)
    )
    for force, speed, (name, (lower, upper)) in zip(top, bottom, ELEMENTS.items(), strict=True):
        system = Pushed(lower, upper) if upper < math.inf else PushedForwards(lower, 0.0)
        sol = simulate(system, Rattle(), [0.0], [0.0], t1=6.0, dt=1e-3, progress=False)
        la, gamma = sol.P_F[1:, 0] / np.diff(sol.t), sol.u[1:, 0]
        with sheet.under(name):
            inside = max((lower - la).max(), (la - upper).max() if upper < math.inf else -math.inf)
            sheet.at_most("outside its interval", inside, 1e-9, source="C")
            # the mean force of a step is lower or upper if slip does not turn in it
            one_sign = gamma * sol.u[:-1, 0] > 0.0
            expected = np.where(gamma > 0.0, lower, upper)
            off = np.abs(la - expected)[one_sign & (np.abs(gamma) > 1e-2)]
            sheet.at_most(
                "force in slip less its bound",
                off.max(initial=0.0),
                1e-9,
                source="lower forwards, upper backwards",
            )
            if upper == math.inf:
                sheet.at_least(
                    "smallest velocity", gamma.min(), -1e-12, source="a freewheel never turns back"
                )
        force.plot(sol.t[1:], la, lw=1)
        force.plot(sol.t, 1.0 - 4.0 * np.sin(2.0 * sol.t), "k:", lw=0.8)
        shown = f"[{lower:g}, {'∞' if upper == math.inf else f'{upper:g}'}]"
        force.set(title=f"{name}, {shown}", ylim=(-4.5, 5.5), ylabel=r"$\lambda$")
        speed.plot(sol.t, sol.u[:, 0], lw=1, color=COLORS[1])
        speed.set(xlabel="$t$", ylabel=r"$\gamma$")
    b = benchmarks.load("freewheel")
    for dt in (1e-2, 1e-3):
        sol = sheet.run(b, Rattle(), dt=dt)
        q, u, _ = b.reference["exact"](sol.t)
        error = max(np.abs(sol.q - q).max(), np.abs(sol.u - u).max())
        sheet.at_most(f"hub and wheel, dt = {dt:g}: error", error, 10.0 * dt**2, source=b.reference["source"])
    wheel = sheet.axes(1, 2, "A hub drives a wheel through a freewheel", size=(10.0, 3.0))[0]
    wheel[0].plot(sol.t, sol.u, lw=1.2, label=["hub", "wheel"])
    wheel[0].set(xlabel="$t$", ylabel="angular velocity")
    wheel[1].plot(sol.t[1:], sol.P_F[1:, 0] / np.diff(sol.t), lw=1.2)
    wheel[1].set(xlabel="$t$", ylabel=r"torque $\lambda$ of the freewheel")
    for axis in wheel:
        for t in (*b.reference["opens"], *b.reference["locks"]):
            axis.axvline(t, color="k", lw=0.6, ls=":")
    wheel[0].legend(fontsize=8)
