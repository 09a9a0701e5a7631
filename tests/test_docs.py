"""What the docs show runs, and what they state is so."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stickslip as ss
from stickslip.methods import REGISTRY

ROOT = Path(__file__).parent.parent


def blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.S)


@pytest.mark.parametrize("file", ["README.md", "docs/friction.md"])
def test_examples_run(file):
    found = blocks(file)
    assert found
    for block in found:
        exec(compile(block, file, "exec"), {})


@pytest.mark.parametrize("file", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_example_scripts_run(file, capsys):
    exec(compile((ROOT / "examples" / file).read_text(), file, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


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
    import numpy as np

    out = run("run", "bouncing-ball", "--case", "2", "--method", "moreau", "--dt", "5e-3", "--t1", "1.0",
              "--plot", str(tmp_path / "a" / "ball.png"), "--save", str(tmp_path / "a" / "ball.npz"))  # fmt: skip
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
def test_the_demo_writes_three_pictures(tmp_path):
    out = run("demo", "--out", str(tmp_path))
    assert out.exit_code == 0, out.output
    assert len(list(tmp_path.glob("*.png"))) == 3
    assert "us/step" in out.output


def test_the_survey_page_has_every_benchmark_and_method():
    text = (ROOT / "docs/benchmarks.md").read_text()
    for name in ss.benchmarks.names():
        part = text.split(f"## {name}\n")[1].split("\n## ")[0]
        for method in ss.benchmarks.methods(name) or REGISTRY:
            assert f"| {method} |" in part
