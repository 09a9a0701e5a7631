"""A Cartesian pendulum with a spring (S3 Examples 4.9-4.11, 5.3):
the test of order on a bilateral constraint.

Mass m on the circle x^2 + y^2 = L^2, gravity, and a spring to (2L, 2L); starts at rest in the horizontal.
Smooth, index 3: what a method loses here it loses by the constraint alone.
"""

import jax.numpy as jnp

from .. import shapes
from ..methods import RadauIIA
from ..system import System
from .base import Benchmark


class Pendulum(System):
    """q = (x, y)."""

    coordinates = ("x [m]", "y [m]")

    m: float = 1.25
    L: float = 1.0
    c: float = 1.0
    gravity: float = 10.0

    def M(self, t, q):
        return self.m * jnp.eye(2)

    def h(self, t, q, u):
        return self.c * (2 * self.L - q) - jnp.array([0.0, self.m * self.gravity])  # (4.31)

    def g(self, t, q):
        return jnp.array([q @ q - self.L**2])

    def draw(self, t, q):
        return [shapes.Line(jnp.stack([jnp.zeros(2), q]), shapes.INK, 2.0), shapes.disk(q, 0.06)]

    def energy(self, t, q, u):
        spring = 0.5 * self.c * jnp.sum((q - 2 * self.L) ** 2)
        return 0.5 * self.m * u @ u + self.m * self.gravity * q[1] + spring


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "minimal coordinate (the angle) integrated with rtol 1e-14",
        "q(0.2048)": (0.98472684, -0.17410641), "u(0.2048)": (-0.29526894, -1.67000893),
        "q(1)": (-0.83866762, -0.54464357), "u(1)": (-0.98432563, 1.51571061),
        "q(2.5)": (0.99986641, -0.01634492), "u(2.5)": (-0.00855836, -0.52353975),
    }  # fmt: skip
    return Benchmark(
        "pendulum", case, Pendulum(), jnp.array([1.0, 0.0]), jnp.zeros(2),
        t1=2.5, dt=1e-2, method=RadauIIA(stages=2), source="S3 Example 4.9", reference=reference,
    )  # fmt: skip
