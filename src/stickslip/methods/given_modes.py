"""A step of a projected Runge-Kutta method with given contact modes: smooth, and of full order up to the next event.

Between two events every contact is open or closed and every ball of friction sticks or slips, and the motion is that of
a differential-algebraic equation: stages as in S3 (4.61), (4.64) with

    closed   g_N(tau_i, Q_i) = 0         open   dPi_N,i = 0, and the gap may become negative in a trial
    stick    gamma_F(tau_i, Q_i, U_i) = 0
    slip     dPi_F,i = -r(dPi_N,i) d,    d = gamma_F,i/|gamma_F,i|, or frozen

and then the projection (4.103) of the velocities, slipping balls along d. Balls of one dimension slip with a frozen sign,
so that their equations go on smoothly through zero slip.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..derive import Directions, Dynamics
from ..laws import ActiveSet
from ..linalg import matmul
from ..results import RESULTS
from ..rows import StageLayout
from ..solvers import Inclusions, Problem, ProxParameters, Solve, Solver, VelocityProblem
from ..solvers.newton import evaluate
from ..trees import held
from .spatial_friction import Modes, StagewiseInclusions
from .stages import MotionInverse, Stages, each, levers, stage_inclusions


class GivenModes(NamedTuple):
    """What every law does until the next event."""

    closed: Bool[Array, " n_N"]
    stick: Bool[Array, " n_balls"]
    frozen: Bool[Array, " n_balls"]  # slip along `direction`, whatever gamma_F is
    starting: Bool[Array, " n_balls"]  # slip from rest, along `direction`: gamma_F has none yet
    direction: Float[Array, " n_F"]


def carried(dynamics: Dynamics, closed: Array) -> Bool[Array, " n_balls"]:
    """Balls with friction: on closed contacts, or of constant size."""
    return dynamics.laws.of_balls(closed) & (dynamics.laws.coefficient > 0.0)


class GivenInclusions(StagewiseInclusions):
    """Laws of which all are in a given mode."""

    along: GivenModes | None = None

    @classmethod
    def given_modes(cls, printed: Inclusions, modes: GivenModes, measure: Array, duration: Any, slip: Array | None = None):
        """``slip``: gamma_F where it is known; otherwise directions are those of psi."""
        return cls(
            printed.laws, printed.layout, printed.closed, printed.may_stick, printed.rho, printed.duration, printed.offset,
            printed.scales, True, Modes(~modes.stick, modes.stick), measure, duration, slip, False, modes,
        )  # fmt: skip

    def active_set(self, psi, mu):
        lead = self.layout.lead
        return ActiveSet(*(jnp.broadcast_to(a, (*lead, *a.shape)) for a in (self.along.closed, self.along.stick)))

    def residual(self, active, psi, mu):
        """As above; a ball on an open contact has no friction, stage by stage and exactly."""
        b, N, F = self.split(super().residual(active, psi, mu))
        _, _, y_F = self.split(mu - self.offset)
        return self.layout.join(b, N, jnp.where(self.laws.set.expand(self._bearing(active)), F, y_F))

    def coupled(self, active):
        b, N, _ = self.split(super().coupled(active))
        return self.layout.join(b, N, self.laws.set.expand(self._bearing(active)))

    def _bearing(self, active: ActiveSet) -> Array:
        return active.stick | self.laws.of_balls(active.normal)

    def opposed(self, psi, N):
        laws, modes = self.laws, self.along
        slip = self.split(psi)[2] if self.given is None else self.given
        known = modes.frozen if self.given is None else modes.frozen | modes.starting
        along = jnp.where(laws.set.expand(known), modes.direction, laws.set.direction(slip))
        return -laws.set.expand(laws.radii(N, self.slip_duration)) * along


class Once(Solver):
    """Solves a problem that is affine: one factorisation, no iteration.

    Redundant rows have no unique forces; then they are the smallest ones. ``smallest`` is false where only the motion counts.
    """

    smallest: bool = eqx.field(default=True, static=True)

    def iterate(self, problem: Problem, x: Array, y: Array) -> Solve:
        at = evaluate(problem, x, y)
        X = problem.tangent(at.x, at.aux)
        factors = problem.factor(at, X, problem.null_pivot)
        dy = factors.apply(-at.F)
        if self.smallest and y.shape[0] > x.shape[0]:

            def least(_):
                # rows scaled by what they move, so that a small mass does not count as redundant
                S, units = problem.schur_complement(at, X), at.units
                root = jnp.sqrt(problem.inclusions.per_percussion())
                scaled = (units / root)[:, None] * S / root
                return -(jnp.linalg.pinv(scaled, rtol=1e-10) @ (units / root * at.F)) / root

            dy = jax.lax.cond(factors.regular, lambda dy: dy, least, dy)
        y = y + dy
        zero, none = jnp.asarray(0), jnp.zeros_like(y)
        return Solve(problem.correct(x, y)[0], y, at.active, zero, zero, none, none, jnp.zeros(()), RESULTS.successful)


class Instant(NamedTuple):
    """Rates and forces that belong to a state in given modes."""

    q_dot: Float[Array, " nq"]
    u_dot: Float[Array, " nu"]
    la: Float[Array, " n_y"]
    rates: Float[Array, " n_y"]  # velocities of all rows
    accelerations: Float[Array, " n_y"]
    at: Directions
    k: Float[Array, " nu"]  # M^-1 h


def _velocity_problem(dynamics: Dynamics, at: Directions, free, c, modes: GivenModes, slip, duration) -> VelocityProblem:
    laws, layout = dynamics.laws, StageLayout(dynamics.rows)
    scales = at._replace(chi=c).scales(free)
    printed = Inclusions(
        laws, layout, modes.closed, jnp.ones(laws.set.count, dtype=bool), ProxParameters.of(laws, dynamics.rows, at.G),
        jnp.asarray(duration), jnp.zeros(dynamics.n_y), scales,
    )  # fmt: skip
    inclusions = GivenInclusions.given_modes(printed, modes, jnp.eye(1), duration, slip)
    return VelocityProblem(inclusions, free, at.L, at.W, c, matmul(at.W.T, at.L))


def instant(dynamics: Dynamics, t, q: Array, u: Array, modes: GivenModes) -> Instant:
    """Accelerations and forces: closed gaps and sticking balls have no acceleration, slipping ones their friction."""
    at, force = Directions.with_force(dynamics, t, q, dynamics.h(t, q, u)[:, None])
    k, rates, zeta = force[:, 0], at.velocities(u), dynamics.acceleration_rest(t, q, u)
    problem = _velocity_problem(dynamics, at, k, zeta, modes, dynamics.split(rates).F, 1.0)
    out = Once().solve(problem, k, jnp.zeros(dynamics.n_y))
    return Instant(dynamics.q_dot(t, q, u), out.x, out.y, rates, at.W.T @ out.x + zeta, at, k)


def projected(dynamics: Dynamics, at: Directions, u: Array, modes: GivenModes) -> VelocityProblem:
    """(4.103): closed gaps and sticking balls have no velocity, slipping ones are moved along their direction."""
    return _velocity_problem(dynamics, at, u, at.chi, modes, dynamics.split(at.velocities(u)).F, 0.0)


class Trial(NamedTuple):
    """A step that may yet be rejected."""

    q: Float[Array, " nq"]
    u: Float[Array, " nu"]
    P: Float[Array, " n_y"]
    Q: Float[Array, "s nq"]
    U: Float[Array, "s nu"]
    solves: tuple[Solve, Solve]

    @property
    def ok(self) -> Bool[Array, ""]:
        finite = jnp.all(jnp.isfinite(self.q)) & jnp.all(jnp.isfinite(self.u))
        return finite & (self.solves[0].result == RESULTS.successful)


def trial(
    method: Any,
    solvers: tuple[Solver, Solver],
    dynamics: Dynamics,
    t,
    dt,
    q: Array,
    u: Array,
    modes: GivenModes,
    now: Instant,
) -> Trial:
    """A step of dt from an instant; ``solvers`` of the stages and of the projection."""
    tableau = method.tableau
    s, D, constrained = tableau.stages, np.linalg.inv(tableau.A), tuple(range(tableau.stages))
    A, c = jnp.asarray(tableau.A), jnp.asarray(tableau.c)
    now = held(now)
    scales = now.at.scales(jnp.abs(u) + dt * (jnp.abs(now.k) + jnp.abs(now.u_dot)))
    printed = stage_inclusions(
        dynamics, scales, dt, levers(tableau.A, tableau.A, D, constrained), c * dt, jnp.zeros(s * dynamics.n_y)
    )
    inclusions = GivenInclusions.given_modes(printed, modes, jnp.asarray(D), dt)
    base = jnp.tile(q, (s, 1)), jnp.tile(u, (s, 1))
    # A guess: accelerations as they are now.
    duration = (c * dt)[:, None]
    U = u + duration * now.u_dot
    Q = q + duration * each(dynamics.q_dot, t + c * dt / 2, base[0] + duration / 2 * now.q_dot, (u + U) / 2)
    motion = MotionInverse.at(dynamics, t + c * dt, Q, U, dt, A, A)
    stages = Stages(inclusions, dynamics, t + c * dt, dt, *base, A, A, jnp.asarray(D), motion, constrained)
    y = (duration * now.la).reshape(-1)
    first = solvers[0].solve(stages, jnp.concatenate([Q.reshape(-1), U.reshape(-1)]), y, 0)
    Q, U = stages.split_motion(first.x)
    q1 = dynamics.normalize(Q[-1])
    end = Directions.at(dynamics, t + dt, q1)
    second = solvers[1].solve(projected(dynamics, end, U[-1], modes), U[-1], jnp.zeros(dynamics.n_y), 1)
    P = stages.by_stage(first.y)[-1] + second.y
    return Trial(q1, second.x, P, Q, U, (first, second))
