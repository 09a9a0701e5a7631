"""Runs entries in a few processes and collects what they found."""

import contextlib
import inspect
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

import jax

from .entries import ENTRIES, Check, Entry, Sheet
from .mechanisms import MECHANISMS, Film, film


class Outcome(NamedTuple):
    """What an entry found, as plain data."""

    key: str
    paper: str
    figures: tuple[str, ...]
    title: str
    about: str
    shows: tuple[str, ...]
    control: str
    left_out: bool
    checks: list[Check]
    notes: list[str]
    pictures: list[bytes]
    source: str
    module: str
    error: str
    seconds: float

    @property
    def all_hold(self) -> bool:
        return not self.error and bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def good(self) -> bool:
        """As it should be: everything holds, or, of a broken scheme,
        the check fails that must, without an accident.
        """
        if self.left_out:
            return True
        if self.control:
            return not self.error and any(
                self.control in check.what and not check.holds for check in self.checks
            )
        return self.all_hold

    @property
    def verdict(self) -> str:
        if self.left_out:
            return "left out"
        if self.error:
            return "error"
        if self.control:
            return "caught" if self.good else "NOT CAUGHT"
        return "holds" if self.good else "FAILS"


def entries() -> list[Entry]:
    """All of them, in the order of the papers; controls last."""
    from . import papers  # noqa: F401  (registers them)

    return sorted(ENTRIES, key=lambda e: (bool(e.control), e.paper, _place(e.figures[0])))


def _place(figure: str) -> tuple[bool, list[int]]:
    """Figures by number, tables and statements after them."""
    return not figure[0].isdigit(), [int(n) for n in re.findall(r"\d+", figure)]


def select(papers: Sequence[str], figure: str | None) -> list[Entry]:
    """Entries of the papers (all if none is named) with the controls that break them,
    or those of one figure.
    """
    known = sorted({e.paper for e in entries()})
    for paper in papers:
        if paper not in known:
            raise ValueError(f"no paper {paper!r}; they are {', '.join(known)}")
    chosen = [e for e in entries() if not papers or e.paper in papers]
    if figure is None:
        return chosen
    wanted = figure.removeprefix("Fig. ").removeprefix("Figure ").strip()
    found = [e for e in chosen if wanted.lower() in (f.lower() for f in e.figures) and not e.control]
    if not found:
        names = ", ".join(f"{e.paper} {f}" for e in chosen for f in e.figures)
        raise ValueError(f"no figure {figure!r} here; there are {names}")
    return found


def _outcome(
    e: Entry,
    sheet: Sheet,
    pictures: Sequence[bytes] = (),
    *,
    left_out: bool = False,
    error: str = "",
    seconds: float = 0.0,
) -> Outcome:
    return Outcome(
        e.key, e.paper, e.figures, e.title, inspect.getdoc(e.function) or "", e.shows, e.control, left_out,
        sheet.checks,
        sheet.notes, list(pictures), inspect.getsource(e.function), e.function.__module__, error, seconds,
    )  # fmt: skip


def perform(e: Entry, quick: bool) -> Outcome:
    """One entry. An accident in it is an outcome too: the others go on, and the whole does not pass."""
    sheet, began, error, pictures = Sheet(quick), time.perf_counter(), "", []
    if quick and not e.quick:
        return _outcome(e, sheet, left_out=True)
    try:
        e.function(sheet)
        pictures = sheet.pictures()
        if not sheet.checks:
            error = "no check was made: nothing is known about this figure"
    except Exception:  # whatever it is belongs on the page
        error = traceback.format_exc(limit=-6)
    return _outcome(e, sheet, pictures, error=error, seconds=time.perf_counter() - began)


def _failed(kind: str, name: str, error: str) -> Outcome | Film:
    """What stands for a job that came to nothing."""
    if kind == "film":
        return Film(name, MECHANISMS[name].what, None, error)
    return _outcome(next(e for e in entries() if e.key == name), Sheet(), error=error)


def _job(kind: str, name: str, quick: bool) -> Outcome | Film:
    try:
        return perform(next(e for e in entries() if e.key == name), quick) if kind == "entry" else film(name)
    except Exception:
        return _failed(kind, name, traceback.format_exc(limit=-6))


def _forgetful_job(kind: str, name: str, quick: bool) -> Outcome | Film:
    """In a process that does many: compiled programs stay in memory."""
    try:
        return _job(kind, name, quick)
    finally:
        jax.clear_caches()


def _in_processes(
    jobs: Sequence[tuple[str, str, bool]], workers: int, do: Callable[..., Any] = _forgetful_job
) -> Iterator[Outcome | Film]:
    """Results as they come. If a process dies, what is left is done one by one:
    only the job that kills is lost.
    """
    left = list(jobs)
    with _processes(workers) as pool:
        running = {pool.submit(do, *job): job for job in jobs}
        for future in as_completed(running):
            if not isinstance(future.exception(), BrokenProcessPool):
                left.remove(running[future])
                yield _result(future, running[future])
    for job in left:
        with _processes(1) as pool:
            yield _result(pool.submit(do, *job), job)


def _result(future: Future, job: tuple[str, str, bool]) -> Outcome | Film:
    try:
        return future.result()
    except Exception as error:
        return _failed(*job[:2], f"no result: {error!r}")


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Gone at once when somebody interrupts."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def perform_all(
    chosen: Sequence[Entry],
    films: Sequence[str],
    quick: bool,
    workers: int,
    report: Callable[[Outcome | Film], None],
) -> tuple[list[Outcome], list[Film]]:
    """All outcomes and films, each in the order given; ``report`` hears of each as it comes."""
    costs = {("entry", e.key): e.cost for e in chosen} | {
        ("film", name): MECHANISMS[name].cost for name in films
    }
    # The longest first, so that no process is left alone with one at the end.
    jobs = [(*job, quick) for job in sorted(costs, key=lambda job: -costs[job])]
    alone = workers == 1 or len(jobs) == 1
    done: dict[str, Any] = {}
    for result in (_job(*job) for job in jobs) if alone else _in_processes(jobs, workers):
        done[result.key if isinstance(result, Outcome) else result.name] = result
        report(result)
    return [done[e.key] for e in chosen], [done[name] for name in films]
