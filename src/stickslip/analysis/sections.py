"""States where a motion crosses a section, and how they change with a parameter:
Poincare maps and bifurcation diagrams.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from ..extras import need
from ..results import SimulationError
from ..simulate import simulate
from ..solution import Solution
from ..system import System
from ..validate import Labels, as_parameters, is_count
from .flow import length_of
from .sweep import sweep

DIRECTIONS = {"up": (1,), "down": (-1,), "both": (1, -1)}


def poincare(
    system: System, q0: Any, u0: Any, *, period: Any = None, section: Any = None, t1: float | None = None,
    n: int = 100, skip: int = 0, method: Any = None, rtol: float = 1e-8, atol: float | None = None,
    progress: bool | None = None,
) -> Any:  # fmt: skip
    """States at n crossings of a section, after the first ``skip``, as an `xarray.Dataset`.

    With ``period`` (a number or a function of the system) once in every period of what drives the system, the
    first at t = 0; with ``section``, a function (t, q, u) with an attribute ``direction`` as events have it,
    where it is zero, until t1.
    """
    need("xarray", "files", "poincare")
    system = as_parameters(system)
    _counts(n=n)
    if (period is None) == (section is None):
        raise ValueError("poincare: give period=... of what drives the system, or section=..., one of them")
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "progress": progress}
    if section is None:
        T = float(length_of(period, system))
        t, q, u = _strobed(system, method, q0, u0, T, skip, n, options)
        return _dataset(system, t, q, u)
    if t1 is None:
        raise ValueError("poincare: a section needs t1=..., the time until which crossings are looked for")
    sol = simulate(system, method, q0, u0, t1=t1, events=[section], **options)
    crossings = sol.events[np.asarray(sol.events.source) >= sol.events.n_laws].t
    rows = np.searchsorted(sol.t, crossings, side="right")[skip : skip + n] - 1  # after what happens there
    return _dataset(system, *(np.asarray(x)[rows] for x in (sol.t, sol.q, sol.u)))


def _counts(**numbers: Any) -> None:
    for name, value in numbers.items():
        if not is_count(value):
            raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")


def _strobed(
    system, method, q0, u0, T: float, skip: int, n: int, options
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t, q, u at n multiples of T from ``skip`` on."""
    times = T * np.arange(skip, skip + n)
    if times[-1] == 0.0:
        return times, np.asarray(q0, dtype=float)[None], np.asarray(u0, dtype=float)[None]
    sol: Solution = simulate(system, method, q0, u0, t1=times[-1], t_eval=times, **options)
    return times, np.asarray(sol.q), np.asarray(sol.u)


def _dataset(system: System, t: np.ndarray, q: np.ndarray, u: np.ndarray) -> Any:
    import xarray as xr

    names = Labels.of(system, q.shape[-1], u.shape[-1], 0)
    return xr.Dataset(
        {
            "t": ("crossing", t, {"units": "s"}),
            "q": (("crossing", "coordinate"), q),
            "u": (("crossing", "velocity"), u),
        },
        {"coordinate": [x.name for x in names.coordinates], "velocity": [x.name for x in names.velocities]},
    )


# ---- a parameter that changes


def bifurcation(
    system: System, parameter: str, values: Any, q0: Any, u0: Any, *, period: Any, transient: int = 200,
    keep: int = 100,
    direction: str | None = None, method: Any = None, rtol: float = 1e-6, atol: float | None = None,
    executor: Any = None, out: Any = None, progress: bool | None = None,
) -> Any:  # fmt: skip
    """Brute force: for each value of a parameter the states at ``keep`` multiples of the period,
    after ``transient`` ones.

    Every value begins at (q0, u0), and values are shared out among cores as `ss.sweep` does it, whose
    ``executor`` and ``out`` this takes. With ``direction`` "up", "down" or "both" each value begins where the
    one before ended instead: where two motions coexist the branches differ. An `xarray.Dataset` with q and u
    over the parameter, the crossing, and the direction.
    """
    system = as_parameters(system)
    fields = [field.name for field in dataclasses.fields(system)]  # type: ignore[arg-type]
    if parameter not in fields:
        raise ValueError(
            f"{type(system).__name__} has no parameter {parameter!r}. It has {', '.join(fields) or 'none'}"
        )
    _counts(transient=transient, keep=keep)
    values = np.atleast_1d(np.asarray(values, dtype=float))
    start = np.asarray(q0, dtype=float), np.asarray(u0, dtype=float)
    settings: Any = (
        system,
        parameter,
        period,
        start,
        transient,
        keep,
        method,
        {"rtol": rtol, "atol": atol, "progress": False},
    )
    shared = {"executor": executor, "out": out, "progress": progress}
    if direction is None:
        run = functools.partial(_settled, settings, parameter)
        made = sweep(run, {parameter: values}, **shared)
    elif direction in DIRECTIONS:
        made = sweep(
            functools.partial(_followed, settings, values), {"direction": DIRECTIONS[direction]}, **shared
        )
    else:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, or None, got {direction!r}")
    return _named(made, system, parameter, values, followed=direction is not None)


def _settled(settings: tuple[Any, ...], name: str, **value: float) -> dict[str, Any]:
    q, u = _at(settings, value[name], settings[3])
    return {"q": q, "u": u}


def _at(settings: Any, value: float, start: Any) -> tuple[np.ndarray, np.ndarray]:
    system, parameter, period, _, transient, keep, method, options = settings
    system = dataclasses.replace(system, **{parameter: np.asarray(value)})
    q0, u0 = start
    return _strobed(system, method, q0, u0, float(length_of(period, system)), transient, keep, options)[1:]


def _followed(settings: tuple[Any, ...], values: np.ndarray, direction: float) -> dict[str, Any]:
    """One after another, each from where the one before ended; those that fail are nan,
    and the next begins anew.
    """
    order = np.argsort(values)[:: int(direction)]
    start = settings[3]
    q, u = (np.zeros((len(values), settings[5], len(x))) for x in start)
    reached, why = np.zeros(len(values), dtype=bool), ""
    for k in order:
        try:
            q[k], u[k] = _at(settings, values[k], start)
            start, reached[k] = (q[k, -1], u[k, -1]), True
        except SimulationError as error:
            start, why = settings[3], str(error)
    if not reached.any():
        raise RuntimeError(f"no value of the parameter could be run, the last said: {why}")
    return {"q": q, "u": u, "reached": reached}


def _named(made: Any, system: System, parameter: str, values: np.ndarray, followed: bool) -> Any:
    if followed:
        axes = {
            "q": (parameter, "crossing", "coordinate"),
            "u": (parameter, "crossing", "velocity"),
            "reached": (parameter,),
        }
        made = made.rename({f"{name}_{i}": axis for name, of in axes.items() for i, axis in enumerate(of)})
        made[["q", "u"]] = made[["q", "u"]].where(made["reached"])
        words = ["up" if d > 0 else "down" for d in made["direction"].values]
        made = made.assign_coords({parameter: values, "direction": words})
    else:
        made = made.rename({"q_0": "crossing", "u_0": "crossing", "q_1": "coordinate", "u_1": "velocity"})
    names = Labels.of(system, made.sizes["coordinate"], made.sizes["velocity"], 0)
    return made.assign_coords(
        coordinate=[x.name for x in names.coordinates], velocity=[x.name for x in names.velocities]
    )
