"""Event functions, and how a step is searched for their zeros: (4), (5) of docs/events.md."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..derive import Dynamics
from ..methods.given_modes import GivenModes, Instant, carried, instant
from ..scales import QUIET
from . import dense
from .state import Carry, Control

SAMPLES = np.array([1 / 64, 1 / 8, dense.QUARTER, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1.0])  # where a step is looked at
AT_QUARTER = 2
REFINEMENTS = 10  # of a root on the dense output


def functions(dynamics: Dynamics, control: Control, sides: Array, t, q, u, modes: GivenModes, now: Instant) -> Array:
    """(4): one for each contact, ball and function of the user; positive as long as the modes hold."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    la, gamma_F = dynamics.split(now.la), dynamics.split(now.rates).F
    of_contacts = jnp.where(modes.closed, la.N, jnp.asarray(dynamics.system.g_N(t, q)))
    cone = laws.radii(la.N, 1.0) - set_.norm(la.F)
    stop = jnp.where(modes.frozen, set_.dot(modes.direction, gamma_F), 1.0)
    of_balls = jnp.where(carried(dynamics, modes.closed), jnp.where(modes.stick, cone, stop), 1.0)
    of_users = sides * users(control, t, q, u)
    return jnp.concatenate([of_contacts, of_balls, of_users])


def users(control: Control, t, q, u) -> Float[Array, " users"]:
    return jnp.stack([jnp.asarray(f(t, q, u), dtype=float) for f in control.users]) if control.users else jnp.zeros(0)


def slopes(dynamics: Dynamics, modes: GivenModes, now: Instant, values: Array, dt) -> Array:
    """Of the functions at the end of a step: kinematic ones as they are, others from the last three samples."""
    rates, accelerations = dynamics.split(now.rates), dynamics.split(now.accelerations)
    n, gap = dynamics.laws.n_N, (SAMPLES[-1] - SAMPLES[-2]) * dt
    differences = (3.0 * values[-1] - 4.0 * values[-2] + values[-3]) / (2.0 * gap)
    balls = dynamics.laws.set.count
    of_contacts = jnp.where(modes.closed, differences[:n], rates.N)
    stop = dynamics.laws.set.dot(modes.direction, accelerations.F)
    kinematic = carried(dynamics, modes.closed) & ~modes.stick & modes.frozen
    of_balls = jnp.where(kinematic, stop, differences[n : n + balls])
    return jnp.concatenate([of_contacts, of_balls, differences[n + balls :]])


def slack(dynamics: Dynamics, control: Control, modes: GivenModes, now: Instant) -> Array:
    """What is zero of each function: round-off of its terms."""
    laws = dynamics.laws
    root = jnp.sqrt(now.at.G)
    force = dynamics.energy_norm(now.k)
    weight = dynamics.split(force / jnp.where(root > 0.0, root, jnp.inf))  # forces that move a row as h moves the whole
    gaps = dynamics.gap_terms[dynamics.rows.g :]
    of_contacts = jnp.where(modes.closed, QUIET * weight.N, 4.0 * jnp.finfo(float).eps * gaps)
    radius = laws.radii(jnp.maximum(dynamics.split(now.la).N, 0.0), 1.0)
    of_balls = jnp.where(modes.stick, QUIET * (radius + laws.set.largest(weight.F)), 0.0)
    return jnp.concatenate([of_contacts, of_balls, jnp.zeros(len(control.users))])


def wanted(dynamics: Dynamics, control: Control, sides: Array) -> Bool[Array, " functions"]:
    """Functions that count when they fall through zero: a user's rising or falling, as asked."""
    directions = jnp.asarray(np.array(control.directions, dtype=float))
    laws = jnp.ones(dynamics.laws.n_N + dynamics.laws.set.count, dtype=bool)
    return jnp.concatenate([laws, (directions == 0.0) | (directions == -sides)])


class Look(NamedTuple):
    """What a step hides."""

    values: Float[Array, "samples functions"]
    quarter: Array  # u_dot
    found: Bool[Array, ""]  # a function that was positive is negative;
    where: Array  # first at this part of the step,
    which: Int[Array, ""]  # this one
    at_start: Bool[Array, ""]  # it was so from the beginning
    stuck: Bool[Array, ""]  # a fresh function never was positive


def look_along(
    dynamics: Dynamics, control: Control, c: Carry, modes: GivenModes, dt, a: dense.End, b: dense.End, first: Array,
    last: Array, slack: Array,
) -> Look:  # fmt: skip
    """The functions along the dense output of a step, and the first root (5)."""
    count = len(SAMPLES)

    def at(x) -> tuple[Array, Array]:
        t, q, u = c.t + x * dt, dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b)
        here = instant(dynamics, t, q, u, modes)
        return functions(dynamics, control, c.sides, t, q, u, modes, here), here.u_dot

    rows = np.arange(count + 2)[:, None]
    armed, grid = ~c.ignored & wanted(dynamics, control, c.sides), jnp.asarray(np.append(0.0, SAMPLES))

    def crossed(values):
        """Where functions are negative that were positive before; row 0 is the start."""
        known = jnp.any(np.tri(count + 1, dtype=bool)[:, :, None] & (values > 0.0), axis=1)
        before = jnp.concatenate([~c.fresh[None], known[:-1] | ~c.fresh])
        return (values < -slack) & before & armed

    def go_on(state):
        return state[0] < jnp.where(state[-1], count + REFINEMENTS, count - 1)

    def look(state):
        """First the samples but for the last, which is known; then the root between two of them, by regula falsi."""
        k, values, quarter, low, high, f_low, f_high, side, which, found = state
        sampling = k < count - 1
        between = jnp.where(f_low > f_high, low + (high - low) * f_low / (f_low - f_high), (low + high) / 2.0)
        x = jnp.where(sampling, jnp.asarray(SAMPLES)[jnp.minimum(k, count - 1)], between)
        value, u_dot = at(x)
        place = jnp.where(sampling, k + 1, count + 1)  # one row that nobody looks at
        values = jnp.where(rows == place, value, values)
        quarter = jnp.where(k == AT_QUARTER, u_dot, quarter)

        def begin():
            over = crossed(values[: count + 1])
            row = jnp.argmax(jnp.any(over, axis=1))
            before, after = values[jnp.maximum(row - 1, 0)], values[row]
            fall = before / jnp.where(before > after, before - after, 1.0)
            which = jnp.argmin(jnp.where(over[row], fall, jnp.inf))
            low, high = grid[jnp.maximum(row - 1, 0)], grid[row]
            return low, high, jnp.maximum(before[which], 0.0), after[which], jnp.asarray(0), which, jnp.any(over)

        def refine():
            f = value[which]
            positive = f > 0.0
            # Illinois: the value at an end that stays for the second time is halved
            staying = jnp.where(side == jnp.where(positive, 1, -1), 0.5, 1.0)
            f_low_, f_high_ = jnp.where(positive, f, staying * f_low), jnp.where(positive, staying * f_high, f)
            ends = jnp.where(positive, x, low), jnp.where(positive, high, x)
            return *ends, f_low_, f_high_, jnp.where(positive, 1, -1), which, found

        kept = low, high, f_low, f_high, side, which, found
        ends = jax.lax.cond(k == count - 2, begin, lambda: jax.lax.cond(sampling, lambda: kept, refine))
        return k + 1, values, quarter, *ends

    n = first.shape[0]
    values = jnp.concatenate([first[None], jnp.zeros((count - 1, n)), last[None], jnp.zeros((1, n))])
    zero, none = jnp.zeros(()), jnp.asarray(0)
    start = none, values, jnp.zeros_like(a.u), zero, zero, zero, zero, none, none, jnp.asarray(False)
    _, values, quarter, low, high, f_low, f_high, _, which, found = jax.lax.while_loop(go_on, look, start)
    values = values[: count + 1]
    over = crossed(values)
    stuck = jnp.any(armed & c.fresh & (last < -slack) & ~jnp.any(values[1:] > 0.0, axis=0))
    fraction = jnp.where(f_low > f_high, f_low / (f_low - f_high), 1.0)
    root = low + (high - low) * fraction
    return Look(values[1:], quarter, found, root, which, jnp.any(over[0]), stuck)
