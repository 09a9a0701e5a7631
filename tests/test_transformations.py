"""The same run through jit, vmap and jacfwd, for every method."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY
from stickslip.methods.base import with_solver

BALL = ss.benchmarks.load("bouncing-ball", 2)


def traced(name):
    """The method with Newton alone, except RATTLE:
    inside tracing the default's other ways double what is compiled.
    """
    return REGISTRY[name]() if name == "rattle" else with_solver(REGISTRY[name](), ss.SemismoothNewton())


def end(method, mu=0.2, e_N=0.3, omega=50.0, y=1.0, t1=0.6):
    system = type(BALL.system)(e_N=e_N, mu=mu)
    q0, u0 = jnp.stack([0.0, y, 0.0]), jnp.stack([0.0, 0.0, omega])
    return ss.simulate(system, traced(method), q0, u0, t1=t1, dt=1e-2)


POINT = jnp.array([0.2, 0.3, 50.0, 1.0])  # mu, e_N, omega, y


def final(method):
    def f(p):
        s = end(method, *p)
        out = jnp.concatenate([s.q[-1], s.u[-1], s.P_N.sum(0)])
        return out, (out, (s.t, s.q, s.u, s.P_N, s.P_F, s.result._value))

    return f


def test_a_run_through_jit_vmap_and_jacfwd_is_the_single_run(kind):
    """In one program, since to compile is most of what this takes. Derivatives with respect to mu, e_N and
    omega beside differences; the height moves the time of the impact, see the README."""
    moved = [POINT + sign * 1e-6 * POINT[k] * jnp.eye(4)[k] for k in range(3) for sign in (1, -1)]
    points = jnp.array([POINT, [0.0, 0.3, 50.0, 1.0], [0.2, 0.0, 10.0, 0.8], [0.5, 1.0, -20.0, 0.5], *moved])
    slopes, (ends, batch) = jax.jit(jax.vmap(jax.jacfwd(final(kind), has_aux=True)))(points)
    assert batch[1].shape == (10, 61, 3)
    assert (np.asarray(batch[-1]) == 0).all()
    for i, p in enumerate(points[:4]):
        sol = end(kind, *(float(x) for x in p))
        for name, many in zip(("t", "q", "u", "P_N", "P_F"), batch, strict=False):
            assert np.asarray(many[i]) == pytest.approx(np.asarray(getattr(sol, name)), abs=1e-11)
    for k in range(3):
        difference = np.asarray((ends[4 + 2 * k] - ends[5 + 2 * k]) / (2e-6 * POINT[k]))
        assert np.abs(difference).max() > 1e-3  # it matters
        assert np.asarray(slopes[0, :, k]) == pytest.approx(difference, rel=1e-5, abs=1e-6)


def value_and_jacobian(f):
    """Both in one program: a derivative has the value in it, and half of a test's time is to compile."""
    both = jax.jit(jax.jacfwd(lambda p: (f(p),) * 2, has_aux=True))
    return lambda p: both(p)[::-1]


def test_jacfwd_through_the_slider_crank_agrees_with_differences():
    b = ss.benchmarks.load("slider-crank")

    def final(mu):
        sol = ss.simulate(type(b.system)(mu=mu), ss.Rattle(), b.q0, b.u0, t1=4e-3, dt=1e-4)
        return jnp.append(sol.u[-1], sol.P_N.sum())

    f, eps = value_and_jacobian(final), 1e-6
    (*_, impulse), slope = f(0.01)
    assert impulse > 1e-3  # contacts take part
    u_dot, difference = slope[:-1], (f(0.01 + eps)[0] - f(0.01 - eps)[0])[:-1] / (2 * eps)
    assert np.asarray(u_dot) == pytest.approx(
        np.asarray(difference), rel=1e-4, abs=1e-4 * float(jnp.abs(difference).max())
    )


def test_the_last_step_is_shortened_to_end_at_t1(kind):
    sol = ss.simulate(BALL.system, REGISTRY[kind](), BALL.q0, BALL.u0, t1=0.255, dt=1e-2)
    assert sol.t.shape == (27,)
    assert sol.t[-1] == 0.255
    assert sol.t[-2] == pytest.approx(0.25)
    assert sol.u[-1, 1] == pytest.approx(-9.81 * 0.255, abs=1e-12)
    exact = ss.simulate(BALL.system, REGISTRY[kind](), BALL.q0, BALL.u0, t1=0.3, dt=0.1)
    assert exact.t == pytest.approx([0.0, 0.1, 0.2, 0.3], abs=0)


def test_a_crumb_of_a_step_is_no_step(kind):
    """Shorter than a thousandth: joined with the one before, at rest too,
    where a contact must not be lost.
    """
    q0, u0 = [0.0, BALL.system.R, 0.0], [0.0, 0.0, 0.0]
    for rest in (1e-8, 1e-6, 9e-6):
        sol = ss.simulate(BALL.system, REGISTRY[kind](), q0, u0, t1=0.2 + rest, dt=1e-2)
        assert len(sol.t) == 21
        assert sol.t[-1] == 0.2 + rest
        assert sol.P_N[1:, 0] == pytest.approx(9.81 * np.diff(sol.t), rel=1e-9)
        assert sol.forces().la_N[:, 0] == pytest.approx(9.81, rel=1e-6)
    assert len(ss.simulate(BALL.system, REGISTRY[kind](), q0, u0, t1=0.2 + 2e-5, dt=1e-2).t) == 22


def test_every_derived_quantity_of_a_batch_is_that_of_its_runs():
    newton = ss.Rattle(solver=ss.SemismoothNewton())

    @jax.vmap
    @jax.vmap
    def go(omega):
        return ss.simulate(BALL.system, newton, BALL.q0, BALL.u0.at[2].set(omega), t1=0.5, dt=1e-2)

    omegas = jnp.array([[5.0, 10.0], [20.0, 50.0], [0.0, 1.0]])
    batch = go(omegas)
    assert batch.is_batch
    assert batch.g_N().shape == (3, 2, 51, 1)
    assert batch.energy().shape == batch.dt.shape == (3, 2, 51)
    assert batch.forces().la_N.shape == (3, 2, 51, 1)
    one = ss.simulate(BALL.system, ss.Rattle(), BALL.q0, BALL.u0.at[2].set(20.0), t1=0.5, dt=1e-2)
    for mine in (batch[1, 0], batch[1][0]):
        assert not mine.is_batch
        assert mine.q == pytest.approx(one.q, abs=1e-9)
        assert mine.g_N() == pytest.approx(one.g_N(), abs=1e-9)
    assert batch.energy()[1, 0] == pytest.approx(one.energy(), abs=1e-9)
    assert np.asarray(batch.forces().la_N)[1, 0] == pytest.approx(one.forces().la_N, abs=1e-6)


def test_time_may_start_anywhere(kind):
    a = ss.simulate(BALL.system, REGISTRY[kind](), BALL.q0, BALL.u0, t0=-3.0, t1=-2.0, dt=1e-2)
    b = ss.simulate(BALL.system, REGISTRY[kind](), BALL.q0, BALL.u0, t1=1.0, dt=1e-2)
    assert a.q == pytest.approx(b.q, abs=1e-11)
    assert a.t[0] == -3.0


def test_a_new_value_of_a_parameter_needs_no_new_compilation(caplog):
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        end("rattle", mu=0.11)
        caplog.clear()
        end("rattle", mu=0.12)
        assert not [r for r in caplog.records if "ompiling" in r.getMessage()]
        # control: another shape does
        end("rattle", mu=jnp.full((1,), 0.12)[0], e_N=np.float32(0.3))
        assert [r for r in caplog.records if "ompiling" in r.getMessage()]


class DampedPendulum(ss.System):
    """A constraint that turns, forces that depend on q and u: nothing in it is linear."""

    gravity: float = 9.81

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([0.0, -self.gravity]) - 0.3 * u * (u @ u)

    def g(self, t, q):
        return jnp.array([q @ q - 1.0])


@pytest.mark.parametrize("name", ["rattle", "lobatto2", "lobatto3", "radau2", "trbdf2"])
def test_jacfwd_is_exact_where_newton_is_not(name):
    """Stages are solved by an inexact Newton method; their derivative must not be inexact."""

    def final(gravity):
        sol = ss.simulate(DampedPendulum(gravity), traced(name), [1.0, 0.0], [0.0, 0.0], t1=1.0, dt=0.1)
        return sol.u[-1]

    f, eps = value_and_jacobian(final), 1e-4
    derivative = np.asarray(f(9.81)[1])
    difference = np.asarray(f(9.81 + eps)[0] - f(9.81 - eps)[0]) / (2 * eps)
    assert derivative == pytest.approx(difference, rel=1e-6)


def test_a_batch_without_jit_finds_its_program_again(caplog):
    """Also by another function: what is compiled is the run, not what calls it."""
    b = ss.benchmarks.load("mass-on-slope")

    def sweep(mus):
        return jax.vmap(
            lambda mu: ss.simulate(type(b.system)(mu=mu), "moreau", b.q0, b.u0, t1=0.1, dt=0.02).q[-1]
        )(mus)

    first = sweep(jnp.array([0.2, 0.3]))
    jax.config.update("jax_log_compiles", True)
    try:
        with caplog.at_level("WARNING"):
            second = sweep(jnp.array([0.4, 0.5]))
    finally:
        jax.config.update("jax_log_compiles", False)
    assert "Finished XLA compilation" not in caplog.text
    assert np.all(second[:, 0] < first[:, 0]), "more friction, a shorter way"
