"""Iterative projection with an inexact Newton method for the motion: S3 Algorithm 2."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..linalg import basic_solution
from ..results import RESULTS, unless
from .base import Solver
from .newton import evaluate, weights
from .problem import Problem, Solve


class _State(NamedTuple):
    x: Array
    y: Array
    relaxation: Array
    change: Array
    k: Array
    converged: Array
    motion_found: Array


class FixedPoint(Solver):
    """For redundant contacts, whose percussions are not unique.

    Percussions are projected, then the motion (with the bilateral multipliers) is found for them; converged when
    motion *and percussions* move by less than (6.15) allows. (6.15) has the motion only: but percussions that drift
    through the null space of redundant contacts, on their way to another contact mode, leave the motion at rest.
    Bilateral multipliers are kept out: they may cycle. The proximal parameters are estimated; ``relaxation`` scales
    them. It is reduced further where the iteration grows, and the test looks at the unrelaxed change.
    """

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20_000, static=True)
    relaxation: float = 1.0
    max_newton_iterations: int = eqx.field(default=30, static=True)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        b = problem.inclusions.n_bilateral
        x, _, aux = problem.correct(x, y)
        X = problem.tangent(x, aux)
        # Held during all iterations ("inexact Newton"); bilateral rows may be redundant.
        J = problem.sensitivity(x, X)
        J_inverse = basic_solution(J[:b, :b], jnp.eye(b))
        rho = problem.inclusions.contracting(problem.in_units(J))
        X_b = X[:, :b]

        def motion(x: Array, y: Array) -> tuple[Array, Array, Array]:
            """x (and bilateral multipliers) with phi(x, y) = 0, (6.16), until (6.17)."""

            def rows(x, y):
                x, phi, _ = problem.correct(x, y)
                return x, jnp.concatenate([phi, problem.psi(x)[:b]])

            n_rows = jax.eval_shape(rows, x, y)[1].shape[0]
            if n_rows == 0:  # the motion follows from y exactly
                return rows(x, y)[0], y, jnp.asarray(True)

            def unfinished(state):
                _, _, r, s, k = state
                return (k == 0) | ((jnp.linalg.norm(r / s) >= 1.0) & (k <= self.max_newton_iterations))

            def newton(state):
                x, y, r, s, k = state
                dy = -J_inverse @ r[n_rows - b :]  # zero at first
                y = y.at[:b].add(dy)
                x, r = rows(x + X_b @ dy, y)
                first = weights(r, x.shape[0] + b, problem.size(y), problem.noise(), self.atol, self.rtol)
                return x, y, r, jnp.where(k == 0, first, s), k + 1

            start = (x, y, jnp.zeros(n_rows), jnp.ones(n_rows), jnp.asarray(0))
            x, y, r, s, _ = jax.lax.while_loop(unfinished, newton, start)
            return x, y, jnp.linalg.norm(r / s) < 1.0

        def unfinished(state: _State):
            alive = state.motion_found & ((state.k <= 1) | jnp.isfinite(state.change))
            # An optional problem is for Newton's method: the projection is that of the printed laws.
            return (~state.converged) & alive & (state.k <= self.max_iterations) & ~jnp.asarray(problem.inclusions.optional)

        def project(state: _State) -> _State:
            # The first pass only finds the motion for the percussions as they are.
            mu = problem.inclusions.project(problem.psi(state.x), problem.mu(state.y), rho.scaled(state.relaxation))
            x, y, found = motion(state.x, jnp.where(state.k == 0, state.y, problem.y_of(mu)))
            before, after = state.x, x
            if b < y.shape[0]:
                before, after = jnp.concatenate([before, problem.mu(state.y)[b:]]), jnp.concatenate([x, mu[b:]])
            s = x.shape[0] * (self.atol + self.rtol * jnp.maximum(jnp.abs(after), jnp.abs(before)))
            change = jnp.where(state.k == 0, jnp.inf, jnp.linalg.norm((after - before) / s) / state.relaxation)
            relaxation = jnp.where(change > 1.01 * state.change, 0.8 * state.relaxation, state.relaxation)
            return _State(
                x,
                y,
                jnp.maximum(relaxation, 1e-3 * self.relaxation),
                change,
                state.k + 1,
                change < 1.0,
                found,
            )

        relaxation, no, yes = jnp.asarray(float(self.relaxation)), jnp.asarray(False), jnp.asarray(True)
        start = _State(x, y, relaxation, jnp.asarray(jnp.inf), jnp.asarray(0), no, yes)
        end = jax.lax.while_loop(unfinished, project, start)
        at = evaluate(problem, end.x, end.y)
        # A small change may be a small step only: what it came to must be a solution, though not to the last digit.
        tolerance = weights(at.rows, at.rows.shape[0], problem.size(at.y), problem.noise(), self.atol, self.rtol)
        solved = jnp.all(jnp.abs(at.rows) < 1e3 * tolerance)  # false for a nan
        return Solve(
            at.x,
            at.y,
            at.active,
            jnp.asarray(0),
            end.k - 1,
            at.F,
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(end.converged & end.motion_found & solved, RESULTS.fixed_point_not_converged),
        )
