"""The tippedisk as in S3 7.10: 5 s with RATTLE and two-stage Radau at dt = 1e-3 against Moreau at dt = 1e-5,
in one run.

    taskset -c 0 .venv/bin/python benchmarks/tippedisk.py

Whole calls of `simulate` are timed (compiled before), interleaved, and the fastest of each is taken.
"""

import time

import numpy as np

import stickslip as ss

ROUNDS = 4


def main() -> None:
    b = ss.benchmarks.load("tippedisk")
    runs = {
        "moreau": (ss.MoreauMidpoint(), 1e-5),
        "rattle": (ss.Rattle(), 1e-3),
        "radau2": (ss.RadauIIA(stages=2), 1e-3),
    }
    best = dict.fromkeys(runs, np.inf)
    rise = b.reference["plateau"] - float(b.q0[2])
    worst = {}
    for k in range(ROUNDS + 1):
        for name, (method, dt) in runs.items():
            began = time.perf_counter()
            sol = ss.simulate(b.system, method, b.q0, b.u0, t1=5.0, dt=dt)
            took = time.perf_counter() - began
            if k > 0:  # the first round compiles
                best[name] = min(best[name], took)
            z = {t: sol.q[round(t / dt), 2] for t in b.reference["z"]}
            worst[name] = max(abs(z[t] - v) for t, v in b.reference["z"].items()) / rise
    for name, (_, dt) in runs.items():
        print(
            f"{name:8s} dt {dt:g}: {best[name]:.3f} s for 5 s, {best['moreau'] / best[name]:.1f} times as "
            "fast as moreau,"
            f" worst height error {100 * worst[name]:.2f} % of the rise"
        )


if __name__ == "__main__":
    main()
