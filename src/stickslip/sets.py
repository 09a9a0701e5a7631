"""The two convex sets of all laws here, and what the solvers ask of them.

A set-valued law is a normal cone inclusion  psi in N_C(-mu)  of a kinematic quantity psi and a percussion mu.
S3 (6.4) writes it as  mu + prox_C(rho psi - mu) = 0  for any rho > 0. The normal direction uses the
non-positive reals, friction uses balls (S3 section 3.5 brings every reservoir into this form).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped


class NonPositive:
    """The non-positive reals R_0^-, componentwise: Signorini's law, S0 (8)."""

    @staticmethod
    def prox(x: Array) -> Array:
        return jnp.minimum(x, 0.0)

    @staticmethod
    def contains(x: Array) -> Array:
        return x <= 0.0


class Balls(eqx.Module):
    """A product of balls of given dimensions.

    Vectors have the components of one ball after the other on their last axis.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)
    # Half-lines in the place of some intervals, (-inf, 0] of -mu: no radius, and stick holds against any
    # push.
    one_way: tuple[bool, ...] = eqx.field(static=True, default=())

    @property
    def count(self) -> int:
        return len(self.dimensions)

    @property
    def components(self) -> int:
        return sum(self.dimensions)

    @property
    def largest_dimension(self) -> int:
        return max(self.dimensions, default=0)

    @property
    def intervals(self) -> np.ndarray:
        """Balls of one dimension."""
        return np.array(self.dimensions, dtype=int) == 1

    @property
    def half_lines(self) -> np.ndarray:
        """Balls that are none, but half-lines."""
        return np.asarray(self.one_way or (False,) * self.count, dtype=bool)

    @property
    def _alike(self) -> bool:
        return len(set(self.dimensions)) <= 1

    @property
    def _all_intervals(self) -> bool:
        return self.largest_dimension <= 1

    @property
    def places(self) -> np.ndarray:
        """Components of each ball, one row a ball; filled up with an index that is out of range."""
        begin, width = np.cumsum([0, *self.dimensions])[:-1, None], np.arange(self.largest_dimension)
        return np.where(width < np.array(self.dimensions, dtype=int)[:, None], begin + width, self.components)

    def padded(self, x: Float[Array, "... n_F"]) -> Float[Array, "... n_balls dim"]:
        """One row a ball, filled up with zeros."""
        if self._alike:
            return x.reshape(*x.shape[:-1], self.count, self.largest_dimension)
        return jnp.concatenate([x, jnp.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)[..., self.places]

    def flat(self, rows: Shaped[Array, "... n_balls dim"]) -> Shaped[Array, "... n_F"]:
        """The inverse of `padded`."""
        rows = rows.reshape(*rows.shape[:-2], self.count * self.largest_dimension)
        return rows if self._alike else rows[..., np.flatnonzero(self.places < self.components)]

    def expand(self, per_ball: Array) -> Array:
        """One value a ball -> one value a component."""
        if self._all_intervals:
            return per_ball
        return self.flat(jnp.broadcast_to(per_ball[..., None], (*per_ball.shape, self.largest_dimension)))

    def largest(self, per_component: Array) -> Array:
        """The largest (non-negative) component of each ball."""
        return (
            per_component
            if self._all_intervals
            else jnp.max(self.padded(per_component), axis=-1, initial=0.0)
        )

    def dot(self, x: Array, y: Array) -> Array:
        """x . y of each ball."""
        return x * y if self._all_intervals else jnp.sum(self.padded(x * y), axis=-1)

    def norm(self, x: Float[Array, "... n_F"]) -> Float[Array, "... n_balls"]:
        """|x| of each ball, with derivative zero where it is zero."""
        if self._all_intervals:
            return jnp.abs(x)
        squares = self.dot(x, x)
        return jnp.where(squares > 0.0, jnp.sqrt(jnp.where(squares > 0.0, squares, 1.0)), 0.0)

    def direction(self, x: Float[Array, "... n_F"]) -> Float[Array, "... n_F"]:
        """x/|x| ball by ball, zero where x is zero (an open contact has no direction)."""
        if self._all_intervals:
            return jnp.sign(x)
        norm = self.expand(self.norm(x))
        along = jnp.where(norm > 0.0, x / jnp.where(norm > 0.0, norm, 1.0), 0.0)
        # The sign of an interval is constant: written so, its derivative is zero without cancellation.
        single = np.repeat(self.intervals, self.dimensions)
        return jnp.where(single, jnp.sign(x), along) if single.any() else along

    def prox(
        self, x: Float[Array, "... n_F"], radius: Float[Array, "... n_balls"]
    ) -> Float[Array, "... n_F"]:
        """S0 (39), right: the nearest point of the ball."""
        norm = self.norm(x)
        factor = jnp.where(norm <= radius, 1.0, jnp.maximum(radius, 0.0) / jnp.where(norm > 0.0, norm, 1.0))
        ball = self.expand(factor) * x
        return jnp.where(self._in_half_lines, NonPositive.prox(x), ball) if any(self.one_way) else ball

    @property
    def _in_half_lines(self) -> np.ndarray:
        """The same for components."""
        return np.repeat(self.half_lines, self.dimensions)

    def interior(
        self, x: Float[Array, "... n_F"], radius: Float[Array, "... n_balls"]
    ) -> Bool[Array, "... n_balls"]:
        """Strictly inside, or on the boundary to round-off: slip so slow has no direction,
        and who stops there sticks.

        Strict, because an open contact has radius 0 and may have velocity 0.
        """
        return self.depth(x, radius * (1.0 + 16.0 * jnp.finfo(x.dtype).eps)) > 0.0

    def depth(
        self, x: Float[Array, "... n_F"], radius: Float[Array, "... n_balls"]
    ) -> Float[Array, "... n_balls"]:
        """How far x is from the boundary, positive inside."""
        depth = radius - self.norm(x)
        return (
            jnp.where(self.half_lines, self.dot(-x, jnp.ones_like(x)), depth) if any(self.one_way) else depth
        )
