"""A user's functions, called once at the door:
what is wrong with one is said in a sentence, with its name and its line.
"""

import contextlib
import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np

_LIBRARIES = tuple(str(Path(str(m.__file__)).parent) for m in (jax, equinox, np))
_OURS, _EXAMPLES = str(Path(__file__).parent), str(Path(__file__).parent / "benchmarks")


def returned(name: str, f: Any, arguments: str, *args: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of what ``f`` returns; raises where it cannot be called, traced or understood."""
    if not callable(f):
        raise TypeError(f"{name} must be a function {name}({arguments}), got {f!r}")
    _check_signature(name, f, arguments, args)
    try:
        jaxpr, shape = jax.make_jaxpr(lambda *args: _as_numbers(name, f(*args)), return_shape=True)(*args)
    except _Unreadable as problem:
        raise TypeError(str(problem)) from None
    except NotImplementedError:  # of ours: a function that is required, by its name
        raise
    except Exception as error:
        sentence = _explained(name, error)
        if sentence is None:
            error.add_note(f"stickslip called {name}({arguments}) to see what it returns.")
            raise
        raise TypeError(sentence) from None
    _check_indices(name, jaxpr)
    return shape


@contextlib.contextmanager
def explaining() -> Iterator[None]:
    """What only shows when a user's functions are called again, in the same words."""
    try:
        yield
    except (jax.errors.JAXTypeError, jax.errors.UnexpectedTracerError) as error:
        sentence = _explained("a function of the system", error)
        if sentence is None:
            raise
        raise TypeError(sentence) from None


class _Unreadable(Exception):
    """Something that is no array of numbers."""


def _as_numbers(name: str, out: Any) -> Any:
    if out is None:
        raise _Unreadable(f"{name} returns None: its `return` is missing")
    leaves = jax.tree.leaves(out)
    if (
        isinstance(out, dict | str | set)
        or callable(out)
        or any(isinstance(x, str) or callable(x) for x in leaves)
    ):
        raise _Unreadable(
            f"{name} returns {out!r}: it must return an array of numbers, such as jnp.array([...])"
        )
    try:
        array = jnp.asarray(out)
    except (TypeError, ValueError):
        shapes = [np.shape(x) for x in out] if isinstance(out, tuple | list) else type(out).__name__
        raise _Unreadable(
            f"{name} returns entries of shapes {shapes}, which make no array: numbers go into "
            "jnp.array([...]), arrays into"
            " jnp.concatenate([...])"
        ) from None
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise _Unreadable(f"{name} returns {array.dtype}: it must return real numbers")
    return array


def _check_signature(name: str, f: Any, arguments: str, args: tuple[Any, ...]) -> None:
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # written in C: nobody knows
        return
    try:
        signature.bind(*args)
    except TypeError:
        raise TypeError(
            f"{name}{signature} is called as {name}({arguments}): it must take these arguments"
        ) from None


def _users_line(error: BaseException) -> tuple[str, str, bool]:
    """The last line of the user's own, as "file.py, line 7" and its text,
    and whether the error was raised in it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    for i, frame in reversed(list(enumerate(frames))):
        theirs = not frame.filename.startswith(_LIBRARIES)
        if theirs and (not frame.filename.startswith(_OURS) or frame.filename.startswith(_EXAMPLES)):
            text = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
            return f"{Path(frame.filename).name}, line {frame.lineno}", text, i == len(frames) - 1
    return "", "", False


def _explained(name: str, error: Exception) -> str | None:
    """One sentence about what JAX could not do with a user's line;
    None where Python's own words are clear.
    """
    where, text, own = _users_line(error)
    remedy = _remedy(error, text)
    if remedy is None:
        if own or not where or isinstance(error, AttributeError | NameError):
            return None  # the last line of the traceback is the user's
        first = (str(error).splitlines() or [""])[0]
        remedy = f"{type(error).__name__}: {first}"
    place = f"{name} ({where}: `{text}`)" if where else name
    return f"{place} {remedy}"


_LATER = "that is not known yet when the function is compiled"


def _remedy(error: Exception, text: str) -> str | None:
    words = str(error)
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind) if isinstance(kind, type) else kind in words:
            return remedy(text) if callable(remedy) else remedy
    return None


def _numpy(text: str) -> str:
    """In a line that calls functions of another library: what to call instead."""
    found = re.search(r"\b(?:np|numpy|math|cmath|scipy)\.([\w.]+)", text)
    return f"write jnp.{found.group(1).split('.')[-1]} in place of {found.group(0)}" if found else ""


def _number(text: str) -> str:
    if re.search(r"\.(item|tolist)\(", text):
        return f"needs the value of a number {_LATER}: leave .item() and .tolist() away"
    if "print" in text or re.search(r"f['\"].*\{|%\s*[\(\w]|\.format\(", text):
        return f'needs the digits of a number {_LATER}: write jax.debug.print("{{}}", x) to see it'
    other = "leave float(...) and int(...) away, functions are those of jax.numpy (jnp)"
    return f"needs the value of a number {_LATER}: {_numpy(text) or other}"


def _decision(text: str) -> str:
    for words, remedy in (
        (r"\bmax\(", "write jnp.maximum(a, b)"),
        (r"\bmin\(", "write jnp.minimum(a, b)"),
        (r"\bwhile\b", "use jax.lax.while_loop, or a fixed number of passes"),
        (r"\bassert\b", "leave the assertion away, or check the solution afterwards"),
    ):
        if re.search(words, text):
            return remedy
    if re.search(r"\b(and|or|not)\b", text) and not re.search(r"\bif\b", text):
        return "write jnp.logical_and(a, b), jnp.logical_or(a, b) or jnp.logical_not(a)"
    return "write jnp.where(condition, a, b)"


_REMEDIES: dict[Any, Any] = {  # by class, or by words of the message; the first that fits
    FrozenInstanceError: (
        "changes a field of the system: fields are fixed once it is made, what changes belongs to q and u"
    ),
    jax.errors.TracerBoolConversionError: lambda text: f"decides by a number {_LATER}: {_decision(text)}",
    jax.errors.NonConcreteBooleanIndexError: (
        f"picks entries by a condition {_LATER}: keep all and write jnp.where(condition, a, b)"
    ),
    jax.errors.TracerIntegerConversionError: (
        f"counts or indexes by a number {_LATER}: index a jnp.array instead of a list, or write "
        "jnp.where(...)"
    ),
    jax.errors.TracerArrayConversionError: lambda text: (
        f"calls NumPy with a number {_LATER}: {_numpy(text) or 'use jax.numpy (jnp) throughout'}"
    ),
    jax.errors.ConcretizationTypeError: _number,
    "__format__": _number,
    jax.errors.UnexpectedTracerError: (
        "uses a value that an earlier call has stored: compute it anew from t, q and u"
    ),
    "scalar index": (
        f"counts by a number {_LATER}: give range(...) a whole number that is no parameter and no state"
    ),
    "immutable": (
        "assigns to an entry of an array: write x = x.at[i].set(value), or jnp.array([...]) of the entries"
    ),
}


# -- entries that are not there
# ------------------------------------------------------------------------------------
def _check_indices(name: str, jaxpr: Any) -> None:
    """JAX reads the last entry where an index is too large, and says nothing."""
    known: dict[Any, int] = {}

    def value(x: Any) -> Any:
        if hasattr(x, "val"):
            return x.val if np.ndim(x.val) == 0 else None
        return known.get(x)

    for equation in jaxpr.jaxpr.eqns:
        kind, inputs = equation.primitive.name, equation.invars
        constant = [value(x) for x in inputs]
        if kind in _FOLDED and None not in constant:
            known[equation.outvars[0]] = _FOLDED[kind](*constant)
        if kind == "dynamic_slice":
            shape, sizes = inputs[0].aval.shape, equation.params["slice_sizes"]
            for axis, (start, size, length) in enumerate(zip(constant[1:], sizes, shape, strict=True)):
                if start is not None and not 0 <= int(start) <= length - size:
                    raise IndexError(
                        f"{name}{_source(equation)} reads entry {int(start)} of axis {axis} of an array of "
                        f"shape {shape}:"
                        " entries are counted from 0"
                    )


_FOLDED: dict[str, Callable[..., Any]] = {
    "lt": lambda a, b: a < b,
    "add": lambda a, b: a + b,
    "select_n": lambda which, *cases: cases[int(which)],
    "convert_element_type": lambda a: a,
}


def _source(equation: Any) -> str:
    """Where a user wrote it, if this version of JAX says."""
    frames = getattr(getattr(equation.source_info, "traceback", None), "frames", None) or ()
    for frame in frames:
        theirs = not frame.file_name.startswith((*_LIBRARIES, _OURS)) and not frame.file_name.startswith("<")
        if theirs:
            text = linecache.getline(frame.file_name, frame.line_num).strip()
            return f" ({Path(frame.file_name).name}, line {frame.line_num}: `{text}`)"
    return ""
