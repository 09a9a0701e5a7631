"""A body, and what it weighs."""

import math
from typing import Any

import equinox as eqx
import numpy as np

from .joints import Joint
from .numbers import is_known, library, number, numbers
from .shapes import Hole, Plane, Shape, Surface, check_vector, combined, placed, space

WATER = 1000.0  # kg/m^3: the density of shapes of which nobody said what they weigh


class Body(eqx.Module):
    """A rigid body with a name and shapes: free, ``fixed``, hung to a ``parent`` by a ``joint``,
    or moved by ``motion``.

    ``at`` and ``rotation`` are those of its frame in its parent's, or in the world; so are ``velocity`` and,
    in its own frame, ``spin``. Of ``mass``, ``density``, ``inertia`` (principal moments or a matrix, about
    the centre of mass, along the axes of the frame) and ``centre`` what is not given follows from the shapes;
    without any of them they weigh as much as water. ``motion`` is a function of t that gives a position, or a
    position and a rotation.
    """

    name: str = eqx.field(static=True)
    shapes: tuple[Shape, ...]
    mass: Any = eqx.field(converter=number)
    density: Any = eqx.field(converter=number)
    inertia: Any = eqx.field(converter=numbers)
    centre: Any = eqx.field(converter=numbers)
    at: Any = eqx.field(converter=numbers)
    rotation: Any = eqx.field(converter=numbers)
    velocity: Any = eqx.field(converter=numbers)
    spin: Any = eqx.field(converter=numbers)
    fixed: bool = eqx.field(static=True)
    parent: str | None = eqx.field(static=True)
    joint: tuple[Joint, ...]
    motion: Any

    def __init__(
        self,
        name: str,
        *shapes: Shape,
        mass: Any = None,
        density: Any = None,
        inertia: Any = None,
        centre: Any = None,
        at: Any = None,
        rotation: Any = None,
        velocity: Any = None,
        spin: Any = None,
        fixed: bool = False,
        parent: str | None = None,
        joint: Any = (),
        motion: Any = None,
    ):
        self.name, self.fixed, self.parent, self.motion = name, fixed, parent, motion
        self.shapes = tuple(
            s for part in shapes for s in (part if isinstance(part, tuple | list) else (part,))
        )
        self.mass, self.density, self.inertia, self.centre = mass, density, inertia, centre
        self.at, self.rotation, self.velocity, self.spin = at, rotation, velocity, spin
        joints = tuple(joint) if isinstance(joint, tuple | list) else (joint,)
        self.joint = tuple(_named(j, name, i, joints) for i, j in enumerate(joints))

    @property
    def has_start(self) -> bool:
        return self.velocity is not None or self.spin is not None

    def check(self, planar: bool) -> None:
        who = f"body {self.name!r}"
        for shape in self.shapes:
            if not isinstance(shape, Shape):
                raise TypeError(f"{who}: a {type(shape).__name__} is not a shape such as Ball(0.1)")
            try:
                shape.check()
            except ValueError as error:
                raise ValueError(f"{who}, {error}") from None
            if planar and isinstance(shape, Surface):
                raise ValueError(
                    f"{who}, {shape}: a planar scene has none; it has Ball, Box, Capsule, Disc, Hull and "
                    "Plane"
                )
            if planar and getattr(shape, "z", None) is not None and type(shape).__name__ == "Ellipsoid":
                raise ValueError(
                    f"{who}: a planar scene has no ellipsoids; it has Ball, Box, Capsule, Disc, Hull and "
                    "Plane"
                )
            if not planar and getattr(shape, "z", 0.0) is None:
                raise ValueError(f"{who}, {shape}: in space a box has three edges, Box(x, y, z)")
        for field in ("mass", "density"):
            value = getattr(self, field)
            hangs = field == "mass" and bool(self.joint or self.parent)  # others may weigh enough for it
            if isinstance(value, float) and not (
                math.isfinite(value) and (value > 0.0 or (hangs and value == 0.0))
            ):
                raise ValueError(f"{who}: {field} must be positive, got {value:g}")
            if isinstance(value, str | bool):
                raise TypeError(f"{who}: {field} must be a number, got {value!r}")
        self._check_vectors(who, planar)
        self._check_way(who)
        for joint in self.joint:
            joint.check(planar)

    def _check_vectors(self, who: str, planar: bool) -> None:
        for field, sizes in (("at", (3, 2)), ("velocity", (3, 2)), ("centre", (3, 2))):
            if getattr(self, field) is not None:
                check_vector(who, field, getattr(self, field), sizes if planar else (3,))
        for field, size in (("rotation", 4), ("spin", 3)):
            value = getattr(self, field)
            if value is None or (planar and hasattr(value, "ndim") and value.ndim == 0):
                continue
            if planar:
                raise ValueError(f"{who}: in a planar scene {field} is a number, got {value}")
            check_vector(who, field, value, (size,))
        if self.inertia is not None and self.mass != 0.0:
            _check_inertia(who, self.inertia, planar)

    def _check_way(self, who: str) -> None:
        ways = {"fixed=True": self.fixed, "motion": self.motion is not None, "joint": bool(self.joint)}
        given = [name for name, there in ways.items() if there]
        if len(given) > 1:
            raise ValueError(f"{who}: {' and '.join(given)} exclude each other: it has one way to move")
        if self.has_start and (given or self.parent is not None):
            raise ValueError(
                f"{who}: velocity and spin are those of a free body; a joint has a rate of its own"
            )
        if self.motion is not None and not callable(self.motion):
            raise TypeError(f"{who}: motion must be a function of t, got {self.motion!r}")
        if self.motion is not None and (self.at is not None or self.rotation is not None):
            raise ValueError(f"{who}: motion says where it is: leave at and rotation away")
        for joint in self.joint:
            if not isinstance(joint, Joint):
                raise TypeError(f"{who}: {joint!r} is not a joint such as Hinge(axis=(0, 1, 0))")

    def weighed(self, planar: bool) -> tuple[Any, Any, Any]:
        """Mass, centre of mass and inertia about it, in the frame of the body."""
        who = f"body {self.name!r}"
        solid = [s for s in self.shapes if not isinstance(s, Plane | Hole)]
        density = WATER if self.density is None else self.density
        if not solid:
            if self.mass is None:
                raise ValueError(f"{who}: it has no mass: give it one, or shapes")
            inertia = np.zeros((3, 3)) if self.inertia is None else _matrix(self.inertia)
            return self.mass, np.zeros(3) if self.centre is None else space(self.centre), inertia
        mass, centre, inertia = combined([(density, s.solid(planar), *placed(s, planar)) for s in solid])
        if self.mass is not None:
            mass, inertia = self.mass, inertia * (self.mass / mass)
        if self.centre is not None:
            centre = space(self.centre)
        return mass, centre, inertia if self.inertia is None else _matrix(self.inertia)


def _named(joint: Any, body: str, i: int, joints: tuple[Any, ...]) -> Any:
    """A joint without a name has that of its body."""
    if not isinstance(joint, Joint) or joint.name:
        return joint
    out = object.__new__(type(joint))
    for key, value in vars(joint).items():
        object.__setattr__(out, key, value)
    object.__setattr__(out, "name", body if len(joints) == 1 else f"{body}.{i + 1}")
    return out


def _matrix(inertia: Any) -> Any:
    if inertia.ndim == 2:
        return inertia
    xp = library(inertia)
    if inertia.ndim == 0:  # about z, of a planar scene
        return inertia * np.eye(3)
    return inertia * xp.eye(3)


def _check_inertia(who: str, inertia: Any, planar: bool) -> None:
    shape = np.shape(inertia)
    if planar and shape == ():
        if is_known(inertia) and not inertia > 0.0:
            raise ValueError(f"{who}: inertia must be positive, got {float(inertia):g}")
        return
    if shape not in ((3,), (3, 3)):
        words = "a number, about z" if planar else "three principal moments or a symmetric 3 x 3 matrix"
        raise ValueError(f"{who}: inertia must be {words}, got shape {shape}")
    if not is_known(inertia):
        return
    matrix = np.asarray(_matrix(inertia))
    if not np.all(np.isfinite(matrix)) or not np.allclose(
        matrix, matrix.T, rtol=0.0, atol=1e-9 * np.abs(matrix).max()
    ):
        raise ValueError(f"{who}: inertia must be symmetric and finite, got {matrix.tolist()}")
    a, b, c = np.linalg.eigvalsh(matrix)
    if not (a > 0.0 and c <= (a + b) * (1.0 + 1e-9)):
        raise ValueError(
            f"{who}: no body has the inertia {np.asarray(inertia).tolist()}: principal moments ({a:g}, "
            f"{b:g}, {c:g}) must be"
            " positive, and none larger than the sum of the others"
        )
