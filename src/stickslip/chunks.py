"""The loop around the loops: steps in chunks, with time between them for the bar, the keyboard and another solver."""

import math
import sys
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from . import loop
from .compiling import Ahead, collecting_later
from .loop import CHUNK
from .methods.base import Method, with_solver
from .progress import Meter
from .results import RESULTS, first_failure, succeeded, unless
from .validate import check_start

CHUNK_SECONDS = 0.5
MOMENT = 5.0  # seconds within which a second Ctrl-C ends the script
_sizes: dict[Any, int] = {}  # of chunks, by kind of run: each costs Python a moment, in which other threads wait for it


class Run(NamedTuple):
    """A kind of steps, as the loop around the loop sees it."""

    kind: Any  # what programs are made for
    begin: Any  # gives dynamics, state, values of the start, first forces
    start: Any  # method -> what that is called with
    chunk: Any  # dynamics, method, state, number of steps, whether failed steps may be halved -> state, rows, ...
    made: Any  # (state before, what `chunk` gives) -> number of rows
    finished: Any  # state -> bool
    progress: Any  # state -> how far
    time: Any  # state -> time reached
    crowded: bool = False  # see `Solver.crowded_try`
    longest: int = CHUNK  # steps at a time


def in_chunks(
    run: Run, method: Method, t0: float, bar: Meter, every: int = 1, check: bool = True
) -> tuple[Any, Any, Any, Any]:
    """The loop around the loop: between chunks there is time for the bar, the keyboard and another solver."""
    tried = method.solver.crowded_try() if run.crowded else method.solver.first_try()
    thorough, method = method, with_solver(method, tried)
    retry = thorough.solver is not method.solver and thorough.solver != method.solver
    with collecting_later():
        begun = run.start(method)
        ahead = Ahead(
            run.kind, lambda: run.begin.shapes(*begun), lambda first: run.chunk(first[0], method, first[1], 0, not retry)
        )
        dynamics, state, values, first = run.begin(*begun)
        if check:
            check_start(values, t0, dynamics.system)
        ahead.wait()
    chunks: list[Any] = []
    rest: Any = None  # rows of a group that is not complete
    size, result = _sizes.get(run.kind, CHUNK), state.result
    try:
        while not run.finished(state) and succeeded(result):
            began = time.perf_counter()
            after = run.chunk(dynamics, method, state, size, not retry)
            made = run.made(state, after)
            state, rows = after[:2]
            result = state.result
            new = jax.tree.map(lambda a, made=made: np.asarray(a)[:made], rows)
            if every > 1:
                rest = new if rest is None else joined([rest, new])
                whole = rest.q.shape[0] // every * every
                new, rest = (jax.tree.map(lambda a, part=part: a[part], rest) for part in (slice(whole), slice(whole, None)))
                new = loop.thinned(new, every, np)
            chunks.append(new)
            bar.update(run.progress(state))
            if retry and not succeeded(result):
                # Only now is the whole solver needed, and compiled; it stays for the rest of the run.
                method, retry, result = thorough, False, RESULTS.successful
                state = state._replace(result=result)
            elif made and chunks[1:]:  # the first chunk's time is compilation
                pace = (time.perf_counter() - began) / made
                size = _sizes[run.kind] = max(1, min(run.longest, int(CHUNK_SECONDS / pace)))
    except KeyboardInterrupt:
        if not chunks or _twice():
            raise  # nothing to keep, or somebody means it
        result = RESULTS.interrupted
        print(f"stickslip: interrupted at t = {run.time(state):.6g}, the solution is partial", file=sys.stderr)
    if not chunks:
        chunks = [jax.tree.map(lambda a: np.asarray(a)[:0], run.chunk(dynamics, method, state, 0, True)[1])]
    if rest is not None and rest.q.shape[0]:
        chunks.append(loop.thinned(rest, every, np))
    return state, joined(chunks), result, first


def joined(rows: list[Any]) -> Any:
    return jax.tree.map(lambda *a: np.concatenate(a), *rows)


def _twice() -> bool:
    """Whether the keyboard interrupted a run a moment ago already: then the script is to end, not only its next run."""
    global _interrupted
    before, _interrupted = _interrupted, time.monotonic()
    return _interrupted - before < MOMENT


_interrupted = -math.inf


def unless_finished(result: Any, finished: Any) -> Any:
    return first_failure(result, unless(finished, RESULTS.max_steps_reached))
