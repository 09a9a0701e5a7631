"""One scheme, one file; the registry that tests, benchmarks and the command line read."""

from collections.abc import Callable

from .base import Method as Method
from .moreau import MoreauMidpoint as MoreauMidpoint
from .rattle import Rattle as Rattle
from .shifted_moreau import ShiftedMoreau as ShiftedMoreau
from .shifted_moreau import recovered_positions as recovered_positions
from .shifted_moreau import shifted_start as shifted_start

# Names a person types -> how to make the method.
REGISTRY: dict[str, Callable[..., Method]] = {
    "moreau": MoreauMidpoint,
    "shifted-moreau": ShiftedMoreau,
    "rattle": Rattle,
}
