"""Small systems that several tests share."""

import equinox as eqx
import jax.numpy as jnp

import stickslip as ss


class Stack(ss.System):
    """Masses on a line, one on the other."""

    m: tuple[float, ...]
    gravity: float = 9.81
    e_N: float = 0.0

    def M(self, t, q):
        return jnp.diag(jnp.stack(self.m))

    def h(self, t, q, u):
        return -self.gravity * jnp.stack(self.m)

    def g_N(self, t, q):
        return jnp.diff(q, prepend=0.0)

    @property
    def laws(self):
        return (ss.Contact(e_N=self.e_N),) * len(self.m)


class Ball(ss.System):
    """The bouncing ball in any units: q = (x, y, phi)."""

    m: float = 1.0
    R: float = 0.1
    gravity: float = 9.81
    mu: float = 0.2
    e_N: float = 0.0

    def M(self, t, q):
        return jnp.diag(jnp.stack([self.m, self.m, 0.4 * self.m * self.R**2]))

    def h(self, t, q, u):
        return jnp.stack([0.0 * self.m, -self.m * self.gravity, 0.0 * self.m])

    def g_N(self, t, q):
        return jnp.array([q[1] - self.R])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + self.R * u[2]])

    @property
    def laws(self):
        return (ss.Contact(e_N=self.e_N, friction=ss.Coulomb(self.mu)),)


class DoublePendulum(ss.LagrangianSystem):
    """Two rods with masses at their ends: a mass matrix that depends on the angles;
    ``wind``: a term of T linear in u.
    """

    wind: float = 0.0
    gravity: float = eqx.field(default=9.81, static=True)

    def T(self, t, q, u):
        a, b = q
        own = u[0] ** 2 + 0.5 * u[1] ** 2 + u[0] * u[1] * jnp.cos(a - b)
        return own + self.wind * (jnp.sin(2 * a + b) * u[0] + jnp.cos(a) * u[1])

    def V(self, t, q):
        return -self.gravity * (2.0 * jnp.cos(q[0]) + jnp.cos(q[1]))
