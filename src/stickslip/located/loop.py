"""Attempt after attempt, and the programs that are compiled."""

from functools import partial
from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..compiling import compiled, traced_whole
from ..derive import Dynamics, Situation
from ..methods.base import Method
from ..methods.given_modes import instant
from ..results import RESULTS, unless
from ..system import System
from ..trees import as_carry, held, repeated, strong
from ..validate import start_is_consistent, start_values
from .attempt import advance
from .error import first_length, weights
from .functions import users
from .state import CHATTER, Carry, Control, Row, Search
from .treatment import slip_modes

ROWS = 4096  # that a piece of a run may have: each costs about a millisecond to call, whatever it does


def first(dynamics: Dynamics, method: Method, control: Control, t0: Array, q: Array, u: Array) -> Carry:
    """The start, with modes that are yet to be decided; what arrives there has its impact there."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    at = Situation.of(*held((dynamics, t0, q, u)))
    g_dot, slow, gaps = dynamics.split(at.at.velocities(held(u))).N, dynamics.split(at.near.velocity), dynamics.rows.g
    touching = at.gaps[gaps:] <= at.near.closed[gaps:]
    closed, arrive = touching & (jnp.abs(g_dot) <= slow.N), touching & (g_dot < -slow.N)
    gamma_F, none = dynamics.gamma_F(t0, q, u), jnp.zeros(set_.count, dtype=bool)
    slips = set_.norm(held(gamma_F)) > set_.largest(slow.F)
    modes = slip_modes(dynamics, closed, ~slips, none, set_.direction(gamma_F))
    sides = jnp.where(held(users(control, t0, q, u)) < 0.0, -1.0, 1.0)
    now = instant(dynamics, t0, q, u, modes)
    length = held(first_length(control, q, u, now, weights(method)[2]))
    zero, nan, no = jnp.asarray(0), jnp.asarray(jnp.nan), jnp.asarray(False)
    iterations, others = jnp.asarray(0), jnp.zeros(set_.count + len(control.users), dtype=bool)
    untouched = jnp.zeros(laws.n_N + others.shape[0], dtype=bool)
    row = Row(
        t0, q, u, dynamics.percussions(jnp.zeros(dynamics.n_y), 0.0), now.u_dot, dynamics.percussions(now.la, 1.0),
        modes.closed, modes.stick, now.u_dot, now.u_dot, iterations, jnp.zeros(untouched.shape[0] + 1, dtype=int),
    )  # fmt: skip
    return Carry(
        t0, q, u, modes, now, no, untouched, untouched, sides, length, (nan, nan), length,
        Search(no, zero, jnp.zeros(()), jnp.zeros(()), zero, jnp.zeros(()), jnp.zeros(())), jnp.full(CHATTER, -jnp.inf),
        jnp.concatenate([arrive, others]), jnp.asarray(True), zero, row, zero, zero, zero, jnp.asarray(jnp.inf), iterations,
        no, no, RESULTS.successful,
    )  # fmt: skip


def _put(kept: Any, n: Array, row: Any) -> Any:
    return jax.tree.map(lambda a, x: jax.lax.dynamic_update_index_in_dim(a, jnp.asarray(x, a.dtype), n, 0), kept, row)


def _loop(dynamics: Dynamics, method: Method, control: Control, c: Carry, length: int, most: Any, both_ways: bool = False):
    """Until ``length`` rows are kept, the end is reached, or so many attempts were made."""
    rows = jax.tree.map(lambda a: jnp.zeros((length + 2, *a.shape), a.dtype), c.kept)
    until = c.attempts + most

    def unfinished(state):
        c, _, n = state
        within = (c.events <= control.max_events) & (c.steps < control.max_steps) | c.last
        return ~c.finished & (c.result == RESULTS.successful) & (n < length) & (c.attempts < until) & within

    def attempt(state):
        c, rows, n = state
        c, kept = advance(dynamics, method, control, c)
        rows = _put(rows, n, kept.first)
        n = n + kept.keep_first
        return c, _put(rows, n, kept.second), n + kept.keep_second

    start = c, rows, jnp.asarray(0)
    if both_ways:  # differentiable: nested loops of known length, with checkpoints
        return eqxi.while_loop(unfinished, attempt, start, max_steps=int(most), kind="bounded", base=32)
    return jax.lax.while_loop(unfinished, attempt, start)


@compiled
def begin(system: System, method: Method, control: Control, t0, q: Array, u: Array, key: str):
    dynamics = Dynamics.of(system, t0, q, u)
    start = first(dynamics, method, control, t0, q, u)
    return strong(dynamics), as_carry(start), start_values(dynamics, t0, q, u), dynamics.laws


@partial(compiled, nested=True)
def chunk(dynamics: Dynamics, method: Method, control: Control, carry: Carry, most, key: str):
    return _loop(dynamics, method, control, carry, ROWS, most)


@partial(traced_whole, nested=True)
def whole(system: System, method: Method, control: Control, t0, q: Array, u: Array, n: int, key: str):
    """All at once, for tracing: n rows, of which those past the end repeat it."""
    dynamics = Dynamics.of(system, t0, q, u)
    ok = start_is_consistent(start_values(*held((dynamics, t0, q, u))))
    carry = first(dynamics, method, control, t0, q, u)._replace(result=unless(ok, RESULTS.inconsistent_start))

    def loop(args, carry, both_ways):
        dynamics, method, control = args
        return _loop(dynamics, method, control, carry, n, 4 * n + 100, both_ways)

    carry, rows, count = repeated((dynamics, method, control), carry, loop=loop)
    return carry, _padded(rows, count, n, carry), dynamics.laws


def _padded(rows: Row, count: Array, n: int, carry: Carry) -> Row:
    """Rows past the end: the last one again, without percussions and events; nan after a failure."""
    last = jnp.maximum(jnp.minimum(jnp.arange(n), count - 1), 0)
    beyond, failed = jnp.arange(n) >= count, carry.result != RESULTS.successful
    rows = jax.tree.map(lambda a: a[last], rows)

    def fill(a, value):
        return jnp.where(beyond.reshape(-1, *[1] * (a.ndim - 1)), value, a)

    quiet = rows._replace(
        P=jax.tree.map(lambda P: fill(P, 0.0), rows.P),
        newton_iterations=fill(rows.newton_iterations, 0),
        code=fill(rows.code, 0),
    )
    return jax.tree.map(lambda a: fill(a, jnp.where(failed, jnp.nan, a)) if eqx.is_inexact_array(a) else a, quiet)
