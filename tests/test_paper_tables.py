"""Tables of S3 and the choice of a method: they hold, and a wrong number or name is noticed."""

from pathlib import Path

import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY, by_name
from stickslip.reproduce import decision_tree, s2_newton_steps, s3_algorithms, s3_tables
from stickslip.reproduce.entries import Sheet

DOCS = Path(__file__).parent.parent / "docs"


def judged(function):
    sheet = Sheet(quick=True)
    function(sheet)
    return sheet


def failures(sheet):
    return [check.what for check in sheet.checks if not check.holds]


def test_the_printed_tableaus_are_those_generated():
    sheet = judged(s3_tables.butcher_tableaus)
    assert not failures(sheet)
    assert sum("coefficients" in check.what for check in sheet.checks) == 12
    (picture,) = sheet.pictures()
    assert 10_000 < len(picture) < 120_000


PARTS = [
    (k, part)
    for k, p in enumerate(s3_tables.PRINTED)
    for part in ("c", "A", "b", "embedded")
    if getattr(p, part)
]


@pytest.mark.parametrize(("number", "part"), PARTS)
def test_one_wrong_coefficient_is_noticed(monkeypatch, number, part):
    p = s3_tables.PRINTED[number]
    first, comma, rest = getattr(p, part).partition(",")
    wrong = p._replace(**{part: f"{first} + 1/1000000{comma}{rest}"})
    tables = (*s3_tables.PRINTED[:number], wrong, *s3_tables.PRINTED[number + 1 :])
    monkeypatch.setattr(s3_tables, "PRINTED", tables)
    monkeypatch.setattr(s3_tables, "draw", lambda *_: None)
    (found,) = failures(judged(s3_tables.butcher_tableaus))
    assert found.startswith(f"Table {p.table}, {p.make().name}:")
    assert found.endswith("largest difference")


def test_a_claim_that_is_not_so_is_noticed(monkeypatch):
    sdirk = next(p for p in s3_tables.PRINTED if p.table == "4.3")
    boasting = sdirk._replace(stable="ALB", C=2)
    others = [boasting if p is sdirk else p for p in s3_tables.PRINTED]
    monkeypatch.setattr(s3_tables, "PRINTED", tuple(others))
    monkeypatch.setattr(s3_tables, "draw", lambda *_: None)
    name = f"Table 4.3, {sdirk.make().name}"
    assert failures(judged(s3_tables.butcher_tableaus)) == [f"{name}: assumptions", f"{name}: stability"]


@pytest.mark.parametrize(
    ("text", "value", "typeset"),
    [
        ("(88 - 7*sqrt(6))/360", (88 - 7 * np.sqrt(6)) / 360, r"\dfrac{88-7\sqrt{6}}{360}"),
        ("-1/12", -1 / 12, r"-\dfrac{1}{12}"),
        ("1 - alpha", np.sqrt(2) / 2, r"1-\alpha"),
    ],
)
def test_coefficients_are_read_and_typeset(text, value, typeset):
    out = s3_tables.Coefficient.read(text)
    assert out.value == pytest.approx(value, rel=1e-15)
    assert out.typeset == typeset


def test_beta_is_the_root_that_the_paper_names():
    beta = s3_tables.LETTERS["beta"]
    assert beta**3 - 3 * beta**2 + 1.5 * beta - 1 / 6 == pytest.approx(0.0, abs=1e-15)
    assert 1 / 6 < beta < 1 / 2


# ---- the choice of a method


@pytest.mark.parametrize("leaf", decision_tree.leaves(), ids=lambda leaf: leaf.name)
def test_every_leaf_is_a_method_by_that_name(leaf):
    assert leaf.name in REGISTRY
    written = leaf.call.removeprefix("ss.").partition("(")[0]
    assert getattr(ss, written) is type(by_name(leaf.name))
    assert f"ss.{written}(" in (DOCS / "choosing-a-method.md").read_text(encoding="utf-8")


def test_the_choice_of_a_method_holds_and_is_in_the_docs(tmp_path):
    assert not failures(judged(s3_algorithms.choice_of_a_method))
    decision_tree.picture(str(tmp_path / "tree.png"))
    assert (tmp_path / "tree.png").stat().st_size < 60_000
    assert (DOCS / "pictures" / "decision_tree.png").stat().st_size < 60_000
    assert "pictures/decision_tree.png" in (DOCS / "choosing-a-method.md").read_text(encoding="utf-8")


def test_a_leaf_that_is_no_method_is_noticed(monkeypatch):
    leaf = decision_tree.Leaf("rattle", "ss.RadauIIA(2)", "-")
    monkeypatch.setattr(
        decision_tree, "leaves", lambda: [leaf, decision_tree.Leaf("moreau", "ss.MoreauMidpoint()", "-")]
    )
    monkeypatch.setattr(decision_tree, "draw", lambda axis: None)
    assert failures(judged(s3_algorithms.choice_of_a_method)) == ["rattle is ss.RadauIIA(2)"]


# ---- iterations


def test_counts_of_a_solver_that_solves_nothing_are_not_believed():
    found = failures(judged(s2_newton_steps.newton_steps_of_no_solve))
    assert any("largest violation of a law" in what for what in found)
