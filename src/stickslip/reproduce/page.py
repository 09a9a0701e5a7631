"""The page of a reproduction: verdicts, figures, mechanisms; and the verdicts once more for machines."""

import base64
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from .. import __version__
from ..pages import render
from .mechanisms import Film, Script
from .papers import PAPERS
from .run import Outcome


def named(figures: Sequence[str]) -> str:
    """ "Fig. 2", "Figs. 7.10, 7.11", "Table 1"."""
    plain = [f for f in figures if f[0].isdigit()]
    words = [f for f in figures if not f[0].isdigit()]
    head = [f"{'Fig.' if len(plain) == 1 else 'Figs.'} {', '.join(plain)}"] if plain else []
    return ", ".join(head + words)


def summary(outcomes: Sequence[Outcome], films: Sequence[Film] = ()) -> tuple[bool, str]:
    """Whether everything is as it should be, and a sentence that says so."""
    entries = [o for o in outcomes if not o.control]
    controls = [o for o in outcomes if o.control and not o.left_out]
    ran = [o for o in entries if not o.left_out]
    good = sum(o.good for o in ran)
    checks = [c for o in ran for c in o.checks]
    text = (
        f"{good} of {len(ran)} figures and tables hold ({sum(c.holds for c in checks)} of {len(checks)} "
        "checks)"
    )
    if len(entries) > len(ran):
        text += f"; {len(entries) - len(ran)} left out"
    if controls:
        text += f"; {sum(o.good for o in controls)} of {len(controls)} broken schemes were caught"
    lost = [film.name for film in films if film.error]
    if lost:
        text += f"; no animation of {', '.join(lost)}"
    return bool(ran) and not lost and all(o.good for o in outcomes), text


class _View:
    """An outcome with what only a page needs."""

    def __init__(self, outcome: Outcome):
        self._outcome = outcome
        self.named = named(outcome.figures)
        self.images = [base64.b64encode(p).decode("ascii") for p in outcome.pictures]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outcome, name)


def write(outcomes: Sequence[Outcome], films: Sequence[Film], seconds: float, out: Path) -> Path:
    """``out/index.html`` and ``out/verdicts.json``."""
    passed, text = summary(outcomes, films)
    machine = (
        f"Python {platform.python_version()}, jax {jax.__version__} on {jax.default_backend()}, "
        f"{platform.machine()}"
    )
    views = [_View(o) for o in outcomes]
    shown = dict.fromkeys([film.name for film in films] + [name for o in outcomes for name in o.shows])
    by_paper: dict[str, list[_View]] = {}
    for view in views:
        if not view.control:
            by_paper.setdefault(view.paper, []).append(view)
    page = render(
        "reproduce.html",
        title="stickslip reproduces five papers",
        summary={
            "passed": passed,
            "text": text,
            "made": f"stickslip {__version__}, {machine}; {seconds:.0f} s",
        },
        papers={paper: PAPERS[paper] for paper in by_paper},
        by_paper=by_paper,
        controls=[view for view in views if view.control],
        films=films,
        scripts=[Script.of(name) for name in shown],
        anchors={o.key: f"entry-{k}" for k, o in enumerate(outcomes)},
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.html").write_text(page, encoding="utf-8")
    verdicts = [
        {
            "paper": o.paper, "figures": o.figures, "title": o.title, "control": o.control,
            "verdict": o.verdict, "good": o.good, "seconds": round(o.seconds, 2), "error": o.error,
            "checks": [c._asdict() for c in o.checks],
        }
        for o in outcomes
    ]  # fmt: skip
    (out / "verdicts.json").write_text(json.dumps(verdicts, indent=1), encoding="utf-8")
    return out / "index.html"
