"""Orders over two decades of step sizes: every method on every benchmark, in a phase without events.

    .venv/bin/python benchmarks/orders.py [benchmark ...] [--methods rattle,radau2]

A method keeps its order if error <= C dt^p for all steps, with C from the largest ones, or
error <= 1e-11 of the size of what is measured. "exact" is below that everywhere. Where a benchmark has
no closed form a fine run of four-stage Radau IIA stands in for it. The whole matrix takes half an hour
on two cores, nearly all of it compilation.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import stickslip as ss
from stickslip.benchmarks import mass_on_slope, puck
from stickslip.methods import REGISTRY, by_name

DECADES = np.array([1.0, 2.15, 4.65, 10.0, 21.5, 46.5, 100.0])  # two of them
FLOOR = 1e-11
ALL = slice(None)
SLACK = 3.0  # by how much the largest steps may underestimate C


class Problem(NamedTuple):
    """A smooth phase, and the error of a run's end in units of its size."""

    system: Any
    q0: Any
    u0: Any
    t1: float
    error: Callable[[Any], float]
    coarsest: int = 20  # steps: larger ones do not resolve the motion

    @property
    def steps(self) -> list[int]:
        return [round(self.coarsest * factor) for factor in DECADES]


def relative(sol: Any, q: Any, u: Any) -> float:
    def part(a, b):
        return np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)

    return float(max(part(sol.q[-1], np.asarray(q)), part(sol.u[-1], np.asarray(u))))


def puck_problem(mu: float, t1: float = 0.5) -> Problem:
    b = ss.benchmarks.load("puck")
    x = puck.exact(t1, mu)
    # z is zero: in the units of the others
    error = lambda sol: relative(sol, [*x[:2], 0.0], [*x[2:], 0.0])
    return Problem(puck.Puck(mu=mu), b.q0, b.u0, t1, error)


def slope_problem(case: int, t1: float = 1.6) -> Problem:
    b = ss.benchmarks.load("mass-on-slope", case)
    x = mass_on_slope.exact(b, [t1])
    return Problem(b.system, b.q0, b.u0, t1, lambda sol: relative(sol, x.q[-1], x.u[-1]))


def disc_problem() -> Problem:
    """After one precession centre and normal are back; the disc has turned about its normal."""
    b = ss.benchmarks.load("rolling-disc")
    normal = lambda q: np.asarray(ss.rigid.rotation_matrix(q[3:]))[:, 2]

    def error(sol):
        return float(
            max(np.abs(sol.q[-1, :3] - b.q0[:3]).max(), np.abs(normal(sol.q[-1]) - normal(b.q0)).max())
        )

    return Problem(b.system, b.q0, b.u0, b.t1, error, 200)


def tippedisk_problem() -> Problem:
    """Height and inclination at t = 0.1, converged."""
    b = ss.benchmarks.load("tippedisk")

    def error(sol):
        z, theta = sol.q[-1, 2], np.arccos(1.0 - 2.0 * (sol.q[-1, 4:6] ** 2).sum())
        return float(max(abs(z / 0.042516205186604 - 1.0), abs(theta / 1.562154490482 - 1.0)))

    return Problem(b.system, b.q0, b.u0, 0.1, error)


def fine_problem(name: str, case: int, t1: float) -> Problem:
    b = ss.benchmarks.load(name, case)
    tight = ss.Automatic(newton=ss.SemismoothNewton(atol=1e-15))
    fine = ss.simulate(b.system, ss.RadauIIA(4, solver=tight), b.q0, b.u0, t1=t1, dt=t1 / 1500)
    return Problem(b.system, b.q0, b.u0, t1, lambda sol: relative(sol, fine.q[-1], fine.u[-1]))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "puck, mu = 0.2": lambda: puck_problem(0.2),
    "puck, mu = 0.5": lambda: puck_problem(0.5),
    "puck, mu = 0.9": lambda: puck_problem(0.9, 0.2),
    "mass-on-slope 1": lambda: slope_problem(1),
    "mass-on-slope 5": lambda: slope_problem(5),
    "rolling-disc": disc_problem,
    "tippedisk 1": tippedisk_problem,
    **{
        f"{name} {case}": lambda name=name, case=case, t1=t1: fine_problem(name, case, t1)
        for name, case, t1 in (
            ("tippe-top", 1, 0.05), ("pendulum", 1, 1.0), ("painleve-rod", 1, 0.3),
            ("ball-in-cylinder", 1, 0.4), ("ball-in-hollow-sphere", 1, 0.3), ("rolling-ball", 1, 0.3),
            ("bouncing-ball", 1, 0.4), ("bounce", 1, 0.3), ("falling-mass", 1, 0.1),
            ("block-on-belt", 1, 1.0),
            ("sliding-mass", 1, 0.4), ("impact-oscillator", 1, 0.12), ("woodpecker", 1, 0.02),
            ("sliding-cube", 1, 0.2), ("incline", 1, 1.0), ("guided-hopper", 1, 0.01),
            ("slider-crank", 1, 2e-4),
        )
    },
}  # fmt: skip


class Verdict(NamedTuple):
    keeps: bool
    measured: float  # slope of what is above the floor
    errors: list[float]

    def __str__(self) -> str:
        slope = "exact" if np.isnan(self.measured) else f"{self.measured:.2f}"
        return f"{slope}{'' if self.keeps else ' LOST'}"


def judge(steps: Any, errors: Any, order: float, floor: float = FLOOR) -> Verdict:
    """Whether error <= C dt^order for all steps, with C from the first third of them, or error <= floor."""
    h, e = 1.0 / np.asarray(steps, dtype=float), np.asarray(errors, dtype=float)
    coarse = max(2, len(h) // 3)
    C = (e[:coarse] / h[:coarse] ** order).max()
    keeps = bool(np.all((e <= SLACK * C * h**order) | (e <= floor)))
    above = e > 10 * floor
    slope = float(np.polyfit(np.log(h[above]), np.log(e[above]), 1)[0]) if above.sum() > 1 else float("nan")
    return Verdict(keeps, slope, [float(x) for x in e])


def measure(problem: Problem, method: Any, which: slice = ALL) -> Verdict:
    def run(n):
        return ss.simulate(
            problem.system, method, problem.q0, problem.u0, t1=problem.t1, dt=problem.t1 / n, progress=False
        )

    steps = problem.steps[which]
    return judge(steps, [problem.error(run(n)) for n in steps], method.order)


def main() -> None:
    words = sys.argv[1:]
    methods = words[words.index("--methods") + 1].split(",") if "--methods" in words else list(REGISTRY)
    names = [w for w in words if w != "--methods" and w != ",".join(methods)]
    lost = 0
    for key, make in PROBLEMS.items():
        if names and not any(key.startswith(name) for name in names):
            continue
        problem = make()
        print(f"{key}, t1 = {problem.t1:g}, {problem.steps[0]} to {problem.steps[-1]} steps", flush=True)
        for name in methods:
            try:
                out: Any = measure(problem, by_name(name))
                lost += not out.keeps
            except ss.SimulationError as error:
                out = f"fails: {str(error)[:90]}"
            errors = " ".join(f"{e:.0e}" for e in getattr(out, "errors", []))
            print(f"  {name:18s} order {by_name(name).order}: {out!s:10s} {errors}", flush=True)
    print(f"{lost} orders lost")


if __name__ == "__main__":
    main()
