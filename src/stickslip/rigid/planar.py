"""A body in the plane: q = (x, y, phi) of the centre of mass S, u = q_dot.

Points P are given by r_SP in the body basis.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system import System


def rotation(phi) -> Float[Array, "2 2"]:
    """A_IK."""
    return jnp.array([[jnp.cos(phi), -jnp.sin(phi)], [jnp.sin(phi), jnp.cos(phi)]])


def M(m, theta) -> Float[Array, "3 3"]:
    """Mass matrix: mass in kg, moment of inertia about S in kg m^2."""
    return jnp.diag(jnp.array([m, m, theta]))


def weight(m, gravity) -> Float[Array, " 3"]:
    """Forces of the weight, along -y."""
    return jnp.array([0.0, -m * gravity, 0.0])


def position(q: Float[Array, " 3"], r_SP=(0.0, 0.0)) -> Float[Array, " 2"]:
    """r_OP in the inertial basis."""
    return q[:2] + rotation(q[2]) @ jnp.asarray(r_SP)


def velocity(q: Float[Array, " 3"], u: Float[Array, " 3"], r_SP=(0.0, 0.0)) -> Float[Array, " 2"]:
    """v_P in the inertial basis."""
    return velocity_at(u, rotation(q[2]) @ jnp.asarray(r_SP))


def velocity_at(u: Float[Array, " 3"], r: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """Velocity of the body's point that is at S + r now, r in the inertial basis:
    for contact points that wander.
    """
    return u[:2] + u[2] * jnp.array([-r[1], r[0]])


class Motion(NamedTuple):
    """How the matter of a body moves: as contact frames ask."""

    q: Float[Array, " 3"]
    u: Float[Array, " 3"]

    @property
    def r(self) -> Float[Array, " 2"]:
        return self.q[:2]

    @property
    def omega(self) -> Float[Array, ""]:
        return self.u[2]

    def at(self, arm: Float[Array, " 2"]) -> Float[Array, " 2"]:
        return velocity_at(self.u, arm)

    def fixed(self, r_SP: Float[Array, " 2"]) -> Float[Array, " 2"]:
        return velocity(self.q, self.u, r_SP)


def solid_ball(m, R):
    """Moment of inertia of a homogeneous ball."""
    return 2.0 / 5.0 * m * R**2


class PlanarBody(System):
    """One free body under its weight."""

    coordinates = ("x [m]", "y [m]", "phi [rad]")

    m: eqx.AbstractVar[float]
    gravity: eqx.AbstractVar[float]

    @property
    def theta(self):
        """Moment of inertia about S."""
        raise NotImplementedError

    def M(self, t, q):
        return M(self.m, self.theta)

    def h(self, t, q, u):
        return weight(self.m, self.gravity)

    def pose(self, t, q):
        """S, and A."""
        return q[:2], rotation(q[2])

    def motion(self, t, q, u):
        return Motion(q, u)

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u + self.m * self.gravity * q[1]
