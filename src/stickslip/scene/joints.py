"""Joints: how a body moves in its parent. Angles are in rad, ways in m; ``at`` is a point of the body,
in its own frame.

``limits`` are contacts, with the coefficient of restitution ``e_N``; ``friction`` is dry (a force or torque
that sets in at once), ``damping`` viscous; ``stiffness`` is that of a spring about ``rest``; ``armature`` is
inertia of a drive that turns along, added to the diagonal of M.
"""

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from .numbers import is_known, library, number, numbers, vector
from .shapes import check_vector
from .tree import BALL, FREE, HINGE, PLANAR, SLIDE


class Link(NamedTuple):
    """An elementary joint, as the tree wants it."""

    kind: str
    axis: Any = (0.0, 0.0, 1.0)
    anchor: Any = (0.0, 0.0, 0.0)
    zero: Any = 0.0
    q0: Any = ()
    u0: Any = ()


class Joint(eqx.Module):
    """Between a body and its parent."""

    name: str = eqx.field(default="", static=True)
    damping: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    friction: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    armature: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    coordinates: ClassVar[tuple[str, ...]] = ()  # "name [unit]", of q
    velocities: ClassVar[tuple[str, ...]] = ()  # and of u, where they differ

    def links(self) -> list[Link]:
        raise NotImplementedError

    def check(self, planar: bool) -> None:
        who = f"joint {self.name!r}"
        if not isinstance(self.name, str):
            raise TypeError(f"{type(self).__name__}: its first argument is its name, got {self.name!r}")
        for field in ("damping", "friction", "armature"):
            value = getattr(self, field)
            if isinstance(value, float) and not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{who}: {field} must not be negative, got {value:g}")
            if isinstance(value, str) or value is None:
                raise TypeError(f"{who}: {field} must be a number, got {value!r}")


class _OneWay(Joint):
    """One degree of freedom."""

    axis: Any = eqx.field(default=(0.0, 0.0, 1.0), converter=numbers)
    limits: Any = eqx.field(
        default=None, converter=lambda x: x if x is None else tuple(map(number, x)), kw_only=True
    )
    e_N: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # of the limits
    stiffness: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    rest: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # where the spring is without force
    # coordinate at which the body is as ``at`` says
    zero: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    rate: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # at the start

    def check(self, planar: bool) -> None:
        super().check(planar)
        who = f"joint {self.name!r}"
        check_vector(who, "axis", self.axis, (3,))
        if is_known(self.axis) and not np.any(self.axis):
            raise ValueError(f"{who}: axis must not be zero")
        for field in ("stiffness", "rest", "zero", "rate", self.start):
            value = getattr(self, field)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{who}: {field} must be finite, got {value}")
            if isinstance(value, str) or value is None:
                raise TypeError(f"{who}: {field} must be a number, got {value!r}")
        if self.limits is not None:
            self._check_limits(who)

    def _check_limits(self, who: str) -> None:
        if len(self.limits) != 2:
            raise ValueError(f"{who}: limits must be (lower, upper), got {self.limits}")
        low, high = self.limits
        if is_known(low, high) and (not (low < high) or (math.isinf(low) and math.isinf(high))):
            raise ValueError(f"{who}: limits must be (lower, upper) with lower < upper, got ({low}, {high})")
        if is_known(self.e_N) and not 0.0 <= self.e_N <= 1.0:
            raise ValueError(f"{who}: e_N must be between 0 and 1, got {self.e_N}")

    @property
    def direction(self) -> Any:
        return self.axis / library(self.axis).sqrt((self.axis**2).sum())

    start: ClassVar[str] = ""


class Hinge(_OneWay):
    """Turns about ``axis`` through ``at``."""

    at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    angle: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # at the start
    coordinates: ClassVar = ("angle [rad]",)
    start: ClassVar = "angle"

    def check(self, planar: bool) -> None:
        super().check(planar)
        check_vector(f"joint {self.name!r}", "at", self.at, (3, 2))
        if planar and is_known(self.axis) and np.any(self.axis[:2]):
            raise ValueError(
                f"joint {self.name!r}: in a planar scene a hinge turns about z, got axis {self.axis.tolist()}"
            )

    def links(self) -> list[Link]:
        return [Link(HINGE, self.direction, self.at, self.zero, (self.angle,), (self.rate,))]


class Slider(_OneWay):
    """Slides along ``axis``."""

    position: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # at the start
    coordinates: ClassVar = ("way [m]",)
    start: ClassVar = "position"

    def check(self, planar: bool) -> None:
        super().check(planar)
        if planar and is_known(self.axis) and self.axis[2] != 0.0:
            raise ValueError(
                f"joint {self.name!r}: in a planar scene a slider moves in x and y, got axis "
                f"{self.axis.tolist()}"
            )

    def links(self) -> list[Link]:
        return [Link(SLIDE, self.direction, np.zeros(3), self.zero, (self.position,), (self.rate,))]


class BallJoint(Joint):
    """Turns freely about ``at``; ``limit`` is the largest angle from where it is as ``at`` says."""

    at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    rotation: Any = eqx.field(default=(1.0, 0.0, 0.0, 0.0), converter=numbers, kw_only=True)  # at the start
    spin: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)  # in the body, rad/s
    limit: Any = eqx.field(default=None, converter=number, kw_only=True)
    e_N: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    stiffness: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    coordinates: ClassVar = ("p_0 [1]", "p_1 [1]", "p_2 [1]", "p_3 [1]")
    velocities: ClassVar = ("omega_1 [rad/s]", "omega_2 [rad/s]", "omega_3 [rad/s]")

    def check(self, planar: bool) -> None:
        super().check(planar)
        who = f"joint {self.name!r}"
        if planar:
            raise ValueError(f"{who}: a planar scene has no ball joints: there a hinge does it")
        for field, size in (("at", 3), ("rotation", 4), ("spin", 3)):
            check_vector(who, field, getattr(self, field), (size,))
        if isinstance(self.limit, float) and not 0.0 < self.limit < math.pi:
            raise ValueError(f"{who}: limit must be an angle between 0 and pi, got {self.limit}")

    def links(self) -> list[Link]:
        return [
            Link(BALL, np.array([0.0, 0.0, 1.0]), self.at, 0.0, tuple(_unit(self.rotation)), tuple(self.spin))
        ]


class Universal(Joint):
    """Two hinges at one point: the first axis in the parent, the second in the body."""

    axes: Any = eqx.field(default=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), converter=numbers)
    at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    angles: Any = eqx.field(default=(0.0, 0.0), converter=numbers, kw_only=True)  # at the start
    rates: Any = eqx.field(default=(0.0, 0.0), converter=numbers, kw_only=True)
    coordinates: ClassVar = ("angle_1 [rad]", "angle_2 [rad]")

    def check(self, planar: bool) -> None:
        super().check(planar)
        who = f"joint {self.name!r}"
        if planar:
            raise ValueError(f"{who}: a planar scene has no universal joints: there a hinge does it")
        if np.shape(self.axes) != (2, 3):
            raise ValueError(f"{who}: axes must be two vectors of three numbers, got {self.axes}")
        if is_known(self.axes) and np.linalg.norm(np.cross(*self.axes)) < 1e-9 * np.prod(
            np.linalg.norm(self.axes, axis=1)
        ):
            raise ValueError(f"{who}: axes must not be parallel, got {np.asarray(self.axes).tolist()}")
        for field, size in (("at", 3), ("angles", 2), ("rates", 2)):
            check_vector(who, field, getattr(self, field), (size,))

    def links(self) -> list[Link]:
        return [
            Link(HINGE, _unit(self.axes[i]), self.at, 0.0, (self.angles[i],), (self.rates[i],))
            for i in range(2)
        ]


class Planar(Joint):
    """Slides along x and y of the parent and turns about z."""

    position: Any = eqx.field(default=(0.0, 0.0), converter=numbers, kw_only=True)  # at the start
    angle: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    velocity: Any = eqx.field(default=(0.0, 0.0), converter=numbers, kw_only=True)
    rate: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    coordinates: ClassVar = ("x [m]", "y [m]", "angle [rad]")

    def check(self, planar: bool) -> None:
        super().check(planar)
        for field in ("position", "velocity"):
            check_vector(f"joint {self.name!r}", field, getattr(self, field), (2,))

    def links(self) -> list[Link]:
        x, y, z = np.eye(3)
        none = np.zeros(3)
        return [
            Link(SLIDE, x, none, 0.0, (self.position[0],), (self.velocity[0],)),
            Link(SLIDE, y, none, 0.0, (self.position[1],), (self.velocity[1],)),
            Link(HINGE, z, none, 0.0, (self.angle,), (self.rate,)),
        ]


class Free(Joint):
    """All six degrees of freedom, or all three in a planar scene; of a body without a parent.

    It starts as the body says.
    """

    coordinates: ClassVar = ("x [m]", "y [m]", "z [m]", "p_0 [1]", "p_1 [1]", "p_2 [1]", "p_3 [1]")
    velocities: ClassVar = (
        "v_x [m/s]",
        "v_y [m/s]",
        "v_z [m/s]",
        "omega_1 [rad/s]",
        "omega_2 [rad/s]",
        "omega_3 [rad/s]",
    )

    def started(self, at: Any, rotation: Any, velocity: Any, spin: Any, planar: bool) -> Link:
        if planar:
            return Link(PLANAR, q0=(at[0], at[1], rotation), u0=(velocity[0], velocity[1], spin))
        return Link(FREE, q0=(*at, *rotation), u0=(*velocity, *spin))


class Weld(Joint):
    """No degree of freedom: the body is part of its parent."""

    def links(self) -> list[Link]:
        return []


def _unit(x: Any) -> Any:
    x = vector(*x)
    return x / library(x).sqrt((x * x).sum())
