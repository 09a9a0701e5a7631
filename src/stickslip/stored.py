"""Compiled programs on disk, ready to run: a process that finds its program there does not even trace it.

JAX keeps compiled code by the text of a program, which has to be traced first: half of what a second process
waits for. Here it is known by all that goes into tracing: what functions are and capture (`captured.py`),
shapes and static values of the arguments, versions, flags and the processor. Whatever cannot be told from one
process to the next is not stored.

What lies there is machine code, as in JAX's own cache: the folder should belong to whoever runs it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import re
import secrets
import sys
import threading
import types
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
import numpy as np
from jax.experimental import serialize_executable

from ._setup import cache_folder
from .captured import UNSTABLE, outline, plain

MOST = 400  # files; more, and the oldest go
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def folder() -> Path | None:
    """Where programs are kept, if they are."""
    return None if cache_folder is None else cache_folder / "programs"


@functools.cache
def _surroundings() -> str:
    """What programs depend on besides themselves: versions, flags, the processor,
    and this package's own files.
    """
    versions = [
        f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "equinox", "numpy")
    ]
    versions.append(platform.node())  # machines with one home may have other processors
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        versions += sorted(
            {line for line in text.splitlines() if line.startswith(("flags", "model name", "Features"))}
        )
    here = Path(__file__).parent
    own = [
        (str(p.relative_to(here)), p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(here.rglob("*.py"))
    ]
    return repr((platform.machine(), platform.python_version(), versions, own))


def _in_use() -> str:
    """The code of this package as it is now: whoever replaced a function or a constant has other programs."""
    now = _objects()
    before, digest = _looked_at
    if len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True)):
        return digest
    total = hashlib.sha256()
    for name in _modules:
        for key, value in vars(sys.modules[name]).items():
            total.update(
                f"{name}.{key} {type(value).__qualname__} {_content(value, name)}\n".encode(errors="replace")
            )
    _looked_at[:] = now, total.hexdigest()
    return _looked_at[1]


def _objects() -> list[Any]:
    """All that the digest is made of; the same objects have the same digest."""
    out: list[Any] = []
    for name in _modules:
        values = list(vars(sys.modules[name]).values())
        out += values
        for value in values:
            if isinstance(value, type) and value.__module__ == name:
                out += [
                    x
                    for key, x in vars(value).items()
                    if not key.startswith("__") or isinstance(x, types.FunctionType)
                ]
    return out


_looked_at: list[Any] = [[], ""]


def _content(x: Any, module: str) -> str:
    """Of a function its code, of a class that of its functions, of a constant its value."""
    x = getattr(x, "__wrapped__", None) or getattr(x, "__func__", None) or getattr(x, "fget", None) or x
    if isinstance(x, types.FunctionType):
        cells = tuple(c.cell_contents for c in x.__closure__ or () if c != types.CellType())
        defaults = (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
        return f"{outline(x.__code__)[1]} {plain(defaults)} {plain(cells)}"
    if isinstance(x, type):
        own = vars(x).items() if x.__module__ == module else ()
        # Python and others leave notes of their own on a class.
        told = [
            (key, value)
            for key, value in own
            if not key.startswith("__") or isinstance(value, types.FunctionType)
        ]
        return "".join(f"{key} {_content(value, module)}" for key, value in told)
    if isinstance(x, np.ndarray):
        return x.tobytes().hex()
    return plain(x)


_modules: list[str] = []


def know_modules(of: str = "") -> None:
    """Those that are there once the package, or a part ``of`` it, is imported:
    what comes later takes no part in a step.
    """
    found = {name for name in sys.modules if name.startswith(f"{__package__}.{of}")}
    _modules[:] = sorted(found.union(_modules))


def _tracing() -> str:
    """Settings of JAX that decide what is traced."""
    from jax._src import config

    return repr([x for x in config.trace_context() if not _ADDRESS.search(repr(x))])


def name_of(program: str, options: Any, structure: Any, statics: Any, kinds: Any) -> str | None:
    """What a program is known by; None where that says nothing to another process, or none is kept."""
    if folder() is None:
        return None
    try:
        parts = [program, options, structure, statics, kinds, _tracing(), os.environ.get("XLA_FLAGS", "")]
        parts += [_surroundings(), _in_use()]
    except Exception:  # another version of JAX that does not say
        return None
    text = "\0".join(_words(part) for part in parts)
    if _ADDRESS.search(text) or any(isinstance(x, str) and x.startswith(UNSTABLE) for x in statics):
        return None
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _words(part: Any) -> str:
    """Functions of this package are known by their names: their files are among the surroundings."""
    if isinstance(part, tuple):
        return f"({', '.join(map(_words, part))})"
    ours = getattr(part, "__module__", "") or ""
    return (
        f"{ours}.{part.__qualname__}" if callable(part) and ours.startswith(f"{__package__}.") else str(part)
    )


class Slot:
    """The place of an array in a result."""

    def __init__(self, number: int) -> None:
        self.number = number


def load(name: str | None) -> tuple[Any, Any] | None:
    """The program and the skeleton of its result, or None. Nothing that lies in a cache may do harm."""
    place = folder()
    if name is None or place is None:
        return None
    with contextlib.suppress(Exception):
        content = (place / name).read_bytes()
        digest, body = content[:32], content[32:]
        if hashlib.sha256(body).digest() != digest:
            return None
        payload, skeleton, count, lapack = pickle.loads(body)
        if lapack:
            _initialise_lapack()
        arrays = sum(isinstance(x, Slot) for x in jax.tree.leaves(skeleton))
        trees = (jax.tree.structure(((0,) * count, {})), jax.tree.structure([0] * arrays))
        program = serialize_executable.deserialize_and_load(payload, *trees)
        os.utime(place / name)
        return program, skeleton
    return None


@functools.cache
def _initialise_lapack() -> None:
    """JAX finds LAPACK when it lowers a call to it:
    a program that was never lowered in a process would jump to nowhere.
    """
    matrix = jax.ShapeDtypeStruct((2, 2), float)
    jax.jit(jax.lax.linalg.cholesky).lower(matrix)


def called(f: str, name: str | None) -> str:
    """What JAX shall call a program: its own cache then knows it only if ours has lost it."""
    return f if name is None else f"{f}_{name[:12]}"


def fresh(f: str, name: str | None, lowered: Any, again: Any) -> Any:
    """Compiled here and now where it is to be stored: what JAX has from its own cache cannot be written once
    more. ``again``: lowered under another name.
    """
    before = _hits()
    program = lowered.compile()
    if name is not None and _hits() > before:
        program = again(f"{f}_{secrets.token_hex(6)}").compile()
    return program


class _Heard(threading.local):
    hits = 0


_heard = _Heard()


def _listen(event: str, **_: Any) -> None:
    _heard.hits += event == "/jax/compilation_cache/cache_hits"


jax.monitoring.register_event_listener(_listen)


def _hits() -> int:
    """How often, in this thread, JAX found a program in its cache."""
    return _heard.hits


def save(name: str | None, program: Any, skeleton: Any, count: int) -> None:
    """``skeleton``: the result, with slots for its arrays; ``count``: of arrays that go in."""
    place = folder()
    if name is None or place is None:
        return
    # a full disk, classes that nobody can find again: then it is compiled again
    with contextlib.suppress(Exception):
        payload, _, _ = serialize_executable.serialize(program)
        body = pickle.dumps((payload, skeleton, count, "lapack" in program.as_text()))
        place.mkdir(parents=True, exist_ok=True)
        part = place / f".{secrets.token_hex(6)}.part"
        try:
            part.write_bytes(hashlib.sha256(body).digest() + body)
            os.replace(part, place / name)
        finally:
            part.unlink(missing_ok=True)
        files = sorted(place.iterdir(), key=lambda p: p.stat().st_mtime)
        for old in files[: max(0, len(files) - MOST)]:
            old.unlink(missing_ok=True)
