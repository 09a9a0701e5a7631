"""S4's own examples, and what it leaves to its user: (31)-(35), (44), sections 9.2 and 9.3."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.methods.base import Tolerances
from stickslip.tableaus import esdirk

M, A, DT = 2.0, 3.0, 0.01  # mass, largest friction force, step


class Table(ss.System):
    """(31): a point mass on a table, pulled with F."""

    F: float
    e_F: float = 0.0

    def M(self, t, q):
        return M * jnp.eye(1)

    def h(self, t, q, u):
        return jnp.array([self.F])

    def gamma_F(self, t, q, u):
        return u

    @property
    def laws(self):
        return (ss.FrictionElement(A, e_F=self.e_F),)


def prox(x):
    return np.clip(x, -A * DT, A * DT)


SOLVERS = {
    "PJOR": ss.PJOR(),
    "PSOR": ss.PSOR(),
    "PJOR, omega 0.5": ss.PJOR(atol=1e-15, rtol=1e-15, relaxation=0.5),
    "PJOR, r = 0.3": ss.PJOR(atol=1e-15, rtol=1e-15, proximal=0.3),
    "Newton": ss.SemismoothNewton(),
}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize(
    ("F", "expected", "state"),
    [(2.0, -2.0, "stick"), (-2.9, 2.9, "stick"), (5.0, -A, "slip"), (-4.0, A, "slip")],
)
def test_a_pulled_mass_is_held_or_slips(solver, F, expected, state):
    """(34) P = -F dt, a constraint; (35) P = -a dt, impressed. Both are fixed points of (33) for any r."""
    sol = ss.simulate(Table(F), ss.MoreauMidpoint(solver=solver), [0.0], [0.0], t1=DT, dt=DT)
    P = sol.P_F[1, 0]
    assert P == pytest.approx(expected * DT, abs=1e-14)
    assert sol.u[1, 0] == pytest.approx((F + expected) * DT / M, abs=1e-15)
    assert sol.state[1, 0] == state
    for r in (0.1, 1.0, 7.0):
        assert P == pytest.approx(prox(P - r * (F * DT / M + P / M)), abs=1e-13)
    wrong = 0.9 * P  # the control
    assert abs(wrong - prox(wrong - (F * DT / M + wrong / M))) > 1e-4


@pytest.mark.parametrize("e_F", [0.0, 0.5])
def test_a_moving_mass_obeys_its_projective_equation(e_F):
    """(33) with u_B and a tangential restitution."""
    for u_B in (-0.02, -0.001, 0.004, 0.1):
        sol = ss.simulate(Table(1.0, e_F), ss.MoreauMidpoint(solver=ss.PSOR()), [0.0], [u_B], t1=DT, dt=DT)
        P = sol.P_F[1, 0]
        for r in (0.1, 1.0):
            assert P == pytest.approx(prox(P - r * (DT / M + P / M + (1.0 + e_F) * u_B)), abs=1e-12)


class Doubling(ss.Extrapolation):
    """1, 2, 4 substeps, as in (44)."""

    @property
    def numbers(self):
        return 2 ** np.arange(self.order)


def neville(method, values):
    lines, T = [], jnp.zeros((method.order, 1))
    for i, value in enumerate(values):
        T = method._next_line(jnp.asarray(i), T, jnp.array([value]))
        lines.append([float(x) for x in T[: i + 1, 0]])
    return lines


def test_the_tableau_of_the_example_is_made_again():
    """(44): y' = 3 x^2 by Euler's rule in 1, 2 and 4 steps; the third order is exact."""
    euler = [sum(3.0 * (k / n) ** 2 / n for k in range(n)) for n in (1, 2, 4)]
    assert euler == [0.0, 3 / 8, 21 / 32]
    for line, expected in zip(
        neville(Doubling(3), euler), [[0.0], [3 / 8, 3 / 4], [21 / 32, 15 / 16, 1.0]], strict=True
    ):
        assert line == pytest.approx(expected, abs=1e-15)
    # the control: weights of 1, 3, 5 substeps
    assert abs(neville(ss.Extrapolation(3), euler)[2][2] - 1.0) > 0.1


# ---- sections 9.2 and 9.3


def oscillating(method, **choices):
    b = ss.benchmarks.load("impact-oscillator")
    t1 = 0.9 * b.reference["impact_times"][0]
    sol = ss.simulate(b.system, method, b.q0, b.u0, t1=t1, stepsize=ss.SwitchingPoints(1e-7, 0.05, **choices))
    return sol, np.abs(sol.q[:, 0] - b.reference["exact"](sol.t)).max()


def test_steps_that_miss_their_tolerance_can_be_accepted_and_are_counted():
    tight = {"rtol": 1e-11, "atol": 1e-11}
    sol, error = oscillating(ss.Extrapolation(3), **tight)
    rough, its_error = oscillating(ss.Extrapolation(3), inaccurate="accept", **tight)
    assert not sol.stats.inaccurate.any()
    assert rough.stats.inaccurate.sum() > 3
    assert len(rough.t) < len(sol.t) / 4
    assert its_error > 10 * error
    assert len(rough.stats.inaccurate) == len(rough.t) - 1
    fixed, _ = oscillating(ss.Extrapolation(3, fixed_order=True), **tight)
    assert not fixed.stats.inaccurate.any()  # nothing was asked


def test_the_norm_of_the_criterion_is_a_choice():
    """||T_ii - T_i-1,i-1|| <= atol + rtol ||T_ii||:
    a small component beside a large one needs no digits of its own.
    """
    components, euclidean = (
        Tolerances(jnp.asarray(1e-7), 1e-3, 0.0, norm) for norm in ("components", "euclidean")
    )
    x, error = jnp.array([1e-6, 1.0]), jnp.array([1e-4, 1e-5])
    assert not components.allow(error, x)
    assert euclidean.allow(error, x)
    assert not euclidean.allow(20.0 * error, x)
    # at least as many digits component by component, with at least as much work
    each, together = (
        oscillating(ss.Extrapolation(6), rtol=1e-7, atol=1e-12, norm=norm)
        for norm in ("components", "euclidean")
    )
    assert each[0].stats.newton_iterations.sum() >= together[0].stats.newton_iterations.sum()
    assert each[1] < 1e-5


@pytest.mark.parametrize("name", ["inaccurate", "norm"])
def test_a_choice_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=rf"SwitchingPoints\({name}='best'\): {name} must be"):
        ss.SwitchingPoints(1e-6, 1e-2, **{name: "best"})


# ---- embedded weights, S3 (4.46) and Table 4.4

EMBEDDED = {"trbdf2": ss.TRBDF2(), "trx2": ss.TRX2(), "trtheta": ss.TRTheta(0.5)}


def estimate_over_error(method, *dts):
    """Of one step of an oscillator, whose local error is known."""
    from stickslip.derive import Dynamics

    b = ss.benchmarks.load("impact-oscillator")
    q, u, w, a = jnp.array([-0.4]), jnp.array([1.0]), np.sqrt(200.0), 0.15

    @jax.jit
    def step(q, u, dt):
        dynamics = Dynamics.of(b.system, 0.0, q, u)
        return method.step(dynamics, 0.0, dt, dt, q, u, method.init(dynamics, 0.0, q, u, dt))

    s, estimates = float(q[0]) + a, []
    for dt in dts:
        out = step(q, u, dt)
        exact = np.array(
            [-a + s * np.cos(w * dt) + np.sin(w * dt) / w, -w * s * np.sin(w * dt) + np.cos(w * dt)]
        )
        estimates.append(np.asarray(out.error) / (np.concatenate([out.q, out.u]) - exact))
    return estimates


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_weights_estimate_the_local_error(name):
    estimates = estimate_over_error(EMBEDDED[name], 1e-4, 4e-3, 1e-3)
    assert estimates[0] == pytest.approx(1.0, abs=0.03)
    off = [np.abs(estimate - 1.0).max() for estimate in estimates[1:]]
    # the estimate is a power of dt better than what it estimates
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.3)


def test_other_weights_do_not_estimate_the_error():
    class Wrong(ss.TRBDF2):
        @property
        def tableau(self):
            right = esdirk(2.0 - np.sqrt(2.0), "TR-BDF2")
            return type(right)("wrong", right.A, right.b, right.c, right.embedded[::-1].copy())

    (estimate,) = estimate_over_error(Wrong(), 1e-4)
    assert np.abs(estimate - 1.0).max() > 1.0


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_smaller_tolerance_means_a_smaller_error(name):
    """By embedded weights: errors fall by at least 10^(1/2) for a digit of the tolerance,
    and few steps are made twice.
    """
    runs = [oscillating(EMBEDDED[name], rtol=0.0, atol=tol) for tol in (1e-5, 1e-6, 1e-7, 1e-8)]
    errors = [error for _, error in runs]
    assert all(b < a / np.sqrt(10.0) for a, b in pairwise(errors))
    assert errors[-1] < 1e-6
    assert all(int(sol.stats.attempts) < 1.1 * len(sol.t) + 5 for sol, _ in runs)
    # the control: without such weights nothing is asked
    blind, _ = oscillating(ss.RadauIIA(1), rtol=0.0, atol=1e-8)
    assert blind.dt.max() > 10 * runs[-1][0].dt.max()
