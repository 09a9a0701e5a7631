"""Programs on disk: found again by whoever runs the same, and by nobody who does not."""

import os
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip import compiling, stored
from stickslip.captured import UNSTABLE, captured
from stickslip.compiling import forget
from stickslip.methods import moreau

PULL = 2.0


class Mass(ss.System):
    """On a floor; the pull is a module constant."""

    mu: float = 0.3

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([PULL, -10.0])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]

    @property
    def laws(self):
        return (ss.Contact(friction=ss.Coulomb(self.mu)),)


def run(**more):
    return ss.simulate(Mass(**more), "moreau", [0.0, 0.0], [1.0, 0.0], t1=0.5, dt=0.1)


@pytest.fixture
def place(tmp_path, monkeypatch):
    # what is compiled ahead for another test is not written here
    compiling._pool.submit(lambda: None).result()
    monkeypatch.setattr(stored, "cache_folder", tmp_path)
    before = [dict(programs) for programs in compiling.everywhere]
    forget()
    yield tmp_path / "programs"
    forget()
    for programs, known in zip(compiling.everywhere, before, strict=False):
        programs.update(known)


@pytest.fixture
def compiled(caplog):
    """How many programs of steps were compiled up to now."""
    jax.config.update("jax_log_compiles", True)
    with caplog.at_level("WARNING"):
        yield lambda: caplog.text.count("Finished XLA compilation of jit(_piece")
    jax.config.update("jax_log_compiles", False)


def test_what_was_compiled_once_is_not_traced_again(place, compiled):
    first = run()
    assert len(list(place.iterdir())) == 2, "the start, and the steps"
    assert compiled() == 1
    forget()
    again, other = run(), run(mu=0.1)
    assert compiled() == 1
    np.testing.assert_array_equal(again.q, first.q)
    assert type(again.result) is type(first.result)
    assert other.q[-1, 0] > first.q[-1, 0] + 1e-3, "parameters are arguments of the program"


def test_another_constant_is_another_program(place, monkeypatch):
    first = run()
    forget()
    monkeypatch.setattr(f"{__name__}.PULL", 5.0)
    other = run()
    assert other.u[-1, 0] > first.u[-1, 0] + 0.5
    assert len(list(place.iterdir())) == 4


def test_another_function_is_another_program(place, compiled):
    class Faster(Mass):
        def h(self, t, q, u):
            return jnp.array([PULL + 3.0, -10.0])

    run()
    forget()
    ss.simulate(Faster(), "moreau", [0.0, 0.0], [1.0, 0.0], t1=0.5, dt=0.1)
    assert compiled() == 2


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 5000])
def test_a_damaged_file_does_no_harm(place, damage):
    first = run()
    file = max(place.iterdir(), key=lambda file: file.stat().st_size)  # the steps
    content = file.read_bytes()
    file.write_bytes(damage or content[:-7])
    forget()
    np.testing.assert_array_equal(run().q, first.q)
    assert stored.load(file.name) is not None, "it was written anew"
    file.write_bytes(content[:50] + bytes([content[50] ^ 255]) + content[51:])
    assert stored.load(file.name) is None


class Opaque:
    """Without a value to look at."""

    __slots__ = ("force",)


def test_what_counts_by_its_identity_is_not_stored(place):
    thing = Opaque()
    thing.force = 1.0

    class Closed(Mass):
        def h(self, t, q, u):
            return jnp.array([thing.force, -10.0])

    assert captured(Closed()).startswith(UNSTABLE)
    assert not captured(Mass()).startswith(UNSTABLE)
    ss.simulate(Closed(), "moreau", [0.0, 0.0], [1.0, 0.0], t1=0.5, dt=0.1)
    assert not place.exists()


def test_a_program_that_cannot_be_run_is_compiled_anew(place, compiled, monkeypatch):
    tried = []

    def fails(*arrays):
        tried.append(len(arrays))
        raise jax.errors.JaxRuntimeError("NOT_FOUND: some function")

    first, known, load = run(), stored._in_use(), stored.load
    monkeypatch.setattr(stored, "_in_use", lambda: known)  # as if nothing had been replaced
    monkeypatch.setattr(stored, "load", lambda name: (fails, load(name)[1]))
    forget()
    np.testing.assert_array_equal(run().q, first.q)
    assert (len(tried), compiled()) == (2, 2), "of the start, and of the steps"


def test_the_oldest_programs_go(place, monkeypatch):
    monkeypatch.setattr(stored, "MOST", 3)
    place.mkdir(parents=True)
    for k in range(5):
        (place / f"old{k}").write_bytes(b"")
    run()
    assert len(list(place.iterdir())) == 3


def test_a_scheme_that_somebody_changed_has_programs_of_its_own(place, monkeypatch, broken):
    """Broken on purpose or not: it must neither be taken for the one on disk nor be left there in its
    place.
    """
    first, before = run(), stored._in_use()
    monkeypatch.setattr(moreau, "percussions", lambda *args: None, raising=False)
    assert stored._in_use() != before
    monkeypatch.undo()
    monkeypatch.setattr(stored, "cache_folder", place.parent)
    assert stored._in_use() == before
    step = ss.MoreauMidpoint.step
    # forgets what this process has, here and in JAX
    broken(ss.MoreauMidpoint, "step", lambda self, *args: _frozen(step(self, *args), args))
    assert np.all(run().u == first.u[0])
    assert len(list(place.iterdir())) == 4
    broken(ss.MoreauMidpoint, "step", step)
    np.testing.assert_array_equal(run().u, first.u)


def _frozen(out, args):
    return out._replace(u=args[5])


def test_another_process_finds_it(tmp_path):
    """With another seed of its hashes, and other addresses;
    also what was lost and compiled again while JAX still had it.
    """
    script, cache = tmp_path / "falls.py", tmp_path / "cache"
    script.write_text(FALLS)
    told = []
    for seed in ("1", "2", "3", "4"):
        environment = os.environ | {"STICKSLIP_CACHE": str(cache), "PYTHONHASHSEED": seed}
        out = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        )
        told.append([float(x) for x in out.stdout.split()])
        if seed == "2":
            shutil.rmtree(cache / "programs")
    traced, ends = zip(*told, strict=True)
    assert [k > 0 for k in traced] == [True, False, True, False], "only the start is traced again"
    assert set(ends) == {ends[0]}


SOLVES = """
import jax.numpy as jnp
import stickslip as ss


class Solves(ss.System):
    def M(self, t, q):
        return jnp.eye(3)

    def h(self, t, q, u):
        return jnp.linalg.solve(jnp.diag(2.0 + q), jnp.array([1.0, 2.0, 3.0]))


print(float(ss.simulate(Solves(), "moreau", [0.0] * 3, [0.0] * 3, t1=1.0, dt=0.1).q[-1, 0]))
"""


def test_a_program_that_calls_lapack_runs_in_another_process(tmp_path):
    """JAX looks LAPACK up when it lowers a call:
    a process that lowers nothing has to look as well, or it crashes.
    """
    script, environment = tmp_path / "solves.py", os.environ | {"STICKSLIP_CACHE": str(tmp_path / "cache")}
    script.write_text(SOLVES)

    def told():
        return subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert told() == told()


FALLS = """
import jax
import jax.numpy as jnp
import stickslip as ss

traced = []


def listen(event, seconds, fun_name="", **_):
    if "trace" in event and "piece" in str(fun_name):
        traced.append(fun_name)


jax.monitoring.register_event_duration_secs_listener(listen)


class Falls(ss.System):
    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return jnp.array([9.0 if "x" in {"x", "y", "z"} else 1.0])


sol = ss.simulate(Falls(), "moreau", [0.0], [0.0], t1=1.0, dt=0.1)
print(len(traced), float(sol.q[-1, 0]))
"""


class Labelled(Mass):
    """With a parameter that is no number: it is part of the result of a start."""

    kind: str = "steel"


def test_what_is_no_number_comes_back(place):
    first = ss.simulate(Labelled(), "moreau", [0.0, 0.0], [1.0, 0.0], t1=0.5, dt=0.1)
    forget()
    again = ss.simulate(Labelled(), "moreau", [0.0, 0.0], [1.0, 0.0], t1=0.5, dt=0.1)
    np.testing.assert_array_equal(again.q, first.q)
    assert again.system.kind == "steel"
