"""Four masses, coupled by springs and tied to a wall, ride on a belt: the faster, the less they stick."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import stickslip as ss


class Chain(ss.System):
    """q: displacements of the masses, from the wall on; each is pressed on the belt with the force N."""

    belt: float = 0.2
    mu, mu_slip, N, m, c, d = 0.6, 0.3, 2.0, 0.2, 50.0, 0.3

    coordinates = ("x_1 [m]", "x_2 [m]", "x_3 [m]", "x_4 [m]")
    contacts = ("mass 1", "mass 2", "mass 3", "mass 4")
    laws = property(lambda self: (ss.FrictionElement(self.mu * self.N),) * 4)

    def M(self, t, q):
        return self.m * jnp.eye(4)

    def h(self, t, q, u):
        springs = self.c * jnp.diff(q, prepend=0.0) + self.d * jnp.diff(u, prepend=0.0)
        # Friction is weaker in slip than in stick; were it not, all masses would soon slip for ever.
        return jnp.diff(springs, append=0.0) + ss.stribeck(u - self.belt, self.mu, self.mu_slip, 20.0, self.N)

    def gamma_F(self, t, q, u):
        return u - self.belt


def run(belt):
    return ss.simulate(Chain(belt=belt), "rattle", jnp.zeros(4), jnp.zeros(4), t1=8.0, dt=2e-3)


run(0.2).plot("chain_on_belt_motion.png", "belt at 0.2 m/s", panels=("positions", "velocities", "states"))
belts = jnp.geomspace(0.01, 5.0, 20)
sols = jax.jit(lambda belts: jax.lax.map(run, belts))(belts)
assert (sols.result == ss.RESULTS.successful).all()
stick = (sols.state_code() == 2).mean(axis=(1, 2))
wall = Chain.c * sols.q[..., 0] + Chain.d * sols.u[..., 0]
_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
curves = (stick, "share of time in stick"), (wall[:, 2000:].max(axis=1), "largest force on the wall in N")
for ax, (y, name) in zip(axes, curves, strict=True):
    ax.semilogx(belts, y, ".-")
    ax.set(xlabel="speed of the belt in m/s", ylabel=name)
plt.savefig("chain_on_belt.png")
slip = 4 * (Chain.mu * Chain.N - ss.stribeck(belts[-1], Chain.mu, Chain.mu_slip, 20.0, Chain.N))
print(f"in stick: {stick[0]:.0%} of the time at {belts[0]:.2f} m/s, {stick[-1]:.0%} at {belts[-1]:.2f} m/s")
print(f"fastest belt, mean force on the wall: {wall[-1].mean():.3f} N, of steady slip {slip:.3f} N")
