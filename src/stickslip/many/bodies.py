"""Balls in space and disks in the plane, as many as there are, and how two materials meet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..laws import Contact, Coulomb, Pivoting, Rolling
from .contacts import Laws

DEFAULT = "default"


def numbers(owner: str, name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """As an array of the shape, one value standing for all; refused under the name the user gave it."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{owner}({name}={value!r}): {name} must be numbers") from None
    try:
        out = np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(f"{owner}({name}): {name} must have shape {shape}, got {array.shape}") from None
    if not np.all(np.isfinite(out)):
        raise ValueError(
            f"{owner}({name}): {name} must be finite, got {array.ravel()[~np.isfinite(array.ravel())][0]}"
        )
    return out


def positive(owner: str, name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    out = numbers(owner, name, value, shape)
    if not np.all(out > 0.0):
        raise ValueError(f"{owner}({name}): {name} must be positive, got {out.min():g}")
    return out


class _Round:
    """What balls and disks have in common."""

    position: Any
    radius: Any
    density: Any
    velocity: Any
    spin: Any
    material: str

    def _checked(self, dim: int) -> None:
        owner = type(self).__name__
        shape = np.shape(self.position)
        if len(shape) != 2 or shape[1] != dim:
            raise ValueError(f"{owner}(position): position must have shape (bodies, {dim}), got {shape}")
        n = shape[0]
        if n == 0:
            raise ValueError(f"{owner}(position): there must be at least one body")
        spins = (n, 3) if dim == 3 else (n,)
        for name, array in (
            ("position", numbers(owner, "position", self.position, shape)),
            ("radius", positive(owner, "radius", self.radius, (n,))),
            ("density", positive(owner, "density", self.density, (n,))),
            ("velocity", numbers(owner, "velocity", self.velocity, shape)),
            ("spin", numbers(owner, "spin", self.spin, spins)),
        ):
            object.__setattr__(self, name, array)
        if not isinstance(self.material, str):
            raise TypeError(f"{owner}(material={self.material!r}): material must be a name")

    def __len__(self) -> int:
        return len(self.radius)


@dataclass(frozen=True)
class Balls(_Round):
    """Solid balls: positions (n, 3) in m, radii, densities in kg/m^3; one number stands for all."""

    position: Any  # (n, 3) centres, in m
    radius: Any  # (n) or one for all, in m
    density: Any = 1000.0  # in kg/m^3
    velocity: Any = 0.0  # (n, 3) in m/s
    spin: Any = 0.0  # (n, 3) angular velocity, in rad/s
    material: str = DEFAULT  # a name that laws are given for

    def __post_init__(self) -> None:
        self._checked(3)

    @property
    def mass(self) -> np.ndarray:
        return 4.0 / 3.0 * np.pi * self.density * self.radius**3

    @property
    def inertia(self) -> np.ndarray:
        return 0.4 * self.mass * self.radius**2


@dataclass(frozen=True)
class Disks(_Round):
    """Solid disks in the plane z = 0: positions (n, 2), radii, densities in kg/m^2;
    spins are one number each.
    """

    position: Any  # (n, 2) centres, in m
    radius: Any  # (n) or one for all, in m
    density: Any = 1.0  # mass by area, in kg/m^2
    velocity: Any = 0.0  # (n, 2) in m/s
    spin: Any = 0.0  # (n) angular velocity, in rad/s
    material: str = DEFAULT  # a name that laws are given for

    def __post_init__(self) -> None:
        self._checked(2)

    @property
    def mass(self) -> np.ndarray:
        return np.pi * self.density * self.radius**2

    @property
    def inertia(self) -> np.ndarray:
        return 0.5 * self.mass * self.radius**2


def coefficients(law: Any, pair: str) -> tuple[float, float, float, float]:
    """e_N, mu, rolling and pivoting of a contact law; what many bodies do not have is refused."""
    if not isinstance(law, Contact):
        raise TypeError(f"law of {pair}: must be an ss.Contact, got {law!r}")
    if float(law.e_F) != 0.0:
        raise ValueError(
            f"law of {pair}: e_F={float(law.e_F):g}: tangential restitution is not there for many bodies"
        )
    found: dict[Any, float] = {Coulomb: 0.0, Rolling: 0.0, Pivoting: 0.0}
    for friction in law.friction:
        kind = type(friction)
        if kind not in found:
            raise ValueError(
                f"law of {pair}: {kind.__name__} is not there for many bodies; Coulomb, Rolling, Pivoting are"
            )
        if getattr(friction, "axes", None) is not None:
            raise ValueError(
                f"law of {pair}: {kind.__name__}(axes=...): only circular reservoirs are there for many "
                "bodies"
            )
        if found[kind] != 0.0:
            raise ValueError(f"law of {pair}: more than one {kind.__name__}")
        found[kind] = float(friction.mu)
    return float(law.e_N), found[Coulomb], found[Rolling], found[Pivoting]


def table(names: list[str], law: Any, laws: Mapping[tuple[str, str], Any]) -> Laws:
    """Coefficients of every pair of materials: that of ``laws``, or else ``law``."""
    known = set(names)
    for pair in laws:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"laws: a key is a pair of materials such as ('steel', 'wood'), got {pair!r}")
        unknown = [name for name in pair if name not in known]
        if unknown:
            raise ValueError(
                f"laws: nothing is made of {unknown[0]!r}; materials are {', '.join(sorted(known))}"
            )
        other = (pair[1], pair[0])
        if other != pair and other in laws:
            raise ValueError(f"laws: {pair} and {other} are the same pair")
    out = np.empty((4, len(names), len(names)))
    for i, one in enumerate(names):
        for j, two in enumerate(names):
            given = laws.get((one, two), laws.get((two, one), law))
            out[:, i, j] = coefficients(given, f"{one} and {two}")
    return Laws(*out)
