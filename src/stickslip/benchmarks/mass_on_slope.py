"""A point mass falls and slides on the slope y = exp(-x) until it sticks (S0 section 5.3, S1,
S3 section 7.7).

The test of order: cases 1 and 2 start on the slope at rest and downhill and are smooth until they stick; case
3 starts uphill and reverses its slip; case 4 is dropped on the slope. These are S0's, with m = pi. Cases 5
and 6 are S1's and S3's, with m = 1: at rest on the slope, and the drop. The mass cancels from the motion.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..system import System
from .base import Benchmark


class MassOnSlope(System):
    """q = (x, y)."""

    coordinates = ("x [m]", "y [m]")
    contacts = ("slope",)

    m: float = math.pi
    gravity: float = 10.0
    mu: float = 0.3
    e_N: float = 0.0

    def M(self, t, q):
        return self.m * jnp.eye(2)  # (50)

    def h(self, t, q, u):
        return jnp.array([0.0, -self.m * self.gravity])

    def tangent(self, x):
        df = jnp.array([1.0, -jnp.exp(-x)])  # (51)
        return df / jnp.sqrt(df @ df)  # (52)

    def g_N(self, t, q):
        tx, ty = self.tangent(q[0])
        normal = jnp.array([-ty, tx])
        return jnp.array([normal @ (q - jnp.array([q[0], jnp.exp(-q[0])]))])  # (53)

    def gamma_F(self, t, q, u):
        return jnp.array([self.tangent(q[0]) @ u])

    def draw(self, t, q):
        x = np.linspace(-0.4, 3.4, 80)
        tx, ty = self.tangent(q[0])
        return [
            shapes.Line(np.column_stack([x, np.exp(-x)]), shapes.GROUND, 4.0),
            shapes.disk(q + 0.06 * jnp.array([-ty, tx]), 0.06),
            shapes.Contacts(at=q[None], normals=[[-ty, tx]], tangents=[[[tx, ty]]]),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N, friction=Coulomb(self.mu)),)

    def energy(self, t, q, u):
        return 0.5 * self.m * u @ u + self.m * self.gravity * q[1]


class Motion(NamedTuple):
    """The exact motion at given times: forces of the instant, percussions since the start; columns (N, F)."""

    q: np.ndarray
    u: np.ndarray
    la: np.ndarray
    P: np.ndarray


def exact(b: Benchmark, t: Any) -> Motion:
    """Free fall and impact in closed form, then one degree of freedom along the slope,
    integrated from event to event.
    """
    m, g, mu = (float(x) for x in (b.system.m, b.system.gravity, b.system.mu))
    t, ref, height = np.asarray(t, dtype=float), b.reference, float(b.q0[1])

    def rates(y, slip):
        """Of (x, speed, P_N, P_F) for unit mass; slip is the sign of the speed, 0 in stick."""
        down = np.exp(-y[0])
        cos = 1.0 / np.sqrt(1.0 + down**2)
        la_N = g * cos + down * cos**3 * y[1] ** 2  # the slope curves upwards
        la_F = np.where(slip == 0, -g * down * cos, -slip * mu * la_N)
        return np.stack(np.broadcast_arrays(y[1] * cos, g * down * cos + la_F, la_N, la_F))

    start, y = 0.0, np.array([0.0, float(b.system.tangent(jnp.zeros(())) @ b.u0), 0.0, 0.0])
    if "impact_time" in ref:
        start = math.sqrt(2.0 * (height - 1.0) / g)
        Lambda_N = g * start / math.sqrt(2.0)  # at x = 0 the slope falls by 45 degrees
        y = np.array([0.0, (1.0 - mu) * Lambda_N, Lambda_N, -mu * Lambda_N])
    falls, slip, rows = t < start, np.zeros(t.shape), np.zeros((4, len(t)))
    sign = -1.0 if y[1] < 0 else 1.0
    for end in [ref[name] for name in ("reversal_time", "stick_time") if name in ref]:
        out = solve_ivp(lambda _, y, sign=sign: rates(y, sign), (start, end), y, "DOP853", rtol=1e-13,
                        atol=1e-14, dense_output=True)  # fmt: skip
        inside = (t >= start) & (t < end)
        rows[:, inside], slip[inside] = out.sol(t[inside]), sign
        start, y, sign = end, out.y[:, -1] * np.array([1.0, 0.0, 1.0, 1.0]), 1.0
    stuck = t >= start
    la = rates(y, 0.0)[2:]
    rows[:, stuck] = y[:, None] + np.outer(np.array([0.0, 0.0, *la]), t[stuck] - start)
    x, v = rows[:2]
    down = np.exp(-x)
    cos = 1.0 / np.sqrt(1.0 + down**2)
    q = np.where(falls, [0.0 * t, height - g * t**2 / 2], [x, down])
    u = np.where(falls, [0.0 * t, -g * t], [v * cos, -v * down * cos])
    forces = np.where(falls, 0.0, rates(rows, slip)[2:])
    return Motion(q.T, u.T, m * forces.T, m * rows[2:].T)


_SOURCE = "event-driven integration to 1e-11 (DOP853 with root-found events)"
_ON_SLOPE = {
    "stick_time": 2.0973522786, "stick_x": 2.8491846477,
    "x(0.8192)": 1.0928918530, "speed(0.8192)": 2.3792037048, "x(1.6)": 2.5541642931,
    "speed(1.6)": 1.1753721244,
}  # fmt: skip
_DROPPED = {
    "impact_time": 0.3162277660, "speed_after_impact": 1.5652475842,
    "stick_time": 2.1878831741, "stick_x": 3.1638661343,
    "x(0.8192)": 0.9973042131, "speed(0.8192)": 2.7484348100, "x(1.6)": 2.7244957793,
    "speed(1.6)": 1.4786573891,
}  # fmt: skip
_REFERENCE = {
    1: _ON_SLOPE,
    2: {"stick_time": 1.9295861203, "stick_x": 2.9803885428},
    3: {
        "reversal_time": 0.1076556386, "reversal_x": -0.0376901867,
        "stick_time": 2.2197854242, "stick_x": 2.9204391164,
    },
    4: _DROPPED,
    5: _ON_SLOPE,
    6: _DROPPED,
}  # fmt: skip
CASES = tuple(_REFERENCE)


def load(case: int = 1) -> Benchmark:
    starts = {1: (1.0, 0.0), 2: (1.0, 1.0), 3: (1.0, -1.0), 4: (1.5, 0.0), 5: (1.0, 0.0), 6: (1.5, 0.0)}
    height, speed = starts[case]
    system = MassOnSlope() if case <= 4 else MassOnSlope(m=1.0)
    return Benchmark(
        "mass-on-slope", case, system, jnp.array([0.0, height]), speed * system.tangent(jnp.zeros(())),
        t1=3.28, dt=1e-2, method=Rattle(), source="S0 section 5.3" if case <= 4 else "S1; S3 section 7.7",
        reference={"source": _SOURCE, **_REFERENCE[case]},
    )  # fmt: skip
