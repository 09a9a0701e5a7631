"""Ellipsoids on each other, and balls on them.

Of all unit vectors n the one in which two of them are farthest apart is their common normal, and how far is
the gap:

    g = max s(n),    s(n) = n . c - h_Q(n) - h_P(n),    h = |D A^T n|,
    c: from the centre of P to that of Q,

the distance, or the smallest translation that separates (D: semi-axes, A: rotation). With S = A D^2 A^T the
points of the two that have this normal are S n/h from their centres, and differ by r = c - S_Q n/h_Q - S_P
n/h_P: where s is largest, r = g n. Newton's method on the sphere solves this equation, and derivatives of n
are those of the equation. Apart, there is one maximum; where the two overlap there may be others, so it
starts from the line of the centres and from all axes, and takes the best. A gap for which it does not
converge is nan.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .near import dot, tangents
from .touch import At
from .tree import Poses, times, turned

CONVERGED = 1e-13  # of the size of a pair: what is left of r across n
ITERATIONS = 60
SHARES = 0.5 ** np.arange(12)  # of a Newton step, of which the longest is taken that is nearly as good as any


class Ellipsoids(eqx.Module):
    """Pairs, Q (the first) on P."""

    at_Q: Float[Array, "n 3"]  # in the links
    at_P: Float[Array, "n 3"]
    turn_Q: Float[Array, "n 3 3"]
    turn_P: Float[Array, "n 3 3"]
    semi_Q: Float[Array, "n 3"]
    semi_P: Float[Array, "n 3"]
    links: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)

    def at(self, at: Poses) -> At:
        i, j = np.array(self.links), np.array(self.others)
        x = at.x[i] + turned(at.A[i], jnp.asarray(self.at_Q))
        A_Q, A_P = times(at.A[i], jnp.asarray(self.turn_Q)), times(at.A[j], jnp.asarray(self.turn_P))
        S_Q, S_P = (times(A * jnp.asarray(semi)[:, None] ** 2, jnp.swapaxes(A, 1, 2))
                    for A, semi in ((A_Q, self.semi_Q), (A_P, self.semi_P)))  # fmt: skip
        pair = Pair(x - at.x[j] - turned(at.A[j], jnp.asarray(self.at_P)), S_Q, S_P)
        n = normal(*pair, jax.lax.stop_gradient(jnp.concatenate([A_Q, A_P], axis=2)))
        return At(dot(n, differ(n, pair)), x - support(n, S_Q), tangents(n, False))


class Pair(NamedTuple):
    c: Array  # (..., 3)
    S_Q: Array  # (..., 3, 3)
    S_P: Array


class Seen(NamedTuple):
    """From a direction."""

    s: Array
    across: tuple[Array, Array]  # r in two directions across n
    curved: tuple[Array, Array, Array]  # the second derivatives of h_Q + h_P there: 11, 12, 22
    basis: tuple[Array, Array]


def _sent(S: Array, n: Array) -> Array:
    return jnp.sum(S * n[..., None, :], axis=-1)


def support(n: Array, S: Array) -> Array:
    """From the centre to the point with the normal n."""
    Sn = _sent(S, n)
    return Sn / jnp.sqrt(dot(n, Sn))[..., None]


def differ(n: Array, pair: Pair) -> Array:
    """r: from the point of P to that of Q."""
    return pair.c - support(n, pair.S_Q) - support(n, pair.S_P)


def seen(n: Array, pair: Pair) -> Seen:
    r = differ(n, pair)
    frame = tangents(n.reshape(-1, 3), False).reshape(*n.shape, 3)
    first, second = frame[..., 0], frame[..., 1]
    h11 = h12 = h22 = jnp.zeros(n.shape[:-1])
    for S in (pair.S_Q, pair.S_P):
        a, b, x = _sent(S, first), _sent(S, second), support(n, S)
        h = dot(n, x)
        h11 = h11 + (dot(first, a) - dot(first, x) ** 2) / h
        h12 = h12 + (dot(first, b) - dot(first, x) * dot(second, x)) / h
        h22 = h22 + (dot(second, b) - dot(second, x) ** 2) / h
    return Seen(dot(n, r), (dot(first, r), dot(second, r)), (h11, h12, h22), (first, second))


def newton_step(of: Seen, across: tuple[Array, Array], upwards: bool) -> Array:
    """How n changes with r across it: (H + s I) dn = dr.

    ``upwards``: where s has no maximum near, a way that rises.
    """
    (h11, h12, h22), (b1, b2) = of.curved, across
    s = of.s
    if upwards:
        rises = (h11 + s > 0.0) & ((h11 + s) * (h22 + s) > h12 * h12)
        s = jnp.where(rises, s, jnp.abs(s))
    k11, k22 = h11 + s, h22 + s
    size = k11 * k22 - h12 * h12
    return (of.basis[0] * ((k22 * b1 - h12 * b2) / size)[..., None]
            + of.basis[1] * ((k11 * b2 - h12 * b1) / size)[..., None])  # fmt: skip


def _unit(n: Array) -> Array:
    return n / jnp.sqrt(dot(n, n))[..., None]


@jax.custom_jvp
def normal(c: Array, S_Q: Array, S_P: Array, axes: Array) -> Array:
    """The direction with the largest s, (n, 3); nan where none is found.

    ``axes`` (n, 3, 6): where it looks for it, too.
    """
    pair = Pair(c, S_Q, S_P)
    away = jnp.where(jnp.any(c != 0.0, axis=1, keepdims=True), c, axes[:, :, 0])
    starts = jnp.moveaxis(
        jnp.where(dot(jnp.moveaxis(axes, 2, 1), c[:, None])[:, None] < 0.0, -axes, axes), 2, 0
    )
    starts = jnp.concatenate([_unit(away)[None], starts])
    size = jnp.sqrt(jnp.trace(S_Q, axis1=1, axis2=2)) + jnp.sqrt(jnp.trace(S_P, axis1=1, axis2=2))

    def left(of: Seen) -> Array:
        return jnp.hypot(*of.across) / size

    def better(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, n, _ = carry
        of = seen(n, pair)
        step = newton_step(of, of.across, upwards=True)
        tried = _unit(n + SHARES.reshape(-1, 1, 1, 1) * step)
        s = dot(tried, differ(tried, pair))
        good = s >= jnp.max(s, axis=0) - 1e-13 * size
        n = jnp.sum(jnp.where(((jnp.cumsum(good, axis=0) == 1) & good)[..., None], tried, 0.0), axis=0)
        return k + 1, n, left(of)

    def going(carry: tuple[Array, Array, Array]) -> Array:
        return (carry[0] < ITERATIONS) & jnp.any(carry[2] > CONVERGED)

    _, n, _ = jax.lax.while_loop(going, better, (jnp.asarray(0), starts, jnp.full(starts.shape[:2], jnp.inf)))
    of = seen(n, pair)
    found = left(of) <= 10.0 * CONVERGED
    best = jnp.arange(len(n))[:, None] == jnp.argmax(jnp.where(found, of.s, -jnp.inf), axis=0)
    n = jnp.sum(jnp.where(best[..., None], n, 0.0), axis=0)
    return jnp.where(jnp.any(found, axis=0)[:, None], n, jnp.nan)


@normal.defjvp
def _normal_jvp(primals, tangents_):
    """dn = (H + s I)^-1 dr, of r at this n."""
    c, S_Q, S_P, axes = primals
    n = normal(c, S_Q, S_P, axes)
    of = seen(n, Pair(c, S_Q, S_P))
    _, r_dot = jax.jvp(lambda *pair: differ(n, Pair(*pair)), (c, S_Q, S_P), tangents_[:3])
    return n, newton_step(of, (dot(of.basis[0], r_dot), dot(of.basis[1], r_dot)), upwards=False)
