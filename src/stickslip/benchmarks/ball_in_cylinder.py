"""A ball rolls inside a cylinder (S2 section 10.3): Moreau's scheme leaves it, position level stays.

The cylinder's axis is at (0, 1): only then the ball of the paper starts in contact. It starts at the height
of the axis, where the wall is vertical: it falls freely at first and slips.
"""

import jax.numpy as jnp

from ..methods import GeneralizedAlpha
from .ball_in_hollow_sphere import BallInHollowSphere
from .base import Benchmark


class BallInCylinder(BallInHollowSphere):
    contacts = ("cylinder",)

    gravity: float = 9.81
    height: float = 1.0  # of the axis

    def g_N(self, t, q):
        return super().g_N(t, q - jnp.array([0.0, self.height, 0.0]))

    def gamma_F(self, t, q, u):
        return super().gamma_F(t, q - jnp.array([0.0, self.height, 0.0]), u)

    def draw(self, t, q):  # seen from the axis
        return super().draw(t, q - jnp.array([0.0, self.height, 0.0]))


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "energy: it cannot rise above its start, and falls to at most R_c - R below the axis",
        "g_N_start": 0.0,
    }
    return Benchmark(
        "ball-in-cylinder", case, BallInCylinder(), jnp.array([-0.9, 1.0, 0.0]), jnp.zeros(3),
        t1=2.0, dt=1e-2, method=GeneralizedAlpha(rho_inf=0.5), source="S2 section 10.3", reference=reference,
    )  # fmt: skip
