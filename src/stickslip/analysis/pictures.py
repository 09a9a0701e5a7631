"""Pictures of studies: bifurcation diagrams, branches, basins, exponents, fits.

Without a path they return the figure.
"""

from typing import Any

import numpy as np

from ..plot import COLORS, axes, finish


def bifurcation(data: Any, what: Any = 0, path: Any = None, title: str = "") -> Any:
    """What `ss.bifurcation` gives: a coordinate (its place or name) at every crossing, over the parameter."""
    parameter = next(name for name in data["q"].dims if name not in ("direction", "crossing", "coordinate"))
    figure, ((a,),) = axes(1, 1, title, (8.0, 4.6))
    q = data["q"].isel(coordinate=what) if isinstance(what, int) else data["q"].sel(coordinate=what)
    name = str(q["coordinate"].values)
    q = q.transpose(..., parameter, "crossing")
    runs = (
        [(str(d), q.sel(direction=d)) for d in q["direction"].values] if "direction" in q.dims else [("", q)]
    )
    for k, (label, run) in enumerate(runs):
        x = np.repeat(run[parameter].values, run.sizes["crossing"])
        a.plot(x, run.values.ravel(), ",", color=COLORS[k], alpha=0.6)
        if label:
            a.plot([], [], "s", ms=4, color=COLORS[k], label=f"{parameter} goes {label}")
    if len(runs) > 1:
        a.legend(fontsize=7)
    a.set(xlabel=parameter, ylabel=f"{name} once a period")
    return _done(figure, path)


def branch(of: Any, what: Any = 0, path: Any = None, title: str = "") -> Any:
    """A coordinate at the start of the period over the parameter: unstable orbits dashed,
    special ones marked.
    """
    figure, ((a, b),) = axes(1, 2, title, (9.0, 3.8))
    y, stable = of.q[:, what], of.stable
    for k in range(len(y) - 1):
        changes = [(s.value, s.orbit.q[what]) for s in of.special if s.behind == k + 1]
        ends = np.array([(of.value[k], y[k]), *changes, (of.value[k + 1], y[k + 1])])
        for piece in range(len(ends) - 1):  # stability changes at special places
            near = k if piece == 0 and changes else k + 1
            a.plot(*ends[piece : piece + 2].T, "-" if stable[near] else "--", color=COLORS[0], lw=1.2)
    marks = {"fold": "o", "flip": "s", "grazing": "^"}
    for kind in dict.fromkeys(s.kind for s in of.special):
        places = [s for s in of.special if s.kind == kind]
        a.plot(
            [s.value for s in places],
            [s.orbit.q[what] for s in places],
            marks[kind],
            color=COLORS[1],
            ms=6,
            label=kind,
        )
    if of.special:
        a.legend(fontsize=7)
    a.set(xlabel=of.parameter, ylabel=f"q[{what}] at the start")
    b.plot(of.value, np.abs(of.multipliers), ".-", lw=1, ms=3, color=COLORS[0])
    b.axhline(1.0, color="k", lw=0.6, ls=":")
    b.set(
        xlabel=of.parameter,
        ylabel="|multipliers|",
        yscale="log" if np.abs(of.multipliers).max() > 10.0 else "linear",
    )
    return _done(figure, path)


def basins(data: Any, path: Any = None, title: str = "") -> Any:
    """What `ss.basins` gives over two entries of the start."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    names = data["attractor"].dims
    if len(names) != 2:
        raise ValueError(
            f"a picture of basins needs two axes of starts, these are {', '.join(map(str, names))}"
        )
    figure, ((a,),) = axes(1, 1, title, (6.0, 5.0))
    values = data["attractor"].values
    classes = np.unique(values)
    colors = ["#ffffff" if k < 0 else "#bbbbbb" if k == 0 else COLORS[(k - 1) % len(COLORS)] for k in classes]
    edges = np.append(classes - 0.5, classes[-1] + 0.5)
    x, y = data[names[0]].values, data[names[1]].values
    a.pcolormesh(
        x, y, values.T, cmap=ListedColormap(colors), norm=BoundaryNorm(edges, len(classes)), shading="nearest"
    )
    for k, color in zip(classes, colors, strict=True):
        a.plot([], [], "s", color=color, mec="k", mew=0.4, label=_called(data, int(k)))
    a.legend(fontsize=7, loc="upper right", framealpha=0.9)
    a.grid(visible=False)
    a.set(xlabel=str(names[0]), ylabel=str(names[1]))
    return _done(figure, path)


def _called(data: Any, k: int) -> str:
    if k < 0:
        return "no run"
    share = f"{np.mean(data['attractor'].values == k):.1%}"
    if "multiple" not in data:
        return f"{k}: {share}"
    if k == 0:
        return f"no period: {share}"
    return f"motion {k}, period {int(data['multiple'].values[data['attractor'].values == k][0])}: {share}"


def exponents(of: Any, path: Any = None, title: str = "") -> Any:
    """How Lyapunov exponents settle."""
    figure, ((a,),) = axes(1, 1, title, (6.0, 3.6))
    n = len(of.history)
    a.plot(of.time / n * np.arange(1, n + 1), of.history, lw=1)
    a.axhline(0.0, color="k", lw=0.6)
    a.set(xlabel="t in s", ylabel="exponents in 1/s", xscale="log")
    return _done(figure, path)


def fitted(of: Any, path: Any = None, title: str = "") -> Any:
    """Measured values with the fit, and what is left in units of sigma."""
    figure, (above, below) = axes(2, len(of.measured), title, (4.0 + 2.5 * len(of.measured), 4.6))
    at = 0
    for (name, values), a, b in zip(of.measured.items(), above, below, strict=True):
        there = np.isfinite(values)
        place = np.broadcast_to(
            np.arange(values.shape[0]).reshape(-1, *(1,) * (values.ndim - 1)), values.shape
        )
        a.plot(place[there], values[there], ".", ms=4, color=COLORS[0], label="measured")
        a.plot(
            np.arange(values.shape[0]), of.fitted[name].reshape(values.shape[0], -1), lw=1, color=COLORS[1]
        )
        a.plot([], [], lw=1, color=COLORS[1], label="fitted")
        a.set(title="" if name == "value" else name)
        b.plot(place[there], of.residual[at : at + there.sum()], ".", ms=4, color=COLORS[0])
        b.axhline(0.0, color="k", lw=0.6)
        b.set(xlabel="point", ylabel="residual over sigma")
        at += int(there.sum())
    above[0].legend(fontsize=7)
    return _done(figure, path)


def _done(figure: Any, path: Any) -> Any:
    finish(figure, path)
    return figure if path is None else None
