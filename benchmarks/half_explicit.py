"""Half-explicit methods (S3 section 8.2) beside RATTLE: orders on contact and constraints,
cost on the slider-crank.

    python benchmarks/half_explicit.py            # all tables
    python benchmarks/half_explicit.py orders     # or one: orders, cost

Orders are slopes over two decades of dt against three-stage Radau IIA with half the smallest dt. Cost:
microseconds a step of the slider-crank with its impacts, warm, best of several runs that take turns; then the
error that so many steps leave on the same mechanism without its first impact, against a converged run.
"""

import sys
import time

import numpy as np

import stickslip as ss

METHODS = {"HalfExplicit(2)": ss.HalfExplicit(2), "HalfExplicit(4)": ss.HalfExplicit(4),
           "Rattle": ss.Rattle(), "RadauIIA(2)": ss.RadauIIA(2)}  # fmt: skip
PROBLEMS = {  # name: (benchmark, case, end, what persists)
    "pendulum": (1, 0.5, "a bilateral constraint"),
    "mass-on-slope": (1, 0.5, "contact with slip"),
    "knife-edge": (1, 1.0, "a velocity constraint"),
    "puck": (1, 0.2, "slip that turns"),
    "rolling-disc": (1, 0.5, "rolling"),
    "tippedisk": (1, 0.1, "Coulomb-Contensou friction"),
}


def slopes(name: str, case: int, t1: float, method: ss.Method, dts: np.ndarray) -> tuple[float, float]:
    b = ss.benchmarks.load(name, case)
    ref = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=t1, dt=dts[-1] / 2)
    runs = [ss.simulate(b.system, method, b.q0, b.u0, t1=t1, dt=dt) for dt in dts]
    errors = np.array([[np.abs(s.q[-1] - ref.q[-1]).max(), np.abs(s.u[-1] - ref.u[-1]).max()] for s in runs])
    errors = np.where(errors > 1e-12, errors, np.nan)  # round-off has no order
    seen = np.isfinite(errors)
    of_q, of_u = (
        np.polyfit(np.log(dts[k]), np.log(e[k]), 1)[0] for e, k in zip(errors.T, seen.T, strict=True)
    )
    return of_q, of_u


def orders() -> None:
    print(f"{'orders in q, u':16}" + "".join(f"{name:>18}" for name in METHODS))
    dts = np.geomspace(1e-2, 1e-4, 6)
    for name, (case, t1, what) in PROBLEMS.items():
        found = [
            slopes(name, case, t1, m, dts * (0.2 if name == "tippedisk" else 1.0)) for m in METHODS.values()
        ]
        print(f"{name:16}" + "".join(f"{q:11.2f}, {u:.2f}" for q, u in found) + f"   {what}", flush=True)


def cost() -> None:
    b = ss.benchmarks.load("slider-crank")
    n = 5000
    best = dict.fromkeys(METHODS, np.inf)
    for _ in range(6):
        for name, method in METHODS.items():
            began = time.perf_counter()
            ss.simulate(b.system, method, b.q0, b.u0, t1=n * 1e-5, dt=1e-5, progress=False)
            best[name] = min(best[name], time.perf_counter() - began)
    print("\nslider-crank, dt = 1e-5, 5000 steps with impacts: microseconds a step")
    for name, seconds in best.items():
        print(f"{name:16} {1e6 * seconds / n:8.1f}   {seconds / best['Rattle']:.2f} of RATTLE")
    events = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=5e-3, rtol=1e-8, atol=1e-10).events
    t1 = 0.9 * events.t[0]
    ref = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=t1, dt=t1 / 2000)
    print(
        f"\nslider-crank until t = {t1:.2e}, before its first event: error of (q, u), relative, for so many "
        "steps"
    )
    for name, method in METHODS.items():
        line = []
        for steps in (10, 30, 100, 300):
            s = ss.simulate(b.system, method, b.q0, b.u0, t1=t1, dt=t1 / steps)
            off = max(
                np.abs(x[-1] - y[-1]).max() / np.abs(y[-1]).max() for x, y in ((s.q, ref.q), (s.u, ref.u))
            )
            line.append(f"{steps}: {off:.1e}")
        print(f"{name:16} " + "   ".join(line), flush=True)


if __name__ == "__main__":
    for table in sys.argv[1:] or ("orders", "cost"):
        {"orders": orders, "cost": cost}[table]()
