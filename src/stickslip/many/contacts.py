"""What a step of many bodies works on: the state, the list of contacts, coefficients, walls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class ContactList(NamedTuple):
    """Closed contacts of a step, in the order in which they are swept; the next step starts with them.

    Body ``a`` < ``b``; a wall w is the body  number of bodies + w.  ``capacity``: room in the lists of the
    search.
    """

    a: np.ndarray  # (contacts)
    b: np.ndarray  # (contacts)
    normal: np.ndarray  # (contacts, 3) from a to b
    gap: np.ndarray  # (contacts) in m, at the middle of the step or, with a position stage, at its end
    # percussions (contacts, 3) on b, below them torques times time if there is rolling or pivoting friction
    X: np.ndarray
    limit: np.ndarray  # (contacts) gap up to which it counts as closed in the next step; or a rate
    capacity: int
    R: np.ndarray = np.zeros((0, 3))  # as X, of the position stage, where there is one

    @classmethod
    def empty(cls, capacity: int) -> "ContactList":
        nothing, none = np.zeros(0), np.zeros(0, np.int64)
        return cls(none, none, np.zeros((0, 3)), nothing, np.zeros((0, 3)), nothing, capacity)


class State(NamedTuple):
    """All that the next step needs, bit for bit."""

    step: int
    x: np.ndarray  # (bodies, 3)
    rotation: np.ndarray  # (bodies, 4) quaternions (w, x, y, z)
    rows: np.ndarray  # (bodies + walls, 8): v, omega, 1/m, 1/theta
    contacts: ContactList


class Outcome(NamedTuple):
    """What a step is worth, computed from its percussions alone."""

    residual: float  # 2-norm of the natural map over that of the free relative velocities
    velocity_error: float  # its largest entry, in m/s
    sweeps: int
    contacts: int
    wall_percussion: np.ndarray  # (walls, 3) on the wall, in N s
    wall_moment: np.ndarray  # (walls, 3) about its place, in N m s


class Laws(NamedTuple):
    """Coefficients by the materials of a pair."""

    e_N: np.ndarray
    mu: np.ndarray
    rolling: np.ndarray  # in m
    pivoting: np.ndarray  # in m


class Walls:
    """All walls as arrays; their places and velocities at a time."""

    def __init__(self, walls: Sequence[Any]):
        self.walls = tuple(walls)
        self.kinds = np.array([w.kind for w in walls], np.int64)
        self.directions = np.array([w.direction for w in walls], float).reshape(-1, 3)
        self.sizes = np.array([w.size for w in walls], float)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places, velocities and angular velocities."""
        moved = [w.motion(t) for w in self.walls]
        place, velocity, spin = (np.array([m[k] for m in moved], float).reshape(-1, 3) for k in range(3))
        return place, velocity, spin
