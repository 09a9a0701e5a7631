"""Rows and steps as they come: kept in memory."""

import math
from typing import Any, Protocol

import numpy as np

from .contacts import Outcome, State
from .solution import Contacts, ManySolution, ManyStats

PER_STEP = (
    "t", "residual", "velocity_error", "accepted", "sweeps", "parts", "contacts", "energy", "wall_percussion",
    "wall_moment",
)  # fmt: skip


class Recorder(Protocol):
    """What the time loop tells about a run."""

    def row(self, t: float, state: State) -> None: ...

    def step(self, t: float, outcome: Outcome, parts: int, energy: float) -> None: ...

    def finish(self, state: State) -> None: ...

    def solution(self, settings: dict[str, Any], interrupted: bool = False) -> ManySolution: ...


def listed(state: State) -> Contacts:
    """Contacts of a state as they are shown."""
    c = state.contacts
    a, X = np.asarray(c.a), np.asarray(c.X)
    n, used = len(a), a >= 0  # on a device lists are padded with -1
    keep = lambda part: np.asarray(part)[used]
    halves = lambda X: (X[:n][used] if len(X) else X, X[n:][used] if len(X) > n else X[n:])
    return Contacts(a[used], keep(c.b), keep(c.normal), keep(c.gap), *halves(X), *halves(np.asarray(c.R)))


def per_step(t: float, outcome: Outcome, parts: int, energy: float) -> tuple[Any, ...]:
    """In the order of ``PER_STEP``; whether it was accepted is known to who knows the tolerance."""
    o = outcome
    return (
        t, o.residual, o.velocity_error, False, o.sweeps, parts, o.contacts, float(energy), o.wall_percussion,
        o.wall_moment,
    )  # fmt: skip


def steps_of(settings: dict[str, Any]) -> int:
    """The last step is shortened, or takes in a rest shorter than 1e-3 dt."""
    return math.ceil((settings["t1"] - settings["t0"]) / settings["dt"] - 1e-3)


def stats_of(columns: dict[str, np.ndarray], tolerance: float) -> ManyStats:
    return ManyStats(**{**columns, "accepted": ~(columns["residual"] <= tolerance)})


class InMemory:
    """All rows as arrays."""

    def __init__(self, system: Any):
        self.system = system
        self._rows: list[tuple[float, State]] = []
        self._steps: list[tuple[Any, ...]] = []

    def row(self, t: float, state: State) -> None:
        self._rows.append((t, state))

    def step(self, t: float, outcome: Outcome, parts: int, energy: float) -> None:
        self._steps.append(per_step(t, outcome, parts, energy))

    def finish(self, state: State) -> None:
        pass

    def solution(self, settings: dict[str, Any], interrupted: bool = False) -> ManySolution:
        n, walls = len(self.system), len(self.system.walls.walls)
        states = [state for _, state in self._rows]
        columns = {name: np.array([s[k] for s in self._steps]) for k, name in enumerate(PER_STEP)}
        if not self._steps:
            columns["wall_percussion"] = columns["wall_moment"] = np.zeros((0, walls, 3))
        return ManySolution(
            self.system, np.array([t for t, _ in self._rows]), np.array([s.x for s in states]),
            np.array([s.rotation for s in states]), np.array([s.rows[:n, :3] for s in states]),
            np.array([s.rows[:n, 3:6] for s in states]), [listed(s) for s in states],
            stats_of(columns, settings["tolerance"]), settings["tolerance"], interrupted,
        )  # fmt: skip
