"""A point mass on a table is pushed back, turns around and comes to rest (S4 section 10.2).

The normal force is constant, so friction is an element of constant size, here of dimension two. The force is
switched off at t = 3.
"""

import jax.numpy as jnp

from .. import shapes
from ..laws import FrictionElement
from ..methods import MoreauMidpoint
from ..system import System
from .base import Benchmark


class SlidingMass(System):
    """q = (x, y)."""

    coordinates = ("x [m]", "y [m]")

    m: float = 1.0
    friction: float = 2.0
    F_x: float = -2.5
    F_y: float = -0.25
    t_off: float = 3.0

    def M(self, t, q):
        return self.m * jnp.eye(2)

    def h(self, t, q, u):
        return jnp.where(t < self.t_off, jnp.array([self.F_x, self.F_y]), 0.0)

    def gamma_F(self, t, q, u):
        return u

    @property
    def laws(self):
        return (FrictionElement(self.friction, dim=2),)

    @property
    def switching_times(self):
        return (self.t_off,)

    def draw(self, t, q):  # seen from above
        force = 0.1 * self.h(t, q, jnp.zeros(2))
        return [shapes.disk(q, 0.06), shapes.Line(jnp.stack([q - force, q]), shapes.ACCENT, 3.0)]

    def energy(self, t, q, u):
        return 0.5 * self.m * u @ u


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "event-driven integration to 1e-11",
        "turning_time": 0.4596769772,  # v_x = 0
        "slowest": (0.47872, 0.0442492728),
        "state_when_switched_off": (-1.2709879656, -0.2546817579, -1.3246930954, -0.1324693396),
        "stick_time": 3.6656500438,
        "rest_position": (-1.7118789740, -0.2987708688),
    }
    return Benchmark(
        "sliding-mass", case, SlidingMass(), jnp.zeros(2), jnp.array([2.0, -0.2]),
        t1=4.0, dt=1e-3, method=MoreauMidpoint(), source="S4 section 10.2", reference=reference,
    )  # fmt: skip
