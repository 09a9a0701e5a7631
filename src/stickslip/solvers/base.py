"""What a solver is, and the derivative of its answer."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..linalg import basic_solution, solve_vector
from ..results import RESULTS
from .problem import Problem, Solve


class Solver(eqx.Module):
    """Solves a `Problem` from a guess (x, y). ``iterate`` is what a solver defines; schemes call ``solve``."""

    @abc.abstractmethod
    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve: ...

    def first_try(self) -> "Solver":
        """A cheaper solver that gives the same answer or fails; a run starts with it and compiles less."""
        return self

    def solve(self, problem: Problem, x: Array, y: Array) -> Solve:
        if y.shape[0] == 0 and not problem.nonlinear:
            return _nothing_to_solve(problem, x, y)
        return _implicit(problem, x, y, solver=self)


def _nothing_to_solve(problem: Problem, x: Array, y: Array) -> Solve:
    x, _, _ = problem.correct(x, y)
    zero = jnp.asarray(0)
    active = problem.inclusions.active_set(y, y)
    return Solve(x, y, active, zero, zero, y, jnp.zeros(()), RESULTS.successful)


@eqx.filter_custom_jvp
def _implicit(problem: Problem, x: Array, y: Array, *, solver: Solver) -> Solve:
    return solver.iterate(problem, x, y)


@_implicit.def_jvp
def _implicit_jvp(primals, tangents, *, solver):
    """The derivative of the solution, not of the iteration: F(x, y; theta) = 0 with the active set held."""
    from .newton import evaluate, schur_complement

    problem, x, y = primals
    out = _implicit(problem, x, y, solver=solver)

    def rows(problem):
        x, _, _ = problem.correct(out.x, out.y)
        return x, problem.inclusions.residual(out.active, problem.psi(x), problem.mu(out.y))

    values, rates = eqx.filter_jvp(rows, (problem,), (tangents[0],))
    x_dot, F_dot = (jnp.zeros_like(v) if r is None else r for v, r in zip(values, rates, strict=True))
    at = evaluate(problem, out.x, out.y)._replace(active=out.active)
    X = problem.tangent(at.x, at.aux)
    S = schur_complement(problem, at, X)
    y_dot = -solve_vector(S, F_dot)
    # Redundant contacts have no unique percussions but a unique motion: any solution for them will do.
    y_dot = jax.lax.cond(jnp.all(jnp.isfinite(y_dot)), lambda: y_dot, lambda: -basic_solution(S, F_dot[:, None])[:, 0])
    out_dot = jax.tree.map(lambda a: jnp.zeros_like(a) if eqx.is_inexact_array(a) else None, out)
    return out, out_dot._replace(x=x_dot + X @ y_dot, y=y_dot)
