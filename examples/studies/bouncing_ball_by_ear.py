"""A ball bounces, a microphone hears when: height, restitution and drag from five times."""

import sys

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import stickslip as ss

SMALL = "--small" in sys.argv


class Ball(ss.System):
    """q: height above the floor."""

    e_N: float
    drag: float
    laws = property(lambda self: (ss.Contact(e_N=self.e_N),))

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -9.81 - self.drag * u

    def g_N(self, t, q):
        return q


def heard(height, e_N, drag):
    """Times of the first eight impacts: derivatives of event times are exact."""
    ball, q0, limits = Ball(e_N, drag), jnp.array([height]), {"max_steps": 200, "max_events": 64}
    sol = ss.simulate(ball, "radau3", q0, jnp.zeros(1), t1=6.0, rtol=1e-9, **limits)
    return sol.events.t[:8]


true = {"height": 1.5, "e_N": 0.85, "drag": 0.1}
guess, bounds = {"height": 1.2, "e_N": 0.8, "drag": 0.0}, {"e_N": (0.0, 1.0), "drag": (-1.0, 1.0)}
times, rng = np.asarray(heard(**true)), np.random.default_rng(0)
fit = ss.fit(heard, guess, times + 1e-3 * rng.normal(size=8), bounds=bounds)
fit.plot("ball_by_ear.png")
print(fit)
for name in fit.names:
    print(f"{name}: {fit.interval(name)[0]:.4f} to {fit.interval(name)[1]:.4f}, true {true[name]}")

# Does an interval of 95 % hold the true value in 95 of 100 experiments?
n = 10 if SMALL else 400
fits = [ss.fit(heard, guess, times + 1e-3 * rng.normal(size=8), bounds=bounds) for _ in range(n)]
holds = lambda fit, name: fit.interval(name)[0] <= true[name] <= fit.interval(name)[1]
inside = {name: np.mean([holds(fit, name) for fit in fits]) for name in true}
_, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axis, name in zip(axes, true, strict=True):
    axis.hist([f[name] for f in fits], 30)
    axis.axvline(true[name], color="k")
    axis.set(xlabel=name, title=f"{inside[name]:.0%} of the intervals hold it")
plt.savefig("ball_by_ear_often.png")
