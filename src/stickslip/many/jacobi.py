"""A contact solver for the device of JAX: all contacts at once, accelerated by Anderson's mixing."""

from dataclasses import dataclass

from .solvers import check


@dataclass(frozen=True)
class AndersonJacobi:
    """Projected Jacobi relaxation with Anderson's mixing; a step in one compiled function, on a GPU or without numba."""

    max_iterations: int = 200  # a step that is not solved by then is unsolved
    relaxation: float = 1.0  # of the prox parameters 1/G_kk, divided by contacts per body
    depth: int = 6  # differences that the mixing remembers; 0: plain relaxation
    deterministic: bool = False  # on a GPU, whether two runs agree bit for bit

    def __post_init__(self) -> None:
        check(self, "max_iterations", "relaxation", "depth")
