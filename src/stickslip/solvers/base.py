"""What a solver is, and the derivative of its answer."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..linalg import solve
from ..results import RESULTS
from ..stacked import ActiveSet
from .problem import Problem, Solve


class Solver(eqx.Module):
    """Solves a `Problem` from a guess (x, y).

    ``iterate`` is what a solver defines; schemes call ``solve``.
    """

    nested: ClassVar[bool] = False  # whether its programs have loops in loops

    @abc.abstractmethod
    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve: ...

    def first_try(self) -> "Solver":
        """A cheaper solver that gives the same answer or fails; a run starts with it and compiles less."""
        return self

    def crowded_try(self) -> "Solver":
        """The same where there are so many contacts for so few velocities that some will be redundant."""
        return self.first_try()

    def next_try(self, tried: "Solver") -> "Solver":
        """What a run goes on with where ``tried``, one of the above, failed: the whole solver, or less."""
        return self

    def solve(self, problem: Problem, x: Array, y: Array, number: Any = None) -> Solve:
        """``number``: which of the solves of a step this is, see `Recorded`."""
        if y.shape[0] == 0 and not problem.nonlinear:
            return _nothing_to_solve(problem, x, y)
        return _implicit(problem, x, y, solver=self)


class Recorded(Solver):
    """Knows the solutions of a step already, by their number: what is left is their derivative."""

    solves: tuple[Solve, ...]
    otherwise: Solver  # for solves without a number

    def iterate(self, problem, x, y):
        return self.otherwise.iterate(problem, x, y)

    def solve(self, problem, x, y, number=None):
        if number is None or (y.shape[0] == 0 and not problem.nonlinear):
            return self.otherwise.solve(problem, x, y)
        if isinstance(number, int):
            known = self.solves[number]
        else:  # of stages that are alike, in a loop
            alike = [s for s in self.solves if s.x.shape == x.shape and s.y.shape == y.shape]
            known = jax.tree.map(lambda *a: jnp.stack(a)[number], *alike)
        return _known(problem, known.x, known.y, known.active)


def _nothing_to_solve(problem: Problem, x: Array, y: Array) -> Solve:
    x, _, _ = problem.correct(x, y)
    zero = jnp.asarray(0)
    active = problem.inclusions.active_set(y, y)
    return Solve(x, y, active, zero, zero, y, y, jnp.zeros(()), RESULTS.successful)


@eqx.filter_custom_jvp
def _implicit(problem: Problem, x: Array, y: Array, *, solver: Solver) -> Solve:
    return solver.iterate(problem, x, y)


@_implicit.def_jvp
def _implicit_jvp(primals, tangents, *, solver):
    problem, x, y = primals
    out = _implicit(problem, x, y, solver=solver)
    return out, _rates(problem, tangents[0], out)


@eqx.filter_custom_jvp
def _known(problem: Problem, x: Array, y: Array, active: ActiveSet) -> Solve:
    zero, none = jnp.asarray(0), jnp.zeros_like(y)
    return Solve(x, y, active, zero, zero, none, none, jnp.zeros(()), RESULTS.successful)


@_known.def_jvp
def _known_jvp(primals, tangents):
    out = _known(*primals)
    return out, _rates(primals[0], tangents[0], out)


def _rates(problem: Problem, problem_dot: Any, out: Solve) -> Solve:
    """The derivative of the solution, not of the iteration: phi = 0 and F = 0 with the active set held."""
    from .newton import evaluate

    X, moved = _exact_motion(problem, out) if problem.inexact else _newton_motion(problem, out)

    def rows(problem):
        x = moved(problem)
        return x, problem.inclusions.residual(out.active, problem.psi(x), problem.mu(out.y))

    values, rates = eqx.filter_jvp(rows, (problem,), (problem_dot,))
    x_dot, F_dot = (jnp.zeros_like(v) if r is None else r for v, r in zip(values, rates, strict=True))
    at = evaluate(problem, out.x, out.y)._replace(active=out.active)
    # Redundant contacts have no unique percussions but a unique motion: one of the solutions will do.
    factors = problem.factor(at, X, problem.null_pivot, exact=True)
    y_dot = -factors.apply(F_dot)
    out_dot = jax.tree.map(lambda a: jnp.zeros_like(a) if eqx.is_inexact_array(a) else None, out)
    return out_dot._replace(x=x_dot + X @ y_dot, y=y_dot)


def _newton_motion(problem: Problem, out: Solve):
    """dx/dy, and x as a function of the problem: one (exact) Newton correction from the solution."""
    _, _, aux = problem.correct(out.x, out.y)
    return problem.tangent(out.x, aux), lambda problem: problem.correct(out.x, out.y)[0]


def _exact_motion(problem: Problem, out: Solve):
    """The same where `correct` drops terms: the equations of motion are linearised in full."""
    phi_x, phi_y = jax.jacfwd(problem.phi, argnums=(0, 1))(out.x, out.y)
    inverse = solve(phi_x, jnp.eye(phi_x.shape[0]))
    return -inverse @ phi_y, lambda problem: out.x - inverse @ problem.phi(out.x, out.y)
