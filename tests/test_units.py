"""What is large and what is small does not depend on units, masses or where the origin is."""

import itertools

import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY
from systems import Ball, Stack

UNITS = [
    u
    for i, f in itertools.product(range(3), (1e6, 1e-6))
    for u in [tuple(f if k == i else 1.0 for k in range(3))]
]


def ball(name, L=1.0, m=1.0, T=1.0):
    """Case 2 of the bouncing ball, in other units of length, mass and time."""
    system = Ball(m=m, R=0.1 * L, gravity=9.81 * L / T**2)
    method = REGISTRY[name]()
    sol = ss.simulate(system, method, [0.0, L, 0.0], [0.0, 0.0, 50.0 / T], t1=1.5 * T, dt=1e-2 * T)
    return sol.q / [L, L, 1.0], sol.u / [L / T, L / T, 1.0 / T], sol


def test_units_do_not_matter(method):
    q, u, sol = ball(method)
    iterations = sol.stats.newton_iterations.sum()
    for units in UNITS:
        q1, u1, other = ball(method, *units)
        assert q1 == pytest.approx(q, rel=1e-9, abs=1e-9), units
        assert u1 == pytest.approx(u, rel=1e-9, abs=1e-9), units
        assert other.stats.newton_iterations.sum() == pytest.approx(iterations, rel=0.1), units


@pytest.mark.parametrize("L", [1e-6, 1.0, 1e6])
def test_what_is_closed_at_a_start_does_not_depend_on_the_unit_of_length(L):
    system = Ball(R=0.1 * L, gravity=9.81 * L)
    state = ss.initial_state(system, [0.0, 0.1 * L * (1 + 3e-7), 0.0], [0.0, 0.0, 0.0])
    assert not state.closed[0]
    assert state.u_dot[1] == pytest.approx(-9.81 * L)


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_a_drop_of_some_nanometres_falls_and_a_start_inside_is_refused(size):
    """Of the size of the mechanism: a gap of 5e-9 is open, one of -9e-9 inside;
    1e-10 is what a start may be off.
    """
    system = Ball(R=size, gravity=9.81)
    assert ss.initial_state(system, [0.0, size * (1 + 5e-9), 0.0], [0.0, 0.0, 0.0]).u_dot[1] == pytest.approx(
        -9.81
    )
    assert ss.initial_state(system, [0.0, size * (1 - 1e-10), 0.0], [0.0, 0.0, 0.0]).closed[0]
    with pytest.raises(ValueError, match="penetrates"):
        ss.simulate(system, ss.Rattle(), [0.0, size * (1 - 9e-8), 0.0], [0.0, 0.0, 0.0], t1=0.1, dt=1e-2)


def test_a_fall_of_some_nanometres_takes_its_time():
    """5 nm: 3.2e-5 s, in which nothing touches."""
    for name in ("trbdf2", "generalized-alpha", "rattle"):
        sol = ss.simulate(Stack((1.0,)), REGISTRY[name](), [5e-9], [0.0], t1=3e-5, dt=1e-6)
        assert (sol.P_N == 0).all()
        assert sol.q[-1, 0] == pytest.approx(5e-9 - 9.81 / 2 * 3e-5**2, rel=1e-6)


RATIOS = [1e-6, 1e-3, 1e3, 1e6]


@pytest.mark.parametrize("masses", [(1.0, 0.01), (1.0, 100.0), (1e-3, 1.0, 1e3)], ids=str)
def test_a_resting_stack_rests(masses, kind):
    """Three thousand steps: no contact is lost to round-off."""
    n = len(masses)
    sol = ss.simulate(Stack(masses), REGISTRY[kind](), np.zeros(n), np.zeros(n), t1=30.0, dt=1e-2)
    ratio = max(masses) / min(masses)
    assert np.abs(sol.u).max() < 1e-14 * ratio  # round-off of the heaviest, on the lightest
    assert np.abs(sol.g_N()).max() < 1e-13 * ratio
    weight = 9.81 * np.cumsum(masses[::-1])[::-1]
    # a light mass between heavy ones: what presses it from both sides cancels
    accuracy = max(1e-9, 100 * np.finfo(float).eps * ratio)
    assert sol.P_N[1:] / 1e-2 == pytest.approx(np.tile(weight, (3000, 1)), rel=accuracy)


def test_any_ratio_of_masses_falls_bounces_and_comes_to_rest(method):
    for ratio in RATIOS:
        sol = ss.simulate(
            Stack((1.0, ratio), e_N=0.3), REGISTRY[method](), [1.0, 2.0], [0.0, 0.0], t1=2.5, dt=1e-2
        )
        assert np.abs(sol.u[-1]).max() < 1e-7, ratio
        if REGISTRY[method]().level == "position":
            assert sol.g_N().min() > -1e-9, ratio


@pytest.mark.parametrize("ratio", RATIOS)
def test_forces_of_a_start_know_any_ratio_of_masses(ratio):
    force = ss.initial_state(Stack((1.0, ratio)), [0.0, 0.0], [0.0, 0.0]).la_N
    assert force == pytest.approx([9.81 * (1 + ratio), 9.81 * ratio], rel=1e-9)


def test_stacks_of_random_masses_do_not_penetrate():
    rng = np.random.default_rng(0)
    for _ in range(5):
        masses = tuple(10.0 ** rng.uniform(-3, 3, 3))
        sol = ss.simulate(
            Stack(masses, e_N=0.2), ss.Rattle(), np.cumsum(rng.uniform(0, 1, 3)), np.zeros(3), t1=4.0, dt=1e-2
        )
        assert sol.g_N().min() > -1e-9
