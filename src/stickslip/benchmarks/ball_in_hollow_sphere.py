"""A ball falls onto the inside of a hollow sphere and rolls along it (S3 section 7.3): a curved contact.

Methods that know contacts on velocity level only leave the curve along its tangent and sink in; those on
position level stay on it.
"""

import math

import jax.numpy as jnp

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import PlanarBody, planar
from .base import Benchmark


class BallInHollowSphere(PlanarBody):
    """q = (x, y, phi); the sphere's centre P is the origin."""

    contacts = ("sphere",)

    m: float = 1.0
    R: float = 0.1
    R_s: float = 1.0
    gravity: float = 10.0
    mu: float = 0.1

    @property
    def theta(self):
        return planar.solid_ball(self.m, self.R)

    def g_N(self, t, q):
        return jnp.array([self.R_s - self.R - jnp.sqrt(q[:2] @ q[:2])])  # (7.12)

    def gamma_F(self, t, q, u):
        n = -q[:2] / jnp.sqrt(q[:2] @ q[:2])  # inward normal r_SP/|r_SP|
        return jnp.array([u[0] * n[1] - u[1] * n[0] + self.R * u[2]])  # (7.13)

    def draw(self, t, q):
        n = -q[:2] / jnp.sqrt(q[:2] @ q[:2])
        ring = self.R_s * shapes.circle(80)
        return [
            shapes.Line(jnp.concatenate([ring, ring[:1]]), shapes.GROUND, 4.0),
            shapes.disk(q[:2], self.R, q[2]),
            shapes.Contacts(at=[q[:2] - self.R * n], normals=[n], tangents=[[[n[1], -n[0]]]]),
        ]

    @property
    def laws(self):
        return (Contact(friction=Coulomb(self.mu)),)


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    # straight down from (-0.8, 0.1) to |r_OS| = 0.9
    y = -math.sqrt(0.9**2 - 0.8**2)
    reference = {
        "source": "closed form (ballistics)",
        "contact_time": math.sqrt(2.0 * (0.1 - y) / 10.0),
        "contact_y": y,
    }
    return Benchmark(
        "ball-in-hollow-sphere", case, BallInHollowSphere(), jnp.array([-0.8, 0.1, 0.0]), jnp.zeros(3),
        t1=2.0, dt=2e-2, method=Rattle(), source="S3 section 7.3", reference=reference,
    )  # fmt: skip
