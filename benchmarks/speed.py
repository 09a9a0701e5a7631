"""How long a step takes, how long compiling takes, and the ratio to a naive code in the same run.

    taskset -c 0 .venv/bin/python benchmarks/speed.py        (one core)

Times are the best of several repetitions of 1000 steps; compile times are those of a fresh process without disk cache.
"""

import os
import time

os.environ["STICKSLIP_CACHE"] = "off"

import jax
import jax.numpy as jnp

import naive
import stickslip as ss
from stickslip.loop import Clock, begin, chunk
from stickslip.methods import REGISTRY
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
    clock = Clock(*(jnp.asarray(float(a)) for a in (0.0, STEPS * b.dt, b.dt)), jnp.asarray(STEPS))
    dynamics, carry, *_ = begin(system, quick, clock, b.q0, b.u0, "")

    def run():
        out, _ = chunk(dynamics, quick, clock, carry, jnp.asarray(STEPS), "")
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


def main():
    print(f"jax {jax.__version__}, {os.cpu_count()} cores seen, {len(os.sched_getaffinity(0))} used")
    crank, method = ss.benchmarks.load("slider-crank"), ss.Rattle()
    print(f"slider-crank, rattle: compile and first run {first_run(crank, method):.2f} s")
    print(f"slider-crank, radau3: compile and first run {first_run(crank, REGISTRY['radau3']()):.2f} s")
    plain = naive.make(crank.system, crank.dt)
    plain(crank.q0, crank.u0, STEPS)
    ours, theirs = best(prepare(crank, method), lambda: plain(crank.q0, crank.u0, STEPS))
    print(f"slider-crank, rattle: {ours:.1f} us a step, naive dense Newton {theirs:.1f}, ratio {ours / theirs:.3f}")
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
            print(f"{name:15s} {key:15s} first run {first:5.2f} s, {best(prepare(b, make()))[0]:6.2f} us a step")


if __name__ == "__main__":
    main()
