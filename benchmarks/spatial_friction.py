"""Work against precision on the tippedisk: the stagewise friction law, the printed one, and Moreau's rule.

    taskset -c 0 .venv/bin/python benchmarks/spatial_friction.py [--plot docs/pictures/spatial_friction.png]

Errors are the largest in q over t = 0 to 0.1, against three-stage Radau IIA with 1600 steps; times are those
of compiled steps, the best of several runs, taken in turn.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import stickslip as ss

END, COMMON = 0.1, 50


def run(method, steps):
    b = ss.benchmarks.load("tippedisk")
    return ss.simulate(b.system, method, b.q0, b.u0, t1=END, dt=END / steps, progress=False)


def measured(method, steps, reference):
    error = np.abs(run(method, steps).q[:: steps // COMMON] - reference).max()
    best = np.inf
    for _ in range(5):
        began = time.perf_counter()
        run(method, steps)
        best = min(best, time.perf_counter() - began)
    return error, best


def main(plot):
    reference = run(ss.RadauIIA(3), 1600).q[:: 1600 // COMMON]
    curves = {}
    cases = {
        f"{label}, {friction}": (
            make(friction=friction),
            steps if friction == "stagewise" else (50, 200, 800, 3200),
        )
        for label, make, steps in (
            ("RATTLE", ss.Rattle, (50, 200, 800, 3200)),
            ("Lobatto 3", lambda **k: ss.LobattoIIIAB(3, **k), (50, 100, 200)),
            ("Radau 2", lambda **k: ss.RadauIIA(2, **k), (50, 100, 200, 400)),
            ("Radau 3", lambda **k: ss.RadauIIA(3, **k), (50, 100)),
        )
        for friction in ("stagewise", "printed")
    }
    cases["Moreau"] = ss.MoreauMidpoint(), (100, 1000, 10000)
    for name, (method, steps) in cases.items():
        curves[name] = np.array([measured(method, n, reference) for n in steps])
        text = "  ".join(
            f"{n}: {e:.1e} in {1e3 * t:.1f} ms" for n, (e, t) in zip(steps, curves[name], strict=True)
        )
        print(f"{name:24s} {text}", flush=True)
    moreau = curves["Moreau"][-1]
    for name in ("Radau 2, stagewise", "Lobatto 3, stagewise"):
        error, took = curves[name][1]
        gain = f"{moreau[0] / error:.0f} times the accuracy, {moreau[1] / took:.1f} times as fast"
        print(f"{name}, dt 1e-3, against Moreau, dt 1e-5: {gain}")
    if plot is not None:
        from stickslip.plot import work_precision

        work_precision(curves, "Tippedisk, t = 0 to 0.1: friction stage by stage and as printed", plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", type=Path)
    main(parser.parse_args().plot)
