"""A progress bar that appears only where somebody is looking and the run is long enough to need one."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE = 1.0  # seconds before a bar appears


class Meter(Protocol):
    def update(self, done: int) -> None: ...


class Silent:
    def update(self, done: int) -> None:
        pass


class Bar:
    def __init__(self, total: int, unit: str, stays: bool):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._began = time.perf_counter()
        self.progress = Progress(
            TextColumn("{task.completed}/{task.total} " + unit),
            BarColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=not stays,
        )
        self._task = self.progress.add_task(unit, total=total)
        self._shown = False

    def update(self, done: int) -> None:
        if not self._shown and time.perf_counter() - self._began > PATIENCE:
            self.progress.start()
            self._shown = True
        self.progress.update(self._task, completed=done)


@contextmanager
def meter(wanted: bool | None, total: int, unit: str) -> Iterator[Meter]:
    """``wanted``: True or False, or None for "on a terminal"."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield Silent()
        return
    bar = Bar(total, unit, stays=bool(wanted))
    try:
        yield bar
    finally:
        bar.progress.stop()
