"""Accelerations and forces that belong to a state: consistent initial conditions, S3 section 3.7."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .captured import captured
from .derive import Directions, Dynamics, Situation
from .results import RESULTS, SimulationError, first_failure, message, unless
from .rows import StageLayout
from .solvers import Automatic, Inclusions, ProxParameters, Solve, Solver, VelocityProblem
from .system import System
from .trees import held
from .validate import (
    as_parameters,
    check_start,
    checked_vectors,
    start_is_consistent,
    start_values,
)


def acceleration_level(
    dynamics: Dynamics,
    t,
    q: Array,
    u: Array,
    closed: Bool[Array, " n_N"],
    may_stick: Bool[Array, " n_balls"],
    solver: Solver | None = None,
    now: Situation | None = None,
) -> Solve:
    """(u_dot, la) from (3.52), (3.53): Signorini and friction on acceleration level for the contacts in
    ``closed``. ``now``, where it is known: of this state.
    """
    if now is None:
        at, force = Directions.with_force(dynamics, t, q, dynamics.h(t, q, u)[:, None])
        free = force[:, 0]
    else:
        at, free = now.at, now.k
    zeta = dynamics.acceleration_rest(t, q, u)
    problem = acceleration_problem(dynamics, at, free, zeta, u, closed, may_stick)
    return (solver or Automatic()).solve(problem, free, jnp.zeros(dynamics.n_y))


def acceleration_problem(
    dynamics: Dynamics,
    at: Directions,
    u_dot_free: Array,
    rest: Array,
    u: Array,
    closed: Bool[Array, " n_N"],
    may_stick: Bool[Array, " n_balls"],
) -> VelocityProblem:
    """The same as a problem; ``rest``: accelerations of the rows at u_dot = 0.

    A ball that slips has its friction law on velocity level, gamma_F in N_C(-la_F) with gamma_F given; its
    rows do not move with the acceleration.
    """
    laws = dynamics.laws
    layout = StageLayout(dynamics.rows)
    slips = layout.join(False, jnp.zeros(laws.n_N, dtype=bool), ~laws.set.expand(may_stick))
    zeta = jnp.where(slips, at.velocities(u), rest)
    moving = at.W.without(slips)
    scales = at._replace(chi=jnp.where(slips, 0.0, zeta)).scales(u_dot_free)
    rho = ProxParameters.of(laws, dynamics.rows, at.G)
    inclusions = Inclusions(
        laws, layout, closed, may_stick, rho, jnp.ones(()), jnp.zeros(dynamics.n_y), scales
    )
    return VelocityProblem(inclusions, u_dot_free, at.L, moving, zeta, moving.T @ at.L)


def contact_state(dynamics: Dynamics, u: Array, now: Situation) -> tuple[Array, Array]:
    """B_0 (closed on position and velocity level) and the balls with zero slip velocity (C_0)."""
    (u, now), set_, g = held((u, now)), dynamics.laws.set, dynamics.rows.g
    _, _, g_N_dot, gamma_F = dynamics.split(now.at.velocities(u))
    _, _, slow, still = dynamics.split(now.near.velocity)
    closed = (now.gaps[g:] <= now.near.closed[g:]) & (g_N_dot <= slow)
    return closed, set_.norm(gamma_F) <= set_.largest(still)


class InitialState(eqx.Module):
    """Rates and forces at the start; friction forces in physical units."""

    q_dot: Float[Array, " nq"]  # rates of the coordinates
    u_dot: Float[Array, " nu"]
    la_g: Float[Array, " n_g"]
    la_gamma: Float[Array, " n_gamma"]
    la_N: Float[Array, " n_N"]
    la_F: Float[Array, " n_F"]
    closed: Bool[Array, " n_N"]  # contacts that are closed
    result: Any  # a member of `ss.RESULTS`


@eqx.filter_jit
def _initial_state(system: System, t, q: Array, u: Array, key: str) -> tuple[InitialState, dict[str, Array]]:
    dynamics = Dynamics.of(system, t, q, u)
    now = Situation.of(dynamics, t, q, u)
    closed, may_stick = contact_state(dynamics, u, now)
    out = acceleration_level(dynamics, t, q, u, closed, may_stick, now=now)
    values = start_values(dynamics, t, q, u, now)
    result = first_failure(unless(start_is_consistent(values), RESULTS.inconsistent_start), out.result)
    return InitialState(
        dynamics.q_dot(t, q, u), out.x, *dynamics.percussions(out.y, 1.0), closed, result
    ), values


def initial_state(system: System, q0: Any, u0: Any, t0: float = 0.0) -> InitialState:
    """Consistent accelerations and constraint forces of a start;
    refuses a start that violates a constraint.
    """
    system = as_parameters(system)
    q0, u0, traced, _ = checked_vectors(system, t0, q0, u0)
    state, values = _initial_state(system, np.asarray(float(t0)), q0, u0, captured(system))
    if traced:
        return state
    check_start(values, t0, system)
    if state.result != RESULTS.successful:
        raise SimulationError(f"initial_state at t = {t0}: {message(state.result)}")
    return jax.tree.map(np.asarray, state)
