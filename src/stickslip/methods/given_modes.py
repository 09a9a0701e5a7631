"""A step of a Runge-Kutta method with given contact modes: smooth, and of full order up to the next event.

Between two events every contact is open or closed and every ball of friction sticks or slips, and the motion
is that of a differential-algebraic equation: stages as in S3 (4.61), (4.64) with

    closed   g_N(tau_i, Q_i) = 0         open   dPi_N,i = 0, and the gap may become negative in a trial
    stick    gamma_F(tau_i, Q_i, U_i) = 0
    slip     dPi_F,i = -r(dPi_N,i) d,    d = gamma_F,i/|gamma_F,i|, or frozen

and then the projection (4.103) of the velocities, slipping balls along d. Balls of one dimension slip with a
frozen sign, so that their equations go on smoothly through zero slip. Partitioned methods have (5.27) and
Jay's conditions in the place of these, and what remains of the last stage, dPi_s, comes with the projection.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..derive import Directions, Dynamics
from ..linalg import eliminate, matmul, solve
from ..results import RESULTS
from ..rows import StageLayout
from ..sets import Balls
from ..solvers import Inclusions, SemismoothNewton, Solve
from ..stacked import ActiveSet
from ..trees import held, pick
from .spatial_friction import Modes, StagewiseInclusions, mixture
from .stages import MotionInverse, Stages, each, levers, stage_inclusions

NULL_PIVOT = 1e-11  # of a row: pivots below are those of redundant rows


class GivenModes(NamedTuple):
    """What every law does until the next event."""

    closed: Bool[Array, " n_N"]
    stick: Bool[Array, " n_balls"]
    frozen: Bool[Array, " n_balls"]  # slip along `direction`, whatever gamma_F is
    starting: Bool[Array, " n_balls"]  # slip from rest, along `direction`: gamma_F has none yet
    direction: Float[Array, " n_F"]

    @property
    def begun(self) -> "GivenModes":
        """The same once a step has begun: slip has a direction of its own."""
        return self._replace(starting=jnp.zeros_like(self.starting))


def slip_direction(set_: Balls, modes: GivenModes, slip: Array) -> Float[Array, "... n_F"]:
    """d: that of gamma_F, unless it is frozen or there is no gamma_F yet."""
    return jnp.where(set_.expand(modes.frozen | modes.starting), modes.direction, set_.direction(slip))


def carried(dynamics: Dynamics, closed: Array) -> Bool[Array, " n_balls"]:
    """Balls with friction: on closed contacts, or of constant size."""
    return dynamics.laws.of_balls(closed) & dynamics.laws.bearing


class GivenInclusions(StagewiseInclusions):
    """Laws of which all are in a given mode."""

    along: Any = None  # the `GivenModes`

    @classmethod
    def of_stages(cls, printed: Inclusions, modes: GivenModes, measure: Array, dt: Any) -> "GivenInclusions":
        return cls(
            printed.laws, printed.layout, printed.closed, printed.may_stick, printed.rho, printed.duration,
            printed.offset,
            printed.scales, True, None, Modes(~modes.stick, modes.stick), measure, dt, None, False, modes,
        )  # fmt: skip

    def active_set(self, psi, mu):
        lead = self.layout.lead
        return ActiveSet(
            *(jnp.broadcast_to(a, (*lead, *a.shape)) for a in (self.along.closed, self.along.stick))
        )

    def residual(self, active, psi, mu):
        """As above; a ball on an open contact has no friction, stage by stage and exactly."""
        b, N, F = self.split(super().residual(active, psi, mu))
        _, _, y_F = self.split(mu - self.offset)
        F = self._guided(F, self.split(psi)[2])
        return self.layout.join(b, N, jnp.where(self.laws.set.expand(self._bearing(active)), F, y_F))

    def _guided(self, F: Array, slip: Array) -> Array:
        """Where slip begins: its whole reservoir along the given direction,
        no slip across it. That is linear, and a guess.

        There gamma_F = 0, and where forces are continuous so is its rate: slip grows along d, across which
        friction turns.
        """
        set_, d = self.laws.set, self.along.direction
        if set_.largest_dimension <= 1:  # slips with a frozen sign
            return F
        across = set_.expand(self.rho.F) * (slip - set_.expand(set_.dot(d, slip)) * d)
        return jnp.where(set_.expand(self.along.starting), set_.expand(set_.dot(d, F)) * d + across, F)

    def coupled(self, active):
        b, N, _ = self.split(super().coupled(active))
        return self.layout.join(b, N, self.laws.set.expand(self._bearing(active)))

    def _bearing(self, active: ActiveSet) -> Array:
        return active.stick | self.laws.of_balls(active.normal)

    def opposed(self, psi, N):
        along = slip_direction(self.laws.set, self.along, self.split(psi)[2])
        return -self.laws.set.expand(self.laws.radii(N, self.slip_duration)) * along


class Affine(NamedTuple):
    """S y = b: what given modes ask of forces or percussions y that move all rows by G y, psi = c + G y.

    closed, stick and bilateral: psi = 0      open: y = 0      slip: y_F = -r(y_N) d
    """

    S: Float[Array, "n_y n_y"]
    b: Float[Array, " n_y"]
    needed: Bool[Array, " n_y"]  # rows that are more than y = 0
    size: Float[Array, " n_y"]  # what y moves at its own row

    @classmethod
    def of(
        cls, dynamics: Dynamics, at: Directions, c: Array, modes: GivenModes, slip: Array, duration: Any
    ) -> "Affine":
        """``slip``: gamma_F, where friction has its own direction; ``duration``:
        over which constant reservoirs act.
        """
        laws, set_, layout = dynamics.laws, dynamics.laws.set, StageLayout(dynamics.rows)
        acts = laws.of_balls(modes.closed)
        sticks, slides = modes.stick & acts, ~modes.stick & acts
        along = set_.expand(jnp.where(slides, laws.coefficient, 0.0)) * slip_direction(set_, modes, slip)
        closing = layout.join(True, modes.closed, set_.expand(sticks))
        constant = np.repeat(laws.constant, set_.dimensions)
        S = jnp.where(closing[:, None], (at.W.T @ at.L).dense(), jnp.eye(dynamics.n_y))
        if laws.n_N and laws.n_F:  # friction follows the normal force of its contact
            owner = np.repeat(np.asarray(laws.contact_of, dtype=int), set_.dimensions)
            shares = jnp.where(owner[:, None] == np.arange(laws.n_N), along[:, None], 0.0)
            S = S + jnp.pad(shares, ((dynamics.n_y - laws.n_F, 0), (dynamics.rows.bilateral, laws.n_F)))
        pushed = layout.join(0.0, jnp.zeros(laws.n_N), jnp.where(constant, -duration * along, 0.0))
        size = layout.join(1.0, *dynamics.rows.laws(at.G)[1:])
        needed = layout.join(True, modes.closed, set_.expand(acts))
        return cls(S, jnp.where(closing, -c, pushed), needed, jnp.where(size > 0.0, size, 1.0))

    def solve(self, smallest: bool) -> tuple[Float[Array, " n_y"], Bool[Array, ""]]:
        """y, and whether it is unique; of redundant rows the smallest one,
        or any where only the motion counts.
        """
        return _solved(self, smallest)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _solved(affine: Affine, smallest: bool) -> tuple[Array, Array]:
    factors = eliminate(affine.S, affine.needed, NULL_PIVOT)
    y = factors.apply(affine.b)
    if smallest:
        y = jax.lax.cond(factors.regular, lambda: y, lambda: _smallest(affine))
    return y, factors.regular


@_solved.defjvp
def _solved_jvp(smallest, primals, tangents):
    """dy = S^-1 (db - dS y)."""
    (affine,), (rates,) = primals, tangents
    y, unique = _solved(affine, smallest)
    y_dot = eliminate(affine.S, affine.needed, NULL_PIVOT).apply(rates.b - rates.S @ y)
    return (y, unique), (y_dot, np.zeros(np.shape(unique), jax.dtypes.float0))


def _smallest(affine: Affine) -> Array:
    """The smallest solution of a singular system, in units of what forces move:
    S^T (S S^T)^-1, regularised and refined.
    """
    root = jnp.sqrt(affine.size)
    S, b, n = affine.S / (root[:, None] * root), affine.b / root, affine.b.shape[0]
    inverse = solve(matmul(S, S.T) + 1e-10 * jnp.eye(n), jnp.eye(n))
    return jax.lax.fori_loop(0, 4, lambda _, y: y + S.T @ (inverse @ (b - S @ y)), jnp.zeros(n)) / root


class Instant(NamedTuple):
    """Rates and forces that belong to a state in given modes."""

    q_dot: Float[Array, " nq"]
    u_dot: Float[Array, " nu"]
    la: Float[Array, " n_y"]
    rates: Float[Array, " n_y"]  # velocities of all rows
    accelerations: Float[Array, " n_y"]
    at: Directions
    k: Float[Array, " nu"]  # M^-1 h
    unique: Bool[Array, ""]  # whether la is


def instant(
    dynamics: Dynamics,
    t,
    q: Array,
    u: Array,
    modes: GivenModes,
    projects: Any = False,
    rest: "Rest | None" = None,
) -> Instant:
    """Accelerations and forces: closed gaps and sticking balls have no acceleration,
    slipping ones their friction.

    Where it ``projects``, la is the percussion of (4.103) instead, which takes velocities away: the same
    equations.
    """
    at, force = Directions.with_force(dynamics, t, q, dynamics.h(t, q, u)[:, None])
    k, rates, zeta = force[:, 0], at.velocities(u), dynamics.acceleration_rest(t, q, u)
    slides, left = _left(at, rates, rest)
    (free, duration), slides = pick(projects, ((rates, left), slides), ((at.W.T @ k + zeta, 1.0), rates))
    la, unique = Affine.of(dynamics, at, free, modes, dynamics.split(slides).F, duration).solve(
        dynamics.n_y > dynamics.nu
    )
    u_dot = k + at.L @ la
    return Instant(dynamics.q_dot(t, q, u), u_dot, la, rates, at.W.T @ u_dot + zeta, at, k, unique)


class Rest(NamedTuple):
    """What a partitioned step leaves to its projection: dPi_s,
    for this time against the slip of the last stage.
    """

    duration: Array
    sliding: Float[Array, " nu"]


def _left(at: Directions, rates: Array, rest: Rest | None) -> tuple[Array, Any]:
    """The slip that what is left to a projection opposes, and for how long."""
    return (rates, 0.0) if rest is None else (at.velocities(rest.sliding), rest.duration)


def projected(
    dynamics: Dynamics, at: Directions, u: Array, modes: GivenModes, rest: Rest | None = None
) -> tuple[Array, Array]:
    """(4.103): u+ and its percussion.

    Closed gaps and sticking balls have no velocity, slipping ones are moved along d.
    """
    rates = at.velocities(u)
    slides, duration = _left(at, rates, rest)
    y, _ = Affine.of(dynamics, at, rates, modes, dynamics.split(slides).F, duration).solve(False)
    return u + at.L @ y, y


class Trial(NamedTuple):
    """A step that may yet be rejected."""

    q: Float[Array, " nq"]
    u: Float[Array, " nu"]  # until it is projected
    P: Float[Array, " n_y"]
    Q: Float[Array, "s nq"]
    U: Float[Array, "s nu"]
    solve: Solve
    motion: MotionInverse | None  # how its stages answer, where what is stiff vanishes in a step
    rest: Rest | None

    @property
    def ok(self) -> Bool[Array, ""]:
        finite = jnp.all(jnp.isfinite(self.q)) & jnp.all(jnp.isfinite(self.u))
        return finite & (self.solve.result == RESULTS.successful)


def trial(
    method: Any, solver: Any, dynamics: Dynamics, t, dt, q: Array, u: Array, modes: GivenModes, now: Instant,
    guided: bool = False,
) -> Trial:  # fmt: skip
    """A step of dt from an instant, up to the projection of its end; ``guided``:
    where slip begins, from a better guess.
    """
    starting, modes, known, now = modes.starting, modes.begun, method.coefficients, held(now)
    s, r, D = len(known.c), len(known.constrained), known.D
    A, A_hat, c, share = (jnp.asarray(x) for x in (known.A, known.A_hat, known.c, known.share))
    scales = now.at.scales(jnp.abs(u) + dt * (jnp.abs(now.k) + jnp.abs(now.u_dot)))
    printed = stage_inclusions(
        dynamics,
        scales,
        dt,
        levers(known.A, known.A_hat, D, known.constrained),
        share * dt,
        jnp.zeros(r * dynamics.n_y),
    )
    inclusions = GivenInclusions.of_stages(printed, modes, jnp.asarray(D[:r]), dt)
    base = jnp.tile(q, (s, 1)), jnp.tile(u, (s, 1))
    # A guess: accelerations as they are now.
    duration = (c * dt)[:, None]
    U = u + duration * now.u_dot
    Q = q + duration * each(dynamics.q_dot, t + c * dt / 2, base[0] + duration / 2 * now.q_dot, (u + U) / 2)
    motion = MotionInverse.at(dynamics, t + c * dt, Q, U, dt, A, A_hat)
    mixed = None if known.rows is None else mixture(dynamics, Modes(~modes.stick, modes.stick), *known.rows)
    stages = Stages(
        inclusions, dynamics, t + c * dt, dt, *base, A, A_hat, jnp.asarray(D), motion, known.constrained,
        redundant=~now.unique, mixture=mixed,
    )  # fmt: skip
    guess = jnp.concatenate([Q.reshape(-1), U.reshape(-1)]), ((share * dt)[:, None] * now.la).reshape(-1)
    first = _guided(stages, solver, starting, guess) if guided else solver.solve(stages, *guess, 0)
    Q, U = stages.split_motion(first.x)
    q1 = dynamics.normalize(Q[-1])
    if not known.rest:
        return Trial(q1, U[-1], stages.by_stage(first.y)[-1], Q, U, first, motion, None)
    b = jnp.asarray(known.b)
    # (5.26d), with dPi_s = 0
    u1, P = u + b @ stages.increments(Q, U, first.y)[1], b @ stages.measures(first.y)
    return Trial(q1, u1, P, Q, U, first, None, Rest(known.rest * dt, U[-1]))


def _guided(stages: Stages, solver: SemismoothNewton, starting: Array, guess: tuple[Array, Array]) -> Solve:
    """First a guess where slip begins (nowhere: nothing is solved), then the step itself: compiled once."""

    def solve(known, number):
        inclusions: Any = stages.inclusions
        given = inclusions.along._replace(starting=starting & (number == 0))
        problem = eqx.tree_at(lambda s: s.inclusions.along, stages, given)
        here = solver.unless(solver.skipped | ((number == 0) & ~jnp.any(starting)))
        out = here.solve(problem, known[0], known[1])
        return (out.x, out.y), out

    _, both = jax.lax.scan(solve, guess, jnp.arange(2))
    last = jax.tree.map(lambda a: a[-1], both)
    return last._replace(newton_iterations=jnp.sum(jnp.maximum(both.newton_iterations, 0)))
