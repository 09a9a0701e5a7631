"""How the programs of a run are compiled.

XLA's CPU backend optimises at level 3 unless told otherwise. At level 1 the programs of a time step, which are long and
straight, compile up to a third faster and run about as fast. Its newer emitters of fused loops take another fifth of the
time for loops that, here, have a handful of passes: the older ones serve. Whoever sets one of these in XLA_FLAGS has it: so
`benchmarks/compile.py` and `benchmarks/speed.py` can compare.
"""

import contextlib
import functools
import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
_LEVEL, _EMITTERS = "xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"


level: int | None = None if _LEVEL in os.environ.get("XLA_FLAGS", "") else 1  # None: as XLA thinks best


def _options(level: int | None) -> dict[str, Any] | None:
    """Asked when a program is called: which device there is must not be decided on import."""
    if jax.default_backend() != "cpu":
        return None
    return ({} if level is None else {_LEVEL: level}) | _older_emitters()


@functools.cache
def _older_emitters() -> dict[str, Any]:
    """Where this version of XLA lets one choose."""
    option = {_EMITTERS: False}
    if _EMITTERS in os.environ.get("XLA_FLAGS", ""):
        return {}
    try:
        jax.jit(lambda: 0, compiler_options=option).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return option


def compiled(f: Callable[P, T]) -> Callable[P, T]:
    """As `equinox.filter_jit`, for functions that are called outside of tracing: JAX takes options nowhere else."""

    @functools.cache
    def program(level: int | None) -> Any:
        return eqx.filter_jit(f, compiler_options=_options(level))  # type: ignore[call-overload]

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return program(level)(*args, **kwargs)

    return call


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Tracing makes objects by the million, nearly all of which stay: to look for garbage among them takes a tenth of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_pool = ThreadPoolExecutor(1, thread_name_prefix="stickslip compiles")


class Ahead:
    """Compiles a second program while a first one, whose results it needs, is compiled and run.

    XLA leaves Python alone while it compiles: on two cores this takes as long as the longer of the two.
    """

    _seen: ClassVar[set[Any]] = set()

    def __init__(self, what: Any, first: Callable[[], Any], second: Callable[[Any], Any]) -> None:
        """``second`` is called with zeros in place of what ``first`` returns, once for every ``what``."""
        self._work: Future[Any] | None = None
        if what in self._seen:
            return
        self._seen.add(what)
        shapes = eqx.filter_eval_shape(first)  # errors of the user's functions appear here as they would in `first`
        self._work = _pool.submit(second, jax.tree.map(_zeros, shapes))

    def wait(self) -> None:
        """If it failed, so will the call that it was made for, and say why."""
        if self._work is not None:
            self._work.exception()
            self._work = None


def _zeros(x: Any) -> Any:
    return np.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x
