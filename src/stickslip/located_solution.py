"""Tolerances and events as a user asks for them, and the solution that comes of it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import dense, loop
from .derive import Dynamics
from .events import PRINTED, collected, sources
from .laws import StackedLaws
from .located import Control, Row
from .loop import Clock
from .methods import RadauIIA
from .methods.base import Method
from .methods.given_modes import GivenModes, instant
from .methods.projected import CoupledStages
from .solution import Solution, Stats, between
from .system import System

PRINTED_STEPS = 20  # at most, where modes cannot be decided


class Located(NamedTuple):
    """What `simulate` was asked for."""

    rtol: float
    atol: float
    dt: float | None
    dt_max: float | None
    dt_zeno: float | None
    max_events: int | None
    t_eval: np.ndarray | None
    events: tuple[Callable, ...]

    @classmethod
    def of(
        cls, rtol, atol, dt, locate, dt_max, dt_zeno, max_events, t_eval, events, stepsize, save_every
    ) -> "Located | None":
        """None where steps are of one size without events, or a ``stepsize`` adjusts them."""
        tolerances = rtol is not None or atol is not None
        if not tolerances and not locate:
            extra = {
                "dt_max": dt_max,
                "dt_zeno": dt_zeno,
                "max_events": max_events,
                "t_eval": t_eval,
                "events": events or None,
            }
            for name, value in extra.items():
                if value is not None:
                    raise ValueError(
                        f"{name} is for runs with located events: give rtol=... and atol=..., or locate=True with dt"
                    )
            return None
        if stepsize is not None or (tolerances and dt is not None and not locate):
            other = "stepsize" if stepsize is not None else "dt"
            raise ValueError(
                f"{other} and tolerances are both given: give one of dt=..., stepsize=..., rtol=... and atol=..."
            )
        if locate and dt is None and not tolerances:
            raise ValueError("locate=True needs dt=..., or tolerances rtol=... and atol=... instead of both")
        if save_every != 1:
            raise ValueError("save_every is for steps of a fixed size without events; t_eval=... says which times to keep")
        rtol = _number("rtol", rtol, _number("atol", atol, 1e-8))
        atol = _number("atol", atol, rtol / 100)
        if rtol < 10 * np.finfo(float).eps:
            raise ValueError(f"rtol = {rtol:g} is below what double precision can do; at least 1e-14")
        for name, value in (("dt_max", dt_max), ("dt_zeno", dt_zeno)):
            if value is not None:
                _number(name, value, 1.0)
        if max_events is not None and max_events < 1:
            raise ValueError(f"max_events must be at least 1, got {max_events}")
        functions = (events,) if callable(events) else tuple(events)
        for f in functions:
            if not callable(f):
                raise TypeError(f"events must be functions of (t, q, u), got {f!r}")
        times = None if t_eval is None else np.atleast_1d(np.asarray(t_eval, dtype=float))
        if times is not None and (times.ndim != 1 or np.any(np.diff(times) < 0) or not np.all(np.isfinite(times))):
            raise ValueError("t_eval must be times in ascending order")
        return cls(rtol, atol, None if dt is None else float(dt), dt_max, dt_zeno, max_events, times, functions)

    def suitable(self) -> Method:
        return RadauIIA(3 if self.rtol > 1e-7 else 5)

    def on(self, system: System) -> "Located":
        """A system without laws has no events: one that never comes keeps the loop simple."""
        return self._replace(events=(_never,)) if not len(system.laws) and not self.events else self

    def check(self, method: Method) -> None:
        name, advice = type(method).__name__, "use ss.RadauIIA(stages) or ss.LobattoIIIC(stages), or a fixed dt"
        if not isinstance(method, CoupledStages) or not method.projected:
            raise ValueError(f"{name} has no error estimate for steps between located events: {advice}")
        if method.stages < 2:
            raise ValueError(f"{name}({method.stages}) is of order {method.order}, too low for tolerances: {advice}")

    def control(self, t0: float, t1: float, max_steps: int | None) -> Control:
        if self.t_eval is not None and not np.all((self.t_eval >= t0) & (self.t_eval <= t1)):
            raise ValueError(f"t_eval must be between t0 = {t0:g} and t1 = {t1:g}")
        span, nan = t1 - t0, math.nan
        values = (
            self.rtol, self.atol, nan if self.dt is None else self.dt, span / 10 if self.dt_max is None else self.dt_max,
            nan if self.dt_zeno is None else self.dt_zeno, t1, math.inf if self.max_events is None else self.max_events,
            math.inf if max_steps is None else max_steps,
        )  # fmt: skip
        directions = tuple(int(np.sign(getattr(f, "direction", 0))) for f in self.events)
        terminal = tuple(bool(getattr(f, "terminal", False)) for f in self.events)
        return Control(*(np.asarray(float(x)) for x in values), self.events, directions, terminal)

    def solution(
        self, system: System, method: Method, laws: StackedLaws, rows: Row, state: Any, result: Any, traced: int | None
    ) -> Solution:
        """``traced``: the number of rows inside of tracing."""
        from .tables import interactions
        from .validate import Labels

        xp: Any = np if traced is None else jnp
        contacts = Labels.of(system, rows.q.shape[1], rows.u.shape[1], laws.n_N).contacts
        names = (*interactions(system, contacts), *(getattr(f, "__name__", "event") for f in self.events))
        most = None if traced is None else (self.max_events or traced)
        happened = collected(rows.t, rows.code, sources(laws, len(self.events)), names, laws.count, most)
        n = rows.t.shape[0] - 1
        none = xp.zeros((n, 1))
        stats = Stats(
            rows.newton_iterations[1:, None], xp.zeros((n, 1), dtype=int), none, xp.zeros((n, laws.count), dtype=bool), state.attempts,
            state.steps, state.smallest_gap,
        )  # fmt: skip
        sol = Solution(
            rows.t, rows.q, rows.u, *rows.P, result, stats, system, method,
            *(xp.asarray(a) for a in rows.la), state=xp.concatenate([rows.closed, rows.stick], axis=1), events=happened,
            u_dot=rows.u_dot, u_dot_before=rows.u_dot_before, u_dot_quarter=rows.u_dot_quarter,
        )  # fmt: skip
        return sol if self.t_eval is None else at_times(sol, self.t_eval, xp)


def at_times(sol: Solution, times: np.ndarray, xp: Any) -> Solution:
    """The rows at given times: states from the dense output, percussions shared out evenly over a step."""
    import dataclasses

    from .captured import captured

    q, u = between(sol, jnp.asarray(times), captured(sol.system))
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
        sol.stats, newton_iterations=counts, fixed_point_iterations=counts, residual=xp.zeros((len(times) - 1, 1)),
        mode_failed=xp.zeros((len(times) - 1, sol.stats.mode_failed.shape[1]), dtype=bool),
    )  # fmt: skip
    return Solution(
        xp.asarray(times), xp.asarray(q), xp.asarray(u), *(over(P) for P in (sol.P_g, sol.P_gamma, sol.P_N, sol.P_F)), sol.result,
        stats, sol.system, sol.method, state=nearest(sol.state), events=sol.events,
    )  # fmt: skip


NODES, WEIGHTS = (a / 2.0 for a in np.polynomial.legendre.leggauss(3))  # of Gauss quadrature on an interval of length 1


@eqx.filter_jit
def dissipated(sol: Solution, key: str) -> tuple[Any, Any]:
    """What the laws took out of the system since the start: by friction between impacts, and in impacts; (rows, laws) each.

    Friction's power is integrated along the dense output; an impact takes -P . (gamma- + gamma+)/2.
    """
    q0, u0 = jnp.asarray(sol.q[0]), jnp.asarray(sol.u[0])
    dynamics = Dynamics.of(sol.system, sol.t[0], q0, u0)
    laws, set_ = dynamics.laws, dynamics.laws.set
    of_ball = jnp.asarray(laws.law_of[:, None] == np.arange(laws.count), dtype=float)
    of_contact = jnp.eye(laws.n_N, laws.count)
    none = jnp.zeros(set_.count, dtype=bool)

    def row(k):
        t, dt, closed, stick = sol.t[k], sol.t[k + 1] - sol.t[k], sol.state[k, : laws.n_N], sol.state[k, laws.n_N :]
        a = dense.End.of(dynamics, t, sol.q[k], sol.u[k], sol.u_dot[k])
        b = dense.End.of(dynamics, sol.t[k + 1], sol.q[k + 1], sol.u[k + 1], sol.u_dot_before[k + 1])
        modes = GivenModes(closed, stick, none, none, jnp.zeros(laws.n_F))

        def power(x):
            q, u = dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b, sol.u_dot_quarter[k + 1])
            now = instant(dynamics, t + x * dt, q, u, modes)
            return set_.dot(dynamics.split(now.la).F, dynamics.split(now.rates).F)

        work = dt * jnp.asarray(WEIGHTS) @ jax.lax.map(power, jnp.asarray(0.5 + NODES))
        gamma = [dynamics.split(dynamics.velocities(sol.t[i], sol.q[i], sol.u[i])) for i in (k, k + 1)]
        mean = jax.tree.map(lambda a, b: (a + b) / 2.0, *gamma)
        normal, friction = sol.P_N[k + 1] * mean.N, set_.dot(sol.P_F[k + 1] / laws.scale, mean.F)
        lost = normal @ of_contact + friction @ of_ball
        return jnp.where(dt > 0.0, -(work @ of_ball), 0.0), jnp.where(dt > 0.0, 0.0, -lost)

    sol = jax.tree.map(jnp.asarray, sol)
    parts = jax.lax.map(row, jnp.arange(sol.t.shape[0] - 1))
    return tuple(jnp.concatenate([jnp.zeros((1, laws.count)), jnp.cumsum(a, axis=0)]) for a in parts)  # type: ignore[return-value]


def _never(t: Any, q: Any, u: Any) -> Any:
    return jnp.ones(())


def _number(name: str, value: Any, otherwise: float) -> float:
    if value is None:
        return otherwise
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be finite and positive, got {value}")
    return number


class Printed:
    """(14): where no modes are found a few steps of the printed scheme, which needs none, lead on."""

    def __init__(self, times: tuple[float, float]) -> None:
        self._span, self._made, self._last = times[1] - times[0], 0, -math.inf
        self._t1, self._dt = times[1], 1e-7 * self._span

    def may(self, t: float) -> bool:
        # again at the same place: longer steps
        self._dt = 1e-7 * self._span if t > self._last + 1e-2 * self._span else 2.0 * self._dt
        self._last = t
        self._made += 1
        return self._made <= PRINTED_STEPS and t + 4.0 * self._dt < self._t1

    def steps(self, system: System, method: Method, rows: Row, key: str) -> tuple[Row, tuple[float, Any, Any], Any]:
        """Rows of them, the state reached, and how it went."""
        t, q, u, n = float(rows.t[-1]), rows.q[-1], rows.u[-1], 3
        clock = Clock(*(np.asarray(x) for x in (t, t + n * self._dt, self._dt, n)))
        dynamics, carry, _, _ = loop.begin(system, method, clock, q, u, key)
        carry, made = loop.chunk(dynamics, method, clock, carry, np.asarray(n), key)
        made = jax.tree.map(lambda a: np.asarray(a)[:n], made)
        last = jax.tree.map(lambda a: np.repeat(np.asarray(a)[-1:], n, axis=0), rows)
        code = np.zeros_like(last.code)
        code[0, -1] = PRINTED
        new = last._replace(
            t=t + self._dt * np.arange(1, n + 1), q=made.q, u=made.u, P=made.P, u_dot=np.full_like(last.u_dot, np.nan),
            u_dot_before=np.full_like(last.u_dot, np.nan), u_dot_quarter=np.full_like(last.u_dot, np.nan),
            la=jax.tree.map(lambda a: np.full_like(a, np.nan), last.la), newton_iterations=made.newton_iterations.sum(axis=1), code=code,
        )  # fmt: skip
        # the last row is that with which the next piece begins
        return jax.tree.map(lambda a: a[:-1], new), (float(new.t[-1]), new.q[-1], new.u[-1]), carry.result

    __slots__ = ("_dt", "_last", "_made", "_span", "_t1")
