"""One run at a glance: what moves, what touches, what pushes, what sticks. See `Solution.plot`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .contact_states import STATES
from .dataset import all_labels
from .extras import need
from .located.output import forces_between
from .plot import COLORS, axes, finish
from .serialize import RecordedSystem
from .solution import Solution
from .system import Label
from .validate import nearest

FEW, MANY = 3, 14  # lines: up to which a legend hides nothing; more than that have none
SUFFIXES = (".png", ".pdf", ".svg")
STYLES: Any = ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)))  # of friction components
SHADES = ("#eef1f4", "#e8a33d", "#1f4e79")  # of open, slip, stick
MARKS = {
    "impact": "v", "accumulation": "P", "lift-off": "^", "stick": "s", "slip": "o", "reversal": "D",
    "force jump": "x", "event": "*", "printed steps": "X",
}  # fmt: skip


Panel = Callable[[Any], None]  # draws into axes


class _Run(NamedTuple):
    """A run, as panels see it."""

    sol: Solution
    smooth: Solution  # with rows close enough for curves
    labels: dict[str, tuple[Label, ...]]
    laws: list[int]  # that are shown: contacts, then friction elements
    friction: list[int]  # friction components of these


def overview(
    sol: Solution, title: str, file: str | Path | None, panels: Any = None, contacts: Any = None
) -> Any:
    if file is not None and Path(file).suffix not in SUFFIXES:
        raise ValueError(f"{file}: the name must end in .png, .pdf or .svg")
    need("matplotlib", "plots", "sol.plot")
    labels = all_labels(sol)
    laws = _chosen_laws(labels, contacts)
    owners = [label.name for label in labels["interaction"]]
    friction = [
        i for i, label in enumerate(labels["friction"]) if any(_belongs(label, owners[k]) for k in laws)
    ]
    run = _Run(sol, sol.smooth(500), labels, laws, friction)
    drawn = [panel for name in _chosen_panels(run, panels) for panel in PANELS[name](run)]
    columns = 2 if len(drawn) > 1 else 1
    rows = -(-len(drawn) // columns)
    figure, grid = axes(rows, columns, title, (4.6 * columns, 0.6 + 2.6 * rows))
    places = list(grid.ravel())
    if len(drawn) < len(places):  # the last one takes what is left
        for place in places[len(drawn) - 1 :]:
            place.remove()
        places[len(drawn) - 1] = figure.add_subplot(grid[0, 0].get_gridspec()[rows - 1, :])
    for place, panel in zip(places, drawn, strict=False):
        panel(place)
        place.set_xlim(sol.t[0], sol.t[-1])
        place.set_xlabel("t in s")
    finish(figure, file)
    return figure if file is None else None


def _belongs(label: Label, owner: str) -> bool:
    """A friction component is named after its law, kind and number."""
    return label.name.rsplit(" ", 2)[0] == owner


def _chosen_laws(labels: dict[str, tuple[Label, ...]], wanted: Any) -> list[int]:
    names = [label.name for label in labels["interaction"]]
    if wanted is None:
        return list(range(len(names)))
    chosen = []
    for one in [wanted] if isinstance(wanted, str | int) else wanted:
        if one in names:
            chosen.append(names.index(one))
        elif isinstance(one, int | np.integer) and 0 <= one < len(names):
            chosen.append(int(one))
        else:
            raise nearest("contact", str(one), names)
    return chosen


def _chosen_panels(run: _Run, wanted: Any) -> list[str]:
    sol, there = run.sol, {"positions", "velocities"}
    there |= {"gaps"} if any(k < sol.P_N.shape[1] for k in run.laws) else set()
    there |= {"forces"} if run.laws else set()
    told = not isinstance(sol.system, RecordedSystem) or "state" in sol.system.rows
    there |= {"states"} if (run.laws and told) or (sol.events is not None and len(sol.events)) else set()
    there |= {"energy"} if sol.has_energy else set()
    there |= {"steps"} if sol.order is not None or sol.events is not None else set()
    there |= {"order"} if sol.order is not None else set()
    if wanted is None:
        return [name for name in PANELS if name in there]
    chosen = [wanted] if isinstance(wanted, str) else list(wanted)
    if not chosen:
        raise ValueError(f"plot(panels=()): name at least one of {', '.join(PANELS)}")
    for name in chosen:
        if name not in PANELS:
            raise nearest("panel", str(name), PANELS)
        if name not in there:
            raise ValueError(
                f"plot(panels={name!r}): this run has none; it has "
                f"{', '.join(p for p in PANELS if p in there)}"
            )
    return chosen


def _axis(place: Any, title: str, units: Sequence[str], lines: int) -> None:
    known = sorted({unit for unit in units if unit})
    place.set_title(title)
    if known:
        place.set_ylabel(f"in {', '.join(known)}" if len(known) < 4 else "")
    if 0 < lines <= MANY:
        _legend(place, place.get_legend_handles_labels()[0])


def _legend(place: Any, handles: list[Any], below: bool = False) -> None:
    """Inside where it is small, below where it would hide something."""
    longest = max(len(handle.get_label()) for handle in handles)
    if len(handles) <= FEW and not below:
        place.legend(handles=handles, fontsize=7)
    else:
        place.legend(
            handles=handles, fontsize=7, ncols=max(1, 66 // (6 + longest)), frameon=False, loc="upper center",
            bbox_to_anchor=(0.5, -0.24), columnspacing=1.2, handlelength=1.6,
        )  # fmt: skip


def _by_unit(t: Any, values: Any, labels: Sequence[Label], title: str) -> list[Panel]:
    """A panel for each unit: metres beside radians would hide one of them."""

    def panel(some: list[int]) -> Panel:
        return lambda place: _columns(place, t, values[:, some], [labels[i] for i in some], title, some)

    units = list(dict.fromkeys(label.unit for label in labels))
    return [panel([i for i, label in enumerate(labels) if label.unit == unit]) for unit in units]


def _columns(
    place: Any, t: Any, values: Any, labels: Sequence[Label], title: str, colors: Sequence[int]
) -> None:
    for i, label in enumerate(labels):
        place.plot(t, values[:, i], lw=1, color=COLORS[colors[i] % len(COLORS)], label=label.name)
    _axis(place, title, [label.unit for label in labels], len(labels))
    size = np.abs(values).max(initial=0.0)
    if 0.0 < size < 1e-9:  # rest is a line, not its round-off
        place.set_ylim(-1e-3, 1e-3)


def _positions(run: _Run) -> list[Panel]:
    return _by_unit(run.smooth.t, run.smooth.q, run.labels["coordinate"], "positions")


def _velocities(run: _Run) -> list[Panel]:
    return _by_unit(run.smooth.t, run.smooth.u, run.labels["velocity"], "velocities")


def _gaps(run: _Run, place: Any) -> None:
    gaps = run.smooth.g_N()
    chosen = [k for k in run.laws if k < gaps.shape[1]]
    _columns(
        place,
        run.smooth.t,
        gaps[:, chosen],
        [Label(run.labels["contact"][k].name, "m") for k in chosen],
        "",
        chosen,
    )
    place.axhline(0.0, color="k", lw=0.6)
    place.set_title(f"gaps (smallest {gaps[:, chosen].min():.1e})")


def _forces(run: _Run, place: Any) -> None:
    """Forces at instants where they are known, else means over steps;
    what an impact gives is a mark at the edge.
    """
    sol = run.sol
    lasts = np.asarray(sol.dt) > 0.0
    at_instants = sol.la_N is not None
    t: Any
    if sol.by_row:  # with jumps where modes change
        t, N, F = forces_between(sol, 500)
    elif at_instants:
        t, N, F = sol.t, np.asarray(sol.la_N), np.asarray(sol.la_F)
    else:
        t, dt = sol.t[lasts], np.asarray(sol.dt)[lasts, None]
        N, F = np.asarray(sol.P_N)[lasts] / dt, np.asarray(sol.P_F)[lasts] / dt
    normal = [k for k in run.laws if k < N.shape[1]]
    style: dict[str, Any] = {} if at_instants else {"drawstyle": "steps-pre"}
    for k in normal:
        name = run.labels["contact"][k].name
        place.plot(t, N[:, k], lw=1, color=COLORS[k % len(COLORS)], label=f"{name} normal", **style)
    for i in run.friction:
        name = run.labels["friction"][i].name
        color = COLORS[_owner(run, i) % len(COLORS)]
        place.plot(
            t, F[:, i], lw=1, ls=STYLES[_component(run, i) % len(STYLES)], color=color, label=name, **style
        )
    units = {"N"} if normal else set()
    units |= {run.labels["friction"][i].unit.removesuffix(" s") for i in run.friction}
    _edge(run, place, t, np.concatenate([N[:, normal], F[:, run.friction]], axis=1))
    _axis(
        place,
        "contact forces" if at_instants else "contact forces, means over steps",
        sorted(units),
        len(normal) + len(run.friction),
    )


def _owner(run: _Run, component: int) -> int:
    owners = [label.name for label in run.labels["interaction"]]
    return next(k for k, owner in enumerate(owners) if _belongs(run.labels["friction"][component], owner))


def _component(run: _Run, component: int) -> int:
    """Its number among those of its law."""
    before = run.labels["friction"][:component]
    return sum(_owner(run, i) == _owner(run, component) for i in range(len(before)))


def resting_force(forces: np.ndarray) -> float | None:
    """The largest force that is no impact, if impacts dwarf it: less than half are, and either a leap divides
    them from the rest, or they are the largest tenth.
    """
    sizes = np.sort(np.abs(forces[np.isfinite(forces) & (forces != 0.0)]))
    if sizes.size < 20:
        return None
    upper = sizes[sizes.size // 2 :]
    last = int(np.argmax(upper[1:] / upper[:-1]))
    for level in (upper[last], 2.0 * sizes[int(0.9 * sizes.size)]):
        if upper[-1] > 5.0 * level:
            return float(level)
    return None


def _edge(run: _Run, place: Any, t: Any, forces: np.ndarray) -> None:
    """Limits that show resting forces; marks where impulses go beyond."""
    sol, high = run.sol, resting_force(forces)
    low, up = place.get_ylim()
    if high is not None:
        seen = forces[np.isfinite(forces) & (np.abs(forces) <= high)]
        up, low = 1.25 * high, 1.25 * min(seen.min(), -0.1 * high)
        place.set_ylim(low, up)
    jumps = np.asarray(sol.dt) == 0.0
    jumps[0] = False
    beyond = [sol.t[jumps & (np.asarray(sol.P_N).max(axis=1, initial=0.0) > 0.0)]] if np.any(jumps) else []
    if high is not None:
        beyond.append(t[np.nanmax(np.abs(forces), axis=1, initial=0.0) > high])
    times = np.concatenate(beyond) if beyond else np.zeros(0)
    if times.size:
        place.plot(times, np.full(times.size, up), "v", ms=4, color="k", clip_on=False, label="impacts")


def _states(run: _Run, place: Any) -> None:
    """A line a law: open, slip, stick; marks where events were located."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    sol, names = run.sol, [run.labels["interaction"][k].name for k in run.laws]
    handles: list[Any] = []
    if names:
        codes = np.asarray(sol.state_code())[:-1, run.laws].T
        lines = np.arange(len(names) + 1) - 0.5
        place.pcolormesh(
            sol.t, lines, codes, cmap=ListedColormap(SHADES), vmin=-0.5, vmax=2.5, rasterized=True
        )
        place.hlines(lines, sol.t[0], sol.t[-1], color="w", lw=3)
        seen = [k for k in range(len(STATES)) if np.any(codes == k)]
        handles = [Patch(facecolor=SHADES[k], label=STATES[k], edgecolor="#c0c6cc", lw=0.5) for k in seen]
    if sol.events is not None:
        shown = [
            run.labels["interaction"][k].name
            for k in range(len(run.labels["interaction"]))
            if k not in run.laws
        ]
        names += [
            name
            for name in sol.events.names
            if name not in names and name not in shown and name in set(sol.events.name)
        ]
        for kind, mark in MARKS.items():
            some = [e for e in sol.events.of(kind) if e.name in names or not e.name]
            if some:
                at = [names.index(e.name) if e.name else -1 for e in some]
                handles += place.plot(
                    [e.t for e in some],
                    at,
                    mark,
                    ms=4,
                    color="k",
                    mfc="none" if mark in "^o" else "k",
                    ls="",
                    label=kind,
                )
    place.grid(visible=False)
    place.set(
        title="stick and slip" if sol.events is None else "stick and slip, events",
        yticks=range(len(names)),
        yticklabels=names,
    )
    place.set_ylim(-0.6, max(len(names), 1) - 0.4)
    if handles:
        _legend(place, handles, below=True)


def _energy(run: _Run, place: Any) -> None:
    place.plot(run.smooth.t, run.smooth.energy(), lw=1)
    _axis(place, "energy", ["J"], 0)


def _steps(run: _Run, place: Any) -> None:
    sol = run.sol
    made = np.asarray(sol.dt) > 0.0
    place.plot(sol.t[made], sol.dt[made], lw=0.8, drawstyle="steps-pre")
    if sol.order is not None:
        _switches(sol, place, sol.dt)
        place.legend(fontsize=7)
    place.set_yscale("log")
    _axis(place, "step size", ["s"], 0)


def _order(run: _Run, place: Any) -> None:
    place.plot(run.sol.t[1:], run.sol.order[1:], lw=0.8, drawstyle="steps-pre")
    _switches(run.sol, place, run.sol.order)
    _axis(place, "order of the step", [], 0)


def _switches(sol: Solution, place: Any, values: Any) -> None:
    switched = [point.step for point in sol.switching_points()]
    place.plot(sol.t[switched], np.asarray(values)[switched], "k.", ms=4, label="a law switches")


def _one(draw: Callable[[_Run, Any], None]) -> Callable[[_Run], list[Panel]]:
    return lambda run: [lambda place: draw(run, place)]


PANELS: dict[str, Callable[[_Run], list[Panel]]] = {
    "positions": _positions, "velocities": _velocities, "gaps": _one(_gaps), "forces": _one(_forces),
    "states": _one(_states), "energy": _one(_energy), "steps": _one(_steps), "order": _one(_order),
}  # fmt: skip
