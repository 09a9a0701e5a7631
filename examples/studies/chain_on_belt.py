"""Three masses, coupled by springs, ride on a belt: stick-slip that repeats itself or not, by its speed."""

import sys

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import stickslip as ss

SMALL = "--small" in sys.argv


class Chain(ss.System):
    """q: displacements from where the springs are at rest; each mass is pressed on the belt with N."""

    belt: float = 0.2
    mu, mu_slip, N, m, c = 0.6, 0.3, 2.0, 0.2, 50.0
    coordinates = ("x_1 [m]", "x_2 [m]", "x_3 [m]")
    laws = property(lambda self: (ss.FrictionElement(self.mu * self.N),) * 3)

    def M(self, t, q):
        return self.m * jnp.eye(3)

    def h(self, t, q, u):
        # Friction falls with the speed of slip, or all would soon slip for ever
        springs = self.c * jnp.diff(q, prepend=0.0)
        return jnp.diff(springs, append=0.0) + ss.stribeck(u - self.belt, self.mu, self.mu_slip, 20.0, self.N)

    def gamma_F(self, t, q, u):
        return u - self.belt


turns = lambda t, q, u: u[0]  # the first mass is as far on as it comes
turns.direction = -1.0


def run(belt):
    t1, q0, u0 = 5.0 if SMALL else 60.0, np.zeros(3), np.full(3, belt)
    sol = ss.simulate(Chain(belt), None, q0, u0, t1=t1, rtol=1e-6, events=[turns], progress=False)
    times = sol.events.of("event").t[-8:]
    return {"x": sol(times)[0][:, 0], "stick": np.mean(sol.state[sol.t > t1 / 2] == "stick")}


belts = ss.sweep(run, {"belt": np.linspace(0.05, 0.6, 4 if SMALL else 300)})
_, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 6), layout="constrained")
axes[0].plot(np.repeat(belts["belt"].values, 8), belts["x"].values.ravel(), "k.", ms=1)
axes[1].plot(belts["belt"], belts["stick"], lw=1)
axes[0].set(ylabel="x_1 where it turns, in m")
axes[1].set(xlabel="speed of the belt in m/s", ylabel="share of time in stick")
plt.savefig("chain_diagram.png")

# At 0.3 m/s the motion repeats itself: what has stuck has forgotten where it came from, its multipliers are 0
u0, rtol = np.full(3, 0.3), 1e-6 if SMALL else 1e-8
settled = ss.simulate(Chain(0.3), None, np.zeros(3), u0, t1=40.0, rtol=rtol, events=[turns])
a, b = settled.events.of("event").t[-2:]
orbit = ss.periodic_orbit(Chain(0.3), *settled(a + 0.4 * (b - a)), period_guess=b - a, rtol=0.1 * rtol)
print(orbit, np.round(orbit.multipliers, 4))
if not SMALL:
    orbit.solution.plot("chain_cycle.png", "one period at 0.3 m/s", panels=("velocities", "states"))
