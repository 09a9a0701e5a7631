"""A block rests on a slope of 20 degrees with mu = 0.5: it must not creep, not even in the last digits.

Regularised friction creeps downhill for ever. Coulomb's law holds the block because tan 20 degrees = 0.364 <
0.5.
"""

import math

import jax.numpy as jnp

from ..methods import Rattle
from .base import Benchmark
from .sliding_cube import FLAT, Cube

CASES = (1,)


def load(case: int = 1) -> Benchmark:
    slope = math.radians(20.0)
    reference = {
        "source": "closed form (statics)",
        "drift": 0.0,
        "lambda_N": 9.81 * math.cos(slope),
        "lambda_F": 9.81 * math.sin(slope),
    }
    return Benchmark(
        "incline", case, Cube(slope=slope), jnp.array(FLAT), jnp.zeros(6),
        t1=10.0, dt=1e-2, method=Rattle(), source="closed form", reference=reference,
    )  # fmt: skip
