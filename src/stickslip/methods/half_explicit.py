"""Nonsmooth half-explicit Runge-Kutta methods: forces explicit, constraints on position level,
velocities projected.

Proposed as future work in S3 section 8.2: the half-explicit methods for index 3 (Ostermann), with laws on
integrated differences and the projection of S3 chapter 4. A is strictly lower triangular, row s + 1 of it is
b, Q_1 = q_n, U_1 = u_n:

    dQ_i = h f(tau_i, Q_i, U_i),  dU_i = h k(tau_i, Q_i, U_i) + l(tau_i, Q_i) dPi_i
    U_i+1 = u_n + sum_j<=i a_i+1,j dU_j,   Q_i+2 = q_n + sum_j<=i+1 a_i+2,j dQ_j,        i = 1..s-1        (1)
    g(tau_i+2, Q_i+2) = 0,  gamma(tau_i+1, Q_i+1, U_i+1) = 0,  DPi_i+1 = sum_j<=i a_i+1,j dPi_j            (2)
    g_N(tau_i+2, Q_i+2) in N(-DPi_N,i+1),  gamma_F(tau_i+1, Q_i+1, U_i+1) in N_C(DPi_N,i+1)(-DPi_F,i+1)    (3)
    q_n+1 = Q_s+1;   u_n+1 by (4.103), (4.114) from u_n + sum_j<s b_j dU_j + b_s h k(tau_s, Q_s, U_s)      (4)

A percussion at Q_i moves U_i+1 and with it Q_i+2, two stages on: every stage is explicit but for n_y
unknowns, and the last percussion is that of the projection. For order 3 the tableau needs, beside the four
conditions of an explicit method,

    sum_j a_ij c_j = c_i^2/2, i >= 3:   dPi_i is then a force up to O(h)
    sum_i b_i a_ij = b_j (1 - c_j), c_s = 1:   what dPi_i is off leaves u_n+1 alone up to O(h^4)

of which b_2 = 0 follows. With four stages c_2 and c_3 are free; c_2 = c_3 = 1/2 is England's method. Two
stages, Heun's method, are RATTLE with explicit forces. A step limit comes with explicit forces, as for
RATTLE.

Measured on persistent contact with friction, on bilateral constraints and on velocity constraints: order 2
and 3. A. Ostermann, Appl. Numer. Math. 13 (1993); R. England, Comput. J. 12 (1969).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derive import Directions, Dynamics
from ..operators import ForceDirections
from ..solvers import Inclusions, Problem, Solve, Solver
from ..tableaus import ButcherTableau, half_explicit
from .base import Step, default_solver
from .projected import project, start
from .spatial_friction import (
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    StagewiseInclusions,
    judged,
)
from .stages import stage_inclusions


class ExplicitStage(Problem):
    """(1)-(3) of one i: x = (Q_i+2, U_i+1), y = a_i+1,i dPi_i; x follows from y."""

    inclusions: Inclusions
    dynamics: Dynamics
    tau: Float[Array, ""]  # tau_i+1
    tau_next: Float[Array, ""]
    Q: Float[Array, " nq"]  # Q_i+1
    q_free: Float[Array, " nq"]
    u_free: Float[Array, " nu"]
    L: ForceDirections
    h: Float[Array, ""]  # a_i+2,i+1 h

    @property
    def motion_rows(self):
        return 0

    def correct(self, x, y):
        d = self.dynamics
        U = self.u_free + self.L @ y
        Q = self.q_free + self.h * d.q_dot(self.tau, self.Q, U)
        L = self.L.dense()
        return (
            jnp.concatenate([Q, U]),
            jnp.zeros(0),
            jnp.concatenate([self.h * d.B_times(self.tau, self.Q, L), L]),
        )

    def psi(self, x):
        d = self.dynamics
        return d.rows.merge(d.gaps(self.tau_next, x[: d.nq]), d.gammas(self.tau, self.Q, x[d.nq :]))


class _Sweep(NamedTuple):
    """How far the stages have come; increments of those to come are zero."""

    dQ: Float[Array, "s nq"]
    dU: Float[Array, "s nu"]
    dPi: Float[Array, "s n_y"]
    Q: Float[Array, " nq"]  # Q_i
    Q_next: Float[Array, " nq"]  # Q_i+1
    U: Float[Array, " nu"]  # U_i


class HalfExplicit(PositionLevel):
    """Explicit in forces and motion, contact on position level:
    ``stages`` 2 (order 2) or 4 (order 3), velocities projected.

    A stage solves for percussions only. ``friction``: "stagewise" or "printed".
    """

    stages: int = eqx.field(default=4, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    explicit_forces = True
    reference = "A. Ostermann, Appl. Numer. Math. 13 (1993); Breuling, thesis, section 8.2 (S3)"

    def __check_init__(self):
        half_explicit(self.stages)

    @property
    def tableau(self) -> ButcherTableau:
        return half_explicit(self.stages)

    @property
    def order(self):
        return {2: 2, 4: 3}[self.stages]

    @property
    def n_solves(self):
        return self.stages

    def init(self, dynamics, t, q, u, dt):
        return start(dynamics, t, q, u, dt)

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        tableau, s = self.tableau, self.stages
        rows, c = np.vstack([tableau.A, tableau.b]), np.append(tableau.c, 1.0)
        A, tau = jnp.asarray(rows), t + jnp.asarray(c) * dt

        def stage(at: _Sweep, i: Array) -> tuple[_Sweep, tuple[Solve, Array]]:
            """(1)-(3); i counts from zero."""
            a, b = A[i + 1, i], A[i + 2, i + 1]
            directions, gained = Directions.with_force(
                dynamics, tau[i], at.Q, dt * dynamics.h(tau[i], at.Q, at.U)[:, None]
            )
            dQ = at.dQ.at[i].set(dt * dynamics.q_dot(tau[i], at.Q, at.U))
            u_free = u + A[i + 1] @ at.dU + a * gained[:, 0]
            levers = jnp.reshape(b, (1,)), np.ones(1)
            offset = A[i + 1] @ at.dPi
            inclusions = stage_inclusions(
                dynamics, memory.scales, dt, levers, (jnp.asarray(c)[i + 1] * dt)[None], offset
            )
            slip = dynamics.split(directions.velocities(at.U)).F  # at Q_i, where dPi_i acts
            inclusions = StagewiseInclusions.of(inclusions, modes, jnp.ones((1, 1)) / a, dt, slip)
            problem = ExplicitStage(
                inclusions, dynamics, tau[i + 1], tau[i + 2], at.Q_next, q + A[i + 2] @ dQ, u_free,
                directions.L, b * dt
            )  # fmt: skip
            y = a * jnp.where(i > 0, at.dPi[i - 1], dt * memory.P)
            x, _, _ = problem.correct(jnp.zeros(dynamics.nq + dynamics.nu), y)
            out = self.solver.solve(problem, x, y, i)
            dPi = out.y / a
            after = _Sweep(
                dQ, at.dU.at[i].set(gained[:, 0] + directions.L @ dPi), at.dPi.at[i].set(dPi), at.Q_next,
                out.x[: dynamics.nq], out.x[dynamics.nq :],
            )  # fmt: skip
            return after, (out, slip)

        dQ, dU, dPi = (jnp.zeros((s, n)) for n in (dynamics.nq, dynamics.nu, dynamics.n_y))
        Q_2 = q + A[1, 0] * dt * dynamics.q_dot(t, q, u)
        last, (outs, slips) = jax.lax.scan(stage, _Sweep(dQ, dU, dPi, q, Q_2, u), jnp.arange(s - 1))
        solves = [jax.tree.map(lambda x, i=i: x[i], outs) for i in range(s - 1)]
        # (4): what stage s would add comes with the projection
        q1, P, b_s = dynamics.normalize(last.Q_next), A[s] @ last.dPi, float(tableau.b[-1])
        u_free = u + A[s] @ last.dU + b_s * dt * dynamics.k(tau[s - 1], last.Q, last.U)
        worst = solves[-1]._replace(tolerance=jnp.max(outs.tolerance, axis=0))
        u1, P, after, (second,), slack = project(
            self.solver, dynamics, t1, dt, u, q1, u_free, P, worst.active, worst, memory, modes, True, s - 1,
            rest=b_s * dt, sliding=last.U,
        )  # fmt: skip
        step = Step(q1, u1, P, after, (*solves, second))
        dPi_N = dynamics.split(jnp.concatenate([last.dPi[:-1], second.y[None]])).N
        gamma_F = jnp.stack([*slips, dynamics.gamma_F(t1, q1, last.U), dynamics.split(after.gamma).F])
        closed = jnp.all(outs.active.normal, axis=0) & second.active.normal
        gain = float(1.0 / np.abs(np.diag(rows, -1)[: s - 1]).min() ** 2)
        return judged(step, dynamics, modes, memory, closed, dPi_N, gamma_F, dt, slack, gain)
