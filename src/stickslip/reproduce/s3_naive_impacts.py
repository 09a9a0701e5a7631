"""S3 Examples 4.12 and 5.2: what a Runge-Kutta method without impact law makes of an impact,
and which laws can be solved.

One step of a ball on a line is a linear complementarity problem, with contact at some stages and not at
others. The paper solves it by hand, case by case; `naive_step` solves it by enumeration. Both judge the
simulations.
"""

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .. import benchmarks
from .. import tableaus as tb
from ..benchmarks.bouncing_ball_1d import Ball1D, LcpStep, naive_cases, naive_step
from ..methods import RadauIIA
from ..methods.base import Method
from ..plot import COLORS
from ..solution import Solution
from .entries import Sheet, entry

# the problems are linear: answers agree up to the solver's tolerance of 1e-12, times numbers of order 100
SOLVED = 1e-9
H = 3.0  # step size of Figs. 4.6 and 4.7
CASES = dict(zip(("1.1", "1.3", "1.4", "3.4", "3.3", "3.1"), COLORS, strict=False))
ENUMERATED = "complementarity problem (4.78), enumerated"
CONTACT_ENDS = lambda h: h**2 / 2 + h  # y_n^*, (4.95)


def _fall(sheet: Sheet, method: Method, y: float, h: float, steps: int = 2, e_N: float = 0.0) -> Solution:
    """From height y with u_n = -1; m = g = 1."""
    b = benchmarks.load("bouncing-ball-1d")
    b = dataclasses.replace(b, system=Ball1D(e_N=e_N), q0=jnp.array([y]))
    return sheet.run(b, method, t1=steps * h, dt=h)


def _states(sol: Solution) -> np.ndarray:
    """(y, u, percussion) of the ends of the steps."""
    return np.column_stack([sol.q, sol.u, sol.P_N])[1:]


def _enumerated(y: float, h: float) -> tuple[str, list[LcpStep]]:
    """Label and both steps of the two-stage method; every problem must have one solution."""
    (first,) = naive_step(tb.radau_iia(2), y, -1.0, h)
    (second,) = naive_step(tb.radau_iia(2), first.y, first.u, h)
    return f"{first.label}.{second.label}", [first, second]


def _by_hand(label: str, y: float, h: float) -> np.ndarray:
    """(y, u, percussion) after each of two steps: w_2, u_n+1 = u_n - h + z_2 and z_2 of (4.91),
    (4.93), (4.97)-(4.102).
    """
    z1 = {"1": 2 * y / h + h + 1, "3": (4 * h + 2 * h**2 - 4 * y) / h}[label[0]]
    u1 = -1 - h + z1
    z2, w2 = {
        "1.1": ((h**2 - 2 * y) / h, 0.0), "1.3": ((2 * h**2 - 8 * y) / h, 0.0),
        "1.4": (0.0, (4 * y - h**2) / 2),
        "3.1": ((4 * y - 3 * h) / h, 0.0), "3.3": ((16 * y - 12 * h - 2 * h**2) / h, 0.0),
        "3.4": (0.0, (h**2 + 6 * h - 8 * y) / 2),
    }[label]  # fmt: skip
    return np.array([[0.0, u1, z1], [w2, u1 - h + z2, z2]])


# ---- Fig. 4.4


@entry("S3", "4.4", "Backward Euler is inelastic over two steps", shows="bouncing-ball-1d", cost=3.0)
def starts_of_the_one_stage_method(sheet: Sheet) -> None:
    """Which starts (h, y_n) make contact: below h + h^2, and then the ball rests after two steps.

    Judged by the solutions (4.85)-(4.88) in closed form."""
    method = RadauIIA(stages=1, projected=False)
    heights = [
        (h, ratio * (h + h**2))
        for h in np.linspace(0.2, 3.0, 8)
        for ratio in (0.1, 0.35, 0.6, 0.85, 0.98, 1.02, 1.3)
    ]
    runs = [(h, y, *_states(_fall(sheet, method, y, h))) for h, y in heights if y < 13]
    touched, missed = [run for run in runs if run[2][2] > 0], [run for run in runs if run[2][2] == 0]
    right = sum(y <= h + h**2 for h, y, *_ in touched) + sum(y > h + h**2 for h, y, *_ in missed)
    sheet.holds(
        "contact in the first step exactly below y_n = h + h^2", right == len(runs),
        expected=f"{len(runs)} starts", got=f"{right} starts", source="S3 (4.85), (4.86)",
    )  # fmt: skip
    after_one = [np.abs(first - (0.0, -y / h, 1 + h - y / h)).max() for h, y, first, _ in touched]
    after_two = [np.abs(second - (0.0, 0.0, h + y / h)).max() for h, y, _, second in touched]
    free = [np.abs(first - (y - h - h**2, -h - 1, 0.0)).max() for h, y, first, _ in missed]
    sheet.at_most(
        "y, u and percussion of the first step: deviation", max(after_one), SOLVED, source="S3 (4.85)"
    )
    sheet.at_most("at rest after the second step: deviation", max(after_two), SOLVED, source="S3 (4.88)")
    sheet.at_most("without contact: deviation", max(free), SOLVED, source="S3 (4.86)")
    sheet.note("(4.88) and (4.89) print u_n+1 for the velocity after the second step, u_n+2.")

    ((axis,),) = sheet.axes(1, 1, "One-stage Radau IIA, two steps without projection", (6.4, 4.0))
    h = np.linspace(0, 3.2, 100)
    axis.fill_between(h, h + h**2, color=CASES["1.1"], alpha=0.15, lw=0)
    axis.plot(h, h + h**2, "k", lw=1, label="$y_n = h + h^2$")
    axis.plot(*np.array([run[:2] for run in touched]).T, "o", ms=4, label="simulated: contact, then rest")
    axis.plot(*np.array([run[:2] for run in missed]).T, "x", color="0.4", ms=4, label="simulated: no contact")
    axis.text(2.4, 5.2, "case 1.1", fontsize=9, ha="center")
    axis.text(0.9, 6.0, "case 2: no contact", fontsize=9)
    axis.set(xlabel="h", ylabel="$y_n$", xlim=(0, 3.2), ylim=(0, 13))
    axis.legend(fontsize=8, loc="upper left")


# ---- Fig. 4.5


@entry("S3", "4.5", "Six cases of the naive two-stage method", shows="bouncing-ball-1d", cost=4.0)
def starts_of_the_two_stage_method(sheet: Sheet) -> None:
    """Which starts (h, y_n) lead to which contacts in two steps: four cases for any h, two more for h < 6.

    Judged by enumerating the complementarity problem of each step, and by its solutions in closed form."""
    method = RadauIIA(stages=2, projected=False)
    # Beside the boundaries, where two cases meet.
    grid = [(h, y * CONTACT_ENDS(h)) for h in np.linspace(0.4, 7.7, 12) for y in (np.arange(14) + 0.47) / 14]
    labels = [_enumerated(y, h)[0] for h, y in grid]
    inside = sum(
        naive_cases(h)[label][0] <= y <= naive_cases(h)[label][1]
        for label, (h, y) in zip(labels, grid, strict=True)
    )
    sheet.holds(
        "enumeration: cases of all starts", inside == len(grid), expected=f"{len(grid)} in their interval",
        got=f"{inside}", source=f"S3 (4.97)-(4.102), corrected; {ENUMERATED}",
    )  # fmt: skip
    worst = max(
        np.abs(_states(_fall(sheet, method, y, h)) - _by_hand(label, y, h)).max()
        for label, (h, y) in zip(labels, grid, strict=True)
    )
    sheet.at_most(
        "y, u and percussions of both steps: deviation",
        worst,
        SOLVED,
        source="S3 (4.91)-(4.102), closed form",
    )
    sheet.at_most(
        "intervals: parts up to y_n^* in no case or in two",
        max(_untiled(h) for h in np.linspace(0.1, 8, 80)), 1e-12, source="S3 (4.95), with (4.99) corrected",
    )  # fmt: skip
    sheet.note(
        "Erratum: (4.99) prints case 1.4 from max(h^2/4, h^2/6 + h/2) on, which leaves nothing of it; it "
        "starts at h^2/4. "
        "In (4.94) the components of w are (18 y_n - h^2 - 6 h)/18 and (2 y_n - h^2 - 2 h)/2."
    )
    ((axis,),) = sheet.axes(1, 1, "Two-stage Radau IIA, two steps without projection", (7.4, 4.4))
    h = np.linspace(0.01, 8, 400)
    for label, color in CASES.items():
        low, high = np.array([naive_cases(x)[label] for x in h]).T / CONTACT_ENDS(h)
        axis.fill_between(h, low, high, where=high >= low, color=color, alpha=0.25, lw=0)
        points = [
            (x, y / CONTACT_ENDS(x)) for found, (x, y) in zip(labels, grid, strict=True) if found == label
        ]
        axis.plot(*np.array(points).T, "o", color=color, ms=3.5, label=f"case {label}")
    axis.set(
        xlabel="h",
        ylabel="$y_n / y_n^*$",
        xlim=(0, 8),
        ylim=(0, 1),
        title="areas: intervals; marks: simulated",
    )
    axis.figure.legend(*axis.get_legend_handles_labels(), fontsize=8, loc="outside right center")


def _untiled(h: float) -> float:
    """How much the intervals that are not empty leave out of [0, y_n^*], or cover twice,
    in units of y_n^*.
    """
    edges = sorted((low, high) for low, high in naive_cases(h).values() if low < high)
    between = [abs(b[0] - a[1]) for a, b in itertools.pairwise(edges)]
    return max(edges[0][0], abs(edges[-1][1] - CONTACT_ENDS(h)), *between) / CONTACT_ENDS(h)


# ---- Figs. 4.6 and 4.7


@entry(
    "S3",
    "4.6",
    "The naive two-stage method realises arbitrary impact laws",
    shows="bouncing-ball-1d",
    cost=5.0,
)
def state_after_two_steps(sheet: Sheet) -> None:
    """y and u after two steps over the start height: at rest, sinking or in the air, by chance; projected:
    u+ = -e u-.

    Judged by the closed forms and the interval ends in the text, and by Newton's impact law."""
    spacing = 0.05
    heights = np.arange(0.02, 7.6, spacing)  # beside the ends of the intervals
    naive = np.array([_states(_fall(sheet, RadauIIA(stages=2, projected=False), y, H)) for y in heights])
    contact = heights < CONTACT_ENDS(H)
    labels = [_enumerated(y, H)[0] for y in heights]
    by_hand = np.array(
        [_by_hand(label, y, H) for label, y in zip(labels, heights, strict=True) if label in CASES]
    )
    sheet.at_most(
        "y, u and percussions: deviation",
        np.abs(naive[contact] - by_hand).max(),
        SOLVED,
        source="S3 (4.91)-(4.102)",
    )
    _ends_of_intervals(sheet, heights, naive, spacing)
    y2, u2 = naive[:, 1, 0], naive[:, 1, 1]
    sinking = contact & (y2 < SOLVED) & (np.abs(u2) > SOLVED)
    sheet.at_most(
        "u_n+2 where the ball stays on the ground and moves",
        u2[sinking].max(),
        0.0,
        source="S3: u_n+2 is negative",
    )

    ((left, right),) = sheet.axes(1, 2, "Two-stage Radau IIA, h = 3, $u_n = -1$", (10.5, 4.0))
    for label, color in CASES.items():
        y = np.linspace(*naive_cases(H)[label], 50)
        exact = np.array([_by_hand(label, x, H)[1] for x in y])
        mine = np.array([found == label for found in labels])
        left.axvspan(y[0], y[-1], color=color, alpha=0.1, lw=0)
        left.plot(y, exact[:, 0], "-", color=color, lw=1)
        left.plot(y, exact[:, 1], "--", color=color, lw=1)
        left.plot(heights[mine][::2], y2[mine][::2], ".", color=color, ms=5, label=f"case {label}")
        left.plot(heights[mine][::2], u2[mine][::2], "x", color=color, ms=4)
    left.set(title="naive: $y_{n+2}$ (—, dots) and $u_{n+2}$ (- -, crosses)", xlabel="$y_n$")
    left.legend(fontsize=7, ncols=2, loc="upper right")
    _impact_law_of_the_projection(sheet, right, heights[contact][::6])


def _ends_of_intervals(sheet: Sheet, heights: np.ndarray, naive: np.ndarray, spacing: float) -> None:
    """Where the simulated ball changes its behaviour, beside the intervals in the text."""
    y2, u2, P1 = naive[:, 1, 0], naive[:, 1, 1], naive[:, 0, 2]
    hit, flies, moves = P1 > SOLVED, y2 > SOLVED, np.abs(u2) > SOLVED
    ends = (
        ("rests (1.1) up to y_n", heights[hit & moves].min(), 3 / 2),
        ("flies (1.4) from y_n", heights[hit & flies].min(), 9 / 4),
        ("highest (1.4 to 3.4) at y_n", heights[hit][np.argmax(y2[hit])], H**2 / 6 + H / 2),
        ("flies (3.4) up to y_n", heights[hit & flies].max(), 27 / 8),
        ("rests (3.1) from y_n", heights[hit & moves].max(), 90 / 24),
        ("no contact from y_n", heights[~hit].min(), 15 / 2),
    )
    for what, got, expected in ends:
        sheet.close(what, got, expected, atol=spacing, source="S3 below (4.102); heights 0.05 apart")


def _impact_law_of_the_projection(sheet: Sheet, axis: Any, heights: np.ndarray) -> None:
    for e_N, color in zip((0.0, 0.5, 1.0), COLORS, strict=False):
        ends = np.array(
            [_states(_fall(sheet, RadauIIA(stages=2), y, H, steps=1, e_N=e_N))[0] for y in heights]
        )
        axis.plot(heights, ends[:, 1], "o", color=color, ms=3.5, label=f"e = {e_N:g}")
        axis.axhline(e_N, color=color, lw=0.8)
        worst = np.abs(ends[:, :2] - (0.0, e_N)).max()
        what = f"projected, e = {e_N:g}: y_n+1 = 0 and u_n+1 = -e u_n, deviation"
        sheet.at_most(what, worst, SOLVED, source="Newton's impact law; S3 section 4.6")
    axis.set(title="projected: $u_{n+1}$ (marks) and $-e\\,u_n$ (lines)", xlabel="$y_n$", ylim=(-0.2, 1.5))
    axis.legend(fontsize=8, ncols=3, loc="upper right")


@entry("S3", "4.7", "Six impacts of the naive two-stage method in time", shows="bouncing-ball-1d", cost=2.0)
def two_steps_in_time(sheet: Sheet) -> None:
    """Position and velocity over two steps from one height of each case,
    with stages and collocation polynomials.

    Judged by the closed forms of the six cases."""
    panels = sheet.axes(
        2,
        2,
        "Two-stage Radau IIA, h = 3, $u_n = -1$: dots steps, crosses stages, dotted inelastic ball",
        (10.5, 6.4),
    )
    equation = dict(zip(("1.1", "1.3", "1.4", "3.1", "3.3", "3.4"), range(97, 103), strict=True))
    below, slope = [], []
    for label, color in CASES.items():
        y = float(np.mean(naive_cases(H)[label]))
        sol = _fall(sheet, RadauIIA(stages=2, projected=False), y, H)
        exact = _by_hand(label, y, H)[1]
        for k, x in enumerate("yu"):
            what = f"case {label}, y_n = {y:g}: {x}_n+2"
            sheet.close(what, _states(sol)[1, k], exact[k], atol=SOLVED, source=f"S3 (4.{equation[label]})")
        column = panels[:, 0 if label[0] == "1" else 1]
        t = np.linspace(0, 2 * H, 200)
        # falls, and stays on the ground
        column[0].plot(t, np.maximum(y - t - t**2 / 2, 0), ":", color=color, lw=1)
        column[0].plot(sol.t, sol.q[:, 0], "o", color=color, ms=4, label=f"case {label}, $y_n$ = {y:g}")
        column[1].plot(sol.t, sol.u[:, 0], "o", color=color, ms=4)
        for n, (step, yn, un) in enumerate(zip(_enumerated(y, H)[1], sol.q[:, 0], sol.u[:, 0], strict=False)):
            stages = Stages.of(step, yn, un)
            below.append(step.w.min())
            slope.append(np.abs(stages.y.deriv()(stages.c) / H - stages.u(stages.c)).max())
            _draw_step(column, stages, n * H, color)
    sheet.at_least("enumeration: lowest stage", min(below), -SOLVED, source="S3 (4.76c): Y >= 0 at stages")
    sheet.at_most(
        "enumeration: slope of y beside U", max(slope), SOLVED, source="collocation: y'(t_n + c_i h) = U_i"
    )
    for column, cases in enumerate(("1.1, 1.3, 1.4", "3.4, 3.3, 3.1")):
        panels[0, column].set(title=f"cases {cases}", ylim=(-1.2, 6.2), ylabel="y" if column == 0 else "")
        panels[0, column].legend(fontsize=8, loc="upper right")
        panels[1, column].set(xlabel="t", ylim=(-2.6, 2.6), ylabel="u" if column == 0 else "")
        for axis in panels[:, column]:
            axis.axhline(0.0, color="k", lw=0.6)


class Stages(NamedTuple):
    """Stages of a step and the polynomials through its start and them, over t_n + tau h."""

    c: np.ndarray
    y: Any
    u: Any

    @classmethod
    def of(cls, step: LcpStep, y: float, u: float) -> "Stages":
        c = tb.radau_iia(2).c
        U = u - H * c + step.z  # U = u_n + A dU, dU = -h + A^-1 z and A 1 = c
        through = lambda start, rest: np.polynomial.Polynomial.fit([0.0, *c], [start, *rest], 2)
        return cls(c, through(y, step.w), through(u, U))


def _draw_step(axes: Any, stages: Stages, t: float, color: str) -> None:
    tau = np.linspace(0, 1, 40)
    for axis, x in zip(axes, (stages.y, stages.u), strict=True):
        axis.plot(t + tau * H, x(tau), color=color, lw=1)
        axis.plot(t + stages.c * H, x(stages.c), "x", color=color, ms=6)


# ---- P-matrices


class Row(NamedTuple):
    name: str
    matrices: dict[int, np.ndarray]  # by number of stages
    expected: dict[int, str]  # "not P" may be P_0 or neither
    source: str


def _solvability() -> list[Row]:
    """Matrices of the stage problem of the ball with h = m = 1, and what the paper says of them."""
    S = range(2, 6)
    P, P_0, not_P = (dict.fromkeys(range(1, 6), word) for word in ("P", "P_0", "not P"))
    radau = {s: tb.radau_iia(s).A for s in range(1, 6)}
    tr = {"TR-BDF2": tb.tr_bdf2(), "TR-theta(0.9)": tb.tr_theta(0.9), "TRX2": tb.trx2()}
    partitioned = lambda **law: {s: _partitioned(s, **law) for s in S}
    return [
        Row("Radau IIA", radau, P, "S3 below (4.79)"),
        Row("Lobatto IIIC", {s: tb.lobatto_iiic(s).A for s in S}, P_0 | {2: "P"},
            "erratum: a minor is 0 for s >= 3"),
        Row("SDIRK", {2: tb.sdirk2().A, 3: tb.sdirk3().A}, P, "S3 below (4.79); triangular"),
        *(Row(f"{name}, reduced", {3: t.A[1:, 1:]}, P, "S3 (4.83); triangular") for name, t in tr.items()),
        Row(
            "Radau IIA, law on measures", {s: radau[s] @ radau[s] for s in S}, not_P | {2: "P_0"},
            "S3 (4.65): not unique; Example 2.20 for s = 2",
        ),
        Row("IIIA-IIIB, shifted", partitioned(), P, "S3 (5.54)"),
        Row("IIIA-IIIB, not shifted", partitioned(shifted=False), not_P, "S3 (5.55)"),
        Row("IIIA-IIIB, integrated, shifted", partitioned(integrated=True), P, "S3 (5.56)"),
        Row(
            "IIIA-IIIB, integrated, not shifted", partitioned(shifted=False, integrated=True),
            not_P | {2: "P"}, "S3 below (5.56): for s = 2 alone",
        ),
    ]  # fmt: skip


def _partitioned(s: int, shifted: bool = True, integrated: bool = False) -> np.ndarray:
    """M = B A^-1 of (5.49): rows Y_2..Y_s and xi_N,
    unknowns dPi (or its integral) of stages 1..s-1 or 2..s, and Dpi.
    """
    A, A_hat, b = tb.lobatto_iiia(s).A, tb.lobatto_iiib(s).A, tb.lobatto_iiib(s).b
    stages = slice(0, s - 1) if shifted else slice(1, s)
    law = (A_hat if integrated else np.eye(s))[stages]
    return np.vstack([A[1:] @ A_hat, b]) @ np.linalg.inv(np.vstack([law, b]))


def _minors(M: np.ndarray) -> list[float]:
    sets = (list(i) for k in range(1, len(M) + 1) for i in itertools.combinations(range(len(M)), k))
    return [float(np.linalg.det(M[np.ix_(i, i)])) for i in sets]


def _class(M: np.ndarray) -> str:
    return "P" if tb.is_P_matrix(M) else "P_0" if tb.is_P_matrix(M, strictly=False) else "neither"


def _solutions(M: np.ndarray, q: np.ndarray) -> int:
    """How many z solve 0 <= M z + q, z >= 0, z^T (M z + q) = 0, by trying all sets of contacts."""
    found = 0
    for contact in itertools.product((True, False), repeat=len(q)):
        closed, z = np.array(contact), np.zeros(len(q))
        z[closed] = np.linalg.solve(M[np.ix_(closed, closed)], -q[closed])
        found += bool((z >= 0).all() and ((M @ z + q)[~closed] >= 0).all())
    return found


@entry("S3", "P-matrices", "Which stage problems have one solution", cost=0.5)
def which_matrices_are_P(sheet: Sheet) -> None:
    """The statements of Examples 2.20, 4.12 and 5.2: P-matrices for the proposed laws,
    none for the obvious alternatives.

    Judged by these statements, by printed principal minors, and by counting solutions for random right-hand
    sides."""
    A = tb.radau_iia(2).A
    for name, M, printed in (("A", A, (5 / 12, 1 / 4, 1 / 6)), ("A^2", A @ A, (1 / 9, 0, 1 / 36))):
        for got, expected in zip(_minors(M), printed, strict=True):
            sheet.close(
                f"minor of {name}, two-stage Radau IIA", got, expected, atol=1e-14, source="S3 Example 2.20"
            )
    rows = _solvability()
    rng = np.random.default_rng(0)
    in_words = lambda classes: ", ".join(f"s = {s}: {c}" for s, c in classes.items())
    for row in rows:
        found = {s: _class(M) for s, M in row.matrices.items()}
        stated = {s: row.expected[s] for s in found}
        agree = all(c == found[s] or (c == "not P" and found[s] != "P") for s, c in stated.items())
        sheet.holds(row.name, agree, expected=in_words(stated), got=in_words(found), source=row.source)
    unique = [M for row in rows for s, M in row.matrices.items() if row.expected[s] == "P"]
    wrong = sum(_solutions(M, rng.normal(size=len(M))) != 1 for M in unique for _ in range(50))
    source = f"S3 Proposition 2.21; {50 * len(unique)} random right-hand sides"
    sheet.close("P: problems without exactly one solution", wrong, 0, source=source)
    counts = {_solutions(_partitioned(2, shifted=False), rng.normal(size=2)) for _ in range(50)}
    sheet.holds(
        "IIIA-IIIB, not shifted, s = 2", counts != {1}, expected="not always one solution",
        got=f"{' or '.join(map(str, sorted(counts)))} solutions", source="S3 (5.55), Proposition 2.21",
    )  # fmt: skip
    _two_solutions(sheet)
    sheet.note(
        "Erratum: Example 4.12 says that A is a P-matrix wherever it is invertible; Lobatto IIIC with s >= 3 "
        "is only P_0."
    )
    _table(sheet, rows)


def _two_solutions(sheet: Sheet) -> None:
    """Where a principal minor is 0, right-hand sides can be found with a whole line of solutions;
    these are its ends.
    """
    c = tb.radau_iia(2).c
    A2, A3 = tb.radau_iia(2).A @ tb.radau_iia(2).A, tb.lobatto_iiic(3).A
    y = CONTACT_ENDS(H)
    ball = np.array(y - H * c - H**2 * c**2 / 2)  # (4.79): A 1 = c, A c = c^2/2
    ends = (
        ("law on measures: ball from y_n^*", H * A2, ball, ((0.0, 0.0), (0.0, 18 * ball[0] / H)),
         "S3 (4.65): not unique"),
        ("Lobatto IIIC, s = 3: q = (-1, 1, -1)", A3, np.array([-1.0, 1.0, -1.0]),
         ((6.0, 0.0, 0.0), (0.0, 0.0, 6.0)), "erratum: only P_0"),
    )  # fmt: skip
    for what, M, q, solutions, source in ends:
        worst = max(np.abs(np.minimum(M @ z + q, z)).max() for z in np.array(solutions))
        sheet.at_most(f"{what}, two solutions: residual of min(w, z)", worst, 1e-12, source=source)


def _table(sheet: Sheet, rows: list[Row]) -> None:
    """Cells: class, smallest principal minor."""
    ((axis,),) = sheet.axes(
        1, 1, "Stage problems of the ball: class and smallest principal minor", (8.4, 5.2)
    )
    colors = {"P": COLORS[2], "P_0": COLORS[3], "neither": COLORS[6]}
    words = {"P": "$P$", "P_0": "$P_0$", "neither": "neither"}
    for i, row in enumerate(rows):
        for s, M in row.matrices.items():
            found = _class(M)
            axis.barh(i, 0.96, left=s - 0.48, height=0.9, color=colors[found], alpha=0.3)
            smallest = min(_minors(M))
            text = "0" if abs(smallest) < 1e-14 else f"{smallest:.2g}"
            axis.text(s, i, f"{words[found]} ({text})", ha="center", va="center", fontsize=8)
    axis.set(yticks=range(len(rows)), xlabel="stages s", xticks=range(1, 6), xlim=(0.5, 5.5))
    axis.set_yticklabels([row.name for row in rows])
    axis.invert_yaxis()
    axis.grid(False)
