"""Force directions need not be matrices: with contact lists a chain makes the same steps,
by schemes that do not know.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.derive import Dynamics
from stickslip.operators import Dense, ForceDirections, Inverse, Operator

COUNT = 5
BODIES = np.arange(COUNT)
PAIRS = np.stack([BODIES[:-1], BODIES[1:]], axis=1)  # contact k is between these


class Chain(ss.System):
    """Bodies in a row, which push each other along x and rub across it; q = (x, y) of body after body."""

    def M(self, t, q):
        return jnp.diag(jnp.repeat(1.0 + 0.3 * BODIES, 2))

    def h(self, t, q, u):
        return jnp.tile(jnp.array([0.0, -1.0]), COUNT) * jnp.arange(2 * COUNT)

    def g_N(self, t, q):
        return q[2::2] - q[:-2:2] - 1.0

    def gamma_F(self, t, q, u):
        return u[3::2] - u[1:-2:2]

    laws = tuple(ss.Contact(e_N=e_N, friction=ss.Coulomb(0.4)) for e_N in (0.2, 0.5, 0.0, 0.7))


class Listed(ForceDirections):
    """Columns with two entries each, at ``places``."""

    values: Any  # (n_y, 2)
    places: Any = eqx.field(static=True)

    def __matmul__(self, y):
        return jnp.zeros(2 * COUNT).at[np.array(self.places)].add(self.values * y[:, None])

    @property
    def T(self):
        return Gathered(self)

    def __abs__(self):
        return Listed(jnp.abs(self.values), self.places)

    def dense(self):
        return jax.vmap(self.__matmul__, out_axes=1)(jnp.eye(len(self.places)))

    def through(self, inverse, h):
        return Listed(self.values * inverse.diagonal[np.array(self.places)], self.places), inverse.columns(h)

    def products(self, other):
        return jnp.sum(self.values * other.values, axis=1)

    def terms(self, x):
        return jnp.sum(jnp.abs(self.values * x[np.array(self.places)]), axis=1)

    def without(self, columns):
        return Listed(jnp.where(columns[:, None], 0.0, self.values), self.places)


class Gathered(Operator):
    """The transpose."""

    of: Listed

    def __matmul__(self, x):
        if isinstance(x, Listed):
            return Coupling(self, x)
        return jnp.sum(self.of.values * x[np.array(self.of.places)], axis=1)

    @property
    def T(self):
        return self.of

    def __abs__(self):
        return Gathered(abs(self.of))

    def dense(self):
        return self.of.dense().T


class Coupling(Operator):
    """W^T L, as two lists."""

    left: Gathered
    right: Listed

    def __matmul__(self, y):
        return self.left @ (self.right @ y)

    @property
    def T(self):
        return Coupling(self.right.T, self.left.T)

    def __abs__(self):
        return Dense(jnp.abs(self.dense()))

    def dense(self):
        return jax.vmap(self.__matmul__, out_axes=1)(jnp.eye(len(self.right.places)))


class Blocks(Inverse):
    """M^-1 of single masses."""

    diagonal: Any

    def columns(self, X):
        return self.diagonal[:, None] * X


class Lists(Dynamics):
    """The chain's own mechanics, with W and M^-1 as lists."""

    def places(self):
        return tuple(map(tuple, np.concatenate([2 * PAIRS, 2 * PAIRS + 1]).tolist()))

    def force_directions(self, t, q):
        return Listed(jnp.tile(jnp.array([-1.0, 1.0]), (self.n_y, 1)), self.places()), jnp.zeros(self.n_y)

    def inverse(self, t, q):
        return Blocks(jnp.repeat(1.0 / (1.0 + 0.3 * BODIES), 2))


class Crossed(Lists):
    """With one contact between the wrong bodies."""

    def places(self):
        first, *others = super().places()
        return ((first[0], first[1] + 2), *others)


Q = np.stack([BODIES * 1.0, 0.1 * BODIES], axis=1).ravel()
U = np.stack([np.array([3.0, 2.0, 0.5, -1.0, -2.5]), np.array([0.3, -1.0, 0.5, 0.1, -0.2])], axis=1).ravel()


def step(kind, method):
    @jax.jit
    def one(q, u):
        dynamics = kind.of(Chain(), 0.0, q, u)
        out = method.step(dynamics, 0.0, 0.01, 0.01, q, u, method.init(dynamics, 0.0, q, u, 0.01))
        return out.q, out.u, out.P

    return [np.asarray(x) for x in one(Q, U)]


@pytest.mark.parametrize(
    "method",
    [
        ss.MoreauMidpoint(solver=ss.SemismoothNewton()),
        ss.MoreauMidpoint(solver=ss.PSOR(atol=1e-14, rtol=1e-14)),
        ss.Rattle(solver=ss.SemismoothNewton(), friction="printed"),
    ],
    ids=["newton", "psor", "rattle"],
)
def test_a_step_with_contact_lists_is_the_same(method):
    dense, lists = step(Dynamics, method), step(Lists, method)
    assert (np.abs(dense[2]) > 1e-3).sum() > COUNT  # they push and rub
    for a, b in zip(dense, lists, strict=True):
        assert np.abs(a - b).max() < 1e-12
    if isinstance(method, ss.MoreauMidpoint):
        assert np.abs(step(Crossed, method)[1] - dense[1]).max() > 1e-3


def test_lists_are_what_matrices_are():
    rng = np.random.default_rng(2)
    d = Lists.of(Chain(), 0.0, jnp.asarray(Q), jnp.asarray(U))
    W, _ = d.force_directions(0.0, Q)
    M = Dense(d.directions(0.0, Q)[0])
    h, x, y = rng.normal(size=(2 * COUNT, 1)), rng.normal(size=2 * COUNT), rng.normal(size=d.n_y)
    inverse = Dynamics.inverse(d, 0.0, Q)
    (L, k), (L_M, k_M) = W.through(d.inverse(0.0, Q), h), M.through(inverse, h)
    columns = y > 0.0
    for a, b in (
        (W.dense(), M.dense()), (W @ y, M @ y), (W.T @ x, M.T @ x), (abs(W) @ y, abs(M) @ y),
        (W.terms(x), M.terms(x)), (L.dense(), L_M.dense()), (k, k_M), (W.products(L), M.products(L_M)),
        ((W.T @ L).dense(), (M.T @ L_M).dense()),
        ((W.T @ L) @ y, (M.T @ L_M) @ y), (W.without(columns).dense(), M.without(columns).dense()),
    ):  # fmt: skip
        assert np.abs(np.asarray(a) - np.asarray(b)).max() < 1e-14
