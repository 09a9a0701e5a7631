"""Every method keeps the order it states, over two decades of step sizes:
`benchmarks/orders.py` has all benchmarks.
"""

import numpy as np
import pytest

import orders
import stickslip as ss
from stickslip.methods import REGISTRY

EVERY_OTHER = slice(None, None, 2)  # of the steps: still two decades


def keeps(problem, method):
    out = orders.measure(orders.PROBLEMS[problem](), method, EVERY_OTHER)
    assert out.keeps, (problem, out)


def test_orders_hold_over_two_decades_in_turning_slip(method):
    for mu in (0.2, 0.5, 0.9):
        keeps(f"puck, mu = {mu}", REGISTRY[method]())


def test_orders_hold_over_two_decades_on_the_slope(kind):
    keeps("mass-on-slope 5", REGISTRY[kind]())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rattle", "lobatto3", "radau2", "generalized-alpha"])
def test_orders_hold_over_two_decades_on_the_tippedisk(name):
    keeps("tippedisk 1", REGISTRY[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rattle", "lobatto3"])
def test_orders_hold_over_two_decades_in_rolling(name):
    keeps("rolling-disc", REGISTRY[name]())


@pytest.mark.parametrize("name", ["rattle", "radau2", "generalized-alpha"])
def test_the_printed_law_does_not_keep_them(name):
    """Negative control."""
    out = orders.measure(orders.PROBLEMS["puck, mu = 0.5"](), REGISTRY[name](friction="printed"), EVERY_OTHER)
    assert not out.keeps
    assert out.measured == pytest.approx(1.0, abs=0.2)


def test_the_verdict_sees_an_order_that_is_lost_only_at_small_steps():
    """Errors that RATTLE once had on the puck, and what their neighbours should have been."""
    steps = 0.5 / np.array([1e-2, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4])
    lost = orders.judge(steps, [1.2e-4, 2.9e-5, 2.7e-3, 2.3e-3, 1.0e-3, 1.6e-4], 2)
    kept = orders.judge(steps, [1.2e-4, 2.9e-5, 1.0e-5, 4.6e-6, 1.2e-6, 2.9e-7], 2)
    assert not lost.keeps
    assert kept.keeps
    assert kept.measured == pytest.approx(2.0, abs=0.05)


def test_a_solver_does_not_choose_the_scheme(kind):
    """The fixed point is slow, but solves the same equations: the same order, the same errors."""
    if kind in ("moreau", "shifted-moreau"):
        pytest.skip("has no stages")
    problem = orders.PROBLEMS["puck, mu = 0.5"]()

    def error(method, n):
        sol = ss.simulate(problem.system, method, problem.q0, problem.u0, t1=problem.t1, dt=problem.t1 / n)
        assert sol.stats.mode_failures.sum() == 0
        return problem.error(sol)

    for n in (25, 50):
        assert error(REGISTRY[kind](solver=ss.FixedPoint()), n) == pytest.approx(
            error(REGISTRY[kind](), n), rel=1e-3
        )


def test_failed_modes_are_counted_by_contact():
    """The ball slips, then rolls: one transition, and a second contact that has none."""
    b = ss.benchmarks.load("bouncing-ball", 2)
    sol = ss.simulate(b.system, ss.Rattle(), b.q0, b.u0, t1=1.5, dt=1e-2)
    assert sol.stats.mode_failures.tolist() == [1]
    (row,) = np.flatnonzero(sol.stats.mode_failed[:, 0])
    assert sol.t[row + 1] == pytest.approx(b.reference["stick_time"], abs=b.dt)
    printed = ss.simulate(b.system, ss.Rattle(friction="printed"), b.q0, b.u0, t1=1.5, dt=1e-2)
    assert printed.stats.mode_failures.tolist() == [0]  # nothing was replaced: it was asked for


def test_the_command_line_tells_of_failed_modes():
    from typer.testing import CliRunner

    from stickslip.cli import app

    out = CliRunner().invoke(app, ["run", "bouncing-ball", "--case", "2", "--method", "rattle"])
    assert "friction as printed in 1 step: ground 1" in out.output
