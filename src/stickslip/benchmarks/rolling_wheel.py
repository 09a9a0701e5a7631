"""An upright wheel rolls without slip, steered and driven by constant torques: two velocity constraints.

q = (x, y, theta, phi): point of contact, heading, angle of rolling. The constraints are no slip along the
heading, e = (cos(theta), sin(theta)), and none across it. With v = r phi_dot the first one gives the
acceleration a = r tau_d/(I + m r^2) and its force lambda_1 = m a, the second lambda_2 = m v theta_dot.
Steering is free of both: theta = omega t + kappa t^2/2 with kappa = tau_s/J. The path is the integral of (v_0
+ a t) exp(i theta):

    kappa = 0:  z = [(v_0 + a t)/(i omega) + a/omega^2] exp(i omega t) from 0 to t:
                a spiral (case 1), for a = 0 a circle (case 2)
    else:       z = a/(i kappa) exp(i theta) from 0 to t + (v_0 - a omega/kappa) F,
                F the integral of exp(i theta)

By completing the square F is a difference of Fresnel integrals: a clothoid (case 3).
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import fresnel

from .. import shapes
from ..methods import LobattoIIIAB
from ..system import System
from .base import Benchmark


class RollingWheel(System):
    coordinates = ("x [m]", "y [m]", "theta [rad]", "phi [rad]")

    tau_s: float = 0.0  # torque that steers
    tau_d: float = 0.0  # torque that drives
    m: float = 2.0
    r: float = 0.25
    I: float = 0.06
    J: float = 0.03

    def M(self, t, q):
        return jnp.diag(jnp.array([self.m, self.m, self.J, self.I]))

    def h(self, t, q, u):
        return jnp.array([0.0, 0.0, self.tau_s, self.tau_d])

    def gamma(self, t, q, u):
        c, s = jnp.cos(q[2]), jnp.sin(q[2])
        return jnp.array([c * u[0] + s * u[1] - self.r * u[3], -s * u[0] + c * u[1]])

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u - self.tau_s * q[2] - self.tau_d * q[3]

    def draw(self, t, q):
        c, s, r = jnp.cos(q[2]), jnp.sin(q[2]), self.r
        ahead, down, axle = jnp.array([c, s, 0.0]), jnp.array([0.0, 0.0, -1.0]), jnp.array([-s, c, 0.0])
        cos, sin = jnp.cos(q[3]), jnp.sin(q[3])
        A = jnp.stack([cos * ahead + sin * down, cos * down - sin * ahead, axle], axis=1)
        h, centre = 0.1 * r, jnp.array([q[0], q[1], r])
        return [*shapes.floor(4.0 * r), shapes.revolved(centre, A, [(0.0, -h), (r, -h), (r, h), (0.0, h)])]


def exact(b: Benchmark, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, u, lambda_gamma), a row for each time, for a start at q = 0."""
    s: Any = b.system
    t, m, r = np.atleast_1d(np.asarray(t, dtype=float)), float(s.m), float(s.r)
    omega, spin = float(b.u0[2]), float(b.u0[3])
    alpha, kappa = float(s.tau_d / (s.I + s.m * s.r**2)), float(s.tau_s / s.J)
    v_0, a = r * spin, r * alpha
    v, theta = v_0 + a * t, omega * t + kappa * t**2 / 2
    turned = np.exp(1j * theta)
    if kappa == 0.0:
        z = (v / (1j * omega) + a / omega**2) * turned - (v_0 / (1j * omega) + a / omega**2)
    else:
        z = a / (1j * kappa) * (turned - 1.0) + (v_0 - a * omega / kappa) * _turning(t, omega, kappa)
    q = np.column_stack([z.real, z.imag, theta, spin * t + alpha * t**2 / 2])
    u = np.column_stack([v * turned.real, v * turned.imag, omega + kappa * t, v / r])
    return q, u, np.column_stack([np.full_like(t, m * a), m * v * u[:, 2]])


def _turning(t: np.ndarray, omega: float, kappa: float) -> np.ndarray:
    """The integral of exp(i (omega t + kappa t^2/2)) from 0, for kappa > 0: with x = sqrt(kappa/pi) (t +
    omega/kappa) the exponent is pi x^2/2 - omega^2/(2 kappa)."""

    def F(t):
        S, C = fresnel(math.sqrt(kappa / math.pi) * (t + omega / kappa))
        return C + 1j * S

    return math.sqrt(math.pi / kappa) * np.exp(-0.5j * omega**2 / kappa) * (F(t) - F(0.0))


def load(case: int = 1) -> Benchmark:
    torques = {1: (0.0, 0.3, 2.0, 2.0), 2: (0.0, 0.0, 2.0, 4.0), 3: (0.06, 0.0, 0.0, 4.0)}
    tau_s, tau_d, omega, spin = torques[case]
    return Benchmark(
        "rolling-wheel", case, RollingWheel(tau_s=tau_s, tau_d=tau_d), jnp.zeros(4),
        jnp.array([RollingWheel.r * spin, 0.0, omega, spin]), t1=math.pi, dt=math.pi / 200,
        method=LobattoIIIAB(stages=3), source="an upright rolling wheel, closed form",
        reference={"source": "closed form", "exact": exact},  # (b, t) -> (q, u, lambda_gamma)
    )  # fmt: skip


CASES = (1, 2, 3)
