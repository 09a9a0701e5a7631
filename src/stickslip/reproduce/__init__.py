"""Figures and tables of the five papers, made again and judged: `stickslip reproduce`.

`entries.py` is what an entry is written on, `s0_rattle.py` to `s4_step_size.py` hold the entries, `run.py`
runs them, `page.py` writes the page.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..extras import need_all
from ..pages import NEEDED

if TYPE_CHECKING:
    from rich.console import Console


def reproduce(
    papers: Sequence[str], figure: str | None, out: Path, quick: bool, workers: int, console: "Console"
) -> bool:
    """Runs what was asked for, says how it goes, writes ``out/index.html``;
    True if everything is as it should be.
    """
    # Before the work: what is missing would be missed at the end of it.
    needed = {"rich.markup": "cli", "matplotlib": "plots", "PIL": "plots", **NEEDED}
    escape = need_all(needed, "stickslip reproduce")[0].escape
    from .mechanisms import MECHANISMS
    from .page import named, summary, write
    from .run import Outcome, perform_all, select

    chosen = select(papers, figure)
    quick = quick and figure is None  # a figure that was asked for is made
    # before the work: a folder that cannot be written to is no place for it
    out.mkdir(parents=True, exist_ok=True)
    whole = figure is None and not papers
    films = [name for name, m in MECHANISMS.items() if whole and (m.quick or not quick)]
    began, done, total = time.perf_counter(), 0, len(chosen) + len(films)

    def report(result) -> None:
        nonlocal done
        done += 1
        if isinstance(result, Outcome):
            color = "dim" if result.left_out else "green" if result.good else "red"
            line = (
                f"{result.paper} {named(result.figures)}: {escape(result.title)}  "
                f"[{color}]{result.verdict}[/]"
            )
        else:
            line = f"{result.name}, animated" + ("  [red]error[/]" if result.error else "")
        console.print(escape(f"[{done}/{total}]"), line, highlight=False, soft_wrap=True)

    outcomes, shown = perform_all(chosen, films, quick, workers, report)
    seconds = time.perf_counter() - began
    page = write(outcomes, shown, seconds, out)
    passed, text = summary(outcomes, shown)
    plain: Any = {"highlight": False, "markup": False}
    for o in outcomes:
        if not o.good:
            console.print(f"{o.paper} {named(o.figures)}: {o.title}", style="red", **plain)
            for c in o.checks:
                if not c.holds and not o.control:
                    console.print(f"  {c.what}: expected {c.expected} {c.tolerance}, got {c.got}", **plain)
            if o.error:
                console.print(o.error, **plain)
    for film in shown:
        if film.error:
            console.print(f"{film.name}, animated\n{film.error}", **plain)
    console.print(f"[{'green' if passed else 'red'}]{text}[/] in {seconds:.0f} s", highlight=False)
    console.print(f"page: {page} ({page.stat().st_size / 1e6:.1f} MB)", highlight=False, soft_wrap=True)
    return passed
