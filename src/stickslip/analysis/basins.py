"""Basins of attraction: to which motion each start comes.

Every start is run for ``transient`` periods; the states at the next ``keep`` multiples of the period say
where it is. A motion that comes back to itself after p of them, p <= keep/2, has period p; two belong
together if their p states do, whichever comes first. What does not come back is class 0.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..extras import need
from ..system import System
from ..validate import Labels, as_parameters
from .flow import length_of
from .sections import _counts, _strobed
from .sweep import sweep

FAILED, OTHER = -1, 0


def basins(
    system: System, starts: Mapping[str, Any], q0: Any, u0: Any, *, period: Any, transient: int = 100,
    keep: int = 8, classify: Callable[[np.ndarray, np.ndarray], int] | None = None, tolerance: float = 1e-3,
    method: Any = None, rtol: float = 1e-7, atol: float | None = None, executor: Any = None, out: Any = None,
    progress: bool | None = None,
) -> Any:  # fmt: skip
    """The motion that each start of a grid comes to, as an `xarray.Dataset` over the grid.

    ``starts`` are values by the names of coordinates and velocities; the others are those of (q0, u0).
    ``attractor`` is 1, 2, ... in the order of how many starts come to it, 0 where a motion has no period up
    to keep/2, -1 where a run failed (``message`` says why, such as a start beyond a wall); ``multiple`` is
    its period in those of the force, and q and u are states of it. States within ``tolerance``, of the
    largest of each entry, are the same. ``classify(q, u)``, of (keep, entries) states, gives a number of your
    own instead. ``executor`` and ``out`` are those of `ss.sweep`.
    """
    need("xarray", "files", "basins")
    system = as_parameters(system)
    _counts(transient=transient, keep=keep)
    q0, u0 = np.asarray(q0, dtype=float), np.asarray(u0, dtype=float)
    labels = Labels.of(system, len(q0), len(u0), 0)
    names = [label.name for label in (*labels.coordinates, *labels.velocities)]
    for name in starts:
        if name not in names:
            raise ValueError(f"starts: {type(system).__name__} has no {name!r}. It has {', '.join(names)}")
    places = tuple(names.index(name) for name in starts)
    T, options = float(length_of(period, system)), {"rtol": rtol, "atol": atol, "progress": False}
    # names of coordinates may be no words of Python's: members have numbers
    grid = {
        f"s{k}": np.atleast_1d(np.asarray(values, dtype=float)) for k, values in enumerate(starts.values())
    }
    settings = system, places, np.concatenate([q0, u0]), len(q0), T, transient, keep, method, options
    run = functools.partial(_from_start, settings)
    made = sweep(run, grid, executor=executor, out=out, progress=progress)
    made = made.rename({f"s{k}": name for k, name in enumerate(starts)})
    made = made.rename({"q_0": "crossing", "u_0": "crossing", "q_1": "coordinate", "u_1": "velocity"})
    q, u = (np.asarray(made[x].values).reshape(-1, keep, len(x0)) for x, x0 in (("q", q0), ("u", u0)))
    done, shape = made["status"].values.ravel() == 1, made["status"].shape
    if classify is None:
        attractor, multiple = grouped(np.concatenate([q, u], axis=2), done, tolerance)
        made["multiple"] = (tuple(starts), multiple.reshape(shape))
    else:
        attractor = np.array(
            [int(classify(a, b)) if ok else FAILED for a, b, ok in zip(q, u, done, strict=True)]
        )
    made["attractor"] = (tuple(starts), attractor.reshape(shape))
    return made.assign_coords(
        coordinate=[x.name for x in labels.coordinates], velocity=[x.name for x in labels.velocities]
    )


def _from_start(settings: tuple[Any, ...], **values: float) -> dict[str, np.ndarray]:
    system, places, x0, nq, T, transient, keep, method, options = settings
    x = x0.copy()
    x[list(places)] = [values[f"s{k}"] for k in range(len(places))]
    _, q, u = _strobed(system, method, x[:nq], x[nq:], T, transient, keep, options)
    return {"q": q, "u": u}


def grouped(x: np.ndarray, done: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The number of the motion of each member, and how many periods it has; x are states (members,
    keep, entries).
    """
    attractor = np.where(done, OTHER, FAILED)
    multiple = np.zeros(len(x), dtype=int)
    if not done.any():
        return attractor, multiple
    size = np.abs(x[done]).max(axis=(0, 1))
    x = x / np.where(size > 0.0, size, 1.0)
    for p in range(x.shape[1] // 2, 0, -1):  # the smallest last: it stays
        back = np.abs(x[:, p:] - x[:, :-p]).max(axis=(1, 2)) <= tolerance
        multiple[back & done] = p
    waiting, groups = multiple > 0, []
    while waiting.any():
        first = int(np.argmax(waiting))
        p = multiple[first]
        same = np.zeros(len(x), dtype=bool)
        for shift in range(p):
            far = np.abs(x[:, :p] - np.roll(x[first, :p], shift, axis=0)).max(axis=(1, 2))
            same |= waiting & (multiple == p) & (far <= 10.0 * tolerance)
        groups.append(same)
        waiting &= ~same
    for number, same in enumerate(sorted(groups, key=np.count_nonzero, reverse=True), start=1):
        attractor[same] = number
    return attractor, multiple


def fractions(data: Any) -> dict[int, float]:
    """Parts of the starts that come to each motion, of those whose run did not fail."""
    attractor = data["attractor"].values
    there = attractor[attractor != FAILED]
    return {int(k): float(np.mean(there == k)) for k in np.unique(there)}
