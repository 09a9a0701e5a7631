"""The default: Newton, and where it meets a singular or non-convergent problem,
other ways to the same solution.
"""

import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..results import RESULTS, first_failure, unless
from ..trees import blank
from .base import Solver
from .fixed_point import FixedPoint
from .newton import Guided, SemismoothNewton
from .problem import Anchor, Problem, Solve, VelocityProblem
from .relaxation import PSOR

PROXIMAL_STEPS = 60
NEWTONS_WAYS = 4
# how the strength of the proximal term, 1 at first, changes after success and failure
SOFTEN, STIFFEN = 0.3, 5.0


class _Attempt(NamedTuple):
    solve: Solve
    number: Array
    x: Array
    y: Array
    strength: Array
    first: Array


class Automatic(Solver):
    """Tries, in this order, and stops at the first success:

    1. Newton from the last percussion;
    2. Newton from contacts that stick in all stages, in all but the first, and so on: in a tangential impact
       (Painleve) nothing near the last percussion is a solution, but sticking is;
    3. Newton from no percussions;
    4. proximal steps: Newton with psi + r (mu - mu_k) in place of psi, mu_k the solution before, and r
       falling. Redundant contacts become independent, the sequence converges to one of their solutions, and
       where their rows contradict each other in one contact mode it runs, ever faster, into another;
    5. the fixed point;
    6. on velocity level, relaxation law after law (PSOR): slow, but it gets through where projections at once
       cycle. Without bilateral constraints it takes the place of 5, which solves nothing that it does not.
    """

    nested: ClassVar[bool] = True
    newton: SemismoothNewton = eqx.field(default_factory=SemismoothNewton)  # the first way
    fixed_point: FixedPoint = eqx.field(default_factory=FixedPoint)  # the fifth
    relaxation: PSOR = eqx.field(default_factory=PSOR)  # the sixth
    ways: int = eqx.field(default=6, static=True)  # how many of these are tried

    def __check_init__(self):
        if not 1 <= self.ways <= 6:
            raise ValueError(f"Automatic(ways={self.ways}): ways must be 1 to 6")

    def first_try(self) -> Solver:
        return self.newton

    def crowded_try(self) -> Solver:
        # One of the first four ways will be needed sooner or later: they are one program.
        return dataclasses.replace(self, ways=min(self.ways, NEWTONS_WAYS))

    def next_try(self, tried: Solver) -> Solver:
        # Newton's ways are hardly more to compile than Newton alone; what comes after them is as much again.
        return self.crowded_try() if isinstance(tried, SemismoothNewton) else self

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        sticking, worthwhile = problem.inclusions.stages, ~jnp.asarray(problem.inclusions.optional)
        starts, nothing = sticking + 1, problem.y_of(jnp.zeros_like(y))
        last = (0, sticking, starts, starts + PROXIMAL_STEPS)[min(self.ways, 4) - 1]

        # A loop, so that Newton is compiled once.
        def once_more(a: _Attempt):
            failed = a.solve.result != RESULTS.successful
            return (a.number == 0) | (failed & (a.number <= last) & worthwhile)

        def newton(a: _Attempt) -> _Attempt:
            proximal = a.number > starts
            anchor = Anchor.at(problem, a.y, jnp.where(proximal, a.strength, 0.0))
            guided = Guided(jnp.where(a.number <= sticking, a.number, 0), anchor, a.first)
            solve, first = attempt(a.x, jnp.where(a.number == starts, nothing, a.y), guided)
            solve = _unless_elsewhere(problem, solve, a.number)
            found = proximal & jnp.all(jnp.isfinite(solve.rows))  # of the proximal problem
            strength = jnp.where(proximal, a.strength * jnp.where(found, SOFTEN, STIFFEN), a.strength)
            total = a.solve.newton_iterations + solve.newton_iterations
            return _Attempt(
                solve._replace(newton_iterations=total), a.number + 1,
                jnp.where(found, solve.x, a.x), jnp.where(found, solve.y, a.y), strength, first,
            )  # fmt: skip

        attempt = jax.jit(lambda x, y, guided: self.newton.attempt(problem, x, y, guided))  # traced once
        guided = Guided(
            jnp.asarray(0), Anchor.at(problem, y, 0.0), jnp.zeros(problem.motion_rows + y.shape[0])
        )
        unsolved, no_rows = blank(jax.eval_shape(attempt, x, y, guided))
        start = _Attempt(unsolved, jnp.asarray(0), x, y, jnp.ones(()), no_rows + jnp.inf)
        first = jax.lax.while_loop(once_more, newton, start).solve

        solve, by_law = first, self.ways > 5 and isinstance(problem, VelocityProblem)
        if self.ways > 4 and not (by_law and problem.inclusions.unilateral.all()):
            solve = self._otherwise(solve, worthwhile, problem, x, y, self.fixed_point)
        if by_law:
            solve = self._otherwise(solve, worthwhile, problem, x, nothing, self.relaxation)
        return solve

    @staticmethod
    def _otherwise(
        before: Solve, worthwhile: Array, problem: Problem, x: Array, y: Array, solver: Solver
    ) -> Solve:
        """Another solver's answer, where there is none yet."""

        # A loop that runs at most once: unlike `cond` it costs nothing under vmap while nobody needs it.
        def failed(state):
            _, _, _, waiting = state
            return waiting

        def fall_back(state):
            done, x, y, waiting = state
            out = solver.iterate(_pinned(problem, x), x, y)
            spent = out.fixed_point_iterations + done.fixed_point_iterations
            out = out._replace(newton_iterations=done.newton_iterations, fixed_point_iterations=spent)
            return out, out.x, out.y, ~waiting

        waiting = (before.result != RESULTS.successful) & worthwhile
        return jax.lax.while_loop(failed, fall_back, (before, x, y, waiting))[0]


def _unless_elsewhere(problem: Problem, solve: Solve, number: Array) -> Solve:
    """Not solved, if a guess from afar (any but the first) has led to another root of the equations of
    motion.
    """
    if problem.plausible(solve.x) is None:
        return solve
    near = jax.lax.cond(
        number > 0, lambda: jnp.asarray(problem.plausible(solve.x)), lambda: jnp.asarray(True)
    )
    return solve._replace(result=first_failure(solve.result, unless(near, RESULTS.newton_not_converged)))


def _pinned(problem: Problem, x: Array) -> Problem:
    """The same problem, but tied to a loop variable:
    the compiler must not move its preparation out of the loop.
    """
    arrays, rest = eqx.partition(problem, eqx.is_array)
    arrays, _ = jax.lax.optimization_barrier((arrays, x))
    return eqx.combine(arrays, rest)
