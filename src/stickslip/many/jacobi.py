"""All contacts at once: projected Jacobi relaxation with Anderson's mixing, for the device of JAX.

The formulas are those of `sweeps`, with arrays (3, contacts), which is what a device likes. A contact shares
its bodies with others, n_a and n_b in number, so its prox parameters are those of bodies divided among them,

    rho_N = 1 / (n_a / m_a + n_b / m_b),    rho_T likewise with l^2 / theta,

for which all can move at once. The certificate has the undivided parameters 1/G_kk, as on the processor.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .solvers import check

TOLERATED = 2.0  # an iterate this much worse than the best one is dropped
LOOKED = 10  # iterations in a row: then the certificate is asked, which a device has to report
TINY = 1e-13  # of the largest diagonal: added to the Gram matrix, whose columns may depend on each other


@dataclass(frozen=True)
class AndersonJacobi:
    """Projected Jacobi relaxation with Anderson's mixing;
    a step in one compiled function, on a GPU or without numba.
    """

    max_iterations: int = 200  # in tens; a step that is not solved by then is unsolved
    relaxation: float = 1.0  # of the prox parameters, between 0 and 2
    depth: int = 5  # differences that the mixing remembers; 0: plain relaxation
    deterministic: bool = False  # on a GPU: sums in a fixed order, so that two runs agree bit for bit

    def __post_init__(self) -> None:
        check(self, "max_iterations", "relaxation", "depth")
        if not isinstance(self.deterministic, bool):
            raise TypeError(
                f"AndersonJacobi(deterministic={self.deterministic!r}): deterministic must be True or False"
            )


class Listed(NamedTuple):
    """Contacts on a device; of entries that are none, ``used`` is false and percussions stay zero."""

    a: Any  # (C)
    b: Any  # (C)
    used: Any  # (C)
    n: Any  # (3, C)
    la: Any
    lb: Any
    chi: Any  # (3, C)
    mu: Any
    mu_roll: Any
    mu_pivot: Any
    G_N: Any  # diagonal blocks; 1 where no contact is
    G_T: Any
    G_R: Any
    inverse: Any  # (2, bodies) 1/m, 1/theta
    table: Any  # (entries, bodies) contacts of each body, in a fixed order, or None: sums as they come


def cross(x, y):
    return jnp.cross(x, y, axis=0)


def velocities(c: Listed, u):
    """gamma (3, C), and with torques below it the relative spins."""
    one, two = u[:, c.a], u[:, c.b]
    gamma = two[:3] - one[:3] - cross(c.la * one[3:] + c.lb * two[3:], c.n) + c.chi
    return gamma, two[3:] - one[3:]


def moved(c: Listed, u_free, X):
    """u_free + M^-1 W X, X being percussions and torques below them."""
    P = X[:3]
    arm = cross(c.n, P)
    tau = X[3:] if len(X) == 6 else 0.0
    on_a = jnp.concatenate([-P, -c.la * arm - tau])
    on_b = jnp.concatenate([P, -c.lb * arm + tau])
    bodies = c.inverse.shape[1]
    if c.table is None:
        pushed = jnp.zeros((6, bodies)).at[:, jnp.where(c.used, c.a, bodies)].add(on_a, mode="drop")
        pushed = pushed.at[:, jnp.where(c.used, c.b, bodies)].add(on_b, mode="drop")
    else:
        both = jnp.concatenate([on_a, on_b, jnp.zeros((6, 1))], axis=1)
        pushed = jnp.zeros((6, bodies))
        for entries in c.table:
            pushed = pushed + both[:, entries]
    change = jnp.repeat(c.inverse, 3, axis=0) * pushed
    return u_free.at[:, :bodies].add(change)


def projected(c: Listed, X, gamma, spin, rho_N, rho_T, rho_R, radius_of):
    """prox(X - rho gamma) with balls of radius mu times radius_of(new normal percussions, old ones)."""
    g_N, P_N = (c.n * gamma).sum(0), (c.n * X[:3]).sum(0)
    new = jnp.maximum(P_N - rho_N * g_N, 0.0)
    size = radius_of(new, P_N)
    y = shrunk(X[:3] - rho_T * gamma - c.n * (P_N - rho_T * g_N), c.mu * size)
    parts = [c.used * (new * c.n + y)]
    if len(X) == 6:
        z = X[3:] - rho_R * spin
        along = (c.n * z).sum(0)
        bound = c.mu_pivot * size
        parts.append(
            c.used * (jnp.clip(along, -bound, bound) * c.n + shrunk(z - along * c.n, c.mu_roll * size))
        )
    return jnp.concatenate(parts)


def shrunk(y, radius):
    size = jnp.sqrt((y * y).sum(0))
    return jnp.where(size > radius, radius / jnp.where(size > 0.0, size, 1.0), 1.0) * y


def certificate(c: Listed, u_free, X):
    """2-norm and largest entry by contact of the natural map in m/s, and the velocities,
    from percussions alone.
    """
    u = moved(c, u_free, X)
    gamma, spin = velocities(c, u)
    y = projected(
        c, X, gamma, spin, 1.0 / c.G_N, 1.0 / c.G_T, 1.0 / c.G_R, lambda new, old: jnp.maximum(old, 0.0)
    )
    F = X - y
    F_N = (c.n * F[:3]).sum(0)
    squares = (c.G_N * F_N) ** 2 + c.G_T**2 * ((F[:3] - F_N * c.n) ** 2).sum(0)
    if len(X) == 6:
        squares += (jnp.maximum(c.la, c.lb) * c.G_R) ** 2 * (F[3:] ** 2).sum(0)
    squares = jnp.where(c.used, squares, 0.0)
    return jnp.sqrt(squares.sum()), jnp.sqrt(squares.max(initial=0.0)), u


class Search(NamedTuple):
    """What an iteration hands to the next one."""

    count: Any
    X: Any
    dF: Any  # (depth, rows, C)
    dS: Any
    gram: Any  # (depth, depth) products of dF
    right: Any  # (depth) those with f of the last iteration
    f: Any  # of the last iteration
    S: Any
    filled: Any  # differences that count
    kept: Any  # the iterate of the smallest change
    smallest: Any
    best: Any  # what the certificate liked best,
    residual: Any  # and what it said


def solve(contacts: Listed, u_free, X, tolerance, options: AndersonJacobi):
    """X, u, residual, largest velocity error, its reference, iterations."""
    gamma, _ = velocities(contacts, u_free)
    size = jnp.sqrt(jnp.where(contacts.used, (gamma**2).sum(0), 0.0).sum())
    target, depth = tolerance * size, max(options.depth, 1)
    rho_N, rho_T, rho_R = (options.relaxation * rho for rho in _divided(contacts, len(X) == 6))
    w = jnp.concatenate(
        [
            jnp.broadcast_to(contacts.G_N, (3, len(contacts.a))),
            jnp.broadcast_to(jnp.maximum(contacts.la, contacts.lb) * contacts.G_R, (3, len(contacts.a))),
        ]
    )
    w = w[: len(X)]

    def iterate(s: Search) -> Search:
        gamma, spin = velocities(contacts, moved(contacts, u_free, s.X))
        S = projected(contacts, s.X, gamma, spin, rho_N, rho_T, rho_R, lambda new, old: new)
        f = w * (S - s.X)
        norm = jnp.sqrt((f * f).sum())
        worse = norm > TOLERATED * s.smallest
        better = norm < s.smallest
        at = s.count % depth
        fresh = (s.count == 0) | worse | (options.depth == 0)
        newest = jnp.where(s.filled >= 0, f - s.f, 0.0)
        dF = s.dF.at[at].set(newest)
        dS = s.dS.at[at].set(jnp.where(s.filled >= 0, S - s.S, 0.0))
        # A sum, no product of matrices, which with so few rows leaves a device idle;
        # dF once through the memory is enough: products with f - f_before are differences of those with f.
        right = (dF * f).sum((1, 2))
        row = (right - s.right).at[at].set((newest * newest).sum())
        gram = s.gram.at[at].set(row).at[:, at].set(row)
        filled = jnp.where(fresh, 0, jnp.minimum(s.filled + 1, depth))
        age = (at - jnp.arange(depth)) % depth
        c = _coefficients(gram, right, age < filled)
        mixed = S - (c[:, None, None] * dS).sum(0)
        X = jnp.where(worse, s.kept, mixed)
        kept = jnp.where(better, S, s.kept)
        return s._replace(
            count=s.count + 1, X=X, dF=dF, dS=dS, gram=gram, right=right, f=f, S=S,
            filled=jnp.where(worse, -1, filled), kept=kept, smallest=jnp.minimum(norm, s.smallest),
        )  # fmt: skip

    def looked_at(s: Search) -> Search:
        s = jax.lax.fori_loop(0, min(LOOKED, options.max_iterations), lambda _, s: iterate(s), s)
        residual = certificate(contacts, u_free, s.S)[0]
        liked = residual < s.residual
        return s._replace(best=jnp.where(liked, s.S, s.best), residual=jnp.where(liked, residual, s.residual))

    nothing = jnp.zeros((depth, *X.shape))
    start = Search(
        jnp.zeros((), int), X, nothing, nothing, jnp.zeros((depth, depth)), jnp.zeros(depth),
        jnp.zeros_like(X),
        jnp.zeros_like(X), jnp.full((), -1), X, jnp.full((), jnp.inf), X, certificate(contacts, u_free, X)[0],
    )  # fmt: skip
    end = jax.lax.while_loop(
        lambda s: (s.residual > target) & (s.count < options.max_iterations), looked_at, start
    )
    residual, largest, u = certificate(contacts, u_free, end.best)
    return end.best, u, residual, largest, size, end.count


def _divided(c: Listed, turns: bool):
    """Prox parameters with the bodies divided among their contacts; spin once more,
    between sliding and rolling.
    """
    bodies = c.inverse.shape[1]
    many = jnp.zeros(bodies + 1)
    for end in (c.a, c.b):
        many = many.at[jnp.where(c.used, jnp.minimum(end, bodies), bodies)].add(1.0)
    many = many.at[bodies].set(0.0)
    inverse = jnp.concatenate([c.inverse, jnp.zeros((2, 1))], axis=1) * many
    one, two = inverse[:, jnp.minimum(c.a, bodies)], inverse[:, jnp.minimum(c.b, bodies)]
    if turns:
        one, two = (part * jnp.array([[1.0], [2.0]]) for part in (one, two))
    masses, spins = one[0] + two[0], one[1] + two[1]
    safe = lambda G: 1.0 / jnp.where(c.used, G, 1.0)
    return safe(masses), safe(masses + c.la**2 * one[1] + c.lb**2 * two[1]), safe(spins)


def _coefficients(gram, right, valid):
    """c = argmin |f - sum_j c_j dF_j| over the valid differences; small enough to be written out."""
    m = len(right)
    gram = jnp.where(valid[:, None] & valid[None, :], gram, 0.0)
    gram += jnp.diag(jnp.where(valid, TINY * gram.max() + 1e-300, 1.0))
    right = jnp.where(valid, right, 0.0)
    L = [[jnp.zeros(())] * m for _ in range(m)]
    y = [jnp.zeros(())] * m
    for i in range(m):  # Cholesky's factors
        for j in range(i):
            L[i][j] = (gram[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
        L[i][i] = jnp.sqrt(
            jnp.maximum(gram[i, i] - sum(L[i][k] ** 2 for k in range(i)), 1e-3 * TINY * gram.max() + 1e-300)
        )
        y[i] = (right[i] - sum(L[i][k] * y[k] for k in range(i))) / L[i][i]
    c = [jnp.zeros(())] * m
    for i in reversed(range(m)):
        c[i] = (y[i] - sum(L[k][i] * c[k] for k in range(i + 1, m))) / L[i][i]
    return jnp.where(valid, jnp.stack(c), 0.0)
