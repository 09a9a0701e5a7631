"""Numbers that may be traced: NumPy where they are known, JAX where they are not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..rigid.rotations import rotation_matrix as matrix


def is_known(*values: Any) -> bool:
    """Whether nothing in it is traced."""
    return not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(values))


def library(*values: Any) -> Any:
    """numpy or jax.numpy, whichever these numbers need:
    a scene of known numbers compiles nothing by itself.
    """
    return np if is_known(*values) else jnp


def vector(*entries: Any) -> Any:
    """Of numbers."""
    return library(entries).stack([library(x).asarray(x, dtype=float) for x in entries])


def stacked(rows: Any, shape: tuple[int, ...]) -> Any:
    """Rows of equal shape as one array; ``shape``: of one of them, for the case that there is none."""
    rows = list(rows)
    if not rows:
        return np.zeros((0, *shape))
    return library(rows).stack([library(row).asarray(row, dtype=float) for row in rows])


def number(x: Any) -> Any:
    """A float, or what is traced as it is."""
    if x is None or isinstance(x, bool | str):
        return x
    if isinstance(x, int | float | np.generic) or (
        isinstance(x, np.ndarray | jax.Array) and is_known(x) and x.ndim == 0
    ):
        return float(x)
    return x


def numbers(x: Any) -> Any:
    """A vector or matrix of floats; anything else as it is, for whoever checks it."""
    if x is None or isinstance(x, str | bool):
        return x
    try:
        return np.asarray(x, dtype=float) if is_known(x) else jnp.asarray(x, dtype=float)
    except (TypeError, ValueError):
        return x


# ---- rotations, of one thing or of rows of them


def quaternion(A: Any) -> Any:
    """Of rotation matrices, scalar first and w >= 0 where it is not zero;
    by the largest of its four entries.
    """
    xp = library(A)
    trace = A[..., 0, 0] + A[..., 1, 1] + A[..., 2, 2]
    # 4 p_i^2
    squares = xp.stack([1.0 + trace] + [1.0 - trace + 2.0 * A[..., i, i] for i in range(3)], axis=-1)
    a = [A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]]  # 4 w p_i
    s = [A[..., 1, 2] + A[..., 2, 1], A[..., 0, 2] + A[..., 2, 0], A[..., 0, 1] + A[..., 1, 0]]  # 4 p_j p_k
    products = [
        [squares[..., 0], a[0], a[1], a[2]], [a[0], squares[..., 1], s[2], s[1]],
        [a[1], s[2], squares[..., 2], s[0]], [a[2], s[1], s[0], squares[..., 3]],
    ]  # fmt: skip
    rows = xp.stack([xp.stack(row, axis=-1) for row in products], axis=-2)
    best = squares.argmax(axis=-1)
    p = xp.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    p = p / xp.sqrt((p * p).sum(axis=-1))[..., None]
    return xp.where(p[..., :1] < 0.0, -p, p)


def towards(axis: Any) -> Any:
    """The rotation matrix that takes e_z into a direction, the shortest way:
    the plane z = 0 stays as it is.
    """
    xp = library(axis)
    x, y, z = (axis[i] for i in range(3))
    if is_known(axis) and z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    c = 1.0 / (1.0 + z)
    rows = [[1.0 - c * x * x, -c * x * y, x], [-c * x * y, 1.0 - c * y * y, y], [-x, -y, z]]
    return xp.stack([xp.stack([xp.asarray(e, dtype=float) for e in row]) for row in rows])


__all__ = ["is_known", "library", "matrix", "number", "numbers", "quaternion", "stacked", "towards", "vector"]
