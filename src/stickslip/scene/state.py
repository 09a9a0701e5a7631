"""A scene by name, at an instant."""

import fnmatch
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..validate import nearest
from .numbers import quaternion
from .tree import Poses, Twists, Velocities, turned


class Frames(eqx.Module):
    """Bodies in the links that carry them."""

    x: Any  # (bodies, 3)
    A: Any  # (bodies, 3, 3)
    names: tuple[str, ...] = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)
    masses: tuple[int, ...] = eqx.field(static=True)  # its number among bodies with mass, or -1


class JointEntry(NamedTuple):
    """Where a joint has its coordinates."""

    name: str
    kind: str  # name of its class
    q: tuple[int, int]
    u: tuple[int, int]


class Moved:
    """Poses, twists and velocities of an instant, each computed when somebody asks."""

    def __init__(self, system: Any, t, q: Array, u: Array):
        self.system, self.t, self.q, self.u = system, t, q, u

    @functools.cached_property
    def poses(self) -> Poses:
        return self.system.tree.poses(self.t, self.q)

    @functools.cached_property
    def twists(self) -> Twists:
        return self.system.tree.twists(self.t, self.poses)

    @functools.cached_property
    def velocities(self) -> Velocities:
        return self.system.tree.velocities(self.twists, self.u)


class State:
    """``state["box"]`` is a body, ``state["hip"]`` a joint, ``state["box", "floor"]`` what touches."""

    def __init__(self, moved: Moved):
        self._moved = moved

    def __getitem__(self, name: Any) -> Any:
        """By name."""
        system = self._moved.system
        if isinstance(name, tuple):
            return Touching(self._moved, contact_numbers(system, name))
        if name in system.frames.names:
            return BodyState(self._moved, system.frames.names.index(name))
        return JointState(self._moved, joint_entry(system, name))


class BodyState:
    """Of a body, at an instant."""

    def __init__(self, moved: Moved, i: int):
        self._moved, self._i = moved, i

    @property
    def _link(self) -> int:
        return self._moved.system.frames.links[self._i]

    @property
    def position(self) -> Array:
        """Of the body's frame, in the world; two numbers in a planar scene."""
        return self.at(jnp.zeros(3))

    @property
    def matrix(self) -> Array:
        """Rotation matrix, body to world."""
        return self._moved.poses.A[self._link] @ jnp.asarray(self._moved.system.frames.A)[self._i]

    @property
    def rotation(self) -> Array:
        """A unit quaternion, scalar first; in a planar scene the angle."""
        system, A = self._moved.system, self.matrix
        if not system.planar:
            return quaternion(A)
        entries = [j for j in system.joints if j.name == system.frames.names[self._i] and j.kind == "Free"]
        return self._moved.q[entries[0].q[0] + 2] if entries else jnp.arctan2(A[1, 0], A[0, 0])

    @property
    def velocity(self) -> Array:
        """Of the origin of the frame."""
        at, link = self._moved.poses, np.array([self._link])
        x = at.x[link] + turned(at.A[link], jnp.asarray(self._moved.system.frames.x)[self._i][None])
        v = self._moved.velocities.at(link, x)[0]
        return v[:2] if self._moved.system.planar else v

    @property
    def spin(self) -> Array:
        """Angular velocity in the body's frame; in a planar scene a number."""
        omega = self._moved.velocities.omega[self._link]
        return omega[2] if self._moved.system.planar else self.matrix.T @ omega

    @property
    def energy(self) -> Array:
        """Kinetic energy and that of its weight."""
        tree, k = self._moved.system.tree, self._moved.system.frames.masses[self._i]
        if k < 0:
            return jnp.zeros(())
        moved = self._moved
        return tree.kinetic(moved.poses, moved.twists, moved.velocities)[k] + tree.potential(moved.poses)[k]

    def at(self, point: Any) -> Array:
        """Where a point of the body is, in the world."""
        at = self._moved.poses
        frames = self._moved.system.frames
        p = jnp.asarray(point, dtype=float)
        p = jnp.concatenate([p, jnp.zeros(3 - p.shape[0])])
        x = at.x[self._link] + at.A[self._link] @ (
            jnp.asarray(frames.x)[self._i] + jnp.asarray(frames.A)[self._i] @ p
        )
        return x[:2] if self._moved.system.planar else x


class JointState:
    """Of a joint, at an instant."""

    def __init__(self, moved: Moved, entry: JointEntry):
        self._moved, self._entry = moved, entry

    @property
    def coordinates(self) -> Array:
        return self._moved.q[self._entry.q[0] : self._entry.q[1]]

    @property
    def rates(self) -> Array:
        return self._moved.u[self._entry.u[0] : self._entry.u[1]]

    def _single(self, what: str, kinds: tuple[str, ...]) -> None:
        if self._entry.kind not in kinds:
            raise AttributeError(
                f"{self._entry.name!r} is a {self._entry.kind} and has no {what}: its numbers are "
                ".coordinates and .rates"
            )

    @property
    def angle(self) -> Array:
        self._single("angle", ("Hinge",))
        return self.coordinates[0]

    @property
    def position(self) -> Array:
        self._single("position", ("Slider",))
        return self.coordinates[0]

    @property
    def rate(self) -> Array:
        self._single("rate", ("Hinge", "Slider"))
        return self.rates[0]

    @property
    def rotation(self) -> Array:
        self._single("rotation", ("BallJoint",))
        return self.coordinates


class Touching:
    """Of the slots of one body on another, at an instant."""

    def __init__(self, moved: Moved, numbers: list[int]):
        self._moved, self._numbers = moved, np.array(numbers)

    @property
    def gap(self) -> Array:
        return self._moved.system.g_N(self._moved.t, self._moved.q)[self._numbers]

    @property
    def point(self) -> Array:
        """Lowest points of the slots, in the world."""
        return self._moved.system.places(self._moved.poses).point[self._slots]

    @property
    def frame(self) -> Array:
        """Columns: two tangents and the normal, out of the plane or towards the first body."""
        return self._moved.system.places(self._moved.poses).frame[self._slots]

    @property
    def _slots(self) -> np.ndarray:
        return np.array(self._moved.system.order)[self._numbers]


def joint_entry(system: Any, name: Any) -> JointEntry:
    for entry in system.joints:
        if entry.name == name:
            return entry
    raise KeyError(
        str(nearest("body or joint", str(name), [*system.frames.names, *(j.name for j in system.joints)]))
    )


def contact_numbers(system: Any, names: tuple[Any, ...]) -> list[int]:
    """Of the contacts between two bodies or shapes, in either order, by name or pattern."""

    def meant(pattern: Any, *given: str) -> bool:
        return any(name and fnmatch.fnmatchcase(name, str(pattern)) for name in given)

    found = []
    for i, (body, ground, shape, plane) in enumerate(system.pairs):
        for a, b in (names, names[::-1]) if len(names) == 2 else ():
            if ground and meant(a, body, shape) and meant(b, ground, plane):
                found.append(i)
                break
    if not found:
        known = sorted({f"{a!r}, {b!r}" for a, b, *_ in system.pairs if b})
        raise KeyError(
            f"no contact between {' and '.join(map(repr, names))}; there are {'; '.join(known) or 'none'}"
        )
    return found
