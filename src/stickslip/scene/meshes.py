"""Surfaces of triangles: solids of any form that stand still, and ground with hills."""

import math
from typing import Any

import equinox as eqx
import numpy as np

from .numbers import is_known, numbers
from .shapes import Faces, Slot, Solid, Surface, check_vector

MOST = 8  # slots of a ball


class TriangleSurface(Surface):
    """A closed one: every side of a triangle is that of one other triangle, too."""

    contacts: int = eqx.field(default=4, static=True, kw_only=True)  # slots of each ball on it

    def check(self) -> None:
        super().check()
        if (
            not isinstance(self.contacts, int)
            or isinstance(self.contacts, bool)
            or not 1 <= self.contacts <= MOST
        ):
            raise ValueError(f"{self}: contacts must be an integer from 1 to {MOST}, got {self.contacts!r}")
        self._check_sizes()
        _check_closed(str(self), *self.triangles())

    def _check_sizes(self) -> None:
        raise NotImplementedError

    def solid(self, planar: bool) -> Solid:
        return Faces(*self.triangles(), ()).solid()

    def slots(self, planar: bool) -> list[Slot]:
        return []  # it stands still, and so do the planes that it could touch


class Mesh(TriangleSurface):
    """A solid inside of triangles, convex or not: ``points`` (n, 3), and of each triangle the numbers of its
    three corners, ``faces`` (m, 3), counterclockwise as seen from outside. Of a body that stands still."""

    points: Any = eqx.field(converter=numbers)
    faces: Any = eqx.field(converter=numbers)

    def __str__(self) -> str:
        return f"Mesh of {len(self.faces) if np.ndim(self.faces) else self.faces} faces"

    def _check_sizes(self) -> None:
        points, faces = self.points, self.faces
        if not is_known(points, faces):
            raise ValueError(f"{self}: points and faces cannot be parameters of a derivative or a batch")
        for field, value in (("points", points), ("faces", faces)):
            if not isinstance(value, np.ndarray) or value.ndim != 2 or value.shape[1] != 3:
                raise ValueError(f"{self}: {field} must be (n, 3), got {np.shape(value)}")
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{self}: {field} must be finite")
        if np.any(faces != np.round(faces)) or np.any(faces < 0) or np.any(faces >= len(points)):
            raise ValueError(f"{self}: faces must be numbers of points, 0 to {len(points) - 1}")

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Points, equal ones only once, and corners."""
        points, number = np.unique(self.points, axis=0, return_inverse=True)
        return points, number.reshape(-1)[self.faces.astype(int)]


class HeightField(TriangleSurface):
    """Ground with ``heights`` z on a grid (rows along y, columns along x) over ``size`` (x, y),
    its middle at ``at``.

    As MuJoCo's: each cell is two triangles, which share the diagonal from its least to its largest x and y.
    Below it the ground is solid, down to ``depth`` (as much as its shorter side) under its lowest point. Of a
    body that stands still.
    """

    heights: Any = eqx.field(converter=numbers)
    size: Any = eqx.field(converter=numbers)
    depth: Any = eqx.field(default=None, kw_only=True)

    def __str__(self) -> str:
        return f"HeightField of {' x '.join(map(str, np.shape(self.heights)))} heights"

    def _check_sizes(self) -> None:
        if not is_known(self.heights, self.size, self.depth):
            raise ValueError(
                f"{self}: heights, size and depth cannot be parameters of a derivative or a batch"
            )
        if not isinstance(self.heights, np.ndarray) or self.heights.ndim != 2 or min(self.heights.shape) < 2:
            raise ValueError(
                f"{self}: heights must be (rows, columns), two of each at least, got {np.shape(self.heights)}"
            )
        if not np.all(np.isfinite(self.heights)):
            raise ValueError(f"{self}: heights must be finite")
        check_vector(self, "size", self.size, (2,))
        if not np.all(self.size > 0.0):
            raise ValueError(f"{self}: size must be positive, got {self.size.tolist()}")
        if self.depth is not None and not (
            np.ndim(self.depth) == 0 and math.isfinite(self.depth) and self.depth > 0.0
        ):
            raise ValueError(f"{self}: depth must be positive, got {self.depth}")

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = self.heights.shape
        y, x = (
            0.5 * side * np.linspace(-1.0, 1.0, n)
            for side, n in zip(self.size[::-1], (rows, columns), strict=True)
        )
        top = np.column_stack([np.tile(x, rows), np.repeat(y, columns), self.heights.ravel()])
        number = np.arange(rows * columns).reshape(rows, columns)
        a, b, c, d = (
            part.ravel() for part in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
        )
        rim = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
        low = self.heights.min() - (self.size.min() if self.depth is None else self.depth)
        bottom = np.concatenate([np.column_stack([top[rim, :2], np.full(len(rim), low)]), [[0.0, 0.0, low]]])
        under = len(top) + np.arange(len(rim))
        rim_next, under_next = np.roll(rim, -1), np.roll(under, -1)
        middle = np.full(len(rim), len(top) + len(rim))
        faces = [
            (a, c, d),
            (a, b, c),
            (under, under_next, rim_next),
            (under, rim_next, rim),
            (middle, under_next, under),
        ]
        return np.concatenate([top, bottom]), np.concatenate([np.column_stack(corners) for corners in faces])


def _check_closed(who: str, points: np.ndarray, faces: np.ndarray) -> None:
    corners = points[faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    flat = area <= 1e-12 * longest**2
    if np.any(flat):
        raise ValueError(f"{who}: face {int(np.argmax(flat))} has no area")
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    owner = np.tile(np.arange(len(faces)), 3)
    found, first, count = np.unique(sides, axis=0, return_index=True, return_counts=True)
    if np.any(count > 1):
        k = int(np.argmax(count > 1))
        a, b = (points[i].tolist() for i in found[k])
        raise ValueError(
            f"{who}: {count[k]} faces go from {a} to {b} in the same sense: corners must be counterclockwise "
            "as seen from"
            " outside, and a side belongs to two faces"
        )
    width = len(points)
    alone = ~np.isin(found[:, 0] * width + found[:, 1], found[:, 1] * width + found[:, 0])
    if np.any(alone):
        k = int(np.argmax(alone))
        a, b = (points[i].tolist() for i in found[k])
        raise ValueError(
            f"{who}: it encloses nothing: the side of face {owner[first[k]]} from {a} to {b} belongs to no "
            "other face"
        )
    if np.linalg.det(corners).sum() <= 0.0:
        raise ValueError(
            f"{who}: its faces are seen from inside: their corners must be counterclockwise as seen from "
            "outside"
        )


__all__ = ["HeightField", "Mesh"]
