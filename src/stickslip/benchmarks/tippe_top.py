"""The tippe top: spun on its body it turns upside down onto its stem (S2 section 10.6).

Two spherical contacts with Coulomb-Contensou friction. The contact slips all the time, so the motion up to
the impact of the stem is smooth and its reference converged. The printed friction laws are first order here:
the slip direction turns.
"""

import math

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..frames import ContactFrame
from ..laws import Contact, CoulombContensou
from ..methods import GeneralizedAlpha
from ..rigid import SpatialBody, rotation_matrix
from .base import Benchmark


class TippeTop(SpatialBody):
    """e_z^K points from the body to the stem."""

    m: float = 6e-3
    R_1: float = 1.5e-2
    R_2: float = 5e-3
    a_1: float = 3e-3
    a_2: float = 1.6e-2
    I_1: float = 8e-7
    I_3: float = 7e-7
    gravity: float = 9.81
    mu: float = 0.3
    contact_radius: float = 5e-4

    @property
    def inertia(self):
        return jnp.array([self.I_1, self.I_1, self.I_3])

    @property
    def radii(self):
        return jnp.array([self.R_1, self.R_2])

    @property
    def along(self):
        """Distances of the centres C_1, C_2 from S."""
        return jnp.array([self.a_1, self.a_2])

    def centres(self, q):
        """C_1, C_2."""
        return q[:3] + self.along[:, None] * rotation_matrix(q[3:])[:, 2]

    def lowest(self, t, q):
        """Of both spheres."""
        return self.centres(q) - self.radii[:, None] * np.array([0.0, 0.0, 1.0])

    @property
    def touches(self):  # (156), (157)
        law = Contact(friction=CoulombContensou(self.mu, self.contact_radius))
        return (ContactFrame(("body", "stem"), law, point=self.lowest),)

    def draw(self, t, q):
        A, centres = rotation_matrix(q[3:]), self.centres(q)
        angle = np.linspace(0.0, 0.72 * np.pi, 11)  # the body is cut off below its stem
        cap = self.R_1 * np.column_stack([np.sin(angle), -np.cos(angle)])
        top, stem = cap[-1, 1], 0.6 * self.R_2
        return [
            *shapes.floor(0.06, centre=(-0.045, 0.01)),
            shapes.revolved(centres[0], A, [*cap, (0.0, top), (stem, top), (stem, self.a_2 - self.a_1)]),
            shapes.ball(centres[1], A, self.R_2),
            shapes.Contacts.of(self, t, q),
        ]


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    system, tilt = TippeTop(), 0.1
    z = system.R_1 - system.a_1 * math.cos(tilt)
    p = jnp.array([math.cos(tilt / 2), math.sin(tilt / 2), 0.0, 0.0])
    reference = {
        "source": "smooth motion in persistent slip integrated to 1e-9",
        "theta": {
            0.25: 0.135573512,
            0.5: 0.518010146,
            0.75: 1.056919364,
            1.0: 1.572591417,
            1.25: 2.261845717,
        },
        "stem_time": 1.371043251,
        "stem_theta": 2.448432746,
        "theta_after": {1.5: 3.07253652, 2.0: 3.0002255, 3.0: 3.07529281},
    }
    q0, u0 = jnp.concatenate([jnp.array([0.0, 0.0, z]), p]), jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 180.0])
    return Benchmark(
        "tippe-top", case, system, q0, u0,
        t1=1.5, dt=1e-3, method=GeneralizedAlpha(rho_inf=0.5), source="S2 section 10.6", reference=reference,
    )  # fmt: skip
