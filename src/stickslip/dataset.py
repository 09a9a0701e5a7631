"""A solution as an `xarray.Dataset`: all its arrays, with the names and units of their entries."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .contact_states import STATES
from .events import KINDS
from .extras import need
from .laws import (
    Contact,
    Coulomb,
    CoulombContensou,
    FrictionElement,
    FrictionLaw,
    Pivoting,
    RectangularCoulomb,
    Rolling,
    unchecked,
)
from .results import RESULTS
from .serialize import RecordedSystem, class_name, describe, readable, short
from .solution import Solution, Stats
from .system import Label, System
from .validate import Labels, is_traced

if TYPE_CHECKING:
    from xarray import Dataset


class _Variable(NamedTuple):
    dims: tuple[str, ...]
    meaning: str
    unit: str = ""  # where one unit applies


_STEP = "over the step that ends at t"
_CODES = ", ".join(f"{k} {kind}" for k, kind in enumerate(KINDS) if kind)
_STATES = ", ".join(f"{k} {word}" for k, word in enumerate(STATES))
VARIABLES = {
    "t": _Variable(("t",), "time", "s"),
    "q": _Variable(("t", "coordinate"), "generalized coordinates"),
    "u": _Variable(("t", "velocity"), "generalized velocities"),
    "P_g": _Variable(("t", "constraint_g"), f"percussions of constraints on position {_STEP}"),
    "P_gamma": _Variable(("t", "constraint_gamma"), f"percussions of constraints on velocity {_STEP}"),
    "P_N": _Variable(("t", "contact"), f"normal percussions {_STEP}", "N s"),
    "P_F": _Variable(("t", "friction"), f"friction percussions {_STEP}"),
    "la_g": _Variable(("t", "constraint_g"), "forces of constraints on position"),
    "la_gamma": _Variable(("t", "constraint_gamma"), "forces of constraints on velocity"),
    "la_N": _Variable(("t", "contact"), "normal forces", "N"),
    "la_F": _Variable(("t", "friction"), "friction forces"),
    "Lambda_g": _Variable(("t", "constraint_g"), f"impulses of constraints on position {_STEP}"),
    "Lambda_gamma": _Variable(("t", "constraint_gamma"), f"impulses of constraints on velocity {_STEP}"),
    "Lambda_N": _Variable(("t", "contact"), f"normal impulses {_STEP}", "N s"),
    "Lambda_F": _Variable(("t", "friction"), f"friction impulses {_STEP}"),
    "order": _Variable(("t",), "order of the step that ends at t", "1"),
    "modes": _Variable(
        ("t", "law"), "whether the law is a constraint at t: contacts closed, friction sticking"
    ),
    "newton_iterations": _Variable(("step", "solve"), "Newton iterations", "1"),
    "fixed_point_iterations": _Variable(("step", "solve"), "fixed-point iterations", "1"),
    "residual": _Variable(("step", "solve"), "residual of the solve", "1"),
    "mode_failed": _Variable(
        ("step", "interaction"), "whether friction was as printed though contact persisted"
    ),
    "attempts": _Variable((), "steps that were computed", "1"),
    "steps": _Variable((), "steps that were kept", "1"),
    "smallest_gap": _Variable((), "smallest gap of an open contact, between rows too", "m"),
    "inaccurate": _Variable(("step",), "whether the step missed its tolerance and was accepted nevertheless"),
    "u_dot": _Variable(("t", "velocity"), "accelerations, after what happened at t"),
    "u_dot_before": _Variable(("t", "velocity"), "accelerations at the end of the step that ends at t"),
    "u_dot_quarter": _Variable(("t", "velocity"), "accelerations a quarter through the step that ends at t"),
    "event_t": _Variable(("event",), "times of events", "s"),
    "event_code": _Variable(("event",), f"what happened: {_CODES}"),
    "event_source": _Variable(
        ("event",), "where: index in the laws, then in the user's functions; -1: nowhere"
    ),
    "state": _Variable(("t", "interaction"), f"what the law does at t: {_STATES}"),
    "dt": _Variable(("t",), "the step that ends at t", "s"),
    "g_N": _Variable(("t", "contact"), "gaps", "m"),
    "energy": _Variable(("t",), "total energy", "J"),
    "body_position": _Variable(("t", "body", "axis"), "positions of bodies of a scene", "m"),
    "body_rotation": _Variable(("t", "body", "quaternion"), "their rotations, scalar first", "1"),
    "body_velocity": _Variable(("t", "body", "axis"), "their velocities", "m/s"),
}
STATISTICS = tuple(field.name for field in dataclasses.fields(Stats))
OF_BODIES = ("body_position", "body_rotation", "body_velocity")
DERIVED = ("dt", "g_N", "energy", "state", *OF_BODIES)
EVENTS = ("event_t", "event_code", "event_source")


def dims_of(name: str, by_row: bool) -> tuple[str, ...]:
    """Where times repeat (before and after an impact) the index is the row, and t a column."""
    return tuple("row" if by_row and dim == "t" else dim for dim in VARIABLES[name].dims)


def to_xarray(sol: Solution) -> "Dataset":
    """See `Solution.to_xarray`."""
    need("xarray", "files", "sol.to_xarray")
    return dataset(sol, values_of(sol))


def values_of(sol: Solution) -> dict[str, Any]:
    """By name, everything that is there."""
    if is_traced(sol):
        raise TypeError(
            "inside jit, vmap or a derivative there are no numbers yet: return the solution first"
        )
    own = {name: getattr(sol, name) for name in VARIABLES if name not in (*STATISTICS, *DERIVED, *EVENTS)}
    if sol.events is not None:
        own |= {name: getattr(sol.events, name.removeprefix("event_")) for name in EVENTS}
    statistics = {name: getattr(sol.stats, name) for name in STATISTICS}
    derived = {"dt": sol.dt, "g_N": sol.g_N(), "energy": sol.energy() if sol.has_energy else None}
    derived["state"] = sol.state_code().astype(np.int8) if sol.P_N.shape[1] + sol.P_F.shape[1] else None
    derived |= dict(zip(OF_BODIES, _of_bodies(sol), strict=False))
    return {name: value for name, value in (own | statistics | derived).items() if value is not None}


def _of_bodies(sol: Solution) -> tuple[Any, ...]:
    """Where the bodies of a scene are; of other systems nobody knows what a body is."""
    if isinstance(sol.system, RecordedSystem):
        return tuple(sol.system.rows.get(name) for name in OF_BODIES)
    if not hasattr(type(sol.system), "body_poses"):
        return ()
    from .scene.views import body_poses

    return sol._rows(body_poses, "t", "q", "u")


def dataset(sol: Solution, values: dict[str, Any]) -> "Dataset":
    import xarray as xr

    from . import __version__

    labels = all_labels(sol)
    data = {
        name: xr.Variable(dims_of(name, sol.by_row), np.asarray(value), _attributes(name, labels))
        for name, value in values.items()
    }
    coordinates = {}
    for dim, named in labels.items():
        if named:
            coordinates[dim] = xr.Variable(dim, np.array([label.name for label in named]))
        if named and dim in ("coordinate", "velocity", "friction"):
            coordinates[f"{dim}_unit"] = xr.Variable(dim, np.array([label.unit for label in named]))
    system, method = class_name(sol.system), class_name(sol.method)
    return xr.Dataset(
        {name: variable for name, variable in data.items() if name != "t"},
        {"t": data["t"], **coordinates},
        {
            "Conventions": "CF-1.8",
            "title": f"{short(system)} by {short(method)}",
            "system": system.replace(":", "."),
            "method": readable(describe(sol.method)),
            "result": result_name(sol.result),
            "stickslip_version": __version__,
        },
    )


def _attributes(name: str, labels: dict[str, tuple[Label, ...]]) -> dict[str, Any]:
    dims, meaning, unit = VARIABLES[name]
    shared = {label.unit for label in labels.get(dims[-1], ())} if dims and not unit else {unit}
    unit = shared.pop() if len(shared) == 1 else ""
    if name == "la_F":
        unit = unit.removesuffix(" s")
    codes = {"flag_values": np.arange(len(STATES), dtype=np.int8), "flag_meanings": " ".join(STATES)}
    flags = codes if name == "state" else {}
    return {"long_name": meaning} | flags | ({"units": unit} if unit else {})


def all_labels(sol: Solution) -> dict[str, tuple[Label, ...]]:
    """By dimension."""
    system, n_N = sol.system, sol.P_N.shape[1]
    if isinstance(system, RecordedSystem):
        return {
            dim: tuple(Label(*label) for label in named) for dim, named in json.loads(system.labels).items()
        }
    known = Labels.of(system, sol.q.shape[1], sol.u.shape[1], n_N)
    labels = {"coordinate": known.coordinates, "velocity": known.velocities, "contact": known.contacts}
    if sol.events is not None:
        labels["event"] = tuple(Label(f"{e.kind} {e.name}".strip()) for e in sol.events)
    labels["friction"] = tuple(_friction_labels(system, known.contacts))
    labels["interaction"] = tuple(Label(name) for name in interactions(system, known.contacts))
    if hasattr(type(system), "body_poses"):
        labels["body"] = tuple(Label(name) for name in system.frames.names)  # type: ignore[attr-defined]
        labels["axis"], labels["quaternion"] = (tuple(map(Label, letters)) for letters in ("xyz", "wxyz"))
    if sol.modes is not None:
        reservoirs = range(sol.modes.shape[1] - n_N)
        labels["law"] = (
            *(Label(c.name) for c in known.contacts),
            *(Label(f"friction {i}") for i in reservoirs),
        )
    return labels


def interactions(system: System, contacts: tuple[Label, ...]) -> list[str]:
    """What the laws of a system are called: contacts, then friction elements,
    which ``system.contacts`` may name as well.
    """
    with unchecked():
        laws = system.laws
    if len(system.contacts) == len(laws):
        return [name.strip() for name in system.contacts]
    return [label.name for label in contacts] + [f"element {i}" for i in range(len(laws) - len(contacts))]


def _friction_labels(system: System, contacts: tuple[Label, ...]) -> Iterator[Label]:
    """As P_F is ordered: a contact's laws count their components by kind."""
    with unchecked():
        laws = system.laws
    for owner, law in zip(interactions(system, contacts), laws, strict=True):
        seen: Counter[str] = Counter()
        for friction in law.friction if isinstance(law, Contact) else (law,):
            for kind, unit in _components(friction):
                yield Label(f"{owner} {kind} {seen[kind]}", unit)
                seen[kind] += 1


def _components(law: FrictionLaw | FrictionElement) -> list[tuple[str, str]]:
    """Kind and unit of the percussions of a law.

    What an element of constant size resists, only its system knows.
    """
    size = sum(len(ball.scales) for ball in law.balls())
    if isinstance(law, CoulombContensou):
        return [("sliding", "N s"), ("sliding", "N s"), ("pivoting", "N m s")]
    for kind, unit, classes in (
        ("sliding", "N s", (Coulomb, RectangularCoulomb)),
        ("pivoting", "N m s", (Pivoting,)),
        ("rolling", "N m s", (Rolling,)),
    ):
        if isinstance(law, classes):
            return [(kind, unit)] * size
    return [("friction", "")] * size


def result_name(result: Any) -> str:
    return next(name for name, member in RESULTS._name_to_item.items() if result == member)
