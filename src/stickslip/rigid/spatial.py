"""A body in space: q = (r_OS, p) with a unit quaternion p, scalar first; u = (v_S, omega).

v_S is given in the inertial basis I, omega in the body basis K. All rotations are written with p/|p|, so that
`normalize` changes no gap. Points P are given by r_SP in K; several points at once by rows.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system import System
from .rotations import quaternion_rate, rotation_matrix


def M(m, inertia: Float[Array, " 3"]) -> Float[Array, "6 6"]:
    """``inertia``: principal moments about S, along the axes of K."""
    return jnp.diag(jnp.concatenate([jnp.full(3, m), inertia]))


def B(q: Float[Array, " 7"]) -> Float[Array, "7 6"]:
    """q_dot = B u."""
    return jax.scipy.linalg.block_diag(jnp.eye(3), quaternion_rate(q[3:]))


def h(u: Float[Array, " 6"], force: Float[Array, " 3"], inertia: Float[Array, " 3"]) -> Float[Array, " 6"]:
    """A force at S (in I) and the gyroscopic torque."""
    omega = u[3:]
    return jnp.concatenate([force, -jnp.cross(omega, inertia * omega)])


def position(q: Float[Array, " 7"], r_SP=(0.0, 0.0, 0.0)) -> Float[Array, "... 3"]:
    """r_OP in I."""
    return q[:3] + jnp.asarray(r_SP) @ rotation_matrix(q[3:]).T


def omega(q: Float[Array, " 7"], u: Float[Array, " 6"]) -> Float[Array, " 3"]:
    """Angular velocity in I."""
    return rotation_matrix(q[3:]) @ u[3:]


def velocity(q: Float[Array, " 7"], u: Float[Array, " 6"], r_SP=(0.0, 0.0, 0.0)) -> Float[Array, "... 3"]:
    """v_P in I."""
    return u[:3] + jnp.cross(u[3:], jnp.asarray(r_SP)) @ rotation_matrix(q[3:]).T


def velocity_at(
    q: Float[Array, " 7"], u: Float[Array, " 6"], r: Float[Array, "... 3"]
) -> Float[Array, "... 3"]:
    """Velocity of the body's point that is at S + r now, r in I: for contact points that wander."""
    return Motion(q, u).at(r)


class Motion:
    """How the matter of a body moves, in I: as contact frames ask."""

    def __init__(self, q: Float[Array, " 7"], u: Float[Array, " 6"]) -> None:
        self.q, self.u = q, u

    @property
    def r(self) -> Float[Array, " 3"]:
        return self.q[:3]

    @functools.cached_property
    def omega(self) -> Float[Array, " 3"]:
        return omega(self.q, self.u)

    def at(self, arm: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
        """Of what is at S + arm now."""
        return self.u[:3] + jnp.cross(self.omega, arm)

    def fixed(self, r_SP: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
        return velocity(self.q, self.u, r_SP)


def normalize(q: Float[Array, " 7"]) -> Float[Array, " 7"]:
    """The same with a unit quaternion."""
    return jnp.concatenate([q[:3], q[3:] / jnp.sqrt(q[3:] @ q[3:])])


class SpatialBody(System):
    """One free body under a constant force at S, by default its weight along -z."""

    coordinates = ("x [m]", "y [m]", "z [m]", "p_0 [1]", "p_1 [1]", "p_2 [1]", "p_3 [1]")
    velocities = (
        "v_x [m/s]",
        "v_y [m/s]",
        "v_z [m/s]",
        "omega_1 [rad/s]",
        "omega_2 [rad/s]",
        "omega_3 [rad/s]",
    )

    m: eqx.AbstractVar[float]
    gravity: eqx.AbstractVar[float]

    @property
    def inertia(self) -> Array:
        """Principal moments about S."""
        raise NotImplementedError

    @property
    def down(self) -> Array:
        """The direction in which things fall, in I."""
        return jnp.array([0.0, 0.0, -1.0])

    def M(self, t, q):
        return M(self.m, self.inertia)

    def h(self, t, q, u):
        return h(u, self.m * self.gravity * self.down, self.inertia)

    def B(self, t, q):
        return B(q)

    def normalize(self, q):
        return normalize(q)

    def pose(self, t, q):
        """S in I, and A."""
        return q[:3], rotation_matrix(q[3:])

    def motion(self, t, q, u):
        return Motion(q, u)

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u - self.m * self.gravity * (self.down @ q[:3])
