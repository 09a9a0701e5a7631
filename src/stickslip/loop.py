"""The time loop: one attempt after the other, and the rows that are kept.

What an attempt is, how long it is and what becomes of it is for a *controller* to say: `FixedSteps`
(fixed.py) for steps of one size, `Adjusted` (stepsize.py) for those of `ss.SwitchingPoints`, `BetweenEvents`
(located/) for tolerances and events. A run from outside of tracing is made in pieces (`chunks.py`), one
inside of it as a `whole`.
"""

import abc
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .compiling import compiled, traced_whole
from .derive import Dynamics, Situation
from .methods.base import Method
from .results import RESULTS, unless
from .system import System
from .trees import as_carry, held, repeated, strong
from .validate import start_is_consistent, start_values


class Controller(eqx.Module):
    """Gets a run from state to state. States have a ``result``; rows are what is kept of them."""

    every: ClassVar[bool] = False  # whether every attempt leaves one row
    kept: ClassVar[int] = 1  # rows that an attempt leaves, at most
    piece: ClassVar[int] = 1000  # rows between two looks at the progress bar and the keyboard, at most
    nested: ClassVar[bool] = False  # whether its programs have loops in loops
    units: ClassVar[str] = "thousandths"  # of progress

    @abc.abstractmethod
    def first(self, dynamics: Dynamics, method: Method, t0: Array, q: Array, u: Array) -> tuple[Any, Any]:
        """The state at the start, and what else is known of it."""

    @abc.abstractmethod
    def nothing(self, dynamics: Dynamics, method: Method, state: Any) -> Any:
        """A row that is not there."""

    @abc.abstractmethod
    def advance(
        self, dynamics: Dynamics, method: Method, state: Any
    ) -> tuple[Any, tuple[tuple[Any, Any], ...]]:
        """One attempt: the state after it, and rows, each with whether it is kept."""

    @abc.abstractmethod
    def unfinished(self, state: Any) -> Bool[Array, ""]:
        """Whether there is more to do, if nothing has failed."""

    @abc.abstractmethod
    def attempts(self, state: Any) -> Int[Array, ""]:
        """That were made up to here."""

    def attempts_for(self, rows: int) -> int:
        """So many rows take no more attempts than that, in a run that is one program."""
        return rows

    def quiet(self, rows: Any, fill: Any) -> Any:
        """Rows past the end, which repeat the last one: without what happened there."""
        return rows

    def patiently(self, patient: bool) -> "Controller":
        """Whether a failed solve is a reason to try a shorter step, or the caller has a better solver."""
        return self

    # outside of tracing
    @property
    def goal(self) -> int:
        """What `progress` reaches at the end."""
        return 1000

    @abc.abstractmethod
    def progress(self, state: Any) -> int: ...

    @abc.abstractmethod
    def time(self, state: Any) -> float: ...


def steps(
    dynamics: Dynamics,
    method: Method,
    controller: Controller,
    start: Any,
    length: int,
    most: Any,
    both_ways: bool = False,
) -> tuple[Any, Any, Int[Array, ""]]:
    """Until ``length`` rows are kept, the run is over, or ``most`` attempts were made:
    state, rows and their number.
    """
    nothing, until = controller.nothing(dynamics, method, start), controller.attempts(start) + most

    def goes_on(state: Any) -> Bool[Array, ""]:
        return (
            controller.unfinished(state)
            & (state.result == RESULTS.successful)
            & (controller.attempts(state) < until)
        )

    if controller.every:
        # A loop of known length: it can be differentiated both ways, and in a batch nobody has to choose
        # among all rows.
        def one_row(state: Any, _: Any) -> tuple[Any, Any]:
            state, ((row, _),) = controller.advance(dynamics, method, state)
            return state, row

        def advance(state: Any, _: Any) -> tuple[Any, Any]:
            return jax.lax.cond(goes_on(state), lambda s: one_row(s, None), lambda s: (s, nothing), state)

        end, rows = jax.lax.scan(advance, start, length=length)
        return end, rows, controller.attempts(end) - controller.attempts(start)

    rows = jax.tree.map(lambda a: jnp.zeros((length + controller.kept, *a.shape), a.dtype), nothing)

    def attempt(loop: Any) -> Any:
        state, rows, count = loop
        state, kept = controller.advance(dynamics, method, state)
        for row, keep in kept:
            rows, count = _put(rows, count, row), count + keep
        return state, rows, count

    def unfinished(loop: Any) -> Bool[Array, ""]:
        state, _, count = loop
        return goes_on(state) & (count < length)

    begin = start, rows, jnp.asarray(0)
    if both_ways:  # differentiable: nested loops of known length, with checkpoints
        return eqxi.while_loop(unfinished, attempt, begin, max_steps=int(most), kind="bounded", base=32)
    return jax.lax.while_loop(unfinished, attempt, begin)


def _put(rows: Any, n: Array, row: Any) -> Any:
    return jax.tree.map(
        lambda a, x: jax.lax.dynamic_update_index_in_dim(a, jnp.asarray(x, a.dtype), n, 0), rows, row
    )


@compiled
def begin(
    system: System, method: Method, controller: Controller, t0: Any, q: Array, u: Array, key: str
) -> tuple[Dynamics, Any, dict[str, Any], Any]:
    """``key``, here and below: what system and method captured,
    so that another value means another program.
    """
    dynamics = Dynamics.of(system, t0, q, u)
    starting = dynamics.starting(t0, q, u)
    start, known = controller.first(starting, method, t0, q, u)
    values = start_values(dynamics, t0, q, u, Situation.of(starting, t0, q, u))
    return strong(dynamics), as_carry(start), values, known


def _piece(
    dynamics: Dynamics, method: Method, controller: Controller, state: Any, most: Any, key: str
) -> Any:
    state, rows, count = steps(dynamics, method, controller, state, controller.piece, most)
    return state, rows, count, controller.unfinished(state)


def _whole(
    system: System, method: Method, controller: Controller, t0: Any, q: Array, u: Array, n: int, key: str
) -> tuple[Any, Any, Any, Any]:
    dynamics = Dynamics.of(system, t0, q, u)
    starting = dynamics.starting(t0, q, u)
    ok = start_is_consistent(start_values(*held((dynamics, t0, q, u, Situation.of(starting, t0, q, u)))))
    start, known = controller.first(starting, method, t0, q, u)
    start = start._replace(result=unless(ok, RESULTS.inconsistent_start))

    def loop(args: Any, start: Any, both_ways: bool) -> Any:
        dynamics, method, controller = args
        return steps(dynamics, method, controller, start, n, controller.attempts_for(n), both_ways)

    state, rows, count = repeated((dynamics, method, controller), start, loop=loop)
    if not controller.every:
        rows = _padded(controller, rows, count, n, state.result != RESULTS.successful)
    return state, rows, count, known


_pieces = {nested: partial(compiled, nested=nested)(_piece) for nested in (False, True)}
_wholes = {nested: partial(traced_whole, nested=nested)(_whole) for nested in (False, True)}


def piece(dynamics: Dynamics, method: Method, controller: Controller, state: Any, most: Any, key: str) -> Any:
    """So many attempts at most, or a piece full of rows: state, rows, their number,
    whether there is more to do.
    """
    return _pieces[controller.nested or method.solver.nested](dynamics, method, controller, state, most, key)


def whole(
    system: System, method: Method, controller: Controller, t0: Any, q: Array, u: Array, n: int, key: str
) -> tuple[Any, Any, Any, Any]:
    """All at once, for tracing: n rows, of which those past the end repeat it."""
    return _wholes[controller.nested or method.solver.nested](system, method, controller, t0, q, u, n, key)


def _padded(controller: Controller, rows: Any, count: Array, n: int, failed: Array) -> Any:
    """Rows past the end: the last one again, without percussions and events; nan after a failure."""
    last = jnp.maximum(jnp.minimum(jnp.arange(n), count - 1), 0)
    beyond = jnp.arange(n) >= count
    rows = jax.tree.map(lambda a: a[last], rows)

    def fill(a: Array, value: Any) -> Array:
        return jnp.where(beyond.reshape(-1, *[1] * (a.ndim - 1)), value, a)

    quiet = controller.quiet(rows, fill)
    return jax.tree.map(
        lambda a: fill(a, jnp.where(failed, jnp.nan, a)) if eqx.is_inexact_array(a) else a, quiet
    )
