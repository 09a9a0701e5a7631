"""`stickslip demo`: three benchmarks, a table, three pictures."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from . import benchmarks, plot
from .methods import REGISTRY
from .simulate import simulate
from .solution import Solution


def ball_error(sol: Solution, b: benchmarks.Benchmark) -> str:
    """Distance from the exact first apex, 0.225."""
    after = sol.t > b.reference["impact_time"]
    apex = sol.g_N()[after & (sol.t < b.reference["impact_times"][1]), 0].max()
    return f"apex {apex - 0.9 * 0.25:+.1e} m"


def crank_error(sol: Solution, b: benchmarks.Benchmark) -> str:
    E = sol.energy()
    return f"energy {(E.max() - E[0]) / E[0]:+.1e}"


def disk_error(sol: Solution, b: benchmarks.Benchmark) -> str:
    z = sol.q[:, 2]
    k = int(np.argmax(z > 0.045))
    t = np.interp(0.045, z[k - 1 : k + 1], sol.t[k - 1 : k + 1])
    return f"inversion {t - b.reference['inversion_time']:+.1e} s"


RUNS: list[tuple[str, str, Any]] = [
    ("bouncing-ball", "moreau", ball_error),
    ("bouncing-ball", "rattle", ball_error),
    ("slider-crank", "moreau", crank_error),
    ("slider-crank", "rattle", crank_error),
    ("tippedisk", "moreau", disk_error),
    ("tippedisk", "rattle", disk_error),
]


def timed(b: benchmarks.Benchmark, method: str, times: int) -> tuple[Solution, float]:
    began = time.perf_counter()
    sol = simulate(b.system, REGISTRY[method](), b.q0, b.u0, t1=times * b.t1, dt=b.dt, progress=False)
    return sol, time.perf_counter() - began


def run(out: Path, console: Console) -> None:
    table = Table(title="stickslip: three benchmarks of nonsmooth RATTLE (S0)")
    for column in ("benchmark", "method", "steps", "first run", "us/step", "worst gap", "Newton", "error"):
        table.add_column(column, justify="left" if column in ("benchmark", "method", "error") else "right")
    solutions: dict[tuple[str, str], Solution] = {}
    for name, method, judge in RUNS:
        b = benchmarks.load(name)
        with console.status(f"{name} with {method}"):
            sol, first = timed(b, method, 1)
            # The time of a step is the slope over many: two runs, one at least 10000 steps longer.
            steps = sol.t.shape[0] - 1
            more = max(2, 1 + 10_000 // steps)
            (_, short), (_, long) = timed(b, method, 1), timed(b, method, more)
        pace = (long - short) / ((more - 1) * steps)
        iterations = " + ".join(f"{x:.2f}" for x in sol.stats.newton_iterations.mean(axis=0))
        table.add_row(
            name, method, str(steps), f"{first:.1f} s", f"{pace * 1e6:.1f}", f"{sol.g_N().min():.0e}",
            iterations, judge(sol, b),
        )  # fmt: skip
        solutions[name, method] = sol
    console.print(table)
    ball = {m: solutions["bouncing-ball", m] for m in ("moreau", "rattle")}
    plot.bouncing_ball(ball, benchmarks.load("bouncing-ball"), out / "bouncing-ball.png")
    plot.slider_crank(solutions["slider-crank", "rattle"], out / "slider-crank.png")
    plot.tippedisk(solutions["tippedisk", "rattle"], benchmarks.load("tippedisk"), out / "tippedisk.png")
    for picture in sorted(out.glob("*.png")):
        console.print(f"wrote {picture}")
