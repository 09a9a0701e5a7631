"""A puck slides across an inclined plane, curves downhill and stops: turning slip with a closed form.

q = (x, y, z) with x downhill, y across and z normal to the plane of inclination alpha. With psi the angle
from downhill to the velocity and kappa = mu/tan(alpha), speed and direction obey dv/dt = g sin(alpha)
(cos(psi) - kappa) and v dpsi/dt = -g sin(alpha) sin(psi). In X = tan(psi/2) everything integrates:

    v = C/2 X^(kappa-1) (1 + X^2)
    t = C/(2 g sin(alpha)) [X^(kappa-1)/(kappa-1) + X^(kappa+1)/(kappa+1)]  from X to X_0
    x = C^2/(4 g sin(alpha)) [X^(2 kappa-2)/(2 kappa-2) - X^(2 kappa+2)/(2 kappa+2)]
    y = C^2/(2 g sin(alpha)) [X^(2 kappa-1)/(2 kappa-1) + X^(2 kappa+1)/(2 kappa+1)]

For kappa > 1 the puck stops, at X = 0; otherwise it slides on for ever.
"""

import math

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from ..laws import Contact, Coulomb
from ..methods import LobattoIIIAB
from ..system import System
from .base import Benchmark

G, ALPHA, MU = 9.81, math.radians(20.0), 0.5
SPEED, PSI = 2.0, math.radians(100.0)


class Puck(System):
    coordinates = ("x [m]", "y [m]", "z [m]")
    contacts = ("plane",)

    m: float = 1.0
    gravity: float = G
    alpha: float = ALPHA
    mu: float = MU

    def M(self, t, q):
        return self.m * jnp.eye(3)

    def h(self, t, q, u):
        return self.m * self.gravity * jnp.array([jnp.sin(self.alpha), 0.0, -jnp.cos(self.alpha)])

    def g_N(self, t, q):
        return q[2:]

    def gamma_F(self, t, q, u):
        return u[:2]

    @property
    def laws(self):
        return (Contact(friction=Coulomb(self.mu, dim=2)),)

    def energy(self, t, q, u):
        return 0.5 * self.m * u @ u - q @ self.h(t, q, u)


def _constants(mu: float) -> tuple[float, float, float]:
    """kappa, X_0 and C for the benchmark's start."""
    kappa, X_0 = mu / math.tan(ALPHA), math.tan(PSI / 2)
    return kappa, X_0, 2.0 * SPEED / (X_0 ** (kappa - 1) * (1.0 + X_0**2))


def _time(X: float, mu: float) -> float:
    kappa, X_0, C = _constants(mu)

    def antiderivative(X):
        return X ** (kappa - 1) / (kappa - 1) + X ** (kappa + 1) / (kappa + 1)

    return C / (2 * G * math.sin(ALPHA)) * (antiderivative(X_0) - antiderivative(X))


def stop_time(mu: float = MU) -> float:
    """Infinite where the slope is too steep to stop on."""
    return _time(0.0, mu) if mu > math.tan(ALPHA) else math.inf


def exact(t: float, mu: float = MU) -> np.ndarray:
    """(x, y, v_x, v_y) at a time, for any mu but 2 tan(alpha) and tan(alpha)/2; at rest from the stop on."""
    k, X_0, C = _constants(mu)

    def moved(X):
        scale = C**2 / (4 * G * math.sin(ALPHA))
        x = X ** (2 * k - 2) / (2 * k - 2) - X ** (2 * k + 2) / (2 * k + 2)
        y = X ** (2 * k - 1) / (2 * k - 1) + X ** (2 * k + 1) / (2 * k + 1)
        return scale * np.array([x, 2.0 * y])

    smallest = 0.0 if k > 1 else 1e-6 * X_0
    X = (
        brentq(lambda X: _time(X, mu) - t, smallest, X_0, xtol=1e-15, rtol=1e-15)
        if t < stop_time(mu)
        else 0.0
    )
    v, psi = C / 2 * X ** (k - 1) * (1 + X**2), 2 * math.atan(X)
    return np.concatenate([moved(X_0) - moved(X), [v * math.cos(psi), v * math.sin(psi)]])


def load(case: int = 1) -> Benchmark:
    stop = stop_time()
    reference = {"source": "closed form", "stop_time": stop, "rest": tuple(exact(stop)[:2]), "exact": exact}
    return Benchmark(
        "puck", case, Puck(), jnp.zeros(3), jnp.array([SPEED * math.cos(PSI), SPEED * math.sin(PSI), 0.0]),
        t1=1.2 * stop, dt=2.5e-3, method=LobattoIIIAB(stages=3), source="sliding on an incline, closed form",
        reference=reference,
    )  # fmt: skip


CASES = (1,)
