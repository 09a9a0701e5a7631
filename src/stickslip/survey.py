"""`stickslip survey`: every method on every benchmark, as a page of tables."""

import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import benchmarks
from .methods import by_name
from .results import SimulationError
from .simulate import simulate

INTRODUCTION = """Made by `stickslip survey --out docs/benchmarks.md`: case 1 of each benchmark with the
benchmark's own step size, whatever suits the method.

- *gap*: the smallest gap of the run;
- *energy*: by how much the energy ever exceeded its start, relative to its largest value. Impacts and
  friction may only take; where something drives the system, a gain is no error;
- *iterations*: of Newton's method, a step, over all solves; *fixed point*: the number of steps that needed
  it;
- *us a step*: compiled, on one core of a busy machine, with what `simulate` does around the steps: short runs
  look slow. Compare within a table.

The stiff pendulum is meant to break methods that are not stiffly accurate at this step."""


class Cell(NamedTuple):
    benchmark: str
    method: str
    works: str
    gap: float | None
    energy: float | None
    iterations: float
    fixed_point: int
    microseconds: float


def cell(benchmark: str, method: str) -> Cell:
    """Case 1 of a benchmark with its own step size."""
    b = benchmarks.load(benchmark)
    chosen = b.method if benchmarks.methods(benchmark) else by_name(method)

    def go():
        return simulate(b.system, chosen, b.q0, b.u0, t1=b.t1, dt=b.dt, progress=False)

    works = "yes"
    try:
        sol, took = go(), np.inf
        for _ in range(3):
            began = time.perf_counter()
            go()
            took = min(took, time.perf_counter() - began)
    except SimulationError as error:
        sol, took = error.solution, np.nan
        works = f"fails at t = {sol.t[-1]:.3g}"
    gaps = sol.g_N()
    energy = None
    if hasattr(b.system, "energy"):
        E = sol.energy()
        energy = float((E.max() - E[0]) / np.abs(E).max())
    n = max(1, len(sol.t) - 1)
    iterations = sol.stats.newton_iterations.sum() / n
    fixed_point = int((sol.stats.fixed_point_iterations.sum(axis=1) > 0).sum())
    gap = float(gaps.min()) if gaps.size else None
    return Cell(benchmark, method, works, gap, energy, float(iterations), fixed_point, 1e6 * took / n)


def _job(names: tuple[str, str]) -> Cell:
    return cell(*names)


def pairs(names: Sequence[str], methods: Sequence[str]) -> list[tuple[str, str]]:
    """What belongs together: some benchmarks are meant for some methods only."""
    return [(n, m) for n in names for m in methods if m in (benchmarks.methods(n) or methods)]


def survey(names: Sequence[str], methods: Sequence[str], workers: int, report) -> list[Cell]:
    """All cells, each method of a benchmark in turn; ``report`` is called with each."""
    jobs = pairs(names, methods)
    cells = []
    # Fresh processes from time to time: compiled programs stay in memory.
    with get_context("spawn").Pool(workers, maxtasksperchild=15) as pool:
        for done in pool.imap(_job, jobs):
            cells.append(done)
            report(done)
    return cells


def _number(x: float | None, form: str) -> str:
    return "" if x is None or not np.isfinite(x) else format(x, form)


def _small(x: float | None) -> str:
    """Round-off is not worth its digits."""
    return "0" if x is not None and abs(x) < 1e-12 else _number(x, ".0e")


def page(cells: Sequence[Cell]) -> str:
    """The page as Markdown."""
    lines = ["# Every method on every benchmark", "", INTRODUCTION, ""]
    for name in dict.fromkeys(c.benchmark for c in cells):
        b = benchmarks.load(name)
        lines += [
            f"## {name}",
            "",
            f"{benchmarks.about(name).splitlines()[0]} t = 0 to {b.t1:g}, dt = {b.dt:g}.",
            "",
        ]
        lines += [
            "| method | works | gap | energy | iterations | fixed point | us a step |",
            "|---|---|---|---|---|---|---|",
        ]
        for c in (c for c in cells if c.benchmark == name):
            lines.append(
                f"| {c.method} | {c.works} | {_small(c.gap)} | {_small(c.energy)} | {c.iterations:.2f} |"
                f" {c.fixed_point or ''} | {_number(c.microseconds, '.1f')} |"
            )
        lines.append("")
    return "\n".join(lines)


def write(cells: Sequence[Cell], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(cells), encoding="utf-8")
