"""A stiff elastic pendulum hits a wall (S3 section 7.5): what step size a stiff force allows.

The spring's frequency is sqrt(c/m) = 1e4: a partitioned method is stable only for dt < 2/1e4, a stiffly
accurate one for any. The spring is so stiff that impacts happen as for a rigid pendulum, up to 1e-7.
"""

import math

import jax.numpy as jnp
from scipy.special import ellipk

from .. import shapes
from ..laws import Contact
from ..methods import RadauIIA
from ..system import System
from .base import Benchmark


class StiffPendulum(System):
    """q = (x, y), the suspension at the origin."""

    coordinates = ("x [m]", "y [m]")
    contacts = ("wall",)

    m: float = 1.0
    c: float = 1e8
    L: float = 1.0
    gravity: float = 10.0
    e_N: float = 0.5

    def M(self, t, q):
        return self.m * jnp.eye(2)

    def h(self, t, q, u):
        length = jnp.sqrt(q @ q)
        return jnp.array([0.0, -self.m * self.gravity]) - self.c * (length - self.L) * q / length  # (7.15)

    def g_N(self, t, q):
        return q[:1]  # (7.16)

    def draw(self, t, q):
        return [
            shapes.Line([[0.0, -1.2], [0.0, 0.2]], shapes.GROUND, 4.0),
            shapes.Line(jnp.stack([jnp.zeros(2), q]), shapes.INK, 2.0),
            shapes.disk(q, 0.05),
            shapes.Contacts(at=q[None], normals=[[1, 0]]),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N),)

    def energy(self, t, q, u):
        stretch = jnp.sqrt(q @ q) - self.L
        return 0.5 * self.m * u @ u + self.m * self.gravity * q[1] + 0.5 * self.c * stretch**2


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    g, e, v = 10.0, 0.5, math.sqrt(2.0 * 10.0)
    first = float(ellipk(0.5)) / math.sqrt(g)  # a quarter of a swing of amplitude 90 degrees
    # speed e v at the lowest point: sin^2(amplitude/2) = (e v)^2/(4 g)
    second = first + 2.0 * float(ellipk((e * v) ** 2 / (4.0 * g))) / math.sqrt(g)
    reference = {
        "source": "closed form of the rigid pendulum (elliptic integrals); the spring adds 1e-7",
        "impact_times": (first, second),
        "speeds_before": (-v, -e * v),
        "largest_stable_dt_partitioned": 2e-4,
    }
    return Benchmark(
        "stiff-pendulum", case, StiffPendulum(), jnp.array([1.0, 0.0]), jnp.zeros(2),
        t1=2.0, dt=1e-2, method=RadauIIA(stages=2), source="S3 section 7.5", reference=reference,
    )  # fmt: skip
