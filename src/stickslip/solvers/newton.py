"""Semismooth Newton in active-set form: S3 Algorithm 1 with (6.8), on the Schur complement (6.12), (6.13)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..laws import ActiveSet
from ..linalg import Eliminated, columns, eliminate
from ..results import RESULTS, unless
from .base import Solver
from .problem import Problem, Solve


class Point(NamedTuple):
    """A problem evaluated at (x, y)."""

    x: Array
    y: Array
    aux: Any  # what X = dx/dy is made of
    phi: Array
    psi: Array
    active: ActiveSet
    F: Array

    @property
    def rows(self) -> Array:
        return jnp.concatenate([self.phi, self.F])


def evaluate(problem: Problem, x: Array, y: Array) -> Point:
    """The residual (6.5) of the problem, with x corrected for y."""
    x, phi, aux = problem.correct(x, y)
    psi, mu = problem.psi(x), problem.mu(y)
    active = problem.inclusions.active_set(psi, mu)
    return Point(x, y, aux, phi, psi, active, problem.inclusions.residual(active, psi, mu))


def schur_complement(problem: Problem, at: Point, X: Array) -> Array:
    """dF/dy with x eliminated and the active set held, (6.13)."""
    _, along = jax.linearize(lambda psi, mu: problem.inclusions.residual(at.active, psi, mu), at.psi, problem.mu(at.y))
    return columns(along, problem.sensitivity(at.x, X), problem.mu_sensitivity(at.y))


def squared_norm(rows: Array) -> Array:
    return jnp.sum(rows * rows)


def weights(rows: Array, unknowns: int, mu: Array, atol: Any, rtol: Any) -> Array:
    """The scaling of (6.7), never below the round-off of the percussions in the rows."""
    round_off = 8.0 * jnp.finfo(rows.dtype).eps * jnp.max(jnp.abs(mu), initial=0.0)
    return unknowns * (atol + rtol * jnp.abs(rows) + round_off)


class _Held(NamedTuple):
    """Factors kept over iterations, with the active set they were made for."""

    X: Array
    S: Eliminated
    active: ActiveSet


class SemismoothNewton(Solver):
    """Converged when || F / ((m + n)(atol + rtol |F_0|)) ||_2 < 1, (6.7); m + n counts all unknowns."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20, static=True)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        at, e, k = (self._held if problem.inexact else self._exact)(problem, x, y)
        return Solve(
            at.x,
            at.y,
            at.active,
            k,
            jnp.asarray(0),
            at.F,
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(e < 1.0, RESULTS.newton_not_converged),  # a nan is not below 1
        )

    def _scales(self, problem: Problem, start: Point) -> Array:
        unknowns = start.x.shape[0] + start.y.shape[0]
        return weights(start.rows, unknowns, problem.mu(start.y), self.atol, self.rtol)

    def _exact(self, problem: Problem, x: Array, y: Array) -> tuple[Point, Array, Array]:
        """Algorithm 1."""
        start = evaluate(problem, x, y)
        s = self._scales(problem, start)

        def unfinished(state):
            _, e, k = state
            return (e >= 1.0) & (k < self.max_iterations)

        def step(state):
            at, _, k = state
            X = problem.tangent(at.x, at.aux)
            dy = eliminate(
                schur_complement(problem, at, X), problem.inclusions.coupled(at.active), problem.null_pivot
            ).apply(-at.F)
            at = evaluate(problem, at.x + X @ dy, at.y + dy)
            return at, squared_norm(at.rows / s), k + 1

        return jax.lax.while_loop(unfinished, step, (start, squared_norm(start.rows / s), jnp.asarray(0)))

    def _held(self, problem: Problem, x: Array, y: Array) -> tuple[Point, Array, Array]:
        """The same iteration with S and X held while the active set stays and the error falls well.

        Written so that the (large) program of `evaluate` appears once: it is what takes time to compile.
        """
        laws, n, zero = problem.inclusions.laws, y.shape[0], jnp.zeros_like(y)
        open_ = ActiveSet(jnp.zeros(laws.n_N, dtype=bool), jnp.zeros(laws.set.count, dtype=bool))
        nothing = Point(x, y, None, jnp.zeros_like(x), zero, open_, zero)  # phi has a row for each entry of x
        held = _Held(jnp.zeros((x.shape[0], n)), Eliminated.nothing(n), nothing.active)

        def factor(at: Point) -> _Held:
            X = problem.tangent(at.x, at.aux)
            S = schur_complement(problem, at, X)
            return _Held(X, eliminate(S, problem.inclusions.coupled(at.active), problem.null_pivot), at.active)

        def unfinished(state):
            _, _, e, k, _ = state
            return (e >= 1.0) & (k <= self.max_iterations)

        def step(state):
            at, s, e_before, k, held = state
            # the update that the last evaluation asked for, zero at first
            dy = jnp.where(k > 0, held.S.apply(-at.F), 0.0)
            at = evaluate(problem, at.x + held.X @ dy, at.y + dy)
            s = jnp.where(k == 0, self._scales(problem, at), s)
            e = squared_norm(at.rows / s)
            changed = ~jnp.all(at.active.normal == held.active.normal) | ~jnp.all(at.active.stick == held.active.stick)
            stale = (e >= 1.0) & ((k == 0) | changed | (e > 0.01 * e_before))  # squared: a factor of ten in the norm
            held = jax.lax.cond(stale, lambda: factor(at), lambda: held)
            return at._replace(aux=None), s, e, k + 1, held

        start = (nothing, jnp.ones_like(nothing.rows), jnp.asarray(jnp.inf), jnp.asarray(0), held)
        at, _, e, k, _ = jax.lax.while_loop(unfinished, step, start)
        return at, e, k - 1
