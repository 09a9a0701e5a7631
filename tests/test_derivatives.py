"""Derivatives of a run in both directions: `jax.grad` beside `jax.jacfwd`, for every kind of method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY
from stickslip.methods.base import with_solver

PUCK = ss.benchmarks.load("puck")
BALL = ss.benchmarks.load("bouncing-ball", 2)


def functional(system, method, nq, **run):
    """Positions, velocities and percussions of all rows in one number."""

    def f(z):
        sol = ss.simulate(system, method, z[:nq], z[nq:], **run)
        return (
            jnp.sum(jnp.sin(sol.q)) + jnp.sum(jnp.cos(sol.u[-1])) + jnp.sum(sol.P_N**2) + jnp.sum(sol.P_F[-1])
        )

    return f


def difference(f, z):
    """Of both derivatives along a direction that no symmetry knows,
    relative to that of the gradient, and that.
    """
    v = jnp.asarray(np.random.default_rng(0).normal(size=z.shape))
    (_, forward), reverse = jax.jit(lambda z: jax.jvp(f, (z,), (v,)))(z), jax.jit(jax.grad(f))(z)
    size = float(jnp.linalg.norm(reverse))
    return float(jnp.abs(forward - reverse @ v)) / size, size


def newton(key):
    """The method with the solver a run starts with: what is differentiated is the same,
    and compiles in half the time.
    """
    method = REGISTRY[key]()
    return with_solver(method, method.solver.first_try())


def test_the_gradient_is_the_transposed_jacobian(kind):
    """In turning slip, with modes that are inherited from step to step."""
    f = functional(PUCK.system, newton(kind), len(PUCK.q0), t1=12 * PUCK.dt, dt=PUCK.dt)
    apart, size = difference(f, jnp.concatenate([PUCK.q0, PUCK.u0]))
    assert size > 1e-3  # there is something to compare
    assert apart < 1e-10


@pytest.mark.parametrize("key", ["moreau", "radau2"])
def test_it_is_so_through_an_impact_with_the_whole_solver(key):
    f = functional(BALL.system, REGISTRY[key](), len(BALL.q0), t1=60 * BALL.dt, dt=BALL.dt)
    apart, size = difference(f, jnp.concatenate([BALL.q0.at[1].set(0.1), BALL.u0]))
    assert size > 1e-3  # there is something to compare
    assert apart < 1e-10


def test_the_gradient_is_that_of_differences():
    f = functional(PUCK.system, newton("rattle"), len(PUCK.q0), t1=0.1, dt=1e-2)
    z = jnp.concatenate([PUCK.q0, PUCK.u0])
    e, run = 1e-6 * jnp.eye(len(z)), jax.jit(f)
    along = [0, 1, 3, 4]  # in the plane: the start must not penetrate
    central = np.array([(run(z + d) - run(z - d)) / 2e-6 for d in e[jnp.array(along)]])
    assert np.asarray(jax.grad(f)(z))[along] == pytest.approx(central, abs=1e-7)


def test_the_gradient_of_a_batch_has_those_of_its_runs():
    """Also where branches are taken by some of them only: one that is not taken has nothing to say."""

    def end(omega):
        sol = ss.simulate(BALL.system, newton("rattle"), BALL.q0, BALL.u0.at[2].set(omega), t1=0.5, dt=2e-2)
        return sol.u[-1, 0] + sol.u[-1, 2] ** 2

    def both(omegas):
        value, pull = jax.vjp(jax.vmap(end), omegas)
        return value, pull(jnp.ones_like(value))[0]

    omegas = jnp.array([0.0, 1.0, 10.0, 50.0])
    _, gradient = jax.jit(both)(omegas)
    slopes = jax.jit(lambda x: jax.lax.map(jax.jacfwd(end), x))(omegas)
    assert np.ptp(np.asarray(slopes)) > 1e-3  # runs differ: some slide in the impact, some stick
    assert np.asarray(gradient) == pytest.approx(np.asarray(slopes), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("method", [ss.Extrapolation(2), ss.Rattle()], ids=["extrapolation", "rattle"])
def test_adjusted_steps_have_gradients_too(method):
    b = ss.benchmarks.load("falling-mass")
    control = ss.SwitchingPoints(dt_min=1e-3, dt_max=2e-2, rtol=1e-6, atol=1e-8)
    method = with_solver(method, method.solver.first_try())
    f = functional(b.system, method, 1, t1=0.2, stepsize=control, max_steps=60)
    apart, size = difference(f, jnp.concatenate([b.q0, b.u0]))
    assert size > 1e-3
    assert apart < 1e-10
