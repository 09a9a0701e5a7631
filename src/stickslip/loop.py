"""Steps of a fixed size, one after the other, and what is kept of each."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .compiling import compiled, traced_whole
from .derive import Dynamics
from .methods.base import Method, Step, result_of
from .results import RESULTS, first_failure, unless
from .system import System
from .trees import as_carry, held, pick, repeated, strong
from .validate import start_is_consistent, start_values

CHUNK = 1000  # steps between two looks at the progress bar and the keyboard, at most


class Clock(eqx.Module):
    """Time is t0 + k dt with integer k; only the last step is cut to end at t1."""

    t0: Any
    t1: Any
    dt: Any
    n: Any

    def t(self, k):
        return jnp.where(k == self.n, self.t1, self.t0 + k * self.dt)

    def step(self, k):
        return jnp.where(k == self.n - 1, self.t1 - (self.t0 + k * self.dt), self.dt)


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
    newton_iterations: Array
    fixed_point_iterations: Array
    residual: Array
    printed: Array  # laws whose friction was the printed one where the scheme has a better one
    separated: Any = None  # la and Lambda, each as P


def row_of(dynamics: Dynamics, method: Method, out: Step, dt: Any) -> tuple[Row, Any, Array]:
    """What is kept of a step of length dt, how it ended, and its residuals by solve."""
    finite = jnp.all(jnp.isfinite(out.q)) & jnp.all(jnp.isfinite(out.u))
    result = first_failure(unless(finite, RESULTS.not_finite), result_of(out.solves))
    row = Row(
        out.q,
        out.u,
        dynamics.percussions(out.P, dt),
        jnp.stack([s.newton_iterations for s in out.solves]),
        jnp.stack([s.fixed_point_iterations for s in out.solves]),
        jnp.stack([s.residual for s in out.solves]),
        _by_law(dynamics, out.printed),
        # a force, and an impulse
        tuple(dynamics.percussions(*x) for x in zip(out.separated, (1.0, 0.0), strict=True)) if method.separates else None,
    )
    return row, result, jnp.stack([dynamics.rows.worst(s.rows) for s in out.solves])


def thinned(rows: Row, every: int, xp: Any) -> Row:
    """One row of so many, and one of what is left: the last state of each, with the percussions and the work of all."""
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
        last(rows.q), last(rows.u), jax.tree.map(total, rows.P), total(rows.newton_iterations),
        total(rows.fixed_point_iterations), largest(rows.residual), largest(rows.printed), separated,
    )  # fmt: skip


def empty_row(dynamics: Dynamics, method: Method, q: Array, u: Array) -> Row:
    counts = jnp.zeros(method.n_solves, dtype=int)
    nothing = jnp.full_like(q, jnp.nan), jnp.full_like(u, jnp.nan)
    percussions = dynamics.percussions(jnp.full(dynamics.n_y, jnp.nan), 0.0)
    separated = (percussions, percussions) if method.separates else None
    return Row(*nothing, percussions, counts, counts, jnp.full(method.n_solves, jnp.nan), _by_law(dynamics, None), separated)


def _by_law(dynamics: Dynamics, of_balls: Any) -> Array:
    """Whether any ball of a law has a flag."""
    laws = dynamics.laws
    if of_balls is None:
        return jnp.zeros(laws.count, dtype=bool)
    return jnp.any((laws.law_of == np.arange(laws.count)[:, None]) & of_balls, axis=1)


def first_forces(dynamics: Dynamics, method: Method, memory: Any) -> Any:
    """la of the start, where the method knows it."""
    return dynamics.percussions(memory.la, 1.0) if method.separates else None


def _start(dynamics: Dynamics, method: Method, clock: Clock, q: Array, u: Array) -> Carry:
    memory = method.init(dynamics, clock.t0, q, u, clock.dt)
    rows = jnp.zeros((method.n_solves, dynamics.n_y))
    return Carry(jnp.asarray(0), q, u, memory, RESULTS.successful, rows, dynamics.holding)


def _step(dynamics: Dynamics, method: Method, clock: Clock, c: Carry) -> tuple[Carry, Row]:
    dt = clock.step(c.k)
    t, memory = clock.t(c.k), c.memory
    dynamics = dynamics.during(t, c.q, c.u, dt)
    if c.holding is not None:  # a memory of other contacts is none
        changed = jnp.any(dynamics.holding != c.holding)
        memory = jax.lax.cond(changed, lambda: method.init(dynamics, t, c.q, c.u, dt), lambda: memory)
    out = method.step(dynamics, t, clock.t(c.k + 1), dt, c.q, c.u, memory)
    row, how, rows = row_of(dynamics, method, out, dt)
    result = first_failure(c.result, how)
    # A failed step is not taken: whoever looks, or tries again, finds the state before it.
    after = Carry(c.k + 1, out.q, out.u, out.memory, result, rows, dynamics.holding)
    stay = c._replace(result=result, rows=rows)
    ok = result == RESULTS.successful
    seen = jax.tree.map(lambda a: jnp.where(ok, a, jnp.nan) if jnp.issubdtype(a.dtype, jnp.inexact) else a, row)
    return pick(ok, after, stay), seen


def _loop(dynamics: Dynamics, method: Method, clock: Clock, carry: Carry, until, length: int) -> tuple[Carry, Row]:
    """Up to ``length`` steps, to step number ``until`` at most; a failed step is the last one."""
    empty = empty_row(dynamics, method, carry.q, carry.u)

    def advance(c: Carry, _):
        go = (c.k < until) & (c.result == RESULTS.successful)
        return jax.lax.cond(go, lambda c: _step(dynamics, method, clock, c), lambda c: (c, empty), c)

    return jax.lax.scan(advance, carry, length=length)


@compiled
def begin(
    system: System, method: Method, clock: Clock, q: Array, u: Array, key: str
) -> tuple[Dynamics, Carry, dict[str, Any], Any]:
    """``key``, here and below: what system and method captured, so that another value means another program."""
    dynamics = Dynamics.of(system, clock.t0, q, u)
    start = _start(dynamics, method, clock, q, u)
    forces = first_forces(dynamics, method, start.memory)
    return strong(dynamics), as_carry(start), start_values(dynamics, clock.t0, q, u), forces


@compiled
def chunk(dynamics: Dynamics, method: Method, clock: Clock, carry: Carry, until, key: str) -> tuple[Carry, Row]:
    return _loop(dynamics, method, clock, carry, until, CHUNK)


@traced_whole
def whole(system: System, method: Method, clock: Clock, q: Array, u: Array, n: int, key: str) -> tuple[Carry, Row, Any]:
    dynamics = Dynamics.of(system, clock.t0, q, u)
    ok = start_is_consistent(start_values(*held((dynamics, clock.t0, q, u))))
    start = _start(dynamics, method, clock, q, u)
    start = start._replace(result=unless(ok, RESULTS.inconsistent_start))

    def loop(args, start, _):
        dynamics, method, clock = args
        return _loop(dynamics, method, clock, start, n, n)

    return *repeated((dynamics, method, clock), start, loop=loop), first_forces(dynamics, method, start.memory)
