"""Semismooth Newton in active-set form: S3 Algorithm 1 with (6.8), on the Schur complement (6.12), (6.13)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..laws import ActiveSet
from ..results import RESULTS, unless
from .base import Solver
from .problem import Anchor, Point, Problem, Solve


def evaluate(problem: Problem, x: Array, y: Array, attempt: Any = None, anchor: Anchor | None = None) -> Point:
    """The residual (6.5) of the problem, with x corrected for y; ``attempt``: see `Inclusions.sticking`."""
    x, phi, aux = problem.correct(x, y)
    psi, mu = problem.psi(x), problem.mu(y)
    if anchor is not None:
        psi = psi + anchor.stiffness * (mu - anchor.mu)
    active = problem.inclusions.active_set(psi, mu)
    if attempt is not None:
        active = problem.inclusions.sticking(active, attempt)
    F = problem.inclusions.residual(active, psi, mu)
    return Point(x, y, aux, phi, psi, active, F, problem.inclusions.units(active))


def squared_norm(rows: Array) -> Array:
    return jnp.sum(rows * rows)


def weights(rows: Array, unknowns: int, size: Array, noise: Array, atol: Any, rtol: Any) -> Array:
    """The scaling of (6.7), never below the round-off of the percussions (``size``) and of the forces in the rows."""
    n = rows.shape[0]
    noise = jnp.concatenate([noise, jnp.zeros(max(0, n - noise.shape[0]))])[:n] if noise.ndim else noise
    round_off = 8.0 * jnp.finfo(rows.dtype).eps * (size + noise)
    return unknowns * (atol + rtol * jnp.abs(rows) + round_off)


class _Held(NamedTuple):
    """Factors kept over iterations, with the active set they were made for."""

    X: Array
    S: Any  # what `Problem.factor` gives
    active: ActiveSet
    linearisation: Any


class Guided(NamedTuple):
    """What `Automatic` adds to a problem to reach a solution that Newton does not find by itself."""

    attempt: Array  # see `Inclusions.sticking`
    anchor: Anchor
    weights: Array  # of the first attempt: a diverging sequence must not loosen what counts as solved


class SemismoothNewton(Solver):
    """Converged when || F / ((m + n)(atol + rtol |F_0|)) ||_2 < 1, (6.7); m + n counts all unknowns."""

    atol: float = 1e-12
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20, static=True)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        return self.attempt(problem, x, y, None)[0]

    def attempt(self, problem: Problem, x: Array, y: Array, guided: Guided | None) -> tuple[Solve, Array]:
        """A solve and the weights of (6.7) that judged it; ``guided`` is for `Automatic`."""
        at, s, e, k = (self._held if problem.inexact else self._exact)(problem, x, y, guided)
        if guided is not None:
            # Judged without the help: by the problem itself, with its own active set.
            mu = problem.mu(at.y)
            psi = at.psi - guided.anchor.stiffness * (mu - guided.anchor.mu)
            active = problem.inclusions.active_set(psi, mu)
            F = problem.inclusions.residual(active, psi, mu)
            units = problem.inclusions.units(active)
            at = at._replace(psi=psi, active=active, F=jnp.where(e < 1.0, F, jnp.nan), units=units)
            e = squared_norm(at.rows / s)
        solve = Solve(
            at.x,
            at.y,
            at.active,
            k,
            jnp.asarray(0),
            at.F,
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(e < 1.0, RESULTS.newton_not_converged),  # a nan is not below 1
        )
        return solve, s

    @staticmethod
    def _hopeless(problem: Problem, k: Array, e: Array, e_before: Array) -> Array:
        """Where the caller has another problem to try, this one is smooth, or a wrong guess and not worth the iterations."""
        return jnp.asarray(problem.inclusions.optional) & (k >= 2) & (e > 0.5 * e_before)

    def _scales(self, problem: Problem, start: Point, guided: Guided | None) -> Array:
        unknowns = start.x.shape[0] + start.y.shape[0]
        own = weights(start.rows, unknowns, problem.size(start.y), problem.noise(), self.atol, self.rtol)
        return own if guided is None else jnp.minimum(own, guided.weights)

    def _exact(self, problem: Problem, x: Array, y: Array, guided: Any) -> tuple[Point, Array, Array, Array]:
        """Algorithm 1."""
        attempt, anchor = (None, None) if guided is None else (guided.attempt, guided.anchor)
        start = evaluate(problem, x, y, attempt, anchor)
        s = self._scales(problem, start, guided)
        null_pivot = problem.null_pivot if anchor is None else anchor.null_pivot(problem.null_pivot)
        forced = jnp.asarray(False) if attempt is None else attempt > 0  # whose first residual proves nothing

        def unfinished(state):
            _, e, k, hopeless = state
            return ((e >= 1.0) | (forced & (k == 0))) & (k < self.max_iterations) & ~hopeless

        def step(state):
            at, e_before, k, _ = state
            X = problem.tangent(at.x, at.aux)
            dy = problem.newton_step(at, X, problem.factor(at, X, null_pivot, anchor))
            at = evaluate(problem, at.x + X @ dy, at.y + dy, None, anchor)
            e = squared_norm(at.rows / s)
            return at, e, k + 1, self._hopeless(problem, k, e, e_before)

        begin = (start, squared_norm(start.rows / s), jnp.asarray(0), jnp.asarray(False))
        at, e, k, _ = jax.lax.while_loop(unfinished, step, begin)
        return at, s, e, k

    def _held(self, problem: Problem, x: Array, y: Array, guided: Any) -> tuple[Point, Array, Array, Array]:
        """The same iteration with S and X held while the active set stays and the error falls well.

        Where forces are so stiff that their linearisation at the start does not serve, it is taken anew.
        Written so that the (large) program of `evaluate` appears once: it is what takes time to compile.
        """
        attempt, anchor = (None, None) if guided is None else (guided.attempt, guided.anchor)
        forced = jnp.asarray(False) if attempt is None else attempt > 0
        laws, n, zero = problem.inclusions.laws, y.shape[0], jnp.zeros_like(y)
        open_ = ActiveSet(jnp.zeros(laws.n_N, dtype=bool), jnp.zeros(laws.set.count, dtype=bool))
        nothing = Point(x, y, None, jnp.zeros_like(x), zero, open_, zero, zero)  # phi has a row for each entry of x
        held = _Held(jnp.zeros((x.shape[0], n)), problem.no_factors(n, anchor), nothing.active, problem.linearisation)

        null_pivot = problem.null_pivot if anchor is None else anchor.null_pivot(problem.null_pivot)

        def factor(at: Point, k: Array, linearisation: Any) -> _Held:
            if linearisation is not None:
                # The first one is fresh.
                linearisation = jax.lax.cond(k > 0, lambda: problem.relinearised(at.x), lambda: linearisation)
            X = problem.using(linearisation).tangent(at.x, at.aux)
            return _Held(X, problem.factor(at, X, null_pivot, anchor), at.active, linearisation)

        def unfinished(state):
            _, _, e, k, _, hopeless = state
            return ((e >= 1.0) | (forced & (k == 1))) & (k <= self.max_iterations) & ~hopeless

        def step(state):
            at, s, e_before, k, held, _ = state
            # the update that the last evaluation asked for, zero at first
            dy = jnp.where(k > 0, problem.newton_step(at, held.X, held.S), 0.0)
            first = None if attempt is None else jnp.where(k == 0, attempt, 0)
            at = evaluate(problem.using(held.linearisation), at.x + held.X @ dy, at.y + dy, first, anchor)
            s = jnp.where(k == 0, self._scales(problem, at, guided), s)
            e = squared_norm(at.rows / s)
            changed = ~jnp.all(at.active.normal == held.active.normal) | ~jnp.all(at.active.stick == held.active.stick)
            # squared: a factor of thirty in the norm
            stale = ((e >= 1.0) | forced) & ((k == 0) | changed | (e > 1e-3 * e_before))
            held = jax.lax.cond(stale, lambda: factor(at, k, held.linearisation), lambda: held)
            return at._replace(aux=None), s, e, k + 1, held, self._hopeless(problem, k - 1, e, e_before)

        start = (nothing, jnp.ones_like(nothing.rows), jnp.asarray(jnp.inf), jnp.asarray(0), held, jnp.asarray(False))
        at, s, e, k, _, _ = jax.lax.while_loop(unfinished, step, start)
        return at, s, e, k - 1
