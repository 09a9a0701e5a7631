"""Small dense linear systems: the only place where matrices are factored."""

import jax
import jax.numpy as jnp
from jax.lax import linalg as lax_linalg
from jaxtyping import Array, Float


def solve(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """A^-1 B by LU with partial pivoting.

    On a CPU the right-hand sides are factored along with A: LU of (A B) leaves L^-1 P B beside U, so neither the
    permutation nor L is touched again. That is a third faster at the sizes met here.
    """
    n = A.shape[0]
    if n == 0:
        return B

    def together(A, B):
        lu, _, _ = lax_linalg.lu(jnp.concatenate([A, B], axis=1))
        return lax_linalg.triangular_solve(lu[:, :n], lu[:, n:], left_side=True, lower=False)

    return jax.lax.platform_dependent(A, B, cpu=together, default=jnp.linalg.solve)


def solve_vector(A: Float[Array, "n n"], b: Float[Array, "n"]) -> Float[Array, "n"]:
    return solve(A, b[:, None])[:, 0]


def spd_solve(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """A^-1 B for a symmetric positive definite A; nan where A is not, so that nothing goes on silently."""
    L = lax_linalg.cholesky(A, symmetrize_input=False)
    Y = lax_linalg.triangular_solve(L, B, left_side=True, lower=True)
    return lax_linalg.triangular_solve(L, Y, left_side=True, lower=True, transpose_a=True)


def least_squares(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The shortest solution where A is singular (redundant constraints)."""
    return jnp.linalg.pinv(A, rtol=1e-12) @ B
