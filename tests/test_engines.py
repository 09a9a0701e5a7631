"""What engines get wrong, with exact answers: creep on a slope, tipping while sliding,
restitution that is not e.
"""

import numpy as np
import pytest

import properties
import stickslip as ss
from conftest import METHODS, run, slope
from stickslip.methods import REGISTRY

POSITION = [m for m in METHODS if REGISTRY[m]().level == "position"]


@pytest.mark.parametrize("name", ["rattle", "radau2"])
def test_a_block_on_a_slope_does_not_creep(name):
    b = ss.benchmarks.load("incline")
    sol = run("incline", method=name)
    atol = REGISTRY[name]().solver.newton.atol
    assert np.abs(sol.q[:, :3] - b.q0[:3]).max() <= 10.0 * atol
    assert sol.P_N[-1].sum() / b.dt == pytest.approx(b.reference["lambda_N"], rel=1e-9)
    assert np.abs(sol.P_F[-1].reshape(4, 2).sum(axis=0)[0]) / b.dt == pytest.approx(
        b.reference["lambda_F"], rel=1e-9
    )


def test_a_slippery_block_does_creep():
    """The control: tan 20 degrees > 0.3."""
    import dataclasses

    b = ss.benchmarks.load("incline")
    sol = ss.simulate(dataclasses.replace(b.system, mu=0.3), ss.Rattle(), b.q0, b.u0, t1=1.0, dt=1e-2)
    slope_ = np.radians(20.0)
    assert sol.q[-1, 0] == pytest.approx(0.5 * 9.81 * (np.sin(slope_) - 0.3 * np.cos(slope_)), rel=2e-2)


@pytest.mark.parametrize("name", ["rattle", "radau2"])
def test_a_cube_slides_flat_and_stops_where_it_should(name):
    b = ss.benchmarks.load("sliding-cube")
    sol = run("sliding-cube", method=name, dt=1e-3)
    properties.no_penetration(sol)
    assert np.abs(sol.q[:, 2] - 0.05).max() < 1e-9
    assert np.abs(sol.q[:, 4:]).max() < 1e-9
    assert sol.q[-1, 0] == pytest.approx(b.reference["stop_x"], abs=1e-3)
    assert np.abs(sol.u[-1]).max() < 1e-9
    sliding = sol.P_N[500] / 1e-3
    rear, front = b.reference["lambda_N_rear_and_front_pair"]
    assert [sliding[[0, 3]].sum(), sliding[[1, 2]].sum()] == pytest.approx([rear, front], rel=1e-6)


@pytest.mark.parametrize("height", [0.05, 0.9, 30.0])
def test_a_bounce_returns_what_was_asked(height, kind):
    b = ss.benchmarks.load("bounce", height=height)
    # half octaves: the phase of the impact changes
    dts = 2e-2 * np.sqrt(height) / 2.0 ** np.arange(0, 5, 0.5)
    worst = []
    for dt in dts:
        sol = ss.simulate(b.system, REGISTRY[kind](), b.q0, b.u0, t1=b.t1, dt=float(dt))
        hit = int(np.argmax(sol.P_N[:, 0] > 0))
        error = abs(sol.q[hit:, 0].max() / b.reference["apex"] - 1.0)
        # On velocity level the flight may start a step below the ground: (1 - e^2) v dt lower, 6 g dt/v of
        # the apex.
        bound = 2.5 if REGISTRY[kind]().level == "position" else 6.5
        assert error <= bound * 9.81 * dt / b.reference["impact_speed"]
        # e is e, at any step
        before, after = sol.u[hit - 1, 0], sol.u[hit, 0]
        properties.newton_impact_law(before, after, 0.5)
        worst.append(error)
    octaves = np.asarray(worst).reshape(-1, 2).max(axis=1)
    assert slope(dts[::2], octaves) == pytest.approx(1.0, abs=0.45)
