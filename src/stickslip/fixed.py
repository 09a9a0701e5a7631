"""Steps of a fixed size, one after the other, and what is kept of each."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .derive import Dynamics
from .loop import Controller
from .methods.base import Method, Step, Work
from .results import RESULTS, first_failure, unless
from .trees import pick


class Carry(NamedTuple):
    """State between steps."""

    k: Array
    q: Array
    u: Array
    memory: Any
    result: Any
    rows: Array  # residuals of the last step, by solve
    holding: Any = None  # what the system held fixed in the last step


class Row(NamedTuple):
    """What is kept of a step."""

    q: Array
    u: Array
    P: tuple[Array, Array, Array, Array]
    work: Work
    residual: Array
    printed: Array  # laws whose friction was the printed one where the scheme has a better one
    separated: Any = None  # la and Lambda, each as P


def row_of(dynamics: Dynamics, method: Method, out: Step, dt: Any) -> tuple[Row, Any, Array]:
    """What is kept of a step of length dt, how it ended, and its residuals by solve."""
    finite = jnp.all(jnp.isfinite(out.q)) & jnp.all(jnp.isfinite(out.u))
    result = first_failure(unless(finite, RESULTS.not_finite), out.result)
    row = Row(
        out.q,
        out.u,
        dynamics.percussions(out.P, dt),
        out.spent,
        jnp.stack([s.residual for s in out.solves]),
        _by_law(dynamics, out.printed),
        # a force, and an impulse
        tuple(dynamics.percussions(*x) for x in zip(out.separated, (1.0, 0.0), strict=True))
        if method.separates
        else None,
    )
    return row, result, jnp.stack([dynamics.rows.worst(s.rows) for s in out.solves])


def thinned(rows: Row, every: int, xp: Any) -> Row:
    """One row of so many, and one of what is left: the last state of each,
    with the percussions and the work of all.
    """
    count = rows.q.shape[0]
    starts = np.arange(0, count, every)
    ends, group = np.append(starts[1:], count)[: len(starts)] - 1, np.arange(count) // every

    def last(a):
        return a[ends]

    def total(a):
        return np.add.reduceat(a, starts) if xp is np else jax.ops.segment_sum(a, group, len(starts))

    def largest(a):
        best = np.maximum.reduceat(a, starts) if xp is np else jax.ops.segment_max(a, group, len(starts))
        return best.astype(a.dtype)

    separated = rows.separated
    if separated is not None:
        separated = jax.tree.map(last, separated[0]), jax.tree.map(total, separated[1])
    return Row(
        last(rows.q), last(rows.u), jax.tree.map(total, rows.P), jax.tree.map(total, rows.work),
        largest(rows.residual), largest(rows.printed), separated,
    )  # fmt: skip


def empty_row(dynamics: Dynamics, method: Method, q: Array, u: Array) -> Row:
    none = Work.none(method.n_solves)
    nothing = jnp.full_like(q, jnp.nan), jnp.full_like(u, jnp.nan)
    percussions = dynamics.percussions(jnp.full(dynamics.n_y, jnp.nan), 0.0)
    separated = (percussions, percussions) if method.separates else None
    return Row(
        *nothing, percussions, none, jnp.full(method.n_solves, jnp.nan), _by_law(dynamics, None), separated
    )


def _by_law(dynamics: Dynamics, of_balls: Any) -> Array:
    """Whether any ball of a law has a flag."""
    laws = dynamics.laws
    if of_balls is None:
        return jnp.zeros(laws.count, dtype=bool)
    return jnp.any((laws.law_of == np.arange(laws.count)[:, None]) & of_balls, axis=1)


def first_forces(dynamics: Dynamics, method: Method, memory: Any) -> Any:
    """la of the start, where the method knows it."""
    return dynamics.percussions(memory.la, 1.0) if method.separates else None


class FixedSteps(Controller):
    """Time is t0 + k dt with integer k; only the last of n steps is cut to end at t1."""

    every: ClassVar[bool] = True
    units: ClassVar[str] = "steps"
    t0: Any
    t1: Any
    dt: Any
    n: Any
    wanted: Any  # steps to make, of these

    def t(self, k):
        return jnp.where(k == self.n, self.t1, self.t0 + k * self.dt)

    def step(self, k):
        return jnp.where(k == self.n - 1, self.t1 - (self.t0 + k * self.dt), self.dt)

    def first(self, dynamics, method, t0, q, u):
        memory = method.init(dynamics, t0, q, u, self.dt)
        rows = jnp.zeros((method.n_solves, dynamics.n_y))
        start = Carry(jnp.asarray(0), q, u, memory, RESULTS.successful, rows, dynamics.holding)
        return start, first_forces(dynamics, method, memory)

    def nothing(self, dynamics, method, state):
        return empty_row(dynamics, method, state.q, state.u)

    def advance(self, dynamics, method, state):
        c, dt = state, self.step(state.k)
        t, memory = self.t(c.k), c.memory
        dynamics = dynamics.during(t, c.q, c.u, dt)
        if c.holding is not None:  # a memory of other contacts is none
            changed = jnp.any(dynamics.holding != c.holding)
            memory = jax.lax.cond(changed, lambda: method.init(dynamics, t, c.q, c.u, dt), lambda: memory)
        out = method.step(dynamics, t, self.t(c.k + 1), dt, c.q, c.u, memory)
        row, how, rows = row_of(dynamics, method, out, dt)
        result = first_failure(c.result, how)
        # A failed step is not taken: whoever looks, or tries again, finds the state before it.
        after = Carry(c.k + 1, out.q, out.u, out.memory, result, rows, dynamics.holding)
        stay = c._replace(result=result, rows=rows)
        ok = result == RESULTS.successful
        seen = jax.tree.map(
            lambda a: jnp.where(ok, a, jnp.nan) if jnp.issubdtype(a.dtype, jnp.inexact) else a, row
        )
        return pick(ok, after, stay), ((seen, ok),)

    def unfinished(self, state):
        return state.k < self.wanted

    def attempts(self, state):
        return state.k

    @property
    def goal(self):
        return int(self.n)

    def progress(self, state):
        return int(state.k)

    def time(self, state):
        return float(self.t(state.k))
