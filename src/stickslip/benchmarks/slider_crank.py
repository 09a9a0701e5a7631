"""A slider-crank mechanism whose slider has clearance in its guide (S0 section 5.2, S1, S3).

Three rigid bodies in the plane, six bilateral constraints, four frictional contacts at the slider's corners;
the slider starts a little tilted, rattles itself straight within about 0.01 s and then slides along one wall.
Geometry of Flores, Leine, Glocker, MBSD 23 (2010) 165. The motion is too sensitive for pointwise references:
no penetration, the vanished tilt and the energy balance are what can be checked.
"""

import jax.numpy as jnp

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import planar
from ..system import System
from .base import Benchmark


class SliderCrank(System):
    """q = (x_1, y_1, phi_1, x_2, y_2, phi_2, x_3, y_3, phi_3): crank, connecting rod, slider."""

    coordinates = tuple(
        f"{x}_{i} [{unit}]" for i in (1, 2, 3) for x, unit in (("x", "m"), ("y", "m"), ("phi", "rad"))
    )
    contacts = ("upper left", "upper right", "lower left", "lower right")  # corners of the slider

    l1: float = 0.153
    l2: float = 0.306
    a: float = 0.05
    b: float = 0.025
    d: float = 0.052
    m1: float = 0.038
    m2: float = 0.038
    m3: float = 0.076
    theta1: float = 7.4e-5
    theta2: float = 5.9e-4
    theta3: float = 2.7e-6
    gravity: float = 9.81
    e_N: float = 0.4
    mu: float = 0.01

    def M(self, t, q):
        m1, m2, m3 = self.m1, self.m2, self.m3
        return jnp.diag(jnp.array([m1, m1, self.theta1, m2, m2, self.theta2, m3, m3, self.theta3]))  # (45)

    def h(self, t, q, u):
        weights = [0.0, -self.m1, 0.0, 0.0, -self.m2, 0.0, 0.0, -self.m3, 0.0]
        return self.gravity * jnp.array(weights)  # (46)

    def g(self, t, q):
        x1, y1, p1, x2, y2, p2, x3, y3, _ = q
        c1, s1 = self.l1 / 2 * jnp.cos(p1), self.l1 / 2 * jnp.sin(p1)
        c2, s2 = self.l2 / 2 * jnp.cos(p2), self.l2 / 2 * jnp.sin(p2)
        return jnp.array([  # (47)
            x1 - c1, y1 - s1,
            x1 + c1 - (x2 - c2), y1 + s1 - (y2 - s2),
            x2 + c2 - x3, y2 + s2 - y3,
        ])  # fmt: skip

    def g_N(self, t, q):
        y3, s, c = q[7], self.a * jnp.sin(q[8]), self.b * jnp.cos(q[8])
        upper, lower = self.d / 2 - y3, self.d / 2 + y3
        return jnp.array([upper + s - c, upper - s - c, lower - s - c, lower + s - c])  # (48)

    def gamma_F(self, t, q, u):
        s, c = self.a * jnp.sin(q[8]), self.b * jnp.cos(q[8])
        ux, w = u[6], u[8]
        return jnp.array([ux + w * (s - c), ux - w * (s + c), ux + w * (s + c), ux - w * (s - c)])  # (49)

    @property
    def laws(self):
        return (Contact(e_N=self.e_N, friction=Coulomb(self.mu)),) * 4

    def draw(self, t, q):
        end = self.l1 / 2 * jnp.array([jnp.cos(q[2]), jnp.sin(q[2])])
        half = self.l2 / 2 * jnp.array([jnp.cos(q[5]), jnp.sin(q[5])])
        corners = jnp.array([[-self.a, self.b], [self.a, self.b], [-self.a, -self.b], [self.a, -self.b]])
        walls = [shapes.Line([[0.08, y], [0.55, y]], shapes.GROUND, 4.0) for y in (-self.d / 2, self.d / 2)]
        return [
            *walls,
            shapes.box(q[6:8], 2 * self.a, 2 * self.b, q[8]),
            shapes.Line(jnp.stack([q[:2] - end, q[:2] + end]), shapes.ACCENT, 6.0),
            shapes.Line(jnp.stack([q[3:5] - half, q[3:5] + half]), shapes.INK, 6.0),
            shapes.Contacts(
                at=q[6:8] + corners @ planar.rotation(q[8]).T,
                normals=[[0, -1], [0, -1], [0, 1], [0, 1]],
                tangents=[[[1, 0]]] * 4,
            ),
        ]

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u + self.gravity * (self.m1 * q[1] + self.m2 * q[4] + self.m3 * q[7])


def load(case: int = 1) -> Benchmark:
    return Benchmark(
        "slider-crank", case, SliderCrank(),
        jnp.array([0.0765, 0.0, 0.0, 0.306, 0.0, 0.0, 0.459, 0.0, 0.017]),
        jnp.array([0.0, 11.475, 150.0, 0.0, 11.475, -75.0, 0.0, 0.0, 0.0]),
        t1=0.1, dt=1e-4, method=Rattle(), source="S0 section 5.2",
        reference={"source": "S0 section 5.2: tilt stabilised, energy not gained", "tilt_gone_after": 0.01},
    )  # fmt: skip


CASES = (1,)
