"""Looking at many bodies: numbers of a row, curves over time, films."""

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..extras import need

if TYPE_CHECKING:
    from .solution import ManySolution

COLOURS = "viridis"
CHAINS = "#7a1f1f"
BACKGROUND = "#cdd3da"


def coordination(sol: "ManySolution", row: int) -> float:
    """Mean number of contacts that push, of the bodies that have any."""
    c, n = sol.contacts[row], len(sol.system)
    pushes = c.P_N > 0.0
    ends = np.concatenate([c.a[pushes], c.b[pushes & (c.b < n)]])
    many = np.bincount(ends, minlength=n)
    return float(many[many > 0].mean()) if many.any() else 0.0


def packing_fraction(sol: "ManySolution", row: int, low: Any, high: Any, samples: int = 200_000) -> float:
    """Part of a box that bodies fill, by points strewn evenly in it: exact to about 1/sqrt(samples)."""
    from scipy.spatial import cKDTree
    from scipy.stats import qmc

    dim = sol.system.dim
    if np.shape(low) != (dim,) or np.shape(high) != (dim,) or not np.all(np.asarray(high) > np.asarray(low)):
        raise ValueError(
            f"packing_fraction(low={low}, high={high}): two corners with {dim} components, high above low"
        )
    points = qmc.scale(qmc.Halton(dim, seed=0).random(samples), low, high)
    tree, inside = cKDTree(points), np.zeros(samples, bool)
    for within in tree.query_ball_point(np.asarray(sol.position[row])[:, :dim], sol.system.radius):
        inside[within] = True
    return float(inside.mean())


def plot(sol: "ManySolution", path: str | PathLike | None = None, title: str = "") -> Any:
    """Energy, contacts, residual and largest velocity error over time,
    with the steps that were accepted marked.
    """
    pyplot = need("matplotlib.pyplot", "plots", "sol.plot")
    s = sol.stats
    figure, axes = pyplot.subplots(2, 2, figsize=(10.0, 6.0), sharex=True, layout="constrained")
    (energy, contacts), (residual, error) = axes
    energy.plot(s.t, s.energy, lw=1)
    energy.set(ylabel="energy in J")
    contacts.plot(s.t, s.contacts / len(sol.system), lw=1)
    contacts.set(ylabel="contacts per body")
    for axis, values, name in (
        (residual, s.residual, "residual"),
        (error, s.velocity_error, "velocity error in m/s"),
    ):
        shown = np.where(values > 0.0, values, np.nan)
        axis.semilogy(s.t, shown, ".", ms=2, label="solved")
        axis.semilogy(s.t[s.accepted], shown[s.accepted], ".", ms=2, label="accepted")
        axis.set(ylabel=name, xlabel="t in s")
    residual.axhline(sol.tolerance, color="k", lw=0.6, ls=":")
    residual.legend(fontsize=8)
    figure.suptitle(title or sol.summary(), fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=120)
        pyplot.close(figure)
        return None
    return figure


def film(
    sol: "ManySolution",
    path: str | PathLike,
    *,
    frames: int = 100,
    fps: int = 20,
    colour: Any = None,
    chains: bool = False,
) -> None:
    """Rows one after the other, seen along y (disks: along z), as .gif, or as .mp4 where ffmpeg is installed.

    ``colour``: a number for each body, or else its height at the start, so that mixing is seen; ``chains``:
    contacts as lines, the wider the stronger.
    """
    need("matplotlib.pyplot", "plots", "sol.film")
    from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter

    kind = str(path).rpartition(".")[2].lower()
    if kind not in ("gif", "mp4"):
        raise ValueError(f"film(path={str(path)!r}): must end in .gif or .mp4")
    if kind == "mp4" and not FFMpegWriter.isAvailable():
        raise ValueError("film: .mp4 needs ffmpeg, which is not installed; .gif does not")
    rows = np.unique(np.linspace(0, len(sol.t) - 1, frames).round().astype(int))
    figure, draw = _scene(sol, colour, chains)
    animation = FuncAnimation(figure, lambda k: draw(rows[k]), frames=len(rows))
    animation.save(str(path), writer=FFMpegWriter(fps) if kind == "mp4" else PillowWriter(fps), dpi=90)
    need("matplotlib.pyplot", "plots", "sol.film").close(figure)


def _scene(sol: "ManySolution", colour: Any, chains: bool) -> tuple[Any, Any]:
    """A figure, and a function that draws a row into it."""
    pyplot = need("matplotlib.pyplot", "plots", "sol.film")
    from matplotlib.collections import EllipseCollection, LineCollection

    s, across = sol.system, (0, 1) if sol.system.dim == 2 else (0, 2)
    first, last = np.asarray(sol.position[0]), np.asarray(sol.position[len(sol.t) - 1])
    value = first[:, across[1]] if colour is None else np.broadcast_to(np.asarray(colour, float), (len(s),))
    margin = 2.0 * s.radius.max()
    both = np.concatenate([first, last])[:, across]
    low, high = both.min(0) - margin, both.max(0) + margin
    for wall in s.walls.walls:
        if wall.size:  # a drum
            middle = wall.place[list(across)]
            low, high = np.minimum(low, middle - wall.size), np.maximum(high, middle + wall.size)
    size = 7.0 / (high - low).max() * (high - low)
    figure, axis = pyplot.subplots(figsize=tuple(size))
    figure.subplots_adjust(0, 0, 1, 1)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axis.axis("off")
    for wall in s.walls.walls:
        if wall.size and s.dim == 2:
            axis.add_patch(pyplot.Circle(wall.place[:2], wall.size, fill=False, lw=2))
    time = axis.text(0.02, 0.97, "", transform=axis.transAxes, va="top")
    drawn: list[Any] = []

    def draw(row: int) -> list[Any]:
        while drawn:
            drawn.pop().remove()
        x = np.asarray(sol.position[row])
        order = np.argsort(-x[:, 1]) if s.dim == 3 else np.arange(len(x))  # what is behind first
        d = 2.0 * s.radius[order]
        balls = EllipseCollection(
            d, d, np.zeros(len(d)), units="xy", offsets=x[order][:, across], transOffset=axis.transData,
            cmap=COLOURS, array=value[order], edgecolors="w", linewidths=0.2, facecolors=BACKGROUND,
            alpha=0.35 if chains else 1.0,
        )  # fmt: skip
        drawn.append(axis.add_collection(balls))
        if chains and row:
            c = sol.contacts[row]
            inside = c.b < len(s)
            lines = np.stack([x[c.a[inside]][:, across], x[c.b[inside]][:, across]], axis=1)
            strength = c.P_N[inside] / max(c.P_N.max(initial=0.0), 1e-300)
            drawn.append(
                axis.add_collection(LineCollection(list(lines), linewidths=4.0 * strength, colors=CHAINS))
            )
        time.set_text(f"t = {sol.t[row]:.2f} s")
        return [*drawn, time]

    return figure, draw
