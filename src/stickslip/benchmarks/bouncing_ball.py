"""A rotating ball falls on a plane (S0 section 5.1, S3 section 7.1).

Case 1 bounces with e_N = 0.5 and comes to rest through an accumulation point. Cases 2 and 3 fall without
restitution but spin: fast (omega = 50), so that the ball slips after the impact and then rolls, or slowly
(omega = 10), so that it sticks at once. Everything is known in closed form.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import PlanarBody, planar
from .base import Benchmark


class BouncingBall(PlanarBody):
    """q = (x, y, phi); M and h are those of a planar body, (44)."""

    contacts = ("ground",)

    e_N: float = 0.5
    mu: float = 0.2
    m: float = 1.0
    R: float = 0.1
    gravity: float = 9.81
    e_F: float = 0.0

    @property
    def theta(self):
        return planar.solid_ball(self.m, self.R)

    def g_N(self, t, q):
        return jnp.array([q[1] - self.R])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + self.R * u[2]])

    def draw(self, t, q):
        return [
            shapes.Line([[-1.2, 0.0], [1.2, 0.0]], shapes.GROUND, 4.0),
            shapes.disk(q[:2], self.R, q[2]),
            shapes.Contacts(
                at=q[None, :2] - jnp.array([[0.0, self.R]]), normals=[[0, 1]], tangents=[[[1, 0]]]
            ),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N, e_F=self.e_F, friction=Coulomb(self.mu)),)


def exact_gap(b: Benchmark, t: Any) -> np.ndarray:
    """Of a ball without spin (case 1), through all its bounces: the fall is the second half of the first."""
    t, g, e_N = np.asarray(t, dtype=float), float(b.system.gravity), float(b.system.e_N)
    gap, start, v = np.zeros_like(t), -b.reference["impact_time"], g * b.reference["impact_time"]
    while v > 1e-9:
        since, end = t - start, start + 2 * v / g
        gap = np.where((start <= t) & (t < end), v * since - g * since**2 / 2, gap)
        start, v = end, e_N * v
    return gap


def load(case: int = 1, g: float = 9.81) -> Benchmark:
    e_N, omega = {1: (0.5, 0.0), 2: (0.0, 50.0), 3: (0.0, 10.0)}[case]
    height, mu, R = 0.9, 0.2, 0.1
    t_impact, v = math.sqrt(2 * height / g), math.sqrt(2 * g * height)
    reference: dict = {
        "source": "closed form (ballistics, impact equation, S3 section 7.1)",
        "impact_time": t_impact,
        "Lambda_N": v * (1 + e_N),
    }
    if case == 1:
        reference |= {"impact_times": [t_impact, 2 * t_impact, 2.5 * t_impact], "rest_time": 3 * t_impact}
    if case == 2:
        # slip: du_x = -mu g dt, du_phi = -(5/2) mu g/R dt; stick when u_x + R u_phi = 0
        after = (-mu * v, omega - 2.5 * mu * v / R)
        slip = after[0] + R * after[1]
        reference |= {
            "u_after_impact": (after[0], 0.0, after[1]),
            "Lambda_F": -mu * v,
            "stick_time": t_impact + slip / (3.5 * mu * g),
            "u_rolling": (-10.0 / 7.0, 0.0, 100.0 / 7.0),
        }
    if case == 3:
        reference |= {"u_rolling": (-2.0 / 7.0, 0.0, 20.0 / 7.0), "Lambda_F": -2.0 / 7.0 * R * omega}
    return Benchmark(
        "bouncing-ball", case, BouncingBall(e_N=e_N, gravity=g),
        jnp.array([0.0, 1.0, 0.0]), jnp.array([0.0, 0.0, omega]),
        t1=1.5, dt=1e-2, method=Rattle(), source="S0 section 5.1", reference=reference,
    )  # fmt: skip


CASES = (1, 2, 3)
