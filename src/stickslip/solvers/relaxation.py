"""Projected Jacobi and Gauss-Seidel relaxation of the velocity-level problem: S4 (22), (23).

    P_i <- prox_{C_i}(P_i - r_i (sum_j G_ij P_j + c_i)),    r_i = omega_ii / G_ii

for one law after the other (PSOR), or for all at once from the old percussions (PJOR). omega is one number,
or one for each contact and then for each friction law; bilateral rows have 1. The discrete state of a law is
read off the projection at the end (`Solve.active`): "constraint" where it did not project (closed, sticking),
else "impressed".
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..results import RESULTS, unless
from ..sets import Balls, NonPositive
from ..trees import blank
from .base import Solver
from .newton import evaluate, squared_norm, tolerance
from .problem import Point, Problem, ProxParameters, Solve, VelocityProblem
from .proximal import as_factors, by_law, checked_proximal, checked_relaxation, estimated


class _State(NamedTuple):
    at: Point
    first: Array
    allowed: Array
    e: Array
    k: Array


class Relaxation(Solver):
    """What PJOR and PSOR share: the loop, warm-started by the guess,
    until the criterion (6.7) of all solvers holds.
    """

    atol: eqx.AbstractVar[float]
    rtol: eqx.AbstractVar[float]
    max_iterations: eqx.AbstractVar[int]
    relaxation: eqx.AbstractVar[Any]
    proximal: eqx.AbstractVar[Any]

    def __check_init__(self):
        checked_proximal(self)
        checked_relaxation(self)

    def r(self, problem: VelocityProblem) -> ProxParameters:
        """r_i = omega_ii / D_ii, or what else ``proximal`` says in the place of 1/D_ii."""
        rho = estimated(problem, self.proximal, problem.G.dense())
        omega = by_law(self.relaxation, problem.inclusions)
        return ProxParameters(omega.N * rho.N, omega.F * rho.F)

    @abc.abstractmethod
    def sweep(self, problem: VelocityProblem, psi_0: Array, y: Array) -> Array:
        """One iteration; psi = psi_0 + G y."""

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        if not isinstance(problem, VelocityProblem):
            raise TypeError(
                f"{type(self).__name__} solves problems on velocity level only: use it with "
                "ss.MoreauMidpoint or"
                " ss.ShiftedMoreau; other methods need ss.Automatic, ss.SemismoothNewton or ss.FixedPoint"
            )
        psi_0 = problem.psi(problem.u_free)

        def unfinished(state: _State):
            return (state.e >= 1.0) & (state.k <= self.max_iterations)

        def step(state: _State) -> _State:
            # The first pass only looks at the guess: what is large is compiled once.
            guess = state.k == 0
            y = jax.lax.cond(guess, lambda y: y, lambda y: self.sweep(problem, psi_0, y), state.at.y)
            at = evaluate(problem, x, y)
            first = jnp.where(guess, jnp.abs(at.rows), state.first)
            allowed = tolerance(problem, at, first, self.atol, self.rtol)
            return _State(at, first, allowed, squared_norm(at.rows / allowed), state.k + 1)

        at = blank(jax.eval_shape(lambda: evaluate(problem, x, y)))._replace(y=y)
        rows = jnp.zeros_like(at.rows)
        end = jax.lax.while_loop(
            unfinished, step, _State(at, rows, rows, jnp.asarray(jnp.inf), jnp.asarray(0))
        )
        at, residual = end.at, jnp.max(jnp.abs(end.at.rows), initial=0.0)
        result = unless(end.e < 1.0, RESULTS.fixed_point_not_converged)
        return Solve(at.x, at.y, at.active, jnp.asarray(0), end.k - 1, at.F, end.allowed, residual, result)


class PJOR(Relaxation):
    """(22). All laws at once, so r_i also respects how contacts push each other;
    ``proximal="diagonal"`` is as printed.
    """

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=50_000, static=True)
    # omega: one number, or one a law
    relaxation: Any = eqx.field(default=1.0, static=True, converter=as_factors)
    # as in `ss.FixedPoint`
    proximal: Any = eqx.field(default="contracting", static=True, converter=as_factors)

    def sweep(self, problem, psi_0, y):
        inclusions, G = problem.inclusions, problem.G.dense()
        psi, b = psi_0 + G @ y, inclusions.layout.bilateral
        rho = self.r(problem)
        sums = jnp.sum(jnp.abs(G[b]), axis=1)
        free = y[b] - psi[b] / jnp.where(sums > 0.0, sums, 1.0)
        return problem.y_of(inclusions.project(psi, problem.mu(y), rho)).at[b].set(free)


class PSOR(Relaxation):
    """(23). Law after law, each with the newest percussions of the others."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20_000, static=True)
    # omega: one number, or one a law
    relaxation: Any = eqx.field(default=1.0, static=True, converter=as_factors)
    proximal: Any = eqx.field(default="diagonal", static=True, converter=as_factors)  # as in `ss.FixedPoint`

    def sweep(self, problem, psi_0, y):
        inclusions, G = problem.inclusions, problem.G.dense()
        laws, rho = inclusions.laws, self.r(problem)
        offset, ball = inclusions.offset, Balls((laws.set.largest_dimension,))
        diagonal = jnp.diagonal(G)
        rows_b, rows_N, rows_F = (jnp.asarray(rows) for rows in inclusions.split(np.arange(y.shape[0])))
        places = jnp.append(rows_F, y.shape[0])[laws.set.places]  # of the components of each ball
        carried = laws.of_balls(inclusions.closed)

        def bilateral(k, y):
            i = rows_b[k]
            d = jnp.where(diagonal[i] > 0.0, diagonal[i], 1.0)
            return y.at[i].add(-(psi_0[i] + G[i] @ y) / d)

        def normal(k, y):
            i = rows_N[k]

            def projected(y):
                mu = -NonPositive.prox(rho.N[k] * (psi_0[i] + G[i] @ y) - offset[i] - y[i])
                return y.at[i].set(mu - offset[i])

            return jax.lax.cond(inclusions.closed[k], projected, lambda y: y.at[i].set(-offset[i]), y)

        def friction(k, y):
            i = places[k]  # beyond the end where a ball has fewer components than the largest

            def part(a):
                return a.at[i].get(mode="fill", fill_value=0.0)

            def projected(y):
                psi, mu = part(psi_0) + part(G) @ y, part(offset + y)
                radius = laws.radii(inclusions.split(offset + y)[1], inclusions.duration)[k]
                stuck = ball.prox(rho.F[k] * psi - mu, radius[None])
                if any(laws.set.one_way):
                    stuck = jnp.where(
                        jnp.asarray(laws.set.half_lines)[k], NonPositive.prox(rho.F[k] * psi - mu), stuck
                    )
                mu = -jnp.where(inclusions.may_stick[k], stuck, radius * ball.direction(psi))
                return y.at[i].set(mu - part(offset), mode="drop")

            return jax.lax.cond(carried[k], projected, lambda y: y.at[i].set(-part(offset), mode="drop"), y)

        y = jax.lax.fori_loop(0, len(rows_b), bilateral, y) if len(rows_b) else y
        y = jax.lax.fori_loop(0, laws.n_N, normal, y) if laws.n_N else y
        return jax.lax.fori_loop(0, laws.set.count, friction, y) if laws.set.count else y
