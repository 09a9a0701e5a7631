"""How the programs of a run are compiled.

XLA's CPU backend optimises at level 3 unless told otherwise. At level 1 the programs of a time step, which are long and
straight, compile up to a third faster and run about as fast. Whoever sets ``xla_backend_optimization_level`` in XLA_FLAGS
has it: so `benchmarks/compile.py` and `benchmarks/speed.py` can compare.
"""

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
_LEVEL = "xla_backend_optimization_level"


level: int | None = None if _LEVEL in os.environ.get("XLA_FLAGS", "") else 1  # None: as XLA thinks best


def _options(level: int | None) -> dict[str, Any] | None:
    """Asked when a program is called: which device there is must not be decided on import."""
    return None if level is None or jax.default_backend() != "cpu" else {_LEVEL: level}


def compiled(f: Callable[P, T]) -> Callable[P, T]:
    """As `equinox.filter_jit`, for functions that are called outside of tracing: JAX takes options nowhere else."""

    @functools.cache
    def program(level: int | None) -> Any:
        return eqx.filter_jit(f, compiler_options=_options(level))  # type: ignore[call-overload]

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return program(level)(*args, **kwargs)

    return call


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
