"""Where a run with located events begins, and its controller:
from attempt to attempt (`attempt.py`) between events.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from ..derive import Dynamics, Situation
from ..loop import Controller
from ..methods.base import Method
from ..methods.given_modes import instant
from ..results import RESULTS
from ..trees import held
from .attempt import advance
from .error import first_length, weights
from .functions import users
from .state import CHATTER, Carry, Control, Row, Search
from .treatment import slip_modes


def first(dynamics: Dynamics, method: Method, control: Control, t0: Array, q: Array, u: Array) -> Carry:
    """The start, with modes that are yet to be decided; what arrives there has its impact there."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    at = held(Situation.of(dynamics, t0, q, u))
    g_dot, slow = dynamics.split(at.at.velocities(held(u))).N, dynamics.split(at.near.velocity)
    gaps = dynamics.rows.g
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
        t0, q, u, dynamics.percussions(jnp.zeros(dynamics.n_y), 0.0), now.u_dot,
        dynamics.percussions(now.la, 1.0), modes.closed, modes.stick, now.u_dot, now.u_dot, iterations,
        jnp.zeros(untouched.shape[0] + 1, dtype=int),
    )  # fmt: skip
    return Carry(
        t0, q, u, modes, now, no, untouched, untouched, sides, length, (nan, nan), length,
        Search(no, zero, jnp.zeros(()), jnp.zeros(()), zero, jnp.zeros(()), jnp.zeros(())),
        jnp.full(CHATTER, -jnp.inf),
        jnp.concatenate([arrive, others]), jnp.asarray(True), zero, row, zero, zero, zero,
        jnp.asarray(jnp.inf), iterations, no, no, RESULTS.successful,
    )  # fmt: skip


class BetweenEvents(Controller):
    """Steps from event to event."""

    kept: ClassVar[int] = 2
    piece: ClassVar[int] = 4096  # each costs about a millisecond to call, whatever it does
    nested: ClassVar[bool] = True
    asked: Control
    t0: Any

    def first(self, dynamics, method, t0, q, u):
        return first(dynamics, method, self.asked, t0, q, u), dynamics.laws

    def nothing(self, dynamics, method, state):
        return state.kept

    def advance(self, dynamics, method, state):
        state, kept = advance(dynamics, method, self.asked, state)
        return state, ((kept.first, kept.keep_first), (kept.second, kept.keep_second))

    def unfinished(self, state):
        within = (state.events <= self.asked.max_events) & (state.steps < self.asked.max_steps) | state.last
        return ~state.finished & within

    def attempts(self, state):
        return state.attempts

    def attempts_for(self, rows):
        return 4 * rows + 100

    def quiet(self, rows, fill):
        return rows._replace(
            P=tuple(fill(P, 0.0) for P in rows.P),
            newton_iterations=fill(rows.newton_iterations, 0),
            code=fill(rows.code, 0),
        )

    def progress(self, state):
        t0, t1 = float(self.t0), float(self.asked.t1)
        return int(1000 * (float(state.t) - t0) / (t1 - t0))

    def time(self, state):
        return float(state.t)
