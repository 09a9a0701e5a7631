"""Extrapolation and step size adjustment (S4): orders, switching points,
and what happens when a law switches.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import stickslip as ss
from conftest import slope
from stickslip.benchmarks.impact_oscillator import exact
from stickslip.methods import REGISTRY


def run(name, method=None, case=1, t1=None, **steps):
    b = ss.benchmarks.load(name, case)
    return ss.simulate(b.system, method or b.method, b.q0, b.u0, t1=t1 or b.t1, **(steps or b.steps))


def bookkeeping_holds(sol, dt_min, dt_max):
    """Rows follow each other in time, steps keep their limits, and laws switch in steps of dt_min only."""
    switched = np.unique([p.step for p in sol.switching_points()])
    dt = sol.dt[1:]
    within = np.all(dt[:-1] > 0.99 * dt_min) and np.all(dt < 1.01 * dt_max)
    return bool(np.all(dt > 0) and within and np.all(sol.dt[switched] < 1.01 * dt_min) and len(switched))


# -- the tableau
# ------------------------------------------------------------------------------------------------------


def lines(method, values):
    T, diagonal = np.zeros((method.order, 1)), []
    for i, value in enumerate(values):
        T = method._next_line(jnp.asarray(i), jnp.asarray(T), jnp.array([value]))
        diagonal.append(float(T[i, 0]))
        assert float(T[-1, 0]) == diagonal[-1]
    return diagonal


def test_the_tableau_is_that_of_the_paper():
    """(46), (47): an enduring contact with e = 0.7 in 1, 2, 3, 4 substeps."""
    diagonal = lines(ss.Extrapolation(4, substeps="all"), [(-0.7) ** n for n in (1, 2, 3, 4)])
    assert diagonal == pytest.approx([-0.7, 1.68, -3.8535, 9.2682], abs=5e-5)


@pytest.mark.parametrize("e", [0.1, 0.5, 0.9, 1.0])
def test_odd_substeps_contract_where_all_of_them_do_not(e):
    """Fig. 5"""
    odd = lines(ss.Extrapolation(4), [(-e) ** n for n in (1, 3, 5, 7)])
    every = lines(ss.Extrapolation(4, substeps="all"), [(-e) ** n for n in (1, 2, 3, 4)])
    assert max(np.abs(odd)) <= 1.0
    assert max(np.abs(every)) > 1.0 or e < 0.5


def test_polynomials_in_the_step_are_extrapolated_exactly():
    method = ss.Extrapolation(5)
    assert lines(method, [3.0 + sum((1.0 / n) ** k for k in (1, 2, 3, 4)) for n in method.numbers])[
        -1
    ] == pytest.approx(3.0, abs=1e-12)


class Damped(ss.System):
    """x_ddot = -4 x - x_dot: forces on velocities, so that no order comes as a present."""

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -4.0 * q - u


def damped(t):
    w = np.sqrt(3.75)
    return np.exp(-t / 2) * (np.cos(w * t) + 0.5 / w * np.sin(w * t))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_extrapolation_has_its_order_with_a_fixed_step(order):
    dts = 1.0 / np.array([8, 12, 16, 24])
    method = ss.Extrapolation(order)
    errors = [
        abs(ss.simulate(Damped(), method, [1.0], [0.0], t1=1.0, dt=dt).q[-1, 0] - damped(1.0)) for dt in dts
    ]
    assert slope(dts, errors) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("name", [name for name, make in REGISTRY.items() if make().order == 1])
def test_every_method_of_order_one_can_be_extrapolated(name):
    """On contact that persists; Radau IIA has modes of friction there, and says where they failed."""
    b = ss.benchmarks.load("mass-on-slope", 5)
    method = ss.Extrapolation(3, base=REGISTRY[name](), fixed_order=True)
    sols = [ss.simulate(b.system, method, b.q0, b.u0, t1=0.2, dt=dt) for dt in (0.02, 0.01, 0.0025)]
    errors = [np.abs(sol.q[-1] - sols[-1].q[-1]).max() for sol in sols[:2]]
    assert np.log2(errors[0] / errors[1]) > 2.5
    assert not np.any(sols[0].stats.mode_failed[1:])  # slip begins in the first step


def test_more_than_order_one_underneath_is_refused():
    with pytest.raises(ValueError, match=r"base=Rattle.*order 1.*MoreauMidpoint"):
        ss.Extrapolation(3, base=ss.Rattle())


@pytest.mark.parametrize(
    "options",
    [{"order": 0}, {"order": 2.5}, {"substeps": "even"}, {"enduring": "soft"}, {"order": 99}],
    ids=lambda o: next(iter(o)),
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=str(next(iter(options.values())))):
        ss.Extrapolation(**options)


# -- S4 10.1: falling mass
# --------------------------------------------------------------------------------------------


def late_steps(**options):
    sol = run("falling-mass", ss.Extrapolation(4, **options), stepsize=ss.SwitchingPoints(1e-5, 0.05))
    return sol.dt[(sol.t > 0.9) & (sol.t < 1.4)]


def test_after_the_accumulation_point_steps_grow_with_odd_substeps_only():
    """Figs. 9, 10; and the other cure, a restitution that only impacts feel."""
    assert late_steps().max() == pytest.approx(0.05, rel=0.01)
    assert late_steps(substeps="all").max() < 1e-3
    assert late_steps(substeps="all", enduring="modified").max() == pytest.approx(0.05, rel=0.01)


def test_free_flight_is_exact_with_order_two():
    sol = run("falling-mass")
    b = ss.benchmarks.load("falling-mass")
    flight = sol.t < b.reference["first_impact"] - 1e-4
    assert sol.q[flight, 0] == pytest.approx(0.07 - 9.81 / 2 * sol.t[flight] ** 2, abs=1e-15)
    assert sol.order[flight].max() == 2
    assert bookkeeping_holds(sol, 1e-5, 0.05)
    first = sol.switching_points()[0]
    assert first.t == pytest.approx(b.reference["first_impact"], abs=2e-5)
    assert (first.law, first.before, first.after) == ("contact 0", "open", "closed")


def test_the_bookkeeping_check_fails_where_it_must():
    sol = run("falling-mass")
    assert not bookkeeping_holds(sol, 1e-6, 0.05)  # negative controls: switches in steps of ten dt_min
    assert not bookkeeping_holds(sol, 1e-5, 0.01)  # and steps beyond dt_max


# -- S4 10.2: sliding mass
# --------------------------------------------------------------------------------------------


def test_sliding_mass_turns_stops_being_pushed_and_sticks_at_the_right_times():
    b = ss.benchmarks.load("sliding-mass")
    r = b.reference
    sol = ss.simulate(
        b.system, ss.Extrapolation(6), b.q0, b.u0, t1=b.t1, stepsize=ss.SwitchingPoints(1e-7, 0.05)
    )
    v_x = CubicHermiteSpline(sol.t, sol.q[:, 0], sol.u[:, 0]).derivative()
    assert v_x.roots(extrapolate=False)[0] == pytest.approx(r["turning_time"], abs=1e-5)
    (i,) = np.flatnonzero(sol.t == 3.0)  # a step ends where the force does
    assert np.concatenate([sol.q[i], sol.u[i]]) == pytest.approx(
        np.array(r["state_when_switched_off"]), abs=1e-6
    )
    (stick,) = sol.switching_points()
    assert (stick.law, stick.before, stick.after) == ("friction 0", "slip", "stick")
    assert stick.t == pytest.approx(r["stick_time"], abs=1e-6)
    assert np.all(np.abs(sol.u[sol.t > stick.t + 1e-6]) < 1e-14)  # stick is stick
    assert sol.q[-1] == pytest.approx(np.array(r["rest_position"]), abs=1e-6)
    assert sol.stats.attempts < 1000


def test_a_jump_of_force_that_nobody_names_is_passed_over():
    """Negative control for `switching_times`: substeps cannot see every jump;
    the stick time is wrong by milliseconds.
    """
    b = ss.benchmarks.load("sliding-mass")

    class Unnamed(type(b.system)):
        switching_times = ()

    sol = ss.simulate(
        Unnamed(), ss.Extrapolation(6), b.q0, b.u0, t1=b.t1, stepsize=ss.SwitchingPoints(1e-7, 0.05)
    )
    assert abs(sol.switching_points()[0].t - b.reference["stick_time"]) > 1e-3


# -- S4 10.3: impact oscillator
# ---------------------------------------------------------------------------------------


def oscillator_errors(order, dts):
    method = ss.Extrapolation(order, fixed_order=True)
    sols = [run("impact-oscillator", method, stepsize=ss.SwitchingPoints(dt**order, dt)) for dt in dts]
    return [np.abs(s.q[:, 0] - exact(s.t)).max() for s in sols]


def test_exact_solution_of_the_oscillator_has_the_reference_impacts():
    times = np.array(ss.benchmarks.load("impact-oscillator").reference["impact_times"])
    assert exact(times) == pytest.approx(0.0, abs=1e-8)
    assert np.all(exact(np.linspace(0.0, 2.1, 10_000)) <= 1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_error_falls_with_the_order_in_dt_max(order):
    """Fig. 12(e), dt_min = dt_max^p; asked: within 0.7."""
    dts = np.geomspace(1e-4, 1e-3, 10) if order == 1 else np.geomspace(1e-3, 1e-2, 10)
    assert slope(dts, oscillator_errors(order, dts)) == pytest.approx(order, abs=0.7)


def test_without_small_steps_at_impacts_the_order_is_lost():
    """Negative control: the same extrapolation with steps of one size is first order."""
    dts = np.geomspace(1e-3, 1e-2, 10)
    sols = [run("impact-oscillator", ss.Extrapolation(4), dt=dt) for dt in dts]
    assert slope(dts, [np.abs(s.q[:, 0] - exact(s.t)).max() for s in sols]) < 1.7


def test_speeds_and_impulses_of_the_oscillator():
    b = ss.benchmarks.load("impact-oscillator")
    sol = run("impact-oscillator")
    closed = [p for p in sol.switching_points() if p.after == "closed"]
    assert [p.t for p in closed] == pytest.approx(b.reference["impact_times"], abs=2e-7)
    assert [sol.P_N[p.step, 0] for p in closed] == pytest.approx(b.reference["impulses"], rel=1e-5)
    assert [-sol.u[p.step, 0] / 0.6 for p in closed] == pytest.approx(b.reference["speeds"], rel=1e-5)


# -- S4 10.4: woodpecker
# ----------------------------------------------------------------------------------------------


def test_woodpecker_switches_as_table_vii_at_the_reference_times():
    b = ss.benchmarks.load("woodpecker")
    sol = run("woodpecker")
    points = sol.switching_points()
    assert tuple((p.law, p.after) for p in points[:12]) == b.reference["incidents"]
    assert [p.t for p in points[:12]] == pytest.approx(b.reference["times"], abs=5e-6)
    assert (points[12].law, points[12].after) == ("friction 1", "stick")
    assert points[12].t == pytest.approx(b.reference["next_stick"], abs=5e-6)
    assert len(sol.t) < 4000
    assert bookkeeping_holds(sol, 1e-7, 5e-3)
    assert sol.order.max() == 6
    y, phi_S, rate = b.reference["samples"][0.2]
    assert (sol.q[-1, 0], sol.q[-1, 2], sol.u[-1, 2]) == pytest.approx((y, phi_S, rate), abs=1e-3)


def test_woodpecker_has_its_period_on_the_limit_cycle():
    b = ss.benchmarks.load("woodpecker", 2)
    sol = run("woodpecker", case=2)
    sticks = [p for p in sol.switching_points() if (p.law, p.after) == ("friction 1", "stick")]
    assert sticks[0].t == pytest.approx(b.reference["period"], abs=5e-6)
    i = sticks[0].step
    assert sol.q[i, 0] == pytest.approx(-b.reference["descent"], abs=1e-6)
    assert sol.q[i, 2] == pytest.approx(float(b.q0[2]), abs=1e-4)


@pytest.fixture(scope="module")
def phi_S():
    """phi_S of a run 1e-8 accurate, between its rows too."""
    sol = run("woodpecker", ss.Extrapolation(6, fixed_order=True), stepsize=ss.SwitchingPoints(1e-10, 5e-5))
    b = ss.benchmarks.load("woodpecker")
    assert sol.q[-1, 2] == pytest.approx(b.reference["samples"][0.2][1], abs=1e-7)
    return CubicHermiteSpline(sol.t, sol.q[:, 2], sol.u[:, 2])


def error_of(sol, phi_S):
    return np.abs(sol.q[:, 2] - phi_S(sol.t)).max()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_woodpecker_converges_with_the_order_in_dt_max(order, phi_S):
    """Fig. 14. Forces of this model depend on positions only,
    where the base method has even powers of dt: 2, 2, 4, 4.
    """
    dts = np.geomspace(1e-5, 1e-4, 10) if order == 1 else np.geomspace(2e-4, 2e-3, 10)
    method = ss.Extrapolation(order, fixed_order=True)
    errors = [
        error_of(run("woodpecker", method, stepsize=ss.SwitchingPoints(1e-10, dt)), phi_S) for dt in dts
    ]
    assert slope(dts, errors) > order - 0.7


@pytest.mark.long_runs
def test_a_hundred_times_less_work_than_moreau_for_the_same_error(phi_S):
    adjusted = run("woodpecker", stepsize=ss.SwitchingPoints(1e-8, 5e-3, 1e-8, 1e-8))
    assert error_of(adjusted, phi_S) < 1e-6
    moreau = run("woodpecker", ss.MoreauMidpoint(), dt=2e-7)
    assert error_of(moreau, phi_S) > 1e-5  # not even with this work
    work = [
        int(s.stats.newton_iterations.sum() + s.stats.fixed_point_iterations.sum())
        for s in (adjusted, moreau)
    ]
    assert work[1] > 100 * work[0]


# -- any method, any transformation, any failure
# ----------------------------------------------------------------------


def test_every_kind_of_method_finds_the_impacts(kind):
    """Impacts of the bouncing ball within a few dt_min, with steps a thousand times larger between them."""
    b = ss.benchmarks.load("bouncing-ball", 1)
    sol = ss.simulate(b.system, REGISTRY[kind](), b.q0, b.u0, t1=1.2, stepsize=ss.SwitchingPoints(1e-6, 1e-3))
    assert bookkeeping_holds(sol, 1e-6, 1e-3)
    closed = [p.t for p in sol.switching_points() if p.law == "contact 0" and p.after == "closed"]
    t_1 = np.sqrt(2 * 0.9 / 9.81)
    # Positions of the shifted scheme belong to half a step before: a step that changes spoils them by its own
    # size.
    assert closed[:3] == pytest.approx(
        [t_1, 2 * t_1, 2.5 * t_1], abs=1e-2 if kind == "shifted-moreau" else 2e-5
    )
    assert sol.dt.max() == pytest.approx(1e-3)


def test_vmap_and_jit_give_the_rows_of_single_runs():
    b = ss.benchmarks.load("impact-oscillator")

    def end(e_N):
        system = type(b.system)(e_N=e_N)
        return ss.simulate(
            system, b.method, b.q0, b.u0, t1=0.5, stepsize=ss.SwitchingPoints(1e-6, 1e-2), max_steps=400
        )

    es = jnp.array([0.2, 0.6, 0.9])
    batch = jax.jit(jax.vmap(end))(es)
    assert bool(jnp.all(batch.result == ss.RESULTS.successful))
    for i, e_N in enumerate(es):
        single = ss.simulate(
            type(b.system)(e_N=float(e_N)),
            b.method,
            b.q0,
            b.u0,
            t1=0.5,
            stepsize=ss.SwitchingPoints(1e-6, 1e-2),
        )
        n = int(batch.stats.steps[i])
        assert n == len(single.t) - 1
        assert np.asarray(batch.q[i, : n + 1]) == pytest.approx(single.q, abs=1e-9)
        assert np.all(np.asarray(batch.t[i, n:]) == 0.5)  # rows after the end repeat it
        assert np.all(np.asarray(batch.q[i, n:]) == np.asarray(batch.q[i, n]))
        assert np.all(np.asarray(batch.P_N[i, n + 1 :]) == 0.0)


def test_derivative_of_the_end_is_that_of_the_closed_form():
    """Before the first impact x = -a + ..., so dx/dc is known; extrapolated,
    so it is known to many digits.
    """
    b = ss.benchmarks.load("impact-oscillator")

    def end(c):
        system = type(b.system)(c=c)
        return ss.simulate(
            system, b.method, b.q0, b.u0, t1=0.1, stepsize=ss.SwitchingPoints(1e-6, 1e-2), max_steps=200
        ).q[-1, 0]

    def closed_form(c):
        w = jnp.sqrt(c / 0.1)
        return -0.15 - 0.35 * jnp.cos(w * 0.1) + 0.2 / w * jnp.sin(w * 0.1)

    assert jax.jacfwd(end)(20.0) == pytest.approx(float(jax.grad(closed_form)(20.0)), rel=1e-6)


def test_too_few_rows_and_no_number_of_rows_are_told():
    b = ss.benchmarks.load("impact-oscillator")

    def end(q0, n):
        return ss.simulate(b.system, b.method, q0, b.u0, t1=0.5, stepsize=b.stepsize, max_steps=n)

    with pytest.raises(ValueError, match="max_steps is missing"):
        jax.jit(lambda q: end(q, None).q)(b.q0)
    assert jax.jit(lambda q: end(q, 10).result)(b.q0) == ss.RESULTS.max_steps_reached
    with pytest.raises(ss.SimulationError, match="after 10 steps") as error:
        end(b.q0, 10)
    assert error.value.solution.t.shape == (11,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt_min": 0.0, "dt_max": 1e-2}, "dt_min"),
        ({"dt_min": 1e-2, "dt_max": 1e-3}, "larger than dt_max"),
        ({"dt_min": 1e-6, "dt_max": float("nan")}, "dt_max"),
        ({"dt_min": 1e-6, "dt_max": 1e-2, "rtol": -1.0}, "rtol"),
        ({"dt_min": "small", "dt_max": 1e-2}, "dt_min"),
    ],
)
def test_step_sizes_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ss.SwitchingPoints(**options)


def test_either_dt_or_stepsize():
    b = ss.benchmarks.load("falling-mass")
    with pytest.raises(ValueError, match="neither dt nor stepsize"):
        ss.simulate(b.system, b.method, b.q0, b.u0, t1=1.0)
    with pytest.raises(ValueError, match="both given"):
        ss.simulate(b.system, b.method, b.q0, b.u0, t1=1.0, dt=1e-2, stepsize=b.stepsize)
    with pytest.raises(TypeError, match="SwitchingPoints"):
        ss.simulate(b.system, b.method, b.q0, b.u0, t1=1.0, stepsize=1e-2)
    with pytest.raises(ValueError, match="modified"):
        ss.simulate(b.system, ss.Extrapolation(enduring="modified"), b.q0, b.u0, t1=1.0, dt=1e-2)
    with pytest.raises(AttributeError, match="SwitchingPoints"):
        run("falling-mass", ss.Rattle(), dt=1e-2).switching_points()


class Block(ss.System):
    """A block with four contacts in a row, in the plane: more than it needs,
    so that Newton's method fails at times.
    """

    def M(self, t, q):
        return jnp.diag(jnp.array([1.0, 1.0, 0.1]))

    def h(self, t, q, u):
        return jnp.array([0.0, -9.81, 0.0])

    def g_N(self, t, q):
        return q[1] + jnp.linspace(-0.5, 0.5, 4) * jnp.sin(q[2]) - 0.2 * jnp.cos(q[2])

    def gamma_F(self, t, q, u):
        return u[0] - u[2] * (jnp.linspace(-0.5, 0.5, 4) * jnp.sin(q[2]) - 0.2 * jnp.cos(q[2]))

    @property
    def laws(self):
        return (ss.Contact(e_N=0.3, friction=ss.Coulomb(0.5)),) * 4


def test_time_goes_forward_where_another_solver_has_to_take_over():
    method = ss.Rattle(solver=ss.Automatic(newton=ss.SemismoothNewton(max_iterations=4)))
    sol = ss.simulate(
        Block(), method, [0.0, 0.4, 0.3], [1.0, 0.0, 0.0], t1=0.5, stepsize=ss.SwitchingPoints(1e-4, 1e-2)
    )
    assert sol.stats.fixed_point_iterations.sum() + sol.stats.newton_iterations.max() > 20  # it had to
    assert np.all(np.diff(sol.t) > 0.0)
    assert sol.t[-1] == 0.5


@pytest.mark.parametrize("rest", [1.0, 1.2, 1.6, 2.3])
def test_a_last_step_between_the_sizes_is_made(rest):
    """What is left to t1 is a little more than a step of dt_min, too little for extrapolation."""
    b = ss.benchmarks.load("falling-mass")
    t1 = 1e-3 + rest * 1e-3
    sol = ss.simulate(
        b.system, b.method, b.q0, b.u0, t1=t1, stepsize=ss.SwitchingPoints(1e-3, 1e-3), max_steps=100
    )
    assert sol.t[-1] == t1
    assert sol.stats.attempts < 20


def test_one_row_too_few_is_told_inside_jit_as_outside():
    b = ss.benchmarks.load("falling-mass")

    def run(q0, n):
        return ss.simulate(
            b.system, b.method, q0, b.u0, t1=0.1, stepsize=b.stepsize, max_steps=n, throw=False
        )

    n = len(run(b.q0, 10_000).t) - 1
    assert jax.jit(lambda q: run(q, n).result)(b.q0) == ss.RESULTS.successful
    short = jax.jit(lambda q: (run(q, n - 1).result, run(q, n - 1).stats.steps))(b.q0)
    assert short[0] == ss.RESULTS.max_steps_reached
    assert run(b.q0, n - 1).result == ss.RESULTS.max_steps_reached
    assert short[1] == n - 1


class Broken(ss.System):
    """Forces that end in nan at t = 0.3."""

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return jnp.where(t < 0.3, -q, jnp.nan)


def test_a_nan_ends_the_run_at_the_smallest_step_with_what_was_computed():
    with pytest.raises(ss.SimulationError, match=r"t = 0\.3|t = 0\.29") as error:
        ss.simulate(
            Broken(), ss.Extrapolation(4), [1.0], [0.0], t1=1.0, stepsize=ss.SwitchingPoints(1e-6, 0.05)
        )
    sol = error.value.solution
    assert sol.result == ss.RESULTS.not_finite
    assert sol.t[-1] == pytest.approx(0.3, abs=1e-5)
    assert sol.q[-1, 0] == pytest.approx(np.cos(0.3), abs=1e-6)


# -- S4 Fig. 2: disk mixer
# --------------------------------------------------------------------------------------------


@pytest.mark.long_runs
@pytest.mark.slow
def test_disk_mixer_stays_bounded_and_overlaps_less_with_smaller_steps():
    b = ss.benchmarks.load("disk-mixer")
    assert len(b.system.laws) == 465
    overlaps = []
    for dt in (4e-3, 2e-3, 1e-3):
        sol = ss.simulate(b.system, b.method, b.q0, b.u0, t1=0.24, dt=dt)
        assert np.all(np.isfinite(sol.q))
        assert np.all(np.isfinite(sol.u))
        E = sol.energy()
        weight, speed = 3.0 * 9.81, 2.0 * 0.3
        # up to the top of the drum, twice as fast as the drum
        assert E.max() < max(E[0], 0.0) + weight * 0.3 + 0.5 * 3.0 * (2 * speed) ** 2
        assert sol.stats.residual.max() < 1e-5
        overlaps.append(-sol.g_N().min())
        cone = np.abs(sol.P_F) - 0.3 * sol.P_N
        assert cone.max() < 1e-12
    assert overlaps[0] > 1.3 * overlaps[1] > 1.3**2 * overlaps[2]
