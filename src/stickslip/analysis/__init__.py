"""From one run to a study: sweeps, sections, diagrams, periodic orbits, exponents, basins, fits."""

from . import pictures as pictures
from .basins import basins as basins
from .branches import Branch as Branch
from .branches import continuation as continuation
from .exponents import Lyapunov as Lyapunov
from .exponents import lyapunov as lyapunov
from .fitting import Fit as Fit
from .fitting import FitError as FitError
from .fitting import fit as fit
from .orbits import OrbitError as OrbitError
from .orbits import PeriodicOrbit as PeriodicOrbit
from .orbits import periodic_orbit as periodic_orbit
from .sections import bifurcation as bifurcation
from .sections import poincare as poincare
from .store import open_sweep as open_sweep
from .sweep import SweepError as SweepError
from .sweep import samples as samples
from .sweep import sweep as sweep
