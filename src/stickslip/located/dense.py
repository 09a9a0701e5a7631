"""Between two rows of a run with located events:
polynomials that match the states and accelerations at both ends.

q: the quintic through q, q_dot, q_ddot at both ends, with an error of O(dt^6). u: the quartic through u and
u_dot at both ends and u_dot at a quarter of the step, O(dt^5). So `sol(t)` has the order of the method up to
order 5.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..derive import Dynamics

QUARTER = 0.25


class End(NamedTuple):
    """One end of a step."""

    q: Array
    q_dot: Array
    q_ddot: Array
    u: Array
    u_dot: Array

    @classmethod
    def of(cls, dynamics: Dynamics, t, q: Array, u: Array, u_dot: Array) -> "End":
        q_dot = dynamics.q_dot(t, q, u)
        if dynamics.identity:
            return cls(q, q_dot, u_dot, u, u_dot)
        t = jnp.asarray(t, dtype=float)
        _, q_ddot = jax.jvp(dynamics.q_dot, (t, q, u), (jnp.ones(()), q_dot, u_dot))
        return cls(q, q_dot, q_ddot, u, u_dot)


def positions(x: Any, dt: Any, a: End, b: End) -> Array:
    """q at the part x of a step of dt."""
    d = b.q - a.q
    r, v, w = (
        d - dt * a.q_dot - dt**2 * a.q_ddot / 2,
        dt * (b.q_dot - a.q_dot) - dt**2 * a.q_ddot,
        dt**2 * (b.q_ddot - a.q_ddot),
    )
    c3, c4, c5 = 10 * r - 4 * v + w / 2, -15 * r + 7 * v - w, 6 * r - 3 * v + w / 2
    return a.q + x * (dt * a.q_dot + x * (dt**2 * a.q_ddot / 2 + x * (c3 + x * (c4 + x * c5))))


def velocities(x: Any, dt: Any, a: End, b: End, quarter: Array | None = None) -> Array:
    """u likewise; without u_dot at a quarter of the step a cubic."""
    d, v, w = b.u - a.u, dt * a.u_dot, dt * b.u_dot
    cubic = a.u + x * (v + x * (3 * d - 2 * v - w + x * (-2 * d + v + w)))
    if quarter is None:
        return cubic
    y = QUARTER
    slope = v + y * (2 * (3 * d - 2 * v - w) + 3 * y * (-2 * d + v + w))
    return cubic + (x * (1 - x)) ** 2 * (dt * quarter - slope) / (2 * y * (1 - y) * (1 - 2 * y))
