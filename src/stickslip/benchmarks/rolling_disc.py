"""A thin disc rolls round a circle, leaning inward: sticking friction on a body that turns.

Steady precession: the centre moves on a circle of radius rho, the normal of the disc is inclined by theta to
the vertical, phi_dot^2 = g cos(theta)/(r sin(theta)(1.5 rho/r + 0.25 cos(theta))). After a period centre and
normal are back where they were, and friction, inside its cone all the time, has turned once: the printed
stick conditions of partitioned methods are first order here with two stages and third with three. Method and
data are ours.
"""

import math

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..frames import ContactFrame
from ..laws import Contact, Coulomb
from ..methods import LobattoIIIAB
from ..rigid import SpatialBody, rotation_matrix
from .base import Benchmark

THETA, RHO = math.radians(60.0), 0.5


class RollingDisc(SpatialBody):
    m: float = 1.0
    r: float = 0.1
    gravity: float = 9.81
    mu: float = 0.6

    @property
    def inertia(self):
        return self.m * self.r**2 * jnp.array([0.25, 0.25, 0.5])

    def lowest(self, t, q):
        """The lowest point of the rim."""
        n = rotation_matrix(q[3:])[:, 2]
        downhill = jnp.array([n[0] * n[2], n[1] * n[2], n[2] ** 2 - 1.0])  # -(e_z - (e_z . n) n)
        return q[:3] + self.r * downhill / jnp.sqrt(downhill @ downhill)

    @property
    def touches(self):
        return (ContactFrame("rim", Contact(friction=Coulomb(self.mu, dim=2)), point=self.lowest),)

    def draw(self, t, q):
        r, h = self.r, 0.04 * self.r
        return [
            *shapes.floor(4.0 * self.r),
            shapes.revolved(q[:3], rotation_matrix(q[3:]), [(0.0, -h), (r, -h), (r, h), (0.0, h)]),
            shapes.Contacts.of(self, t, q),
        ]


def load(case: int = 1) -> Benchmark:
    system = RollingDisc()
    r, g = system.r, system.gravity
    rate = math.sqrt(g * math.cos(THETA) / (r * math.sin(THETA) * (1.5 * RHO / r + 0.25 * math.cos(THETA))))
    spin = -rate * (RHO / r + math.cos(THETA))  # about the normal: no slip
    normal = np.array([math.sin(THETA), 0.0, math.cos(THETA)])
    p = jnp.array([math.cos(THETA / 2), 0.0, math.sin(THETA / 2), 0.0])
    omega = rotation_matrix(p).T @ jnp.asarray(rate * np.array([0.0, 0.0, 1.0]) + spin * normal)
    period = 2.0 * math.pi / rate
    reference = {
        "source": "closed form",
        "precession": rate,
        "period": period,
        "normal": tuple(normal),
        "radius": RHO,
    }
    return Benchmark(
        "rolling-disc", case, system, jnp.concatenate([jnp.array([RHO, 0.0, r * math.sin(THETA)]), p]),
        jnp.concatenate([jnp.array([0.0, rate * RHO, 0.0]), omega]), t1=period, dt=period / 500,
        method=LobattoIIIAB(stages=3), source="steady precession of a thin disc", reference=reference,
    )  # fmt: skip


CASES = (1,)
