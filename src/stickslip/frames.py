"""Where contacts are: gaps, friction velocities and pictures from one object each.

A contact is a point C of a body, a unit normal n that points at the body from the other side, unit tangents
t_i across it, and a point O of the other side that C is opposite. With v and omega of the matter at C less
those of the matter at O,

    g_N = n . (r_C - r_O),   gamma_F = (t_1 . v, t_2 . v),
    pivoting n . omega,   rolling (t_1 . omega, t_2 . omega).

C may wander over its body, as the lowest point of a rim does, but friction acts on the matter that is there
now. A pose (r, A) carries the matter of a body along, from its coordinates c in the body's basis to r + A c,
and with c held fixed

    v_C = d/dt (r + A c) = r_dot + A_dot c,     c = A^T (r_C - r),     A_dot A^T = [omega x].

Poses are differentiated along q_dot = B u + beta, so that gamma_F is affine in u whatever they are; `rigid`
bodies know their velocities without. The matter of a moving other side is taken opposite C, at r_C - g_N n.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .laws import Contact, CoulombContensou, FrictionLaw, Pivoting, Rolling

# Columns of relative motion at a contact: along the tangents, about the normal, about the tangents, about z
# in the plane.
COLUMNS = 6
SLIDE_1, SLIDE_2, PIVOT, ROLL_1, ROLL_2, ROLL = range(COLUMNS)


def columns_of(law: FrictionLaw, planar: bool) -> list[int]:
    """Which of them the velocities of a friction law are."""
    if isinstance(law, Pivoting):
        return [PIVOT]
    if isinstance(law, CoulombContensou):
        return [SLIDE_1, SLIDE_2, PIVOT]
    if isinstance(law, Rolling):
        return [ROLL] if planar else [ROLL_1, ROLL_2]
    return [SLIDE_1] if planar else [SLIDE_1, SLIDE_2]


class ContactFrame(eqx.Module):
    """A contact and where it is, of which gap, friction velocities, names and arrows of a picture follow.

    A system has them as ``touches``, in place of ``g_N``, ``gamma_F``, ``laws`` and ``contacts``. Several
    alike are one: then ``name`` is a tuple, and ``point`` (others may) has a row for each. Functions are
    called with (t, q).
    """

    name: Any  # what the contact is called, or a tuple of names
    law: Any  # its `ss.Contact`, or one for each name
    point: Any  # C: a function, in space; numbers are a point that is fixed in the body, in its basis
    normal: Any = None  # n: numbers or a function; without: up, along the last axis
    # rows t_i: likewise; without: of an upward n the other axes, of any in the plane (n_y, -n_x)
    tangents: Any = None
    gap: Any = None  # g_N: a function; without: n . (C - O)
    opposite: Any = None  # O: numbers or a function; without: the origin
    # that C is on: a function, its pose (r, A), or "point": C is matter itself; without: the system's own
    body: Any = None
    against: Any = None  # what O is on: a pose, "point", or "rest" as it is without

    def __check_init__(self):
        of, names = f"ContactFrame({self.name!r})", self.names
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise TypeError(f"{of}: the first is what the contact is called, a text or a tuple of texts")
        if not all(isinstance(law, Contact) for law in self.laws):
            raise TypeError(f"{of}: law must be an ss.Contact, or one for each name, got {self.law!r}")
        if len(self.laws) != len(names):
            raise ValueError(f"{of}: {len(self.laws)} laws for {len(names)} names")
        if not (self.gap is None or callable(self.gap)):
            raise TypeError(f"{of}: gap must be a function gap(t, q), got {self.gap!r}")
        if self.gap is not None and self.opposite is not None:
            raise ValueError(f"{of}: gap and opposite both say how far away it is: give one of them")
        for side, words in (("body", ("point",)), ("against", ("point", "rest"))):
            given = getattr(self, side)
            if not (given is None or callable(given) or (isinstance(given, str) and given in words)):
                known = " or ".join(f'"{word}"' for word in words)
                raise TypeError(
                    f"{of}: {side} must be a pose, a function (t, q) -> (r, A), or {known}, got {given!r}"
                )
        if self.body == "point" and not callable(self.point):
            raise TypeError(f'{of}: body="point" needs a function point(t, q), got {self.point!r}')
        if self.against == "point" and not callable(self.opposite):
            raise TypeError(f'{of}: against="point" needs a function opposite(t, q), got {self.opposite!r}')
        if callable(self.opposite) and self.against is None:
            raise ValueError(
                f"{of}: opposite is a function: say what is there, against=pose of a body, "
                '"point" where it is matter itself, or "rest" where nothing moves'
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name) if isinstance(self.name, tuple | list) else (self.name,)

    @property
    def laws(self) -> tuple[Contact, ...]:
        """One for each name."""
        return tuple(self.law) if isinstance(self.law, tuple | list) else (self.law,) * len(self.names)


class Moved(NamedTuple):
    """Pose and velocity of any body, in the inertial basis; `rigid` bodies have their own."""

    r: Float[Array, " dim"]  # of its origin
    A: Float[Array, "dim dim"]  # body basis -> inertial basis
    v: Float[Array, " dim"]
    A_dot: Float[Array, "dim dim"]

    @classmethod
    def of(cls, pose: Any, t: Any, q: Array, q_dot: Array) -> "Moved":
        (r, A), (v, A_dot) = _along(lambda t, q: tuple(map(jnp.asarray, pose(t, q))), t, q, q_dot)
        return cls(r, A, v, A_dot)

    def at(self, arm: Float[Array, "*rows dim"]) -> Float[Array, "*rows dim"]:
        """Velocity of the matter at r + arm."""
        return self.fixed(_turned(self.A.T, arm))

    def fixed(self, c: Float[Array, "*rows dim"]) -> Float[Array, "*rows dim"]:
        """Velocity of the matter with coordinates c in the body."""
        return self.v + _turned(self.A_dot, c)

    @property
    def omega(self) -> Array:
        """In space a vector, in the plane a number."""
        spin = self.A_dot @ self.A.T
        return spin[1, 0] if len(spin) == 2 else jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])


def _along(f: Callable[..., Any], t: Any, q: Array, q_dot: Array) -> tuple[Any, Any]:
    """f(t, q) and its rate."""
    return jax.jvp(f, (jnp.asarray(t, dtype=float), q), (jnp.ones(()), q_dot))


def _turned(A: Float[Array, "dim dim"], x: Float[Array, "*rows dim"]) -> Float[Array, "*rows dim"]:
    """A x, of every row."""
    return A @ x if x.ndim == 1 else x @ A.T


def laws(system: Any) -> tuple[Contact, ...]:
    return tuple(law for frame in system.touches for law in frame.laws)


def names(system: Any) -> tuple[str, ...]:
    return tuple(name for frame in system.touches for name in frame.names)


def gaps(system: Any, t: Any, q: Array) -> Float[Array, " n_N"]:
    """g_N."""
    return _joined(_Here(frame, system, t, q).gap() for frame in system.touches)


def velocities(system: Any, t: Any, q: Array, u: Array, rate: Callable[..., Array]) -> Float[Array, " n_F"]:
    """gamma_F; ``rate`` gives q_dot."""
    return _joined(_Here(frame, system, t, q).velocities(u, rate) for frame in system.touches)


def drawn(system: Any, t: Any, q: Array) -> tuple[Array, Array, Array]:
    """Points, normals and tangents of all contacts;
    where one has fewer tangents than another, they end in zeros.
    """
    points, normals, tangents = [], [], []
    for frame in system.touches:
        here = _Here(frame, system, t, q)
        at = jnp.atleast_2d(here.point())
        n, dim = at.shape
        T = np.eye(dim)[:-1] if (across := here.tangents()) is None else across
        points.append(at)
        normals.append(jnp.broadcast_to(here.normal(dim), (n, dim)))
        tangents.append(jnp.broadcast_to(T, (n, *T.shape[-2:])))
    most = max(T.shape[1] for T in tangents)
    tangents = [jnp.pad(T, ((0, 0), (0, most - T.shape[1]), (0, 0))) for T in tangents]
    return jnp.concatenate(points), jnp.concatenate(normals), jnp.concatenate(tangents)


def _joined(parts: Iterator[Array]) -> Array:
    rows = [part if part.ndim == 1 else part.reshape(-1) for part in parts]
    return rows[0] if len(rows) == 1 else jnp.concatenate(rows) if rows else jnp.zeros(0)


class _Here(NamedTuple):
    """A frame of a system at an instant; rows are those of its names."""

    frame: ContactFrame
    system: Any
    t: Any
    q: Array

    def _value(self, x: Any) -> Array:
        return jnp.asarray(x(self.t, self.q) if callable(x) else x, dtype=float)

    @property
    def _pose(self) -> Any:
        """The function; None where the point is matter itself."""
        if self.frame.body == "point":
            return None
        return self.system.pose if self.frame.body is None else self.frame.body

    def point(self) -> Float[Array, "*rows dim"]:
        """r_C."""
        if callable(self.frame.point):
            return jnp.asarray(self.frame.point(self.t, self.q))
        r, A = self._pose(self.t, self.q)
        return r + _turned(A, jnp.asarray(self.frame.point))

    def normal(self, dim: int) -> Any:
        return np.eye(dim)[-1] if self.frame.normal is None else self._value(self.frame.normal)

    def tangents(self) -> Array | None:
        """None: all axes but the last."""
        if self.frame.tangents is not None:
            return self._value(self.frame.tangents)
        if self.frame.normal is None:
            return None
        n = self._value(self.frame.normal)
        return jnp.stack([n[..., 1], -n[..., 0]], axis=-1)[..., None, :]

    def gap(self) -> Float[Array, "*rows 1"]:
        if self.frame.gap is not None:
            return jnp.asarray(self.frame.gap(self.t, self.q))[..., None]
        above = self.point()
        if self.frame.opposite is not None:
            above = above - self._value(self.frame.opposite)
        if self.frame.normal is None:
            return above[..., -1:]
        return jnp.sum(self._value(self.frame.normal) * above, axis=-1, keepdims=True)

    def velocities(self, u: Array, rate: Callable[..., Array]) -> Array:
        """Of the matter at C relative to that at O, in the columns that the laws want."""
        laws = self.frame.laws
        if not any(law.friction for law in laws):
            return jnp.zeros(0)
        v, turning = self._relative(u, rate)
        planar = v.shape[-1] == 2
        columns = {
            id(contact): [c for law in contact.friction for c in columns_of(law, planar)[: law.dimension]]
            for contact in {id(contact): contact for contact in laws}.values()  # most are alike
        }
        wanted = [columns[id(contact)] for contact in laws]
        present = sorted({column for row in wanted for column in row})
        table = self._columns(present, v, turning)
        if all(row == present for row in wanted):
            return table
        width = table.shape[-1]
        places = [i * width + present.index(column) for i, row in enumerate(wanted) for column in row]
        return table.reshape(-1)[np.array(places)]

    def _relative(self, u: Array, rate: Callable[..., Array]) -> tuple[Array, Callable[[], Array]]:
        """v, and omega for who asks."""
        (frame, system, t, q), body = self, self._pose
        knows, rests = frame.body is None and hasattr(system, "motion"), frame.against in (None, "rest")
        q_dot: Any = None if knows and rests else rate(system, t, q, u)
        motion: Any = None
        if body is None:
            _, v = _along(frame.point, t, q, q_dot)
        else:
            motion = system.motion(t, q, u) if knows else Moved.of(body, t, q, q_dot)
            at = frame.point
            v = motion.at(at(t, q) - motion.r) if callable(at) else motion.fixed(jnp.asarray(at))
        if rests:
            return v, lambda: motion.omega
        if frame.against == "point":
            return v - _along(frame.opposite, t, q, q_dot)[1], lambda: motion.omega
        other, point = Moved.of(frame.against, t, q, q_dot), self.point()
        opposite = point - self.gap() * self.normal(point.shape[-1])
        return v - other.at(opposite - other.r), lambda: motion.omega - other.omega

    def _columns(self, wanted: list[int], v: Array, turning: Callable[[], Array]) -> Array:
        """The columns of these numbers, beside one another."""
        across, parts = self.tangents(), []

        def along(x: Array, number: int) -> Array:
            """The parts of a vector along the first tangents."""
            if across is None:
                return x[..., :number]
            first = across if across.shape[-2] == number else across[..., :number, :]
            return jnp.sum(first * x[..., None, :], axis=-1)

        slides, rolls = (sum(c in wanted for c in pair) for pair in ((SLIDE_1, SLIDE_2), (ROLL_1, ROLL_2)))
        if slides:
            parts.append(along(v, slides))
        omega = turning() if any(c not in (SLIDE_1, SLIDE_2) for c in wanted) else v
        if PIVOT in wanted and self.frame.normal is None:
            parts.append(omega[2:])
        elif PIVOT in wanted:
            parts.append(jnp.sum(self._value(self.frame.normal) * omega, axis=-1, keepdims=True))
        if rolls:
            parts.append(along(omega, rolls))
        if ROLL in wanted:
            parts.append(omega[None])
        if len(parts) == 1:
            return parts[0]
        return jnp.concatenate(
            [jnp.broadcast_to(part, (*v.shape[:-1], part.shape[-1])) for part in parts], axis=-1
        )
