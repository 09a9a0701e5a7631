"""Inversion of the tippedisk: spatial friction, general kinematics, S0 section 5.4."""

import numpy as np
import pytest

import properties
import stickslip as ss
from conftest import at, run


def test_it_inverts_and_stays_inverted():
    sol = run("tippedisk")
    ref = ss.benchmarks.load("tippedisk").reference
    z = sol.q[:, 2]
    crossing = int(np.argmax(z > 0.045))
    t = np.interp(0.045, z[crossing - 1 : crossing + 1], sol.t[crossing - 1 : crossing + 1])
    assert t == pytest.approx(ref["inversion_time"], abs=8e-3)
    assert z[sol.t > 1.0].min() > 0.0470
    assert z.max() < 0.0475 + 1e-6
    properties.no_penetration(sol)


def test_the_quaternion_stays_a_unit_quaternion():
    sol = run("tippedisk")
    assert np.abs(np.linalg.norm(sol.q[:, 3:], axis=1) - 1).max() < 1e-10


def test_the_percussion_stays_in_the_ellipsoid():
    sol = run("tippedisk")
    a = np.array([1.0, 1.0, 3 * np.pi * 1e-3 / 16])
    size = np.linalg.norm(sol.P_F / a, axis=1)
    assert (size - 0.3 * sol.P_N[:, 0]).max() < 17 * 1e-12  # of percussions of the size of one
    # it slips all the time, but its direction turns within a step
    assert size[1:].min() > 0.0


@pytest.mark.parametrize("name", ["rattle", "moreau"])
def test_heights_converge_to_the_reference(name):
    """First order, as the printed friction law is in turning slip: halving dt about halves the error."""
    ref = ss.benchmarks.load("tippedisk").reference["z"]
    error = []
    for dt in (1e-3, 5e-4, 2.5e-4):
        sol = run("tippedisk", method=name, dt=dt, t1=0.3)
        error.append(abs(sol.q[at(sol, 0.2), 2] - ref[0.2]))
    assert error[2] < 0.7 * error[1] < 0.5 * error[0]
    assert error[2] < 1e-4


@pytest.mark.parametrize("name", ["rattle", "radau2"])
def test_a_step_of_a_millisecond_gives_the_heights_within_a_fortieth_of_the_rise(name):
    b = ss.benchmarks.load("tippedisk")
    sol = run("tippedisk", method=name)
    rise = b.reference["plateau"] - float(b.q0[2])
    for t, z in b.reference["z"].items():
        assert sol.q[at(sol, t), 2] == pytest.approx(z, abs=0.025 * rise)
