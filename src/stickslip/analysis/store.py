"""Where the results of a sweep lie: a zarr group that grows block by block,
and that another process can go on with.

On the disk members lie one after another. A block of them is written in an order that survives being killed
at any moment: results, then the status that says they are there.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..captured import UNSTABLE
from ..extras import need_all

DONE, FAILED, MISSING = 1, 2, 0
MESSAGE = "<U240"


class Members(NamedTuple):
    """The parameters of a sweep: members in a row, and the shape they have as a grid, if they have one."""

    columns: dict[str, np.ndarray]  # by name, (members, ...)
    grid: dict[str, np.ndarray]  # by name, the values of each axis; {} for a list

    @property
    def number(self) -> int:
        return len(next(iter(self.columns.values())))

    def member(self, k: int) -> dict[str, Any]:
        return {name: column[k] for name, column in self.columns.items()}


class Results:
    """In memory; with a path, on the disk too."""

    def __init__(self, members: Members, run: str, out: Any, block: int) -> None:
        self.members, self.run, self.block = members, run, block
        self.status = np.zeros(members.number, dtype=np.int8)
        self.message = np.zeros(members.number, dtype=MESSAGE)
        self.values: dict[str, np.ndarray] = {}
        self._path = None if out is None else Path(out)
        self._group: Any = None
        if self._path is not None:
            need_all({"zarr": "cluster", "xarray": "files"}, "sweep(out=...)")
            if self._path.exists():
                self._take_up()

    # ---- what is there

    def _take_up(self) -> None:
        import zarr

        try:
            group: Any = zarr.open_group(str(self._path), mode="r+", zarr_format=2)
            known: dict[str, Any] = dict(group.attrs)
            if known.get("stickslip_sweep") != 1:
                raise KeyError
        except Exception as error:
            raise ValueError(
                f"out: {self._path} is there and is no sweep: give another name, or remove it"
            ) from error
        for name, column in self.members.columns.items():
            if name not in group or not np.array_equal(group[name][...], column):
                raise ValueError(
                    f"out: {self._path} has other values of {name}: a sweep is resumed with the parameters "
                    "it began with"
                )
        lasting = not known["run"].startswith(UNSTABLE) and not self.run.startswith(UNSTABLE)
        if lasting and known["run"] != self.run:
            raise ValueError(
                f"out: {self._path} was made by another function: give another name, or remove it"
            )
        own = {*self.members.columns, "status", "message"}
        self.status[:], self.message[:] = group["status"][...], group["message"][...]
        self.values = {name: group[name][...] for name in group.array_keys() if name not in own}
        self.block = int(group["status"].chunks[0])
        self._group = group

    @property
    def missing(self) -> list[np.ndarray]:
        """Blocks of members that nobody has computed."""
        starts = range(0, self.members.number, self.block)
        blocks = (np.arange(k, min(k + self.block, self.members.number)) for k in starts)
        return [block for block in (b[self.status[b] == MISSING] for b in blocks) if len(block)]

    # ---- what comes

    def add(self, which: np.ndarray, outcomes: list[Any]) -> None:
        """Outcomes are dicts of arrays, or a text that says what failed."""
        for k, outcome in zip(which, outcomes, strict=True):
            if isinstance(outcome, dict):
                self._values_of(k, outcome)
            else:
                self.status[k], self.message[k] = FAILED, outcome
        if self._path is not None and self.values:
            self._write(which)

    def _values_of(self, k: int, outcome: dict[str, np.ndarray]) -> None:
        if not self.values:
            for name in outcome.keys() & self.members.columns.keys():
                raise ValueError(
                    f"sweep: run returns {name!r}, which is the name of a parameter: call it otherwise"
                )
            self.values = {
                name: _empty(self.members.number, np.asarray(value)) for name, value in outcome.items()
            }
        if outcome.keys() != self.values.keys():
            self.status[k], self.message[k] = (
                FAILED,
                f"gave {sorted(outcome)} where others gave {sorted(self.values)}",
            )
            return
        for name, value in outcome.items():
            array = np.asarray(value)
            if array.shape != self.values[name].shape[1:]:
                text = f"{name} has shape {array.shape}, of others it is {self.values[name].shape[1:]}"
                self.status[k], self.message[k] = FAILED, text
                return
        for name, value in outcome.items():
            self.values[name][k] = value
        finite = all(np.all(np.isfinite(v)) for v in outcome.values() if np.asarray(v).dtype.kind in "fc")
        self.status[k], self.message[k] = (DONE, "") if finite else (FAILED, "not finite")

    def _write(self, which: np.ndarray) -> None:
        if self._group is None:
            self._create()
            which = np.flatnonzero(self.status != MISSING)
        blocks = sorted({int(k) // self.block for k in which})
        for b in blocks:
            part = slice(b * self.block, (b + 1) * self.block)
            for name, value in self.values.items():
                self._group[name][part] = value[part]
            self._group["message"][part] = self.message[part]
            self._group["status"][part] = self.status[part]  # last: from here on they are there

    def _create(self) -> None:
        """Under another name, until what it is to hold is stated: whatever has the name of a store is one."""
        import zarr

        assert self._path is not None
        begun = self._path.with_name(f"{self._path.name}.{os.getpid()}.begun")
        group: Any = zarr.open_group(str(begun), mode="w", zarr_format=2)
        arrays = {**self.members.columns, **self.values, "status": self.status, "message": self.message}
        for name, value in arrays.items():
            chunks = (self.block, *value.shape[1:])
            array = group.create_array(
                name, shape=value.shape, dtype=value.dtype, chunks=tuple(max(1, n) for n in chunks)
            )
            array.attrs["_ARRAY_DIMENSIONS"] = ["member", *(f"{name}_{i}" for i in range(value.ndim - 1))]
        for name, column in self.members.columns.items():
            group[name][...] = column
        grid = {name: [v.item() for v in values] for name, values in self.members.grid.items()}
        group.attrs.update({"stickslip_sweep": 1, "grid": json.dumps(grid), "run": self.run})
        os.replace(begun, self._path)
        self._group = zarr.open_group(str(self._path), mode="r+", zarr_format=2)

    # ---- as users have it

    def dataset(self) -> Any:
        (xr,) = need_all({"xarray": "files"}, "sweep")
        return labelled(xr, self.members, {**self.values, "status": self.status, "message": self.message})


def _empty(count: int, value: np.ndarray) -> np.ndarray:
    kind = value.dtype if value.dtype.kind in "fcib" else np.dtype(float)
    return np.full((count, *value.shape), np.nan if kind.kind in "fc" else 0, dtype=kind)


def labelled(xr: Any, members: Members, values: dict[str, np.ndarray]) -> Any:
    """A dataset over the axes of the grid, or over ``member``."""
    shape = tuple(len(axis) for axis in members.grid.values())
    dims = tuple(members.grid) or ("member",)

    def variable(name: str, value: np.ndarray) -> Any:
        rest = tuple(f"{name}_{i}" for i in range(value.ndim - 1))
        return (*dims, *rest), value.reshape((*(shape or value.shape[:1]), *value.shape[1:]))

    coordinates: dict[str, Any] = (
        dict(members.grid)
        if members.grid
        else {name: variable(name, column) for name, column in members.columns.items()}
    )
    data = {name: variable(name, value) for name, value in values.items()}
    sweep = xr.Dataset(data, coordinates)
    sweep["status"].attrs = {"flag_values": [MISSING, DONE, FAILED], "flag_meanings": "missing done failed"}
    return sweep


def open_sweep(path: Any) -> Any:
    """What a sweep has written so far, as an `xarray.Dataset`: over its grid, or over ``member``."""
    xr, zarr = need_all({"xarray": "files", "zarr": "cluster"}, "open_sweep")
    try:
        group: Any = zarr.open_group(str(path), mode="r", zarr_format=2)
        grid = json.loads(group.attrs["grid"])
    except (FileNotFoundError, KeyError) as error:
        raise ValueError(f"{path} is no sweep") from error
    arrays = {name: group[name][...] for name in group.array_keys()}
    others = {name: a for name, a in arrays.items() if name not in grid}
    if grid:
        members = Members(
            {name: arrays[name] for name in grid}, {name: np.asarray(axis) for name, axis in grid.items()}
        )
        return labelled(xr, members, others)
    return xr.Dataset({name: (group[name].attrs["_ARRAY_DIMENSIONS"], a) for name, a in arrays.items()})
