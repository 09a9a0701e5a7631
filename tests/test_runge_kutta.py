"""Orders, impact laws and forms of the Runge-Kutta families: S3 chapters 4 and 5, S1."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

import stickslip as ss
from stickslip.benchmarks.bouncing_ball_1d import Ball1D, naive_cases, naive_step
from stickslip.tableaus import radau_iia

TIGHT = ss.SemismoothNewton(atol=1e-14, rtol=1e-14, max_iterations=50)
DTS = [5.12e-2 / 2**k for k in range(7)]  # S3 Example 4.11
T1 = 0.2048

# found once with an independent program: orders (q, u) unprojected and projected; errors projected at h =
# 5.12e-2 and 8e-4
PENDULUM = {
    "radau1": (ss.RadauIIA, (1,), (1, 1), (1, 1), (5.97e-3, 7.49e-5), (1.00e-2, 1.07e-4)),
    "radau2": (ss.RadauIIA, (2,), (3, 2), (3, 3), (2.29e-6, 6.12e-12), (9.13e-6, 2.51e-11)),
    "radau3": (ss.RadauIIA, (3,), (5, 3), (5, 5), (7.71e-9, None), (1.20e-8, None)),
    "lobattoc2": (ss.LobattoIIIC, (2,), (2, 1), (2, 2), (5.24e-5, 7.04e-9), (2.93e-4, 5.42e-8)),
    "lobattoc3": (ss.LobattoIIIC, (3,), (4, 2), (4, 4), (1.27e-7, 5.31e-15), (2.92e-7, 1.17e-14)),
    "sdirk2": (ss.SDIRK2, (), (1, 1), (1, 1), (2.26e-5, 8.37e-8), (3.89e-4, 2.47e-6)),
    "sdirk3": (ss.SDIRK3, (), (1, 1), (1, 1), (1.53e-5, 9.47e-8), (3.64e-4, 2.83e-6)),
    "trbdf2": (ss.TRBDF2, (), (2, 2), (2, 2), (1.52e-5, 2.52e-9), (2.09e-4, 3.39e-8)),
    "trtheta": (ss.TRTheta, (0.9,), (2, 2), (2, 2), (9.36e-6, 1.19e-9), (1.42e-4, 1.38e-8)),
    "trx2": (ss.TRX2, (), (2, 2), (2, 2), (8.94e-6, 1.35e-9), (1.41e-4, 2.42e-8)),
}
PARTITIONED = {2: ((1.73e-5, 1.09e-8), (1.31e-4, 9.44e-8)), 3: ((1.21e-7, 8.17e-14), (2.43e-7, 1.64e-13))}


@pytest.fixture(scope="module")
def exact():
    """The pendulum's angle by an independent integrator, on the finest grid."""
    m, c, g = 1.25, 1.0, 10.0

    def rate(t, s):
        x, y = np.cos(s[0]), np.sin(s[0])
        return [s[1], (-y * c * (2 - x) + x * (c * (2 - y) - m * g)) / m]

    t = np.arange(257) * 8e-4
    out = solve_ivp(rate, (0, T1), [0.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-15, t_eval=t)
    phi, w = out.y
    e, n = np.stack([np.cos(phi), np.sin(phi)], 1), np.stack([-np.sin(phi), np.cos(phi)], 1)
    return e, w[:, None] * n


def errors(method, exact, dts=DTS):
    b = ss.benchmarks.load("pendulum")
    out = []
    for dt in dts:
        sol = ss.simulate(b.system, method, b.q0, b.u0, t1=T1, dt=dt)
        every = round(dt / 8e-4)
        out.append(
            [dt * np.abs(a - e[::every])[1:].sum() for a, e in zip((sol.q, sol.u), exact, strict=True)]
        )
    return np.array(out)


def order(error, finest):
    """Local order at the finest steps that are still above round-off."""
    above = error[error > 2e-13]
    local = np.log2(above[:-1] / above[1:])
    return local[-finest:].mean()


@pytest.mark.parametrize("name", PENDULUM)
def test_orders_and_errors_on_the_pendulum_are_those_of_the_reference(name, exact):
    make, arguments, naive, projected, e_q, e_u = PENDULUM[name]
    for orders, option in ((naive, False), (projected, True)):
        error = errors(make(*arguments, projected=option, solver=TIGHT), exact)
        for k in range(2):
            assert order(error[:, k], 2) == pytest.approx(orders[k], abs=0.2), (
                f"projected={option}, {'qu'[k]}"
            )
    for k, expected in enumerate((e_q, e_u)):
        for measured, value in zip((error[0, k], error[-1, k]), expected, strict=True):
            if value is not None:
                assert value / 2 < measured < 2 * value


@pytest.mark.parametrize("s", [2, 3, 4])
def test_lobatto_iiiab_has_order_2s_minus_2_on_the_pendulum(s, exact):
    error = errors(ss.LobattoIIIAB(s, solver=TIGHT), exact)
    for k in range(2):
        if s < 4:
            assert order(error[:, k], 2) == pytest.approx(2 * s - 2, abs=0.2)
            assert PARTITIONED[s][k][0] / 2 < error[0, k] < 2 * PARTITIONED[s][k][0]
            assert PARTITIONED[s][k][1] / 2 < error[-2, k] < 2 * PARTITIONED[s][k][1]
        else:
            assert error[0, k] < 2 * (5.96e-12, 1.34e-10)[k]
    if s == 4:
        assert np.log2(error[0, 1] / error[1, 1]) == pytest.approx(6, abs=0.3)


@pytest.mark.parametrize("t", ["0.2048", "1", "2.5"])
def test_the_pendulum_swings_as_the_reference(t):
    b = ss.benchmarks.load("pendulum")
    sol = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=float(t), dt=float(t) / 400)
    assert sol.q[-1] == pytest.approx(b.reference[f"q({t})"], abs=2e-8)
    assert sol.u[-1] == pytest.approx(b.reference[f"u({t})"], abs=2e-8)


def test_the_projection_removes_the_oscillating_constraint_rate():
    """Fig. 4.1: g_dot oscillates near 1e-3 without projection and is round-off with it;
    g is round-off in both.
    """
    b = ss.benchmarks.load("pendulum")
    rate = {}
    for projected in (True, False):
        sol = ss.simulate(b.system, ss.RadauIIA(2, projected=projected), b.q0, b.u0, t1=2.5, dt=2.5e-2)
        assert np.abs((sol.q**2).sum(axis=1) - 1).max() < 1e-10
        rate[projected] = np.abs(2 * (sol.q * sol.u).sum(axis=1)).max()
    assert rate[True] < 1e-11
    assert 1e-4 < rate[False] < 1e-2


SLOPE_DTS = [5.12e-2 / 2**k for k in range(5)]


def slope_errors(method, t1, case=5, dts=SLOPE_DTS, fine=2e-4):
    b = ss.benchmarks.load("mass-on-slope", case)
    go = lambda m, dt: ss.simulate(b.system, m, b.q0, b.u0, t1=t1, dt=dt)
    reference = go(ss.RadauIIA(3, solver=TIGHT), fine)
    out = []
    for dt in dts:
        sol, every = go(method, dt), round(dt / fine)
        pairs = ((sol.q, reference.q), (sol.u, reference.u))
        out.append([dt * np.abs(a - e[::every])[1:].sum() for a, e in pairs])
    return np.array(out)


@pytest.mark.parametrize("t1", [0.8192, 1.6384])
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (ss.RadauIIA(2, solver=TIGHT), 3),
        (ss.RadauIIA(3, solver=TIGHT), 5),
        (ss.LobattoIIIAB(2, solver=TIGHT), 2),
        (ss.LobattoIIIAB(3, solver=TIGHT), 4),
        (ss.TRBDF2(solver=TIGHT), 2),
    ],
    ids=["radau2", "radau3", "lobatto2", "lobatto3", "trbdf2"],
)
def test_sliding_in_one_direction_keeps_the_order(method, expected, t1):
    error = slope_errors(method, t1)
    for k in range(2):
        above = error[error[:, k] > 1e-12, k]
        assert len(above) >= 2
        local = np.log2(above[:-1] / above[1:])
        assert local.mean() == pytest.approx(expected, abs=0.25)
    if expected >= 4:
        assert error.min() < 1e-11  # goes down to round-off


def test_the_reference_of_the_order_test_is_the_event_driven_one():
    b = ss.benchmarks.load("mass-on-slope", 5)
    sol = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=1.6, dt=1.6 / 400)
    assert sol.q[-1, 0] == pytest.approx(b.reference["x(1.6)"], abs=1e-9)
    assert np.linalg.norm(sol.u[-1]) == pytest.approx(b.reference["speed(1.6)"], abs=1e-9)


def test_integrated_differences_cost_the_partitioned_family_an_order():
    """(5.29): three stages fall from order 4 to 3."""
    error = slope_errors(ss.LobattoIIIAB(3, integrated=True, solver=TIGHT), 0.8192)
    assert np.log2(error[:-1] / error[1:]).mean() == pytest.approx(3, abs=0.2)


def dropped_mass():
    """Case 6 with its impact where it is: free fall,
    then a smooth run from the state after the impact. q and u of t.
    """
    b = ss.benchmarks.load("mass-on-slope", 6)
    t_impact, speed = b.reference["impact_time"], b.reference["speed_after_impact"]
    fine = ss.simulate(
        b.system, ss.RadauIIA(3), [0.0, 1.0], speed * np.array([1, -1]) / np.sqrt(2), t1=1.4, dt=1e-3
    )
    curve = CubicHermiteSpline(fine.t + t_impact, fine.q, fine.u)

    def q(t):
        return np.where(
            (t < t_impact)[:, None], np.stack([0 * t, 1.5 - 5 * t**2], 1), curve(np.maximum(t, t_impact))
        )

    def u(t):
        return np.where(
            (t < t_impact)[:, None], np.stack([0 * t, -10 * t], 1), curve(np.maximum(t, t_impact), 1)
        )

    return b, q, u


@pytest.mark.parametrize("method", [ss.RadauIIA(2), ss.LobattoIIIAB(3)], ids=["radau2", "lobatto3"])
def test_a_dropped_mass_is_first_order(method):
    """The error depends on where in its step the impact falls:
    the worst of some step sizes stands for each octave.
    """
    b, q, u = dropped_mass()
    coarse, worst, rng = [20, 40, 80, 160, 320, 640], [], np.random.default_rng(0)
    for n in coarse:
        steps = rng.integers(n, 2 * n, 12)
        runs = [ss.simulate(b.system, method, b.q0, b.u0, t1=1.6, dt=1.6 / k) for k in steps]
        l1 = lambda sol, a, e: (sol.t[1] - sol.t[0]) * np.abs(a - e(sol.t)).sum()  # (4.56)
        worst.append((max(l1(sol, sol.q, q) for sol in runs), max(l1(sol, sol.u, u) for sol in runs)))
    for error in np.array(worst).T:
        assert np.polyfit(np.log(1.6 / np.array(coarse)), np.log(error), 1)[0] == pytest.approx(1.0, abs=0.2)


def test_rattle_is_the_two_stage_lobatto_method():
    for name, case, t1 in (("bouncing-ball", 1, None), ("mass-on-slope", 4, None), ("slider-crank", 1, 0.02)):
        b = ss.benchmarks.load(name, case)
        # With e_N = 1/2 the ball reaches the ground exactly at the end of a step, and round-off decides in
        # which one.
        system = dataclasses.replace(b.system, e_N=0.47) if name == "bouncing-ball" else b.system
        a, c = (
            ss.simulate(system, m, b.q0, b.u0, t1=t1 or b.t1, dt=b.dt)
            for m in (ss.Rattle(), ss.LobattoIIIAB(2))
        )
        assert a.q == pytest.approx(c.q, abs=1e-8)
        assert a.P_N == pytest.approx(c.P_N, abs=1e-8)
        assert a.P_g == pytest.approx(c.P_g, abs=1e-8)


class DoublePendulum(ss.LagrangianSystem):
    """Mass matrix that depends on q; a wall for the lower mass."""

    def T(self, t, q, u):
        return u[0] ** 2 + 0.5 * u[1] ** 2 + u[0] * u[1] * jnp.cos(q[0] - q[1])

    def V(self, t, q):
        return -10.0 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))


class Walled(DoublePendulum):
    def g_N(self, t, q):
        return jnp.array([jnp.sin(q[0]) + jnp.sin(q[1]) + 0.5])

    laws = (ss.Contact(e_N=0.5),)


def test_the_momentum_form_is_the_same_for_constant_mass():
    b = ss.benchmarks.load("mass-on-slope", 6)
    velocity, momentum = (
        ss.simulate(b.system, ss.LobattoIIIAB(3, form=form), b.q0, b.u0, t1=1.0, dt=1e-2)
        for form in ("velocity", "momentum")
    )
    assert velocity.q == pytest.approx(momentum.q, abs=1e-10)
    assert velocity.P_N == pytest.approx(momentum.P_N, abs=1e-10)


@pytest.mark.parametrize("form", ["velocity", "momentum"])
@pytest.mark.parametrize("s", [2, 3])
def test_both_forms_have_the_same_order_for_a_variable_mass(form, s):
    q0, u0 = [1.0, 0.5], [0.0, 0.0]
    methods = {"m": ss.LobattoIIIAB(s, form=form)}
    out = ss.convergence(DoublePendulum(), methods, [0.02, 0.01, 0.005, 0.0025], t1=0.32, q0=q0, u0=u0)
    for quantity in "qu":
        assert out.order("m", quantity) == pytest.approx(2 * s - 2, abs=0.2)


def test_both_forms_obey_the_impact_law_with_a_variable_mass():
    for form in ("velocity", "momentum"):
        sol = ss.simulate(Walled(), ss.LobattoIIIAB(3, form=form), [1.0, 0.5], [0.0, 0.0], t1=2.0, dt=5e-3)
        assert sol.g_N().min() >= -1e-9
        rate = np.cos(sol.q[:, 0]) * sol.u[:, 0] + np.cos(sol.q[:, 1]) * sol.u[:, 1]
        hit = np.flatnonzero((sol.P_N[1:, 0] > 1e-3) & (rate[:-1] < -0.5))
        assert len(hit) > 0
        assert rate[hit + 1] == pytest.approx(-0.5 * rate[hit], abs=1e-8)


# -- Example 4.12: what the naive two-stage Radau IIA method makes of an impact
# ---------------------------------------


def two_steps(y):
    """The complementarity problems of two naive steps, enumerated: label and end state."""
    (first,) = naive_step(radau_iia(2), y, -1.0, 3.0)
    (second,) = naive_step(radau_iia(2), first.y, first.u, 3.0)
    return f"{first.label}.{second.label}", second


@pytest.mark.parametrize("label", ["1.1", "1.3", "1.4", "3.4", "3.3", "3.1"])
def test_the_naive_method_realises_six_impact_laws(label):
    low, high = naive_cases(3.0)[label]
    assert low < high
    heights = low + (high - low) * np.array([0.03, 0.3, 0.7, 0.97])
    for y in heights:
        found, end = two_steps(y)
        assert found == label
        sol = ss.simulate(Ball1D(), ss.RadauIIA(2, projected=False), [y], [-1.0], t1=6.0, dt=3.0)
        assert sol.q[-1, 0] == pytest.approx(end.y, abs=1e-9)
        assert sol.u[-1, 0] == pytest.approx(end.u, abs=1e-9)
        if label in ("1.1", "3.1"):  # inelastic over two steps
            assert sol.q[-1, 0] == pytest.approx(0.0, abs=1e-9)
            assert sol.u[-1, 0] == pytest.approx(0.0, abs=1e-9)
        if label in ("1.3", "3.3"):  # on the ground, but moving into it
            assert sol.q[-1, 0] == pytest.approx(0.0, abs=1e-9)
            assert sol.u[-1, 0] < 0
        if label in ("1.4", "3.4"):  # in the air again
            assert sol.q[-1, 0] > 0


def test_the_boundaries_of_the_six_cases_at_h_3():
    cases = naive_cases(3.0)
    assert cases["1.1"] == pytest.approx((0, 1.5))
    assert cases["1.3"] == pytest.approx((1.5, 2.25))
    assert cases["3.3"] == pytest.approx((27 / 8, 90 / 24))
    assert cases["3.1"] == pytest.approx((90 / 24, 7.5))
    edges = sorted(cases.values())
    for (_, high), (low, _) in itertools.pairwise(edges):
        assert high == pytest.approx(low)  # they tile the interval


def test_each_step_of_the_naive_method_has_exactly_one_solution():
    rng = np.random.default_rng(0)
    for s in (1, 2, 3):
        for y, u, h in zip(
            rng.uniform(0.01, 5, 40), rng.uniform(-3, 3, 40), rng.uniform(0.1, 3, 40), strict=True
        ):
            assert len(naive_step(radau_iia(s), y, u, h)) == 1


@pytest.mark.parametrize("e_N", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("s", [1, 2, 3])
def test_with_projection_every_start_obeys_the_impact_law(e_N, s):
    for y in np.linspace(0.1, 3.9, 12):
        sol = ss.simulate(Ball1D(e_N=e_N), ss.RadauIIA(s), [y], [-1.0], t1=3.0, dt=3.0)
        assert sol.P_N[1, 0] > 0
        assert sol.u[1, 0] == pytest.approx(e_N, abs=1e-9)
        assert sol.q[1, 0] >= -1e-9


def test_nonsense_is_refused():
    for make, word in (
        (lambda: ss.RadauIIA(0), "at least 1"),
        (lambda: ss.LobattoIIIC(1), "at least 2"),
        (lambda: ss.LobattoIIIAB(1), "at least 2"),
        (lambda: ss.TRTheta(1.5), "rho_inf"),
        (lambda: ss.LobattoIIIAB(3, form="hamilton"), "form"),
    ):
        with pytest.raises(ValueError, match=word):
            make()
    b = ss.benchmarks.load("tippedisk")
    with pytest.raises(ValueError, match="needs q_dot = u"):
        ss.simulate(b.system, ss.LobattoIIIAB(2, form="momentum"), b.q0, b.u0, t1=0.01, dt=1e-3)


def test_carried_multipliers_do_not_ring_after_an_impact():
    """TR methods start a step with the force of the last one;
    after the drop it must be the sliding force at once.
    """
    b = ss.benchmarks.load("mass-on-slope", 6)
    for method in (ss.TRX2(), ss.TRBDF2()):
        sol = ss.simulate(b.system, method, b.q0, b.u0, t1=0.8, dt=1e-2)
        k = int(np.argmax(sol.P_N[:, 0]))
        force, exact = sol.P_N[k + 1 : k + 30, 0] / 1e-2, sol.forces().la_N[k + 1 : k + 30, 0]
        assert np.abs(force - exact).max() < 0.3  # a ringing multiplier is off by hundreds


def test_convergence_refuses_what_it_cannot_measure():
    b = ss.benchmarks.load("pendulum")
    with pytest.raises(ValueError, match="at least three"):
        ss.convergence(b, [ss.RadauIIA(2)], [0.1, 0.05], t1=0.2)
    with pytest.raises(ValueError, match="does not divide"):
        ss.convergence(b, [ss.RadauIIA(2)], [0.1, 0.05, 0.03], t1=0.2)
    with pytest.raises(ValueError, match="needs t1, q0 and u0"):
        ss.convergence(b.system, [ss.RadauIIA(2)], [0.1, 0.05, 0.025])


def test_convergence_measures_prints_and_draws(tmp_path):
    from rich.console import Console

    b = ss.benchmarks.load("pendulum")
    out = ss.convergence(
        b, {"radau2": ss.RadauIIA(2), "rattle": ss.Rattle()}, [0.0512, 0.0256, 0.0128], t1=0.2048
    )
    assert out.order("radau2") == pytest.approx(3.2, abs=0.3)
    assert out.order("rattle", "u") == pytest.approx(2.1, abs=0.3)
    assert len(out.local_orders("rattle")) == 2
    out.plot(tmp_path / "orders.png", "pendulum")
    assert (tmp_path / "orders.png").stat().st_size > 10_000
    console = Console(record=True, width=120)
    console.print(out.table())
    assert "radau2" in console.export_text()
