"""Thirty disks are mixed in a rotating drum (S4 Fig. 2, there with a thousand):
465 candidate contacts with friction.

A check of projected Gauss-Seidel with many contacts: disks touch each other and the drum, which turns with a
given speed. The motion is chaotic, so what can be asked is that energy stays bounded and that disks overlap
less with smaller steps. Data are ours; S4 states none.
"""

import itertools

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact, Coulomb
from ..methods import MoreauMidpoint
from ..solvers import PSOR
from ..system import System
from .base import Benchmark

COUNT = 30
PAIRS = np.array(list(itertools.combinations(range(COUNT), 2)))
FIRST, SECOND = PAIRS[:, 0], PAIRS[:, 1]


def _length(v):
    """|v| of rows, with a derivative at zero."""
    return jnp.sqrt(jnp.sum(v * v, axis=1) + 1e-24)


def _turned(n):
    return jnp.stack([-n[:, 1], n[:, 0]], axis=1)


class DiskMixer(System):
    """q = (x, y, phi) of disk after disk; gaps between disks, then to the drum."""

    coordinates = tuple(
        f"{x}_{i} [{unit}]" for i in range(COUNT) for x, unit in (("x", "m"), ("y", "m"), ("phi", "rad"))
    )
    contacts = (*(f"disks {i} and {j}" for i, j in PAIRS), *(f"disk {i} and drum" for i in range(COUNT)))

    m: float = 0.1
    r: float = 0.03
    drum_radius: float = 0.3
    drum_rate: float = 2.0
    gravity: float = 9.81
    mu: float = 0.3
    e_N: float = 0.1

    def M(self, t, q):
        return jnp.diag(jnp.tile(jnp.array([self.m, self.m, 0.5 * self.m * self.r**2]), COUNT))

    def h(self, t, q, u):
        return jnp.tile(jnp.array([0.0, -self.m * self.gravity, 0.0]), COUNT)

    def g_N(self, t, q):
        c = q.reshape(COUNT, 3)[:, :2]
        between = _length(c[SECOND] - c[FIRST]) - 2.0 * self.r
        return jnp.concatenate([between, self.drum_radius - self.r - _length(c)])

    def gamma_F(self, t, q, u):
        c = q.reshape(COUNT, 3)[:, :2]
        v, omega = u.reshape(COUNT, 3)[:, :2], u.reshape(COUNT, 3)[:, 2]

        def along(tangent, v):
            return jnp.sum(tangent * v, axis=1)

        d = c[SECOND] - c[FIRST]
        tangent = _turned(d / _length(d)[:, None])
        between = along(tangent, v[SECOND] - v[FIRST]) - self.r * (omega[FIRST] + omega[SECOND])
        tangent = _turned(c / _length(c)[:, None])
        on_drum = along(tangent, v) + self.r * omega - self.drum_rate * self.drum_radius
        return jnp.concatenate([between, on_drum])

    def draw(self, t, q):
        x = q.reshape(COUNT, 3)
        c = x[:, :2]
        d = c[SECOND] - c[FIRST]
        n, outward = d / _length(d)[:, None], c / _length(c)[:, None]
        at = jnp.concatenate([c[FIRST] + self.r * n, c + self.r * outward])
        normals = jnp.concatenate([n, -outward])
        tangents = jnp.concatenate([_turned(n), _turned(outward)])[:, None]
        ring = self.drum_radius * shapes.circle(60)
        marks = self.drum_rate * t + jnp.arange(12) * jnp.pi / 6
        spokes = jnp.stack([jnp.cos(marks), jnp.sin(marks)], axis=1)
        disks = [
            shapes.disk(x[k, :2], self.r, x[k, 2], (shapes.STEEL, shapes.WOOD)[k % 6 < 3])
            for k in range(COUNT)
        ]
        return [
            shapes.Line(jnp.concatenate([ring, ring[:1]]), shapes.GROUND, 4.0),
            *(
                shapes.Line(jnp.outer(jnp.array([1.0, 1.06]) * self.drum_radius, s), shapes.GROUND, 3.0)
                for s in spokes
            ),
            *disks,
            shapes.Contacts(at=at, normals=normals, tangents=tangents),
        ]

    @property
    def laws(self):
        return (Contact(e_N=self.e_N, friction=Coulomb(self.mu)),) * (len(PAIRS) + COUNT)

    def energy(self, t, q, u):
        return 0.5 * u @ self.M(t, q) @ u + self.m * self.gravity * jnp.sum(q[1::3])


def start(r: float) -> np.ndarray:
    """A loose grid of six columns, not quite regular."""
    rng = np.random.default_rng(0)
    column, row = np.meshgrid(np.arange(6) - 2.5, np.arange(5) - 2.0)
    centres = (
        2.15 * r * np.column_stack([column.ravel(), row.ravel()]) + rng.uniform(-0.05, 0.05, (COUNT, 2)) * r
    )
    return np.column_stack([centres, np.zeros(COUNT)]).ravel()


CASES = (1,)
METHODS = ("moreau",)  # dense problems of this size are for a relaxation


def load(case: int = 1) -> Benchmark:
    return Benchmark(
        "disk-mixer", case, DiskMixer(), jnp.asarray(start(0.03)), jnp.zeros(3 * COUNT),
        t1=0.5, dt=2e-3, method=MoreauMidpoint(solver=PSOR(atol=1e-9, rtol=1e-9)), source="S4 Fig. 2",
        reference={"source": "bounds only: the motion is chaotic", "overlap_order": 1},
    )  # fmt: skip
