"""Round things: a ball on the nearest corner, edge or face of another shape, a line on lines that it crosses.

Features are chosen for the poses as they are, without derivatives; then the gap is a smooth function of them:

    face    g = n . r - R                       r: from a point of the feature to the ball's centre, R: radii of both
    edge    g = |r - e (e . r)| - R             e: along the edge
    corner  g = |r| - R
    lines   g = (d x e) . r / |d x e| - R       between the insides of both

The distance of two lines of some length is the smallest of those of their ends and that of the lines where they cross,
so all pairs of balls, capsules and polyhedra with balls and capsules are lists of these. A ball in a room has
g = R_room - R - |r|. On a cylinder or a disc of radius a and half length l, which it sees at a distance rho from the axis
and at a height z, it has

    side    g = rho - a - R            face   g = |z| - l - R            rim    g = |(rho - a, |z| - l)| - R
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .features import Features
from .touch import At
from .tree import Poses, Velocities, back, cross, times, turned

AWAY = 1.0  # of the size of a pair: the gap of a slot that has no feature
FAR = 1e30  # beside any length


def tangents(normal: Array, planar: bool) -> Array:
    """Frames with these normals: the first tangent is as near to x as it can be, or to y where the normal is."""
    x, y, z = (normal[:, i] for i in range(3))
    if planar:
        nothing = 0.0 * z
        columns = [jnp.stack([y, -x, nothing], axis=1), jnp.stack([nothing, nothing, nothing - 1.0], axis=1), normal]
        return jnp.stack(columns, axis=2)
    steep = jax.lax.stop_gradient(jnp.abs(x) > 0.9)[:, None]
    reference = jnp.where(steep, np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]))
    first = reference - normal * dot(normal, reference)[:, None]
    first = first / jnp.sqrt(dot(first, first))[:, None]
    return jnp.stack([first, cross(normal, first), normal], axis=2)


def dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=-1)


def length(r: Array) -> Array:
    """|r|, with the derivative zero at zero."""
    square = dot(r, r)
    there = square > 0.0
    return jnp.where(there, jnp.sqrt(jnp.where(there, square, 1.0)), 0.0)


def over(a: Array, b: Array) -> Array:
    """a/b, and zero where b is."""
    return jnp.where(b != 0.0, a / jnp.where(b != 0.0, b, 1.0), 0.0)


def picked(chosen: Array, rows: Array) -> Array:
    """The row of each block that is chosen: (n, k) flags of (n, k, 3)."""
    return jnp.sum(jnp.where(chosen[..., None], rows, 0.0), axis=-2)


def first_smallest(scores: Array) -> Array:
    """Flags of the smallest along the last axis, the first of them if there are several."""
    return jnp.arange(scores.shape[-1]) == jnp.argmin(scores, axis=-1)[..., None]


class Choice(NamedTuple):
    """The nearest feature of each: a point of it, a direction (of an edge, or the normal of a face), and what it is."""

    at: Array
    axis: Array
    flat: Array


class Swept(NamedTuple):
    """Of a step: balls whose centre would pass through a face, and the face that they enter by."""

    through: Array
    at: Array
    normal: Array


SAMPLES = 16  # of the way of a ball where it may touch: is it beside an edge, or on it?


class Balls(eqx.Module):
    """Balls about points of bodies, on the nearest features of others.

    A ball that is so fast that its centre would come out behind a face within a step meets that face in this step.
    """

    points: Float[Array, "n 3"]
    radius: Float[Array, " n"]  # of both together, or of the room less that of the ball
    on: Features
    inside: bool = eqx.field(static=True)  # a room
    planar: bool = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)
    swept: Swept | None = None

    def at(self, at: Poses) -> At:
        i, j = np.array(self.links), np.array(self.others)
        centre = at.x[i] + turned(at.A[i], jnp.asarray(self.points))
        x = back(at.A[j], centre - at.x[j])
        feature = self._nearest(jax.lax.stop_gradient(x))
        if self.swept is not None:
            through = self.swept.through[:, None]
            point, axis = jnp.where(through, self.swept.at, feature.at), jnp.where(through, self.swept.normal, feature.axis)
            feature = Choice(point, axis, feature.flat | self.swept.through)
        r = x - feature.at
        along = feature.axis * dot(feature.axis, r)[:, None]
        r = jnp.where(feature.flat[:, None], along, r - along)
        far = length(r)
        # on a face the gap is linear, and negative behind it
        height = jnp.where(feature.flat, dot(feature.axis, r), far)
        normal = jnp.where(feature.flat[:, None], feature.axis, over(r, far[:, None]))
        normal = turned(at.A[j], normal)
        if self.inside:
            return At(self.radius - height, centre + self._reach() * normal, tangents(-normal, self.planar))
        return At(height - self.radius, centre - self._reach() * normal, tangents(normal, self.planar))

    @property
    def sweeps(self) -> bool:
        return bool(self.on.topology.faces)

    def during(self, at: Poses, now: Velocities, dt: Any) -> "Balls":
        """The same in a step that begins like this, as straight ways tell."""
        if not self.sweeps:
            return self
        i, j = np.array(self.links), np.array(self.others)
        centre = at.x[i] + turned(at.A[i], jnp.asarray(self.points))
        x = back(at.A[j], centre - at.x[j])
        way = dt * back(at.A[j], now.at(i, centre) - now.at(j, centre))
        x, way = jax.lax.stop_gradient((x, way))
        n, corners = jnp.asarray(self.on.normals), jnp.asarray(self.on.polygons)[:, :, 0]
        height = dot(n, x[:, None] - corners) - self.radius[:, None]
        rate = dot(n, way[:, None])
        enters, leaves = rate < 0.0, rate > 0.0
        share = over(-height, rate)
        start = jnp.max(jnp.where(enters, share, -FAR), axis=1)
        end = jnp.minimum(jnp.min(jnp.where(leaves, share, FAR), axis=1), 1.0)
        never = jnp.any((rate == 0.0) & (height > 0.0), axis=1)
        face = first_smallest(-jnp.where(enters, share, -FAR))
        behind = jnp.any(face & (height + rate < -self.radius[:, None]), axis=1)
        ahead = jnp.any(face & (height >= -self.radius[:, None]), axis=1)  # it begins before the face
        shares = start + (end - start) * np.linspace(0.0, 1.0, SAMPLES)[:, None]

        def distance(share: Array) -> Array:
            there = x + share[:, None] * way
            feature = self._nearest(there)
            r = there - feature.at
            along = feature.axis * dot(feature.axis, r)[:, None]
            return jnp.where(feature.flat, dot(feature.axis, r), length(r - along))

        touches = jnp.min(jax.lax.map(distance, shares), axis=0) <= self.radius
        through = ~never & (start < end) & behind & ahead & touches
        return dataclasses.replace(self, swept=Swept(through, picked(face, corners), picked(face, n)))

    def _reach(self) -> Array:
        """From the centre to where it touches."""
        own = jnp.asarray(self.radius) - self.on.radius
        return (jnp.asarray(self.on.radius) - self.radius if self.inside else own)[:, None]

    def _nearest(self, x: Array) -> Choice:
        """All corners count, edges and faces where the point is beside their inside; behind all faces, the nearest face."""
        on, known = self.on, self.on.topology
        corners = jnp.asarray(on.corners)
        at, axes, scores = [corners], [jnp.zeros_like(corners)], [length(x[:, None] - corners)]
        kinds = [np.zeros(corners.shape[1], dtype=bool)]
        if known.edges:
            e, r = jnp.asarray(on.edge_direction), x[:, None] - on.edge_at
            s = dot(r, e)
            beside = (s > 0.0) & (s < on.edge_length)
            at.append(jnp.asarray(on.edge_at))
            axes.append(e)
            scores.append(jnp.where(beside, length(r - e * s[..., None]), FAR))
            kinds.append(np.zeros(len(known.edges), dtype=bool))
        if known.faces:
            n, polygons = jnp.asarray(on.normals), jnp.asarray(on.polygons)
            height = dot(n, x[:, None] - polygons[:, :, 0])
            outside = beyond(x[:, None, None], polygons, n, known.flat)
            above = (height >= 0.0) & (jnp.max(outside[..., 0, :], axis=-1) <= 0.0)
            behind = jnp.all(height < 0.0, axis=1, keepdims=True)
            scores = [jnp.where(behind, FAR, score) for score in scores]
            at.append(polygons[:, :, 0])
            axes.append(n)
            scores.append(jnp.where(behind, -height, jnp.where(above, height, FAR)))
            kinds.append(np.ones(len(known.faces), dtype=bool))
        every = (jnp.concatenate(parts[::-1], axis=1) for parts in (at, axes, scores))
        at_, axes_, scores_ = every
        chosen = first_smallest(scores_)
        flat = jnp.any(chosen & np.concatenate(kinds[::-1]), axis=1)
        return Choice(picked(chosen, at_), picked(chosen, axes_), flat)


def beyond(points: Array, polygons: Array, normals: Array, flat: bool) -> Array:
    """(..., points, sides): how far points are outside of each side of a polygon, seen along a normal; negative inside.

    ``points`` (..., p, 3), ``polygons`` (..., k, 3) counterclockwise about ``normals`` (..., 3). A side of no length is
    passed over. In the plane polygons are sides (k = 2), whose ends are passed.
    """
    along = jnp.roll(polygons, -1, axis=-2) - polygons
    normal = jnp.broadcast_to(normals[..., None, :], along.shape)
    out = normal * dot(along, normal)[..., None] - along if flat else cross(along, normal)
    size = length(out)
    away = dot((over(out, size[..., None]))[..., None, :, :], points[..., :, None, :] - polygons[..., None, :, :])
    return jnp.where((size > 0.0)[..., None, :], away, -FAR)


class OnTurned(eqx.Module):
    """Balls on cylinders and discs in space: on the side, a face, or the rim."""

    points: Float[Array, "n 3"]
    radius: Float[Array, " n"]
    on_at: Float[Array, "n 3"]
    on_axes: Float[Array, "n 3 3"]  # the third one is that of the cylinder
    semi: Float[Array, "n 3"]  # its radius, twice, and half its length
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)

    def at(self, at: Poses) -> At:
        i, j = np.array(self.links), np.array(self.others)
        centre = at.x[i] + turned(at.A[i], jnp.asarray(self.points))
        A = times(at.A[j], jnp.asarray(self.on_axes))
        x = back(A, centre - at.x[j] - turned(at.A[j], jnp.asarray(self.on_at)))
        flat = x * np.array([1.0, 1.0, 0.0])
        rho, z = length(flat), x[:, 2]
        outwards = jnp.where((rho > 0.0)[:, None], over(flat, rho[:, None]), np.array([1.0, 0.0, 0.0]))
        upwards = jnp.where(jax.lax.stop_gradient(z) < 0.0, -1.0, 1.0)
        beside, above = rho - self.semi[:, 0], upwards * z - self.semi[:, 2]
        held_beside, held_above = jax.lax.stop_gradient((beside, above))
        rim = (held_beside > 0.0) & (held_above > 0.0)
        side = ~rim & (held_beside > held_above)
        from_rim = beside[:, None] * outwards + (upwards * above)[:, None] * np.array([0.0, 0.0, 1.0])
        far = length(jnp.where(rim[:, None], from_rim, 0.0))
        height = jnp.where(rim, far, jnp.where(side, beside, above))
        face = upwards[:, None] * np.array([0.0, 0.0, 1.0])
        normal = jnp.where(rim[:, None], over(from_rim, far[:, None]), jnp.where(side[:, None], outwards, face))
        normal = turned(A, normal)
        return At(height - self.radius, centre - jnp.asarray(self.radius)[:, None] * normal, tangents(normal, False))


class Crossings(eqx.Module):
    """Lines with a skin, on edges that their insides cross, and on corners beside their insides.

    Two slots a pair, one for each half of the line: a bar across two edges rests on both.
    """

    lines: Features
    on: Features
    corners: bool = eqx.field(static=True)  # whether these count: those of another line are its own ends
    planar: bool = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)

    def at(self, at: Poses) -> At:
        i, j = np.array(self.links), np.array(self.others)
        # the line as the other body sees it
        A = jnp.sum(at.A[j][:, :, :, None] * at.A[i][:, :, None, :], axis=1)
        a = back(at.A[j], at.x[i] - at.x[j] + turned(at.A[i], jnp.asarray(self.lines.corners)[:, 0]))
        d = turned(A, jnp.asarray(self.lines.edge_direction)[:, 0])
        both = [self._half(a, d, half) for half in (0, 1)]
        gap, point, normal = (jnp.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:]) for parts in zip(*both, strict=True))
        j = np.repeat(j, 2)
        return At(gap, at.x[j] + turned(at.A[j], point), tangents(turned(at.A[j], normal), self.planar))

    def _half(self, a: Array, d: Array, half: int) -> tuple[Array, Array, Array]:
        """Gap, point and normal, in the other body."""
        known = self.on.topology
        fixed_a, fixed_d = jax.lax.stop_gradient((a, d))
        total = jnp.asarray(self.lines.edge_length)[:, 0]
        low, high = (0.0 * total, 0.5 * total) if half == 0 else (0.5 * total, total)
        at, axes, ways, scores = [], [], [], []
        if known.edges and not self.planar:
            e, r = jnp.asarray(self.on.edge_direction), fixed_a[:, None] - self.on.edge_at
            c = cross(fixed_d[:, None], e)
            square = dot(c, c)
            s, t = (over(dot(cross(v, r), c), square) for v in (e, fixed_d[:, None]))
            crosses = (s >= low[:, None]) & (s < high[:, None]) & (t > 0.0) & (t < self.on.edge_length) & (square > 1e-12)
            height = over(dot(c, r), jnp.sqrt(square))
            way = jnp.where(height < 0.0, -1.0, 1.0)
            # nothing of the other shape reaches beyond the edge towards the line: else the edge is on its far side
            corners = dot(c[:, :, None], jnp.asarray(self.on.corners)[:, None] - self.on.edge_at[:, :, None])
            reach = jnp.max(corners * way[..., None], axis=2)
            crosses &= reach <= 1e-9 * jnp.sqrt(square) * jnp.asarray(self.on.size)[:, None]
            at.append(jnp.asarray(self.on.edge_at))
            axes.append(e)
            ways.append(way)
            scores.append(jnp.where(crosses, way * height, FAR))
        if self.corners:
            corners = jnp.asarray(self.on.corners)
            r = corners - fixed_a[:, None]
            s = dot(r, fixed_d[:, None])
            beside = (s >= low[:, None]) & (s < high[:, None])
            at.append(corners)
            axes.append(jnp.zeros_like(corners))
            ways.append(jnp.ones(corners.shape[:2]))
            scores.append(jnp.where(beside, length(r - fixed_d[:, None] * s[..., None]), FAR))
        at_, axes_, ways_, scores_ = (jnp.concatenate(parts, axis=1) for parts in (at, axes, ways, scores))
        chosen = first_smallest(scores_)
        there = jnp.min(scores_, axis=1) < FAR
        point, e = picked(chosen, at_), picked(chosen, axes_)
        way = jnp.sum(jnp.where(chosen, ways_, 0.0), axis=1)
        # towards the line: across both lines, or from a corner straight to it
        r = a - point
        straight = r - d * dot(r, d)[:, None]
        c = cross(d, e) * way[:, None]
        c = jnp.where((dot(e, e) > 0.0)[:, None], c, straight)
        normal = over(c, length(c)[:, None])
        radius = jnp.asarray(self.lines.radius) + self.on.radius
        gap = dot(normal, r) - radius
        # where it touches: the point of the line, less its own radius
        e_ = jnp.where((dot(e, e) > 0.0)[:, None], e, 0.0)
        square = dot(c, c)
        s = jnp.where(dot(e, e) > 0.0, over(dot(cross(e_, r), c) * way, square), -dot(r, d))
        touching = a + d * s[:, None] - jnp.asarray(self.lines.radius)[:, None] * normal
        away = jax.lax.stop_gradient(length(a - jnp.asarray(self.on.corners)[:, 0])) + AWAY * (total + radius)
        fallback = tuple(jax.lax.stop_gradient(x) for x in (touching, normal))
        up = np.array([0.0, 0.0, 1.0]) if not self.planar else np.array([0.0, 1.0, 0.0])
        return (
            jnp.where(there, gap, away),
            jnp.where(there[:, None], touching, fallback[0]),
            jnp.where((there & (length(normal) > 0.0))[:, None], normal, jnp.broadcast_to(up, normal.shape)),
        )
