"""S3 section 8.2: half-explicit methods for index 3 with the projection of chapter 4,
proposed there as future work.
"""

import time
from typing import Any

import numpy as np

from .. import benchmarks
from ..methods import HalfExplicit, RadauIIA, Rattle
from .entries import Sheet, entry
from .shared import judge_crank

METHODS = {
    "half-explicit, s = 2": HalfExplicit(stages=2),
    "half-explicit, s = 4": HalfExplicit(stages=4),
    "RATTLE": Rattle(),
}
PROBLEMS = {  # benchmark: (end, what persists)
    "pendulum": (0.5, "a bilateral constraint"),
    "mass-on-slope": (0.5, "contact with slip"),
    "knife-edge": (1.0, "a velocity constraint"),
    "rolling-disc": (0.5, "rolling"),
}


@entry("S3", "8.2", "Half-explicit methods: order and cost beside RATTLE", quick=False, cost=60,
       shows=("pendulum", "mass-on-slope", "knife-edge", "rolling-disc", "slider-crank"))  # fmt: skip
def half_explicit_methods(sheet: Sheet) -> None:
    """Orders on constraints, contact, a skate and in rolling, against three-stage Radau IIA with smaller
    steps; the slider-crank with its impacts, judged as Fig. 7.9, and what a step costs there."""
    panels = sheet.axes(
        1, 4, "Half-explicit methods and RATTLE: error of (q, u) at the end", size=(14.0, 3.3)
    )[0]
    dts = np.geomspace(1e-2, 5e-4, 6)
    for axis, (name, (t1, what)) in zip(panels, PROBLEMS.items(), strict=True):
        b: Any = benchmarks.load(name)
        ref = sheet.run_sound(b, RadauIIA(stages=3), t1=t1, dt=dts[-1] / 2)
        for k, (kind, method) in enumerate(METHODS.items()):
            ends = [sheet.run(b, method, t1=t1, dt=dt) for dt in dts]
            errors = [max(np.abs(s.q[-1] - ref.q[-1]).max(), np.abs(s.u[-1] - ref.u[-1]).max()) for s in ends]
            source = "derived in `methods/half_explicit.py`; S0 for RATTLE"
            sheet.order(f"{what}, {kind}", dts, errors, method.order, source=source)
            axis.loglog(dts, errors, "o-", ms=3, lw=1, label=kind, color=f"C{k}")
        axis.set(xlabel=r"$\Delta t$", title=f"{name}: {what}")
    panels[0].legend(fontsize=8)
    b = benchmarks.load("slider-crank")
    for kind, method in METHODS.items():
        sol = sheet.run(b, method)
        with sheet.under(f"slider-crank, {kind}"):
            judge_crank(sheet, b, sol)
    best = dict.fromkeys(METHODS, np.inf)
    for _ in range(5):  # in turns: a busy machine is busy for all of them
        for kind, method in METHODS.items():
            began = time.perf_counter()
            sheet.run_sound(b, method, t1=0.05, dt=2e-5)
            best[kind] = min(best[kind], time.perf_counter() - began)
    for kind in list(METHODS)[:2]:
        ratio = best[kind] / best["RATTLE"]
        limit = 3.0 if "4" in kind else 1.5
        source = (
            f"measured here: {1e6 * best[kind] / 2500:.1f} us a step, RATTLE "
            f"{1e6 * best['RATTLE'] / 2500:.1f}"
        )
        sheet.at_most(
            f"slider-crank, {kind}: time of a step over that of RATTLE", ratio, limit, source=source
        )
