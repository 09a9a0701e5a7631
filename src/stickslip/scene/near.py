"""Round things: a ball on the nearest corner, edge or face of another shape, a line on lines that it crosses.

Features are chosen for the poses as they are, without derivatives; then the gap is a smooth function of them:

    face    g = n . r - R                       r: from the feature to the ball's centre, R: radii of both
    edge    g = |r - e (e . r)| - R             e: along the edge
    corner  g = |r| - R
    lines   g = (d x e) . r / |d x e| - R       between the insides of both

The distance of two lines of some length is the smallest of those of their ends and that of the lines where
they cross, so all pairs of balls, capsules and polyhedra with balls and capsules are lists of these. A ball
in a room has g = R_room - R - |r|. On a cylinder or a disc of radius a and half length l, which it sees at a
distance rho from the axis and at a height z, it has

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
    """Frames with these normals: the first tangent is as near to x as it can be,
    or to y where the normal is.
    """
    x, y, z = (normal[:, i] for i in range(3))
    if planar:
        nothing = 0.0 * z
        columns = [
            jnp.stack([y, -x, nothing], axis=1),
            jnp.stack([nothing, nothing, nothing - 1.0], axis=1),
            normal,
        ]
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
    """The nearest feature of each: a point of it, a direction (of an edge,
    or the normal of a face), and what it is.
    """

    at: Array
    axis: Array
    flat: Array


DEEP = 1e-2  # of a ball's radius: how far it must reach into what it passes by


class Swept(NamedTuple):
    """Of a step: balls that would come out behind what they touch first, or beside it,
    a point of it, the normal there.
    """

    through: Array
    at: Array
    normal: Array


def entering(r: Array, way: Array, radius: Array) -> Array:
    """When |r + share way| first is a radius: zero where it is less already and falls,
    `FAR` where it never is.
    """
    a, b, c = dot(way, way), dot(r, way), dot(r, r) - radius**2
    inside = b * b - a * c
    share = over(-b - jnp.sqrt(jnp.maximum(inside, 0.0)), a)
    return jnp.where((b < 0.0) & (inside > 0.0), jnp.maximum(share, 0.0), FAR)


class Balls(eqx.Module):
    """Balls about points of bodies, on the nearest features of others.

    A ball that is so fast that its centre would come out behind what it touches first (a face, an edge, a
    corner) meets the plane that touches both there, in this step.
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
            point = jnp.where(through, self.swept.at, feature.at)
            axis = jnp.where(through, self.swept.normal, feature.axis)
            feature = Choice(point, axis, feature.flat | self.swept.through)
        r = x - feature.at
        along = feature.axis * dot(feature.axis, r)[:, None]
        r = jnp.where(feature.flat[:, None], along, r - along)
        far = length(r)
        height = self._distance(feature, x)
        normal = jnp.where(feature.flat[:, None], feature.axis, over(r, far[:, None]))
        normal = turned(at.A[j], normal)
        if self.inside:
            return At(self.radius - height, centre + self._reach() * normal, tangents(-normal, self.planar))
        return At(height - self.radius, centre - self._reach() * normal, tangents(normal, self.planar))

    def _distance(self, feature: Choice, x: Array) -> Array:
        """Of centres; on a face it is linear, and negative behind it."""
        r = x - feature.at
        height = dot(feature.axis, r)
        return jnp.where(feature.flat, height, length(r - feature.axis * height[:, None]))

    def during(self, at: Poses, now: Velocities, dt: Any) -> "Balls":
        """The same in a step that begins like this, as straight ways tell."""
        if self.inside:
            return self
        i, j = np.array(self.links), np.array(self.others)
        centre = at.x[i] + turned(at.A[i], jnp.asarray(self.points))
        x = back(at.A[j], centre - at.x[j])
        way = dt * back(at.A[j], now.at(i, centre) - now.at(j, centre))
        share, foot, n = self._first_touch(*jax.lax.stop_gradient((x, way)))
        feature = self._nearest(jax.lax.stop_gradient(x + way))
        height = dot(n, x + way - foot)
        grazes = (height < (1.0 - DEEP) * self.radius) & (self._distance(feature, x + way) > self.radius)
        through = (share <= 1.0) & ((height < 0.0) | grazes)
        return dataclasses.replace(self, swept=jax.lax.stop_gradient(Swept(through, foot, n)))

    def _first_touch(self, x: Array, way: Array) -> tuple[Array, Array, Array]:
        """When the ball first touches, as a share of its way (`FAR`: never),
        the point that it touches, and the normal.
        """
        on, R, x, way = self.on, self.radius[:, None], x[:, None], way[:, None]
        corners = jnp.asarray(on.corners)
        shares, feet = [entering(x - corners, way, R)], [corners]
        if on.topology.edges:
            e, origin = jnp.asarray(on.edge_direction), jnp.asarray(on.edge_at)
            r = x - origin
            share = entering(r - e * dot(e, r)[..., None], way - e * dot(e, way)[..., None], R)
            s = dot(e, r + share[..., None] * way)
            shares.append(jnp.where((s > 0.0) & (s < on.edge_length), share, FAR))
            feet.append(origin + e * s[..., None])
        if on.topology.faces:
            n, polygons = jnp.asarray(on.normals), jnp.asarray(on.polygons)
            height, rate = dot(n, x - polygons[:, :, 0]), dot(n, way)
            share = jnp.where((height > 0.0) & (rate < 0.0), jnp.maximum(over(R - height, rate), 0.0), FAR)
            there = x + share[..., None] * way
            within = (
                jnp.max(beyond(there[:, :, None], polygons, n, on.topology.flat)[..., 0, :], axis=-1) <= 0.0
            )
            shares.append(jnp.where(within, share, FAR))
            feet.append(there - n * dot(n, there - polygons[:, :, 0])[..., None])
        every = jnp.concatenate(shares[::-1], axis=1)
        first = first_smallest(every)
        share, foot = jnp.min(every, axis=1), picked(first, jnp.concatenate(feet[::-1], axis=1))
        r = x[:, 0] + share[:, None] * way[:, 0] - foot
        return share, foot, over(r, length(r)[:, None])

    def _reach(self) -> Array:
        """From the centre to where it touches."""
        own = jnp.asarray(self.radius) - self.on.radius
        return (jnp.asarray(self.on.radius) - self.radius if self.inside else own)[:, None]

    def _nearest(self, x: Array) -> Choice:
        """All corners count, edges and faces where the point is beside their inside;
        behind all faces, the nearest face.
        """
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
    """(..., points, sides): how far points are outside of each side of a polygon,
    seen along a normal; negative inside.

    ``points`` (..., p, 3), ``polygons`` (..., k, 3) counterclockwise about ``normals`` (..., 3). A side of no
    length is passed over. In the plane polygons are sides (k = 2), whose ends are passed.
    """
    along = jnp.roll(polygons, -1, axis=-2) - polygons
    normal = jnp.broadcast_to(normals[..., None, :], along.shape)
    out = normal * dot(along, normal)[..., None] - along if flat else cross(along, normal)
    size = length(out)
    away = dot(
        (over(out, size[..., None]))[..., None, :, :], points[..., :, None, :] - polygons[..., None, :, :]
    )
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
        normal = jnp.where(
            rim[:, None], over(from_rim, far[:, None]), jnp.where(side[:, None], outwards, face)
        )
        normal = turned(A, normal)
        return At(
            height - self.radius, centre - jnp.asarray(self.radius)[:, None] * normal, tangents(normal, False)
        )


class Crossed(NamedTuple):
    """Of a step, of each half: lines that would pass through an edge or a corner.

    Which one (flags of edges, then corners), on which side of the edge they begin, and the normal at the
    corner.
    """

    through: Array
    feature: Array
    way: Array
    normal: Array


class Crossings(eqx.Module):
    """Lines with a skin, on edges that their insides cross, and on corners beside their insides.

    Two slots a pair, one for each half of the line: a bar across two edges rests on both. A line that is so
    fast that its axis would come out behind an edge or a corner meets it in this step.
    """

    lines: Features
    on: Features
    corners: bool = eqx.field(static=True)  # whether these count: those of another line are its own ends
    planar: bool = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)
    swept: tuple[Crossed, ...] | None = None

    def at(self, at: Poses) -> At:
        j = np.array(self.others)
        a, d = self._seen(at)
        both = [self._half(a, d, half) for half in (0, 1)]
        gap, point, normal = (
            jnp.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:]) for parts in zip(*both, strict=True)
        )
        j = np.repeat(j, 2)
        return At(gap, at.x[j] + turned(at.A[j], point), tangents(turned(at.A[j], normal), self.planar))

    def during(self, at: Poses, now: Velocities, dt: Any) -> "Crossings":
        """The same in a step that begins like this, as straight ways tell."""
        if self.planar or not self.on.topology.edges:
            return self
        i, j = np.array(self.links), np.array(self.others)
        a, d = self._seen(at)
        middle = at.x[j] + turned(at.A[j], a + 0.5 * d * jnp.asarray(self.lines.edge_length))
        way = dt * back(at.A[j], now.at(i, middle) - now.at(j, middle))
        a, d, way = jax.lax.stop_gradient((a, d, way[:, None]))
        r, radius = a[:, None] - self.on.edge_at, (jnp.asarray(self.lines.radius) + self.on.radius)[:, None]
        swept = []
        for half in (0, 1):
            height, side, _ = self._crossing(r, d, half)
            rate = self._crossing(r + way, d, half)[0] - height
            share = jnp.where(side * rate < 0.0, jnp.maximum(over(side * radius - height, rate), 0.0), FAR)
            crosses = self._crossing(r + share[..., None] * way, d, half)[2]
            shares, behind, sides = [jnp.where(crosses, share, FAR)], [side * (height + rate) < 0.0], [side]
            normal = jnp.zeros_like(d)
            if self.corners:
                x = a[:, None] - jnp.asarray(self.on.corners)
                off, along = (v - d[:, None] * dot(v, d[:, None])[..., None] for v in (x, way))
                share = entering(off, along, radius)
                low, high = self._span(half)
                s = -dot(x + share[..., None] * way, d[:, None])
                shares.append(jnp.where((s >= low[:, None]) & (s < high[:, None]), share, FAR))
                touching = off + share[..., None] * along
                behind.append(dot(touching, off + along) < 0.0)
                sides.append(jnp.ones_like(share))
                normal = picked(first_smallest(shares[1]), over(touching, length(touching)[..., None]))
            every = jnp.concatenate(shares, axis=1)
            feature = first_smallest(every)
            through = (jnp.min(every, axis=1) <= 1.0) & jnp.any(
                feature & jnp.concatenate(behind, axis=1), axis=1
            )
            side = jnp.sum(jnp.where(feature, jnp.concatenate(sides, axis=1), 0.0), axis=1)
            swept.append(Crossed(through, feature, side, normal))
        return dataclasses.replace(self, swept=tuple(swept))

    def _seen(self, at: Poses) -> tuple[Array, Array]:
        """An end and the direction of each line as the other body sees them."""
        i, j = np.array(self.links), np.array(self.others)
        A = jnp.sum(at.A[j][:, :, :, None] * at.A[i][:, :, None, :], axis=1)
        a = back(at.A[j], at.x[i] - at.x[j] + turned(at.A[i], jnp.asarray(self.lines.corners)[:, 0]))
        return a, turned(A, jnp.asarray(self.lines.edge_direction)[:, 0])

    def _span(self, half: int) -> tuple[Array, Array]:
        total = jnp.asarray(self.lines.edge_length)[:, 0]
        return (0.0 * total, 0.5 * total) if half == 0 else (0.5 * total, total)

    def _crossing(self, r: Array, d: Array, half: int) -> tuple[Array, Array, Array]:
        """Of lines and edges, r from an edge's point to the line's: distance with a sign,
        this sign, whether they cross.
        """
        low, high = self._span(half)
        e = jnp.asarray(self.on.edge_direction)
        c = cross(d[:, None], e)
        square = dot(c, c)
        s, t = (over(dot(cross(v, r), c), square) for v in (e, d[:, None]))
        crosses = (
            (s >= low[:, None])
            & (s < high[:, None])
            & (t > 0.0)
            & (t < self.on.edge_length)
            & (square > 1e-12)
        )
        height = over(dot(c, r), jnp.sqrt(square))
        way = jnp.where(height < 0.0, -1.0, 1.0)
        # nothing of the other shape reaches beyond the edge towards the line: else the edge is on its far
        # side
        corners = dot(c[:, :, None], jnp.asarray(self.on.corners)[:, None] - self.on.edge_at[:, :, None])
        reach = jnp.max(corners * way[..., None], axis=2)
        return height, way, crosses & (reach <= 1e-9 * jnp.sqrt(square) * jnp.asarray(self.on.size)[:, None])

    def _half(self, a: Array, d: Array, half: int) -> tuple[Array, Array, Array]:
        """Gap, point and normal, in the other body."""
        known = self.on.topology
        fixed_a, fixed_d = jax.lax.stop_gradient((a, d))
        total = jnp.asarray(self.lines.edge_length)[:, 0]
        low, high = self._span(half)
        at, axes, ways, scores = [], [], [], []
        if known.edges and not self.planar:
            height, way, crosses = self._crossing(fixed_a[:, None] - self.on.edge_at, fixed_d, half)
            at.append(jnp.asarray(self.on.edge_at))
            axes.append(jnp.asarray(self.on.edge_direction))
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
        way = jnp.sum(jnp.where(chosen, ways_, 0.0), axis=1)
        if self.swept is not None:
            swept = self.swept[half]
            chosen = jnp.where(swept.through[:, None], swept.feature, chosen)
            way = jnp.where(swept.through, swept.way, way)
            there |= swept.through
        point, e = picked(chosen, at_), picked(chosen, axes_)
        # towards the line: across both lines, or from a corner straight to it
        r = a - point
        straight = r - d * dot(r, d)[:, None]
        if self.swept is not None:
            straight = jnp.where(swept.through[:, None], swept.normal, straight)
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
