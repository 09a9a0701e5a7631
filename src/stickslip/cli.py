"""The command line: `stickslip list`, `run NAME`, `convergence NAME`, `survey`, `reproduce`, `demo`."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

# Backends that are not installed are not worth a warning here.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from . import files, pages
from .extras import need, need_all

need_all({"typer": "cli", "rich": "cli"}, "stickslip on the command line")

import typer  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

if TYPE_CHECKING:
    from .solution import Solution


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"stickslip {version('stickslip')}")
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
console = Console() if sys.stdout.isatty() else Console(width=110)  # a log has room


def fail(message: str) -> typer.Exit:
    Console(stderr=True).print(f"[red]error:[/red] {message}", highlight=False)
    return typer.Exit(2)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print it and leave")
    ] = False,
) -> None:
    """Mechanical systems with impacts and set-valued friction."""


@app.command("list")
def list_() -> None:
    """Benchmarks with their cases, and methods with their facts."""
    from . import benchmarks
    from .methods import REGISTRY

    table = Table(title="benchmarks")
    for column in ("name", "cases", "about"):
        table.add_column(column)
    for name in benchmarks.names():
        about = benchmarks.about(name).splitlines()[0]
        table.add_row(name, ", ".join(map(str, benchmarks.cases(name))), about)
    console.print(table)
    table = Table(title="methods")
    for column in ("name", "order", "contact on", "reference"):
        table.add_column(column)
    for name, make in REGISTRY.items():
        method = make()
        table.add_row(name, str(method.order), f"{method.level} level", method.reference)
    console.print(table)


def summary(sol: "Solution", title: str) -> None:
    """How a run went, in a few lines."""
    import numpy as np

    n = sol.stats.newton_iterations
    console.print(f"{title}: {sol.t.shape[0] - 1} steps to t = {sol.t[-1]:g}", highlight=False)
    console.print(
        f"  Newton iterations a step: {n.sum(axis=1).mean():.2f} (at most {n.sum(axis=1).max()})",
        highlight=False,
    )
    if sol.stats.mode_failed is not None and sol.stats.mode_failed.any():
        from .dataset import all_labels

        names = [label.name for label in all_labels(sol)["interaction"]]
        printed = int(sol.stats.mode_failed.any(axis=1).sum())
        parts = [f"{name} {k}" for name, k in zip(names, sol.stats.mode_failures, strict=True) if k]
        more = "" if len(parts) <= 6 else f" and {len(parts) - 6} more"
        plural = "step" if printed == 1 else "steps"
        console.print(
            f"  friction as printed in {printed} {plural}: {', '.join(parts[:6])}{more}", highlight=False
        )
    if sol.events is not None:
        text = (
            f"  steps of {sol.dt[sol.dt > 0].min():.1e} to {sol.dt.max():.1e}, {sol.stats.attempts} attempts"
        )
        counts = Counter(sol.events.kind)
        happened = ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "no events"
        console.print(f"{text}; {happened}", highlight=False)
        if counts["printed steps"]:
            console.print("  where contact modes could not be decided, printed steps led on", highlight=False)
    elif sol.order is not None:
        text = f"  steps of {sol.dt[1:].min():.1e} to {sol.dt.max():.1e}, order up to {sol.order.max()}"
        missed = int(sol.stats.inaccurate.sum())
        less = f", {missed} less accurate than asked" if missed else ""
        console.print(f"{text}, {len(sol.switching_points())} switching points{less}", highlight=False)
    if sol.P_N.shape[1]:
        console.print(f"  smallest gap: {sol.g_N().min():.3e}", highlight=False)
    console.print(f"  q = {np.array2string(np.asarray(sol.q[-1]), precision=6)}", highlight=False)
    console.print(f"  u = {np.array2string(np.asarray(sol.u[-1]), precision=6)}", highlight=False)


def check_files(plot: Path | None, html: Path | None, save: Path | None) -> None:
    """Before the run: a name that cannot be written, or a package that is not there,
    is no reason to wait for it.
    """
    asked = "stickslip run"
    needed: dict[str, str] = {}
    for option, file, suffixes, packages in (
        ("--plot", plot, (".png", ".pdf", ".svg"), {"matplotlib": "plots"}),
        ("--html", html, (".html",), pages.NEEDED),
        ("--save", save, (".nc", ".npz"), {} if save is None or save.suffix == ".npz" else files.NEEDED),
    ):
        if file is None:
            continue
        if file.suffix not in suffixes:
            raise fail(f"{option} {file}: the file must end in {' or '.join(suffixes)}")
        asked, needed = f"{asked} {option}", needed | packages
    need_all(needed, asked)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="a benchmark, see `stickslip list`")],
    case: Annotated[int, typer.Option(help="which case of it")] = 1,
    method: Annotated[
        str | None, typer.Option(help="a method, see `stickslip list`; default: the benchmark's")
    ] = None,
    dt: Annotated[float | None, typer.Option(help="step size; default: the benchmark's")] = None,
    t1: Annotated[float | None, typer.Option(help="end time; default: the benchmark's")] = None,
    rtol: Annotated[
        float | None, typer.Option(help="relative tolerance: events are located, steps follow")
    ] = None,
    atol: Annotated[float | None, typer.Option(help="absolute tolerance; default: rtol/100")] = None,
    plot: Annotated[Path | None, typer.Option(help="write a picture here")] = None,
    html: Annotated[
        Path | None, typer.Option(help="write a page to play, pause and scrub here (.html)")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="write the run here: .nc (netCDF, see `ss.load`) or .npz")
    ] = None,
) -> None:
    """Run a benchmark and say how it went."""
    from . import benchmarks
    from .methods import by_name
    from .results import RESULTS, SimulationError
    from .simulate import simulate

    check_files(plot, html, save)
    try:
        b = benchmarks.load(name, case)
        tolerances = rtol is not None or atol is not None
        chosen = (None if tolerances else b.method) if method is None else by_name(method)
        # A method or a step of the user's own means steps of one size.
        steps = b.steps if method is None and dt is None else {"dt": b.dt if dt is None else dt}
        if tolerances:
            steps = {"rtol": rtol, "atol": atol} | ({} if dt is None else {"dt": dt})
        sol = simulate(b.system, chosen, b.q0, b.u0, t1=b.t1 if t1 is None else t1, **steps)
    except ValueError as error:
        raise fail(str(error)) from None
    except SimulationError as error:
        Console(stderr=True).print(f"[red]failed:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None
    if sol.result == RESULTS.interrupted:
        Console(stderr=True).print(f"interrupted at t = {sol.t[-1]:g}: nothing is written", highlight=False)
        raise typer.Exit(130)
    stages = getattr(sol.method, "stages", None)
    title = f"{name}, case {case}, {type(sol.method).__name__}" + (
        f"({stages})" if tolerances and stages else ""
    )
    summary(sol, title)
    for option, file, write in (
        ("--plot", plot, lambda file: sol.plot(file, title=title)),
        ("--html", html, lambda file: sol.animate(file, title=title)),
        ("--save", save, sol.save),
    ):
        if file is not None:
            try:
                write(file)
            except OSError as error:
                raise fail(f"{option} {error}") from None
            console.print(f"wrote {file}", highlight=False)


@app.command()
def convergence(
    name: Annotated[str, typer.Argument(help="a benchmark, see `stickslip list`")],
    methods: Annotated[str, typer.Option(help="names with commas between")] = "rattle,radau2,lobatto3",
    case: Annotated[int, typer.Option(help="which case of the benchmark")] = 1,
    t1: Annotated[float | None, typer.Option(help="end time; default: the benchmark's")] = None,
    steps: Annotated[str, typer.Option(help="numbers of steps with commas between")] = "16,32,64,128,256",
    plot: Annotated[Path | None, typer.Option(help="write a picture here")] = None,
) -> None:
    """Measure the order of methods on a benchmark: errors in the norm S3 (4.56) against a fine run."""
    from . import benchmarks
    from .convergence import convergence as measure
    from .methods import by_name
    from .results import SimulationError

    if plot is not None:
        need("matplotlib", "plots", "stickslip convergence --plot")
    try:
        counts = [int(n) for n in steps.split(",")]
    except ValueError:
        raise fail(
            f"--steps {steps}: numbers of steps with commas between are needed, such as 16,32,64"
        ) from None
    try:
        b = benchmarks.load(name, case)
        end = b.t1 if t1 is None else t1
        chosen = {key: by_name(key) for key in methods.split(",")}
        with console.status("running"):
            out = measure(b, chosen, [end / n for n in counts], t1=end)
    except ValueError as error:
        raise fail(str(error)) from None
    except SimulationError as error:
        Console(stderr=True).print(f"[red]failed:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None
    console.print(out.table(f"{name}, case {case}, t1 = {end:g}"))
    if plot is not None:
        out.plot(plot, f"{name}, case {case}")
        console.print(f"wrote {plot}", highlight=False)


@app.command()
def survey(
    names: Annotated[str, typer.Option(help="benchmarks with commas between; default: all")] = "",
    methods: Annotated[str, typer.Option(help="methods with commas between; default: all")] = "",
    workers: Annotated[int, typer.Option(help="processes")] = 2,
    out: Annotated[Path, typer.Option(help="write the tables here (Markdown)")] = Path("build/benchmarks.md"),
) -> None:
    """Every method on every benchmark: works, gap, energy, iterations, time.

    Takes a quarter of an hour to compile.
    """
    from . import benchmarks
    from . import survey as tables
    from .methods import REGISTRY, by_name

    try:
        chosen = names.split(",") if names else benchmarks.names()
        kinds = methods.split(",") if methods else list(REGISTRY)
        for name in chosen:
            benchmarks.load(name)
        for kind in kinds:
            by_name(kind)
    except ValueError as error:
        raise fail(str(error)) from None
    done, total = 0, len(tables.pairs(chosen, kinds))

    def report(cell: tables.Cell) -> None:
        nonlocal done
        done += 1
        console.print(f"{done}/{total} {cell.benchmark} {cell.method}: {cell.works}", highlight=False)

    tables.write(tables.survey(chosen, kinds, workers, report), out)
    console.print(f"wrote {out}", highlight=False)


@app.command()
def reproduce(
    papers: Annotated[list[str] | None, typer.Argument(help="S0, S1, S2, S3, S4; default: all")] = None,
    figure: Annotated[
        str | None, typer.Option(help="one figure or table only, as the paper numbers it: 7.12")
    ] = None,
    out: Annotated[Path, typer.Option(help="where the page goes")] = Path("build/reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="leave out what takes long, fewer steps elsewhere")
    ] = False,
    workers: Annotated[int, typer.Option(help="processes", min=1)] = 2,
) -> None:
    """Make the figures and tables of the five papers again, judge each, and write a page.

    Exit code 0: all hold.
    """
    from .reproduce import reproduce as make

    try:
        passed = make(papers or [], figure, out, quick, workers, console)
    except ValueError as error:
        raise fail(str(error)) from None
    if not passed:
        raise typer.Exit(1)


@app.command()
def demo(out: Annotated[Path, typer.Option(help="where the pictures go")] = Path("build/demo")) -> None:
    """Three benchmarks, a table and three pictures: the first minute."""
    from . import demo as demonstration

    demonstration.run(out, console)


if __name__ == "__main__":
    sys.exit(app())
