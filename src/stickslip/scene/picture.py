"""How a scene looks: meshes of its shapes, and pages to play or to turn."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..animation import Animation, Page, _facts, lines_of
from ..overview import resting_force
from ..shapes import _grid, circle
from .numbers import is_known, matrix, quaternion
from .shapes import (
    Along,
    Ball,
    Box,
    Capsule,
    Cylinder,
    Disc,
    Ellipsoid,
    Hole,
    Hull,
    Plane,
    Shape,
    Surface,
    placed,
    towards,
)

PALETTE = ("#7d9cb8", "#c99a5b", "#8fae7e", "#b8839a", "#7fb0aa", "#a79bc4", "#c2b280")
RINGS, SECTORS = 12, 24
THIN = 0.02  # of its radius: the height of a disc that has none, half the depth of what is flat


class Drawing(eqx.Module):
    """Meshes in the frames of the bodies, and planes."""

    vertices: Any  # (n, 3)
    triangles: Any  # (m, 3) numbers of vertices of a part
    plane_at: Any  # (k, 3)
    plane_frame: Any  # (k, 3, 3)
    # (name, body, colour, vertices, triangles): how many of each
    parts: tuple[Any, ...] = eqx.field(static=True)
    planes: tuple[Any, ...] = eqx.field(static=True)  # (name, body)


def drawing(bodies: Iterable[Any], planar: bool) -> Drawing | None:
    """Of bodies in their order; None where sizes are traced."""
    meshes, parts, planes, at, frames = [], [], [], [], []
    for i, p in enumerate(bodies):
        color = PALETTE[i % len(PALETTE)]
        for shape in p.body.shapes:
            if not is_known(shape):
                return None
            x, A = placed(shape, planar)
            if isinstance(shape, Plane):
                planes.append((p.body.name, i))
                at.append(x)
                frames.append(A @ shape.frame(planar))
                continue
            if isinstance(shape, Hole):
                continue  # it is what is not there
            vertices, triangles = mesh(shape, planar)
            meshes.append((x + vertices @ np.asarray(A).T, triangles))
            parts.append((shape.name or p.body.name, i, shape.color or color, len(vertices), len(triangles)))
    none: Any = np.zeros((0, 3))
    vertices = np.concatenate([v for v, _ in meshes]) if meshes else none
    triangles = np.concatenate([t for _, t in meshes]) if meshes else none.astype(int)
    where = np.array(at).reshape(-1, 3), np.array(frames).reshape(-1, 3, 3)
    return Drawing(vertices, triangles, *where, tuple(parts), tuple(planes))


# ---- meshes


def mesh(shape: Shape, planar: bool) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a shape, in its frame; in a planar scene a slice of it."""
    if planar:
        outline = _outline(shape)
        return _prism(outline, THIN * float(np.ptp(outline, axis=0).max()))
    if isinstance(shape, Box):
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return _closed(0.5 * np.asarray(shape.edges) * signs)
    if isinstance(shape, Hull):
        return shape.hull().vertices, shape.hull().simplices
    if isinstance(shape, Surface):
        return shape.triangles()
    if isinstance(shape, Ball | Ellipsoid):
        size = np.full(3, shape.radius) if isinstance(shape, Ball) else np.array([shape.x, shape.y, shape.z])
        vertices, triangles = _revolved(_arc(-math.pi / 2, math.pi / 2))
        return vertices * size, triangles
    assert isinstance(shape, Along)
    vertices, triangles = _revolved(_profile(shape))
    return vertices @ np.asarray(towards(shape.direction)).T, triangles


def _profile(shape: Along) -> np.ndarray:
    """(radius, height) from below."""
    if isinstance(shape, Capsule):
        half = np.array([0.0, shape.length / 2])
        down, up = _arc(-math.pi / 2, 0.0, RINGS // 2), _arc(0.0, math.pi / 2, RINGS // 2)
        return np.concatenate([shape.radius * down - half, shape.radius * up + half])
    assert isinstance(shape, Cylinder | Disc)
    r = shape.radius
    h = shape.length / 2 if isinstance(shape, Cylinder) else THIN * r / 2
    return np.array([(0.0, -h), (r, -h), (r, h), (0.0, h)])


def _arc(start: float, end: float, rings: int = RINGS) -> np.ndarray:
    angle = np.linspace(start, end, rings + 1)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _revolved(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ring = circle(SECTORS)
    rows = [np.column_stack([r * ring, np.full(SECTORS, z)]) for r, z in profile]
    return np.concatenate(rows), _grid(len(profile), SECTORS)[0]


def _closed(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = Hull(vertices).hull()
    return found.vertices, found.simplices


def _outline(shape: Shape) -> np.ndarray:
    """Of a shape in the plane, counterclockwise."""
    if isinstance(shape, Box):
        return 0.5 * np.array([shape.x, shape.y]) * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    if isinstance(shape, Hull):
        middle = shape.points.mean(axis=0)
        v = shape.hull().vertices
        return v[np.argsort(np.arctan2(*(v - middle).T[::-1]))]
    if isinstance(shape, Capsule):
        end = 0.5 * shape.length * np.asarray(shape.direction)[:2]
        lean = math.atan2(end[1], end[0])
        front, rear = (shape.radius * _arc(lean + a, lean + a + math.pi) for a in (-math.pi / 2, math.pi / 2))
        return np.concatenate([front + end, rear - end])
    return shape.radius * circle(2 * SECTORS)  # type: ignore[attr-defined]


def _prism(outline: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    n = len(outline)
    below, above = (np.column_stack([outline, np.full(n, z)]) for z in (-half, half))
    i, j = np.arange(n), (np.arange(n) + 1) % n
    sides = np.concatenate([np.column_stack([i, j, n + i]), np.column_stack([j, n + j, n + i])])
    fan = np.arange(1, n - 1)
    top = np.column_stack([np.full(n - 2, n), n + fan, n + fan + 1])
    return np.concatenate([below, above]), np.concatenate([sides, top, top[:, ::-1] - n])


# ---- pages


class SceneAnimation(Animation):
    """A run of a scene: its shapes move, with contact forces, gaps and events."""

    def __init__(self, sol: Any, *, title: str = "", frames: int = 200, duration: float = 8.0):
        super().__init__(sol, title=title or "scene", frames=frames, duration=duration)

    def html(self) -> str:
        from ..page3d import page

        return page(self.picture())

    def picture(self) -> Any:
        """What the page shows."""
        from ..page3d import Panel
        from .views import body_poses

        sol, rows = self.sol, self._rows
        system, t = sol.system, np.asarray(sol.t)
        poses = [np.asarray(x)[rows] for x in sol._rows(body_poses, "t", "q", "u")]
        points, forces = _forces(sol, rows)
        panels = []
        for title, lines in lines_of(sol).items():
            resting = (
                resting_force(np.stack(list(lines.values()), axis=1)) if title.startswith("normal") else None
            )
            panels.append(
                Panel(title, t, lines, None if resting is None else (-0.1 * resting, 1.4 * resting))
            )
        events = (
            ()
            if sol.events is None
            else tuple((float(e.t), f"{e.kind} {e.name}".strip()) for e in sol.events)
        )
        return _picture(
            system, self.title, t[rows], *poses[:2], contacts=points, forces=forces, panels=tuple(panels),
            events=events, facts=_facts(sol), duration=self.duration,
        )  # fmt: skip


def _picture(
    system: Any, title: str, t: np.ndarray, position: np.ndarray, rotation: np.ndarray, **more: Any
) -> Any:
    """``position`` and ``rotation``: (frames, bodies, ...)."""
    from ..page3d import Ground, Part, Picture

    drawn = system.picture
    if drawn is None:
        raise ValueError("a scene whose sizes are traced cannot be drawn: return the solution first")
    parts, v, m = [], 0, 0
    corners, faces = np.asarray(drawn.vertices), np.asarray(drawn.triangles).astype(int)
    for name, body, color, vertices, triangles in drawn.parts:
        solid = corners[v : v + vertices], faces[m : m + triangles]
        parts.append(Part(name, *solid, color, _still(position[:, body]), _still(rotation[:, body])))
        v, m = v + vertices, m + triangles
    grounds = []
    for (name, body), at, frame in zip(drawn.planes, drawn.plane_at, drawn.plane_frame, strict=True):
        A = np.asarray(matrix(rotation[:, body]))
        x = position[:, body] + A @ np.asarray(at)
        grounds.append(Ground(name, _still(x), _still(np.asarray(quaternion(A @ np.asarray(frame))))))
    return Picture(title, t, tuple(parts), tuple(grounds), flat=system.planar, **more)


def _still(x: np.ndarray) -> np.ndarray:
    """What never moves is sent once."""
    return x[0] if len(x) == 1 or np.abs(x - x[0]).max() == 0.0 else x


def _forces(sol: Any, rows: np.ndarray) -> tuple[Any, Any]:
    """Where contact forces act, and their mean since the frame before,
    so that no impact is missed between frames.
    """
    from .views import percussions_in_world

    system = sol.system
    touching = [i for i, pair in enumerate(system.pairs) if pair[1]]
    if not touching:
        return None, None
    point, frame = (np.asarray(x)[rows] for x in sol._rows(_contacts, "t", "q", "u"))
    total = [np.cumsum(np.asarray(P), axis=0)[rows] for P in (sol.P_N, sol.P_F)]
    P_N, P_F = (np.diff(x, axis=0, prepend=0 * x[:1]) for x in total)
    force = percussions_in_world(system, touching, frame, P_N, P_F)
    duration = np.diff(np.asarray(sol.t)[rows], prepend=0.0)
    return point, force / np.where(duration > 0, duration, np.inf)[:, None, None]


def _contacts(system: Any, t: Any, q: Any, u: Any) -> Any:
    here = system.places(system.tree.poses(t, q))
    slots = np.array([system.order[i] for i, pair in enumerate(system.pairs) if pair[1]])
    return here.point[slots], here.frame[slots]


class Still(Page):
    """A scene as it starts."""

    def __init__(self, scene: Any, title: str = ""):
        self.scene, self.title = scene, title or "scene"

    def html(self) -> str:
        from ..page3d import page

        system, q0, u0 = self.scene.compile()
        q, u = jnp.asarray(q0), jnp.asarray(u0)
        x, p, _ = jax.tree.map(np.asarray, system.body_poses(self.scene.t0, q, u))
        facts = {
            "bodies": str(len(system.frames.names)),
            "velocities": str(len(u0)),
            "contacts": str(len(system.pairs)),
        }
        return page(_picture(system, self.title, np.array([self.scene.t0]), x[None], p[None], facts=facts))


def shown(scene: Any, path: str | Path | None, title: str) -> Still:
    still = Still(scene, title)
    if path is not None:
        still.save(path)
    return still
