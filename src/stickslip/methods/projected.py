"""Nonsmooth projected stiffly accurate Runge-Kutta methods with coupled stages (S3 Fig. 4.8).

Stage 1:  dQ_i = h f(tau_i, Q_i, U_i),  dU_i = h k(tau_i, Q_i, U_i) + l(tau_i, Q_i) dPi_i,          (4.61)
          g(tau_i, Q_i) = 0,  gamma(tau_i, Q_i, U_i) = 0,                                           (4.64)
          g_N(tau_i, Q_i) in N(-DPi_N,i),  DPi = A dPi,                                             (4.66)
          gamma_F(tau_i, Q_i, U_i) in N_C(DPi_N,i)(-DPi_F,i),                                       (4.67)
          q_n+1 = Q_s,  u_n+1 = U_s
Stage 2:  u+ = u_n+1 + l(t_n+1, q_n+1) dpi,  g_dot = 0,  gamma = 0,                                (4.103)
          xi_N in N(-Dpi+_N),  xi_F in N_C(Dpi+_N)(-Dpi+_F) for active contacts,  Dpi+ = DPi_s + dpi  (4.114)

`projected=False` stops after stage 1: the naive extension of section 4.5, which has no impact law and loses
orders.

Friction of contacts that persist is that of `spatial_friction`; as above with friction="printed".

Measured on bilateral constraints and on persistent contact with friction: Radau IIA order 2s - 1, Lobatto
IIIC order 2s - 2 in q and u (unprojected: u only s and s - 1). J. Breuling, thesis, University of Stuttgart
(S3), chapter 4; for the smooth case U. M. Ascher, L. R. Petzold, SIAM J. Numer. Anal. 28 (1991),
doi:10.1137/0728059.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..derive import Directions, Dynamics, Situation
from ..scales import Scales
from ..solvers import Solve, Solver
from ..stacked import ActiveSet
from ..tableaus import ButcherTableau, lobatto_iiic, radau_iia
from .base import Step, default_solver, impact_problem, percussion_slack
from .spatial_friction import (
    Contacts,
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    StagewiseInclusions,
    contacts_after,
    judged,
)
from .stages import Coefficients, MotionInverse, Stages, levers, stage_inclusions

REFERENCE = (
    "J. Breuling, thesis, University of Stuttgart, 2024, chapter 4 (S3); Ascher, Petzold 1991, "
    "doi:10.1137/0728059"
)


class Memory(NamedTuple):
    """What one step leaves to the next."""

    P: Array  # percussion over dt: the guess for the next step
    scales: Scales
    gamma: Array  # velocities of all rows
    contacts: Contacts


def start(dynamics: Dynamics, t, q, u, dt) -> Memory:
    now = Situation.of(dynamics, t, q, u)
    moving = jnp.abs(u) + dt * jnp.abs(now.k)
    scales = now.at.scales(moving)
    if dynamics.rows.gamma:  # the blade of a skate turns: what has no terms at first may have some at the end
        ahead = Directions.at(dynamics, t + dt, q + dt * dynamics.q_dot(t, q, u)).scales(moving)
        scales = scales._replace(speed=jnp.maximum(scales.speed, ahead.speed))
    return Memory(jnp.zeros(dynamics.n_y), scales, now.at.velocities(u), Contacts.at_start(dynamics, t, q, u))


def project(
    solver: Solver, dynamics: Dynamics, t1, dt, u, q1, u1, P, last: ActiveSet, stages: Solve, memory: Memory,
    modes: Modes, projected: bool, number: int, rest: Any = 0.0, sliding: Array | None = None,
) -> tuple[Array, Array, Memory, tuple[Solve, ...], Array]:  # fmt: skip
    """Stage 2: u+ and Dpi+ from U_s and DPi_s; without projection only what the next step must know.

    ``last``: the active set of the last stage; ``number``: of this solve in the step. Also by how much
    percussions may be off. A method whose last stage has no percussion of its own leaves the ``rest`` of the
    step to the projection, with the velocity ``sliding`` of that stage.
    """
    end = Directions.at(dynamics, t1, q1)
    solves: tuple[Solve, ...] = ()
    active, allowed = last, dynamics.rows.worst(stages.tolerance)
    if projected:
        # A slipping ball is projected along its slip direction, so that constant reservoirs add no more than
        # the rest.
        _, _, _, slip = dynamics.split(end.velocities(u1 if sliding is None else sliding))
        impact = impact_problem(
            dynamics, end, u1, memory.gamma, active.normal, P, dt,
            lambda printed: StagewiseInclusions.of(printed, modes, jnp.eye(1), rest, slip),
            memory.scales.speed,
        )  # fmt: skip
        out = solver.solve(impact, u1, rest * memory.P, number)
        u1, P, active, solves, allowed = out.x, P + out.y, out.active, (out,), out.tolerance
    contacts = contacts_after(dynamics, modes, memory, active, end, u1, P, allowed)
    slack = percussion_slack(dynamics, end.G, dt, stages, solves[0] if solves else None)
    return u1, P, Memory(P / dt, end.scales_after(u1, u, P), end.velocities(u1), contacts), solves, slack


class CoupledStages(PositionLevel):
    """All stages in one system. Subclasses name their tableau."""

    stages: eqx.AbstractVar[int]
    projected: eqx.AbstractVar[bool]

    def __check_init__(self):
        if not self.tableau.stiffly_accurate:
            raise ValueError(
                f"{type(self).__name__}: {self.tableau.name} is not stiffly accurate: the last row of A must "
                "be b"
            )

    @property
    def degenerate(self) -> bool:
        """Whether some contact modes make the stages' problem singular by construction."""
        return False

    @property
    def tableau(self) -> ButcherTableau:
        raise NotImplementedError

    @property
    def coefficients(self) -> Coefficients:
        A, b, c = self.tableau.A, self.tableau.b, self.tableau.c
        return Coefficients(c, A, A, b, np.linalg.inv(A), tuple(range(self.stages)), c)

    @property
    def stagewise(self) -> bool:
        return self.friction == "stagewise" and self.projected

    @property
    def n_solves(self) -> int:
        return 2 if self.projected else 1

    def init(self, dynamics, t, q, u, dt):
        return start(dynamics, t, q, u, dt)

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        known, s = self.coefficients, self.stages
        A, c, D, constrained = jnp.asarray(known.A), jnp.asarray(known.c), known.D, known.constrained
        inclusions = stage_inclusions(
            dynamics, memory.scales, dt, levers(known.A, known.A, D, constrained), c * dt,
            jnp.zeros(s * dynamics.n_y)
        )  # fmt: skip
        # Integrated differences of a first stage at t_n have no length: nothing tells a closed contact from
        # an open one.
        inclusions = StagewiseInclusions.of(
            inclusions, modes, jnp.asarray(D), dt, closing=bool(known.c[0] == 0.0)
        )
        base = jnp.tile(q, (s, 1)), jnp.tile(u, (s, 1))
        Q, U = q + c[:, None] * dt * dynamics.q_dot(t, q, u), base[1]  # a guess
        motion = MotionInverse.at(dynamics, t + c * dt, Q, U, dt, A, A)
        stages = Stages(
            inclusions, dynamics, t + c * dt, dt, *base, A, A, jnp.asarray(D), motion, constrained,
            degenerate=self.degenerate,
        )  # fmt: skip
        y = (c[:, None] * dt * memory.P).reshape(-1)
        first = self.solver.solve(stages, jnp.concatenate([Q.reshape(-1), U.reshape(-1)]), y, 0)
        Q, U = stages.split_motion(first.x)
        q1, u1, P = dynamics.normalize(Q[-1]), U[-1], stages.by_stage(first.y)[-1]
        by_stage = first.active.normal.reshape(s, dynamics.laws.n_N)
        last = ActiveSet(by_stage[-1], first.active.stick.reshape(s, dynamics.laws.set.count)[-1])
        u1, P, after, second, slack = project(
            self.solver, dynamics, t1, dt, u, q1, u1, P, last, first, memory, modes, self.projected, 1
        )
        step = Step(q1, u1, P, after, (first, *second))
        dPi = stages.measures(first.y)
        gamma_F = stages.slips(Q, U, after.gamma)
        closed = jnp.all(by_stage, axis=0) & (second[-1].active.normal if second else by_stage[-1])
        gain = float(np.abs(D).sum(axis=1).max())
        return judged(step, dynamics, modes, memory, closed, dynamics.split(dPi).N, gamma_F, dt, slack, gain)


class RadauIIA(CoupledStages):
    """Radau IIA with s ``stages``: order 2s - 1, stiffly accurate,
    contact on position level and velocities projected.

    With ``rtol`` and ``atol`` events are located and the order holds through them. ``projected=False`` leaves
    the projection out; ``friction``: "stagewise" or "printed".
    """

    stages: int = eqx.field(default=2, static=True)
    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    reference = REFERENCE

    def __check_init__(self):
        radau_iia(self.stages)

    @property
    def tableau(self):
        return radau_iia(self.stages)

    @property
    def order(self):
        return 2 * self.stages - 1 if self.projected else self.stages


class LobattoIIIC(CoupledStages):
    """Lobatto IIIC with s ``stages``: order 2s - 2, stiffly accurate; otherwise as `RadauIIA`."""

    stages: int = eqx.field(default=2, static=True)
    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    reference = REFERENCE

    def __check_init__(self):
        lobatto_iiic(self.stages)

    @property
    def tableau(self):
        return lobatto_iiic(self.stages)

    @property
    def degenerate(self):
        # A is only P_0 (errata to Example 4.12): closed at the first and last stage but not between is
        # singular.
        return self.stages >= 3

    @property
    def order(self):
        return 2 * self.stages - 2 if self.projected else self.stages - 1
