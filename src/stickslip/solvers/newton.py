"""Semismooth Newton in active-set form: S3 Algorithm 1 with (6.8), on the Schur complement (6.12), (6.13)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..laws import ActiveSet
from ..linalg import solve_vector
from ..results import RESULTS, unless
from .base import Solver
from .problem import Problem, Solve


class Point(NamedTuple):
    """A problem evaluated at (x, y)."""

    x: Array
    y: Array
    X: Array
    phi: Array
    psi: Array
    active: ActiveSet
    F: Array

    @property
    def rows(self) -> Array:
        return jnp.concatenate([self.phi, self.F])


def evaluate(problem: Problem, x: Array, y: Array) -> Point:
    """The residual (6.5) of the problem, with x corrected for y."""
    x, phi, X = problem.correct(x, y)
    psi, mu = problem.psi(x), problem.mu(y)
    active = problem.inclusions.active_set(psi, mu)
    return Point(x, y, X, phi, psi, active, problem.inclusions.residual(active, psi, mu))


def schur_complement(problem: Problem, at: Point) -> Array:
    """dF/dy with x eliminated and the active set held, (6.13)."""
    _, along = jax.linearize(lambda psi, mu: problem.inclusions.residual(at.active, psi, mu), at.psi, problem.mu(at.y))
    return jax.vmap(along, in_axes=1, out_axes=1)(problem.sensitivity(at.x, at.X), problem.mu_sensitivity(at.y))


def weights(rows: Array, unknowns: int, mu: Array, atol: Any, rtol: Any) -> Array:
    """The scaling of (6.7), never below the round-off of the percussions in the rows."""
    round_off = 8.0 * jnp.finfo(rows.dtype).eps * jnp.max(jnp.abs(mu), initial=0.0)
    return unknowns * (atol + rtol * jnp.abs(rows) + round_off)


class SemismoothNewton(Solver):
    """Converged when || F / ((m + n)(atol + rtol |F_0|)) ||_2 < 1, (6.7); m + n counts all unknowns."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20, static=True)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        start = evaluate(problem, x, y)
        unknowns = x.shape[0] + y.shape[0]
        s = weights(start.rows, unknowns, problem.mu(y), self.atol, self.rtol)

        def error(at: Point) -> Array:
            scaled = at.rows / s
            return jnp.sum(scaled * scaled)

        def unfinished(state):
            _, e, k = state
            return (e >= 1.0) & (k < self.max_iterations)

        def step(state):
            at, _, k = state
            dy = solve_vector(schur_complement(problem, at), -at.F)
            at = evaluate(problem, at.x + at.X @ dy, at.y + dy)
            return at, error(at), k + 1

        at, e, k = jax.lax.while_loop(unfinished, step, (start, error(start), jnp.asarray(0)))
        failed = ~(e < 1.0)  # also true for nan
        return Solve(
            at.x,
            at.y,
            at.active,
            k,
            jnp.asarray(0),
            at.F,
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(~failed, RESULTS.newton_not_converged),
        )
