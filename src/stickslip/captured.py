"""What functions depend on besides their arguments: module constants, class attributes, closures, defaults.

A compiled program has their values in it. They belong to what it is known by, or a constant that somebody
changes between two runs would change nothing.
"""

import dataclasses
import functools
import hashlib
import os
import sys
import sysconfig
import types
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = __package__ or "stickslip"
# begins a digest in which something counts by its identity: it says nothing to another process
UNSTABLE = "~"


def captured(*objects: Any) -> str:
    """A digest of the values that the functions of these objects (systems,
    methods) find outside of themselves.

    Functions of installed packages, and of this one, are taken as they are. What an object refers to that has
    no value to look at counts by its identity.
    """
    walk = _Walk()
    for x in objects:
        walk.instance(x)
    digest = hashlib.sha256("\0".join(walk.words).encode(errors="backslashreplace")).hexdigest()
    return digest if walk.lasting else UNSTABLE + digest


@functools.cache
def _is_library(module: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this one."""
    if module is None or module == "__main__":
        return False
    if module == _OURS or module.startswith(_OURS + "."):
        return not module.startswith(f"{_OURS}.benchmarks.")  # systems like a user's own
    file = getattr(sys.modules.get(module), "__file__", None)
    return module in sys.builtin_module_names or (file is not None and file.startswith(_LIBRARIES))


@functools.cache
def _version(module: str | None) -> str:
    """Of an installed package: when the files of it that are loaded were written."""
    top = (module or "").partition(".")[0]
    # known otherwise
    if not top or top in sys.stdlib_module_names or top in (_OURS, "jax", "jaxlib", "numpy", "equinox"):
        return ""
    files = {
        getattr(m, "__file__", None) for name, m in list(sys.modules.items()) if name.partition(".")[0] == top
    }
    times = [str(os.stat(file).st_mtime_ns) for file in sorted(filter(None, files)) if os.path.exists(file)]
    return hashlib.sha256(" ".join(times).encode()).hexdigest()


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """All names that a function looks up, and functions inside it."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))


def plain(x: Any) -> str:
    """A constant, in an order that is the same in every process; "" for what is none."""
    if isinstance(x, frozenset):
        return f"{{{', '.join(sorted(map(plain, x)))}}}"
    if isinstance(x, tuple):
        return f"({', '.join(map(plain, x))})"
    known = x is None or x is ... or isinstance(x, bool | int | float | complex | str | bytes)
    return repr(x) if known else ""


@functools.cache
def outline(code: types.CodeType) -> tuple[list[str], str]:
    """What never changes about a function: the names that it looks up,
    and its code with all constants in it.
    """

    def text(code: types.CodeType) -> str:
        constants = (
            text(c) if isinstance(c, types.CodeType) else f"{type(c).__name__} {plain(c)}"
            for c in code.co_consts
        )
        return "\0".join((code.co_code.hex(), *constants))

    return sorted(_names(code)), text(code)


class _Walk:
    """Everything once, in an order that does not depend on where things lie in memory."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.lasting = True  # whether another process would find the same words
        self.seen: dict[int, Any] = {}  # holds what it has seen, so that no number is given twice

    def add(self, *words: Any) -> None:
        self.words += map(str, words)
        self.words.append("\n")

    def instance(self, x: Any) -> None:
        """An object whose fields are arguments already: its class,
        and what it has that is no number or array.

        A function has no fields: all that it finds outside of itself is captured.
        """
        if isinstance(x, types.FunctionType | types.MethodType | functools.partial):
            return self.value(x)
        for cls in type(x).__mro__:
            if cls is not object and not _is_library(cls.__module__):
                self.of_class(cls)
        fields = dataclasses.fields(x) if dataclasses.is_dataclass(x) else ()
        static = {field.name for field in fields if field.metadata.get("static", False)}
        for name, value in sorted(getattr(x, "__dict__", {}).items()):
            self.add(name)
            self.value(value) if name in static else self.field(value)
        return None

    def field(self, x: Any) -> None:
        """Numbers and arrays are arguments, however deep they lie:
        another value must not mean another compilation.
        """
        if isinstance(x, jax.Array | np.ndarray | float | int):
            return
        if isinstance(x, tuple | list | dict):
            self.add(type(x).__name__, len(x), *(x if isinstance(x, dict) else ()))
            for part in x.values() if isinstance(x, dict) else x:
                self.field(part)
        elif isinstance(x, eqx.Module):
            self.add(type(x).__module__, type(x).__qualname__)
            self.instance(x)
        else:
            self.value(x)

    def of_class(self, cls: type) -> None:
        self.add("class", cls.__module__, cls.__qualname__)
        for name, value in sorted(vars(cls).items()):
            if not name.startswith("__") and name != "_abc_impl":
                self.add(name)
                self.value(value)

    def value(self, x: Any) -> None:  # noqa: PLR0911, PLR0912 (a list of cases)
        if x is None or isinstance(x, bool | int | float | complex | str | bytes):
            return self.add(type(x).__name__, repr(x))
        if id(x) in self.seen:
            return self.add("again")
        self.seen[id(x)] = x
        if isinstance(x, jax.core.Tracer):
            return self.identity("traced", x)
        if isinstance(x, np.ndarray | np.generic | jax.Array):
            array = np.asarray(x)
            self.add(array.dtype, array.shape)
            return self.add(hashlib.sha256(array.tobytes()).hexdigest())
        if isinstance(x, tuple | list):
            return self.each(type(x).__name__, x)
        if isinstance(x, set | frozenset):
            return self.each(type(x).__name__, sorted(x, key=repr))
        if isinstance(x, dict):
            return self.each("dict", (part for key in sorted(x, key=repr) for part in (key, x[key])))
        if isinstance(x, property):
            return self.each("property", (x.fget,))
        if isinstance(x, functools.partial):
            return self.each("partial", (x.func, x.args, x.keywords))
        if isinstance(x, types.MethodType):
            return self.each("method", (x.__func__, x.__self__))
        wrapped = getattr(x, "__wrapped__", None) or getattr(x, "__func__", None)
        if wrapped is not None:  # jax.jit, staticmethod, functools.wraps
            self.value(wrapped)
        if isinstance(x, types.FunctionType):
            return self.function(x)
        module = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", None)
        if isinstance(x, types.ModuleType | type) or wrapped is not None or _is_library(module):
            known = isinstance(x, type) and not _is_library(module)
            return self.of_class(x) if known else self.library(x, module)
        if hasattr(x, "__dict__"):
            self.of_class(type(x))
            return self.each("object", (vars(x),))
        return self.identity(type(x).__qualname__, x)

    def identity(self, kind: str, x: Any) -> None:
        """What has no value to look at: another object is another one."""
        self.lasting = False
        self.add(kind, id(x))

    def each(self, kind: str, parts: Iterable[Any]) -> None:
        self.add(kind)
        for part in parts:
            self.value(part)

    def library(self, x: Any, module: Any) -> None:
        """Something of a package: by its name and version; an object of one,
        such as a namespace, by what it holds.
        """
        self.add(_version(module), module, getattr(x, "__qualname__", type(x).__qualname__))
        if not isinstance(x, types.ModuleType | type) and not callable(x) and getattr(x, "__dict__", None):
            self.value(vars(x))

    def function(self, f: types.FunctionType) -> None:
        if _is_library(f.__module__):
            return self.add(_version(f.__module__), f.__module__, f.__qualname__)
        code = f.__code__
        names, text = outline(code)
        self.add("function", f.__qualname__, text)
        self.each("defaults", (f.__defaults__, f.__kwdefaults__))
        for cell in f.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:  # not filled yet
                self.add("empty")
        for name in names:
            if name in f.__globals__:
                self.add(name)
                self.looked_up(f.__globals__[name], names)
        return None

    def looked_up(self, x: Any, names: list[str]) -> None:
        """A global; of a module of the user's own, what is looked up in it."""
        if isinstance(x, types.ModuleType) and not _is_library(x.__name__):
            for name in names:
                if hasattr(x, name):
                    self.add(x.__name__, name)
                    self.looked_up(getattr(x, name), [n for n in names if n != name])
            return
        self.value(x)
