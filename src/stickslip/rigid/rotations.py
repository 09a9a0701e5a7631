"""Rotations by quaternions, scalar first. All are written with p/|p|: scaling a quaternion changes nothing."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def rotation_matrix(p: Float[Array, " 4"]) -> Float[Array, "3 3"]:
    """A_IK: components in the body basis K -> components in the inertial basis I."""
    w, x, y, z = p
    return jnp.array([
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]) / (p @ p)  # fmt: skip


def inclinations(p: Float[Array, "rows 4"]) -> Float[Array, " rows"]:
    """Angles between e_z^I and e_z^K."""
    cos = 1.0 - 2.0 * (p[:, 1] ** 2 + p[:, 2] ** 2) / jnp.sum(p * p, axis=1)
    return jnp.arccos(jnp.clip(cos, -1.0, 1.0))


def quaternion_rate(p: Float[Array, " 4"]) -> Float[Array, "4 3"]:
    """p_dot = Q(p) omega with omega in the body basis."""
    w, x, y, z = p
    return 0.5 * jnp.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
