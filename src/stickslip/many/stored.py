"""A run in a zarr store, written as it comes: memory stays bounded, and a killed run loses at most one chunk.

Every chunk of rows is appended to the arrays, and then `checkpoint.npz` is replaced as a whole, which says
how much of them counts and has all that the next step needs: whatever a killed process left behind it is cut
off again by who goes on.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import need
from ..files import FileError
from .contacts import ContactList, Outcome, State
from .jacobi import AndersonJacobi
from .methods import LinearisedGaps, Moreau, Rattle
from .recorded import PER_STEP, listed, per_step, stats_of, steps_of
from .solution import Contacts, ManySolution
from .solvers import AndersonSOR

FORMAT = 2  # 1: a run of Moreau's rule, whose files need not name it
ROWS = {"position": 3, "rotation": 4, "velocity": 3, "spin": 3}
LISTED = {"a": (), "b": (), "normal": (3,), "gap": (), "P": (3,), "tau": (3,)}
METHODS = {"Moreau": Moreau, "Rattle": Rattle, "LinearisedGaps": LinearisedGaps}
STAGED = {"R": (3,), "R_tau": (3,)}  # of methods with two stages
SOLVERS = {"AndersonSOR": AndersonSOR, "AndersonJacobi": AndersonJacobi}


def _zarr() -> Any:
    return need("zarr", "many", "simulate(file=...)")


class StoredContacts:
    """contacts[k] of a stored run, read when asked for."""

    def __init__(self, group: Any, rows: int):
        self._group, self._end = group, group["end"][:rows]

    def __len__(self) -> int:
        return len(self._end)

    def __getitem__(self, k: int) -> Contacts:
        k = range(len(self))[k]
        first = int(self._end[k - 1]) if k else 0
        here = slice(first, int(self._end[k]))
        return Contacts(**{name: self._group[name][here] for name in _lists(self._group)})


def _lists(group: Any) -> tuple[str, ...]:
    """Names of the lists of contacts that a store has."""
    return (*LISTED, *(name for name in STAGED if name in group))


class Store:
    """Writes rows and steps of a run to a folder; a chunk of rows at a time."""

    def __init__(self, path: Path, system: Any, group: Any, settings: dict[str, Any], done: dict[str, int]):
        self.path, self.system, self.group, self.chunk = path, system, group, settings["chunk"]
        self._done = done  # rows, contacts and steps that the checkpoint counts
        self._rows: list[tuple[float, State]] = []
        self._steps: list[tuple[Any, ...]] = []
        self._state: State | None = None

    @classmethod
    def created(
        cls, file: str | os.PathLike, system: Any, settings: dict[str, Any], solver: Any, method: Any
    ) -> "Store":
        path = Path(file)
        if path.exists():
            raise FileExistsError(
                f"{path} exists: resume({str(file)!r}, system) goes on with it; choose another name for a "
                "new run"
            )
        group = _zarr().open_group(str(path), mode="w")
        n, walls, chunk = len(system), len(system.walls.walls), settings["chunk"]
        solved = {"name": type(solver).__name__, **vars(solver)}
        taken = {"name": type(method).__name__, **vars(method)}
        version = 1 if isinstance(method, Moreau) else FORMAT
        named = {"settings": settings, "solver": solved, "method": taken, "system": system.digest()}
        group.attrs.update(stickslip_many=version, bodies=n, **named)
        _array(group, "t", (), float, chunk)
        for name, width in ROWS.items():
            _array(group, name, (n, width), float, chunk)
        contacts = group.create_group("contacts")
        _array(contacts, "end", (), int, chunk)
        staged = STAGED if isinstance(method, Rattle) else {}
        for name, shape in (LISTED | staged).items():
            _array(contacts, name, shape, int if name in "ab" else float, max(4 * n * chunk, 1024))
        stats = group.create_group("stats")
        for name in PER_STEP:
            kind = int if name in ("sweeps", "parts", "contacts") else float
            _array(
                stats,
                name,
                (walls, 3) if name.startswith("wall_") else (),
                kind,
                max(chunk * settings["save_every"], 100),
            )
        return cls(path, system, group, settings, {"rows": 0, "contacts": 0, "steps": 0})

    @classmethod
    def opened(cls, file: str | os.PathLike, system: Any) -> tuple["Store", dict[str, Any], Any, Any, State]:
        """Of a run that ended or was killed: cut back to its last checkpoint."""
        path, group = Path(file), _group(file, "r+")
        if group.attrs["system"] != system.digest():
            raise FileError(
                f"{path} was written by a run of another system: bodies, walls, laws or gravity differ"
            )
        try:
            with np.load(path / "checkpoint.npz") as saved:
                data = dict(saved)
        except FileNotFoundError:
            raise FileError(
                f"{path} has no checkpoint: the run was killed before its first chunk; start it anew"
            ) from None
        except Exception as error:
            raise FileError(f"{path}: its checkpoint cannot be read: {error}") from error
        done = {name: int(data[name]) for name in ("rows", "contacts", "steps")}
        settings, solved = dict(group.attrs["settings"]), dict(group.attrs["solver"])
        store = cls(path, system, group, settings, done)
        store._cut()
        held = {name: data[name] for name in ContactList._fields if name in data}
        listed_before = ContactList(**{**held, "capacity": int(data["capacity"])})
        state = State(int(data["step"]), data["x"], data["rotation"], data["bodies"], listed_before)
        taken = dict(group.attrs.get("method", {"name": "Moreau"}))
        solver, method = SOLVERS[solved.pop("name")](**solved), METHODS[taken.pop("name")](**taken)
        return store, settings, solver, method, state

    def settings(self, settings: dict[str, Any]) -> None:
        self.group.attrs["settings"] = settings

    def _cut(self) -> None:
        """Arrays as long as the checkpoint says; nothing of them may be missing."""
        lengths = {
            "rows": ("t", *ROWS, "contacts/end"),
            "contacts": tuple(f"contacts/{name}" for name in _lists(self.group["contacts"])),
            "steps": tuple(f"stats/{name}" for name in PER_STEP),
        }
        for what, names in lengths.items():
            for name in names:
                array, length = self.group[name], self._done[what]
                if name.endswith("tau") and not self.system.turns:
                    length = 0
                if array.shape[0] < length:
                    raise FileError(
                        f"{self.path} is damaged: {name} has {array.shape[0]} entries, its checkpoint counts "
                        f"{length}"
                    )
                if array.shape[0] > length:
                    array.resize((length, *array.shape[1:]))

    def row(self, t: float, state: State) -> None:
        self._rows.append((t, state))
        self._state = state
        if len(self._rows) >= self.chunk:
            self._flush()

    def step(self, t: float, outcome: Outcome, parts: int, energy: float) -> None:
        self._steps.append(per_step(t, outcome, parts, energy))

    def finish(self, state: State) -> None:
        if self._rows or self._steps:
            self._state = state
            self._flush()

    def _flush(self) -> None:
        states, n = [state for _, state in self._rows], len(self.system)
        if states:
            self.group["t"].append(np.array([t for t, _ in self._rows]))
            for name, of in zip(ROWS, (_x, _rotation, _velocity, _spin), strict=True):
                self.group[name].append(np.array([of(s, n) for s in states]))
            lists = [listed(s) for s in states]
            ends = self._done["contacts"] + np.cumsum([len(c.a) for c in lists])
            self.group["contacts/end"].append(ends)
            for name in _lists(self.group["contacts"]):
                self.group[f"contacts/{name}"].append(np.concatenate([getattr(c, name) for c in lists]))
            self._done["contacts"] = int(ends[-1])
        for k, name in enumerate(PER_STEP):
            if self._steps:
                self.group[f"stats/{name}"].append(np.array([s[k] for s in self._steps]))
        self._done["rows"] += len(self._rows)
        self._done["steps"] += len(self._steps)
        self._rows, self._steps = [], []
        self._checkpoint()

    def _checkpoint(self) -> None:
        s = self._state
        assert s is not None
        new = self.path / "checkpoint.new.npz"
        with new.open("wb") as file:
            held: dict[str, Any] = {**self._done, **s.contacts._asdict()}
            np.savez(file, step=s.step, x=s.x, rotation=s.rotation, bodies=s.rows, **held)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path / "checkpoint.npz")

    def solution(self, settings: dict[str, Any], interrupted: bool = False) -> ManySolution:
        return _solution(self.system, self.group, settings, self._done, interrupted)


def _x(s: State, n: int) -> np.ndarray:
    return s.x


def _rotation(s: State, n: int) -> np.ndarray:
    return s.rotation


def _velocity(s: State, n: int) -> np.ndarray:
    return s.rows[:n, :3]


def _spin(s: State, n: int) -> np.ndarray:
    return s.rows[:n, 3:6]


def _array(group: Any, name: str, shape: tuple[int, ...], kind: type, chunk: int) -> None:
    dtype = np.dtype(np.int64 if kind is int else np.float64)
    group.create_array(name, shape=(0, *shape), chunks=(chunk, *(max(d, 1) for d in shape)), dtype=dtype)


def _group(file: str | os.PathLike, mode: Any) -> Any:
    path = Path(file)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        group = _zarr().open_group(str(path), mode=mode)
        version = group.attrs.get("stickslip_many")
    except Exception as error:
        raise FileError(f"{path} cannot be read as a zarr store: {error}") from error
    if version is None:
        raise FileError(f"{path} was not written by a run of many bodies: it has no attribute stickslip_many")
    if version > FORMAT:
        raise FileError(
            f"{path} has format {version}, this stickslip reads formats up to {FORMAT}: it needs a newer "
            "stickslip"
        )
    return group


def _solution(
    system: Any, group: Any, settings: dict[str, Any], done: dict[str, int], interrupted: bool
) -> ManySolution:
    rows, steps = done["rows"], done["steps"]
    columns = {name: group[f"stats/{name}"][:steps] for name in PER_STEP}
    return ManySolution(
        system, group["t"][:rows], **{name: group[name] for name in ROWS},
        contacts=StoredContacts(group["contacts"], rows),
        stats=stats_of(columns, settings["tolerance"]), tolerance=settings["tolerance"],
        interrupted=interrupted,
    )  # fmt: skip


def load(file: str | os.PathLike, system: Any) -> ManySolution:
    """What a run wrote up to its last checkpoint, also while it still runs; rows are read when asked for."""
    path, group = Path(file), _group(file, "r")
    if group.attrs["system"] != system.digest():
        raise FileError(
            f"{path} was written by a run of another system: bodies, walls, laws or gravity differ"
        )
    settings = dict(group.attrs["settings"])
    with np.load(path / "checkpoint.npz") as saved:
        done = {name: int(saved[name]) for name in ("rows", "contacts", "steps")}
    return _solution(system, group, settings, done, done["steps"] < steps_of(settings))
