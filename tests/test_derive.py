"""Derivatives against difference quotients, Lagrange against hand-written equations,
a system's static facts.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.derive import Dynamics, depends


class Everything(ss.System):
    """General kinematics, time-dependent gaps and constraints of both levels, all rows at once."""

    def M(self, t, q):
        return jnp.diag(jnp.array([2.0 + jnp.sin(q[0]), 3.0]))

    def h(self, t, q, u):
        return jnp.array([-q[0], -u[1] * u[0]])

    def B(self, t, q):
        return jnp.array([[1.0 + 0.1 * q[1], 0.2], [0.3, 1.0], [jnp.cos(q[0]), t]])

    def beta(self, t, q):
        return jnp.array([0.1 * t, q[2], 0.0])

    def g(self, t, q):
        return jnp.array([q[0] ** 2 + q[1] * q[2] - jnp.sin(t)])

    def gamma(self, t, q, u):
        return jnp.array([u[0] * q[1] - u[1] + t])

    def g_N(self, t, q):
        return jnp.array([q[2] + q[0] * q[1] + 0.5 * t**2])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] * jnp.cos(q[0]) + t * u[1], u[1] + q[2]])

    @property
    def laws(self):
        return (ss.Contact(friction=ss.Coulomb(0.3, dim=2, axes=[1.0, 0.5])),)


T, Q, U, UDOT = 0.3, jnp.array([0.4, -0.2, 0.9]), jnp.array([1.1, -0.7]), jnp.array([0.5, 2.0])


@pytest.fixture(scope="module")
def d():
    return Dynamics.of(Everything(), T, Q, U)


def along_motion(d, f, s):
    """f on a curve with q_dot = B u + beta and u_dot = UDOT to second order."""
    q1 = d.q_dot(T, Q, U)
    u = U + s * UDOT
    q2 = jax.jvp(d.q_dot, (T, Q, U), (1.0, q1, UDOT))[1]
    return np.asarray(f(T + s, Q + s * q1 + s**2 / 2 * q2, u))


def test_velocities_are_rates_of_positions(d):
    eps = 1e-5
    rates = (along_motion(d, d.positions, eps) - along_motion(d, d.positions, -eps)) / (2 * eps)
    v = d.velocities(T, Q, U)
    g_dot, _, g_N_dot, _ = d.split(v)
    assert rates[0] == pytest.approx(float(g_dot[0]), abs=1e-8)
    assert rates[2] == pytest.approx(float(g_N_dot[0]), abs=1e-8)


def test_velocities_are_affine_in_u(d):
    W, chi = d.directions(T, Q)
    assert np.asarray(d.velocities(T, Q, U)) == pytest.approx(np.asarray(W.T @ U + chi), abs=1e-13)


def test_accelerations_are_rates_of_velocities(d):
    eps = 1e-5
    rates = (along_motion(d, d.velocities, eps) - along_motion(d, d.velocities, -eps)) / (2 * eps)
    W, _ = d.directions(T, Q)
    assert np.asarray(W.T @ UDOT + d.acceleration_rest(T, Q, U)) == pytest.approx(rates, abs=1e-7)
    # negative control: without zeta it is not the rate
    assert np.abs(W.T @ UDOT - rates).max() > 1e-2


def test_friction_rows_are_scaled_and_percussions_scaled_back(d):
    assert d.gamma_F(T, Q, U)[1] == pytest.approx(0.5 * float(Everything().gamma_F(T, Q, U)[1]))
    P_F = d.percussions(jnp.ones(5), 1.0)[3]
    assert pytest.approx([1.0, 0.5]) == P_F


def test_dependence_is_read_off_the_program():
    f = lambda t, q, u: jnp.array([q[0], 1.0]) * 2.0 + jnp.zeros_like(u)
    assert depends(f, 0.0, Q, U) == (False, True, False)
    ball = ss.benchmarks.load("bouncing-ball")
    dyn = Dynamics.of(ball.system, 0.0, ball.q0, ball.u0)
    assert dyn.M_inverse is not None
    assert dyn.identity
    assert not dyn.h_of_u
    everything = Dynamics.of(Everything(), T, Q, U)
    assert everything.M_inverse is None
    assert everything.h_of_u
    assert not everything.flat


class Pendulum(ss.LagrangianSystem):
    """A driven double pendulum: q-dependent mass, explicit time."""

    def T(self, t, q, u):
        w = u[0] ** 2 + 0.5 * u[1] ** 2 + u[0] * u[1] * jnp.cos(q[0] - q[1])
        return w * (1.0 + 0.1 * jnp.sin(t))

    def V(self, t, q):
        return -9.81 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))

    def f(self, t, q, u):
        return -0.1 * u


def test_lagranges_equations_follow_from_T_and_V():
    t, q, u, a = 0.3, jnp.array([0.5, -0.4]), jnp.array([1.0, 2.0]), jnp.array([0.7, -0.3])
    p = Pendulum()
    momentum = lambda s: jax.grad(p.T, argnums=2)(t + s, q + s * u + s**2 / 2 * a, u + s * a)
    eps = 1e-5
    rate = (momentum(eps) - momentum(-eps)) / (2 * eps)
    lagrange = rate - jax.grad(p.T, argnums=1)(t, q, u) + jax.grad(p.V, argnums=1)(t, q) - p.f(t, q, u)
    assert p.M(t, q) @ a - p.h(t, q, u) == pytest.approx(np.asarray(lagrange), abs=1e-8)
    assert p.energy(t, q, u) == pytest.approx(float(p.T(t, q, u) + p.V(t, q)))
