"""S4: step size adjustment and extrapolation.

Figures 1, 3, 4, 6 and 7 of the paper are sketches and flow charts.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .. import benchmarks
from ..benchmarks.bouncing_ball_1d import Ball1D
from ..methods import Extrapolation, MoreauMidpoint
from ..methods.base import Method
from ..plot import COLORS
from ..simulate import simulate
from ..solution import Solution, SwitchingPoint
from ..solvers import SemismoothNewton
from ..stepsize import SwitchingPoints
from .entries import Sheet, entry
from .shared import judge_coulomb


def extrapolation(order: int, **options: Any) -> Method:
    """Newton's method alone solves these small problems;
    percussions of a step of dt_min are as small as dt_min.
    """
    return Extrapolation(order, base=MoreauMidpoint(solver=SemismoothNewton(atol=1e-15)), **options)


def becomes(sol: Solution, after: str, law: str = "contact 0") -> list[SwitchingPoint]:
    """The switching points at which a law goes over to a state."""
    return [p for p in sol.switching_points() if (p.law, p.after) == (law, after)]


def between_rows(sol: Solution, k: int) -> Callable[[Any], Any]:
    """q_k at any time, by cubic Hermite interpolation of positions and velocities."""

    def q_k(t: Any) -> Any:
        i = np.clip(np.searchsorted(sol.t, t) - 1, 0, len(sol.t) - 2)
        h = sol.t[i + 1] - sol.t[i]
        z = (t - sol.t[i]) / h
        start = (1 + 2 * z) * (1 - z) ** 2 * sol.q[i, k] + z * (1 - z) ** 2 * h * sol.u[i, k]
        return start + z**2 * (3 - 2 * z) * sol.q[i + 1, k] + z**2 * (z - 1) * h * sol.u[i + 1, k]

    return q_k


def draw_steps(sol: Solution, sizes: Any, orders: Any) -> None:
    """Step sizes and orders over time, with dots where a law switches."""
    switched = np.unique([p.step for p in sol.switching_points()])
    for axis, values, label in ((sizes, sol.dt, r"$\Delta t$"), (orders, sol.order, "integration order")):
        axis.plot(sol.t[1:], values[1:], lw=0.8, drawstyle="steps-pre")
        axis.plot(sol.t[switched], values[switched], "k.", ms=5, label="a law switches")
        axis.set(xlabel="$t$", ylabel=label)
    sizes.set(yscale="log", title="step size")
    orders.set(title="order of the steps", yticks=range(1, int(sol.order.max()) + 1))


def judge_growth(sheet: Sheet, sol: Solution, control: SwitchingPoints) -> None:
    """Steps may double, or grow from dt_min to three of it; and they do."""
    dt_min, dt_max = float(control.dt_min), float(control.dt_max)
    before, after = sol.dt[1:-2], sol.dt[2:-1]  # the last one ends where the run does
    most = np.minimum(np.maximum(2 * before, 3 * dt_min), dt_max)
    source = "S4 Table IV: max(2 dt, 3 dt_min); half of dt_min is what a step may take up before a stop"
    sheet.at_most(
        "growth of a step beyond what is allowed, over dt_min",
        ((after - most) / dt_min).max(),
        0.51,
        source=source,
    )
    ratios = (after / before)[(before >= 3 * dt_min) & (before < dt_max / 2)]
    sheet.close(
        f"largest ratio of {len(ratios)} successive steps", ratios.max(), 2.0, rtol=1e-3, source="S4 Table IV"
    )


def judge_tolerance(sheet: Sheet, b: Any, t1: float, error: Callable[[Solution], float]) -> None:
    """The error of extrapolation over its tolerance, where no law switches."""
    atols = np.geomspace(1e-5, 1e-10, 6)
    dt_min = float(b.stepsize.dt_min) if b.stepsize is not None else 1e-6
    errors = np.array([
        error(sheet.run(b, extrapolation(6), t1=t1,
                        stepsize=SwitchingPoints(dt_min, t1, rtol=0.0, atol=atol)))
        for atol in atols
    ])  # fmt: skip
    where = f"{b.name} to t = {t1:.3g}, no switching"
    source = "S4 section 9: order and step are chosen so that the estimated error is below atol"
    sheet.at_most(f"{where}: largest error over atol", (errors / atols).max(), 1.0, source=source)
    sheet.order(f"{where}: error over atol, 1e-5 to 1e-10", atols, errors, 1.0, tolerance=0.3, source=source)


# -- Fig. 2: disks in a mixer
# -----------------------------------------------------------------------------------------


def draw_disks(axis: Any, sol: Solution, row: int) -> None:
    from matplotlib.patches import Circle

    s: Any = sol.system
    left = sol.q[0].reshape(-1, 3)[:, 0] < 0
    axis.add_patch(Circle((0, 0), s.drum_radius, fill=False, lw=1.5))
    for (x, y, phi), which in zip(sol.q[row].reshape(-1, 3), left, strict=True):
        axis.add_patch(Circle((x, y), s.r, fc=COLORS[0] if which else COLORS[1], ec="w", lw=0.5))
        axis.plot([x, x + s.r * np.cos(phi)], [y, y + s.r * np.sin(phi)], "w", lw=0.8)
    axis.set(xlim=(-0.32, 0.32), ylim=(-0.32, 0.32), aspect="equal", title=f"$t = {sol.t[row]:.2f}$")
    axis.grid(visible=False)


def judge_mixing(sheet: Sheet, sol: Any, finer: Any) -> None:
    """Friction as Moreau's scheme has it: in the velocities after a step, at its midpoint."""
    s, dt = finer.system, sol.t[1]
    t, q = sol.t[:-1] + dt / 2, sol.q[:-1] + dt / 2 * sol.u[:-1]
    slip = np.asarray(jax.jit(jax.vmap(s.gamma_F))(t, q, sol.u[1:]))
    P_N, P_F = sol.P_N[1:], sol.P_F[1:]
    pushes = P_N > 1e-9
    # PSOR stops at 1e-9: slip below 1e-5 may be stick
    judge_coulomb(
        sheet, s.mu, P_N, P_F, slip, pushes, pushes & (np.abs(slip) > 1e-5), percussion=1e-12, creep=1e-5
    )

    def in_use(run):
        return np.abs(run.P_F).sum() / run.P_N.sum()

    def torque(run):
        return run.P_F[:, -run.q.shape[1] // 3 :].sum() * s.drum_radius / run.t[-1]

    source = "the same with dt/2; a mean over all contacts and steps"
    sheet.close("mean of |P_F| over mean of P_N", in_use(sol), in_use(finer), rtol=0.05, source=source)
    source = "the same with dt/2; chaotic: it scatters by 4 % over steps from 4e-3 to 5e-4"
    sheet.close("mean torque of the drum", torque(sol), torque(finer), rtol=0.1, source=source)


@entry("S4", "2", "Disks are mixed in a drum with Moreau's scheme", shows="disk-mixer", quick=False, cost=35)
def mixed_disks(sheet: Sheet) -> None:
    """Disks with friction between all of them; judged by the friction cone, energy,
    and overlaps that fall with dt.
    """
    sheet.note(
        "The paper mixes a thousand disks and states no data. Here are thirty, with 465 candidate contacts "
        "and data of our"
        " own; the motion is chaotic, so that bounds are judged, not paths."
    )
    b, t1 = benchmarks.load("disk-mixer"), 0.24
    s, dts = b.system, [4e-3, 2e-3, 1e-3]
    runs = [sheet.run(b, b.method, dt=dt, t1=b.t1 if dt == b.dt else t1) for dt in dts]
    overlaps = []
    for dt, sol in zip(dts, runs, strict=True):
        early = sol.t <= t1 + 1e-9
        overlaps.append(-sol.g_N()[early].min())
        falls = (
            "contacts are seen at midpoints, a step late: two disks, each with the speed of 0.24 s of free "
            "fall"
        )
        sheet.at_most(f"dt = {dt}: overlap over dt", overlaps[-1] / dt, 2 * s.gravity * t1, source=falls)
        sheet.at_most(
            f"dt = {dt}: |P_F| - mu P_N",
            (np.abs(sol.P_F) - s.mu * sol.P_N).max(),
            1e-12,
            source="Coulomb's law",
        )
    sheet.order(
        "largest overlap", dts, overlaps, 1.0, source="contact on velocity level: overlaps of the order of dt"
    )
    sol = runs[dts.index(b.dt)]
    judge_mixing(sheet, sol, sheet.run_sound(b, b.method, dt=b.dt / 2))
    E, m = sol.energy(), s.m * sol.q.shape[1] / 3
    # friction on the drum can lift the disks to its top and make them as fast as it is, which is what it is
    # bounded by
    most = m * s.gravity * s.drum_radius + 0.5 * m * (s.drum_rate * s.drum_radius) ** 2
    sheet.at_most("energy", E.max(), most, source="all disks at the top of the drum with its speed")
    axes = sheet.axes(
        1, 4, r"Thirty disks in a turning drum, Moreau's scheme, $\Delta t = 0.002$", size=(13.0, 3.4)
    )[0]
    for axis, t in zip(axes, (0.0, 0.24, 0.5), strict=False):
        draw_disks(axis, sol, int(np.abs(sol.t - t).argmin()))
    axes[3].loglog(dts, overlaps, "o-", ms=4, lw=1, label="largest overlap until 0.24")
    axes[3].loglog(dts, 1.5 * np.array(dts), "k:", lw=0.8, label="slope 1")
    axes[3].set(xlabel=r"$\Delta t$", ylabel="overlap", title="overlaps", ylim=(1e-3, 1e-2))
    for ticks in (axes[3].xaxis, axes[3].yaxis):
        ticks.set_ticks(dts, [f"{dt:g}" for dt in dts])
        ticks.set_minor_formatter("")
    axes[3].legend(fontsize=8)


# -- Fig. 5: why odd numbers of substeps
# ------------------------------------------------------------------------------


def neville(numbers: np.ndarray, eps: np.ndarray) -> np.ndarray:
    """T_i,i/gamma_B: the polynomial in 1/n through (-eps)^n at the n_1 ... n_i,
    at zero (Lagrange's formula).
    """
    x = 1.0 / numbers
    weights = np.array(
        [np.prod([x[k] / (x[k] - x[j]) for k in range(len(x)) if k != j]) for j in range(len(x))]
    )
    return weights @ (-eps[None, :]) ** numbers[:, None]


class HighTable(Ball1D):
    def g_N(self, t, q):
        return q - 1.0


def extrapolated_contact(order: int, substeps: str, eps: float) -> float:
    """gamma_E/gamma_B over a step in which a contact stays closed:
    a ball that is pressed on the table, ever so slowly.
    """
    # Closed throughout: the gap starts further below zero than the ball moves, and both are within what a
    # start may violate, 1e-8 of the terms of the gap.
    q, gamma_B = 1.0 - 8e-9, 1e-9
    method = extrapolation(order, substeps=substeps)
    sol = simulate(HighTable(gravity=1e-6, e_N=eps), method, [q], [gamma_B], t1=1.0, dt=1.0, progress=False)
    return float(sol.u[-1, 0]) / gamma_B


@entry(
    "S4",
    "5",
    "Extrapolating an enduring contact needs odd numbers of substeps",
    shows="bouncing-ball-1d",
    cost=8,
)
def odd_substeps(sheet: Sheet) -> None:
    """T_i,i/gamma_B over the restitution, 1, 2, 3, 4 and 1, 3, 5, 7 substeps;
    judged by (47) and Lagrange's formula.
    """
    printed, fine = (-0.7, 1.68, -3.8535, 9.2682), np.linspace(0, 1, 201)
    axes = sheet.axes(1, 2, "An enduring contact with restitution over one extrapolated step")[0]
    for axis, substeps, numbers in (
        (axes[0], "all", np.array([1, 2, 3, 4])),
        (axes[1], "odd", np.array([1, 3, 5, 7])),
    ):
        worst, eps = 0.0, np.array([0.1, 0.4, 0.7, 1.0])
        for i in (1, 2, 3, 4):
            axis.plot(fine, neville(numbers[:i], fine), color=COLORS[i - 1], lw=1, label=f"$T_{{{i},{i}}}$")
            if sheet.quick and i < 4:
                continue
            got = np.array([extrapolated_contact(i, substeps, e) for e in eps])
            axis.plot(eps, got, "o", color=COLORS[i - 1], ms=4, mfc="none")
            worst = max(worst, np.abs(got - neville(numbers[:i], eps)).max())
            if substeps == "all":
                what = f"T_{i},{i}/gamma_B at e = 0.7"
                sheet.close(what, got[2], printed[i - 1], atol=5e-5, source="S4 (47), to its last digit")
            else:
                sheet.at_most(
                    f"largest |T_{i},{i}/gamma_B|, odd", np.abs(got).max(), 1 + 1e-9, source="S4 Fig. 5(b)"
                )
        sheet.at_most(
            f"{substeps} substeps: distance to the formula", worst, 1e-5, source="Lagrange's formula at 0"
        )
        axis.axhspan(-1, 1, color="0.9", zorder=0)
        axis.set(
            xlabel=r"$\varepsilon$",
            ylabel=r"$T_{i,i}/\gamma_B$",
            title=f"{', '.join(map(str, numbers))} substeps",
        )
        axis.legend(fontsize=8, title="lines: formula, circles: computed", title_fontsize=7, ncols=2)
    half = extrapolated_contact(2, "all", 0.5)
    sheet.close(
        "T_2,2/gamma_B at e = 0.5", half, 1.0, atol=1e-6, source="S4 section 8.1: energy grows beyond e = 1/2"
    )


# -- Fig. 8: the search for a switching point
# -------------------------------------------------------------------------


def watched(log: list[tuple[float, float, bool]]) -> Method:
    """Extrapolation that writes down (begin, end,
    every law as before) of all steps it attempts, rejected ones too.
    """

    class Watched(Extrapolation):
        def attempt(self, dynamics, t, t1, dt, q, u, memory, sigma, tolerances):
            out = super().attempt(dynamics, t, t1, dt, q, u, memory, sigma, tolerances)
            jax.debug.callback(
                lambda *step: log.append(tuple(x.item() for x in step)), t, t1, out.same, ordered=True
            )
            return out

    base = MoreauMidpoint(solver=SemismoothNewton(atol=1e-15))
    return Watched(order=4, base=base)  # type: ignore[call-arg]


def draw_search(axis: Any, log: list[tuple[float, float, bool]], accepted: np.ndarray, t_S: float) -> None:
    """A line for every calculation step, as in the paper,
    from the first one that reaches beyond the impact on.
    """
    for i, (t, t_E, same) in enumerate(log):
        axis.plot(
            [t, t_E],
            [i, i],
            color="k" if accepted[i] else "0.6",
            lw=3 if accepted[i] else 1.2,
            solid_capstyle="butt",
        )
        if not same:
            axis.plot(t_E, i, "^", color=COLORS[1], ms=5)
    axis.axvline(t_S, color="k", lw=0.8, ls=":")
    for style, label in (({"color": "k", "lw": 3}, "accepted"), ({"color": "0.6", "lw": 1.2}, "rejected")):
        axis.plot([], [], label=f"step that was {label}", **style)
    axis.plot([], [], "^", color=COLORS[1], ms=5, label="the contact changed its state")
    axis.plot([], [], "k:", lw=0.8, label="impact, exact")
    axis.set(xlabel="$t$", ylabel="calculation step", xlim=(0.04, 0.2), ylim=(len(log), 5))
    axis.legend(fontsize=8, loc="upper right")


@entry("S4", "8", "The search for a switching point", shows="falling-mass", cost=3)
def switching_point_search(sheet: Sheet) -> None:
    """Steps tried around the first impact, accepted or rejected;
    judged by Tables V and VI and the exact impact.
    """
    b, dt_min, dt_max = benchmarks.load("falling-mass"), 1e-3, 0.05
    t_S, log = b.reference["first_impact"], list[tuple[float, float, bool]]()
    sol = sheet.run(b, watched(log), stepsize=SwitchingPoints(dt_min, dt_max), t1=0.2)
    begin, end, same = np.array(log).T
    accepted = np.array(
        [np.isclose(sol.t[:-1], t).any() and np.isclose(sol.t[1:], t_E).any() for t, t_E, _ in log]
    )
    closes = becomes(sol, "closed")[0]
    sheet.close(
        "step that holds the impact", sol.dt[closes.step], dt_min, rtol=1e-6, source="S4 Table VI: dt_min"
    )
    between = "S4 (36): between the midpoint of this step and that of the one before"
    sheet.close(
        "midpoint of this step", closes.t - dt_min / 2, t_S + dt_min / 2, atol=dt_min / 2, source=between
    )
    rejected = np.flatnonzero((same == 0) & ~accepted)
    halves = (end - begin)[rejected] / 2
    wanted = np.where(halves < 3 * dt_min, dt_min, halves)
    sheet.at_most(
        "next step after a rejected one, over dt_min",
        np.abs((end - begin)[rejected + 1] - wanted).max() / dt_min, 1e-6,
        source="S4 Table V: half of it, or dt_min where that is below 3 dt_min",
    )  # fmt: skip
    judge_growth(sheet, sol, SwitchingPoints(dt_min, dt_max))
    most = math.ceil(math.log2(dt_max / (3 * dt_min))) + 1
    tries = int((end[rejected] > closes.t).sum() - (begin[rejected] >= closes.t).sum())
    sheet.at_most("rejections on the way to the impact", tries, most, source="halvings from dt_max to dt_min")
    ((axis,),) = sheet.axes(
        1, 1, r"Falling mass, $\Delta t_{min} = 10^{-3}$: search for the first impact", size=(8.0, 4.6)
    )
    draw_search(axis, log, accepted, t_S)
