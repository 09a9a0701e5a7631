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

from . import stored

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
    """As `equinox.filter_jit`, for functions that are called outside of tracing: JAX takes options nowhere else.

    Programs come from the disk where an earlier process has left them (`stored.py`).
    """
    programs: dict[Any, _Program] = {}

    @functools.cache
    def program(level: int | None) -> Any:
        return eqx.filter_jit(f, compiler_options=_options(level))  # type: ignore[call-overload]

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if stored.folder() is None:
            return program(level)(*args, **kwargs)
        leaves, structure = jax.tree.flatten(args)
        arrays = [x for x in leaves if isinstance(x, _ARRAYS)]
        statics = tuple(None if isinstance(x, _ARRAYS) else x for x in leaves)
        kinds = tuple((x.shape, x.dtype, getattr(x, "weak_type", False)) for x in arrays)
        key = (level, structure, statics, kinds)
        if _forgotten():
            forget()
        if key not in programs:
            programs[key] = _Program(f, arrays, structure, statics, kinds)
        return programs[key](arrays)

    everywhere.append(programs)
    return call


everywhere: list[dict[Any, Any]] = []  # what this process has of every function
_known: Any = jax.jit(lambda: 0)


def forget() -> None:
    """As in another process; `jax.clear_caches()` does the same."""
    for programs in everywhere:
        programs.clear()


def _forgotten() -> bool:
    """Whether somebody has cleared JAX's caches since programs were made: then these go, too."""
    if _known._cache_size():
        return False
    _known()
    return True


_ARRAYS = (jax.Array, np.ndarray, np.generic)


class _Program:
    """For arguments of one kind: found on disk, or compiled."""

    def __init__(self, f: Callable[..., Any], arrays: list[Any], structure: Any, statics: Any, kinds: Any) -> None:
        self._f, self._structure, self._statics, self._options = f, structure, statics, _options(level)
        self._name = stored.name_of(f"{f.__module__}.{f.__qualname__}", self._options, structure, statics, kinds)
        found = stored.load(self._name)
        self._on_trial = found is not None
        self._use(*(self._compiled(arrays) if found is None else found))

    def _use(self, executable: Any, skeleton: Any) -> None:
        self._executable, self._result = executable, jax.tree.structure(skeleton)

    def _compiled(self, arrays: list[Any]) -> tuple[Any, Any]:
        seen: list[Any] = []

        def flat(*arrays: Any) -> list[Any]:
            rest = iter(arrays)
            leaves = [next(rest) if x is None else x for x in self._statics]
            out, result = jax.tree.flatten(self._f(*jax.tree.unflatten(self._structure, leaves)))
            seen.append(jax.tree.unflatten(result, range(len(out))))
            return out

        def lowered(named: Callable[..., Any]) -> Any:
            return jax.jit(named, compiler_options=self._options).lower(*arrays)

        executable = stored.fresh(flat, self._f.__name__, self._name, lowered)
        stored.save(self._name, executable, seen[0], len(arrays))
        return executable, seen[0]

    def __call__(self, arrays: list[Any]) -> Any:
        try:
            out = self._executable(*arrays)
        except jax.errors.JaxRuntimeError:
            if not self._on_trial:
                raise
            self._use(*self._compiled(arrays))  # what lay on the disk cannot be run
            out = self._executable(*arrays)
        self._on_trial = False
        return jax.tree.unflatten(self._result, out)


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
