"""Solutions as files: netCDF-4 (HDF5), which xarray, h5py and many others read. No pickle.

    variables    what `sol.to_xarray()` has, see ``VARIABLES``; arrays are kept bit by bit
    record       bytes of a JSON: result, method, system, labels, shapes of all variables
    attributes   stickslip_format, a number that grows when older readers would misread a file; sha256 of all
                 else; what a person wants to know (title, system, method, result, stickslip_version)

A file is written under another name and takes its own when it is complete and on the disk: whoever opens it
finds the old file or the new one. Flipped bytes are found in arrays by HDF5's checksums (fletcher32),
elsewhere by the digest. Objects are recorded by class and fields and rebuilt from classes of this package
only: a file cannot make anything else run.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .dataset import (
    DERIVED,
    EVENTS,
    STATISTICS,
    VARIABLES,
    all_labels,
    dataset,
    dims_of,
    result_name,
    values_of,
)
from .events import Events
from .extras import need_all
from .methods.base import Method
from .results import RESULTS
from .serialize import RecordedMethod, RecordedSystem, describe, difference, rebuild, rebuildable, short
from .solution import Solution, Stats
from .system import System
from .validate import as_parameters

if TYPE_CHECKING:
    from xarray import Dataset

FORMAT = 2  # 1: what is "modes" now was called "state"
SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEADER = 96  # bytes of HDF5's superblock
NEEDED = {"xarray": "files", "h5netcdf": "files", "h5py": "files"}


class FileError(ValueError):
    """A file that `ss.load` cannot read; says why."""


def save(sol: Solution, path: str | os.PathLike) -> None:
    """See `Solution.save`."""
    path = Path(path)
    if path.suffix not in (".nc", ".npz"):
        raise ValueError(
            f"{path}: the name must end in .nc (netCDF, which ss.load reads) or .npz (arrays for numpy.load)"
        )
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in values_of(sol).items()}
        with writing(path) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)
        return
    need_all(NEEDED, f"sol.save of {path}")
    data = _with_record(sol)
    with writing(path) as part:
        data.to_netcdf(part, engine="h5netcdf", encoding=_encoding(data))


@contextlib.contextmanager
def writing(path: str | os.PathLike) -> Iterator[Path]:
    """Another name to write under, which becomes ``path`` when it is complete and on the disk;
    errors name ``path``.
    """
    target = Path(path).resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, part)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)  # it is there only if something failed, or somebody pressed Ctrl-C
        _sync_folder(target.parent)
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    """The new name on the disk as well; some systems cannot do that, and need not."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _with_record(sol: Solution) -> "Dataset":
    """What `to_xarray` gives, with all that a file has besides."""
    values = values_of(sol)
    record = {
        "result": result_name(sol.result),
        "system": describe(sol.system),
        "method": describe(sol.method),
        "labels": all_labels(sol),
        "shapes": {name: list(np.shape(value)) for name, value in values.items()},
        "event_names": None if sol.events is None else [list(sol.events.names), sol.events.n_laws],
        "jax": [name for name, value in values.items() if isinstance(value, jax.Array)],
    }
    text = np.frombuffer(json.dumps(record, ensure_ascii=False, allow_nan=False).encode(), dtype=np.uint8)
    data = dataset(sol, values).assign(
        record=("byte", text, {"long_name": "JSON from which stickslip makes the solution again"})
    )
    data.attrs |= {"stickslip_format": FORMAT}
    return data.assign_attrs(sha256=_digest(data))


def _encoding(data: "Dataset") -> dict[str, dict[str, Any]]:
    """Light compression and checksums, where HDF5 can have them:
    on arrays of numbers with something in them.
    """
    filters = {"zlib": True, "complevel": 1, "shuffle": True, "fletcher32": True}
    return {
        str(name): {"_FillValue": None} | (filters if v.ndim and v.size else {})
        for name, v in data.variables.items()
        if v.dtype.kind in "biuf"
    }


def _digest(data: "Dataset") -> str:
    """Of all that a file says, whatever its layout."""
    total = hashlib.sha256()

    def add(*words: Any) -> None:
        total.update("\0".join(map(str, words)).encode(errors="backslashreplace") + b"\n")

    for key in sorted(map(str, data.attrs)):
        if key != "sha256":
            add(key, data.attrs[key])
    for name in sorted(map(str, data.variables)):
        v = data.variables[name]
        add(name, v.attrs.get("long_name"), v.attrs.get("units"), v.dtype.kind in "biuf", *v.dims, *v.shape)
        if v.dtype.kind in "biuf":
            total.update(np.ascontiguousarray(v.values, dtype=v.dtype.newbyteorder("<")).tobytes())
        else:
            add(*v.values.ravel())
    return total.hexdigest()


def load(path: str | os.PathLike, system: System | None = None, method: Method | None = None) -> Solution:
    """A solution that `sol.save` wrote.

    Methods and systems of this package come back by themselves. Of a system (or method) of your own class the
    file holds name and parameters; give it again as ``system``, and it is compared with them. Without it
    everything computed is there, gaps and energy too, but whatever asks for mechanics is refused. A file that
    cannot be read raises `ss.FileError`.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix == ".npz":
        raise FileError(
            f"{path} holds arrays only: numpy.load reads it; ss.load reads what sol.save wrote as .nc"
        )
    data = _read(path)
    try:
        record = json.loads(data["record"].values.tobytes())
        shapes, held_by_jax = record["shapes"], set(record["jax"])
        of_system, of_method, labels = (record[key] for key in ("system", "method", "labels"))
        result = getattr(RESULTS, record["result"])
        event_names = record.get("event_names")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is damaged: its record cannot be read ({error!r})") from error
    today = {"state": "modes"} if data.attrs["stickslip_format"] == 1 else {}
    _check(path, data, shapes, today)
    values: dict[str, Any] = {}
    for name in shapes:
        array = data[name].values
        values[today.get(name, name)] = jnp.asarray(array) if name in held_by_jax else np.asarray(array)
    # Where there is a system, it answers these itself.
    rows = {name: values.pop(name) for name in DERIVED if name in values}
    stats = Stats(**{name: values.pop(name) for name in STATISTICS if name in values})
    if event_names is not None:
        t, code, source = (values.pop(name) for name in EVENTS)
        values["events"] = Events(t, code, source, tuple(event_names[0]), event_names[1])
    if system is None and not rebuildable(of_system):
        system = RecordedSystem(str(path), json.dumps(of_system), json.dumps(labels), rows)
    else:
        system = _object(path, "system", of_system, None if system is None else as_parameters(system))
    if method is None and not rebuildable(of_method):
        method = RecordedMethod(str(path), json.dumps(of_method))  # type: ignore[call-arg]
    else:
        method = _object(path, "method", of_method, method)
    return Solution(**values, result=result, stats=stats, system=system, method=method)


def _read(path: Path) -> "Dataset":
    """All of a file, if it is one of ours."""
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    with path.open("rb") as file:
        start = file.read(len(SIGNATURE))
    if not start:
        raise FileError(f"{path} is empty")
    if start != SIGNATURE[: len(start)]:
        raise FileError(f"{path} is not a netCDF-4 file: it does not start as HDF5 does")
    xr, _, h5py = need_all(NEEDED, f"ss.load of {path}")
    try:
        with h5py.File(path, "r") as file:
            found = file.attrs.get("stickslip_format")
            ours = None if found is None else np.ravel(found)[0]
    except Exception as error:  # damage has many faces
        cut = "truncated" in str(error) or path.stat().st_size < HEADER
        raise FileError(f"{path} is {'truncated' if cut else 'damaged'}: {error}") from error
    if ours is None:
        raise FileError(f"{path} was not written by stickslip: it has no attribute stickslip_format")
    if not isinstance(ours, np.integer) or ours < 1:
        raise FileError(f"{path} is damaged: stickslip_format is {ours}")
    if ours > FORMAT:
        raise FileError(
            f"{path} has format {ours}, this stickslip reads formats up to {FORMAT}: it needs a newer "
            "stickslip"
        )
    try:
        with xr.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
            return data.load()
    except Exception as error:
        raise FileError(f"{path} is damaged: {error}") from error


def _check(path: Path, data: "Dataset", shapes: dict[str, list[int]], today: dict[str, str]) -> None:
    """Whether everything is there as it was written."""
    unknown = [name for name in shapes if name not in VARIABLES]
    if unknown:
        raise FileError(f"{path} has variables this stickslip does not know: {', '.join(unknown)}")
    missing = [name for name in shapes if name not in data.variables]
    if missing:
        raise FileError(f"{path} is incomplete: {', '.join(missing)} is missing")
    for name, shape in shapes.items():
        found, dims = data.variables[name], dims_of(today.get(name, name), "u_dot_before" in shapes)
        if list(found.shape) != shape or found.dims != dims:
            have = f"{' x '.join(map(str, found.dims))} = {found.shape}"
            raise FileError(
                f"{path} has a wrong shape: {name} is {have}, expected {' x '.join(dims)} = {tuple(shape)}"
            )
    if _digest(data) != data.attrs.get("sha256"):
        raise FileError(f"{path} is damaged, or was changed: its content does not fit its digest")


def _object(path: Path, role: str, description: Any, given: Any) -> Any:
    """What was recorded: rebuilt, or as given if that is the same."""
    if given is None:
        try:
            return rebuild(description)
        except (AttributeError, TypeError, ValueError) as error:
            raise FileError(
                f"{path}: its {role} cannot be rebuilt: {error}; ss.load(path, {role}=...) takes yours"
            ) from error
    mine = describe(given)
    ours, yours = (short(x["class"]) for x in (description, mine))
    if ours != yours:
        raise ValueError(f"{path}: its {role} is a {ours}, but a {yours} was given")
    found = difference(description, mine)
    if found:
        raise ValueError(f"{path}: its {role} is another {ours}: {found}")
    return given
