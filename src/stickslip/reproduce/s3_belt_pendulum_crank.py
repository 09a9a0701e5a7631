"""S3 sections 7.4 to 7.6: a block on a belt, a stiff pendulum, the slider-crank."""

from typing import Any

import jax
import numpy as np
from scipy.integrate import solve_ivp

from .. import benchmarks
from ..laws import stribeck
from ..methods import TRBDF2, RadauIIA, Rattle, TRTheta
from ..methods.base import Method
from ..results import RESULTS
from .entries import Sheet, entry
from .shared import CAPTURED, EXACT, PENETRATION, gap_rates, judge_dissipation, judge_friction

# ---- 7.4 block on belt


def slip_phase(s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t, x and u of one slip of the block: the spring pulls with mu_s lambda_N first,
    it has the belt's speed last.
    """

    def rate(_, y):
        fall = (s.mu_s - s.mu_d) * s.lambda_N * 2 / np.pi * np.arctan(s.epsilon * (y[1] - s.u_b))
        return [y[1], (-s.c * y[0] + s.mu_s * s.lambda_N + fall) / s.m]

    def stick(t, y):
        return y[1] - s.u_b if t > 0.1 else -1.0  # not where it begins

    stick.terminal, stick.direction = True, 1.0  # type: ignore[attr-defined]
    y0 = [s.mu_s * s.lambda_N / s.c, s.u_b]
    out = solve_ivp(rate, (0.0, 20.0), y0, "DOP853", rtol=1e-11, atol=1e-13, events=stick, dense_output=True)
    t = np.linspace(0.0, out.t[-1], 400)
    return t, *out.sol(t)


def block_reference(s: Any, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and u of the block that starts sticking at x = 0.2: stick and slip in turn."""
    time, x_slip, u_slip = slip_phase(s)
    x_0, first_slip = 0.5, 1.5
    stick = (x_0 - x_slip[-1]) / s.u_b
    tau = np.mod(t - first_slip, time[-1] + stick)
    x = np.where(tau < time[-1], np.interp(tau, time, x_slip), x_slip[-1] + s.u_b * (tau - time[-1]))
    u = np.where(tau < time[-1], np.interp(tau, time, u_slip), s.u_b)
    before = t < first_slip
    return np.where(before, x_0 - s.u_b * (first_slip - t), x), np.where(before, s.u_b, u)


FACTOR = (
    "Erratum: the factor before the arctan is 2/pi; with the printed pi/2 friction would fall from mu_s = "
    "0.5 to 0.0065 "
    "instead of mu_d = 0.3."
)


@entry("S3", "7.5", "Stribeck's curve: a set-valued and a smooth part", shows="block-on-belt", cost=3)
def stribeck_curve(sheet: Sheet) -> None:
    """The friction law taken apart, judged by its values at the onset, at gamma = 1/eps and far out; and the
    friction force read off a run of the block."""
    sheet.note(FACTOR)
    b = benchmarks.load("block-on-belt")
    s: Any = b.system
    mu_s, mu_d, eps = 0.5, 0.3, 3.0
    fall = lambda gamma: stribeck(gamma, mu_s, mu_d, eps)
    for gamma, friction in ((0.0, mu_s), (1 / eps, (mu_s + mu_d) / 2), (1e9, mu_d)):
        what = f"friction coefficient at slip {gamma:.3g}"
        sheet.close(
            what, mu_s - fall(gamma), friction, atol=1e-9, source="closed form: arctan of 0, 1 and infinity"
        )
    sol: Any = sheet.run(b, Rattle())
    x, u = sol.q[:, 0], sol.u[:, 0]
    force = s.m * np.diff(u) / b.dt + s.c * (x[1:] + x[:-1]) / 2
    gamma = (u[1:] + u[:-1]) / 2 - s.u_b
    slip = (np.abs(u[1:] - s.u_b) > 1e-9) & (np.abs(u[:-1] - s.u_b) > 1e-9)
    law = -mu_s * np.sign(gamma) + fall(gamma)
    source = "momentum of a step; averages over it differ from midpoints by order h^2, ten times that allowed"
    sheet.at_most(
        "force of the moving block less law", np.abs(force - law)[slip].max(), 10 * b.dt**2, source=source
    )
    source = "S3 Fig. 7.5: at most mu_s lambda_N"
    sheet.at_most("force of the sticking block", np.abs(force[~slip]).max(), mu_s + 1e-9, source=source)
    ((a, c),) = sheet.axes(1, 2)
    g = np.linspace(0.0, 1.5, 300)
    both, set_valued = np.r_[-g[::-1], g], np.repeat([mu_s, -mu_s], len(g))
    a.plot(both, set_valued, ls="--", label=r"$\lambda_{T,0} = -\mu_s \lambda_N$ Sign")
    a.plot(both, fall(both), ls=":", label=r"$\lambda_{T,1}$")
    a.plot(both, set_valued + fall(both), color="k", lw=1.2, label=r"$\lambda_T$")
    a.plot(gamma[slip][::20], force[slip][::20], "o", ms=3, label="block on belt, h = 1e-2")
    a.set(xlabel=r"$\gamma_T$", ylabel=r"force, $\lambda_N = 1$", title="decomposition")
    for factor, label, style in (
        (2 / np.pi, r"$2/\pi$: right", "k-"),
        (np.pi / 2, r"$\pi/2$: as printed", "k:"),
    ):
        c.plot(20 * g, mu_s - (mu_s - mu_d) * factor * np.arctan(eps * 20 * g), style, lw=1, label=label)
    c.axhline(mu_d, lw=0.8, ls="--", label=r"$\mu_d$")
    c.set(xlabel=r"$\gamma_T$", ylabel="coefficient of friction", title="far out", ylim=(0.0, 0.55))
    for panel in (a, c):
        panel.legend(fontsize=7)


@entry("S3", "7.6", "A block on a belt sticks and slips", shows="block-on-belt", cost=1)
def block_on_belt(sheet: Sheet) -> None:
    """Position, velocity and friction force of the block with RATTLE at h = 1e-2, and its limit cycle; judged
    by the slip phase integrated on its own."""
    sheet.note(FACTOR)
    sheet.note(
        "Erratum: with the printed lambda_N = m g = 10 the block would slip first at t = 24, after the end "
        "of the figure; "
        "with lambda_N = 1 it sticks and slips as the figure has it."
    )
    b = benchmarks.load("block-on-belt")
    s: Any = b.system
    sol: Any = sheet.run(b, Rattle())
    slipping = np.abs(sol.u[:, 0] - s.u_b) > 1e-9
    begin, stick, again = np.flatnonzero(np.diff(slipping))[:3]
    source = f"{b.reference['source']}; {CAPTURED}"
    for what, got, expected in (
        ("first slip", sol.t[begin], b.reference["first_slip"]),
        ("duration of slip", sol.t[stick] - sol.t[begin], b.reference["slip_duration"]),
        ("duration of stick", sol.t[again] - sol.t[stick], b.reference["stick_duration"]),
        ("period", sol.t[again] - sol.t[begin], b.reference["period"]),
    ):
        sheet.close(what, got, expected, atol=2 * b.dt, source=source)
    x_stick, allowed = b.reference["x_at_stick"], 2 * b.dt * s.u_b
    sheet.close(
        "x where it sticks again",
        sol.q[stick, 0],
        x_stick,
        atol=allowed,
        source=f"{source}, at the belt's speed",
    )
    t = np.linspace(0.0, b.t1, 1500)
    x, u = block_reference(s, t)
    _, x_slip, u_slip = slip_phase(s)
    ((a, c),) = sheet.axes(1, 2)
    friction = (sol.P_F[1:, 0] / b.dt) + stribeck(sol.u[1:, 0] - s.u_b, s.mu_s, s.mu_d, s.epsilon, s.lambda_N)
    a.plot(sol.t, sol.q[:, 0], lw=1, label="x")
    a.plot(sol.t, sol.u[:, 0], lw=1, label="u")
    a.plot(sol.t[1:], friction, lw=1, label=r"$\lambda_T = \lambda_{T,0} + \lambda_{T,1}$")
    for curve, label in ((x, "reference"), (u, None)):
        a.plot(t, curve, "k:", lw=1.2, label=label)
    a.set(xlabel="t", ylim=(-0.4, 1.05))
    a.legend(fontsize=7, ncols=2, loc="upper right")
    c.plot(sol.q[:, 0], sol.u[:, 0], lw=1, label="RATTLE, h = 1e-2")
    c.plot(np.r_[x_slip, x_slip[0]], np.r_[u_slip, u_slip[0]], "k:", lw=1.2, label="reference cycle")
    c.set(title="phase portrait", xlabel="x", ylabel="u")
    c.legend(fontsize=7)


# ---- 7.5 stiff pendulum


def rigid_pendulum(t: np.ndarray, g: float = 10.0, e: float = 0.5) -> np.ndarray:
    """u_x, u_y of a rigid pendulum of length 1 that starts horizontal and bounces off the wall x = 0."""

    def wall(_, y):
        return y[0]

    wall.terminal, wall.direction = True, -1.0  # type: ignore[attr-defined]
    now, y, u = 0.0, np.array([np.pi / 2, 0.0]), np.zeros((len(t), 2))
    while now < t[-1]:
        part = solve_ivp(lambda _, y: [y[1], -g * np.sin(y[0])], (now, t[-1] + 1e-9), y, "DOP853", rtol=1e-11,
                         atol=1e-12, events=wall, dense_output=True)  # fmt: skip
        inside = (t >= now) & (t <= part.t[-1])
        phi, w = part.sol(t[inside])
        u[inside] = np.stack([w * np.cos(phi), w * np.sin(phi)], 1)
        now, y = part.t[-1], np.array([1e-15, -e * part.y[1, -1]])
    return u


@entry(
    "S3",
    "7.7",
    "A stiff pendulum hits a wall: which steps a stiff force allows",
    shows="stiff-pendulum",
    cost=12,
)
def stiff_pendulum(sheet: Sheet) -> None:
    """Velocities of the elastic pendulum (frequency omega = 1e4): stiffly accurate methods at h = 1e-2,
    RATTLE needs h < 2/omega. Judged by the rigid pendulum in elliptic integrals and by that limit."""
    sheet.note(
        "The initial conditions are ours, since section 7.5 could not be read in full: q_0 = (1, 0), "
        "u_0 = 0 and t_1 = 2 are taken here. The spring moves impacts by 1e-7."
    )
    b = benchmarks.load("stiff-pendulum")
    t = np.linspace(0.0, b.t1, 2001)
    exact = rigid_pendulum(t)
    ((a, c, d),) = sheet.axes(1, 3, size=(12.6, 3.6))
    for panel, i in ((a, 0), (c, 1)):
        panel.plot(t, exact[:, i], **EXACT, label="rigid pendulum")
        panel.set(title=f"velocity $u_{'xy'[i]}$", xlabel="t")
    runs: list[tuple[str, Method, float, str]] = [
        ("Radau IIA, two stages", RadauIIA(stages=2), 1e-2, "."), ("RATTLE", Rattle(), 1e-4, "-")
    ]  # fmt: skip
    if not sheet.quick:
        runs += [("TR-theta(0.9)", TRTheta(rho_inf=0.9), 1e-2, "x"), ("TR-BDF2", TRBDF2(), 1e-2, "+")]
    for name, method, h, style in runs:
        sol: Any = sheet.run(b, method, dt=h)
        label = f"{name}, h = {h:g}"
        _judge_pendulum(sheet, b, label, sol, h)
        every = 1 if style == "-" else 7
        for panel, i in ((a, 0), (c, 1)):
            panel.plot(sol.t, sol.u[:, i], style, ms=5, lw=0.8, markevery=every, label=label)
        d.semilogy(
            sol.t[1:], stretch(sol)[1:], style, ms=4, lw=0.2, markevery=every, zorder=1 if style == "-" else 2
        )
    limit = b.reference["largest_stable_dt_partitioned"]
    words = {True: "bounded", False: "diverges"}
    for h in (0.95 * limit, 1.05 * limit):
        sol = sheet.run(b, Rattle(), dt=h, t1=0.3, throw=False)
        bounded = bool(sol.result == RESULTS.successful and stretch(sol).max() < 1e-5)
        sheet.holds(f"RATTLE at h = {h:g}", bounded == (h < limit), expected=words[h < limit],
                    got=words[bounded], source="closed form: stable for h omega < 2")  # fmt: skip
    d.semilogy(sol.t[1:], stretch(sol)[1:], "k-", lw=0.8, label=f"RATTLE, h = {h:g}: diverges")
    d.set(title="stretch of the spring", xlabel="t", ylim=(1e-10, 1e2))
    for panel in (a, d):
        panel.legend(fontsize=7)


def stretch(sol: Any) -> np.ndarray:
    return np.abs(np.linalg.norm(sol.q, axis=1) - 1.0)


def _judge_pendulum(sheet: Sheet, b: benchmarks.Benchmark, name: str, sol: Any, h: float) -> None:
    """Two impacts at their times with the speeds of the rigid pendulum, no penetration."""
    hit = np.flatnonzero(sol.P_N[:, 0] > 0.1)
    sheet.holds(f"impacts, {name}", len(hit) == 2, expected="2", got=str(len(hit)), source="closed form")
    if len(hit) != 2:
        return
    late = np.abs(sol.t[hit] - b.reference["impact_times"]).max()
    sheet.at_most(
        f"error of the impacts' times, {name}", late, 2 * h, source=f"elliptic integrals; {CAPTURED}"
    )
    before, after = sol.u[hit - 1, 0], sol.u[hit, 0]
    # u_x is stationary at the lowest point: t before it u_x differs by v (v^2 + g) t^2/2
    v = abs(b.reference["speeds_before"][0])
    error, allowed = np.abs(before - b.reference["speeds_before"]).max(), v * (v**2 + 10.0) * (2 * h) ** 2 / 2
    sheet.at_most(
        f"error of the speeds before impacts, {name}",
        error,
        allowed,
        source="rigid pendulum, two steps before",
    )
    law = np.abs(after + 0.5 * before).max()
    sheet.at_most(f"impact law |u_x+ + e u_x-|, {name}", law, 1e-9, source="Newton's impact law")
    sheet.at_least(f"smallest gap, {name}", sol.g_N().min(), -PENETRATION, source="enforced by the methods")


# ---- 7.6 slider-crank


@entry("S3", "7.9", "The slider-crank with two-stage Radau IIA", shows="slider-crank", quick=False, cost=10)
def slider_crank(sheet: Sheet) -> None:
    """Tilt, path of the slider, rates and phase portrait, gaps and gap rates at h = 1e-4. The motion is too
    sensitive for pointwise references: judged by what the section states, and by the energy."""
    b = benchmarks.load("slider-crank")
    sol: Any = sheet.run(b, RadauIIA(stages=2))
    s: Any = b.system
    g_N, rates = sol.g_N(), gap_rates(sol)
    joints = np.asarray(jax.vmap(lambda q: s.g(0.0, q))(sol.q))
    sheet.at_least("smallest gap", g_N.min(), -PENETRATION, source="S3 7.6: no penetration")
    sheet.at_most("largest constraint |g|", np.abs(joints).max(), 1e-9, source="bilateral constraints (7.19)")
    late = sol.t > b.reference["tilt_gone_after"]
    sheet.at_most(
        "tilt after t = 0.01", np.abs(sol.q[late, 8]).max(), 1e-9, source="S3 7.6: gone at t of about 0.01"
    )
    spin = np.abs(sol.u[:, 8])
    source = "S3 7.6: gone at t of about 0.01; a thousandth cannot be seen"
    sheet.at_most("spin after t = 0.01 over its largest", spin[late].max() / spin.max(), 1e-3, source=source)
    hit = sol.P_N[1:] > 1e-9
    xi_N = rates[1:] + 0.4 * rates[:-1]
    sheet.at_most(
        "impact law: |xi_N| where P_N > 0",
        np.abs(xi_N)[hit].max(),
        1e-8,
        source="S3 7.6: Newton's impact law",
    )
    excess = (np.abs(sol.P_F) - 0.01 * sol.P_N).max()
    sheet.at_most("friction outside of its cone", excess, 1e-11, source="Coulomb's law")
    judge_friction(sheet, sol, s.mu)
    judge_dissipation(sheet, sol, sheet.run_sound(b, RadauIIA(stages=2), dt=b.dt / 2))
    E = sol.energy()
    sheet.at_most(
        "energy over its start", E.max() / E[0], 1.0 + 1e-9, source="impacts and friction only take energy"
    )
    panels = sheet.axes(2, 3, size=(12.0, 6.0))
    (a, c, d), (e, f, p) = panels
    early = sol.t < 0.02
    a.plot(sol.t[early], sol.q[early, 8], label=r"$\varphi_3$")
    a.plot(sol.t[early], sol.u[early, 8] / 1e3, lw=0.8, label=r"$u_{\varphi_3}/1000$")
    a.axvline(0.01, color="k", lw=0.6, ls=":")
    a.set(title="(a) tilt of the slider", xlabel="t")
    c.plot(sol.q[:, 6], 1e3 * sol.q[:, 7], lw=0.8)
    c.set(title="(b) centre of the slider", xlabel="$x_3$", ylabel="$10^3 y_3$")
    for i in (0, 1):
        d.plot(sol.t, sol.u[:, 3 * i + 2], lw=1, label=rf"$u_{{\varphi_{i + 1}}}$")
        f.plot(sol.t[early], 1e3 * g_N[early, i], lw=0.9, label=f"corner {i + 1}")
        p.plot(sol.t[early], rates[early, i], lw=0.9, label=f"corner {i + 1}")
    d.set(title="(c) rates of crank and rod", xlabel="t")
    e.plot(sol.q[:, 5], sol.u[:, 5], lw=1)
    e.set(title="(d) phase portrait of the rod", xlabel=r"$\varphi_2$", ylabel=r"$u_{\varphi_2}$")
    f.set(title="(e) gaps", xlabel="t", ylabel="$10^3 g_N$")
    p.set(title="(f) gap rates", xlabel="t", ylabel=r"$\dot g_N$")
    for panel in (a, d, f, p):
        panel.legend(fontsize=7)
