"""Velocity constraints (`gamma`) and tangential restitution (`e_F`) against closed forms.

Each measure is also made of something broken on purpose, and must fail there.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from conftest import METHODS, slope
from stickslip.benchmarks import knife_edge, rolling_wheel, super_ball
from stickslip.methods import REGISTRY
from stickslip.methods.base import with_solver

KINDS = ["rattle", "lobatto3", "radau2", "trbdf2", "generalized-alpha"]
TIGHT = ss.Automatic(newton=ss.SemismoothNewton(atol=1e-14, rtol=1e-14, max_iterations=50))
STEPS = [10, 32, 100, 320, 1000]  # two decades
T1 = 3.2
SMALL = 1e-11  # errors below are round-off that piled up


class FreeSkate(knife_edge.KnifeEdge):
    """The skate on ice that it does not cut."""

    def gamma(self, t, q, u):
        return jnp.zeros(0)


class FreeWheel(rolling_wheel.RollingWheel):
    """The wheel on ice: driven, it spins on the spot it slides with."""

    def gamma(self, t, q, u):
        return jnp.zeros(0)


FREE = {"knife-edge": FreeSkate, "rolling-wheel": FreeWheel}


def without_constraint(b):
    fields = {f.name: getattr(b.system, f.name) for f in dataclasses.fields(b.system)}
    return FREE[b.name](**fields)


def errors(b, sol):
    """Of q, u, forces and of percussions over the step, which are forces in its middle up to dt^2."""
    (q, u, la), (_, _, middle) = (
        b.reference["exact"](b, sol.t),
        b.reference["exact"](b, sol.t[1:] - sol.dt[1:] / 2),
    )
    pairs = [(sol.q, q), (sol.u, u)]
    if sol.P_gamma.shape[1]:
        pairs += [(sol.forces().la_gamma, la), (sol.P_gamma[1:] / sol.dt[1:, None], middle)]
    return [np.abs(x - true).max() for x, true in pairs]


def orders(b, method, system=None):
    """Over all steps, as far as there are errors above round-off; infinite where there are none."""
    system, dts = b.system if system is None else system, T1 / np.array(STEPS)
    runs = [ss.simulate(system, with_solver(method, TIGHT), b.q0, b.u0, t1=T1, dt=dt) for dt in dts]
    found = np.array([errors(b, sol) for sol in runs])
    return [slope(dts[e > SMALL], e[e > SMALL]) if (e > SMALL).sum() >= 3 else np.inf for e in found.T]


def of_full_order(found, order):
    q, u, force, percussion = found
    return min(q, u, force) > order - 0.2 and percussion > min(order, 2) - 0.2


def largest_gamma(b, sol):
    return np.abs(jax.vmap(b.system.gamma)(sol.t, sol.q, sol.u)).max()


# -- closed forms
# ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "case"), [("knife-edge", 1), *(("rolling-wheel", case) for case in rolling_wheel.CASES)]
)
def test_closed_forms_obey_the_equations_of_motion(name, case):
    """M u_dot = h + W_gamma lambda, q_dot = u, gamma = 0, by central differences."""
    b, t, eps = ss.benchmarks.load(name, case), np.linspace(0.1, 3.0, 9), 1e-5
    (q, u, la), after, before = (b.reference["exact"](b, t + d) for d in (0.0, eps, -eps))
    q_dot, u_dot = ((x - y) / (2 * eps) for x, y in zip(after[:2], before[:2], strict=True))

    def balance(q, u, u_dot, la):
        W = jax.jacfwd(b.system.gamma, argnums=2)(0.0, q, u)
        return b.system.M(0.0, q) @ u_dot - b.system.h(0.0, q, u) - W.T @ la, b.system.gamma(0.0, q, u)

    force, gamma = jax.vmap(balance)(q, u, u_dot, la)
    assert np.abs(force).max() < 1e-7
    assert np.abs(gamma).max() < 1e-12
    assert np.abs(q_dot - u).max() < 1e-7
    q0, u0, _ = b.reference["exact"](b, 0.0)
    assert max(np.abs(q0[0] - b.q0).max(), np.abs(u0[0] - b.u0).max()) < 1e-15
    wrong, _ = jax.vmap(balance)(q, u, u_dot, 0.9 * la)
    assert np.abs(wrong).max() > 1e-2


# -- orders
# ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("benchmark", ["knife-edge", "rolling-wheel"])
def test_velocity_constraints_keep_the_order_of_a_method(benchmark, name):
    """In positions, velocities and forces, over two decades of steps."""
    method = REGISTRY[name]()
    assert of_full_order(orders(ss.benchmarks.load(benchmark), method), method.order)


@pytest.mark.parametrize("benchmark", ["knife-edge", "rolling-wheel"])
def test_the_printed_conditions_on_gamma_do_not_keep_the_order(benchmark):
    """The control: S1 (51) imposes gamma = 0 at the stages, which costs half the order of 2 s - 2."""
    for stages, order in ((2, 1), (3, 2)):
        found = orders(ss.benchmarks.load(benchmark), ss.LobattoIIIAB(stages, friction="printed"))
        assert not of_full_order(found, 2 * stages - 2)
        assert found[0] == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("benchmark", ["knife-edge", "rolling-wheel"])
def test_without_its_constraint_a_body_goes_elsewhere(benchmark):
    """The control: errors against the closed form stay as large as they are."""
    b = ss.benchmarks.load(benchmark)
    assert max(orders(b, ss.Rattle(), without_constraint(b))) < 0.5


# -- constraints
# -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KINDS)
def test_velocity_constraints_hold_at_every_row(name):
    for benchmark in ("knife-edge", "rolling-wheel"):
        b = ss.benchmarks.load(benchmark)
        method = with_solver(REGISTRY[name](), TIGHT)  # the programs of the orders
        assert largest_gamma(b, ss.simulate(b.system, method, b.q0, b.u0, t1=T1, dt=0.1)) < 1e-9


def test_velocity_constraints_do_not_hold_where_there_are_none():
    """The control, and Moreau's scheme, which knows them at the middle of a step only:
    an error of first order.
    """
    for benchmark in ("knife-edge", "rolling-wheel"):
        b = ss.benchmarks.load(benchmark)
        assert (
            largest_gamma(b, ss.simulate(without_constraint(b), ss.Rattle(), b.q0, b.u0, t1=T1, dt=0.1)) > 1.0
        )
        dts = (0.02, 0.005)
        found = [
            largest_gamma(b, ss.simulate(b.system, ss.MoreauMidpoint(), b.q0, b.u0, t1=T1, dt=dt))
            for dt in dts
        ]
        assert slope(dts, found) == pytest.approx(1.0, abs=0.1)


def test_a_skate_on_a_slope_returns_on_its_cycloid():
    b = ss.benchmarks.load("knife-edge")
    arch, ref = b.t1 / 2, b.reference

    def returns(system):
        sol = ss.simulate(system, b.method, b.q0, b.u0, t1=b.t1, dt=b.dt)
        heights = sol.q[[0, 100, 200], 0]
        return np.abs(heights).max() < 1e-6 and sol.q[:, 0].max() == pytest.approx(
            ref["depth"], abs=1e-6
        ), sol

    returned, sol = returns(b.system)
    assert returned
    assert sol.t[100] == pytest.approx(arch)
    assert sol.q[100, 1] == pytest.approx(ref["width"], abs=1e-6)
    assert sol.forces().la_gamma.max() == pytest.approx(ref["la_gamma_max"], abs=1e-6)
    assert not returns(without_constraint(b))[0]


def test_a_wheel_comes_round_its_circle_and_a_driven_one_does_not():
    circle, spiral = (ss.benchmarks.load("rolling-wheel", case) for case in (2, 1))
    ends = [ss.simulate(b.system, b.method, b.q0, b.u0, t1=b.t1, dt=b.dt).q[-1] for b in (circle, spiral)]
    assert ends[0][:2] == pytest.approx(0.0, abs=1e-6)
    assert ends[0][2:] == pytest.approx([2 * np.pi, 4 * np.pi], abs=1e-6)
    assert np.abs(ends[1][:2]).max() > 0.1


# -- super ball
# --------------------------------------------------------------------------------------------------------
class Impacts:
    """Steps with an impact: what it makes of gap rate, slip and kinetic energy."""

    def __init__(self, b, method, system=None):
        self.sol = sol = ss.simulate(
            b.system if system is None else system, method, b.q0, b.u0, t1=1.2, dt=b.dt
        )
        fast = sol.u[:-1, 1] < -2 * b.system.gravity * b.dt  # not by its weight alone
        after = np.flatnonzero((sol.P_N[1:, 0] > 0) & fast) + 1
        assert len(after) >= 2
        slip = sol.u[:, 0] + b.system.R * sol.u[:, 2]
        self.xi_N = sol.u[after, 1] + b.system.e_N * sol.u[after - 1, 1]
        self.xi_F = slip[after] + b.system.e_F * slip[after - 1]
        T = np.einsum("ni,ij,nj->n", sol.u, np.asarray(b.system.M(0.0, b.q0)), sol.u) / 2
        self.gained = T[after] - T[after - 1]
        self.P_N, self.P_F, self.u = sol.P_N[after, 0], sol.P_F[after, 0], sol.u[after]

    @property
    def law(self):
        return max(np.abs(self.xi_N).max(), np.abs(self.xi_F).max())


@pytest.mark.parametrize("name", METHODS)
def test_newtons_law_holds_in_both_directions_at_every_impact(name):
    """As it stands in S1 (53) and (58), with e_F = 1 and e_F = 0.5:
    the impact is that of the step, whenever it happens.
    """
    for case in (1, 3):
        assert Impacts(ss.benchmarks.load("super-ball", case), REGISTRY[name]()).law < 1e-9


def test_newtons_law_does_not_hold_for_a_ball_that_does_not_rebound_or_slides():
    """The control: e_F = 0, or too little friction."""
    b = ss.benchmarks.load("super-ball")
    assert Impacts(b, ss.Rattle(), dataclasses.replace(b.system, e_F=0.0)).law > 1.0
    assert Impacts(ss.benchmarks.load("super-ball", 2), ss.Rattle()).law > 1.0


@pytest.mark.parametrize("name", KINDS)
def test_a_super_ball_alternates_and_loses_nothing(name):
    """u_x, u_phi and the kinetic energy across an impact are those of the closed form though the impact comes
    late; with e_N, e_F < 1 energy is lost (the control)."""
    b = ss.benchmarks.load("super-ball")
    found = Impacts(b, REGISTRY[name]())
    assert found.u[:, ::2] == pytest.approx(b.reference["u_after"][: len(found.u), ::2], abs=1e-9)
    assert np.abs(found.gained).max() < 1e-9
    assert Impacts(ss.benchmarks.load("super-ball", 3), REGISTRY[name]()).gained.max() < -0.1


@pytest.mark.parametrize("name", KINDS)
def test_with_little_friction_a_super_ball_slides_through_its_impacts(name):
    """|P_F| = mu P_N against the slip; with enough friction it is less (the control)."""
    b, rough = (ss.benchmarks.load("super-ball", case) for case in (2, 1))
    found, stuck = Impacts(b, REGISTRY[name]()), Impacts(rough, REGISTRY[name]())
    assert found.P_F == pytest.approx(-b.system.mu * found.P_N, abs=1e-9)
    assert found.u[:, 0] == pytest.approx(float(b.u0[0]) + np.cumsum(found.P_F), abs=1e-9)
    assert np.all(found.xi_F > 0.1)
    assert np.all(np.abs(stuck.P_F) < 0.9 * rough.system.mu * stuck.P_N)


@pytest.mark.parametrize("case", super_ball.CASES)
def test_located_impacts_of_a_super_ball_are_those_of_the_closed_form(case):
    """Times and velocities; not those of a ball without tangential restitution (the control)."""
    b = ss.benchmarks.load("super-ball", case)
    sol = ss.simulate(b.system, ss.RadauIIA(2), b.q0, b.u0, t1=b.t1, rtol=1e-8, atol=1e-10)
    times = np.asarray(sol.events.t)[:3]
    assert times == pytest.approx(b.reference["impact_times"][:3], abs=1e-9)
    after = np.array([sol(t)[1] for t in times])
    assert after == pytest.approx(b.reference["u_after"][:3], abs=1e-9)
    dull = super_ball.impacts(dataclasses.replace(b.system, e_F=0.0, mu=1.0), b.q0, b.u0)
    assert np.abs(after - dull["u_after"][:3]).max() > 0.1


@pytest.mark.parametrize("stages", [2, 3])
def test_a_constraint_without_terms_at_the_start_is_solved(stages):
    """The blade points along x and nothing moves along y:
    a row that is the sum of nothing says nothing about round-off.
    """
    b = ss.benchmarks.load("knife-edge")
    sol = ss.simulate(b.system, ss.LobattoIIIC(stages), b.q0, b.u0, t1=b.t1, dt=b.dt)
    off = np.abs(sol.q - b.reference["exact"](b, sol.t)[0]).max()
    assert off < (1e-2 if stages == 2 else 1e-6)
