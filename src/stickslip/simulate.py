"""The only time loop."""

import math
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .derive import Dynamics
from .methods.base import Method
from .progress import Meter, meter
from .results import RESULTS, SimulationError, first_failure, message, unless
from .solution import Solution, Stats
from .system import System
from .validate import (
    as_parameters,
    check_start,
    check_times,
    checked_vectors,
    start_is_consistent,
    start_values,
)

CHUNK = 1000  # steps between two looks at the progress bar and the keyboard, at most
CHUNK_SECONDS = 0.5


class Clock(eqx.Module):
    """Time is t0 + k dt with integer k; only the last step is cut to end at t1."""

    t0: Float[Array, ""]
    t1: Float[Array, ""]
    dt: Float[Array, ""]
    n: Int[Array, ""]

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


class Row(NamedTuple):
    """What is kept of a step."""

    q: Array
    u: Array
    P: tuple[Array, Array, Array, Array]
    newton_iterations: Array
    fixed_point_iterations: Array
    residual: Array
    separated: Any = None  # la and Lambda, each as P


def _start(dynamics: Dynamics, method: Method, clock: Clock, q: Array, u: Array) -> Carry:
    memory = method.init(dynamics, clock.t0, q, u, clock.dt)
    rows = jnp.zeros((method.n_solves, dynamics.n_y))
    return Carry(jnp.asarray(0), q, u, memory, RESULTS.successful, rows)


def _step(dynamics: Dynamics, method: Method, clock: Clock, c: Carry) -> tuple[Carry, Row]:
    out = method.step(dynamics, clock.t(c.k), clock.t(c.k + 1), clock.step(c.k), c.q, c.u, c.memory)
    finite = jnp.all(jnp.isfinite(out.q)) & jnp.all(jnp.isfinite(out.u))
    result = first_failure(c.result, unless(finite, RESULTS.not_finite))
    for s in out.solves:
        result = first_failure(result, s.result)
    row = Row(
        out.q,
        out.u,
        dynamics.percussions(out.P),
        jnp.stack([s.newton_iterations for s in out.solves]),
        jnp.stack([s.fixed_point_iterations for s in out.solves]),
        jnp.stack([s.residual for s in out.solves]),
        tuple(dynamics.percussions(part) for part in out.separated) if method.separates else None,
    )
    rows = jnp.stack([dynamics.worst_of_stages(s.rows) for s in out.solves])
    # A failed step is not taken: whoever looks, or tries again, finds the state before it.
    after = Carry(c.k + 1, out.q, out.u, out.memory, result, rows)
    stay = c._replace(result=result, rows=rows)
    ok = result == RESULTS.successful
    seen = jax.tree.map(lambda a: jnp.where(ok, a, jnp.nan) if jnp.issubdtype(a.dtype, jnp.inexact) else a, row)
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), after, stay), seen


def _loop(dynamics: Dynamics, method: Method, clock: Clock, carry: Carry, until, length: int) -> tuple[Carry, Row]:
    """Up to ``length`` steps, to step number ``until`` at most; a failed step is the last one."""
    counts = jnp.zeros(method.n_solves, dtype=int)
    nothing = jnp.full_like(carry.q, jnp.nan), jnp.full_like(carry.u, jnp.nan)
    percussions = dynamics.percussions(jnp.full(dynamics.n_y, jnp.nan))
    separated = (percussions, percussions) if method.separates else None
    empty = Row(*nothing, percussions, counts, counts, jnp.full(method.n_solves, jnp.nan), separated)

    def advance(c: Carry, _):
        go = (c.k < until) & (c.result == RESULTS.successful)
        return jax.lax.cond(go, lambda c: _step(dynamics, method, clock, c), lambda c: (c, empty), c)

    return jax.lax.scan(advance, carry, length=length)


@eqx.filter_jit
def _begin(system: System, method: Method, clock: Clock, q: Array, u: Array) -> tuple[Carry, dict[str, Array], Any]:
    dynamics = Dynamics.of(system, clock.t0, q, u)
    start = _start(dynamics, method, clock, q, u)
    return start, start_values(dynamics, clock.t0, q, u), _first_forces(dynamics, method, start)


def _first_forces(dynamics: Dynamics, method: Method, start: Carry) -> Any:
    """la of the start, where the method knows it."""
    return dynamics.percussions(start.memory.la) if method.separates else None


@eqx.filter_jit
def _chunk(system: System, method: Method, clock: Clock, carry: Carry, until) -> tuple[Carry, Row]:
    dynamics = Dynamics.of(system, clock.t0, carry.q, carry.u)
    return _loop(dynamics, method, clock, carry, until, CHUNK)


@eqx.filter_jit
def _whole(system: System, method: Method, clock: Clock, q: Array, u: Array, n: int) -> tuple[Carry, Row, Any]:
    dynamics = Dynamics.of(system, clock.t0, q, u)
    ok = start_is_consistent(start_values(dynamics, clock.t0, q, u))
    start = _start(dynamics, method, clock, q, u)
    start = start._replace(result=unless(ok, RESULTS.inconsistent_start))
    return *_loop(dynamics, method, clock, start, n, n), _first_forces(dynamics, method, start)


def simulate(
    system: System,
    method: Method,
    q0: Any,
    u0: Any,
    *,
    t1: float,
    dt: float | None = None,
    t0: float = 0.0,
    progress: bool | None = None,
    throw: bool = True,
    stepsize: Any = None,
    max_steps: int | None = None,
) -> Solution:
    """Run a system from (q0, u0) at t0 to t1 with a method and a step dt.

    Outside of tracing it runs in chunks: a progress bar moves (by default on a terminal, ``progress`` forces or
    forbids it), Ctrl-C returns what is there, and a failed step ends the run with an `ss.SimulationError` that holds
    the solution so far; ``throw=False`` returns it with its result code instead. Inside jit, vmap and derivatives it
    is one scan, and failure is told by ``sol.result`` alone.
    """
    if not isinstance(method, Method):
        raise TypeError(f"method must be an instance such as ss.Rattle(), got {method!r}")
    if stepsize is not None:
        raise ValueError("stepsize: this version has fixed steps only; give dt")
    if dt is None:
        raise ValueError("dt is missing: this version has fixed steps only")
    check_times(t0, t1, dt)
    if max_steps is not None and max_steps < 1:
        raise ValueError(f"max_steps must be at least 1, got {max_steps}")
    system = as_parameters(system)
    q, u, traced = checked_vectors(system, t0, q0, u0, method)
    n = max(1, math.ceil((t1 - t0) / dt - 1e-9))
    clock = Clock(jnp.asarray(float(t0)), jnp.asarray(float(t1)), jnp.asarray(float(dt)), jnp.asarray(n))
    wanted = n if max_steps is None else min(n, max_steps)
    if traced:
        carry, rows, first = _whole(system, method, clock, q, u, wanted)
        result = carry.result
    else:
        with meter(progress, n) as bar:
            carry, rows, result, first = _run_in_chunks(system, method, clock, q, u, wanted, bar)
    if wanted < n:
        result = first_failure(result, RESULTS.max_steps_reached)
    steps = wanted if traced else rows.q.shape[0]
    sol = _solution(system, method, (t0, t1, dt, n), q, u, first, rows, steps, result, jnp if traced else np)
    if not traced and throw and result != RESULTS.successful and result != RESULTS.interrupted:
        raise SimulationError(_explain(result, carry, sol, t0, t1, dt), sol)
    return sol


def _run_in_chunks(system, method, clock, q, u, wanted: int, bar: Meter) -> tuple[Carry, Row, Any, Any]:
    thorough, method = method, with_solver(method, method.solver.first_try())
    retry = type(thorough.solver) is not type(method.solver)
    carry, start, first = _begin(system, method, clock, q, u)
    check_start(start, float(clock.t0))
    chunks: list[Row] = []
    done, size, result = 0, CHUNK, carry.result
    try:
        while done < wanted and result == RESULTS.successful:
            began = time.perf_counter()
            carry, rows = _chunk(system, method, clock, carry, jnp.asarray(min(done + size, wanted)))
            made, result = int(carry.k) - done, carry.result
            chunks.append(jax.tree.map(lambda a, made=made: np.asarray(a)[:made], rows))
            done += made
            bar.update(done)
            if result != RESULTS.successful and retry:
                # Only now is the whole solver needed, and compiled; it stays for the rest of the run.
                method, retry, result = thorough, False, RESULTS.successful
                carry = carry._replace(result=result)
            elif made and chunks[1:]:  # the first chunk's time is compilation
                pace = (time.perf_counter() - began) / made
                size = max(1, min(CHUNK, int(CHUNK_SECONDS / pace)))
    except KeyboardInterrupt:
        result = RESULTS.interrupted
    if not chunks:
        _, empty = jax.eval_shape(lambda: _chunk(system, method, clock, carry, jnp.asarray(0)))
        chunks = [jax.tree.map(lambda a: np.zeros((0, *a.shape[1:]), a.dtype), empty)]
    return carry, jax.tree.map(lambda *a: np.concatenate(a), *chunks), result, first


def with_solver(method: Method, solver: Any) -> Method:
    """The same method with another solver."""
    return eqx.tree_at(lambda m: m.solver, method, solver, is_leaf=lambda x: x is method.solver)


def _solution(system, method, times, q0, u0, first, rows: Row, steps: int, result, xp: Any) -> Solution:
    t0, t1, dt, n = times
    t = t0 + np.arange(steps + 1) * dt
    if steps == n:
        t[-1] = t1

    def with_first(first, rest):
        return xp.concatenate([xp.asarray(first)[None], rest])

    zero = [xp.zeros(P.shape[1:]) for P in rows.P]
    stats = Stats(rows.newton_iterations, rows.fixed_point_iterations, rows.residual)

    def after(first, parts):
        return (with_first(a, b) for a, b in zip(first, parts, strict=True))

    P_g, P_gamma, P_N, P_F = after(zero, rows.P)
    names = [f"{kind}_{row}" for kind in ("la", "Lambda") for row in ("g", "gamma", "N", "F")]
    separated = {}
    if rows.separated is not None:
        la, Lambda = rows.separated
        separated = dict(zip(names, (*after(first, la), *after(zero, Lambda)), strict=True))
    return Solution(
        xp.asarray(t), with_first(q0, rows.q), with_first(u0, rows.u), P_g, P_gamma, P_N, P_F, result, stats, system, method,
        **separated,
    )  # fmt: skip


def _explain(result: Any, carry: Carry, sol: Solution, t0: float, t1: float, dt: float) -> str:
    what = message(result)
    if result == RESULTS.max_steps_reached:
        return f"{type(sol.method).__name__} stopped after {sol.t.shape[0] - 1} steps at t = {sol.t[-1]:.6g}: {what}"
    if result == RESULTS.inconsistent_start:
        return what
    k = int(carry.k)
    rows = np.nan_to_num(np.abs(np.asarray(carry.rows)), nan=np.inf)
    solve, row = np.unravel_index(np.argmax(rows), rows.shape) if rows.size else (0, 0)
    return (
        f"{type(sol.method).__name__} failed in step {k} (t = {t0 + k * dt:.6g} to {min(t0 + (k + 1) * dt, t1):.6g}),"
        f" solve {solve + 1} of {sol.method.n_solves}, largest residual in {_row_name(sol, int(row))}: {what}."
        f" The {k} steps before are in the solution of this error."
    )


def _row_name(sol: Solution, row: int) -> str:
    for name, P in (
        ("g", sol.P_g),
        ("gamma", sol.P_gamma),
        ("contact", sol.P_N),
        ("friction velocity", sol.P_F),
    ):
        if row < P.shape[1]:
            return f"{name} {row}" if name == "contact" else f"{name}[{row}]"
        row -= P.shape[1]
    return "the equations of motion"
