"""``sol["box"]``, ``sol["hip"]``, ``sol["box", "floor"]``: a solution by name, a row for each time."""

import json
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..frames import SLIDE_1, SLIDE_2, columns_of
from ..serialize import RecordedSystem
from ..system import System
from ..validate import nearest
from .state import contact_numbers, joint_entry
from .system import SceneSystem


def named(sol: Any, name: Any) -> Any:
    """What a solution has of that name."""
    system = sol.system
    if isinstance(system, RecordedSystem) and "body_position" in system.rows:
        return _recorded(sol, name)
    if not isinstance(system, SceneSystem):
        raise KeyError(
            f"{name!r}: names are those of a scene; {type(system).__name__} is written down without"
        )
    if isinstance(name, tuple):
        return ContactView(sol, name)
    if name in system.frames.names:
        return BodyView(sol, name)
    return JointView(sol, name)


def body_poses(system: System, t: Any, q: Any, u: Any) -> Any:
    """Positions, rotations and velocities of all bodies, in space."""
    assert isinstance(system, SceneSystem)
    return system.body_poses(t, q, u)


class RecordedBody(NamedTuple):
    """Of a body, as a file has it whose scene had functions of its own."""

    position: Any
    rotation: Any
    velocity: Any


def _recorded(sol: Any, name: Any) -> RecordedBody:
    bodies = [label for label, *_ in json.loads(sol.system.labels)["body"]]
    if name not in bodies:
        raise KeyError(str(nearest("body", str(name), bodies)))
    k = bodies.index(name)
    return RecordedBody(*(sol.system.rows[f"body_{what}"][:, k] for what in RecordedBody._fields))


class _Row:
    """One property of something named, as a function of a row: hashable, so that it is compiled once."""

    _known: ClassVar[dict[tuple[Any, str], "_Row"]] = {}

    def __new__(cls, name: Any, what: str) -> "_Row":
        if (name, what) not in cls._known:
            cls._known[name, what] = super().__new__(cls)
        return cls._known[name, what]

    def __init__(self, name: Any, what: str):
        self.name, self.what = name, what
        self.__qualname__ = f"row of {name!r}: {what}"  # by which stored programs know it

    def __call__(self, system: System, t: Any, q: Any, u: Any) -> Any:
        assert isinstance(system, SceneSystem)
        return getattr(system.state(t, q, u)[self.name], self.what)


class _View:
    """Looks everything up for all rows when it is asked."""

    properties: tuple[str, ...] = ()

    def __init__(self, sol: Any, name: Any):
        self._sol, self._name = sol, name

    def _rows(self, what: str) -> Any:
        return self._sol._rows(_Row(self._name, what), "t", "q", "u")

    def __getattr__(self, what: str) -> Any:
        if what in type(self).properties:
            return self._rows(what)
        raise AttributeError(f"{self._name!r} has no {what}: it has {', '.join(self._there())}")

    def _there(self) -> tuple[str, ...]:
        return type(self).properties

    def __repr__(self) -> str:
        return f"<{self._name!r} of a solution: {', '.join(self._there())}>"


class BodyView(_View):
    """Of a body: ``position`` and ``velocity`` of its frame in the world, ``rotation`` (quaternion, scalar
    first; an angle in the plane) or ``matrix``, ``spin`` in its own frame, ``energy``. What its joint has, it
    has too."""

    properties = ("position", "rotation", "matrix", "velocity", "spin", "energy")

    def __getattr__(self, what: str) -> Any:
        if what in ("angle", "rate", "coordinates", "rates") and any(
            j.name == self._name for j in self._sol.system.joints
        ):
            return getattr(JointView(self._sol, self._name), what)
        return super().__getattr__(what)


class JointView(_View):
    """Of a joint: ``angle`` of a hinge, ``position`` of a slider, ``rotation`` of a ball joint, their
    ``rate``; of all ``coordinates`` and ``rates``."""

    def __init__(self, sol: Any, name: Any):
        super().__init__(sol, name)
        entry = joint_entry(sol.system, name)
        own = {"Hinge": "angle", "Slider": "position", "BallJoint": "rotation"}.get(entry.kind)
        self._entry = entry
        self._own = own

    def _there(self) -> tuple[str, ...]:
        rate = ("rate",) if self._own in ("angle", "position") else ()
        return (*([self._own] if self._own else ()), *rate, "coordinates", "rates", "friction", "limit")

    def __getattr__(self, what: str) -> Any:
        q, u = self._sol.q[..., slice(*self._entry.q)], self._sol.u[..., slice(*self._entry.u)]
        if what == self._own:
            return q if what == "rotation" else q[..., 0]
        if what == "rate" and self._own in ("angle", "position"):
            return u[..., 0]
        if what in ("coordinates", "rates"):
            return q if what == "coordinates" else u
        if what == "friction":  # percussions of dry friction
            system = self._sol.system
            first = self._sol.P_F.shape[-1] - len(system.rubbing)
            own = [
                first + k for k, j in enumerate(system.rubbing) if self._entry.u[0] <= j < self._entry.u[1]
            ]
            return self._sol.P_F[..., own]
        if what == "limit":  # percussions of the limit
            own = [
                i for i, pair in enumerate(self._sol.system.pairs) if pair[0] == self._name and not pair[1]
            ]
            return self._sol.P_N[..., own]
        return super().__getattr__(what)


class ContactView(_View):
    """Of the contacts between two bodies or shapes: percussions ``P_N`` (rows, slots) and ``P_F``, ``gap``,
    ``force`` (mean over the step, in the world), ``point`` where they act, ``state`` in words."""

    properties = ("gap", "point", "frame")

    def __init__(self, sol: Any, name: Any):
        super().__init__(sol, name)
        self._numbers = contact_numbers(sol.system, name)

    def _there(self) -> tuple[str, ...]:
        return ("P_N", "P_F", "gap", "point", "force", "state")

    @property
    def P_N(self) -> Any:
        return self._sol.P_N[..., np.array(self._numbers)]

    @property
    def P_F(self) -> Any:
        rows = friction_entries(self._sol.system)
        return self._sol.P_F[..., np.array([j for i in self._numbers for j in rows[i]], dtype=int)]

    @property
    def state(self) -> Any:
        return self._sol.state[..., np.array(self._numbers)]

    @property
    def force(self) -> Any:
        """(rows, 3): on the body, the sum over its slots."""
        sol = self._sol
        total = percussions_in_world(sol.system, self._numbers, self._rows("frame"), sol.P_N, sol.P_F).sum(
            axis=-2
        )
        dt = sol.dt[..., None]
        xp = np if isinstance(sol.t, np.ndarray) else jnp
        return total / xp.where(dt > 0.0, dt, xp.inf)


def percussions_in_world(system: SceneSystem, contacts: list[int], frame: Any, P_N: Any, P_F: Any) -> Any:
    """(rows, contacts, 3): P_N along the normals and sliding friction along the tangents,
    the columns of ``frame``.
    """
    entries = friction_entries(system)
    xp = np if isinstance(P_N, np.ndarray) else jnp
    out = []
    for k, i in enumerate(contacts):
        total = P_N[..., i, None] * frame[..., k, :, 2]
        for j, column in zip(entries[i], sliding_columns(system, i), strict=True):
            if column is not None:
                total = total + P_F[..., j, None] * frame[..., k, :, column]
        out.append(total)
    return xp.stack(out, axis=-2)


def friction_entries(system: SceneSystem) -> list[list[int]]:
    """By contact: its entries of P_F."""
    out, at = [], 0
    for rule in system.rule_of:
        size = sum(law.dimension for law in system.rules[rule].friction)
        out.append(list(range(at, at + size)))
        at += size
    return out


def sliding_columns(system: SceneSystem, contact: int) -> list[int | None]:
    """Of each entry of P_F of a contact: the tangent it acts along, None where it is a torque."""
    columns = [
        c for law in system.rules[system.rule_of[contact]].friction for c in columns_of(law, system.planar)
    ]
    return [c if c in (SLIDE_1, SLIDE_2) else None for c in columns]
