"""Iterative projection with an inexact Newton method for the motion: S3 Algorithm 2."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..linalg import basic_solution
from ..results import RESULTS, unless
from .base import Solver
from .newton import evaluate, scaling, tolerance
from .problem import Problem, ProxParameters, Solve
from .proximal import as_factors, checked_proximal, estimated


class _State(NamedTuple):
    x: Array
    y: Array
    psi: Array
    relaxation: Array
    change: Array
    k: Array
    converged: Array
    motion_found: Array


class _Tangent(NamedTuple):
    """Held during all iterations ("inexact Newton")."""

    X_b: Array  # dx/dy along the bilateral multipliers
    J_inverse: Array  # of their rows, which may be redundant
    rho: ProxParameters

    @classmethod
    def at(cls, problem: Problem, x: Array, y: Array, proximal: Any) -> "_Tangent":
        b = problem.inclusions.layout.bilateral
        x, _, aux = problem.correct(x, y)
        X = problem.tangent(x, aux)
        J = problem.sensitivity(x, X)
        rho = estimated(problem, proximal, J)
        return cls(X[:, b], basic_solution(J[b][:, b], jnp.eye(len(b))), rho)


class FixedPoint(Solver):
    """For redundant contacts, whose percussions are not unique.

    Percussions are projected, then the motion (with the bilateral multipliers) is found for them; converged
    when motion *and percussions* move by less than (6.15) allows. (6.15) has the motion only: but percussions
    that drift through the null space of redundant contacts, on their way to another contact mode, leave the
    motion at rest. The motion is looked at through the rows of the laws, where it has the units of
    percussions. Bilateral multipliers are kept out: they may cycle. The proximal parameters are those that
    ``proximal`` names (see `proximal`), times ``relaxation``, the alpha of (6.18). It is reduced while the
    iteration grows, recovers while it does not, and the test looks at the unrelaxed change.
    """

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20_000, static=True)
    relaxation: float = 1.0
    max_newton_iterations: int = eqx.field(default=30, static=True)
    proximal: Any = eqx.field(default="contracting", static=True, converter=as_factors)

    def __check_init__(self):
        checked_proximal(self)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        tangent = _Tangent.at(problem, x, y, self.proximal)

        def unfinished(state: _State):
            alive = state.motion_found & ((state.k <= 1) | jnp.isfinite(state.change))
            return (~state.converged) & alive & (state.k <= self.max_iterations)

        def project(state: _State) -> _State:
            # The first pass only finds the motion for the percussions as they are.
            mu = problem.inclusions.project(
                state.psi, problem.mu(state.y), tangent.rho.scaled(state.relaxation)
            )
            y = jnp.where(state.k == 0, state.y, problem.y_of(mu))
            x, y, psi, found = self._motion(problem, tangent, state.x, y)
            moved = self._change(problem, psi - state.psi, y - state.y, y) / state.relaxation
            change = jnp.where(state.k == 0, jnp.inf, moved)
            factor = jnp.where(change > 1.01 * state.change, 0.8, 1.02)
            relaxation = jnp.clip(factor * state.relaxation, 1e-3 * self.relaxation, self.relaxation)
            return _State(x, y, psi, relaxation, change, state.k + 1, change < 1.0, found)

        relaxation, no, yes = jnp.asarray(float(self.relaxation)), jnp.asarray(False), jnp.asarray(True)
        start = _State(x, y, jnp.zeros_like(y), relaxation, jnp.asarray(jnp.inf), jnp.asarray(0), no, yes)
        end = jax.lax.while_loop(unfinished, project, start)
        at = evaluate(problem, end.x, end.y)
        # A small change may be a small step only: what it came to must be a solution, though not to the last
        # digit.
        allowed = 1e3 * tolerance(problem, at, jnp.abs(at.rows), self.atol, self.rtol)
        solved = jnp.all(jnp.abs(at.rows) < allowed)  # false for a nan
        return Solve(
            at.x,
            at.y,
            at.active,
            jnp.asarray(0),
            end.k - 1,
            at.F,
            allowed[at.phi.shape[0] :],
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(end.converged & end.motion_found & solved, RESULTS.fixed_point_not_converged),
        )

    def _change(self, problem: Problem, psi: Array, y: Array, at: Array) -> Float[Array, ""]:
        """(6.15): how far motion and percussions moved, over what is allowed."""
        inclusions = problem.inclusions
        scales, unilateral = inclusions.scales, np.flatnonzero(inclusions.unilateral)
        own = scales.own
        s = scaling(
            at.shape[0], own, scales.cancelling(inclusions.percussions(at)), own, self.atol, self.rtol
        )
        rows = jnp.concatenate([psi / s, (inclusions.per_percussion() * y / s)[unilateral]])
        return jnp.linalg.norm(rows)

    def _motion(
        self, problem: Problem, tangent: _Tangent, x: Array, y: Array
    ) -> tuple[Array, Array, Array, Array]:
        """x (and bilateral multipliers) with phi(x, y) = 0, (6.16), until (6.17); and psi there."""
        b = problem.inclusions.layout.bilateral

        def rows(x, y):
            x, phi, _ = problem.correct(x, y)
            psi = problem.psi(x)
            return x, psi, jnp.concatenate([phi, psi[b]])

        n_rows = problem.motion_rows + len(b)
        if n_rows == 0:  # the motion follows from y exactly
            x, psi, _ = rows(x, y)
            return x, y, psi, jnp.asarray(True)

        def allowed(x, y, first):
            size, cancelling = problem.motion_sizes(x, y)
            inclusions = problem.inclusions
            bilateral = inclusions.scales.cancelling(inclusions.percussions(y))[b]
            size, cancelling = jnp.append(size, inclusions.scales.own[b]), jnp.append(cancelling, bilateral)
            return scaling(x.shape[0] + len(b), size, cancelling, first, self.atol, self.rtol)

        def unfinished(state):
            *_, e, k = state
            return (k == 0) | ((e >= 1.0) & (k <= self.max_newton_iterations))

        def newton(state):
            x, y, _, r, first, _, k = state
            dy = -tangent.J_inverse @ r[n_rows - len(b) :]  # zero at first
            y = y.at[b].add(dy)
            x, psi, r = rows(x + tangent.X_b @ dy, y)
            first = jnp.where(k == 0, jnp.abs(r), first)
            return x, y, psi, r, first, jnp.linalg.norm(r / allowed(x, y, first)), k + 1

        nothing = jnp.zeros(n_rows)
        start = (x, y, jnp.zeros_like(y), nothing, nothing, jnp.asarray(jnp.inf), jnp.asarray(0))
        x, y, psi, _, _, e, _ = jax.lax.while_loop(unfinished, newton, start)
        return x, y, psi, e < 1.0
