"""One scheme, one file; the registry that tests, benchmarks and the command line read."""

from collections.abc import Callable
from functools import partial

from ..validate import nearest
from .base import Method as Method
from .diagonally_implicit import SDIRK2 as SDIRK2
from .diagonally_implicit import SDIRK3 as SDIRK3
from .diagonally_implicit import TRBDF2 as TRBDF2
from .diagonally_implicit import TRX2 as TRX2
from .diagonally_implicit import TRTheta as TRTheta
from .extrapolation import Extrapolation as Extrapolation
from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .half_explicit import HalfExplicit as HalfExplicit
from .moreau import MoreauMidpoint as MoreauMidpoint
from .partitioned import LobattoIIIAB as LobattoIIIAB
from .projected import LobattoIIIC as LobattoIIIC
from .projected import RadauIIA as RadauIIA
from .rattle import Rattle as Rattle
from .shifted_moreau import ShiftedMoreau as ShiftedMoreau
from .shifted_moreau import recovered_positions as recovered_positions
from .shifted_moreau import shifted_start as shifted_start


def by_name(name: str) -> Method:
    """A method from what a person types: a name of the registry,
    or a family with a number of stages ("radau4").
    """
    if name in REGISTRY:
        return REGISTRY[name]()
    family = name.rstrip("0123456789")
    if family in FAMILIES and family != name:
        return FAMILIES[family](stages=int(name[len(family) :]))
    raise nearest("method", name, REGISTRY)


FAMILIES: dict[str, Callable[..., Method]] = {
    "lobatto": LobattoIIIAB,
    "radau": RadauIIA,
    "lobattoc": LobattoIIIC,
}
# Names a person types -> how to make the method.
REGISTRY: dict[str, Callable[..., Method]] = {
    "moreau": MoreauMidpoint,
    "shifted-moreau": ShiftedMoreau,
    "rattle": Rattle,
    "lobatto2": partial(LobattoIIIAB, stages=2),
    "lobatto3": partial(LobattoIIIAB, stages=3),
    "radau1": partial(RadauIIA, stages=1),
    "radau2": partial(RadauIIA, stages=2),
    "radau3": partial(RadauIIA, stages=3),
    "lobattoc2": partial(LobattoIIIC, stages=2),
    "lobattoc3": partial(LobattoIIIC, stages=3),
    "sdirk2": SDIRK2,
    "sdirk3": SDIRK3,
    "trbdf2": TRBDF2,
    "trx2": TRX2,
    "trtheta": TRTheta,
    "generalized-alpha": GeneralizedAlpha,
    "half-explicit": HalfExplicit,
}
