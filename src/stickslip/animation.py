"""A run as a page to play, pause and scrub: the mechanism with its contact forces,
gaps and percussions running along.

Plotly draws; a page carries it and needs no network. What a mechanism looks like its system says, by
``draw(t, q)`` (`stickslip.shapes`); without it the panels are shown alone: gaps and percussions, or
coordinates where nothing can touch.
"""

import abc
import base64
import dataclasses
import html
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import shapes
from .dataset import all_labels, result_name
from .extras import need_all
from .files import writing
from .laws import Contact
from .overview import resting_force
from .pages import NEEDED, render
from .plot import COLORS

LINES = 6  # more contacts than this are shown by their smallest gap and the sum of their percussions
POINTS = 1200  # of a line in a panel
FORCE = "#d1102a"
ARROW = 0.18  # length of the longest, in sizes of the scene
NAN = 65535


class Page(abc.ABC):
    """``save(path)`` writes a page that works offline; in a notebook it shows itself."""

    @abc.abstractmethod
    def html(self) -> str:
        """The whole page."""

    def save(self, path: str | Path) -> Path:
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            raise ValueError(f"{path}: a page's name ends in .html")
        page = self.html()
        with writing(path) as part:
            part.write_text(page, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:620px;border:0"></iframe>'


class Animation(Page):
    """A run whose system draws itself."""

    def __init__(self, sol: Any, *, title: str = "", frames: int = 200, duration: float = 8.0):
        if np.ndim(sol.t) != 1:
            raise ValueError(
                f"animate shows one run, got a batch of shape {np.shape(sol.t)[:-1]}: index it first"
            )
        if frames < 2 or not (np.isfinite(duration) and duration > 0):
            raise ValueError(
                f"animate(frames={frames}, duration={duration}): at least two frames, a positive duration"
            )
        need_all(NEEDED, "sol.animate")
        self.sol, self.duration = _finite(sol.smooth(frames)), float(duration)
        self.title = title or type(sol.system).__name__
        self._rows = _spread(np.asarray(self.sol.t), frames)

    def payload(self) -> dict[str, Any]:
        """All that the page's player needs, ready for JSON."""
        sol, rows = self.sol, self._rows
        t = np.asarray(sol.t)[rows]
        scene = _Scene(sol, rows) if hasattr(sol.system, "draw") else None
        figure = _Figure(scene.dim if scene else 0)
        if scene:
            scene.put(figure)
        _panels(figure, sol, t)
        return {
            "data": figure.data,
            "layout": figure.layout(),
            "narrow": figure.layout(narrow=True),
            "moving": figure.moving,
            "t": _shorts(t),
            "duration": self.duration,
            "events": [] if sol.events is None else _ticks(sol.events, t),
            "arrows": bool(scene and scene.contacts),
            "pace": _pace(self.duration, t),
        }

    def html(self) -> str:
        """The whole page."""
        return render("run.html", title=self.title, animation=self.payload(), facts=_facts(self.sol))


def _ticks(events: Any, t: np.ndarray) -> list[dict[str, Any]]:
    """Frames at which something happened, and what."""
    frames = np.clip(np.searchsorted(t, np.asarray(events.t)), 0, len(t) - 1)
    return [
        {"frame": int(k), "what": f"{e.kind} {e.name}".strip()} for k, e in zip(frames, events, strict=True)
    ]


def _pace(duration: float, t: np.ndarray) -> str:
    """How fast a playback is, in words."""
    slower = duration / (t[-1] - t[0])
    if abs(slower - 1) <= 0.05:
        return "as fast as in life"
    return (
        f"{slower:.3g} times slower than life" if slower > 1 else f"{1 / slower:.3g} times faster than life"
    )


def _facts(sol: Any) -> dict[str, str]:
    facts = {
        "system": type(sol.system).__name__,
        "method": str(sol.method),
        "steps": f"{len(sol.t) - 1} to t = {float(sol.t[-1]):g}",
        "result": result_name(sol.result),
    }
    if np.shape(sol.P_N)[1]:
        facts["events"] = "" if sol.events is None else str(len(sol.events))
        facts["smallest gap"] = f"{np.asarray(sol.g_N()).min():.3e}"
    return {key: value for key, value in facts.items() if value}


def _spread(t: np.ndarray, frames: int) -> np.ndarray:
    """Rows at about equal times, first and last among them."""
    rows = np.searchsorted(t, np.linspace(t[0], t[-1], frames))
    return np.unique(np.concatenate([[0], np.minimum(rows, len(t) - 1), [len(t) - 1]]))


def _finite(sol: Any) -> Any:
    """The rows before anything became nan: a run that failed inside jit goes on with nan."""
    columns = [np.asarray(c).reshape(len(sol.t), -1) for c in (sol.t, sol.q, sol.u, sol.P_N, sol.P_F)]
    bad = np.flatnonzero(~np.all([np.isfinite(c).all(axis=1) for c in columns], axis=0))
    n = int(bad[0]) if len(bad) else len(sol.t)
    if n < 2:
        raise ValueError(
            f"animate needs a run with at least one step, this one has {n} rows of finite numbers"
        )
    rows = {name: getattr(sol, name)[:n] for name in ("t", "q", "u", "P_N", "P_F")}
    return sol if n == len(sol.t) else dataclasses.replace(sol, **rows)


def _shorts(x: Any) -> list[Any]:
    """Digits that a screen can show: a hundred-thousandth of the range."""
    x = np.asarray(x, dtype=float).ravel()
    seen = x[np.isfinite(x)]
    range_ = np.ptp(seen) if len(seen) else 0.0
    digits = 5 - math.floor(math.log10(range_)) if range_ > 0 else 15
    return [round(v, digits) if math.isfinite(v) else None for v in x.tolist()]


def _packed(rows: np.ndarray) -> dict[str, Any]:
    """One row a frame, as sixteen-bit integers: finer than a screen, a third of what digits take.

    The largest means nan.
    """
    low, high = np.nanmin(rows), np.nanmax(rows)
    step = (high - low) / (NAN - 1) or 1.0
    whole = np.where(np.isnan(rows), NAN, np.round((np.nan_to_num(rows, nan=low) - low) / step))
    data = base64.b64encode(whole.astype("<u2").tobytes()).decode("ascii")
    return {"low": float(low), "step": float(step), "points": rows.shape[1], "data": data}


class _Figure:
    """Traces and layout in Plotly's words; ``moving`` holds what changes from frame to frame."""

    def __init__(self, dim: int):
        self.dim = dim
        self.data: list[dict[str, Any]] = []
        self.moving: list[dict[str, Any]] = []
        self.ranges: np.ndarray | None = None
        self.titles: list[str] = []
        self.heights: dict[int, dict[str, Any]] = {}

    def add(self, frames: dict[str, np.ndarray], **trace: Any) -> None:
        """A trace whose coordinates have one row a frame; it moves only if they change."""
        first = {key: _shorts(rows[0]) for key, rows in frames.items()}
        if any(len(rows) > 1 and not np.array_equal(rows, np.broadcast_to(rows[:1], rows.shape),
               equal_nan=True)
               for rows in frames.values()):  # fmt: skip
            self.moving.append(
                {"trace": len(self.data)} | {key: _packed(rows) for key, rows in frames.items()}
            )
        self.data.append({**trace, **first})

    def layout(self, narrow: bool = False) -> dict[str, Any]:
        """Panels beside the scene; on a ``narrow`` screen below it."""
        beside = bool(self.dim) and not narrow
        left, floor = (0.6, 0.0) if beside else (1.0, 0.56)
        right = [left + 0.08 if beside else 0.06, 1.0]
        below = 0.48 if narrow and self.dim else 1.0
        layout: dict[str, Any] = {
            "height": 720 if narrow and self.dim else 460, "margin": {"l": 45, "r": 10, "t": 20, "b": 40},
            "font": {"size": 11}, "showlegend": True, "plot_bgcolor": "white", "paper_bgcolor": "white",
            "uirevision": "keep",
        }  # fmt: skip
        for k, title in enumerate(self.titles, start=2):  # axes 2, 3: the panels; axis 1 is the scene
            low = 0.56 if k == 2 else 0.0
            layout[f"xaxis{k}"] = {"domain": right, "anchor": f"y{k}", "gridcolor": "#e4e4e4"}
            layout[f"yaxis{k}"] = {
                "domain": [below * low, below * (low + 0.40)], "anchor": f"x{k}", "gridcolor": "#e4e4e4",
                "zerolinecolor": "#888", "title": {"text": title}, "exponentformat": "power",
                **self.heights.get(k, {}),
            }  # fmt: skip
            layout[_legend(k)] = {
                "x": 1.0, "xanchor": "right", "y": below * (low + 0.40), "yanchor": "top",
                "font": {"size": 10}, "bgcolor": "rgba(255,255,255,0.65)", "tracegroupgap": 0,
            }  # fmt: skip
        layout["xaxis3"]["title"] = {"text": "t in s"}
        if self.ranges is not None:
            r = self.ranges.tolist()
            if self.dim == 2:
                plain = {"zeroline": False, "gridcolor": "#f0f0f0"}
                layout["xaxis"] = {"domain": [0, left], "range": r[0], "anchor": "y", **plain}
                layout["yaxis"] = {
                    "domain": [0 if beside else floor, 1],
                    "range": r[1],
                    "scaleanchor": "x",
                    "anchor": "x",
                    **plain,
                }
            else:
                layout["scene"] = {
                    "domain": {"x": [0, left], "y": [0 if beside else floor, 1]}, "aspectmode": "data",
                    "camera": {"eye": {"x": 0.8, "y": -1.0, "z": 0.4}, "center": {"x": 0, "y": 0, "z": -0.1}},
                    **{f"{n}axis": {"visible": False, "range": r[k]} for k, n in enumerate("xyz")},
                }  # fmt: skip
        return layout


class _Scene:
    """A drawing at the frames."""

    def __init__(self, sol: Any, rows: np.ndarray):
        self.sol, self.rows = sol, rows
        draw = jax.jit(jax.vmap(lambda t, q: shapes.drawn(sol.system, t, q)))
        drawn = jax.tree.map(
            np.asarray, draw(jnp.asarray(np.asarray(sol.t)[rows]), jnp.asarray(np.asarray(sol.q)[rows]))
        )
        self.contacts = [s for s in drawn if isinstance(s, shapes.Contacts)]
        self.shapes = [s for s in drawn if not isinstance(s, shapes.Contacts)]
        self.dim = self._dimension(drawn)

    def _dimension(self, drawn: list[Any]) -> int:
        found = {(s.at if isinstance(s, shapes.Contacts) else s.points).shape[-1] for s in drawn}
        if len(found) != 1 or not found <= {2, 3}:
            name = type(self.sol.system).__name__
            raise ValueError(
                f"{name}.draw(t, q): points must all have two or all three coordinates, got {sorted(found)}"
            )
        n_N = np.shape(self.sol.P_N)[1]
        for c in self.contacts:
            if len(self.contacts) > 1 or c.at.shape[1] != n_N:
                raise ValueError(
                    f"{type(self.sol.system).__name__}.draw(t, q): one Contacts with a row for each of the "
                    f"{n_N} contacts,"
                    f" got {[c.at.shape[1] for c in self.contacts]}"
                )
        return found.pop()

    def put(self, figure: _Figure) -> None:
        points = [s.points.reshape(-1, self.dim) for s in self.shapes] + [
            c.at.reshape(-1, self.dim) for c in self.contacts
        ]
        everything = np.concatenate(points)
        low, high = np.nanmin(everything, axis=0), np.nanmax(everything, axis=0)
        size = float(max(high - low)) or 1.0
        figure.ranges = np.stack([low - 0.06 * size, high + 0.06 * size], axis=1)
        if self.dim == 3 and self.contacts:
            figure.ranges[2, 0] -= ARROW * size  # room for arrows under the ground
        for kind in (shapes.Mesh, shapes.Polygon, shapes.Line):
            self._put_kind(figure, [s for s in self.shapes if isinstance(s, kind)])
        for c in self.contacts:
            self._put_forces(figure, c, min(ARROW * size, self._largest_body() or np.inf))

    def _largest_body(self) -> float:
        """The extent of the largest shape that moves: no arrow is longer."""
        moving = [
            s.points
            for s in self.shapes
            if not np.array_equal(s.points, np.broadcast_to(s.points[:1], s.points.shape))
        ]
        return max((float(np.nanmax(np.ptp(points[0], axis=0))) for points in moving), default=0.0)

    def _put_kind(self, figure: _Figure, found: list[Any]) -> None:
        """Shapes of one look are one trace, with gaps between."""
        if found and isinstance(found[0], shapes.Mesh):
            for s in found:
                _put_mesh(figure, s)
            return
        looks: dict[tuple, list[Any]] = {}
        for s in found:
            looks.setdefault((type(s), s.color, getattr(s, "width", 1.5)), []).append(s)
        for (kind, color, width), group in looks.items():
            closed = kind is shapes.Polygon
            line = {"color": shapes.INK if closed else color, "width": width}
            fill = {"fill": "toself", "fillcolor": color} if closed and self.dim == 2 else {}
            self._put_line(figure, _joined([s.points for s in group], closed), line=line, **fill)

    def _put_line(self, figure: _Figure, points: np.ndarray, **look: Any) -> None:
        where = {"type": "scatter3d"} if self.dim == 3 else {"type": "scatter", "xaxis": "x", "yaxis": "y"}
        frames = {axis: points[:, :, k] for k, axis in enumerate("xyz"[: self.dim])}
        figure.add(frames, mode="lines", hoverinfo="skip", showlegend=False, **where, **look)

    def _put_forces(self, figure: _Figure, c: Any, longest: float) -> None:
        """Arrows: what acted on each contact since the frame before,
        so that no impact is missed between frames.
        """
        force = _forces(self.sol, c, self.rows)
        acting, arrow = _scaled(force, longest)
        lines = np.where(acting[..., None, None], _arrows(c.at, arrow), np.nan)
        # Only as many arrows as ever act at once: of hundreds of candidates few do.
        lines = _first(lines, acting)
        self._put_line(figure, lines, line={"color": FORCE, "width": 3 if self.dim == 2 else 5})


def _scaled(force: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """Which forces act, and their arrows: a usual force is half of the longest,
    an impact hits the end of the scale.
    """
    size = np.linalg.norm(force, axis=-1)
    acting = size > 1e-9 * size.max(initial=0.0)
    usual = np.quantile(size[acting], 0.5) if acting.any() else 1.0
    length = longest * (1.0 - np.exp(-0.7 * size / usual)) if usual > 0 else 0.0 * size
    return acting, length[..., None] * force / np.where(size > 0, size, 1.0)[..., None]


def _put_mesh(figure: _Figure, s: Any) -> None:
    frames = {axis: s.points[:, :, k] for k, axis in enumerate("xyz")}
    i, j, k = s.triangles[0].T.tolist()
    look: dict[str, Any] = {"color": s.color}
    if s.marks is not None:
        look = {"facecolor": [s.accent if mark else s.color for mark in np.ravel(s.marks[0])]}
    lighting = {"ambient": 0.65, "diffuse": 0.6, "specular": 0.05}
    figure.add(frames, type="mesh3d", i=i, j=j, k=k, flatshading=True, opacity=s.opacity, hoverinfo="skip",
               showlegend=False, lighting=lighting, **look)  # fmt: skip


def _joined(parts: list[np.ndarray], closed: bool) -> np.ndarray:
    """(frames, points, dim) of several lines as one, nan between them."""
    out = []
    for points in parts:
        gap = np.full_like(points[:, :1], np.nan)
        out += [points, points[:, :1], gap] if closed else [points, gap]
    return np.concatenate(out, axis=1)


def _arrows(at: np.ndarray, arrow: np.ndarray) -> np.ndarray:
    """(frames, contacts, 6 points, dim): shaft, head, nan."""
    if at.shape[-1] == 2:
        across = np.stack([-arrow[..., 1], arrow[..., 0]], axis=-1)
    else:
        side = np.cross(arrow, [0.3, 1.0, 0.2])
        norm = np.linalg.norm(side, axis=-1, keepdims=True)
        across = side / np.where(norm > 0, norm, 1.0) * np.linalg.norm(arrow, axis=-1, keepdims=True)
        at = at - arrow  # they end at the contact: beyond it they would be hidden in the body
    tip, back = at + arrow, at + 0.72 * arrow
    return np.stack(
        [at, tip, back + 0.14 * across, tip, back - 0.14 * across, np.full_like(at, np.nan)], axis=2
    )


def _first(lines: np.ndarray, acting: np.ndarray) -> np.ndarray:
    """(frames, points, dim) with the acting contacts of each frame first,
    cut to the largest number of them.
    """
    order = np.argsort(~acting, axis=1, kind="stable")
    most = max(1, int(acting.sum(axis=1).max(initial=0)))
    kept = np.take_along_axis(lines, order[:, :, None, None], axis=1)[:, :most]
    return kept.reshape(len(lines), -1, lines.shape[-1])


def _forces(sol: Any, c: Any, rows: np.ndarray) -> np.ndarray:
    """(frames, contacts, dim): percussions since the frame before over the time since then."""
    total = [np.cumsum(np.asarray(P), axis=0)[rows] for P in (sol.P_N, sol.P_F)]
    P_N, P_F = (np.diff(x, axis=0, prepend=0 * x[:1]) for x in total)
    force = P_N[..., None] * c.normals
    if c.tangents is not None:
        at = 0
        for k, law in enumerate(law for law in sol.system.laws if isinstance(law, Contact)):
            size = sum(friction.dimension for friction in law.friction)
            for j in range(min(size, c.tangents.shape[2])):
                force[:, k] += P_F[:, at + j, None] * c.tangents[:, k, j]
            at += size
    duration = np.diff(np.asarray(sol.t)[rows], prepend=0.0)
    return force / np.where(duration > 0, duration, 1.0)[:, None, None]


def lines_of(sol: Any) -> dict[str, dict[str, np.ndarray]]:
    """By title, two panels of lines over time: gaps and normal forces,
    or coordinates and velocities without contact.
    """
    dt, n_N = np.asarray(sol.dt), np.shape(sol.P_N)[1]
    # means over the steps, whatever their size
    N = np.asarray(sol.P_N) / np.where(dt > 0.0, dt, np.inf)[:, None]
    if not n_N:
        return {
            "coordinates": _by_name(sol, "coordinate", sol.q),
            "velocities": _by_name(sol, "velocity", sol.u),
        }
    if n_N > LINES:
        smallest, total = np.asarray(sol.g_N()).min(axis=1), N.sum(axis=1)
        return {
            "smallest gap in m": {"smallest gap": smallest},
            "normal forces in N": {"sum of normal forces": total},
        }
    names = [label.name for label in all_labels(sol)["contact"]]
    return {
        "gaps in m": dict(zip(names, np.asarray(sol.g_N()).T, strict=True)),
        "normal forces in N": dict(zip(names, N.T, strict=True)),
    }


def _panels(figure: _Figure, sol: Any, t: np.ndarray) -> None:
    """Gaps above, contact forces below (coordinates and velocities where there is no contact),
    each with a cursor.
    """
    time, n_N = np.asarray(sol.t), np.shape(sol.P_N)[1]
    told = lines_of(sol)
    figure.titles = list(told)
    for k, lines in enumerate(told.values(), start=2):
        axes = {"xaxis": f"x{k}", "yaxis": f"y{k}", "type": "scatter", "mode": "lines", "legend": _legend(k)}
        for i, (name, y) in enumerate(lines.items()):
            keep = _telling(y)
            line = {"width": 1.3, "color": COLORS[i % len(COLORS)]}
            figure.add({"x": time[keep][None], "y": y[keep][None]}, name=name, line=line, **axes)
        low = min(float(np.min(y)) for y in lines.values())
        high = max(float(np.max(y)) for y in lines.values())
        if high - low < 1e-9:  # a contact that stays closed is a line, not its round-off
            low, high = -1e-3, 1e-3
            figure.heights[k] = {"range": [low, high]}
        resting = resting_force(np.stack(list(lines.values()), axis=1)) if n_N and k == 3 else None
        if resting is not None:  # impacts go through the ceiling
            low, high = -0.1 * resting, 1.4 * resting
            figure.heights[k] = {"range": [low, high]}
        cursor = np.broadcast_to(np.array([low, high]), (len(t), 2))
        now = np.repeat(t[:, None], 2, axis=1)
        figure.add(
            {"x": now, "y": cursor},
            line={"width": 1.5, "color": FORCE},
            hoverinfo="skip",
            showlegend=False,
            **axes,
        )


def _legend(k: int) -> str:
    """Of axis k, in Plotly's words."""
    return "legend" if k == 2 else f"legend{k - 1}"


def _by_name(sol: Any, dim: str, columns: Any) -> dict[str, np.ndarray]:
    return {label.name: x for label, x in zip(all_labels(sol)[dim], np.asarray(columns).T, strict=True)}


def _telling(y: np.ndarray) -> np.ndarray:
    """Rows that keep the picture of a long line: the smallest and the largest of each short stretch."""
    if len(y) <= POINTS:
        return np.arange(len(y))
    parts = np.array_split(np.arange(len(y)), POINTS // 2)
    rows = [part[f(y[part])] for part in parts for f in (np.argmin, np.argmax)]
    return np.unique([0, *rows, len(y) - 1])
