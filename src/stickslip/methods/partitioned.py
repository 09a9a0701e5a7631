"""Nonsmooth partitioned Runge-Kutta methods: Lobatto IIIA-IIIB with any number of stages (S3 Fig. 5.1, S1).

    dQ_i = h f(tau_i, Q_i, U_i),   dU_i = h k(tau_i, Q_i, U_i) + l(tau_i, Q_i) dPi_i               (5.26a)
    Q_i = q_n + sum_j a_ij dQ_j,   U_i = u_n + sum_j â_ij dU_j                                     (5.26b)
    g(tau_i, Q_i) = 0,  gamma(tau_i, Q_i, U_i) = 0,                                     i = 2..s    (5.27)
    g_N(tau_i, Q_i) in N(-dPi_N,i-1),                                                   i = 2..s    (5.30)
    gamma_F(tau_i, Q_i, U_i) in N_C(dPi_N,i-1)(-dPi_F,i-1),                             i = 2..s    (5.36)
    q_n+1 = Q_s,  u_n+1 = u_n + sum_i b_i dU_i,  P = sum_i b_i dPi_i                               (5.26d)
    g_dot = 0,  gamma = 0,  xi_N in N(-P_N),                                                        (5.28)
    xi_F in N_C(P_N)(-P_F)  for active contacts at t_n+1                                            (5.60)

The last column of â is zero: dPi_s moves only u_n+1, which is why position and velocity stages decouple, with
an index shift between gaps and percussions. A contact is active as in the converged last stage, S1 (67).

`integrated=True` puts the laws on integrated differences (5.29) instead: solvable too, but it loses orders.
`form="momentum"` is S1's variational form for the momenta pi = dT/du (M u unless the system is a
`LagrangianSystem`), pi_i = pi_n + sum_j â_ij ((dL/dq + f) h + W dPi), (44), (47), (63): the same for constant
M, the same order otherwise, and symplectic for any M, which the form in velocities is not; it needs q_dot =
u.

Friction of contacts that persist, and gamma, are those of `spatial_friction`; as above with
friction="printed".

Measured: order 2s - 2 in q and u on bilateral constraints and on persistent contact, sliding or sticking.
G. Capobianco, J. Harsch, S. Leyendecker, Lobatto-type variational integrators for mechanical systems with
frictional contact, Comput. Methods Appl. Mech. Engrg. (S1); J. Breuling, thesis, University of Stuttgart,
2024 (S3), chapter 5; L. Jay, SIAM J. Numer. Anal. 33 (1996), doi:10.1137/0733019.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..derive import Directions
from ..solvers import Solver
from ..tableaus import lobatto_iiia, lobatto_iiib
from .base import Step, default_solver, impact_problem, percussion_slack
from .projected import Memory, start
from .spatial_friction import (
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    StagewiseInclusions,
    contacts_after,
    judged,
    mixture,
)
from .stages import Coefficients, MotionInverse, Stages, levers, stage_inclusions


class LobattoIIIAB(PositionLevel):
    """Lobatto IIIA-IIIB with s ``stages``: order 2s - 2, symplectic for constant M; s = 2 is RATTLE.

    ``form="momentum"`` is symplectic for any T of a `LagrangianSystem`; ``friction``: "stagewise" or
    "printed"; ``integrated`` puts the laws on differences of the stages, which loses orders.
    """

    stages: int = eqx.field(default=3, static=True)
    integrated: bool = eqx.field(default=False, static=True)
    form: Literal["velocity", "momentum"] = eqx.field(default="velocity", static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    explicit_forces = True
    reference = (
        "Capobianco, Harsch, Leyendecker, CMAME (S1); Breuling, thesis, chapter 5 (S3); Jay 1996, "
        "doi:10.1137/0733019"
    )
    n_solves = 2

    def __check_init__(self):
        lobatto_iiia(self.stages)
        if self.form not in ("velocity", "momentum"):
            raise ValueError(f"LobattoIIIAB(form={self.form!r}): form must be 'velocity' or 'momentum'")

    @property
    def order(self):
        return 2 * self.stages - 2

    def init(self, dynamics, t, q, u, dt):
        if self.form == "momentum" and not dynamics.identity:
            raise ValueError("LobattoIIIAB(form='momentum') needs q_dot = u: this system defines B or beta")
        return start(dynamics, t, q, u, dt)

    @property
    def stagewise(self) -> bool:
        return self.friction == "stagewise" and not self.integrated

    @property
    def coefficients(self) -> Coefficients:
        s, iiia, a_hat = self.stages, lobatto_iiia(self.stages), lobatto_iiib(self.stages).A
        # dPi_j of the stages before the last; dPi_s has no say in the stages
        D, share = np.zeros((s, s - 1)), a_hat[:-1].sum(axis=1) if self.integrated else np.ones(s - 1)
        D[:-1] = np.linalg.inv(a_hat[:-1, :-1]) if self.integrated else np.eye(s - 1)
        return Coefficients(
            iiia.c, iiia.A, a_hat, iiia.b, D, tuple(range(1, s)), share, float(iiia.b[-1]), self._rows
        )

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        s, momentum, known = self.stages, self.form == "momentum", self.coefficients
        b, c, share, constrained = known.b, jnp.asarray(known.c), jnp.asarray(known.share), known.constrained
        A, A_hat, D = jnp.asarray(known.A), jnp.asarray(known.A_hat), known.D
        inclusions = stage_inclusions(
            dynamics, memory.scales, dt, levers(known.A, known.A_hat, D, constrained), share * dt,
            jnp.zeros((s - 1) * dynamics.n_y),
        )  # fmt: skip
        inclusions = StagewiseInclusions.of(inclusions, modes, jnp.eye(s - 1), dt)
        mixed = mixture(dynamics, modes, *self._rows) if self.stagewise else None
        p = dynamics.momentum(t, q, u)
        base = jnp.tile(q, (s, 1)), jnp.tile(u, (s, 1))
        Q, U = q + c[:, None] * dt * dynamics.q_dot(t, q, u), base[1]  # a guess
        motion = MotionInverse.at(dynamics, t + c * dt, Q, U, dt, A, A_hat)
        stages = Stages(
            inclusions, dynamics, t + c * dt, dt, *base, A, A_hat, jnp.asarray(D), motion, constrained,
            momentum, p_base=jnp.tile(p, (s, 1)), mixture=mixed,
        )  # fmt: skip
        y = (share[:, None] * dt * memory.P).reshape(-1)
        first = self.solver.solve(stages, jnp.concatenate([Q.reshape(-1), U.reshape(-1)]), y, 0)
        Q, U = stages.split_motion(first.x)
        q1 = dynamics.normalize(Q[-1])
        _, dU, _ = stages.increments(Q, U, first.y)
        dPi = stages.measures(first.y)  # dPi_s = 0: the smooth part of the last stage is in dU
        before = jnp.asarray(b) @ dPi
        # velocity stage, (5.60)
        end = Directions.at(dynamics, t1, q1)
        gained = jnp.asarray(b) @ dU
        u_free = u + gained
        if momentum:  # which is affine in u
            at_rest = dynamics.momentum(t1, q1, jnp.zeros_like(u))
            u_free = dynamics.solve_M(t1, q1, (p + gained - at_rest)[:, None])[:, 0]
        closed = first.active.normal.reshape(s - 1, dynamics.laws.n_N)
        _, _, _, slip = dynamics.split(end.velocities(U[-1]))
        impact = impact_problem(
            dynamics, end, u_free, memory.gamma, closed[-1], before, dt,
            lambda printed: StagewiseInclusions.of(printed, modes, jnp.eye(1), known.rest * dt, slip),
            memory.scales.speed,
        )  # fmt: skip
        second = self.solver.solve(impact, u_free, dt * memory.P - before, 1)
        u1, P, gamma = second.x, before + second.y, end.velocities(second.x)
        contacts = contacts_after(dynamics, modes, memory, second.active, end, u1, P, second.tolerance)
        after = Memory(P / dt, end.scales_after(u1, u, P), gamma, contacts)
        step = Step(q1, u1, P, after, (first, second))
        dPi_N = dynamics.split(jnp.concatenate([dPi[:-1], (second.y / b[-1])[None]])).N
        gamma_F = stages.slips(Q, U, gamma)
        closed = jnp.all(closed, axis=0) & second.active.normal
        slack, gain = percussion_slack(dynamics, end.G, dt, first, second), float(1.0 / b.min())
        return judged(step, dynamics, modes, memory, closed, dPi_N, gamma_F, dt, slack, gain)

    @property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What psi is made of, for dPi_1 .. dPi_s-1: the next stage as printed,
        the own stage, Jay's conditions.
        """
        s, tableau = self.stages, lobatto_iiia(self.stages)
        k = np.arange(s - 1)[:, None]
        # scaled to weights of sum one
        return np.eye(s)[1:], np.eye(s)[:-1], (k + 1) * tableau.b * tableau.c**k
