"""Event functions, and how a step is searched for their zeros: (4), (5) of docs/events.md."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..derive import Dynamics
from ..methods.given_modes import GivenModes, Instant, Rest, carried, instant
from ..scales import QUIET
from ..trees import pick
from . import dense
from .state import Carry, Control

# where a step is looked at
SAMPLES = np.array([1 / 64, 1 / 8, dense.QUARTER, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1.0])
AT_QUARTER = 2
REFINEMENTS = 10  # of a root on the dense output


def functions(
    dynamics: Dynamics, control: Control, sides: Array, t, q, u, modes: GivenModes, now: Instant
) -> Array:
    """(4): one for each contact, ball and function of the user; positive as long as the modes hold."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    la, gamma_F = dynamics.split(now.la), dynamics.split(now.rates).F
    of_contacts = jnp.where(modes.closed, la.N, jnp.asarray(dynamics.system.g_N(t, q)))
    cone = set_.depth(-la.F, laws.radii(la.N, 1.0))
    stop = jnp.where(modes.frozen, set_.dot(modes.direction, gamma_F), 1.0)
    of_balls = jnp.where(carried(dynamics, modes.closed), jnp.where(modes.stick, cone, stop), 1.0)
    of_users = sides * users(control, t, q, u)
    return jnp.concatenate([of_contacts, of_balls, of_users])


def users(control: Control, t, q, u) -> Float[Array, " users"]:
    return (
        jnp.stack([jnp.asarray(f(t, q, u), dtype=float) for f in control.users])
        if control.users
        else jnp.zeros(0)
    )


def slopes(dynamics: Dynamics, modes: GivenModes, now: Instant, values: Array, dt) -> Array:
    """Of the functions at the end of a step: kinematic ones as they are,
    others from the last three samples.
    """
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
    # forces that move a row as h moves the whole
    weight = dynamics.split(force / jnp.where(root > 0.0, root, jnp.inf))
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

    u: Float[Array, " nu"]  # of the end, projected
    P: Float[Array, " n_y"]  # with this percussion
    q_dot: Float[Array, "kept nq"]  # of the stages, of the nodes and of the end
    u_dot: Float[Array, "kept nu"]
    end: Instant
    values: Float[Array, "samples functions"]
    quarter: Array  # u_dot
    found: Bool[Array, ""]  # a function that was positive is negative;
    where: Array  # first at this part of the step,
    which: Int[Array, ""]  # this one
    at_start: Bool[Array, ""]  # it was so from the beginning
    stuck: Bool[Array, ""]  # a fresh function never was positive


class _Root(NamedTuple):
    """A zero between two places, by regula falsi."""

    low: Array
    high: Array
    f_low: Array  # positive
    f_high: Array  # negative
    side: Int[Array, ""]  # on which the last value was

    @property
    def place(self) -> Array:
        falls = self.f_low > self.f_high
        part = self.f_low / jnp.where(falls, self.f_low - self.f_high, 1.0)
        return self.low + (self.high - self.low) * jnp.where(falls, part, 0.5)

    def refined(self, x: Array, f: Array) -> "_Root":
        """Illinois: the value at an end that stays for the second time is halved."""
        positive, side = f > 0.0, jnp.where(f > 0.0, 1, -1)
        less = jnp.where(self.side == side, 0.5, 1.0)
        return _Root(
            jnp.where(positive, x, self.low), jnp.where(positive, self.high, x),
            jnp.where(positive, f, less * self.f_low), jnp.where(positive, less * self.f_high, f), side,
        )  # fmt: skip


class _Looking(NamedTuple):
    k: Int[Array, ""]
    u: Array  # of the end
    P: Array
    q_dot: Array
    u_dot: Array
    end: Instant
    b: dense.End
    values: Array
    quarter: Array
    root: _Root
    which: Int[Array, ""]
    found: Bool[Array, ""]


def _first_root(grid: Array, values: Array, over: Array) -> tuple[_Root, Array, Array]:
    """Between the samples where a function is negative for the first time: that which fell first,
    and whether there is one.
    """
    row = jnp.argmax(jnp.any(over, axis=1))
    before, after = values[jnp.maximum(row - 1, 0)], values[row]
    fall = before / jnp.where(before > after, before - after, 1.0)
    which = jnp.argmin(jnp.where(over[row], fall, jnp.inf))
    ends = grid[jnp.maximum(row - 1, 0)], grid[row]
    root = _Root(*ends, jnp.maximum(before[which], 0.0), after[which], jnp.asarray(0))
    return root, which, jnp.any(over)


def look_along(
    dynamics: Dynamics, control: Control, c: Carry, modes: GivenModes, dt, now: Instant,
    states: tuple[Array, Array, Array],
    first: Array, slack: Array, nodes: tuple[int, ...] = (), rest: Rest | None = None,
) -> Look:  # fmt: skip
    """Accelerations of the stages and of the end; the functions along the dense output,
    and their first root (5).

    ``states``: t, q, u of the stages and of the end; ``first``: the functions at the start; ``nodes``:
    samples whose accelerations are kept, too; ``rest``: what the step leaves to its projection. What is
    expensive, an instant and its functions, stands in one loop and is compiled once; so the end is projected
    here too, and the state reached is looked at, as if it were the end, after something has happened there.
    """
    stages, count = states[0].shape[0] - 1, len(SAMPLES)
    end = stages + 1  # after the stages the projection, then the end itself
    a, last = dense.End.of(dynamics, c.t, c.q, c.u, now.u_dot), end + count - 1
    armed, grid = ~c.ignored & wanted(dynamics, control, c.sides), jnp.asarray(np.append(0.0, SAMPLES))
    rows = np.arange(count + 1)[:, None]
    places = np.array([*range(stages), *(end + 1 + node for node in nodes), end])[:, None]

    def crossed(values):
        """Where functions are negative that were positive before; row 0 is the start."""
        known = jnp.any(np.tri(count + 1, dtype=bool)[:, :, None] & (values > 0.0), axis=1)
        before = jnp.concatenate([~c.fresh[None], known[:-1] | ~c.fresh])
        return (values < -slack) & before & armed

    def go_on(s: _Looking):
        return s.k <= jnp.where(c.stale, end, jnp.where(s.found, last + REFINEMENTS, last))

    def look(s: _Looking) -> _Looking:
        """First the stages and the end, then samples but for the last, which is the end,
        then a root between two of them.
        """
        staging, sampling, projects, at_end = s.k <= end, s.k <= last, s.k == stages, s.k == end
        sample = jnp.clip(s.k - end - 1, 0, count - 1)
        x = jnp.where(sampling, jnp.asarray(SAMPLES)[sample], s.root.place)
        between = c.t + x * dt, dense.positions(x, dt, a, s.b), dense.velocities(x, dt, a, s.b)
        t, q, u = pick(staging, tuple(row[jnp.minimum(s.k, stages)] for row in states), between)
        u = jnp.where(at_end, s.u, u)
        here = instant(dynamics, t, q, u, modes, projects, rest)
        value = functions(dynamics, control, c.sides, t, q, u, modes, here)
        row = jnp.where(at_end, count, jnp.where(staging | ~sampling, -1, sample + 1))
        values = jnp.where(rows == row, value, s.values)

        refined = pick(sampling, s.root, s.root.refined(x, value[s.which]))
        root, which, found = jax.lax.cond(
            s.k == last,
            lambda: _first_root(grid, values, crossed(values)),
            lambda: (refined, s.which, s.found),
        )
        return _Looking(
            s.k + 1, jnp.where(projects, u + here.at.L @ here.la, s.u), jnp.where(projects, here.la, s.P),
            jnp.where(places == s.k, here.q_dot, s.q_dot), jnp.where(places == s.k, here.u_dot, s.u_dot),
            pick(at_end, here, s.end), pick(at_end, dense.End.of(dynamics, t, q, u, here.u_dot), s.b), values,
            jnp.where(s.k == end + 1 + AT_QUARTER, here.u_dot, s.quarter), root, which, found,
        )  # fmt: skip

    zero, none = jnp.zeros(()), jnp.asarray(0)
    begin_at = jnp.where(c.stale, end, 0)
    values = jnp.concatenate([first[None], jnp.zeros((count, first.shape[0]))])
    start = _Looking(
        begin_at, c.u, jnp.zeros(dynamics.n_y), jnp.zeros((len(places), dynamics.nq)),
        jnp.zeros((len(places), dynamics.nu)), now, a, values, jnp.zeros_like(now.u_dot),
        _Root(zero, zero, zero, zero, none), none, jnp.asarray(False),
    )  # fmt: skip
    s = jax.lax.while_loop(go_on, look, start)
    never = ~jnp.any(s.values[1:] > 0.0, axis=0)
    stuck = jnp.any(armed & c.fresh & (s.values[-1] < -slack) & never)
    over = crossed(s.values)
    return Look(
        s.u, s.P, s.q_dot, s.u_dot, s.end, s.values[1:], s.quarter, s.found, s.root.place, s.which,
        jnp.any(over[0]), stuck,
    )  # fmt: skip
