"""How long the next attempt is, and with which modes: (1), (12) of docs/events.md."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from ..derive import Dynamics
from ..methods.given_modes import GivenModes, Instant, carried
from ..trees import held, pick
from . import derivative
from .functions import functions
from .state import TINY, Carry, Control
from .treatment import lowest_bounce

EPS = float(np.finfo(float).eps)


class Plan(NamedTuple):
    """What is to be tried."""

    now: Instant
    modes: GivenModes
    moved: GivenModes  # the same once the step has begun
    first: Array  # event functions at the start
    length: Array
    dt: Array  # the same, with the derivative that it has where it ends at a given time
    stop: Array  # that time
    lands: Bool[Array, ""]  # whether it does


def planned(dynamics: Dynamics, control: Control, c: Carry) -> Plan:
    """(1), (12), and where steps end."""
    stops = jnp.asarray(dynamics.system.switching_times, dtype=float).reshape(-1)
    reachable = (stops > c.t + 1e-12 * control.dt_max) & (stops < control.t1)
    stop = held(jnp.minimum(control.t1, jnp.min(jnp.where(reachable, stops, jnp.inf), initial=jnp.inf)))
    now = derivative.again((dynamics, c.t, c.q, c.u, c.modes), held(c.now))
    modes, shorter = _stop_in_space(dynamics, control, c.modes, now, c.length)
    modes, searching, rest = pick(c.search.on, c.modes, modes), c.search.on, held(stop - c.t)
    shorter = jnp.minimum(shorter, _flight(dynamics, *held((c, now))))
    length = jnp.where(searching, c.length, jnp.minimum(c.length, jnp.maximum(shorter, TINY * c.dt)))
    # The last steps are alike, and none is a crumb; steps of one size end as they do without events.
    crumb = jnp.where(control.fixed, 1e-3, 1e-2) * length
    lands = jnp.where(searching, length >= rest, rest <= length + crumb)
    length = jnp.where(~lands & ~control.fixed & ~searching & (rest < 2.0 * length), rest / 2.0, length)
    # A step up to a jump of the forces ends a hair before it: what they are then belongs to the next.
    hair = jnp.where(stop < control.t1, 8.0 * EPS * jnp.abs(stop), 0.0)
    dt = jnp.where(lands, stop - hair - c.t, held(length))
    first = functions(held(dynamics), control, c.sides, *held((c.t, c.q, c.u, modes, now)))
    return Plan(now, modes, modes.begun, first, length, dt, stop, lands)


def _stop_in_space(
    dynamics: Dynamics, control: Control, modes: GivenModes, now: Instant, dt
) -> tuple[GivenModes, Array]:
    """(12): a ball that will stop slips along a line once the rest of its way is straight;
    until then steps are short.
    """
    set_ = dynamics.laws.set
    if set_.largest_dimension <= 1:
        return modes, jnp.asarray(jnp.inf)
    gamma, rate = dynamics.split(now.rates).F, dynamics.split(now.accelerations).F
    speed, along = set_.norm(gamma), set_.direction(gamma)
    slows = -set_.dot(along, rate)
    slips = carried(dynamics, modes.closed) & ~modes.stick & ~modes.starting & (set_.dot(along, along) > 0)
    tau = jnp.where(slips & (slows > 0.0), speed / jnp.where(slows > 0.0, slows, 1.0), jnp.inf)
    across = set_.norm(rate + set_.expand(slows) * along)
    tolerance = control.atol + control.rtol * dt * speed
    straight = slips & jnp.isfinite(tau) & (across * tau**2 / 2.0 < 0.1 * tolerance)
    intervals = set_.intervals
    frozen = intervals | held(straight)
    direction = jnp.where(set_.expand(frozen & ~intervals & slips), along, modes.direction)
    longest = jnp.where(frozen, 1.1 * tau, tau / 2.0)  # over the stop at once, but not far beyond
    return modes._replace(frozen=frozen, direction=direction), held(
        jnp.min(jnp.where(slips & ~intervals, longest, jnp.inf))
    )


def _flight(dynamics: Dynamics, c: Carry, now: Instant) -> Array:
    """After an impact a little more than the time until the contact closes again, as after a throw."""
    g_dot, g_ddot = dynamics.split(now.rates).N, dynamics.split(now.accelerations).N
    returns = ~c.modes.closed & c.fresh[: dynamics.laws.n_N] & (g_dot > 0.0) & (g_ddot < 0.0)
    # after lift-off a gap has neither velocity nor acceleration: what there is of them is round-off
    returns = returns & (g_dot**2 > -2.0 * g_ddot * lowest_bounce(dynamics))
    return 1.1 * jnp.min(jnp.where(returns, -2.0 * g_dot / g_ddot, jnp.inf), initial=jnp.inf)
