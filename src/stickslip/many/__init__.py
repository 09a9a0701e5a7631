"""Many bodies: thousands of balls or disks in contact, every step with a certificate of what it is worth."""

from .bodies import Balls as Balls
from .bodies import Disks as Disks
from .jacobi import AndersonJacobi as AndersonJacobi
from .methods import LinearisedGaps as LinearisedGaps
from .methods import Moreau as Moreau
from .methods import Rattle as Rattle
from .mixer import disk_mixer as disk_mixer
from .run import resume as resume
from .run import simulate as simulate
from .solution import Contacts as Contacts
from .solution import ManySolution as ManySolution
from .solution import ManyStats as ManyStats
from .solvers import AndersonSOR as AndersonSOR
from .stored import load as load
from .system import ManyBodies as ManyBodies
from .walls import Drum as Drum
from .walls import Plane as Plane
from .walls import box as box
