"""No penetration, vanishing tilt, energy balance: S0 section 5.2."""

import numpy as np

import properties
from conftest import run, slope


def test_nothing_penetrates_and_joints_hold():
    sol = run("slider-crank")
    properties.no_penetration(sol)
    properties.bilateral_constraints_hold(sol)
    properties.cone(sol, 0.01)
    assert sol.stats.residual.max() < 1e-9


def test_joint_rates_vanish_too():
    sol = run("slider-crank")
    import jax

    from stickslip.derive import Dynamics

    d = Dynamics.of(sol.system, 0.0, sol.q[0], sol.u[0])
    rates = np.asarray(jax.vmap(lambda t, q, u: d.velocities(t, q, u)[:6])(sol.t, sol.q, sol.u))
    assert np.abs(rates).max() < 1e-9


def test_the_tilt_is_gone_after_a_hundredth_of_a_second():
    sol = run("slider-crank")
    assert abs(sol.q[0, 8]) > 0.01
    assert np.abs(sol.q[sol.t > 0.01, 8]).max() < 2e-3
    assert np.abs(sol.q[sol.t > 0.02, 8]).max() < 1e-9


def excess(dt):
    E = run("slider-crank", dt=dt).energy()
    return (E.max() - E[0]) / E[0]


def test_energy_is_gained_only_as_rattle_oscillates():
    """A symplectic scheme's energy oscillates: the excess over E0 falls with dt^2."""
    assert excess(1e-4) <= 2e-4
    dts = [2e-4, 1e-4, 5e-5]
    # or faster: friction and impacts take energy meanwhile
    assert slope(dts, [excess(dt) for dt in dts]) > 1.8
    E = run("slider-crank").energy()
    assert E[-1] < E[0]
