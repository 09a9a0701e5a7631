"""What each law does at each row, in words: the same for every method, in files and batches too."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY
from stickslip.simulate import _method


class Ball(ss.System):
    """On a floor, with or without friction."""

    mu: float = 0.3
    e: float = 0.5

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([0.0, -10.0])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]

    @property
    def laws(self):
        return (ss.Contact(e_N=self.e, friction=ss.Coulomb(self.mu)),)


class Puck(Ball):
    """The same without friction."""

    def gamma_F(self, t, q, u):
        return jnp.zeros(0)

    @property
    def laws(self):
        return (ss.Contact(e_N=self.e),)


@pytest.mark.parametrize("name", ["rattle", "moreau"])
def test_a_ball_flies_then_slips_then_sticks(name):
    """It arrives with v_y = -1 after 0.1 s and stays; that takes 0.3 of v_x = 1.5,
    and mu g = 3 the rest in 0.4 s.
    """
    sol = ss.simulate(Ball(e=0.0), name, [0.0, 0.05], [1.5, 0.0], t1=1.0, dt=1e-2)
    assert set(sol.state[sol.t < 0.09, 0]) == {"open"}
    assert set(sol.state[(sol.t > 0.12) & (sol.t < 0.48), 0]) == {"slip"}
    assert set(sol.state[sol.t > 0.52, 0]) == {"stick"}
    free = ss.simulate(Ball(mu=0.0, e=0.0), name, [0.0, 0.05], [1.5, 0.0], t1=1.0, dt=1e-2)
    assert set(free.state[free.t > 0.12, 0]) == {"slip"}, "without friction nothing sticks"


@pytest.mark.parametrize("name", ["rattle", "moreau"])
def test_a_contact_without_friction_slips_when_it_is_closed_and_a_bounce_is_open(name):
    sol = ss.simulate(Puck(), name, [0.0, 0.2], [0.0, 0.0], t1=1.0, dt=1e-2)  # at rest after 3 * 0.2 s
    bounce = int(np.argmax(sol.P_N[:, 0] > 0.0))
    assert sol.state[bounce, 0] == "open"
    assert set(sol.state[sol.t > 0.8, 0]) == {"slip"}


def test_a_start_at_rest_on_a_steep_slope_slips():
    slope = ss.benchmarks.load("mass-on-slope")
    sol = ss.simulate(slope.system, "rattle", slope.q0, slope.u0, t1=0.1, dt=1e-2)
    assert list(sol.state[:, 0]) == ["slip"] * len(sol.t)


def test_batches_files_and_datasets_have_states_too(tmp_path):
    def run(mu):
        return ss.simulate(Ball(mu=mu), "rattle", [0.0, 0.0], [1.5, 0.0], t1=1.0, dt=1e-2)

    batch = jax.vmap(run)(jnp.array([0.0, 0.3]))
    one = run(0.3)
    np.testing.assert_array_equal(batch.state[1], one.state)
    assert set(batch.state[0].ravel()) == {"slip"}
    assert jax.jit(lambda mu: run(mu).state_code())(0.3).tolist() == one.state_code().tolist()
    one.save(tmp_path / "run.nc")
    again = ss.load(tmp_path / "run.nc")  # of a system that only this file knows: from the file itself
    np.testing.assert_array_equal(again.state, one.state)
    data = one.to_xarray().state
    assert data.attrs["flag_meanings"] == "open slip stick"
    np.testing.assert_array_equal(np.array(data.attrs["flag_meanings"].split())[data.values], one.state)
    one.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as arrays:
        np.testing.assert_array_equal(arrays["state"], one.state_code())
        np.testing.assert_array_equal(arrays["q"], one.q)
    with pytest.raises(ss.FileError, match=r"numpy\.load reads it"):
        ss.load(tmp_path / "run.npz")


def test_files_of_the_first_format_are_read():
    sol = ss.load(Path(__file__).parent / "data" / "format-1.nc")
    assert sol.modes.shape == (len(sol.t), 1)
    assert sol.modes.any()
    assert {"open", "slip"} == set(sol.state.ravel())
    assert len(sol.switching_points()) == 2


def test_a_run_goes_on_where_another_ended():
    whole = ss.simulate(Ball(), "rattle", [0.0, 0.3], [1.5, 0.0], t1=0.6, dt=1e-2)
    half = ss.simulate(Ball(), "rattle", [0.0, 0.3], [1.5, 0.0], t1=0.2, dt=1e-2)
    rest = ss.simulate(restart=half, t1=0.6, dt=1e-2)
    assert rest.t[0] == half.t[-1]
    np.testing.assert_array_equal(rest.q[0], half.q[-1])
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-12)
    other = ss.simulate(dataclasses.replace(Ball(), mu=0.0), restart=half, t1=0.6, dt=1e-2)
    assert other.u[-1, 0] == pytest.approx(1.5), "another system goes on from there"
    assert rest.u[-1, 0] < 0.5


@pytest.mark.parametrize("name", [*REGISTRY, "radau4"])
def test_a_name_is_as_good_as_an_instance(name):
    assert _method(name) == (ss.RadauIIA(4) if name == "radau4" else REGISTRY[name]())


class Wheel(ss.System):
    """q = (x, y, phi): rolls on a floor, with friction of sliding and of rolling."""

    contacts = ("floor", "brake")

    def M(self, t, q):
        return jnp.diag(jnp.array([1.0, 1.0, 0.5]))

    def h(self, t, q, u):
        return jnp.array([0.0, -10.0, 0.0])

    def g_N(self, t, q):
        return q[1:2]

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + u[2], u[2], u[2]])

    @property
    def laws(self):
        return ss.Contact(friction=(ss.Coulomb(0.5), ss.Rolling(0.01))), ss.FrictionElement(0.1)


def test_a_wheel_that_rolls_sticks_whatever_rolling_friction_does():
    sol = ss.simulate(Wheel(), "rattle", [0.0, 0.0, 0.0], [1.0, 0.0, -1.0], t1=0.5, dt=1e-2)
    assert sol.u[-1, 0] < 0.99, "rolling friction brakes it"
    assert set(sol.state[:, 0]) == {"stick"}
    assert set(sol.state[:, 1]) == {"slip"}
    assert list(sol.to_xarray().interaction.values) == ["floor", "brake"], (
        "friction elements may have names, too"
    )
