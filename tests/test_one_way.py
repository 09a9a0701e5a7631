"""Force elements with an interval of their own: freewheels,
slip clutches that differ by direction, prestressed springs.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from conftest import REPRESENTATIVE
from stickslip.methods import by_name

ORDER = {"shifted-moreau": 1, "radau1": 1}  # of the force alone; the others have at least 2
WHEEL, STOP = ss.benchmarks.load("freewheel"), ss.benchmarks.load("freewheel", 2)


def run(b, method, dt=1e-2, system=None):
    return ss.simulate(system or b.system, method, b.q0, b.u0, t1=b.t1, dt=dt)


def errors(sol):
    q, u, _ = WHEEL.reference["exact"](sol.t)
    return np.abs(sol.q - q).max(), np.abs(sol.u - u).max()


def lead(sol):
    return sol.u[:, 1] - sol.u[:, 0]


class WithoutElement(type(WHEEL.system)):
    """The same bodies, each for itself."""

    laws = property(lambda self: (ss.Contact(e_N=self.e_N), ss.FrictionElement(0.0)))


class BothWays(type(WHEEL.system)):
    """A brake in the place of the freewheel."""

    laws = property(lambda self: (ss.Contact(e_N=self.e_N), ss.FrictionElement(1e3)))


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_a_freewheel_pushes_and_never_pulls(name):
    sol = run(WHEEL, by_name(name))
    assert lead(sol).min() >= -1e-12
    assert sol.P_F.min() >= 0.0
    assert np.abs(lead(sol) * sol.P_F[:, 0]).max() < 1e-8
    dt = sol.t[1]
    assert max(errors(sol)) < (4.0 * dt if name in ORDER else 10.0 * dt**2)
    if name in ("rattle", "generalized-alpha"):  # the controls: what does not push, or also pulls
        for wrong in (WithoutElement(), BothWays()):
            assert max(errors(run(WHEEL, by_name(name), system=wrong))) > 0.1


def of_second_order(name):
    """Over two decades; where in a step the freewheel locks differs from one to the next,
    so the error is not smooth.
    """
    dts = np.array([2e-2, 5e-3, 1e-3, 2e-4])
    return np.all(np.array([max(errors(run(WHEEL, by_name(name), dt))) for dt in dts]) < 8.0 * dts**2)


@pytest.mark.parametrize("name", ["rattle", "radau2", "trbdf2", "generalized-alpha", "moreau"])
def test_a_freewheel_is_left_and_caught_with_second_order(name):
    assert of_second_order(name)


def test_a_method_of_first_order_is_told_from_one_of_second():
    assert not of_second_order("radau1")


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_a_freewheel_passes_an_impact_on(name):
    """The wheel hits a stop: hub and wheel turn round together."""
    sol = run(STOP, by_name(name))
    (k,) = np.flatnonzero(sol.P_N[:, 0] > 1e-3)
    assert sol.u[k, 1] == pytest.approx(-STOP.system.e_N * sol.u[k - 1, 1], rel=1e-9)
    assert np.abs(lead(sol)).max() < 1e-9
    assert sol.t[k] == pytest.approx(STOP.reference["impact_time"], abs=1e-2)
    if name == "rattle":  # the control: a hub that does not feel the wheel
        alone = run(
            STOP,
            by_name(name),
            system=eqx.tree_at(lambda s: s.drag, WithoutElement(torque=0.0, stop=1.0), 0.1),
        )
        assert np.abs(lead(alone)).max() > 1.0


def test_events_of_a_freewheel_are_located():
    sol = ss.simulate(WHEEL.system, ss.RadauIIA(3), WHEEL.q0, WHEEL.u0, t1=WHEEL.t1, rtol=1e-10, atol=1e-12)
    for kind, exact in (("slip", WHEEL.reference["opens"]), ("stick", WHEEL.reference["locks"])):
        assert [e.t for e in sol.events if e.kind == kind] == pytest.approx(exact, abs=1e-10)
    assert max(errors(sol)) < 1e-10
    inside = np.setdiff1d(sol.t, sol.events.t)
    _, _, la = WHEEL.reference["exact"](inside)
    assert sol.forces().la_F[np.isin(sol.t, inside), 0] == pytest.approx(la, abs=1e-10)
    sol = ss.simulate(STOP.system, ss.RadauIIA(3), STOP.q0, STOP.u0, t1=STOP.t1, rtol=1e-10, atol=1e-12)
    assert [(e.kind, e.t) for e in sol.events] == [
        ("impact", pytest.approx(STOP.reference["impact_time"], abs=1e-12))
    ]
    assert np.abs(lead(sol)).max() < 1e-12


def test_extrapolation_finds_the_switching_points_of_a_freewheel():
    control = ss.SwitchingPoints(1e-7, 0.05)
    sol = ss.simulate(WHEEL.system, ss.Extrapolation(4), WHEEL.q0, WHEEL.u0, t1=WHEEL.t1, stepsize=control)
    exact = sorted(WHEEL.reference["opens"] + WHEEL.reference["locks"])
    assert [p.t for p in sol.switching_points()] == pytest.approx(exact, abs=2e-6)


# ---- intervals


class Block(ss.System):
    """A mass in an element, pushed with F."""

    F: float
    laws: tuple

    def M(self, t, q):
        return 2.0 * jnp.eye(1)

    def h(self, t, q, u):
        return jnp.array([self.F])

    def gamma_F(self, t, q, u):
        return u


def pushed(method, lower, upper, F, v0, t1=1.0, dt=1e-2):
    system = Block(jnp.asarray(F, dtype=float), (ss.FrictionElement(lower=lower, upper=upper),))
    return ss.simulate(system, method, jnp.zeros(1), jnp.array([v0]), t1=t1, dt=dt)


def test_an_element_holds_with_what_its_interval_has(kind):
    """m = 2: u_dot = (F + la)/2, la = lower forwards, upper backwards, -F at rest if that is between them."""
    method = by_name(kind)
    for lower, upper, F, v0, expected, force in (
        (-1.0, 3.0, 0.0, 2.0, 1.5, -1.0),  # brakes weakly forwards,
        (-1.0, 3.0, 0.0, -2.0, -0.5, 3.0),  # strongly backwards
        (-1.0, 3.0, -2.0, 0.0, 0.0, 2.0),  # holds
        (-1.0, 3.0, 2.0, 0.0, 0.5, -1.0),  # gives way
        (2.0, 5.0, -3.0, 0.0, 0.0, 3.0),  # prestressed: holds a load between 2 and 5,
        (2.0, 5.0, -1.0, 0.0, 0.5, 2.0),  # pushes less than that away
        (2.0, 5.0, -6.0, 0.0, -0.5, 5.0),  # and yields to more
    ):
        sol = pushed(method, lower, upper, F, v0)
        assert sol.u[-1, 0] == pytest.approx(expected, abs=1e-9)
        assert sol.P_F[1:, 0] / np.diff(sol.t) == pytest.approx(force, abs=1e-9)
        assert sol.forces().la_F[1:, 0] == pytest.approx(force, abs=1e-9)
        assert sol.state[-1, 0] == ("stick" if expected == 0.0 else "slip")
    control = pushed(method, -2.0, 2.0, 0.0, 2.0)  # as strong both ways
    assert abs(control.u[-1, 0] - 1.5) > 0.1


def test_a_block_stops_where_its_interval_says():
    """From -2 with 3 N: at t = 4/3, and stays."""
    sol = ss.simulate(
        Block(jnp.zeros(()), (ss.FrictionElement(lower=-1.0, upper=3.0),)), ss.RadauIIA(3), [0.0], [-2.0],
        t1=2.0, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    assert [(e.kind, e.t) for e in sol.events] == [("stick", pytest.approx(4.0 / 3.0, abs=1e-12))]
    assert sol.q[-1, 0] == pytest.approx(-4.0 / 3.0, abs=1e-12)


def test_mirrored_bounds_mirror_the_motion():
    for name in ("rattle", "moreau", "generalized-alpha"):
        a = pushed(by_name(name), 0.5, math.inf, -1.5, 0.5)
        b = pushed(by_name(name), -math.inf, -0.5, 1.5, -0.5)
        assert a.q == pytest.approx(-b.q, abs=1e-12)
        assert a.P_F == pytest.approx(-b.P_F, abs=1e-12)
        assert a.u[-1, 0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("solver", [ss.SemismoothNewton(), ss.FixedPoint(), ss.PJOR(), ss.PSOR()])
def test_all_solvers_know_intervals_and_half_lines(solver):
    expected = run(WHEEL, ss.MoreauMidpoint())
    assert run(WHEEL, ss.MoreauMidpoint(solver=solver)).u == pytest.approx(expected.u, abs=1e-9)


def test_bounds_can_be_swept_and_differentiated():
    def end(lower, upper):
        return pushed(ss.Rattle(), lower, upper, 0.0, 2.0).u[-1, 0]

    assert jax.vmap(lambda a: end(a, 3.0))(jnp.array([-0.5, -1.0])) == pytest.approx([1.75, 1.5])
    assert jax.jacfwd(lambda a: end(a, 3.0))(-1.0) == pytest.approx(0.5)
    assert jax.vmap(lambda a: end(a, math.inf))(jnp.array([-0.5, 0.0])) == pytest.approx([1.75, 2.0])


def test_an_infinite_parameter_is_refused():
    class Wheel(type(WHEEL.system)):
        bound: float = math.inf
        laws = property(lambda self: (ss.Contact(), ss.FrictionElement(lower=0.0, upper=self.bound)))

    with pytest.raises(
        ValueError, match="an infinite bound is part of the law and no parameter of the system"
    ):
        run(WHEEL, ss.Rattle(), system=Wheel())


def test_energy_that_a_biased_element_takes_or_gives_is_counted():
    """An element with 2 to 5 N that pushes forwards feeds energy:
    dissipation is negative, and it balances.
    """
    sol = ss.simulate(
        Block(-jnp.ones(()), (ss.FrictionElement(lower=2.0, upper=5.0),)), ss.RadauIIA(3), [0.0], [0.0],
        t1=1.0, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    friction, _ = sol.dissipation()
    assert friction[-1, 0] == pytest.approx(-2.0 * sol.q[-1, 0], rel=1e-9)


def test_a_start_against_a_freewheel_is_refused():
    with pytest.raises(
        ValueError, match=r"moves against a one-way element: gamma_F\[0\] \(friction element laws\[1\]\)"
    ):
        ss.simulate(WHEEL.system, ss.Rattle(), WHEEL.q0, [1.0, 0.5], t1=0.1, dt=1e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ss.FrictionElement(-1.0, 3.0),
            r"dim must be a whole number; the bounds of an interval have names",
        ),
        (lambda: ss.FrictionElement(lower=1.0), "needs force, or lower and upper"),
        (lambda: ss.FrictionElement(1.0, lower=0.0, upper=1.0), "needs force, or lower and upper"),
        (
            lambda: ss.FrictionElement(lower=2.0, upper=1.0),
            r"lower=2.0, upper=1.0\): lower must be below upper",
        ),
        (lambda: ss.FrictionElement(lower=-math.inf, upper=math.inf), "is a constraint, gamma"),
        (lambda: ss.FrictionElement(lower=0.0, upper=math.inf, e_F=0.5), "e_F must be 0"),
        (lambda: ss.FrictionElement(lower=0.0, upper=1.0, dim=2), "has one velocity"),
        (lambda: ss.FrictionElement(lower=math.inf, upper=math.inf), r"lower=inf\)|lower must be"),
        (lambda: ss.FrictionElement(lower=math.nan, upper=1.0), "lower must be finite"),
        (ss.FrictionElement, "force must be a number"),
    ],
)
def test_intervals_that_are_none_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
