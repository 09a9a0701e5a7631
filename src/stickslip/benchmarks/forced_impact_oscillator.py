"""A mass on a spring, shaken, with a wall in its way: period one, period doubling, chaos,
two motions at once.

x'' + 2 zeta omega x' + omega^2 x = F cos(Omega t) for x < d, and x' -> -e x' at the wall x = d. Between
impacts the equation is linear, so orbits with one impact in a period are known in closed form (Shaw and
Holmes, J. Sound Vib. 90, 1983, have those of the wall at d = 0): `one_impact` gives them with their
multipliers.

Cases: 1 period one (Omega = 2.5), 2 after the flip at Omega = 2.6589, period two (2.7), 3 chaos (2.8), all
with the wall where the spring rests; 4 a wall at 0.5 that is touched or not (Omega = 1.8), between the
grazing of the free vibration and a fold.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact
from ..methods import RadauIIA
from ..system import System
from .base import Benchmark


class ForcedImpactOscillator(System):
    """q = (x)."""

    coordinates = ("x [m]",)
    contacts = ("wall",)

    Omega: float = 2.5
    F: float = 1.0
    omega: float = 1.0
    zeta: float = 0.05
    d: float = 0.0
    e_N: float = 0.8

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return self.F * jnp.cos(self.Omega * t) - 2.0 * self.zeta * self.omega * u - self.omega**2 * q

    def g_N(self, t, q):
        return self.d - q

    def draw(self, t, q):
        x = q[0]
        spring = jnp.linspace(-2.0, x - 0.1, 17)
        zigzag = jnp.stack([spring, 0.05 * jnp.array([0.0, *(1.0, -1.0) * 8])], axis=1)
        return [
            shapes.Line([[self.d + 0.1, -0.2], [self.d + 0.1, 0.2]], shapes.GROUND, 4.0),
            shapes.Line(zigzag, shapes.GROUND, 1.5),
            shapes.box((x, 0.0), 0.2, 0.2),
            shapes.Contacts(at=[[x + 0.1, 0.0]], normals=[[-1, 0]]),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N),)

    @property
    def period(self):
        """Of the force."""
        return 2.0 * jnp.pi / self.Omega


class OneImpact(NamedTuple):
    """An orbit with one impact in n periods of the force."""

    speed: float  # with which it arrives at the wall
    time: float  # of the impact, in the first period of the force
    start: np.ndarray  # (x, x') at t = 0
    multipliers: np.ndarray  # of the map over n periods
    clear: bool  # whether it stays off the wall in between


def one_impact(s: ForcedImpactOscillator, n: int = 1) -> list[OneImpact]:
    """All of them, the fastest first: two, one or none.

    With y = (x, x'), the flow exp(A t) of the free equation and its forced vibration p(t), a period tau from
    the state y+ = (d, -e v) after the impact to the next, y- = (d, v), is y- - p = exp(A tau)(y+ - p). That
    is linear in v and p, and p lies on an ellipse: a quadratic equation for v.
    """
    omega, zeta, Omega, F, d, e = (float(x) for x in (s.omega, s.zeta, s.Omega, s.F, s.d, s.e_N))
    tau, a, b = 2.0 * math.pi * n / Omega, *_amplitudes(omega, zeta, Omega, F)
    E = _free(omega, zeta, tau)
    inverse, ellipse = np.linalg.inv(np.eye(2) - E), np.array([1.0, 1.0 / Omega])
    p_0 = inverse @ (np.array([d, 0.0]) - E @ np.array([d, 0.0]))
    p_1 = inverse @ (np.array([0.0, 1.0]) - E @ np.array([0.0, -e]))
    w_0, w_1 = ellipse * p_0, ellipse * p_1
    square, half, rest = w_1 @ w_1, w_0 @ w_1, w_0 @ w_0 - (a * a + b * b)
    if half**2 < square * rest:
        return []
    roots = (-half + sign * math.sqrt(half**2 - square * rest) for sign in (1.0, -1.0))
    return [_orbit(s, v / square, p_0 + v / square * p_1, E, tau) for v in roots if v > 0.0]


def _orbit(s: ForcedImpactOscillator, v: float, p: np.ndarray, E: np.ndarray, tau: float) -> OneImpact:
    omega, zeta, Omega, F, d, e = (float(x) for x in (s.omega, s.zeta, s.Omega, s.F, s.d, s.e_N))
    a, b = _amplitudes(omega, zeta, Omega, F)
    phase = math.atan2(b * p[0] - a * p[1] / Omega, a * p[0] + b * p[1] / Omega) % (2.0 * math.pi)

    def after(t):
        """y, a time t after the impact."""
        angle = phase + Omega * t
        c, s = math.cos(angle), math.sin(angle)
        forced = np.array([a * c + b * s, Omega * (b * c - a * s)])
        return forced + _free(omega, zeta, t) @ (np.array([d, -e * v]) - p)

    before, behind = (F * math.cos(phase) - 2.0 * zeta * omega * x - omega**2 * d for x in (v, -e * v))
    # how a difference of states passes the impact: the later it comes, the longer it moves on as before
    saltation = np.array([[-e, 0.0], [(e * before + behind) / v, -e]])
    time = phase / Omega
    clear = max(after(t)[0] for t in np.linspace(0.0, tau, 1001)[1:-1]) < d
    return OneImpact(v, time, after(tau - time), np.linalg.eigvals(saltation @ E), clear)


def _amplitudes(omega: float, zeta: float, Omega: float, F: float) -> tuple[float, float]:
    """(a, b) of the forced vibration a cos(Omega t) + b sin(Omega t)."""
    below, damping = omega**2 - Omega**2, 2.0 * zeta * omega * Omega
    return F * below / (below**2 + damping**2), F * damping / (below**2 + damping**2)


def _free(omega: float, zeta: float, t: float) -> np.ndarray:
    """exp(A t) of y' = A y, the equation without force, for zeta < 1."""
    w, decay = omega * math.sqrt(1.0 - zeta**2), math.exp(-zeta * omega * t)
    c, s = math.cos(w * t), math.sin(w * t) / w
    return decay * np.array([[c + zeta * omega * s, s], [-(omega**2) * s, c - zeta * omega * s]])


CASES = (1, 2, 3, 4)


def load(case: int = 1) -> Benchmark:
    system = ForcedImpactOscillator(Omega=(2.5, 2.7, 2.8, 1.8)[case - 1], d=0.5 if case == 4 else 0.0)
    T = float(system.period)
    return Benchmark(
        "forced-impact-oscillator", case, system, jnp.array([-1.0]), jnp.array([0.0]), t1=20 * T, dt=T / 200,
        method=RadauIIA(stages=3), source="Shaw and Holmes 1983, with damping",
        reference={"source": "closed form", "one_impact": one_impact(system),
                   "product": float(system.e_N) ** 2
                   * math.exp(-2.0 * float(system.zeta * system.omega) * T)},
    )  # fmt: skip
