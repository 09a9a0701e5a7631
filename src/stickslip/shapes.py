"""What a system looks like: simple shapes, returned as a list by its optional ``draw(t, q)``.

    def draw(self, t, q):
        return [
            ss.shapes.Line([[-1, 0], [1, 0]]),
            ss.shapes.disk(q[:2], 0.1, q[2]),
            ss.shapes.Contacts(at=[[q[0], q[1] - 0.1]], normals=[[0, 1]], tangents=[[[1, 0]]]),
        ]

Points have two coordinates in the plane, three in space; a drawing has one kind only. ``Contacts`` says where
contact forces act, in the order of the system's contacts, so that they can be drawn as arrows; a system that
has ``touches`` need not.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from . import frames

INK, STEEL, WOOD, GROUND, ACCENT = "#33414e", "#7d9cb8", "#c99a5b", "#9a9a9a", "#c55a11"


def _points(x: Any) -> Array:
    return jnp.asarray(x, dtype=float)


class Shape(eqx.Module):
    """Anything that can be drawn."""


class Line(Shape):
    """An open line through points."""

    points: Any = eqx.field(converter=_points)  # (n, dim)
    color: str = eqx.field(static=True, default=INK)
    width: float = eqx.field(static=True, default=2.0)


class Polygon(Shape):
    """A closed outline in the plane, filled."""

    points: Any = eqx.field(converter=_points)  # (n, 2)
    color: str = eqx.field(static=True, default=STEEL)


class Mesh(Shape):
    """Triangles in space; those marked 1 in ``marks`` have the colour ``accent``,
    so that one sees it turn.
    """

    points: Any = eqx.field(converter=_points)  # (n, 3)
    triangles: Any = eqx.field(converter=jnp.asarray)  # (m, 3) numbers of points
    marks: Any = eqx.field(converter=lambda x: None if x is None else jnp.asarray(x), default=None)  # (m,)
    color: str = eqx.field(static=True, default=STEEL)
    accent: str = eqx.field(static=True, default=ACCENT)  # colour of marked triangles
    opacity: float = eqx.field(static=True, default=1.0)  # 0 to 1

    def __check_init__(self):
        if self.marks is not None and self.marks.shape != self.triangles.shape[:1]:
            raise ValueError(
                f"Mesh(marks): one for each of {len(self.triangles)} triangles, got shape {self.marks.shape}"
            )


class Contacts(Shape):
    """Where the forces of all contacts act and along which directions they are counted.

    The percussion drawn at a contact is P_N times its normal plus each P_F times its tangent.
    """

    at: Any = eqx.field(converter=_points)  # (contacts, dim)
    normals: Any = eqx.field(converter=_points)  # (contacts, dim)
    # (contacts, k, dim)
    tangents: Any = eqx.field(converter=lambda x: None if x is None else _points(x), default=None)

    @classmethod
    def of(cls, system: Any, t: Any, q: Any) -> "Contacts":
        """Where a system's ``touches`` are."""
        return cls(*frames.drawn(system, t, q))

    def __check_init__(self):
        n, dim = self.at.shape if self.at.ndim == 2 else (0, 0)
        if not dim or self.normals.shape != (n, dim):
            raise ValueError(
                f"Contacts(at, normals): both (contacts, dim), got {self.at.shape} and {self.normals.shape}"
            )
        if self.tangents is not None and (self.tangents.ndim != 3 or self.tangents.shape[::2] != (n, dim)):
            raise ValueError(
                f"Contacts(tangents): ({n}, directions, {dim}) is needed, got {self.tangents.shape}"
            )


# ---- in the plane


def circle(n: int = 28) -> np.ndarray:
    """n points on the unit circle, (n, 2)."""
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def disk(centre: Any, radius: Any, angle: Any = 0.0, color: str = STEEL) -> list[Shape]:
    """A disk with a spoke that shows how it turns."""
    centre = _points(centre)
    spoke = radius * jnp.array([jnp.cos(angle), jnp.sin(angle)])
    return [
        Polygon(centre + radius * jnp.asarray(circle()), color=color),
        Line(jnp.stack([centre, centre + spoke])),
    ]


def box(centre: Any, width: Any, height: Any, angle: Any = 0.0, color: str = STEEL) -> Polygon:
    """A rectangle."""
    half = jnp.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * jnp.array([width, height])
    c, s = jnp.cos(angle), jnp.sin(angle)
    return Polygon(_points(centre) + half @ jnp.array([[c, s], [-s, c]]), color=color)


# ---- in space; A is the rotation matrix of the body


def _grid(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of a grid of points that closes in the second direction,
    and marks of every second sector in eight.
    """
    r, c = np.meshgrid(np.arange(rows - 1), np.arange(columns), indexing="ij")
    a, b = r * columns + c, r * columns + (c + 1) % columns
    triangles = np.stack([a, b, a + columns, b, b + columns, a + columns], axis=-1)  # two a cell
    marks = np.repeat((c * 8 // columns) % 2, 2)
    return triangles.reshape(-1, 3), marks


def revolved(centre: Any, A: Any, profile: Any, color: str = STEEL, sectors: int = 24) -> Mesh:
    """A body of revolution about the third axis of A: ``profile`` are its (radius,
    height), from one end to the other.
    """
    radius, height = jnp.asarray(profile, dtype=float).T
    ring = jnp.asarray(circle(sectors))
    around = radius[:, None, None] * ring
    along = jnp.broadcast_to(height[:, None, None], (len(radius), sectors, 1))
    body = jnp.concatenate([around, along], axis=2).reshape(-1, 3)
    triangles, marks = _grid(len(radius), sectors)
    return Mesh(_points(centre) + body @ jnp.asarray(A).T, triangles, marks, color=color)


def ball(centre: Any, A: Any, radius: float, color: str = STEEL, rings: int = 13) -> Mesh:
    """A ball in space; A turns it, so that one sees it roll."""
    angle = np.linspace(0.0, np.pi, rings)
    return revolved(centre, A, radius * np.column_stack([np.sin(angle), -np.cos(angle)]), color)


def floor(half: float, z: float = 0.0, centre: Any = (0.0, 0.0), lines: int = 9) -> list[Shape]:
    """A square grid on the ground."""
    x, y = centre
    grid = np.linspace(-half, half, lines)
    along_x = [[[x - half, y + g, z], [x + half, y + g, z]] for g in grid]
    along_y = [[[x + g, y - half, z], [x + g, y + half, z]] for g in grid]
    return [Line(points, color="#c8c8c8", width=1.0) for points in along_x + along_y]


def drawn(system: Any, t: Any, q: Any) -> list[Shape]:
    """What a system draws; where it draws no ``Contacts``, those of its ``touches``."""
    found = flat(system.draw(t, q))
    if not system.touches or any(isinstance(shape, Contacts) for shape in found):
        return found
    return [*found, Contacts.of(system, t, q)]


def flat(shapes: Any) -> list[Shape]:
    """A drawing as one list: `disk` and `floor` are lists themselves."""
    if isinstance(shapes, Shape):
        return [shapes]
    if isinstance(shapes, list | tuple):
        return [shape for part in shapes for shape in flat(part)]
    raise TypeError(f"draw(t, q) must return a list of ss.shapes, got {type(shapes).__name__}")
