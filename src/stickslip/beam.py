"""A planar Euler-Bernoulli beam with a B-spline centreline, as a part of any system.

    r(xi) = sum_i N_i(xi) r_i,  xi in [0, 1];    t = r_xi,  n = r_xixi,  J0 = |r0_xi|
    stretch la = |t|/J0,    curvature ka = (t_perp . n)/|t|^2 / J0 (tangent's angle by reference length)
    energy = int (1/2 EA (la - 1)^2 + 1/2 EI (ka - ka0)^2) J0 dxi,    M_ij = rho int N_i N_j J0 dxi

Unknowns are the control points, flat (x_0, y_0, x_1, ...). Inner forces are the negative gradient of the
energy, by automatic differentiation. Coarse quadratic meshes lock: the stretch cannot vanish where the beam
bends. Two quadratic elements bend by a third of what they should, eight cubic ones are right to five digits.

S. R. Eugster, J. Harsch, A variational formulation of classical nonlinear beam theories (2020),
doi:10.1007/978-3-030-50460-1_9; J. Harsch, S. R. Eugster, Finite element analysis of planar nonlinear
classical beam theories (2020), doi:10.1007/978-3-030-50460-1_10.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@cache
def _knots(degree: int, elements: int) -> np.ndarray:
    """Open and uniform."""
    return np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, elements + 1), np.ones(degree)])


def shapes(degree: int, elements: int, xi, derivative: int = 0) -> np.ndarray:
    """N_i (or a derivative) at the points xi: one row a point."""
    from scipy.interpolate import BSpline  # which takes longer to import than all the rest

    spline = BSpline(_knots(degree, elements), np.eye(elements + degree), degree)
    return np.asarray(spline(np.asarray(xi, dtype=float), nu=derivative))


@cache
def _quadrature(degree: int, elements: int, points: int) -> tuple[np.ndarray, ...]:
    """Gauss points of all elements: weights, N, N', N''."""
    x, w = np.polynomial.legendre.leggauss(points)
    xi = ((np.arange(elements)[:, None] + (x[None, :] + 1) / 2) / elements).reshape(-1)
    weights = np.tile(w / (2 * elements), elements)
    return (weights, *(shapes(degree, elements, xi, k) for k in range(3)))


class PlanarBeam(eqx.Module):
    """Straight when undeformed. ``q`` and ``u`` are its 2 (elements + degree) coordinates and velocities."""

    length: float  # in m
    EA: float  # in N
    EI: float  # in N m^2
    density: float  # mass per length
    degree: int = eqx.field(static=True, default=3)  # of the splines, at least 2
    elements: int = eqx.field(static=True, default=8)  # number of elements
    points: int = eqx.field(static=True, default=5)  # Gauss points an element

    def __check_init__(self):
        if self.degree < 2:
            raise ValueError(f"PlanarBeam(degree={self.degree}): curvature needs degree >= 2")
        if self.elements < 1:
            raise ValueError(f"PlanarBeam(elements={self.elements}): must be at least 1")
        if self.points <= self.degree:
            raise ValueError(
                f"PlanarBeam(points={self.points}): degree {self.degree} needs at least {self.degree + 1} "
                "points"
            )
        for name in ("length", "EA", "EI", "density"):
            value = getattr(self, name)
            if (
                not isinstance(value, jax.core.Tracer)
                and eqx.is_array_like(value)
                and not np.all(np.asarray(value) > 0)
            ):
                raise ValueError(f"PlanarBeam({name}={value}): {name} must be positive")

    @property
    def nodes(self) -> int:
        return self.elements + self.degree

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 2 * self.nodes

    def straight(self, start, direction) -> Float[Array, " size"]:
        """Coordinates of the undeformed beam: control points at the Greville abscissae."""
        knots = _knots(self.degree, self.elements)
        greville = np.array([knots[i + 1 : i + self.degree + 1].mean() for i in range(self.nodes)])
        direction = jnp.asarray(direction, dtype=float)
        unit = direction / jnp.sqrt(direction @ direction)
        return (jnp.asarray(start, dtype=float) + self.length * greville[:, None] * unit).reshape(-1)

    def at(self, xi: float, q: Float[Array, " size"], derivative: int = 0) -> Float[Array, " 2"]:
        """r, r_xi or r_xixi at a fixed xi; with u instead of q their rates."""
        return jnp.asarray(shapes(self.degree, self.elements, [xi], derivative)[0]) @ q.reshape(self.nodes, 2)

    def strains(self, q: Float[Array, " size"]) -> tuple[Array, Array]:
        """Stretch and curvature at the Gauss points."""
        _, _, N1, N2 = _quadrature(self.degree, self.elements, self.points)
        r = q.reshape(self.nodes, 2)
        t, n = jnp.asarray(N1) @ r, jnp.asarray(N2) @ r
        squared = jnp.sum(t * t, axis=1)
        turn = t[:, 0] * n[:, 1] - t[:, 1] * n[:, 0]  # t_perp . n
        return jnp.sqrt(squared) / self.length, turn / squared / self.length

    def energy(self, q: Float[Array, " size"]) -> Float[Array, ""]:
        weights, *_ = _quadrature(self.degree, self.elements, self.points)
        stretch, curvature = self.strains(q)
        density = 0.5 * self.EA * (stretch - 1.0) ** 2 + 0.5 * self.EI * curvature**2
        return self.length * jnp.sum(weights * density)

    def forces(self, q: Float[Array, " size"]) -> Float[Array, " size"]:
        return -jax.grad(self.energy)(q)

    def M(self) -> Float[Array, "size size"]:
        """Constant; the rotary inertia of the cross-section is neglected."""
        weights, N, _, _ = _quadrature(self.degree, self.elements, self.points)
        return self.density * self.length * jnp.asarray(np.kron(N.T @ (weights[:, None] * N), np.eye(2)))

    def weight(self, gravity) -> Float[Array, " size"]:
        """Gravity along -y."""
        weights, N, _, _ = _quadrature(self.degree, self.elements, self.points)
        return -self.density * self.length * gravity * jnp.asarray(np.kron(weights @ N, [0.0, 1.0]))
