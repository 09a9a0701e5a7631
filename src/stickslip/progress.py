"""A progress bar that appears only where somebody is looking and the run is long enough to need one."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from .extras import MissingExtra, need_all

PATIENCE = 1.0  # seconds before a bar appears


@runtime_checkable
class Meter(Protocol):
    def update(self, done: int) -> None: ...


class Silent:
    def update(self, done: int) -> None:
        pass


class Bar:
    def __init__(self, total: int, unit: str, stays: bool):
        needed = {"rich.console": "cli", "rich.progress": "cli"}
        console, rich = need_all(needed, "simulate(progress=True)")
        self._began = time.perf_counter()
        self.progress = rich.Progress(
            rich.TextColumn("{task.completed}/{task.total} " + unit),
            rich.BarColumn(),
            rich.TimeRemainingColumn(),
            console=console.Console(stderr=True),
            transient=not stays,
        )
        self._task = self.progress.add_task(unit, total=total)
        self._shown = False

    def update(self, done: int) -> None:
        if not self._shown and time.perf_counter() - self._began > PATIENCE:
            self.progress.start()
            self._shown = True
        self.progress.update(self._task, completed=done)


def _bar(wanted: bool | None, total: int, unit: str) -> Bar | None:
    """A bar that nobody asked for is not worth an error."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        return None
    try:
        return Bar(total, unit, stays=bool(wanted))
    except MissingExtra:
        if wanted:
            raise
        return None


@contextmanager
def meter(wanted: bool | None, total: int, unit: str) -> Iterator[Meter]:
    """``wanted``: True or False, or None for "on a terminal"."""
    bar = _bar(wanted, total, unit)
    if bar is None:
        yield Silent()
        return
    try:
        yield bar
    finally:
        bar.progress.stop()
