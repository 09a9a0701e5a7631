"""`stickslip demo`: three benchmarks and a woodpecker,
each with its picture as soon as it is there, and a page to play.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import benchmarks, plot
from .extras import need_all
from .methods import REGISTRY, RadauIIA
from .pages import NEEDED
from .simulate import simulate
from .solution import Solution

if TYPE_CHECKING:
    from rich.console import Console


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


METHODS = "moreau", "rattle"
RUNS: dict[str, Any] = {"bouncing-ball": ball_error, "slider-crank": crank_error, "tippedisk": disk_error}
COLUMNS = "{:14s} {:7s} {:>6s} {:>10s} {:>8s} {:>10s} {:>12s}  {}"
HEADINGS = "benchmark", "method", "steps", "first run", "us/step", "worst gap", "Newton", "error"


def timed(b: benchmarks.Benchmark, method: str, times: int) -> tuple[Solution, float]:
    began = time.perf_counter()
    sol = simulate(b.system, REGISTRY[method](), b.q0, b.u0, t1=times * b.t1, dt=b.dt, progress=False)
    return sol, time.perf_counter() - began


def row(name: str, method: str, console: "Console") -> Solution:
    b = benchmarks.load(name)
    with console.status(f"{name} with {method}"):
        sol, first = timed(b, method, 1)
        # The time of a step is the slope over many: two runs, one at least 10000 steps longer.
        steps = sol.t.shape[0] - 1
        more = max(2, 1 + 10_000 // steps)
        (_, short), (_, long) = timed(b, method, 1), timed(b, method, more)
    pace = (long - short) / ((more - 1) * steps)
    iterations = " + ".join(f"{x:.2f}" for x in sol.stats.newton_iterations.mean(axis=0))
    words = f"{first:.1f} s", f"{pace * 1e6:.1f}", f"{sol.g_N().min():.0e}", iterations, RUNS[name](sol, b)
    console.print(COLUMNS.format(name, method, str(steps), *words), highlight=False, soft_wrap=True)
    return sol


def draw(name: str, solutions: dict[str, Solution], path: Path) -> None:
    if name == "bouncing-ball":
        plot.bouncing_ball(solutions, benchmarks.load(name), path)
    elif name == "slider-crank":
        plot.slider_crank(solutions["rattle"], path)
    else:
        plot.tippedisk(solutions["rattle"], benchmarks.load(name), path)


def run(out: Path, console: "Console") -> None:
    """Whoever watches sees something at once, also through a pipe."""
    need_all({"matplotlib": "plots", **NEEDED}, "stickslip demo")

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    say("three benchmarks of nonsmooth RATTLE (S0) and a woodpecker, about a minute on two idle cores")
    say(COLUMNS.format(*HEADINGS))
    for name in RUNS:
        solutions = {method: row(name, method, console) for method in METHODS}
        draw(name, solutions, out / f"{name}.png")
        say(f"wrote {out / f'{name}.png'}")
    b = benchmarks.load("woodpecker")
    with console.status("woodpecker with located events"):
        sol = simulate(
            b.system, RadauIIA(stages=3), b.q0, b.u0, t1=b.t1, rtol=1e-8, atol=1e-8, progress=False
        )
    assert sol.events is not None
    kinds = ", ".join(f"{len(sol.events.of(kind))} {kind}" for kind in dict.fromkeys(sol.events.kind))
    say(
        f"woodpecker, rtol = 1e-8: {sol.stats.steps} steps between {len(sol.events)} located events ({kinds})"
    )
    sol.plot(out / "woodpecker.png")
    sol.animate(out / "woodpecker.html", title="The woodpecker pecks down its pole")
    say(f"wrote {out / 'woodpecker.png'}")
    say(f"page: {out / 'woodpecker.html'}")
