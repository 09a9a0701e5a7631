"""A tetrahedron falls flat on a plane and slides with anisotropic friction (S3 section 7.11).

Case 1 has an elliptical, case 2 a rectangular reservoir with the same axes: the rectangle pushes harder and
in other directions. The three corners share the load so that the body does not turn: the resultant of the
parallel friction forces goes through the centre of mass. What remains is a point with v_dot = -g F(v), whose
reference is integrated here; the impact takes its friction from the velocity after it.
"""

import math

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from .. import shapes
from ..laws import Contact, Coulomb, RectangularCoulomb
from ..methods import RadauIIA
from ..rigid import SpatialBody, spatial
from .base import Benchmark


class Tetrahedron(SpatialBody):
    contacts = ("left", "right", "back", "top")  # corners

    m: float = math.sqrt(2.0) / 12.0  # density 1
    edge: float = 1.0
    gravity: float = 10.0
    mu: float = 0.3
    a_x: float = 0.5
    a_y: float = 1.0
    rectangular: bool = False

    @property
    def inertia(self):
        return jnp.full(3, self.m * self.edge**2 / 20.0)

    @property
    def corners(self):
        """r_SP of the four corners in K, (7.31)-(7.33) with the regular tetrahedron's height sqrt(2/3)."""
        h_D, h_P = math.sqrt(3.0) / 2.0, math.sqrt(2.0 / 3.0)
        r_QP = np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, h_D, 0.0], [0.0, h_D / 3, h_P]])
        return self.edge * (r_QP - np.array([0.0, h_D / 3, h_P / 4]))

    def g_N(self, t, q):
        return spatial.position(q, self.corners)[:, 2]  # (7.34)

    def gamma_F(self, t, q, u):
        return spatial.velocity(q, u, self.corners)[:, :2].reshape(-1)  # (7.36)

    def draw(self, t, q):
        corners = spatial.position(q, self.corners)
        faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
        return [
            *shapes.floor(2.7, centre=(2.1, 0.8)),
            shapes.Mesh(corners, faces, np.array([0, 1, 0, 1])),
            shapes.Contacts(at=corners, normals=[[0, 0, 1]] * 4, tangents=[[[1, 0, 0], [0, 1, 0]]] * 4),
        ]

    @property
    def laws(self):
        axes = jnp.array([self.a_x, self.a_y])
        friction = (
            RectangularCoulomb(self.mu, axes) if self.rectangular else Coulomb(self.mu, dim=2, axes=axes)
        )
        return (Contact(friction=friction),) * 4


def sliding_point(rectangular: bool, t_end: float = 3.0) -> dict:
    """The motion of the centre of mass: fall, impact, sliding until rest."""
    s = Tetrahedron()
    g, a = s.gravity, s.mu * np.array([s.a_x, s.a_y])
    height = 0.5 - math.sqrt(2.0 / 3.0) / 4
    t_hit, v_z = math.sqrt(2 * height / g), math.sqrt(2 * height * g)
    v_minus = 4.0 * np.array([math.cos(math.pi / 5), math.sin(math.pi / 5)])

    def force(v):
        """-F/P_N, (3.26) with (3.31); the rectangle takes each direction by itself."""
        return a * np.sign(v) if rectangular else a * a * v / np.linalg.norm(a * v)

    v_plus = fsolve(lambda v: v - v_minus + v_z * force(v), v_minus, xtol=1e-12)
    x_hit = v_minus * t_hit

    def rest(t, y):
        return y[2:] @ y[2:] - 1e-16

    rest.terminal = True  # type: ignore[attr-defined]
    if rectangular:
        stops = v_plus / (a * g)
        x_rest, rest_time = x_hit + v_plus**2 / (2 * a * g), t_hit + stops.max()
    else:
        y0 = np.concatenate([x_hit, v_plus])
        out = solve_ivp(lambda t, y: np.concatenate([y[2:], -g * force(y[2:])]), (t_hit, t_end), y0, "DOP853",
                        rtol=1e-12, atol=1e-14, events=rest)  # fmt: skip
        x_rest, rest_time = out.y[:2, -1], out.t[-1]
    return {
        "impact_time": t_hit, "velocity_after_impact": tuple(v_plus), "Lambda_N": float(s.m) * v_z,
        "rest_time": float(rest_time), "rest_xy": tuple(x_rest), "lambda_N": float(s.m) * g,
    }  # fmt: skip


CASES = (1, 2)


def load(case: int = 1) -> Benchmark:
    rectangular = case == 2
    v0, alpha = 4.0, math.pi / 5
    return Benchmark(
        "tetrahedron", case, Tetrahedron(rectangular=rectangular),
        jnp.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0]),
        jnp.array([v0 * math.cos(alpha), v0 * math.sin(alpha), 0.0, 0.0, 0.0, 0.0]),
        t1=2.5, dt=1e-2, method=RadauIIA(stages=2), source="S3 section 7.11",
        reference={"source": "motion of the centre of mass, integrated to 1e-12",
                   **sliding_point(rectangular)},
    )  # fmt: skip
