"""What the docs show runs, and what they state is so."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import stickslip as ss
from stickslip.methods import REGISTRY

ROOT = Path(__file__).parent.parent


def blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.S)


PAGES = [p.relative_to(ROOT).as_posix() for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
ELSEWHERE = {("README.md", 0), ("docs/getting-started.md", 0)}  # run by tests that look at what comes out
EXAMPLES = [(file, k) for file in PAGES for k in range(len(blocks(file))) if (file, k) not in ELSEWHERE]


@pytest.mark.parametrize(("file", "number"), EXAMPLES, ids=[f"{file}-{k}" for file, k in EXAMPLES])
def test_examples_run(file, number, tmp_path, monkeypatch):
    """Each by itself, as a reader would paste it into an empty file."""
    monkeypatch.chdir(tmp_path)
    # A page of examples may define a system: its source must be found by whoever asks for it.
    (tmp_path / "example.py").write_text(blocks(file)[number])
    exec(compile(blocks(file)[number], str(tmp_path / "example.py"), "exec"), {"__name__": "example"})


def test_examples_are_found():
    with_examples = {file for file, _ in EXAMPLES}
    for page in ("getting-started", "friction", "adding-a-law", "adding-a-method"):
        assert f"docs/{page}.md" in with_examples


def test_the_getting_started_script_leaves_a_plot_a_page_and_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "example"}
    exec(blocks("docs/getting-started.md")[0], space)
    for name in ("shaken.png", "shaken.html", "shaken.nc"):
        assert (tmp_path / name).stat().st_size > 5_000
    sol = space["sol"]
    assert sol.g_N().min() >= -1e-9
    # Once it stays on the table: where it sticks it moves with it, where it slips friction is mu m g.
    rests, slip = sol.t > 1.2, abs(sol.u[:, 0] - 0.5 * np.cos(10.0 * sol.t))
    inside = abs(sol.P_F[:, 0]) < 0.999 * 0.4 * 9.81e-3
    assert slip[rests & inside].max() < 1e-9
    assert 0.3 < (rests & inside).sum() / rests.sum() < 0.9
    assert abs(sol.P_F[rests & ~inside, 0]) == pytest.approx(0.4 * 9.81e-3, rel=1e-3)


def test_the_site_builds_without_a_complaint(tmp_path):
    mkdocs = pytest.importorskip("mkdocs.commands.build", reason="mkdocs makes the site")
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    mkdocs.build(config)
    assert (tmp_path / "gallery.html").exists()
    assert "simulate" in (tmp_path / "api.html").read_text()


def test_every_page_of_the_docs_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in navigation


def test_every_public_name_is_in_the_api():
    import types

    text = (ROOT / "docs" / "api.md").read_text()
    for name, value in vars(ss).items():
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            assert f"\n::: stickslip.{name}\n" in text, name


def api():
    """The script that writes the API page."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_page_has_signatures_and_says_what_every_field_means():
    page = api()
    text = page.expanded((ROOT / "docs" / "api.md").read_text())
    assert ":::" not in text
    for call in (
        "ss.Coulomb(mu, dim=1, axes=None)",
        "ss.Contact(e_N=0.0, e_F=0.0, friction=())",
        "    restart=None,",
    ):
        assert call in text
    for name, value in vars(ss).items():
        if isinstance(value, type) and not name.startswith("_"):
            unknown = [field for field, _, meaning in page.described(value) if not meaning]
            assert not unknown, (
                f"ss.{name} does not say what {unknown} mean: a comment behind the field is missing"
            )
    assert "| `P_N` |  | (t, contact): normal percussions over the step that ends at t, in N s |" in text


def test_the_gallery_shows_every_benchmark():
    text = (ROOT / "docs" / "gallery.md").read_text()
    for name in ss.benchmarks.names():
        assert f"## {name}\n" in text
        assert (ROOT / "docs" / "pictures" / "gallery" / f"{name}.png").exists()


LONG = ("eulers_disk.py",)


def example(file):
    return pytest.param(file.name, marks=pytest.mark.long_runs if file.name in LONG else ())


@pytest.mark.parametrize("file", [example(file) for file in sorted((ROOT / "examples").glob("*.py"))])
def test_example_scripts_run(file, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert len((ROOT / "examples" / file).read_text().splitlines()) <= 50
    exec(compile((ROOT / "examples" / file).read_text(), file, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("file", [file.name for file in sorted((ROOT / "examples" / "studies").glob("*.py"))])
def test_studies_run_in_a_small_version(file, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(sys, "argv", [file, "--small"])
    text = (ROOT / "examples" / "studies" / file).read_text()
    assert len(text.splitlines()) <= 60
    exec(compile(text, file, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
    assert any(path.suffix == ".png" for path in tmp_path.iterdir())
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_the_readme_ball_ends_rolling():
    space = {}
    exec(blocks("README.md")[0], space)
    sol = space["sol"]
    assert sol.g_N().min() >= -1e-9
    assert sol.u[-1, 0] + 0.1 * sol.u[-1, 2] == pytest.approx(0.0, abs=1e-9)


def method_table():
    rows = ["| method | order | contact on | name | reference |", "|---|---|---|---|---|"]
    for name, make in REGISTRY.items():
        m = make()
        rows.append(f"| `ss.{type(m).__name__}` | {m.order} | {m.level} level | `{name}` | {m.reference} |")
    return "\n".join(rows)


def test_the_method_table_is_the_registry():
    assert method_table() in (ROOT / "README.md").read_text()


def test_the_changelog_names_everything_public():
    text = (ROOT / "CHANGELOG.md").read_text() + (ROOT / "README.md").read_text()
    for name in (*(type(make()).__name__ for make in REGISTRY.values()), *ss.benchmarks.names()):
        assert name in text


def test_public_names_of_the_surface_are_there():
    for name in [
        "System",
        "LagrangianSystem",
        "Contact",
        "Coulomb",
        "RectangularCoulomb",
        "Pivoting",
        "Rolling",
        "CoulombContensou",
        "FrictionElement",
        "stribeck",
        "simulate",
        "initial_state",
        "RESULTS",
        "SimulationError",
        "SemismoothNewton",
        "FixedPoint",
        "Automatic",
        "benchmarks",
    ]:
        assert hasattr(ss, name)


def run(*arguments):
    from stickslip.cli import app

    return CliRunner().invoke(app, list(arguments))


def test_list_names_everything():
    out = run("list")
    assert out.exit_code == 0
    for name in (*ss.benchmarks.names(), *REGISTRY):
        assert name in out.output


def test_run_writes_a_picture_and_the_numbers(tmp_path):
    out = run("run", "bouncing-ball", "--case", "2", "--method", "moreau", "--dt", "5e-3", "--t1", "1.0",
              "--plot", str(tmp_path / "a" / "ball.png"),
              "--save", str(tmp_path / "a" / "ball.npz"))  # fmt: skip
    assert out.exit_code == 0, out.output
    assert (tmp_path / "a" / "ball.png").stat().st_size > 10_000
    with np.load(tmp_path / "a" / "ball.npz") as data:
        assert data["q"].shape == (201, 3)
        assert data["g_N"].shape == (201, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "tippedisc"], "did you mean 'tippedisk'"),
        (["run", "tippedisk", "--method", "ratle"], "did you mean 'rattle'"),
        (["run", "bouncing-ball", "--case", "9"], "has no case 9"),
        (["run", "bouncing-ball", "--dt", "-1"], "dt must be positive"),
        (["run", "bouncing-ball", "--plot", "x.gif"], "must end in"),
    ],
)
def test_bad_arguments_are_refused_with_a_hint(arguments, words):
    out = run(*arguments)
    assert out.exit_code == 2
    assert words in " ".join(out.output.split())


def test_convergence_prints_orders_and_draws_them(tmp_path):
    file = tmp_path / "orders.png"
    out = run(
        "convergence",
        "pendulum",
        "--t1",
        "0.2048",
        "--steps",
        "8,16,32",
        "--methods",
        "radau2,lobatto2",
        "--plot",
        str(file),
    )
    assert out.exit_code == 0, out.output
    assert "radau2" in out.output
    assert file.stat().st_size > 10_000
    assert run("convergence", "pendulum", "--methods", "radau2,nonsense").exit_code == 2


@pytest.mark.slow
def test_the_demo_writes_pictures_as_they_come_and_names_a_page(tmp_path):
    out = run("demo", "--out", str(tmp_path))
    assert out.exit_code == 0, out.output
    pictures = sorted(tmp_path.glob("*.png"))
    assert [p.stem for p in pictures] == ["bouncing-ball", "slider-crank", "tippedisk", "woodpecker"]
    assert out.output.index("bouncing-ball.png") < out.output.index("slider-crank   moreau")
    assert "10 located events" in out.output
    assert (tmp_path / out.output.splitlines()[-1].split("/")[-1]).exists()


def test_the_survey_page_has_every_benchmark_and_method():
    text = (ROOT / "docs/benchmarks.md").read_text()
    for name in ss.benchmarks.names():
        part = text.split(f"## {name}\n")[1].split("\n## ")[0]
        for method in ss.benchmarks.methods(name) or REGISTRY:
            assert f"| {method} |" in part
