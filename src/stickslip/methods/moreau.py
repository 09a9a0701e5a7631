"""Moreau's midpoint rule.

    q_m = q_n + dt/2 q_dot(t_n, q_n, u_n),    A = {k : g_N^k(t_m, q_m) <= 0}    (<= 1e-12: see CLOSED)
    M_m (u_n+1 - u_n) = dt h(t_m, q_m, u_n) + W_m P
    0 = g_dot(t_m, q_m, u_n+1),  0 = gamma(t_m, q_m, u_n+1),
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for k in A, P = 0 otherwise,
    xi = gamma(t_m, q_m, u_n+1) + e gamma(t_m, q_m, u_n)
    q_n+1 = q_m + dt/2 q_dot(t_n+1, q_m, u_n+1)

Contact is enforced on velocity level: positions may penetrate by O(dt). Order 1; free flight under a constant
force is exact. J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988,
doi:10.1007/978-3-7091-2624-0_1; as in S3 section 5.4 and S4.
"""

import equinox as eqx
import jax.numpy as jnp

from ..derive import Dynamics
from ..sets import NonPositive
from ..solvers import ProxParameters, Solver
from .base import Method, Step, default_solver, impact_problem

# A contact at rest keeps its gap: one that started at 0 has +-1e-19 after a while, and the sign decides whether it opens.
CLOSED = 1e-12


def velocity_step(solver: Solver, dynamics: Dynamics, t, dt, q, u, y):
    """u_n+1 and P with all terms at (t, q): the second half of Moreau's and of the shifted scheme, S3 (5.63)."""
    W, chi = dynamics.directions(t, q)
    terms = dynamics.solve_M(t, q, jnp.column_stack([dt * dynamics.h(t, q, u), W]))
    L = terms[:, 1:]
    rho = ProxParameters.estimate(dynamics.laws, dynamics.n_bilateral, W, L)
    closed = NonPositive.contains(jnp.asarray(dynamics.system.g_N(t, q)) - CLOSED)
    problem = impact_problem(dynamics, W, L, chi, u + terms[:, 0], W.T @ u + chi, closed, jnp.zeros_like(chi), dt, rho)
    return solver.solve(problem, u, y)


class MoreauMidpoint(Method):
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 1
    level = "velocity"
    reference = "J. J. Moreau, Unilateral contact and dry friction, CISM 302, 1988; doi:10.1007/978-3-7091-2624-0_1"
    n_solves = 1

    def init(self, dynamics, t, q, u, dt):
        return jnp.zeros(dynamics.n_y)

    def resume(self, dynamics, t, q, u, dt, memory):
        return memory  # only a guess

    def step(self, dynamics, t, t1, dt, q, u, memory):
        tm = t + dt / 2
        qm = q + dt / 2 * dynamics.q_dot(t, q, u)
        out = velocity_step(self.solver, dynamics, tm, dt, qm, u, dt * memory)
        q1 = qm + dt / 2 * dynamics.q_dot(t1, qm, out.x)
        return Step(dynamics.normalize(q1), out.x, out.y, out.y / dt, (out,))
