"""Walls: planes and drums, at rest, moving or turning. Nobody writes a derivative."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .bodies import DEFAULT, numbers, positive

PLANE, DRUM = 0, 1  # kinds of walls


def _unit(owner: str, name: str, value: Any) -> np.ndarray:
    vector = numbers(owner, name, value, (3,))
    size = np.linalg.norm(vector)
    if size == 0.0:
        raise ValueError(f"{owner}({name}): {name} must not be zero")
    return vector / size


def _spatial(value: Any) -> Any:
    """A vector of the plane as one of space."""
    return (*value, 0.0) if np.shape(value) == (2,) else value


class _Wall:
    """What walls have in common: a place that may move."""

    place: Any
    moved: Callable[[Any], Any] | None
    material: str
    name: str

    @cached_property
    def _at(self) -> Any:
        def displaced(t: Any) -> Any:
            d = jnp.asarray(self.moved(t), dtype=float)  # type: ignore[misc]
            return jnp.concatenate([d, jnp.zeros(1)]) if d.shape == (2,) else d

        return jax.jit(lambda t: jax.jvp(displaced, (t,), (jnp.ones(()),)))

    def motion(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Place, velocity, angular velocity at a time."""
        if self.moved is None:
            return self.place, np.zeros(3), self.turning
        d, v = self._at(jnp.asarray(t, dtype=float))
        return self.place + np.asarray(d), np.asarray(v), self.turning

    @property
    def turning(self) -> np.ndarray:
        return np.zeros(3)

    def _checked_motion(self) -> None:
        owner = type(self).__name__
        if self.moved is not None:
            if not callable(self.moved):
                raise TypeError(
                    f"{owner}(moved={self.moved!r}): moved must be a function of t that gives a displacement"
                )
            shape = np.shape(self.moved(jnp.zeros(())))
            if shape not in ((2,), (3,)):
                raise ValueError(
                    f"{owner}(moved): moved(t) must have 3 components (2 in the plane), got shape {shape}"
                )
        for what in ("material", "name"):
            if not isinstance(getattr(self, what), str):
                raise TypeError(f"{owner}({what}={getattr(self, what)!r}): {what} must be a name")


@dataclass(frozen=True)
class Plane(_Wall):
    """A plane; bodies are on the side its normal points to. ``moved(t)``: displacement of its point, in m."""

    point: Any  # a point of it, in m
    normal: Any  # towards the bodies
    moved: Callable[[Any], Any] | None = None  # displacement as a function of t, or None
    material: str = DEFAULT  # a name that laws are given for
    name: str = "plane"  # of the wall

    kind, size = PLANE, 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", numbers("Plane", "point", _spatial(self.point), (3,)))
        object.__setattr__(self, "normal", _unit("Plane", "normal", _spatial(self.normal)))
        self._checked_motion()

    @property
    def place(self) -> np.ndarray:
        return self.point

    @property
    def direction(self) -> np.ndarray:
        return self.normal


@dataclass(frozen=True)
class Drum(_Wall):
    """A cylinder with the bodies in it, which turns about its axis; in the plane a circle."""

    centre: Any  # a point of its axis, in m
    radius: Any  # in m
    rate: Any = 0.0  # angular velocity about the axis, in rad/s
    axis: Any = (0.0, 0.0, 1.0)  # direction of the axis
    moved: Callable[[Any], Any] | None = None  # displacement as a function of t, or None
    material: str = DEFAULT  # a name that laws are given for
    name: str = "drum"  # of the wall

    kind = DRUM

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", numbers("Drum", "centre", _spatial(self.centre), (3,)))
        object.__setattr__(self, "radius", float(positive("Drum", "radius", self.radius, ())))
        object.__setattr__(self, "rate", float(numbers("Drum", "rate", self.rate, ())))
        object.__setattr__(self, "axis", _unit("Drum", "axis", self.axis))
        self._checked_motion()

    @property
    def place(self) -> np.ndarray:
        return self.centre

    @property
    def direction(self) -> np.ndarray:
        return self.axis

    @property
    def size(self) -> float:
        return self.radius

    @property
    def turning(self) -> np.ndarray:
        return self.rate * self.axis


def box(low: Any, high: Any, material: str = DEFAULT, lid: bool = False) -> tuple[Plane, ...]:
    """Floor and side walls of a box from one corner to the other, two or three components;
    with a ``lid``, closed.

    The last axis points upwards; walls are named "floor", "lid", "-x", "+x", "-y", "+y".
    """
    dim = len(low)
    if dim not in (2, 3) or len(high) != dim:
        raise ValueError(
            f"box(low, high): corners must have 2 or 3 components each, got {np.shape(low)} and "
            f"{np.shape(high)}"
        )
    if not np.all(np.asarray(high, float) > np.asarray(low, float)):
        raise ValueError(f"box(low={low}, high={high}): high must be above low in every component")
    walls = []
    for d in range(dim):
        up, upright = np.eye(dim)[d], d == dim - 1
        walls.append(Plane(low, up, material=material, name="floor" if upright else "-" + "xyz"[d]))
        if lid or not upright:
            walls.append(Plane(high, -up, material=material, name="lid" if upright else "+" + "xyz"[d]))
    return tuple(walls)
