"""A skate turns on an inclined plane: a velocity constraint that is not the rate of any position.

q = (x, y, phi) with x downhill and y across; gamma = 0 forbids velocity across the blade, which points along
(cos(phi), sin(phi)). No force turns the skate, so phi = omega t. Along the blade v_dot = a cos(phi) with a =
g sin(alpha), so from rest v = a/omega sin(omega t); (x, y)_dot = v (cos(phi), sin(phi)) integrates to a
cycloid:

    x = a/(2 omega^2) sin(omega t)^2,    y = a/(2 omega^2) (omega t - sin(2 omega t)/2)

Across the blade m v omega = lambda - m a sin(phi), so lambda = 2 m a sin(omega t). The skate does not go down
the slope: after every half turn it is back at the height of its start.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..methods import LobattoIIIAB
from ..rigid import planar
from ..system import System
from .base import Benchmark

OMEGA = 2.0


class KnifeEdge(System):
    coordinates = ("x [m]", "y [m]", "phi [rad]")

    m: float = 1.5
    J: float = 0.02
    gravity: float = 9.81
    alpha: float = math.radians(20.0)

    @property
    def downhill(self):
        """g sin(alpha)."""
        return self.gravity * jnp.sin(self.alpha)

    def M(self, t, q):
        return planar.M(self.m, self.J)

    def h(self, t, q, u):
        return jnp.array([self.m * self.downhill, 0.0, 0.0])

    def gamma(self, t, q, u):
        return jnp.array([-jnp.sin(q[2]) * u[0] + jnp.cos(q[2]) * u[1]])

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u - self.m * self.downhill * q[0]

    def draw(self, t, q):
        """As seen from above the slope, downhill downwards."""
        blade = 0.1 * jnp.array([jnp.sin(q[2]), -jnp.cos(q[2])])
        at = jnp.array([q[1], -q[0]])
        return [
            shapes.Line([[-0.2, 0.0], [2.9, 0.0]], shapes.GROUND, 1.0),
            shapes.Line(jnp.stack([at - blade, at + blade]), shapes.INK, 4.0),
        ]


def exact(b: Benchmark, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, u, lambda_gamma), a row for each time."""
    t, omega = np.atleast_1d(np.asarray(t, dtype=float)), float(b.u0[2])
    a, phi = float(b.system.downhill), omega * t
    size, v = a / (2 * omega**2), a / omega * np.sin(phi)
    q = np.column_stack([size * np.sin(phi) ** 2, size * (phi - np.sin(2 * phi) / 2), phi])
    u = np.column_stack([v * np.cos(phi), v * np.sin(phi), np.full_like(t, omega)])
    return q, u, 2 * float(b.system.m) * a * np.sin(phi)[:, None]


def load(case: int = 1) -> Benchmark:
    system, period = KnifeEdge(), math.pi / OMEGA
    a, m = float(system.downhill), system.m
    reference = {
        "source": "closed form",
        "exact": exact,  # (b, t) -> (q, u, lambda_gamma)
        "period": period,  # of an arch of the cycloid,
        "depth": a / (2 * OMEGA**2),  # how far down it reaches,
        "width": math.pi * a / (2 * OMEGA**2),  # and how far across
        "la_gamma_max": 2 * m * a,
    }
    return Benchmark(
        "knife-edge", case, system, jnp.zeros(3), jnp.array([0.0, 0.0, OMEGA]), t1=2 * period,
        dt=period / 100,
        method=LobattoIIIAB(stages=3), source="a skate on a slope, the classical nonholonomic example",
        reference=reference,
    )  # fmt: skip


CASES = (1,)
