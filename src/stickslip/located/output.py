"""What comes of a run with located events: its solution, rows at other times, what was dissipated."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..captured import captured
from ..dataset import interactions
from ..derive import Dynamics
from ..events import collected, sources
from ..methods.base import Method
from ..methods.given_modes import GivenModes, instant
from ..solution import Solution, Stats, between
from ..stacked import StackedLaws
from ..system import System
from ..validate import Labels
from . import dense
from .asked import Located
from .state import Row


def solution(
    asked: Located,
    system: System,
    method: Method,
    laws: StackedLaws,
    rows: Row,
    state: Any,
    result: Any,
    traced: int | None,
) -> Solution:
    """``traced``: the number of rows inside of tracing."""
    xp: Any = np if traced is None else jnp
    contacts = Labels.of(system, rows.q.shape[1], rows.u.shape[1], laws.n_N).contacts
    names = (*interactions(system, contacts), *(getattr(f, "__name__", "event") for f in asked.events))
    most = None if traced is None else (asked.max_events or traced)
    happened = collected(rows.t, rows.code, sources(laws, len(asked.events)), names, laws.count, most)
    n = rows.t.shape[0] - 1
    stats = Stats(
        newton_iterations=rows.newton_iterations[1:, None],
        fixed_point_iterations=xp.zeros((n, 1), dtype=int),
        residual=xp.zeros((n, 1)),
        mode_failed=xp.zeros((n, laws.count), dtype=bool),
        attempts=state.attempts,
        steps=state.steps,
        smallest_gap=state.smallest_gap,
    )
    percussions = dict(zip(("P_g", "P_gamma", "P_N", "P_F"), rows.P, strict=True))
    forces = dict(zip(("la_g", "la_gamma", "la_N", "la_F"), map(xp.asarray, rows.la), strict=True))
    sol = Solution(
        t=rows.t, q=rows.q, u=rows.u, **percussions, result=result, stats=stats, system=system, method=method,
        **forces, modes=xp.concatenate([rows.closed, rows.stick], axis=1), events=happened, u_dot=rows.u_dot,
        u_dot_before=rows.u_dot_before, u_dot_quarter=rows.u_dot_quarter,
    )  # fmt: skip
    return sol if asked.t_eval is None else at_times(sol, asked.t_eval, xp)


def at_times(sol: Solution, times: np.ndarray, xp: Any) -> Solution:
    """The rows at given times: states from the dense output, percussions shared out evenly over a step."""
    q, u = between(sol, times, captured(sol.system))
    reached = xp.asarray(times)[:, None] <= sol.t[-1]  # inside of tracing max_steps may end a run before
    q, u = xp.where(reached, q, xp.nan), xp.where(reached, u, xp.nan)
    rows = sol.t.shape[0]
    k = xp.clip(xp.searchsorted(sol.t, times, side="right"), 1, rows - 1)
    dt = sol.t[k] - sol.t[k - 1]
    part = xp.where(dt > 0, (times - sol.t[k - 1]) / xp.where(dt > 0, dt, 1.0), 1.0)

    def over(P):
        total = xp.cumsum(P, axis=0)
        until = total[k - 1] + part[:, None] * P[k]
        return until - xp.concatenate([until[:1], until[:-1]])

    def nearest(a):
        return None if a is None else a[xp.where(part < 1.0, k - 1, k)]

    counts = xp.zeros((len(times) - 1, 1), dtype=int)
    stats = dataclasses.replace(
        sol.stats, newton_iterations=counts, fixed_point_iterations=counts,
        residual=xp.zeros((len(times) - 1, 1)),
        mode_failed=xp.zeros((len(times) - 1, sol.stats.mode_failed.shape[1]), dtype=bool),
    )  # fmt: skip
    return Solution(
        t=xp.asarray(times), q=xp.asarray(q), u=xp.asarray(u), P_g=over(sol.P_g), P_gamma=over(sol.P_gamma),
        P_N=over(sol.P_N), P_F=over(sol.P_F), result=sol.result, stats=stats, system=sol.system,
        method=sol.method, modes=nearest(sol.modes), events=sol.events,
    )  # fmt: skip


def forces_between(sol: Solution, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, la_N, la_F) of a run with located events, close enough for a curve:
    at events before and after what happened.
    """
    even, events = np.linspace(sol.t[0], sol.t[-1], rows), np.asarray(sol.events.t)
    later = events[events > sol.t[0]]
    # A little earlier: where slip ends its direction is round-off.
    before = later - 1e-6 * (later - sol.t[np.searchsorted(sol.t, later) - 1])
    t = np.unique(np.concatenate([even, before, events]))
    known = np.isfinite(sol.u_dot_before).all(axis=1)  # printed steps have no forces
    k = np.clip(np.searchsorted(sol.t, t, side="right"), 1, len(sol.t) - 1)
    N, F = (np.asarray(a) for a in _forces_at(sol, jnp.asarray(t), jnp.asarray(k - 1), captured(sol.system)))
    lost, own = ~(known[k] & known[k - 1])[:, None], (sol.t[k - 1] == t)[:, None]
    N, F = np.where(own, sol.la_N[k - 1], N), np.where(own, sol.la_F[k - 1], F)  # rows know where slip begins
    return t, np.where(lost, np.nan, N), np.where(lost, np.nan, F)


@eqx.filter_jit
def _forces_at(sol: Solution, t: Any, row: Any, key: str) -> tuple[Any, Any]:
    dynamics = Dynamics.of(sol.system, sol.t[0], jnp.asarray(sol.q[0]), jnp.asarray(sol.u[0]))
    q, u = between(sol, t, key)
    modes, n_N = jnp.asarray(sol.modes)[row], dynamics.laws.n_N
    none = jnp.zeros(dynamics.laws.set.count, dtype=bool)

    def one(t, q, u, modes):
        given = GivenModes(modes[:n_N], modes[n_N:], none, none, jnp.zeros(dynamics.laws.n_F))
        P = dynamics.percussions(instant(dynamics, t, q, u, given).la, 1.0)
        return P[2], P[3]

    return jax.lax.map(lambda x: one(*x), (t, q, u, modes))


# of Gauss quadrature on an interval of length 1
NODES, WEIGHTS = (a / 2.0 for a in np.polynomial.legendre.leggauss(3))


@eqx.filter_jit
def dissipated(sol: Solution, key: str) -> tuple[Any, Any]:
    """What the laws took out of the system since the start: by friction between impacts,
    and in impacts; (rows, laws) each.

    Friction's power is integrated along the dense output; an impact takes -P . (gamma- + gamma+)/2.
    """
    q0, u0 = jnp.asarray(sol.q[0]), jnp.asarray(sol.u[0])
    dynamics = Dynamics.of(sol.system, sol.t[0], q0, u0)
    laws, set_ = dynamics.laws, dynamics.laws.set
    of_ball = jnp.asarray(laws.law_of[:, None] == np.arange(laws.count), dtype=float)
    of_contact = jnp.eye(laws.n_N, laws.count)
    none = jnp.zeros(set_.count, dtype=bool)

    def row(k):
        t, dt, closed = sol.t[k], sol.t[k + 1] - sol.t[k], sol.modes[k, : laws.n_N]
        stick = sol.modes[k, laws.n_N :]
        a = dense.End.of(dynamics, t, sol.q[k], sol.u[k], sol.u_dot[k])
        b = dense.End.of(dynamics, sol.t[k + 1], sol.q[k + 1], sol.u[k + 1], sol.u_dot_before[k + 1])
        modes = GivenModes(closed, stick, none, none, jnp.zeros(laws.n_F))

        def power(x):
            q, u = dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b, sol.u_dot_quarter[k + 1])
            now = instant(dynamics, t + x * dt, q, u, modes)
            return set_.dot(dynamics.percussions(now.la, 1.0).F / laws.scale, dynamics.split(now.rates).F)

        work = dt * jnp.asarray(WEIGHTS) @ jax.lax.map(power, jnp.asarray(0.5 + NODES))
        gamma = [dynamics.split(dynamics.velocities(sol.t[i], sol.q[i], sol.u[i])) for i in (k, k + 1)]
        mean = jax.tree.map(lambda a, b: (a + b) / 2.0, *gamma)
        normal, friction = sol.P_N[k + 1] * mean.N, set_.dot(sol.P_F[k + 1] / laws.scale, mean.F)
        lost = normal @ of_contact + friction @ of_ball
        return jnp.where(dt > 0.0, -(work @ of_ball), 0.0), jnp.where(dt > 0.0, 0.0, -lost)

    sol = jax.tree.map(jnp.asarray, sol)
    parts = jax.lax.map(row, jnp.arange(sol.t.shape[0] - 1))
    friction, impacts = (jnp.concatenate([jnp.zeros((1, laws.count)), jnp.cumsum(a, axis=0)]) for a in parts)
    return friction, impacts
