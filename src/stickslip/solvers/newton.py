"""Semismooth Newton in active-set form: S3 Algorithm 1 with (6.8), on the Schur complement (6.12), (6.13)."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from .. import linalg
from ..results import RESULTS, unless
from ..stacked import ActiveSet
from ..trees import Traced, blank
from .base import Solver
from .problem import Anchor, Point, Problem, Solve
from .proximal import as_factors, checked_proximal, with_proximal

# Squared, like the error: a Newton method that does not come closer any more, this near to its tolerance,
# with its active set settled and a regular matrix, has met round-off that `Problem.sizes` did not foresee
# (terms that cancel inside a system's own functions). Where contacts are redundant it must be near by the
# number of unknowns: that many percussions add up in a row.
NEAR, NO_PROGRESS = 1e8, 0.25
PREDICTED = 1e-2  # an error that will be below this, if it goes on to fall as it did, need not be looked at


def evaluate(
    problem: Problem, x: Array, y: Array, attempt: Any = None, anchor: Anchor | None = None
) -> Point:
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


def tolerance(problem: Problem, at: Point, first: Array, atol: Any, rtol: Any) -> Array:
    """The scaling of (6.7), (m + n)(atol + rtol |F_0|),
    with atol in units of the row and nothing below round-off.

    The units are those of the point that is judged: percussions of a guess may be zero.
    """
    return scaling(at.x.shape[0] + at.y.shape[0], *problem.sizes(at), first, atol, rtol)


def scaling(unknowns: int, size: Array, cancelling: Array, first: Array, atol: Any, rtol: Any) -> Array:
    """The same for rows of given sizes."""
    real = jnp.finfo(size.dtype)
    return unknowns * (atol * size + rtol * first) + 16.0 * real.eps * cancelling + jnp.sqrt(real.tiny)


def same_modes(a: ActiveSet, b: ActiveSet) -> Bool[Array, ""]:
    return jnp.all(a.normal == b.normal) & jnp.all(a.stick == b.stick)


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
    first: Array  # |F_0| of the first attempt: a diverging sequence must not loosen what counts as solved


class _State(NamedTuple):
    """A point and what was found there; k counts evaluations."""

    at: Point
    first: Array  # |F_0|
    scaling: Array  # of (6.7)
    e: Array  # squared norm of (6.7)
    k: Array
    held: _Held
    dx: Array  # the update of this point with the factors held
    dy: Array
    fresh: Bool[Array, ""]  # these are the factors of this point
    settled: Bool[Array, ""]  # active set as in the factors, which are regular
    next_is_last: Bool[Array, ""]  # the error falls so fast that one more update need not be looked at
    stuck: Bool[Array, ""]  # at round-off
    go_on: Bool[Array, ""]


class SemismoothNewton(Solver):
    """Converged when || F / ((m + n)(atol s + rtol |F_0|)) ||_2 < 1, (6.7); m + n counts all unknowns.

    s is the size of each row: the velocities, or velocities times dt, or percussions that it is made of. So a
    tolerance means the same in all units and for all masses. An update after which the error would be below 1
    by as much as it fell in the last one is made, but not evaluated.
    """

    atol: float = 1e-13
    rtol: float = 1e-12
    max_iterations: int = eqx.field(default=20, static=True)
    proximal: Any = eqx.field(
        default="diagonal", static=True, converter=as_factors
    )  # "diagonal", "method", "contracting", r or (r_N, r_F)
    skipped: Any = eqx.field(default=None, kw_only=True, repr=False)  # see `unless`

    def __check_init__(self):
        checked_proximal(self)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        return self.attempt(problem, x, y, None)[0]

    def attempt(self, problem: Problem, x: Array, y: Array, guided: Guided | None) -> tuple[Solve, Array]:
        """A solve, and |F_0| of (6.7); ``guided`` is for `Automatic`."""
        problem = with_proximal(problem, self.proximal, x, y)
        end = self._iterate(problem, x, y, guided)
        at, s, e, reached = end.at, end.scaling, end.e, (end.e < 1.0) | end.next_is_last | end.stuck
        if guided is not None:
            # Judged without the help: by the problem itself, with its own active set.
            mu = problem.mu(at.y)
            psi = at.psi - guided.anchor.stiffness * (mu - guided.anchor.mu)
            active = problem.inclusions.active_set(psi, mu)
            F = problem.inclusions.residual(active, psi, mu)
            units = problem.inclusions.units(active)
            at = at._replace(psi=psi, active=active, F=jnp.where(reached, F, jnp.nan), units=units)
            s = tolerance(problem, at, end.first, self.atol, self.rtol)
            e = squared_norm(at.rows / s)
        solved = (e < 1.0) | ((end.stuck | end.next_is_last) & (e < NEAR))  # a nan is not below 1
        allowed = s[at.phi.shape[0] :]
        last = solved & self._worth_updating(problem, end, allowed)
        solve = Solve(
            at.x + jnp.where(last, end.dx, 0.0),
            at.y + jnp.where(last, end.dy, 0.0),
            at.active,
            end.k - 1,
            jnp.asarray(0),
            at.F,
            allowed,
            jnp.max(jnp.abs(at.rows), initial=0.0),
            unless(solved, RESULTS.newton_not_converged),
        )
        return solve, end.first

    @staticmethod
    def _worth_updating(problem: Problem, end: _State, allowed: Array) -> Array:
        """Whether the last update is made: where the error needs it,
        or where the factors at hand give it for nothing.

        A solve that ends within its tolerance leaves an error of one sign, which would add up over many
        steps. Where percussions would change by more than the tolerance explains, contacts are nearly
        redundant: they stay.
        """
        small = jnp.all(problem.inclusions.per_percussion() * jnp.abs(end.dy) <= 1e3 * allowed)
        return end.next_is_last | (end.settled & small)

    def _iterate(self, problem: Problem, x: Array, y: Array, guided: Guided | None) -> _State:
        """Algorithm 1. S and X of an inexact problem are held while the active set stays and the error falls
        well.

        Where forces are so stiff that their linearisation at the start does not serve, it is taken anew. A
        guess that is a solution, as it is at rest, costs one evaluation.
        """
        attempt, anchor = (None, None) if guided is None else (guided.attempt, guided.anchor)
        forced = jnp.asarray(False) if attempt is None else attempt > 0  # whose first residual proves nothing
        # must be judged without the help
        helped = forced if anchor is None else forced | jnp.any(anchor.stiffness > 0.0)
        null_pivot = problem.null_pivot if anchor is None else anchor.null_pivot(problem.null_pivot)

        def evaluated(linearisation: Any, x: Array, y: Array, way: Array | None) -> Point:
            return evaluate(problem.using(linearisation), x, y, way, anchor)

        look = Traced(evaluated, problem.linearisation, x, y, attempt)

        def factor(at: Point, held: _Held, again: Array) -> _Held:
            linearisation = held.linearisation
            if linearisation is not None:
                # The first one is fresh.
                linearisation = jax.lax.cond(again, lambda: problem.relinearised(at.x), lambda: linearisation)
            X = problem.using(linearisation).tangent(at.x, at.aux)
            return _Held(X, problem.factor(at, X, null_pivot, anchor), at.active, linearisation)

        def error(at: Point, first: Array) -> tuple[Array, Array]:
            s = tolerance(problem, at, first, self.atol, self.rtol)
            return s, squared_norm(at.rows / s)

        def step(c: _State) -> _State:
            # Evaluated here only, also the guess: what is large is compiled once.
            guess, held = c.k == 0, c.held
            way = None if attempt is None else jnp.where(guess, attempt, 0)
            at = look(held.linearisation, c.at.x + c.dx, c.at.y + c.dy, way)
            first = jnp.where(guess, self._first(at, guided), c.first)
            s, e = error(at, first)
            same, fell = same_modes(at.active, held.active), e / c.e
            updated = same & ~helped & ~guess
            settled = updated & held.S.regular & (e < NEAR)
            redundant = updated & ~held.S.regular & (e < at.rows.shape[0] ** 2)
            last = settled & (e >= 1.0) & (e * fell < PREDICTED)
            stuck = c.fresh & (settled | redundant) & (fell > NO_PROGRESS) & (c.e < NEAR)
            done = ((e < 1.0) & ~(forced & guess)) | last | stuck
            # an impact that runs through a stack closes one contact after the other
            closing = jnp.any(at.active.normal & ~held.active.normal) & (at.F.shape[0] > linalg.SMALL)
            go_on = (
                ~done & (c.k < self.max_iterations) & ~(self._hopeless(problem, c.k - 1, e, c.e) & ~closing)
            )
            # squared: a factor of thirty in the norm
            fresh = go_on & (guess | ~same | (fell > 1e-3)) if problem.inexact else go_on
            held = jax.lax.cond(fresh, factor, lambda at, held, again: held, at, held, ~guess)
            dy = problem.newton_step(at, held.X, held.S)
            return _State(at, first, s, e, c.k + 1, held, held.X @ dy, dy, fresh, settled, last, stuck, go_on)

        n, no, open_ = y.shape[0], jnp.asarray(False), problem.inclusions.none_active()
        nothing = _Held(
            jnp.zeros((x.shape[0], n)), problem.no_factors(n, anchor), open_, problem.linearisation
        )
        at = blank(look.shapes)._replace(x=x, y=y)
        rows, infinite = jnp.zeros_like(at.rows), jnp.asarray(jnp.inf)
        begin = _State(
            at, rows, rows, infinite, jnp.asarray(0), nothing, jnp.zeros_like(x), jnp.zeros_like(y), no, no,
            no, no, jnp.asarray(True) if self.skipped is None else ~self.skipped,
        )  # fmt: skip
        return jax.lax.while_loop(lambda c: c.go_on, step, begin)

    def unless(self, skipped: Array) -> "SemismoothNewton":
        """The same, which solves nothing where that holds: the guess comes back as not solved."""
        return dataclasses.replace(self, skipped=skipped)

    @staticmethod
    def _hopeless(problem: Problem, k: Array, e: Array, e_before: Array) -> Array:
        """Where the caller has another problem to try, this one is smooth,
        or a wrong guess and not worth the iterations.
        """
        return jnp.asarray(problem.inclusions.optional) & (k >= 2) & (e > 0.5 * e_before) & (e > NEAR)

    @staticmethod
    def _first(start: Point, guided: Guided | None) -> Array:
        own = jnp.abs(start.rows)
        return own if guided is None else jnp.minimum(own, guided.first)
