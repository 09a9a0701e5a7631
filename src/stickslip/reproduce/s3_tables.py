"""S3 Tables 4.1 to 4.4 and 5.1: the tableaus as printed beside those generated from their definitions."""

import ast
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import tableaus as tb
from ..tableaus import ButcherTableau
from .entries import Sheet, entry

ROUND_OFF = 1e-14

# The letters of Tables 4.3 and 4.4; beta is the root of beta^3 - 3 beta^2 + 3/2 beta - 1/6 in (1/6, 1/2), in
# closed form.
LETTERS = {
    "alpha": 1 - math.sqrt(2) / 2,
    "beta": 1 + math.sqrt(2) * math.cos(math.acos(2 * math.sqrt(2) / 3) / 3 + 4 * math.pi / 3),
    "gamma": 2 - math.sqrt(2),
    "d": (2 - math.sqrt(2)) / 2,
    "w": math.sqrt(2) / 4,
}


class Coefficient(NamedTuple):
    """A number as it is typed here, which is as it is printed: fractions, roots and letters."""

    value: float
    typeset: str  # for mathtext

    @classmethod
    def read(cls, text: str) -> "Coefficient":
        return cls._of(ast.parse(text.strip(), mode="eval").body)

    @classmethod
    def _of(cls, node: Any) -> "Coefficient":
        match node:
            case ast.Constant(value=int(number)):
                return cls(float(number), str(number))
            case ast.Name(id=letter):
                return cls(LETTERS[letter], letter if len(letter) == 1 else f"\\{letter}")
            case ast.Call(args=[of]):  # sqrt
                inner = cls._of(of)
                return cls(math.sqrt(inner.value), f"\\sqrt{{{inner.typeset}}}")
            # -a/b: the sign before the fraction
            case ast.BinOp(left=ast.UnaryOp(operand=left), op=ast.Div(), right=right):
                return cls._of(ast.UnaryOp(ast.USub(), ast.BinOp(left, ast.Div(), right)))
            case ast.UnaryOp(operand=of):
                inner = cls._of(of)
                return cls(-inner.value, f"-{inner.typeset}")
            case ast.BinOp(left=left, op=op, right=right):
                return cls._joined(cls._of(left), op, cls._of(right))
        raise ValueError(f"no coefficient: {ast.unparse(node)}")

    @classmethod
    def _joined(cls, a: "Coefficient", op: ast.operator, b: "Coefficient") -> "Coefficient":
        match op:
            case ast.Add():
                return cls(a.value + b.value, f"{a.typeset}+{b.typeset}")
            case ast.Sub():
                return cls(a.value - b.value, f"{a.typeset}-{b.typeset}")
            case ast.Mult():
                return cls(a.value * b.value, f"{a.typeset}{b.typeset}")
            case ast.Div():
                return cls(a.value / b.value, f"\\dfrac{{{a.typeset}}}{{{b.typeset}}}")
            case ast.Pow():
                return cls(a.value**b.value, f"{a.typeset}^{{{b.typeset}}}")
        raise ValueError(f"no operation of a coefficient: {op}")


class Printed(NamedTuple):
    """A tableau of the paper, row by row, with what its text says of it."""

    table: str
    make: Callable[[], ButcherTableau]
    c: str
    A: str  # rows between semicolons
    b: str
    B: int  # simplifying assumptions B(p), C(eta), D(zeta)
    C: int
    D: int
    stable: str  # which of A, L, B
    embedded: str = ""
    stiffly_accurate: bool = True

    def rows(self, part: str) -> list[list[Coefficient]]:
        return [[Coefficient.read(x) for x in row.split(",")] for row in getattr(self, part).split(";")]

    def values(self, part: str) -> np.ndarray:
        return np.array([[x.value for x in row] for row in self.rows(part)])


def _radau(s: int, c: str, A: str, b: str) -> Printed:
    return Printed("4.1", lambda: tb.radau_iia(s), c, A, b, 2 * s - 1, s, s - 1, "ALB")


def _lobatto_c(s: int, c: str, A: str, b: str) -> Printed:
    return Printed("4.2", lambda: tb.lobatto_iiic(s), c, A, b, 2 * s - 2, s - 1, s - 1, "ALB")


def _lobatto_a(s: int, c: str, A: str, b: str) -> Printed:
    return Printed("5.1", lambda: tb.lobatto_iiia(s), c, A, b, 2 * s - 2, s, 0, "")


def _lobatto_b(s: int, c: str, A: str, b: str) -> Printed:
    return Printed("5.1", lambda: tb.lobatto_iiib(s), c, A, b, 2 * s - 2, 0, s, "", stiffly_accurate=False)


THREE_B = "-(6*beta**2 - 16*beta + 1)/4, (6*beta**2 - 20*beta + 5)/4, beta"
PRINTED = (
    _radau(1, "1", "1", "1"),
    _radau(2, "1/3, 1", "5/12, -1/12; 3/4, 1/4", "3/4, 1/4"),
    _radau(
        3, "(4 - sqrt(6))/10, (4 + sqrt(6))/10, 1",
        "(88 - 7*sqrt(6))/360, (296 - 169*sqrt(6))/1800, (-2 + 3*sqrt(6))/225;"
        "(296 + 169*sqrt(6))/1800, (88 + 7*sqrt(6))/360, (-2 - 3*sqrt(6))/225;"
        "(16 - sqrt(6))/36, (16 + sqrt(6))/36, 1/9",
        "(16 - sqrt(6))/36, (16 + sqrt(6))/36, 1/9",
    ),
    _lobatto_c(2, "0, 1", "1/2, -1/2; 1/2, 1/2", "1/2, 1/2"),
    _lobatto_c(3, "0, 1/2, 1", "1/6, -1/3, 1/6; 1/6, 5/12, -1/12; 1/6, 2/3, 1/6", "1/6, 2/3, 1/6"),
    Printed("4.3", tb.sdirk2, "alpha, 1", "alpha, 0; 1 - alpha, alpha", "1 - alpha, alpha", 2, 1, 0, "AL"),
    Printed(
        "4.3", tb.sdirk3, "beta, (1 + beta)/2, 1", f"beta, 0, 0; (1 - beta)/2, beta, 0; {THREE_B}", THREE_B,
        3, 1, 0, "AL",
    ),
    Printed(
        "4.4", tb.tr_bdf2, "0, gamma, 1", "0, 0, 0; d, d, 0; w, w, d", "w, w, d", 2, 1, 0, "AL",
        embedded="(1 - w)/3, (3*w + 1)/3, d/3",
    ),
    _lobatto_a(2, "0, 1", "0, 0; 1/2, 1/2", "1/2, 1/2"),
    _lobatto_a(3, "0, 1/2, 1", "0, 0, 0; 5/24, 1/3, -1/24; 1/6, 2/3, 1/6", "1/6, 2/3, 1/6"),
    _lobatto_b(2, "0, 1", "1/2, 0; 1/2, 0", "1/2, 1/2"),
    _lobatto_b(3, "0, 1/2, 1", "1/6, -1/6, 0; 1/6, 1/3, 0; 1/6, 5/6, 0", "1/6, 2/3, 1/6"),
)  # fmt: skip


class Properties(NamedTuple):
    """Of a tableau, found from its numbers."""

    B: int  # the largest p with B(p)
    C: int
    D: int
    stable: str

    @classmethod
    def of(cls, t: ButcherTableau) -> "Properties":
        B, C, D = (
            max(r for r in range(2 * t.stages + 1) if f(r))
            for f in (t.satisfies_B, t.satisfies_C, t.satisfies_D)
        )
        tests = {"A": t.is_A_stable, "L": t.is_L_stable, "B": t.is_B_stable}
        return cls(B, C, D, "".join(letter for letter, test in tests.items() if test()))

    def __str__(self) -> str:
        return f"B({self.B}), C({self.C}), D({self.D})"


def deviation(p: Printed, t: ButcherTableau) -> tuple[int, float]:
    """How many coefficients the paper prints, and the largest difference of any from the one generated."""
    pairs = [(p.values("c")[0], t.c), (p.values("A"), t.A), (p.values("b")[0], t.b)]
    if p.embedded and t.embedded is not None:
        pairs.append((p.values("embedded")[0], t.embedded))
    return sum(x.size for x, _ in pairs), max(float(np.abs(x - y).max()) for x, y in pairs)


@entry("S3", ("Table 4.1", "Table 4.2", "Table 4.3", "Table 4.4", "Table 5.1"), "Butcher tableaus", cost=1.0)
def butcher_tableaus(sheet: Sheet) -> None:
    """Every coefficient as the paper prints it, beside the tableau that this package generates from the
    definition of its family. Judged to round-off, and by the simplifying assumptions and kinds of stability
    that the text claims."""
    panels = sheet.axes(3, 4, "Tableaus as printed; below: what their numbers satisfy", (13.0, 9.6))
    for axis, p in zip(panels.flat, PRINTED, strict=True):
        t = p.make()
        found = Properties.of(t)
        _judge(sheet, p, t, found)
        draw(axis, p, f"{t.name} (Table {p.table})", found)
    _judge_pairs(sheet)
    _judge_trx2(sheet)
    sheet.note(
        "In the text extracted from the PDF the columns of Table 4.1 are run together and the rows of Table "
        "4.4 shifted. All"
        " fractions and roots are there; they were put in their places by C(s), b_i = a_si and (4.44)."
    )
    sheet.note(
        "Erratum: below (4.55) TRX2 is said to be recovered for theta = 1/4, which gives R(infinity) = 17; "
        "(4.48), printed"
        " before, is theta = 1/2. Strong S-stability of TR-BDF2, claimed too, is not judged here. SDIRK and "
        "TR-BDF2 are not"
        " said to be B-stable; by Proposition 4.8, which is sufficient, they are not shown to be."
    )


def _judge(sheet: Sheet, p: Printed, t: ButcherTableau, found: Properties) -> None:
    name = f"Table {p.table}, {t.name}"
    count, off = deviation(p, t)
    sheet.at_most(
        f"{name}: {count} coefficients, largest difference", off, ROUND_OFF, source=f"S3 Table {p.table}"
    )
    claimed = f"B({p.B}), C({p.C}), D({p.D})"
    holds = found.B >= p.B and found.C >= p.C and found.D >= p.D
    sheet.holds(
        f"{name}: assumptions", holds, expected=claimed, got=str(found), source="S3 sections 4.4 and 5.4"
    )
    if p.stable:
        source = "S3 section 4.4; A: |R| on the axis and poles, L: R(infinity), B: Proposition 4.8"
        expected, got = (", ".join(f"{x}-stable" for x in kinds) for kinds in (p.stable, found.stable))
        sheet.holds(
            f"{name}: stability",
            set(p.stable) <= set(found.stable),
            expected=expected,
            got=got,
            source=source,
        )
    says = {True: "a_sj = b_j", False: "not a_sj = b_j"}
    sheet.holds(
        f"{name}: stiffly accurate", t.stiffly_accurate == p.stiffly_accurate,
        expected=says[p.stiffly_accurate], got=says[t.stiffly_accurate], source="S3 Definition 4.5",
    )  # fmt: skip
    if p.embedded and t.embedded is not None:
        order = [t.embedded @ t.c**k - 1 / (k + 1) for k in range(3)] + [t.embedded @ t.A @ t.c - 1 / 6]
        what = f"{name}: conditions of order three of the embedded weights"
        sheet.at_most(
            what, np.abs(order).max(), ROUND_OFF, source="S3 section 4.4: an embedded third-order method"
        )


def _judge_pairs(sheet: Sheet) -> None:
    for s in (2, 3):
        first, second = tb.lobatto_iiia(s), tb.lobatto_iiib(s)
        symplectic = tb.is_symplectic_pair(first, second) and not tb.is_symplectic_pair(first, first)
        got = "(5.11) of IIIA with IIIB, and not of IIIA with itself" if symplectic else "not so"
        expected = "symplectic pair"
        sheet.holds(
            f"Table 5.1, IIIA-IIIB, s = {s}", symplectic, expected=expected, got=got, source="S3 Theorem 5.1"
        )
        last = np.abs(second.A[:, -1]).max()
        sheet.at_most(f"Table 5.1, IIIB, s = {s}: last column", last, 0.0, source="S3 (5.13)")


def _judge_trx2(sheet: Sheet) -> None:
    """theta = 1/2, not 1/4."""
    printed = np.array([[0, 0, 0], [1, 1, 0], [1, 2, 1]]) / 4
    sheet.at_most(
        "TRX2: largest difference from (4.48)",
        np.abs(tb.trx2().A - printed).max(),
        ROUND_OFF,
        source="S3 (4.48)",
    )
    for theta, value in ((1 / 2, 1.0), (1 / 4, 17.0)):
        R = tb.esdirk(theta, f"theta = {theta:g}").stability_at_infinity()
        source = "S3 (4.47): (theta^2 - 4 theta + 2)/theta^2"
        sheet.close(f"R(infinity) for theta = {theta:g}", R, value, atol=1e-10, source=source)


def _places(lines: list[list[Coefficient | None]]) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the columns and the edges between them,
    by the longest numerator in each; the whole is 1 wide.
    """

    def letters(x: Coefficient | None) -> int:
        return 0 if x is None else len(re.sub(r"\\[a-z]+|[{}^]", "", x.typeset.split("}{")[0]))

    widths = np.array([4 + max(map(letters, column)) for column in zip(*lines, strict=True)], dtype=float)
    edges = np.concatenate([[0.0], np.cumsum(widths / widths.sum())])
    return (edges[1:] + edges[:-1]) / 2, edges


def draw(axis: Any, p: Printed, title: str, found: Properties) -> None:
    """c | A over b, typeset."""
    s = len(p.rows("A"))
    lines: list[list[Coefficient | None]] = [
        [c, *a] for c, a in zip(p.rows("c")[0], p.rows("A"), strict=True)
    ]
    lines += [[None, *b] for b in (p.rows("b")[0], *(p.rows("embedded") if p.embedded else ()))]
    middles, edges = _places(lines)
    size = 8.5 if s == 3 and p.table in ("4.1", "4.3") else 11  # wide ones
    for i, line in enumerate(lines):
        for x, place in zip(line, middles, strict=True):
            if x is not None:
                axis.text(place, -i, f"${x.typeset}$", ha="center", va="center", fontsize=size)
    if p.embedded:
        for i, name in ((s, "b^T"), (s + 1, r"\hat{b}^T")):
            axis.text(middles[0], -i, f"${name}$", ha="center", va="center", fontsize=11, color="0.4")
    axis.plot([edges[1]] * 2, [0.5, -len(lines) + 0.5], "k", lw=0.8)
    axis.plot([0, 1], [0.5 - s] * 2, "k", lw=0.8)
    kinds = f"{', '.join(found.stable)}-stable" if found.stable else "not A-stable"
    used = [Coefficient.read(name) for name in LETTERS if re.search(rf"\b{name}\b", f"{p.c} {p.A}")]
    where = "\n" + ", ".join(f"${x.typeset} = {x.value:.8f}$" for x in used) if used else ""
    axis.text(0.5, -len(lines), f"{found}; {kinds}{where}", ha="center", va="top", fontsize=8, color="0.3")
    axis.set(title=title, xlim=(-0.05, 1.05), ylim=(-5.6, 0.7))
    axis.set_axis_off()
