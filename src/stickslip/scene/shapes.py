"""Shapes: what a body looks like, weighs, and touches planes with.

What can touch is a list of *slots*. A slot has some points of the shape, of which the lowest counts, and may
be round: a ball of some radius, or an ellipsoid, about the point. The gap of a slot on a plane with normal n
is

    min_k n . x_k - |D A^T n|            D: semi-axes of the ellipsoid, A: its rotation,

a smooth function while one point stays the lowest. Points that share a face are in different slots, so that
no face rests on less than all of its corners; others may share one, and the corners of a box need four slots,
each with two opposite corners. So nothing is left out, the smallest gap of the slots is the true one, and a
slot changes its point only far from the plane.

Lengths are in m. A shape sits in its body at ``at``, turned by ``rotation`` (a quaternion, scalar first, or
an angle in the plane). Formulas for volume and inertia are those of homogeneous solids.
"""

import itertools
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from .numbers import is_known, library, matrix, number, numbers, stacked, towards, vector

# of the radius: where a disc that lies flat has its four points; a disc under even pressure resists
FLAT = 2.0 / 3.0
# turning on the spot with 2/3 mu N r, and so do these


class Slot(NamedTuple):
    """What may touch a plane at one point; in the frame of its shape."""

    points: Any  # (k, 3), of which the lowest counts
    radius: Any = 0.0  # of a ball about them
    semi: Any = None  # or semi-axes (3,) of an ellipsoid
    rim: bool = False  # an ellipsoid without height: the edge of a disc


class Solid(NamedTuple):
    """Of density one."""

    volume: Any
    centre: Any  # (3,)
    inertia: Any  # (3, 3) about it

    @classmethod
    def centred(cls, volume: Any, moments: Any) -> "Solid":
        """About its own middle, with principal moments per mass."""
        return cls(volume, np.zeros(3), volume * vector(*moments) * np.eye(3))


class Shape(eqx.Module):
    """One solid piece of a body."""

    at: Any = eqx.field(default=(0.0, 0.0, 0.0), converter=numbers, kw_only=True)  # in the body
    rotation: Any = eqx.field(default=None, converter=numbers, kw_only=True)
    name: str = eqx.field(default="", static=True, kw_only=True)  # for contact rules; else that of the body
    color: str = eqx.field(default="", static=True, kw_only=True)  # "#rrggbb"
    lengths: ClassVar[tuple[str, ...]] = ()  # fields that must be positive

    def check(self) -> None:
        for field in self.lengths:
            value = getattr(self, field)
            if value is None or isinstance(value, str):
                raise ValueError(f"{self}: {field} must be a length in m, got {value!r}")
            if is_known(value) and not (np.ndim(value) == 0 and math.isfinite(value) and value > 0.0):
                raise ValueError(f"{self}: {field} must be positive, got {value}")
        check_vector(self, "at", self.at, (3, 2))
        if self.rotation is not None:
            check_vector(
                self,
                "rotation",
                np.atleast_1d(self.rotation) if is_known(self.rotation) else self.rotation,
                (4, 1),
            )

    def __str__(self) -> str:
        fields = ", ".join(f"{getattr(self, field):g}" if is_known(getattr(self,
                           field)) and isinstance(getattr(self, field),
                           float) else str(getattr(self, field)) for field in self.lengths)  # fmt: skip
        return f"{type(self).__name__}({fields})"

    def solid(self, planar: bool) -> Solid:
        raise NotImplementedError

    def slots(self, planar: bool) -> list[Slot]:
        raise NotImplementedError


def check_vector(owner: Any, name: str, value: Any, sizes: tuple[int, ...]) -> None:
    """Whether it is a vector of one of these sizes, of finite numbers."""
    words = " or ".join(str(n) for n in sizes)
    if not hasattr(value, "shape") or value.ndim != 1 or value.shape[0] not in sizes:
        got = f"shape {value.shape}" if hasattr(value, "shape") else repr(value)
        raise ValueError(f"{owner}: {name} must have {words} numbers, got {got}")
    if is_known(value) and not np.all(np.isfinite(value)):
        raise ValueError(f"{owner}: {name} must be finite, got {np.asarray(value).tolist()}")
    if is_known(value) and name == "rotation" and value.shape == (4,) and not np.any(value):
        raise ValueError(f"{owner}: rotation must be a quaternion, scalar first, not zero")


class Ball(Shape):
    """A ball; in a planar scene a ball that rolls in the plane."""

    radius: Any = eqx.field(converter=number)
    lengths: ClassVar = ("radius",)

    def solid(self, planar: bool) -> Solid:
        r = self.radius
        return Solid.centred(4.0 / 3.0 * math.pi * r**3, [0.4 * r * r] * 3)

    def slots(self, planar: bool) -> list[Slot]:
        return [Slot(np.zeros((1, 3)), self.radius)]


class Box(Shape):
    """Edges along x, y, z; a planar scene needs two."""

    x: Any = eqx.field(converter=number)
    y: Any = eqx.field(converter=number)
    z: Any = eqx.field(default=None, converter=number)

    @property
    def lengths(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("x", "y", "z") if self.z is not None else ("x", "y")

    @property
    def edges(self) -> Any:
        return vector(self.x, self.y, 1.0 if self.z is None else self.z)

    def solid(self, planar: bool) -> Solid:
        a, b, c = self.edges**2 / 12.0
        return Solid.centred(self.edges.prod(), [b + c, a + c, a + b])

    def slots(self, planar: bool) -> list[Slot]:
        corners = [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]]
        if planar:
            corners = [[1, 1, 0], [1, -1, 0]]
        half = 0.5 * self.edges
        return [Slot(np.array([corner, [-c for c in corner]]) * half) for corner in corners]


class Along(Shape):
    """A shape with an axis."""

    axis: Any = eqx.field(default=(0.0, 0.0, 1.0), converter=numbers, kw_only=True)

    def check(self) -> None:
        super().check()
        check_vector(self, "axis", self.axis, (3,))
        if is_known(self.axis) and not np.any(self.axis):
            raise ValueError(f"{self}: axis must not be zero")

    @property
    def direction(self) -> Any:
        return self.axis / library(self.axis).sqrt((self.axis**2).sum())

    def revolved(self, volume: Any, along: Any, across: Any) -> Solid:
        """Moments per mass along the axis and across it."""
        e = self.direction
        outer = e[:, None] * e
        return Solid(volume, np.zeros(3), volume * (along * outer + across * (np.eye(3) - outer)))


class Capsule(Along):
    """A cylinder with round ends; ``length`` is that between the centres of the ends.

    In a planar scene it lies along x.
    """

    radius: Any = eqx.field(converter=number)
    length: Any = eqx.field(converter=number)
    lengths: ClassVar = ("radius", "length")

    def solid(self, planar: bool) -> Solid:
        r, l = self.radius, self.length
        pipe, ends = math.pi * r * r * l, 4.0 / 3.0 * math.pi * r**3
        along = pipe * r * r / 2.0 + ends * 0.4 * r * r
        across = pipe * (r * r / 4.0 + l * l / 12.0) + ends * (0.4 * r * r + l * l / 4.0 + 3.0 * l * r / 8.0)
        return self.revolved(pipe + ends, along / (pipe + ends), across / (pipe + ends))

    def slots(self, planar: bool) -> list[Slot]:
        end = 0.5 * self.length * self.direction
        return [Slot(end[None], self.radius), Slot(-end[None], self.radius)]


def _rim(centre: Any, radius: Any) -> Slot:
    return Slot(centre[None], semi=vector(radius, radius, 0.0), rim=True)


def _inner(direction: Any, radius: Any, half: Any) -> list[Slot]:
    """Four points inside the rims, for a disc or cylinder that stands on one of its faces."""
    A = towards(direction)
    ring = FLAT * radius * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    points = [c[0] * A[:, 0] + c[1] * A[:, 1] for c in ring]
    if half is None:
        return [Slot(p[None]) for p in points]
    return [Slot(library(p, half).stack([p + half * direction, -p - half * direction])) for p in points]


class Cylinder(Along):
    """With flat ends. Rolls on its rims, stands on four points of a face,
    2/3 of the radius from its middle.
    """

    radius: Any = eqx.field(converter=number)
    length: Any = eqx.field(converter=number)
    lengths: ClassVar = ("radius", "length")

    def solid(self, planar: bool) -> Solid:
        r, l = self.radius, self.length
        return self.revolved(math.pi * r * r * l, r * r / 2.0, r * r / 4.0 + l * l / 12.0)

    def slots(self, planar: bool) -> list[Slot]:
        half = 0.5 * self.length
        if planar:
            return [_rim(np.zeros(3), self.radius)]
        return [_rim(half * self.direction, self.radius), _rim(-half * self.direction, self.radius),
                *_inner(self.direction, self.radius, half)]  # fmt: skip


class Disc(Along):
    """A flat disc, of mass per area.

    Rolls on its rim, lies on four points, 2/3 of the radius from its middle.
    """

    radius: Any = eqx.field(converter=number)
    lengths: ClassVar = ("radius",)

    def solid(self, planar: bool) -> Solid:
        r = self.radius
        return self.revolved(math.pi * r * r, r * r / 2.0, r * r / 4.0)

    def slots(self, planar: bool) -> list[Slot]:
        rim = _rim(np.zeros(3), self.radius)
        return [rim] if planar else [rim, *_inner(self.direction, self.radius, None)]


class Ellipsoid(Shape):
    """Semi-axes along x, y, z."""

    x: Any = eqx.field(converter=number)
    y: Any = eqx.field(converter=number)
    z: Any = eqx.field(converter=number)
    lengths: ClassVar = ("x", "y", "z")

    def solid(self, planar: bool) -> Solid:
        a, b, c = (s**2 / 5.0 for s in (self.x, self.y, self.z))
        return Solid.centred(4.0 / 3.0 * math.pi * self.x * self.y * self.z, [b + c, a + c, a + b])

    def slots(self, planar: bool) -> list[Slot]:
        return [Slot(np.zeros((1, 3)), semi=vector(self.x, self.y, self.z))]


class Hole(Along):
    """A round hole for a pin to be in; with a ``length`` (between the centres of its ends,
    along ``axis``) a slot.

    In space a room: a hollow ball or capsule. It weighs nothing, and what is in it is a `Ball` or a `Disc`.
    """

    radius: Any = eqx.field(converter=number)
    length: Any = eqx.field(default=0.0, converter=number)
    lengths: ClassVar = ("radius",)

    def check(self) -> None:
        super().check()
        if is_known(self.length) and not (
            np.ndim(self.length) == 0 and math.isfinite(self.length) and self.length >= 0.0
        ):
            raise ValueError(f"{self}: length must not be negative, got {self.length}")


class Surface(Shape):
    """What stands still and meets balls alone: `meshes`."""

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Points, and the numbers of three for each triangle."""
        raise NotImplementedError


class Plane(Shape):
    """A half space below a plane through ``at``, with ``normal`` outwards.

    ``speed``: of a belt on it, in m/s.
    """

    normal: Any = eqx.field(default=(0.0, 0.0, 1.0), converter=numbers)
    speed: Any = eqx.field(default=0.0, converter=number, kw_only=True)  # along its first tangent
    size: Any = eqx.field(default=None, converter=number, kw_only=True)  # half the width that is drawn

    def __str__(self) -> str:
        return f"Plane({np.asarray(self.normal).tolist() if is_known(self.normal) else '...'})"

    def check(self) -> None:
        super().check()
        check_vector(self, "normal", self.normal, (3, 2))
        if is_known(self.normal) and not np.any(self.normal):
            raise ValueError(f"{self}: normal must not be zero")

    def frame(self, planar: bool) -> Any:
        """Columns: two tangents and the normal."""
        n = space(self.normal)
        xp = library(n)
        if planar and self.normal.shape[0] == 3 and is_known(n) and np.array_equal(n, [0.0, 0.0, 1.0]):
            n = np.array([0.0, 1.0, 0.0])  # nobody said: the ground
        n = n / xp.sqrt((n * n).sum())
        if not planar:
            return towards(n)
        return xp.stack(
            [xp.stack([n[1], -n[0], 0.0 * n[0]]), xp.stack([0.0 * n[0], 0.0 * n[0], 0.0 * n[0] - 1.0]), n],
            axis=1,
        )


class Hull(Shape):
    """The convex hull of points, (n, 3); in a planar scene (n, 2)."""

    points: Any = eqx.field(converter=numbers)

    def __str__(self) -> str:
        return f"Hull of {len(self.points) if np.ndim(self.points) else self.points} points"

    def check(self) -> None:
        super().check()
        points = self.points
        if not is_known(points):
            raise ValueError(
                f"{self}: points cannot be parameters of a derivative or a batch; corners of a Box can"
            )
        if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1] not in (2, 3):
            raise ValueError(f"{self}: points must be (n, 3), or (n, 2) in the plane, got {np.shape(points)}")
        if not np.all(np.isfinite(points)):
            raise ValueError(f"{self}: points must be finite")
        if len(points) < points.shape[1] + 1:
            raise ValueError(f"{self}: a hull needs at least {points.shape[1] + 1} points")
        size = np.ptp(points, axis=0).max()
        flatness = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[-1]
        if not (size > 0.0 and flatness > 1e-9 * size):
            raise ValueError(f"{self}: all points lie in one plane, or on a line: they enclose nothing")

    def hull(self) -> "Faces":
        return faces(self.points)

    def solid(self, planar: bool) -> Solid:
        return self.hull().solid()

    def slots(self, planar: bool) -> list[Slot]:
        found = self.hull()
        return [Slot(space_rows(found.vertices[list(group)])) for group in found.groups]


def space(x: Any) -> Any:
    """A vector of the plane in space."""
    return x if x.shape[0] == 3 else library(x).concatenate([x, np.zeros(1)])


def space_rows(x: Any) -> Any:
    return x if x.shape[1] == 3 else np.column_stack([x, np.zeros(len(x))])


class Faces(NamedTuple):
    """A convex hull."""

    vertices: np.ndarray  # (n, dim)
    # (m, dim): edges in the plane, triangles in space, seen from outside counterclockwise
    simplices: np.ndarray
    groups: tuple[tuple[int, ...], ...]  # vertices that share a slot

    def solid(self) -> Solid:
        """By simplices with a common corner at the origin."""
        corners = space_rows(self.vertices)[self.simplices]  # (m, dim, 3)
        dim = self.vertices.shape[1]
        square = corners[:, :2, :2] if dim == 2 else corners  # in the plane, a prism of height one
        volumes = np.linalg.det(square) / math.factorial(dim)
        volume = volumes.sum()
        sums = corners.sum(axis=1)
        centre = volumes @ sums / ((dim + 1) * volume)
        second = np.einsum("m,mik,mil->kl", volumes, corners, corners) + np.einsum(
            "m,mk,ml->kl", volumes, sums, sums
        )
        second = second / ((dim + 1) * (dim + 2)) - volume * np.outer(centre, centre)
        return Solid(volume, centre, np.trace(second) * np.eye(3) - second)


MOST_OF_A_FACE = 6  # points of a face that get slots of their own: of more, neighbours share one


def faces(points: np.ndarray) -> Faces:
    """Of the hull of these points."""
    from scipy.spatial import ConvexHull

    found = ConvexHull(points)
    kept = np.sort(found.vertices)
    vertices, simplices = points[kept], np.searchsorted(kept, found.simplices)
    inside = vertices.mean(axis=0)
    outward = np.linalg.det(vertices[simplices] - inside) < 0.0
    simplices[outward, :2] = simplices[outward, 1::-1]
    size = np.ptp(vertices, axis=0).max()
    planes = np.round(found.equations / np.append(np.ones(points.shape[1]), size), 9)
    conflicts: list[set[int]] = [set() for _ in kept]
    for plane in np.unique(planes, axis=0):
        members = np.unique(simplices[np.all(planes == plane, axis=1)])
        sectors = _sectors(vertices[members], plane[:-1])
        for (i, a), (j, b) in itertools.combinations(zip(members, sectors, strict=True), 2):
            if a != b:
                conflicts[i].add(j)
                conflicts[j].add(i)
    return Faces(vertices, simplices, coloured(conflicts))


def _sectors(corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Which slot of its face each corner takes: its own, unless there are many."""
    if len(corners) <= MOST_OF_A_FACE or len(normal) == 2:
        return np.arange(len(corners))
    A = np.asarray(towards(normal / np.linalg.norm(normal)))
    x, y = ((corners - corners.mean(axis=0)) @ A[:, :2]).T
    order = np.argsort(np.argsort(np.arctan2(y, x)))
    return order * MOST_OF_A_FACE // len(corners)


def coloured(conflicts: list[set[int]]) -> tuple[tuple[int, ...], ...]:
    """Groups without a conflict inside, few of them: the most entangled first,
    each into the first group that takes it.
    """
    groups: list[list[int]] = []
    for i in sorted(range(len(conflicts)), key=lambda i: -len(conflicts[i])):
        free = next((group for group in groups if not conflicts[i].intersection(group)), None)
        if free is None:
            groups.append([i])
        else:
            free.append(i)
    return tuple(tuple(sorted(group)) for group in groups)


def placed(shape: Shape, planar: bool) -> tuple[Any, Any]:
    """Where it sits in its body: position and rotation matrix."""
    return space(shape.at), rotation_of(shape.rotation, planar)


def rotation_of(rotation: Any, planar: bool) -> Any:
    """A matrix from a quaternion, or from an angle in the plane."""
    if rotation is None:
        return np.eye(3)
    if (planar and rotation.ndim == 0) or rotation.shape == (1,):
        angle = rotation.reshape(())
        xp = library(angle)
        c, s, one = xp.cos(angle), xp.sin(angle), xp.ones(())
        return xp.stack(
            [xp.stack([c, -s, 0.0 * c]), xp.stack([s, c, 0.0 * c]), xp.stack([0.0 * c, 0.0 * c, one])]
        )
    return matrix(rotation)


def combined(solids: list[tuple[Any, Solid, Any, Any]]) -> tuple[Any, Any, Any]:
    """Mass, centre and inertia about it, of solids with densities, positions and rotation matrices."""
    masses = stacked([density * s.volume for density, s, _, _ in solids], ())
    centres = stacked([p + A @ s.centre for _, s, p, A in solids], (3,))
    mass = masses.sum()
    centre = masses @ centres / mass
    xp = library(masses, centres)
    inertia = xp.zeros((3, 3))
    for k, (density, s, _, A) in enumerate(solids):
        r = centres[k] - centre
        inertia = (
            inertia + density * (A @ s.inertia @ A.T) + masses[k] * ((r @ r) * np.eye(3) - r[:, None] * r)
        )
    return mass, centre, inertia
