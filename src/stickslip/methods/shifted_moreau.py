"""The shifted Moreau scheme, S3 (5.62), (5.63): twice the explicit Euler tableau in the partitioned family.

    q_n+1 = q_n + dt q_dot(t_n, q_n, u_n),    A_n+1 = A(t_n+1, q_n+1)                               (5.62)
    u_n+1 = u_n + dt k(t_n+1, q_n+1, u_n) + l(t_n+1, q_n+1) P                                       (5.63a)
    0 = g_dot, 0 = gamma, xi_N in N(-P_N), xi_F in N_C(P_N)(-P_F) at (t_n+1, q_n+1, u_n+1)     (5.63b)-(5.63e)

k and l stand at the end of the step, not at t_n as printed: only then the scheme is Moreau's. Started at
q_0 - dt/2 q_dot, its positions are Moreau's midpoints (with time shifted by dt/2), and q_n + dt/2 q_dot(t_n,
q_n, u_n) gives his end points back: `shifted_start` and `recovered_positions` (exactly so for constant B and
beta). Velocity level, order 1.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..derive import Dynamics
from ..solvers import Solver
from .base import Method, Step, default_solver
from .moreau import Memory, velocity_step


class ShiftedMoreau(Method):
    """Moreau's rule seen from its midpoints: an explicit step of positions, then velocities;
    order 1, velocity level.

    `stickslip.shifted_start` and `stickslip.recovered_positions` lead to Moreau's own positions and back.
    """

    solver: Solver = eqx.field(default_factory=default_solver)

    order = 1
    level = "velocity"
    explicit_forces = True
    reference = "J. Breuling, thesis, University of Stuttgart, 2024, section 5.4 (S3)"
    n_solves = 1

    def init(self, dynamics, t, q, u, dt):
        return Memory.at_start(dynamics, t, q, u)

    def resume(self, dynamics, t, q, u, dt, memory):
        return memory  # a force, and what rests

    def step(self, dynamics, t, t1, dt, q, u, memory):
        q1 = dynamics.normalize(q + dt * dynamics.q_dot(t, q, u))  # (5.62)
        out, after = velocity_step(self.solver, dynamics, t1, dt, q1, u, memory)  # (5.63)
        return Step(q1, out.x, out.y, after, (out,))


def shifted_start(system, q0, u0, dt, t0=0.0):
    """The start from which the shifted scheme runs through Moreau's midpoints."""
    q0, u0 = jnp.asarray(q0, dtype=float), jnp.asarray(u0, dtype=float)
    return q0 - dt / 2 * Dynamics.of(system, t0, q0, u0).q_dot(jnp.asarray(float(t0)), q0, u0)


def recovered_positions(system, t, q, u, dt):
    """Moreau's positions at the grid points from those of the shifted scheme."""
    t, q, u = (jnp.asarray(a, dtype=float) for a in (t, q, u))
    q_dot = Dynamics.of(system, t[0], q[0], u[0]).q_dot
    return q + dt / 2 * jax.vmap(q_dot)(t, q, u)
