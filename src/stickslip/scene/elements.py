"""What acts between bodies: contact rules, drives, springs, loops, forces.

Points are given in the frame of their body; "world" is a body too. Functions of yours take (t, state), where
``state["box"].position`` and ``state["hip"].angle`` are what they are in a solution, at this instant.
"""

import math
from typing import Any

import equinox as eqx
import numpy as np

from .. import laws
from .numbers import is_known, number, numbers
from .shapes import check_vector


def _laws(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def several(names: Any) -> tuple[Any, ...]:
    """A name, or names, as names."""
    return tuple(names) if isinstance(names, tuple | list) else (names,)


class Contact(eqx.Module):
    """Whatever has the first name may touch whatever has the second: bodies or shapes,
    by name or pattern ("wheel*").

    A name may be a tuple of names. ``mu`` is Coulomb friction; ``friction`` is any law of `ss` or several.
    Later rules replace earlier ones.
    """

    first: Any = eqx.field(static=True)
    second: Any = eqx.field(static=True)
    e_N: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    e_F: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    mu: Any = eqx.field(default=None, converter=number, kw_only=True)
    friction: Any = eqx.field(default=(), converter=_laws, kw_only=True)

    def check(self, planar: bool) -> None:
        who = str(self)
        for name in (*several(self.first), *several(self.second)):
            if not isinstance(name, str):
                raise TypeError(f"{who}: a contact is between two names, got {name!r}")
        if self.mu is not None and self.friction:
            raise ValueError(f"{who}: mu is Coulomb friction already: give mu, or friction=...")
        try:
            law = self.law(planar)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{who}: {error}") from None
        for friction in law.friction:
            kind = type(friction).__name__
            if planar and (friction.dimension > 1 or isinstance(friction, laws.Pivoting)):
                raise ValueError(f"{who}: {kind} acts in space; a planar scene has laws of one velocity")
            if not planar and friction.dimension == 1 and not isinstance(friction, laws.Pivoting):
                raise ValueError(f"{who}: in space {kind} has two velocities: {kind}(..., dim=2)")

    def law(self, planar: bool) -> laws.Contact:
        friction = self.friction
        if self.mu is not None:
            friction = (laws.Coulomb(self.mu, dim=1 if planar else 2),)
        return laws.Contact(e_N=self.e_N, e_F=self.e_F, friction=friction)

    def __str__(self) -> str:
        return f"Contact({self.first!r}, {self.second!r})"


class NoContact(eqx.Module):
    """Takes pairs out again."""

    first: str = eqx.field(static=True)
    second: str = eqx.field(static=True)

    def check(self, planar: bool) -> None:
        pass

    def __str__(self) -> str:
        return f"NoContact({self.first!r}, {self.second!r})"


def _finite(who: str, **values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, str | bool) or value is None:
            raise TypeError(f"{who}: {name} must be a number, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{who}: {name} must be finite, got {value}")


class Motor(eqx.Module):
    """A drive of a joint: gear times (gain times control, plus bias . (1, way, rate)), within ``limits``.

    ``control`` is a number, or a function of (t, state). ``bias`` makes a servo: gain k and bias (0, -k, -d)
    hold the way at ``control``.
    """

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    control: Any = eqx.field(default=0.0, converter=number)
    gear: Any = eqx.field(default=1.0, converter=number, kw_only=True)
    gain: Any = eqx.field(default=1.0, converter=number, kw_only=True)
    bias: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    control_limits: Any = eqx.field(default=(-math.inf, math.inf), converter=numbers, kw_only=True)
    # of the force, before the gear
    limits: Any = eqx.field(default=(-math.inf, math.inf), converter=numbers, kw_only=True)

    def check(self, planar: bool) -> None:
        who = f"motor {self.name!r}"
        _finite(who, gear=self.gear, gain=self.gain)
        if not callable(self.control):
            _finite(who, control=self.control)
        check_vector(who, "bias", self.bias, (3,))
        for field in ("limits", "control_limits"):
            value = getattr(self, field)
            if np.shape(value) != (2,) or (is_known(value) and not value[0] <= value[1]):
                raise ValueError(f"{who}: {field} must be (lower, upper), got {value}")


def servo(name: str, joint: str, target: Any = 0.0, *, stiffness: float, damping: float = 0.0) -> Motor:
    """A motor that holds a joint at an angle or way, a number or a function of (t, state)."""
    return Motor(name, joint, target, gain=stiffness, bias=(0.0, -stiffness, -damping))


class Spring(eqx.Module):
    """Between points of two bodies, with ``length`` where it is without force, and a damper along it."""

    first: str = eqx.field(static=True)
    second: str = eqx.field(static=True)
    stiffness: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    damping: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    length: Any = eqx.field(default=0.0, converter=number, kw_only=True)
    first_at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    second_at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    name: str = eqx.field(default="", static=True, kw_only=True)

    def check(self, planar: bool) -> None:
        who = f"Spring({self.first!r}, {self.second!r})"
        _finite(who, stiffness=self.stiffness, damping=self.damping, length=self.length)
        check_vector(who, "first_at", self.first_at, (3, 2))
        check_vector(who, "second_at", self.second_at, (3, 2))


class Force(eqx.Module):
    """A force on a body at a point, in the world, and a torque: vectors, or functions of (t, state)."""

    body: str = eqx.field(static=True)
    force: Any = eqx.field(default=None, converter=lambda x: x if x is None or callable(x) else numbers(x))
    torque: Any = eqx.field(
        default=None, converter=lambda x: x if x is None or callable(x) else numbers(x), kw_only=True
    )
    at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)

    def check(self, planar: bool) -> None:
        who = f"Force({self.body!r})"
        if self.force is None and self.torque is None:
            raise ValueError(f"{who}: give a force, a torque or both")
        if self.force is not None and not callable(self.force):
            check_vector(who, "force", self.force, (3, 2))
        if self.torque is not None and not callable(self.torque) and np.shape(self.torque) != ():
            check_vector(who, "torque", self.torque, (3,))
        check_vector(who, "at", self.at, (3, 2))


class _Between(eqx.Module):
    """A constraint between two bodies."""

    first: str = eqx.field(static=True)
    second: str = eqx.field(static=True)
    first_at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)
    second_at: Any = eqx.field(default=None, converter=numbers, kw_only=True)
    name: str = eqx.field(default="", static=True, kw_only=True)

    def check(self, planar: bool) -> None:
        who = f"{type(self).__name__}({self.first!r}, {self.second!r})"
        check_vector(who, "first_at", self.first_at, (3, 2))
        if self.second_at is not None:
            check_vector(who, "second_at", self.second_at, (3, 2))


class Connect(_Between):
    """A point of one body stays on a point of another: closes a loop.

    Without ``second_at``, where they are at the start.
    """


class Glue(_Between):
    """Two bodies stay as they are at the start, or as ``place`` says:
    position and quaternion of the second.
    """

    place: Any = eqx.field(default=None, kw_only=True)


class Rod(_Between):
    """Points of two bodies keep their distance: without ``length``, that of the start."""

    length: Any = eqx.field(default=None, converter=number, kw_only=True)

    def check(self, planar: bool) -> None:
        super().check(planar)
        if isinstance(self.length, float) and not (math.isfinite(self.length) and self.length > 0.0):
            raise ValueError(
                f"Rod({self.first!r}, {self.second!r}): length must be positive, got {self.length:g}"
            )


class Coupling(eqx.Module):
    """The coordinate of one joint is a polynomial of another's: q = a_0 + a_1 q' + ..., a gear or a screw."""

    joint: str = eqx.field(static=True)
    other: str | None = eqx.field(static=True)
    polynomial: Any = eqx.field(default=(0.0, 1.0), converter=numbers)
    name: str = eqx.field(default="", static=True, kw_only=True)

    def check(self, planar: bool) -> None:
        who = f"Coupling({self.joint!r}, {self.other!r})"
        if np.ndim(self.polynomial) != 1 or not np.shape(self.polynomial)[0]:
            raise ValueError(f"{who}: polynomial must be coefficients (a_0, a_1, ...), got {self.polynomial}")


class Prescribed(eqx.Module):
    """The coordinate of a joint is a given function of t; what it takes is in P_g."""

    joint: str = eqx.field(static=True)
    motion: Any = None
    name: str = eqx.field(default="", static=True, kw_only=True)

    def check(self, planar: bool) -> None:
        if not callable(self.motion):
            raise TypeError(
                f"Prescribed({self.joint!r}): motion must be a function of t, got {self.motion!r}"
            )


class Fluid(eqx.Module):
    """A fluid at rest around all bodies: drag on the box that has a body's inertia,
    by density and by viscosity.
    """

    density: Any = eqx.field(default=0.0, converter=number)
    viscosity: Any = eqx.field(default=0.0, converter=number)
    wind: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers)

    def check(self, planar: bool) -> None:
        _finite("Fluid", density=self.density, viscosity=self.viscosity)
