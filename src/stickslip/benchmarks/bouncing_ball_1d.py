"""A ball on a line (S3 Examples 4.12, 4.13, 5.2): what a Runge-Kutta method makes of a single impact.

Two steps of the naive two-stage Radau IIA method (`projected=False`) with h = 3 realise six different "impact
laws", depending on where in the step the impact falls; with the velocity projection every start obeys
Newton's law. One step is a linear complementarity problem small enough to enumerate, which is done here as an
independent answer.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..laws import Contact
from ..methods import RadauIIA
from ..system import System
from ..tableaus import ButcherTableau, radau_iia
from .base import Benchmark


class Ball1D(System):
    """q = (y)."""

    coordinates = ("y [m]",)
    contacts = ("ground",)

    m: float = 1.0
    gravity: float = 1.0
    e_N: float = 0.0

    def M(self, t, q):
        return self.m * jnp.eye(1)

    def h(self, t, q, u):
        return jnp.array([-self.m * self.gravity])

    def g_N(self, t, q):
        return q

    @property
    def laws(self):
        return (Contact(e_N=self.e_N),)

    def energy(self, t, q, u):
        return 0.5 * self.m * u[0] ** 2 + self.m * self.gravity * q[0]


class LcpStep(NamedTuple):
    """One naive step: which stages are in contact (w_i = 0), and the end state."""

    contact: tuple[bool, ...]
    y: float
    u: float
    z: np.ndarray
    w: np.ndarray

    @property
    def label(self) -> int:
        """S3's number of the case for two stages: 1 both, 2 first only, 3 second only, 4 none."""
        first, second = self.contact[:2]
        return {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 4}[first, second]


def naive_step(tableau: ButcherTableau, y: float, u: float, h: float) -> list[LcpStep]:
    """All solutions of the complementarity problem (4.78), (4.79) with m = g = 1, by enumeration."""
    A, s = tableau.A, tableau.stages
    one = np.ones(s)
    M, q = h * A, y * one + h * A @ (u * one - h * A @ one)
    found = []
    for contact in itertools.product((True, False), repeat=s):
        closed = np.array(contact)
        z = np.zeros(s)
        if closed.any():
            z[closed] = np.linalg.solve(M[np.ix_(closed, closed)], -q[closed])
        w = M @ z + q
        w[closed] = 0.0
        if (z >= -1e-12).all() and (w >= -1e-12).all():
            u1 = u + tableau.b @ (-h * one + np.linalg.solve(A, z))  # (4.76b), (4.77)
            found.append(LcpStep(contact, float(w[-1]), float(u1), z, w))
    return found


def naive_cases(h: float) -> dict[str, tuple[float, float]]:
    """Intervals of y_n of the six feasible pairs of cases, (4.97)-(4.102), case 1.4 from h^2/4 (errata)."""
    a, b, c = h**2 / 6, h**2 / 6 + h / 2, h**2 / 6 + 3 * h / 4
    d = h**2 / 8 + 3 * h / 4
    return {
        "1.1": (0.0, a), "1.3": (a, min(h**2 / 4, b)), "1.4": (h**2 / 4, b),
        "3.4": (b, d), "3.3": (max(d, b), c), "3.1": (c, h**2 / 2 + h),
    }  # fmt: skip


CASES = (1,)


def load(case: int = 1) -> Benchmark:
    reference = {
        "source": "complementarity problem (4.78), enumerated",
        "cases": naive_cases(3.0),
        "tableau": radau_iia(2).name,
    }
    return Benchmark(
        "bouncing-ball-1d", case, Ball1D(), jnp.array([1.0]), jnp.array([-1.0]),
        t1=6.0, dt=3.0, method=RadauIIA(stages=2, projected=False), source="S3 Example 4.12",
        reference=reference,
    )  # fmt: skip
