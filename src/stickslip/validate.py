"""Bad input is refused at the door, with the offending name and value."""

import contextlib
import difflib
import math
import os
import reprlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from . import check_frames
from .contract import returned
from .derive import Directions, Dynamics, Situation
from .laws import Contact, FrictionElement, unchecked
from .linalg import spd_solve
from .scales import START
from .stacked import StackedLaws
from .system import Label, LagrangianSystem, System

Vector = Array | np.ndarray  # NumPy's outside of traces


def as_parameters(system: Any) -> System:
    """Python floats become arrays: a new value of a parameter must not mean a new compilation."""
    if isinstance(system, type) and issubclass(system, System):
        raise TypeError(
            f"system is the class {system.__name__}: give an instance of it, {system.__name__}(...)"
        )
    if not isinstance(system, System):
        got = (
            repr(system)
            if system is None or isinstance(system, str | int | float)
            else f"a {type(system).__name__}"
        )
        hint = ": give its .system" if isinstance(getattr(system, "system", None), System) else ""
        raise TypeError(f"system must be an instance of a subclass of ss.System, got {got}{hint}")
    _check_fields(system)
    fields = vars(system)
    for name in ("M", "h", "B", "beta", "g", "gamma", "g_N", "gamma_F"):
        if name in fields and not callable(fields[name]):
            raise TypeError(
                f"{type(system).__name__}.{name} is a value, {getattr(system, name)!r}, and hides the "
                f"function {name} of a"
                " system: give that parameter another name"
            )
    return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, float) else x, system)


def _check_fields(system: System) -> None:
    """Parameters are numbers and arrays, in whatever containers; texts are kept as they are."""
    for path, value in jax.tree_util.tree_leaves_with_path(system):
        name = f"{type(system).__name__}{jax.tree_util.keystr(path)}"
        if callable(value):
            raise TypeError(
                f"{name} is a function, {value!r}: make it a method of the class, or declare the field as "
                "one that is not a"
                " parameter, `name: Callable = equinox.field(static=True)`"
            )
        if not isinstance(value, _PARAMETERS):
            raise TypeError(
                f"{name} is a {type(value).__name__}, {reprlib.repr(value)}: parameters are numbers and "
                "arrays; other"
                " objects are declared with `equinox.field(static=True)`"
            )


_PARAMETERS = (int, float, complex, str, bytes, np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct)


def is_count(x: Any) -> bool:
    """Whether x is a whole number, at least 1."""
    number = isinstance(x, int | float | np.number) and not isinstance(x, bool)
    return number and math.isfinite(x) and float(x).is_integer() and x >= 1


def is_traced(*trees: Any) -> bool:
    """Whether we are inside jit, vmap or a derivative."""
    # Under jit even a constant is traced.
    leaves = [*jax.tree.leaves(trees), jnp.zeros(())]
    return any(isinstance(x, jax.core.Tracer) for x in leaves)


def nearest(kind: str, name: str, known: Iterable[str]) -> ValueError:
    """An error for an unknown name that suggests the nearest one."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ValueError(f"unknown {kind} {name!r}{hint} Known: {', '.join(known)}" if hint else
                      f"unknown {kind} {name!r}. Known: {', '.join(known)}")  # fmt: skip


def check_times(t0: Any, t1: Any, dt: Any) -> None:
    for name, value in (("t0", t0), ("t1", t1), ("dt", dt)):
        if isinstance(value, bool | str) or value is None:
            raise TypeError(f"{name} must be a number, got {value!r}")
        if isinstance(value, jax.core.Tracer):
            raise TypeError(f"{name} must be a Python number: it decides how many steps are made")
        try:
            ok = math.isfinite(value)
        except TypeError:
            raise TypeError(f"{name} must be a number, got {value!r}") from None
        if not ok:
            raise ValueError(f"{name} must be finite, got {value}")
    if dt <= 0.0:
        raise ValueError(f"dt must be positive, got {dt}")
    if t1 <= t0:
        raise ValueError(f"t1 must be larger than t0, got t0 = {t0} and t1 = {t1}")


def check_rows(
    system: System, n_solves: int, rows: int, dt: float, times: tuple[float, float], q: Vector, u: Vector
) -> None:
    """Refuses a run whose rows cannot be told apart in time, or do not fit into memory."""
    t0, t1 = times
    if max(abs(t0), abs(t1)) + dt / 2 in (t0, t1, -t0, -t1):
        raise ValueError(
            f"dt = {dt:g} vanishes beside t0 = {t0:g} and t1 = {t1:g}: times are known to 16 digits only"
        )
    if rows < MANY_ROWS:
        return
    laws, t = StackedLaws.of(system.laws), jnp.asarray(t0)
    bilateral = sum(
        jax.eval_shape(_as_array(f), *args).size
        for f, args in ((system.g, (t, q)), (system.gamma, (t, q, u)))
    )
    numbers = 1 + q.shape[0] + u.shape[0] + bilateral + laws.n_N + laws.n_F + 3 * n_solves
    need, free = 2 * 8 * numbers * rows, _free_memory()  # chunks, then all of them
    what = f"{rows:.3g} steps of dt = {dt:g}: their rows need about {need / 1e9:.3g} GB of memory"
    if free is not None and need > free:
        raise ValueError(
            f"{what}, {free / 1e9:.3g} GB are free: use a larger dt, a shorter t1 - t0 or max_steps"
        )
    if need > 1e9 and not is_traced(q, u):
        print(f"stickslip: {what}", file=sys.stderr)


MANY_ROWS = 1_000_000


def _free_memory() -> float | None:
    """In bytes; None where nobody says."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return 1024.0 * float(line.split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    return None


def _vector(name: str, value: Any) -> Any:
    if value is None:
        what = "position" if name == "q0" else "velocity"
        raise TypeError(f"{name} is missing: give the {what} at the start, {name}=[...]")
    try:
        array = _array(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a vector of numbers, got {reprlib.repr(value)}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a vector of real numbers, got {reprlib.repr(value)}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector, got shape {array.shape}")
    if not array.shape[0]:
        raise ValueError(f"{name} is empty: a system has at least one coordinate and one velocity")
    if not isinstance(array, jax.core.Tracer) and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, got {array}")
    return array.astype(float)


def _array(value: Any) -> Any:
    traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(value))
    return jnp.asarray(value) if traced else np.asarray(value)


class _Counts(NamedTuple):
    """How many rows laws have."""

    n_N: int
    n_F: int


def _checked_laws(system: System) -> _Counts:
    """Laws with coefficients that make sense; errors name the contact."""
    check_frames.check_stated(system)
    with unchecked():
        stated = system.laws
    if callable(stated) or not isinstance(stated, tuple | list):
        got = (
            "a function: write @property above it"
            if callable(stated)
            else f"{stated!r}: write (ss.Contact(...),)"
        )
        raise TypeError(
            f"system.laws must be an attribute holding a tuple of laws (a field or a property), got {got}"
        )
    for i, law in enumerate(stated):
        if not isinstance(law, Contact | FrictionElement):
            raise TypeError(f"laws[{i}] must be an ss.Contact or an ss.FrictionElement, got {law!r}")
        try:
            law.check()
        except (TypeError, ValueError) as error:
            raise type(error)(f"{_place(i, law)}: {error}") from None
    is_contact = [isinstance(law, Contact) for law in stated]
    if sorted(is_contact, reverse=True) != is_contact:
        raise ValueError("laws: all ss.Contact must come before any ss.FrictionElement")
    return _Counts(sum(is_contact), sum(map(_friction_velocities, stated)))


class Labels(NamedTuple):
    """What the entries of q, u and g_N are called."""

    coordinates: tuple[Label, ...]
    velocities: tuple[Label, ...]
    contacts: tuple[Label, ...]

    @classmethod
    def of(cls, system: System, nq: int, nu: int, n_N: int) -> "Labels":
        """As the system says, or counted; raises where what it says does not fit."""
        coordinates = _labels(system, "coordinates", nq, f"q has {nq} entries", Label.of)
        velocities = _labels(system, "velocities", nu, f"u has {nu} entries", Label.of)
        with unchecked():
            count = len(system.laws)
        stated = system.contacts
        every = len(stated) == count if isinstance(stated, tuple | list) else False
        why = f"there are {n_N} ss.Contact in laws" + (
            f", {count} with friction elements" if count > n_N else ""
        )
        contacts = _labels(system, "contacts", count if every else n_N, why, Label)[:n_N]
        kind = type(system)
        if coordinates and not velocities and kind.B is System.B and kind.beta is System.beta:
            velocities = tuple(label.rate for label in coordinates)
        return cls(
            coordinates or tuple(Label(f"q_{i}") for i in range(nq)),
            velocities or tuple(Label(f"u_{i}") for i in range(nu)),
            contacts or tuple(Label(f"contact {i}") for i in range(n_N)),
        )


def _labels(
    system: System, attribute: str, wanted: int, why: str, parse: Callable[[str], Label]
) -> tuple[Label, ...]:
    stated = getattr(system, attribute)
    if callable(stated) or not isinstance(stated, tuple | list):
        raise TypeError(
            f"system.{attribute} must be an attribute holding a tuple of names (a field or a property)"
        )
    if not stated:
        return ()
    labels: dict[str, Label] = {}
    for i, text in enumerate(stated):
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"system.{attribute}[{i}] must be a name, got {text!r}")
        try:
            label = parse(text)
        except ValueError as error:
            raise ValueError(f"system.{attribute}[{i}]: {error}") from None
        if label.name in labels:
            raise ValueError(f"system.{attribute}[{i}]: the name {label.name!r} is taken")
        labels[label.name] = label
    if len(labels) != wanted:
        raise ValueError(
            f"system.{attribute} = {reprlib.repr(stated)}: {len(labels)} names, expected {wanted}: {why}"
        )
    return tuple(labels.values())


def _check_shapes(system: System, laws: _Counts, t: Any, q: Vector, u: Vector) -> None:
    """What a user's functions return, against the contract."""
    nq, nu = q.shape[0], u.shape[0]
    default_B = type(system).B is System.B
    if default_B and nq != nu:
        raise ValueError(
            f"q0 has {nq} entries and u0 has {nu}: they must agree, or the system must define B(t, q) of "
            f"shape ({nq}, {nu})"
        )
    times = system.switching_times
    one_by_one = isinstance(times, tuple | list) and all(np.ndim(x) == 0 for x in times)
    if callable(times) or not (one_by_one or np.ndim(times) == 1):
        raise TypeError(
            "system.switching_times must be an attribute holding a tuple of numbers (a field or a property)"
        )
    known = not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(times))
    if known and not np.all(np.isfinite(np.asarray(times, dtype=float))):
        raise ValueError(f"system.switching_times must be finite, got {times}")
    # Tracing the user's functions takes longer than a thousand steps: once for every kind of system.
    key = _kind(system, q, u)
    if key is not None and key in _shapes_seen:
        return
    tq, tqu = (t, q), (t, q, u)
    check_frames.check_shapes(system, t, q)
    expected: list[tuple[str, tuple[Any, ...], tuple[int, ...] | None]] = []
    if isinstance(system, LagrangianSystem):  # of which M and h are made
        expected += [("T", tqu, ()), ("V", tq, ()), ("f", tqu, (nu,))]
    expected += [
        ("M", tq, (nu, nu)), ("h", tqu, (nu,)), ("B", tq, (nq, nu)), ("beta", tq, (nq,)),
        ("g", tq, None), ("gamma", tqu, None), ("g_N", tq, (laws.n_N,)), ("gamma_F", tqu, (laws.n_F,)),
    ]  # fmt: skip
    if hasattr(system, "normalize"):
        expected.append(("normalize", (q,), (nq,)))
    if hasattr(system, "energy"):
        expected.append(("energy", tqu, ()))
    for name, args, shape in expected:
        out = returned(name, getattr(system, name), {1: "q", 2: "t, q", 3: "t, q, u"}[len(args)], *args)
        if shape is not None and out.shape != shape:
            raise ValueError(
                f"{name} returns shape {out.shape}, expected {shape}{_why(name, system, nq, nu)}"
            )
        if shape is None and len(out.shape) != 1:
            raise ValueError(f"{name} returns shape {out.shape}, expected a vector")
    if key is not None:
        _shapes_seen.add(key)


_shapes_seen: set[Any] = set()


def _kind(system: System, q: Vector, u: Vector) -> Any:
    """All that shapes can depend on: class, static fields,
    shapes and types of the parameters; None if not hashable.
    """
    leaves, structure = jax.tree.flatten(system)
    kinds = tuple(x if isinstance(x, str) else (jnp.shape(x), jnp.result_type(x)) for x in leaves)
    key = (structure, kinds, q.shape, u.shape)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _friction_velocities(law: Contact | FrictionElement) -> int:
    frictions = law.friction if isinstance(law, Contact) else (law,)
    return sum(len(ball.scales) for f in frictions for ball in f.balls())


def _place(i: int, law: Contact | FrictionElement) -> str:
    return f"contact {i}" if isinstance(law, Contact) else f"friction element laws[{i}]"


def _as_array(f: Any) -> Any:
    return lambda *a: jnp.asarray(f(*a))


def _why(name: str, system: System, nq: int, nu: int) -> str:
    if name == "g_N":
        n = sum(isinstance(law, Contact) for law in system.laws)
        return f": there are {n} ss.Contact in laws, one per gap is needed"
    if name == "gamma_F":
        if not system.laws:
            return ": there are no laws; write laws = (ss.Contact(friction=ss.Coulomb(mu)),)"
        counts = [
            f"{_place(i, law)} has {_friction_velocities(law) or 'no friction'}"
            for i, law in enumerate(system.laws)
        ]
        none = not any(map(_friction_velocities, system.laws))
        remedy = "; write ss.Contact(friction=ss.Coulomb(mu))" if none else ""
        return f": friction velocities of the laws are {', '.join(counts)}{remedy}"
    return f": q0 has {nq} entries and u0 has {nu}" if name in ("M", "h", "B", "beta", "normalize") else ""


def start_values(dynamics: Dynamics, t: Array, q: Array, u: Array, now: Situation) -> dict[str, Any]:
    """Everything about a start that can be wrong."""
    system, (at, _, gaps, near) = dynamics.system, now
    g_dot, gamma, g_N_dot, gamma_F = dynamics.split(at.velocities(u))
    g_dot_near, gamma_near, g_N_dot_near, gamma_F_near = dynamics.split(near.velocity)
    one_way = np.repeat(dynamics.laws.set.half_lines, dynamics.laws.set.dimensions)
    gamma_is_affine, gamma_F_is_affine = _are_affine(dynamics, t, q, u, at)
    return check_frames.start_values(system, t, q, u) | {
        "M": dynamics.M(t, q), "h": dynamics.h(t, q, u), "B": jnp.asarray(system.B(t, q)),
        "beta": jnp.asarray(system.beta(t, q)), "g": gaps[: dynamics.rows.g], "g_dot": g_dot, "gamma": gamma,
        "g_N": gaps[dynamics.rows.g :], "g_N_dot": g_N_dot, "gamma_F": gamma_F,
        "in_range": dynamics.laws.in_range(), "backwards": one_way & (gamma_F < -gamma_F_near),
        "gamma_is_affine": gamma_is_affine, "gamma_F_is_affine": gamma_F_is_affine,
        "near": {
            "g": near.start[: dynamics.rows.g], "g_dot": g_dot_near, "gamma": gamma_near,
            "g_N": near.start[dynamics.rows.g :], "closed": near.closed[dynamics.rows.g :],
            "g_N_dot": g_N_dot_near, "gamma_F": gamma_F_near,
        },
    }  # fmt: skip


def _trial_velocities(dynamics: Dynamics, u: Array) -> Array:
    """The start's own, and two of its energy (or of energy one) with other signs and shares."""
    K = dynamics.energy_norm(u)
    j, size = jnp.arange(u.shape[0]), dynamics.mobility * jnp.where(K > 0.0, K, 1.0)
    others = (
        size * jnp.where(j % 2 == 0, 1.0 + 0.1 * j, -0.7),
        -size * jnp.where(j % 3 == 0, 0.3, 1.1 + 0.07 * j),
    )
    return jnp.stack([u, *others])


def _are_affine(dynamics: Dynamics, t: Array, q: Array, u: Array, at: Directions) -> tuple[Array, Array]:
    """Whether gamma and gamma_F are W^T u + chi for other u too."""

    def compared(u):
        rows = dynamics.split(at.velocities(u)), dynamics.split(at.scales(u).speed)
        sums, terms = (jnp.concatenate([r.gamma, r.F]) for r in rows)
        stated = dynamics.gammas(t, q, u)
        return jnp.abs(stated - sums), terms + jnp.abs(stated)

    off, size = jax.vmap(compared)(_trial_velocities(dynamics, u))
    # Trials have one energy: what is large in one of them is what round-off in another is measured by.
    of_all = jnp.all(off <= START * jnp.max(size, axis=0), axis=0)
    return of_all[: dynamics.rows.gamma], of_all[dynamics.rows.gamma :]


def start_is_consistent(v: dict[str, Any]) -> Array:
    """The checks of `check_start` as one flag that can be traced."""
    ok, near = v["in_range"] & jnp.all(v["gamma_is_affine"]) & jnp.all(v["gamma_F_is_affine"]), v["near"]
    for name in ("g", "g_dot", "gamma"):
        ok &= jnp.all(jnp.abs(v[name]) <= near[name])
    ok &= ~jnp.any(v["backwards"]) & check_frames.start_is_consistent(v)
    ok &= jnp.all(v["g_N"] >= -near["g_N"]) & jnp.all(
        (v["g_N"] > near["closed"]) | (v["g_N_dot"] >= -near["g_N_dot"])
    )
    ok &= jnp.all(jnp.isfinite(spd_solve(v["M"], v["h"][:, None])))
    ok &= jnp.all(jnp.abs(v["M"] - v["M"].T) <= 1e-8 * jnp.max(jnp.abs(v["M"]), initial=0.0))
    return ok & jnp.all(jnp.array([jnp.all(jnp.isfinite(value)) for value in jax.tree.leaves(v)]))


CROWDED = 2  # contact rows per velocity from which on contacts are expected to be redundant


def checked_vectors(
    system: System, t0: float, q0: Any, u0: Any, method: Any = None
) -> tuple[Vector, Vector, bool, bool]:
    """q0 and u0 as vectors, whether anything is traced, and whether contacts crowd;
    values are checked by `check_start`.
    """
    traced = is_traced(system, q0, u0, method)
    q, u = _vector("q0", q0), _vector("u0", u0)
    laws = _checked_laws(system)
    _check_shapes(system, laws, np.asarray(float(t0)), q, u)
    Labels.of(system, q.shape[0], u.shape[0], laws.n_N)
    return q, u, traced, laws.n_N + laws.n_F >= CROWDED * u.shape[0]


def friction_owners(system: System) -> list[str]:
    """To which law each friction velocity belongs."""
    with unchecked():
        stated = system.laws
    names = {i: f", {name}" for i, name in enumerate(system.contacts or ())}
    return [
        f"{_place(i, law)}{names.get(i, '')}"
        for i, law in enumerate(stated)
        for _ in range(_friction_velocities(law))
    ]


def _check_velocities(v: dict[str, Any], system: System) -> None:
    for name in ("gamma", "gamma_F"):
        for i in np.flatnonzero(~v[f"{name}_is_affine"]):
            of = f" ({friction_owners(system)[int(i)]})" if name == "gamma_F" else ""
            raise ValueError(
                f"{name}[{i}]{of} is not affine in u: its derivative by u changes with u. Velocities of "
                "constraints and of"
                " friction are W(t, q)^T u + chi(t, q); a force that depends on them otherwise belongs to h"
            )
    if v["backwards"].any():
        first = int(np.flatnonzero(v["backwards"])[0])
        owner = friction_owners(system)[first]
        raise ValueError(
            f"the start moves against a one-way element: gamma_F[{first}] ({owner}) has the sign that its "
            "infinite bound"
            " rules out"
        )


def check_start(values: dict[str, Any], t0: float, system: System) -> None:
    """Refuses a start, naming what is wrong with it."""
    v = {name: np.asarray(value) for name, value in values.items() if name != "near"}
    near = {name: np.asarray(value) for name, value in values["near"].items()}
    for name, value in v.items():
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{name} is not finite at the start (t = {t0}): {value.tolist()}")
    M = v["M"]
    if not np.abs(M - M.T).max(initial=0.0) <= 1e-8 * np.abs(M).max(initial=0.0):
        raise ValueError(f"M is not symmetric at the start (t = {t0}): {M.tolist()}")
    eigenvalues = np.linalg.eigvalsh(M)
    if eigenvalues.min(initial=np.inf) <= 0.0:
        raise ValueError(
            f"M is not positive definite at the start (t = {t0}): smallest eigenvalue {eigenvalues.min()}"
        )
    if not v["in_range"]:
        raise ValueError(
            "a law has a coefficient out of range: mu and force >= 0, 0 <= e <= 1, axes and radius > 0, "
            "lower < upper"
        )
    check_frames.check_start(v, near, system)
    _check_velocities(v, system)
    for name in ("g", "g_dot", "gamma"):
        for i in np.flatnonzero(np.abs(v[name]) > near[name]):
            allowed = f"at most {near[name][i]:.1e} is allowed, {START:g} of what it is the sum of"
            raise ValueError(f"the start violates {name}[{i}] = 0: it is {v[name][i]:.3e} ({allowed})")
    for k, gap in enumerate(v["g_N"]):
        if gap < -near["g_N"][k]:
            raise ValueError(f"the start penetrates: g_N[{k}] = {gap:.3e}")
        if gap <= near["closed"][k] and v["g_N_dot"][k] < -near["g_N_dot"][k]:
            raise ValueError(
                f"contact {k} is closed at the start but approaches: g_N[{k}] = {gap:.3e},"
                f" g_N_dot[{k}] = {v['g_N_dot'][k]:.3e}; start after the impact, or a little above it"
            )
