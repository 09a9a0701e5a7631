"""Work against precision on the mass on a slope: with contact that persists, and across an impact.

    taskset -c 0 .venv/bin/python benchmarks/work_precision.py [docs/pictures/work_precision.png]

Errors in q in the norm S3 (4.56), h sum |e_n|_1, against the exact motion; with adjusted steps the sum
runs over the steps with their own sizes. How well an impact is met by the grid is luck: of eight steps close
to each other the worst counts. With tolerances the impact is located, and no luck is needed. Times are steps
(rejected ones too) times the time of a compiled step.
"""

import sys
import time

import numpy as np

import stickslip as ss
from stickslip import plot
from stickslip.benchmarks.mass_on_slope import exact

T1 = 1.6
PHASES = (1.0, 1.03, 1.07, 1.11, 1.16, 1.21, 1.27, 1.34)


def solved(case: int, method, **steps):
    b = ss.benchmarks.load("mass-on-slope", case)
    return ss.simulate(b.system, method, b.q0, b.u0, t1=T1, progress=False, **steps)


def error(case: int, sol) -> float:
    e = np.abs(sol.q - exact(ss.benchmarks.load("mass-on-slope", case), sol.t).q).sum(axis=1)
    return float((sol.dt * e).sum())


def seconds(case: int, method, **steps) -> float:
    """The best of five compiled runs."""
    solved(case, method, **steps)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        solved(case, method, **steps)
        took.append(time.perf_counter() - began)
    return min(took)


def pace(case: int, method, coarse: dict, fine: dict) -> float:
    """Seconds a step: the slope between a short and a long run,
    free of what `simulate` does around the steps.
    """
    n, N = (_work(solved(case, method, **steps)) for steps in (coarse, fine))
    return (seconds(case, method, **fine) - seconds(case, method, **coarse)) / (N - n)


def _work(sol) -> int:
    """Steps computed, rejected ones too."""
    return len(sol.t) - 1 if sol.stats.attempts is None else int(sol.stats.attempts)


METHODS = {
    "Moreau": ss.MoreauMidpoint(),
    "RATTLE": ss.Rattle(),
    "Lobatto IIIA-IIIB, 3 stages": ss.LobattoIIIAB(stages=3),
    "Radau IIA, 2 stages": ss.RadauIIA(stages=2),
    "Radau IIA, 3 stages": ss.RadauIIA(stages=3),
    "TR-BDF2": ss.TRBDF2(),
    "generalized-alpha": ss.GeneralizedAlpha(rho_inf=0.9),
}


def curve(case: int, method, steps: list[list[dict]], long: dict) -> np.ndarray:
    """(error, seconds) for each choice of steps, each choice a few that are alike."""
    per_step = pace(case, method, steps[0][0], long)
    rows = []
    for alike in steps:
        runs = [solved(case, method, **choice) for choice in alike]
        rows.append((max(error(case, sol) for sol in runs), per_step * _work(runs[0])))
    return np.array(rows)


def adjusted(h: float) -> dict:
    """Small steps where a law switches: errors there and of order 3 elsewhere are alike."""
    return {"stepsize": ss.SwitchingPoints(dt_min=h**3, dt_max=h, rtol=1e-12, atol=1e-12)}


def located(tol: float) -> dict:
    return {"rtol": tol, "atol": tol}


def main(file: str) -> None:
    curves: dict[int, dict[str, np.ndarray]] = {5: {}, 6: {}}
    extrapolation = ss.Extrapolation(3, base=ss.RadauIIA(1), fixed_order=True)
    for case, found in curves.items():
        for name, method in METHODS.items():
            sizes = [[{"dt": T1 / round(a * 2**k)} for a in PHASES] for k in range(4, 11)]
            found[name] = curve(case, method, sizes, {"dt": T1 / 2**16})
        sizes = [[adjusted(h / a) for a in PHASES] for h in (0.1, 0.05, 0.025, 0.0125)]
        found["extrapolation, steps adjusted"] = curve(case, extrapolation, sizes, adjusted(1e-3))
        for stages in (3, 5):
            sizes = [[located(10.0**-k)] for k in range(3, 13)]
            long = located(1e-8) | {"dt_max": T1 / 2**13}
            found[f"Radau IIA, {stages} stages, events located"] = curve(
                case, ss.RadauIIA(stages), sizes, long
            )
        for name, rows in found.items():
            print(case, f"{name:30s}", "  ".join(f"{e:.1e} {1e3 * s:7.3f} ms" for e, s in rows))
    plot.work_precision_pair(curves[5], curves[6], file)
    print("wrote", file)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/work_precision.png")
