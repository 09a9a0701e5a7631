"""A block on a belt, held by a spring: stick-slip with a Stribeck curve (S3 section 7.4).

The normal force is given, so the set-valued part is a friction element of constant size; the falling part of
the Stribeck curve is smooth and belongs to h. The printed data (lambda_N = 10, factor pi/2) do not give the
printed picture; with lambda_N = 1 and 2/pi the block slips first at t = 1.5.
"""

import jax.numpy as jnp

from .. import shapes
from ..laws import FrictionElement, stribeck
from ..methods import Rattle
from ..system import System
from .base import Benchmark


class BlockOnBelt(System):
    """q = (x)."""

    coordinates = ("x [m]",)

    m: float = 1.0
    c: float = 1.0
    u_b: float = 0.2
    lambda_N: float = 1.0
    mu_s: float = 0.5
    mu_d: float = 0.3
    epsilon: float = 3.0

    def M(self, t, q):
        return self.m * jnp.eye(1)

    def h(self, t, q, u):
        return -self.c * q + stribeck(
            u - self.u_b, self.mu_s, self.mu_d, self.epsilon, self.lambda_N
        )  # (7.14)

    def gamma_F(self, t, q, u):
        return u - self.u_b

    def draw(self, t, q):
        belt = jnp.mod(self.u_b * t + 0.2 * jnp.arange(8), 1.6) - 0.8  # marks that move with it
        spring = jnp.stack(
            [jnp.linspace(-0.9, q[0] - 0.06, 17), 0.06 + 0.02 * jnp.array([0.0, *(1.0, -1.0) * 8])], axis=1
        )
        return [
            shapes.Line([[-0.8, 0.0], [0.8, 0.0]], shapes.GROUND, 4.0),
            *(shapes.Line([[x, -0.03], [x, 0.0]], shapes.GROUND, 3.0) for x in belt),
            shapes.Line(spring, shapes.GROUND, 1.5),
            shapes.box((q[0], 0.06), 0.12, 0.12),
        ]

    @property
    def laws(self):
        return (FrictionElement(self.mu_s * self.lambda_N),)


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "slip phase integrated to 1e-11 with root-found transitions",
        "first_slip": 1.5, "slip_duration": 5.116639, "x_at_stick": 0.137492, "stick_duration": 1.812541,
        "period": 6.929180,
    }  # fmt: skip
    return Benchmark(
        "block-on-belt", case, BlockOnBelt(), jnp.array([0.2]), jnp.array([0.2]),
        t1=15.0, dt=1e-2, method=Rattle(), source="S3 section 7.4", reference=reference,
    )  # fmt: skip
