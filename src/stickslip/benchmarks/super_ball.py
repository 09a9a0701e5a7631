"""A ball that rebounds in both directions (e_N, e_F > 0) bounces along the ground: Garwin's super ball.

Flight is a parabola that does not change u_x and u_phi. At an impact Newton's law in both directions is
gamma_N+ = -e_N gamma_N-, gamma_F+ = -e_F gamma_F- with gamma_F = u_x + R u_phi and the mass (1/m +
R^2/theta)^-1 = 2 m/7 of the point of contact, if friction can give the percussion that takes,

    Lambda_N = m (1 + e_N) |gamma_N-|,    Lambda_F = -2/7 m (1 + e_F) gamma_F-,    |Lambda_F| <= mu Lambda_N;

else the ball slides through the impact with |Lambda_F| = mu Lambda_N. Then u_x and u_phi change by Lambda_F/m
and Lambda_F R/theta. Case 1: e_N = e_F = 1, nothing is lost, and u_x and u_phi alternate between two values
each. Case 2: mu is too small for that, and impacts slide. Case 3: e_N = 0.8, e_F = 0.5, something is lost at
each. R. L. Garwin, Kinematics of an ultraelastic rough ball, Am. J. Phys. 37 (1969) 88.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..methods import Rattle
from .base import Benchmark
from .bouncing_ball import BouncingBall

IMPACTS = 4  # whose outcome is told


def impacts(s: BouncingBall, q0: Any, u0: Any, count: int = IMPACTS) -> dict[str, np.ndarray]:
    """Times, velocities after each and percussions (Lambda_N, Lambda_F) of the first impacts."""
    m, R, g, e_N, e_F, mu = (float(x) for x in (s.m, s.R, s.gravity, s.e_N, s.e_F, s.mu))
    (x, y, omega), height = (float(v) for v in u0), float(q0[1]) - R
    t = (y + math.sqrt(y**2 + 2 * g * height)) / g
    y -= g * t  # before the impact
    times, after, percussions = [], [], []
    for _ in range(count):
        gamma_F, Lambda_N = x + R * omega, -m * (1 + e_N) * y
        Lambda_F = float(np.clip(-2 / 7 * m * (1 + e_F) * gamma_F, -mu * Lambda_N, mu * Lambda_N))
        x, y, omega = x + Lambda_F / m, -e_N * y, omega + Lambda_F * R / (0.4 * m * R**2)
        times.append(t)
        after.append((x, y, omega))
        percussions.append((Lambda_N, Lambda_F))
        t, y = t + 2 * y / g, -y
    return {"impact_times": np.array(times), "u_after": np.array(after), "Lambda": np.array(percussions)}


def exact(b: Benchmark, t: Any) -> tuple[np.ndarray, np.ndarray]:
    """(q, u), a row for each time, through all impacts up to the last one."""
    s: Any = b.system
    t, g = np.atleast_1d(np.asarray(t, dtype=float)), np.array([0.0, -float(s.gravity), 0.0])
    q, u, start = np.asarray(b.q0, dtype=float), np.asarray(b.u0, dtype=float), 0.0
    Q, U = np.empty((len(t), 3)), np.empty((len(t), 3))
    count = IMPACTS
    while (known := impacts(s, b.q0, b.u0, count))["impact_times"][-1] < t.max():
        count *= 2
    for time, after in zip([*known["impact_times"], np.inf], [*known["u_after"], u], strict=True):
        now, since = (start <= t) & (t < time), (t - start)[:, None]
        Q[now], U[now] = (q + since * (u + since * g / 2))[now], (u + since * g)[now]
        if time < np.inf:
            q, u, start = q + (time - start) * (u + (time - start) * g / 2), after, time
    return Q, U


def load(case: int = 1) -> Benchmark:
    e_N, e_F, mu = {1: (1.0, 1.0, 0.6), 2: (1.0, 1.0, 0.03), 3: (0.8, 0.5, 0.6)}[case]
    system, q0 = BouncingBall(e_N=e_N, e_F=e_F, mu=mu), jnp.array([-0.8, 0.6, 0.0])
    u0 = jnp.array([1.2, 0.0, 20.0])
    known = impacts(system, q0, u0)
    reference = {"source": "closed form (ballistics, impact law, S1 (26) and (27))", "exact": exact, **known}
    return Benchmark(
        "super-ball", case, system, q0, u0, t1=2.0, dt=1e-2, method=Rattle(),
        source="R. L. Garwin, Am. J. Phys. 37 (1969) 88", reference=reference,
    )  # fmt: skip


CASES = (1, 2, 3)
