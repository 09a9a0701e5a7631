"""Orders, measured: errors of methods over step sizes against a fine run, in the norm S3 (4.56)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .benchmarks import Benchmark
from .extras import need
from .methods import RadauIIA
from .methods.base import Method, with_solver
from .simulate import simulate
from .solution import Solution
from .solvers import Automatic, SemismoothNewton
from .system import System

ROUND_OFF = 1e-12  # errors below this say little about an order


class Convergence:
    """``errors[name]["q"]`` and ``["u"]`` hold one error per step size."""

    def __init__(self, dts: Sequence[float], errors: dict[str, dict[str, np.ndarray]]):
        self.dts = np.asarray(dts)
        self.errors = errors

    def order(self, name: str, quantity: str = "q") -> float:
        """Least-squares slope over the step sizes whose error is above round-off."""
        error = self.errors[name][quantity]
        use = error > ROUND_OFF
        if use.sum() < 3:
            return float("nan")
        return float(np.polyfit(np.log(self.dts[use]), np.log(error[use]), 1)[0])

    def local_orders(self, name: str, quantity: str = "q") -> np.ndarray:
        error = self.errors[name][quantity]
        return np.log(error[:-1] / error[1:]) / np.log(self.dts[:-1] / self.dts[1:])

    def table(self, title: str = "") -> Any:
        table = need("rich.table", "cli", "the table of ss.convergence").Table(title=title or None)
        for column in ("method", "of", "order", *(f"{dt:.3g}" for dt in self.dts)):
            table.add_column(column, justify="left" if column == "method" else "right")
        for name, by_quantity in self.errors.items():
            for quantity, error in by_quantity.items():
                slope = self.order(name, quantity)
                table.add_row(name, quantity, f"{slope:.2f}", *(f"{e:.1e}" for e in error))
        return table

    def plot(self, file: str | Path, title: str = "") -> None:
        """As S3 Figs. 4.3, 5.2 and 7.12."""
        need("matplotlib", "plots", "the plot of ss.convergence")
        from .plot import convergence_plot

        convergence_plot(self, title, file)


def l1_error(sol: Solution, reference: Solution, quantity: str) -> float:
    """h sum_n |e_n|_1 over the grid of the coarser run, (4.56)."""
    a, b = getattr(sol, quantity), getattr(reference, quantity)
    every = round((len(reference.t) - 1) / (len(sol.t) - 1))
    return float((sol.t[1] - sol.t[0]) * np.abs(a[1:] - b[every::every]).sum())


def convergence(
    problem: Benchmark | System,
    methods: Mapping[str, Method] | Sequence[Method],
    dts: Sequence[float],
    *,
    t1: float | None = None,
    q0: Any = None,
    u0: Any = None,
    t0: float = 0.0,
    reference: Method | Solution | None = None,
    refine: int = 4,
    tolerance: float = 1e-14,
) -> Convergence:
    """Errors of each method at each step size against one fine run.

    The fine run is made by ``reference`` (three-stage Radau IIA unless said otherwise) with a step ``refine``
    times smaller than the smallest one, or is given as a `Solution`. All steps must divide t1 - t0 evenly,
    and be multiples of the finest. All methods are run with Newton's ``tolerance``, as tight as S3's: an
    order is not to be read off a solver's error.
    """
    if isinstance(problem, Benchmark):
        system = problem.system
        q0, u0 = (problem.q0 if q0 is None else q0), (problem.u0 if u0 is None else u0)
        t1 = problem.t1 if t1 is None else t1
    else:
        system = problem
    if t1 is None or q0 is None or u0 is None:
        raise ValueError("convergence of a system needs t1, q0 and u0")
    if not isinstance(methods, Mapping):
        methods = {type(m).__name__: m for m in methods}
    if len(dts) < 3:
        raise ValueError(f"an order needs at least three step sizes, got {list(dts)}")
    steps = [round((t1 - t0) / dt) for dt in dts]
    for dt, n in zip(dts, steps, strict=True):
        if n < 1 or abs(n * dt - (t1 - t0)) > 1e-9 * (t1 - t0):
            raise ValueError(f"dt = {dt} does not divide t1 - t0 = {t1 - t0} evenly")
    tight = Automatic(newton=SemismoothNewton(atol=tolerance, rtol=tolerance, max_iterations=50))
    if isinstance(reference, Solution):
        fine = reference
    else:
        method = RadauIIA(stages=3) if reference is None else reference
        fine = simulate(
            system, with_solver(method, tight), q0, u0, t0=t0, t1=t1, dt=(t1 - t0) / (refine * max(steps))
        )
    n_fine = len(fine.t) - 1
    for dt, n in zip(dts, steps, strict=True):
        if n_fine % n:
            raise ValueError(
                f"dt = {dt} makes {n} steps, which do not divide the {n_fine} steps of the fine run"
            )
    errors: dict[str, dict[str, np.ndarray]] = {}
    for name, method in methods.items():
        runs = [
            simulate(system, with_solver(method, tight), q0, u0, t0=t0, t1=t1, dt=(t1 - t0) / n)
            for n in steps
        ]
        errors[name] = {x: np.array([l1_error(run, fine, x) for run in runs]) for x in ("q", "u")}
    return Convergence(dts, errors)
