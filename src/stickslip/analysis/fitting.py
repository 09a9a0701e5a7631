"""Parameters from measurements: least squares, by exact derivatives of the motion, through impacts too.

Minimized is sum_i ((y_i(p) - measured_i)/sigma_i)^2, by scipy's trust region method with bounds. At the
minimum, with J = dy/dp over sigma, (J^T J)^-1 is the covariance of p where sigma is known; otherwise it is
multiplied by the mean square of what is left, and intervals are those of Student's t.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..captured import captured
from ..compiling import compiled
from ..extras import need

NEAR = 1e-6  # of the width of bounds: an estimate that is nearer to one lies on it


class FitError(RuntimeError):
    """No parameters were found; says what stood in the way."""


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """Estimates, and how sure they are: ``fit["mu"]``, ``fit.error``, ``fit.interval("mu")``."""

    names: tuple[str, ...]  # of the parameters
    value: np.ndarray  # estimates, in their order
    covariance: np.ndarray  # of the estimates; nan for those on a bound
    sigma: float  # of the measurement: as given (1 where it was given by point), or estimated
    measured: dict[str, np.ndarray]  # by name of what was measured
    fitted: dict[str, np.ndarray]  # what the run gives with the estimates
    residual: np.ndarray  # (measured - fitted)/sigma of all points that count, one after another
    # estimates that lie on a bound: the others are estimated as if these were known
    on_bound: tuple[str, ...]
    evaluations: int  # of the run
    degrees: float  # of freedom; inf where sigma is known

    def __getitem__(self, name: str) -> float:
        """The estimate of a parameter."""
        return float(self.value[self._place(name)])

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"no parameter {name!r} was fitted, but {', '.join(self.names)}")
        return self.names.index(name)

    @property
    def parameters(self) -> dict[str, float]:
        return dict(zip(self.names, map(float, self.value), strict=True))

    @property
    def error(self) -> np.ndarray:
        """Standard errors."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        return self.covariance / np.outer(self.error, self.error)

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """In which the parameter lies with that confidence, for small errors of the measurement."""
        from scipy.stats import t

        k = self._place(name)
        far = float(t.ppf(0.5 + 0.5 * confidence, self.degrees)) * float(self.error[k])
        return float(self.value[k]) - far, float(self.value[k]) + far

    def __repr__(self) -> str:
        lines = [
            f"{name} = {value:.8g} +- {error:.2g}" + (" (on a bound)" if name in self.on_bound else "")
            for name, value, error in zip(self.names, self.value, self.error, strict=True)
        ]
        points = f"{len(self.residual)} points, {self.evaluations} evaluations"
        return f"fit: {', '.join(lines)}; sigma {self.sigma:.3g}, {points}"

    def plot(self, path: Any = None) -> Any:
        """Measured and fitted values, and what is left, over the points."""
        from .pictures import fitted

        return fitted(self, path)

    def to_xarray(self) -> Any:
        xr = need("xarray", "files", "fit.to_xarray")
        data = {
            "value": ("parameter", self.value), "error": ("parameter", self.error),
            "residual": ("point", self.residual),
            "covariance": (("parameter", "parameter_"), self.covariance),
        }  # fmt: skip
        return xr.Dataset(
            data, {"parameter": list(self.names)}, {"sigma": self.sigma, "degrees": self.degrees}
        )


def fit(
    run: Callable[..., Any], guess: Mapping[str, float], measured: Any, *, sigma: Any = None,
    bounds: Mapping[str, tuple[float, float]] | None = None, tolerance: float = 1e-10,
    max_evaluations: int = 100,
) -> Fit:  # fmt: skip
    """Parameters for which ``run(name=value, ...)`` gives what was measured.

    ``run`` returns an array, or a dict of arrays, of the shape of ``measured``: rows of ``sol.q`` at
    ``t_eval``, or times of events; it is traced, so that a run in it needs ``max_steps``, and tolerances, for
    which derivatives of impacts are exact. Entries of ``measured`` that are nan do not count. ``sigma``, a
    number or by point, is the standard deviation of the measurement, if it is known. ``bounds`` are
    (smallest, largest) by name. Raises `ss.FitError` where no minimum is found.
    """
    names, p = _guessed(guess)
    low, high = _bounds(names, p, bounds or {})
    by_name = measured if isinstance(measured, Mapping) else {"value": measured}
    data = {k: np.asarray(v, dtype=float) for k, v in by_name.items()}
    counts = {k: np.isfinite(v) for k, v in data.items()}
    scale = _deviations(sigma, data)
    y = np.concatenate([data[k][counts[k]] / scale[k][counts[k]] for k in data])
    if len(y) <= len(p):
        raise ValueError(f"fit: {len(y)} measured values cannot tell {len(p)} parameters and their errors")
    if not callable(run):
        raise TypeError(f"run must be a function of the parameters, got {run!r}")
    key, seen = captured(run), 0

    def arrays(of: Any) -> np.ndarray:
        return np.concatenate(
            [np.asarray(of[k])[counts[k]] / _wide(scale[k][counts[k]], of[k], data[k]) for k in data]
        )

    @functools.lru_cache(maxsize=1)
    def at(*p: float) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        nonlocal seen
        seen += 1
        made, slope = _predicted(run, names, np.array(p), key)
        _check_shapes(made, data)
        return arrays(made), arrays(slope), {k: np.asarray(v) for k, v in made.items()}

    first = at(*p)
    if not (np.all(np.isfinite(first[0])) and np.all(np.isfinite(first[1]))):
        raise FitError(
            "fit: at the guess the run gives values that are not finite: it failed there (max_steps or "
            "max_events too small,"
            " or an event that does not happen), run it outside of ss.fit to see why"
        )
    from scipy.optimize import least_squares

    found = least_squares(
        lambda p: at(*p)[0] - y, p, lambda p: at(*p)[1], (low, high), x_scale="jac", ftol=tolerance,
        xtol=tolerance, gtol=tolerance, max_nfev=max_evaluations,
    )  # fmt: skip
    if found.status <= 0:
        came_to = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, found.x, strict=True))
        raise FitError(f"fit: no minimum after {max_evaluations} evaluations; it came to {came_to}")
    return _judged(names, found.x, at(*found.x), y, data, sigma, (low, high), seen)


def _judged(names, p, at, y, data, sigma, bounds, seen: int) -> Fit:
    prediction, J, fitted = at
    low, high = bounds
    width = np.where(np.isfinite(high - low), high - low, np.abs(p) + 1.0)
    held = (p - low <= NEAR * width) | (high - p <= NEAR * width)
    free = np.flatnonzero(~held)
    residual, degrees = y - prediction, np.inf if sigma is not None else float(len(y) - len(free))
    s = 1.0 if sigma is not None else float(np.sqrt(residual @ residual / degrees))
    size = np.linalg.norm(J[:, free], axis=0)
    if not np.all(size > 0.0) or (len(free) and np.linalg.cond(J[:, free] / size) > 1e12):
        blind = ", ".join(names[k] for k, x in zip(free, size, strict=True) if not x > 0.0)
        raise FitError(
            f"fit: what was measured does not depend on {blind or 'some combination of the parameters'}"
        )
    covariance = np.full((len(p), len(p)), np.nan)
    R = np.linalg.qr(J[:, free] / size, mode="r")
    inverse = np.linalg.inv(R) / size[:, None]
    covariance[np.ix_(free, free)] = s * s * inverse @ inverse.T
    given = (
        float(sigma) if sigma is not None and np.ndim(sigma) == 0 and not isinstance(sigma, Mapping) else 1.0
    )
    on_bound = tuple(name for name, h in zip(names, held, strict=True) if h)
    sigma = s if sigma is None else given
    return Fit(names, p, covariance, sigma, data, fitted, residual / s, on_bound, seen, degrees)


@compiled
def _predicted(run: Any, names: tuple[str, ...], p: Any, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run gives, and its derivatives along a last axis."""

    def values(p):
        made = run(**{name: p[k] for k, name in enumerate(names)})
        made = dict(made) if isinstance(made, Mapping) else {"value": made}
        made = {k: jnp.asarray(v, dtype=float) for k, v in made.items()}
        return made, made

    slope, made = jax.jacfwd(values, has_aux=True)(p)
    return made, slope


def _wide(scale: np.ndarray, of: Any, data: np.ndarray) -> np.ndarray:
    """For values as they are, for derivatives with a last axis."""
    return scale if np.ndim(of) == data.ndim else scale[:, None]


def _guessed(guess: Any) -> tuple[tuple[str, ...], np.ndarray]:
    if not isinstance(guess, Mapping) or not guess:
        raise TypeError(f"guess must be a dict of parameters, such as {{'mu': 0.3}}, got {guess!r}")
    for name, value in guess.items():
        if isinstance(value, bool | str) or np.ndim(value) != 0 or not np.isfinite(float(value)):
            raise ValueError(f"guess: {name} must be a number, got {value!r}")
    return tuple(guess), np.array([float(x) for x in guess.values()])


def _bounds(
    names: tuple[str, ...], p: np.ndarray, bounds: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(len(p), -np.inf), np.full(len(p), np.inf)
    for name, pair in bounds.items():
        if name not in names:
            raise ValueError(f"bounds: no parameter {name!r} is fitted, but {', '.join(names)}")
        k = names.index(name)
        try:
            low[k], high[k] = (float(x) for x in pair)
        except (TypeError, ValueError):
            raise ValueError(f"bounds: {name} needs (smallest, largest), got {pair!r}") from None
        if not low[k] < p[k] < high[k]:
            raise ValueError(
                f"bounds: the guess {name} = {p[k]:g} must lie between {low[k]:g} and {high[k]:g}"
            )
    return low, high


def _deviations(sigma: Any, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    by_name = sigma if isinstance(sigma, Mapping) else dict.fromkeys(data, 1.0 if sigma is None else sigma)
    if by_name.keys() != data.keys():
        raise ValueError(f"sigma has {', '.join(by_name)}, measured has {', '.join(data)}")
    made = {}
    for name, value in by_name.items():
        array = np.asarray(value, dtype=float)
        if not np.all(array > 0.0) or (array.ndim and array.shape != data[name].shape):
            shape = data[name].shape
            raise ValueError(
                f"sigma must be positive, one number or of the shape of measured {shape}, got {value!r}"
            )
        made[name] = np.broadcast_to(array, data[name].shape)
    return made


def _check_shapes(made: dict[str, Any], data: dict[str, np.ndarray]) -> None:
    if made.keys() != data.keys():
        raise ValueError(f"fit: run gives {', '.join(made)}, measured has {', '.join(data)}")
    for name, value in made.items():
        if value.shape != data[name].shape:
            raise ValueError(f"fit: run gives {name} of shape {value.shape}, measured has {data[name].shape}")
