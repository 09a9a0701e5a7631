"""Convex polyhedra on each other, and polygons in the plane:
slots on the corners of what they have in common.

Of all directions that can separate two polyhedra (normals of the faces of either, products of their edges)
the one in which they are farthest apart is the normal n of the pair, from the second one (P) to the first
(Q). Seen along n, the faces of P and Q that look at each other most are two polygons, and their intersection
has corners: corners of Q inside of P's face, corners of P inside of Q's, and crossings of sides. Going around
n, each side of either begins at most at one of these. So a corner of the shape has a slot that it keeps for
ever: it holds the corner, or the crossing where the side that begins there enters the other polygon. A box
has four slots, shared by opposite corners, a pair of boxes has eight.

The gap of a slot is measured along n,

    g = m . (x_Q - x_P)/(m . n),    m: normal of P's face, of Q's face, or e_Q x e_P of sides that cross.

In the direction n nothing is nearer than the nearest features, so the smallest gap is the separation along n:
the distance, if the nearest features are a corner and a face or two edges, and never more than it where they
are corners or edges otherwise.

Polyhedra that would pass through each other within a step meet along the direction in which they touch first:
the last one in which they are apart, as straight ways tell.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .features import Features, Topology
from .near import FAR, beyond, dot, first_smallest, length, over, picked, tangents
from .touch import At
from .tree import Poses, Velocities, cross

# Of the size of a pair. Directions that separate by nearly as much as the best one count as good: faces come
# first, so that shapes lie on faces, not on edges; and a corner that is outside of a face by no more than
# this is inside.
NEARLY = 1e-8
INSIDE = 1e-7
EMPTY = 0.1  # the gap of a slot whose corner is beside the other shape, which it touches elsewhere
PARALLEL = 1e-6  # edges: the sine of their angle


class Seen(NamedTuple):
    """A polyhedron in the world."""

    corners: Array  # (n, corners, 3)
    normals: Array  # (n, faces, 3)
    polygons: Array  # (n, faces, most, 3)
    edges: Array  # (n, directions, 3)


def _seen(of: Features, A: Array, x: Array) -> Seen:
    def there(local: Array) -> Array:
        return jnp.sum(A.reshape(-1, *(1,) * (local.ndim - 2), 3, 3) * local[..., None, :], axis=-1)

    place = x.reshape(-1, 1, 3)
    corners = there(jnp.asarray(of.corners)) + place
    polygons = there(jnp.asarray(of.polygons)) + place[:, None]
    directions = jnp.asarray(of.edge_direction)[:, list(of.topology.directions)]
    return Seen(corners, there(jnp.asarray(of.normals)), polygons, there(directions))


def _ahead(seen: Seen, links: tuple[int, ...], now: Velocities, dt: Array) -> Seen:
    """Its corners where they would be after dt."""
    i = np.array(links)
    v, omega, root = (jax.lax.stop_gradient(part[i])[:, None] for part in (now.v, now.omega, now.root))

    def moved(x: Array) -> Array:
        points = x.reshape(len(i), -1, 3)
        return (points + dt[:, None, None] * (v + cross(omega, points - root))).reshape(x.shape)

    return seen._replace(corners=moved(seen.corners), polygons=moved(seen.polygons))


class Axes(NamedTuple):
    """All directions that can separate the polyhedra of a pair, from P to Q, and by how much they do.

    First the normals of P's faces, then those of Q's, then products of edges, both ways.
    """

    apart: Array  # (n, axes)
    n: Array  # (n, axes, 3)


class Direction(NamedTuple):
    """Which feature is the normal of a pair."""

    separation: Array
    of_P: Array  # (n, faces) flags; none in the two others
    of_Q: Array
    edge_P: Array  # (n, directions) flags
    edge_Q: Array
    way: Array  # of the product of edges
    n: Array


class Swept(NamedTuple):
    """Of a step: pairs that would pass through each other,
    the axis along which they meet, how far Q slides after that.
    """

    through: Array
    axis: Array  # (n, axes) flags
    slid: Array


class Kept(NamedTuple):
    """Of a step in the plane: sides of Q and P that look at each other,
    and which of their corners are beside the other.
    """

    there: tuple[Array, Array]  # (n, most) flags
    face: tuple[Array, Array]  # (n, faces) flags


class Sides(NamedTuple):
    """What the corners of one polygon stand for."""

    there: Array  # (n, most) flags: the corner, or a crossing
    crossing: Array
    side: Array  # (n, most, most of the other) which side is crossed


class Solids(eqx.Module):
    """Pairs of polyhedra of two topologies, Q (the first) on P."""

    Q: Features
    P: Features
    planar: bool = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)
    swept: Swept | None = None
    kept: Kept | None = None

    @property
    def slots(self) -> int:
        """A pair."""
        return self.Q.topology.slot_count + self.P.topology.slot_count

    def at(self, at: Poses) -> At:
        i, j = np.array(self.links), np.array(self.others)
        Q, P = _seen(self.Q, at.A[i], at.x[i]), _seen(self.P, at.A[j], at.x[j])
        held_Q, held_P = jax.lax.stop_gradient((Q, P))
        size = jnp.asarray(self.Q.size) + self.P.size
        direction = self._direction(held_Q, held_P, NEARLY * size)
        n = self._normal(direction, Q, P)
        # the two faces that look at each other most, chosen at the poses as they are
        face_Q, face_P = self._face(held_Q, -direction.n, size), self._face(held_P, direction.n, size)
        nearly, apart = NEARLY * size, direction.separation > NEARLY * size
        if self.swept is not None:  # faces look at each other as they did when they met
            slid = jnp.where(self.swept.through[:, None], self.swept.slid, 0.0)
            held_Q = held_Q._replace(
                corners=held_Q.corners - slid[:, None], polygons=held_Q.polygons - slid[:, None, None]
            )
        sides = [(Q, P, face_Q, face_P, self.Q.topology, held_Q, held_P, 1),
                 (P, Q, face_P, face_Q, self.P.topology, held_P, held_Q, -1)]  # fmt: skip
        measured = []
        for k, (own, other, face, other_face, known, held, held_other, sign) in enumerate(sides):
            # the polygons look at each other: to go around n in the same sense, one goes against its own
            # (``sign``)
            found = self._sides(
                held, held_other, face, other_face, sign * direction.n, sign * INSIDE * size, sign
            )
            if self.kept is not None:
                same = jnp.all(face == self.kept.face[k], axis=1)
                same &= jnp.all(other_face == self.kept.face[1 - k], axis=1)
                found = found._replace(there=jnp.where(same[:, None], self.kept.there[k], found.there))
            support = first_smallest(sign * -dot(held_other.corners, direction.n[:, None]))
            of_corners = self._of_corners(own, other, face, sign * n, support)
            of_features = self._of_features(own, other, face, other_face, found, sign * n, sign)
            measured.append((known, face, sign, found, of_corners, of_features))
        # where the nearest features are no corner in a face and no edges that cross, the nearest corner has
        # its own slot
        lowest = [jnp.min(jnp.where(found.there, gap, FAR), axis=1) for *_, found, _, (gap, _) in measured]
        bare = apart & (jax.lax.stop_gradient(jnp.minimum(*lowest)) > direction.separation + nearly)
        parts = []
        for known, face, sign, found, (height, corner), (gap, point) in measured:
            there = found.there & ~(bare[:, None] & (height <= (direction.separation + nearly)[:, None]))
            both = jnp.where(there, gap, height), jnp.where(there[..., None], point, corner)
            parts.append(_slotted(known, face, there, apart, size, *both, sign))
        gap, point = (jnp.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        frame = jnp.repeat(tangents(n, self.planar), self.slots, axis=0)
        return At(gap.reshape(-1), point.reshape(-1, 3), frame)

    def during(self, at: Poses, now: Velocities, dt: Any) -> "Solids":
        """The same in a step that begins like this, as straight ways tell."""
        i, j = np.array(self.links), np.array(self.others)
        Q, P = _seen(self.Q, at.A[i], at.x[i]), _seen(self.P, at.A[j], at.x[j])
        centre = jnp.mean(Q.corners, axis=1)
        way = dt * (now.at(i, centre) - now.at(j, centre))
        Q, P, way, size = jax.lax.stop_gradient((Q, P, way, jnp.asarray(self.Q.size) + self.P.size))
        axes = self._axes(Q, P)
        rate, ahead = dot(axes.n, way[:, None]), axes.apart > 0.0
        share = over(-axes.apart, rate)
        # they touch once no axis separates them any more, if none does so again before
        enters = jnp.where(ahead, jnp.where(rate < 0.0, share, FAR), 0.0)
        leaves = jnp.where(~ahead & (rate > 0.0), share, FAR)
        start, axis = jnp.max(enters, axis=1), self._best(enters, NEARLY * jnp.ones_like(size))
        touches = jnp.any(ahead, axis=1) & (start < 1.0) & (start < jnp.min(leaves, axis=1))
        # the end of the step would be judged by an axis in which they were not apart
        later = self._best(axes.apart + rate, NEARLY * size)
        through = touches & (jnp.sum(jnp.where(later, axes.apart, 0.0), axis=1) < -NEARLY * size)
        n = picked(axis, axes.n)
        slid = (1.0 - start)[:, None] * (way - n * dot(n, way)[:, None])
        if not self.planar:
            return dataclasses.replace(self, swept=Swept(through, axis, slid))
        dts = jnp.where(through, 0.0, dt)
        kept = self._kept((Q, P), (_ahead(Q, self.links, now, dts), _ahead(P, self.others, now, dts)), size)
        return dataclasses.replace(self, swept=Swept(through, axis, slid), kept=kept)

    def _kept(self, start: tuple[Seen, Seen], end: tuple[Seen, Seen], size: Array) -> Kept:
        """What touches in the plane: corners beside the other's side when the step begins,
        or where it would end.

        A corner that slides off the end of a side hands its load over to the corner of that end, which has
        another slot. If this happened within a step, wherever an iteration finds the corner, their gaps would
        jump.
        """
        n = self._direction(*start, NEARLY * size).n
        face = self._face(start[0], -n, size), self._face(start[1], n, size)
        of_Q, of_P = zip(
            *((self._sides(Q, P, *face, n, INSIDE * size, 1).there,
               self._sides(P, Q, *face[::-1], -n, -INSIDE * size, -1).there) for Q, P in (start, end)),
            strict=True,
        )  # fmt: skip
        return Kept((of_Q[0] | of_Q[1], of_P[0] | of_P[1]), face)

    # -- the normal
    def _axes(self, Q: Seen, P: Seen) -> Axes:
        apart = [
            jnp.min(dot(P.normals[:, :, None], Q.corners[:, None] - P.polygons[:, :, :1]), axis=2),
            jnp.min(dot(Q.normals[:, :, None], P.corners[:, None] - Q.polygons[:, :, :1]), axis=2),
        ]
        n = [P.normals, -Q.normals]
        if not self.planar:
            c = cross(Q.edges[:, :, None], P.edges[:, None, :])  # (n, d, d, 3)
            size = length(c)
            c = over(c, size[..., None])
            heights_Q = jnp.einsum("nabi,nki->nabk", c, Q.corners)
            heights_P = jnp.einsum("nabi,nki->nabk", c, P.corners)
            up = jnp.min(heights_Q, axis=3) - jnp.max(heights_P, axis=3)
            down = jnp.min(heights_P, axis=3) - jnp.max(heights_Q, axis=3)
            both = jnp.where((size > PARALLEL)[..., None], jnp.stack([up, down], axis=3), -FAR)
            apart.append(both.reshape(len(c), -1))
            n.append(jnp.stack([c, -c], axis=3).reshape(len(c), -1, 3))
        return Axes(jnp.concatenate(apart, axis=1), jnp.concatenate(n, axis=1))

    def _kinds(self, axes: Array) -> list[Array]:
        """Columns of axes: P's faces, Q's faces, and products of edges if there are any."""
        p, q = len(self.P.topology.faces), len(self.Q.topology.faces)
        return [axes[:, :p], axes[:, p : p + q], *([] if self.planar else [axes[:, p + q :]])]

    def _best(self, scores: Array, nearly: Array) -> Array:
        """Flags of the axis with the largest score;
        of kinds that are nearly as good the first one is taken.
        """
        kinds = self._kinds(scores)
        bests = jnp.stack([jnp.max(kind, axis=1) for kind in kinds], axis=1)
        good = bests >= jnp.max(bests, axis=1, keepdims=True) - nearly[:, None]
        first = good & (jnp.cumsum(good, axis=1) == 1)
        return jnp.concatenate(
            [first[:, k, None] & first_smallest(-kind) for k, kind in enumerate(kinds)], axis=1
        )

    def _direction(self, Q: Seen, P: Seen, nearly: Array) -> Direction:
        """In which they are farthest apart, or meet in this step; without derivatives."""
        axes = self._axes(Q, P)
        chosen = self._best(axes.apart, nearly)
        if self.swept is not None:
            chosen = jnp.where(self.swept.through[:, None], self.swept.axis, chosen)
        separation, n = jnp.sum(jnp.where(chosen, axes.apart, 0.0), axis=1), picked(chosen, axes.n)
        of_P, of_Q, *rest = self._kinds(chosen)
        if self.planar:
            none: Any = jnp.zeros((len(n), 0), dtype=bool)
            return Direction(separation, of_P, of_Q, none, none, jnp.ones(len(n)), n)
        edges = rest[0].reshape(len(n), Q.edges.shape[1], P.edges.shape[1], 2)
        way = jnp.where(jnp.any(edges[..., 1], axis=(1, 2)), -1.0, 1.0)
        return Direction(
            separation, of_P, of_Q, jnp.any(edges, axis=(1, 3)), jnp.any(edges, axis=(2, 3)), way, n
        )

    def _normal(self, direction: Direction, Q: Seen, P: Seen) -> Array:
        """The same normal as a function of the poses."""
        n = picked(direction.of_P, P.normals) - picked(direction.of_Q, Q.normals)
        if self.planar:
            return n
        crossed = jnp.any(direction.edge_P, axis=1)[:, None]
        c = (
            cross(picked(direction.edge_Q, Q.edges), picked(direction.edge_P, P.edges))
            * direction.way[:, None]
        )
        c = jnp.where(crossed, c, direction.n)
        return jnp.where(crossed, c / jnp.sqrt(dot(c, c))[:, None], n)

    def _face(self, seen: Seen, n: Array, size: Array) -> Array:
        """Flags of the face that looks along n most, of those with the most corners that reach farthest."""
        height = dot(seen.polygons, n[:, None, None])
        top = jnp.max(height, axis=(1, 2), keepdims=True)
        reach = jnp.sum(height >= top - (NEARLY * size)[:, None, None], axis=2)
        return first_smallest(-(reach + 0.5 * dot(seen.normals, n[:, None])))

    # -- the corners of the intersection
    def _sides(
        self, own: Seen, other: Seen, face: Array, other_face: Array, n: Array, margin: Array, step: int
    ) -> Sides:
        """Sides of one polygon, cut by those of the other, seen along n, which points away from the other."""
        mine, theirs = _polygon(face, own), _polygon(other_face, other)
        away = (
            beyond(mine, theirs, jnp.broadcast_to(n, mine[:, 0].shape), self.planar) - margin[:, None, None]
        )
        if self.planar:
            inside = jnp.max(away, axis=2) <= 0.0
            return Sides(inside, jnp.zeros_like(inside), jnp.zeros(away.shape, dtype=bool))
        next_away = jnp.roll(away, step, axis=1)
        inside = jnp.max(away, axis=2) <= 0.0
        share = over(away, away - next_away)
        enters, leaves = (away > 0.0) & (next_away <= 0.0), (away <= 0.0) & (next_away > 0.0)
        never = jnp.any((away > 0.0) & (next_away > 0.0), axis=2)
        start = jnp.max(jnp.where(enters, share, 0.0), axis=2)
        end = jnp.min(jnp.where(leaves, share, 1.0), axis=2)
        crossing = ~inside & ~never & (start < end)
        return Sides(inside | crossing, crossing, first_smallest(-jnp.where(enters, share, -1.0)))

    def _of_corners(
        self, own: Seen, other: Seen, face: Array, n: Array, support: Array
    ) -> tuple[Array, Array]:
        """Distances along n of the corners of a polygon from the nearest corner of the other shape,
        and these corners.
        """
        mine = _polygon(face, own)
        return dot(n[:, None], mine - picked(support, other.corners)[:, None]), mine

    def _of_features(
        self, own: Seen, other: Seen, face: Array, other_face: Array, found: Sides, n: Array, step: int
    ) -> tuple[Array, Array]:
        """Gaps along n, and points, of what the corners of a polygon stand for."""
        mine, theirs = _polygon(face, own), _polygon(other_face, other)
        n, x, point = n[:, None], theirs[:, :1], mine
        m = picked(other_face, other.normals)[:, None]
        if not self.planar:
            crossing = found.crossing[..., None]
            along, their_along = jnp.roll(mine, step, axis=1) - mine, jnp.roll(theirs, -1, axis=1) - theirs
            crossed = jnp.sum(jnp.where(found.side[..., None], theirs[:, None], 0.0), axis=2)
            crossed_along = jnp.sum(jnp.where(found.side[..., None], their_along[:, None], 0.0), axis=2)
            product = cross(along, crossed_along)
            x, m = jnp.where(crossing, crossed, x), jnp.where(crossing, product, m)
            share = over(dot(cross(x - mine, crossed_along), n), dot(product, n))
            point = mine + jnp.where(crossing, along * share[..., None], 0.0)
        return over(dot(m, mine - x), dot(m, n)), point


def _slotted(
    known: Topology, face: Array, there: Array, apart: Array, size: Array, gap: Array, point: Array, step: int
) -> tuple[Array, Array]:
    """From the corners of a face to slots; what stands for nothing is open,
    and far where the shapes touch.
    """
    most = gap.shape[1]
    table = np.full((len(known.faces), most), -1)
    for k, corners in enumerate(known.faces):
        table[k, : len(corners)] = [known.slots[i] for i in corners]
        # of a corner that is repeated, the one next to the next corner counts
        if step < 0 and len(corners) < most:
            table[k, len(corners) - 1], table[k, -1] = -1, known.slots[corners[-1]]
    slot = jnp.sum(jnp.where(face[..., None], table, 0), axis=1)
    own = slot[:, None] == np.arange(known.slot_count)[:, None]  # (n, slots, most)
    order = jnp.where(own, jnp.where(there, 0.0, 1.0)[:, None], 2.0)
    fixed = jax.lax.stop_gradient(gap)
    spread = (jnp.max(jnp.abs(fixed), axis=1) + size)[:, None, None]
    chosen = first_smallest(order + 0.4 * fixed[:, None] / spread)
    gap, point = jnp.sum(jnp.where(chosen, gap[:, None], 0.0), axis=2), picked(chosen, point[:, None])
    holds = jnp.any(chosen & own & there[:, None], axis=2)
    shift = jnp.maximum(jax.lax.stop_gradient(-gap), 0.0) + EMPTY * size[:, None]
    return jnp.where(holds | (apart[:, None] & jnp.any(own, axis=2)), gap, gap + shift), point


def _polygon(face: Array, seen: Seen) -> Array:
    return jnp.sum(jnp.where(face[:, :, None, None], seen.polygons, 0.0), axis=1)
