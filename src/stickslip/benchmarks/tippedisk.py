"""The tippedisk: an eccentric disk that turns upside down when spun (S0 section 5.4, S3 section 7.10).

Spun about an in-plane axis the disk raises its centre of gravity until it spins inverted. One contact of a
thin disk with a plane, Coulomb-Contensou friction (three-dimensional ball), unit quaternion. q = (r_OS, p), u
= (v_S in I, omega in K). The contact stays closed, so the motion is smooth and its reference converged to
nine digits. The slip direction turns: printed friction laws are first order here.
"""

import jax.numpy as jnp

from .. import shapes
from ..frames import ContactFrame
from ..laws import Contact, CoulombContensou
from ..methods import Rattle
from ..rigid import SpatialBody, rotation_matrix
from .base import Benchmark


class Tippedisk(SpatialBody):
    m: float = 0.435
    r: float = 0.045
    e: float = 0.0025  # eccentricity b a^2/(r^2 - a^2) with a = 0.015, b = 0.02
    theta_x: float = 2.49e-4
    theta_y: float = 2.2972e-4
    theta_z: float = 4.7072e-4
    gravity: float = 9.81
    mu: float = 0.3
    contact_radius: float = 1e-3
    e_N: float = 0.0

    @property
    def inertia(self):
        return jnp.array([self.theta_x, self.theta_y, self.theta_z])

    def rim(self, t, q):
        """S - e e_x^K - r e_y^G with the grinding basis (58): e_y^G = e_z^K x e_x^G,
        e_x^G ~ e_z^I x e_z^K.
        """
        A = rotation_matrix(q[3:])
        ex, ez = A[:, 0], A[:, 2]
        across = jnp.array([-ez[1], ez[0], 0.0])  # e_z^I x e_z^K
        ey_G = jnp.cross(ez, across / jnp.sqrt(across @ across))
        return q[:3] - self.e * ex - self.r * ey_G

    @property
    def touches(self):  # (57), (59)
        law = Contact(e_N=self.e_N, friction=CoulombContensou(self.mu, self.contact_radius))
        return (ContactFrame("rim", law, point=self.rim),)

    def draw(self, t, q):
        A = rotation_matrix(q[3:])
        G = q[:3] - self.e * A[:, 0]
        r, h, hole = self.r, 2e-3, 0.015
        body = shapes.revolved(G, A, [(0.0, -h), (r, -h), (r, h), (0.0, h)], sectors=32)
        plug = shapes.revolved(
            G - 0.02 * A[:, 0],
            A,
            [(0.0, -1.1 * h), (hole, -1.1 * h), (hole, 1.1 * h), (0.0, 1.1 * h)],
            "#222222",
        )
        return [
            *shapes.floor(0.07, centre=(-0.01, -0.015)),
            body,
            shapes.Mesh(plug.points, plug.triangles, color="#222222"),
            shapes.Contacts.of(self, t, q),
        ]


def load(case: int = 1) -> Benchmark:
    system = Tippedisk()
    p = jnp.array([0.5, 0.5, 0.5, -0.5])
    r_OS, omega = jnp.array([0.0, 0.0, system.r - system.e]), jnp.array([-60.0, 0.0, 1.0])
    v_S = jnp.cross(rotation_matrix(p) @ omega, r_OS)
    reference = {
        "source": "smooth motion in persistent slip integrated to 1e-11",
        "inversion_time": 0.395375966,
        "plateau": 0.0475,
        "z": {
            0.1: 0.042516205, 0.2: 0.042579496, 0.3: 0.043087538, 0.4: 0.045255164, 0.5: 0.046316584,
            1.0: 0.047459911, 2.0: 0.047475678, 3.0: 0.047484137, 4.0: 0.047458864, 5.0: 0.047432521,
        },
        "vertical_spin": {0.5: 54.9821666, 1.0: 51.6462702, 2.0: 48.3880339},
        "lambda_N": {0.3: 4.09636588, 0.5: 4.49125052},
        "theta": {
            0.1: 1.56215449, 0.2: 1.50183216, 0.3: 1.39993808, 0.4: 1.39865085, 0.5: 1.46025399,
            1.0: 1.59822111, 2.0: 1.57878873, 3.0: 1.54982909, 4.0: 1.60727353, 5.0: 1.61978607,
        },
    }  # fmt: skip
    return Benchmark(
        "tippedisk", case, system, jnp.concatenate([r_OS, p]), jnp.concatenate([v_S, omega]),
        t1=5.0, dt=1e-3, method=Rattle(), source="S0 section 5.4, S3 section 7.10", reference=reference,
    )  # fmt: skip


CASES = (1,)
