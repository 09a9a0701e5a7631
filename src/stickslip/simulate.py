"""Runs: checks the input, drives the loops in chunks, and makes a solution of what they kept."""

import math
import reprlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import loop
from .captured import captured
from .chunks import Run, in_pieces, unless_finished
from .contract import explaining
from .fixed import FixedSteps, Row, thinned
from .located.asked import Located
from .located.run import run_located
from .methods import by_name
from .methods.base import Method
from .progress import meter
from .results import RESULTS, SimulationError, first_failure, message, succeeded
from .rows import Layout
from .solution import Solution, Stats
from .stepsize import Adjusted, SwitchingPoints
from .system import System
from .validate import as_parameters, check_rows, check_times, checked_vectors, is_count, is_traced

EXPLICIT_LIMIT = 2.0  # of the fastest rate times dt: what explicit treatment of forces bears
CRUMB = 1e-3  # a last step shorter than this part of dt is joined with the one before


class _Outcome(NamedTuple):
    """What either kind of loop leaves behind."""

    t: Any
    row: Row
    first_forces: Any
    result: Any
    residuals: Any  # of the last step, by solve and row
    next_dt: float  # of the step that failed, if one did
    steps: Any  # made
    adjusted: Any = None  # (order, state, missed, attempts, steps) of adjusted steps


def simulate(
    system: System | None = None,
    method: Method | str | None = None,
    q0: Any = None,
    u0: Any = None,
    *,
    t1: float,
    dt: float | None = None,
    t0: float = 0.0,
    progress: bool | None = None,
    throw: bool = True,
    stepsize: SwitchingPoints | None = None,
    max_steps: int | None = None,
    save_every: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
    locate: bool = False,
    dt_max: float | None = None,
    dt_zeno: float | None = None,
    max_events: int | None = None,
    t_eval: Any = None,
    events: Any = (),
    restart: Solution | None = None,
) -> Solution:
    """Run a system from (q0, u0) at t0 to t1: with steps dt, with tolerances,
    or with a ``stepsize`` that chooses them.

    ``method`` is an instance such as `ss.Rattle()`, or a name: "rattle", "radau3". ``restart=sol`` goes on
    where another run ended, in place of q0, u0 and t0, with its system and method unless others are given;
    the solution begins there.

    Outside of tracing it runs in chunks: a progress bar moves (by default on a terminal, ``progress`` forces
    or forbids it), Ctrl-C returns what is there (and says so; a second one raises), and a failed step ends
    the run with an `ss.SimulationError` that holds the solution so far; ``throw=False`` returns it with its
    result code instead. Inside jit, vmap and derivatives it is one loop, failure is told by ``sol.result``
    alone, and a ``stepsize`` needs ``max_steps``, the number of rows; rows after the end repeat the end.

    ``save_every=k`` keeps the start, every k-th step of a fixed size and the last one; percussions and
    iterations of a row are then those of all steps since the row before.

    ``rtol`` and ``atol`` (of q and u, as in scipy's solve_ivp) choose the steps and locate impacts, lift-off,
    stick and slip: the order of the method holds through them (docs/events.md). ``dt`` with ``locate=True``
    makes steps of one size between events. ``dt_max`` limits steps; flights shorter than ``dt_zeno`` are not
    resolved; ``events`` are your own functions (t, q, u) whose zeros are located, with the attributes
    ``terminal`` and ``direction`` of solve_ivp; ``t_eval`` are the times of the rows to keep. Without a
    method one that suits the tolerances is taken, see ``sol.method``.
    """
    if restart is not None:
        system, method, q0, u0, t0 = _going_on(restart, system, method, q0, u0, t0)
    system = as_parameters(system)
    located = Located.of(
        rtol, atol, dt, locate, dt_max, dt_zeno, max_events, t_eval, events, stepsize, save_every
    )
    if method is None and located is not None:
        method = located.suitable()
    method = _method(method)
    _check_steps(method, dt, stepsize, located)
    check_times(t0, t1, 1.0 if dt is None else dt)
    _check_counts(max_steps, save_every, stepsize)
    q, u, traced, crowded = checked_vectors(system, t0, q0, u0, (method, stepsize))
    times = float(t0), float(t1)
    with explaining():
        if located is not None:
            return run_located(
                system, method, located, times, q, u, traced, crowded, progress, max_steps, throw
            )
        if stepsize is not None:
            out = _adjusted_steps(system, method, stepsize, times, q, u, traced, crowded, progress, max_steps)
        else:
            assert dt is not None
            out = _fixed_steps(
                system, method, float(dt), times, q, u, traced, crowded, progress, max_steps, int(save_every)
            )
    sol = _solution(system, method, q, u, out, t0, jnp if traced else np)
    if not traced and throw and not succeeded(out.result) and out.result != RESULTS.interrupted:
        raise SimulationError(_explain(out, sol, t1), sol)
    return sol


def _going_on(sol: Any, system: Any, method: Any, q0: Any, u0: Any, t0: float) -> tuple[Any, ...]:
    """From the end of another run."""
    if not isinstance(sol, Solution):
        raise TypeError(f"restart must be a solution, as ss.simulate returns it, got {reprlib.repr(sol)}")
    if is_traced(sol):
        raise TypeError(
            "restart must be a solution with numbers: inside jit, vmap or a derivative give q0, u0 and t0"
        )
    if q0 is not None or u0 is not None or t0 != 0.0:
        raise ValueError("restart gives q0, u0 and t0: leave these away, or give them in place of restart")
    end = sol._single("restart")
    system, method = end.system if system is None else system, end.method if method is None else method
    return system, method, end.q[-1], end.u[-1], float(end.t[-1])


def _method(method: Any) -> Method:
    if isinstance(method, str):
        return by_name(method)
    if method is None:
        raise TypeError(
            'method is missing: give one such as ss.Rattle() or "rattle", or tolerances rtol=... and atol=...'
        )
    if isinstance(method, type) and issubclass(method, Method):
        raise TypeError(
            f"method is the class {method.__name__}: method must be an instance such as "
            f"ss.{method.__name__}()"
        )
    if not isinstance(method, Method):
        raise TypeError(
            'method must be an instance such as ss.Rattle(), or a name such as "rattle", got '
            f"{reprlib.repr(method)}"
        )
    return method


def _check_steps(
    method: Method, dt: float | None, stepsize: SwitchingPoints | None, located: Located | None
) -> None:
    """One way of choosing steps, and a method that can do with it."""
    if stepsize is not None and not isinstance(stepsize, SwitchingPoints):
        raise TypeError(f"stepsize must be an ss.SwitchingPoints(...), got {stepsize!r}")
    if located is None and (dt is None) == (stepsize is None):
        have = (
            "neither dt nor stepsize is given, and no tolerances"
            if dt is None
            else "dt and stepsize are both given"
        )
        raise ValueError(
            f"{have}: give dt=... for steps of one size, rtol=... and atol=..., or "
            "stepsize=ss.SwitchingPoints(...)"
        )
    if located is not None:
        located.check(method)
    elif dt is not None and method.needs_stepsize:
        raise ValueError(
            f"{type(method).__name__}: {method.needs_stepsize}: it needs stepsize=ss.SwitchingPoints(...), "
            "not dt"
        )


def _check_counts(max_steps: Any, save_every: Any, stepsize: SwitchingPoints | None) -> None:
    if max_steps is not None and not is_count(max_steps):
        raise ValueError(f"max_steps must be a whole number, at least 1, got {max_steps!r}")
    if not is_count(save_every):
        raise ValueError(f"save_every must be a positive integer, got {save_every!r}")
    if save_every > 1 and stepsize is not None:
        raise ValueError(
            "save_every is for steps of a fixed size: with a stepsize every accepted step is kept"
        )


def _fixed_steps(
    system,
    method,
    dt: float,
    times,
    q,
    u,
    traced: bool,
    crowded: bool,
    progress,
    max_steps: int | None,
    every: int,
) -> _Outcome:
    t0, t1 = times
    key = captured(system, method)
    n = max(1, math.ceil((t1 - t0) / dt - CRUMB))
    # traced runs have all rows at once, and thin them then
    wanted = n if max_steps is None else min(n, max_steps)
    check_rows(system, method.n_solves, wanted if traced else -(-wanted // every), dt, times, q, u)
    controller = FixedSteps(*(np.asarray(x) for x in (t0, t1, dt, n, wanted)))
    if traced:
        state, rows, _, first = loop.whole(system, method, controller, controller.t0, q, u, wanted, key)
        result, steps = state.result, wanted
        if every > 1:
            rows = thinned(rows, every, jnp)
    else:
        run = Run.of(system, method, controller, t0, q, u, key, crowded=crowded, every=every)
        with meter(progress, controller.goal, controller.units) as bar:
            state, rows, result, first = in_pieces(run, method, bar)
        steps = int(state.k)
    if wanted < n:
        result = first_failure(result, RESULTS.max_steps_reached)
    numbers = np.append(np.arange(0, steps, every), steps)  # of the steps that rows are the end of
    t = t0 + numbers * dt
    if steps == n:
        t[-1] = t1
    return _Outcome(t, rows, first, result, state.rows, dt, steps)


def _adjusted_steps(
    system, method, stepsize, times, q, u, traced: bool, crowded: bool, progress, max_steps: int | None
) -> _Outcome:
    t0, t1 = (np.asarray(t) for t in times)
    key, controller = captured(system, method), Adjusted(stepsize.as_arrays(), t0, t1)
    if traced:
        if max_steps is None:
            raise ValueError(
                "max_steps is missing: inside jit, vmap or a derivative, stepsize needs a number of rows"
            )
        state, kept, made, first = loop.whole(system, method, controller, t0, q, u, max_steps, key)
        t = jnp.concatenate([t0[None], kept.t])
        counts: Any = state.attempts, jnp.minimum(made, max_steps)
        result = unless_finished(state.result, state.finished & (made <= max_steps))
        return _Outcome(
            t, kept.row, first, result, state.rows, 0.0, made, (kept.order, kept.state, kept.missed, *counts)
        )
    over = (lambda state: False) if max_steps is None else lambda state: int(state.k) >= max_steps
    run = Run.of(system, method, controller, times[0], q, u, key, crowded=crowded, over=over)
    with meter(progress, controller.goal, controller.units) as bar:
        state, kept, result, first = in_pieces(run, method, bar)
    if max_steps is not None:
        cut = len(kept.t) > max_steps  # whatever came after that does not count
        result = unless_finished(RESULTS.successful if cut else result, bool(state.finished) and not cut)
        kept = jax.tree.map(lambda a: a[:max_steps], kept)
    rows = np.concatenate([[times[0]], kept.t])
    more = kept.order, kept.state, kept.missed, np.asarray(state.attempts), np.asarray(len(kept.t))
    return _Outcome(rows, kept.row, first, result, state.rows, float(state.dt), len(kept.t), more)


def _solution(system, method, q0, u0, out: _Outcome, t0: float, xp: Any) -> Solution:
    rows = out.row
    zero = [np.zeros(P.shape[1:]) for P in rows.P]
    counters = (*rows.work, rows.residual, rows.printed)
    stats = Stats(*counters)
    names = ["q", "u", "P_g", "P_gamma", "P_N", "P_F"]
    first, rest = [q0, u0, *zero], [rows.q, rows.u, *rows.P]
    if out.adjusted is not None:
        order, state, missed, attempts, steps = out.adjusted
        # The start has no state of its own: nothing switches in the first step.
        first_state = state[0] if len(state) else np.zeros(state.shape[1:], dtype=bool)
        names, first, rest = [*names, "order", "modes"], [*first, 0, first_state], [*rest, order, state]
        stats = Stats(*counters, attempts=attempts, steps=steps, inaccurate=missed)
    if rows.separated is not None:
        la, Lambda = rows.separated
        names += [f"{kind}_{row}" for kind in ("la", "Lambda") for row in ("g", "gamma", "N", "F")]
        first, rest = [*first, *out.first_forces, *zero], [*rest, *la, *Lambda]
    whole = _one_before(first, rest, np) if xp is np else _one_before_traced(first, rest)
    return Solution(
        xp.asarray(out.t),
        **dict(zip(names, whole, strict=True)),
        result=out.result,
        stats=stats,
        system=system,
        method=method,
    )


def _one_before(first: list[Any], rest: list[Any], xp: Any) -> list[Any]:
    return [xp.concatenate([xp.asarray(a)[None], b]) for a, b in zip(first, rest, strict=True)]


@jax.jit  # one small program instead of many
def _one_before_traced(first: list[Any], rest: list[Any]) -> list[Any]:
    return _one_before(first, rest, jnp)


def _explain(out: _Outcome, sol: Solution, t1: float) -> str:
    what, k, name = message(out.result), out.steps, type(sol.method).__name__
    if out.result == RESULTS.max_steps_reached:
        return f"{name} stopped after {k} steps at t = {sol.t[-1]:.6g}: {what}"
    if out.result == RESULTS.inconsistent_start:
        return what
    stiff = _stiffness(sol, out.next_dt)
    if stiff:
        what = f"{what.split(';')[0]}; {stiff}"
    rows = np.nan_to_num(np.abs(np.asarray(out.residuals)), nan=np.inf)
    solve, row = np.unravel_index(np.argmax(rows), rows.shape) if rows.size else (0, 0)
    t, layout = float(sol.t[-1]), Layout(*(P.shape[-1] for P in (sol.P_g, sol.P_gamma, sol.P_N, sol.P_F)))
    return (
        f"{name} failed in step {k} (t = {t:.6g} to {min(t + out.next_dt, t1):.6g}),"
        f" solve {solve + 1} of {sol.method.n_solves}, largest residual in {layout.name(int(row))}: {what}."
        f" The {k} steps before are in the solution of this error."
    )


def _stiffness(sol: Solution, dt: float) -> str:
    """What to do where forces change faster than a method that evaluates them at the start of a step can
    bear.
    """
    if not sol.method.explicit_forces:
        return ""
    system, t, q, u = sol.system, float(sol.t[-1]), jnp.asarray(sol.q[-1]), jnp.asarray(sol.u[-1])
    M, B = jnp.asarray(system.M(t, q)), jnp.asarray(system.B(t, q))
    by_q, by_u = jax.jacfwd(lambda q, u: jnp.asarray(system.h(t, q, u)), argnums=(0, 1))(q, u)
    rates = np.linalg.solve(M, np.concatenate([by_q @ B, by_u], axis=1))
    if not np.all(np.isfinite(rates)):
        return ""
    n = u.shape[0]
    fastest = max(
        np.sqrt(np.abs(np.linalg.eigvals(rates[:, :n])).max()), np.abs(np.linalg.eigvals(rates[:, n:])).max()
    )
    if fastest * dt <= EXPLICIT_LIMIT:
        return ""
    return (
        f"the forces are stiff, they change within {1.0 / fastest:.1e} s, and {type(sol.method).__name__} "
        "needs steps that"
        " follow: a stiffly accurate method does not, such as ss.RadauIIA(2)"
    )
