"""A block slides to a stop: a sweep over friction coefficients in one batch,
and the derivative of the braking distance.

    python examples/braking_distance.py

The exact distance is v^2/(2 mu g).
"""

import jax
import jax.numpy as jnp

import stickslip as ss

V, G = 2.0, 9.81
METHOD = ss.Rattle(solver=ss.SemismoothNewton())  # Newton alone: a batch compiles twice as fast


class Block(ss.System):
    mu: float = 0.3

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([0.0, -G])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]

    @property
    def laws(self):
        return (ss.Contact(friction=ss.Coulomb(self.mu)),)


def distance(mu):
    sol = ss.simulate(Block(mu=mu), METHOD, q0=[0.0, 0.0], u0=[V, 0.0], t1=2.5, dt=1e-2)
    return sol.q[-1, 0]


mus = jnp.linspace(0.1, 0.5, 5)
distances = jax.vmap(distance)(mus)
slopes = jax.vmap(jax.jacfwd(distance))(mus)

print("   mu   distance   exact    d distance/d mu   exact")
for mu, d, s in zip(mus, distances, slopes, strict=True):
    print(f"{mu:5.2f}   {d:8.4f} {V**2 / (2 * mu * G):8.4f}   {s:12.3f} {-(V**2) / (2 * mu**2 * G):12.3f}")
