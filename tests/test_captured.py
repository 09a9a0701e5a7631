"""A value that a system's functions find outside of themselves belongs to the program that is compiled of
them.
"""

import subprocess
import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from conftest import REPRESENTATIVE
from stickslip import compiling, stored
from stickslip.captured import captured
from stickslip.methods import REGISTRY

K = 1.0
SETTINGS = {"c": 1.0}
PARAMETERS = types.SimpleNamespace(c=1.0)
HELPER = 1.0


def helper(q):
    return HELPER * q


def spring(c):
    def force(q):
        return -c[0] * q

    return force


class Oscillator(ss.System):
    """Forces from everywhere but its own fields."""

    factor = 1.0

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -K * SETTINGS["c"] * PARAMETERS.c * self.factor * helper(q)

    def energy(self, t, q, u):
        return 0.5 * u @ u + 0.5 * K * q @ q


def end(system=None):
    return float(ss.simulate(system or Oscillator(), ss.Rattle(), [1.0], [0.0], t1=1.0, dt=0.1).q[-1, 0])


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setitem(globals(), "K", 4.0),
        lambda patch: patch.setitem(SETTINGS, "c", 4.0),
        lambda patch: patch.setattr(PARAMETERS, "c", 4.0),
        lambda patch: patch.setattr(Oscillator, "factor", 4.0),
        lambda patch: patch.setitem(globals(), "HELPER", 4.0),
    ],
    ids=["module constant", "dictionary", "namespace", "class attribute", "constant of a helper"],
)
def test_a_changed_value_changes_the_run(change, monkeypatch):
    before = end()
    change(monkeypatch)
    after = end()
    assert before == pytest.approx(0.542, abs=0.02)  # cos(1) and cos(2), as RATTLE has them
    assert after == pytest.approx(-0.416, abs=0.02)
    monkeypatch.undo()
    assert end() == before


class Pushed(ss.System):
    """A mass that slides on a floor, pushed by a module constant: with friction,
    steps are programs inside of programs.
    """

    laws = (ss.Contact(friction=ss.Coulomb(0.1)),)

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([4.0 * K, -10.0])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]


@pytest.mark.parametrize("kind", ["moreau", "rattle", "radau2", "trbdf2", "generalized-alpha"])
def test_a_changed_value_changes_a_run_with_friction(kind, monkeypatch):
    def slid():
        return float(ss.simulate(Pushed(), REGISTRY[kind](), [0.0, 0.0], [1.0, 0.0], t1=1.0, dt=0.1).u[-1, 0])

    assert slid() == pytest.approx(1.0 + 4.0 - 1.0)
    monkeypatch.setitem(globals(), "K", 2.0)
    assert slid() == pytest.approx(1.0 + 8.0 - 1.0)
    monkeypatch.undo()
    assert slid() == pytest.approx(1.0 + 4.0 - 1.0)


def test_a_changed_value_changes_what_is_derived_from_a_solution(monkeypatch):
    sol = ss.simulate(Oscillator(), ss.Rattle(), [1.0], [0.0], t1=1.0, dt=0.1)
    before = sol.energy()[0]
    monkeypatch.setitem(globals(), "K", 4.0)
    assert sol.energy()[0] == pytest.approx(4 * before)


LEVEL = 0.5


def crosses(t, q, u):
    return q[0] - LEVEL


def test_a_changed_value_changes_when_an_event_of_the_users_own_happens(monkeypatch):
    class Free(ss.System):
        M = lambda self, t, q: jnp.eye(1)
        h = lambda self, t, q, u: 0.0 * q

    event = lambda: ss.simulate(Free(), None, [0.0], [1.0], t1=1.0, rtol=1e-8, events=[crosses]).events.t[0]
    assert event() == pytest.approx(0.5, abs=1e-9)
    monkeypatch.setitem(globals(), "LEVEL", 0.25)
    assert event() == pytest.approx(0.25, abs=1e-9)


def test_a_closure_is_looked_into():
    c = [1.0]

    class Closed(ss.System):
        force: object = eqx.field(static=True)

        def M(self, t, q):
            return jnp.eye(1)

        def h(self, t, q, u):
            return self.force(q)

    system = Closed(spring(c))
    before = end(system)
    c[0] = 4.0
    assert end(system) != before


def test_the_same_values_have_the_same_key_and_parameters_are_not_in_it():
    """Fields are arguments: another value must not mean another compilation."""
    b = ss.benchmarks.load("bouncing-ball")
    assert captured(b.system) == captured(type(b.system)(mu=0.7))
    assert captured(Oscillator()) == captured(Oscillator())


class Law(eqx.Module):
    factor: float
    f: object = eqx.field(static=True, default=None)


class Nested(Oscillator):
    masses: tuple
    law: Law
    size: tuple = eqx.field(static=True, default=(1.0,))


def test_parameters_are_not_in_it_however_deep_they_lie():
    key = captured(Nested((1.0, 2.0), Law(1.0)))
    assert key == captured(Nested((1.0, 3.0), Law(2.0)))
    assert key == captured(Nested((1.0, jnp.array(3.0)), Law(2.0)))
    assert key != captured(Nested((1.0, 2.0, 3.0), Law(1.0)))
    assert key != captured(Nested((1.0, 2.0), Law(1.0, helper)))
    assert key != captured(Nested((1.0, 2.0), Law(1.0), size=(2.0,)))


SCRIPT = """
import sys, jax.numpy as jnp, stickslip as ss
K = float(sys.argv[1])
class Oscillator(ss.System):
    def M(self, t, q): return jnp.eye(1)
    def h(self, t, q, u): return -K * q
print(float(ss.simulate(Oscillator(), ss.Rattle(), [1.0], [0.0], t1=1.0, dt=0.1).q[-1, 0]))
"""


def test_the_cache_on_disk_is_not_fooled(tmp_path):
    def run(K):
        env = {"STICKSLIP_CACHE": str(tmp_path / "cache"), "PATH": "/usr/bin", "HOME": str(tmp_path)}
        import os

        env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(K)], env=env, capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    first, second, again = run(1.0), run(4.0), run(1.0)
    assert first == again
    assert abs(first - second) > 0.5


@pytest.mark.parametrize("content", [b"\xff\xfe\x00garbage", b"", b"perhaps"])
def test_nothing_in_a_cache_can_stop_an_import(tmp_path, content):
    import os

    import jaxlib

    from stickslip import _setup

    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / f"jaxlib-{jaxlib.__version__}-{_setup._OPTION}").write_bytes(content)
    (folder / "compiled").write_text("a file where a folder should be")
    env = dict(os.environ, STICKSLIP_CACHE=str(folder))
    code = "import stickslip as ss; print(ss.benchmarks.load('bouncing-ball').t1)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


STEPS = {
    "dt": {"dt": 1e-3},
    "stepsize": {"stepsize": ss.SwitchingPoints(1e-3, 1e-3)},
    "rtol": {"rtol": 1e-6, "dt_max": 1e-3},
}


@pytest.mark.parametrize(
    ("name", "how"), [*((name, "dt") for name in REPRESENTATIVE), ("rattle", "stepsize"), ("radau2", "rtol")]
)
def test_a_long_run_compiles_its_steps_once(name, how, caplog, tmp_path, monkeypatch):
    """Also where a run has several chunks: the state that one leaves must look like the one with which it
    began.
    """

    class Free(Pushed):  # a class of its own: nothing is compiled yet
        pass

    monkeypatch.setattr(stored, "cache_folder", tmp_path)  # nor is it on disk
    monkeypatch.setattr(compiling, "_alike", {})  # nor anything like it
    jax.config.update("jax_log_compiles", True)  # for all threads
    try:
        with caplog.at_level("WARNING"):
            sol = ss.simulate(Free(), REGISTRY[name](), [0.0, 0.0], [1.0, 0.0], t1=1.5, **STEPS[how])
    finally:
        jax.config.update("jax_log_compiles", False)
    assert len(sol.t) > 1400
    assert caplog.text.count("Finished XLA compilation of jit(_piece") == 1


def test_rows_at_given_times_need_no_compilation_for_another_number_of_steps(caplog):
    class Kicked(Pushed):
        pass

    run = lambda dt: ss.simulate(
        Kicked(),
        ss.RadauIIA(2),
        [0.0, 0.0],
        [1.0, 0.0],
        t1=1.0,
        dt=dt,
        locate=True,
        t_eval=np.linspace(0.0, 1.0, 5),
    )
    run(0.1)
    jax.config.update("jax_log_compiles", True)
    try:
        with caplog.at_level("WARNING"):
            sol = run(0.03)
    finally:
        jax.config.update("jax_log_compiles", False)
    assert sol.q.shape == (5, 2)
    assert "Finished XLA compilation" not in caplog.text
