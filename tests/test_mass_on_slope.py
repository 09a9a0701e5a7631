"""Order of convergence and transitions on the slope y = exp(-x): S0 section 5.3,
against event-driven integration.
"""

import numpy as np
import pytest

import properties
import stickslip as ss
from conftest import at, run, slope

DTS = [6.4e-3, 3.2e-3, 1.6e-3, 8e-4, 4e-4]
FINE = 5e-5


def l1(dt, a, b):
    """S0 (56) with p = 1, the largest component."""
    return np.max(dt * np.sum(np.abs(a - b), axis=0))


def errors(case, t1, quantity, method="rattle", dts=DTS):
    fine = run("mass-on-slope", case, method, FINE, t1)
    reference = quantity(fine)
    out = []
    for dt in dts:
        sol = run("mass-on-slope", case, method, dt, t1)
        out.append(l1(dt, quantity(sol)[1:], reference[:: round(dt / FINE)][1:]))
    return out


def q(sol):
    return sol.q


def u(sol):
    return sol.u


def percussions(sol):
    return np.concatenate([sol.P_N, sol.P_F], axis=1)[1:]


def forces(sol):
    f = sol.forces()
    assert f.converged.all()
    return np.concatenate([f.la_N, f.la_F], axis=1)


@pytest.mark.parametrize("case", [1, 2])
@pytest.mark.parametrize("quantity", [q, u, forces])
def test_rattle_is_second_order_while_it_slides(case, quantity):
    assert slope(DTS, errors(case, 1.6384, quantity)) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("case", [1, 2])
def test_percussions_are_second_order_beside_those_of_the_same_step(case):
    """Beside those of shorter steps, over dt, they are first order: a mean is not the value at its end."""
    fine = percussions(run("mass-on-slope", case, "rattle", FINE, 1.6384))
    same_step, at_the_end = [], []
    for dt in DTS:
        found, every = percussions(run("mass-on-slope", case, "rattle", dt, 1.6384)), round(dt / FINE)
        same_step.append(l1(dt, found / dt, fine.reshape(len(found), every, -1).sum(axis=1) / dt))
        at_the_end.append(l1(dt, found / dt, fine[every - 1 :: every] / FINE))
    assert slope(DTS, same_step) == pytest.approx(2.0, abs=0.2)
    assert slope(DTS, at_the_end) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("case", [3, 4])
@pytest.mark.parametrize("quantity", [q, u])
def test_rattle_is_first_order_across_a_slip_reversal_and_an_impact(case, quantity):
    """Not monotone (it depends on where in a step the event falls):
    least squares over many steps, wide band.
    """
    dts = [FINE * k for k in (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8)]
    t1 = FINE * 512 * 3 * 20
    assert slope(dts, errors(case, t1, quantity, dts=dts)) == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize("name", ["moreau", "shifted-moreau"])
@pytest.mark.parametrize("quantity", [q, u])
def test_moreaus_schemes_are_first_order(name, quantity):
    assert slope(DTS, errors(1, 1.6384, quantity, name)) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("case", [1, 4])
@pytest.mark.parametrize("t", [0.8192, 1.6])
def test_positions_and_speeds_agree_with_the_event_driven_reference(case, t):
    ref = ss.benchmarks.load("mass-on-slope", case).reference
    sol = run("mass-on-slope", case, dt=FINE, t1=t)
    i = at(sol, t)
    tolerance = 1e-7 if case == 1 else 5e-4
    assert sol.q[i, 0] == pytest.approx(ref[f"x({t})"], abs=tolerance)
    assert np.linalg.norm(sol.u[i]) == pytest.approx(ref[f"speed({t})"], abs=2 * tolerance)


@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_it_sticks_when_and_where_it_should(case):
    dt = 1e-3
    sol = run("mass-on-slope", case, dt=dt)
    ref = ss.benchmarks.load("mass-on-slope", case).reference
    stuck = np.linalg.norm(sol.u, axis=1) < 1e-9
    first = int(np.argmax(stuck & (sol.t > 1.0)))
    assert sol.t[first] == pytest.approx(ref["stick_time"], abs=2 * dt)
    assert sol.q[first, 0] == pytest.approx(ref["stick_x"], abs=2e-3)
    assert stuck[first:].all()
    # no creep: within the solver's tolerance (unknowns * atol) from there on, and not moving at all in the
    # end
    assert np.ptp(sol.q[first:], axis=0).max() < 4 * 6 * 1e-12
    assert np.ptp(sol.q[first + 100 :], axis=0).max() < 1e-13
    properties.no_penetration(sol)
    properties.cone(sol, 0.3)


def test_the_slip_reverses_when_and_where_it_should():
    sol = run("mass-on-slope", 3, dt=1e-4, t1=0.2)
    ref = ss.benchmarks.load("mass-on-slope", 3).reference
    turn = int(np.argmin(sol.q[:, 0]))
    assert sol.t[turn] == pytest.approx(ref["reversal_time"], abs=2e-4)
    assert sol.q[turn, 0] == pytest.approx(ref["reversal_x"], abs=1e-4)


def test_the_drop_hits_when_and_as_it_should():
    sol = run("mass-on-slope", 4, dt=1e-4, t1=0.4)
    ref = ss.benchmarks.load("mass-on-slope", 4).reference
    hit = int(np.argmax(sol.P_N[:, 0]))
    assert sol.t[hit] == pytest.approx(ref["impact_time"], abs=1.01e-4)
    assert np.linalg.norm(sol.u[hit]) == pytest.approx(ref["speed_after_impact"], abs=2e-3)


def test_forces_at_rest_balance_the_weight():
    sol = run("mass-on-slope", 1)
    f = sol.forces()
    x = sol.q[-1, 0]
    angle = np.arctan(np.exp(-x))
    assert f.la_N[-1, 0] == pytest.approx(np.pi * 10 * np.cos(angle), rel=1e-9)
    assert f.la_F[-1, 0] == pytest.approx(-np.pi * 10 * np.sin(angle), rel=1e-9)


def test_forces_of_a_velocity_level_method_are_first_order():
    assert slope(DTS, errors(1, 1.6384, forces, "moreau")) == pytest.approx(1.0, abs=0.2)
