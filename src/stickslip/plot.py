"""Pictures of runs. Matplotlib is imported when a picture is asked for."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from . import shapes
from .benchmarks import Benchmark
from .benchmarks.bouncing_ball import exact_gap
from .extras import need
from .files import writing
from .rigid import inclinations
from .solution import Solution

COLORS = (
    "#1f4e79", "#c55a11", "#548235", "#7f6000", "#7030a0", "#404040", "#a61c3c", "#2e75b6", "#8a8a8a",
    "#00796b", "#d4a017",
)  # fmt: skip


def axes(rows: int, columns: int, title: str, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure in the style of this package, and its axes, rows by columns.

    Without pyplot: neither its state nor its backend is anybody's but the user's. The style holds until
    `finish`.
    """
    mpl = need("matplotlib", "plots", "a picture")
    from cycler import cycler
    from matplotlib.figure import Figure

    style = contextlib.ExitStack()
    style.enter_context(mpl.rc_context({
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3,
        "axes.prop_cycle": cycler(color=COLORS), "font.size": 9, "axes.titlesize": 10, "figure.dpi": 130,
    }))  # fmt: skip
    figure: Any = Figure(figsize=size, layout="constrained")
    figure.style = style
    if title:
        figure.suptitle(title, fontsize=11)
    return figure, figure.subplots(rows, columns, squeeze=False)


def finish(figure: Any, file: Any = None, dpi: float | str = "figure") -> None:
    """Writes a figure, if there is a place for it, and gives the user's own style back."""
    try:
        if file is not None and not isinstance(file, str | Path):
            figure.savefig(file, dpi=dpi)
        elif file is not None:
            with writing(file) as part:
                figure.savefig(part, dpi=dpi, format=Path(file).suffix[1:])
    finally:
        figure.style.close()


def portrait(sol: Solution, title: str, file: str | Path, moments: int = 7) -> None:
    """A run at a glance: the mechanism at some moments, the later the darker,
    beside its gaps and velocities.
    """
    system: Any = sol.system
    drawn = hasattr(system, "draw")
    figure, panels = axes(2, 2 if drawn else 1, title, (8.6, 3.6) if drawn else (6.0, 3.6))
    gaps = sol.g_N()
    few = gaps if gaps.shape[1] <= 20 else gaps.min(axis=1, keepdims=True)
    upper, name = (
        (few, "gaps" if few is gaps else "smallest gap") if gaps.shape[1] else (sol.q, "coordinates")
    )
    for panel, values, what in ((panels[0, -1], upper, name), (panels[1, -1], sol.u, "velocities")):
        panel.plot(sol.t, values, lw=1)
        panel.set(title=what)
        if np.abs(values).max() < 1e-9:  # a contact that stays closed is a line, not its round-off
            panel.set_ylim(-1e-3, 1e-3)
    panels[1, -1].set(xlabel="t")
    if drawn:
        grid = panels[0, 0].get_gridspec()
        for panel in panels[:, 0]:
            panel.remove()
        solid = any(isinstance(shape, shapes.Mesh) for shape in shapes.flat(system.draw(sol.t[0], sol.q[0])))
        times = np.linspace(sol.t[0], sol.t[-1], 3 if solid else moments)
        rows = np.unique(np.searchsorted(sol.t, times).clip(0, len(sol.t) - 1))
        pictures = [shapes.drawn(system, sol.t[row], sol.q[row]) for row in rows]
        scene = figure.add_subplot(grid[:, 0], projection="3d" if solid else None)
        for k, picture in enumerate(pictures):
            _snapshot(scene, picture, 0.15 + 0.85 * (k + 1) / len(pictures))
        scene.grid(visible=False)
        if solid:
            scene.set_aspect("equal")
            scene.set_axis_off()
            scene.view_init(elev=18, azim=-55)
        else:
            scene.set_aspect("equal", adjustable="datalim")
    finish(figure, file, dpi=85)


def _snapshot(scene: Any, picture: list[Any], strength: float) -> None:
    from matplotlib.patches import Polygon

    for shape in picture:
        if isinstance(shape, shapes.Contacts):
            continue
        points = np.asarray(shape.points)
        if isinstance(shape, shapes.Mesh):
            scene.plot_trisurf(
                *points.T,
                triangles=np.asarray(shape.triangles),
                color=shape.color,
                alpha=0.7 * strength,
                lw=0.1,
                edgecolor="k",
            )
        elif isinstance(shape, shapes.Polygon):
            scene.add_patch(
                Polygon(points, facecolor=shape.color, edgecolor=shapes.INK, lw=0.6, alpha=strength)
            )
        else:
            scene.plot(*points.T, color=shape.color, lw=0.6 * shape.width, alpha=strength)


def bouncing_ball(runs: dict[str, Solution], b: Benchmark, file: str | Path) -> None:
    """The gap through the accumulation point, and the energy that each impact takes."""
    figure, ((a, c),) = axes(
        1, 2, "Bouncing ball, $e_N = 0.5$, dt = 0.01: rest through an accumulation point", (9.0, 3.4)
    )
    t = np.linspace(0, b.t1, 2000)
    exact = exact_gap(b, t)
    a.plot(t, exact, color="k", lw=0.8, label="exact")
    for name, sol in runs.items():
        a.plot(sol.t, sol.g_N()[:, 0], ".", ms=3, label=f"{name} (worst gap {sol.g_N().min():.0e})")
        c.plot(sol.t, sol.energy(), lw=1, label=name)
    a.axvline(b.reference["rest_time"], color="k", lw=0.6, ls=":")
    a.text(b.reference["rest_time"], 0.55, " at rest", fontsize=8)
    a.set(title="gap", xlabel="t")
    a.legend(fontsize=8)
    c.set(title="energy", xlabel="t")
    c.legend(fontsize=8)
    finish(figure, file)


def slider_crank(sol: Solution, file: str | Path) -> None:
    """As S0 Fig. 5: gaps of two corners, the tilt, its phase portrait and the energy."""
    figure, ((a, b), (c, d)) = axes(2, 2, "Slider-crank with clearance, RATTLE, dt = 1e-4", (9.0, 5.6))
    early = sol.t <= 0.03
    for i in range(4):
        a.plot(sol.t[early], 1e3 * sol.g_N()[early, i], lw=1, label=f"corner {i + 1}")
    a.axhline(0.0, color="k", lw=0.6)
    a.set(title=f"gaps in mm (worst of the run {sol.g_N().min():.0e} m)", xlabel="t")
    a.legend(fontsize=7, ncols=2)
    b.plot(sol.t[early], np.degrees(sol.q[early, 8]), lw=1)
    b.axvline(0.01, color="k", lw=0.6, ls=":")
    b.set(title="tilt of the slider in degrees: gone after 0.01 s", xlabel="t")
    c.plot(sol.q[:, 5], sol.u[:, 5], lw=1)
    c.set(title="connecting rod: phase portrait", xlabel=r"$\varphi_2$", ylabel=r"$\omega_2$")
    E = sol.energy()
    d.plot(sol.t, E / E[0], lw=1)
    d.set(title="energy / start", xlabel="t")
    finish(figure, file)


def tippedisk(sol: Solution, b: Benchmark, file: str | Path) -> None:
    """As S0 Fig. 10: the centre of gravity rises, the inclination dips; dots are the converged reference."""
    figure, ((a, c),) = axes(1, 2, "Tippedisk, RATTLE, dt = 1e-3: spun, it turns upside down", (9.0, 3.4))
    end = 1.5
    early = sol.t <= end
    z, inclination = ({t: v for t, v in b.reference[k].items() if t <= end} for k in ("z", "theta"))
    theta = np.asarray(inclinations(sol.q[:, 3:]))
    a.plot(sol.t[early], 1e3 * sol.q[early, 2], lw=1, label="RATTLE")
    a.plot(list(z), 1e3 * np.array(list(z.values())), "ko", ms=3, label="reference")
    a.axhline(45, color="k", lw=0.6, ls=":")
    a.text(1.05, 45.1, "geometric centre", fontsize=8)
    a.set(title="height of the centre of gravity in mm", xlabel="t")
    a.legend(fontsize=8)
    c.plot(sol.t[early], theta[early], lw=1)
    c.plot(list(inclination), list(inclination.values()), "ko", ms=3)
    c.set(title=r"inclination $\theta$", xlabel="t")
    finish(figure, file)


def convergence_plot(result: Any, title: str, file: str | Path) -> None:
    """Errors over step sizes in q and u, with the measured order of each."""
    from matplotlib.ticker import NullFormatter

    figure, ((a, b),) = axes(1, 2, title, (9.0, 4.2))
    markers = "osd^v<>ph*+x"
    for axis, quantity in ((a, "q"), (b, "u")):
        smallest = 1.0
        for i, (name, errors) in enumerate(result.errors.items()):
            label = f"{name} ({result.order(name, quantity):.2f})"
            axis.loglog(
                result.dts, errors[quantity], marker=markers[i % len(markers)], ms=4, lw=1, label=label
            )
            smallest = min(smallest, errors[quantity][errors[quantity] > 0].min(initial=1.0))
        axis.set(title=f"error in {quantity}", xlabel="dt", ylim=(max(smallest / 10, 1e-17), None))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.legend(fontsize=7, title="method (measured order)", title_fontsize=7, loc="upper left")
    finish(figure, file)


def switching_points(curves: dict[tuple[str, int], Any], file: str | Path) -> None:
    """S4 Figs. 12(e), (f) and 14: error against the largest step, and against work."""
    figure, ((a, b, c),) = axes(1, 3, "Extrapolation with step size adjustment", (11.0, 3.8))
    for (name, order), (dts, errors, work) in curves.items():
        label = f"order {order} (slope {np.polyfit(np.log(dts), np.log(errors), 1)[0]:.1f})"
        left = a if name == "impact oscillator" else c
        left.loglog(dts, errors, "o-", ms=3, lw=1, label=label)
        if left is a:
            b.loglog(work, errors, "o-", ms=3, lw=1)
    a.set(title="impact oscillator: error in x", xlabel="dt_max")
    b.set(title="the same against steps computed", xlabel="steps, rejected ones too")
    c.set(title=r"woodpecker: error in $\varphi_S$", xlabel="dt_max")
    for axis in (a, c):
        axis.legend(fontsize=7)
    finish(figure, file)


def work_precision(curves: dict[str, np.ndarray], title: str, file: str | Path) -> None:
    """Errors over times, one line a method: (errors, seconds) by row; printed laws are dashed."""
    figure, ((a,),) = axes(1, 1, title, (7.5, 4.6))
    colors: dict[str, str] = {}
    for name, rows in curves.items():
        color = colors.setdefault(name.split(",")[0], COLORS[len(colors)])
        a.loglog(
            1e3 * rows[:, 1],
            rows[:, 0],
            "o--" if "printed" in name else "o-",
            ms=4,
            lw=1,
            color=color,
            label=name,
        )
    a.axhline(1e-8, color="k", lw=0.6, ls=":")
    a.set(xlabel="time in ms (compiled, one core)", ylabel="largest error in q")
    a.legend(fontsize=7)
    finish(figure, file)


def work_precision_pair(
    persistent: dict[str, np.ndarray], impact: dict[str, np.ndarray], file: str | Path
) -> None:
    """The same methods on contact that persists and across an impact: (errors, seconds) by row."""
    figure, ((a, b),) = axes(1, 2, "Work against precision: a mass on a slope", (12.6, 4.4))
    for axis, curves, title in ((a, persistent, "contact persists"), (b, impact, "dropped: one impact")):
        for i, (name, rows) in enumerate(curves.items()):
            axis.loglog(
                1e3 * rows[:, 1],
                rows[:, 0],
                "osd^v<>phXP"[i],
                ls="-",
                ms=4,
                lw=1,
                color=COLORS[i],
                label=name,
            )
        axis.set(title=title, xlabel="time in ms (compiled, one core)", ylabel="error in q")
    b.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    finish(figure, file)
