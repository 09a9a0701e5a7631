"""What is large and what is small, whatever the units and the masses.

A residual, a gap or a velocity is judged beside the terms that it is the sum of, never as a number. Rows of
different kinds (gaps, velocities, percussions) and of bodies of different mass are compared in the energy
norm: a percussion P_j gives row i at most the velocity sqrt(G_i G_j) |P_j|, with G_i = w_i^T M^-1 w_i, and a
body with the kinetic energy K^2/2 moves it at most with sqrt(G_i) K.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

START = 1e-8  # by how much of its own terms a start may violate a constraint
# a contact of a state that nobody solved for is closed if its gap is below this part of its own terms
CLOSED = 1e-9
QUIET = 1e-10  # below this part of its own terms a velocity that was solved for is zero
SELF_STRESS = 1e7  # percussions beyond this times the motion are no reason for round-off
ROUND_OFF = 1e-13  # of the size of the whole mechanism, where a row has no terms of its own


class Scales(NamedTuple):
    """One entry a row."""

    G: Float[Array, " n_y"]  # w_i^T M^-1 w_i: the velocity that a percussion gives its own row
    span: Float[Array, " n_y"]  # what makes a velocity of it the unit of the row: dt for gaps, else 1
    speed: Float[Array, " n_y"]  # |w_i|^T |u| + |chi_i|: what its velocity is the sum of, but for percussions
    gap: Float[Array, " n_y"]  # what a gap is the sum of; zero in other rows
    impulse: Any = 1.0  # what makes the multiplier of a row a percussion: dt for forces

    @property
    def own(self) -> Array:
        """The size of a row by itself."""
        return self.span * self.speed

    def cancelling(self, y: Array) -> Array:
        """All that may cancel in a row: beside it round-off cannot be told from a residual.

        Percussions count up to a limit: redundant contacts can press against each other with any force, and
        must not blur what moves.
        """
        root = jnp.sqrt(self.G)
        motion = jnp.max(self.speed / jnp.where(root > 0.0, root, jnp.inf), initial=0.0)
        return (
            self.span * (self.speed + root * jnp.minimum(self.energy_norm(y), SELF_STRESS * motion))
            + self.gap
        )

    def energy_norm(self, y: Array) -> Float[Array, ""]:
        """What all percussions together can move."""
        return jnp.sum(jnp.sqrt(self.G) * self.impulse * jnp.abs(y))
