"""Objects as JSON: class and fields, and back, for classes of this package only;
stand-ins for those of others.

A file that names a class cannot make anything run: nothing outside this package is looked up, let alone
imported.
"""

import contextlib
import dataclasses
import importlib
import json
import math
import re
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .laws import unchecked
from .methods.base import Method
from .system import System

PACKAGE = __name__.partition(".")[0]


def _name(x: Any) -> str:
    return f"{type(x).__module__}:{type(x).__qualname__}"


def describe(x: Any) -> Any:
    """What JSON can hold of an object; what it cannot is there by the name of its class."""
    name = _name(x)
    out: Any = {"other": name}
    # functions are told apart by their names, whatever they do
    if callable(x) and hasattr(x, "__qualname__"):
        out["function"] = f"{x.__module__}.{x.__qualname__}"
    if x is None or type(x) in (bool, int, str):
        out = x
    elif type(x) is float:
        out = x if math.isfinite(x) else {"float": repr(x)}
    elif isinstance(x, np.ndarray | np.generic | jax.Array) and x.dtype.kind in "biuf":
        flat = [v if math.isfinite(v) else repr(v) for v in np.asarray(x).ravel().tolist()]
        kind = "jax" if isinstance(x, jax.Array) else "scalar" if isinstance(x, np.generic) else "numpy"
        out = {"array": flat, "shape": list(x.shape), "dtype": x.dtype.name, "kind": kind}
        if getattr(x, "weak_type", False):
            out["weak"] = True
    elif type(x) in (tuple, list):
        out = {type(x).__name__: [describe(v) for v in x]}
    elif type(x) is dict and all(isinstance(key, str) for key in x):
        out = {"dict": {key: describe(v) for key, v in x.items()}}
    elif isinstance(x, RecordedSystem | RecordedMethod):
        out = json.loads(x.description)
    elif isinstance(x, tuple) and hasattr(x, "_fields"):
        out = {"class": name, "fields": {key: describe(v) for key, v in zip(x._fields, x, strict=True)}}
    elif isinstance(x, eqx.Module):
        out = {"class": name, "fields": {f.name: describe(getattr(x, f.name)) for f in dataclasses.fields(x)}}
    return out


def rebuild(description: Any) -> Any:
    """The object again."""
    match description:
        case None | bool() | int() | float() | str():
            out: Any = description
        case {"float": text}:
            out = float(text)
        case {"array": flat, "shape": shape, "dtype": dtype, "kind": kind}:
            numbers = [float(v) for v in flat] if np.dtype(dtype).kind == "f" else flat
            array = np.array(numbers, dtype=dtype).reshape(shape)
            # Python's numbers make weak types, and only they can be made again.
            weak = description.get("weak") and not shape
            out = (
                jnp.asarray(array.item() if weak else array)
                if kind == "jax"
                else array[()]
                if kind == "scalar"
                else array
            )
        case {"tuple": parts}:
            out = tuple(map(rebuild, parts))
        case {"list": parts}:
            out = list(map(rebuild, parts))
        case {"dict": parts}:
            out = {key: rebuild(v) for key, v in parts.items()}
        case {"class": name, "fields": fields}:
            with unchecked():  # what was saved comes back, sensible or not
                out = _class(name)(**{key: rebuild(v) for key, v in fields.items()})
        case _:
            raise ValueError(f"{description} cannot be rebuilt")
    return out


def _class(name: str) -> type:
    """A class of this package; nothing else is looked up, let alone imported."""
    module, _, qualname = name.partition(":")
    if not (_is_own(name) and re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)+", module)):
        raise ValueError(f"{name} is not a class of {PACKAGE}")
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
    found = getattr(sys.modules.get(module), qualname, None)
    ours = isinstance(found, type) and (issubclass(found, eqx.Module) or hasattr(found, "_fields"))
    if not (ours and found is not None and found.__module__ == module):
        raise ValueError(f"{name} is not a class of this {PACKAGE}")
    return found


def _is_own(name: str) -> bool:
    module, _, qualname = name.partition(":")
    return module.startswith(f"{PACKAGE}.") and qualname.isidentifier()


def rebuildable(description: Any) -> bool:
    if isinstance(description, list):
        return all(map(rebuildable, description))
    if not isinstance(description, dict):
        return True
    if "other" in description or not _is_own(description.get("class", f"{PACKAGE}.any:any")):
        return False
    return all(map(rebuildable, description.values()))


def class_name(x: Any) -> str:
    return json.loads(x.description)["class"] if isinstance(x, RecordedSystem | RecordedMethod) else _name(x)


def short(name: str) -> str:
    return name.partition(":")[2]


def readable(x: Any) -> str:
    """A description as one would type it."""
    match x:
        case {"class": name, "fields": fields}:
            text = f"{short(name)}({', '.join(f'{key}={readable(v)}' for key, v in fields.items())})"
        case {"tuple": parts} | {"list": parts}:
            text = f"({', '.join(map(readable, parts))})"
        case {"dict": parts}:
            text = f"{{{', '.join(f'{key}: {readable(v)}' for key, v in parts.items())}}}"
        case {"other": name}:
            text = short(name)
        case _:
            value = rebuild(x)
            text = repr(value.tolist() if hasattr(value, "tolist") else value)
    return text


def difference(a: Any, b: Any, where: str = "") -> str | None:
    """The first field in which what was given (b) differs from the file;
    how a number is held makes no difference.
    """
    if _is_number(a) and _is_number(b):
        x, y = np.asarray(rebuild(a)), np.asarray(rebuild(b))
        same = x.shape == y.shape and np.array_equal(x, y, equal_nan=True)
    elif (
        isinstance(a, dict) and isinstance(b, dict) and short(a.get("class", "")) == short(b.get("class", ""))
    ):
        parts = [_parts(a), _parts(b)]
        for key in (key for key in parts[0] if key in parts[1]):
            found = difference(parts[0][key], parts[1][key], f"{where}{key}")
            if found:
                return found
        same = parts[0].keys() == parts[1].keys() and all(a.get(k) == b.get(k) for k in ("other", "function"))
    else:
        same = a == b
    return (
        None
        if same
        else f"{where.lstrip('.')} is {readable(a)} in the file and {readable(b)} in what was given"
    )


def _parts(x: dict[str, Any]) -> dict[str, Any]:
    """What a description consists of, by place."""
    named = x.get("fields", x.get("dict", {}))
    counted = x.get("tuple", x.get("list", []))
    return {f".{key}": v for key, v in named.items()} | {f"[{i}]": v for i, v in enumerate(counted)}


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) or (isinstance(x, dict) and ("array" in x or "float" in x))


class RecordedSystem(System):
    """In the place of a system of somebody else's class: what the file says about it, without mechanics."""

    path: str = eqx.field(static=True)
    description: str = eqx.field(static=True)
    labels: str = eqx.field(static=True)
    rows: dict[str, Any]  # g_N and energy, as they were when the file was written

    @property
    def parameters(self) -> dict[str, Any]:
        return _parameters(self)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_no_class(self, "system", name))

    def _no_mechanics(self, *_: Any) -> Any:
        raise RuntimeError(_no_class(self, "system", "mechanics"))

    M = h = B = beta = g = gamma = g_N = gamma_F = _no_mechanics  # type: ignore[assignment]
    laws = switching_times = property(_no_mechanics)


class RecordedMethod(Method):
    """In the place of a method of somebody else's class, or with somebody else's solver."""

    path: str = eqx.field(static=True)
    description: str = eqx.field(static=True)

    @property
    def parameters(self) -> dict[str, Any]:
        return _parameters(self)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_no_class(self, "method", name))

    @property  # type: ignore[misc]
    def solver(self) -> Any:  # type: ignore[override]
        raise RuntimeError(_no_class(self, "method", "solver"))

    def init(self, *_: Any) -> Any:
        raise RuntimeError(_no_class(self, "method", "steps"))

    step = init  # type: ignore[assignment]


def _parameters(recorded: RecordedSystem | RecordedMethod) -> dict[str, Any]:
    fields = json.loads(recorded.description)["fields"]
    return {key: rebuild(v) if rebuildable(v) else readable(v) for key, v in fields.items()}


def _no_class(recorded: Any, role: str, wanted: str) -> str:
    name = short(json.loads(recorded.description)["class"])
    return (
        f"{wanted}: not at hand, because {name} is not a class of {PACKAGE} and of such the file has only "
        "`parameters`;"
        f" ss.load({recorded.path!r}, {role}={name}(...)) brings the {role} back"
    )
