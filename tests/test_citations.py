"""Whoever uses a method is told whom to cite."""

import re
from pathlib import Path

import pytest

import stickslip as ss
from stickslip.citations import ENTRIES, SOURCES
from stickslip.methods import REGISTRY

CLASSES = sorted(
    {type(make()) for make in REGISTRY.values()} | {ss.Extrapolation}, key=lambda cls: cls.__name__
)


def parsed(text):
    """The entries of a BibTeX text by key: kind and fields. Refuses what BibTeX would not read."""
    entries, rest = {}, text.strip()
    while rest:
        head = re.match(r"@(\w+)\{([\w-]+),\n", rest)
        assert head, f"no entry starts here: {rest[:40]!r}"
        depth, end = 1, head.end()
        while depth:
            assert end < len(rest), f"braces of {head[2]} are not balanced"
            depth += {"{": 1, "}": -1}.get(rest[end], 0)
            end += 1
        assert head[2] not in entries, f"the key {head[2]} is there twice"
        fields = re.findall(r"^  (\w+) = \{(.*)\},$", rest[head.end() : end], flags=re.M)
        assert len(fields) == rest[head.end() : end].strip("\n}").count("\n") + 1, (
            f"a line of {head[2]} is not a field"
        )
        entries[head[2]] = head[1], dict(fields)
        rest = rest[end:].lstrip()
    return entries


def dois(reference):
    return re.findall(r"doi:(10\.\S+?)(?:[;,]|\s|$)", reference)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_citation_is_bibtex_with_authors_titles_and_the_package(cls):
    entries = parsed(ss.citation(cls))
    assert list(entries)[-1] == "stickslip"
    assert len(entries) >= 2
    for _, fields in entries.values():
        assert fields["author"]
        assert fields["title"]
    for key in list(entries)[:-1]:
        assert entries[key][1]["year"] in key


@pytest.mark.parametrize(
    "broken",
    [
        "@article{a,\n  title = {x},\n",
        "@article{a,\n  title = {x},\n}\n@misc{a,\n  title = {y},\n}",
        "title = {x}",
    ],
)
def test_broken_bibtex_is_noticed(broken):
    with pytest.raises(AssertionError):
        parsed(broken)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_doi_of_the_reference_is_cited(cls):
    cited = {fields.get("doi") for _, fields in parsed(ss.citation(cls)).values()}
    stated = dois(cls.reference)
    assert stated or "thesis" in cls.reference
    assert set(stated) <= cited


def test_a_doi_that_is_not_cited_would_be_noticed():
    assert dois("A. Author, J. 1 (2000), doi:10.1000/182; B") == ["10.1000/182"]
    assert "10.1000/182" not in ss.citation("rattle")


def test_every_entry_is_used_and_every_source_is_an_entry():
    used = {key for keys in SOURCES.values() for key in keys}
    assert used == set(ENTRIES)
    assert set(SOURCES) == {cls.__name__ for cls in CLASSES}


def test_object_class_and_name_say_the_same():
    assert (
        ss.citation("radau2")
        == ss.citation(ss.RadauIIA)
        == ss.citation(ss.RadauIIA(stages=5))
        == ss.citation("radau5")
    )
    assert ss.citation("rattle") != ss.citation("moreau")


def test_an_extrapolation_cites_its_base_and_a_subclass_what_it_extends():
    class Mine(ss.Rattle):
        pass

    assert "moreau1988" in parsed(ss.citation(ss.Extrapolation(4)))
    assert "breuling2024thesis" not in parsed(ss.citation(ss.Extrapolation))
    assert "breuling2024thesis" in parsed(ss.citation(ss.Extrapolation(base=ss.ShiftedMoreau())))
    assert ss.citation(Mine()) == ss.citation("rattle")


def test_keys_stay():
    assert list(parsed(ss.citation("rattle"))) == ["breuling2024rattle", "stickslip"]
    assert list(parsed(ss.citation("lobatto3"))) == [
        "capobianco2024lobatto",
        "breuling2024thesis",
        "jay1996",
        "stickslip",
    ]


def test_the_entry_of_the_package_is_that_of_the_citation_file():
    cff = (Path(__file__).parent.parent / "CITATION.cff").read_text()
    _, fields = parsed(ss.citation("rattle"))["stickslip"]
    assert f'title: "{fields["title"]}"' in cff
    assert f"version: {fields['note'].removeprefix('Version ')}" in cff
    assert fields["author"].strip("{}") in cff


def test_what_is_no_method_is_refused():
    with pytest.raises(ValueError, match="did you mean 'rattle'"):
        ss.citation("ratle")
    for wrong in (3, ss.System, ss.simulate):
        with pytest.raises(TypeError, match="must be a method"):
            ss.citation(wrong)

    class Own(ss.methods.Method):
        solver: ss.Automatic

        def init(self, *args): ...

        def step(self, *args): ...

    with pytest.raises(ValueError, match="Own is not a method of stickslip"):
        ss.citation(Own(ss.Automatic()))
