"""Where the rows of constraints and laws lie: the only place that knows.

A row belongs to a bilateral constraint on position (g) or velocity (gamma), to a contact (N), or to a
component of friction (F). Vectors of rows have the order (g, gamma, N, F) along their last axis; stages come
as a leading axis, and one after the other where a solver wants a vector. Generalized-alpha has rows on three
kinematic levels: position (g, N), velocity and acceleration (g, gamma, N, F), one after the other.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped


class Rows(NamedTuple):
    """One part for each kind of row."""

    g: Array
    gamma: Array
    N: Array
    F: Array


def _part(rows: Array | np.ndarray, i: int, j: int) -> Array:
    """rows[..., i:j], without the indexing of `jax.numpy`, which takes longer to trace.

    Empty parts are made afresh: a compiled function that returns an empty slice aborts in XLA.
    """
    return (
        jax.lax.slice_in_dim(rows, i, j, axis=-1) if j > i else jnp.zeros((*rows.shape[:-1], 0), rows.dtype)
    )


@dataclass(frozen=True)
class Layout:
    """Numbers of rows of each kind; static."""

    g: int
    gamma: int
    N: int
    F: int

    @property
    def bilateral(self) -> int:
        return self.g + self.gamma

    @property
    def size(self) -> int:
        return self.bilateral + self.N + self.F

    def split(self, rows: Float[Array, "... n_y"]) -> Rows:
        ends = (0, self.g, self.bilateral, self.bilateral + self.N, self.size)
        return Rows(*(_part(rows, i, j) for i, j in pairwise(ends)))

    @staticmethod
    def join(g: Array, gamma: Array, N: Array, F: Array) -> Float[Array, "... n_y"]:
        """The inverse of `split`."""
        return jnp.concatenate([g, gamma, N, F], axis=-1)

    def laws(self, rows: Shaped[Array | np.ndarray, "... n_y"]) -> tuple[Array, Array, Array]:
        """(bilateral, N, F)"""
        b, c = self.bilateral, self.bilateral + self.N
        return _part(rows, 0, b), _part(rows, b, c), _part(rows, c, rows.shape[-1])

    @property
    def gaps(self) -> np.ndarray:
        """Where the rows of (g, N) are."""
        return np.r_[0 : self.g, self.bilateral : self.bilateral + self.N]

    def merge(self, gaps: Array, velocities: Array) -> Float[Array, "... n_y"]:
        """Rows from those of (g, N) and of (gamma, F), along the first axis."""
        g, gamma = self.g, self.gamma
        return jnp.concatenate([gaps[:g], velocities[:gamma], gaps[g:], velocities[gamma:]])

    def spread(self, gaps: Array, others: Any) -> Float[Array, " n_y"]:
        """Rows from values of (g, N), with one value for those of (gamma, F)."""
        return self.merge(gaps, jnp.full(self.gamma + self.F, others))

    def worst(self, rows: Array) -> Float[Array, " n_y"]:
        """Of rows of one or several stages, as a solver has them, the largest of each."""
        return rows if rows.shape[0] == self.size else jnp.max(jnp.abs(rows.reshape(-1, self.size)), axis=0)

    def name(self, row: int) -> str:
        """What a row is called where it is to blame."""
        kinds = (
            ("g[{}]", self.g),
            ("gamma[{}]", self.gamma),
            ("contact {}", self.N),
            ("friction velocity[{}]", self.F),
        )
        for kind, count in kinds:
            if row < count:
                return kind.format(row)
            row -= count
        return "the equations of motion"


@dataclass(frozen=True)
class StageLayout:
    """What a solver sees: the rows of a step (no leading axis) or of its stages, one after the other."""

    of_stage: Layout
    stages: int | None = None

    @property
    def lead(self) -> tuple[int, ...]:
        return () if self.stages is None else (self.stages,)

    @property
    def size(self) -> int:
        return self.of_stage.size * (self.stages or 1)

    def split(self, rows: Array | np.ndarray) -> tuple[Array, Array, Array]:
        """(bilateral, N, F), each with the stages as leading axis."""
        return self.of_stage.laws(rows.reshape(*self.lead, self.of_stage.size))

    def join(self, bilateral: Any, N: Array, F: Array) -> Array:
        """The same as a vector; ``bilateral`` may be one value."""
        if jnp.ndim(bilateral) == 0:
            bilateral = jnp.full((*self.lead, self.of_stage.bilateral), bilateral)
        return jnp.concatenate([bilateral, N, F], axis=-1).reshape(-1)

    @property
    def bilateral(self) -> np.ndarray:
        """Where the bilateral rows are."""
        one = np.arange(self.size).reshape(self.stages or 1, self.of_stage.size)
        return one[:, : self.of_stage.bilateral].ravel()


@dataclass(frozen=True)
class LevelLayout:
    """The same for rows on position, velocity and acceleration level."""

    of_level: Layout

    lead = ()
    stages = None

    @property
    def levels(self) -> tuple[slice, slice, slice]:
        n_gaps, n = len(self.of_level.gaps), self.of_level.size
        return slice(0, n_gaps), slice(n_gaps, n_gaps + n), slice(n_gaps + n, n_gaps + 2 * n)

    @property
    def size(self) -> int:
        return self.levels[2].stop

    def split(self, rows: Array | np.ndarray) -> tuple[Array, Array, Array]:
        """(bilateral, N, F): g, N on three levels, gamma, F on two."""
        g = self.of_level.g
        position, velocity, acceleration = (rows[level] for level in self.levels)
        of_u, of_a = self.of_level.laws(velocity), self.of_level.laws(acceleration)
        parts = (position[:g], of_u[0], of_a[0]), (position[g:], of_u[1], of_a[1]), (of_u[2], of_a[2])
        bilateral, N, F = (jnp.concatenate(part) for part in parts)
        return bilateral, N, F

    def join(self, bilateral: Any, N: Array, F: Array) -> Array:
        g, b, n = self.of_level.g, self.of_level.bilateral, self.of_level.N
        if jnp.ndim(bilateral) == 0:
            bilateral = jnp.full(g + 2 * b, bilateral)
        of_q, of_u, of_a = jnp.split(bilateral, [g, g + b])
        F_u, F_a = jnp.split(F, 2)
        return jnp.concatenate([of_q, N[:n], of_u, N[n : 2 * n], F_u, of_a, N[2 * n :], F_a])

    @property
    def bilateral(self) -> np.ndarray:
        starts = [level.start for level in self.levels]
        counts = self.of_level.g, self.of_level.bilateral, self.of_level.bilateral
        return np.concatenate([np.arange(i, i + n) for i, n in zip(starts, counts, strict=True)])

    def worst(self, rows: Array) -> Float[Array, " n_y"]:
        """Of the levels of a row the largest."""
        position, velocity, acceleration = (jnp.abs(rows[level]) for level in self.levels)
        largest = jnp.maximum(velocity, acceleration)
        return jnp.maximum(largest, self.of_level.spread(position, 0.0))
