"""S3 chapters 4 and 5, smooth: stability functions of the tableaus, and orders on the pendulum,
a bilateral constraint.

The pendulum of Example 4.9 has an exact answer: its angle obeys an ordinary differential equation, integrated
here to 1e-13.
"""

from collections.abc import Callable
from functools import cache, partial
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from scipy.integrate import solve_ivp

from .. import benchmarks
from .. import tableaus as tb
from ..methods import SDIRK2, SDIRK3, TRBDF2, TRX2, LobattoIIIAB, LobattoIIIC, RadauIIA, TRTheta
from ..methods.base import Method
from ..plot import COLORS
from .entries import Sheet, entry
from .shared import TIGHT

# what the paper calls so: Newton's default tolerance, some thousand times the round-off
MACHINE_PRECISION = 1e-12
T1 = 0.2048
DTS = np.array([5.12e-2 / 2**k for k in range(7)])
EXACT = "exact pendulum: its angle by DOP853 to 1e-13"
INDEPENDENT = "errors found once with an independent program (numpy), three digits of which the last is 0.5 %"
ROUND_OFF = 5e-14  # some ten times what round-off leaves in the sum (4.56)

# ---- Fig. 4.1


@entry("S3", "4.1", "The projection removes an oscillating constraint rate", shows="pendulum", cost=5.0)
def constraint_rate_with_and_without_projection(sheet: Sheet) -> None:
    """g and g_dot of two-stage Radau IIA without projection, g_dot with it.

    Judged by the amplitudes the paper states, by their order in h, and by the exact pendulum."""
    b = benchmarks.load("pendulum")
    dts = (1e-2, 2.5e-2, 5e-2)
    naive, projected = (
        [sheet.run(b, RadauIIA(stages=2, projected=option, solver=TIGHT), dt=dt) for dt in dts]
        for option in (False, True)
    )
    oscillation = [np.abs(_rate(sol)).max() for sol in naive]
    drift = max(np.abs(_constraint(sol)).max() for sol in (naive[0], projected[0]))
    sheet.at_most(
        "|g| of both, h = 0.01", drift, MACHINE_PRECISION, source="S3 Example 4.9: up to machine precision"
    )
    sheet.at_least(
        "|g_dot| unprojected, h = 0.01", oscillation[0], 10**-3.5, source="S3 Example 4.9: around 1e-3"
    )
    sheet.at_most(
        "|g_dot| unprojected, h = 0.01", oscillation[0], 10**-2.5, source="S3 Example 4.9: around 1e-3"
    )
    sheet.order("|g_dot| unprojected", dts, oscillation, 2, source="S3 (4.57): u has the stage order s = 2")
    rate = np.abs(_rate(projected[0])).max()
    sheet.at_most(
        "|g_dot| projected", rate, MACHINE_PRECISION, source="S3 Example 4.10: up to machine precision"
    )
    for x in "qu":
        error = [np.abs(getattr(sol, x)[-1] - b.reference[f"{x}(2.5)"]).max() for sol in projected]
        sheet.order(f"{x}(2.5) projected", dts, error, 3, source=f"S3 (4.58); {b.reference['source']}")
    sheet.note("The paper does not print its step size; h = 0.01 gives the amplitude it states.")

    ((motion, rates, levels),) = sheet.axes(1, 3, "Pendulum, two-stage Radau IIA, h = 0.01", (12.0, 3.4))
    sol = projected[0]
    for k, x in enumerate("xy"):
        motion.plot(
            sol.t, _swing(b, np.asarray(sol.t))[0][:, k], "k", lw=0.8, label="exact" if k == 0 else None
        )
        motion.plot(sol.t[::8], sol.q[::8, k], ".", ms=5, label=f"{x}, projected")
    motion.set(title="position of the mass", xlabel="t", ylim=(-1.1, 1.7))
    motion.legend(fontsize=8, loc="upper center", ncols=3)
    for axis, f in ((rates, lambda x: x), (levels, lambda x: np.maximum(np.abs(x), 1e-17))):
        axis.plot(sol.t, f(_rate(naive[0])), lw=1, label=r"$\dot g$ unprojected")
        axis.plot(sol.t, f(_rate(sol)), lw=1, label=r"$\dot g$ projected")
        axis.plot(sol.t, f(_constraint(naive[0])), lw=1, ls="--", label="g unprojected")
        axis.set(xlabel="t")
    rates.set(title=r"$g = x^2 + y^2 - L^2$ and its rate")
    rates.ticklabel_format(axis="y", scilimits=(0, 0))
    levels.set(title="the same, absolute values", yscale="log", ylim=(1e-18, 1e-1))
    levels.legend(fontsize=8, loc="center right")


def _constraint(sol: Any) -> np.ndarray:
    return (sol.q**2).sum(axis=1) - 1


def _rate(sol: Any) -> np.ndarray:
    return 2 * (sol.q * sol.u).sum(axis=1)


def _swing(b: benchmarks.Benchmark, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and u of the exact pendulum: m L phi_ddot is the force along the circle."""
    m, L, c, g = (float(getattr(b.system, name)) for name in ("m", "L", "c", "gravity"))

    def rate(_, state):
        phi, omega = state
        x, y = L * np.cos(phi), L * np.sin(phi)
        return omega, (-np.sin(phi) * c * (2 * L - x) + np.cos(phi) * (c * (2 * L - y) - m * g)) / (m * L)

    phi, omega = solve_ivp(rate, (0, t[-1]), (0.0, 0.0), method="DOP853", rtol=1e-13, atol=1e-15, t_eval=t).y
    return L * np.stack([np.cos(phi), np.sin(phi)], 1), L * omega[:, None] * np.stack(
        [-np.sin(phi), np.cos(phi)], 1
    )


# ---- Fig. 4.2

ALPHA = 1 - np.sqrt(2) / 2
BETA = float(np.sort(Polynomial([-1 / 6, 3 / 2, -3, 1]).roots().real)[1])  # the root in (1/6, 1/2)


def _pade(k: int, j: int) -> tuple[Any, Any]:
    """Numerator and denominator of the (k, j) Pade approximant of exp."""

    def side(k, j, sign):
        whole = factorial(j + k)
        return [
            sign**i * factorial(k) * factorial(j + k - i) / (factorial(k - i) * factorial(i) * whole)
            for i in range(k + 1)
        ]

    return Polynomial(side(k, j, 1)), Polynomial(side(j, k, -1))


def _tr_theta(theta: float) -> tuple[Any, Any]:
    """(4.47)."""
    return Polynomial([4, 4 * (1 - theta), theta**2 - 4 * theta + 2]), Polynomial([2, -theta]) ** 2


def _theta(rho: float) -> float:
    """(4.55), the smaller root; its limit for rho = 1."""
    return (2 - np.sqrt(2 * (1 + rho))) / (1 - rho) if rho < 1 else 0.5


class Stability(NamedTuple):
    tableau: tb.ButcherTableau
    closed_form: tuple[Any, Any]
    at_infinity: float
    why: str


def _stability_functions() -> list[Stability]:
    radau = [
        Stability(tb.radau_iia(s), _pade(s - 1, s), 0.0, f"({s - 1}, {s}) Pade approximant")
        for s in (1, 2, 3)
    ]
    lobatto = [
        Stability(tb.lobatto_iiic(s), _pade(s - 2, s), 0.0, f"({s - 2}, {s}) Pade approximant")
        for s in (2, 3)
    ]
    two = Polynomial([1, 1 - 2 * ALPHA]), Polynomial([1, -ALPHA]) ** 2
    three = Polynomial([1, 1 - 3 * BETA, 1 / 2 - 3 * BETA + 3 * BETA**2]), Polynomial([1, -BETA]) ** 3
    sdirk = [Stability(t, f, 0.0, "closed form") for t, f in ((tb.sdirk2(), two), (tb.sdirk3(), three))]
    tr = [(tb.tr_bdf2(), 0.0), *((tb.tr_theta(rho), rho) for rho in (0.5, 0.9)), (tb.trx2(), 1.0)]
    return [
        *radau,
        *lobatto,
        *sdirk,
        *(Stability(t, _tr_theta(_theta(rho)), rho, "S3 (4.47)") for t, rho in tr),
    ]


# family: colour, stages: marker. The legend of Figs. 4.2 and 4.3.
STYLES = {
    "Radau IIA, s = 1": (0, "o"), "Radau IIA, s = 2": (0, "s"), "Radau IIA, s = 3": (0, "d"),
    "Lobatto IIIC, s = 2": (1, "s"), "Lobatto IIIC, s = 3": (1, "d"), "SDIRK2": (2, "s"), "SDIRK3": (2, "d"),
    "TR-BDF2": (4, "^"), "TR-theta(0.5)": (4, "<"), "TR-theta(0.9)": (4, ">"), "TRX2": (4, "v"),
}  # fmt: skip


def _style(name: str) -> dict[str, Any]:
    color, marker = STYLES[name]
    return {"color": COLORS[color], "marker": marker, "ms": 4, "lw": 1, "label": name}


@entry("S3", "4.2", "Stability functions of the stiffly accurate methods", cost=0.5)
def stability_functions(sheet: Sheet) -> None:
    """|R(z)| of all methods: L-stable ones vanish at infinity, TR-theta keeps the rho_inf that was asked for.

    Judged against closed forms: Pade approximants of exp, and (4.47)."""
    frequency = np.logspace(-1, 4, 201)
    rays = (
        (1j * frequency, r"$|R(i\omega)|$, imaginary axis", r"$\omega$"),
        (-frequency, "$|R(-x)|$, real axis", "x"),
    )
    ((*panels,),) = sheet.axes(1, 2, "Lines: from the tableaus. Marks: closed forms.", (10.5, 3.8))
    largest = 0.0
    for tableau, (p, q), _, why in _stability_functions():
        worst = 0.0
        for axis, (z, title, label) in zip(panels, rays, strict=True):
            R = np.array([tableau.stability_function(x) for x in z])
            worst, largest = max(worst, np.abs(R - p(z) / q(z)).max()), max(largest, np.abs(R).max())
            style = _style(tableau.name)
            axis.semilogx(frequency, np.abs(R), **(style | {"marker": "", "label": None}))
            axis.semilogx(frequency[::20], np.abs(p(z) / q(z))[::20], **(style | {"ls": "", "label": None}))
            axis.plot([], [], **style)  # line and mark in the legend
            axis.set(title=title, xlabel=label)
        sheet.at_most(
            f"R of {tableau.name}: deviation on both axes", worst, 1e-12, source=f"{why}, to round-off"
        )
    _legend(panels[0])
    sheet.at_most("largest |R| of all methods", largest, 1 + 1e-12, source="S3 section 4.4: all are A-stable")
    for tableau, _, rho, _ in _stability_functions():
        source = "S3 (4.55)" if tableau.explicit_first_stage else "S3 Proposition 4.6: L-stable"
        sheet.close(
            f"R(infinity) of {tableau.name}", tableau.stability_at_infinity(), rho, atol=1e-10, source=source
        )
    sheet.note(
        "Erratum: below (4.55) TRX2 is said to be the member theta = 1/4; it is theta = 1/2, as in (4.48)."
    )
    sheet.note("SDIRK2 and TR-BDF2 have the same stability function: 2 alpha = theta = 2 - sqrt 2.")


def _legend(axis: Any) -> None:
    axis.figure.legend(*axis.get_legend_handles_labels(), fontsize=8, loc="outside right center")


# ---- Figs. 4.3 and 5.2


class Convergent(NamedTuple):
    """A method, its orders in (q, u), and the errors in q and u of the projected method at the largest and a
    small step.
    """

    make: Callable[..., Method]
    unprojected: tuple[int, int]
    projected: tuple[int, int]
    e_q: tuple[float, ...]
    e_u: tuple[float, ...]
    why: str


EULER = "backward Euler: first order"
RADAU = "S3 (4.57), (4.58)"
LOBATTO = "order 2s - 2 by B(2s - 2); unprojected u has the stage order s - 1"
REDUCED = "S3 section 4.4: order reduction on index 3; to 1, as an independent program has it"
SECOND = "S3 (4.45): second order"
METHODS = {
    "Radau IIA, s = 1": Convergent(
        partial(RadauIIA, stages=1), (1, 1), (1, 1), (5.97e-3, 7.49e-5), (1.00e-2, 1.07e-4), EULER),
    "Radau IIA, s = 2": Convergent(
        partial(RadauIIA, stages=2), (3, 2), (3, 3), (2.29e-6, 6.12e-12), (9.13e-6, 2.51e-11), RADAU),
    "Radau IIA, s = 3": Convergent(partial(RadauIIA, stages=3), (5, 3), (5, 5), (7.71e-9,), (1.20e-8,),
                                   RADAU),
    "Lobatto IIIC, s = 2": Convergent(
        partial(LobattoIIIC, stages=2), (2, 1), (2, 2), (5.24e-5, 7.04e-9), (2.93e-4, 5.42e-8), LOBATTO),
    "Lobatto IIIC, s = 3": Convergent(
        partial(LobattoIIIC, stages=3), (4, 2), (4, 4), (1.27e-7,), (2.92e-7,), LOBATTO),
    "SDIRK2": Convergent(SDIRK2, (1, 1), (1, 1), (2.26e-5, 8.37e-8), (3.89e-4, 2.47e-6), REDUCED),
    "SDIRK3": Convergent(SDIRK3, (1, 1), (1, 1), (1.53e-5, 9.47e-8), (3.64e-4, 2.83e-6), REDUCED),
    "TR-BDF2": Convergent(TRBDF2, (2, 2), (2, 2), (1.52e-5, 2.52e-9), (2.09e-4, 3.39e-8), SECOND),
    "TR-theta(0.9)": Convergent(
        partial(TRTheta, rho_inf=0.9), (2, 2), (2, 2), (9.36e-6, 1.19e-9), (1.42e-4, 1.38e-8), SECOND),
    "TRX2": Convergent(TRX2, (2, 2), (2, 2), (8.94e-6, 1.35e-9), (1.41e-4, 2.42e-8), SECOND),
}  # fmt: skip


@cache
def _exact(n: int) -> tuple[np.ndarray, np.ndarray]:
    return _swing(benchmarks.load("pendulum"), np.linspace(0, T1, n + 1))


def _errors(sheet: Sheet, method: Method, dts: np.ndarray) -> np.ndarray:
    """(4.56) of q and u against the exact pendulum, a row per step size."""
    b = benchmarks.load("pendulum")
    rows = []
    for dt in dts:
        sol = sheet.run(b, method, t1=T1, dt=dt)
        rows.append(
            [dt * np.abs(a - x).sum() for a, x in zip((sol.q, sol.u), _exact(round(T1 / dt)), strict=True)]
        )
    return np.array(rows)


def _order(sheet: Sheet, what: str, dts: np.ndarray, errors: np.ndarray, expected: int, source: str) -> None:
    """Over the three smallest steps whose error is above round-off."""
    use = np.flatnonzero(errors > ROUND_OFF)[-3:]
    sheet.order(what, list(dts[use]), list(errors[use]), expected, source=source)


def _same_errors(
    sheet: Sheet, what: str, errors: np.ndarray, expected: tuple[tuple[float, ...], ...]
) -> None:
    """Errors, a row per step size, beside those in q and in u that another program found;
    round-off is left out there.
    """
    pairs = [
        (e, x)
        for column, values in zip(errors.T, expected, strict=True)
        for e, x in zip(column, values, strict=False)
    ]
    worst = max(abs(e / x - 1) for e, x in pairs)
    sheet.at_most(f"{what}: {len(pairs)} errors, worst relative deviation", worst, 5e-3, source=INDEPENDENT)


def _guide(axis: Any, dts: np.ndarray, errors: list[np.ndarray], p: int) -> None:
    """A slope to compare with, below the lowest of the curves."""
    lowest = min(errors, key=lambda e: e[0])
    k = np.flatnonzero(lowest > ROUND_OFF)[-1]
    e = 0.3 * lowest[k] * (dts[: k + 1] / dts[k]) ** p
    axis.loglog(dts[: k + 1], e, color="0.6", lw=0.8, ls=":")
    axis.text(dts[k], e[k], f"$h^{p}$", fontsize=8, color="0.4", ha="center", va="top")


@entry("S3", "4.3", "Orders on the pendulum, without and with projection", shows="pendulum", cost=50.0)
def orders_without_and_with_projection(sheet: Sheet) -> None:
    """Errors (4.56) of ten methods over seven step sizes: without projection u drops to the stage order.

    Judged by the orders of (4.57) and (4.58) against the exact pendulum, and by errors of an independent
    implementation."""
    panels = sheet.axes(2, 2, "Pendulum, t = 0 to 0.2048: errors in the norm (4.56)", (10.5, 7.6))
    by_order: dict[tuple[int, int, int], list[np.ndarray]] = {}
    for name in ("Radau IIA, s = 2", "TR-BDF2") if sheet.quick else METHODS:
        method = METHODS[name]
        kinds = (False, "unprojected", method.unprojected), (True, "projected", method.projected)
        for column, (option, kind, orders) in enumerate(kinds):
            errors = _errors(sheet, method.make(projected=option, solver=TIGHT), DTS)
            for row, x in enumerate("qu"):
                panels[row, column].loglog(DTS, errors[:, row], **_style(name))
                _order(
                    sheet, f"{name}, {kind}: {x}", DTS, errors[:, row], orders[row], f"{method.why}; {EXACT}"
                )
                by_order.setdefault((row, column, orders[row]), []).append(errors[:, row])
                panels[row, column].set(title=f"{kind}: error in {x}", xlabel="h", ylim=(1e-16, 1e-1))
        _same_errors(sheet, f"{name}, projected", errors[[0, -1]], (method.e_q, method.e_u))
    for (row, column, p), curves in by_order.items():
        _guide(panels[row, column], DTS, curves, p)
    _legend(panels[0, 0])


PARTITIONED = {
    2: ((1.73e-5, 1.09e-8), (1.31e-4, 9.44e-8)),
    3: ((1.21e-7, 8.17e-14), (2.43e-7, 1.64e-13)),
    4: ((5.96e-12,), (1.34e-10,)),
}  # errors in q and in u at h = 5.12e-2 and 1.6e-3


@entry("S3", "5.2", "Orders of Lobatto IIIA-IIIB on the pendulum", shows="pendulum", cost=9.0)
def orders_of_the_partitioned_methods(sheet: Sheet) -> None:
    """Errors (4.56) of two to four stages; the constraint holds on position and velocity level without a
    projection.

    Judged by the orders (5.58) against the exact pendulum, and by errors of an independent implementation."""
    b = benchmarks.load("pendulum")
    ((*panels,),) = sheet.axes(1, 2, "Pendulum, Lobatto IIIA-IIIB: errors in the norm (4.56)", (10.0, 4.0))
    for s in (2, 3) if sheet.quick else PARTITIONED:
        method = LobattoIIIAB(stages=s, solver=TIGHT)
        # With four stages round-off is met at once: sizes between the largest ones make the three that an
        # order needs.
        dts = T1 / np.array([4, 6, 8, 12, 16, 32]) if s == 4 else DTS
        errors = _errors(sheet, method, dts)
        for k, (axis, x) in enumerate(zip(panels, "qu", strict=True)):
            _order(sheet, f"s = {s}: {x}", dts, errors[:, k], 2 * s - 2, f"S3 (5.58); {EXACT}")
            axis.loglog(
                dts, errors[:, k], "osd"[s - 2] + "-", ms=4, lw=1, label=f"s = {s}, order {2 * s - 2}"
            )
            _guide(axis, dts, [errors[:, k]], 2 * s - 2)
            axis.set(title=f"error in {x}", xlabel="h", ylim=(1e-16, 1e-2))
            axis.legend(fontsize=8, loc="upper left", ncols=3)
        _same_errors(sheet, f"s = {s}", errors[[0, -2]], PARTITIONED[s])  # h = 5.12e-2 and 1.6e-3
        sol = sheet.run(b, method, t1=T1, dt=DTS[0])
        level = max(np.abs(_constraint(sol)).max(), np.abs(_rate(sol)).max())
        sheet.at_most(
            f"s = {s}: |g| and |g_dot|",
            level,
            MACHINE_PRECISION,
            source="S3 Example 5.3: up to machine precision",
        )
