"""S4 Figs. 12(e), 12(f), 14: error against dt_max and against work,
and the work Moreau's rule needs for the same error.

.venv/bin/python benchmarks/switching_points.py [--plot build/switching_points.png]
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicHermiteSpline

import stickslip as ss
from stickslip.benchmarks.impact_oscillator import exact


def run(name, method, **steps):
    b = ss.benchmarks.load(name)
    return ss.simulate(b.system, method, b.q0, b.u0, t1=b.t1, **steps)


def work(sol):
    """Projective iterations."""
    return int(sol.stats.newton_iterations.sum() + sol.stats.fixed_point_iterations.sum())


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def main(plot):
    curves = {}
    for p in (1, 2, 3, 4):
        dts = np.geomspace(1e-4, 1e-3, 12) if p == 1 else np.geomspace(1e-3, 1e-2, 12)
        method = ss.Extrapolation(p, fixed_order=True)
        sols = [run("impact-oscillator", method, stepsize=ss.SwitchingPoints(dt**p, dt)) for dt in dts]
        errors = [np.abs(s.q[:, 0] - exact(s.t)).max() for s in sols]
        curves["impact oscillator", p] = dts, errors, [int(s.stats.attempts) for s in sols]
        print(
            f"impact oscillator, order {p}: slope {slope(dts, errors):.2f}, errors {errors[-1]:.1e} to "
            f"{errors[0]:.1e}"
        )
    fine = run("woodpecker", ss.Extrapolation(6, fixed_order=True), stepsize=ss.SwitchingPoints(1e-10, 5e-5))
    phi_S = CubicHermiteSpline(fine.t, fine.q[:, 2], fine.u[:, 2])

    def error(sol):
        return np.abs(sol.q[:, 2] - phi_S(sol.t)).max()

    for p in (1, 2, 3, 4):
        dts = np.geomspace(1e-5, 1e-4, 10) if p == 1 else np.geomspace(2e-4, 2e-3, 10)
        method = ss.Extrapolation(p, fixed_order=True)
        sols = [run("woodpecker", method, stepsize=ss.SwitchingPoints(1e-10, dt)) for dt in dts]
        errors = [error(s) for s in sols]
        curves["woodpecker", p] = dts, errors, [work(s) for s in sols]
        print(
            f"woodpecker, order {p}: slope {slope(dts, errors):.2f}, errors {errors[-1]:.1e} to "
            f"{errors[0]:.1e}"
        )
    adjusted = run("woodpecker", ss.Extrapolation(6), stepsize=ss.SwitchingPoints(1e-8, 5e-3))
    print(
        f"woodpecker, adjusted: error {error(adjusted):.1e}, work {work(adjusted)}, steps "
        f"{len(adjusted.t) - 1}"
    )
    for dt in (5e-6, 1e-6, 2e-7):
        sol = run("woodpecker", ss.MoreauMidpoint(), dt=dt)
        times = work(sol) / work(adjusted)
        print(
            f"woodpecker, Moreau, dt {dt:g}: error {error(sol):.1e}, work {work(sol)}, {times:.0f} times the "
            "adjusted run's"
        )
    if plot is not None:
        from stickslip.plot import switching_points

        switching_points(curves, plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", type=Path)
    main(parser.parse_args().plot)
