"""Diagonally implicit members of the projected family (S3 Fig. 4.8), solved stage by stage.

Stage i knows the stages before it:  DPi_i = sum_{j<i} a_ij dPi_j + a_ii dPi_i,  and likewise Q_i and U_i; the
laws of stage i and the projection are those of `projected.py`.

Methods with an explicit first stage (TR-BDF2, TRX2, TR-theta) take dPi_1 from the last stage of the step
before (footnote 5 of S3: the projection does not touch it). After an impact or a change of contact that value
belongs to another motion and would ring for ever: there it is replaced by dt times the force on acceleration
level.

The TR methods have embedded weights of order 3: with `ss.SwitchingPoints` their difference decides the step
size.

Measured on constraints: SDIRK2 and SDIRK3 order 1 (they look better on coarse grids), the TR methods order 2.
R. Alexander, SIAM J. Numer. Anal. 14 (1977), doi:10.1137/0714068; M. E. Hosea, L. F. Shampine, Appl. Numer.
Math. 20 (1996), doi:10.1016/0168-9274(95)00115-8; J. Breuling, thesis (S3), section 4.4.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..derive import Situation
from ..initial import acceleration_level, contact_state
from ..results import RESULTS, first_failure
from ..solvers import Solve, Solver
from ..tableaus import ButcherTableau, sdirk2, sdirk3, tr_bdf2, tr_theta, trx2
from .base import Step, default_solver
from .projected import Memory, project, start
from .spatial_friction import (
    Friction,
    Modes,
    Outcome,
    PositionLevel,
    StagewiseInclusions,
    judged,
)
from .stages import MotionInverse, Stages, each, stage_inclusions

ALEXANDER = "R. Alexander, SINUM 14 (1977), doi:10.1137/0714068; Breuling, thesis, section 4.4 (S3)"
HOSEA = (
    "Hosea, Shampine, Appl. Numer. Math. 20 (1996), doi:10.1016/0168-9274(95)00115-8; Breuling, thesis (S3)"
)


class Carried(NamedTuple):
    """What an explicit first stage needs: the force of the last stage,
    and the contact state it belongs to.
    """

    memory: Memory
    force: Array
    normal: Array
    stick: Array
    friction: Array
    result: Any  # whether the force could be found


class StageByStage(PositionLevel):
    """Subclasses name their tableau."""

    projected: eqx.AbstractVar[bool]

    def __check_init__(self):
        tableau, name = self.tableau, type(self).__name__
        implicit = np.diag(tableau.A)[1 if tableau.explicit_first_stage else 0 :]
        for holds, what in (
            (tableau.diagonally_implicit, "diagonally implicit: A must be lower triangular"),
            (tableau.stiffly_accurate, "stiffly accurate: the last row of A must be b"),
            (np.all(np.abs(implicit) > 1e-12), "implicit after an explicit first stage: a_ii must not be 0"),
        ):
            if not holds:
                raise ValueError(f"{name}: {tableau.name} is not {what}")

    @property
    def tableau(self) -> ButcherTableau:
        raise NotImplementedError

    @property
    def stagewise(self) -> bool:
        return self.friction == "stagewise" and self.projected

    def contacts(self, memory):
        return memory.memory.contacts

    @property
    def n_solves(self) -> int:
        return self.tableau.stages + (1 if self.projected else 0)

    def init(self, dynamics, t, q, u, dt):
        memory, force = start(dynamics, t, q, u, dt), jnp.zeros(dynamics.n_y)
        now, result = Situation.of(dynamics, t, q, u), RESULTS.successful
        closed, may_stick = contact_state(dynamics, u, now)
        if self._explicit_first:
            # once a run: with all means
            first = acceleration_level(dynamics, t, q, u, closed, may_stick, now=now)
            force, result = first.y, first.result
        return Carried(memory, force, closed, may_stick, dynamics.split(force)[3], result)

    @property
    def _explicit_first(self) -> bool:
        return self.tableau.explicit_first_stage

    @property
    def remembers(self) -> bool:
        return self._explicit_first  # the force of the last stage

    def trial(self, dynamics, t, t1, dt, q, u, memory, modes: Modes) -> Outcome:
        """One step, in one piece: its stages one after the other, the projection, and what is handed on."""
        carried, memory = memory, memory.memory
        tableau, s = self.tableau, self.tableau.stages
        A, c = jnp.asarray(tableau.A), jnp.asarray(tableau.c)
        first = 1 if self._explicit_first else 0
        one = jnp.ones((1, 1))

        def linearised(a):
            return MotionInverse.at(dynamics, jnp.asarray(t)[None], q[None], u[None], dt, a * one, a * one)

        # Most tableaus have one diagonal entry, and one inverse does for all stages.
        diagonal = np.diag(tableau.A)[first:]
        shared = linearised(diagonal[0]) if np.all(diagonal == diagonal[0]) else None

        def stage(history, i):
            """Stage i from dQ, dU, dPi of the stages before; theirs to come are zero."""
            dQ, dU, dPi = history
            a = diagonal[0] if np.all(diagonal == diagonal[0]) else A[i, i]
            motion = linearised(a) if shared is None else shared
            q_base, u_base, offset = q + A[i] @ dQ, u + A[i] @ dU, A[i] @ dPi
            levers = jnp.reshape(a, (1,)), np.ones(1)
            inclusions = stage_inclusions(dynamics, memory.scales, dt, levers, (c[i] * dt)[None], offset)
            inclusions = StagewiseInclusions.of(inclusions, modes, one / a, dt)
            stage = Stages(
                inclusions, dynamics, (t + c[i] * dt)[None], dt, q_base[None], u_base[None], a * one, a * one,
                one / a, motion, (0,),
            )  # fmt: skip
            y = a * jnp.where(i > first, dPi[i - 1], dt * carried.force)
            Q = q_base + a * dt * dynamics.q_dot(t, q_base, u_base)
            out = self.solver.solve(stage, jnp.concatenate([Q, u_base]), y, i)
            Q, U = out.x[: dynamics.nq], out.x[dynamics.nq :]
            history = (
                dQ.at[i].set((Q - q_base) / a),
                dU.at[i].set((U - u_base) / a),
                dPi.at[i].set(out.y / a),
            )
            return history, out

        implicit = jnp.arange(first, s)
        (dQ, dU, dPi), outs = jax.lax.scan(stage, self._increments(dynamics, t, dt, q, u, carried), implicit)
        solves: list[Solve] = [jax.tree.map(lambda x, i=i: x[i], outs) for i in range(len(implicit))]
        last = solves[-1]._replace(tolerance=jnp.max(outs.tolerance, axis=0))
        q1, u1 = dynamics.normalize(last.x[: dynamics.nq]), last.x[dynamics.nq :]
        P = A[-1] @ dPi
        u1, P, after, second, slack = project(
            self.solver, dynamics, t1, dt, u, q1, u1, P, last.active, last, memory, modes, self.projected, s
        )
        memory, before = after, memory
        active = (second or (last,))[-1].active
        friction, force, result = dynamics.split(P)[3], dPi[-1] / dt, RESULTS.successful
        if self._explicit_first:
            kept = self._same_contact(dynamics, carried, active, friction, memory)
            force, result = jax.lax.cond(
                kept, lambda: (force, result), lambda: self._fresh_force(dynamics, t1, q1, u1, active, P, dt)
            )
            # The explicit stage counts as a solve of no iterations; it failed if its force could not be
            # found.
            solves.insert(
                0, jax.tree.map(jnp.zeros_like, last)._replace(result=first_failure(carried.result, result))
            )
        carried = Carried(memory, force, active.normal, active.stick, friction, RESULTS.successful)
        error = None
        if tableau.embedded is not None:  # b_hat of Table 4.4: what a formula of order 3 would have added
            error = jnp.asarray(tableau.b - tableau.embedded) @ jnp.concatenate([dQ, dU], axis=1)
        step = Step(q1, u1, P, carried, (*solves, *second), error=error)
        slips = each(dynamics.gamma_F, t + c[first:] * dt, outs.x[:, : dynamics.nq], outs.x[:, dynamics.nq :])
        gamma_F = jnp.concatenate([slips, dynamics.split(memory.gamma).F[None]])
        closed = jnp.all(outs.active.normal, axis=0) & active.normal
        gain = float(1.0 / np.abs(diagonal).min())
        return judged(step, dynamics, modes, before, closed, dynamics.split(dPi).N, gamma_F, dt, slack, gain)

    def _increments(self, dynamics, t, dt, q, u, carried: Carried) -> tuple[Array, Array, Array]:
        """dQ, dU, dPi of the stages, where only those of an explicit first one are known."""
        s = self.tableau.stages
        dQ, dU, dPi = (jnp.zeros((s, n)) for n in (dynamics.nq, dynamics.nu, dynamics.n_y))
        if not self._explicit_first:
            return dQ, dU, dPi
        W, _ = dynamics.force_directions(t, q)
        impulse = dt * (dynamics.h(t, q, u) + W @ carried.force)
        moved = dynamics.solve_M(t, q, impulse[:, None])[:, 0]
        return (
            dQ.at[0].set(dt * dynamics.q_dot(t, q, u)),
            dU.at[0].set(moved),
            dPi.at[0].set(dt * carried.force),
        )

    def _same_contact(self, dynamics, carried: Carried, active, friction, memory: Memory) -> Array:
        """Whether the step neither opened, closed nor hit a contact,
        nor changed between stick, slip and slip back.
        """
        same = jnp.all(active.normal == carried.normal) & jnp.all(active.stick == carried.stick)
        at_rest = carried.memory.contacts.resting & memory.contacts.resting
        # without projection rates are never exactly zero
        quiet = at_rest | ~active.normal if self.projected else True
        turned = dynamics.laws.set.dot(friction, carried.friction) < 0.0
        return same & jnp.all(quiet) & ~jnp.any(turned)

    def _fresh_force(self, dynamics, t, q, u, active, P, dt) -> tuple[Array, Any]:
        now = Situation.after(dynamics, t, q, u, P, dt)
        closed, may_stick = contact_state(dynamics, u, now)
        closed = closed if self.projected else active.normal
        out = acceleration_level(dynamics, t, q, u, closed, may_stick, self.solver, now)
        return out.y, out.result


class SDIRK2(StageByStage):
    """Alexander's two-stage method, stage by stage: order 2 for smooth forces,
    1 with constraints or contact.
    """

    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 1
    reference = ALEXANDER

    @property
    def tableau(self):
        return sdirk2()


class SDIRK3(StageByStage):
    """Alexander's three-stage method, stage by stage: order 3 for smooth forces,
    1 with constraints or contact.
    """

    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 1
    reference = ALEXANDER

    @property
    def tableau(self):
        return sdirk3()


class TRBDF2(StageByStage):
    """Trapezoidal rule and BDF2 in one step: order 2, stiffly accurate,
    high frequencies are damped at once.
    """

    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 2
    reference = HOSEA

    @property
    def tableau(self):
        return tr_bdf2()


class TRX2(StageByStage):
    """Two steps of the trapezoidal rule, written as one: order 2, no damping."""

    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 2
    reference = HOSEA

    @property
    def tableau(self):
        return trx2()


class TRTheta(StageByStage):
    """R(infinity) = rho_inf chooses the damping of high frequencies: 0 is TR-BDF2, 1 is TRX2."""

    rho_inf: float = eqx.field(default=0.9, static=True)
    projected: bool = eqx.field(default=True, static=True)
    friction: Friction = eqx.field(default="stagewise", static=True)
    solver: Solver = eqx.field(default_factory=default_solver)

    order = 2
    reference = HOSEA

    def __check_init__(self):
        tr_theta(self.rho_inf)

    @property
    def tableau(self):
        return tr_theta(self.rho_inf)
