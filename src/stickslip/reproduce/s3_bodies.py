"""S3 sections 7.8 to 7.11: Painleve's rod, a ball in a corner, the tippedisk, a tetrahedron."""

import math
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from .. import benchmarks
from ..benchmarks import Benchmark
from ..methods import (
    GeneralizedAlpha,
    MoreauMidpoint,
    RadauIIA,
    Rattle,
)
from ..methods.base import Method
from ..rigid import inclinations
from .entries import Sheet, entry
from .shared import CAPTURED, EXACT, PENETRATION, at, first, since

# ---- 7.8 Painleve's rod


def sliding_rod(t: np.ndarray) -> np.ndarray:
    """lambda_N of the sliding rod (m = l = 1,
    mu = 5/3) at the times t before the singular point; y = (|phi|, its rate).
    """
    mu, g = 5.0 / 3.0, 10.0

    def force(phi, w):
        return (g - w**2 * np.sin(phi)) / (1 + 3 * np.cos(phi) * (np.cos(phi) - mu * np.sin(phi)))

    def rate(_, y):
        return [y[1], -3 * force(*y) * (np.cos(y[0]) - mu * np.sin(y[0]))]

    out = solve_ivp(rate, (0.0, t[-1]), [math.radians(31.0), 0.0], "DOP853", rtol=1e-11, atol=1e-12, t_eval=t)
    return force(*out.y)


@entry("S3", "7.13", "Painleve's rod slides into its catastrophe", shows="painleve-rod", quick=False, cost=32)
def painleve_rod(sheet: Sheet) -> None:
    """The normal percussion at h = 5e-3: RATTLE and two-stage Radau IIA follow the force that blows up and
    take off, Moreau's rule hammers. Judged by the sliding motion integrated in a minimal coordinate."""
    sheet.note(
        "Erratum: y(t_0) = l sin(phi_0) would put the tip 1.03 below the ground; y = -l sin(phi_0) closes "
        "the contact."
    )
    b = benchmarks.load("painleve-rod")
    h, r = b.dt, b.reference
    ((a, c, d),) = sheet.axes(1, 3, size=(13.0, 3.8))
    t = np.linspace(0.0, 0.812, 1000)
    exact = h * sliding_rod(t)
    sheet.close("reference: lambda_N(0)", exact[0] / h, r["lambda_N_start"], rtol=1e-9, source="closed form")
    for name, method in (
        ("Moreau", MoreauMidpoint()),
        ("RATTLE", Rattle()),
        ("Radau IIA, two stages", RadauIIA(stages=2)),
    ):
        sol: Any = sheet.run(b, method)
        P_N = sol.P_N[1:, 0]
        if name == "Moreau":
            lifted = int((P_N[: at(sol, 0.8)] == 0.0).sum())
            sheet.at_least(
                "Moreau: steps without contact before t = 0.8", lifted, 1, source="S3 7.8: artificial impacts"
            )
        else:
            _judge_rod(sheet, b, name, sol)
        style = {"Moreau": "x", "RATTLE": ".-", "Radau IIA, two stages": "+-"}[name]
        for panel in (a, c, d):
            panel.plot(sol.t[1:], P_N, style, ms=4, lw=0.7, label=f"{name}, h = {h:g}")
    for panel in (a, c, d):
        panel.plot(t, exact, **EXACT, label=r"$h \lambda_N$, integrated")
        panel.set(xlabel="t")
    for panel in (a, d):
        panel.set_yscale("symlog", linthresh=0.02)  # zero is seen
        panel.set(
            yticks=[0.0, 0.05, 0.1, 0.5, 1.0, 4.0],
            yticklabels=["0", "0.05", "0.1", "0.5", "1", "4"],
            ylim=(-2e-3, 6.0),
        )
    a.set(title=r"$\Delta\pi_N$", xlim=(0.0, 1.2))
    c.set(title="after a short period of sliding", xlim=(0.0, 0.1), ylim=(-5e-3, 0.16))
    d.set(title="before it takes off", xlim=(0.75, 0.85))
    a.legend(fontsize=7)


def _judge_rod(sheet: Sheet, b: Benchmark, name: str, sol: Any) -> None:
    h, r, forces = b.dt, b.reference, sol.forces()
    sheet.at_least(
        f"smallest gap, {name}", sol.g_N().min(), -PENETRATION, source="S3 7.8: drift is prohibited"
    )
    for t in (0.1, 0.3, 0.5):
        i = at(sol, t)
        sheet.close(
            f"angle at t = {t}, {name}",
            sol.q[i, 2],
            r["phi"][t],
            rtol=4 * h**2,
            source=f"{r['source']}; 4 h^2",
        )
        source = f"{r['source']}; 4 h^2"
        sheet.close(
            f"lambda_N at t = {t}, {name}", forces.la_N[i, 0], r["lambda_N"][t], rtol=4 * h**2, source=source
        )
    grows = np.diff(sol.P_N[1 : at(sol, 0.805), 0])
    sheet.at_least(
        f"smallest growth of the percussion before t = 0.805, {name}",
        grows.min(),
        0.0,
        source="S3 7.8: no artificial impacts",
    )
    peak = sol.t[first(sol.P_N[:, 0] == sol.P_N.max())]
    sheet.close(
        f"peak of the percussion, {name}",
        peak,
        r["blow_up_time"],
        atol=2 * h,
        source=f"{r['source']}; {CAPTURED}",
    )
    gap = sol.g_N()[at(sol, peak + 5 * h) :, 0]
    sheet.at_least(f"gap after take-off, {name}", gap.min(), 1e-3, source="S3 7.8: it takes off")


# ---- 7.9 ball in corner


def rolls_to_the_corner(g: float = 10.0, R: float = 0.1) -> tuple[float, float]:
    """Times of first contact with the inelastic and the elastic plane: fall,
    an impact that sticks (2/7 < mu), rolling.
    """
    fall = 0.5 - math.sqrt(2.0) * R
    t_2 = math.sqrt(2 * fall / g)
    v, a, way = 5 / 7 * g * t_2 / math.sqrt(2.0), 5 / 7 * g / math.sqrt(2.0), math.sqrt(0.5)
    return t_2, t_2 + (-v + math.sqrt(v**2 + 2 * a * way)) / a


@entry(
    "S3",
    "7.14",
    "A ball comes to rest in a corner: redundant contacts",
    shows="ball-in-corner",
    quick=False,
    cost=21,
)
def ball_in_corner(sheet: Sheet) -> None:
    """Gaps at h = 1e-2: RATTLE and two-stage Radau IIA do not penetrate, Moreau's rule does. Judged by closed
    forms of the two first contacts, of the place of rest and of the force balance there."""
    sheet.note(
        "The paper solves this with fixed-point iterations that test the motion only. Tested on percussions "
        "too, they do "
        "not converge while the last bounces die out (percussions are not unique); proximal steps, the "
        "default here, do."
    )
    b = benchmarks.load("ball-in-corner")
    t_2, t_1 = rolls_to_the_corner()
    ((a, c),) = sheet.axes(1, 2, size=(10.0, 3.8))
    for k, (name, method) in enumerate(
        (("Moreau", MoreauMidpoint()), ("RATTLE", Rattle()), ("Radau IIA", RadauIIA(stages=2)))
    ):
        sol: Any = sheet.run(b, method)
        g_N, style = sol.g_N(), ("x", ".", "+")[k]
        for i, t in ((1, t_2), (0, t_1)):
            hit = sol.t[first(sol.P_N[:, i] > 0)]
            sheet.close(
                f"first contact with plane {i + 1}, {name}",
                hit,
                t,
                atol=2 * b.dt,
                source=f"closed form; {CAPTURED}",
            )
            for panel in (a, c):
                panel.plot(
                    sol.t, g_N[:, i], style + "-", ms=4, lw=0.6, color=f"C{k}", label=f"{name}" if i else None
                )
        if name == "Moreau":
            sheet.at_most(
                f"smallest gap, {name}", g_N.min(), -1e-4, source="S3 Fig. 7.14: Moreau's rule penetrates"
            )
        else:
            sheet.at_least(f"smallest gap, {name}", g_N.min(), -PENETRATION, source="S3 7.9: no penetration")
            away = np.abs(sol.q[-1, :2] - b.reference["rest_position"]).max()
            sheet.at_most(
                f"distance from the place of rest, {name}", away, 1e-9, source="closed form (geometry)"
            )
        sheet.at_most(f"speed at the end, {name}", np.abs(sol.u[-1]).max(), 1e-9, source="at rest")
        # whatever the distribution is, the four percussions carry the weight
        carried = (sol.P_N[-1].sum() + sol.P_F[-1, 0] - sol.P_F[-1, 1]) / math.sqrt(2.0) / b.dt
        sheet.close(
            f"vertical contact force at rest, {name}", carried, 10.0, atol=1e-6, source="closed form m g"
        )
    for panel in (a, c):
        for t in (t_1, t_2):
            panel.axvline(t, color="k", lw=0.6, ls=":")
        panel.set(xlabel="t", ylabel="$g_N$")
    a.set(title="gaps to both planes; dotted: exact first contacts")
    c.set(title="magnified", ylim=(-0.02, 0.06))
    a.legend(fontsize=8)


# ---- 7.10 tippedisk


def inclination(sol: Any) -> np.ndarray:
    """theta = acos(e_z . e_z^K): the middle Euler angle of the sequence zxz,
    not the last one, as the caption says.
    """
    return np.asarray(inclinations(sol.q[:, 3:]))


@entry("S3", ("7.15", "7.16"), "The tippedisk turns upside down", shows="tippedisk", quick=False, cost=64)
def tippedisk(sheet: Sheet) -> None:
    """Height of the centre of gravity and inclination with Moreau's rule at h = 1e-5 and with
    generalized-alpha (rho_inf = 0.9), RATTLE and two-stage Radau IIA at h = 1e-3, judged by the smooth motion
    integrated to 1e-11; orders with the printed and the stagewise friction law."""
    sheet.note(
        "The slip direction turns: with the printed friction laws all methods are first order here; with the "
        "stagewise law, "
        "the default of this library, two-stage Radau IIA has its order 3."
    )
    sheet.note(
        "The caption calls the inclination the last Euler angle of the sequence zxz; it is the middle one. "
        "The "
        "last one turns by pi when the disk inverts."
    )
    b = benchmarks.load("tippedisk")
    r, rise = b.reference, b.reference["plateau"] - float(b.q0[2])
    runs: list[tuple[str, Method, float]] = [
        ("Moreau", MoreauMidpoint(), 1e-5),
        ("generalized-alpha, printed law", GeneralizedAlpha(rho_inf=0.9, friction="printed"), 1e-3),
        ("RATTLE, printed law", Rattle(friction="printed"), 1e-3),
        ("Radau IIA, printed law", RadauIIA(stages=2, friction="printed"), 1e-3),
        ("Radau IIA, stagewise law", RadauIIA(stages=2), 1e-3),
    ]
    (sketches, (a, c)) = sheet.axes(2, 2, size=(10.0, 6.8))
    for panel, inverted in zip(sketches, (False, True), strict=True):
        _draw_disk(panel, b.system, inverted)
    for name, method, h in runs:
        sol: Any = sheet.run(b, method, dt=h)
        z, theta = sol.q[:, 2], inclination(sol)
        t = [at(sol, t) for t in r["z"]]
        source = f"{r['source']}; seen as the same in the figure"
        error = np.abs(z[t] - list(r["z"].values())).max() / rise
        sheet.at_most(f"error of heights over the rise, {name}, h = {h:g}", error, 0.025, source=source)
        error = np.degrees(np.abs(theta[t] - list(r["theta"].values())).max())
        sheet.at_most(f"error of the inclination in degrees, {name}, h = {h:g}", error, 1.0, source=source)
        if name != "Moreau":
            sheet.at_least(
                f"smallest gap, {name}", sol.g_N().min(), -PENETRATION, source="S3 7.10: no penetration"
            )
        style: dict[str, Any] = {"lw": 3.0, "color": "0.75"} if name == "Moreau" else {"lw": 1.0}
        style |= {"ls": {"Radau IIA, stagewise law": "-.", "Radau IIA, printed law": "--"}.get(name, "-")}
        if isinstance(method, GeneralizedAlpha):  # marks, or the others would cover it
            style |= {"ls": "", "marker": "s", "ms": 4, "mfc": "none", "markevery": (10, 40)}
        every = max(1, round(1e-3 / h))
        a.plot(sol.t[::every], 1e3 * z[::every], label=f"{name}, h = {h:g}", **style)
        c.plot(sol.t[::every], theta[::every], **style)
    a.plot(list(r["z"]), 1e3 * np.array(list(r["z"].values())), "ko", ms=3, label="converged reference")
    c.plot(list(r["theta"]), list(r["theta"].values()), "ko", ms=3)
    a.axhline(45.0, color="k", lw=0.6, ls=":")
    a.set(title="height of the centre of gravity, $10^3 z_S$", xlabel="t")
    c.set(title=r"inclination $\theta$", xlabel="t")
    for panel in (a, c):
        panel.set_xlim(0.0, 2.1)
    a.legend(fontsize=7)
    _orders_of_the_tippedisk(sheet, b)


def _orders_of_the_tippedisk(sheet: Sheet, b: Benchmark) -> None:
    """Of the inclination at t = 0.1, which is known to 1e-8."""
    hs = [4e-3, 2e-3, 1e-3]
    for method, order in (
        (RadauIIA(stages=2), 3),
        (RadauIIA(stages=2, friction="printed"), 1),
    ):
        ends = [sheet.run(b, method, t1=0.1, dt=h) for h in hs]
        errors = [abs(inclination(sol)[-1] - b.reference["theta"][0.1]) for sol in ends]
        which = "stagewise friction" if order == 3 else "friction as printed"
        source = (
            "2s - 1 in smooth motion"
            if order == 3
            else "slip of a whole step against its end direction: first order"
        )
        sheet.order(f"inclination at t = 0.1, Radau IIA, {which}", hs, errors, order, source=source)


def _draw_disk(panel: Any, s: Any, inverted: bool) -> None:
    """The upright disk from the front: S below or above the geometric centre G, contact C, and its hole."""
    from matplotlib.patches import Circle

    r, e, side = 1e3 * s.r, 1e3 * s.e, 1.0 if inverted else -1.0
    panel.add_patch(Circle((0.0, r), r, facecolor="0.88", edgecolor="k"))
    panel.add_patch(Circle((0.0, r - 20.0 * side), 15.0, facecolor="w", edgecolor="k"))
    panel.axhline(0.0, color="k", lw=1)
    for y, name, dx in ((r, "G", 3.0), (r + side * e, "S", -8.0), (0.0, "C", 3.0)):
        panel.plot(0.0, y, "o", ms=4, color="C1" if name == "S" else "k")
        panel.text(dx, y + (1.5 if name == "C" else -1.5), name, fontsize=9)
    title = "inverted: S above G" if inverted else "start: S below G, spun about the vertical"
    panel.set(
        title=title, aspect="equal", xlim=(-60, 60), ylim=(-6, 96), xlabel="$10^3 x$", ylabel="$10^3 z$"
    )


# ---- 7.11 tetrahedron


def sliding_point(b: Benchmark, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t, place and friction force of the centre of mass after the impact:
    v' = -g F(v) with the reservoir of the case.
    """
    s: Any = b.system
    r, g, a = b.reference, s.gravity, s.mu * np.array([s.a_x, s.a_y])
    v = np.array(r["velocity_after_impact"])
    x = 4.0 * np.array([math.cos(math.pi / 5), math.sin(math.pi / 5)]) * r["impact_time"]
    t = np.linspace(0.0, r["rest_time"] - r["impact_time"], n)
    weight = float(s.m) * g
    if s.rectangular:
        tau = np.minimum(t[:, None], v / (a * g))  # each direction by itself
        return (
            t + r["impact_time"],
            x + v * tau - a * g * tau**2 / 2,
            -weight * a * (t[:, None] < v / (a * g)),
        )
    F = lambda v: a * a * v / max(float(np.linalg.norm(a * v)), 1e-9)
    out = solve_ivp(
        lambda _, y: np.r_[y[2:], -g * F(y[2:])], (0.0, t[-1]), np.r_[x, v], rtol=1e-9, atol=1e-11, t_eval=t
    )
    return t + r["impact_time"], out.y[:2].T, -weight * np.array([F(v) for v in out.y[2:].T])


@entry(
    "S3", "7.18", "A tetrahedron slides with anisotropic friction", shows="tetrahedron", quick=False, cost=75
)
def tetrahedron(sheet: Sheet) -> None:
    """Paths and resultant percussions with an elliptical and a rectangular reservoir, two-stage Radau IIA at
    h = 1e-2; judged by the motion of the centre of mass, integrated by itself: the body does not turn."""
    sheet.note(
        "Erratum: the height of a regular tetrahedron is h_P = sqrt(2/3) a (printed: sqrt(2)/3 e) and its "
        "inertia m a^2/20. "
        "g is not stated, 10 is taken. It then falls 0.2959 and touches down at 0.2433, where the text has "
        "about 0.26."
    )
    ((a, c, d),) = sheet.axes(1, 3, size=(13.0, 3.8))
    sols: list[Any] = []
    for k, (case, name) in enumerate(((1, "elliptical"), (2, "rectangular"))):
        b = benchmarks.load("tetrahedron", case)
        sol: Any = sheet.run(b, RadauIIA(stages=2))
        sols.append(sol)
        _judge_tetrahedron(sheet, b, name, sol)
        a.plot(sol.q[:, 0], sol.q[:, 1], ".", ms=4, color=f"C{k}", label=f"{name}, h = {b.dt:g}")
        t, path, force = sliding_point(b)
        a.plot(*path.T, **EXACT, label=None if k else "centre of mass, integrated")
        a.plot(*b.reference["rest_xy"], "kx", ms=6, label=None if k else "place of rest")
        resultant = sol.P_F.reshape(-1, 4, 2).sum(axis=1)
        c.plot(sol.t[1:], sol.P_N[1:].sum(axis=1), ("-", "--")[k], lw=1, label=name)
        for i, style in ((0, "-"), (1, "--")):
            d.plot(sol.t[1:], resultant[1:, i], style, lw=1.2, color=f"C{k}", label=f"{name}, $i = {i + 1}$")
            d.plot(t, b.dt * force[:, i], "k:", lw=1.2, label="integrated" if k and i else None)
    c.axhline(b.reference["lambda_N"] * b.dt, color="k", lw=0.6, ls=":", label="exact $h m g$")
    c.plot(b.reference["impact_time"], b.reference["Lambda_N"], "kx", label=r"exact $\Lambda_N$")
    same = np.abs(sols[0].P_N.sum(axis=1) - sols[1].P_N.sum(axis=1)).max()
    sheet.at_most(
        "difference of the resultant normal percussions", same, 1e-9, source="S3 7.11: they coincide"
    )
    a.set(title="path of the centre of mass", xlabel="x", ylabel="y")
    c.set(title=r"$\sum_k \Delta\pi_N^k$", xlabel="t", yscale="log", ylim=(5e-3, 1.0))
    d.set(title=r"$\sum_k \Delta\pi_{T,i}^k$", xlabel="t", ylim=(-7.5e-3, 5e-4))
    for panel in (a, c, d):
        panel.legend(fontsize=7)


def _judge_tetrahedron(sheet: Sheet, b: Benchmark, name: str, sol: Any) -> None:
    h, r = b.dt, b.reference
    sheet.at_least(f"smallest gap, {name}", sol.g_N().min(), -PENETRATION, source="enforced by the method")
    sheet.at_most(
        f"turn of the body, {name}",
        np.abs(sol.q[:, 4:]).max(),
        1e-9,
        source="resultant through the centre of mass",
    )
    hit = sol.t[first(sol.P_N.max(axis=1) > 0)]
    sheet.close(f"impact, {name}", hit, r["impact_time"], atol=2 * h, source=f"closed form; {CAPTURED}")
    rest = sol.t[since(np.abs(sol.u).max(axis=1) < 1e-9)]
    # the impact's friction is off by up to mu g h in speed, as if it came a step earlier or later; so is the
    # rest
    sheet.close(
        f"rest, {name}",
        rest,
        r["rest_time"],
        atol=3 * h,
        source=f"{r['source']}; a step for the impact, two for the rest",
    )
    away = np.abs(sol.q[-1, :2] - r["rest_xy"]).max()
    sheet.at_most(
        f"distance from the place of rest, {name}",
        away,
        4.0 * h,
        source=f"{r['source']}; a step at the speed 4",
    )
    sliding = sol.t > r["impact_time"] + 3 * h
    weight = np.abs(sol.P_N[sliding].sum(axis=1) / h - r["lambda_N"]).max()
    sheet.at_most(f"resultant normal force less the weight, {name}", weight, 1e-8, source="closed form m g")
    P = sol.P_F.reshape(-1, 4, 2) / np.array([0.15, 0.3])
    size = np.linalg.norm(P, axis=2) if name == "elliptical" else np.abs(P).max(axis=2)
    sheet.at_most(
        f"friction outside of its reservoir, {name}", (size - sol.P_N).max(), 1e-9, source="(3.31) to (3.33)"
    )
