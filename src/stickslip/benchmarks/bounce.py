"""A point mass is dropped and bounces with e = 0.5: it must come back to a quarter of the height.

Engines with regularised or shifted impacts do not return what was asked. An event-capturing scheme is off by
the impact time only: at most one step, so by at most 2.5 g dt/v of the height, v the impact speed.
"""

import math

import jax.numpy as jnp

from ..methods import Rattle
from .base import Benchmark
from .bouncing_ball_1d import Ball1D

CASES = (1,)


def load(case: int = 1, height: float = 0.9, e_N: float = 0.5) -> Benchmark:
    g = 9.81
    t_impact = math.sqrt(2 * height / g)
    reference = {
        "source": "closed form",
        "apex": e_N**2 * height,
        "apex_time": t_impact * (1 + e_N),
        "impact_speed": g * t_impact,
    }
    return Benchmark(
        "bounce", case, Ball1D(gravity=g, e_N=e_N), jnp.array([height]), jnp.zeros(1),
        t1=round(t_impact * (1 + 2 * e_N) * 0.99, 3), dt=1e-3, method=Rattle(), source="closed form",
        reference=reference,
    )  # fmt: skip
