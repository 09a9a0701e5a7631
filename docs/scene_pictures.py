"""Makes the pictures of planar scenes of the gallery: each at a few moments,
and a curve that tells the story.

.venv/bin/python docs/scene_pictures.py [NAME ...]
"""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

from stickslip import plot
from stickslip.rigid import rotation_matrix

HERE = Path(__file__).parent


def angle(*names: str):
    return lambda sol: {name: sol[name].angle for name in names}


def moved(sol):
    return {
        f"box{i}": abs(sol[f"box{i}"].position - sol[f"box{i}"].position[0]).max(axis=1) for i in (0, 4, 9)
    }


def tilts(sol):
    return {f"d{i}": -sol[f"d{i}"].rotation for i in range(0, 20, 4)}


def gaps(sol):
    return {
        eye: 1e3 * sol[pin, eye].gap[:, 0]
        for pin, eye in (("crank pin", "first eye"), ("rocker pin", "second eye"))
    }


def ticks(sol):
    return {"pendulum": sol["suspension"].angle, "wheel / 10": sol["arbor"].angle / 10}


def gripped(sol):
    left, dt = sol["box", "left finger"], sol.t[1] - sol.t[0]
    most = np.where(sol.t > 0.1, 0.5 * left.P_N.sum(axis=1) / dt, np.nan)  # without the impact
    return {"friction of a finger": abs(left.P_F.sum(axis=1)) / dt, "its bound": most}


# By name: end, dt, moments, what is drawn over time, and its label.
STORIES: dict[str, tuple[float, float, tuple[float, ...], Any, str]] = {
    "domino_row": (0.9, 1e-3, (0.0, 0.3, 0.6, 0.9), tilts, "tilt"),
    "stack": (1.0, 1e-3, (0.0, 1.0), moved, "moved by, m"),
    "four_bar": (2.0, 2.5e-4, (0.0, 0.3, 0.45, 0.6), gaps, "gaps in mm"),
    "geneva_drive": (2.5, 1e-3, (0.6, 0.9, 1.0, 1.1), angle("motor", "axis"), "angle"),
    "escapement": (6.0, 5e-4, (0.0, 0.14, 0.25, 0.39), ticks, "angles"),
    "gripper": (2.3, 1e-3, (0.0, 0.65, 1.2, 2.3), gripped, "forces in N"),
}


def drawn(axis: Any, picture: Any, frame: int) -> np.ndarray:
    from matplotlib.collections import PolyCollection

    clouds = []
    for part in picture.parts:
        p, x = (a if a.ndim == 1 else a[frame] for a in (part.rotation, part.position))
        there = part.vertices @ np.asarray(rotation_matrix(p)).T + x
        axis.add_collection(
            PolyCollection(
                there[part.triangles][:, :, :2], facecolor=part.color, edgecolor=part.color, lw=0.3
            )
        )
        clouds.append(there[:, :2])
    for ground in picture.grounds:
        y = np.atleast_2d(ground.position)[0, 1]
        axis.axhline(y, color="k", lw=0.8)
    return np.concatenate(clouds)


def picture(name: str) -> None:
    t1, dt, moments, curves, label = STORIES[name]
    sol = runpy.run_path(str(HERE.parent / f"examples/scenes/{name}.py"))["scene"].simulate(
        "rattle", t1=t1, dt=dt
    )
    seen = sol.animate().picture()
    figure, axes = plot.axes(1, len(moments) + 1, name.replace("_", " "), (13.0, 2.8))
    clouds = []
    for axis, t in zip(axes[0], moments, strict=False):
        frame = int(np.argmin(np.abs(np.asarray(seen.t) - t)))
        clouds.append(drawn(axis, seen, frame))
        axis.set(title=f"t = {t:g} s", aspect="equal", xticks=[], yticks=[])
    every = np.concatenate(clouds)
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.03 * (high - low).max()
    for axis in axes[0, :-1]:
        axis.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    for word, values in curves(sol).items():
        axes[0, -1].plot(sol.t, values, lw=1, label=word)
    axes[0, -1].set(title=label, xlabel="t")
    axes[0, -1].legend(fontsize=7)
    plot.finish(figure, HERE / "pictures" / "scenes" / f"{name}.png")


if __name__ == "__main__":
    for name in sys.argv[1:] or STORIES:
        print(name, flush=True)
        picture(name)
