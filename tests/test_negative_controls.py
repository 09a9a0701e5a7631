"""Every property check is seen to fail on a scheme that deserves it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import properties
import stickslip as ss
from conftest import run, slope
from stickslip.methods.base import Step


class Careless(ss.MoreauMidpoint):
    """Moreau's scheme that forgets the contacts."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        free = u + dt * dynamics.solve_M(t, q, dynamics.h(t, q, u)[:, None])[:, 0]
        return Step(q + dt * free, free, jnp.zeros_like(out.P), out.memory, out.solves)


class Sticky(ss.MoreauMidpoint):
    """Friction pulls harder than the cone allows and along the slip: the sign is wrong,
    the size too large.
    """

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        P = out.P.at[-1].set(-1.5 * out.P[-1])
        return out._replace(P=P)


class Soft(ss.MoreauMidpoint):
    """Restitution as a penalty method gives it: some, but not e_N; creep instead of stick."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        hit = out.P[0] > 0
        return out._replace(u=jnp.where(hit, 0.9 * out.u + jnp.array([0.0, 0.0, 1e-3]), out.u))


class Driven(ss.MoreauMidpoint):
    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        return out._replace(u=1.001 * out.u)


def go(method, case):
    b = ss.benchmarks.load("bouncing-ball", case)
    return ss.simulate(b.system, method, b.q0, b.u0, t1=1.2, dt=1e-2)


def gamma_F(sol):
    return sol.u[:, [0]] + 0.1 * sol.u[:, [2]]


def test_no_penetration_fails_without_contact():
    with pytest.raises(AssertionError, match="penetrates"):
        properties.no_penetration(go(Careless(), 1))


def test_bilateral_constraints_fail_if_perturbed():
    sol = run("slider-crank")
    import equinox as eqx

    bent = eqx.tree_at(lambda s: s.q, sol, sol.q + 1e-6)
    with pytest.raises(AssertionError, match="g ="):
        properties.bilateral_constraints_hold(bent)


def test_the_cone_and_its_direction_fail_with_wrong_friction():
    sol = go(Sticky(), 2)
    with pytest.raises(AssertionError, match="leaves the cone"):
        properties.cone(sol, 0.2)
    with pytest.raises(AssertionError, match="friction drives"):
        properties.friction_opposes_slip(sol, gamma_F(sol))


def test_stick_and_impact_law_fail_when_soft():
    sol = go(Soft(), 3)
    with pytest.raises(AssertionError, match="creeps"):
        properties.stick_is_stick(sol, gamma_F(sol), 0.2)
    sol = go(Soft(), 1)
    n = int(np.flatnonzero((sol.P_N[1:, 0] > 0) & (sol.u[:-1, 1] < -0.2))[0])
    with pytest.raises(AssertionError, match="instead of"):
        properties.newton_impact_law(sol.u[n, 1], sol.u[n + 1, 1], 0.5)


def test_energy_fails_when_driven():
    with pytest.raises(AssertionError, match="gains"):
        properties.energy_is_not_gained(go(Driven(), 2))


class FirstOrderRattle(ss.Rattle):
    """RATTLE with a position update that takes the start velocity: a slip of the pen that costs an order."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        return out._replace(u=out.u * (1 + dt * dt))


def test_the_order_test_sees_a_lost_order():
    """A perturbation of size dt^2 a step is of first order in the end, and is seen as such."""
    b = ss.benchmarks.load("mass-on-slope", 1)
    dts, errors = [6.4e-3, 3.2e-3, 1.6e-3, 8e-4], []
    for dt in dts:
        good, bad = (
            ss.simulate(b.system, m, b.q0, b.u0, t1=0.8192, dt=dt) for m in (ss.Rattle(), FirstOrderRattle())
        )
        errors.append(np.abs(good.u[-1] - bad.u[-1]).max())
    assert slope(dts, errors) < 1.5


def test_a_derivative_of_the_iteration_is_not_the_derivative_of_the_solution():
    """Differentiating through Newton's loop instead of its solution is wrong where it stops at once:
    at rest.
    """
    b = ss.benchmarks.load("mass-on-slope", 1)
    x = 2.0
    q0, u0 = jnp.array([x, np.exp(-x)]), jnp.zeros(2)

    def P_N(m):
        return ss.simulate(type(b.system)(m=m), ss.Rattle(), q0, u0, t1=0.1, dt=1e-2).P_N[-1, 0]

    assert jax.jacfwd(P_N)(2.0) == pytest.approx(P_N(2.0) / 2.0, rel=1e-9)  # proportional to the mass
