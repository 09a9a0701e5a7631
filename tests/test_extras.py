"""Simulating needs JAX, Equinox, jaxtyping, NumPy and SciPy;
whatever else is missing is named together with its extra.

Where packages are hidden, a process of its own looks for them and does not find them, as if they were not
installed.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stickslip.extras import DISTRIBUTIONS, MissingExtra, need, need_all

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def packages(requirements):
    """What is imported, of requirements."""
    modules = {distribution: module for module, distribution in DISTRIBUTIONS.items()}
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in requirements]
    return {modules.get(name, name) for name in names}


EXTRAS = {
    name: packages(r) for name, r in PROJECT["optional-dependencies"].items() if name not in ("all", "dev")
}
EXTRAS["files"].add("pandas")  # which xarray needs itself
ALL = sorted(set().union(*EXTRAS.values()))

HIDE = """
import importlib.machinery, sys

def hide(names):
    find = importlib.machinery.PathFinder.find_spec
    importlib.machinery.PathFinder.find_spec = staticmethod(
        lambda name, *more: None if name.partition(".")[0] in names else find(name, *more)
    )

hide(NAMES)
"""


def without(hidden, code, *arguments, cwd=None):
    """A process that does not find some packages."""
    program = HIDE.replace("NAMES", repr(set(hidden))) + code
    environment = os.environ | {"STICKSLIP_CACHE": "off", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], env=environment, cwd=cwd, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def said(done):
    """What a process that went well printed as JSON in its last line."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_hidden_packages_are_not_found_and_others_are():
    """Negative control: without it, a hook that hides nothing would let everything here pass."""
    code = """
import importlib, json
def found(name):
    try:
        return bool(importlib.import_module(name))
    except ModuleNotFoundError:
        return False
print(json.dumps([name for name in sys.argv[1:] if found(name)]))
"""
    assert said(without(ALL, code, *ALL, "numpy")) == ["numpy"]
    assert said(without({"mujoco"}, code, *ALL, "numpy")) == [
        name for name in [*ALL, "numpy"] if name != "mujoco"
    ]
    assert "No module named 'matplotlib'" in without(ALL, "import matplotlib.pyplot").stderr


LIGHT = """
import json
import numpy as np
import stickslip as ss

b = ss.benchmarks.load("bouncing-ball")
sol = ss.simulate(b.system, b.method, b.q0, b.u0, t1=0.5, dt=1e-2)
assert sol.g_N().min() > -1e-9 and np.isfinite(sol.energy()).all() and np.isfinite(sol.forces().la_N).all()
assert set(sol.state.ravel()) <= {"open", "slip", "stick"}
"""


def test_simulating_does_not_import_what_it_does_not_need():
    look = "sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:]))"
    code = f"{LIGHT}\nbefore = {look}\nimport rich\nprint(json.dumps([before, {look}]))"
    assert said(without((), code, *ALL)) == [[], ["rich"]]  # what is imported is seen


ENTRY_POINTS = """
from pathlib import Path
from stickslip import extras, pages, plot
from stickslip.reproduce import decision_tree, entries, reproduce

located = ss.simulate(b.system, None, b.q0, b.u0, t1=0.5, rtol=1e-4)
orders = ss.Convergence([0.1], {})
folder = Path(sys.argv[1])
(folder / "run.nc").write_bytes(b"\\x89HDF\\r\\n\\x1a\\n" + bytes(200))
sol.save(folder / "run.npz")
with np.load(folder / "run.npz") as arrays:
    assert np.array_equal(arrays["q"], sol.q)

sys.stderr.isatty = lambda: True  # a bar that nobody asked for
ss.simulate(b.system, b.method, b.q0, b.u0, t1=0.5, dt=1e-2)

def message(f, *arguments, **options):
    try:
        f(*arguments, **options)
    except Exception as error:
        assert error.__context__ is None and error.__cause__ is None
        return [type(error).__name__, isinstance(error, ImportError), str(error)]

print(json.dumps({
    "plot": message(sol.plot, folder / "run.png"),
    "figure": message(sol.plot),
    "portrait": message(plot.portrait, sol, "", folder / "run.png"),
    "orders": message(orders.plot, folder / "orders.png"),
    "table": message(orders.table),
    "animate": message(sol.animate, folder / "run.html"),
    "page": message(pages.render, "run.html"),
    "to_xarray": message(sol.to_xarray),
    "to_pandas": message(located.events.to_pandas),
    "save": message(sol.save, folder / "new.nc"),
    "load": message(ss.load, folder / "run.nc"),
    "load npz": message(ss.load, folder / "run.npz"),
    "progress": message(ss.simulate, b.system, b.method, b.q0, b.u0, t1=0.5, dt=1e-2, progress=True),
    "reproduce": message(reproduce, [], None, folder / "page", True, 1, None),
    "pictures": message(entries.Sheet(True).pictures),
    "tree": message(decision_tree.picture, str(folder / "tree.png")),
    "command line": message(__import__, "stickslip.cli"),
    "scene": message(extras.need, "mujoco", "scenes", "ss.scene.load"),
    "left": sorted(file.name for file in folder.iterdir()),
}))
"""


def test_without_any_extra_runs_are_made_and_everything_else_says_what_it_needs(tmp_path):
    out = said(without(ALL, LIGHT + ENTRY_POINTS, tmp_path))
    install = 'pip install "stickslip[{}]"'.format
    assert out.pop("left") == ["run.nc", "run.npz"]
    kind, _, text = out.pop("load npz")
    assert kind == "FileError"
    assert "numpy.load reads it" in text
    assert all(found[:2] == ["MissingExtra", True] for found in out.values()), out
    assert {what: text for what, (_, _, text) in out.items()} == {
        "plot": f"sol.plot needs matplotlib: {install('plots')}",
        "figure": f"sol.plot needs matplotlib: {install('plots')}",
        "portrait": f"a picture needs matplotlib: {install('plots')}",
        "orders": f"the plot of ss.convergence needs matplotlib: {install('plots')}",
        "table": f"the table of ss.convergence needs rich: {install('cli')}",
        "animate": f"sol.animate needs jinja2 and plotly: {install('pages')}",
        "page": f"a page needs jinja2 and plotly: {install('pages')}",
        "to_xarray": f"sol.to_xarray needs xarray: {install('files')}",
        "to_pandas": f"sol.events.to_pandas needs pandas: {install('files')}",
        "save": f"sol.save of {tmp_path / 'new.nc'} needs xarray, h5netcdf and h5py: {install('files')}",
        "load": f"ss.load of {tmp_path / 'run.nc'} needs xarray, h5netcdf and h5py: {install('files')}",
        "progress": f"simulate(progress=True) needs rich: {install('cli')}",
        "reproduce": (
            f"stickslip reproduce needs rich, matplotlib, pillow, jinja2 and plotly: "
            f"{install('cli,plots,pages')}"
        ),
        "pictures": f"a picture of the reproduction needs pillow: {install('plots')}",
        "tree": f"the picture of the decision tree needs pillow: {install('plots')}",
        "command line": f"stickslip on the command line needs typer and rich: {install('cli')}",
        "scene": f"ss.scene.load needs mujoco-core: {install('scenes')}",
    }


COMMAND = "from stickslip.__main__ import main\nsys.argv[0] = 'stickslip'\nmain()"


@pytest.mark.parametrize("hidden", [("typer",), ("rich",), ("typer", "rich")])
def test_the_command_without_its_extra_says_so_in_one_line(hidden):
    done = without(hidden, COMMAND, "list")
    names = " and ".join(hidden)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f'error: stickslip on the command line needs {names}: pip install "stickslip[cli]"\n'
    )


COMMANDS = """
import contextlib, io, json
from stickslip.__main__ import main

def said(*arguments):
    sys.argv = ["stickslip", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as end:
            return [end.code, out.getvalue()]

print(json.dumps([said(*line.split()) for line in sys.argv[1:]]))
"""


def test_commands_without_their_extra_say_so_before_they_run(tmp_path):
    lines = {
        "run bouncing-ball --plot a.png": (
            'stickslip run --plot needs matplotlib: pip install "stickslip[plots]"'
        ),
        "run bouncing-ball --html a.html": (
            'stickslip run --html needs jinja2 and plotly: pip install "stickslip[pages]"'
        ),
        "run bouncing-ball --save a.nc --plot a.png": (
            "stickslip run --plot --save needs matplotlib, xarray, h5netcdf and h5py: pip install "
            '"stickslip[plots,files]"'
        ),
        "convergence pendulum --plot a.png": (
            'stickslip convergence --plot needs matplotlib: pip install "stickslip[plots]"'
        ),
        "demo": 'stickslip demo needs matplotlib, jinja2 and plotly: pip install "stickslip[plots,pages]"',
        "reproduce": (
            "stickslip reproduce needs matplotlib, pillow, jinja2 and plotly: pip install "
            '"stickslip[plots,pages]"'
        ),
    }
    light = "run bouncing-ball --t1 0.2 --method moreau --save a.npz"
    *refused, fine = said(without(set(ALL) - EXTRAS["cli"], COMMANDS, *lines, light, cwd=tmp_path))
    assert refused == [[f"error: {line}", ""] for line in lines.values()]
    assert fine[0] == 0
    assert "wrote a.npz" in fine[1]
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_a_package_that_is_there_but_broken_speaks_for_itself(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all") as error:
        need("half_there", "plots", "sol.plot")
    assert not isinstance(error.value, MissingExtra)


def test_modules_come_in_the_order_they_were_asked_for():
    assert need("os.path", "plots", "a test") is os.path
    assert need_all({"json": "plots", "re": "files"}, "a test") == [json, re]


def trees():
    return {file: ast.parse(file.read_text()) for file in sorted((ROOT / "src").rglob("*.py"))}


def test_packages_of_extras_are_imported_where_they_are_needed_only():
    """At the top of a module they would be imported by everybody;
    `cli.py` is imported by nobody who simulates.
    """
    found = set()
    for file, tree in trees().items():
        for node in tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {(file.name, name.partition(".")[0]) for name in names if name.partition(".")[0] in ALL}
    assert found == {("cli.py", "typer"), ("cli.py", "rich")}


def test_every_extra_that_is_named_brings_the_package():
    pairs = []
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                pairs.append([argument.value for argument in node.args[:2]])
            if isinstance(node, ast.Dict):
                columns = [[getattr(x, "value", None) for x in part] for part in (node.keys, node.values)]
                pairs += [
                    pair
                    for pair in zip(*columns, strict=True)
                    if isinstance(pair[1], str) and pair[1] in EXTRAS
                ]
    assert len(pairs) > 15
    for package, extra in pairs:
        assert package.partition(".")[0] in EXTRAS[extra], (package, extra)


def test_the_light_core_is_light_and_all_is_all():
    assert packages(PROJECT["dependencies"]) == {"jax", "equinox", "jaxtyping", "numpy", "scipy"}
    optional = PROJECT["optional-dependencies"]
    assert optional["all"] == [f"stickslip[{','.join(EXTRAS)}]"]
    assert "stickslip[all]" in optional["dev"]


def test_the_table_of_extras_is_that_of_the_package():
    table = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", (ROOT / "docs" / "getting-started.md").read_text(), flags=re.M
    )
    optional = PROJECT["optional-dependencies"]
    bare = {name: ", ".join(re.match(r"[\w-]+", r)[0] for r in optional[name]) for name in EXTRAS}
    assert dict(table) == bare | {"all": "all of these"}
