"""`stickslip reproduce`: every figure has an entry, verdicts mean what they say,
and what is broken is caught.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import stickslip as ss
from browsing import Page
from stickslip.cli import app
from stickslip.reproduce import coverage, entries, page, run
from stickslip.reproduce.mechanisms import MECHANISMS, Film, Script, film
from stickslip.reproduce.papers import FIGURES, PAPERS

ROOT = Path(__file__).parents[1]


def make(function, control="", quick=True):
    return entries.Entry("S0", ("2",), "an entry", function, (), quick, control, 1.0)


def invoke(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


# ---- completeness


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_and_table_has_an_entry(paper):
    covered = {f for e in run.entries() if e.paper == paper and not e.control for f in e.figures}
    assert covered == set(FIGURES[paper])


NUMBERED = {  # how many of each kind the papers have, counted in their captions
    "S0": {"": 10, "Table": 2},
    "S1": {"": 9, "Table": 1},
    "S2": {"": 7},
    "S3": {
        "1.": 1,
        "3.": 5,
        "4.": 8,
        "5.": 2,
        "7.": 18,
        "8.": 1,
        "Table 4.": 4,
        "Table 5.": 1,
        "Table 7.": 1,
        "Algorithm": 2,
    },
    "S4": {"": 14, "Table": 7},
}
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII")


def missing(paper, items):
    """Numbers of a paper that a list does not have, or has without need."""
    names = []
    for kind, count in NUMBERED[paper].items():
        numbers = ROMAN[:count] if (paper, kind) == ("S4", "Table") else range(1, count + 1)
        names += [f"{kind}{k}" if kind.endswith(".") or not kind else f"{kind} {k}" for k in numbers]
    return set(names) ^ set(items)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_numbered_item_of_a_paper_is_accounted_for(paper):
    assert not missing(paper, coverage.COVERAGE[paper])
    kept = dict(coverage.COVERAGE[paper])
    del kept["2" if paper != "S3" else "7.8"]
    assert missing(paper, kept)  # the control
    assert coverage.table(paper) in (ROOT / "docs" / "reproduce.md").read_text()
    tests = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    for item in coverage.COVERAGE[paper].values():
        assert item.kind in ("entry", "test", "sketch", "not ours")
        assert item.kind != "test" or f"def {item.where}(" in tests
        assert item.kind != "sketch" or item.where == "gallery" or (ROOT / item.where).exists()


def test_entries_are_told_apart_and_explained():
    keys = [e.key for e in run.entries()]
    assert len(keys) == len(set(keys))
    for e in run.entries():
        assert e.function.__doc__, e.key
        for name in e.shows:
            assert name in ss.benchmarks.names(), e.key
    mutants = {e.title for e in run.entries() if e.control}
    assert len(mutants) >= 9
    assert sum(bool(e.control) for e in run.entries()) >= 16


def test_entries_do_not_speak_of_a_workplace():
    import inspect

    for e in run.entries():
        assert not re.search(
            r"shared/|reference-data|errata\.md|/work|/tmp", inspect.getsource(e.function)
        ), e.key


# ---- verdicts


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (lambda s: s.close("x", 1.05, 1.0, atol=0.1, source="-"), True),
        (lambda s: s.close("x", 1.2, 1.0, atol=0.1, source="-"), False),
        (lambda s: s.close("x", 105.0, 100.0, rtol=0.1, source="-"), True),
        (lambda s: s.close("x", np.nan, 1.0, atol=1e9, source="-"), False),
        (lambda s: s.at_most("x", 1.0, 1.0, source="-"), True),
        (lambda s: s.at_most("x", 1.1, 1.0, source="-"), False),
        (lambda s: s.at_most("x", np.nan, 1.0, source="-"), False),
        (lambda s: s.at_least("x", 0.9, 1.0, source="-"), False),
        (lambda s: s.at_least("x", np.nan, 1.0, source="-"), False),
        (lambda s: s.order("x", [1, 0.5, 0.25], [1, 0.25, 0.0625], 2, source="-"), True),
        (lambda s: s.order("x", [1, 0.5, 0.25], [1, 0.5, 0.25], 2, source="-"), False),
        (lambda s: s.order("x", [1, 0.5, 0.25], [1, np.nan, 0.25], 1, source="-"), False),
        (lambda s: s.holds("x", np.bool_(False), expected="-", got="-", source="-"), False),
    ],
)
def test_a_check_holds_exactly_if_it_does(check, holds):
    on = entries.Sheet()
    check(on)
    assert [c.holds for c in on.checks] == [holds]


def test_an_order_needs_three_step_sizes():
    with pytest.raises(ValueError, match="at least three"):
        entries.Sheet().order("x", [1, 0.5], [1, 0.25], 2, source="-")


def holds(on):
    """Holds."""
    on.at_most("one", 1.0, 2.0, source="arithmetic")


def fails(on):
    """Fails."""
    holds(on)
    on.at_most("three", 3.0, 2.0, source="arithmetic")


def breaks(on):
    """Breaks."""
    holds(on)
    raise RuntimeError("an accident")


def says_nothing(on):
    """Checks nothing."""


@pytest.mark.parametrize(
    ("function", "control", "verdict"),
    [
        (holds, "", "holds"), (fails, "", "FAILS"), (breaks, "", "error"), (says_nothing, "", "error"),
        (holds, "three", "NOT CAUGHT"), (fails, "three", "caught"), (fails, "one", "NOT CAUGHT"),
        (breaks, "three", "error"), (says_nothing, "three", "error"),
    ],
)  # fmt: skip
def test_only_what_holds_and_broken_schemes_that_fail_are_good(function, control, verdict):
    outcome = run.perform(make(function, control), quick=False)
    assert outcome.verdict == verdict
    assert outcome.good == (verdict in ("holds", "caught"))
    passed, _ = page.summary([run.perform(make(holds), False), outcome])
    assert passed == outcome.good
    if function is breaks:
        assert "an accident" in outcome.error


def draws_nonsense(on):
    """Cannot be drawn."""
    holds(on)
    ((a,),) = on.axes(1, 1)
    a.set_title("$\\nonsense{$")


def test_a_picture_that_cannot_be_drawn_is_an_error():
    assert run.perform(make(draws_nonsense), False).verdict == "error"


def test_what_a_quick_run_leaves_out_is_said():
    outcome = run.perform(make(fails, quick=False), quick=True)
    assert outcome.verdict == "left out"
    passed, text = page.summary([run.perform(make(holds), True), outcome])
    assert passed
    assert "1 left out" in text
    assert not page.summary([outcome])[0]  # nothing was run: nothing passed


def test_broken_methods_take_the_place_of_the_right_ones():
    b = ss.benchmarks.load("bouncing-ball")
    on = entries.Sheet().breaking(lambda method: ss.MoreauMidpoint())
    assert on.run(b, ss.Rattle(), t1=0.5).g_N().min() < -1e-6
    assert entries.Sheet().run(b, ss.Rattle(), t1=0.5).g_N().min() > -1e-9


# ---- the command


def test_one_figure_is_made_and_judged(tmp_path):
    out = invoke("S0", "--figure", "2", "--out", str(tmp_path))
    assert out.exit_code == 0, out.output
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    assert [v["figures"] for v in verdicts] == [["2"]]
    assert verdicts[0]["verdict"] == "holds"
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "data:image/png;base64" in text
    assert "index.html" in out.output.replace("\n", "")


def test_the_exit_code_tells_of_a_failure(tmp_path, monkeypatch):
    for function in (fails, breaks):
        monkeypatch.setattr(run, "ENTRIES", [make(function)])
        out = invoke("S0", "--workers", "1", "--out", str(tmp_path))
        assert out.exit_code == 1
    assert "an accident" in out.output
    assert "an accident" in (tmp_path / "index.html").read_text(encoding="utf-8")


def says(kind, name, quick):
    return name


def kills_one(kind, name, quick):
    if name == "1":
        os._exit(9)
    return name


@pytest.mark.slow
def test_many_jobs_are_all_done():
    jobs = [("entry", str(k), False) for k in range(70)]
    assert sorted(run._in_processes(jobs, 2, says), key=int) == [str(k) for k in range(70)]


@pytest.mark.slow
def test_a_process_that_dies_takes_only_its_own_job_with_it(monkeypatch):
    monkeypatch.setattr(run, "_failed", lambda kind, name, error: f"{name}: {error}")
    jobs = [("entry", str(k), False) for k in range(3)]
    first, lost, third = sorted(run._in_processes(jobs, 2, kills_one))
    assert lost.startswith("1: no result: BrokenProcessPool")
    assert (first, third) == ("0", "2")


def test_an_interrupted_run_is_not_judged(monkeypatch):
    import dataclasses

    from stickslip.reproduce import entries as module

    def interrupted(*args, **options):
        return dataclasses.replace(ss.simulate(*args, **options), result=ss.RESULTS.interrupted)

    monkeypatch.setattr(module, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        entries.Sheet().run(ss.benchmarks.load("bouncing-ball"), ss.Rattle(), t1=0.1)


def test_a_film_that_fails_is_not_passed_over():
    lost = Film("slider-crank", "-", None, "an accident")
    passed, text = page.summary([run.perform(make(holds), False)], [lost])
    assert not passed
    assert "no animation of slider-crank" in text


def test_a_named_figure_is_made_even_in_a_quick_run(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "ENTRIES", [make(holds, quick=False)])
    assert invoke("S0", "--figure", "2", "--quick", "--out", str(tmp_path)).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["S9"], "no paper 'S9'"),
        (["S0", "--figure", "99"], "no figure '99'"),
        (["--figure", "Fig. 99"], "no figure"),
    ],
)
def test_unknown_papers_and_figures_are_refused(arguments, words):
    out = invoke(*arguments)
    assert out.exit_code == 2
    assert words in " ".join(out.output.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "e", [e for e in run.entries() if e.control and e.quick], ids=lambda e: e.function.__name__
)
def test_broken_schemes_are_caught(e):
    """Those of quick entries; `stickslip reproduce` has all."""
    outcome = run.perform(e, quick=True)
    assert outcome.verdict == "caught", (e.key, outcome.error)


@pytest.mark.parametrize("name", ss.benchmarks.names())
def test_scripts_of_benchmarks_are_python(name):
    script = Script.of(name)
    compile(script.text, name, "exec")
    assert f'load("{name}")' in script.text
    assert "def load(" in script.source or name in ("incline", "bounce", "falling-mass", "ball-in-cylinder")


@pytest.mark.slow
def test_the_script_of_a_mechanism_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(Script.of("slider-crank").text, {})
    assert (tmp_path / "slider-crank.html").stat().st_size > 1e6
    assert set(MECHANISMS) <= set(ss.benchmarks.names())


@pytest.mark.slow
def test_the_page_opens_in_a_browser_with_all_its_parts(browser, tmp_path):
    chosen = [e for e in run.entries() if e.figures == ("2",) and e.paper == "S0"]
    outcomes, films = run.perform_all(chosen, ["slider-crank", "tippedisk"], True, 1, lambda result: None)
    file = page.write(outcomes, films, 1.0, tmp_path)
    assert file.stat().st_size < 15e6
    view = Page(browser, file)
    text = view.page.inner_text("body")
    assert "1 of 1 figures and tables hold" in text
    assert "2 of 2 broken schemes were caught" in text
    assert view.page.evaluate("[...document.images].every((i) => i.complete && i.naturalWidth > 100)")
    assert view.page.locator("tr.bad").count() > 3  # what the broken schemes do not meet
    for name in ("slider-crank", "tippedisk"):
        player = view.page.locator(f'.player[data-name="{name}"]')
        player.scroll_into_view_if_needed()
        view.wait_for(f"document.querySelector('.player[data-name=\"{name}\"]').dataset.frame !== undefined")
        player.locator("input").fill("100")
        view.wait_for(f"document.querySelector('.player[data-name=\"{name}\"]').dataset.frame === '100'")
    assert not view.complaints


def test_a_film_has_frames_for_the_whole_run():
    made = film("slider-crank")
    assert isinstance(made, Film)
    t = made.animation["t"]
    assert (t[0], t[-1]) == (0.0, MECHANISMS["slider-crank"].t1)
    assert len(t) > 100
