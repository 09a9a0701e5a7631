"""The flow of a system over a period, with its exact derivative: what orbits,
exponents and maps are made of.
"""

import dataclasses
import math
import reprlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..captured import captured
from ..compiling import compiled
from ..located.asked import suitable
from ..methods import by_name
from ..methods.base import Method, with_solver
from ..results import RESULTS, succeeded
from ..simulate import simulate
from ..solution import Solution
from ..system import System
from ..validate import as_parameters

ROOM = 1.3  # rows that a run within a derivative may have, over those of a run seen before
MOST_ROWS = 2**16


class ScaledTime(System):
    """A system whose unit of time is T: over one unit it does what the other does in T.

    So T, which may be the unknown of a search, or 2 pi/Omega of a parameter, has derivatives as any parameter
    has, and one program serves for all. With tau = t/T and the same u:  M du = T h dtau + ...,  dq/dtau = T
    (B u + beta). All contact velocities are T times as large, of gaps and of friction, so that forces are
    what they were and laws stay.
    """

    system: System
    T: Float[Array, ""]

    def M(self, t, q):
        return self.system.M(self.T * t, q)

    def h(self, t, q, u):
        return self.T * self.system.h(self.T * t, q, u)

    def B(self, t, q):
        return self.T * self.system.B(self.T * t, q)

    def beta(self, t, q):
        return self.T * self.system.beta(self.T * t, q)

    def g(self, t, q):
        return self.system.g(self.T * t, q)

    def gamma(self, t, q, u):
        return self.system.gamma(self.T * t, q, u)

    def g_N(self, t, q):
        return self.system.g_N(self.T * t, q)

    def gamma_F(self, t, q, u):
        return self.T * self.system.gamma_F(self.T * t, q, u)

    def normalize(self, q):
        own = getattr(self.system, "normalize", None)
        return q if own is None else own(q)

    @property
    def laws(self):
        return self.system.laws

    @property
    def switching_times(self):
        return tuple(t / self.T for t in self.system.switching_times)

    @property
    def contacts(self):
        return self.system.contacts


class Passage(NamedTuple):
    """A period of a run."""

    end: Array  # (q, u) after it
    impacts: Array  # that happened, of all contacts together
    slowest: Array  # gap rate of an impact: it grazes where this is zero
    closest: Array  # that an open contact came without an impact: it is about to graze where this is zero
    result: Any


class Flow(eqx.Module):
    """(q, u) after a period as a function of (q, u), of the period and of one parameter, for derivatives.

    ``parameter`` names a field of the system.
    """

    system: System
    method: Method
    rtol: float = eqx.field(static=True)
    atol: float = eqx.field(static=True)
    dt_max: float | None = eqx.field(static=True)  # of a unit of time that is the period
    nq: int = eqx.field(static=True)
    parameter: str | None = eqx.field(static=True, default=None)

    @classmethod
    def of(
        cls, system: System, q0: Any, u0: Any, what: str, *, method: Any = None, rtol: float = 1e-10,
        atol: float | None = None, dt_max: float | None = None, parameter: str | None = None,
    ) -> "Flow":  # fmt: skip
        """Of what a user gives; ``what`` asks for it."""
        system = as_parameters(system)
        q, u = jnp.asarray(q0, dtype=float), jnp.asarray(u0, dtype=float)
        if system.g(0.0, q).shape[0] or system.gamma(0.0, q, u).shape[0]:
            raise ValueError(
                f"{what}: {type(system).__name__} has bilateral constraints (g, gamma), and not every state "
                "near an orbit"
                " obeys them: write it in minimal coordinates, for example as a scene with joints"
            )
        if q.shape != u.shape:
            raise ValueError(
                f"{what}: {type(system).__name__} has more coordinates than velocities (a unit quaternion?), "
                "and not every"
                " state near an orbit obeys their condition: write it with as many of both"
            )
        fields = [field.name for field in dataclasses.fields(system)]
        if parameter is not None and parameter not in fields:
            raise ValueError(
                f"{type(system).__name__} has no parameter {parameter!r}. It has "
                f"{', '.join(fields) or 'none'}"
            )
        method = suitable(rtol) if method is None else by_name(method) if isinstance(method, str) else method
        return cls(system, method, rtol, rtol / 100 if atol is None else atol, dt_max, q.shape[0], parameter)

    def at(self, value: Any) -> System:
        """The system with that value of the parameter."""
        return (
            self.system
            if self.parameter is None
            else dataclasses.replace(self.system, **{self.parameter: value})
        )  # type: ignore[type-var]

    def passage(self, x: Array, T: Array, value: Any, rows: int) -> Passage:
        """Over one period, whose length is 1 on its clock, with room for so many rows."""
        sol = simulate(
            ScaledTime(self.at(value), T), self.method, x[: self.nq], x[self.nq :], t1=1.0, rtol=self.rtol,
            atol=self.atol, dt_max=self.dt_max, max_steps=rows,
        )  # fmt: skip
        rates = sol._rows(_gap_rates, "t", "q", "u")
        after = sol.dt == 0.0  # a row after an impact has the time of the row before it
        hit = (sol.P_N > 0.0) & after[:, None]
        before = jnp.abs(jnp.concatenate([rates[:1], rates[:-1]])) / T
        slowest = jnp.min(jnp.where(hit, before, jnp.inf), initial=jnp.inf)
        end = jnp.concatenate([sol.q[-1], sol.u[-1]])
        return Passage(end, hit.sum(), slowest, _closest(sol.t, sol.g_N(), rates), sol.result)


class Derivative(NamedTuple):
    """Of the end of a period."""

    by_x: Array  # the monodromy matrix
    by_T: Array
    by_value: Array  # of the parameter; zero without one
    passage: Passage


@compiled
def _derivative(flow: Flow, x: Array, T: Array, value: Any, rows: int, key: str) -> Derivative:
    def end(x, T, value):
        passage = flow.passage(x, T, value, rows)
        return passage.end, passage

    by = (0, 1) if flow.parameter is None else (0, 1, 2)
    (by_x, by_T, *by_value), passage = jax.jacfwd(end, argnums=by, has_aux=True)(x, T, value)
    return Derivative(by_x, by_T, by_value[0] if by_value else jnp.zeros_like(x), passage)


class Periods:
    """Periods of a flow, one after another, compiled for as many rows as they need."""

    def __init__(self, flow: Flow) -> None:
        self.flow, self._rows, self._key = flow, 0, captured(flow.system, flow.method)
        # As a run does: the whole solver is compiled only where the first of its ways is not enough.
        quick = with_solver(flow.method, flow.method.solver.first_try())
        self._tried = dataclasses.replace(flow, method=quick)

    def checked(self, x: Any, T: Any, value: Any = None) -> Solution:
        """A run as users make it: says in words what is wrong with a start,
        and how many rows a period needs.
        """
        flow, T = self.flow, float(T)
        dt_max = None if flow.dt_max is None else T * flow.dt_max
        sol = simulate(
            flow.at(value), flow.method, x[: flow.nq], x[flow.nq :], t1=T, rtol=flow.rtol, atol=flow.atol,
            dt_max=dt_max, progress=False,
        )  # fmt: skip
        self._rows = max(self._rows, _rows_for(sol.t.shape[0]))
        return sol

    def __call__(self, x: Any, T: Any, value: Any = None) -> Derivative:
        x, T = np.asarray(x, dtype=float), np.asarray(T, dtype=float)
        value = None if self.flow.parameter is None else np.asarray(value, dtype=float)
        if not self._rows:
            self.checked(x, T, value)
        while True:
            d = _derivative(self._tried, x, T, value, self._rows, self._key)
            if bool(d.passage.result == RESULTS.max_steps_reached) and self._rows <= MOST_ROWS:
                self._rows *= 2
            elif not succeeded(d.passage.result) and self._tried is not self.flow:
                self._tried = self.flow  # from here on
            else:
                return d


def _rows_for(seen: int) -> int:
    """A power of two: one program for runs of about the same length."""
    return 2 ** math.ceil(math.log2(ROOM * seen + 8))


def _gap_rates(system, t, q, u):
    dq = system.B(t, q) @ u + system.beta(t, q)
    return jax.jvp(system.g_N, (jnp.asarray(t, dtype=float), q), (jnp.ones(()), dq))[1]


def _closest(t: Array, gaps: Array, rates: Array) -> Array:
    """The smallest minimum of gaps between rows: a cubic through gaps and rates,
    where these turn from closing to opening.
    """
    if not gaps.shape[1] or t.shape[0] < 2:
        return jnp.asarray(jnp.inf)
    h = jnp.diff(t)[:, None]
    a, b, ra, rb = gaps[:-1], gaps[1:], h * rates[:-1], h * rates[1:]
    x = jnp.linspace(0.0, 1.0, 33)[:, None, None]
    cubic = (
        a * (1 - x) ** 2 * (1 + 2 * x) + b * x**2 * (3 - 2 * x) + ra * x * (1 - x) ** 2 - rb * x**2 * (1 - x)
    )
    turns = (h > 0.0) & (ra < 0.0) & (rb > 0.0)
    return jnp.min(jnp.where(turns, cubic.min(axis=0), jnp.inf), initial=jnp.inf)


def length_of(period: Any, system: System) -> Any:
    """A period that is a number, or a function of the system."""
    T = period(system) if callable(period) else period
    if not isinstance(T, jax.core.Tracer) and not (np.ndim(T) == 0 and np.isfinite(T) and T > 0):
        got = reprlib.repr(T)
        raise ValueError(
            f"period must be a positive number, or a function of the system that gives one, got {got}"
        )
    return T
