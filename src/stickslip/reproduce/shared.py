"""What S0 and S1 both show, written once as functions of a method: a ball,
a slider-crank, a mass on a slope.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .. import benchmarks
from ..benchmarks.bouncing_ball import exact_gap
from ..benchmarks.mass_on_slope import exact
from ..methods.base import Method
from ..solvers import SemismoothNewton
from .entries import Sheet

# S3: tolerances where orders are measured
TIGHT = SemismoothNewton(atol=1e-14, rtol=1e-14, max_iterations=50)
ENFORCED = 1e-10  # what a solver's tolerance of 1e-12 leaves of a law that is enforced
NO_PENETRATION = "no penetration, enforced by the method"
CAPTURED = "an event-capturing scheme resolves events to a step or two"
EXACT = {"color": "k", "lw": 0.8}
PENETRATION = 1e-9  # what the solvers' tolerances leave of g_N >= 0


def first(condition: Any) -> int:
    """The first row in which it holds."""
    return int(np.argmax(condition))


def since(condition: Any) -> int:
    """The row from which on it holds for good."""
    return int(np.flatnonzero(~np.asarray(condition))[-1]) + 1


def at(sol: Any, t: float) -> int:
    """The row of a time."""
    return int(np.argmin(np.abs(sol.t - t)))


# ---- rotating bouncing ball


def bounces(sol: Any, g: float, e_N: float) -> tuple[np.ndarray, np.ndarray]:
    """Gap and velocity of a bouncing ball as the scheme itself must give them,
    step by step from the start of the run.

    Flight is exact. A step that would end below the ground ends on it, with the impact law between its ends.
    Of one that ends on the ground to round-off the run decides.
    """
    dt, closed = sol.t[1], sol.P_N[:, 0] > 0
    gap, v = [float(sol.g_N()[0, 0])], [float(sol.u[0, 1])]
    for n in range(1, len(sol.t)):
        y, free = gap[-1] + dt * (v[-1] - g * dt / 2), v[-1] - g * dt
        hit = closed[n] if abs(y) < ENFORCED else y < 0
        gap.append(0.0 if hit else y)
        v.append(max(-e_N * v[-1], free) if hit else free)
    return np.array(gap), np.array(v)


def judge_bounces(sheet: Sheet, name: str, sol: Any, g: float, e_N: float) -> None:
    gap, v = bounces(sol, g, e_N)
    off = max(np.abs(sol.g_N()[:, 0] - gap).max(), np.abs(sol.u[:, 1] - v).max())
    source = (
        "the scheme's own recursion: exact flight, a step that would penetrate ends on the ground with v = "
        "-e_N v"
    )
    sheet.at_most(f"{name}: gap and velocity of any step less their recursion", off, 1e-9, source=source)
    predicted, found = (time_of_rest(sol.t, y, g) for y in (gap, sol.g_N()[:, 0]))
    sheet.close(f"{name}: time of rest", found, predicted, atol=1e-9, source="the same recursion")


def time_of_rest(t: np.ndarray, gap: np.ndarray, g: float) -> float:
    """After the last bounce that a step resolves: those below g dt^2 / 8 take less than one."""
    return float(t[1:][gap[:-1] > (1 + 1e-9) * g * t[1] ** 2 / 8][-1])


def ball_comes_to_rest(sheet: Sheet, name: str, method: Method, draw: bool = True) -> None:
    """Case 1: impacts, accumulation point, rest."""
    b: Any = benchmarks.load("bouncing-ball", 1)
    runs: dict[float, Any] = {dt: sheet.run(b, method, dt=dt) for dt in (b.dt, 1e-3)}
    sol, dt, g, e_N = runs[b.dt], b.dt, b.system.gravity, b.system.e_N
    sheet.at_least(
        "smallest gap", min(s.g_N().min() for s in runs.values()), -ENFORCED, source=NO_PENETRATION
    )
    v = sol.u[:, 1]
    hits = np.flatnonzero((sol.P_N[1:, 0] > 0) & (v[:-1] < -2 * g * dt))  # faster than by its weight alone
    law = np.abs(v[hits + 1] + e_N * v[hits]).max(initial=0.0)
    sheet.at_most(
        f"Newton's impact law at {len(hits)} impacts", law, ENFORCED, source="gap rate after = -e_N before"
    )
    found = [*sol.t[hits + 1], *[math.nan] * 3]
    for k, t in enumerate(b.reference["impact_times"]):
        source = "closed form; each bounce is found up to a step late or shortened by up to a step and a half"
        sheet.close(f"time of impact {k + 1}", found[k], t, atol=(k + 1) * dt, source=source)
    for dt_, fine in runs.items():
        judge_bounces(sheet, f"dt = {dt_:g}", fine, g, e_N)
    source = "closed form, 3 t_1; the hundredth that the figure shows"
    t_rest = time_of_rest(runs[1e-3].t, runs[1e-3].g_N()[:, 0], g)
    sheet.close("time of rest, dt = 0.001", t_rest, b.reference["rest_time"], atol=1e-2, source=source)
    sheet.close(
        "percussion of a step at rest", sol.P_N[-1, 0], g * dt, atol=1e-7, source="closed form, m g dt"
    )
    sheet.at_most(
        "energy gained in a step", np.diff(sol.energy()).max(), ENFORCED, source="impacts only take energy"
    )
    if draw:
        draw_rest(sheet, b, name, runs)


def draw_rest(sheet: Sheet, b: Any, name: str, runs: dict[float, Any]) -> None:
    t = np.linspace(0, b.t1, 3000)
    a, zoom = sheet.axes(1, 2, f"Bouncing ball, case 1 ($e_N = 0.5$), {name}")[0]
    for axis in (a, zoom):
        axis.plot(t, exact_gap(b, t), "k", lw=0.8, label="exact")
        for (dt, sol), size in zip(runs.items(), (5, 2), strict=True):
            axis.plot(sol.t, sol.g_N()[:, 0], ".", ms=size, label=f"dt = {dt:g}")
        axis.axvline(b.reference["rest_time"], color="k", lw=0.6, ls=":", label="exact time of rest, $3 t_1$")
        axis.set(xlabel="t", ylabel="$g_N$")
    a.set_title("contact distance")
    zoom.set(title="around the accumulation point", xlim=(1.0, 1.4), ylim=(-0.002, 0.06))
    a.legend(fontsize=8)


def exact_percussions(b: Any, t: np.ndarray) -> np.ndarray:
    """(P_N, P_F) of each step, from the momentum they must have given: e_N = 0."""
    g, mu, t_impact = b.system.gravity, b.system.mu, b.reference["impact_time"]

    def normal(t):
        return np.where(t < t_impact, 0.0, g * t)  # Lambda_N = g t_1 (m = 1), then the weight

    if b.case == 2:
        friction = -mu * normal(np.minimum(t, b.reference["stick_time"]))
    else:
        friction = np.where(t < t_impact, 0.0, b.reference["Lambda_F"])
    return np.diff(np.column_stack([normal(t), friction]), axis=0)


def ball_slips_or_rolls(sheet: Sheet, name: str, method: Method, draw: bool = True) -> None:
    """Cases 2 and 3: friction at an impact and after it."""
    drawn: dict[int, Any] = {}
    for case in (2, 3):
        b: Any = benchmarks.load("bouncing-ball", case)
        sol: Any = sheet.run(b, method)
        ref = b.reference
        exact, P = exact_percussions(b, sol.t), np.column_stack([sol.P_N, sol.P_F])[1:]
        drawn[case] = sol.t[1:], exact, P, float(b.u0[2])
        for i, symbol in enumerate(("P_N", "P_F")):
            worst = np.abs(P[:, i] - exact[:, i]).max()
            source = "closed form: momentum, the Coulomb cone, stick"
            sheet.at_most(f"case {case}: error of {symbol} in any step", worst, ENFORCED, source=source)
        for i, symbol in ((0, "u_x"), (2, "u_phi")):
            what = f"case {case}: {symbol} rolling"
            sheet.close(what, sol.u[-1, i], ref["u_rolling"][i], atol=ENFORCED, source="closed form")
        if case == 2:
            slip = np.abs(sol.u[:, 0] + b.system.R * sol.u[:, 2])
            source = "closed form; within the step it falls in"
            sheet.close(
                "case 2: time of stick",
                sol.t[np.argmax(slip < 1e-9)],
                ref["stick_time"],
                atol=b.dt,
                source=source,
            )
    if draw:
        draw_percussions(sheet, name, drawn)


def draw_percussions(sheet: Sheet, name: str, runs: dict[int, Any]) -> None:
    panels = sheet.axes(2, 2, f"Bouncing ball, {name}, dt = 0.01: percussions of a step")
    for row, (case, (t, true, P, omega)) in zip(panels, runs.items(), strict=True):
        for i, symbol in enumerate(("P_N", "P_F")):
            row[i].plot(t, true[:, i], "k_", ms=6, label="exact")
            row[i].plot(t, P[:, i], ".", ms=3, label=name)
            row[i].set_yscale("symlog", linthresh=0.02)
            row[i].set(title=rf"case {case}, $\omega = {omega:g}$", ylabel=rf"$\Delta {symbol}$", xlabel="t")
    panels[0, 0].legend(fontsize=8)


# ---- slider-crank


def ideal_crank(b: Any, E: float, phi_1: np.ndarray) -> tuple[np.ndarray, ...]:
    """u_phi1, phi_2, u_phi2 of the mechanism without clearance and friction,
    by conservation of the energy E.
    """
    s = b.system
    sin_1, cos_1 = np.sin(phi_1), np.cos(phi_1)
    phi_2 = -np.arcsin(s.l1 / s.l2 * sin_1)
    sin_2, cos_2 = np.sin(phi_2), np.cos(phi_2)
    w_2 = -s.l1 * cos_1 / (s.l2 * cos_2)  # u_phi2, x_2 dot, ... by u_phi1
    x_2, y_2 = -s.l1 * sin_1 - s.l2 / 2 * sin_2 * w_2, s.l1 * cos_1 + s.l2 / 2 * cos_2 * w_2
    x_3 = -s.l1 * sin_1 - s.l2 * sin_2 * w_2
    inertia = s.m1 * (s.l1 / 2) ** 2 + s.theta1 + s.m2 * (x_2**2 + y_2**2) + s.theta2 * w_2**2 + s.m3 * x_3**2
    V = s.gravity * (s.m1 * s.l1 / 2 * sin_1 + s.m2 * (s.l1 * sin_1 + s.l2 / 2 * sin_2))
    u_1 = np.sqrt(2 * (E - V) / inertia)
    return u_1, phi_2, w_2 * u_1


def gap_rates(sol: Any) -> np.ndarray:
    def rate(q, u):
        return jax.jvp(lambda q: sol.system.g_N(0.0, q), (q,), (u,))[1]

    return np.asarray(jax.jit(jax.vmap(rate))(sol.q, sol.u))


def slip_velocities(sol: Any) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(sol.system.gamma_F))(sol.t, sol.q, sol.u))


def judge_friction(sheet: Sheet, sol: Any, mu: float) -> None:
    """What friction that is too weak, or none, does not meet: balances hold without it."""
    slip, P_N, P_F = slip_velocities(sol), sol.P_N[1:], sol.P_F[1:]
    before, after, pushes = slip[:-1], slip[1:], P_N > 1e-12
    one_way = pushes & (np.minimum(before, after) > 1e-9) | pushes & (np.maximum(before, after) < -1e-9)
    judge_coulomb(sheet, mu, P_N, P_F, after, pushes, one_way, percussion=ENFORCED, creep=ENFORCED)
    sheet.at_least("steps and contacts that slip one way", one_way.sum(), 100, source="the figure shows slip")


def judge_coulomb(
    sheet: Sheet,
    mu: float,
    P_N: Any,
    P_F: Any,
    slip: Any,
    pushes: Any,
    slips: Any,
    *,
    percussion: float,
    creep: float,
) -> None:
    """Percussions of steps against the slip that they must oppose, where a contact ``slips``,
    or undo, where it sticks.
    """
    off = np.abs(P_F + mu * P_N * np.sign(slip))[slips].max(initial=0.0)
    what = f"|P_F + mu P_N sign(slip)| in {slips.sum()} contacts that slip throughout a step"
    sheet.at_most(what, off, percussion, source="Coulomb's law")
    inside = pushes & (np.abs(P_F) < (1 - 1e-6) * mu * P_N)
    found = np.abs(slip[inside]).max(initial=0.0)
    sheet.at_most(
        f"slip in {inside.sum()} contacts that stick",
        found,
        creep,
        source="stick is stick, as the solver stops",
    )


def dissipated(sol: Any) -> float:
    """By friction, with the mean slip of each step."""
    slip = slip_velocities(sol)
    return float(-(sol.P_F[1:] * (slip[1:] + slip[:-1]) / 2).sum())


def judge_dissipation(sheet: Sheet, sol: Any, finer: Any) -> None:
    """``finer``: the same with half the step, by a sound scheme."""
    source = "the same with dt/2; first order"
    sheet.close("energy that friction takes", dissipated(sol), dissipated(finer), rtol=0.05, source=source)
    sheet.at_least("energy that friction takes", dissipated(sol), 0.01, source="there is friction")


def judge_crank(sheet: Sheet, b: Any, sol: Any) -> None:
    """What does not depend on where exactly the slider strikes."""
    s = b.system
    g = np.abs(jax.vmap(lambda q: s.g(0.0, q))(sol.q)).max()
    sheet.at_least("smallest gap", sol.g_N().min(), -ENFORCED, source=NO_PENETRATION)
    sheet.at_most("largest bilateral constraint", g, ENFORCED, source="g = 0, enforced by the method")
    rate = gap_rates(sol)
    xi_N = rate[1:] + s.e_N * rate[:-1]
    closed = sol.P_N[1:] > 1e-9
    hits = int((closed & (rate[:-1] < -0.05)).sum())
    what = f"|xi_N| where a contact pushes ({hits} impacts)"
    sheet.at_most(what, np.abs(xi_N[closed]).max(), ENFORCED, source="Newton's impact law, xi_N = 0")
    cone = (np.abs(sol.P_F) - s.mu * sol.P_N).max()
    sheet.at_most("|P_F| - mu P_N", cone, ENFORCED, source="Coulomb's law")
    judge_friction(sheet, sol, s.mu)
    tilt = np.abs(sol.q[sol.t > b.reference["tilt_gone_after"], 8]).max()
    sheet.at_most(
        "tilt of the slider after t = 0.01", tilt, 1e-9, source="the paper: about 0.01; two corners closed: 0"
    )
    phi, E = np.linspace(0, 2 * np.pi, 20001), sol.energy()
    k = int(np.argmax(sol.q[:, 2] > 2 * np.pi))
    period = np.interp(2 * np.pi, sol.q[k - 1 : k + 1, 2], sol.t[k - 1 : k + 1])
    fast, slow = (float(np.trapezoid(1 / ideal_crank(b, E_, phi)[0], phi)) for E_ in (E[0], E[k]))
    ideal = "closed form: mechanism without clearance and friction, with the energy at the"
    sheet.at_least("time of the first revolution", period, fast, source=f"{ideal} start")
    sheet.at_most("time of the first revolution", period, slow, source=f"{ideal} end of the revolution")


def with_rate(axis: Any, t: np.ndarray, value: np.ndarray, rate: np.ndarray) -> None:
    """A coordinate and its rate on two scales, with room for the legend above."""
    other = axis.twinx()
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    lines = []
    for a, y, color, width in ((axis, value, "C0", 1.0), (other, rate, "C1", 0.7)):
        lines += a.plot(t, y, lw=width, color=color)
        room = y.max() - y.min()
        a.set_ylim(y.min() - 0.05 * room, y.max() + 0.25 * room)
    axis.set(xlabel="t", zorder=2)  # in front of its rate
    axis.patch.set_visible(False)
    axis.legend(lines, ["left scale", "rate, right scale"], fontsize=8, loc="upper center", ncols=2)


def gap_and_rate(axis: Any, sol: Any, rates: np.ndarray, i: int) -> None:
    with_rate(axis, sol.t, 1e3 * sol.g_N()[:, i], rates[:, i])
    axis.axhline(0.0, color="k", lw=0.6)
    axis.set(title=f"gap of corner {i + 1} and its rate", ylabel=f"$g_{{N_{i + 1}}}$ in $10^{{-3}}$")


def tilt(axis: Any, sol: Any) -> None:
    early = sol.t <= 0.03
    with_rate(axis, sol.t[early], sol.q[early, 8], sol.u[early, 8])
    axis.axvline(0.01, color="k", lw=0.6, ls=":")
    axis.set(title="tilt of the slider and its rate (dotted: t = 0.01)", ylabel=r"$\varphi_3$")


def path_of_the_slider(axis: Any, sol: Any) -> None:
    axis.plot(sol.q[:, 6], 1e3 * sol.q[:, 7], lw=0.8)
    for wall in (-1, 1):
        axis.axhline(wall, color="k", lw=0.6, ls=":")
    axis.set(
        title="path of the slider's centre (dotted: on a wall)", xlabel="$x_3$", ylabel="$y_3$ in $10^{-3}$"
    )


# ---- point mass on the slope y = exp(-x)


def percussions(sol: Any) -> np.ndarray:
    return np.column_stack([sol.P_N, sol.P_F])


def events_on_the_slope(sol: Any, b: Any) -> dict[str, float]:
    """Times at which a run shows what the reference names."""
    stuck = np.linalg.norm(sol.u, axis=1) < 1e-9
    found = {"stick_time": sol.t[np.argmax(stuck & (sol.t > 1.0))]}
    if "reversal_time" in b.reference:
        found["reversal_time"] = sol.t[np.argmin(sol.q[:, 0])]
    if "impact_time" in b.reference:
        found["impact_time"] = sol.t[np.argmax(sol.P_N[:, 0])]
    return found


def trajectories(
    sheet: Sheet, method: Method, cases: dict[str, int], dt: float, quantities: Sequence[str] = ()
) -> None:
    """Runs on the slope beside the exact motion; judged by when and where something happens.

    Draws the ``quantities``.
    """
    size = (3.3 * len(cases), 2.4 * len(quantities))
    panels = sheet.axes(len(quantities), len(cases), size=size) if quantities else np.empty((0, len(cases)))
    lowest, cone = [], []
    for i, (label, case) in enumerate(cases.items()):
        column = panels[:, i]
        b: Any = benchmarks.load("mass-on-slope", case)
        sol: Any = sheet.run(b, method, dt=dt, t1=round(b.t1 / dt) * dt)
        true, ref = exact(b, sol.t), b.reference
        for name, t in events_on_the_slope(sol, b).items():
            source = f"{ref['source']}; two steps for a scheme that captures events at first order"
            sheet.close(f"{label}: {name.replace('_', ' ')}", t, ref[name], atol=2 * dt, source=source)
        far = 2 * dt * np.linalg.norm(true.u, axis=1).max()
        source = f"{ref['source']}; the way of two steps at the highest speed"
        sheet.close(f"{label}: x of rest", sol.q[-1, 0], ref["stick_x"], atol=far, source=source)
        lowest.append(sol.g_N().min())
        cone.append((np.abs(sol.P_F) - b.system.mu * sol.P_N).max())
        drawn = {
            "q": (sol.q, true.q, ("x", "y")),
            "u": (sol.u, true.u, ("u_x", "u_y")),
            "P": (percussions(sol)[1:], np.diff(true.P, axis=0), (r"\Delta P_N", r"\Delta P_F")),
        }
        for axis, quantity in zip(column, quantities, strict=True):
            numerical, reference, names = drawn[quantity]
            t = sol.t[-len(reference) :]
            axis.plot(t, reference, "k", lw=0.6, label=["exact", None])
            axis.plot(t, numerical, "--", lw=1.4, label=[f"${name}$" for name in names])
            axis.set(xlabel="t", title=label if axis is column[0] else "")
            if quantity == "P":  # an impact is many times the weight of a step, and would hide it
                weight = b.system.m * b.system.gravity * dt
                axis.set_ylim(-0.5 * weight, 1.8 * weight)
            if i == 0:
                axis.legend(fontsize=7)
    sheet.at_least("smallest gap of all cases", min(lowest), -ENFORCED, source=NO_PENETRATION)
    sheet.at_most("|P_F| - mu P_N of all cases", max(cone), ENFORCED, source="Coulomb's law")


def grid(dt: float, t1: float) -> np.ndarray:
    return np.arange(math.floor(t1 / dt + 1e-9) + 1) * dt


class AcrossEvent(NamedTuple):
    """Errors across an impact or a reversal of slip. A single one depends on where in its step the event
    falls: eight step sizes close to each other put it at eight places."""

    dts: np.ndarray  # by octave and place
    errors: np.ndarray  # by octave, place and quantity: q, u

    def judge(self, sheet: Sheet, name: str, quantities: str = "qu") -> None:
        for quantity, worst in zip(quantities, self.errors.max(axis=1).T, strict=False):
            source = "first order, not monotone; worst of eight places of the event in its step"
            sheet.order(f"{name}: e_{quantity}", list(self.dts[:, 0]), list(worst), 1, source=source)

    def draw(self, axis: Any, i: int, **style: Any) -> None:
        axis.loglog(self.dts.flat, self.errors[:, :, i].flat, ".", ms=2, **style)


def across_event(
    sheet: Sheet,
    b: Any,
    method: Method,
    largest: float,
    t1: float,
    norm: Callable[[float, np.ndarray], float],
) -> AcrossEvent:
    event = b.reference.get("impact_time", b.reference.get("reversal_time"))
    whole_steps = round(event / largest) * 2 ** np.arange(3 if sheet.quick else 4)
    dts = event / (whole_steps[:, None] + (np.arange(8) + 0.5) / 8)
    errors = []
    for dt in dts.flat:
        true = exact(b, grid(dt, t1))
        sol: Any = sheet.run(b, method, dt=dt, t1=(len(true.q) - 1) * dt)
        errors.append((norm(dt, (sol.q - true.q)[1:]), norm(dt, (sol.u - true.u)[1:])))
    return AcrossEvent(dts, np.array(errors).reshape(*dts.shape, 2))


def reference_lines(axis: Any, dts: Any, starts: dict[int, float]) -> None:
    for order, start in starts.items():
        axis.loglog(dts, start * (np.array(dts) / dts[0]) ** order, "k:", lw=0.7)
        middle = dts[len(dts) // 2]
        axis.text(middle, start * (middle / dts[0]) ** order, f"order {order}", fontsize=7, va="top")
