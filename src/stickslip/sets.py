"""The two convex sets of all laws here, and what the solvers ask of them.

A set-valued law is a normal cone inclusion  psi in N_C(-mu)  of a kinematic quantity psi and a percussion mu.
S3 (6.4) writes it as  mu + prox_C(rho psi - mu) = 0  for any rho > 0. The normal direction uses the
non-positive reals, friction uses balls (S3 section 3.5 brings every reservoir into this form).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class NonPositive:
    """The non-positive reals R_0^-, componentwise: Signorini's law, S0 (8)."""

    @staticmethod
    def prox(x: Array) -> Array:
        return jnp.minimum(x, 0.0)

    @staticmethod
    def contains(x: Array) -> Array:
        return x <= 0.0


class Balls(eqx.Module):
    """A product of balls. Component i of a flat vector belongs to the ball ``ball_of[i]``."""

    ball_of: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    @property
    def _all_intervals(self) -> bool:
        return self.ball_of == tuple(range(self.count))

    @property
    def _membership(self) -> np.ndarray:
        member = np.zeros((self.count, len(self.ball_of)))
        member[list(self.ball_of), range(len(self.ball_of))] = 1.0
        return member

    @property
    def largest_dimension(self) -> int:
        return max((self.ball_of.count(b) for b in range(self.count)), default=0)

    @property
    def places(self) -> np.ndarray:
        """Components of each ball, one row a ball; filled up with an index that is out of range."""
        rows = np.full((self.count, self.largest_dimension), len(self.ball_of))
        for b in range(self.count):
            mine = np.flatnonzero(np.asarray(self.ball_of) == b)
            rows[b, : len(mine)] = mine
        return rows

    def expand(self, per_ball: Array) -> Array:
        """One value a ball -> one value a component."""
        return per_ball if self._all_intervals else per_ball[np.asarray(self.ball_of, dtype=int)]

    def largest(self, per_component: Array) -> Array:
        """The largest (non-negative) component of each ball."""
        if self._all_intervals:
            return per_component
        return jnp.max(self._membership * per_component, axis=1, initial=0.0)

    def dot(self, x: Array, y: Array) -> Array:
        """x . y of each ball."""
        return jnp.sum(self._membership * (x * y), axis=1)  # no matrix product: see `linalg.columns`

    def norm(self, x: Float[Array, " n_F"]) -> Float[Array, " n_balls"]:
        """|x| of each ball, with derivative zero where it is zero."""
        if self._all_intervals:
            return jnp.abs(x)
        squares = self.dot(x, x)
        return jnp.where(squares > 0.0, jnp.sqrt(jnp.where(squares > 0.0, squares, 1.0)), 0.0)

    def direction(self, x: Float[Array, " n_F"]) -> Float[Array, " n_F"]:
        """x/|x| ball by ball, zero where x is zero (an open contact has no direction)."""
        if self._all_intervals:
            return jnp.sign(x)
        norm = self.expand(self.norm(x))
        single = np.asarray([self.ball_of.count(b) == 1 for b in self.ball_of])
        # The sign of an interval is constant: written so, its derivative is zero without cancellation.
        return jnp.where(single, jnp.sign(x), jnp.where(norm > 0.0, x / jnp.where(norm > 0.0, norm, 1.0), 0.0))

    def prox(self, x: Float[Array, " n_F"], radius: Float[Array, " n_balls"]) -> Float[Array, " n_F"]:
        """S0 (39), right: the nearest point of the ball."""
        norm = self.norm(x)
        factor = jnp.where(norm <= radius, 1.0, jnp.maximum(radius, 0.0) / jnp.where(norm > 0.0, norm, 1.0))
        return self.expand(factor) * x

    def interior(self, x: Float[Array, " n_F"], radius: Float[Array, " n_balls"]) -> Bool[Array, " n_balls"]:
        """Strictly inside, or on the boundary to round-off: slip so slow has no direction, and who stops there sticks.

        Strict, because an open contact has radius 0 and may have velocity 0.
        """
        return self.norm(x) < radius * (1.0 + 16.0 * jnp.finfo(x.dtype).eps)
