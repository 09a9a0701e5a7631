"""stickslip: mechanical systems with impacts and set-valued friction, on JAX."""

from . import _setup as _setup  # isort: skip  (double precision before anything is computed)
from . import benchmarks as benchmarks
from . import rigid as rigid
from . import shapes as shapes
from . import stored as _stored
from .beam import PlanarBeam as PlanarBeam
from .citations import citation as citation
from .convergence import Convergence as Convergence
from .convergence import convergence as convergence
from .events import Event as Event
from .events import Events as Events
from .files import FileError as FileError
from .files import load as load
from .initial import InitialState as InitialState
from .initial import initial_state as initial_state
from .laws import Contact as Contact
from .laws import Coulomb as Coulomb
from .laws import CoulombContensou as CoulombContensou
from .laws import FrictionElement as FrictionElement
from .laws import FrictionLaw as FrictionLaw
from .laws import Pivoting as Pivoting
from .laws import RectangularCoulomb as RectangularCoulomb
from .laws import Rolling as Rolling
from .laws import stribeck as stribeck
from .methods import SDIRK2 as SDIRK2
from .methods import SDIRK3 as SDIRK3
from .methods import TRBDF2 as TRBDF2
from .methods import TRX2 as TRX2
from .methods import Extrapolation as Extrapolation
from .methods import GeneralizedAlpha as GeneralizedAlpha
from .methods import HalfExplicit as HalfExplicit
from .methods import LobattoIIIAB as LobattoIIIAB
from .methods import LobattoIIIC as LobattoIIIC
from .methods import Method as Method
from .methods import MoreauMidpoint as MoreauMidpoint
from .methods import RadauIIA as RadauIIA
from .methods import Rattle as Rattle
from .methods import ShiftedMoreau as ShiftedMoreau
from .methods import TRTheta as TRTheta
from .methods import recovered_positions as recovered_positions
from .methods import shifted_start as shifted_start
from .results import RESULTS as RESULTS
from .results import SimulationError as SimulationError
from .simulate import simulate as simulate
from .solution import Forces as Forces
from .solution import Solution as Solution
from .solution import Stats as Stats
from .solution import SwitchingPoint as SwitchingPoint
from .solvers import PJOR as PJOR
from .solvers import PSOR as PSOR
from .solvers import Automatic as Automatic
from .solvers import FixedPoint as FixedPoint
from .solvers import SemismoothNewton as SemismoothNewton
from .solvers import Solver as Solver
from .stepsize import SwitchingPoints as SwitchingPoints
from .system import LagrangianSystem as LagrangianSystem
from .system import System as System

_stored.know_modules()

__version__ = "0.1.0"
