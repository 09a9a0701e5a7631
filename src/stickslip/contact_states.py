"""What contacts do at the rows of a run: open, slip or stick."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .derive import Dynamics, Situation
from .initial import contact_state
from .laws import Contact, Pivoting, Rolling
from .system import System

STATES = ("open", "slip", "stick")


def modes_by_state(system: System, t, dt, q, u, P_N, P_F) -> tuple[Array, Array]:
    """Contacts that are closed, and balls that may stick, by what moves."""
    dynamics = Dynamics.of(system, t, q, u)
    P = dynamics.rows_of_percussions(P_N, P_F, dt)
    return contact_state(dynamics, u, Situation.after(dynamics, t, q, u, P, dt))


def rests_by_percussion(system: System, t, dt, q, u, P_N, P_F) -> tuple[Array, Array]:
    """The same where gaps drift: contacts at rest,
    and balls that did not need all of their reservoir in the step.
    """
    dynamics = Dynamics.of(system, t, q, u)
    laws = dynamics.laws
    P = dynamics.rows_of_percussions(P_N, P_F, dt)
    at_rest, zero_slip = contact_state(dynamics, u, Situation.after(dynamics, t, q, u, P, dt))
    inside = laws.set.depth(-dynamics.split(P).F, (1.0 - 1e-9) * laws.radii(P_N, dt)) > 0.0
    return at_rest, inside | zero_slip


def modes_by_percussion(system: System, t, dt, q, u, P_N, P_F) -> tuple[Array, Array]:
    """The same by what pushed in the step that ends there."""
    at_rest_or_start, may_stick = rests_by_percussion(system, t, dt, q, u, P_N, P_F)
    return (P_N > 0.0) | at_rest_or_start, may_stick


def codes(laws: Any, closed: Any, stick: Any) -> Any:
    """0 open, 1 slip, 2 stick, by law."""
    xp = np if isinstance(closed, np.ndarray) else jnp
    columns, first = [], 0
    for i, law in enumerate(laws):
        kinds = [
            (friction, len(friction.balls()))
            for friction in (law.friction if isinstance(law, Contact) else (law,))
        ]
        slides = np.concatenate(
            [[not isinstance(f, Rolling | Pivoting)] * n for f, n in kinds] or [[]]
        ).astype(bool)
        balls = first + np.flatnonzero(slides if slides.any() else ~slides)
        first += len(slides)
        sticks = xp.all(stick[..., balls], axis=-1) if balls.size else False
        of_law = xp.where(sticks, 2, 1) * xp.ones(stick.shape[:-1], dtype=int)
        columns.append(xp.where(closed[..., i], of_law, 0) if isinstance(law, Contact) else of_law)
    return xp.stack(columns, axis=-1) if columns else xp.zeros((*closed.shape[:-1], 0), dtype=int)
