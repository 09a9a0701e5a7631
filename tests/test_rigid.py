"""Rigid-body building blocks against differentiation, integration and conservation laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.rigid import PlanarBody, SpatialBody, planar, quaternion_rate, rotation_matrix, spatial

KEY = np.random.default_rng(3)
Q = np.concatenate([KEY.normal(size=3), KEY.normal(size=4)])
U = KEY.normal(size=6)
R = np.array([0.3, -0.2, 0.5])


def test_rotations_are_rotations_for_quaternions_of_any_length():
    A = np.asarray(rotation_matrix(jnp.asarray(Q[3:])))
    assert A @ A.T == pytest.approx(np.eye(3), abs=1e-14)
    assert np.linalg.det(A) == pytest.approx(1.0)
    np.testing.assert_allclose(rotation_matrix(jnp.asarray(3.0 * Q[3:])), A, atol=1e-14)


@pytest.mark.parametrize("r", [R, np.stack([R, -R, 2 * R])], ids=["one point", "three points"])
def test_spatial_velocities_are_the_rates_of_positions(r):
    q = spatial.normalize(jnp.asarray(Q))
    _, rate = jax.jvp(lambda q: spatial.position(q, r), (q,), (spatial.B(q) @ U,))
    np.testing.assert_allclose(spatial.velocity(q, jnp.asarray(U), r), rate, atol=1e-13)


def test_velocity_at_agrees_with_velocity_of_the_same_point():
    q = spatial.normalize(jnp.asarray(Q))
    r = rotation_matrix(q[3:]) @ R
    np.testing.assert_allclose(
        spatial.velocity_at(q, jnp.asarray(U), r), spatial.velocity(q, jnp.asarray(U), R), atol=1e-13
    )
    here = planar.velocity_at(jnp.asarray(U[:3]), planar.rotation(0.4) @ R[:2])
    np.testing.assert_allclose(
        here, planar.velocity(jnp.array([0.0, 0.0, 0.4]), jnp.asarray(U[:3]), R[:2]), atol=1e-14
    )


def test_planar_velocities_are_the_rates_of_positions():
    q, u = jnp.asarray(Q[:3]), jnp.asarray(U[:3])
    _, rate = jax.jvp(lambda q: planar.position(q, R[:2]), (q,), (u,))
    np.testing.assert_allclose(planar.velocity(q, u, R[:2]), rate, atol=1e-14)


class Brick(SpatialBody):
    m: float = 2.0
    gravity: float = 0.0

    @property
    def inertia(self):
        return jnp.array([1.0, 2.0, 3.5])


def test_a_tumbling_brick_keeps_energy_and_angular_momentum():
    """Euler's equations: unstable rotation about the middle axis, by the fifth-order method."""
    sol = ss.simulate(
        Brick(), ss.RadauIIA(3), [0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0.01, 2.0, 0.0], t1=8.0, dt=1e-2
    )
    E = sol.energy()
    momentum = np.stack(
        [
            rotation_matrix(q[3:]) @ (np.array([1.0, 2.0, 3.5]) * u[3:])
            for q, u in zip(sol.q, sol.u, strict=True)
        ]
    )
    assert np.abs(E / E[0] - 1.0).max() < 1e-9
    assert np.abs(momentum - momentum[0]).max() < 1e-7
    assert sol.u[:, 4].min() < -1.9  # it turned over


class Dropped(PlanarBody):
    m: float = 3.0
    gravity: float = 9.81

    @property
    def theta(self):
        return 0.2 * self.m


def test_a_planar_body_falls():
    sol = ss.simulate(Dropped(), ss.Rattle(), [0.0, 0.0, 0.0], [1.0, 2.0, 3.0], t1=1.0, dt=0.1)
    assert sol.q[-1] == pytest.approx([1.0, 2.0 - 0.5 * 9.81, 3.0])
    assert sol.energy()[-1] == pytest.approx(sol.energy()[0])


def test_rotations_take_rows_of_quaternions():
    p = np.random.default_rng(0).normal(size=(5, 4))
    for f in (rotation_matrix, quaternion_rate):
        np.testing.assert_allclose(
            f(jnp.asarray(p)), np.stack([f(jnp.asarray(row)) for row in p]), atol=1e-14
        )
