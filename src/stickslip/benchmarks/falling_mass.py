"""A point mass falls on a table: impacts accumulate, then it rests (S4 section 10.1).

Impacts are at t_0 (1 + 2 e + 2 e^2 + ...), t_0 = sqrt(2 z_0/g), which accumulates at t_0 (1 + e)/(1 - e).
"""

import jax.numpy as jnp

from ..methods import Extrapolation
from ..stepsize import SwitchingPoints
from .base import Benchmark
from .bouncing_ball_1d import Ball1D

CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "closed form",
        "first_impact": 0.1194619265,
        "accumulation": 0.6769509169,
    }
    return Benchmark(
        "falling-mass", case, Ball1D(gravity=9.81, e_N=0.7), jnp.array([0.07]), jnp.zeros(1),
        t1=1.5, dt=1e-3, method=Extrapolation(4), source="S4 section 10.1", reference=reference,
        stepsize=SwitchingPoints(1e-5, 0.05),
    )  # fmt: skip
