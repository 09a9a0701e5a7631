"""The loop around the loop: a run in pieces, with time between them for the bar,
the keyboard and another solver.
"""

import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from . import loop
from .compiling import Ahead, collecting_later
from .fixed import thinned
from .loop import Controller
from .methods.base import Method, with_solver
from .progress import Meter
from .results import RESULTS, first_failure, succeeded, unless
from .validate import check_start

SECONDS = 0.5  # that a piece takes
NONE = np.asarray(0)  # attempts
MOMENT = 5.0  # seconds within which a second Ctrl-C ends the script
# of pieces, by kind of run: each costs Python a moment, in which other threads wait for it
_sizes: dict[Any, int] = {}


class Run(NamedTuple):
    """A run as the loop around the loop sees it."""

    kind: Any  # what programs are made for
    system: Any
    controller: Controller
    t0: Any
    q: Any
    u: Any
    key: str
    crowded: bool = False  # see `Solver.crowded_try`
    every: int = 1  # steps of a row
    over: Callable[[Any], bool] = lambda state: False  # whether a limit of the caller is reached

    @classmethod
    def of(
        cls,
        system: Any,
        method: Method,
        controller: Controller,
        t0: float,
        q: Any,
        u: Any,
        key: str,
        **more: Any,
    ) -> "Run":
        kind = key, type(system), type(method), q.shape, u.shape, type(controller)
        return cls(kind, system, controller, np.asarray(t0), q, u, key, **more)


def in_pieces(run: Run, method: Method, bar: Meter, check: bool = True) -> tuple[Any, Any, Any, Any]:
    """The loop around the loop: between pieces there is time for the bar, the keyboard and another solver.

    The last state, all rows, how it ended, and what is known of the start.
    """
    whole = method.solver
    tried = whole.crowded_try() if run.crowded else whole.first_try()
    method, retry = with_solver(method, tried), whole is not tried and whole != tried
    controller = run.controller.patiently(not retry)
    with collecting_later():
        begun = run.system, method, controller, run.t0, run.q, run.u, run.key
        ahead = Ahead(
            run.kind,
            lambda: loop.begin.shapes(*begun),
            lambda first: loop.piece(first[0], method, controller, first[1], NONE, run.key),
        )
        dynamics, state, values, known = loop.begin(*begun)
        if check:
            check_start(values, float(run.t0), dynamics.system)
        ahead.wait()
    pieces: list[Any] = []
    rest: Any = None  # rows of a group that is not complete
    size, result, more = _sizes.get(run.kind, controller.piece), state.result, True
    try:
        while more and not run.over(state) and succeeded(result):
            began = time.perf_counter()
            state, rows, count, unfinished = loop.piece(
                dynamics, method, controller, state, np.asarray(size), run.key
            )
            result, made, more = state.result, int(count), bool(unfinished)
            new = jax.tree.map(lambda a, made=made: np.asarray(a)[:made], rows)
            if run.every > 1:
                rest = new if rest is None else joined([rest, new])
                whole = rest.q.shape[0] // run.every * run.every
                new, rest = (
                    jax.tree.map(lambda a, part=part: a[part], rest)
                    for part in (slice(whole), slice(whole, None))
                )
                new = thinned(new, run.every, np)
            pieces.append(new)
            bar.update(controller.progress(state))
            if retry and not succeeded(result):
                # Only now is more of the solver needed, and compiled; it stays for the rest of the run.
                method, result = with_solver(method, whole.next_try(method.solver)), RESULTS.successful
                retry = method.solver != whole
                state, controller = state._replace(result=result), controller.patiently(not retry)
            elif made and pieces[1:]:  # the first piece's time is compilation
                pace = (time.perf_counter() - began) / made
                size = _sizes[run.kind] = max(1, min(controller.piece, int(SECONDS / pace)))
    except KeyboardInterrupt:
        if not pieces or _twice():
            raise  # nothing to keep, or somebody means it
        result = RESULTS.interrupted
        print(
            f"stickslip: interrupted at t = {controller.time(state):.6g}, the solution is partial",
            file=sys.stderr,
        )
    if not pieces:
        rows = loop.piece(dynamics, method, controller, state, NONE, run.key)[1]
        pieces = [jax.tree.map(lambda a: np.asarray(a)[:0], rows)]
    if rest is not None and rest.q.shape[0]:
        pieces.append(thinned(rest, run.every, np))
    return state, joined(pieces), result, known


def joined(rows: list[Any]) -> Any:
    return jax.tree.map(lambda *a: np.concatenate(a), *rows)


def _twice() -> bool:
    """Whether the keyboard interrupted a run a moment ago already:
    then the script is to end, not only its next run.
    """
    global _interrupted
    before, _interrupted = _interrupted, time.monotonic()
    return _interrupted - before < MOMENT


_interrupted = -math.inf


def unless_finished(result: Any, finished: Any) -> Any:
    return first_failure(result, unless(finished, RESULTS.max_steps_reached))
