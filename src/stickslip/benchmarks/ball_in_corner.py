"""A ball comes to rest between two inclined planes (S2 section 10.2, S3 section 7.9): redundant contacts.

At rest four percussions hold three degrees of freedom: they are not unique, the motion is.
"""

import math

import jax.numpy as jnp

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import PlanarBody, planar
from .base import Benchmark


class BallInCorner(PlanarBody):
    """q = (x, y, phi)."""

    contacts = ("right plane", "left plane")

    m: float = 1.0
    R: float = 0.1
    gravity: float = 10.0
    alpha: float = math.pi / 4
    beta_angle: float = math.pi / 4
    mu: float = 0.3
    e_N1: float = 0.5
    e_N2: float = 0.0

    @property
    def theta(self):
        return planar.solid_ball(self.m, self.R)

    def g_N(self, t, q):
        a, b = self.alpha, self.beta_angle
        return jnp.array([
            -q[0] * jnp.sin(a) + q[1] * jnp.cos(a) - self.R,
            q[0] * jnp.sin(b) + q[1] * jnp.cos(b) - self.R,
        ])  # fmt: skip  # (7.26)

    def gamma_F(self, t, q, u):
        a, b = self.alpha, self.beta_angle
        return jnp.array([
            u[0] * jnp.cos(a) + u[1] * jnp.sin(a) + self.R * u[2],
            u[0] * jnp.cos(b) - u[1] * jnp.sin(b) + self.R * u[2],
        ])  # fmt: skip  # (7.27)

    def draw(self, t, q):
        a, b = self.alpha, self.beta_angle
        normals = jnp.array([[-jnp.sin(a), jnp.cos(a)], [jnp.sin(b), jnp.cos(b)]])
        tangents = jnp.array([[jnp.cos(a), jnp.sin(a)], [jnp.cos(b), -jnp.sin(b)]])
        return [
            shapes.Line(jnp.stack([-1.6 * tangents[1], jnp.zeros(2), 1.6 * tangents[0]]), shapes.GROUND, 4.0),
            shapes.disk(q[:2], self.R, q[2]),
            shapes.Contacts(at=q[:2] - self.R * normals, normals=normals, tangents=tangents[:, None]),
        ]

    @property
    def laws(self):
        return (
            Contact(e_N=self.e_N1, friction=Coulomb(self.mu)),
            Contact(e_N=self.e_N2, friction=Coulomb(self.mu)),
        )


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "closed form (geometry)",
        "rest_position": (0.0, 0.1 * math.sqrt(2.0)),
        # the ball falls from g_N2 = (1 - 0.5)/sqrt(2) - R straight down
        "first_contact_time": math.sqrt(2.0 * (0.5 - 0.1 * math.sqrt(2.0)) / 10.0),
    }
    return Benchmark(
        "ball-in-corner", case, BallInCorner(), jnp.array([-0.5, 1.0, 0.0]), jnp.zeros(3),
        t1=2.0, dt=1e-2, method=Rattle(), source="S3 section 7.9", reference=reference,
    )  # fmt: skip
