"""Bad input is refused at the door by name and value; a failing run says where and keeps what it had."""

import dataclasses
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss

BALL = ss.benchmarks.load("bouncing-ball")


class Ball(type(BALL.system)):
    """The bouncing ball with one thing replaced."""

    broken: str = dataclasses.field(default="", metadata={"static": True})

    def M(self, t, q):
        M = super().M(t, q)
        return {
            "M shape": M[:2],
            "M negative": -M,
            "M asymmetric": M.at[0, 1].set(0.5),
            "M nan": M * jnp.nan,
        }.get(self.broken, M)

    def h(self, t, q, u):
        h = super().h(t, q, u)
        return {"h shape": h[:2], "h nan": h * jnp.nan, "h late nan": jnp.where(t > 0.25, jnp.nan, h)}.get(
            self.broken, h
        )

    def g(self, t, q):
        return jnp.array([q[0] - 0.1]) if self.broken == "g" else jnp.zeros(0)

    def gamma(self, t, q, u):
        return jnp.array([u[2] - 0.1]) if self.broken == "gamma" else jnp.zeros(0)

    def gamma_F(self, t, q, u):
        return jnp.zeros(2) if self.broken == "gamma_F shape" else super().gamma_F(t, q, u)

    @property
    def laws(self):
        contact = super().laws[0]
        if self.broken == "two laws":
            return (contact, contact)
        if self.broken == "order":
            return (ss.FrictionElement(1.0), contact)
        if self.broken == "axes":
            return (ss.Contact(friction=ss.Coulomb(0.3, dim=2, axes=(0.0, 1.0))),)
        if self.broken == "radius":
            return (contact, ss.Contact(friction=ss.CoulombContensou(0.3, radius=-1e-3)))
        if self.broken == "element":
            return (contact, ss.FrictionElement(-1.0))
        return ("glue",) if self.broken == "not a law" else (contact,)


def go(system=None, method=None, q0=(0.0, 1.0, 0.0), u0=(0.0, 0.0, 0.0), t1=0.5, dt=1e-2, **options):
    system = BALL.system if system is None else system
    return ss.simulate(system, ss.Rattle() if method is None else method, q0, u0, t1=t1, dt=dt, **options)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("M shape", r"M returns shape \(2, 3\), expected \(3, 3\)"),
        ("M negative", "M is not positive definite"),
        ("M asymmetric", "M is not symmetric"),
        ("M nan", "M is not finite"),
        ("h shape", r"h returns shape \(2,\), expected \(3,\)"),
        ("h nan", "h is not finite"),
        ("g", r"violates g\[0\] = 0: it is -1.000e-01"),
        ("gamma", r"violates gamma\[0\] = 0: it is -1.000e-01"),
        ("gamma_F shape", r"gamma_F returns shape \(2,\), expected \(1,\): .*contact 0 has 1"),
        ("two laws", r"g_N returns shape \(1,\), expected \(2,\): there are 2 ss.Contact"),
        ("order", "before any ss.FrictionElement"),
        ("axes", r"contact 0: Coulomb\(axes=\[0. 1.\]\): axes must be finite and > 0"),
        ("radius", r"contact 1: CoulombContensou\(radius=-0.001\): radius must be finite and > 0"),
        (
            "element",
            r"friction element laws\[1\]: FrictionElement\(force=-1.0\): force must be finite and >= 0",
        ),
    ],
)
def test_a_system_that_breaks_the_contract_is_refused(broken, words):
    with pytest.raises(ValueError, match=words):
        go(Ball(broken=broken))


def test_a_run_that_meets_a_nan_keeps_the_steps_before_and_names_the_step():
    with pytest.raises(ss.SimulationError, match=r"failed in step 25 \(t = 0.25 to 0.26\)") as error:
        go(Ball(broken="h late nan"))
    sol = error.value.solution
    assert sol.t.shape == (26,)
    assert np.isfinite(sol.q).all()
    same = go(t1=0.25)
    assert sol.q == pytest.approx(same.q, abs=1e-14)
    quiet = go(Ball(broken="h late nan"), throw=False)
    assert quiet.result == ss.RESULTS.not_finite
    assert "nan" in ss.RESULTS[quiet.result]
    assert quiet.t.shape == (26,)


def test_a_solver_that_gives_up_ends_the_run_and_says_what_to_change():
    method = ss.Rattle(solver=ss.SemismoothNewton(max_iterations=1))
    b = ss.benchmarks.load("slider-crank")
    with pytest.raises(
        ss.SimulationError, match=r"solve 1 of 2, largest residual in .*: the semismooth Newton"
    ) as error:
        ss.simulate(b.system, method, b.q0, b.u0, t1=0.1, dt=1e-4)
    assert 0 < error.value.solution.t.shape[0] < 1000


class Jaws(ss.System):
    """A mass between two walls that come together at t = 0.5: from then on there is no solution."""

    laws = (ss.Contact(), ss.Contact())

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return jnp.zeros(1)

    def g_N(self, t, q):
        return jnp.array([q[0] + 0.5 - t, 0.5 - t - q[0]])


@pytest.mark.parametrize(
    "method", [ss.Rattle(), ss.RadauIIA(2), ss.GeneralizedAlpha()], ids=lambda m: type(m).__name__
)
def test_where_there_is_no_solution_none_is_found(method):
    sol = ss.simulate(Jaws(), method, [0.0], [0.0], t1=1.0, dt=1e-2, throw=False)
    assert sol.result != ss.RESULTS.successful
    assert sol.t[-1] == pytest.approx(0.5, abs=2e-2)
    assert sol.g_N().min() > -1e-9


def test_a_wrong_start_inside_tracing_is_told_by_the_result_code():
    import jax

    bad = jax.jit(
        lambda y: (
            ss.simulate(BALL.system, ss.Rattle(), jnp.array([0.0, y, 0.0]), BALL.u0, t1=0.1, dt=1e-2).result
        )
    )
    assert bad(0.05) == ss.RESULTS.inconsistent_start
    assert bad(0.5) == ss.RESULTS.successful
    mu = jax.jit(
        lambda mu: (
            ss.simulate(type(BALL.system)(mu=mu), ss.Rattle(), BALL.q0, BALL.u0, t1=0.1, dt=1e-2).result
        )
    )
    assert mu(-0.1) == ss.RESULTS.inconsistent_start
    assert mu(0.1) == ss.RESULTS.successful


def test_too_few_max_steps_are_reported():
    with pytest.raises(ss.SimulationError, match="stopped after 10 steps"):
        go(max_steps=10)
    sol = go(max_steps=10, throw=False)
    assert sol.result == ss.RESULTS.max_steps_reached
    assert sol.t.shape == (11,)


def test_an_interrupted_run_returns_what_is_there(monkeypatch):
    from stickslip import progress

    class Impatient:
        def update(self, done):
            if done >= 2000:
                raise KeyboardInterrupt

    monkeypatch.setattr(progress, "Silent", Impatient)
    sol = go(t1=50.0)
    assert sol.result == ss.RESULTS.interrupted
    assert sol.t.shape == (2001,)


def test_an_interrupt_is_told_and_a_second_one_ends_the_script(monkeypatch, capsys):
    from stickslip import progress

    class Impatient:
        def update(self, done):
            if done >= 2000:
                raise KeyboardInterrupt

    monkeypatch.setattr(progress, "Silent", Impatient)
    monkeypatch.setattr(sys.modules["stickslip.chunks"], "_interrupted", -np.inf)
    assert go(t1=50.0).result == ss.RESULTS.interrupted
    assert "interrupted at t = 20, the solution is partial" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        go(t1=50.0)


def test_an_interrupt_before_the_first_step_is_passed_on(monkeypatch):
    from stickslip import loop

    def compiling(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["stickslip.chunks"], "_interrupted", -np.inf)
    monkeypatch.setattr(loop, "piece", compiling)
    with pytest.raises(KeyboardInterrupt):
        go()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"t1": 1e8}, "1e\\+10 steps of dt = 0.01: their rows need about .* GB"),
        ({"t1": 1.0, "dt": 1e-13}, "1e\\+13 steps"),
        ({"t1": 1.0, "dt": 1e-17}, "dt = 1e-17 vanishes beside"),
    ],
)
def test_what_cannot_fit_is_refused_before_it_starts(options, words):
    with pytest.raises(ValueError, match=words):
        go(**options)


class Quadratic(type(BALL.system)):
    def gamma_F(self, t, q, u):
        slip = super().gamma_F(t, q, u)
        return slip * jnp.abs(slip)


def test_friction_velocities_that_are_not_affine_are_refused_by_name():
    with pytest.raises(ValueError, match=r"gamma_F\[0\] \(contact 0, ground\) is not affine"):
        go(Quadratic(), u0=(0.0, 0.0, 1.0))


def test_a_coefficient_in_quotes_is_refused():
    with pytest.raises(TypeError, match="mu"):
        ss.Coulomb("0.2")


def test_a_field_that_hides_a_function_of_the_system_is_refused():
    class Hides(ss.System):
        h: float = 1.0

        def M(self, t, q):
            return jnp.eye(1)

    with pytest.raises(TypeError, match=r"Hides.*h"):
        ss.simulate(Hides(), ss.Rattle(), [0.0], [0.0], t1=0.1, dt=1e-2)


def test_the_progress_bar_moves(capsys, monkeypatch):
    from stickslip import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    sol = go(t1=30.0, progress=True)
    assert sol.result == ss.RESULTS.successful
    assert "3000/3000" in capsys.readouterr().err


class StiffSpring(ss.System):
    """Far too stiff for steps that evaluate forces where they begin."""

    k: float = 1e12

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -self.k * q


@pytest.mark.parametrize("name", ["rattle", "lobatto3", "moreau"])
def test_stiff_forces_are_told_from_a_step_that_is_too_large(name):
    with pytest.raises(
        ss.SimulationError, match=r"the forces are stiff, they change within 1.0e-06 s.*ss.RadauIIA\(2\)"
    ) as error:
        ss.simulate(StiffSpring(), name, [1.0], [0.0], t1=10.0, dt=1e-1)
    assert "smaller dt" not in str(error.value)
    assert abs(ss.simulate(StiffSpring(), "radau2", [1.0], [0.0], t1=10.0, dt=1e-1).q[-1, 0]) < 1e-12
