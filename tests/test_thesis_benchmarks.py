"""The benchmarks of S3 chapter 7 against their closed forms and references,
as far as they have no file of their own.
"""

import dataclasses

import numpy as np
import pytest

import properties
import stickslip as ss
from conftest import METHODS, REPRESENTATIVE, at, run, slope
from stickslip.benchmarks import rolling_ball
from stickslip.methods import REGISTRY
from stickslip.tableaus import tr_theta

POSITION_LEVEL = [m for m in METHODS if REGISTRY[m]().level == "position"]


# -- rolling ball (7.2)
# ------------------------------------------------------------------------------------------------
def test_rolling_ball_exact_solution_has_the_known_switching_points():
    reference = ss.benchmarks.load("rolling-ball").reference
    q, u = rolling_ball.exact([0.4, 2.08, 5.0])
    assert [*q[0], *u[0]] == pytest.approx(reference["state_at_rolling_time"], abs=1e-12)
    for i in (1, 2):
        assert [*q[i], *u[i]] == pytest.approx(
            [reference["rest_x"], reference["rest_phi"], 0.0, 0.0], abs=1e-12
        )


@pytest.mark.parametrize("name", ["moreau", "shifted-moreau"])
def test_rolling_ball_velocities_are_exact_at_a_step_of_a_tenth(name):
    """t1 = 0.4 is on the grid; t2 = 2.08 is not: the ball rests from the next grid point on."""
    sol = run("rolling-ball", method=name, dt=1e-1)
    _, u = rolling_ball.exact(sol.t)
    assert sol.u[:, [0, 2]] == pytest.approx(u, abs=1e-12)
    assert np.all(sol.u[sol.t > 2.1 - 1e-9] == pytest.approx(0.0, abs=1e-12))


def test_rolling_ball_comes_to_rest_where_it_should(kind):
    sol = run("rolling-ball", method=kind, dt=1e-2)
    assert sol.q[-1, [0, 2]] == pytest.approx(
        [0.824, -6.44], abs=1.2e-2 if kind == "shifted-moreau" else 1e-3
    )
    rolling = at(sol, 1.0)
    # holds the ball, inside its interval
    assert sol.P_F[rolling, 0] / 1e-2 == pytest.approx(-5.0 / 14.0, abs=1e-9)
    assert sol.P_F[rolling, 1] / 1e-2 == pytest.approx(0.005 * 10.0, abs=1e-9)  # a torque, at its bound


# -- ball in hollow sphere (7.3)
# ---------------------------------------------------------------------------------------
def test_velocity_level_sinks_into_the_hollow_sphere_and_position_level_does_not(kind):
    sol = run("ball-in-hollow-sphere", method=kind, dt=2e-2)
    if REGISTRY[kind]().level == "position":
        properties.no_penetration(sol)
    else:
        assert sol.g_N().min() < -1e-2
    first = sol.t[int(np.argmax(sol.P_N[:, 0] > 0))]
    assert (
        0.0
        <= first - ss.benchmarks.load("ball-in-hollow-sphere").reference["contact_time"] + 1e-9
        < 2e-2 + 2e-2
    )


# -- block on belt (7.4)
# -----------------------------------------------------------------------------------------------
def belt_events(sol):
    """Times at which the block begins to slip and to stick."""
    slipping = np.abs(sol.u[:, 0] - 0.2) > 1e-9
    change = np.flatnonzero(np.diff(slipping.astype(int)))
    return [(sol.t[i], bool(slipping[i + 1])) for i in change]


def test_block_on_belt_slips_sticks_and_repeats(kind):
    reference = ss.benchmarks.load("block-on-belt").reference
    sol = run("block-on-belt", method=kind, dt=5e-3)
    events = belt_events(sol)
    assert [slip for _, slip in events[:4]] == [True, False, True, False]
    first, stick, second, _ = (t for t, _ in events[:4])
    assert first == pytest.approx(reference["first_slip"], abs=1.1e-2)
    assert stick - first == pytest.approx(reference["slip_duration"], abs=2e-2)
    assert second - first == pytest.approx(reference["period"], abs=2e-2)
    assert sol.q[at(sol, stick), 0] == pytest.approx(reference["x_at_stick"], abs=5e-3)
    assert np.abs(sol.P_F).max() <= 0.5 * 5e-3 * (1 + 1e-12)
    since = (sol.t - reference["first_slip"]) % reference["period"]  # what it does, in words, at every row
    slips = (sol.t > reference["first_slip"]) & (since < reference["slip_duration"])
    sure = (
        np.minimum.reduce([since, np.abs(since - reference["slip_duration"]), reference["period"] - since])
        > 3e-2
    )
    np.testing.assert_array_equal(sol.state[sure, 0], np.where(slips, "slip", "stick")[sure])


# -- stiff pendulum (7.5)
# ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["radau2", "radau3", "trtheta", "trbdf2"])
def test_stiffly_accurate_methods_take_large_steps_on_the_stiff_pendulum(name):
    reference = ss.benchmarks.load("stiff-pendulum").reference
    sol = run("stiff-pendulum", method=name, dt=1e-2)
    properties.no_penetration(sol)
    assert np.abs(np.linalg.norm(sol.q, axis=1) - 1.0).max() < 1e-3
    hits = sol.t[1:][(sol.P_N[1:, 0] > 0.1)]
    assert len(hits) == 2
    assert hits == pytest.approx(reference["impact_times"], abs=2e-2)


def test_rattle_needs_steps_below_two_over_the_frequency():
    b = ss.benchmarks.load("stiff-pendulum")
    for dt, stable in ((2.1e-4, False), (1.9e-4, True)):
        sol = ss.simulate(b.system, ss.Rattle(), b.q0, b.u0, t1=0.3, dt=dt, throw=False)
        stretch = np.abs(np.linalg.norm(sol.q, axis=1) - 1.0).max()
        assert (sol.result == ss.RESULTS.successful and stretch < 1e-5) == stable


@pytest.mark.parametrize("rho_inf", [0.9, 0.5])
def test_the_user_chooses_how_fast_stiff_oscillations_die(rho_inf):
    """A stretch of 1e-6 rings with omega dt = 100: the stability function at 100i,
    which is close to rho_inf.
    """
    b = ss.benchmarks.load("stiff-pendulum")
    system = dataclasses.replace(b.system, gravity=0.0)
    sol = ss.simulate(system, ss.TRTheta(rho_inf), [1.0 + 1e-6, 0.0], [0.0, 0.0], t1=0.2, dt=1e-2)
    amplitude = np.hypot(sol.q[:, 0] - 1.0, sol.u[:, 0] / 1e4)
    A, b_ = tr_theta(rho_inf).A, tr_theta(rho_inf).A[-1]
    z = 100j
    R = 1.0 + z * b_ @ np.linalg.solve(np.eye(3) - z * A, np.ones(3))
    assert abs(R) == pytest.approx(rho_inf, rel=1e-2)
    assert amplitude[10] / amplitude[0] == pytest.approx(abs(R) ** 10, rel=1e-2)


# -- Painleve rod (7.8)
# ------------------------------------------------------------------------------------------------
@pytest.mark.long_runs
@pytest.mark.parametrize("name", ["rattle", "radau2"])
def test_painleve_rod_follows_the_blow_up_and_takes_off(name):
    reference = ss.benchmarks.load("painleve-rod").reference
    for dt in (5e-3, 1e-3):
        sol = run("painleve-rod", method=name, dt=dt)
        properties.no_penetration(sol)
        forces = sol.forces()
        for t in (0.1, 0.3, 0.5):
            i = at(sol, t)
            assert sol.q[i, 2] == pytest.approx(reference["phi"][t], rel=1e-4)
            assert forces.la_N[i, 0] == pytest.approx(reference["lambda_N"][t], rel=1e-4)
            assert sol.P_N[i, 0] / dt == pytest.approx(
                reference["lambda_N"][t], rel=2.5e-3 if dt == 5e-3 else 1e-3
            )
        before = sol.P_N[1 : at(sol, 0.805), 0]
        assert np.all(np.diff(before) > 0.0)  # smooth growth, no artificial impacts
        assert sol.P_N.max() / dt > 10 * reference["lambda_N_start"]
        peak = sol.t[int(np.argmax(sol.P_N[:, 0]))]
        assert peak == pytest.approx(reference["blow_up_time"], abs=2 * dt)
        assert sol.g_N()[-1, 0] > 1.0


def test_moreau_hammers_along_the_painleve_rod():
    """Fig. 7.13: without position level the contact opens and closes by itself."""
    sol = run("painleve-rod", method="moreau", dt=5e-3)
    sliding = sol.P_N[1 : at(sol, 0.8), 0]
    assert (sliding == 0.0).sum() > 0
    assert np.any(np.diff(sliding) < 0.0)


@pytest.mark.parametrize("name", [m for m in REPRESENTATIVE if m not in ("rattle", "radau2", "moreau")])
@pytest.mark.slow
def test_every_kind_survives_the_painleve_rod(name):
    sol = run("painleve-rod", method=name, dt=5e-3)
    properties.cone(sol, 5.0 / 3.0, 1e-9)
    if name in POSITION_LEVEL:
        properties.no_penetration(sol)


# -- ball in corner (7.9)
# ----------------------------------------------------------------------------------------------
def test_ball_comes_to_rest_in_the_corner(kind):
    b = ss.benchmarks.load("ball-in-corner")
    sol = run("ball-in-corner", method=kind)
    assert np.all(np.isfinite(sol.q))
    assert np.all(np.isfinite(sol.P_F))
    assert np.abs(sol.u[-1]).max() < 1e-9
    properties.cone(sol, 0.3, 1e-9)
    if kind in POSITION_LEVEL:
        properties.no_penetration(sol)
        assert sol.g_N()[-1] == pytest.approx(0.0, abs=1e-9)
        assert sol.q[-1, :2] == pytest.approx(b.reference["rest_position"], abs=1e-9)
    # at rest the contact forces carry the weight, whatever their (not unique) distribution
    carried = sol.P_N[-1].sum() / np.sqrt(2) + (sol.P_F[-1, 0] - sol.P_F[-1, 1]) / np.sqrt(2)
    assert carried / b.dt == pytest.approx(10.0, abs=1e-7)


# -- tetrahedron (7.11)
# ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", [1, 2])
def test_tetrahedron_slides_on_three_corners_without_turning(case):
    b = ss.benchmarks.load("tetrahedron", case)
    sol = run("tetrahedron", case, "radau2")
    properties.no_penetration(sol)
    assert np.abs(sol.q[:, 3:] - [1.0, 0.0, 0.0, 0.0]).max() < 1e-9
    assert np.all(sol.P_N[:, 3] == 0.0)
    assert sol.q[-1, :2] == pytest.approx(b.reference["rest_xy"], abs=6e-3)
    assert np.abs(sol.u[-1]).max() < 1e-9
    # the resultant of the normal percussions: the weight, whatever the friction
    sliding = sol.t > b.reference["impact_time"] + 3 * b.dt
    assert sol.P_N[sliding].sum(axis=1) == pytest.approx(b.reference["lambda_N"] * b.dt, rel=1e-9)


@pytest.mark.long_runs
def test_tetrahedron_error_falls_with_the_step():
    """What is left is the error of the impact, which depends on where in a step it falls:
    the worst of some phases.
    """
    b = ss.benchmarks.load("tetrahedron", 1)

    def error(dt):
        return np.abs(run("tetrahedron", 1, "rattle", dt=dt).q[-1, :2] - b.reference["rest_xy"]).max()

    dts = 2e-2 / 2.0 ** np.arange(7)
    assert slope(dts, [max(error(dt * phase) for phase in (1.0, 0.93, 0.86, 0.79)) for dt in dts]) > 0.8


def test_tetrahedron_friction_stays_in_its_reservoir_and_the_reservoirs_differ():
    ellipse, rectangle = (run("tetrahedron", case, "radau2") for case in (1, 2))
    for sol in (ellipse, rectangle):
        P = sol.P_F.reshape(-1, 4, 2) / np.array([0.15, 0.3])
        size = np.linalg.norm(P, axis=2) if sol is ellipse else np.abs(P).max(axis=2)
        assert np.all(size <= sol.P_N + 1e-10)  # the solver's atol times the number of unknowns
        assert np.any(size >= sol.P_N * (1 - 1e-9))
    # the rectangle allows more, and uses it: shorter path; a force in its corner is outside of the ellipse
    assert ellipse.q[-1, 0] - rectangle.q[-1, 0] > 0.5
    P = rectangle.P_F.reshape(-1, 4, 2) / np.array([0.15, 0.3])
    assert np.any(np.linalg.norm(P, axis=2) > rectangle.P_N * 1.2)
    assert ellipse.P_N.sum(axis=1) == pytest.approx(rectangle.P_N.sum(axis=1), abs=1e-9)


# -- sliding mass (S4 10.2)
# --------------------------------------------------------------------------------------------
def test_sliding_mass_turns_and_sticks_at_the_reference(kind):
    b = ss.benchmarks.load("sliding-mass")
    errors, dts = [], [8e-3, 4e-3, 2e-3, 1e-3]
    for dt in dts if kind == "moreau" else dts[-1:]:
        sol = run("sliding-mass", method=kind, dt=dt)
        errors.append(np.abs(sol.q[-1] - b.reference["rest_position"]).max())
        assert np.linalg.norm(sol.P_F, axis=1).max() <= 2.0 * dt * (1 + 1e-12)
    assert errors[-1] < 1e-2
    if kind == "moreau":
        assert slope(dts, errors) > 0.8
    turned = sol.t[int(np.argmax(sol.u[:, 0] < 0))]
    assert turned == pytest.approx(b.reference["turning_time"], abs=3e-3)
    stuck = sol.t > b.reference["stick_time"] + 5e-3
    assert np.abs(sol.u[stuck]).max() < 5e-11  # the solver's atol times the number of unknowns
