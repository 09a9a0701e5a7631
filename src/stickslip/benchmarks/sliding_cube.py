"""A cube, launched flat, slides on its four corners until it stops: the path is v^2/(2 mu g).

Engines with compliant or shifted contact let it lift or tip. Four rigid contacts share the load so that the
cube stays flat: friction acts half an edge below the centre of mass, and mu < 1 keeps all corners on the
ground.
"""

import math

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..frames import ContactFrame
from ..laws import Contact, Coulomb
from ..methods import Rattle
from ..rigid import SpatialBody, spatial
from .base import Benchmark


class Cube(SpatialBody):
    """Corners 0 to 3 are below; the ground is z = 0, tilted by ``slope`` towards +x."""

    edge: float = 0.1
    m: float = 1.0
    gravity: float = 9.81
    mu: float = 0.5
    e_N: float = 0.0
    slope: float = 0.0

    @property
    def inertia(self):
        return jnp.full(3, self.m * self.edge**2 / 6.0)

    @property
    def down(self):
        return jnp.array([jnp.sin(self.slope), 0.0, -jnp.cos(self.slope)])

    @property
    def corners(self):
        return (
            0.5
            * self.edge
            * np.array([[-1.0, -1.0, -1.0], [1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]])
        )

    @property
    def touches(self):
        law = Contact(e_N=self.e_N, friction=Coulomb(self.mu, dim=2))
        return (
            ContactFrame(("rear right", "front right", "front left", "rear left"), law, point=self.corners),
        )

    def draw(self, t, q):
        below = spatial.position(q, self.corners)
        above = spatial.position(q, self.corners * np.array([1.0, 1.0, -1.0]))
        sides = [[k, (k + 1) % 4, 4 + k] for k in range(4)] + [
            [(k + 1) % 4, 4 + (k + 1) % 4, 4 + k] for k in range(4)
        ]
        triangles = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7], *sides])
        return [
            *shapes.floor(0.25, centre=(0.1, 0.0)),
            shapes.Mesh(jnp.concatenate([below, above]), triangles, np.array([1, 1, 1, 1] + [0] * 8)),
            shapes.Contacts.of(self, t, q),
        ]


FLAT = (0.0, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0)
CASES = (1,)


def load(case: int = 1) -> Benchmark:
    v, mu, g = 6.0, 0.5, 9.81
    reference = {
        "source": "closed form",
        "stop_x": v**2 / (2 * mu * g),
        "stop_time": v / (mu * g),
        "height": 0.05,
        # friction mu m g acts edge/2 below S: the rear pair carries m g (1 - mu)/2, the front pair m g (1 +
        # mu)/2
        "lambda_N_rear_and_front_pair": (g * (1 - mu) / 2, g * (1 + mu) / 2),
    }
    return Benchmark(
        "sliding-cube", case, Cube(), jnp.array(FLAT), jnp.array([v, 0.0, 0.0, 0.0, 0.0, 0.0]),
        t1=math.ceil(v / (mu * g) * 10 + 1) / 10, dt=1e-3, method=Rattle(), source="closed form",
        reference=reference,
    )  # fmt: skip
