"""S1 beyond its figures: what makes Lobatto IIIA-IIIB methods variational, velocity constraints,
tangential restitution.

The paper says of symplecticity and energy only that variational integrators have it (section 1, with [1]
Marsden and West 2001 and [2] Jay 1996, who prove it); constraints gamma and e_F stand in its equations, and
no example uses them.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import benchmarks
from ..benchmarks import Benchmark
from ..methods import TRBDF2, LobattoIIIAB, MoreauMidpoint, RadauIIA, Rattle
from ..methods.base import Method
from ..simulate import simulate
from ..system import System
from .entries import Sheet, entry
from .s1_lobatto import LAWS, THREE, norm_74
from .shared import ENFORCED, EXACT, NO_PENETRATION, TIGHT, grid, reference_lines

VARIATIONAL: dict[str, Method] = {
    "RATTLE": Rattle(solver=TIGHT),
    "Lobatto IIIA-IIIB, s = 2": LobattoIIIAB(stages=2, solver=TIGHT),
    THREE: LobattoIIIAB(stages=3, solver=TIGHT),
}
OTHERS: dict[str, Method] = {
    "Radau IIA, s = 2": RadauIIA(stages=2, solver=TIGHT),
    "TR-BDF2": TRBDF2(solver=TIGHT),
}
PROOF = "S1 section 1: variational integrators are symplectic, [1], [2]"
CONTROL = "not variational: the same measure must see it"
LINES = ("-", "--", ":", "-", "-")  # of methods: RATTLE and two stages are the same here


# ---- a pendulum in canonical coordinates


class Canonical:
    """The map of a run of the benchmark `pendulum` in (phi, p), p = m L^2 phi_dot;
    the run is Cartesian, with g = 0.
    """

    def __init__(self, dt: float, steps: int):
        self.b: Any = benchmarks.load("pendulum")
        self.dt, self.steps = dt, steps

    def state(self, z: Any) -> tuple[Any, Any]:
        s, (phi, p) = self.b.system, z
        e, turned = jnp.array([jnp.cos(phi), jnp.sin(phi)]), jnp.array([-jnp.sin(phi), jnp.cos(phi)])
        return s.L * e, p / (s.m * s.L) * turned

    def run(self, method: Method, z: Any) -> Any:
        """(phi, p) at every step; phi continuously from its start."""
        s = self.b.system
        q0, u0 = self.state(z)
        sol: Any = simulate(s, method, q0, u0, t1=self.steps * self.dt, dt=self.dt, progress=False)
        x, y = sol.q.T
        turns = jnp.arctan2(x[:-1] * y[1:] - y[:-1] * x[1:], x[:-1] * x[1:] + y[:-1] * y[1:])
        phi = z[0] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(turns)])
        return jnp.stack([phi, s.m * (x * sol.u[:, 1] - y * sol.u[:, 0])], axis=-1)

    def tangent(self, method: Method) -> Any:
        """(z, dz) -> (phi, p) at every step and its derivative in the direction dz:
        one program for all that is asked.
        """
        return jax.jit(lambda z, dz: jax.jvp(lambda z: self.run(method, z), (z,), (dz,)))


@entry(
    "S1",
    "symplecticity",
    "Variational methods keep areas of phase space, others shrink them",
    shows="pendulum",
    cost=10,
)
def symplecticity(sheet: Sheet) -> None:
    """A disc of initial states of a pendulum with a bilateral constraint, carried by steps of a tenth of its
    period. Its area is the integral of p dphi round it; derivatives, those of the determinant too, are taken
    through the run, exact to round-off. One degree of freedom: area is all of it."""
    flow, shown, n = Canonical(0.2, 30), (0, 2, 7, 30), 128
    centre, radii, s = np.array([-0.6, 0.5]), np.array([0.35, 1.2]), 2 * math.pi * np.arange(n) / n
    circle = np.column_stack([np.cos(s), np.sin(s)]), np.column_stack([-np.sin(s), np.cos(s)])
    panels = sheet.axes(
        2, 3, "Pendulum with a bilateral constraint, dt = 0.2: a disc of initial states", size=(11.5, 6.2)
    )
    last = panels[1, 2]
    for k, (axis, (name, method)) in enumerate(
        zip(panels.flat, {**VARIATIONAL, **OTHERS}.items(), strict=False)
    ):
        tangent = flow.tangent(method)
        z, dz = (
            np.stack(x, axis=1)
            for x in zip(*map(tangent, centre + radii * circle[0], radii * circle[1]), strict=True)
        )
        # spectrally accurate on a closed curve
        areas = 2 * math.pi * np.abs((z[..., 1] * dz[..., 0]).mean(axis=1))
        det = np.linalg.det(np.stack([tangent(centre, e)[1] for e in np.eye(2)], axis=-1))
        with sheet.under(name):
            if name in VARIATIONAL:
                sheet.at_most(
                    "|area/area at the start - 1|", np.abs(areas / areas[0] - 1).max(), 1e-9, source=PROOF
                )
                sheet.at_most(
                    "|det - 1| of the map, after any step", np.abs(det - 1).max(), 1e-10, source=PROOF
                )
            else:
                sheet.at_most(
                    "area/area at the start after 30 steps", areas[-1] / areas[0], 0.95, source=CONTROL
                )
                sheet.at_most("determinant of the map after 30 steps", det[-1], 0.95, source=CONTROL)
        for color, i in enumerate(shown):
            axis.fill(*z[i].T, alpha=0.4, lw=0.8, ec="k", fc=f"C{color}", label=f"t = {i * flow.dt:g}")
        axis.set(title=f"{name}: area × {areas[-1] / areas[0]:.3f}", xlim=(-2.8, 0.2), ylim=(-5.5, 5))
        axis.set(xlabel=r"$\varphi$", ylabel="$p$")
        last.plot(
            np.arange(flow.steps + 1) * flow.dt, areas / areas[0], LINES[k], lw=1.6, color=f"C{k}", label=name
        )
    panels[0, 0].legend(fontsize=7, loc="lower left", ncols=2)
    last.set(title="area over area at the start", xlabel="t")
    last.legend(fontsize=7, loc="lower left")
    sheet.note(
        "S1 has no figure of this: section 1 names symplecticity as what long-term energetic consistency "
        "bears on."
    )


@entry(
    "S1",
    "long-time energy",
    "The energy of variational methods oscillates, others drift",
    shows="pendulum",
    cost=8,
)
def long_time_energy(sheet: Sheet) -> None:
    """A pendulum over ninety periods in steps of a twentieth of one. The error of a symplectic method is
    bounded: as large in the last fifth of the time as in the first."""
    b = benchmarks.load("pendulum")
    a, c = sheet.axes(1, 2, "Pendulum with a bilateral constraint, dt = 0.1: energy", size=(9.6, 3.4))[0]
    for style, (name, method) in zip(LINES, {**VARIATIONAL, **OTHERS}.items(), strict=True):
        sol: Any = sheet.run(b, method, dt=0.1, t1=200.0)
        off = sol.energy() - sol.energy()[0]
        fifth = len(off) // 5
        early, late = (np.abs(part).max() for part in (off[:fifth], off[-fifth:]))
        with sheet.under(name):
            if name in VARIATIONAL:
                sheet.close("largest error late over early", late / early, 1.0, atol=0.1, source=PROOF)
            else:
                sheet.at_least("largest error late over early", late / early, 2.0, source=CONTROL)
                sheet.at_most(
                    "energy gained up to the end", off[-1], -0.1, source="stiffly accurate methods damp"
                )
        (line,) = c.semilogy(sol.t[1:], np.maximum.accumulate(np.abs(off))[1:], style, lw=1.4, label=name)
        a.plot(sol.t, off, lw=0.5, color=line.get_color())
    a.set(title="energy less energy at the start", xlabel="t", ylabel="J")
    c.set(title="largest |E - E(0)| so far", xlabel="t", ylabel="J", ylim=(1e-4, 30))
    c.legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.36))


# ---- a spherical pendulum


class SphericalPendulum(System):
    """A point mass on a sphere, by a bilateral constraint in Cartesian coordinates."""

    coordinates = ("x [m]", "y [m]", "z [m]")

    m: float = 1.0
    L: float = 1.0
    gravity: float = 9.81

    def M(self, t, q):
        return self.m * jnp.eye(3)

    def h(self, t, q, u):
        return jnp.array([0.0, 0.0, -self.m * self.gravity])

    def g(self, t, q):
        return jnp.array([q @ q - self.L**2])

    def energy(self, t, q, u):
        return 0.5 * self.m * u @ u + self.m * self.gravity * q[2]


def spherical_pendulum() -> Benchmark:
    q0, u0 = jnp.array([math.sin(1.0), 0.0, -math.cos(1.0)]), jnp.array([0.0, 1.5, 0.0])
    return Benchmark(
        "spherical-pendulum", 1, SphericalPendulum(), q0, u0, t1=50.0, dt=0.05, method=Rattle(),
        source="a textbook example", reference={},
    )  # fmt: skip


@entry("S1", "momentum maps", "Variational methods keep the angular momentum about the vertical", cost=6)
def momentum_map(sheet: Sheet) -> None:
    """A spherical pendulum with a bilateral constraint, a thousand steps. Turning it about the vertical
    changes nothing, so l = m (x u_y - y u_x) is conserved: by a variational method to round-off, whatever the
    step."""
    b = spherical_pendulum()
    s: Any = b.system
    a, c = sheet.axes(1, 2, "Spherical pendulum, dt = 0.05, 1000 steps", size=(9.6, 3.8))[0]
    for style, (name, method) in zip(LINES, {**VARIATIONAL, **OTHERS}.items(), strict=True):
        sol: Any = sheet.run(b, method)
        l = s.m * (sol.q[:, 0] * sol.u[:, 1] - sol.q[:, 1] * sol.u[:, 0])
        drift = np.abs(l - l[0])
        with sheet.under(name):
            if name in VARIATIONAL:
                source = "Noether's theorem for a discrete action, [1]"
                sheet.at_most("drift of the angular momentum", drift.max(), 1e-11, source=source)
            else:
                sheet.at_least("drift of the angular momentum", drift.max(), 1e-9, source=CONTROL)
            constraint = np.abs((sol.q**2).sum(axis=1) - s.L**2).max()
            sheet.at_most("largest bilateral constraint", constraint, ENFORCED, source="g = 0, (50)")
        (line,) = c.semilogy(sol.t[1:], np.maximum.accumulate(drift)[1:] + 1e-17, style, lw=1.2, label=name)
        if name in (THREE, "Radau IIA, s = 2"):
            a.plot(sol.q[-200:, 0], sol.q[-200:, 1], lw=0.9, color=line.get_color(), label=name.split(",")[0])
    a.set(title="path from above, last 200 steps", xlabel="x", ylabel="y", aspect="equal")
    a.legend(fontsize=7, loc="center")
    c.set(title="largest |l - l(0)| so far", xlabel="t", ylabel="kg m²/s")
    c.legend(fontsize=7, loc="center right")


# ---- velocity constraints

BLADE = {"knife-edge": "skate on a slope", "rolling-wheel": "driven wheel"}
T1, STEPS = 3.2, 10 * 2 ** np.arange(6)


def gamma_errors(sheet: Sheet, b: Any, method: Method) -> tuple[np.ndarray, float]:
    """Of q, u and lambda, a row for each number of steps, and the largest gamma of all rows."""
    errors, largest = [], 0.0
    for n in STEPS:
        sol: Any = sheet.run(b, method, dt=T1 / n, t1=T1)
        exact = b.reference["exact"](b, sol.t)
        errors.append(
            [
                np.abs(x - true).max()
                for x, true in zip((sol.q, sol.u, sol.forces().la_gamma), exact, strict=True)
            ]
        )
        largest = max(largest, float(np.abs(jax.vmap(b.system.gamma)(sol.t, sol.q, sol.u)).max()))
    return np.array(errors), largest


def judge_orders(sheet: Sheet, errors: np.ndarray, order: float, source: str) -> None:
    for symbol, error in zip(("q", "u", "lambda"), errors.T, strict=False):
        use = error > 1e-11
        if use.sum() >= 3:
            sheet.order(f"e_{symbol}", T1 / STEPS[use], error[use], order, source=source)
        else:
            sheet.at_most(f"e_{symbol}, any step", error.max(), 1e-11, source=f"{source}; here to round-off")


@entry("S1", ("(13)", "(51)"), "Velocity constraints: a skate on a slope and a driven wheel", quick=False,
       cost=25,
       shows=("knife-edge", "rolling-wheel"))  # fmt: skip
def velocity_constraints(sheet: Sheet) -> None:
    """Nonholonomic constraints gamma(t, q, v) = 0, which S1 has in (13) and (51) but in no example. Closed
    forms: a cycloid and a spiral, with their constraint forces. Errors are the largest of any row."""
    dts = T1 / STEPS
    panels = sheet.axes(2, 3, "Velocity constraints, Lobatto IIIA-IIIB", size=(11.5, 6.4))
    for row, (name, what) in zip(panels, BLADE.items(), strict=True):
        b: Any = benchmarks.load(name)
        t = np.linspace(0, T1, 500)
        coarse: Any = sheet.run(b, LobattoIIIAB(stages=3, solver=TIGHT), dt=T1 / 20, t1=T1)
        first, second = (1, 0) if name == "knife-edge" else (0, 1)  # downhill is down
        for path, style in (
            (b.reference["exact"](b, t)[0], EXACT),
            (coarse.q, {"ls": "", "marker": ".", "color": "C1"}),
        ):
            label = "closed form" if style is EXACT else f"s = 3, dt = {T1 / 20:g}"
            row[0].plot(path[:, first], path[:, second], label=label, **style)
        row[0].set(title=what, xlabel="xy"[first], ylabel="xy"[second], aspect="equal")
        for i, s in enumerate((2, 3, 4)):
            for label, law in LAWS.items():
                errors, largest = gamma_errors(sheet, b, LobattoIIIAB(stages=s, friction=law, solver=TIGHT))
                with sheet.under(f"{name}, s = {s}, {label}"):
                    sheet.at_most(
                        "largest gamma of any row", largest, ENFORCED, source="gamma = 0 at t_n+1, (51)"
                    )
                    if law == "stagewise":
                        judge_orders(sheet, errors, 2 * s - 2, "closed form; 2 s - 2, S1 section 1")
                    else:
                        judge_orders(sheet, errors[:, :1], s - 1, "closed form; measured, see the note")
                for axis, k in ((row[1], 0), (row[2], 2)):
                    printed = {"ls": "--", "mfc": "none", "label": f"s = {s}, (51) as printed"}
                    lines: dict[str, Any] = {"label": f"s = {s}"} if law == "stagewise" else printed
                    axis.loglog(dts, errors[:, k], color=f"C{i}", marker="osd"[i], ms=4, lw=1, **lines)
        for axis, symbol in ((row[1], "q"), (row[2], r"\lambda_\gamma")):
            axis.set(title=f"{what}: error of ${symbol}$", xlabel="dt", ylim=(1e-15, 30))
    panels[0, 0].invert_yaxis()
    panels[1, 0].legend(fontsize=7, loc="center", bbox_to_anchor=(0.45, 0.65))
    panels[1, 1].legend(fontsize=6, loc="lower right")
    sheet.note(
        "Printed is gamma = 0 at stages 2..s, (51). It does not give the order 2 s - 2 that holds for "
        "position constraints,"
        " but s - 1 (measured for s = 2, 3, 4). The scheme that has it takes Jay's weighted conditions"
        " sum_i b_i c_i^k gamma_i = 0, k = 0..s-2, instead, and gamma = 0 at the end of the step as printed."
    )


# ---- tangential restitution


@entry("S1", ("(26)", "(58)"), "A super ball rebounds in both directions", shows="super-ball", cost=5)
def super_ball(sheet: Sheet) -> None:
    """Newton's law with e_N and e_F, which S1 has in (26) and (58) but sets e_F = 0 in all examples. Closed
    form: velocities after every impact, the path; errors in the norm (74) across two impacts."""
    panels = sheet.axes(2, 3, f"Super ball, {THREE}", size=(11.5, 5.8))
    slides = r"$e_N = e_F = 1$, $\mu = 0.03$: slides"
    labels = {1: r"$e_N = e_F = 1$, $\mu = 0.6$", 2: slides, 3: r"$e_N = 0.8$, $e_F = 0.5$, $\mu = 0.6$"}
    for i, (case, label) in enumerate(labels.items()):
        b: Any = benchmarks.load("super-ball", case)
        s, sol = b.system, sheet.run(b, LobattoIIIAB(stages=3, solver=TIGHT), dt=FINE)
        with sheet.under(f"case {case}"):
            judge_super_ball(sheet, b, sol)
        slip, color = sol.u[:, 0] + s.R * sol.u[:, 2], f"C{i}"
        t = np.linspace(0, b.t1, 2000)
        q, u = b.reference["exact"](b, t)
        path, rows = panels[0, i], slice(None, None, 10)
        path.plot(q[:, 0], q[:, 1], label="closed form", **EXACT)
        path.plot(
            sol.q[rows, 0], sol.q[rows, 1], ".", ms=4, color=color, label=f"dt = {FINE:g}, every tenth row"
        )
        path.set(title=f"case {case}: {label}", xlabel="x", ylabel="y", ylim=(0, 0.85))
        path.legend(fontsize=7, loc="upper right")
        panels[1, 0].plot(t, u[:, 0] + s.R * u[:, 2], **EXACT)
        panels[1, 0].plot(sol.t[rows], slip[rows], ".", ms=4, color=color)
        across_impacts(sheet, b, panels[1, 1:], color)
    panels[1, 0].set(title=r"slip $\gamma_F = u_x + R u_\varphi$, colours as above", xlabel="t", ylabel="m/s")
    for axis, symbol in zip(panels[1, 1:], "qv", strict=True):
        axis.set(title=f"error of {symbol} up to t = {ACROSS:g}, norm (74)", xlabel="dt")
        axis.tick_params(axis="x", which="minor", labelbottom=False)


FINE, ACROSS = 2e-3, 1.1  # a step for pictures; a time after two impacts


def judge_super_ball(sheet: Sheet, b: Any, sol: Any) -> None:
    s, ref = b.system, b.reference
    v, slip = sol.u[:, 1], sol.u[:, 0] + s.R * sol.u[:, 2]
    hits = np.flatnonzero((sol.P_N[1:, 0] > 0) & (v[:-1] < -2 * s.gravity * sol.t[1])) + 1
    sheet.at_least("smallest gap", sol.g_N().min(), -ENFORCED, source=NO_PENETRATION)
    xi_N, xi_F = v[hits] + s.e_N * v[hits - 1], slip[hits] + s.e_F * slip[hits - 1]
    sheet.at_most(f"|xi_N| at {len(hits)} impacts", np.abs(xi_N).max(), ENFORCED, source="Newton's law, (53)")
    if b.case == 2:
        off = np.abs(sol.P_F[hits, 0] + s.mu * sol.P_N[hits, 0] * np.sign(xi_F)).max()
        sheet.at_most("|P_F + mu P_N sign(xi_F)|", off, ENFORCED, source="friction at its limit, (58)")
        sheet.at_least("smallest |xi_F|", np.abs(xi_F).min(), 0.1, source="the impact slides")
        return
    sheet.at_most("|xi_F|", np.abs(xi_F).max(), ENFORCED, source="Newton's law in tangential direction, (58)")
    T = 0.5 * np.einsum("ni,ij,nj->n", sol.u, np.asarray(s.M(0.0, b.q0)), sol.u)
    gained = T[hits] - T[hits - 1]
    if b.case == 1:
        source = "closed form: e_N = e_F = 1 loses nothing"
        sheet.at_most(
            "kinetic energy across an impact, change", np.abs(gained).max(), ENFORCED, source=source
        )
    else:
        sheet.at_most(
            "kinetic energy across an impact, change", gained[:3].max(), -0.1, source="e < 1 loses some"
        )
    for k, after in list(zip(hits, ref["u_after"], strict=False))[:3]:
        for i, symbol in ((0, "u_x"), (2, "u_phi")):
            what = f"{symbol} after the impact at t = {sol.t[k]:.2f}"
            sheet.close(
                what, sol.u[k, i], after[i], atol=ENFORCED, source="closed form; whenever the impact comes"
            )


def across_impacts(sheet: Sheet, b: Any, axes: Any, color: str) -> None:
    """Errors through the first two impacts over step sizes, many close to each other in each octave: where in
    a step an impact falls is chance."""
    first, octaves, places = float(b.reference["impact_times"][0]), 5, 16
    dts = first / (80 * 2 ** np.arange(octaves)[:, None] + (np.arange(places) + 0.5) / places)
    errors = []
    for dt in dts.flat:
        t = grid(dt, ACROSS)
        sol: Any = sheet.run(b, LobattoIIIAB(stages=3, solver=TIGHT), dt=dt, t1=t[-1])
        exact = b.reference["exact"](b, t)
        errors.append([norm_74(dt, (x - true)[1:]) for x, true in zip((sol.q, sol.u), exact, strict=True)])
    found = np.array(errors).reshape(octaves, places, 2)
    for k, (axis, symbol) in enumerate(zip(axes, "qu", strict=True)):
        mean = found[:, :, k].mean(axis=1)
        source = f"first order across impacts; mean of {places} places of the first one in its step"
        sheet.order(f"case {b.case}: e_{symbol}", dts[:, 0], mean, 1, source=source)
        axis.loglog(dts.flat, found[:, :, k].flat, ".", ms=3, color=color)
        if b.case == 3:
            reference_lines(axis, dts[:, 0], {1: 0.5 * float(mean[0])})


# ---- negative controls


@entry(
    "S1",
    "momentum maps",
    "A method that is not variational",
    control="RATTLE: drift of the angular momentum",
    cost=2,
)
def not_variational(sheet: Sheet) -> None:
    """Radau IIA in the place of all methods: the momentum map is lost."""
    momentum_map(sheet.breaking(lambda method: RadauIIA(stages=2)))


@entry("S1", "(51)", "Constraints in the middle of a step only", control="largest gamma of any row", cost=6,
       shows=("knife-edge", "rolling-wheel"))  # fmt: skip
def constrained_in_the_middle(sheet: Sheet) -> None:
    """Moreau's scheme, which knows gamma = 0 at the middle of a step, in the place of all methods."""
    velocity_constraints(sheet.breaking(lambda method: MoreauMidpoint()))


@entry(
    "S1",
    "(58)",
    "The ball does not rebound in tangential direction",
    shows="super-ball",
    control="|xi_F|",
    cost=2,
)
def without_tangential_restitution(sheet: Sheet) -> None:
    """e_F = 0 in the place of what is judged: the impact sticks."""
    super_ball(sheet.breaking(system=lambda ball: dataclasses.replace(ball, e_F=0.0)))
