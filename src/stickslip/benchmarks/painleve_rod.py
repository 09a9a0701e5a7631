"""Painleve's rod: sliding contact runs into a singularity of the contact force (S2 section 10.4,
S3 section 7.8).

While the rod slides, lambda_N = (g - l w^2 sin phi)/(1/m + (3/m) cos phi (cos phi - mu sin phi)) with |phi|;
the denominator vanishes at 45 degrees. Numerator and denominator reach zero together at t of about 0.8145:
the force blows up, the rod takes off.
"""

import math

import jax.numpy as jnp

from .. import shapes
from ..frames import ContactFrame
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import PlanarBody, planar
from .base import Benchmark


class PainleveRod(PlanarBody):
    """q = (x, y, phi)."""

    m: float = 1.0
    l: float = 1.0  # half the length
    gravity: float = 10.0
    mu: float = 5.0 / 3.0

    @property
    def theta(self):
        return self.m * self.l**2 / 3.0

    @property
    def tip(self):
        return jnp.array([self.l, 0.0])

    @property
    def touches(self):  # y + l sin phi, (7.25); u_x - l u_phi sin phi
        return (ContactFrame("tip", Contact(friction=Coulomb(self.mu)), point=self.tip),)

    def draw(self, t, q):
        ends = [planar.position(q, end) for end in (-self.tip, self.tip)]
        return [
            shapes.Line([[-2.0, 0.0], [24.0, 0.0]], shapes.GROUND, 4.0),
            shapes.Line(jnp.stack(ends), shapes.INK, 5.0),
            shapes.Contacts.of(self, t, q),
        ]


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    phi0 = math.radians(-31.0)
    reference = {
        "source": "sliding phase integrated to 1e-11 in a minimal coordinate",
        "lambda_N_start": 10.0317166563,
        "phi": {0.1: -0.54124631, 0.3: -0.54359613, 0.5: -0.55519620},
        "u_x": {0.1: 28.32751523, 0.3: 24.96590555, 0.5: 21.50294192},
        "lambda_N": {0.1: 10.04148261, 0.3: 10.16078127, 0.5: 10.78242058},
        "blow_up_time": 0.81455,
    }
    # the paper prints y = l sin(phi0), which would be below the ground
    return Benchmark(
        "painleve-rod", case, PainleveRod(), jnp.array([0.0, -math.sin(phi0), phi0]),
        jnp.array([30.0, 0.0, 0.0]),
        t1=1.5, dt=5e-3, method=Rattle(), source="S3 section 7.8", reference=reference,
    )  # fmt: skip
