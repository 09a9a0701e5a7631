"""A hopper with a leaf-spring leg, guided vertically (S2 section 10.5): contact of a flexible body.

A rigid rod hangs from the main body at a prescribed angle alpha(t); at its end, the knee, a beam continues at
a prescribed angle and touches the ground with its tip. Case 1 has the paper's mesh, two quadratic elements,
which locks; case 2 has eight cubic elements.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..beam import PlanarBeam
from ..laws import Contact, Coulomb
from ..methods import GeneralizedAlpha
from ..system import System
from .base import Benchmark


class GuidedHopper(System):
    """q = (y of the hip, coordinates of the beam)."""

    contacts = ("tip",)

    beam: PlanarBeam
    m_body: float = 3.0
    m_rod: float = 1.56
    L: float = 0.2
    gravity: float = 9.81
    mu: float = 0.2

    def alpha(self, t):
        return math.pi / 3 - math.pi / 30 * (1.0 - jnp.cos(4.0 * math.pi * t))  # (155)

    def M(self, t, q):
        m = self.m_body + self.m_rod
        return jnp.block([
            [jnp.full((1, 1), m), jnp.zeros((1, self.beam.size))],
            [jnp.zeros((self.beam.size, 1)), self.beam.M()],
        ])  # fmt: skip

    def h(self, t, q, u):
        # the rod's centre is at y - L/2 cos(alpha): its prescribed swing accelerates it against the body
        t = jnp.asarray(t, dtype=float)
        swing = jax.grad(jax.grad(lambda t: -self.L / 2 * jnp.cos(self.alpha(t))))(t)
        on_body = -(self.m_body + self.m_rod) * self.gravity - self.m_rod * swing
        return jnp.concatenate([on_body[None], self.beam.forces(q[1:]) + self.beam.weight(self.gravity)])

    def to_knee(self, t):
        """r_HK."""
        a = self.alpha(t)
        return self.L * jnp.array([jnp.sin(a), -jnp.cos(a)])

    def g(self, t, q):
        knee = jnp.array([0.0, q[0]]) + self.to_knee(t)
        back, tangent = -self.to_knee(t), self.beam.at(0.0, q[1:], 1)
        angle = jnp.arctan2(back[0] * tangent[1] - back[1] * tangent[0], back @ tangent)
        return jnp.concatenate(
            [knee - self.beam.at(0.0, q[1:]), (angle - (math.pi - 2.0 * self.alpha(t)))[None]]
        )  # (153)

    def g_N(self, t, q):
        return self.beam.at(1.0, q[1:])[1:]  # (154)

    def gamma_F(self, t, q, u):
        return self.beam.at(1.0, u[1:])[:1]

    def draw(self, t, q):
        hip, knee = jnp.array([0.0, q[0]]), jnp.array([0.0, q[0]]) + self.to_knee(t)
        leaf = jnp.stack([self.beam.at(xi, q[1:]) for xi in np.linspace(0.0, 1.0, 21)])
        return [
            shapes.Line([[-0.2, 0.0], [0.3, 0.0]], shapes.GROUND, 4.0),
            *(shapes.Line([[x, 0.12], [x, 0.42]], shapes.GROUND, 1.5) for x in (-0.065, 0.065)),
            shapes.box(hip, 0.12, 0.06),
            shapes.Line(jnp.stack([hip, knee]), shapes.INK, 7.0),
            shapes.Line(leaf, shapes.ACCENT, 4.0),
            shapes.Contacts(at=leaf[-1:], normals=[[0, 1]], tangents=[[[1, 0]]]),
        ]

    @property
    def coordinates(self):
        return ("y [m]", *(f"{axis}_{i} [m]" for i in range(self.beam.nodes) for axis in ("x", "y")))

    @property
    def laws(self):
        return (Contact(friction=Coulomb(self.mu)),)


CASES = (1, 2)


def load(case: int = 1, degree: int | None = None, elements: int | None = None) -> Benchmark:
    mesh = {1: (2, 2), 2: (3, 8)}[case]
    beam = PlanarBeam(0.2, 1.89e7, 14.2, 0.71, degree=degree or mesh[0], elements=elements or mesh[1])
    system = GuidedHopper(beam)
    a, y = math.pi / 3, 0.31
    knee = jnp.array([0.2 * math.sin(a), y - 0.2 * math.cos(a)])
    q0 = jnp.concatenate([jnp.array([y]), beam.straight(knee, (-math.sin(a), -math.cos(a)))])
    reference = {
        "source": "rigid leg: free fall with the prescribed swing",
        "clearance": 0.11,
        "touchdown_time": 0.1262110,
        "touchdown_y": 0.2356295,
    }
    return Benchmark(
        "guided-hopper", case, system, q0, jnp.zeros(q0.shape), t1=0.5, dt=5e-5,
        method=GeneralizedAlpha(rho_inf=0.0), source="S2 section 10.5", reference=reference,
    )  # fmt: skip
