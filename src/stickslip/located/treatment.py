"""What happens at an event: (9), (10), (13) of docs/events.md.

By flags, the functions whose zeros were located, and never by signs that are read again.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..derive import Dynamics
from ..events import ACCUMULATION, EVENT, FORCE_JUMP, IMPACT, LIFT_OFF, REVERSAL, SLIP, STICK
from ..initial import acceleration_problem
from ..methods.base import Method, impact_problem
from ..methods.given_modes import GivenModes, Instant, carried, projected
from ..results import RESULTS, first_failure, unless
from ..scales import QUIET
from ..solvers import Solve, VelocityProblem
from ..trees import either, held, pick
from .state import Control


class Before(NamedTuple):
    """The state in which an event finds the system."""

    t: Array
    q: Array
    u: Array
    modes: GivenModes
    impacts: Array  # times of the last ones


class Flags(NamedTuple):
    """What happens, by kind."""

    arrive: Bool[Array, " n_N"]
    leave: Bool[Array, " n_N"]
    broken: Bool[Array, " n_balls"]  # stick has
    stopped: Bool[Array, " n_balls"]  # slip has
    users: Bool[Array, " users"]

    @classmethod
    def of(cls, dynamics: Dynamics, modes: GivenModes, flags: Array) -> "Flags":
        n, m = dynamics.laws.n_N, dynamics.laws.n_N + dynamics.laws.set.count
        contacts, balls = flags[:n], flags[n:m]
        return cls(
            contacts & ~modes.closed,
            contacts & modes.closed,
            balls & modes.stick,
            balls & ~modes.stick,
            flags[m:],
        )


class Treated(NamedTuple):
    """The state after an event, and what is recorded of it."""

    u: Array
    P: Array
    modes: GivenModes
    code: Array
    result: Any
    impact: Bool[Array, ""]


def slip_modes(dynamics: Dynamics, closed, stick, starting, direction) -> GivenModes:
    """Balls of one dimension slip with a frozen sign, half-lines with their only one."""
    set_ = dynamics.laws.set
    if any(set_.one_way):
        direction = jnp.where(set_.expand(jnp.asarray(set_.half_lines)), 1.0, direction)
    return GivenModes(closed, stick, jnp.asarray(set_.intervals), starting, direction)


def lowest_bounce(dynamics: Dynamics) -> Float[Array, " n_N"]:
    """Heights below this drown in the round-off of the gap."""
    return 1e3 * jnp.finfo(float).eps * dynamics.gap_terms[dynamics.rows.g :]


def _code(contacts, balls, users, jump) -> Array:
    return jnp.concatenate([contacts, balls, users, jnp.where(jump, FORCE_JUMP, 0)[None]]).astype(int)


def treat(
    dynamics: Dynamics, method: Method, control: Control, at: Before, flags: Array, now: Instant, again: Any,
    jump: Any, start: Any,
) -> Treated:  # fmt: skip
    """``now``: before the event; ``again``: all modes are decided anew; ``jump``: forces did;
    ``start``: of the run.
    """
    what = Flags.of(dynamics, at.modes, flags)
    continuous = ~(jnp.any(what.arrive) | jnp.any(what.stopped) | again | jump)
    return jax.lax.cond(
        continuous,
        lambda: _flip(dynamics, at, what, now),
        lambda: _decide(dynamics, method, control, at, what, now, jump, start),
    )


def _flip(dynamics: Dynamics, at: Before, what: Flags, now: Instant) -> Treated:
    """Lift-off and the end of stick: forces are continuous, and this mode alone changes."""
    laws, set_, modes = dynamics.laws, dynamics.laws.set, at.modes
    closed = modes.closed & ~what.leave
    stick = modes.stick & ~what.broken & laws.of_balls(closed)
    direction = jnp.where(
        set_.expand(what.broken), -set_.direction(dynamics.split(now.la).F), modes.direction
    )
    new = slip_modes(dynamics, closed, stick, what.broken, direction)
    leaves, slips = jnp.where(what.leave, LIFT_OFF, 0), jnp.where(what.broken, SLIP, 0)
    code = _code(leaves, slips, jnp.where(what.users, EVENT, 0), False)
    return Treated(at.u, jnp.zeros(dynamics.n_y), new, code, RESULTS.successful, jnp.asarray(False))


def _decide(
    dynamics: Dynamics,
    method: Method,
    control: Control,
    at: Before,
    what: Flags,
    now: Instant,
    jump: Any,
    start: Any,
) -> Treated:
    """Impacts and the end of slip: forces jump, and so may any mode."""
    laws, set_, modes, W = dynamics.laws, dynamics.laws.set, at.modes, now.at
    ending, none = _accumulates(dynamics, control, at, now, what.arrive), jnp.zeros(dynamics.n_y)
    touching, happens = what.arrive | ending.near | modes.closed, jnp.any(what.arrive)
    impact = _impact(dynamics, at, what, now, ending, touching)
    jumps = jnp.size(jnp.asarray(dynamics.system.switching_times)) > 0  # then h is not what it was before

    def after(out: Solve) -> _Bearing:
        """What bears the impact, and does not slip after it; without one what was closed, and did not."""
        u, P = jnp.where(happens, out.x, at.u), jnp.where(happens, out.y, 0.0)
        rates = dynamics.split(W.velocities(u))
        zero = dynamics.split(
            QUIET * W.scales(jnp.abs(at.u) + jnp.abs(u)).cancelling(P) + 2.0 * out.tolerance
        )
        rests = (jnp.abs(rates.N) <= zero.N) | ending.endless
        bears = jnp.where(happens, touching & rests, modes.closed)
        slow = set_.norm(rates.F) <= jnp.where(ending.endless & happens, ending.speed, set_.largest(zero.F))
        # A constant reservoir has no share in an impact: what it did it does.
        still = jnp.where(
            happens & ~laws.without_impulse, slow, jnp.where(start, slow, modes.stick) | what.stopped
        )
        still = still & carried(dynamics, bears)
        clamped = slip_modes(dynamics, bears, still, jnp.zeros_like(still), set_.direction(rates.F))
        return _Bearing(projected(dynamics, W, u, clamped)[0], P, bears, still, unless(~happens, out.result))

    def solve(level: Array, known: _Bearing) -> tuple[_Bearing, _Forced]:
        """First the impact, then the inclusion on acceleration level:
        one problem after the other, compiled once.
        """
        u = known.u
        k = dynamics.k(at.t, at.q, u) if dynamics.h_of_u or jumps else now.k
        rest = dynamics.acceleration_rest(at.t, at.q, u)
        inclusion = acceleration_problem(dynamics, W, k, rest, u, known.bears, known.still)
        problem, guess = either(level == 0, (impact, at.u), (inclusion, k))
        out = method.solver.solve(problem, guess, none)
        return pick(level == 0, after(out), known), _Forced(out, k, rest)

    unknown = _Bearing(at.u, none, modes.closed, modes.stick, RESULTS.successful)
    known, of_levels = jax.lax.scan(lambda known, level: solve(level, known), unknown, jnp.arange(2))
    out, k, rest = jax.tree.map(lambda a: a[-1], of_levels)
    u, acceleration = known.u, dynamics.split(W.W.T @ out.x + rest)
    scales = W._replace(chi=rest).scales(jnp.abs(k) + jnp.abs(out.x))
    quiet = dynamics.split(QUIET * scales.cancelling(out.y) + 2.0 * out.tolerance)
    closed = known.bears & (jnp.abs(acceleration.N) <= quiet.N)
    stick = known.still & laws.of_balls(closed) & (set_.norm(acceleration.F) <= set_.largest(quiet.F))
    starting = known.still & ~stick
    moving = jnp.where(set_.expand(starting), acceleration.F, dynamics.split(W.velocities(u)).F)
    new = slip_modes(dynamics, closed, stick, starting, set_.direction(moving))
    contacts, balls = _kinds(dynamics, modes, new, what, now, ending)
    code = _code(contacts, balls, jnp.where(what.users, EVENT, 0), jump)
    return Treated(u, known.P, new, code, first_failure(known.result, out.result), happens)


class _Bearing(NamedTuple):
    """After an impact, if there was one."""

    u: Float[Array, " nu"]
    P: Float[Array, " n_y"]
    bears: Bool[Array, " n_N"]  # contacts that are closed and at rest
    still: Bool[Array, " n_balls"]  # balls that do not slip
    result: Any


class _Forced(NamedTuple):
    """A solution of the inclusion, and what it was made of."""

    out: Solve
    k: Float[Array, " nu"]
    rest: Float[Array, " n_y"]


def _impact(
    dynamics: Dynamics, at: Before, what: Flags, now: Instant, ending: "Accumulation", touching: Array
) -> VelocityProblem:
    """Newton's impact law for all that arrive; what is closed bears it."""
    laws, set_, rates = dynamics.laws, dynamics.laws.set, dynamics.split(now.rates)
    none = jnp.zeros(dynamics.n_y)
    bouncing = dynamics.rows.join(
        jnp.zeros_like(rates.g), jnp.zeros_like(rates.gamma),
        jnp.where(what.arrive & ~ending.quick, rates.N, 0.0),
        jnp.where(set_.expand(laws.of_balls(touching, False)), rates.F, 0.0),
    )  # fmt: skip
    return impact_problem(dynamics, now.at, at.u, bouncing, touching, none, 0.0)


def _kinds(
    dynamics: Dynamics, old: GivenModes, new: GivenModes, what: Flags, now: Instant, ending: "Accumulation"
) -> tuple[Array, Array]:
    """What is recorded of contacts and of balls."""
    set_ = dynamics.laws.set
    bounced = jnp.where(what.arrive, jnp.where(ending.quick, ACCUMULATION, IMPACT), 0)
    slid = jnp.where(set_.expand(old.frozen), old.direction, set_.direction(dynamics.split(now.rates).F))
    turned = ~new.stick & ~old.stick & (set_.dot(new.direction, slid) < 0.0)
    changed = jnp.where(new.stick & ~old.stick, STICK, jnp.where(old.stick & ~new.stick, SLIP, 0))
    both = carried(dynamics, old.closed) & carried(dynamics, new.closed)
    of_balls = jnp.where(both, jnp.where(turned, REVERSAL, changed), 0)
    return jnp.where(old.closed & ~new.closed, LIFT_OFF, bounced), of_balls


class Accumulation(NamedTuple):
    quick: Bool[Array, " n_N"]  # arrives, but does not bounce
    near: Bool[Array, " n_N"]  # counts as arrived
    endless: Bool[Array, ""]  # no end to it: what is left of the velocities is taken away
    speed: Float[Array, ""]  # that is as good as none


def _accumulates(
    dynamics: Dynamics, control: Control, at: Before, now: Instant, arrive: Array
) -> Accumulation:
    """(13): a flight shorter than dt_zeno, or lower than the tolerance, is none.

    Contacts may also hand an impact to and fro, with or without bouncing: after some impacts within such a
    time all that are so near come to rest.
    """
    terms = dynamics.gap_terms[dynamics.rows.g :]
    g_dot, g_ddot = dynamics.split(now.rates).N, dynamics.split(now.accelerations).N
    fall = jnp.where(g_ddot < 0.0, -g_ddot, jnp.nan)
    usual = dynamics.split(jnp.sqrt(now.at.G)).N * dynamics.energy_norm(now.k)  # what forces can do to a gap

    def height(acceleration):
        of_time = control.dt_zeno**2 * acceleration / 8.0
        of_tolerance = 0.1 * (control.atol + control.rtol * terms)
        return jnp.maximum(
            jnp.where(jnp.isfinite(control.dt_zeno), of_time, of_tolerance), lowest_bounce(dynamics)
        )

    low = 2.0 * dynamics.laws.e_N * jnp.abs(g_dot) / fall < jnp.sqrt(8.0 * height(fall) / fall)
    time = jnp.sqrt(8.0 * height(usual) / jnp.where(usual > 0.0, usual, jnp.inf))
    endless = at.t - at.impacts[0] < jnp.max(jnp.where(arrive, time, 0.0), initial=0.0)
    near = endless & ~at.modes.closed & (jnp.asarray(dynamics.system.g_N(at.t, at.q)) <= 10.0 * height(usual))
    quick = arrive & (dynamics.laws.e_N > 0.0) & (low | endless)
    speed = jnp.max(jnp.sqrt(2.0 * usual * height(usual)), initial=0.0)
    return held(Accumulation(quick, near, endless, speed))
