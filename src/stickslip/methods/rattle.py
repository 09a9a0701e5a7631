"""Nonsmooth RATTLE: the two-stage Lobatto IIIA-IIIB method with contact on position and velocity level.

    u_n+1/2 = u_n + M_n^-1 (dt/2 h(t_n, q_n, u_n+1/2) + W_n R)                                    (25a)
    q_n+1 = q_n + dt/2 (q_dot(t_n, q_n, u_n+1/2) + q_dot(t_n+1, q_n+1, u_n+1/2))                  (27)
    g(q_n+1) = 0,  gamma(q_n+1, u_n+1/2) = 0                                                      (28a), (29a)
    g_N(q_n+1) in N(-R_N),  gamma_F(q_n+1, u_n+1/2) in N_C(R_N)(-R_F)                             (33), (36)

    u_n+1 = u_n+1/2 + M_n+1^-1 (dt/2 h(t_n+1, q_n+1, u_n+1/2) + W_n+1 S),   P = R + S             (25b)
    g_dot(q_n+1, u_n+1) = 0,  gamma(q_n+1, u_n+1) = 0                                             (28b), (29b)
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for active contacts, P = 0 otherwise                (32), (34)

R = Delta P^1st and S = Delta P^2nd of the paper. A contact is active if it is so in the converged position
stage, {r g_N - R_N <= 0} (S1 (67)): the sign of g_N itself is round-off there. Measured: order 2 in q, u and
the percussions of each step while contacts persist, 1 across impacts and transitions.

Friction is that of `spatial_friction` where contacts persist: each half step opposes its own slip, sticking
is gamma_F(q_n, u_n+1/2) + gamma_F(q_n+1, u_n+1/2) = 0, and gamma = 0 likewise. (34), (36), (29a) with
friction="printed".

J. Breuling, G. Capobianco, S. R. Eugster, R. I. Leine, A nonsmooth RATTLE algorithm for mechanical systems
with frictional unilateral constraints, Nonlinear Analysis: Hybrid Systems 52 (2024),
doi:10.1016/j.nahs.2024.101469 (S0).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import linalg
from ..derive import Directions, Dynamics, Situation
from ..linalg import solve, spd_solve
from ..operators import ForceDirections
from ..rows import StageLayout
from ..solvers import Inclusions, Problem, ProxParameters, Solver
from .base import Step, default_solver, impact_problem, on_position_level, percussion_slack
from .spatial_friction import (
    Contacts,
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    StagewiseInclusions,
    contacts_after,
    judged,
    mixture,
)

# What psi is made of, from the rows at (q_n, u_n+1/2) and (q_n+1, u_n+1/2): printed, slip, stick. See
# `spatial_friction`.
ROWS = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])


class PositionStage(Problem):
    """(41): x = (q_n+1, u_n+1/2), y = R."""

    inclusions: Inclusions
    dynamics: Dynamics
    t: Float[Array, ""]
    t1: Float[Array, ""]
    dt: Float[Array, ""]
    q: Float[Array, " nq"]
    u: Float[Array, " nu"]
    W: ForceDirections
    chi: Float[Array, " n_y"]
    L: ForceDirections  # M_n^-1 W_n
    u_free: Float[Array, " nu"]  # u_n+1/2 without R, exact where h does not depend on u
    mixture: Array | None  # of the rows at both ends of the step in psi; None: those of the end

    @property
    def nonlinear(self) -> bool:
        return self.dynamics.h_of_u or not self.dynamics.flat

    @property
    def motion_rows(self):
        return self.dynamics.nu * self.dynamics.h_of_u + self.dynamics.nq * (not self.dynamics.flat)

    def motion_sizes(self, x, y):
        d, dt = self.dynamics, self.dt
        q1, um = x[: d.nq], x[d.nq :]
        sizes, cancelling = [], []
        if d.h_of_u:
            M = jnp.abs(d.M(self.t, self.q))
            sizes.append(M @ jnp.abs(um - self.u))
            cancelling.append(M @ (jnp.abs(um) + jnp.abs(self.u)) + abs(self.W) @ jnp.abs(y))
        if not d.flat:
            # at rest as large as what forces and percussions would move
            energy = d.energy_norm(um) + self.inclusions.scales.energy_norm(y)
            sizes.append(jnp.abs(q1 - self.q))
            cancelling.append(jnp.abs(q1) + jnp.abs(self.q) + dt * energy * d.reach)
        return jnp.concatenate([jnp.zeros(0), *sizes]), jnp.concatenate([jnp.zeros(0), *cancelling])

    def plausible(self, x):
        """The root that goes over into u as dt goes to zero: on the way there M - dt/2 h_u stays regular."""
        d = self.dynamics
        if not d.h_of_u:
            return None
        h_u = jax.jacfwd(d.h, argnums=2)(self.t, self.q, x[d.nq :])
        damped = d.M(self.t, self.q) - self.dt / 4 * (h_u + h_u.T)
        return jnp.all(jnp.isfinite(spd_solve(damped, jnp.ones((d.nu, 1)))))

    def correct(self, x, y):
        d, dt = self.dynamics, self.dt
        q1, um = x[: d.nq], x[d.nq :]
        phi: list[Array] = []
        if d.h_of_u:
            h, h_u = d.h(self.t, self.q, um), jax.jacfwd(d.h, argnums=2)(self.t, self.q, um)
            M = d.M(self.t, self.q)
            phi.append(M @ (um - self.u) - dt / 2 * h - self.W @ y)  # (25a)
            solved = solve(M - dt / 2 * h_u, jnp.column_stack([-phi[-1], self.W.dense()]))
            um, U = um + solved[:, 0], solved[:, 1:]
        else:
            um, U = self.u_free + self.L @ y, self.L.dense()
        f = d.q_dot(self.t, self.q, um)
        if d.flat:
            q1, Q = self.q + dt * f, dt * d.B_times(self.t, self.q, U)
        else:
            f1, f1_q = d.q_dot(self.t1, q1, um), jax.jacfwd(d.q_dot, argnums=1)(self.t1, q1, um)
            phi.append(q1 - self.q - dt / 2 * (f + f1))  # (27)
            Q = dt / 2 * (d.B_times(self.t, self.q, U) + d.B_times(self.t1, q1, U))
            solved = solve(jnp.eye(d.nq) - dt / 2 * f1_q, jnp.column_stack([-phi[-1], Q]))
            q1, Q = q1 + solved[:, 0], solved[:, 1:]
        residual = jnp.concatenate(phi) if phi else jnp.zeros(0)
        return jnp.concatenate([q1, um]), residual, jnp.concatenate([Q, U])

    def psi(self, x):
        d, q1, um = self.dynamics, x[: self.dynamics.nq], x[self.dynamics.nq :]
        rows = d.positions(self.t1, q1, um)  # (28a), (29a), (33), (36)
        if self.mixture is None:
            return rows
        # gaps as printed, so that of the rows at q_n only velocities count, which are affine
        return self.mixture[0, 0] * (self.W.T @ um + self.chi) + self.mixture[0, 1] * rows


class Memory(NamedTuple):
    """Everything at the end of a step that the next one starts with."""

    P: Array  # percussion over dt, a force: the guess for the next step, exact at rest
    at: Directions
    gamma: Array  # velocities of all rows
    contacts: Contacts


class Rattle(PositionLevel):
    """Nonsmooth RATTLE: order 2, contact on position and velocity level, symplectic for constant M;
    the default choice.

    ``friction``: "stagewise", of full order where the direction of slip turns, or "printed" as in the paper.
    """

    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 2
    explicit_forces = True
    reference = "Breuling, Capobianco, Eugster, Leine, NAHS 52 (2024); doi:10.1016/j.nahs.2024.101469"
    n_solves = 2

    def init(self, dynamics, t, q, u, dt):
        at = Situation.of(dynamics, t, q, u).at
        contacts = Contacts.at_start(dynamics, t, q, u)
        return Memory(jnp.zeros(dynamics.n_y), at, at.velocities(u), contacts)

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        laws, nq = dynamics.laws, dynamics.nq
        # first stage, (41)
        W, L = memory.at.W, memory.at.L
        u_free = u + dt / 2 * dynamics.k(t, q, u)
        always, sticky = jnp.ones(laws.n_N, dtype=bool), jnp.ones(laws.set.count, dtype=bool)
        rho = ProxParameters.of(laws, dynamics.rows, memory.at.G).on_position_level(dt)
        scales = on_position_level(dynamics, memory.at.scales(jnp.abs(u) + jnp.abs(u_free)), dt)
        layout, nothing = StageLayout(dynamics.rows), jnp.zeros(dynamics.n_y)
        inclusions = Inclusions(laws, layout, always, sticky, rho, dt / 2, nothing, scales)
        inclusions = StagewiseInclusions.of(inclusions, modes, jnp.eye(1), dt / 2)
        mixed = mixture(dynamics, modes, *ROWS) if self.stagewise else None
        stage = PositionStage(inclusions, dynamics, t, t1, dt, q, u, W, memory.at.chi, L, u_free, mixed)
        P = dt * memory.P
        um = u_free + L @ (P / 2)
        guess = jnp.concatenate([q + dt * dynamics.q_dot(t, q, um), um])
        first = self.solver.solve(stage, guess, P / 2, 0)
        q1, um, R = dynamics.normalize(first.x[:nq]), first.x[nq:], first.y
        # second stage, (43)
        end, gained = Directions.with_force(dynamics, t1, q1, dt / 2 * dynamics.h(t1, q1, um)[:, None])
        _, _, _, slip = dynamics.split(end.velocities(um))
        impact = impact_problem(
            dynamics, end, um + gained[:, 0], memory.gamma, first.active.normal, R, dt,
            lambda printed: StagewiseInclusions.of(printed, modes, jnp.eye(1), dt / 2, slip), scales.speed,
        )  # fmt: skip
        rest = P - R
        # all contacts that share a load push: a new one as it did in the first stage
        if dynamics.n_y > linalg.SMALL:
            rest = jnp.where(P == 0.0, R, rest)
        second = self.solver.solve(impact, um, rest, 1)
        u1, S = second.x, second.y
        contacts = contacts_after(dynamics, modes, memory, second.active, end, u1, R + S, second.tolerance)
        gamma = end.velocities(u1)
        step = Step(q1, u1, R + S, Memory((R + S) / dt, end, gamma, contacts), (first, second))
        gamma_F = jnp.stack([dynamics.split(memory.at.velocities(um))[3], slip, dynamics.split(gamma)[3]])
        closed = first.active.normal & second.active.normal
        dPi_N = dynamics.split(jnp.stack([R, S])).N
        slack = percussion_slack(dynamics, end.G, dt, first, second)
        return judged(step, dynamics, modes, memory, closed, dPi_N, gamma_F, dt, slack)
