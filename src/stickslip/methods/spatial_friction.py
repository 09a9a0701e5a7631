"""Friction stage by stage: the full order where the slip direction turns,
or a contact rolls on a turning body.

The printed laws set the friction of a whole step, or integrated differences of it, against one velocity:
first order as soon as the direction turns. A contact that stays closed through a step has instead, as in a
differential-algebraic method,

    slip     dPi_F,i = -mu dPi_N,i gamma_F,i / |gamma_F,i|,    i = 1..s: each stage opposes its own slip
    stick    partitioned: sum_i b_i c_i^k gamma_F,i = 0, k = 0..s-2, and gamma_F = 0 at the end (Jay's
             conditions for nonholonomic constraints); projected: gamma_F,i = 0, as printed
    at the end, slip: what the velocity stage or the projection adds acts along the slip direction.

The normal direction stays as printed. Which contacts stay closed, and whether they stick or slip, is
inherited from the step before; a ball whose assumption turns out wrong takes the printed law for this step,
at once and never back, and the step is made again (`PositionLevel`). So each transition costs the printed
error O(dt), persistent contact has the full order, and impact laws act only in steps with the printed law,
where they are exact. docs/spatial-friction.md has the argument and the orders.
"""

import abc
import warnings
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..captured import captured
from ..derive import Directions, Dynamics, Situation
from ..initial import contact_state
from ..linalg import matmul, solve
from ..results import RESULTS
from ..scales import QUIET
from ..solvers import Inclusions, Recorded
from ..stacked import ActiveSet
from ..trees import blank, held, moving
from .base import Method, Step, with_solver

Friction = Literal["stagewise", "printed"]
LONGEST_WAIT = 6  # of a mode that does not hold: 2^6 - 1 steps


class Modes(NamedTuple):
    """Balls with the stagewise law, in slip or in stick; the others have the printed one."""

    slip: Bool[Array, " n_balls"]
    stick: Bool[Array, " n_balls"]

    @property
    def stagewise(self) -> Bool[Array, " n_balls"]:
        return self.slip | self.stick


class Contacts(NamedTuple):
    """What a step leaves to the next: contacts that are closed and at rest in normal direction,
    balls that stick.

    (One that approaches or leaves has an impact to obey, or is about to open.)

    A ball whose mode did not hold tries again in the next step, as after any transition. Where it fails time
    after time (redundant contacts, whose percussions are not unique, may have no share that suits all cones)
    it waits 1, 3, 7, ... steps.
    """

    resting: Bool[Array, " n_N"]
    stick: Bool[Array, " n_balls"]
    failures: Int[Array, " n_balls"]  # in a row
    wait: Int[Array, " n_balls"]  # steps until the next attempt

    @classmethod
    def of(cls, resting: Array, stick: Array) -> "Contacts":
        none = jnp.zeros(stick.shape, dtype=int)
        return cls(resting, stick, none, none)

    @classmethod
    def at_start(cls, dynamics: Dynamics, t, q, u) -> "Contacts":
        """A ball without slip may stick: if it cannot, the first step says so."""
        return cls.of(*contact_state(dynamics, u, Situation.of(dynamics, t, q, u)))


def carried(dynamics: Dynamics, contacts: Contacts) -> Bool[Array, " n_balls"]:
    """Balls with friction on contacts that rest in normal direction when the step begins."""
    return dynamics.laws.of_balls(contacts.resting) & dynamics.laws.bearing


def inherited(dynamics: Dynamics, contacts: Contacts) -> Modes:
    """(a): what the step before suggests."""
    tried = carried(dynamics, contacts) & (contacts.wait == 0)
    return Modes(tried & ~contacts.stick, tried & contacts.stick)


def no_modes(dynamics: Dynamics) -> Modes:
    none = jnp.zeros(dynamics.laws.set.count, dtype=bool)
    return Modes(none, none)


class StagewiseInclusions(Inclusions):
    """Laws of which some balls are in a given mode; y = mu - offset,
    and the measures of the stages are dPi = measure y.
    """

    modes: Modes = eqx.field(
        default_factory=lambda: Modes(jnp.zeros(0, dtype=bool), jnp.zeros(0, dtype=bool))
    )
    measure: Array = eqx.field(default_factory=lambda: jnp.eye(1))
    slip_duration: Any = 0.0
    given: Array | None = None  # slip velocities that are known; otherwise psi
    # contacts of these balls are closed in all stages, as assumed
    closing: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(
        cls, printed: Inclusions, modes: Modes, measure: Array, slip_duration: Any,
        given: Array | None = None, closing: bool = False,
    ) -> "Inclusions":  # fmt: skip
        if not printed.laws.set.count:
            return printed
        return cls(
            printed.laws, printed.layout, printed.closed, printed.may_stick, printed.rho, printed.duration,
            printed.offset,
            printed.scales, jnp.any(modes.stagewise), None, modes, measure, slip_duration, given, closing,
        )  # fmt: skip

    def active_set(self, psi, mu):
        printed = super().active_set(psi, mu)
        return ActiveSet(
            printed.normal | self._assumed(), ~self.modes.slip & (self.modes.stick | printed.stick)
        )

    def _assumed(self) -> Bool[Array, " n_N"]:
        """Contacts that count as closed in any case."""
        if not self.closing:
            return jnp.zeros(self.laws.n_N, dtype=bool)
        return self.laws.of_contacts(self.modes.stagewise)

    def _of_stages(self, measure: Array, rows: Array) -> Array:
        return matmul(measure, rows) if self.layout.lead else measure[0, 0] * rows

    def measures(self, mu: Array) -> tuple[Array, Array]:
        """dPi_N and dPi_F of the stages."""
        _, N, F = self.split(mu - self.offset)
        return self._of_stages(self.measure, N), self._of_stages(self.measure, F)

    def sizes(self, percussions):
        printed = super().sizes(percussions)
        b, N, F = self.split(printed)
        return self.layout.join(b, N, jnp.maximum(F, self._of_stages(jnp.abs(self.measure), F)))

    def opposed(self, psi: Array, N: Array) -> Array:
        """dPi_F of slip, from dPi_N of the stages."""
        laws = self.laws
        along = laws.set.direction(self.split(psi)[2] if self.given is None else self.given)
        return -laws.set.expand(laws.radii(N, self.slip_duration)) * along

    def residual(self, active, psi, mu):
        b, F_N, F_F = self.split(super().residual(active, psi, mu))
        N, F = self.measures(mu)
        slip = F - self.opposed(psi, N)
        return self.layout.join(b, F_N, jnp.where(self.laws.set.expand(self.modes.slip), slip, F_F))

    def project(self, psi, mu, rho):
        """What is assumed is not projected: stick and closed contacts are constraints,
        slip follows from dPi_N.
        """
        _, psi_N, psi_F = self.split(psi)
        _, old_N, old_F = self.split(mu)
        mu_b, mu_N, mu_F = self.split(super().project(psi, mu, rho))
        expand = self.laws.set.expand
        mu_N = jnp.where(self._assumed(), old_N - rho.N * psi_N, mu_N)
        mu_F = jnp.where(expand(self.modes.stick), old_F - expand(rho.F) * psi_F, mu_F)
        N, _ = self.measures(self.layout.join(mu_b, mu_N, mu_F))
        opposed = self.opposed(psi, N)
        integrated = solve(self.measure, opposed) if self.layout.lead else opposed / self.measure[0, 0]
        slip = self.split(self.offset)[2] + integrated
        return self.layout.join(mu_b, mu_N, jnp.where(expand(self.modes.slip), slip, mu_F))

    def coupled(self, active):
        b, N, F = self.split(super().coupled(active))
        return self.layout.join(b, N, F | self.laws.set.expand(self.modes.slip))


def mixture(
    dynamics: Dynamics, modes: Modes, printed: np.ndarray, own: np.ndarray, stick: np.ndarray
) -> Float[Array, "r s n_y"]:
    """Which combination of the stages' rows stands in a row of psi: gaps as printed,
    gamma as a ball that sticks.
    """
    rows, expand = dynamics.rows, dynamics.laws.set.expand

    def spread(weights, count):
        return jnp.broadcast_to(jnp.asarray(weights)[:, :, None], (*weights.shape, count))

    of_F = spread(printed, rows.F)
    if rows.F:
        of_slip, of_stick = (jnp.asarray(w)[:, :, None] for w in (own, stick))
        of_F = jnp.where(expand(modes.slip), of_slip, jnp.where(expand(modes.stick), of_stick, of_F))
    return rows.join(spread(printed, rows.g), spread(stick, rows.gamma), spread(printed, rows.N), of_F)


class Outcome(NamedTuple):
    """A step made with some modes, and the balls for which their assumption came true."""

    step: Step
    holds: Bool[Array, " n_balls"]


def judged(
    step: Step, dynamics: Dynamics, modes: Modes, before: Any, closed: Array, dPi_N: Float[Array, "k n_N"],
    gamma_F: Float[Array, "velocities n_F"], dt, slack: Float[Array, " n_y"], gain: float = 1.0,
) -> Outcome:  # fmt: skip
    """(c): no impact anywhere; closed throughout, pushing, the whole step in its cone;
    in slip no stage slips backwards.

    ``before`` is the memory that the step began with. A contact that closes in the step may pass an impact on
    to any other, which then has the impact law to obey. Runge-Kutta methods with b_i >= 0 stay in the cone by
    themselves in slip; SDIRK3 and generalized-alpha have negative weights. Percussions are known up to
    ``slack``, those of single stages up to ``gain`` times that: what is accepted follows from what the solver
    was asked for.
    """
    laws = dynamics.laws
    if not laws.set.count:
        return Outcome(step, modes.slip)
    P, gamma, dPi_N, gamma_F, dt = held((step.P, before.gamma, dPi_N, gamma_F, dt))
    _, _, P_N, P_F = dynamics.split(P)
    _, _, slack_N, slack_F = dynamics.split(slack)
    _, _, _, slip = dynamics.split(gamma)
    impact = jnp.any(~before.contacts.resting & (P_N > 0.0))
    pushes = laws.of_balls(closed & (P_N >= 0.0) & jnp.all(dPi_N >= -gain * slack_N, axis=0))
    forwards = jnp.all(laws.set.dot(gamma_F, slip) > 0.0, axis=0)
    inside = laws.set.depth(-P_F, laws.radii(P_N + slack_N, dt)) >= -laws.set.largest(slack_F)
    return Outcome(step, pushes & inside & (forwards | modes.stick) & ~impact)


def contacts_after(
    dynamics: Dynamics, modes: Modes, before: Any, active: ActiveSet, at: Directions, u: Array, P: Array,
    tolerance: Array, *, sticks: bool = True,
) -> Contacts:  # fmt: skip
    """What is handed on: a ball sticks if its mode or the printed law says so and it does not move.

    ``before`` is the memory that the step began with, ``modes`` are those of the last attempt; the step ended
    at the position of ``at`` with u, percussions P and velocities solved to a ``tolerance``; ``sticks`` as in
    `PositionLevel`.
    """
    set_, old = dynamics.laws.set, before.contacts
    at, u, P, tolerance = held((at, u, P, tolerance))
    _, _, g_N_dot, gamma_F = dynamics.split(at.velocities(u))
    _, _, zero_N, zero_F = dynamics.split(QUIET * at.scales(u).cancelling(P) + 2.0 * tolerance)
    still = set_.norm(gamma_F) <= set_.largest(zero_F)
    inherits = inherited(dynamics, old)
    tried = inherits.stagewise if sticks else inherits.slip
    failed = tried & ~modes.stagewise
    failures = jnp.where(modes.stagewise, 0, jnp.minimum(old.failures + failed, LONGEST_WAIT))
    wait = jnp.where(failed, 2**old.failures - 1, jnp.maximum(old.wait - 1, 0))
    resting = active.normal & (jnp.abs(g_N_dot) <= zero_N)
    return Contacts(resting, still & (modes.stick | active.stick), failures, wait)


class PositionLevel(Method):
    """A scheme with friction stage by stage: makes a step in given modes and says what came of them;
    here they are chosen.

    Its memory has the velocities ``gamma`` of all rows and the `Contacts` that the last step left.
    """

    friction: eqx.AbstractVar[Friction]

    level = "position"
    sticks: ClassVar[bool] = True  # whether there is a mode for balls that stick

    def __check_init__(self):
        if self.friction == "integrated":
            warnings.warn(
                "friction='integrated' is called friction='printed' now", DeprecationWarning, stacklevel=3
            )
            object.__setattr__(self, "friction", "printed")
        if self.friction not in ("stagewise", "printed"):
            raise ValueError(
                f"{type(self).__name__}(friction={self.friction!r}): friction must be 'stagewise' or "
                "'printed'"
            )

    @property
    def stagewise(self) -> bool:
        return self.friction == "stagewise"

    @abc.abstractmethod
    def trial(self, dynamics: Dynamics, t, t1, dt, q: Array, u: Array, memory: Any, modes: Modes) -> Outcome:
        """A step in these modes."""

    def contacts(self, memory: Any) -> Contacts:
        """In a memory."""
        return memory.contacts

    def step(self, dynamics: Dynamics, t, t1, dt, q: Array, u: Array, memory: Any) -> Step:
        """(b)-(d): the step with the modes inherited, then without those that did not hold,
        until all others do.

        The printed law alone where the scheme is not `stagewise`. The step says which balls had the printed
        law although their contact persisted.
        """
        before = self.contacts(memory)
        modes = inherited(dynamics, before) if self.stagewise else no_modes(dynamics)
        if not self.sticks:
            modes = modes._replace(stick=jnp.zeros_like(modes.stick))
        args = dynamics, jnp.asarray(t), jnp.asarray(t1), jnp.asarray(dt), q, u, memory
        if not modes.slip.shape[0]:
            return self.trial(*args, modes=modes).step._replace(printed=modes.slip)
        step, final = _settled(args, modes, method=self)
        wanted = carried(dynamics, before) & (self.sticks | ~before.stick) & self.stagewise
        return step._replace(printed=wanted & ~final.stagewise)


class _Settled(NamedTuple):
    """A step, and the modes in which it was made."""

    step: Step
    modes: Modes


@eqx.filter_custom_jvp
def _settled(args: Any, modes: Modes, *, method: Any) -> _Settled:
    return _decided(args, modes, method, captured(method))


@eqx.filter_jit  # differentiation asks for it again and again, and traces it once
def _decided(args: Any, modes: Modes, method: Any, key: str) -> _Settled:
    def trial(modes: Modes) -> Outcome:
        step, holds = method.trial(*args, modes=modes)
        return Outcome(step._replace(work=step.spent), holds)

    made = jax.jit(trial)  # traced once, for its shapes and for the loop
    shapes = jax.eval_shape(made, modes)

    def unsettled(state):
        return state[2]

    def make(state):
        modes, before, _ = state
        step, holds = made(modes)
        keep = holds & (step.result == RESULTS.successful)
        again = jnp.any(modes.stagewise & ~keep)
        return (
            Modes(modes.slip & keep, modes.stick & keep),
            step._replace(work=before.work + step.work),
            again,
        )

    final, step, _ = jax.lax.while_loop(unsettled, make, (modes, blank(shapes.step), jnp.asarray(True)))
    return _Settled(step, final)


@_settled.def_jvp
def _settled_jvp(primals, tangents, *, method):
    """Which modes hold is decided without derivatives; then the step that was taken is differentiated."""
    args, modes = primals
    out = _settled(args, modes, method=method)
    known: Any = with_solver(method, Recorded(out.step.solves, method.solver))
    dynamic, static = moving(args, tangents[0])

    @jax.jit
    def taken(dynamic):
        step = known.trial(*eqx.combine(dynamic, static), modes=out.modes).step
        return eqx.filter(step._replace(solves=(), work=out.step.work), eqx.is_inexact_array)

    _, step_dot = jax.jvp(taken, (dynamic,), (tangents[0],))
    no_rates = jax.tree.map(lambda a: jnp.zeros_like(a) if eqx.is_inexact_array(a) else None, out)
    return out, no_rates._replace(step=step_dot._replace(solves=no_rates.step.solves))
