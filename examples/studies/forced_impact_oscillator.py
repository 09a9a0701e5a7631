"""A mass on a shaken spring meets a wall: period one, period doubling, chaos, and two motions at once."""

import sys

import numpy as np

import stickslip as ss
from stickslip.analysis import pictures
from stickslip.benchmarks.forced_impact_oscillator import ForcedImpactOscillator

SMALL = "--small" in sys.argv  # seconds in place of minutes
ACCURACY = {"rtol": 1e-6} if SMALL else {}


def period(system):
    return 2.0 * np.pi / system.Omega


# Brute force: once a period, for each frequency of the force
values = np.linspace(2.5, 3.0, 8 if SMALL else 1000)
transient, keep = (20, 10) if SMALL else (250, 50)
diagram = ss.bifurcation(
    ForcedImpactOscillator(), "Omega", values, [-0.5], [0.0], period=period, transient=transient, keep=keep
)
pictures.bifurcation(diagram, path="forced_diagram.png")

# The orbit itself, also where it is unstable, and the frequency at which it doubles its period
orbit = ss.periodic_orbit(ForcedImpactOscillator(Omega=2.5), [-0.78], [0.1], period=period, **ACCURACY)
branch = ss.continuation(orbit, "Omega", (2.5, 2.55 if SMALL else 3.0))
branch.plot("forced_branch.png")
print(orbit)
print(branch)

# Chaos: neighbours part
exponents = ss.lyapunov(
    ForcedImpactOscillator(Omega=2.8), [-1.0], [0.0], period=period, n=50 if SMALL else 2000, **ACCURACY
)
exponents.plot("forced_exponents.png")
print(exponents)

# With a wall further away the mass may touch it or not: where does it begin to?
side = 3 if SMALL else 80
starts = {"x": np.linspace(-2.0, 0.45, side), "x_dot": np.linspace(-3.0, 3.0, side)}
basins = ss.basins(
    ForcedImpactOscillator(Omega=1.88, d=0.5), starts, [0.0], [0.0], period=period, transient=60
)
pictures.basins(basins, path="forced_basins.png")
