"""Moreau's midpoint rule.

    q_m = q_n + dt/2 q_dot(t_n, q_n, u_n),
    A = {k : g_N^k(t_m, q_m) <= 0}  (and contacts at rest: see Memory)
    M_m (u_n+1 - u_n) = dt h(t_m, q_m, u_n) + W_m P
    0 = g_dot(t_m, q_m, u_n+1),  0 = gamma(t_m, q_m, u_n+1),
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for k in A, P = 0 otherwise,
    xi = gamma(t_m, q_m, u_n+1) + e gamma(t_m, q_m, u_n)
    q_n+1 = q_m + dt/2 q_dot(t_n+1, q_m, u_n+1)

Contact is enforced on velocity level: positions may penetrate by O(dt). Order 1; free flight under a constant
force is exact. J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988,
doi:10.1007/978-3-7091-2624-0_1; as in S3 section 5.4 and S4.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..derive import Directions, Dynamics, Situation
from ..initial import contact_state
from ..scales import QUIET
from ..sets import NonPositive
from ..solvers import Solve, Solver
from .base import Method, Step, default_solver, impact_problem


class Memory(NamedTuple):
    """A contact at rest keeps its gap but for round-off, whose sign must not decide whether it opens: it
    stays in A unless its gap has grown by more than a gap rate of zero allows."""

    force: Array  # percussion over dt: a guess
    resting: Bool[Array, " n_N"]  # in A, and at rest in normal direction after the step
    limit: Float[Array, " n_N"]  # gap up to which it stays there, but for dt
    drift: Float[Array, " n_N"]  # gap rate that counts as zero

    @classmethod
    def at_start(cls, dynamics: Dynamics, t, q, u) -> "Memory":
        g_N = jnp.asarray(dynamics.system.g_N(t, q))
        resting, _ = contact_state(dynamics, u, Situation.of(dynamics, t, q, u))
        return cls(jnp.zeros(dynamics.n_y), resting, g_N + _round_off(dynamics), jnp.zeros_like(g_N))


def _round_off(dynamics: Dynamics) -> Float[Array, " n_N"]:
    return 8.0 * jnp.finfo(float).eps * dynamics.gap_terms[dynamics.rows.g :]


def velocity_step(solver: Solver, dynamics: Dynamics, t, dt, q, u, memory: Memory) -> tuple[Solve, Memory]:
    """u_n+1 and P with all terms at (t, q): the second half of Moreau's and of the shifted scheme,
    S3 (5.63).
    """
    at, gained = Directions.with_force(dynamics, t, q, dt * dynamics.h(t, q, u)[:, None])
    g_N = jnp.asarray(dynamics.system.g_N(t, q))
    closed = NonPositive.contains(g_N) | (memory.resting & (g_N <= memory.limit + dt * memory.drift))
    nothing = jnp.zeros(dynamics.n_y)
    problem = impact_problem(dynamics, at, u + gained[:, 0], at.velocities(u), closed, nothing, dt)
    out = solver.solve(problem, u, dt * memory.force)
    zero = QUIET * problem.inclusions.scales.own + 2.0 * out.tolerance
    _, _, g_N_dot, _ = dynamics.split(at.velocities(out.x))
    _, _, drift, _ = dynamics.split(zero)
    return out, Memory(out.y / dt, closed & (jnp.abs(g_N_dot) <= drift), g_N + _round_off(dynamics), drift)


class MoreauMidpoint(Method):
    """Moreau's midpoint rule: one linear complementarity problem a step, contact on velocity level, order 1.

    The cheapest step; gaps are off by about dt times a velocity. It alone takes ``PSOR`` and ``PJOR``, for
    many contacts.
    """

    solver: Solver = eqx.field(default_factory=default_solver)

    order = 1
    level = "velocity"
    explicit_forces = True
    reference = (
        "J. J. Moreau, Unilateral contact and dry friction, CISM 302, 1988; doi:10.1007/978-3-7091-2624-0_1"
    )
    n_solves = 1

    def init(self, dynamics, t, q, u, dt):
        return Memory.at_start(dynamics, t, q, u)

    def resume(self, dynamics, t, q, u, dt, memory: Any):
        return memory  # a force, and what rests

    def step(self, dynamics, t, t1, dt, q, u, memory):
        tm = t + dt / 2
        qm = q + dt / 2 * dynamics.q_dot(t, q, u)
        out, after = velocity_step(self.solver, dynamics, tm, dt, qm, u, memory)
        q1 = qm + dt / 2 * dynamics.q_dot(t1, qm, out.x)
        return Step(dynamics.normalize(q1), out.x, out.y, after, (out,))
