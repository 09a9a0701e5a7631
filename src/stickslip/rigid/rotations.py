"""Rotations by quaternions, scalar first.

All are written with p/|p|: scaling a quaternion changes nothing.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Products and sums over constant arrays rather than formulas entry by entry: a rotation stands many times in
# a compiled program, and one operation is compiled faster than forty. A(p) |p|^2 = sum_kl A_kl p_k p_l.
_ROTATION = np.zeros((3, 3, 4, 4))
for _i, _j, _terms in (
    (0, 0, "+ww+xx-yy-zz"), (0, 1, "+xy+xy-wz-wz"), (0, 2, "+xz+xz+wy+wy"),
    (1, 0, "+xy+xy+wz+wz"), (1, 1, "+ww-xx+yy-zz"), (1, 2, "+yz+yz-wx-wx"),
    (2, 0, "+xz+xz-wy-wy"), (2, 1, "+yz+yz+wx+wx"), (2, 2, "+ww-xx-yy+zz"),
):  # fmt: skip
    for _sign, _a, _b in zip(*[iter(_terms)] * 3, strict=True):
        _ROTATION[_i, _j, "wxyz".index(_a), "wxyz".index(_b)] += float(_sign + "1")
# p_dot = 1/2 (-x -y -z; w -z y; z w -x; -y x w) omega
_RATE = np.zeros((4, 3, 4))
for _i, _row in enumerate(("-x-y-z", "+w-z+y", "+z+w-x", "-y+x+w")):
    for _j in range(3):
        _RATE[_i, _j, "wxyz".index(_row[2 * _j + 1])] = float(_row[2 * _j] + "0.5")


def rotation_matrix(p: Float[Array | np.ndarray, "... 4"]) -> Float[Array, "... 3 3"]:
    """A_IK: components in the body basis K -> components in the inertial basis I; of one quaternion,
    or of rows of them.

    Of NumPy's numbers it is NumPy's.
    """
    squares = (p * p).sum(axis=-1)[..., None, None]
    return (_ROTATION * (p[..., None, None, :, None] * p[..., None, None, None, :])).sum(
        axis=(-2, -1)
    ) / squares


def inclinations(p: Float[Array, "rows 4"]) -> Float[Array, " rows"]:
    """Angles between e_z^I and e_z^K."""
    cos = 1.0 - 2.0 * (p[:, 1] ** 2 + p[:, 2] ** 2) / jnp.sum(p * p, axis=1)
    return jnp.arccos(jnp.clip(cos, -1.0, 1.0))


def quaternion_rate(p: Float[Array, "... 4"]) -> Float[Array, "... 4 3"]:
    """p_dot = Q(p) omega with omega in the body basis."""
    return jnp.sum(_RATE * p[..., None, None, :], axis=-1)
