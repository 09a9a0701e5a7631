"""Corners, edges and faces of a shape, for shapes that meet each other.

Most are a *core* (a point, a line, a convex polyhedron; in the plane a polygon) with a round skin of some
radius: a ball is a point, a capsule a line. Which corners, edges and faces there are never changes; where
they are follows from the shape's lengths, which may be parameters. Others have formulas of their own:
ellipsoids, what is round about an axis, and surfaces.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .numbers import library, stacked, vector
from .shapes import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Disc,
    Ellipsoid,
    Faces,
    Hole,
    Hull,
    Shape,
    Surface,
    coloured,
    faces,
    placed,
    space_rows,
    towards,
)

# kinds of cores; a room is a line seen from inside
POINT, LINE, SOLID, ROOM = "point", "line", "solid", "room"
ROUND, TURNED, SURFACE = "round", "turned", "surface"  # ellipsoids; cylinders and discs in space; meshes


class Topology(NamedTuple):
    """What is a corner, an edge, a face of what: numbers of corners."""

    faces: tuple[tuple[int, ...], ...]  # seen from outside counterclockwise
    edges: tuple[tuple[int, int], ...]
    directions: tuple[int, ...]  # edges of which no two are parallel
    slots: tuple[int, ...]  # by corner: its slot, shared with no corner of a common face
    flat: bool  # a polygon, whose faces are its sides

    @property
    def slot_count(self) -> int:
        return max(self.slots, default=-1) + 1

    @property
    def kind(self) -> str:
        return SOLID if self.faces else LINE if self.edges else POINT


class Features(eqx.Module):
    """Of the cores of several shapes of one topology, in their links."""

    corners: Float[Array, "n corners 3"]
    radius: Float[Array, " n"]
    size: Float[Array, " n"]  # the longest side of the smallest box around it, and its radius
    edge_at: Float[Array, "n edges 3"]
    edge_direction: Float[Array, "n edges 3"]
    edge_length: Float[Array, "n edges"]
    # corners of each face, the last one again and again where it has fewer
    polygons: Float[Array, "n faces most 3"]
    normals: Float[Array, "n faces 3"]  # outwards
    topology: Topology = eqx.field(static=True)

    @classmethod
    def of(cls, corners: Any, radius: Any, known: Topology) -> "Features":
        xp = library(corners)
        size = xp.max(xp.max(corners, axis=1) - xp.min(corners, axis=1), axis=1) + radius
        edges = np.array(known.edges, dtype=int).reshape(-1, 2)
        along = corners[:, edges[:, 1]] - corners[:, edges[:, 0]]
        length = xp.sqrt((along * along).sum(axis=-1))
        direction = along / xp.where(length > 0.0, length, 1.0)[..., None]
        most = max((len(face) for face in known.faces), default=0)
        polygons = corners[
            :,
            np.array([padded(face, most) for face in known.faces], dtype=int).reshape(len(known.faces), most),
        ]
        return cls(
            corners,
            radius,
            size,
            corners[:, edges[:, 0]],
            direction,
            length,
            polygons,
            _normals(corners, known),
            known,
        )


def _normals(corners: Any, known: Topology) -> Any:
    if not known.faces:
        return corners[:, :0]
    first = np.array([face[:3] if len(face) > 2 else (*face, face[0]) for face in known.faces])
    a, b, c = (corners[:, first[:, i]] for i in range(3))
    xp = library(corners)
    side = b - a
    across = xp.stack([side[..., 1], -side[..., 0], 0.0 * side[..., 2]], axis=-1)
    normal = across if known.flat else xp.cross(side, c - a)
    return normal / xp.sqrt((normal * normal).sum(axis=-1))[..., None]


def padded(face: tuple[int, ...], most: int) -> list[int]:
    return list(face) + [face[-1]] * (most - len(face))


class Core(NamedTuple):
    """Of one shape, in its own frame."""

    topology: Topology
    corners: Any
    radius: Any
    kind: str
    semi: Any = None  # semi-axes; of what is turned the radius, twice, and half the length
    axes: Any = np.eye(3)  # in which they are given
    surface: Any = None  # the mesh itself


def core_of(shape: Shape, planar: bool) -> Core:  # noqa: PLR0911 (a list of cases)
    if isinstance(shape, Hole):
        return Core(_line(), _ends(shape), shape.radius, ROOM)
    if isinstance(shape, Ball) or (planar and isinstance(shape, Disc | Cylinder)):
        return Core(_point(), np.zeros((1, 3)), shape.radius, POINT, vector(*[shape.radius] * 3))
    if isinstance(shape, Ellipsoid):
        return Core(_point(), np.zeros((1, 3)), 0.0, ROUND, vector(shape.x, shape.y, shape.z))
    if isinstance(shape, Cylinder | Disc):
        half = 0.5 * shape.length if isinstance(shape, Cylinder) else 0.0
        semi = vector(shape.radius, shape.radius, half)
        return Core(_point(), np.zeros((1, 3)), 0.0, TURNED, semi, towards(shape.direction))
    if isinstance(shape, Surface):
        return Core(_point(), np.zeros((1, 3)), 0.0, SURFACE, surface=shape)
    if isinstance(shape, Capsule):
        return Core(_line(), _ends(shape), shape.radius, LINE)
    if isinstance(shape, Box):
        unit = _cube(planar)
        return Core(_of_box(planar), unit * shape.edges, 0.0, SOLID)
    assert isinstance(shape, Hull)
    found = shape.hull()
    return Core(_of_hull(found), space_rows(found.vertices), 0.0, SOLID)


def in_link(core: Core, on: Any, shape: Shape, planar: bool) -> tuple[Any, Any]:
    """Its corners, and its axes."""
    x, A = placed(shape, planar)
    x, A = on.x + on.A @ x, on.A @ A
    return x + core.corners @ A.T, A @ core.axes


def features_of(cores: list[tuple[Core, Any]]) -> Features:
    """Of cores of one topology, with their corners in their links."""
    first = cores[0][0].topology
    shape = (len(first.slots), 3)
    return Features.of(
        stacked([x for _, x in cores], shape), stacked([core.radius for core, _ in cores], ()), first
    )


def _ends(shape: Any) -> Any:
    end = 0.5 * shape.length * shape.direction
    return library(end).stack([-end, end])


def _point() -> Topology:
    return Topology((), (), (), (0,), False)


def _line() -> Topology:
    return Topology((), ((0, 1),), (0,), (0, 1), False)


def _cube(planar: bool) -> np.ndarray:
    signs = (-0.5, 0.5)
    return np.array([(x, y, z) for x in signs for y in signs for z in ((0.0,) if planar else signs)])


@functools.cache
def _of_box(planar: bool) -> Topology:
    return _of_hull(faces(_cube(planar)[:, :2] if planar else _cube(planar)))


def _of_hull(found: Faces) -> Topology:
    """Triangles of a plane become one face."""
    vertices, dim = found.vertices, found.vertices.shape[1]
    if dim == 2:
        sides = tuple((int(a), int(b)) for a, b in _counterclockwise(vertices, found.simplices))
        slots = _slots(len(vertices), sides)
        return Topology(sides, (), (), slots, True)
    polygons = _polygons(vertices, found.simplices)
    edges = sorted(
        {(min(a, b), max(a, b)) for face in polygons for a, b in zip(face, face[1:] + face[:1], strict=True)}
    )
    along = np.array([vertices[b] - vertices[a] for a, b in edges])
    along /= np.linalg.norm(along, axis=1)[:, None]
    directions: list[int] = []
    for i, e in enumerate(along):
        if all(np.linalg.norm(np.cross(e, along[j])) > 1e-9 for j in directions):
            directions.append(i)
    return Topology(polygons, tuple(edges), tuple(directions), _slots(len(vertices), polygons), False)


def _counterclockwise(vertices: np.ndarray, sides: np.ndarray) -> list[tuple[int, int]]:
    middle = vertices.mean(axis=0)
    out = []
    for a, b in sides:
        r, s = vertices[a] - middle, vertices[b] - middle
        out.append((a, b) if r[0] * s[1] - r[1] * s[0] > 0.0 else (b, a))
    return out


def _polygons(vertices: np.ndarray, triangles: np.ndarray) -> tuple[tuple[int, ...], ...]:
    corners = vertices[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    size = np.ptp(vertices, axis=0).max()
    planes = np.column_stack([normals, np.einsum("ij,ij->i", normals, corners[:, 0]) / size])
    out, left = [], list(range(len(triangles)))
    while left:
        same = [i for i in left if np.abs(planes[i] - planes[left[0]]).max() < 1e-9]
        members, n = np.unique(triangles[same]), normals[left[0]]
        middle = vertices[members].mean(axis=0)
        first = vertices[members[0]] - middle
        second = np.cross(n, first)
        arms = vertices[members] - middle
        out.append(
            tuple(
                int(i)
                for i in members[np.argsort(np.arctan2(arms @ second, arms @ first * np.linalg.norm(n)))]
            )
        )
        left = [i for i in left if i not in same]
    return tuple(out)


def _slots(count: int, polygons: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    conflicts: list[set[int]] = [set() for _ in range(count)]
    for face in polygons:
        for i in face:
            conflicts[i].update(j for j in face if j != i)
    out = [0] * count
    for k, group in enumerate(coloured(conflicts)):
        for i in group:
            out[i] = k
    return tuple(out)
