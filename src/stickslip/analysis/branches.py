"""Branches of periodic orbits: pseudo-arclength continuation in a parameter, with folds, flips and grazing.

A point of the branch is y = (x, T, p), x and T as in `orbits.py`. From a point one goes a length s along the
tangent of the branch, and back onto it at right angles; around a fold p turns, s does not.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..extras import need
from ..validate import Labels, is_count
from .flow import Derivative, Flow, Periods, length_of
from .orbits import OrbitError, PeriodicOrbit, Shooting, arrived, found, multipliers

STEPS = 40  # along the bounds, unless the user says how long they are
EASY, HARD = 2, 6  # iterations after which steps grow, and at which they shrink
SHORTEST = 1e-6  # part of the first step
LOCATED = 1e-10  # of a step: where tests of a fold or flip change their sign
# of the largest impact speed, or gap, of the branch: what is near enough to go on to zero from
GRAZING = 0.05


class _Point(NamedTuple):
    x: np.ndarray
    T: float
    p: float
    tangent: np.ndarray  # in scaled (x, T, p)
    d: Derivative
    multipliers: np.ndarray

    @property
    def flip(self) -> float:
        """Zero where a multiplier is -1."""
        return float(np.real(np.prod(1.0 + self.multipliers)))

    @property
    def fold(self) -> float:
        """Zero where the parameter turns; a multiplier is 1 there."""
        return float(self.tangent[-1])


class Special(NamedTuple):
    """A place on a branch where its orbits change."""

    kind: str  # "fold", "flip" or "grazing"
    value: float  # of the parameter
    orbit: PeriodicOrbit  # there, of grazing the last one before
    behind: int  # how many points of the branch lie before it


class Branch(NamedTuple):
    """Periodic orbits of one parameter, in the order in which they were found."""

    parameter: str  # its name
    value: np.ndarray  # (points)
    q: np.ndarray  # (points, nq) at the start of the period
    u: np.ndarray  # (points, nu)
    period: np.ndarray  # (points)
    multipliers: np.ndarray  # (points, count)
    impacts: np.ndarray  # (points) in a period
    slowest_impact: np.ndarray  # (points)
    special: tuple[Special, ...]  # folds, flips and grazing, in the order of the branch
    end: str  # why it ends where it ends
    orbit: PeriodicOrbit  # from which it began

    @property
    def stable(self) -> np.ndarray:
        return np.all(np.abs(self.multipliers) < 1.0, axis=1)

    def to_xarray(self) -> Any:
        """All of it, along a dimension ``point``."""
        xr = need("xarray", "files", "branch.to_xarray")
        names = Labels.of(self.orbit.system, self.q.shape[1], self.u.shape[1], 0)
        data = {
            "q": (("point", "coordinate"), self.q), "u": (("point", "velocity"), self.u),
            "period": ("point", self.period, {"units": "s"}),
            "multiplier": (("point", "index"), self.multipliers),
            "stable": ("point", self.stable), "impacts": ("point", self.impacts),
            "special": ("place", [s.kind for s in self.special]),
            "special_value": ("place", [s.value for s in self.special]),
        }  # fmt: skip
        coordinates = {
            self.parameter: ("point", self.value),
            "coordinate": [label.name for label in names.coordinates],
            "velocity": [label.name for label in names.velocities],
        }
        return xr.Dataset(data, coordinates, {"end": self.end})

    def plot(self, path: Any = None, what: Any = 0) -> Any:
        """A coordinate of the start over the parameter, unstable orbits dashed, special points marked."""
        from .pictures import branch

        return branch(self, what, path)

    def __repr__(self) -> str:
        places = ", ".join(f"{s.kind} at {s.value:.8g}" for s in self.special) or "none"
        n, first, last = len(self.value), self.value[0], self.value[-1]
        return (
            f"branch of {n} orbits, {self.parameter} from {first:g} to {last:g}; special: {places}; "
            f"{self.end}"
        )


def continuation(
    orbit: PeriodicOrbit, parameter: str, bounds: tuple[float, float], *, step: float | None = None,
    max_points: int = 400, tolerance: float | None = None, backwards: bool = False,
) -> Branch:  # fmt: skip
    """Follow a periodic orbit while a parameter of its system goes through ``bounds``, also around folds.

    It begins with growing values (``backwards``: falling ones), in steps of ``step`` (by default a fortieth
    of the bounds, then as long as Newton's method finds easy), and ends at a bound, where the orbit grazes,
    where no orbit is found, or after ``max_points``. Places where it folds, flips (a multiplier is -1) or
    grazes are in ``branch.special``.
    """
    low, high = _bounds(bounds)
    if not is_count(max_points):
        raise ValueError(f"max_points must be a whole number, at least 1, got {max_points!r}")
    trace = _Trace.of(orbit, parameter, (high - low) / STEPS if step is None else float(step), tolerance)
    value = float(getattr(orbit.system, _known(orbit, parameter)))
    if not low <= value <= high:
        raise ValueError(
            f"bounds: the orbit has {parameter} = {value:g}, which is not between {low:g} and {high:g}"
        )
    return trace.follow(value, low, high, -1.0 if backwards else 1.0, max_points)


def _bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in bounds)
    except (TypeError, ValueError):
        raise TypeError(
            f"bounds must be two numbers, the smallest and the largest value, got {bounds!r}"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be two numbers, the smaller first, got {bounds!r}")
    return low, high


def _known(orbit: PeriodicOrbit, parameter: str) -> str:
    Flow.of(orbit.system, orbit.q, orbit.u, "continuation", parameter=parameter)  # refuses what is no field
    shape = np.shape(getattr(orbit.system, parameter))
    if shape:
        raise ValueError(f"continuation: {parameter} must be one number, it has shape {shape}")
    return parameter


class _Trace(NamedTuple):
    """What stays the same along a branch."""

    shooting: Shooting
    orbit: PeriodicOrbit
    parameter: str
    scale: np.ndarray  # of (x, T, p): lengths along the branch are measured in these
    first: float  # length of the first step
    tolerance: float

    @classmethod
    def of(cls, orbit: PeriodicOrbit, parameter: str, step: float, tolerance: float | None) -> "_Trace":
        known = orbit.search
        flow = known.periods.flow
        flow = Flow.of(
            orbit.system, orbit.q, orbit.u, "continuation", method=flow.method, rtol=flow.rtol,
            atol=flow.atol, dt_max=flow.dt_max, parameter=_known(orbit, parameter),
        )  # fmt: skip
        shooting = known._replace(periods=Periods(flow))
        x = np.concatenate([orbit.q, orbit.u])[known.open]
        sizes = np.maximum(np.abs(x), 0.1 * np.abs(x).max())
        scale = np.concatenate([sizes, [orbit.period] if known.along is not None else [], [step]])
        return cls(
            shooting, orbit, parameter, scale, 1.0, 100.0 * flow.rtol if tolerance is None else tolerance
        )

    def length(self, p: float, T: float) -> float:
        period = self.shooting.period
        return (
            T
            if self.shooting.along is not None
            else float(length_of(period, self.shooting.periods.flow.at(p)))
        )

    def columns(self, d: Derivative, p: float) -> np.ndarray:
        """Of the equations by (x, T, p), in scaled variables."""
        by = np.asarray(d.by_value)[self.shooting.open]
        if self.shooting.along is not None:
            by = np.append(by, 0.0)
        elif callable(self.shooting.period):
            flow, period = self.shooting.periods.flow, self.shooting.period
            rate = jax.jacfwd(lambda v: jnp.asarray(period(flow.at(v)), dtype=float))(jnp.asarray(p))
            by = by + float(rate) * np.asarray(d.by_T)[self.shooting.open]
        return np.column_stack([self.shooting.jacobian(d), by]) * self.scale

    def tangent(self, d: Derivative, p: float, before: np.ndarray) -> np.ndarray:
        """Of the branch, in the direction of the one before."""
        t = np.linalg.svd(self.columns(d, p))[2][-1]
        return t if t @ before > 0.0 else -t

    def point(self, x: np.ndarray, T: float, p: float, before: np.ndarray) -> _Point:
        d = self.shooting.periods(x, T, p)
        if not arrived(d):
            raise OrbitError("no run over a period")
        return _Point(x, T, p, self.tangent(d, p, before), d, multipliers(self.shooting, d))

    def ahead(self, of: _Point, s: float, most: int = HARD + 2) -> tuple[_Point, int]:
        """The point of the branch a length s along the tangent, and how many iterations it took."""
        y = s * of.tangent
        for k in range(most):
            step = y * self.scale
            x, T = self.shooting.moved(of.x, of.T, step[:-1])
            p = of.p + float(step[-1])
            T = self.length(p, T)
            d = self.shooting.periods(x, T, p) if T > 0.0 else None
            if d is None or not arrived(d):
                raise OrbitError("a run over a period failed")
            r = self.shooting.residual(x, d)
            if np.abs(r).max() <= self.tolerance * np.abs(x).max():
                return _Point(x, T, p, self.tangent(d, p, of.tangent), d, multipliers(self.shooting, d)), k
            if self.shooting.along is not None:
                r = np.append(r, float(self.shooting.along @ (x - of.x)[self.shooting.open]))
            A = np.vstack([self.columns(d, p), of.tangent])
            y = y - np.linalg.lstsq(A, np.append(r, of.tangent @ y - s), rcond=None)[0]
            if not np.all(np.isfinite(y)) or np.linalg.norm(y) > 3.0 * abs(s) + 1e-6:
                break
        raise OrbitError("Newton's method did not converge")

    def follow(self, value: float, low: float, high: float, sign: float, max_points: int) -> Branch:
        ahead = np.zeros(len(self.scale))
        ahead[-1] = sign
        x = np.concatenate([self.orbit.q, self.orbit.u])
        points, special = [self.point(x, self.length(value, self.orbit.period), value, ahead)], []
        s, end = self.first, f"ends after {max_points} orbits (max_points)"
        while len(points) < max_points:
            here = points[-1]
            try:
                there, iterations = self.ahead(here, s)
                if int(there.d.passage.impacts) != int(here.d.passage.impacts):
                    raise OrbitError(
                        "the number of impacts changes; if one comes to the start,"
                        " begin elsewhere on the orbit"
                    )
            except OrbitError as error:
                s /= 2.0
                if s > SHORTEST * self.first:
                    continue
                grazes = self.grazing(points)
                special += [] if grazes is None else [grazes]
                why = error if grazes is None else "the orbit grazes"
                end = f"ends at {self.parameter} = {here.p:.8g}: {why}"
                break
            beyond = not low <= there.p <= high
            if beyond:
                bound = low if there.p < low else high
                s, there = self.located(here, s, "p", bound)
                end = f"ends at the bound {bound:g}"
            for kind in ("fold", "flip"):
                if getattr(here, kind) * getattr(there, kind) < 0.0:
                    _, at = self.located(here, s, kind)
                    special.append(Special(kind, at.p, self.as_orbit(at), len(points)))
            points.append(there)
            if beyond:
                break
            s = s * 1.5 if iterations <= EASY else s / 2.0 if iterations >= HARD else s
        return self.branch(points, special, end)

    def located(self, here: _Point, s: float, what: str, value: float = 0.0) -> tuple[float, _Point]:
        """How far ahead, at most s, something has a value, and the point there."""
        from scipy.optimize import brentq

        def test(part: float) -> float:
            return float(getattr(here if part == 0.0 else self.ahead(here, part, 30)[0], what)) - value

        root = float(brentq(test, 0.0, s, xtol=LOCATED * s))
        return root, self.ahead(here, root, 30)[0]

    def grazing(self, points: list[_Point]) -> Special | None:
        """Where the slowest impact comes to zero, or a gap that is not touched, if one is near.

        Near it the parameter is a polynomial in that speed or gap: one through three points that lie apart
        gives its value.
        """
        for name in ("slowest", "closest"):
            sizes = np.array([float(getattr(point.d.passage, name)) for point in points])
            last = sizes[-1]
            if not (np.isfinite(last) and 0.0 < last <= GRAZING * sizes[np.isfinite(sizes)].max()):
                continue
            apart = [len(points) - 1]
            for k in range(len(points) - 2, -1, -1):
                if len(apart) < 3 and np.isfinite(sizes[k]) and sizes[k] > 2.0 * sizes[apart[-1]]:
                    apart.append(k)
            if len(apart) == 3:
                values = np.array([points[k].p for k in apart])
                at = float(np.polynomial.polynomial.polyfit(sizes[apart], values, 2)[0])
                if abs(at - values[0]) <= np.ptp(values):  # else what is small there does not come to zero
                    return Special("grazing", at, self.as_orbit(points[-1]), len(points))
        return None

    def as_orbit(self, point: _Point) -> PeriodicOrbit:
        return found(self.shooting, point.x, point.T, point.d, 0, point.p)

    def branch(self, points: list[_Point], special: list[Special], end: str) -> Branch:
        nq = self.shooting.periods.flow.nq
        x = np.stack([point.x for point in points])
        passages = [point.d.passage for point in points]
        return Branch(
            self.parameter, np.array([point.p for point in points]), x[:, :nq], x[:, nq:],
            np.array([point.T for point in points]), np.stack([point.multipliers for point in points]),
            np.array([int(p.impacts) for p in passages]), np.array([float(p.slowest) for p in passages]),
            tuple(special), end, self.orbit,
        )  # fmt: skip
