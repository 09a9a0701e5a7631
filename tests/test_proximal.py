"""Proximal parameters: solutions do not depend on them, iterations do."""

import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.derive import Dynamics
from stickslip.methods.spatial_friction import no_modes
from stickslip.solvers.proximal import with_proximal

GIVEN = (0.1, 0.5, 1.0, (0.1, 2.0), "method", "contracting")  # S0 has 0.1, S1 0.5 and 1
METHODS = {
    "rattle": lambda solver: ss.Rattle(solver=solver),
    "moreau": lambda solver: ss.MoreauMidpoint(solver=solver),
    "lobatto3": lambda solver: ss.LobattoIIIAB(3, solver=solver),
    "radau2": lambda solver: ss.RadauIIA(2, solver=solver),
    "generalized-alpha": lambda solver: ss.GeneralizedAlpha(solver=solver),
}


def ball(method, t1=0.8, case=2):
    b = ss.benchmarks.load("bouncing-ball", case)
    return ss.simulate(b.system, method, b.q0, b.u0, t1=t1, dt=1e-2)


@pytest.mark.parametrize("name", METHODS)
def test_answers_do_not_depend_on_proximal_parameters(name):
    expected = ball(METHODS[name](ss.SemismoothNewton()))
    for r in GIVEN if name == "rattle" else ((0.5, 0.1), "method"):
        sol = ball(METHODS[name](ss.Automatic(newton=ss.SemismoothNewton(proximal=r))))
        assert sol.q == pytest.approx(expected.q, abs=1e-10), r
        assert sol.P_F == pytest.approx(expected.P_F, abs=1e-9), r


def test_parameters_without_measure_cost_iterations():
    """The control: what is given is what is used."""
    good, wild = (ss.MoreauMidpoint(solver=ss.FixedPoint(proximal=r)) for r in ("diagonal", 0.05))
    assert ball(wild).stats.fixed_point_iterations.sum() > 10 * ball(good).stats.fixed_point_iterations.sum()


class MassOnSpring(ss.System):
    """A stiff spring above a floor: the scheme feels it, the mass matrix does not."""

    k: float = 1e4

    laws = (ss.Contact(),)

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -self.k * (q - 0.99) - 10.0

    def g_N(self, t, q):
        return q - 1.0


def stage(dt, system):
    """The problem of an implicit Euler step from rest on the floor."""
    q, u = jnp.ones(1), jnp.zeros(1)
    dynamics, found = Dynamics.of(system, 0.0, q, u), []

    class Spy(ss.SemismoothNewton):
        def solve(self, problem, x, y, number=None):
            found.append((problem, x, y))
            return super().solve(problem, x, y, number)

    method = ss.RadauIIA(1, solver=Spy())
    method.trial(dynamics, 0.0, dt, dt, q, u, method.init(dynamics, 0.0, q, u, dt), no_modes(dynamics))
    return found[0]


@pytest.mark.parametrize("dt", [1e-3, 1e-2, 1e-1])
def test_the_estimate_of_the_method_knows_its_forces(dt):
    """Backward Euler: g = dt u, (1 + dt^2 k) u = P, so that rho = (1 + dt^2 k)/dt;
    the mass matrix alone has 1/dt.
    """
    system = MassOnSpring()
    problem, x, y = stage(dt, system)
    rho = {
        c: float(with_proximal(problem, c, x, y).inclusions.in_use.N[0])
        for c in ("diagonal", "method", "contracting")
    }
    assert rho["method"] == pytest.approx((1.0 + dt**2 * system.k) / dt, rel=1e-9)
    assert rho["diagonal"] == pytest.approx(1.0 / dt, rel=1e-12)
    assert rho["diagonal"] / rho["method"] < 0.995  # control: the two are told apart


def test_with_the_estimate_of_the_method_a_fixed_point_takes_fewer_iterations():
    def iterations(choice):
        method = ss.RadauIIA(1, solver=ss.FixedPoint(proximal=choice))
        sol = ss.simulate(MassOnSpring(), method, [1.0], [0.0], t1=0.1, dt=1e-2)
        assert sol.forces().la_N[-1, 0] == pytest.approx(110.0, rel=1e-9)
        return sol.stats.fixed_point_iterations.sum()

    assert iterations("method") * 1.5 < iterations("diagonal")


@pytest.mark.parametrize("solver", [ss.SemismoothNewton, ss.FixedPoint, ss.PJOR, ss.PSOR])
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, "best", (0.1, 0.2, 0.3), None])
def test_what_is_no_parameter_is_refused(solver, wrong):
    with pytest.raises(ValueError, match=f"{solver.__name__}\\(proximal="):
        solver(proximal=wrong)


# ---- relaxation with a factor for each law, S4 (27), (28)


def settled(solver):
    b = ss.benchmarks.load("bouncing-ball", 2)
    return ss.simulate(b.system, ss.MoreauMidpoint(solver=solver), b.q0, b.u0, t1=0.6, dt=1e-2)


@pytest.mark.parametrize("kind", [ss.PJOR, ss.PSOR])
def test_relaxation_may_have_a_factor_for_each_law(kind):
    expected = settled(ss.SemismoothNewton())
    for omega in (0.7, (0.7, 1.3), np.array([1.0, 0.4])):
        sol = settled(kind(proximal="diagonal", relaxation=omega))
        assert sol.q == pytest.approx(expected.q, abs=1e-9)
    slow, fast = (settled(kind(proximal="diagonal", relaxation=omega)) for omega in ((1.0, 0.1), (1.0, 1.0)))
    assert slow.stats.fixed_point_iterations.sum() > 3 * fast.stats.fixed_point_iterations.sum()


def test_relaxation_factors_that_do_not_fit_are_refused():
    with pytest.raises(
        ValueError, match="3 entries; this system has 1 contacts and 1 friction laws: 2 are needed"
    ):
        settled(ss.PSOR(relaxation=(1.0, 1.0, 1.0)))
    for wrong in (0.0, (1.0, -1.0), "some", np.nan):
        with pytest.raises(ValueError, match=r"PJOR\(relaxation="):
            ss.PJOR(relaxation=wrong)
