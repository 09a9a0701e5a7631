"""How a run ended: codes that pass through jit and vmap, messages that name what to change."""

from typing import Any

import equinox as eqx
import numpy as np


class RESULTS(eqx.Enumeration):
    """Members carry their message; compare with ``sol.result == ss.RESULTS.successful``."""

    successful = "successful"
    newton_not_converged = (
        "the semismooth Newton method did not converge; use a smaller dt, a looser atol, or a solver that"
        " falls back to the fixed point: solver=ss.Automatic()"
    )
    fixed_point_not_converged = (
        "neither Newton nor the fixed-point iteration converged; use a smaller dt, a smaller relaxation or"
        " more max_iterations in ss.FixedPoint"
    )
    not_finite = (
        "a nan or an infinity appeared in q or u; check what the system's functions return there (is M "
        "positive"
        " definite?) and use a smaller dt"
    )
    inconsistent_start = (
        "the start violates g, gamma, g_N, their rates on closed contacts, or has a coefficient out of range;"
        " run outside of jit to see which one"
    )
    interrupted = "the run was interrupted; what had been computed is kept"
    modes_undecided = (
        "no contact modes were found with which the motion goes on, or not even the shortest step could be "
        "solved;"
        " loosen rtol and atol, or run it with a fixed dt, which needs no modes"
    )
    max_events_reached = "max_events was reached before t1; allow more events"
    max_steps_reached = "max_steps was reached before t1; allow more steps, a larger dt or looser tolerances"
    accepted_at_residual = (
        "not every step was solved to the tolerance; the others were accepted at the residuals in "
        "sol.stats.residual, as"
        " sol.stats.accepted says"
    )


class SimulationError(RuntimeError):
    """A run could not be finished. ``solution`` holds everything computed before the failure."""

    def __init__(self, message: str, solution: Any = None):
        super().__init__(message)
        self.solution = solution


def first_failure(a: Any, b: Any) -> Any:
    """a unless a is success."""
    return RESULTS.where(a == RESULTS.successful, b, a)


def unless(ok: Any, failure: Any) -> Any:
    """Success if ok, otherwise the failure."""
    return RESULTS.where(ok, RESULTS.successful, failure)  # type: ignore[arg-type]


def succeeded(result: Any) -> bool:
    """Whether a result that is known is success; without asking the device."""
    success: Any = RESULTS.successful
    return bool(np.all(np.asarray(result._value) == np.asarray(success._value)))


def message(result: Any) -> str:
    """What a member says."""
    members: Any = RESULTS
    return members[result]
