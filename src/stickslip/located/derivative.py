"""Derivatives of steps that end at events: found without derivatives,
then differentiated as they were taken.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..derive import Directions, Dynamics
from ..methods.given_modes import GivenModes, Instant, Trial, instant, projected, trial
from ..solvers import Recorded, SemismoothNewton
from ..trees import held, moving
from . import dense
from .functions import functions
from .state import Control


def ended(
    method: Any,
    solver: Any,
    control: Control,
    sides: Array,
    dynamics: Dynamics,
    t,
    dt,
    q,
    u,
    modes: GivenModes,
):
    """The end of a step, and the functions there."""
    now = held(instant(dynamics, t, q, u, modes))
    moved = modes.begun
    out = trial(method, solver, dynamics, t, dt, q, u, moved, now)
    u_end, P = projected(dynamics, Directions.at(dynamics, t + dt, out.q), out.u, moved, out.rest)
    end = instant(dynamics, t + dt, out.q, u_end, moved)
    return (out.q, u_end, out.P + P), functions(dynamics, control, sides, t + dt, out.q, u_end, moved, end)


@eqx.filter_custom_jvp
def taken(
    args: Any, known: Trial, sides: Array, target: Array, at_event: Array, *, method: Any, control: Any
) -> Any:
    """(q, u, P, length) of a step with the arguments (dynamics, t, length, q, u, modes),
    which is known already.
    """
    return known.q, known.u, known.P, args[2]


@taken.def_jvp
def _taken_jvp(primals, tangents, *, method, control):
    """Of the step itself; where it ends at an event its length follows,
    from the numerical step, not from a polynomial.
    """
    args, known, sides, target, at_event = primals
    solver = Recorded((known.solve,), SemismoothNewton())
    # the length always counts: where the step ends at an event it follows
    rates = eqx.tree_at(lambda a: a[2], tangents[0], jnp.zeros(()), is_leaf=lambda r: r is None)
    rates = rates if tangents[0][2] is None else tangents[0]
    dynamic, static = moving(args, rates)

    def step(dynamic):
        ends, values = ended(method, solver, control, sides, *eqx.combine(dynamic, static))
        return ends, values[target]

    longer = eqx.tree_at(lambda a: a[2], jax.tree.map(jnp.zeros_like, dynamic), jnp.ones(()))
    _, along = jax.linearize(step, dynamic)
    (moved, value), (per_length, slope) = along(rates), along(longer)
    slope = jax.lax.stop_gradient(slope)
    more = jnp.where(at_event, -value / jnp.where(at_event, slope, 1.0), 0.0)
    out = known.q, known.u, known.P, args[2]
    ends = tuple(a + more * b for a, b in zip(moved, per_length, strict=True))
    return out, (*ends, rates[2] + more)


@eqx.filter_custom_jvp
def moment(args: Any, sides: Array, which: Array, on: Array, *, control: Any) -> Array:
    """Zero: how long after a state a function vanishes that vanishes there.

    Its derivative is that of the event's time.
    """
    return jnp.zeros(())


@moment.def_jvp
def _moment_jvp(primals, tangents, *, control):
    args, sides, which, on = primals

    def value(args):
        dynamics, t, q, u, modes = args
        return functions(dynamics, control, sides, t, q, u, modes, instant(dynamics, t, q, u, modes))[which]

    _, rate = eqx.filter_jvp(value, (args,), (tangents[0],))
    dynamics, t, q, u, modes = args
    now = instant(dynamics, t, q, u, modes)
    _, slope = jax.jvp(
        lambda t, q, u: value((dynamics, t, q, u, modes)), (t, q, u), (jnp.ones(()), now.q_dot, now.u_dot)
    )
    rate = jnp.zeros(()) if rate is None else rate
    falls = on & (slope < 0.0)
    return jnp.zeros(()), jnp.where(falls, -rate / jax.lax.stop_gradient(jnp.where(falls, slope, 1.0)), 0.0)


@eqx.filter_custom_jvp
def at_quarter(args: Any, known: Array) -> Array:
    """u_dot at a quarter of a step, which is known already, from both ends of it: without it `sol(t)` would
    have the derivatives of another curve.
    """
    return known


@at_quarter.def_jvp
def _at_quarter_jvp(primals, tangents):
    def found(args):
        dynamics, t, dt, ends, modes = args
        a, b = (dense.End.of(dynamics, *end) for end in ends)
        x = dense.QUARTER
        q, u = dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b)
        return instant(dynamics, t + x * dt, q, u, modes).u_dot

    _, rates = eqx.filter_jvp(found, primals[:1], tangents[:1])
    return primals[1], rates


@eqx.filter_custom_jvp
def again(args: Any, known: Instant) -> Instant:
    """An instant that is known already; its derivative is that of the instant itself."""
    return known


@again.def_jvp
def _again_jvp(primals, tangents):
    _, rates = eqx.filter_jvp(lambda args: instant(*args), primals[:1], tangents[:1])
    return primals[1], rates
