"""What solves the contact problem of a step; the solver also says where:
on the processor, or on the device of JAX.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class AndersonSOR:
    """Projected Gauss-Seidel sweeps in the order of space, accelerated by Anderson's mixing;
    on one core, with numba.
    """

    # a step that is not solved by then is unsolved; one that still converges may take three times as many
    max_sweeps: int = 100
    relaxation: float = 1.2  # of a sweep, between 0 and 2
    depth: int = 5  # differences that the mixing remembers; 0: plain sweeps
    newton_below: int = 500  # contacts up to which a sparse Newton method tries what sweeps have not solved

    def __post_init__(self) -> None:
        check(self, "max_sweeps", "relaxation", "depth", "newton_below")


def check(solver: Any, sweeps: str, relaxation: str, *counts: str) -> None:
    """Options within their bounds."""
    owner = type(solver).__name__
    for name, least in ((sweeps, 1), *((name, 0) for name in counts)):
        value = getattr(solver, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{owner}({name}={value!r}): {name} must be a whole number of at least {least}")
    value = getattr(solver, relaxation)
    if not 0.0 < value < 2.0:
        raise ValueError(f"{owner}({relaxation}={value!r}): {relaxation} must be between 0 and 2")


def default_solver() -> Any:
    """On one core, where numba is installed."""
    if find_spec("numba") is None:
        from .jacobi import AndersonJacobi

        return AndersonJacobi()
    return AndersonSOR()
