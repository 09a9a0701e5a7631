"""What a run with located events asks for, carries from attempt to attempt, and keeps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..methods.given_modes import GivenModes, Instant

TOGETHER = 1e-9  # of the step size: events so close are one
TINY = 1e-9  # of the step size: a mode that does not hold for longer is wrong
CHATTER = 6  # impacts within the time of a bounce that does not count


class Control(eqx.Module):
    """What a user asks of the steps. ``dt``: of one size between events, else as rtol and atol want it."""

    rtol: Array | np.ndarray
    atol: Array | np.ndarray
    dt: Array | np.ndarray  # or nan
    dt_max: Array | np.ndarray
    dt_zeno: Array | np.ndarray  # or nan: bounces lower than the tolerance do not count
    t1: Array | np.ndarray
    max_events: Array | np.ndarray
    max_steps: Array | np.ndarray
    users: tuple[Callable, ...] = eqx.field(static=True, default=())
    directions: tuple[int, ...] = eqx.field(static=True, default=())
    terminal: tuple[bool, ...] = eqx.field(static=True, default=())

    @property
    def fixed(self) -> Bool[Array, ""]:
        return jnp.isfinite(self.dt)


class Row(NamedTuple):
    """A state that is kept: forces and rates are those after what happened there."""

    t: Array
    q: Array
    u: Array
    P: Any  # over the step that ends here
    u_dot: Array
    la: Any
    closed: Array
    stick: Array
    u_dot_before: Array  # at the end of that step,
    u_dot_quarter: Array  # and a quarter through it
    newton_iterations: Array  # since the row before
    code: Int[Array, " slots"]  # events here: of every function, and one place for what belongs to none


class Search(NamedTuple):
    """For an event that lies in the step that was tried."""

    on: Bool[Array, ""]
    target: Int[Array, ""]
    low: Array  # lengths between which it is
    high: Array
    tries: Int[Array, ""]
    length: Array  # of the last try,
    value: Array  # and the function at its end


class Carry(NamedTuple):
    """Between attempts: the state reached, and what is known about it."""

    t: Array
    q: Array
    u: Array
    modes: GivenModes
    now: Instant  # of this state in these modes,
    stale: Bool[Array, ""]  # unless something has happened there: then the next attempt only looks at it anew
    fresh: Bool[Array, " functions"]  # zero at the state reached: says nothing yet
    ignored: Bool[Array, " functions"]  # negative, but redundant contacts can bear it
    sides: Float[Array, " users"]  # the sign of a user's function
    dt: Array  # as the controller wants it
    taken: tuple[Array, Array]  # length and error of the step before; nan after an event
    length: Array  # of the next attempt
    search: Search
    impacts: Float[Array, " CHATTER"]  # times of the last ones
    due: Bool[Array, " functions"]  # events of the start
    begins: Bool[Array, ""]  # modes of the start are to be decided
    treated: Int[Array, ""]  # times without a step in between
    kept: Row  # of the state reached, without forces
    attempts: Int[Array, ""]
    steps: Int[Array, ""]
    events: Int[Array, ""]
    smallest_gap: Array  # seen between rows
    iterations: Array
    last: Bool[Array, ""]  # nothing to do but to keep the last row
    finished: Bool[Array, ""]
    result: Any
