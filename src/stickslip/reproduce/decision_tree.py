"""Which method for which problem, as a flowchart: S3 Fig. 8.1 in our own words, with what was measured here.

.venv/bin/python -m stickslip.reproduce.decision_tree docs/pictures/decision_tree.png
"""

import io
import sys
from typing import Any, NamedTuple

from ..extras import need
from ..methods import by_name
from ..plot import COLORS, axes, finish


class Leaf(NamedTuple):
    """A recommendation: a method by its name, as it is written, and what it gives."""

    name: str
    call: str
    gives: str
    tolerances: bool = False  # events are located, steps chosen

    def __str__(self) -> str:
        order = f"order {by_name(self.name).order}" + (", through events" if self.tolerances else "")
        return f'"{self.name}": {self.call}\n{order}; {self.gives}'


class Question(NamedTuple):
    """What is asked, and what follows from yes and from no."""

    text: str
    yes: "Question | Leaf"
    no: "Question | Leaf"


TREE = Question(
    "Is there an accuracy to be reached,\nor must events have their times?",
    Leaf("radau3", "ss.RadauIIA(3)", "no dt, but rtol and atol; five stages below 1e-7", tolerances=True),
    Question(
        "Are forces stiff, or do parts vibrate\nin ways nobody cares about?",
        Question(
            "Does it matter how much\nhigh frequencies are damped?",
            Question(
                "Flexible bodies, or\nforces at an instant?",
                Leaf("generalized-alpha", "ss.GeneralizedAlpha(rho_inf)", "forces apart from impulses"),
                Leaf("trtheta", "ss.TRTheta(rho_inf)", "the same damping, a Runge-Kutta method"),
            ),
            Leaf("radau3", "ss.RadauIIA(stages=3)", "L-stable, also stages=2"),
        ),
        Question(
            "Is energy to behave over a long time,\nwith smooth forces?",
            Question(
                "Is order 2 enough?",
                Leaf("rattle", "ss.Rattle()", "the cheapest that does not penetrate"),
                Leaf(
                    "lobatto3", "ss.LobattoIIIAB(stages=3)", 'symplectic; form="momentum" if M depends on q'
                ),
            ),
            Question(
                "Are there hundreds of contacts, and\nmay they overlap a little?",
                Leaf("moreau", "ss.MoreauMidpoint(solver=ss.PSOR())", "one linear problem a step"),
                Leaf("radau2", "ss.RadauIIA(stages=2)", "where nothing is known: a good start"),
            ),
        ),
    ),
)


def leaves(tree: Question | Leaf = TREE) -> list[Leaf]:
    return [tree] if isinstance(tree, Leaf) else [*leaves(tree.yes), *leaves(tree.no)]


def _rows(tree: Question | Leaf) -> int:
    return len(leaves(tree))


def draw(axis: Any) -> None:
    """A leaf a row, on the right; the answer yes leads to the right, no leads down."""
    _draw(axis, TREE, 0.0, 0.0)
    axis.set(xlim=(-0.45, 4.0), ylim=(-_rows(TREE) + 0.45, 0.6))
    axis.set_axis_off()


RIGHT = 3.2  # column of the leaves


def _draw(axis: Any, tree: Question | Leaf, x: float, y: float) -> None:
    if isinstance(tree, Leaf):
        _box(axis, x, y, str(tree), facecolor="#e8eef5", edgecolor=COLORS[0])
        return
    _box(axis, x, y, tree.text, facecolor="w", edgecolor="0.4")
    down = y - _rows(tree.yes)
    x_yes = RIGHT if isinstance(tree.yes, Leaf) else x + 1.0
    x_no = RIGHT if isinstance(tree.no, Leaf) else x
    _answer(axis, "yes", (x, y), (x_yes, y), COLORS[2])
    _answer(axis, "no", (x, y), (x_no, down), COLORS[6])
    _draw(axis, tree.yes, x_yes, y)
    _draw(axis, tree.no, x_no, down)


def _box(axis: Any, x: float, y: float, text: str, **style: str) -> None:
    box = {"boxstyle": "round,pad=0.45", "lw": 0.9, **style}
    axis.text(x, y, text, ha="center", va="center", fontsize=7.5, bbox=box, zorder=3)


def _answer(axis: Any, word: str, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    """Behind the boxes, so that it seems to run from edge to edge: down first, then to the right."""
    (x, y), (x_end, y_end) = start, end
    axis.plot([x, x, x_end], [y, y_end, y_end], color=color, lw=1.1, zorder=1)
    at = (x + 0.51, y) if y == y_end else (x, y - 0.42)
    axis.text(
        *at,
        word,
        fontsize=8,
        color=color,
        ha="center",
        va="center",
        zorder=4,
        bbox={"fc": "w", "ec": "none", "pad": 1},
    )


def picture(file: str) -> None:
    """As PNG with few colours: lines and letters need few, and the file is small."""
    Image = need("PIL.Image", "plots", "the picture of the decision tree")
    figure, ((axis,),) = axes(1, 1, "", (10.6, 5.6))
    draw(axis)
    drawn = io.BytesIO()
    finish(figure, drawn, dpi=100)
    Image.open(drawn).convert("RGB").quantize(64, method=Image.Quantize.MAXCOVERAGE).save(file, optimize=True)


if __name__ == "__main__":
    picture(sys.argv[1])
