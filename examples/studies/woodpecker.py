"""A toy woodpecker pecks its way down a pole: a limit cycle that drifts, and the friction that it needs."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import stickslip as ss

SMALL = "--small" in sys.argv
TOLERANCE = 1e-5 if SMALL else 1e-8
b = ss.benchmarks.load("woodpecker", 2)

# Nothing drives it: the period is unknown, and from one period to the next it is lower by ``drift``.
# The period begins in free flight, far from all events.
settled = ss.simulate(b.system, None, b.q0, b.u0, t1=0.05, rtol=1e-8)
orbit = ss.periodic_orbit(b.system, settled.q[-1], settled.u[-1], period_guess=0.146, drift=0, rtol=TOLERANCE)
print(orbit)
descent, T = -1e3 * orbit.drift[0], 1e3 * orbit.period
print(f"it descends {descent:.4f} mm in {T:.4f} ms; multipliers {orbit.multipliers.round(6)}")
if not SMALL:
    orbit.solution.plot("woodpecker_cycle.png", "one period", panels=("velocities", "states"))

# Less friction, a faster descent, until it does not hold any more
branches = [ss.continuation(orbit, "mu", (0.27, 0.36), max_points=2 if SMALL else 400)]
if not SMALL:
    branches.append(ss.continuation(orbit, "mu", (0.27, 0.36), backwards=True))
print(*branches, sep="\n")
_, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for part in branches:
    axes[0].plot(part.value, 1e3 * part.period, "C0.-", ms=3)
    axes[1].plot(part.value, np.abs(part.multipliers), "C0.-", ms=3)
axes[0].set(xlabel="mu", ylabel="period in ms")
axes[1].set(xlabel="mu", ylabel="|multipliers|")
axes[1].axhline(1.0, color="k", lw=0.6)
plt.savefig("woodpecker_branch.png")
