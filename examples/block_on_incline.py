"""A block is kicked up an incline: above the friction angle it slides back, below it stays where it stops."""

import jax.numpy as jnp
import numpy as np

import stickslip as ss


class Block(ss.System):
    """q = (x, y): way uphill along the incline, height above it."""

    angle: float = 0.3
    mu: float = 0.4
    m: float = 2.0
    gravity: float = 9.81

    coordinates = ("x [m]", "y [m]")
    contacts = ("incline",)

    def M(self, t, q):
        return self.m * jnp.eye(2)

    def h(self, t, q, u):
        return -self.m * self.gravity * jnp.array([jnp.sin(self.angle), jnp.cos(self.angle)])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]

    @property
    def laws(self):
        return (ss.Contact(friction=ss.Coulomb(self.mu)),)


v, t1 = 3.0, 1.5
print(f"friction angle {np.degrees(np.arctan(Block.mu)):.1f} degrees")
for degrees in (15.0, 30.0):
    block = Block(angle=np.radians(degrees))
    sol = ss.simulate(block, q0=[0.0, 0.0], u0=[v, 0.0], t1=t1, rtol=1e-8, atol=1e-10)
    sol.plot(f"block_on_incline_{degrees:.0f}.png", panels=("positions", "velocities", "forces", "states"))

    up = block.gravity * (np.sin(block.angle) + block.mu * np.cos(block.angle))
    down = max(block.gravity * (np.sin(block.angle) - block.mu * np.cos(block.angle)), 0.0)
    x = v**2 / (2 * up) - down / 2 * (t1 - v / up) ** 2
    acceleration = abs(sol.forces().u_dot[-1, 0])
    kind, t = sol.events.kind[0], sol.events.t[0]
    print(f"{degrees:.0f} deg: {kind} at {t:.5f} s, then {acceleration:.5f} m/s^2")
    print(f"    exactly {v / up:.5f}, {down:.5f}; the end is off by {abs(sol.q[-1, 0] - x):.0e} m")
