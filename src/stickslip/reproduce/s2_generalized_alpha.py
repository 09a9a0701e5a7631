"""S2: the benchmarks of section 10, with the nonsmooth generalized-alpha scheme.

Runs have the paper's step sizes, rho_inf and friction law, which ties P_F to the direction at the end of a
step (`friction="printed"`), unless an entry says otherwise.
"""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import benchmarks
from ..benchmarks.bouncing_ball import exact_gap
from ..methods import GeneralizedAlpha, MoreauMidpoint
from ..methods.base import Method
from ..rigid import inclinations
from ..solution import Solution
from ..solvers import Automatic, SemismoothNewton
from ..system import System
from .entries import Sheet, entry
from .shared import judge_bounces, judge_dissipation, judge_friction

POSITION_LEVEL = "S2 section 10: contacts are stabilised on position level"
DISSIPATES = "invariant: friction and impacts dissipate"


def alpha(rho_inf: float, friction: Any = "printed", newton: bool = False) -> Method:
    """The paper's scheme; ``newton``: without the fall-backs,
    as in the paper where Newton's method solved every step.
    """
    return GeneralizedAlpha(
        rho_inf=rho_inf, friction=friction, solver=SemismoothNewton() if newton else Automatic()
    )


def closings(sol: Solution, contact: int = 0) -> np.ndarray:
    """Ends of the steps in which an open contact closes."""
    closed = sol.P_N[:, contact] > 0.0
    return np.asarray(sol.t[1:])[closed[1:] & ~closed[:-1]]


def row(sol: Solution, t: float) -> int:
    return int(np.abs(sol.t - t).argmin())


class Oscillator(System):
    """A mass on a spring so stiff that a step holds ten thousand periods."""

    stiffness: float

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -self.stiffness * q

    def energy(self, t, q, u):
        return (u @ u + self.stiffness * q @ q) / 2


def judge_damping(sheet: Sheet, rho_inf: float, dt: float) -> None:
    """What rho_inf is: the factor of an oscillation of infinite frequency in a step."""
    stiff = Oscillator((2 * math.pi * 1e4 / dt) ** 2)
    b = dataclasses.replace(benchmarks.load("bouncing-ball"), system=stiff, q0=jnp.ones(1), u0=jnp.zeros(1))
    q = sheet.run(b, alpha(rho_inf), dt=dt, t1=12 * dt).q[:, 0]
    # q, u and the auxiliary acceleration: three roots, of which the largest are a pair
    rows = np.column_stack([q[2:-1], q[1:-2], q[:-3]]) / np.abs(q[:-3, None])
    recurrence = np.linalg.lstsq(rows, q[3:] / np.abs(q[:-3]), rcond=None)[0]
    decay = np.abs(np.roots([1.0, *-recurrence])).max()
    source = "definition of rho_inf; three-term recurrence of a run"
    sheet.close("decay of a stiff oscillation in a step", decay, rho_inf, atol=1e-3, source=source)


# -- Figs. 1, 2: rotating bouncing ball
# -------------------------------------------------------------------------------


@entry("S2", "1", "A ball bounces into rest through an accumulation point", shows="bouncing-ball", cost=5)
def bouncing_ball(sheet: Sheet) -> None:
    """The height of the ball with e_N = 0.5, which passes the accumulation point;
    judged by the closed form.
    """
    b, dt = benchmarks.load("bouncing-ball"), 2e-3
    sol = sheet.run(b, alpha(0.5, newton=True), dt=dt)
    r = b.reference
    late = (
        "closed form; first-order event capturing: up to dt in time and g dt in speed, together 2 dt, at "
        "every impact"
    )
    for k, (t, exact) in enumerate(zip(closings(sol), r["impact_times"], strict=False), start=1):
        sheet.close(f"time of impact {k}", t, exact, atol=2 * k * dt, source=late)
    judge_bounces(sheet, f"dt = {dt:g}", sol, b.system.gravity, b.system.e_N)
    sheet.at_least("smallest gap", sol.g_N().min(), -1e-9, source=POSITION_LEVEL)
    E = sol.energy()
    sheet.at_most("energy gained in a step", np.diff(E).max() / E[0], 1e-9, source=DISSIPATES)
    iterations = sol.stats.newton_iterations.max()
    sheet.at_most(
        "Newton iterations of a step", iterations, 1, source="S2 footnote to section 10.1: at most 1"
    )
    ((a, c),) = sheet.axes(
        1, 2, "Bouncing ball, $e_N = 0.5$, generalized-alpha, $\\Delta t = 2\\cdot10^{-3}$"
    )
    t = np.linspace(0.0, b.t1, 3000)
    a.plot(t, exact_gap(b, t) + b.system.R, "k", lw=0.8, label="exact")
    a.plot(sol.t[::5], sol.q[::5, 1], ".", ms=3, label="generalized-alpha, every 5th step")
    a.axvline(r["rest_time"], color="k", lw=0.6, ls=":")
    a.text(r["rest_time"] + 0.01, 0.7, "at rest", fontsize=8)
    a.set(xlabel="$t$", ylabel="$y$", title="height")
    a.legend(fontsize=8)
    c.plot(sol.t, sol.u[:, 1], lw=1)
    c.set(xlabel="$t$", ylabel="$u_y$", title="velocity")


@entry(
    "S2", "2", "Friction forces and impulses of a spinning ball are told apart", shows="bouncing-ball", cost=6
)
def friction_of_a_spinning_ball(sheet: Sheet) -> None:
    """lambda_F and Lambda_F of a ball that slips after its impact (omega = 50) or sticks at once (10):
    closed form.
    """
    judge_damping(sheet, 0.5, 2e-3)
    dt = 2e-3
    title = "Friction force and impulse of the spinning ball, $\\Delta t = 2\\cdot10^{-3}$"
    axes = sheet.axes(1, 2, title)[0]
    for axis, case, omega in zip(axes, (2, 3), (50, 10), strict=True):
        b = benchmarks.load("bouncing-ball", case)
        sol = sheet.run(b, alpha(0.5, newton=True), dt=dt)
        r, g, mu = b.reference, b.system.gravity, b.system.mu
        hit = int(np.argmax(sol.P_N[:, 0] > 0))
        late = f"{r['source']}; speed at impact is known to g dt"
        sheet.close(
            f"omega = {omega}: normal impulse", sol.Lambda_N[hit, 0], r["Lambda_N"], atol=g * dt, source=late
        )
        sheet.close(
            f"omega = {omega}: friction impulse",
            sol.Lambda_F[hit, 0],
            r["Lambda_F"],
            atol=mu * g * dt,
            source=late,
        )
        after = {2: -mu * g, 3: 0.0}[case]
        sheet.close(
            f"omega = {omega}: normal force at rest", sol.la_N[-1, 0], g, atol=1e-9, source="S2: m g = 9.81"
        )
        sheet.close(
            f"omega = {omega}: friction force after the impact", sol.la_F[hit + 1, 0], after, atol=1e-9,
            source="S2: mu m g = 1.96 in slip, 0 in rolling",
        )  # fmt: skip
        if case == 2:
            stick = sol.t[hit + int(np.argmax(np.abs(sol.la_F[hit:, 0]) < mu * g / 2))]
            # gamma_F changes by 7/2 mu g in a unit of time: what the impact misses, 7/2 mu g dt, delays stick
            # by dt
            sheet.close(
                "omega = 50: time of stick",
                stick,
                r["stick_time"],
                atol=3 * dt,
                source=f"{r['source']}; 3 dt",
            )
            axis.axvline(r["stick_time"], color="k", lw=0.6, ls=":")
            axis.text(r["stick_time"] + 0.01, -1.2, "slip to stick,\nexact", fontsize=8)
        axis.plot(sol.t, sol.Lambda_F[:, 0], "k", lw=1, label=r"impulse $\Lambda_F$ of a step")
        axis.plot(sol.t, sol.la_F[:, 0], "--", lw=1, label=r"force $\lambda_F$")
        axis.plot(r["impact_time"], r["Lambda_F"], "o", mfc="none", ms=6, label=r"exact $\Lambda_F$")
        axis.set(
            xlabel="$t$",
            ylabel="friction",
            title=f"$\\omega = {omega}$",
            ylim=(-2.2 if case == 2 else -0.4, 0.1),
        )
        axis.legend(fontsize=8, loc="lower right")


# -- Fig. 3: ball in corner
# -------------------------------------------------------------------------------------------


@entry(
    "S2",
    "3",
    "A ball comes to rest in a corner, on redundant contacts",
    shows="ball-in-corner",
    quick=False,
    cost=17,
)
def ball_in_corner(sheet: Sheet) -> None:
    """The gaps to both planes, until both contacts stay closed (at about 1.36) and the Jacobian matrix
    becomes singular.
    """
    b, g = benchmarks.load("ball-in-corner"), 9.81
    b = dataclasses.replace(b, system=dataclasses.replace(b.system, gravity=g))
    dt = 1e-4
    sol = sheet.run(b, alpha(0.5), dt=dt, t1=1.6)
    fall = math.sqrt(2.0 * (0.5 - 0.1 * math.sqrt(2.0)) / g)
    sheet.close(
        "first contact", closings(sol, 1)[0], fall, atol=2 * dt, source="closed form: free fall; 2 dt"
    )
    rest = int(np.flatnonzero(~(sol.P_N > 0).all(axis=1))[-1]) + 1
    sheet.close(
        "both contacts closed from",
        sol.t[rest],
        1.36,
        atol=5e-3,
        source="S2 section 10.2: 1.36, to its last digit",
    )
    for name, value, exact in zip("xy", sol.q[-1], b.reference["rest_position"], strict=False):
        sheet.close(f"{name} at rest", value, exact, atol=1e-9, source=b.reference["source"])
    lift = (sol.P_N[-1].sum() + sol.P_F[-1, 0] - sol.P_F[-1, 1]) * math.sqrt(0.5) / dt
    sheet.close("contact forces at the end, upwards", lift, g, atol=1e-6, source="equilibrium: m g")
    sheet.at_least("smallest gap", sol.g_N().min(), -1e-9, source=POSITION_LEVEL)
    E = sol.energy()
    sheet.at_most("energy above its start", (E.max() - E[0]) / E[0], 1e-9, source=DISSIPATES)
    hard = int((sol.stats.newton_iterations.max(axis=1) > 10).sum())
    sheet.note(
        "At rest four percussions hold three degrees of freedom and are not unique. The paper goes over to "
        "fixed-point"
        f" iterations there (in 13 steps); here proximal steps take over, in {hard} steps with more than 10 "
        "iterations."
    )
    ((a, c),) = sheet.axes(1, 2, "Ball in a corner, generalized-alpha, $\\Delta t = 10^{-4}$")
    for k, name in ((1, "left plane ($e_N = 0$)"), (0, "right plane ($e_N = 0.5$)")):
        for axis, values in ((a, sol.g_N()[:, k]), (c, np.maximum(sol.g_N()[:, k], 1e-7))):
            axis.plot(sol.t, values, lw=1, label=f"$g_N^{k + 1}$, {name}")
    a.plot(fall, 0.0, "ko", ms=4, mfc="none", label="first contact, exact")
    a.axvline(1.36, color="k", lw=0.6, ls=":", label="both closed, as printed")
    a.legend(fontsize=8)
    a.set(xlabel="$t$", ylabel="gap", title="gaps")
    c.axvline(1.36, color="k", lw=0.6, ls=":")
    c.set(xlabel="$t$", ylabel="gap", title="before rest", xlim=(1.0, 1.42), yscale="log", ylim=(3e-7, 0.2))


# -- Fig. 4: ball in cylinder
# -----------------------------------------------------------------------------------------


def slide_into_cylinder(t: Any, b: Any) -> np.ndarray:
    """psi(t) of the ball that slips down the cylinder from the height of its axis,
    by RK4 with 20 substeps an interval.

    l psi'' = g cos psi - mu (g sin psi + l psi'^2), for as long as the slip s > 0: s' = l psi'' - 5/2 mu
    lambda_N/m.
    """
    g, mu, l = b.system.gravity, b.system.mu, b.system.R_s - b.system.R

    def rate(y: np.ndarray) -> np.ndarray:
        force = mu * (g * np.sin(y[0]) + l * y[1] ** 2)
        acceleration = g * np.cos(y[0]) - force
        return np.array([y[1], acceleration / l, acceleration - 2.5 * force])

    y, out = np.zeros(3), [0.0]
    for h in np.repeat(np.diff(t) / 20, 20):
        k_1 = rate(y)
        k_2 = rate(y + h / 2 * k_1)
        k_3 = rate(y + h / 2 * k_2)
        y = y + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + rate(y + h * k_3))
        out.append(y[0])
        assert y[2] > 0.0, "the ball rolls: the formula ends here"
    return np.array(out[::20])


@entry(
    "S2",
    "4",
    "A ball in a cylinder stays on it, with Moreau's scheme it does not",
    shows="ball-in-cylinder",
    cost=8,
)
def ball_in_cylinder(sheet: Sheet) -> None:
    """The path of the centre by generalized-alpha and by Moreau's scheme,
    which has no contact on position level.
    """
    sheet.note(
        "Erratum: q(0) = (-0.9, 1, 0) is printed without the place of the cylinder's axis; only with P at "
        "(0, 1) the ball"
        " starts in contact."
    )
    b = benchmarks.load("ball-in-cylinder")
    judge_damping(sheet, 0.5, b.dt)
    sol = sheet.run(b, alpha(0.5, newton=True))
    moreau = sheet.run(b, MoreauMidpoint(solver=SemismoothNewton()))
    sheet.at_least("smallest gap, generalized-alpha", sol.g_N().min(), -1e-9, source=POSITION_LEVEL)
    sheet.at_most("highest point", sol.q[:, 1].max(), 1.0 + 1e-9, source="invariant: energy is not gained")
    t_slip, dts, errors = 0.5, [2e-2, 1e-2, 5e-3], []
    slip, l = sol.t <= t_slip + 1e-9, b.system.R_s - b.system.R
    v = l * np.gradient(slide_into_cylinder(sol.t[slip], b), sol.t[slip])
    sheet.close(
        "gap at t = 0.5, Moreau's scheme", moreau.g_N()[slip][-1, 0],
        -b.dt / 2 * np.trapezoid(v**2, dx=b.dt) / l, rtol=0.1,
        source="closed form: a midpoint moves to the next along the tangent, which adds (v dt)^2/2(R_c - R);"
        " first order",
    )  # fmt: skip
    for dt in dts:
        run = sol if dt == b.dt else sheet.run(b, sol.method, dt=dt, t1=t_slip)
        slip = run.t <= t_slip + 1e-9
        psi = np.arctan2(1.0 - run.q[slip, 1], -run.q[slip, 0])
        errors.append(np.abs(psi - slide_into_cylinder(run.t[slip], b)).max())
    sheet.order(
        "angle while it slips",
        dts,
        errors,
        2.0,
        source="second order in slip; minimal coordinate, RK4 with dt/20",
    )
    a, c = sheet.axes(1, 2, "Ball in a cylinder, $\\Delta t = 10^{-2}$", size=(9.0, 3.4))[0]
    angle = np.linspace(np.pi, 2 * np.pi, 200)
    a.plot(
        0.9 * np.cos(angle), 1 + 0.9 * np.sin(angle), "k:", lw=0.8, label="centre of a ball on the cylinder"
    )
    for run, name, style in (
        (moreau, "Moreau", {"color": "0.6"}),
        (sol, "generalized-alpha", {"color": "k", "lw": 1}),
    ):
        a.plot(run.q[:, 0], run.q[:, 1], label=name, **style)
        c.plot(run.t, run.g_N()[:, 0], label=name, **style)
    a.set(xlabel="$x$", ylabel="$y$", title="path of the centre $S$", aspect="equal")
    c.set(xlabel="$t$", ylabel="$g_N$", title="gap")
    for axis in (a, c):
        axis.legend(fontsize=8)


# -- Fig. 5: Painleve's rod
# -------------------------------------------------------------------------------------------


def impact_without_collision(b: Any) -> tuple[float, float]:
    """(spin after a sticking impact of the tip at the singular point,
    its rate of change with the time of the impact).

    phi and w clockwise, as in S2. The tip stops, so S turns about it with the angular momentum about the tip,
    4/3 m l^2 w+. That grows by m v_tip u_y - m g l cos phi, which is what a late impact changes.
    """
    m, l, phi, w, u_x = b.system.m, b.system.l, math.pi / 4, 3.7606, 11.992
    u_y, inertia = l * w * math.cos(phi), m * l**2 / 3.0
    about_tip = m * l * (math.cos(phi) * u_y + math.sin(phi) * u_x) + inertia * w
    grows = m * (u_x - l * w * math.sin(phi)) * u_y - m * b.system.gravity * l * math.cos(phi)
    return about_tip / (4 * inertia), grows / (4 * inertia)


@entry(
    "S2",
    "5",
    "Painleve's rod runs into its singularity and takes off",
    shows="painleve-rod",
    quick=False,
    cost=16,
)
def painleve_rod(sheet: Sheet) -> None:
    """The angular velocity through the blow-up of the contact force;
    judged by the sliding phase in a minimal coordinate.
    """
    b, dt, fine = benchmarks.load("painleve-rod"), 8e-4, 1e-4
    r, method = b.reference, alpha(0.9)
    sol, jumps = sheet.run(b, method, dt=dt), sheet.run(b, method, dt=fine)
    for t in (0.1, 0.3, 0.5):
        n = row(sol, t)
        for name, value in (("phi", sol.q[n, 2]), ("u_x", sol.u[n, 0]), ("lambda_N", sol.la_N[n, 0])):
            sheet.close(f"{name} at t = {t}", value, r[name][t], rtol=1e-5, source=r["source"])
    dts, exact = [1e-2, 5e-3, 2.5e-3], r["lambda_N"][0.5]
    errors = [abs(sheet.run(b, method, dt=coarse, t1=0.5).la_N[-1, 0] - exact) for coarse in dts]
    sheet.order("lambda_N at t = 0.5", dts, errors, 2.0, source=f"second order, forces too; {r['source']}")
    spin, rate = impact_without_collision(b)
    for run, h in ((sol, dt), (jumps, fine)):
        blow_up = run.t[int(np.argmax(run.P_N[:, 0]))]
        sheet.close(
            f"dt = {h}: blow-up", blow_up, r["blow_up_time"], atol=2 * h, source=f"{r['source']}; 2 dt"
        )
        gap = run.g_N()[:, 0]
        sheet.at_least(f"dt = {h}: smallest gap", gap.min(), -1e-9, source=POSITION_LEVEL)
        sheet.at_least(
            f"dt = {h}: gap at the end", gap[-1], 0.5, source="S2 section 10.4: the rod detaches; half of l"
        )
        excess = (np.abs(run.P_F) - b.system.mu * run.P_N).max()
        sheet.at_most(f"dt = {h}: |P_F| - mu P_N", excess, 1e-9, source="Coulomb's law")
    late = "closed form: tip stopped by an impact without collision, at most 2 dt late"
    sheet.close(f"dt = {fine}: spin in flight", -jumps.u[-1, 2], spin, atol=2 * fine * rate, source=late)
    sheet.note(
        "At the singular point numerator and denominator of lambda_N change their signs together: beyond it "
        "flight, sliding"
        " on and an impact without collision obey all laws, and the step size decides. With the paper's dt = "
        "8e-4 the rod"
        " slides on for 0.04 before it takes off; with dt = 1e-4 it jumps, to the spin known in closed form."
    )
    _draw_painleve_rod(sheet, b, {"$\\Delta t = 8\\cdot10^{-4}$": sol, "$\\Delta t = 10^{-4}$": jumps}, spin)


def _draw_painleve_rod(sheet: Sheet, b: Any, runs: dict[str, Solution], spin: float) -> None:
    r, ((a, c),) = b.reference, sheet.axes(1, 2, "Painlevé's rod, generalized-alpha")
    for (name, run), style in zip(runs.items(), ("-", "--"), strict=True):
        a.plot(run.t, -run.u[:, 2], style, lw=1, label=name)  # S2 counts phi clockwise
        force = run.P_N[1:, 0] / run.dt[1:]
        c.semilogy(run.t[1:], np.where(force > 1e-3, force, np.nan), style, lw=1, label=name)
    a.axhline(spin, color="k", lw=0.6, ls="-.", label="after an impact, closed form")
    c.plot(
        list(r["lambda_N"]),
        list(r["lambda_N"].values()),
        "ko",
        ms=4,
        mfc="none",
        label=r"$\lambda_N$, converged",
    )
    a.set(xlabel="$t$", ylabel=r"$u_\varphi$, clockwise", title="angular velocity")
    c.set(xlabel="$t$", ylabel=r"$P_N/\Delta t$", title="contact force", xlim=a.get_xlim())
    for axis in (a, c):
        axis.axvline(r["blow_up_time"], color="k", lw=0.6, ls=":", label="singular point, converged")
        axis.legend(fontsize=8, loc="center left")


# -- Fig. 6: guided hopper
# --------------------------------------------------------------------------------------------


def vertical_momentum(sol: Solution) -> np.ndarray:
    """Of body, rod and beam; the rod's centre swings against the body by -L/2 cos alpha(t)."""
    s: Any = sol.system
    M = np.asarray(s.M(0.0, sol.q[0]))
    up = np.r_[1.0, np.tile([0.0, 1.0], s.beam.nodes)]
    alpha_dot = -(np.pi / 30) * 4 * np.pi * np.sin(4 * np.pi * sol.t)
    return sol.u @ M @ up + s.m_rod * s.L / 2 * np.sin(np.asarray(s.alpha(sol.t))) * alpha_dot


@entry(
    "S2",
    "6",
    "A hopper with a flexible leg lands, stands and takes off",
    shows="guided-hopper",
    quick=False,
    cost=30,
)
def guided_hopper(sheet: Sheet) -> None:
    """The percussions P_F within +-mu P_N; judged by the touchdown of a rigid leg,
    the friction cone and the momentum.
    """
    b = benchmarks.load("guided-hopper")
    sol = sheet.run(b, alpha(0.0), t1=0.3)
    r, P_N, P_F, mu = b.reference, sol.P_N[:, 0], sol.P_F[:, 0], b.system.mu
    # the swing alpha'' = 16.5 bends the blade by density 2 L alpha'' L^4/(8 EI) = 0.07 mm, 0.06 ms at the
    # speed of the fall
    late = f"{r['source']}; 2 dt of event capturing and 0.06 ms for the bending of the blade in flight"
    sheet.close("touchdown", closings(sol)[0], r["touchdown_time"], atol=2e-4, source=late)
    closed = P_N > 0
    lifts = sol.t[1:][~closed[1:] & closed[:-1]]
    sheet.holds(
        "it stands and then leaves the ground", lifts[-1] - closings(sol)[0] > 0.01 and not closed[-1],
        expected="lift-off after a stance", got=f"last lift-off at {lifts[-1]:.4f}", source="S2 section 10.5",
    )  # fmt: skip
    sheet.at_least("smallest gap", sol.g_N().min(), -1e-9, source=POSITION_LEVEL)
    sheet.at_most(
        "P_F outside +-mu P_N", (np.abs(P_F) - mu * P_N).max(), 1e-12, source="S2 Fig. 6: Coulomb's law"
    )
    judge_friction(sheet, sol, mu)
    judge_dissipation(sheet, sol, sheet.run_sound(b, alpha(0.0), t1=0.3, dt=b.dt / 2))
    m = b.system.m_body + b.system.m_rod + b.system.beam.density * b.system.beam.length
    p = vertical_momentum(sol)
    lost = np.abs(p - p[0] - np.cumsum(P_N) + m * b.system.gravity * sol.t).max()
    sheet.at_most(
        "momentum against percussions and weight", lost / P_N.sum(), 1e-6,
        source="momentum theorem: vertical forces on the whole are its weight and P_N;"
        " relative to the sum of P_N",
    )  # fmt: skip
    sheet.note(
        "The paper's mesh of two quadratic elements is kept. It is too stiff in bending by membrane locking "
        "(a clamped blade"
        " turns by 0.49 under the moment that should turn it by pi/2), so the figure shows the scheme, not "
        "the blade."
    )
    ((a, c),) = sheet.axes(1, 2, "Guided hopper, generalized-alpha, $\\Delta t = 5\\cdot10^{-5}$")
    for axis in (a, c):
        axis.plot(sol.t, mu * P_N, color="0.6", lw=1, label=r"$\pm\mu P_N$")
        axis.plot(sol.t, -mu * P_N, color="0.6", lw=1)
        axis.plot(sol.t, P_F, "k", lw=0.7, label="$P_F$")
        axis.axvline(r["touchdown_time"], color="C1", lw=0.8, ls=":", label="touchdown of a rigid leg")
        axis.set(xlabel="$t$", ylabel="percussion of a step")
    a.set(xlim=(0.11, 0.25), title="stance")
    c.set(xlim=(0.125, 0.135), title="the first 10 ms: the blade chatters")
    a.legend(fontsize=8)


# -- Fig. 7: tippe top
# ------------------------------------------------------------------------------------------------


def inclination(sol: Solution) -> np.ndarray:
    """theta: cos theta = e_z^I . e_z^K."""
    return np.asarray(inclinations(sol.q[:, 3:]))


def judge_moreau_on_the_top(sheet: Sheet, b: Any, sol: Solution, moreau: Solution, both: float) -> None:
    """The gray curve of the figure: in line with the black one,
    but through the ground where body and stem are.
    """
    r, angle = b.reference, inclination(moreau)
    off = max(
        abs(angle[row(moreau, t)] / exact - 1) for t, exact in {**r["theta"], **r["theta_after"]}.items()
    )
    sheet.at_most(
        "Moreau, dt = 1e-4: error of theta at eight times", off, 1e-2, source=f"{r['source']}; relative"
    )
    apart = np.abs(np.interp(sol.t, moreau.t, angle) - inclination(sol)).max() / math.pi
    source = "S2 section 10.6: in line; 2 % of the range is a line's width or two"
    sheet.at_most("largest distance of the two curves over pi", apart, 0.02, source=source)
    sheet.at_most(
        "Moreau: smallest gap",
        moreau.g_N().min(),
        -1e-4,
        source="S2 section 10.3: no contact on position level",
    )
    tilted = abs(angle[row(moreau, 5.0)] - both)
    sheet.at_least(
        "Moreau: theta at t = 5 less that of geometry", tilted, 0.01, source="the stem is in the ground"
    )


@entry("S2", "7", "The tippe top turns upside down and falls back", shows="tippe-top", quick=False, cost=64)
def tippe_top(sheet: Sheet) -> None:
    """The inclination theta over 8 s beside that of Moreau's scheme with the paper's dt = 1e-4; judged by the
    smooth slipping motion, the impact of the stem and geometry."""
    b = benchmarks.load("tippe-top")
    r, method = b.reference, alpha(0.5, "stagewise", newton=True)
    theta, dts, errors = r["theta"], [1e-3, 5e-4, 2.5e-4], []
    for dt in dts:
        run = sheet.run(b, method, dt=dt, t1=1.25)
        errors.append(np.mean([abs(inclination(run)[row(run, t)] - exact) for t, exact in theta.items()]))
    sheet.order(
        "theta at five times up to 1.25", dts, errors, 2.0, source=f"second order in slip; {r['source']}"
    )
    dt = 5e-4
    sol = sheet.run(b, method, dt=dt, t1=8.0)
    angle = inclination(sol)
    for t, exact in {**theta, **r["theta_after"]}.items():
        sheet.close(f"theta at t = {t}", angle[row(sol, t)], exact, rtol=1e-2, source=r["source"])
    stem = closings(sol, 1)[0]
    late = f"{r['source']}; 1 % of theta at its rate, 2.4 per second"
    sheet.close("the stem touches the ground", stem, r["stem_time"], atol=1e-2, source=late)
    s: Any = b.system
    both = math.acos(-(s.R_1 - s.R_2) / (s.a_2 - s.a_1))
    sheet.close(
        "theta at t = 5, on body and stem",
        angle[row(sol, 5.0)],
        both,
        atol=1e-9,
        source="closed form (geometry)",
    )
    sheet.at_least("smallest gap", sol.g_N().min(), -1e-9, source=POSITION_LEVEL)
    sheet.holds(
        "it falls back", angle[-1] < both - 0.1 and angle.max() > 3.0,
        expected="inverted, then below the double contact",
        got=f"up to {angle.max():.2f}, at the end {angle[-1]:.2f}", source="S2 section 10.6",
    )  # fmt: skip
    moreau = sheet.run(b, MoreauMidpoint(), dt=1e-4, t1=8.0)
    judge_moreau_on_the_top(sheet, b, sol, moreau, both)
    printed = {dt: inclination(sheet.run(b, alpha(0.5, newton=True), dt=dt, t1=2.0)) for dt in (1e-3, 5e-4)}
    off = " and ".join(
        f"{100 * abs(values[round(0.25 / dt)] / theta[0.25] - 1):.0f} %" for dt, values in printed.items()
    )
    sheet.note(
        "The slip direction turns, where the printed friction law is first order: theta(0.25) is off by "
        f"{off} with steps of"
        " 1e-3 (the paper's) and 5e-4. Judged is friction stage by stage. The text gives no coefficients: mu "
        "= 0.3 and"
        " e_N = e_F = 0, as Leine and Glocker (2003)."
    )
    draw_the_top(sheet, sol, moreau, both, r, printed[1e-3])


def draw_the_top(sheet: Sheet, sol: Any, moreau: Any, both: float, r: Any, printed: np.ndarray) -> None:
    angle, theta = inclination(sol), r["theta"]
    ((a, c, d),) = sheet.axes(1, 3, "Tippe top, generalized-alpha and Moreau's scheme", size=(13.0, 3.4))
    for axis in (a, c):
        axis.plot(
            moreau.t[::10],
            inclination(moreau)[::10],
            color="0.7",
            lw=3,
            label="Moreau, $\\Delta t = 10^{-4}$",
        )
        axis.plot(sol.t, angle, "k", lw=1, label="generalized-alpha, $\\Delta t = 5\\cdot10^{-4}$")
        axis.plot(list(theta), list(theta.values()), "ko", ms=4, mfc="none", label="converged")
        axis.axhline(both, color="k", lw=0.6, ls=":")
        axis.set(xlabel="$t$", ylabel=r"$\theta$")
    a.text(8.0, both + 0.05, "body and stem touch", fontsize=8, ha="right")
    a.plot(list(r["theta_after"]), list(r["theta_after"].values()), "ko", ms=4, mfc="none")
    c.plot(
        sol.t[::2][: len(printed)],
        printed,
        "--",
        lw=1,
        label="printed law, $\\Delta t = 10^{-3}$",
    )
    a.set(title="inversion and fall back")
    c.set(xlim=(0.0, 1.6), title="inversion")
    c.legend(fontsize=8)
    d.plot(
        moreau.t[::10],
        1e3 * moreau.g_N().min(axis=1)[::10],
        color="0.6",
        label="Moreau, $\\Delta t = 10^{-4}$",
    )
    d.plot(sol.t, 1e3 * sol.g_N().min(axis=1), "k", lw=1, label="generalized-alpha")
    d.set(xlabel="$t$", ylabel="smaller gap in $10^{-3}$", title="penetration of body or stem")
    d.legend(fontsize=8, loc="lower left")
