"""Linear maps that a step applies: W, M^-1, L = M^-1 W and G = W^T M^-1 W, whatever they are stored as.

    W @ y,   W.T @ u,   W.T @ L,   abs(W) @ y

read as in a paper and are all that schemes do with them; who factors asks for ``dense()``. `Dense` is a
matrix. Contact lists or blocks would be another class, which no scheme knows of.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .linalg import matmul, spd_solve


class Operator(eqx.Module):
    """A linear map A."""

    @abc.abstractmethod
    def __matmul__(self, x: Any) -> Any:
        """A x of a vector, or the product with another operator."""

    @property
    @abc.abstractmethod
    def T(self) -> "Operator": ...

    @abc.abstractmethod
    def __abs__(self) -> "Operator":
        """Its entries without their signs."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "m n"]:
        """Its entries."""

    def __array__(self, dtype=None, copy=None):
        """The same for NumPy."""
        return np.asarray(self.dense(), dtype)


class ForceDirections(Operator):
    """Force directions, a column for each row of constraints and laws: W, or L = M^-1 W."""

    @abc.abstractmethod
    def through(
        self, inverse: "Inverse", h: Float[Array, "nu k"]
    ) -> tuple["ForceDirections", Float[Array, "nu k"]]:
        """M^-1 A and M^-1 h, at once."""

    @abc.abstractmethod
    def products(self, other: Any) -> Float[Array, " n_y"]:
        """a_i . b_i of all columns: the diagonal of A^T B."""

    @abc.abstractmethod
    def terms(self, x: Float[Array, " nu"]) -> Float[Array, " n_y"]:
        """What A^T x is the sum of, |A|^T |x|."""

    @abc.abstractmethod
    def without(self, columns: Bool[Array, " n_y"]) -> "ForceDirections":
        """The same with zero columns."""


class Dense(ForceDirections):
    """A matrix."""

    matrix: Float[Array, "m n"]

    @classmethod
    def of(cls, matrix: Any) -> Any:
        """An operator as it is, a matrix as a dense one."""
        return matrix if isinstance(matrix, Operator) else cls(matrix)

    def __matmul__(self, x):
        return Dense(matmul(self.matrix, x.matrix)) if isinstance(x, Dense) else self.matrix @ x

    @property
    def T(self):
        return Dense(self.matrix.T)

    def __abs__(self):
        return Dense(jnp.abs(self.matrix))

    def dense(self):
        return self.matrix

    def through(self, inverse, h):
        k = h.shape[1]
        terms = inverse.columns(jnp.concatenate([h, self.matrix], axis=1))
        return Dense(terms[:, k:]), terms[:, :k]

    def products(self, other):
        return jnp.sum(self.matrix * other.matrix, axis=0)

    def terms(self, x):
        # a sum, not a product: it fuses with what is around it
        return jnp.sum(jnp.abs(x[:, None] * self.matrix), axis=0)

    def without(self, columns):
        return Dense(jnp.where(columns, 0.0, self.matrix))


class Inverse(eqx.Module):
    """M^-1."""

    @abc.abstractmethod
    def columns(self, X: Float[Array, "nu k"]) -> Float[Array, "nu k"]:
        """M^-1 X."""


class Known(Inverse):
    """Of a constant M, inverted before the first step."""

    matrix: Float[Array, "nu nu"]

    def columns(self, X):
        return matmul(self.matrix, X)


class Factored(Inverse):
    """Of a symmetric positive definite M."""

    M: Float[Array, "nu nu"]

    def columns(self, X):
        return spd_solve(self.M, X)
