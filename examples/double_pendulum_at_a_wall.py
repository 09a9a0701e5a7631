"""A double pendulum at a wall: its energy stays between impacts and falls at each as Newton's law says."""

import jax
import jax.numpy as jnp
import numpy as np

import stickslip as ss


class DoublePendulum(ss.LagrangianSystem):
    """q: angles of two rods from the vertical; the point masses at their ends may hit the wall."""

    length: float = 0.5
    m: float = 1.0
    e_N: float = 0.8
    wall: float = 0.1

    coordinates = ("phi_1 [rad]", "phi_2 [rad]")
    contacts = ("first mass", "second mass")
    laws = property(lambda self: (ss.Contact(self.e_N), ss.Contact(self.e_N)))

    def masses(self, q):  # rows: x and y of each
        return self.length * jnp.cumsum(jnp.stack([jnp.sin(q), -jnp.cos(q)], axis=1), axis=0)

    def T(self, t, q, u):
        velocities = jax.jvp(self.masses, (q,), (u,))[1]
        return 0.5 * self.m * jnp.sum(velocities**2)

    def V(self, t, q):
        return 9.81 * self.m * jnp.sum(self.masses(q)[:, 1])

    def g_N(self, t, q):
        return self.wall - self.masses(q)[:, 0]


system = DoublePendulum()
sol = ss.simulate(system, q0=[-1.2, -0.6], u0=[0.0, 0.0], t1=4.0, rtol=1e-9, atol=1e-11)
sol.plot("double_pendulum_at_a_wall.png", panels=("positions", "velocities", "gaps", "energy"))

energy = sol.energy()
worst = 0.0
for impact in sol.events.of("impact"):
    before, after = np.flatnonzero(sol.t == impact.t)  # the rows before and after it
    speed = -jax.jvp(lambda q: system.g_N(0.0, q), (sol.q[before],), (sol.u[before],))[1][impact.contact]
    loss = 0.5 * (1 - system.e_N) * speed * sol.P_N[after, impact.contact]
    worst = max(worst, abs(energy[before] - energy[after] - loss))
    print(f"t = {impact.t:.6f}: {impact.name}, energy {energy[before]:.6f} -> {energy[after]:.6f} J")
flight = np.diff(sol.t) > 0  # at an impact the time stands twice
drift = abs(np.diff(energy)[flight]).sum()
print(f"energy drifts by {drift:.1e} J in flight, losses are off by {worst:.1e} J from P_N v (1 - e)/2")
