"""Restitution, friction and drag of a ball, found from its measured path: Gauss-Newton through impacts."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import stickslip as ss


class Ball(ss.System):
    """q = (x, y, phi) of a ball that is thrown with backspin."""

    e_N: float
    mu: float
    drag: float
    m, R = 0.06, 0.033
    laws = property(lambda self: (ss.Contact(e_N=self.e_N, friction=ss.Coulomb(self.mu)),))

    def M(self, t, q):
        return self.m * jnp.diag(jnp.array([1.0, 1.0, 0.4 * self.R**2]))

    def h(self, t, q, u):
        air = -self.drag * jnp.linalg.norm(u[:2]) * u[:2]
        return jnp.array([air[0], air[1] - 9.81 * self.m, 0.0])

    def g_N(self, t, q):
        return jnp.array([q[1] - self.R])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + self.R * u[2]])


def run(p, **options):  # events are located: all three parameters move the times of impacts
    q0, u0 = jnp.array([0.0, 1.0, 0.0]), jnp.array([3.0, 0.0, 150.0])
    return ss.simulate(Ball(*p), "radau2", q0, u0, t1=1.5, rtol=1e-6, max_steps=200, **options)


path = lambda p: run(p, t_eval=np.linspace(0.0, 1.5, 61)).q[:, :2].ravel()
fit = jax.jit(jax.jacfwd(lambda p: (path(p),) * 2, has_aux=True))  # its derivative, and the path itself
true, found = jnp.array([0.75, 0.15, 0.004]), jnp.array([0.6, 0.1, 0.0])  # e_N, mu, drag; first a guess
measured = fit(true)[1] + 1e-3 * np.random.default_rng(1).normal(size=122)  # a camera is off by a millimetre
for _ in range(6):
    slope, now = fit(found)
    found += jnp.linalg.lstsq(slope, measured - now)[0]
sigma = 1e-3 * jnp.sqrt(jnp.diag(jnp.linalg.inv(slope.T @ slope)))
plt.plot(*run(found).smooth(300).q[:, :2].T, *measured.reshape(61, 2).T, "k.", ms=3)
plt.gca().set(xlabel="x in m", ylabel="y in m", title="measured, and found")
plt.savefig("identify_a_ball.png")
print(f"e_N, mu, drag: true {true}, found {found.round(5)} +- {sigma.round(5)}")
