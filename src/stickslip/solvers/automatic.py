"""The default: Newton, and where it meets a singular or non-convergent problem, the fixed point."""

import equinox as eqx
import jax
from jaxtyping import Array

from ..results import RESULTS
from .base import Solver
from .fixed_point import FixedPoint
from .newton import SemismoothNewton
from .problem import Problem, Solve


class Automatic(Solver):
    newton: SemismoothNewton = eqx.field(default_factory=SemismoothNewton)
    fixed_point: FixedPoint = eqx.field(default_factory=FixedPoint)

    def first_try(self) -> Solver:
        return self.newton

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        first = self.newton.iterate(problem, x, y)

        # A loop that runs at most once: unlike `cond` it costs nothing under vmap while nobody needs it.
        def failed(state):
            _, _, _, waiting = state
            return waiting

        def fall_back(state):
            solve, x, y, waiting = state
            second = self.fixed_point.iterate(_pinned(problem, x), x, y)
            return second._replace(newton_iterations=solve.newton_iterations), second.x, second.y, ~waiting

        waiting = first.result != RESULTS.successful
        solve, _, _, _ = jax.lax.while_loop(failed, fall_back, (first, x, y, waiting))
        return solve


def _pinned(problem: Problem, x: Array) -> Problem:
    """The same problem, but tied to a loop variable: the compiler must not move its preparation out of the loop."""
    arrays, rest = eqx.partition(problem, eqx.is_array)
    arrays, _ = jax.lax.optimization_barrier((arrays, x))
    return eqx.combine(arrays, rest)
