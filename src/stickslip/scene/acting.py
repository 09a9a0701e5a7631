"""What acts in a scene besides weight and contact, as arrays: joints, drives, springs, loops,
forces, a fluid.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .tree import Poses, Tree, Twists, Velocities, back, times, turned


class Passive(eqx.Module):
    """Springs, dampers and armatures of joints, by degree of freedom."""

    damping: Any  # (nu,)
    stiffness: Any  # (nu,)
    rest: Any  # (nu,)
    armature: Any  # (nu,)
    # of q that belong to the entries of u; 0 where none does
    entries: tuple[int, ...] = eqx.field(static=True)
    springs: bool = eqx.field(static=True)
    dampers: bool = eqx.field(static=True)
    armatures: bool = eqx.field(static=True)


class Limits(eqx.Module):
    """Of joints: one slot each, for the limit that is nearer."""

    low: Any
    high: Any
    entries: tuple[int, ...] = eqx.field(static=True)  # of q; of a ball joint the first of its quaternion
    balls: tuple[bool, ...] = eqx.field(static=True)

    def gaps(self, q: Array) -> Array:
        at = np.array(self.entries, dtype=int)
        x = q[at]
        if any(self.balls):
            p = q[at[:, None] + np.arange(4) * np.array(self.balls)[:, None]]
            along = jnp.sqrt(jnp.maximum(jnp.sum(p[:, 1:] ** 2, axis=1), 1e-300))
            x = jnp.where(np.array(self.balls), 2.0 * jnp.arctan2(along, jnp.abs(p[:, 0])), x)
        return jnp.where(2.0 * x < self.low + self.high, x - self.low, self.high - x)


class Drives(eqx.Module):
    """Motors."""

    gear: Any
    gain: Any
    bias: Any
    control_limits: Any
    limits: Any
    numbers: Any  # (n,) controls that are numbers
    functions: tuple[Any, ...] = eqx.field(static=True)  # controls that are functions, else None
    names: tuple[str, ...] = eqx.field(static=True)
    q: tuple[int, ...] = eqx.field(static=True)
    u: tuple[int, ...] = eqx.field(static=True)

    def forces(self, t, q: Array, u: Array, state: Any, nu: int) -> Array:
        control = jnp.asarray(self.numbers)
        if any(f is not None for f in self.functions):
            control = jnp.stack([control[i] if f is None else jnp.asarray(f(t, state),
                                 dtype=float).reshape(())
                                 for i, f in enumerate(self.functions)])  # fmt: skip
        control = jnp.clip(control, self.control_limits[:, 0], self.control_limits[:, 1])
        way, rate = self.gear * q[np.array(self.q)], self.gear * u[np.array(self.u)]
        force = self.gain * control + self.bias[:, 0] + self.bias[:, 1] * way + self.bias[:, 2] * rate
        force = self.gear * jnp.clip(force, self.limits[:, 0], self.limits[:, 1])
        place = np.zeros((nu, len(self.u)))
        place[np.array(self.u), np.arange(len(self.u))] = 1.0
        return place @ force


class Springs(eqx.Module):
    """Between points of links."""

    stiffness: Any
    damping: Any
    length: Any
    ends: Any  # (2, n, 3) in the links
    links: tuple[tuple[int, ...], tuple[int, ...]] = eqx.field(static=True)

    def points(self, at: Poses) -> list[Array]:
        return [
            at.x[np.array(l)] + turned(at.A[np.array(l)], e)
            for l, e in zip(self.links, self.ends, strict=True)
        ]

    def stretched(self, at: Poses) -> tuple[list[Array], Array, Array]:
        """Ends, direction from the first to the second, and length."""
        a, b = self.points(at)
        along = b - a
        square = jnp.sum(along * along, axis=1)
        length = jnp.where(square > 0.0, jnp.sqrt(jnp.where(square > 0.0, square, 1.0)), 0.0)
        return [a, b], along / jnp.where(length > 0.0, length, 1.0)[:, None], length

    def forces(self, tree: Tree, at: Poses, by: Twists, now: Velocities) -> Array:
        (a, b), e, length = self.stretched(at)
        first, second = (np.array(l) for l in self.links)
        rate = jnp.sum((now.at(second, b) - now.at(first, a)) * e, axis=1)
        pull = (self.stiffness * (length - self.length) + self.damping * rate)[:, None] * e
        return tree.of_forces(by, first, a, pull) - tree.of_forces(by, second, b, pull)

    def energy(self, at: Poses) -> Array:
        return jnp.sum(0.5 * self.stiffness * (self.stretched(at)[2] - self.length) ** 2)


class Loop(eqx.Module):
    """A constraint on position: kind, and numbers."""

    kind: str = eqx.field(static=True)  # "connect", "glue", "rod", "coupling", "prescribed"
    links: tuple[int, int] = eqx.field(static=True)
    entries: tuple[int, int] = eqx.field(static=True)  # of q, of a coupling
    ends: Any = None  # (2, 3)
    turn: Any = None  # (3, 3) of the second as the first sees it
    length: Any = None
    polynomial: Any = None
    motion: Any = eqx.field(static=True, default=None)

    def g(self, t, q: Array, at: Poses, planar: bool) -> Array:
        if self.kind == "coupling":
            i, j = self.entries
            other = q[j] if j >= 0 else 0.0
            return q[i : i + 1] - jnp.polyval(jnp.asarray(self.polynomial)[::-1], jnp.asarray(other))
        if self.kind == "prescribed":
            return q[self.entries[0] : self.entries[0] + 1] - jnp.asarray(self.motion(t), dtype=float)
        A, x = (c[np.array(self.links)] for c in (at.A, at.x))
        ends = x + turned(A, jnp.asarray(self.ends))
        apart = ends[1] - ends[0]
        if self.kind == "rod":
            return (jnp.sqrt(jnp.sum(apart * apart)) - self.length)[None]
        if self.kind == "connect":
            return apart[:2] if planar else apart
        # the rest of the rotation of the second in the first, beside what it should be
        rest = times(back_matrix(A[0]), times(A[1], back_matrix(jnp.asarray(self.turn))))
        spin = 0.5 * jnp.stack([rest[2, 1] - rest[1, 2], rest[0, 2] - rest[2, 0], rest[1, 0] - rest[0, 1]])
        return jnp.concatenate([apart[:2], spin[2:]]) if planar else jnp.concatenate([apart, spin])


def back_matrix(A: Array) -> Array:
    return jnp.swapaxes(A, -1, -2)


class Push(eqx.Module):
    """A force of the user's."""

    at: Any  # (3,) in the link
    force: Any  # (3,), zero where it is a function
    torque: Any
    functions: tuple[Any, Any] = eqx.field(static=True)  # of force and torque, else None
    link: int = eqx.field(static=True)


class Drag(eqx.Module):
    """Of a fluid at rest, on boxes with the inertia of the bodies (MuJoCo's model for ``density`` and
    ``viscosity``).
    """

    density: Any
    viscosity: Any
    wind: Any
    turn: Any  # (bodies, 3, 3): principal axes in the links
    box: Any  # (bodies, 3): edges along them

    def forces(self, tree: Tree, at: Poses, by: Twists, now: Velocities) -> Array:
        links = np.array(tree.topology.carries, dtype=int)
        A, x = times(at.A[links], self.turn), tree.centres(at)
        v, omega = back(A, now.at(links, x) - self.wind), back(A, now.omega[links])
        b = self.box
        mean = jnp.mean(b, axis=1)[:, None]
        force, torque = -3.0 * np.pi * mean * self.viscosity * v, -np.pi * mean**3 * self.viscosity * omega
        others = jnp.roll(b, -1, axis=1), jnp.roll(b, -2, axis=1)
        force = force - 0.5 * self.density * others[0] * others[1] * jnp.abs(v) * v
        moment = b * (others[0] ** 4 + others[1] ** 4) / 64.0
        torque = torque - self.density * moment * jnp.abs(omega) * omega
        return tree.of_forces(by, links, x, turned(A, force), turned(A, torque))


def in_space(x: Any) -> Array:
    """A vector of a planar scene in space; its torques are numbers."""
    x = jnp.asarray(x, dtype=float)
    if x.shape == ():
        return x * jnp.array([0.0, 0.0, 1.0])
    return jnp.concatenate([x, jnp.zeros(3 - x.shape[0])])
