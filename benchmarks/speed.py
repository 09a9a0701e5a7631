"""How long a step takes, how long compiling takes, and the ratio to a naive code in the same run.

    taskset -c 0 .venv/bin/python benchmarks/speed.py                          (one core)
    taskset -c 0 .venv/bin/python benchmarks/speed.py --against FOLDER [NAME ...]   (beside another checkout)

Times are the best of several repetitions of 1000 steps; compile times are those of a fresh process without
disk cache. Beside another checkout, each has a process and they take turns: ratios of medians, so that a busy
moment hits both alike.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ["STICKSLIP_CACHE"] = "off"

import jax
import jax.numpy as jnp

import naive
import stickslip as ss
from stickslip.fixed import FixedSteps
from stickslip.loop import begin, piece
from stickslip.methods import REGISTRY

try:
    from stickslip.methods.base import with_solver
except ImportError:  # a checkout from before it moved
    from stickslip.simulate import with_solver
from stickslip.validate import as_parameters

STEPS, REPEAT = 1000, 15


def first_run(b, method):
    began = time.perf_counter()
    ss.simulate(b.system, method, b.q0, b.u0, t1=b.t1, dt=b.dt)
    return time.perf_counter() - began


def prepare(b, method):
    """A function that makes 1000 steps from the start, compiled."""
    system = as_parameters(b.system)
    quick = with_solver(method, method.solver.first_try())
    fixed = FixedSteps(*(jnp.asarray(float(a)) for a in (0.0, STEPS * b.dt, b.dt)), *[jnp.asarray(STEPS)] * 2)
    dynamics, carry, *_ = begin(system, quick, fixed, fixed.t0, b.q0, b.u0, "")

    def run():
        out, *_ = piece(dynamics, quick, fixed, carry, jnp.asarray(STEPS), "")
        assert int(out.k) == STEPS
        return out

    run()
    return run


def best(*runs):
    """Best time of each in us per step, interleaved so that a busy moment hits all alike."""
    times = [float("inf")] * len(runs)
    for _ in range(REPEAT):
        for i, run in enumerate(runs):
            began = time.perf_counter()
            jax.block_until_ready(run())
            times[i] = min(times[i], time.perf_counter() - began)
    return [t / STEPS * 1e6 for t in times]


PAIRS = [
    *(("slider-crank", key) for key in REGISTRY),
    *(
        (name, key)
        for name in ("bouncing-ball", "mass-on-slope", "tippedisk")
        for key in ("moreau", "rattle", "radau2", "lobatto3")
    ),
]

# With the other checkout's own `prepare`: what a step is made of may have changed its name.
WORKER = """
import sys, time
import jax, speed, stickslip as ss
from stickslip.methods import REGISTRY
for line in sys.stdin:
    name, key = line.split()
    if key not in REGISTRY:
        print("unknown", flush=True)
        continue
    b = ss.benchmarks.load(name)
    run = speed.prepare(b, REGISTRY[key]())
    print("ready", flush=True)
    for line in sys.stdin:
        if line != "go\\n":
            break
        began = time.perf_counter()
        jax.block_until_ready(run())
        print(time.perf_counter() - began, flush=True)
"""


def worker(folder):
    path = os.pathsep.join(str(Path(folder).resolve() / part) for part in ("src", "benchmarks"))
    start = {
        "env": {**os.environ, "PYTHONPATH": path},
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
    }
    return subprocess.Popen([sys.executable, "-c", WORKER], **start)


def against(folder, names):
    """Medians of this checkout over those of another one, for all benchmarks or those named."""
    both, ratios = (worker(Path(__file__).parents[1]), worker(folder)), []

    def ask(process, words):
        print(words, file=process.stdin, flush=True)
        return process.stdout.readline().strip()

    for name, key in PAIRS:
        if names and name not in names:
            continue
        ready = [ask(process, f"{name} {key}") for process in both]
        if ready == ["ready", "unknown"]:  # the method is newer than the other checkout
            print("next", file=both[0].stdin, flush=True)
            continue
        assert ready == ["ready", "ready"], (name, key, ready)
        times = [[float(ask(process, "go")) for process in both] for _ in range(4 * REPEAT)]
        for process in both:
            print("next", file=process.stdin, flush=True)
        here, there = (statistics.median(column) / STEPS * 1e6 for column in zip(*times, strict=True))
        ratios.append(here / there)
        print(
            f"{name:15s} {key:18s} {here:7.2f} us a step here, {there:7.2f} there, ratio {here / there:.3f}",
            flush=True,
        )
    print(f"geometric mean of all ratios {statistics.geometric_mean(ratios):.3f}, largest {max(ratios):.3f}")


def main():
    if sys.argv[1:2] == ["--against"]:
        return against(sys.argv[2], sys.argv[3:])
    print(f"jax {jax.__version__}, {os.cpu_count()} cores seen, {len(os.sched_getaffinity(0))} used")
    crank, method = ss.benchmarks.load("slider-crank"), ss.Rattle()
    print(f"slider-crank, rattle: compile and first run {first_run(crank, method):.2f} s")
    print(f"slider-crank, radau3: compile and first run {first_run(crank, REGISTRY['radau3']()):.2f} s")
    plain = naive.make(crank.system, crank.dt)
    plain(crank.q0, crank.u0, STEPS)
    ours, theirs = best(prepare(crank, method), lambda: plain(crank.q0, crank.u0, STEPS))
    print(
        f"slider-crank, rattle: {ours:.1f} us a step, naive dense Newton {theirs:.1f}, ratio "
        f"{ours / theirs:.3f}"
    )
    print("slider-crank, cost of a step over a RATTLE step, all interleaved:")
    names = [name for name in REGISTRY if name != "rattle"]
    rattle, *others = best(prepare(crank, method), *(prepare(crank, REGISTRY[name]()) for name in names))
    for name, us in zip(names, others, strict=True):
        print(f"  {name:15s} {us:6.1f} us, {us / rattle:5.2f} times")
    for name in ("bouncing-ball", "mass-on-slope", "tippedisk"):
        b = ss.benchmarks.load(name)
        for key in ("moreau", "rattle", "radau2", "radau3", "lobatto3"):
            make = REGISTRY[key]
            first = first_run(b, make())
            print(
                f"{name:15s} {key:15s} first run {first:5.2f} s, {best(prepare(b, make()))[0]:6.2f} us a step"
            )


if __name__ == "__main__":
    main()
