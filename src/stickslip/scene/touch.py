"""Slots on planes: gaps and friction velocities of all contacts at once."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..frames import COLUMNS, SLIDE_1
from .tree import Poses, Velocities, back, times, turned

# of the size of a shape: points that are so close to the lowest count as the lowest, the first of them is
# taken
TIE = 1e-12
# Of the radius: by how much the rim of a disc is lifted that lies flat, and up to which tilt. Then its four
# inner points carry it, and nobody has to share a load between points that mean the same.
LIFT, FADE = 1e-6, 1e-7


class At(NamedTuple):
    """Where slots are, on their planes."""

    gap: Float[Array, " slots"]
    point: Float[Array, "slots 3"]  # of the shape, lowest
    frame: Float[Array, "slots 3 3"]  # columns: tangents and normal of the plane


class Touch(eqx.Module):
    """Slots: first those with points (and a ball about each), then ellipsoids;
    in the links that carry them.
    """

    points: Float[Array, "n k 3"]
    radius: Float[Array, " n"]
    tie: Float[Array, " n"]
    centre: Float[Array, "m 3"]
    semi: Float[Array, "m 3"]
    turn: Float[Array, "m 3 3"]
    plane_at: Float[Array, "planes 3"]
    plane_frame: Float[Array, "planes 3 3"]
    speed: Float[Array, " planes"]
    rims: tuple[bool, ...] = eqx.field(static=True)
    links: tuple[int, ...] = eqx.field(static=True)  # of all slots
    planes: tuple[int, ...] = eqx.field(static=True)  # of all slots
    plane_links: tuple[int, ...] = eqx.field(static=True)
    belts: bool = eqx.field(static=True)  # whether a plane has a speed

    def _planes(self, at: Poses) -> tuple[Array, Array]:
        """A point and the frame of each slot's plane, in the world."""
        which, links = np.array(self.planes, dtype=int), np.array(self.plane_links, dtype=int)
        x, A = jnp.asarray(self.plane_at), jnp.asarray(self.plane_frame)
        if links.any():
            x = at.x[links] + turned(at.A[links], x)
            A = times(at.A[links], A)
        return x[which], A[which]

    def at(self, at: Poses) -> At:
        n = self.points.shape[0]
        links = np.array(self.links, dtype=int)
        x, frame = self._planes(at)
        normal = frame[:, :, 2]
        parts = []
        if n:
            parts.append(self._of_points(at.A[links[:n]], at.x[links[:n]], x[:n], normal[:n]))
        if n < len(links):
            parts.append(self._of_ellipsoids(at.A[links[n:]], at.x[links[n:]], x[n:], normal[n:]))
        gap, point = (
            jnp.concatenate(part) if len(parts) > 1 else part[0] for part in zip(*parts, strict=True)
        )
        return At(gap, point, frame)

    def _of_points(self, A: Array, origin: Array, plane: Array, normal: Array) -> tuple[Array, Array]:
        p = jnp.asarray(self.points)[:, 0]
        if self.points.shape[1] > 1:
            below = back(A, normal)  # the normal as the shape sees it
            heights = jax.lax.stop_gradient(jnp.sum(jnp.asarray(self.points) * below[:, None, :], axis=-1))
            lowest = heights <= jnp.min(heights, axis=1, keepdims=True) + self.tie[:, None]
            first = lowest & (jnp.cumsum(lowest, axis=1) == 1)
            p = jnp.sum(jnp.where(first[..., None], self.points, 0.0), axis=1)
        x = origin + turned(A, p)
        gap = jnp.sum(normal * (x - plane), axis=1) - self.radius
        return gap, x - self.radius[:, None] * normal

    def _of_ellipsoids(self, A: Array, origin: Array, plane: Array, normal: Array) -> tuple[Array, Array]:
        seen = back(self.turn, back(A, normal))
        square = jnp.sum((self.semi * seen) ** 2, axis=1)
        flat = square <= 1e-30 * jnp.max(self.semi, axis=1) ** 2
        s = jnp.where(flat, 0.0, jnp.sqrt(jnp.where(flat, 1.0, square)))
        down = turned(A, turned(self.turn, self.semi**2 * seen / jnp.where(flat, 1.0, s)[:, None]))
        x = origin + turned(A, self.centre)
        r = jnp.max(self.semi, axis=1)
        lift = (
            jnp.where(np.array(self.rims), LIFT * r * jnp.exp(-s / (FADE * r)), 0.0)
            if any(self.rims)
            else 0.0
        )
        return jnp.sum(normal * (x - plane), axis=1) - s + lift, x - down

    def motion(self, here: At, now: Velocities) -> Float[Array, "slots columns"]:
        """Of the bodies relative to their planes."""
        which, links = np.array(self.planes, dtype=int), np.array(self.links, dtype=int)
        plane = np.array(self.plane_links, dtype=int)[which]
        v, omega = now.at(links, here.point), now.omega[links]
        if plane.any():
            v, omega = v - now.at(plane, here.point), omega - now.omega[plane]
        out = relative_motion(here, v, omega)
        if self.belts:
            out = out - self.speed[which][:, None] * (np.arange(COLUMNS) == SLIDE_1)
        return out


def relative_motion(here: At, v: Array, omega: Array) -> Float[Array, "slots columns"]:
    """Columns of relative motion from velocities in the world."""
    slide, turn = back(here.frame, v), back(here.frame, omega)
    return jnp.concatenate([slide[:, :2], turn[:, 2:], turn[:, :2], -turn[:, 1:2]], axis=1)


def none() -> Any:
    """No slot."""
    zero: Any = np.zeros
    return Touch(zero((0, 1, 3)), zero(0), zero(0), zero((0, 3)), zero((0, 3)), zero((0, 3, 3)), zero((0, 3)),
                 zero((0, 3, 3)), zero(0), (), (), (), (), False)  # fmt: skip
