"""What a figure of a paper is reproduced on: checks with their verdicts, pictures, remarks.

An entry is a function of a `Sheet`, registered with `entry`. It runs what the paper ran, draws what it drew
and judges it against something known from elsewhere:

    @entry("S0", "2", "A bouncing ball comes to rest", shows="bouncing-ball")
    def gap(sheet):
        b = benchmarks.load("bouncing-ball")
        sol = sheet.run(b, Rattle())
        sheet.at_least("smallest gap", sol.g_N().min(), -1e-9, source="enforced by the method")
        ((a,),) = sheet.axes(1, 1)
        a.plot(sol.t, sol.g_N())
"""

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import plot
from ..benchmarks import Benchmark
from ..extras import need
from ..methods.base import Method
from ..results import RESULTS
from ..simulate import simulate
from ..solution import Solution


class Check(NamedTuple):
    """One line of a verdict table, in words."""

    what: str
    expected: str
    got: str
    tolerance: str
    holds: bool
    source: str  # where the expected value comes from


def _number(x: float) -> str:
    return f"{x:.8g}" if 1e-3 <= abs(x) < 1e6 or x == 0 else f"{x:.3e}"


class Sheet:
    """Collects what an entry finds.

    ``quick`` asks for fewer steps, sizes or methods, never for looser tolerances.
    """

    def __init__(self, quick: bool = False):
        self.quick = quick
        self.checks: list[Check] = []
        self.notes: list[str] = []
        self._figures: list[Any] = []
        self._broken: dict[str, Callable[[Any], Any]] = {}
        self._under = ""

    # ---- runs

    def breaking(
        self, method: Callable[[Method], Method] | None = None, **parts: Callable[[Any], Any]
    ) -> "Sheet":
        """From here on methods, or the ``system`` or the ``stepsize`` they get, are replaced by broken ones.

        So a negative control runs the same entry, which goes on to judge by what it believes to have run.
        """
        self._broken = {**({"method": method} if method else {}), **parts}
        return self

    def run(self, b: Benchmark, method: Method | None = None, **options: Any) -> Solution:
        """A benchmark with its own method, end and steps, or with those given."""
        return self._run(self._broken, b, method, **options)

    def run_sound(self, b: Benchmark, method: Method, **options: Any) -> Solution:
        """The same, not broken by any control: something to compare with."""
        return self._run({}, b, method, **options)

    @staticmethod
    def _run(
        broken: dict[str, Callable[[Any], Any]], b: Benchmark, method: Method | None, **options: Any
    ) -> Solution:
        def part(name: str, sound: Any) -> Any:
            return broken[name](sound) if name in broken else sound

        steps = {} if {"dt", "stepsize"} & options.keys() else (b.steps if method is None else {"dt": b.dt})
        options = {"t1": b.t1, "progress": False, **steps, **options}
        if "stepsize" in options:
            options["stepsize"] = part("stepsize", options["stepsize"])
        chosen = part("method", b.method if method is None else method)
        sol = simulate(part("system", b.system), chosen, b.q0, b.u0, **options)
        if sol.result == RESULTS.interrupted:  # half a run is not to be judged
            raise KeyboardInterrupt
        return sol

    @contextlib.contextmanager
    def under(self, name: str) -> Iterator[None]:
        """Checks in here are named after what they are about."""
        self._under = f"{name}: "
        try:
            yield
        finally:
            self._under = ""

    # ---- verdicts

    def close(
        self, what: str, got: Any, expected: Any, *, atol: float = 0.0, rtol: float = 0.0, source: str
    ) -> None:
        """|got - expected| <= atol + rtol |expected|."""
        got, expected = float(got), float(expected)
        allowed = atol + rtol * abs(expected)
        tolerance = (
            f"± {allowed:.2g}" if not rtol else f"± {100 * rtol:.3g} %" + (f" ± {atol:.2g}" if atol else "")
        )
        holds = bool(abs(got - expected) <= allowed)
        self._say(Check(what, _number(expected), _number(got), tolerance, holds, source))

    def at_most(self, what: str, got: Any, limit: Any, *, source: str) -> None:
        holds = bool(float(got) <= limit)
        self._say(Check(what, f"at most {_number(limit)}", _number(float(got)), "", holds, source))

    def at_least(self, what: str, got: Any, limit: Any, *, source: str) -> None:
        holds = bool(float(got) >= limit)
        self._say(Check(what, f"at least {_number(limit)}", _number(float(got)), "", holds, source))

    def order(
        self, what: str, dts: ArrayLike, errors: ArrayLike, expected: float, *,
        tolerance: float = 0.2, source: str,
    ) -> float:  # fmt: skip
        """Least-squares slope of the errors over at least three step sizes."""
        h, e = np.asarray(dts, dtype=float), np.asarray(errors, dtype=float)
        if len(h) < 3:
            raise ValueError(f"{what}: an order needs at least three step sizes, got {len(h)}")
        slope = float(np.polyfit(np.log(h), np.log(e), 1)[0])
        holds = bool(abs(slope - expected) <= tolerance)
        self._say(Check(what, f"order {expected:g}", f"{slope:.2f}", f"± {tolerance:g}", holds, source))
        return slope

    def holds(self, what: str, condition: Any, *, expected: str, got: str, source: str) -> None:
        """A property, for what no number describes."""
        self._say(Check(what, expected, got, "property", bool(condition), source))

    def _say(self, check: Check) -> None:
        self.checks.append(check._replace(what=f"{self._under}{check.what}"))

    def note(self, text: str) -> None:
        """What a reader must know: where the paper's text is wrong, what is shown instead."""
        self.notes.append(text)

    # ---- pictures

    def axes(
        self, rows: int = 1, columns: int = 2, title: str = "", size: tuple[float, float] | None = None
    ) -> Any:
        """An array of matplotlib axes, rows by columns; the picture belongs to the sheet."""
        figure, axes = plot.axes(rows, columns, title, size or (4.4 * columns, 2.9 * rows))
        self._figures.append(figure)
        return axes

    def pictures(self) -> list[bytes]:
        """All pictures as PNG; closes them. Few colours make small files, and lines need few."""
        Image = need("PIL.Image", "plots", "a picture of the reproduction")
        out = []
        for figure in self._figures:
            drawn, small = io.BytesIO(), io.BytesIO()
            figure.savefig(drawn, format="png", dpi=110)
            few = Image.open(drawn).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
            few.save(small, format="png", optimize=True)
            out.append(small.getvalue())
        for figure in reversed(self._figures):
            plot.finish(figure)
        self._figures = []
        return out


class Entry(NamedTuple):
    paper: str
    figures: tuple[str, ...]  # as the paper numbers them: "7.12", "Table 1"
    title: str
    function: Callable[[Sheet], None]
    shows: tuple[str, ...]  # benchmarks it runs
    quick: bool  # part of a quick reproduction
    control: str  # of a broken scheme: the check that must fail
    cost: float  # seconds on one core, so that long ones start first

    @property
    def key(self) -> str:
        return f"{self.paper} {', '.join(self.figures)}: {self.function.__name__}"


ENTRIES: list[Entry] = []


def entry(
    paper: str, figures: str | tuple[str, ...], title: str, *, shows: str | tuple[str, ...] = (),
    quick: bool = True, control: str = "", cost: float = 10.0,
) -> Callable[[Callable[[Sheet], None]], Callable[[Sheet], None]]:  # fmt: skip
    """Registers a function of a `Sheet` as the reproduction of one or more figures of a paper.

    ``control`` says that a broken scheme is at work, and names the check that must fail.
    """

    def register(function: Callable[[Sheet], None]) -> Callable[[Sheet], None]:
        figures_ = (figures,) if isinstance(figures, str) else figures
        shows_ = (shows,) if isinstance(shows, str) else shows
        ENTRIES.append(Entry(paper, figures_, title, function, shows_, quick, control, cost))
        return function

    return register
