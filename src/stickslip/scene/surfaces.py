"""Balls on closed surfaces of triangles, convex or not.

Where the distance from the centre of a ball has a minimum on the surface, the ball may touch: on the inside
of a face, on an edge or on a corner (a *spot*). A face has one where the centre lies above its inside, an
edge or a corner where no direction on the surface leads nearer; so seams between faces of one plane are
nothing, and a ball in a valley touches both its sides. From outside all minima on that side of the surface
count, from inside the nearest. The gap is that of `near`,

    face    g = n . r - R           edge    g = +-|r - e (e . r)| - R           corner    g = +-|r| - R,

with - inside. A ball has a few slots, which hold the nearest minima, those that it touches in the order of
their directions. In a step of a fixed size they keep what they hold at its beginning, and so do those for
minima of where the ball would be at its end; else they are chosen for every pose anew.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .near import FAR, dot, length, over, tangents
from .touch import At
from .tree import Poses, Velocities, back, times, turned

FLAT_EDGE = 1e-9  # the sine of an angle between faces that are one plane
BESIDE = 1e-9  # of the size of a surface: so far outside of a face is above its inside, that no seam is a gap
SAME = 1e-6  # of the size: minima that are nearer to each other are one
TOUCHING = 1e-3  # of the radius: gaps of balls that count as touching, for the order of slots
LOOKED_AT = 32  # minima, among which equal ones are found
GROUP = 64  # spots that are looked at together
GENERIC = np.array([0.80, 0.52, 0.30])  # a direction that is none of a drawing


class Spots(eqx.Module):
    """Faces, edges and corners: a point of each, its direction,
    and walls between which the distance has its minimum.
    """

    at: Float[Array, "spots 3"]
    axis: Float[Array, "spots 3"]  # normal of a face, direction of an edge, zero
    flat: Bool[Array, " spots"]
    normal: Float[Array, "spots 3"]  # outwards, by angles at a corner
    walls: Float[Array, "spots walls 3"]  # x is between them where all walls . x <= reach
    reach: Float[Array, "spots walls"]
    size: Float[Array, ""]  # of the surface


def features_of_surface(shape: Any) -> Spots:
    points, faces = shape.triangles()
    corners = points[faces]
    normals = _units(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    along = _units(np.roll(corners, -1, axis=1) - corners)  # (m, side, 3)
    inward = np.cross(normals[:, None], along)
    parts = [(corners[:, 0], normals, normals, -inward, np.einsum("fki,fki->fk", -inward, corners))]
    # edges: of each side the one that goes the other way
    start, end = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    owner, width = np.repeat(np.arange(len(faces)), 3), len(points)
    order = np.argsort(start * width + end)
    opposite = order[np.searchsorted((start * width + end)[order], end * width + start)]
    across = np.linalg.norm(np.cross(normals[owner], normals[owner[opposite]]), axis=1)
    folded = (across > FLAT_EDGE) | (np.einsum("ij,ij->i", normals[owner], normals[owner[opposite]]) < 0.0)
    own = np.flatnonzero(folded & (start < end))
    other = opposite[own]
    a, b, e = points[start[own]], points[end[own]], along.reshape(-1, 3)[own]
    walls = np.stack([-e, e, inward.reshape(-1, 3)[own], inward.reshape(-1, 3)[other]], axis=1)
    reach = np.einsum("ekj,ekj->ek", walls, np.stack([a, b, a, a], axis=1))
    parts.append((a, e, _units(normals[owner[own]] + normals[owner[other]]), walls, reach))
    # corners of which not all faces are one plane
    before = np.roll(along, 1, axis=1).reshape(-1, 3)
    angle = np.arccos(np.clip(-np.einsum("ij,ij->i", before, along.reshape(-1, 3)), -1.0, 1.0))
    normal = np.zeros((width, 3))
    np.add.at(normal, start, angle[:, None] * normals[owner])
    kept = np.unique(start[folded])
    by_corner, count = np.argsort(start, kind="stable"), np.bincount(start, minlength=width)
    # among the sides that begin at a corner
    place = np.arange(len(start)) - np.repeat(np.cumsum(count) - count, count)
    walls = np.zeros((width, count[kept].max(initial=1), 3))
    needed = np.isin(start[by_corner], kept)
    walls[start[by_corner][needed], place[needed]] = along.reshape(-1, 3)[by_corner][needed]
    walls = walls[kept]
    reach = np.einsum("vki,vi->vk", walls, points[kept])
    parts.append((points[kept], np.zeros((len(kept), 3)), _units(normal[kept]), walls, reach))
    most = max(part[3].shape[1] for part in parts)
    kinds: Any = np.repeat([True, False, False], [len(part[0]) for part in parts])
    at, axis, normal = (np.concatenate([part[k] for part in parts]) for k in range(3))
    walls = np.concatenate([np.pad(p[3], ((0, 0), (0, most - p[3].shape[1]), (0, 0))) for p in parts])
    reach = np.concatenate([np.pad(p[4], ((0, 0), (0, most - p[4].shape[1]))) for p in parts])
    found: list[Any] = [at, axis, kinds, normal, walls, reach, np.ptp(points, axis=0).max()]
    return Spots(*found)


def _units(x: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(size > 0.0, size, 1.0)


class Held(NamedTuple):
    """What slots hold, (n, slots), if anything; and from which side, 1 outside, -1 inside."""

    spot: Array
    there: Array
    side: Array


class Nearest(NamedTuple):
    """The nearest minima, their distances (negative inside)."""

    spot: Array
    there: Array
    distance: Array


class OnSurface(eqx.Module):
    """Balls on one surface."""

    points: Float[Array, "n 3"]
    radius: Float[Array, " n"]
    on_at: Float[Array, "n 3"]
    on_axes: Float[Array, "n 3 3"]
    on: Spots
    slots: int = eqx.field(static=True)  # of a ball
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)
    held: Held | None = None

    def at(self, at: Poses) -> At:
        A, centre, x = self._placed(at)
        fixed = jax.lax.stop_gradient(x)
        held = self._held(fixed, self._nearest(fixed)) if self.held is None else self.held
        height, normal = self._measured(x, held.spot, held.side)
        away = length(fixed - jnp.asarray(self.on.at)[0])[:, None] + self.on.size  # more than any other gap
        gap = jnp.where(held.there, height - jnp.asarray(self.radius)[:, None], away)
        normal = jnp.where(held.there[..., None], normal, np.array([0.0, 0.0, 1.0]))
        normal = turned(jnp.repeat(A, self.slots, axis=0), normal.reshape(-1, 3))
        point = (
            jnp.repeat(centre, self.slots, axis=0)
            - jnp.repeat(jnp.asarray(self.radius), self.slots)[:, None] * normal
        )
        return At(gap.reshape(-1), point, tangents(normal, False))

    def during(self, at: Poses, now: Velocities, dt: Any) -> "OnSurface":
        """In a step that begins like this: what is near now, and what would be near at its end."""
        A, centre, x = self._placed(at)
        i, j = np.array(self.links), np.array(self.others)
        way = dt * back(A, now.at(i, centre) - now.at(j, centre))
        x, way = jax.lax.stop_gradient((x, way))
        return dataclasses.replace(self, held=self._held(x, self._nearest(x), self._nearest(x + way)))

    @property
    def holding(self) -> Array:
        if self.held is None:
            return jnp.full(len(self.links) * self.slots, -1)
        return jnp.where(self.held.there, self.held.spot, -1).reshape(-1).astype(int)

    def _placed(self, at: Poses) -> tuple[Array, Array, Array]:
        """The surface's axes, the centres in the world, and as the surface sees them."""
        i, j = np.array(self.links), np.array(self.others)
        centre = at.x[i] + turned(at.A[i], jnp.asarray(self.points))
        A = times(at.A[j], jnp.asarray(self.on_axes))
        return A, centre, back(A, centre - at.x[j] - turned(at.A[j], jnp.asarray(self.on_at)))

    def _measured(self, x: Array, spot: Array, side: Array) -> tuple[Array, Array]:
        """Heights of the centres above what is held, and normals towards them."""
        on = self.on
        axis, flat = jnp.asarray(on.axis)[spot], jnp.asarray(on.flat)[spot]
        r = x[:, None] - jnp.asarray(on.at)[spot]
        along = dot(axis, r)
        across = r - axis * along[..., None]
        far = length(across)
        normal = jnp.where(flat[..., None], axis, over(side[..., None] * across, far[..., None]))
        normal = jnp.where((flat | (far > 0.0))[..., None], normal, jnp.asarray(on.normal)[spot])
        return jnp.where(flat, along, side * far), normal

    def _nearest(self, x: Array) -> Nearest:
        """Without derivatives, the nearest first, each minimum once."""
        on = self.on
        at, axis = jnp.asarray(on.at), jnp.asarray(on.axis)
        r = x[:, None] - at
        along = dot(axis, r)
        distance = jnp.where(on.flat, jnp.abs(along), length(r - axis * along[..., None]))
        walls, reach = jnp.asarray(on.walls), jnp.asarray(on.reach)
        beyond = jnp.max((x @ walls.reshape(-1, 3).T).reshape(-1, *reach.shape) - reach, axis=2)
        minimum, front = beyond <= BESIDE * on.size, dot(on.normal, r) >= 0.0
        first = jnp.argmin(jnp.where(minimum, distance, FAR), axis=1)[:, None]
        outside = jnp.take_along_axis(front, first, axis=1)
        score = jnp.where(minimum & (front == outside), distance, FAR)
        score, spot = _smallest(score)
        along, flat = jnp.take_along_axis(along, spot, axis=1), jnp.asarray(on.flat)[spot]
        foot = jnp.where(
            flat[..., None],
            x[:, None] - axis[spot] * along[..., None],
            at[spot] + axis[spot] * along[..., None],
        )
        same = length(foot[:, :, None] - foot[:, None]) < SAME * on.size
        earlier = np.tril(np.ones((spot.shape[1],) * 2, dtype=bool), -1)
        number = np.arange(spot.shape[1])
        there = (score < FAR) & ~jnp.any(same & earlier, axis=2) & (outside | (number == 0))
        order = jnp.argsort(jnp.where(there, number, spot.shape[1]), axis=1)[:, : self.slots]
        spot, there, score = (jnp.take_along_axis(part, order, axis=1) for part in (spot, there, score))
        return Nearest(spot, there, jnp.where(outside, score, -score))

    def _held(self, x: Array, now: Nearest, then: Nearest | None = None) -> Held:
        spot, there, distance = now
        R = jnp.asarray(self.radius)[:, None]
        if then is not None:
            # behind an edge that leads away a face has no minimum yet, and its plane is no obstacle here
            side = jnp.where(then.distance < 0.0, -1.0, 1.0)
            height, _ = self._measured(x, then.spot, side)
            ahead = height >= jnp.minimum(distance[:, :1], R) - BESIDE * self.on.size
            known = jnp.any((then.spot[:, :, None] == spot[:, None]) & there[:, None], axis=2)
            spot, there = (
                jnp.concatenate([spot, then.spot], axis=1),
                jnp.concatenate([there, then.there & ahead & ~known], axis=1),
            )
            distance = jnp.concatenate([distance, then.distance], axis=1)
        side = jnp.where(distance < 0.0, -1.0, 1.0)
        _, normal = self._measured(x, spot, side)
        gap = jnp.where(there, distance - R, FAR)
        nearest = jnp.argsort(gap, axis=1)[:, : self.slots]
        key = jnp.where(gap <= TOUCHING * R, dot(normal, jnp.asarray(GENERIC)), 2.0 + gap)
        order = jnp.argsort(jnp.take_along_axis(key, nearest, axis=1), axis=1)
        order = jnp.take_along_axis(nearest, order, axis=1)
        return Held(*(jnp.take_along_axis(part, order, axis=1) for part in (spot, there, side)))


def _smallest(score: Array) -> tuple[Array, Array]:
    """The smallest of each row and their places, in order:
    they are in the groups whose own smallest are the smallest.
    """
    n, many = score.shape
    groups = -(-many // GROUP)
    grouped = jnp.pad(score, ((0, 0), (0, groups * GROUP - many)), constant_values=jnp.inf).reshape(
        n, groups, GROUP
    )
    _, chosen = jax.lax.top_k(-jnp.min(grouped, axis=2), min(LOOKED_AT, groups))
    place = (chosen[:, :, None] * GROUP + np.arange(GROUP)).reshape(n, -1)
    found = jnp.take_along_axis(grouped, chosen[:, :, None], axis=1).reshape(n, -1)
    least, which = jax.lax.top_k(-found, LOOKED_AT)
    return -least, jnp.minimum(jnp.take_along_axis(place, which, axis=1), many - 1)
