"""Rigid bodies as a page to play and look around in: poses are sent, the browser draws them; no network,
no library.

A `Picture` says what is seen, `page` writes it as one HTML file. The renderer is ours
(``templates/scene*.js``, WebGL 2): a page carries some seventy kilobytes of script and about thirty bytes for
each body and frame.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .animation import ARROW, FORCE, _pace, _packed, _scaled, _shorts, _telling
from .pages import fill
from .plot import COLORS
from .shapes import INK

SCRIPTS = ("scene.css", "scene_math.js", "scene_gl.js", "scene_charts.js", "scene.js")
CREASE = 0.78  # cosine of the angle beyond which an edge between two triangles is drawn


@dataclass(frozen=True)
class Part:
    """A rigid thing that moves as one.

    Without ``edges`` and ``marks`` its sharp edges are drawn and, where it is round, its octants in two
    tones: turning is seen either way. Empty arrays mean neither.
    """

    name: str
    vertices: np.ndarray  # (n, 3) in the body's frame
    triangles: np.ndarray  # (m, 3)
    color: str  # "#rrggbb"
    position: np.ndarray  # (frames, 3), or (3,) when it never moves
    rotation: np.ndarray  # (frames, 4) or (4,): unit quaternions, scalar first
    opacity: float = 1.0
    edges: np.ndarray | None = None  # (k, 2) numbers of vertices: lines to draw so that turning is seen
    marks: np.ndarray | None = None  # (m,) 0 or 1: triangles in a second tone


@dataclass(frozen=True)
class Ground:
    """A plane, drawn as a grid around the motion; what lies behind another plane is cut off."""

    name: str
    position: np.ndarray  # (frames, 3) or (3,): a point on it
    rotation: np.ndarray  # (frames, 4) or (4,); its normal is the third axis


@dataclass(frozen=True)
class Lines:
    """A line through points; rows of nan interrupt it.

    A ``trace`` has one point a frame and grows with them.
    """

    points: np.ndarray  # (frames, n, 3), or (n, 3) when it never moves
    color: str = INK
    width: float = 2.0  # in pixels
    name: str = ""
    trace: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines over time beside the picture."""

    title: str
    t: np.ndarray  # (rows,)
    lines: Mapping[str, np.ndarray]  # (rows,) each
    y: tuple[float, float] | None = None  # what is shown of the values


@dataclass(frozen=True)
class Picture:
    """What is seen, frame by frame; with a single frame, a still scene.

    Up is z, or y where the picture is ``flat``.
    """

    title: str
    t: np.ndarray  # (frames,)
    parts: tuple[Part, ...]
    grounds: tuple[Ground, ...] = ()
    lines: tuple[Lines, ...] = ()
    contacts: np.ndarray | None = None  # (frames, k, 3) points where forces act
    forces: np.ndarray | None = None  # (frames, k, 3) in N
    panels: tuple[Panel, ...] = ()
    events: tuple[tuple[float, str], ...] = ()  # time, words
    facts: Mapping[str, str] = field(default_factory=dict)
    duration: float = 8.0  # of the playback, in s
    flat: bool = False  # motion in the x-y plane, seen from the front


def page(picture: Picture) -> str:
    """The whole page."""
    return fill("scene.html", SCRIPTS, title=picture.title, facts=picture.facts, scene=payload(picture))


def payload(picture: Picture) -> dict[str, Any]:
    """All that the page's script needs, ready for JSON."""
    t = _checked(picture)
    cloud = _cloud(picture)
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    origin, size = (low + high) / 2, float(np.linalg.norm(high - low)) or 1.0
    shapes: list[dict[str, Any]] = []
    return {
        "title": picture.title, "flat": picture.flat, "size": size,
        "around": _floats(_outline(cloud) - origin), "t": _shorts(t), "duration": float(picture.duration),
        "pace": _pace(picture.duration, t) if len(t) > 1 else "",
        "parts": [_part(p, origin, shapes) for p in picture.parts],
        "shapes": shapes,
        "grounds": [{"name": g.name, **_pose(g, origin)} for g in picture.grounds],
        "lines": [_line(line, origin) for line in picture.lines],
        "arrows": _force_arrows(picture, origin, size),
        "panels": [_panel(p) for p in picture.panels],
        "events": [[float(when), str(words)] for when, words in sorted(picture.events, key=lambda e: e[0])],
    }  # fmt: skip


# ---- what is refused


def _checked(picture: Picture) -> np.ndarray:
    """The times; raises where the picture makes no sense."""
    t = np.asarray(picture.t, dtype=float)
    if (
        t.ndim != 1
        or not len(t)
        or not np.isfinite(t).all()
        or (np.diff(t) < 0).any()
        or (len(t) > 1 and t[0] == t[-1])
    ):
        raise ValueError(f"Picture(t): times that grow, at least one, got shape {t.shape}")
    if not (np.isfinite(picture.duration) and picture.duration > 0):
        raise ValueError(f"Picture(duration={picture.duration}): a positive number of seconds")
    for p in picture.parts:
        _check_part(p, len(t))
    for g in picture.grounds:
        _check_pose(g, len(t))
    for line in picture.lines:
        _shaped(
            line.points,
            (len(t), 3) if line.trace else (len(t), None, 3),
            f"Lines({line.name!r}).points",
            holes=True,
        )
        _check_color(line.color)
    if (picture.contacts is None) != (picture.forces is None):
        raise ValueError("Picture(contacts, forces): both or none")
    if picture.contacts is not None and picture.forces is not None:
        k = np.shape(picture.contacts)[-2] if np.ndim(picture.contacts) > 1 else 0
        for name, x in (("contacts", picture.contacts), ("forces", picture.forces)):
            if np.shape(x) != (len(t), k, 3):
                raise ValueError(f"Picture({name}): ({len(t)}, {k}, 3) is needed, got {np.shape(x)}")
    for panel in picture.panels:
        for name, y in panel.lines.items():
            if np.ndim(panel.t) != 1 or np.shape(y) != np.shape(panel.t):
                raise ValueError(
                    f"Panel({panel.title!r}), {name!r}: {np.shape(panel.t)} is needed, got {np.shape(y)}"
                )
    return t


def _check_part(p: Part, frames: int) -> None:
    _check_pose(p, frames)
    _check_color(p.color)
    n = len(_shaped(p.vertices, (None, 3), f"Part({p.name!r}).vertices"))
    for name, rows, columns in (("triangles", p.triangles, 3), ("edges", p.edges, 2)):
        if rows is None or not np.size(rows):
            continue
        numbers = _shaped(rows, (None, columns), f"Part({p.name!r}).{name}")
        if numbers.min() < 0 or numbers.max() >= n:
            raise ValueError(
                f"Part({p.name!r}).{name}: numbers of {n} vertices, got {numbers.min():g} to "
                f"{numbers.max():g}"
            )
    if p.marks is not None and np.size(p.marks) not in (0, len(p.triangles)):
        raise ValueError(
            f"Part({p.name!r}).marks: one for each of {len(p.triangles)} triangles, got {np.size(p.marks)}"
        )


def _check_pose(thing: Part | Ground, frames: int) -> None:
    what = f"{type(thing).__name__}({thing.name!r})"
    _shaped(thing.position, (frames, 3), f"{what}.position")
    lengths = np.linalg.norm(_shaped(thing.rotation, (frames, 4), f"{what}.rotation"), axis=-1)
    if np.abs(lengths - 1).max() > 1e-2:
        raise ValueError(
            f"{what}.rotation: unit quaternions, got lengths of {lengths.min():.3g} to {lengths.max():.3g}"
        )


def _shaped(x: Any, shape: tuple[int | None, ...], what: str, holes: bool = False) -> np.ndarray:
    """x as an array of this shape, in which None fits any number;
    the first number may be missing (nothing moves).
    """
    x = np.asarray(x, dtype=float)
    wanted = shape[-x.ndim :] if x.ndim >= len(shape) - 1 and shape[0] is not None else shape
    if (
        len(wanted) != x.ndim
        or any(w not in (None, n) for w, n in zip(wanted, x.shape, strict=True))
        or not x.size
    ):
        raise ValueError(f"{what}: {shape} is needed, got {x.shape}")
    if not holes and not np.isfinite(x).all():
        raise ValueError(f"{what}: finite numbers are needed")
    return x


def _check_color(color: str) -> None:
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", color):
        raise ValueError(f'a colour is written "#rrggbb", got {color!r}')


# ---- where everything is


def turned(p: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Vectors r turned by unit quaternions p, scalar first."""
    w, v = p[..., :1], p[..., 1:]
    return r + 2 * np.cross(v, np.cross(v, r) + w * r)


def _corners(p: Part) -> np.ndarray:
    """(frames or 1, 8, 3): the box around a part, in space."""
    low, high = np.min(p.vertices, axis=0), np.max(p.vertices, axis=0)
    box = np.array(
        [[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    )
    position, rotation = np.atleast_2d(p.position), np.atleast_2d(p.rotation)
    return position[:, None] + turned(rotation[:, None], box)


def _cloud(picture: Picture) -> np.ndarray:
    """Points around all that moves; what stands still counts as far as it is near."""
    moving, still = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for points in [
        *map(_corners, picture.parts),
        *(np.asarray(line.points, dtype=float) for line in picture.lines),
    ]:
        rows = points.reshape(-1, 3)
        (moving if points.ndim == 3 and len(points) > 1 else still).append(
            rows[np.isfinite(rows).all(axis=1)]
        )
    near, far = np.concatenate(moving), np.concatenate(still)
    if len(near):
        reach = 0.4 * float(np.ptp(near, axis=0).max())
        far = np.clip(far, near.min(axis=0) - reach, near.max(axis=0) + reach)
    cloud = np.concatenate([near, far])
    return cloud if len(cloud) else np.array([[-1.0, -1, -1], [1, 1, 1]])


def _outline(cloud: np.ndarray, directions: int = 120) -> np.ndarray:
    """The outermost points: a camera that sees them sees all."""
    k = np.arange(directions) + 0.5
    z, turn = 1 - 2 * k / directions, np.pi * (1 + 5**0.5) * k  # spread evenly over the sphere
    sphere = np.column_stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z])
    return cloud[np.unique(np.argmax(cloud @ sphere.T, axis=0))]


# ---- in the words of the script


def _coded(x: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(x, dtype=kind).tobytes()).decode("ascii")


def _floats(x: Any) -> str:
    return _coded(x, "<f4")


def _pose(thing: Part | Ground, origin: np.ndarray) -> dict[str, Any]:
    """Positions as floats, for one looks closely at them; rotations in sixteen bits."""
    position, rotation = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (thing.position, thing.rotation))
    return {"position": _floats(position - origin), "rotation": _packed(rotation)}


def _part(p: Part, origin: np.ndarray, shapes: list[dict[str, Any]]) -> dict[str, Any]:
    """A part; ``shapes`` grows where it looks like none before."""
    edges, marks = _seen(p)
    shape: dict[str, Any] = {
        "vertices": _floats(p.vertices), "triangles": _coded(p.triangles, "<u4"),
        "edges": _coded(edges, "<u4"), "marks": None if marks is None else _coded(marks, "u1"),
    }  # fmt: skip
    if shape not in shapes:
        shapes.append(shape)
    look = {"name": p.name, "shape": shapes.index(shape), "color": p.color, "opacity": float(p.opacity)}
    return look | _pose(p, origin)


def _seen(p: Part) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges and marks by which turning is seen; no marks mean octants, which the browser finds."""
    none = np.zeros((0, 2), dtype=int)
    if p.edges is not None or p.marks is not None:
        return (none if p.edges is None else p.edges), (
            none if p.marks is None else np.asarray(p.marks, dtype=int)
        )
    edges, curved = _bends(np.asarray(p.vertices, dtype=float), np.asarray(p.triangles, dtype=int))
    return edges, (None if curved else none)


def _bends(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, bool]:
    """Edges where the surface has a crease or ends, and whether it is curved elsewhere.

    Vertices at one place are one.
    """
    rounded = np.round(vertices / (np.ptp(vertices) or 1.0), 6)
    place = np.unique(rounded, axis=0, return_inverse=True)[1].ravel()
    corners = vertices[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    sides: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for k, triangle in enumerate(triangles.tolist()):
        if area[k] <= 1e-12 * area.max():
            continue  # at a pole
        for a, b in zip(triangle, triangle[1:] + triangle[:1], strict=True):
            key = (int(min(place[a], place[b])), int(max(place[a], place[b])))
            sides.setdefault(key, []).append((k, a, b))
    unit = normal / np.where(area > 0, area, 1.0)[:, None]
    bend = [0.0 if len(s) == 1 else abs(float(unit[s[0][0]] @ unit[s[1][0]])) for s in sides.values()]
    found = [s[0][1:] for s, cosine in zip(sides.values(), bend, strict=True) if cosine < CREASE]
    return np.array(found, dtype=int).reshape(-1, 2), any(CREASE <= cosine < 1 - 1e-6 for cosine in bend)


def _line(line: Lines, origin: np.ndarray) -> dict[str, Any]:
    points = np.asarray(line.points, dtype=float)
    points = points if points.ndim == 3 else points[None]
    look = {
        "name": line.name,
        "color": line.color,
        "width": float(line.width),
        "count": points.shape[1],
        "trace": line.trace,
    }
    return look | {"points": _packed((points - origin).reshape(len(points), -1))}


def _force_arrows(picture: Picture, origin: np.ndarray, size: float) -> dict[str, Any] | None:
    """Those that act, frame after frame, with the contact each belongs to:
    of hundreds of candidates few do.
    """
    if picture.contacts is None or picture.forces is None:
        return None
    at, force = np.asarray(picture.contacts, dtype=float), np.asarray(picture.forces, dtype=float)
    known = (np.isfinite(at) & np.isfinite(force)).all(axis=-1)
    bodies = [
        float(np.ptp(p.vertices, axis=0).max()) for p in picture.parts if len(np.atleast_2d(p.position)) > 1
    ]
    longest = min(ARROW * size, 2.4 * max(bodies, default=np.inf))  # a usual one comes out of its body
    acting, arrow = _scaled(np.where(known[..., None], force, 0.0), longest)
    if not acting.any():
        return None
    return {
        "longest": longest, "color": FORCE, "number": acting.sum(axis=1).tolist(),
        "who": _coded(np.nonzero(acting)[1] % 65536, "<u2"),
        "at": _packed(at[acting] - origin), "force": _packed(arrow[acting]),
    }  # fmt: skip


def _panel(p: Panel) -> dict[str, Any]:
    t, lines = np.asarray(p.t, dtype=float), []
    for k, (name, y) in enumerate(p.lines.items()):
        y = np.asarray(y, dtype=float)  # noqa: PLW2901
        keep = _telling(y)
        # Heights as floats: sixteen bits of an impact are coarser than all that rests.
        lines.append(
            {
                "name": name,
                "color": COLORS[k % len(COLORS)],
                "t": _packed(t[keep][:, None]),
                "y": _floats(y[keep]),
            }
        )
    return {"title": p.title, "lines": lines, "y": None if p.y is None else [float(v) for v in p.y]}
