"""Nonsmooth generalized-alpha: contact on position, velocity and acceleration level,
with forces of the order of the motion.

    M a = h + W la,  M U = W La,
    M Q = W_K ka_K + dt/2 W_R La_R  at t_n+1; K in {g, N}, R in {gamma, F}                           (127)
    alpha_m ab_n + (1 - alpha_m) ab_n+1 = alpha_f a_n + (1 - alpha_f) a_n+1                           (71)
    and so for the forces lab                                                                  (96), (114)
    u_n+1 = u_n + dt ((1 - gamma) ab_n + gamma ab_n+1) + U                                            (73)
    q_n+1 = q_n + dt q_dot + dt^2/2 q_ddot(t_n, q_n, u_n, (1 - 2 beta) ab_n + 2 beta ab_n+1) + B_n Q  (125)
    g = g_dot = g_ddot = 0,  gamma = gamma_dot = 0                                              (84), (85)
    g_N in N(-kah_N),         kah = ka + dt^2/2 ((1 - 2 beta) lab_n + 2 beta lab_n+1)         (101), (102)
    xi_N in N(-P_N) if g_N closes,  P = La + dt ((1 - gamma) lab_n + gamma lab_n+1)      (94), (95), (113)
    g_N_ddot in N(-la_N) if xi_N closes                                                               (87)
    xi_F in N_C(P_N)(-P_F)                                                                           (112)
    gamma_F_dot in N_C(la_N)(-la_F) if it sticks,  la_F opposed to gamma_F if it slips        (117), (120)

with (72) for the coefficients. The unknowns are kah, P and la instead of ka, La and la:
`generalized_alpha_laws` solves for them. xi takes the velocity at the start of the step, as everywhere in
this library, where the paper takes u_n at q_n+1.

The auxiliary ab is the acceleration at t_n + (alpha_m - alpha_f) dt. The first one is taken there (the
paper's footnote to section 9): with ab_0 = a_0 the forces oscillate at first.

(112) ties P_F to the direction at the end, which is first order where slip turns. A contact that slips
without an impact has instead La_F = -mu La_N gamma_F/|gamma_F| (`spatial_friction`); (112) with
friction="printed".

Measured: order 2 in q, u and la on persistent contact and on bilateral constraints.

G. Capobianco, J. Harsch, S. R. Eugster, R. I. Leine, A nonsmooth generalized-alpha method for mechanical
systems with frictional contact, Int. J. Numer. Methods Eng. 122 (2021), doi:10.1002/nme.6801 (S2).
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..derive import Directions, Situation
from ..initial import acceleration_level, contact_state
from ..results import RESULTS, first_failure
from ..rows import LevelLayout
from ..scales import Scales
from ..solvers import ProxParameters, Solver
from ..stacked import ActiveSet
from .base import Step, default_solver, restitution
from .generalized_alpha_laws import Levels, Motion, level_scales, on_all_levels
from .spatial_friction import (
    Contacts,
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    contacts_after,
    judged,
)


class Memory(NamedTuple):
    """What one step leaves to the next: the auxiliary variables of (73) and what belongs to them."""

    a: Array
    a_bar: Array
    la: Array
    la_bar: Array
    scales: Scales
    gamma: Array  # velocities of all rows
    dt: Array
    result: Any  # of what came before the first step
    contacts: Contacts


class Separated(NamedTuple):
    """Forces of the end of a step and impulses of the step, rows (g, gamma, N, F)."""

    la: Array
    Lambda: Array


class GeneralizedAlpha(PositionLevel):
    """R(infinity) = rho_inf chooses the damping of high frequencies: 1 none, 0 all in one step."""

    rho_inf: float = eqx.field(default=0.9, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 2
    reference = "Capobianco, Harsch, Eugster, Leine, IJNME 122 (2021), doi:10.1002/nme.6801 (S2)"
    n_solves = 1
    separates = True
    remembers = True
    sticks = False  # stick is as printed

    def __check_init__(self):
        if not 0.0 <= self.rho_inf <= 1.0:
            raise ValueError(f"GeneralizedAlpha(rho_inf={self.rho_inf}): rho_inf must be between 0 and 1")

    @property
    def coefficients(self) -> tuple[float, float, float, float]:
        """alpha_m, alpha_f, beta, gamma of Chung and Hulbert, (72)."""
        rho = self.rho_inf
        alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
        gamma = 0.5 + alpha_f - alpha_m
        return alpha_m, alpha_f, 0.25 * (0.5 + gamma) ** 2, gamma

    def init(self, dynamics, t, q, u, dt):
        alpha_m, alpha_f, _, _ = self.coefficients
        start = Situation.of(dynamics, t, q, u)
        closed, may_stick = contact_state(dynamics, u, start)
        s = (alpha_m - alpha_f) * dt  # where the auxiliary variables live

        def look(state, _):
            """Accelerations of a state, and that to which they lead in s:
            one solve in the program, not two.
            """
            t, q, u = state
            out = acceleration_level(dynamics, t, q, u, closed, may_stick)
            q_dot = dynamics.q_dot(t, q, u)
            _, q_ddot = jax.jvp(dynamics.q_dot, state, (jnp.ones(()), q_dot, out.x))
            return (t + s, q + s * q_dot + s**2 / 2 * q_ddot, u + s * out.x), out

        _, both = jax.lax.scan(look, (jnp.asarray(t, dtype=float), q, u), length=2)
        now, then = (jax.tree.map(lambda a, i=i: a[i], both) for i in range(2))
        usable = then.result == RESULTS.successful
        at, scales = start.at, start.at.scales(jnp.abs(u) + dt * jnp.abs(start.k))
        return Memory(
            now.x, jnp.where(usable, then.x, now.x), now.y, jnp.where(usable, then.y, now.y), scales,
            at.velocities(u), jnp.asarray(dt), now.result, Contacts.of(closed, may_stick),
        )  # fmt: skip

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        """One step of (73)-(142), in one piece as it stands in the paper."""
        alpha_m, alpha_f, beta, gamma = self.coefficients
        share = (1.0 - alpha_f) / (1.0 - alpha_m)
        c_q, c_u = dt**2 * beta * share, dt * gamma * share
        laws = dynamics.laws

        def auxiliary(x, x_bar):
            """x_bar_n for this dt (it belongs to t_n + (alpha_m - alpha_f) dt),
            and x_bar_n+1 without its share of x_n+1.
            """
            x_bar = x + dt / memory.dt * (x_bar - x)
            return x_bar, (alpha_f * x - alpha_m * x_bar) / (1.0 - alpha_m)

        a_bar, a_rest = auxiliary(memory.a, memory.a_bar)
        la_bar, la_rest = auxiliary(memory.la, memory.la_bar)
        # (73), (125) without a_n+1, U and Q
        q_dot = dynamics.q_dot(t, q, u)
        a_q = (1.0 - 2.0 * beta) * a_bar + 2.0 * beta * a_rest
        _, q_ddot = jax.jvp(dynamics.q_dot, (t, q, u), (jnp.ones(()), q_dot, a_q))
        q_base = q + dt * q_dot + dt**2 / 2 * q_ddot
        u_base = u + dt * ((1.0 - gamma) * a_bar + gamma * a_rest)
        before_q = dt**2 / 2 * ((1.0 - 2.0 * beta) * la_bar + 2.0 * beta * la_rest)
        before_u = dt * ((1.0 - gamma) * la_bar + gamma * la_rest)
        B = None if dynamics.identity else jnp.asarray(dynamics.system.B(t, q))
        rebound = restitution(dynamics) * memory.gamma
        layout, stacked = LevelLayout(dynamics.rows), on_all_levels(laws)
        rho = ProxParameters.of(laws, dynamics.rows, memory.scales.G)
        inclusions = Levels(
            stacked, layout, jnp.ones(stacked.n_N, dtype=bool), jnp.ones(stacked.set.count, dtype=bool),
            ProxParameters(jnp.tile(rho.N, 3), jnp.tile(rho.F, 2)),
            jnp.concatenate([jnp.full(laws.set.count, dt), jnp.ones(laws.set.count)]),
            jnp.zeros(layout.size), level_scales(dynamics, memory.scales, dt, rebound, memory.a),
            optional=jnp.any(modes.slip), rebound=dynamics.split(rebound)[3],
            slip=modes.slip, before=dynamics.split(before_u)[2:], c_u=c_u,
        )  # fmt: skip
        problem = Motion(
            inclusions, dynamics, t1, q_base, u_base, B, c_q, c_u, dt / 2, before_q, before_u, rebound, None,
            jnp.abs(memory.a),
        )  # fmt: skip
        # a guess without impulses: La = 0, ka = 0
        ahead = c_q * memory.a
        q_guess, u_guess = q_base + (ahead if B is None else B @ ahead), u_base + c_u * memory.a
        linear = problem.linearised(q_guess, u_guess)
        if linear is not None:
            cancelled = problem.cancelled + jnp.abs(linear.k_u) @ jnp.abs(u_guess)
            if linear.k_q is not None:
                cancelled += jnp.abs(linear.k_q) @ jnp.abs(q_guess)
            problem = dataclasses.replace(problem, linear=linear, cancelled=cancelled)
        # An open contact has no percussion at all: what is left of its auxiliary force is made up for.
        kah, P = (
            jnp.where(memory.la == 0.0, 0.0, b + c * memory.la) for b, c in ((before_q, c_q), (before_u, c_u))
        )
        y = jnp.concatenate([kah[dynamics.rows.gaps], P, memory.la])
        out = self.solver.solve(problem, jnp.concatenate([q_guess, u_guess, memory.a]), y, 0)
        q1, u1, a1 = problem.split_motion(out.x)
        _, velocity, acceleration = layout.levels
        q1, P, la = dynamics.normalize(q1), out.y[velocity], out.y[acceleration]
        end = Directions.at(dynamics, t1, q1)
        gamma_end = end.velocities(u1)
        out = out._replace(rows=layout.worst(out.rows), tolerance=out.tolerance[velocity])
        by_level = out.active.normal.reshape(3, laws.n_N)
        active = ActiveSet(by_level[2], out.active.stick.reshape(2, laws.set.count)[0])
        contacts = contacts_after(
            dynamics, modes, memory, active, end, u1, P, out.tolerance, sticks=self.sticks
        )
        after = Memory(
            a1, share * a1 + a_rest, la, share * la + la_rest, end.scales_after(u1, u, P), gamma_end,
            jnp.asarray(dt), RESULTS.successful, contacts,
        )  # fmt: skip
        out = out._replace(result=first_failure(memory.result, out.result))
        step = Step(q1, u1, P, after, (out,), Separated(la, P - before_u - c_u * la))
        slip = dynamics.split(gamma_end)[3]
        pushes = dynamics.split(jnp.stack([P, dt * la])).N
        slack = out.tolerance / jnp.where(end.G > 0.0, end.G, jnp.inf)
        return judged(step, dynamics, modes, memory, active.normal, pushes, slip[None], dt, slack)
