"""Stages of a Runge-Kutta step: what the projected and the partitioned family have in common.

    Q_i = qb_i + h sum_j a_ij f(tau_j, Q_j, U_j)                                         (4.61), (5.26)
    U_i = ub_i + sum_j â_ij dU_j,    dU_j = h k(tau_j, Q_j, U_j) + l(tau_j, Q_j) dPi_j,    dPi = D y

with y the percussions that enter the laws at the stages that are constrained. Projected methods: â = a, D =
a^-1, so that y are the integrated differences Delta Pi of (4.66), whose complementarity problem has the
P-matrix h a. Partitioned methods: y = dPi of the stages before, (5.30). Diagonally implicit methods: one
stage at a time, with what came before in qb and ub.

The motion is eliminated by an inexact Newton method: derivatives of W dPi are left out, those of f and k are
taken at a guess and inverted once, or anew where they are so stiff that this does not serve. The residual is
exact, so only the number of iterations is at stake; derivatives of a run linearise the stages in full.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derive import Dynamics
from ..linalg import columns, matmul, solve
from ..rows import StageLayout
from ..scales import Scales
from ..sharing import equations
from ..solvers import Inclusions, Problem, ProxParameters
from ..trees import Traced
from .base import on_position_level

SHORT = 150  # equations; a longer function is compiled once for all stages


def each(f, *rows: Array):
    """f of every stage: as `jax.vmap(f)`, but XLA's batched code for a few rows is much slower.

    A short f is written out for every stage, which runs fastest. A long one is a loop: written out it would
    take that much longer to compile.
    """
    once = Traced(f, *(row[0] for row in rows))
    if rows[0].shape[0] > 1 and equations(once.jaxpr) > SHORT:
        return jax.lax.map(lambda row: once(*row), rows)
    outs = [once(*(row[i] for row in rows)) for i in range(rows[0].shape[0])]
    return jax.tree.map(lambda *a: jnp.stack(a), *outs)


class Coefficients(NamedTuple):
    """What tells one family from the other."""

    c: np.ndarray
    A: np.ndarray
    A_hat: np.ndarray  # â
    b: np.ndarray
    D: np.ndarray  # dPi = D y
    constrained: tuple[int, ...]
    share: np.ndarray  # y_i where forces are constant, over that of a step
    rest: float = 0.0  # the weight of dPi_s, where it moves only u_n+1 and comes with the end of the step
    rows: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # see `spatial_friction.mixture`


class MotionInverse(eqx.Module):
    """H_xx^-1 of the stages with f and k linearised, first at a guess.

    Where forces depend on the positions the whole Jacobian is inverted: they may be stiff. Otherwise U comes
    first, and of Q = ... + h A f_q Q the first term of the geometric series is enough: f_q holds angular
    velocities, so that what is left out is (h omega)^2, as much as the linearisation leaves out itself.
    """

    whole: Array | None
    terms: Array  # |H_xx| |x|: what cancels in the rows of phi; zero where forces do not depend on positions
    of_U: Array | None  # None: the identity
    q_dot_q: Array
    q_dot_u: Array
    hA: Array

    @classmethod
    def at(cls, dynamics: Dynamics, tau, Q, U, dt, A: Array, A_hat: Array) -> "MotionInverse | None":
        """Linearised at every stage, or at the first where forces do not depend on q;
        None where the motion is explicit.
        """
        if dynamics.free and dynamics.flat:
            return None
        nq, nu, s = dynamics.nq, dynamics.nu, A.shape[0]
        if not dynamics.k_of_q:
            tau, Q, U = tau[:1], Q[:1], U[:1]
        halves = jnp.eye(nq, nq + nu), jnp.eye(nu, nq + nu, k=nq)  # directions of q, of u

        def jacobians(f):
            def one(t, q, u):
                _, along = jax.linearize(lambda q, u: f(t, q, u), q, u)
                return columns(along, *halves)

            J = each(one, tau, Q, U)
            return J[..., :nq], J[..., nq:]

        def spread(A, J):
            """a_ij J_j as one matrix."""
            return (A[:, None, :, None] * jnp.swapaxes(J, 0, 1)[None]).reshape(s * J.shape[1], s * J.shape[2])

        f_q, f_u = jacobians(dynamics.q_dot)
        none = jnp.zeros(s * (nq + nu))
        if dynamics.free:
            return cls(None, none, None, f_q[0], f_u[0], dt * A)
        k_q, k_u = jacobians(dynamics.k)
        T_uu = jnp.eye(s * nu) - dt * spread(A_hat, k_u)
        if not dynamics.k_of_q:
            return cls(None, none, solve(T_uu, jnp.eye(s * nu)), f_q[0], f_u[0], dt * A)
        T = jnp.block([
            [jnp.eye(s * nq) - dt * spread(A, f_q), -dt * spread(A, f_u)],
            [-dt * spread(A_hat, k_q), T_uu],
        ])  # fmt: skip
        x = jnp.concatenate([Q.reshape(-1), U.reshape(-1)])
        terms = matmul(jnp.abs(T), jnp.abs(x)[:, None])[:, 0]
        return cls(solve(T, jnp.eye(s * (nq + nu))), terms, None, f_q[0], f_u[0], dt * A)

    def _through(self, J: Array, X: Float[Array, "s m n"]) -> Float[Array, "s l n"]:
        """(h A kron J) X."""
        along = jnp.sum(J[None, :, :, None] * X[:, None, :, :], axis=2)
        return jnp.sum(self.hA[:, :, None, None] * along[None], axis=1)

    def apply(self, R_Q: Float[Array, "s nq n"] | None, R_U: Float[Array, "s nu n"]) -> Array:
        """The solution for right-hand sides R; none in the rows of Q is the same as zero."""
        s, nu, n = R_U.shape
        nq = self.q_dot_q.shape[0]
        flat_U = R_U.reshape(s * nu, n)
        if self.whole is not None:
            X = matmul(self.whole[:, s * nq :], flat_U)
            return X if R_Q is None else X + matmul(self.whole[:, : s * nq], R_Q.reshape(s * nq, n))
        X_U = flat_U if self.of_U is None else matmul(self.of_U, flat_U)
        X_Q = self._through(self.q_dot_u, X_U.reshape(s, nu, n))
        X_Q = X_Q if R_Q is None else X_Q + R_Q
        X_Q = X_Q + self._through(self.q_dot_q, X_Q)
        return jnp.concatenate([X_Q.reshape(s * nq, n), X_U])


class Stages(Problem):
    """x = (Q_1..Q_s, U_1..U_s), y as above."""

    inclusions: Inclusions
    dynamics: Dynamics
    tau: Float[Array, " s"]
    dt: Float[Array, ""]
    q_base: Float[Array, "s nq"]
    u_base: Float[Array, "s nu"]
    A: Float[Array, "s s"]
    A_hat: Float[Array, "s s"]
    D: Float[Array, "s r"]
    motion: MotionInverse | None
    constrained: tuple[int, ...] = eqx.field(static=True)
    momentum: bool = eqx.field(static=True, default=False)  # S1's form: stages carry momenta, not velocities
    # P_0 only: some contact modes are singular by construction
    degenerate: bool = eqx.field(static=True, default=False)
    p_base: Array = eqx.field(default_factory=lambda: jnp.zeros(0))
    # of the stages' rows in the rows of psi; None: those of the constrained stages
    mixture: Array | None = None
    redundant: Any = False  # whether rows are known to depend on each other

    @property
    def nonlinear(self) -> bool:
        return self.motion is not None

    @property
    def inexact(self) -> bool:
        return True

    @property
    def linearisation(self):
        return None if self.motion is None or self.motion.whole is None else self.motion

    def relinearised(self, x):
        Q, U = self.split_motion(x)
        return MotionInverse.at(self.dynamics, self.tau, Q, U, self.dt, self.A, self.A_hat)

    def using(self, linearisation):
        return self if linearisation is None else dataclasses.replace(self, motion=linearisation)

    @property
    def motion_rows(self):
        return self.A.shape[0] * (self.dynamics.nq + self.dynamics.nu)

    def motion_sizes(self, x, y):
        d, scales = self.dynamics, self.inclusions.scales
        Q, U = self.split_motion(x)
        # What a step adds: what it leaves of that adds up from step to step.
        gained, moved = jnp.abs(U - self.u_base), jnp.abs(Q - self.q_base)
        added = jnp.abs(Q) + jnp.abs(self.q_base)
        # beside the energy of the whole, with what percussions bring
        energy = d.energy_norm(U) + scales.energy_norm(y)
        size = jnp.concatenate([moved.reshape(-1), gained.reshape(-1)])
        cancelling = jnp.concatenate([
            (added + self.dt * energy * d.reach).reshape(-1),
            (jnp.abs(self.u_base) + energy * d.mobility).reshape(-1),
        ])  # fmt: skip
        return size, cancelling if self.motion is None else cancelling + self.motion.terms

    @property
    def null_pivot(self):
        if self.degenerate:
            return 1e-4
        # What is left of a pivot that is null is round-off that earlier pivots have blown up.
        return 1e-11 if self.redundant is False else jnp.where(self.redundant, 1e-3, 1e-11)

    def by_stage(self, y: Array) -> Float[Array, "r n_y"]:
        return y.reshape(len(self.constrained), self.dynamics.n_y)

    def measures(self, y: Array) -> Float[Array, "s n_y"]:
        """dPi"""
        return matmul(self.D, self.by_stage(y))

    def split_motion(self, x: Array) -> tuple[Float[Array, "s nq"], Float[Array, "s nu"]]:
        s, nq, nu = self.A.shape[0], self.dynamics.nq, self.dynamics.nu
        return x[: s * nq].reshape(s, nq), x[s * nq :].reshape(s, nu)

    def slips(self, Q: Array, U: Array, end: Array) -> Float[Array, "k n_F"]:
        """gamma_F at the stages, then at the end of the step, of which all velocities are given."""
        stages = each(self.dynamics.gamma_F, self.tau, Q, U)
        return jnp.concatenate([stages, self.dynamics.split(end).F[None]])

    def forces(self, Q: Array, U: Array) -> tuple[Array, Array, Array]:
        """Of each stage: q_dot, the smooth part of dU (or dp) and the directions L (or W) that dPi acts
        along.
        """
        d = self.dynamics

        def one(tau, Q, U):
            W, _ = d.directions(tau, Q)
            q_dot, h = d.q_dot(tau, Q, U), d.h(tau, Q, U)
            if self.momentum:  # dpi = (dL/dq + f) dt + W dPi, S1 (47), (63): h and the rate of pi at fixed u
                _, rate = jax.jvp(lambda t, q: d.momentum(t, q, U), (tau, Q), (jnp.ones(()), U))
                return q_dot, self.dt * (h + rate), W
            terms = d.solve_M(tau, Q, jnp.column_stack([self.dt * h, W]))
            return q_dot, terms[:, 0], terms[:, 1:]

        return each(one, self.tau, Q, U)

    def increments(self, Q: Array, U: Array, y: Array) -> tuple[Array, Array, Array]:
        """q_dot, dU (or dp) and L (or W) of all stages."""
        q_dot, smooth, L = self.forces(Q, U)
        return q_dot, smooth + jnp.sum(L * self.measures(y)[:, None, :], axis=2), L

    def correct(self, x, y):
        Q, U = self.split_motion(x)
        d, dt = self.dynamics, self.dt
        f, dU, L = self.increments(Q, U, y)
        M_inverse = None
        if self.momentum:
            M_inverse = each(lambda tau, Q: d.solve_M(tau, Q, jnp.eye(d.nu)), self.tau, Q)
            at_rest = each(lambda tau, Q: d.momentum(tau, Q, jnp.zeros(d.nu)), self.tau, Q)
            U_new = jnp.sum(M_inverse * (self.p_base - at_rest + matmul(self.A_hat, dU))[:, None, :], axis=2)
        else:
            U_new = self.u_base + matmul(self.A_hat, dU)
        if self.motion is None:  # explicit: U follows from Q, and Q from U
            f = each(d.q_dot, self.tau, Q, U_new)
        Q_new = self.q_base + dt * matmul(self.A, f)
        phi = x - jnp.concatenate([Q_new.reshape(-1), U_new.reshape(-1)])
        moved = (
            phi
            if self.motion is None
            else self.motion.apply((Q - Q_new)[..., None], (U - U_new)[..., None])[:, 0]
        )
        return x - moved, phi, (L, M_inverse)

    def phi(self, x, y):
        return self.correct(x, y)[1]

    def tangent(self, x, aux):
        L, M_inverse = aux
        d, dt = self.dynamics, self.dt
        s, r = self.A.shape[0], len(self.constrained)
        along = self.A_hat[:, :, None] * self.D[None, :, :]  # (i, j, r)
        U_y = jnp.sum(along[:, :, None, :, None] * L[None, :, :, None, :], axis=1)
        U_y = U_y.reshape(s, d.nu, r * d.n_y)
        if M_inverse is not None:
            U_y = jnp.sum(M_inverse[:, :, :, None] * U_y[:, None, :, :], axis=2)
        if self.motion is not None:
            return self.motion.apply(None, U_y)
        Q, _ = self.split_motion(x)
        Q_y = jnp.sum((dt * self.A)[:, :, None, None] * self._B_times(Q, U_y)[None], axis=1)
        return jnp.concatenate([Q_y.reshape(s * d.nq, r * d.n_y), U_y.reshape(s * d.nu, r * d.n_y)])

    def _B_times(self, Q: Array, U_y: Array) -> Array:
        return each(self.dynamics.B_times, self.tau, Q, U_y)

    def psi(self, x):
        Q, U = self.split_motion(x)
        i = self._seen
        return self._mixed(each(self.dynamics.positions, self.tau[i], Q[i], U[i])).reshape(-1)

    @property
    def _seen(self) -> np.ndarray:
        """Stages whose rows are looked at."""
        return np.asarray(self.constrained if self.mixture is None else range(self.A.shape[0]))

    def _mixed(self, rows: Float[Array, "s n_y ..."]) -> Float[Array, "r n_y ..."]:
        if self.mixture is None:
            return rows
        weights = self.mixture.reshape(*self.mixture.shape, *[1] * (rows.ndim - 2))
        return jnp.sum(weights * rows[None], axis=1)

    def sensitivity(self, x, X):
        """Stage by stage: the rows of a stage depend on its own Q and U."""
        d, i, s = self.dynamics, self._seen, self.A.shape[0]
        Q, U = self.split_motion(x)
        n = X.shape[1]
        X_Q, X_U = X[: s * d.nq].reshape(s, d.nq, n), X[s * d.nq :].reshape(s, d.nu, n)

        def one(tau, Q, U, X_Q, X_U):
            _, along = jax.linearize(lambda Q, U: d.positions(tau, Q, U), Q, U)
            return columns(along, X_Q, X_U)

        rows = self._mixed(each(one, self.tau[i], Q[i], U[i], X_Q[i], X_U[i]))
        return rows.reshape(n, n)


def stage_inclusions(
    dynamics: Dynamics, scales: Scales, dt, levers: tuple[Any, Any], durations: Array, offset: Array
) -> Inclusions:
    """The laws at every constrained stage. Levers:
    how y_i moves g_N (over dt G) and gamma_F (over G) at its stage.

    ``scales`` are those of the velocities at the start of the step.
    """
    lever_N, lever_F = (jnp.asarray(a)[:, None] for a in levers)
    r, laws = lever_N.shape[0], dynamics.laws
    layout = StageLayout(dynamics.rows, None if r == 1 else r)
    rho = ProxParameters.of(laws, dynamics.rows, scales.G)
    rho = ProxParameters(rho.N / (dt * lever_N), rho.F / lever_F)
    if not layout.lead:
        rho, durations = ProxParameters(rho.N[0], rho.F[0]), durations[0]
    closed, sticky = jnp.ones(laws.n_N, dtype=bool), jnp.ones(laws.set.count, dtype=bool)
    at_stages = Scales(*(jnp.tile(a, r) for a in on_position_level(dynamics, scales, dt)[:4]))
    return Inclusions(laws, layout, closed, sticky, rho, durations[..., None], offset, at_stages)


def levers(
    A: np.ndarray, A_hat: np.ndarray, D: np.ndarray, constrained: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals of the complementarity problems in g_N and gamma_F: positive where they are P-matrices."""
    i = list(constrained)
    N, F = np.abs(np.diag((A @ A_hat @ D)[i])), np.abs(np.diag((A_hat @ D)[i]))
    return np.where(N > 1e-3, N, 1.0), np.where(F > 1e-3, F, 1.0)
