"""A run with located events: pieces from where it begins, or from where printed steps have led on."""

import math
from typing import Any

import jax
import numpy as np

from .. import loop
from ..captured import captured
from ..chunks import Run, in_pieces, joined, unless_finished
from ..progress import meter
from ..results import RESULTS, SimulationError, first_failure, message, succeeded, unless
from ..solution import Solution
from .asked import Located, Printed
from .between import BetweenEvents
from .output import solution


def run_located(
    system,
    method,
    asked: Located,
    times,
    q,
    u,
    traced: bool,
    crowded: bool,
    progress,
    max_steps: int | None,
    throw: bool,
) -> Solution:
    """Rows from event to event; where modes cannot be decided, printed steps in between."""
    t0, t1 = times
    asked.check_events(t0, q, u)
    asked = asked.on(system)
    key = captured(system, method, *asked.events)
    controller = BetweenEvents(asked.control(t0, t1, None if traced else max_steps), np.asarray(t0))
    if traced:
        if max_steps is None:
            raise ValueError(
                "max_steps is missing: inside jit, vmap or a derivative, tolerances need a number of rows"
            )
        state, rows, _, laws = loop.whole(system, method, controller, controller.t0, q, u, max_steps, key)
        result = unless_finished(state.result, state.finished)
        if asked.max_events is not None:
            result = first_failure(
                result, unless(state.events <= asked.max_events, RESULTS.max_events_reached)
            )
        return solution(asked, system, method, laws, rows, state, result, max_steps)
    pieces: list[Any] = []
    attempts = steps = events = 0
    smallest, printed, at = math.inf, Printed(times), (t0, q, u)
    with meter(progress, controller.goal, controller.units) as bar:
        while True:
            run = Run.of(
                system, method, controller, at[0], at[1], at[2], key, crowded=crowded,
                over=lambda c, steps=steps, events=events: (
                    (max_steps is not None and steps + int(c.steps) >= max_steps)
                    or (asked.max_events is not None and events + int(c.events) > asked.max_events)
                ),
            )  # fmt: skip
            state, rows, result, laws = in_pieces(run, method, bar, check=not pieces)
            if not bool(state.finished):
                rows = joined([rows, jax.tree.map(lambda a: np.asarray(a)[None], state.kept)])
            pieces.append(rows)
            attempts, steps = attempts + int(state.attempts), steps + int(state.steps)
            events = events + int(state.events)
            smallest = min(smallest, float(state.smallest_gap))
            led_on = printed.lead_on(system, method, rows, key) if _is_stuck(result) else None
            if led_on is None:
                break
            rows, at = led_on
            pieces.append(rows)
    rows = joined(pieces)
    if succeeded(result) and not bool(state.finished):
        over = asked.max_events is not None and events > asked.max_events
        result = RESULTS.max_events_reached if over else RESULTS.max_steps_reached
    state = state._replace(
        attempts=np.asarray(attempts), steps=np.asarray(steps), smallest_gap=np.asarray(smallest)
    )
    sol = solution(asked, system, method, laws, rows, state, result, None)
    if throw and not succeeded(result) and result != RESULTS.interrupted:
        where = f"{type(method).__name__} stopped at t = {float(rows.t[-1]):.6g} after {steps} steps"
        raise SimulationError(
            f"{where}: {message(result)}. What came before is in the solution of this error.", sol
        )
    return sol


def _is_stuck(result: Any) -> bool:
    """Whether a run with located events ended where steps that need no modes may lead on."""
    stuck: tuple[Any, ...] = (
        RESULTS.modes_undecided, RESULTS.newton_not_converged, RESULTS.fixed_point_not_converged,
        RESULTS.not_finite,
    )  # fmt: skip
    return not succeeded(result) and any(bool(result == failure) for failure in stuck)
