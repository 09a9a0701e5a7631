"""The default: Newton, and where it meets a singular or non-convergent problem, other ways to the same solution."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..results import RESULTS
from ..trees import blank
from .base import Solver
from .fixed_point import FixedPoint
from .newton import Guided, SemismoothNewton
from .problem import Anchor, Problem, Solve

PROXIMAL_STEPS = 60
SOFTEN, STIFFEN = 0.3, 5.0  # how the strength of the proximal term, 1 at first, changes after success and failure


class _Attempt(NamedTuple):
    solve: Solve
    number: Array
    x: Array
    y: Array
    strength: Array
    weights: Array


class Automatic(Solver):
    """Tries, in this order, and stops at the first success:

    1. Newton from the last percussion;
    2. Newton from contacts that stick in all stages, in all but the first, and so on: in a tangential impact (Painleve)
       nothing near the last percussion is a solution, but sticking is;
    3. proximal steps: Newton with psi + r (mu - mu_k) in place of psi, mu_k the solution before, and r falling. Redundant
       contacts become independent, the sequence converges to one of their solutions, and where their rows contradict each
       other in one contact mode it runs, ever faster, into another;
    4. the fixed point.
    """

    newton: SemismoothNewton = eqx.field(default_factory=SemismoothNewton)
    fixed_point: FixedPoint = eqx.field(default_factory=FixedPoint)

    def first_try(self) -> Solver:
        return self.newton

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        starts, worthwhile = problem.inclusions.stages, ~jnp.asarray(problem.inclusions.optional)

        # A loop, so that Newton is compiled once.
        def once_more(a: _Attempt):
            failed = a.solve.result != RESULTS.successful
            return (a.number == 0) | (failed & (a.number <= starts + PROXIMAL_STEPS) & worthwhile)

        def newton(a: _Attempt) -> _Attempt:
            proximal = a.number > starts
            anchor = Anchor.at(problem, a.y, jnp.where(proximal, a.strength, 0.0))
            guided = Guided(jnp.where(proximal, 0, a.number), anchor, a.weights)
            solve, weights = self.newton.attempt(problem, a.x, a.y, guided)
            found = proximal & jnp.all(jnp.isfinite(solve.rows))  # of the proximal problem
            strength = jnp.where(proximal, a.strength * jnp.where(found, SOFTEN, STIFFEN), a.strength)
            total = a.solve.newton_iterations + solve.newton_iterations
            return _Attempt(
                solve._replace(newton_iterations=total), a.number + 1,
                jnp.where(found, solve.x, a.x), jnp.where(found, solve.y, a.y), strength, weights,
            )  # fmt: skip

        shapes = jax.eval_shape(lambda: self.newton.attempt(problem, x, y, None))
        nothing, no_weights = blank(shapes)
        start = _Attempt(nothing, jnp.asarray(0), x, y, jnp.ones(()), no_weights + jnp.inf)
        first = jax.lax.while_loop(once_more, newton, start).solve

        # A loop that runs at most once: unlike `cond` it costs nothing under vmap while nobody needs it.
        def failed(state):
            _, _, _, waiting = state
            return waiting

        def fall_back(state):
            solve, x, y, waiting = state
            second = self.fixed_point.iterate(_pinned(problem, x), x, y)
            return second._replace(newton_iterations=solve.newton_iterations), second.x, second.y, ~waiting

        waiting = (first.result != RESULTS.successful) & worthwhile
        solve, _, _, _ = jax.lax.while_loop(failed, fall_back, (first, x, y, waiting))
        return solve


def _pinned(problem: Problem, x: Array) -> Problem:
    """The same problem, but tied to a loop variable: the compiler must not move its preparation out of the loop."""
    arrays, rest = eqx.partition(problem, eqx.is_array)
    arrays, _ = jax.lax.optimization_barrier((arrays, x))
    return eqx.combine(arrays, rest)
