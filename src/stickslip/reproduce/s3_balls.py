"""S3 sections 7.1 to 7.3: a bouncing ball, a rolling ball, a ball in a hollow sphere."""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from .. import benchmarks
from ..benchmarks import rolling_ball
from ..benchmarks.bouncing_ball import exact_gap
from ..methods import (
    MoreauMidpoint,
    RadauIIA,
    Rattle,
    ShiftedMoreau,
    recovered_positions,
    shifted_start,
)
from .entries import Sheet, entry
from .shared import CAPTURED, EXACT, PENETRATION, at, first, since

STAGES = {"one stage": RadauIIA(stages=1), "two stages": RadauIIA(stages=2)}


# ---- 7.1 rotating bouncing ball


@entry(
    "S3", "7.1", "A bouncing ball comes to rest through an accumulation point", shows="bouncing-ball", cost=6
)
def bouncing_ball(sheet: Sheet) -> None:
    """The gap with one and two stages of Radau IIA at h = 1e-2 (case 1, g = 10), judged by the closed form:
    impact law, time of rest, and the energy that one stage loses in flight."""
    b = benchmarks.load("bouncing-ball", 1, g=10.0)
    h, t_1 = b.dt, b.reference["impact_time"]
    ((a, c),) = sheet.axes(1, 2)
    t = np.linspace(0.0, b.t1, 1500)
    a.plot(t, exact_gap(b, t), **EXACT, label="exact")
    for name, method in STAGES.items():
        sol: Any = sheet.run(b, method)
        g_N, k = sol.g_N()[:, 0], first(sol.P_N[:, 0] > 0)
        sheet.at_least(f"smallest gap, {name}", g_N.min(), -PENETRATION, source="S3 7.1: no penetration")
        sheet.close(f"first impact, {name}", sol.t[k], t_1, atol=2 * h, source=f"closed form; {CAPTURED}")
        law = sol.u[k, 1] + 0.5 * sol.u[k - 1, 1]
        sheet.close(f"impact law u+ + e u-, {name}", law, 0.0, atol=1e-9, source="Newton's impact law")
        a.plot(sol.t, g_N, ".-", ms=3, lw=0.8, label=f"{name}, h = {h:g}")
        E = sol.energy()
        c.plot(sol.t, E, lw=1, label=f"{name}, h = {h:g}")
        # implicit Euler: u_n+1 = u_n - h g and y_n+1 = y_n + h u_n+1 lose m g^2 h^2/2 a step; two stages are
        # exact
        loss = (k - 1) * (10.0 * h) ** 2 / 2 if name == "one stage" else 0.0
        sheet.close(
            f"energy lost in the fall, {name}", E[0] - E[k - 1], loss, atol=1e-9, source="closed form"
        )
    for step in (h, h / 10):
        sol = sheet.run(b, STAGES["two stages"], dt=step)
        rest = sol.t[since(sol.g_N()[:, 0] < PENETRATION)]
        # each impact takes up to h g from the speed, and so 2 h from what is to come; log2(2 t_1/h) are apart
        # by a step
        allowed = 2 * step * math.ceil(math.log2(2 * t_1 / step))
        source = "closed form 3 t_1; each impact that is told apart costs up to two steps"
        sheet.close(
            f"rest, two stages, h = {step:g}", rest, b.reference["rest_time"], atol=allowed, source=source
        )
    a.axvline(b.reference["rest_time"], color="k", lw=0.6, ls=":")
    a.text(b.reference["rest_time"] + 0.02, 0.5, "at rest\n(exact)", fontsize=8)
    a.set(title="gap", xlabel="t", ylabel="$g_N$")
    c.set(title="energy: one stage dissipates in flight", xlabel="t", ylabel="E")
    for panel in (a, c):
        panel.legend(fontsize=8)


@entry("S3", "7.2", "A spinning ball falls, slips and rolls", shows="bouncing-ball", cost=1)
def spinning_ball(sheet: Sheet) -> None:
    """Percussions of cases 2 (slip, then rolling) and 3 (sticks at once),
    judged by the closed forms of section 7.1.
    """
    sheet.note(
        "Erratum: the percussions of the step with the impact are printed as h lambda_N + Lambda_N = 4.3426 "
        "and 0.8685. "
        "That is so if the impact falls on the start of a step. From t = 0 with h = 1e-2 it falls between "
        "0.42 and 0.43: "
        "h lambda_N + m g 0.42 = 4.3 and 0.86 come out. Both are judged; for the first the ball starts on "
        "the same fall 42 "
        "steps before the impact."
    )
    panels = sheet.axes(2, 2)
    for row, case in zip(panels, (2, 3), strict=True):
        b = benchmarks.load("bouncing-ball", case, g=10.0)
        for name, method in STAGES.items():
            sol: Any = sheet.run(b, method)
            for panel, P in zip(row, (sol.P_N, sol.P_F), strict=True):
                panel.plot(sol.t[1:], P[1:, 0], ".-", ms=3, lw=0.8, label=name)
            rolling = np.abs(sol.u[-1] - b.reference["u_rolling"]).max()
            sheet.close(
                f"rolling velocities, case {case}, {name}", rolling, 0.0, atol=1e-9, source="closed form"
            )
            if case == 2:
                slip = np.abs(sol.u[:, 0] + 0.1 * sol.u[:, 2])
                stick = sol.t[since(slip < 1e-9)]
                source = f"closed form; {CAPTURED}"
                sheet.close(f"stick, {name}", stick, b.reference["stick_time"], atol=2 * b.dt, source=source)
                force = sol.P_F[at(sol, 0.6), 0] / b.dt
                sheet.close(f"friction force in slip, {name}", force, -2.0, atol=1e-9, source="S3 7.1")
            force = sol.P_F[-1, 0] / b.dt
            sheet.close(
                f"friction force in rolling, case {case}, {name}", force, 0.0, atol=1e-9, source="S3 7.1"
            )
        _impact_percussions(sheet, b)
        _draw_exact_percussions(row, b)


def _draw_exact_percussions(row: Any, b: benchmarks.Benchmark) -> None:
    """Forces times h, and the impulse at its instant, (7.2) ff."""
    r, h = b.reference, b.dt
    friction = -2.0 * h if b.case == 2 else 0.0
    t = np.array(
        [0.3, r["impact_time"], r["impact_time"], r.get("stick_time", 0.7), r.get("stick_time", 0.7), 0.8]
    )
    for panel, of, force, then, impulse in (
        (row[0], "N", 10.0 * h, 10.0 * h, r["Lambda_N"]),
        (row[1], "T", friction, 0.0, r["Lambda_F"]),
    ):
        panel.plot(t, [0.0, 0.0, force, force, then, then], **EXACT, label=rf"exact $h \lambda_{of}$")
        panel.plot(r["impact_time"], impulse, "kx", ms=6, label=rf"exact $\Lambda_{of}$")
        panel.set(title=rf"case {b.case}: $\Delta\pi_{of}$", xlabel="t", xlim=(0.3, 0.8))
        panel.legend(fontsize=7)


def _impact_percussions(sheet: Sheet, b: benchmarks.Benchmark) -> None:
    """Of the step with the impact: from t = 0, and with the impact at the start of a step."""
    h, t_1, case = b.dt, b.reference["impact_time"], b.case
    tau = t_1 - 42 * h - 1e-9
    later = dataclasses.replace(b, q0=b.q0.at[1].add(-5.0 * tau**2), u0=b.u0.at[1].set(-10.0 * tau))
    printed = {2: -0.8685, 3: -0.2857}[case]
    for when, start, P_N, P_F, source in (
        ("at the start of a step", later, 4.3426, printed, "S3 7.1, four digits printed"),
        ("within a step", b, 4.3, {2: -0.86, 3: -2.0 / 7.0}[case], "closed form m (g h + |u_y(0.42)|)"),
    ):
        sol: Any = sheet.run(start, STAGES["two stages"])
        k, atol = first(sol.P_N[:, 0] > 0), 5e-5 if start is later else 1e-9
        sheet.close(
            f"normal percussion, impact {when}, case {case}", sol.P_N[k, 0], P_N, atol=atol, source=source
        )
        sheet.close(
            f"friction percussion, impact {when}, case {case}", sol.P_F[k, 0], P_F, atol=atol, source=source
        )


# ---- 7.2 rolling ball


@entry("S3", "7.3", "A ball slides, rolls and stops: the shifted Moreau scheme", shows="rolling-ball", cost=3)
def rolling_friction(sheet: Sheet) -> None:
    """Positions and velocities of Moreau's rule and the shifted scheme at h = 0.1, with and without recovered
    positions, judged by the closed form (7.11)."""
    sheet.note(
        "Erratum: while sliding the spin acceleration is (mu_R - R mu_T) m g/Theta; (7.11a) has a plus, "
        "(7.6) the matching "
        "sign in its denominator, and (7.5) lost a minus in its first row. With the right signs t_1 = 0.4 "
        "and t_2 = 2.08."
    )
    b = benchmarks.load("rolling-ball")
    h = b.dt
    moreau: Any = sheet.run(b)
    plain = sheet.run(b, ShiftedMoreau())
    start = dataclasses.replace(b, q0=shifted_start(b.system, b.q0, b.u0, h))
    shifted = sheet.run(start, ShiftedMoreau())
    recovered = np.asarray(recovered_positions(b.system, shifted.t, shifted.q, shifted.u, h))
    q, u = rolling_ball.exact(moreau.t)
    for name, sol in (("Moreau", moreau), ("shifted", plain)):
        error = np.abs(sol.u[:, [0, 2]] - u).max()
        sheet.at_most(
            f"error of velocities, {name}", error, 1e-9, source="closed form; linear between grid points"
        )
    sheet.at_most(
        "recovered positions less Moreau's",
        np.abs(recovered - moreau.q).max(),
        1e-9,
        source="S3 below (5.63)",
    )
    rolling = moreau.t < b.reference["rest_time"] - h
    error = np.abs(moreau.q[:, [0, 2]] - q)
    sheet.at_most(
        "error of Moreau's positions until the ball stops", error[rolling].max(), 1e-9, source="closed form"
    )
    # it stops within a step: (h - tau) a tau/2 <= a h^2/8 too far, with the spin acceleration a of (7.11a)
    a_phi = 0.005 * 10.0 / (7 / 5 * 0.1**2)
    source = "closed form; stopping inside a step adds up to a h^2/8"
    sheet.close(
        "angle at rest, Moreau",
        moreau.q[-1, 2],
        b.reference["rest_phi"],
        atol=a_phi * h**2 / 8,
        source=source,
    )
    sheet.close(
        "place at rest, Moreau",
        moreau.q[-1, 0],
        b.reference["rest_x"],
        atol=0.1 * a_phi * h**2 / 8,
        source=source,
    )
    worse = np.abs(plain.q[:, 2] - q[:, 1]).max()
    source = "S3 Fig. 7.3: they differ; h u/2 with u = -6 is 0.3"
    sheet.at_least("error of unrecovered angles", worse, 0.1, source=source)
    draw_rolling_friction(sheet, moreau, plain, recovered)


def draw_rolling_friction(sheet: Sheet, moreau: Any, plain: Any, recovered: np.ndarray) -> None:
    panels = sheet.axes(2, 2)
    t = np.linspace(0.0, plain.t[-1], 500)
    fine = np.concatenate(rolling_ball.exact(t), axis=1)
    columns = [np.concatenate([sol.q[:, [0, 2]], sol.u[:, [0, 2]]], axis=1) for sol in (moreau, plain)]
    for k, (panel, label) in enumerate(zip(panels.flat, ("x", r"\varphi", "u_x", r"u_\varphi"), strict=True)):
        panel.plot(t, fine[:, k], **EXACT, label="exact, signs mended")
        panel.plot(moreau.t, columns[0][:, k], "x", ms=5, label="Moreau's midpoint rule")
        panel.plot(plain.t, columns[1][:, k], "o", ms=4, mfc="none", label="shifted Moreau")
        if k < 2:
            panel.plot(plain.t, recovered[:, 2 * k], "+", ms=6, label="recovered")
        panel.set(xlabel="t", ylabel=f"${label}$")
    panels[0, 0].legend(fontsize=7)


# ---- 7.3 ball in hollow sphere


def in_hollow_sphere(t: np.ndarray) -> np.ndarray:
    """Angle psi of the centre from the lowest point at the times t after the impact (nan before): slip and
    rolling, each integrated by itself, with root-found transitions. y = (psi, speed, spin), m = 1."""
    g, mu, R, r = 10.0, 0.1, 0.1, 0.9
    psi = -math.asin(0.8 / r)
    now = math.sqrt(2 * (0.1 + r * math.cos(psi)) / g)
    Lambda_T = -mu * g * now * math.cos(psi)  # it slips through the impact
    y = np.array([psi, -g * now * math.sin(psi) + Lambda_T, 2.5 * Lambda_T / R])

    def rolling(y):
        return 2 / 7 * g * math.sin(y[0])  # the friction force that rolling takes

    def limit(y):
        return mu * (g * math.cos(y[0]) + y[1] ** 2 / r)

    def rate(_, y, slip):
        force = -slip * limit(y) if slip else rolling(y)
        return [y[1] / r, -g * math.sin(y[0]) + force, 2.5 * force / R]

    def transition(_, y, slip):
        return slip * (y[1] + R * y[2]) if slip else limit(y) - abs(rolling(y))

    transition.terminal, transition.direction = True, -1.0  # type: ignore[attr-defined]
    slip, out = 1.0, np.full(len(t), np.nan)
    while now < t[-1]:
        part = solve_ivp(rate, (now, t[-1] + 1e-9), y, "DOP853", rtol=1e-11, atol=1e-12,
                         events=transition, args=(slip,), dense_output=True)  # fmt: skip
        inside = (t >= now) & (t <= part.t[-1])
        if inside.any():
            out[inside] = part.sol(t[inside])[0]
        now, y = part.t[-1], part.y[:, -1]
        slip = 0.0 if slip and abs(rolling(y)) <= limit(y) else -math.copysign(1.0, rolling(y))
    return out


@entry("S3", "7.4", "A ball in a hollow sphere: who penetrates", shows="ball-in-hollow-sphere", cost=7)
def hollow_sphere(sheet: Sheet) -> None:
    """The path of the centre at h = 2e-2: Moreau's rule sinks in, RATTLE and two-stage Radau IIA stay on the
    circle. Judged by g_N, the closed form of the first contact and the angle of an event-driven
    integration."""
    b = benchmarks.load("ball-in-hollow-sphere")
    h, t_1 = b.dt, b.reference["contact_time"]
    t = np.linspace(0.0, b.t1, 2001)
    psi = in_hollow_sphere(t)
    ((a, c),) = sheet.axes(1, 2, size=(9.6, 4.0))
    circle = np.linspace(-np.pi, 0.0, 200)
    a.plot(0.9 * np.cos(circle), 0.9 * np.sin(circle), "k--", lw=0.7, label="$g_N = 0$")
    c.plot(t, psi, **EXACT, label="event-driven reference")
    methods = {"Moreau": MoreauMidpoint(), "Radau IIA, two stages": RadauIIA(stages=2)}
    for name, method in (methods if sheet.quick else methods | {"RATTLE": Rattle()}).items():
        sol: Any = sheet.run(b, method)
        g_N, hit = sol.g_N()[:, 0], first(sol.P_N[:, 0] > 0)
        sheet.close(f"first contact, {name}", sol.t[hit], t_1, atol=2 * h, source=f"closed form; {CAPTURED}")
        angle = np.arctan2(sol.q[:, 0], -sol.q[:, 1])
        if name == "Moreau":
            # a step along the tangent leaves the circle by (h v)^2/(2 r); with v = 2 on the way down ten of
            # them make 1e-2
            sheet.at_most(
                f"smallest gap, {name}", g_N.min(), -1e-2, source="S3 Fig. 7.4: Moreau's rule penetrates"
            )
        else:
            sheet.at_least(f"smallest gap, {name}", g_N.min(), -PENETRATION, source="S3 7.3: no penetration")
            source = "e_N = 0: it stays closed"
            sheet.at_most(
                f"largest gap after the impact, {name}", g_N[hit:].max(), PENETRATION, source=source
            )
            # the impact is late by up to a step and takes its speed from a step before
            error = np.abs(angle - np.interp(sol.t, t, psi))[hit:].max()
            source = "event-driven integration to 1e-11; two steps at the speed 3.2"
            sheet.at_most(f"error of the angle, {name}", error, 2 * h * 3.2 / 0.9, source=source)
        style = {
            "marker": "o" if "Radau" in name else ".",
            "ms": 4 if "Radau" in name else 3,
            "mfc": "none",
            "lw": 0.7,
        }
        a.plot(sol.q[:, 0], sol.q[:, 1], label=name, **style)
        c.plot(sol.t[hit:], angle[hit:], label=name, **{**style, "ls": "none"})
    a.set(title="path of the centre", xlabel="x", ylabel="y", aspect="equal", ylim=(-1.15, 0.2))
    c.set(title="angle from the lowest point", xlabel="t", ylabel=r"$\psi$")
    for panel in (a, c):
        panel.legend(fontsize=7)
