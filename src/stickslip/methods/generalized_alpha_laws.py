"""Laws on position, velocity and acceleration level as one problem: the step of the generalized-alpha method.

The unknowns are kah, P and la: kah moves q, P moves u and la moves a, each alone (equations in
`generalized_alpha`). The sets of (130)-(141) are nested: a contact has an acceleration level only if it is
closed on velocity level, and that only if it is closed on position level. Numbers are S2's.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derive import Dynamics
from ..linalg import Eliminated, columns, eliminate, matmul, solve
from ..scales import Scales
from ..sets import Balls, NonPositive
from ..solvers import Inclusions, Problem
from ..stacked import ActiveSet, StackedLaws


def on_all_levels(laws: StackedLaws) -> StackedLaws:
    """N on three levels, F on two; friction of a level belongs to the normal percussion of that level."""
    contact_of = tuple(c if c < 0 else c + k * laws.n_N for k in (1, 2) for c in laws.contact_of)
    return StackedLaws(
        jnp.tile(laws.e_N, 3), jnp.tile(laws.e_F, 2), jnp.tile(laws.scale, 2), jnp.tile(laws.coefficient, 2),
        Balls(2 * laws.set.dimensions, 2 * laws.set.one_way), contact_of,
    )  # fmt: skip


class Levels(Inclusions):
    """(128)-(142): laws on three levels with nested active sets."""

    # e_F gamma_F at the start: xi_F - rebound = gamma_F
    rebound: Array = eqx.field(default_factory=lambda: jnp.zeros(0))
    # Balls that slip without an impact: P = before + c_u la + La, where la_F and La_F act along the slip at
    # the end. So does P - before, which is better to solve for: a level then knows nothing of the levels
    # above it.
    slip: Array = eqx.field(default_factory=lambda: jnp.zeros(0, dtype=bool))
    # of N, of F
    before: tuple[Array, Array] = eqx.field(default_factory=lambda: (jnp.zeros(0), jnp.zeros(0)))
    c_u: Any = 0.0

    def _nested(self, psi_N, mu_N) -> tuple[Array, Array, Array]:
        """A, B and C of (130), (133), (136)."""
        g, xi, g_ddot = jnp.split(NonPositive.contains(self.in_use.N * psi_N - mu_N), 3)
        return g, g & xi, g & xi & g_ddot

    def _directions(self, stick, psi_F, mu_F) -> Array:
        """What slip is opposed to: xi_F, gamma_F_dot where velocity sticks, gamma_F where it slips;
        (138), (142).
        """
        half = psi_F.shape[0] // 2
        a_F = self.laws.set.expand(self.in_use.F) * psi_F - mu_F
        sticks = self.laws.set.expand(stick)[:half]
        return jnp.concatenate([a_F[:half], jnp.where(sticks, a_F[half:], psi_F[:half] - self.rebound)])

    def _sticking(self, radius, psi_F, mu_F) -> Array:
        """D_st and E_st of (139), (141)."""
        inside = self.laws.set.interior(self.laws.set.expand(self.in_use.F) * psi_F - mu_F, radius)
        velocity, acceleration = jnp.split(inside, 2)
        velocity = velocity & ~self.slip
        return jnp.concatenate([velocity, velocity & acceleration])

    def active_set(self, psi, mu):
        _, psi_N, psi_F = self.split(psi)
        _, mu_N, mu_F = self.split(mu)
        normal = jnp.concatenate(self._nested(psi_N, mu_N))
        radius = self.laws.radii(jnp.where(normal, jnp.maximum(mu_N, 0.0), 0.0), self.duration)
        return ActiveSet(normal, self._sticking(radius, psi_F, mu_F))

    def residual(self, active, psi, mu):
        psi_b, psi_N, psi_F = self.split(psi)
        _, mu_N, mu_F = self.split(mu)
        set_ = self.laws.set
        radius = self.laws.radii(jnp.where(active.normal, mu_N, 0.0), self.duration)
        slip = mu_F + set_.expand(radius) * set_.direction(self._directions(active.stick, psi_F, mu_F))
        slip = jnp.where(self._expanded(self.slip), self._slip_rows(psi_F, mu_N, mu_F), slip)
        rows_N = jnp.where(active.normal, psi_N, mu_N)
        return self.layout.join(psi_b, rows_N, jnp.where(set_.expand(active.stick), psi_F, slip))

    def coupled(self, active):
        b, N, F = self.split(super().coupled(active))
        return self.layout.join(b, N, F | self._expanded(self.slip))

    def _expanded(self, of_velocity: Array) -> Array:
        """Flags of the balls on velocity level, for the components of both levels."""
        return self.laws.set.expand(jnp.concatenate([of_velocity, jnp.zeros_like(of_velocity)]))

    def _slip_rows(self, psi_F, mu_N, mu_F) -> Array:
        """P_F - before_F + mu (P_N - before_N) gamma_F/|gamma_F|, and nothing on acceleration level."""
        _, P_N, _ = jnp.split(mu_N, 3)
        P_F, _ = jnp.split(mu_F, 2)
        half, set_, none = P_F.shape[0], self.laws.set, jnp.zeros_like(P_N)
        radius = set_.expand(self.laws.radii(jnp.concatenate([none, P_N - self.before[0], none]), self.c_u))[
            :half
        ]
        along = set_.direction(jnp.concatenate([psi_F[:half] - self.rebound, psi_F[half:]]))[:half]
        return jnp.concatenate([P_F - self.before[1] + radius * along, jnp.zeros(half)])

    def project(self, psi, mu, rho):
        """(146)"""
        _, psi_N, psi_F = self.split(psi)
        mu_b, mu_N, mu_F = self.split(mu)
        laws, set_ = self.laws, self.laws.set
        A, B, _ = self._nested(psi_N, mu_N)
        open_ = jnp.concatenate([jnp.zeros_like(A), ~A, ~B])
        mu_N = jnp.where(open_, 0.0, -NonPositive.prox(rho.N * psi_N - mu_N))
        radius = laws.radii(mu_N, self.duration)
        stick = self._sticking(radius, psi_F, mu_F)
        projected = -set_.prox(set_.expand(rho.F) * psi_F - mu_F, radius)
        slipping = -set_.expand(radius) * set_.direction(self._directions(stick, psi_F, mu_F))
        half = psi_F.shape[0] // 2
        given = jnp.concatenate([jnp.zeros(half, dtype=bool), ~set_.expand(stick)[:half]])
        mu_F = jnp.where(given, slipping, projected)
        assumed = mu_F - self._slip_rows(psi_F, mu_N, mu_F)
        return self.layout.join(mu_b, mu_N, jnp.where(self._expanded(self.slip), assumed, mu_F))


class ScaledFactors(NamedTuple):
    """Factors of all levels as one system, with rows in units of length (dt for velocities,
    dt^2 for accelerations).
    """

    scaled: Eliminated
    scale: Array

    @property
    def regular(self) -> Array:
        return self.scaled.regular

    def apply(self, b: Array) -> Array:
        return self.scaled.apply(self.scale * b) / self.scale

    def left_open(self, y: Array) -> Array:
        return self.scaled.left_open(self.scale * y) / self.scale


class LevelFactors(NamedTuple):
    """Factors of each level's own system."""

    position: Eliminated
    velocity: Eliminated
    acceleration: Eliminated

    @property
    def regular(self) -> Array:
        return self.position.regular & self.velocity.regular & self.acceleration.regular


class Linearised(eqx.Module):
    """k = M^-1 h linearised, and the inverse of the motion's Jacobian in (q, u) that follows."""

    k_q: Array | None
    k_u: Array
    inverse: Array  # of (q, u) where k depends on q, else of u


class Motion(Problem):
    """x = (q_n+1, u_n+1, a_n+1), y = (kah, P, la)."""

    inclusions: Inclusions
    dynamics: Dynamics
    t1: Float[Array, ""]
    q_base: Float[Array, " nq"]  # without what the end of the step contributes
    u_base: Float[Array, " nu"]
    B: Float[Array, "nq nu"] | None  # at the start; None: the identity
    c_q: Float[Array, ""]  # how a_n+1 enters q_n+1 and u_n+1
    c_u: Float[Array, ""]
    half_step: Float[Array, ""]
    before_q: Float[Array, " n_y"]  # what lab_n and la_n contribute to kah and to P
    before_u: Float[Array, " n_y"]
    rebound: Float[Array, " n_y"]  # e gamma-
    linear: Linearised | None
    cancelled: Float[Array, " nu"]  # magnitude of what cancels in a

    @property
    def nonlinear(self) -> bool:
        return True

    @property
    def inexact(self) -> bool:
        return True

    @property
    def levels(self) -> tuple[slice, slice, slice]:
        return self.inclusions.layout.levels

    def split_motion(self, x: Array) -> tuple[Array, Array, Array]:
        nq, nu = self.dynamics.nq, self.dynamics.nu
        return x[:nq], x[nq : nq + nu], x[nq + nu :]

    def _B_times(self, X: Array) -> Array:
        return X if self.B is None else matmul(self.B, X)

    def impulses(self, y: Array) -> tuple[Array, Array, Array]:
        """What W^T M^-1 sends to q, u and a, each in rows (g, gamma, N, F)."""
        rows = self.dynamics.rows
        kah, P, la = (y[level] for level in self.levels)
        P = P - self.before_u
        _, gamma, _, F = rows.split(self.half_step * P + (self.c_q - self.half_step * self.c_u) * la)
        return rows.merge(kah - self.before_q[rows.gaps], jnp.concatenate([gamma, F])), P, la

    def _ends(self, q, u, y) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """(127): q, u, a from the forces at (q, u), with W and M^-1 W there."""
        d = self.dynamics
        W, _ = d.directions(self.t1, q)
        terms = d.solve_M(self.t1, q, jnp.column_stack([d.h(self.t1, q, u), W]))
        k, L = terms[:, 0], terms[:, 1:]
        J_q, J_u, J_a = self.impulses(y)
        moved = matmul(L, jnp.column_stack([J_q, J_u, J_a]))
        q_new = self.q_base + self._B_times((self.c_q * k + moved[:, 0])[:, None])[:, 0]
        return q_new, self.u_base + self.c_u * k + moved[:, 1], k + moved[:, 2], (W, L)

    def phi(self, x, y):
        q, u, _ = self.split_motion(x)
        q_new, u_new, a_new, _ = self._ends(q, u, y)
        return x - jnp.concatenate([q_new, u_new, a_new])

    def correct(self, x, y):
        q, u, a = self.split_motion(x)
        q_new, u_new, a_new, aux = self._ends(q, u, y)
        phi = x - jnp.concatenate([q_new, u_new, a_new])
        if self.linear is None:
            return jnp.concatenate([q_new, u_new, a_new]), phi, aux
        moved = self._through_forces((q_new - q)[:, None], (u_new - u)[:, None], (a_new - a)[:, None])
        return x + moved[:, 0], phi, aux

    def _through_forces(self, R_q, R_u, R_a) -> Array:
        """The solution of the linearised motion for right-hand sides R, as columns."""
        linear = self.linear
        if linear is None:
            return jnp.concatenate([R_q, R_u, R_a])
        if linear.k_q is None:
            X_u = matmul(linear.inverse, R_u)
            k = matmul(linear.k_u, X_u)
            return jnp.concatenate([R_q + self.c_q * self._B_times(k), X_u, R_a + k])
        nq = R_q.shape[0]
        X = matmul(linear.inverse, jnp.concatenate([R_q, R_u]))
        k = matmul(linear.k_q, X[:nq]) + matmul(linear.k_u, X[nq:])
        return jnp.concatenate([X, R_a + k])

    def tangent(self, x, aux):
        d, L = self.dynamics, aux[1]
        rigid = d.rows.gaps  # K; the others are R
        other = np.isin(np.arange(d.n_y), rigid, invert=True)
        none_K, none = jnp.zeros((d.nu, len(rigid))), jnp.zeros((d.nu, d.n_y))
        L_R = jnp.where(other, L, 0.0)
        along_q = L[:, rigid], self.half_step * L_R, (self.c_q - self.half_step * self.c_u) * L_R
        along = along_q, (none_K, L, none), (none_K, none, L)
        X_q, X_u, X_a = (jnp.concatenate(levels, axis=1) for levels in along)
        return self._through_forces(self._B_times(X_q), X_u, X_a)

    def factor(self, at, X, null_pivot, anchor=None, *, exact=False):
        """Level by level, W^T M^-1 W three times over: positions move velocities,
        both move accelerations, not the reverse.

        Stiff forces tie the levels together, and so do hard cases (those with an anchor): then they are one
        system.
        """
        if exact or not self._by_level(anchor):
            scale, S = self._scale(), self.in_units(self.schur_complement(at, X, anchor))
            return ScaledFactors(
                eliminate(S, self.inclusions.coupled(at.active), null_pivot, self._redundant), scale
            )
        W, L = at.aux
        G, sizes = matmul(W.T, L), self._level_sizes
        rigid = self.dynamics.rows.gaps
        moves = G[np.ix_(rigid, rigid)], G, G
        _, along = jax.linearize(lambda psi, mu: self.inclusions.residual(at.active, psi, mu), at.psi, at.y)
        coupled = self.inclusions.coupled(at.active)
        levels = []
        for k, (rows, move) in enumerate(zip(self.levels, moves, strict=True)):

            def alone(x, k=k):
                """x on level k, nothing on the others."""
                return jnp.concatenate([x if i == k else jnp.zeros(n) for i, n in enumerate(sizes)])

            def within(psi, mu, rows=rows, alone=alone):
                return along(alone(psi), alone(mu))[rows]

            matrix = columns(within, move, jnp.eye(sizes[k]))
            levels.append(eliminate(matrix, coupled[rows], null_pivot, self._redundant))
        return LevelFactors(*levels)

    def no_factors(self, n, anchor=None):
        if not self._by_level(anchor):
            return ScaledFactors(Eliminated.nothing(n, self._redundant), self._scale())
        return LevelFactors(*(Eliminated.nothing(size, self._redundant) for size in self._level_sizes))

    @property
    def _redundant(self) -> bool:
        """Whether contacts may share a load.

        Forces stay from step to step, so would self-stress; the smallest have none.
        """
        return self.dynamics.n_y > self.dynamics.nu

    @property
    def _level_sizes(self) -> list[int]:
        return [level.stop - level.start for level in self.levels]

    def in_units(self, J):
        scale = self._scale()
        return scale[:, None] * J / scale

    def _scale(self) -> Array:
        dt = 2.0 * self.half_step
        return jnp.concatenate([jnp.full(n, dt**k) for k, n in enumerate(self._level_sizes)])

    def _by_level(self, anchor) -> bool:
        return self.linearisation is None and anchor is None

    def newton_step(self, at, X, factors):
        if not isinstance(factors, LevelFactors):
            return super().newton_step(at, X, factors)
        _, along = jax.linearize(lambda x: self.inclusions.residual(at.active, self.psi(x), at.y), at.x)
        dx, parts = jnp.zeros_like(at.x), []
        for k, (level, rows) in enumerate(zip(factors, self.levels, strict=True)):
            F = at.F if k == 0 else at.F + along(dx)
            parts.append(level.apply(-F[rows]) - level.left_open(at.y[rows]))
            dx = dx + X[:, rows] @ parts[-1]
        return jnp.concatenate(parts)

    def psi(self, x):
        d = self.dynamics
        q, u, a = self.split_motion(x)
        gaps = d.gaps(self.t1, q)
        rates = (jnp.ones(()), d.q_dot(self.t1, q, u), a)
        velocity, acceleration = jax.jvp(d.velocities, (self.t1, q, u), rates)
        return jnp.concatenate([gaps, velocity + self.rebound, acceleration])

    @property
    def linearisation(self):
        return None if self.linear is None or self.linear.k_q is None else self.linear

    def relinearised(self, x):
        q, u, _ = self.split_motion(x)
        return self.linearised(q, u)

    def using(self, linearisation):
        return self if linearisation is None else dataclasses.replace(self, linear=linearisation)

    def linearised(self, q, u) -> Linearised | None:
        d, t = self.dynamics, self.t1
        if d.free:
            return None
        nq, nu = d.nq, d.nu

        if not d.k_of_q:
            _, along = jax.linearize(lambda u: d.k(t, q, u), u)
            k_u = columns(along, jnp.eye(nu))
            return Linearised(None, k_u, solve(jnp.eye(nu) - self.c_u * k_u, jnp.eye(nu)))
        _, along = jax.linearize(lambda q, u: d.k(t, q, u), q, u)
        J = columns(along, jnp.eye(nq, nq + nu), jnp.eye(nu, nq + nu, k=nq))
        T = jnp.eye(nq + nu) - jnp.concatenate([self.c_q * self._B_times(J), self.c_u * J])
        return Linearised(J[:, :nq], J[:, nq:], solve(T, jnp.eye(nq + nu)))

    @property
    def motion_rows(self):
        return self.dynamics.nq + 2 * self.dynamics.nu

    def motion_sizes(self, x, y):
        d, scales = self.dynamics, self.inclusions.scales
        q, u, a = self.split_motion(x)
        dt = 2.0 * self.half_step
        energy = d.energy_norm(u) + scales.energy_norm(y)
        k = self.cancelled
        size = jnp.concatenate([jnp.abs(q - self.q_base), jnp.abs(u - self.u_base), jnp.abs(a)])
        cancelling = jnp.concatenate([
            jnp.abs(q) + jnp.abs(self.q_base) + dt * energy * d.reach + self.c_q * self._B_size(k),
            jnp.abs(self.u_base) + energy * d.mobility + self.c_u * k,
            k + energy / dt * d.mobility,
        ])  # fmt: skip
        return size, cancelling

    def _B_size(self, x: Array) -> Array:
        return x if self.B is None else jnp.abs(self.B) @ x


def level_scales(dynamics: Dynamics, scales: Scales, dt, rebound: Array, acceleration: Array) -> Scales:
    """Of all levels, from those of the velocities at the start and accelerations expected."""
    gaps = dynamics.rows.gaps
    n_g, n_y, one = len(gaps), dynamics.n_y, jnp.ones(())
    speeds = (
        scales.speed[gaps],
        scales.speed + jnp.abs(rebound),
        dt * jnp.sqrt(scales.G) * dynamics.energy_norm(acceleration),
    )

    def stacked(*levels):
        return jnp.concatenate(levels)

    def by_level(position, velocity, acceleration):
        return stacked(jnp.full(n_g, position), jnp.full(n_y, velocity), jnp.full(n_y, acceleration))

    return Scales(
        stacked(scales.G[gaps], scales.G, scales.G), by_level(dt, one, 1.0 / dt), stacked(*speeds),
        stacked(dynamics.gap_terms, jnp.zeros(n_y), jnp.zeros(n_y)), by_level(1.0 / dt, one, dt),
    )  # fmt: skip
