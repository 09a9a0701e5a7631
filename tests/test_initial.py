"""Consistent initial conditions: S3 section 3.7, S0 (54), (55)."""

import jax
import numpy as np
import pytest

import stickslip as ss

SLOPE = np.pi / 4  # of y = exp(-x) at x = 0
WEIGHT = np.pi * 10


def forces(case):
    b = ss.benchmarks.load("mass-on-slope", case)
    return ss.initial_state(b.system, b.q0, b.u0)


def test_a_mass_at_rest_on_a_steep_slope_starts_to_slide():
    s = forces(1)
    assert s.la_N[0] == pytest.approx(WEIGHT * np.cos(SLOPE))
    assert s.la_F[0] == pytest.approx(-0.3 * s.la_N[0])
    along = 10 * (np.sin(SLOPE) - 0.3 * np.cos(SLOPE))
    assert s.u_dot == pytest.approx(along * np.array([np.cos(SLOPE), -np.sin(SLOPE)]), abs=1e-10)
    assert s.closed.all()


@pytest.mark.parametrize(("case", "sign"), [(2, 1), (3, -1)])
def test_friction_of_a_sliding_start_opposes_its_velocity(case, sign):
    s = forces(case)
    # curvature of exp(-x) at 0: kappa = 1/2^(3/2); the mass presses more at speed 1
    assert s.la_N[0] == pytest.approx(WEIGHT * np.cos(SLOPE) + np.pi * 1.0 / 2**1.5)
    assert s.la_F[0] == pytest.approx(-sign * 0.3 * s.la_N[0])


def test_an_open_contact_has_no_force():
    s = forces(4)
    assert s.la_N[0] == 0.0
    assert s.u_dot == pytest.approx([0.0, -10.0])


def test_a_mass_on_a_gentle_slope_stays():
    b = ss.benchmarks.load("mass-on-slope", 1)
    x = 2.0
    s = ss.initial_state(b.system, np.array([x, np.exp(-x)]), np.zeros(2))
    assert np.abs(s.u_dot).max() < 1e-12
    assert abs(s.la_F[0]) < 0.3 * s.la_N[0]


def test_joints_of_the_slider_crank_carry_the_centripetal_forces():
    b = ss.benchmarks.load("slider-crank")
    s = ss.initial_state(b.system, b.q0, b.u0)
    from stickslip.derive import Dynamics

    d = Dynamics.of(b.system, 0.0, b.q0, b.u0)
    W, _ = d.directions(0.0, b.q0)
    la = np.concatenate([s.la_g, s.la_gamma, s.la_N, s.la_F])
    assert np.asarray(b.system.M(0.0, b.q0) @ s.u_dot) == pytest.approx(
        np.asarray(b.system.h(0.0, b.q0, b.u0) + W @ la), abs=1e-9
    )
    accelerations = np.asarray(W.T @ s.u_dot + d.acceleration_rest(0.0, b.q0, b.u0))
    assert np.abs(accelerations[:6]).max() < 1e-8
    assert np.abs(s.la_g).max() > 1.0


def test_it_works_inside_jit_and_refuses_outside():
    b = ss.benchmarks.load("mass-on-slope", 1)
    traced = jax.jit(lambda m: ss.initial_state(type(b.system)(m=m), b.q0, b.u0).la_N)(2.0)
    assert traced[0] == pytest.approx(20 * np.cos(SLOPE))
    with pytest.raises(ValueError, match="penetrates"):
        ss.initial_state(b.system, [0.0, 0.5], [0.0, 0.0])
    with pytest.raises(ValueError, match="approaches"):
        ss.initial_state(b.system, [0.0, 1.0], [0.0, -1.0])
