"""Tolerances and events as a user asks for them."""

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import loop
from ..contract import returned
from ..events import PRINTED
from ..fixed import FixedSteps
from ..methods import LobattoIIIAB, RadauIIA
from ..methods.base import Method
from ..methods.projected import CoupledStages
from ..results import succeeded
from ..system import System
from ..validate import is_count
from .error import NODES
from .state import Control, Row

PRINTED_STEPS = 60  # at most, where modes cannot be decided


def suitable(rtol: float, between: bool = False) -> Method:
    """The method for who has not chosen one; ``between``: its dense output is asked for."""
    # between the long steps of five stages the dense output, of order 5, would be far worse than the
    # tolerance
    return RadauIIA(stages=3 if between or rtol > 1e-7 else 5)


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
            _refuse(
                dt_max=dt_max, dt_zeno=dt_zeno, max_events=max_events, t_eval=t_eval, events=events or None
            )
            return None
        if stepsize is not None or (tolerances and dt is not None and not locate):
            other = "stepsize" if stepsize is not None else "dt"
            raise ValueError(
                f"{other} and tolerances are both given: give one of dt=..., stepsize=..., rtol=... and "
                "atol=..."
            )
        if locate and dt is None and not tolerances:
            raise ValueError("locate=True needs dt=..., or tolerances rtol=... and atol=... instead of both")
        if save_every != 1:
            raise ValueError(
                "save_every is for steps of a fixed size without events; t_eval=... says which times to keep"
            )
        rtol = _number("rtol", rtol, _number("atol", atol, 1e-8))
        atol = _number("atol", atol, rtol / 100)
        if rtol < 10 * np.finfo(float).eps:
            raise ValueError(f"rtol = {rtol:g} is below what double precision can do; at least 1e-14")
        _number("dt_max", dt_max, 1.0)
        _number("dt_zeno", dt_zeno, 1.0)
        if max_events is not None and not is_count(max_events):
            raise ValueError(f"max_events must be a whole number, at least 1, got {max_events!r}")
        functions = (events,) if callable(events) else tuple(events)
        others = [f for f in functions if not callable(f)]
        if others:
            raise TypeError(f"events must be functions of (t, q, u), got {others[0]!r}")
        times = None if t_eval is None else _times(t_eval)
        return cls(
            rtol, atol, None if dt is None else float(dt), dt_max, dt_zeno, max_events, times, functions
        )

    def suitable(self) -> Method:
        return suitable(self.rtol, between=self.t_eval is not None)

    def on(self, system: System) -> "Located":
        """A system without laws has no events: one that never comes keeps the loop simple."""
        return self if self.events or len(system.laws) else self._replace(events=(_never,))

    def check_events(self, t: float, q: Any, u: Any) -> None:
        """Each function gives one number, whose sign tells on which side of the event a state is."""
        for f in self.events:
            name = getattr(f, "__name__", repr(f))
            shape = returned(f"events: {name}", f, "t, q, u", np.asarray(t), q, u).shape
            if shape != ():
                raise TypeError(
                    f"events: {name}(t, q, u) must return one number, got an array of shape {shape}"
                )

    def check(self, method: Method) -> None:
        name = type(method).__name__
        advice = "use ss.RadauIIA, ss.LobattoIIIC or ss.LobattoIIIAB with two stages or more, or a fixed dt"
        if isinstance(method, LobattoIIIAB):
            if method.integrated or method.form != "velocity":
                raise ValueError(
                    f"{name} with form='momentum' or integrated=True does not locate events: {advice}"
                )
            if method.stages not in NODES:
                raise ValueError(
                    f"{name}({method.stages}): with located events at most {max(NODES)} stages: {advice}"
                )
            return
        if not isinstance(method, CoupledStages) or not method.projected:
            raise ValueError(f"{name} has no error estimate for steps between located events: {advice}")
        if method.stages < 2:
            raise ValueError(
                f"{name}({method.stages}) is of order {method.order}, too low for tolerances: {advice}"
            )

    def control(self, t0: float, t1: float, max_steps: int | None) -> Control:
        if self.t_eval is not None and not np.all((self.t_eval >= t0) & (self.t_eval <= t1)):
            raise ValueError(f"t_eval must be between t0 = {t0:g} and t1 = {t1:g}")
        span, nan = t1 - t0, math.nan
        values = {
            "rtol": self.rtol,
            "atol": self.atol,
            "dt": nan if self.dt is None else self.dt,
            "dt_max": span / 10 if self.dt_max is None else self.dt_max,
            "dt_zeno": nan if self.dt_zeno is None else self.dt_zeno,
            "t1": t1,
            "max_events": math.inf if self.max_events is None else self.max_events,
            "max_steps": math.inf if max_steps is None else max_steps,
        }
        arrays: dict[str, Any] = {name: np.asarray(float(x)) for name, x in values.items()}
        directions = tuple(int(np.sign(getattr(f, "direction", 0))) for f in self.events)
        terminal = tuple(bool(getattr(f, "terminal", False)) for f in self.events)
        return Control(**arrays, users=self.events, directions=directions, terminal=terminal)


def _refuse(**extra: Any) -> None:
    for name, value in extra.items():
        if value is not None:
            raise ValueError(
                f"{name} is for runs with located events: give rtol=... and atol=..., or locate=True with dt"
            )


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


def _times(t_eval: Any) -> np.ndarray:
    if isinstance(t_eval, jax.core.Tracer):
        raise TypeError(
            "t_eval must be known numbers: inside jit, vmap or a derivative make it with np.linspace, not jnp"
        )
    try:
        times = np.atleast_1d(np.asarray(t_eval, dtype=float))
    except (TypeError, ValueError):
        raise TypeError(f"t_eval must be an array of times, got {t_eval!r}") from None
    if times.ndim != 1 or np.any(np.diff(times) < 0) or not np.all(np.isfinite(times)):
        raise ValueError("t_eval must be times in ascending order")
    return times


class Printed:
    """(14): where no modes are found a few steps of the printed scheme, which needs none, lead on."""

    def __init__(self, times: tuple[float, float]) -> None:
        self._span, self._t1 = times[1] - times[0], times[1]
        self._dt, self._left, self._last = 0.0, PRINTED_STEPS, -math.inf

    def lead_on(
        self, system: System, method: Method, rows: Row, key: str
    ) -> tuple[Row, tuple[float, Any, Any]] | None:
        """Rows of three steps and the state reached: longer ones at the same place again,
        None where none leads on.
        """
        t = float(rows.t[-1])
        self._dt = 1e-7 * self._span if t > self._last + 1e-2 * self._span else 2.0 * self._dt
        self._last = t
        while self._left and t + 4.0 * self._dt < self._t1:
            self._left -= 1
            made, at, how = self._steps(system, method, rows, key)
            if succeeded(how):
                print(
                    f"stickslip: no contact modes were found at t = {t:.6g}: three printed steps of "
                    f"{self._dt:.1e} led on",
                    file=sys.stderr,
                )
                return made, at
            self._dt *= 4.0
        return None

    def _steps(
        self, system: System, method: Method, rows: Row, key: str
    ) -> tuple[Row, tuple[float, Any, Any], Any]:
        t, q, u, n = float(rows.t[-1]), rows.q[-1], rows.u[-1], 3
        controller = FixedSteps(*(np.asarray(x) for x in (t, t + n * self._dt, self._dt, n, n)))
        dynamics, carry, _, _ = loop.begin(system, method, controller, controller.t0, q, u, key)
        carry, made, *_ = loop.piece(dynamics, method, controller, carry, np.asarray(n), key)
        made = jax.tree.map(lambda a: np.asarray(a)[:n], made)
        last = jax.tree.map(lambda a: np.repeat(np.asarray(a)[-1:], n, axis=0), rows)
        code = np.zeros_like(last.code)
        code[0, -1] = PRINTED
        unknown = np.full_like(last.u_dot, np.nan)
        new = last._replace(
            t=t + self._dt * np.arange(1, n + 1), q=made.q, u=made.u, P=made.P, u_dot=unknown,
            u_dot_before=unknown,
            u_dot_quarter=unknown, la=jax.tree.map(lambda a: np.full_like(a, np.nan), last.la),
            newton_iterations=made.work.newton_iterations.sum(axis=1), code=code,
        )  # fmt: skip
        # the last row is that with which the next piece begins
        return jax.tree.map(lambda a: a[:-1], new), (float(new.t[-1]), new.q[-1], new.u[-1]), carry.result
