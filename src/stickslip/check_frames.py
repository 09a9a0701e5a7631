"""What a system says in ``touches``, against what can be derived of it; errors name the contact."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from . import frames
from .contract import returned
from .frames import PIVOT, ROLL, ROLL_1, SLIDE_1, ContactFrame, columns_of
from .laws import Contact, FrictionElement, unchecked
from .system import System


def check_stated(system: System) -> None:
    """Whether it is a tuple of frames, and whether anything of theirs is stated twice."""
    with unchecked():
        stated = system.touches
    if callable(stated) or not isinstance(stated, tuple | list):
        got = (
            "a function: write @property above it"
            if callable(stated)
            else f"{stated!r}: write (ss.ContactFrame(...),)"
        )
        raise TypeError(f"system.touches must be an attribute holding a tuple of ss.ContactFrame, got {got}")
    for i, frame in enumerate(stated):
        if not isinstance(frame, ContactFrame):
            raise TypeError(f"system.touches[{i}] must be an ss.ContactFrame, got {frame!r}")
    if not stated:
        return
    names = tuple(name for frame in stated for name in frame.names)
    derived = tuple(law for frame in stated for law in frame.laws)
    with unchecked():  # what nobody overrides is as derived
        contacts = system.contacts if _overrides(system, "contacts") else names
        laws = system.laws if _overrides(system, "laws") else derived
    if isinstance(contacts, tuple | list) and tuple(contacts)[: len(names)] != names:
        _twice(system, "contacts", "names it once more", "super().contacts")
    if not isinstance(laws, tuple | list):
        return  # `validate` says so
    if len(laws) < len(derived) or (laws is not derived and not all(map(_same, derived, laws))):
        _twice(system, "laws", "gives its law once more", "super().laws")
    touching = sum(isinstance(law, Contact) for law in laws)
    if _overrides(system, "g_N") and touching == len(derived):
        _twice(system, "g_N", "gives its gap once more", "super().g_N(t, q)")
    if _overrides(system, "gamma_F") and _count(laws) == _count(derived):
        _twice(system, "gamma_F", "gives its friction velocity once more", "super().gamma_F(t, q, u)")


def _overrides(system: System, name: str) -> bool:
    """Whether it is not `System`'s own, which follows from ``touches``."""
    own = next(vars(cls)[name] for cls in type(system).__mro__ if name in vars(cls))
    return own is not vars(System)[name] or name in vars(system)


def _twice(system: System, name: str, what: str, before: str, contact: str = "") -> None:
    first = contact or frames.names(system)[0]
    raise ValueError(
        f"ContactFrame({first!r}) says what this contact is, and {type(system).__name__}.{name} {what}: leave"
        f" {name} away; what belongs to other contacts comes behind {before}"
    )


def _count(laws: Any) -> int:
    friction = (law.friction if isinstance(law, Contact) else (law,) for law in laws)
    return sum(len(ball.scales) for group in friction for part in group for ball in part.balls())


def _same(a: Contact, b: Contact | FrictionElement) -> bool:
    """Whether two laws agree, as far as values are known."""
    kinds: list[Any] = [jax.tree.structure(law) for law in (a, b)]
    if kinds[0] != kinds[1]:
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    traced = jax.core.Tracer
    return all(isinstance(x, traced) or isinstance(y, traced) or np.array_equal(x, y) for x, y in pairs)


def check_shapes(system: System, t: Any, q: Array | np.ndarray) -> None:
    """What the functions of all frames return, and whether the laws can be had of them."""
    for frame in system.touches:
        rows: tuple[int, ...] = (len(frame.names),) if isinstance(frame.name, tuple | list) else ()
        dim = _check_place(system, frame, rows, t, q)
        allowed: dict[str, list[tuple[int, ...]]] = {
            "normal": [(dim,), (*rows, dim)], "opposite": [(dim,), (*rows, dim)], "gap": [rows],
        }  # fmt: skip
        for name, shapes in allowed.items():
            _check_shape(frame, name, shapes, t, q)
        tangents = _shape(frame, "tangents", t, q)
        k = dim - 1 if tangents is None else tangents[-2] if len(tangents) > 1 else 0
        if tangents is not None and (tangents not in ((k, dim), (*rows, k, dim)) or not 1 <= k <= dim - 1):
            raise ValueError(
                f"{_of(frame)}: tangents have shape {tangents}, expected rows of {dim}, at most {dim - 1}"
            )
        if dim == 3 and frame.normal is not None and tangents is None:
            raise ValueError(
                f"{_of(frame)}: in space a normal needs its tangents: there is no telling along which axes "
                "they are"
            )
        for pose in (frame.body, frame.against):
            if callable(pose):
                _check_pose(frame, pose, dim, t, q)
        for contact in frame.laws:
            _check_law(frame, contact, dim, k)


def _of(frame: ContactFrame) -> str:
    return f"ContactFrame({frame.name!r})"


def _check_place(system: System, frame: ContactFrame, rows: tuple[int, ...], t: Any, q: Any) -> int:
    """The dimension of space."""
    rubs = any(contact.friction for contact in frame.laws)
    if (
        frame.body is None
        and not callable(getattr(system, "pose", None))
        and (rubs or not callable(frame.point))
    ):
        raise ValueError(
            f"{_of(frame)}: body is missing: friction acts on the matter at the point, which may wander. "
            "Give the pose"
            ' of its body, body=function (t, q) -> (r, A), or body="point" where the point is matter itself'
        )
    if frame.body is None and callable(getattr(system, "pose", None)):
        _check_pose(frame, system.pose, None, t, q)  # type: ignore[attr-defined]
    shape = _shape(frame, "point", t, q)
    if shape is None or shape[:-1] != rows or shape[-1:] not in ((2,), (3,)):
        names = f"{rows[0]} names: " if rows else ""
        expected = f"({rows[0]}, 2) or ({rows[0]}, 3)" if rows else "(2,) or (3,)"
        raise ValueError(f"{_of(frame)}: point has shape {shape}, expected {names}{expected}")
    return shape[-1]


def _shape(frame: ContactFrame, name: str, t: Any, q: Any) -> tuple[int, ...] | None:
    value = getattr(frame, name)
    if callable(value):
        return returned(f"{name} of {_of(frame)}", value, "t, q", t, q).shape
    return None if value is None else np.shape(value)


def _check_shape(frame: ContactFrame, name: str, expected: list[tuple[int, ...]], t: Any, q: Any) -> None:
    shape = _shape(frame, name, t, q)
    if shape is not None and shape not in expected:
        words = " or ".join(map(str, dict.fromkeys(expected)))
        raise ValueError(f"{_of(frame)}: {name} has shape {shape}, expected {words}")


def _check_pose(frame: ContactFrame, pose: Callable[..., Any], dim: int | None, t: Any, q: Any) -> None:
    found = jax.eval_shape(pose, t, q)
    shapes = [np.shape(part) for part in found] if isinstance(found, tuple | list) else np.shape(found)
    if shapes not in [[(d,), (d, d)] for d in ((2, 3) if dim is None else (dim,))]:
        raise ValueError(
            f"{_of(frame)}: a pose is (r, A), the place of a body's origin and its rotation matrix, got "
            f"{shapes}"
        )


def _check_law(frame: ContactFrame, contact: Contact, dim: int, k: int) -> None:
    for law in contact.friction:
        columns, kind = columns_of(law, dim == 2), type(law).__name__
        turns = any(column in (PIVOT, ROLL_1, ROLL) for column in columns)
        if turns and "point" in (frame.body, frame.against):
            raise ValueError(
                f"{_of(frame)}: {kind} needs a body that turns, and a point does not: give a pose (r, A)"
            )
        if dim == 2 and PIVOT in columns:
            raise ValueError(
                f"{_of(frame)}: {kind} is about the normal, which nothing turns about in the plane"
            )
        there = (
            min(len(columns), k) if columns[0] in (SLIDE_1, ROLL_1) and PIVOT not in columns else len(columns)
        )
        if law.dimension > there or (PIVOT in columns and SLIDE_1 in columns and k < 2):
            raise ValueError(
                f"{_of(frame)}: {kind} has {law.dimension} velocities, and with {k} tangent{'s' * (k > 1)} "
                "there"
                f" {'are' if there > 1 else 'is'} {there}"
            )


def deviations(system: System, t: Any, q: Array) -> Array:
    """Of all contacts: by how much normals, tangents and rotation matrices are not orthogonal and of length
    1.
    """
    _, normals, tangents = frames.drawn(system, t, q)
    axes = jnp.concatenate([normals[:, None], tangents], axis=1)
    products = jnp.sum(axes[:, :, None] * axes[:, None], axis=-1)
    given = jnp.any(axes != 0.0, axis=-1)  # what is padded has no length
    off = jnp.max(jnp.abs(products - jnp.eye(axes.shape[1]) * given[:, :, None]), axis=(1, 2))
    turned = []
    for frame in system.touches:
        poses = [
            p
            for p in (getattr(system, "pose", None) if frame.body is None else frame.body, frame.against)
            if callable(p)
        ]
        A = [jnp.asarray(pose(t, q)[1]) for pose in poses]
        worst = jnp.max(jnp.stack([jnp.zeros(()), *(jnp.max(jnp.abs(a @ a.T - jnp.eye(len(a)))) for a in A)]))
        turned.append(jnp.broadcast_to(worst, (len(frame.names),)))
    return jnp.maximum(off, jnp.concatenate(turned))


def start_values(system: System, t: Any, q: Array, u: Array) -> dict[str, Array]:
    """What can be wrong with ``touches`` at a start: `deviations` of stated axes,
    and what functions say otherwise.
    """
    found, touches = {}, system.touches
    if any(
        x is not None for frame in touches for x in (frame.normal, frame.tangents, frame.body, frame.against)
    ):
        found["touches"] = deviations(system, t, q)
    if touches and _overrides(system, "g_N"):
        gaps = System.g_N(system, t, q)
        found["other_g_N"] = jnp.abs(jnp.asarray(system.g_N(t, q))[: len(gaps)] - gaps)
    if touches and _overrides(system, "gamma_F"):
        slips = System.gamma_F(system, t, q, u)
        found["other_gamma_F"] = jnp.abs(jnp.asarray(system.gamma_F(t, q, u))[: len(slips)] - slips)
    return found


OFF = 1e-8  # by how much axes may be off


def start_is_consistent(v: dict[str, Any]) -> Any:
    """The same as a flag, for values that are traced."""
    ok = jnp.all(v["touches"] <= OFF) if "touches" in v else True
    for name in ("g_N", "gamma_F"):
        if f"other_{name}" in v:
            other = v[f"other_{name}"]
            ok &= jnp.all(other <= v["near"][name][: len(other)])
    return ok


def check_start(v: dict[str, np.ndarray], near: dict[str, np.ndarray], system: System) -> None:
    off = v.get("touches", np.zeros(0))
    for i in np.flatnonzero(off > OFF):
        raise ValueError(
            f"ContactFrame({frames.names(system)[i]!r}): its normal and tangents, and the axes of a pose, "
            "must have length 1"
            f" and be orthogonal: at the start they are off by {off[i]:.1e}"
        )
    for which, before in (("g_N", "super().g_N(t, q)"), ("gamma_F", "super().gamma_F(t, q, u)")):
        other = v.get(f"other_{which}", np.zeros(0))
        for i in np.flatnonzero(other > near[which][: len(other)]):
            laws = zip(frames.names(system), frames.laws(system), strict=True)
            owners = [name for name, law in laws for _ in range(1 if which == "g_N" else _count((law,)))]
            _twice(system, which, f"gives {which}[{i}] otherwise (by {other[i]:.1e})", before, owners[i])
