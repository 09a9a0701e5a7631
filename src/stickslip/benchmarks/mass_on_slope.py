"""A point mass falls and slides on the slope y = exp(-x) until it sticks (S0 section 5.3, S1, S3 section 7.7).

The test of order: cases 1 and 2 start on the slope at rest and downhill and are smooth until they stick; case 3 starts
uphill and reverses its slip; case 4 is dropped on the slope. These are S0's, with m = pi. Cases 5 and 6 are S1's and S3's,
with m = 1: at rest on the slope, and the drop. The mass cancels from the motion.
"""

import math

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..system import System
from .base import Benchmark


class MassOnSlope(System):
    """q = (x, y)."""

    coordinates = ("x [m]", "y [m]")
    contacts = ("slope",)

    m: float = math.pi
    gravity: float = 10.0
    mu: float = 0.3
    e_N: float = 0.0

    def M(self, t, q):
        return self.m * jnp.eye(2)  # (50)

    def h(self, t, q, u):
        return jnp.array([0.0, -self.m * self.gravity])

    def tangent(self, x):
        df = jnp.array([1.0, -jnp.exp(-x)])  # (51)
        return df / jnp.sqrt(df @ df)  # (52)

    def g_N(self, t, q):
        tx, ty = self.tangent(q[0])
        normal = jnp.array([-ty, tx])
        return jnp.array([normal @ (q - jnp.array([q[0], jnp.exp(-q[0])]))])  # (53)

    def gamma_F(self, t, q, u):
        return jnp.array([self.tangent(q[0]) @ u])

    def draw(self, t, q):
        x = np.linspace(-0.4, 3.4, 80)
        tx, ty = self.tangent(q[0])
        return [
            shapes.Line(np.column_stack([x, np.exp(-x)]), shapes.GROUND, 4.0),
            shapes.disk(q + 0.06 * jnp.array([-ty, tx]), 0.06),
            shapes.Contacts(at=q[None], normals=[[-ty, tx]], tangents=[[[tx, ty]]]),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N, friction=Coulomb(self.mu)),)

    def energy(self, t, q, u):
        return 0.5 * self.m * u @ u + self.m * self.gravity * q[1]


_SOURCE = "event-driven integration to 1e-11 (DOP853 with root-found events)"
_ON_SLOPE = {
    "stick_time": 2.0973522786, "stick_x": 2.8491846477,
    "x(0.8192)": 1.0928918530, "speed(0.8192)": 2.3792037048, "x(1.6)": 2.5541642931, "speed(1.6)": 1.1753721244,
}  # fmt: skip
_DROPPED = {
    "impact_time": 0.3162277660, "speed_after_impact": 1.5652475842,
    "stick_time": 2.1878831741, "stick_x": 3.1638661343,
    "x(0.8192)": 0.9973042131, "speed(0.8192)": 2.7484348100, "x(1.6)": 2.7244957793, "speed(1.6)": 1.4786573891,
}  # fmt: skip
_REFERENCE = {
    1: _ON_SLOPE,
    2: {"stick_time": 1.9295861203, "stick_x": 2.9803885428},
    3: {
        "reversal_time": 0.1076556386, "reversal_x": -0.0376901867,
        "stick_time": 2.2197854242, "stick_x": 2.9204391164,
    },
    4: _DROPPED,
    5: _ON_SLOPE,
    6: _DROPPED,
}  # fmt: skip
CASES = tuple(_REFERENCE)


def load(case: int = 1) -> Benchmark:
    starts = {1: (1.0, 0.0), 2: (1.0, 1.0), 3: (1.0, -1.0), 4: (1.5, 0.0), 5: (1.0, 0.0), 6: (1.5, 0.0)}
    height, speed = starts[case]
    system = MassOnSlope() if case <= 4 else MassOnSlope(m=1.0)
    return Benchmark(
        "mass-on-slope", case, system, jnp.array([0.0, height]), speed * system.tangent(jnp.zeros(())),
        t1=3.28, dt=1e-2, method=Rattle(), source="S0 section 5.3" if case <= 4 else "S1; S3 section 7.7",
        reference={"source": _SOURCE, **_REFERENCE[case]},
    )  # fmt: skip
