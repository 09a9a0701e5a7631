"""How the programs of a run are compiled.

XLA's CPU backend optimises at level 3 unless told otherwise. At level 1 the programs of a time step, which
are long and straight, compile up to a third faster and run about as fast. Its newer emitters of fused loops
take another fifth of the time for loops that, here, have a handful of passes: the older ones serve. To move
out of loops what stays the same in them takes a tenth of the time once more where loops lie in loops, as with
located events, which are as fast without it; a fixed step can be slower by a fifth. Whoever sets one of these
in XLA_FLAGS has it: so `benchmarks/compile.py` and `benchmarks/speed.py` can compare.
"""

import contextlib
import functools
import gc
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy
import numpy as np
from jax.interpreters.ad import JVPTracer

from . import stored
from .sharing import shared, smaller

P = ParamSpec("P")
T = TypeVar("T")
_LEVEL = "xla_backend_optimization_level"
_PASSES = "xla_disable_hlo_passes"
_LESS = {"xla_cpu_use_fusion_emitters": False, _PASSES: "while-loop-invariant-code-motion"}


level: int | None = None if _LEVEL in os.environ.get("XLA_FLAGS", "") else 1  # None: as XLA thinks best


def _options(level: int | None, nested: bool) -> dict[str, Any]:
    less = {option: value for option, value in _less().items() if nested or option != _PASSES}
    return ({} if level is None else {_LEVEL: level}) | less


@functools.cache
def _less() -> dict[str, Any]:
    """What XLA is not to do, where this version of it lets one choose."""
    wanted = {
        option: value for option, value in _LESS.items() if option not in os.environ.get("XLA_FLAGS", "")
    }
    return (
        wanted
        if _known_to_xla(wanted)
        else {o: value for o, value in wanted.items() if _known_to_xla({o: value})}
    )


def _known_to_xla(options: dict[str, Any]) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


class compiled(Generic[P, T]):
    """As `equinox.filter_jit`, for functions that are called outside of tracing:
    JAX takes options nowhere else.

    Programs come from the disk where an earlier process has left them (`stored.py`). ``nested``: they have
    loops in loops.
    """

    def __init__(self, f: Callable[P, T], nested: bool = False) -> None:
        functools.update_wrapper(self, f)
        self._f, self._plain, self._nested = f, eqx.filter_jit(f), nested
        self._programs: dict[Any, _Program] = {}
        everywhere.append(self._programs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        if not _ahead_of_time():
            return self._plain(*args, **kwargs)
        program, arrays = self._program(args)
        return program(arrays)

    def shapes(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Of what it returns; None where that is there at once, for the program need not be compiled."""
        if not _ahead_of_time():
            return eqx.filter_eval_shape(self._plain, *args, **kwargs)
        program, arrays = self._program(args)
        return program.shapes(arrays)

    def _program(self, args: tuple[Any, ...]) -> "tuple[_Program, list[Any]]":
        leaves, structure = jax.tree.flatten(args)
        arrays: list[Any] = []
        statics: list[Any] = []
        kinds: list[Any] = []
        for x in leaves:
            if isinstance(x, _ARRAYS):
                arrays.append(x)
                # the same for zeros that stand for it
                kinds.append((x.shape, x.dtype, getattr(x, "weak_type", False)))
                statics.append(None)
            else:
                statics.append(x)
        key = (level, structure, tuple(statics), tuple(kinds))
        if _forgotten():
            forget()
        if key not in self._programs:
            self._programs[key] = _Program(self._f, *key[1:], _options(level, self._nested))
        return self._programs[key], arrays


class traced_whole(Generic[P, T]):
    """As `equinox.filter_jit`, for a run that is one program because it is batched or differentiated.

    JAX takes options where that program is not part of another: not within jit, nor where JAX keeps what
    `grad` needs. Large batches run for long, and XLA optimises them as it thinks best.
    """

    def __init__(self, f: Callable[P, T], nested: bool = False) -> None:
        functools.update_wrapper(self, f)
        self._f, self._plain, self._nested = f, eqx.filter_jit(f), nested
        self._quick: dict[Any, Any] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        with _as_rules_are_traced(), _short_locations():
            if not (_ahead_of_time() and _stands_alone(args)):
                return self._plain(*args, **kwargs)
            if level not in self._quick:
                self._quick[level] = _with_rates(self._f, _options(level, self._nested))
            return self._quick[level](args)


def _as_rules_are_traced() -> contextlib.AbstractContextManager[Any]:
    """JAX traces rules of derivatives in a mesh of no devices where it was in none before, and so would trace
    once more what it knows.
    """
    try:
        return jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh())
    except AttributeError:
        return contextlib.nullcontext()


def _short_locations() -> contextlib.AbstractContextManager[Any]:
    """Nobody reads in a compiled program who called whom; to note it takes a thirtieth of the time."""
    try:
        from jax._src import config

        return config.include_full_tracebacks_in_locations(False)
    except (ImportError, AttributeError, TypeError):
        return contextlib.nullcontext()


def _with_rates(f: Callable[..., Any], options: dict[str, Any]) -> Any:
    """f of a tuple, compiled with these options; its forward derivative too,
    without a look at f alone before.
    """
    jit: Any = functools.partial(eqx.filter_jit, compiler_options=options)  # which JAX gets
    alone = jit(lambda args: f(*args))
    moving = jit(smaller(lambda args, rates: eqx.filter_jvp(lambda args: f(*args), (args,), (rates,))))

    @eqx.filter_custom_jvp
    def run(args: Any) -> Any:
        return alone(args)

    @run.def_jvp
    def _(primals: Any, tangents: Any) -> Any:
        return moving(*primals, *tangents)

    return run


FEW = 16  # runs of a batch that take less time than to compile them with more care


def _stands_alone(args: Any) -> bool:
    """Whether nothing is traced but forward derivatives and small batches."""
    within_jit = isinstance(jax.numpy.zeros(()), jax.core.Tracer)
    return not within_jit and all(map(_is_forward, jax.tree.leaves(args)))


def _is_forward(x: Any) -> bool:
    if not isinstance(x, jax.core.Tracer):
        return True
    if isinstance(x, JVPTracer):
        return _is_forward(x.primal) and _is_forward(x.tangent)
    batched = getattr(x, "val", None) if type(x).__name__ == "BatchTracer" else None
    return batched is not None and np.size(batched) <= FEW * max(1, x.size) and _is_forward(batched)


def _ahead_of_time() -> bool:
    """On a CPU, unless JAX is to watch what it computes."""
    config: Any = jax.config
    watched = config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit
    return jax.default_backend() == "cpu" and not watched


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
_alike: dict[Any, Any] = {}  # executables by their content: methods that begin alike begin with the same one
everywhere.append(_alike)


def _content(lowered: Any) -> bytes:
    """All that XLA gets, but the name; a program of its own where JAX does not say."""
    try:
        text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=False)
    except AttributeError:
        return secrets.token_bytes(32)
    return hashlib.sha256(re.sub(r"^module @\S+", "", text).encode()).digest()


class _Program:
    """For arguments of one kind: found on disk, or compiled when it is needed."""

    def __init__(
        self, f: Callable[..., Any], structure: Any, statics: Any, kinds: Any, options: dict[str, Any]
    ) -> None:
        self._f, self._structure, self._statics, self._options = f, structure, statics, options
        self._name = stored.name_of(
            f"{f.__module__}.{f.__qualname__}", self._options, structure, statics, kinds
        )
        found: tuple[Any, Any] = stored.load(self._name) or (None, None)
        self._executable, self._skeleton = found
        self._places: tuple[list[Any], Any] | None = None  # of the skeleton
        self._on_trial = self._executable is not None
        self._traced: Any = None

    def shapes(self, arrays: list[Any]) -> Any:
        if self._executable is not None:
            return None
        if self._traced is None:
            self._traced = self._trace(stored.called(self._f.__name__, self._name), arrays)
        return self._filled(jax.tree.leaves(self._traced.out_info))

    def _trace(self, called: str, arrays: list[Any]) -> Any:
        def flat(*arrays: Any) -> list[Any]:
            rest = iter(arrays)
            leaves = [next(rest) if x is None else x for x in self._statics]
            made, result = jax.tree.flatten(self._f(*jax.tree.unflatten(self._structure, leaves)))
            out = [x for x in made if eqx.is_array(x)]
            slots = iter(range(len(out)))
            skeleton = [stored.Slot(next(slots)) if eqx.is_array(x) else x for x in made]
            self._skeleton, self._places = jax.tree.unflatten(result, skeleton), None
            return out

        flat.__name__ = called
        # all arguments, also those that nobody uses: programs of one content are called alike
        jit = functools.partial(jax.jit, keep_unused=True, compiler_options=self._options)
        traced = jit(flat).trace(*arrays)
        if any(isinstance(x, jax.core.Tracer) for x in getattr(traced, "_consts", ())):
            raise jax.errors.UnexpectedTracerError("a value that another call has left behind")
        fewer = shared(traced)
        if fewer is None:
            return traced

        def alike(*arrays: Any) -> list[Any]:
            return fewer(*arrays)

        alike.__name__ = called
        return jit(alike).trace(*arrays)

    def _compile(self, arrays: list[Any]) -> None:
        traced, self._traced = self._traced, None

        def lowered(called: str, traced: Any = None) -> Any:
            with _short_locations():
                return (traced or self._trace(called, arrays)).lower()

        first = lowered(stored.called(self._f.__name__, self._name), traced)
        # What is not to be stored may come from JAX's own cache; what is to be must not (`stored.fresh`).
        content = _content(first), tuple(self._options.items()), self._name is None
        self._executable = _alike.get(content)
        if self._executable is None:
            self._executable = stored.fresh(self._f.__name__, self._name, first, lowered)
            _alike[content] = self._executable
        stored.save(self._name, self._executable, self._skeleton, len(arrays))

    def __call__(self, arrays: list[Any]) -> Any:
        if self._executable is None:
            self._compile(arrays)
        try:
            out = self._executable(*arrays)
        except jax.errors.JaxRuntimeError:
            if not self._on_trial:
                raise
            self._compile(arrays)  # what lay on the disk cannot be run
            out = self._executable(*arrays)
        self._on_trial = False
        return self._filled(out)

    def _filled(self, out: Sequence[Any]) -> Any:
        """The result: arrays where they belong, and what is no array as it was when it was traced."""
        if self._places is None:
            self._places = jax.tree.flatten(self._skeleton)
        leaves, structure = self._places
        return jax.tree.unflatten(
            structure, [out[x.number] if isinstance(x, stored.Slot) else x for x in leaves]
        )


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Tracing makes objects by the million, nearly all of which stay:
    to look for garbage among them takes a tenth of it.
    """
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
        """``second`` is called with zeros of the shapes that ``first`` gives, if it does,
        once for every ``what``.
        """
        self._work: Future[Any] | None = None
        if what in self._seen:
            return
        self._seen.add(what)
        shapes = first()  # errors of the user's functions appear here as they would when it is run
        if shapes is not None:
            self._work = _pool.submit(second, jax.tree.map(_zeros, shapes))

    def wait(self) -> None:
        """If it failed, so will the call that it was made for, and say why."""
        if self._work is not None:
            self._work.exception()
            self._work = None


def _zeros(x: Any) -> Any:
    return np.zeros(x.shape, x.dtype) if hasattr(x, "shape") and hasattr(x, "dtype") else x
