"""Contact and friction laws as a user writes them; `stacked` puts those of a system together for the solvers.

Every friction law is one mechanism: scaled friction velocities  A gamma_F  lie in the normal cone to balls
whose radius is a multiple of the normal percussion or a constant, and the percussion in physical units is  A
mu  with the ball's percussion mu (S3 (3.29)-(3.32)). A new law says which balls it has, and that is all.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def _number(x: Any) -> Any:
    """As an array; what is no number is left for the check, which knows its name."""
    return (
        x if isinstance(x, jax.Array | np.ndarray | str | bytes) or x is None else jnp.asarray(x, dtype=float)
    )


def _numbers(x: Any) -> Any:
    return None if x is None else _number(x)


def _bound(x: Any) -> Any:
    """An infinite one as Python's number, which stays one inside a trace; others as arrays."""
    value = None if isinstance(x, str | bytes) or x is None else _concrete(x)
    if value is not None and value.shape == () and value.dtype.kind == "f" and np.isinf(value):
        return float(value)
    return _numbers(x)


def _concrete(x: Any) -> np.ndarray | None:
    """The value, or None where it is traced and can be judged only while running."""
    return None if isinstance(x, jax.core.Tracer) or not eqx.is_array_like(x) else np.asarray(x)


def _require(owner: object, name: str, low: float, high: float = math.inf, *, strict: bool = False) -> None:
    stated = getattr(owner, name)
    if (
        isinstance(stated, str | bytes)
        or stated is None
        or np.dtype(getattr(stated, "dtype", float)).kind not in "biuf"
    ):
        raise TypeError(f"{type(owner).__name__}({name}={stated!r}): {name} must be a number")
    if name != "axes" and np.shape(stated) != ():
        shown = "..." if isinstance(stated, jax.core.Tracer) else stated
        raise ValueError(
            f"{type(owner).__name__}({name}={shown}): {name} must be one number, got shape "
            f"{np.shape(stated)}; to run with"
            " many values, jax.vmap over them"
        )
    value = _concrete(stated)
    if value is None:
        return
    ok = (
        np.all(value > low if strict else value >= low)
        and np.all(value <= high)
        and np.all(np.isfinite(value))
    )
    if not ok:
        bound = f"> {low}" if strict else f">= {low}"
        bound += "" if high == math.inf else f" and <= {high}"
        raise ValueError(f"{type(owner).__name__}({name}={value}): {name} must be finite and {bound}")


class BallSpec(NamedTuple):
    """One ball of a law: scales a_i of its velocities; radius = coefficient * P_N, or coefficient * dt.

    Its middle is a ``bias``, a force; ``one_way``: a half-line that begins there.
    """

    scales: Sequence[Any]
    coefficient: Any
    bias: Any = 0.0
    one_way: bool = False


_unchecked: ContextVar[bool] = ContextVar("unchecked", default=False)


@contextmanager
def unchecked() -> Iterator[None]:
    """Laws made in here are not checked by their constructors,
    but by whoever opens this and knows their place.
    """
    token = _unchecked.set(True)
    try:
        yield
    finally:
        _unchecked.reset(token)


class _Checked(eqx.Module):
    """Refuses coefficients that make no sense."""

    def __check_init__(self):
        if not _unchecked.get():
            self.check()

    def check(self) -> None:
        """Raises ValueError, with name and value; a law without a check takes anything."""


class FrictionLaw(_Checked):
    """A friction law of a contact. Subclasses say which balls they consist of."""

    def balls(self) -> list[BallSpec]:
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        return sum(len(ball.scales) for ball in self.balls())


class Coulomb(FrictionLaw):
    """Coulomb's law with a circular, or by ``axes`` an elliptical reservoir of semi-axes a_i mu P_N,
    S3 (3.27).
    """

    mu: Any = eqx.field(converter=_number)  # coefficient of friction, a pure number
    dim: int = eqx.field(default=1, static=True)  # 1 in the plane, 2 in space
    # a_i of an elliptical reservoir, pure numbers; None: 1
    axes: Any = eqx.field(default=None, converter=_numbers)

    def check(self) -> None:
        _require(self, "mu", 0.0)
        if self.dim not in (1, 2):
            raise ValueError(f"Coulomb(dim={self.dim}): dim must be 1 or 2")
        _check_axes(self, self.axes, self.dim)

    def balls(self) -> list[BallSpec]:
        return [BallSpec(_axes(self.axes, self.dim), self.mu)]


class RectangularCoulomb(FrictionLaw):
    """Two independent intervals a_i mu P_N, S3 (3.33): the x-y table."""

    mu: Any = eqx.field(converter=_number)  # coefficient of friction, a pure number
    axes: Any = eqx.field(converter=_number)  # a_1, a_2, pure numbers

    def check(self) -> None:
        _require(self, "mu", 0.0)
        _check_axes(self, self.axes, 2)

    def balls(self) -> list[BallSpec]:
        return [BallSpec([1.0], self.mu * a) for a in _axes(self.axes, 2)]


class Pivoting(FrictionLaw):
    """A torque about the normal, at most mu P_N; mu is a length. S3 (3.34)."""

    mu: Any = eqx.field(converter=_number)  # in m: torque over normal force

    def check(self) -> None:
        _require(self, "mu", 0.0)

    def balls(self) -> list[BallSpec]:
        return [BallSpec([1.0], self.mu)]


class Rolling(FrictionLaw):
    """Torques about the tangents, each at most mu P_N; mu is a length. S3 (3.35)."""

    mu: Any = eqx.field(converter=_number)  # in m: torque over normal force
    dim: int = eqx.field(default=1, static=True)  # 1 in the plane, 2 in space

    def check(self) -> None:
        _require(self, "mu", 0.0)
        if self.dim not in (1, 2):
            raise ValueError(f"Rolling(dim={self.dim}): dim must be 1 or 2")

    def balls(self) -> list[BallSpec]:
        return [BallSpec([1.0], self.mu)] * self.dim


class CoulombContensou(FrictionLaw):
    """Sliding coupled with pivoting, S3 (3.36)-(3.39): an ellipsoid with third semi-axis 3 pi R/16 mu P_N.

    Its three velocities are two sliding velocities (m/s) and omega . n (rad/s); ``radius`` is R, the radius
    of the contact area.
    """

    mu: Any = eqx.field(converter=_number)  # coefficient of friction, a pure number
    radius: Any = eqx.field(converter=_number)  # R in m
    axes: Any = eqx.field(default=None, converter=_numbers)  # a_1, a_2, pure numbers; None: 1

    def check(self) -> None:
        _require(self, "mu", 0.0)
        _require(self, "radius", 0.0, strict=True)
        _check_axes(self, self.axes, 2)

    def balls(self) -> list[BallSpec]:
        return [BallSpec([*_axes(self.axes, 2), 3.0 * math.pi * self.radius / 16.0], self.mu)]


def _check_axes(law: FrictionLaw, axes: Any, dim: int) -> None:
    if axes is None:
        return
    if np.shape(axes) != (dim,):
        raise ValueError(f"{type(law).__name__}(axes): needs {dim} semi-axes, got shape {np.shape(axes)}")
    _require(law, "axes", 0.0, strict=True)


def _axes(axes: Any, dim: int) -> list[Any]:
    return [1.0] * dim if axes is None else [axes[i] for i in range(dim)]


def _as_tuple(friction: Any) -> tuple[FrictionLaw, ...]:
    if isinstance(friction, FrictionLaw):
        return (friction,)
    if not isinstance(friction, tuple | list):
        raise TypeError(
            f"Contact(friction={friction!r}): friction must be a law such as ss.Coulomb(mu), or a tuple of "
            "laws"
        )
    return tuple(friction)


class Contact(_Checked):
    """Signorini's law with Newton's impact law in normal (e_N) and tangential (e_F) direction,
    and friction.
    """

    e_N: Any = eqx.field(default=0.0, converter=_number)  # coefficient of restitution, 0 to 1
    e_F: Any = eqx.field(default=0.0, converter=_number)  # the same in tangential direction
    friction: Any = eqx.field(default=(), converter=_as_tuple)  # one law, or a tuple of laws; without: none

    def check(self) -> None:
        _require(self, "e_N", 0.0, 1.0)
        _require(self, "e_F", 0.0, 1.0)
        for law in self.friction:
            if not isinstance(law, FrictionLaw):
                raise TypeError(
                    f"Contact(friction=...): {law!r} is not a friction law such as ss.Coulomb(mu)"
                )
            law.check()


class FrictionElement(_Checked):
    """A reservoir of constant size that belongs to no contact: |P_F| <= force * dt over a step.

    Or an interval, ``lower`` dt <= P_F <= ``upper`` dt: in slip forwards the force is lower, in slip
    backwards upper, in stick between them. One of them may be infinite: a freewheel is ``lower=0,
    upper=inf``, which turns forwards without force and never backwards, and bears impacts. S4 (1) with any
    interval in the place of C.
    """

    # in N, or in N m where its velocity is one of rotation
    force: Any = eqx.field(default=None, converter=_numbers)
    dim: int = eqx.field(default=1, static=True)  # number of velocities that share it
    e_F: Any = eqx.field(default=0.0, converter=_number)  # tangential restitution, 0 to 1
    lower: Any = eqx.field(default=None, converter=_bound)  # smallest force, in place of ``force``
    upper: Any = eqx.field(default=None, converter=_bound)  # largest force
    unbounded: str = eqx.field(default="", static=True)  # which of them is infinite, found out by itself

    def __post_init__(self):
        # Known from here on, also where the numbers are traced.
        for name, infinite in (("lower", -math.inf), ("upper", math.inf)):
            bound = getattr(self, name)
            if isinstance(bound, float) and bound == infinite:
                object.__setattr__(self, "unbounded", name)

    def check(self) -> None:
        if not isinstance(self.dim, int) or isinstance(self.dim, bool):
            raise TypeError(
                f"FrictionElement({self.force}, {self.dim!r}): dim must be a whole number; the bounds of an "
                "interval have"
                " names, FrictionElement(lower=..., upper=...)"
            )
        _require(self, "e_F", 0.0, 1.0)
        if self.dim < 1:
            raise ValueError(f"FrictionElement(dim={self.dim}): dim must be at least 1")
        if self.lower is None and self.upper is None:
            _require(self, "force", 0.0)
        else:
            self._check_interval()

    def _check_interval(self) -> None:
        if self.force is not None or self.lower is None or self.upper is None:
            raise TypeError("FrictionElement: needs force, or lower and upper")
        if self.dim != 1:
            raise ValueError(
                f"FrictionElement(dim={self.dim}): an interval, lower to upper, has one velocity"
            )
        low, high = _concrete(self.lower), _concrete(self.upper)
        if low is not None and high is not None and low == -math.inf and high == math.inf:
            raise ValueError(
                "FrictionElement(lower=-inf, upper=inf): a velocity that is always zero is a constraint, "
                "gamma"
            )
        for name, value, infinite in (("lower", low, -math.inf), ("upper", high, math.inf)):
            if name == self.unbounded:
                continue
            if value is not None and value.shape == () and value == infinite:
                raise ValueError(
                    f"FrictionElement({name}={value}): an infinite bound is part of the law and no parameter "
                    "of the system:"
                    f" write {name}={'-' if infinite < 0 else ''}math.inf where the law is made"
                )
            _require(self, name, -math.inf)
        if low is not None and high is not None and not low < high:
            raise ValueError(f"FrictionElement(lower={low}, upper={high}): lower must be below upper")
        e_F = _concrete(self.e_F)
        if self.unbounded and e_F is not None and e_F != 0.0:
            raise ValueError(
                f"FrictionElement(e_F={e_F}): with an infinite bound nothing bounces, e_F must be 0"
            )

    def balls(self) -> list[BallSpec]:
        if self.lower is None:
            return [BallSpec([1.0] * self.dim, self.force)]
        if self.unbounded == "upper":
            return [BallSpec([1.0], 0.0, self.lower, True)]
        if self.unbounded == "lower":  # seen from the other side
            return [BallSpec([-1.0], 0.0, self.upper, True)]
        return [BallSpec([1.0], (self.upper - self.lower) / 2.0, (self.upper + self.lower) / 2.0)]


def stribeck(gamma: Any, mu_static: Any, mu_dynamic: Any, epsilon: Any, P_N: Any = 1.0) -> Any:
    """The smooth part of a Stribeck curve: add it to h along the friction direction, with this sign.

    ``gamma`` is the slip velocity, ``P_N`` the normal *force* in N (of a `FrictionElement` its force over
    mu), 1/epsilon the velocity at which friction has fallen half of its way.
    Together with a set-valued part of coefficient mu_static the friction falls from mu_static to mu_dynamic
    as the slip grows: (mu_static - mu_dynamic) P_N (2/pi) arctan(epsilon gamma), S3 section 7.4 with the
    factor corrected.
    """
    return (mu_static - mu_dynamic) * P_N * (2.0 / math.pi) * jnp.arctan(epsilon * gamma)
