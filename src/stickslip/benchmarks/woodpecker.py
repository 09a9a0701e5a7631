"""The woodpecker toy: a sleeve jams on its pole and lets go, a beak pecks at it (S4 section 10.4).

Model and data of Glocker (1995) and Leine, Glocker, van Campen (ASME DETC2001/VIB-21608), with linearised
kinematics: q = (y, phi_M, phi_S) are the height of the sleeve, its tilt and that of the bird. Contacts: beak,
lower and upper end of the sleeve. Case 1 starts as in the literature, with phi_M on the contact (the
published -0.1036 penetrates by 9e-7 m); case 2 on the limit cycle, at the slip-stick transition of contact 1
(counted from 0), which comes back after a period.
"""

import jax.numpy as jnp

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Extrapolation
from ..rigid import planar
from ..stepsize import SwitchingPoints
from ..system import System
from .base import Benchmark


class Woodpecker(System):
    """q = (y, phi_M, phi_S)."""

    coordinates = ("y [m]", "phi_M [rad]", "phi_S [rad]")
    contacts = ("beak", "lower sleeve", "upper sleeve")

    m_M: float = 0.0003
    J_M: float = 5.0e-9
    m_S: float = 0.0045
    J_S: float = 7.0e-7
    r_0: float = 0.0025  # pole
    r_M: float = 0.0031  # sleeve, inside
    h_M: float = 0.0058
    l_M: float = 0.010
    l_G: float = 0.015
    h_S: float = 0.020
    l_S: float = 0.0201
    c_phi: float = 0.0056
    gravity: float = 9.81
    mu: float = 0.3
    e_N: float = 0.5  # of the beak

    def M(self, t, q):
        m, l_M, l_G = self.m_S, self.l_M, self.l_G
        return jnp.array([
            [m + self.m_M, m * l_M, m * l_G],
            [m * l_M, self.J_M + m * l_M**2, m * l_M * l_G],
            [m * l_G, m * l_M * l_G, self.J_S + m * l_G**2],
        ])  # fmt: skip

    def h(self, t, q, u):
        _, phi_M, phi_S = q
        spring, weight = self.c_phi * (phi_M - phi_S), self.m_S * self.gravity
        return jnp.array(
            [-(self.m_S + self.m_M) * self.gravity, -spring - weight * self.l_M, spring - weight * self.l_G]
        )

    def g_N(self, t, q):
        _, phi_M, phi_S = q
        play = self.r_M - self.r_0
        beak = self.l_M + self.l_G - self.l_S - self.r_0 - self.h_S * phi_S
        return jnp.array([beak, play + self.h_M * phi_M, play - self.h_M * phi_M])

    def gamma_F(self, t, q, u):
        sleeve = u[0] + self.r_M * u[1]
        return jnp.array([u[0] + self.l_M * u[1] + (self.l_G - self.l_S) * u[2], sleeve, sleeve])

    @property
    def laws(self):
        friction = Coulomb(self.mu)
        return (
            Contact(e_N=self.e_N, friction=friction),
            Contact(friction=friction),
            Contact(friction=friction),
        )

    def draw(self, t, q):
        y, phi_M, phi_S = q
        sleeve = jnp.array([0.0, y])
        joint = sleeve + self.l_M * jnp.array([1.0, phi_M])
        bird = joint + self.l_G * jnp.array([1.0, phi_S])
        beak = bird + jnp.array([-self.l_S - self.h_S * phi_S, self.h_S - self.l_S * phi_S])
        ends = sleeve + jnp.array([
            [self.r_M + self.h_M * phi_M, -self.h_M], [self.r_M - self.h_M * phi_M, self.h_M],
        ])  # fmt: skip
        head = bird + planar.rotation(phi_S) @ jnp.array([-0.006, 0.02])
        return [
            shapes.box((0.0, -0.005), 2 * self.r_0, 0.09, color=shapes.WOOD),
            *(
                shapes.box(
                    sleeve + side * jnp.array([self.r_M + 0.0006, side * (self.r_M + 0.0006) * phi_M]),
                    0.0012,
                    2 * self.h_M,
                    phi_M,
                    shapes.INK,
                )
                for side in (-1.0, 1.0)
            ),
            shapes.Line(
                jnp.stack([sleeve + self.r_M * jnp.array([1.0, phi_M]), joint, bird]), shapes.GROUND, 3.0
            ),
            shapes.box(bird, 0.012, 0.036, phi_S - 0.3, shapes.ACCENT),
            shapes.disk(head, 0.006, phi_S, shapes.ACCENT),
            shapes.Line(jnp.stack([head, beak]), shapes.INK, 3.0),
            shapes.Contacts(
                at=jnp.concatenate([beak[None], ends]), normals=[[1, 0]] * 3, tangents=[[[0, 1]]] * 3
            ),
        ]

    def energy(self, t, q, u):
        y, phi_M, phi_S = q
        height = self.m_M * y + self.m_S * (y + self.l_M * phi_M + self.l_G * phi_S)
        return 0.5 * u @ self.M(t, q) @ u + self.gravity * height + 0.5 * self.c_phi * (phi_M - phi_S) ** 2


CASES = (1, 2)
JAMMED = -0.6 / 5.8  # phi_M with the lower end of the sleeve on the pole
# S4 Table VII, a cycle from slip-stick on; contacts counted from 0.
TABLE_VII = (
    ("friction 1", "stick"), ("friction 1", "slip"), ("contact 1", "open"), ("contact 2", "closed"),
    ("contact 2", "open"),
    ("contact 0", "closed"), ("contact 0", "open"), ("contact 2", "closed"), ("contact 2", "open"),
    ("contact 1", "closed"), ("contact 1", "open"), ("contact 1", "closed"),
)  # fmt: skip


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "event-driven integration to 1e-11; S4 Table VII",
        "incidents": TABLE_VII,
        # of the incidents of the first cycle; contacts that open at once after an impact have its time
        "times": (
            0.021636314, 0.061213931, 0.067023398, 0.077877992, 0.077877992, 0.080988805, 0.080988805,
            0.081575329, 0.083416386, 0.118675113, 0.118675113, 0.121335471,
        ),
        "next_stick": 0.167389523,
        "samples": {  # t: (y, phi_S, dphi_S)
            0.05: (-0.004403947, -0.392626753, 14.676771956),
            0.1: (-0.007059330, 0.007528877, -5.851828629),
            0.2: (-0.023698282, -0.326013030, 16.528395240),
        },
        "period": 0.14597606514,
        "descent": 0.0194453793,
    }  # fmt: skip
    if case == 1:
        q0, u0, t1 = (0.0, JAMMED, -0.2788), (-0.3411, 0.0, -7.4583), 0.2
    else:
        q0, u0, t1 = (0.0, JAMMED, -0.468651594), (0.0, 0.0, -10.503799295), 0.16
    return Benchmark(
        "woodpecker", case, Woodpecker(), jnp.array(q0), jnp.array(u0), t1=t1, dt=1e-4,
        method=Extrapolation(6),
        source="S4 section 10.4; Leine, Glocker, van Campen 2001", reference=reference,
        stepsize=SwitchingPoints(1e-7, 5e-3),
    )  # fmt: skip
