"""A mass on a spring hits a wall with restitution, again and again (S4 section 10.3).

m x_ddot = -c (x + a) with a = 0.15 and the wall at x = 0: between impacts x = -a + A sin(w t + phi), so that
all impact times are known. The spring pulls the mass back, so a post-impact speed e v returns to the wall
with the same speed: speeds before impacts are v e^k.
"""

import math

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact
from ..methods import Extrapolation
from ..stepsize import SwitchingPoints
from ..system import System
from .base import Benchmark


class ImpactOscillator(System):
    """q = (x)."""

    coordinates = ("x [m]",)
    contacts = ("wall",)

    m: float = 0.1
    c: float = 20.0
    a: float = 0.15
    e_N: float = 0.6

    def M(self, t, q):
        return self.m * jnp.eye(1)

    def h(self, t, q, u):
        return -self.c * (q + self.a)

    def g_N(self, t, q):
        return -q

    def draw(self, t, q):
        x = q[0]
        spring = jnp.linspace(-0.9, x - 0.04, 17)
        zigzag = jnp.stack([spring, 0.02 * jnp.array([0.0, *(1.0, -1.0) * 8])], axis=1)
        return [
            shapes.Line([[0.04, -0.08], [0.04, 0.08]], shapes.GROUND, 4.0),
            shapes.Line(zigzag, shapes.GROUND, 1.5),
            shapes.box((x, 0.0), 0.08, 0.08),
            shapes.Contacts(at=[[x + 0.04, 0.0]], normals=[[-1, 0]]),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N),)

    def energy(self, t, q, u):
        return 0.5 * self.m * u[0] ** 2 + 0.5 * self.c * (q[0] + self.a) ** 2


X_0, V_0 = -0.5, 0.2
CASES = (1,)


def exact(t: np.ndarray) -> np.ndarray:
    """x at given times, of the benchmark's parameters."""
    w, a, e = math.sqrt(200.0), 0.15, 0.6
    t = np.asarray(t, dtype=float)
    x = np.empty_like(t)
    start, s, v = 0.0, X_0 + a, V_0  # of the flight: s = x + a
    while True:
        A, phi = math.hypot(s, v / w), math.atan2(s, v / w)
        duration = (math.asin(a / A) - phi) % (2 * math.pi) / w if A > a else math.inf
        if duration * w < 1e-9:
            duration += 2 * math.pi / w
        inside = (t >= start) & (t <= start + duration)
        x[inside] = -a + A * np.sin(w * (t[inside] - start) + phi)
        if start + duration >= t.max(initial=0.0):
            return x
        s, v, start = a, -e * A * w * math.cos(w * duration + phi), start + duration


def load(case: int = 1) -> Benchmark:
    times = (0.1395076798, 0.4561889079, 0.8085980715, 1.192402449, 1.5989361284, 2.0202226959)
    reference = {
        "source": "closed form",
        "impact_times": times,
        "speeds": tuple(4.4766058571 * 0.6**k for k in range(6)),
        "impulses": tuple(0.7162569371 * 0.6**k for k in range(6)),
        "exact": exact,
    }
    return Benchmark(
        "impact-oscillator", case, ImpactOscillator(), jnp.array([X_0]), jnp.array([V_0]),
        t1=2.1, dt=1e-3, method=Extrapolation(4), source="S4 section 10.3", reference=reference,
        stepsize=SwitchingPoints(1e-8, 0.01),
    )  # fmt: skip
