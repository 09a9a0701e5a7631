"""Periodic orbits by shooting: Newton's method on the flow over a period,
whose derivative is exact through impacts.

Unknowns are the state x = (q, u) at the start and, where nothing drives the system, the period T; equations
are phi_T(x) = x, up to coordinates that drift, and for a free period that x moves at right angles to the
motion.
"""

import math
import reprlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..extras import need
from ..results import message, succeeded
from ..solution import Solution
from ..system import Label, System
from ..validate import Labels, as_parameters, is_count
from .flow import Derivative, Flow, Periods, length_of

HALVINGS = 12


class OrbitError(RuntimeError):
    """No periodic orbit was found; says how far the search came."""


class Shooting(NamedTuple):
    """What is searched for: entries of x that are unknown,
    and the direction of motion if the period is too.
    """

    periods: Periods
    period: Any  # a number or a function of the system; None: unknown
    open: np.ndarray  # indices in x that must come back; the others drift
    along: np.ndarray | None = None  # direction of motion in these, where the period is unknown

    def residual(self, x: np.ndarray, d: Derivative) -> np.ndarray:
        return (np.asarray(d.passage.end) - x)[self.open]

    def moved(self, x: np.ndarray, T: float, step: np.ndarray) -> tuple[np.ndarray, float]:
        """By a step of the open entries and, where it is unknown, the period."""
        new = x.copy()
        new[self.open] += step[: len(self.open)]
        return new, T + (0.0 if self.along is None else float(step[len(self.open)]))

    def jacobian(self, d: Derivative) -> np.ndarray:
        """Of the residual by the open entries of x, then by T if that is unknown;
        a last row says where on the orbit x is.
        """
        A = np.asarray(d.by_x)[np.ix_(self.open, self.open)] - np.eye(len(self.open))
        if self.along is None:
            return A
        row = np.append(self.along, 0.0)
        return np.vstack([np.column_stack([A, np.asarray(d.by_T)[self.open]]), row])


class PeriodicOrbit(NamedTuple):
    """A motion that repeats itself after ``period``, up to ``drift``."""

    q: np.ndarray  # at the start,
    u: np.ndarray  # where time is 0
    period: float  # in s
    drift: np.ndarray  # of q over a period, zero but for coordinates that drift
    # eigenvalues of the return map, the largest first; those of the motion itself are left out
    multipliers: np.ndarray
    monodromy: np.ndarray  # d(q, u) after a period by d(q, u) before
    residual: float  # how far from itself it comes back, largest entry
    impacts: int  # in a period
    slowest_impact: float  # speed with which a gap closes: the orbit grazes where it is zero
    closest_gap: float  # that an open contact has where it comes near and does not touch
    iterations: int  # of Newton's method
    system: System  # that moves
    solution: Solution  # over one period, as it was found
    search: Any  # what `ss.continuation` goes on with

    @property
    def stable(self) -> bool:
        """Whether all multipliers are inside the unit circle."""
        return bool(np.all(np.abs(self.multipliers) < 1.0))

    def __repr__(self) -> str:
        largest = f"{self.multipliers[0]:.6g}" if len(self.multipliers) else "none"
        return (
            f"periodic orbit of {type(self.system).__name__}: period {self.period:.12g} s, {self.impacts} "
            "impacts,"
            f" {'stable' if self.stable else 'unstable'}, largest multiplier {largest}"
        )

    def to_xarray(self) -> Any:
        """Start, period, drift and multipliers with their names."""
        xr = need("xarray", "files", "orbit.to_xarray")
        names = Labels.of(self.system, len(self.q), len(self.u), 0)
        data = {
            "q": ("coordinate", self.q), "u": ("velocity", self.u), "drift": ("coordinate", self.drift),
            "period": ((), self.period, {"units": "s"}), "multiplier": ("index", self.multipliers),
            "stable": ((), self.stable), "impacts": ((), self.impacts), "residual": ((), self.residual),
        }  # fmt: skip
        return xr.Dataset(
            data, {"coordinate": _names(names.coordinates), "velocity": _names(names.velocities)}
        )


def _names(labels: tuple[Label, ...]) -> list[str]:
    return [label.name for label in labels]


def periodic_orbit(
    system: System, q0: Any, u0: Any, *, period: Any = None, period_guess: float | None = None,
    drift: Any = (),
    method: Any = None, rtol: float = 1e-11, atol: float | None = None, tolerance: float | None = None,
    max_iterations: int = 30, dt_max: float | None = None,
) -> PeriodicOrbit:  # fmt: skip
    """The periodic orbit near a start (q0, u0) at t = 0, with its multipliers.

    ``period`` is that of a force, or a multiple: a number, or a function of the system such as
    ``lambda s: 2 * np.pi / s.Omega``; where nothing drives the system, ``period_guess`` is where the search
    for it begins. ``drift`` names coordinates (or counts them) that need not come back, such as the height of
    something that falls from orbit to orbit. The start should be where no contact closes, opens, sticks or
    slips; what is closed there stays closed. Raises `ss.OrbitError` where Newton's method does not reach
    ``tolerance`` (relative; by default a hundred times rtol).
    """
    shooting = _shooting(system, q0, u0, period, period_guess, drift, method, rtol, atol, dt_max)
    if not is_count(max_iterations):
        raise ValueError(f"max_iterations must be a whole number, at least 1, got {max_iterations!r}")
    x = np.concatenate([np.asarray(q0, dtype=float), np.asarray(u0, dtype=float)])
    T = (
        float(period_guess or 0.0)
        if period is None
        else float(length_of(period, shooting.periods.flow.system))
    )
    sol = shooting.periods.checked(x, T)
    if period is None:
        shooting = shooting._replace(along=_motion(shooting, sol, x))
    tolerance = 100.0 * rtol if tolerance is None else tolerance
    x, T, d, iterations = newton(shooting, x, T, tolerance, max_iterations)
    return found(shooting, x, T, d, iterations)


def _shooting(system, q0, u0, period, guess, drift, method, rtol, atol, dt_max, parameter=None) -> Shooting:
    if (period is None) == (guess is None):
        raise ValueError(
            "periodic_orbit: give period=... of what drives the system, or period_guess=... where nothing "
            "does, one of them"
        )
    if guess is not None and not (np.ndim(guess) == 0 and math.isfinite(guess) and guess > 0):
        raise ValueError(f"period_guess must be a positive number, got {reprlib.repr(guess)}")
    flow = Flow.of(
        system,
        q0,
        u0,
        "periodic_orbit",
        method=method,
        rtol=rtol,
        atol=atol,
        dt_max=dt_max,
        parameter=parameter,
    )
    n = flow.nq + len(np.asarray(u0))
    return Shooting(Periods(flow), period, np.setdiff1d(np.arange(n), _drifting(flow.system, drift, flow.nq)))


def _drifting(system: System, drift: Any, nq: int) -> list[int]:
    names = _names(Labels.of(system, nq, nq, 0).coordinates) if nq else []
    chosen = []
    for x in (drift,) if isinstance(drift, str | int) else drift:
        if isinstance(x, str) and x not in names:
            raise ValueError(
                f"drift: {type(system).__name__} has no coordinate {x!r}. It has {', '.join(names)}"
            )
        place = names.index(x) if isinstance(x, str) else int(x)
        if not 0 <= place < nq:
            raise ValueError(f"drift: there is no coordinate {x}, q has {nq} entries")
        chosen.append(place)
    return chosen


def _motion(shooting: Shooting, sol: Solution, x: np.ndarray) -> np.ndarray:
    """The direction in which the start moves."""
    system, nq = sol.system, shooting.periods.flow.nq
    q, u = jnp.asarray(x[:nq]), jnp.asarray(x[nq:])
    dq = np.asarray(system.B(0.0, q) @ u + system.beta(0.0, q))
    along = np.concatenate([dq, np.asarray(sol.u_dot[0])])[shooting.open]
    length = np.linalg.norm(along)
    if not length > 0.0:
        raise ValueError("periodic_orbit: the start does not move: give one on the orbit")
    return along / length


def newton(
    shooting: Shooting, x: np.ndarray, T: float, tolerance: float, max_iterations: int
) -> tuple[np.ndarray, float, Derivative, int]:
    """From a start; steps are halved while they lead further away."""
    periods, free = shooting.periods, shooting.along is not None
    d = periods(x, T)
    if not arrived(d):
        raise OrbitError(
            f"periodic_orbit: the run over a period of {T:.6g} s failed: {message(d.passage.result)}"
        )
    for k in range(max_iterations):
        r = shooting.residual(x, d)
        size = np.abs(r).max(initial=0.0)
        if size <= tolerance * np.abs(x).max(initial=0.0):
            return x, T, d, k
        step = np.linalg.lstsq(shooting.jacobian(d), -np.append(r, 0.0) if free else -r, rcond=None)[0]
        for _ in range(HALVINGS):
            new, T_new = shooting.moved(x, T, step)
            trial = periods(new, T_new) if T_new > 0.0 else None
            if trial is not None and arrived(trial) and np.abs(shooting.residual(new, trial)).max() < size:
                break
            step = step / 2.0
        else:
            raise OrbitError(
                f"periodic_orbit: no step leads nearer after {k} iterations, {size:.2e} is left at T = "
                f"{T:.6g}: start nearer"
                " to the orbit, for example from a run that has settled, or with a smaller rtol"
            )
        x, T, d = new, T_new, trial
    raise OrbitError(
        f"periodic_orbit: {np.abs(shooting.residual(x, d)).max():.2e} is left after {max_iterations} "
        "iterations"
        f" (tolerance {tolerance:.1e}): start nearer, or raise max_iterations"
    )


def arrived(d: Derivative) -> bool:
    """Whether the run over a period succeeded, and its derivative is one."""
    return bool(succeeded(d.passage.result)) and all(
        np.all(np.isfinite(a)) for a in (d.passage.end, d.by_x, d.by_T)
    )


def found(
    shooting: Shooting, x: np.ndarray, T: float, d: Derivative, iterations: int, value: Any = None
) -> PeriodicOrbit:
    flow = shooting.periods.flow
    end, drift = np.asarray(d.passage.end), np.zeros(flow.nq)
    moved = np.setdiff1d(np.arange(flow.nq), shooting.open)
    drift[moved] = (end - x)[moved]
    return PeriodicOrbit(
        x[: flow.nq], x[flow.nq :], T, drift, multipliers(shooting, d), np.asarray(d.by_x),
        float(np.abs(shooting.residual(x, d)).max(initial=0.0)), int(d.passage.impacts),
        float(d.passage.slowest), float(d.passage.closest), iterations, as_parameters(flow.at(value)),
        shooting.periods.checked(x, T, value), shooting,
    )  # fmt: skip


def multipliers(shooting: Shooting, d: Derivative) -> np.ndarray:
    """Of the return map: without what drifts, whose shift changes nothing,
    and without the direction of motion.

    phi_T takes the velocity at the start to that at the end, which is the same: an eigenvalue 1. In what is
    left of the space after division by that direction are the others.
    """
    A = np.asarray(d.by_x)[np.ix_(shooting.open, shooting.open)]
    if shooting.along is not None:
        motion = np.asarray(d.by_T)[shooting.open]
        across = np.linalg.svd(motion[None] / np.linalg.norm(motion))[2][1:]
        A = across @ A @ across.T
    values = np.linalg.eigvals(A)
    return values[np.argsort(-np.abs(values))]
