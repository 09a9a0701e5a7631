"""Projected Jacobi and Gauss-Seidel relaxation of the velocity-level problem: S4 (22), (23).

    P_i <- prox_{C_i}(P_i - r_i (sum_j G_ij P_j + c_i)),    r_i = omega / G_ii

for one law after the other (PSOR), or for all at once from the old percussions (PJOR). The discrete state of a law is read
off the projection at the end (`Solve.active`): "constraint" where it did not project (closed, sticking), else "impressed".
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..results import RESULTS, unless
from ..sets import NonPositive
from .base import Solver
from .newton import evaluate, squared_norm, weights
from .problem import Problem, ProxParameters, Solve, VelocityProblem


class _State(NamedTuple):
    y: Array
    e: Array
    k: Array


class Relaxation(Solver):
    """What PJOR and PSOR share: the loop, warm-started by the guess, until the criterion (6.7) of all solvers holds."""

    atol: eqx.AbstractVar[float]
    rtol: eqx.AbstractVar[float]
    max_iterations: eqx.AbstractVar[int]
    relaxation: eqx.AbstractVar[float]

    def sweep(self, problem: VelocityProblem, psi_0: Array, y: Array) -> Array:
        """One iteration; psi = psi_0 + G y."""
        raise NotImplementedError

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        if not isinstance(problem, VelocityProblem):
            raise TypeError(
                f"{type(self).__name__} solves problems on velocity level only: use it with ss.MoreauMidpoint or"
                " ss.ShiftedMoreau; other methods need ss.Automatic, ss.SemismoothNewton or ss.FixedPoint"
            )
        psi_0 = problem.psi(problem.u_free)
        start = evaluate(problem, x, y)
        s = weights(start.rows, x.shape[0] + y.shape[0], problem.size(y), problem.noise(), self.atol, self.rtol)

        def unfinished(state: _State):
            return (state.e >= 1.0) & (state.k < self.max_iterations)

        def step(state: _State) -> _State:
            y = self.sweep(problem, psi_0, state.y)
            return _State(y, squared_norm(evaluate(problem, x, y).rows / s), state.k + 1)

        end = jax.lax.while_loop(unfinished, step, _State(y, squared_norm(start.rows / s), jnp.asarray(0)))
        at = evaluate(problem, x, end.y)
        residual = jnp.max(jnp.abs(at.rows), initial=0.0)
        result = unless(end.e < 1.0, RESULTS.fixed_point_not_converged)
        return Solve(at.x, at.y, at.active, jnp.asarray(0), end.k, at.F, residual, result)


class PJOR(Relaxation):
    """(22). All laws at once, so r_i also respects how contacts push each other."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=50_000, static=True)
    relaxation: float = 1.0

    def sweep(self, problem, psi_0, y):
        inclusions, G = problem.inclusions, problem.G
        psi, b = psi_0 + G @ y, inclusions.n_bilateral
        rho = inclusions.contracting(G).scaled(self.relaxation)
        sums = jnp.sum(jnp.abs(G[:b]), axis=1)
        free = y[:b] - self.relaxation * psi[:b] / jnp.where(sums > 0.0, sums, 1.0)
        return problem.y_of(inclusions.project(psi, problem.mu(y), rho)).at[:b].set(free)


class PSOR(Relaxation):
    """(23). Law after law, each with the newest percussions of the others."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20_000, static=True)
    relaxation: float = 1.0

    def sweep(self, problem, psi_0, y):
        inclusions, G = problem.inclusions, problem.G
        laws, b = inclusions.laws, inclusions.n_bilateral
        rho: ProxParameters = inclusions.rho.scaled(self.relaxation)
        offset = inclusions.offset
        diagonal = jnp.diagonal(G)
        rows = jnp.arange(y.shape[0])

        def bilateral(i, y):
            psi = psi_0[i] + G[i] @ y
            d = jnp.where(diagonal[i] > 0.0, diagonal[i], 1.0)
            return jnp.where(rows == i, y[i] - self.relaxation * psi / d, y)

        def normal(k, y):
            i = b + k
            mu = offset[i] + y[i]
            mu = jnp.where(inclusions.closed[k], -NonPositive.prox(rho.N[k] * (psi_0[i] + G[i] @ y) - mu), 0.0)
            return jnp.where(rows == i, mu - offset[i], y)

        def friction(k, y):
            mine = np.asarray(laws.set.ball_of, dtype=int) == k
            _, _, psi_F = inclusions.split(psi_0 + G @ y)
            _, mu_N, mu_F = inclusions.split(offset + y)
            new = laws.project_friction(psi_F, mu_N, mu_F, rho.F, inclusions.may_stick, inclusions.duration)
            return jnp.concatenate([y[: b + laws.n_N], jnp.where(mine, new, mu_F) - offset[b + laws.n_N :]])

        y = jax.lax.fori_loop(0, b, bilateral, y) if b else y
        y = jax.lax.fori_loop(0, laws.n_N, normal, y) if laws.n_N else y
        return jax.lax.fori_loop(0, laws.set.count, friction, y) if laws.set.count else y
