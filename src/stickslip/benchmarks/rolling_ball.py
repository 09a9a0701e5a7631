"""A ball slides, rolls and comes to rest on a plane with rolling friction (S3 section 7.2).

Two laws on one contact, Coulomb friction and rolling friction. First the ball slides and rolls, from t1 on it
rolls only, at t2 it stops; the motion is piecewise quadratic and known in closed form (with the signs of
(7.5), (7.6), (7.11a) mended).
"""

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact, Coulomb, Rolling
from ..methods import MoreauMidpoint
from ..rigid import PlanarBody, planar
from .base import Benchmark


class RollingBall(PlanarBody):
    """q = (x, y, phi)."""

    contacts = ("ground",)

    mu_T: float = 0.1
    mu_R: float = 0.005  # a length
    m: float = 1.0
    R: float = 0.1
    gravity: float = 10.0

    @property
    def theta(self):
        return planar.solid_ball(self.m, self.R)

    def g_N(self, t, q):
        return jnp.array([q[1] - self.R])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + self.R * u[2], u[2]])  # (7.3)

    def draw(self, t, q):
        return [
            shapes.Line([[-0.2, 0.0], [1.1, 0.0]], shapes.GROUND, 4.0),
            shapes.disk(q[:2], self.R, q[2]),
            shapes.Contacts(at=[[q[0], q[1] - self.R]], normals=[[0, 1]], tangents=[[[1, 0]]]),
        ]

    @property
    def laws(self):
        return (Contact(friction=(Coulomb(self.mu_T), Rolling(self.mu_R))),)


def exact(
    t, v0: float = 1.0, omega0: float = -1.0, system: RollingBall | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """x, phi and u_x, u_phi at the times t, as columns: (7.11) with its signs mended."""
    s = system or RollingBall()
    theta, weight, R = s.theta, s.m * s.gravity, s.R
    a = np.array([-s.mu_T * s.gravity, (s.mu_R - R * s.mu_T) * weight / theta])  # sliding
    t1 = (v0 + R * omega0) / -(a[0] + R * a[1])
    start = np.array([v0, omega0])
    u1, q1 = start + a * t1, start * t1 + a * t1**2 / 2
    b = s.mu_R * weight / (theta + s.m * R**2) * np.array([-R, 1.0])  # rolling
    t2 = t1 - u1[1] / b[1]
    t = np.asarray(t, dtype=float)[:, None]
    first, second = np.clip(t, 0.0, t1), np.clip(t, t1, t2) - t1
    u = np.where(t < t1, start + a * first, np.where(t < t2, u1 + b * second, 0.0))
    q = np.where(t < t1, start * first + a * first**2 / 2, q1 + u1 * second + b * second**2 / 2)
    return q, u


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "closed form (S3 section 7.2, signs mended)",
        "rolling_time": 0.4, "rest_time": 2.08, "rest_x": 0.824, "rest_phi": -6.44,
        "state_at_rolling_time": (0.32, -1.4, 0.6, -6.0),
        "lambda_T_rolling": -5.0 / 14.0,
    }  # fmt: skip
    return Benchmark(
        "rolling-ball", case, RollingBall(), jnp.array([0.0, 0.1, 0.0]), jnp.array([1.0, 0.0, -1.0]),
        t1=2.5, dt=1e-1, method=MoreauMidpoint(), source="S3 section 7.2", reference=reference,
    )  # fmt: skip
