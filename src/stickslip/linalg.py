"""Small dense linear systems: the only place where matrices are factored.

On a CPU, systems up to `SMALL` unknowns are solved by Gauss-Jordan elimination written in plain array
operations. It does more work than LAPACK's LU, but a loop without library calls is compiled into one function
(see `_setup`), and at these sizes what a step costs is calls, not arithmetic. (Scatters, `x.at[indices].set`,
break that function up too: where a step puts rows in order it concatenates and gathers.)
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

SMALL = 64


def _by_platform(*args: Array, cpu: Callable, default: Callable) -> Any:
    """As `jax.lax.platform_dependent`; where there is only a CPU the other way need not be traced."""
    if jax.default_backend() == "cpu":
        return cpu(*args)
    return jax.lax.platform_dependent(*args, cpu=cpu, default=default)


def matmul(A: Float[Array, "m n"], B: Float[Array, "n k"]) -> Float[Array, "m k"]:
    """A B; a small product is written out, so that it is no library call either."""
    if max(*A.shape, *B.shape) > SMALL:
        return A @ B
    return jnp.sum(A[:, :, None] * B[None, :, :], axis=1)


def columns(f: Callable[..., Array], *X: Float[Array, "_ n"]) -> Float[Array, "_ n"]:
    """f, a linear map of vectors, of every column.

    Batched over eight columns or more, a matrix in f (a rotation, say) makes a matrix product, and with that
    a library call; column by column it stays one function.
    """

    def together(*X):
        return jax.vmap(f, in_axes=1, out_axes=1)(*X)

    def one_by_one(*X):
        return jax.lax.map(lambda x: f(*x), tuple(x.T for x in X)).T

    if X[0].shape[1] < 8:
        return together(*X)
    return _by_platform(*X, cpu=one_by_one, default=together)


def _eliminate(A: Array, B: Array, pivot_row) -> Array:
    """A^-1 B by Gauss-Jordan elimination; ``pivot_row(column, k,
    free)`` chooses a row among those still free.
    """
    n = A.shape[0]
    rows = jnp.arange(n)

    def eliminate(k, state):
        T, free, order = state
        column = T[:, k]
        p = pivot_row(column, k, free)
        here = rows == p
        scaled = T[p] / column[p]
        T = jnp.where(here[:, None], scaled, T - column[:, None] * scaled)
        return T, free & ~here, jnp.where(rows == k, p, order)

    T = jnp.concatenate([A, B], axis=1)
    T, _, order = jax.lax.fori_loop(0, n, eliminate, (T, jnp.ones(n, dtype=bool), jnp.zeros(n, dtype=int)))
    return T[order, n:]


def _differentiated(solver: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The same with d(A^-1 B) = A^-1 (dB - dA A^-1 B),
    so that no elimination is differentiated (or transposed).
    """
    rule = jax.custom_jvp(solver)

    @rule.defjvp
    def _(primals, tangents):
        A, B = primals
        dA, dB = tangents
        n = A.shape[0]
        both = rule(A, jnp.concatenate([B, jnp.eye(n, dtype=A.dtype)], axis=1))
        X, inverse = both[:, : B.shape[1]], both[:, B.shape[1] :]
        return X, matmul(inverse, dB - matmul(dA, X))

    return functools.wraps(solver)(rule)


@_differentiated
def solve(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """A^-1 B with partial pivoting; not finite where A is singular."""

    def by_elimination(A, B):
        return _eliminate(A, B, lambda column, k, free: jnp.argmax(jnp.where(free, jnp.abs(column), -1.0)))

    if A.shape[0] == 0:
        return B
    if A.shape[0] > SMALL:
        return jnp.linalg.solve(A, B)
    return _by_platform(A, B, cpu=by_elimination, default=jnp.linalg.solve)


class Eliminated(NamedTuple):
    """A linear system solved for its unknowns as far as it determines them; see `eliminate`."""

    T: Float[Array, "n n"]
    rows: Int[Array, " n"]  # which row of A stands at a place of T
    needed: Bool[Array, " n"]
    solved: Bool[Array, " n"]
    scale: Float[Array, " n"]  # by which rows of A were multiplied
    singular: Any  # A if it is, else zero; None where unknowns that a singular A leaves open are zero

    @classmethod
    def nothing(cls, n: int, smallest: bool = False) -> "Eliminated":
        yes, empty = jnp.ones(n, dtype=bool), jnp.zeros((n, n))
        return cls(
            empty, jnp.arange(n), yes, ~yes, jnp.ones(n), empty if n and (smallest or n > SMALL) else None
        )

    @property
    def regular(self) -> Bool[Array, ""]:
        """Whether no pivot was passed over."""
        whole = jnp.all(self.solved | ~self.needed)
        return whole if self.singular is None else whole & ~jnp.any(self.singular != 0.0)

    def apply(self, b: Float[Array, " n"]) -> Float[Array, " n"]:
        """A^-1 b, with zero for what a singular A leaves open."""
        given, scaled = jnp.where(self.needed, 0.0, b), (self.scale * b)[self.rows]
        return jnp.where(self.solved, self.T @ (jnp.where(self.solved, scaled, 0.0) - given), given)

    def left_open(self, y: Float[Array, " n"]) -> Any:
        """What of y a singular A does not determine, where the smallest solution is wanted."""
        if self.singular is None:
            return 0.0

        def rest(y: Array) -> Array:
            return jnp.where(self.solved & self.needed, y - self.T @ (self.singular @ y)[self.rows], 0.0)

        wanted = jnp.any(self.singular != 0.0)
        return jnp.where(wanted, rest(jnp.where(self.needed, y, 0.0)), 0.0)


def _smallest(T: Array, needed: Array, solved: Array) -> Array:
    """T of the smallest solution, from that with zero for what was passed over.

    It has no part in the null space, which N spans: the column of such an unknown says what goes along.
    """
    n = T.shape[0]
    free = needed & ~solved
    N = jnp.where(free[None, :], jnp.where(solved[:, None], -T, jnp.eye(n)), 0.0)
    gram = matmul(N.T, N) + jnp.diag(jnp.where(free, 0.0, 1.0))
    one = jnp.where(solved[:, None] & ~free[None, :], T, 0.0)
    return one - matmul(N, spd_solve(gram, matmul(N.T, one)))


def _in_place(A: Array, needed: Array, rtol: float | Array) -> tuple[Array, Array, Array]:
    """Gauss-Jordan as `eliminate` says: T, the order of rows, and which columns were solved."""
    n = A.shape[0]
    places = jnp.arange(n)

    def exchange(k, state):
        T, free, rows, solved = state
        p = jnp.argmax(jnp.where(free, jnp.abs(T[:, k]), -1.0))
        row_p, row_k = T[p], T[k]
        at_k, at_p = places == k, places == p
        T = jnp.where(at_k[:, None], row_p, jnp.where(at_p[:, None], row_k, T))
        rows = jnp.where(at_k, rows[p], jnp.where(at_p, rows[k], rows))
        pivot, column = row_p[k], T[:, k]
        usable = jnp.abs(pivot) > rtol
        scaled = jnp.where(at_k, 1.0, row_p) / jnp.where(usable, pivot, 1.0)
        cleared = jnp.where(at_k[None, :], 0.0, T) - column[:, None] * scaled
        swept = jnp.where(at_k[:, None], scaled, cleared)
        done = at_k & usable
        return jnp.where(usable, swept, T), free & ~done, rows, solved | done

    def visit(k, state):
        return jax.lax.cond(needed[k], lambda: exchange(k, state), lambda: state)

    T, _, rows, solved = jax.lax.fori_loop(0, n, visit, (A, needed, places, jnp.zeros(n, dtype=bool)))
    return T, rows, solved


def eliminate(
    A: Float[Array, "n n"], needed: Bool[Array, " n"], rtol: float | Array, smallest: bool = False
) -> Eliminated:
    """Factors of A for repeated use. Row i of A is the unit row where ``needed[i]`` is false:
    it costs nothing.

    Gauss-Jordan in place with scaled partial pivoting (rows may be gaps, velocities or percussions, of any
    size): column k of A makes room for a column of the inverse. A pivot that is round-off beside its row is
    passed over: the system is singular there, and if it has solutions one of them results.
    On other devices a library factors; if one of its pivots (they are the same) is to be passed over, the
    elimination does that there too. Where the ``smallest`` is asked for, and above `SMALL` unknowns, on all
    devices, it is the smallest solution that results then: where many contacts share a load, all of them
    push.
    """
    n = A.shape[0]
    places = jnp.arange(n)
    size = jnp.max(jnp.abs(A), axis=1, initial=0.0)
    scale = jnp.where(needed & (size > 0.0), 1.0 / jnp.where(size > 0.0, size, 1.0), 1.0)
    A = scale[:, None] * A

    in_place = functools.partial(_in_place, rtol=rtol)
    inner = jnp.where(needed[:, None] & needed[None, :], A, jnp.eye(n))

    def by_library(A, needed):
        lu, pivots, order = jax.lax.linalg.lu(inner)
        regular = jnp.all(jnp.where(needed[order], jnp.abs(jnp.diagonal(lu)) > rtol, True))
        return regular, jax.scipy.linalg.lu_solve((lu, pivots), jnp.eye(n))

    def completed(inverse):
        # As in place: columns that are not needed hold A_nn^-1 A_nk.
        return jnp.where(needed[None, :], inverse, inverse @ jnp.where(needed[:, None], A, 0.0))

    # A loop that runs at most once: unlike `cond` it costs nothing under vmap while nobody needs it.
    def passed_over(A, needed):
        regular, inverse = by_library(A, needed)
        found = completed(inverse), places, needed, ~regular
        return jax.lax.while_loop(
            lambda s: s[-1], lambda _: (*in_place(A, needed), jnp.asarray(False)), found
        )[:-1]

    def least(found, regular, how):
        again = lambda s: (how(s[0], s[2]), s[1], needed, jnp.asarray(False))
        found = jax.lax.while_loop(lambda s: s[-1], again, (*found, ~regular))[:-1]
        return *found, jnp.where(regular, 0.0, inner)

    if n == 0:
        return Eliminated(A, places, needed, needed, scale, None)
    singular = None
    if n > SMALL:
        regular, inverse = by_library(A, needed)
        pseudo = lambda *_: completed(jnp.linalg.pinv(inner, rtol=rtol))
        T, rows, solved, singular = least((completed(inverse), places, needed), regular, pseudo)
    else:
        T, rows, solved = _by_platform(A, needed, cpu=in_place, default=passed_over)
        if smallest:
            how = lambda T, solved: _smallest(T, needed, solved)
            T, rows, solved, singular = least((T, rows, solved), jnp.all(solved | ~needed), how)
    return Eliminated(T, rows, needed | solved, solved, scale, singular)


@_differentiated
def spd_solve(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """A^-1 B for a symmetric positive definite A; nan where A is not, so that nothing goes on silently."""

    def by_elimination(A, B):
        n = A.shape[0]

        def eliminate(k, state):
            T, definite = state
            pivot = T[k, k]
            here = (jnp.arange(n) == k)[:, None]
            scaled = T[k] / pivot
            return jnp.where(here, scaled, T - T[:, k][:, None] * scaled), definite & (pivot > 0.0)

        T = jnp.concatenate([A, B], axis=1)
        T, definite = jax.lax.fori_loop(0, n, eliminate, (T, jnp.asarray(True)))
        return jnp.where(definite, T[:, n:], jnp.nan)

    def by_cholesky(A, B):
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(A), True), B)

    if A.shape[0] > SMALL:
        return by_cholesky(A, B)
    return _by_platform(A, B, cpu=by_elimination, default=by_cholesky)


def basic_solution(
    A: Float[Array, "n n"], B: Float[Array, "n k"], rtol: float = 1e-11
) -> Float[Array, "n k"]:
    """A solution of A X = B where A may be singular but B is in its range (redundant constraints).

    Elimination with complete pivoting; unknowns whose pivot is below rtol times the largest one are set to
    zero.
    """
    n = A.shape[0]
    if n == 0:
        return B
    index = jnp.arange(n)
    smallest = rtol * jnp.max(jnp.abs(A))

    def eliminate(_, state):
        T, free_row, free_column, row_of = state
        size = jnp.where(free_row[:, None] & free_column[None, :], jnp.abs(T[:, :n]), -1.0)
        best = jnp.argmax(size)
        p, c = best // n, best % n
        here, usable = index == p, size[p, c] > smallest
        scaled = T[p] / jnp.where(usable, T[p, c], 1.0)
        new = jnp.where(here[:, None], scaled, T - T[:, c][:, None] * scaled)
        return (
            jnp.where(usable, new, T),
            free_row & ~(here & usable),
            free_column & ~((index == c) & usable),
            jnp.where((index == c) & usable, p, row_of),
        )

    free = jnp.ones(n, dtype=bool)
    T = jnp.concatenate([A, B], axis=1)
    T, _, unused, row_of = jax.lax.fori_loop(0, n, eliminate, (T, free, free, jnp.zeros(n, dtype=int)))
    return jnp.where(unused[:, None], 0.0, T[row_of, n:])
