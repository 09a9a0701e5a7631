"""Euler's disk: rolling friction takes its tilt to zero in a finite time while it precesses ever faster."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import stickslip as ss
from stickslip import rigid


class Disk(rigid.SpatialBody):
    roll: float = 2e-4
    m: float = 0.44
    R: float = 0.038
    gravity: float = 9.81
    inertia = property(lambda self: self.m * self.R**2 * jnp.array([0.25, 0.25, 0.5]))
    laws = property(lambda self: (ss.Contact(friction=(ss.Coulomb(0.5, 2), ss.Rolling(self.roll, 2))),))

    def rim(self, q):  # from the centre to the lowest point: steepest descent in the disk's plane
        axis = rigid.rotation_matrix(q[3:])[:, 2]
        descent = axis[2] * axis - jnp.array([0.0, 0.0, 1.0])
        return self.R * descent / jnp.linalg.norm(descent)

    def g_N(self, t, q):
        return jnp.array([q[2] + self.rim(q)[2]])

    def gamma_F(self, t, q, u):
        slip = rigid.spatial.velocity_at(q, u, self.rim(q))[:2]
        return jnp.concatenate([slip, rigid.spatial.omega(q, u)[:2]])


tilt, disk = 0.25, Disk()
q0 = [0.0, 0.0, disk.R * np.sin(tilt), np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0]
u0 = [0.0, 0.0, 0.0, 0.0, 2 * np.sqrt(disk.gravity / disk.R * np.sin(tilt)), 0.0]  # rolls, its centre at rest
# Slow theory: rolling friction takes 4/pi roll m g omega from 3/2 m g R sin(tilt), omega^2 = 4 g sin(tilt)/R
end = np.sqrt(np.sin(tilt)) * 3 * np.pi / 8 * disk.R / disk.roll * np.sqrt(disk.R / disk.gravity)
sol, ideal = (ss.simulate(d, "radau2", q0, u0, t1=0.9 * end, dt=2.5e-4) for d in (disk, Disk(roll=0.0)))
rim = jax.vmap(disk.rim)(sol.q)
tilts, turns = rigid.inclinations(sol.q[:, 3:]), np.unwrap(np.arctan2(rim[:, 1], rim[:, 0])) / (2 * np.pi)
theory = np.sin(tilt) * (1 - sol.t / end) ** 2
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot(sol.t, tilts, sol.t, np.arcsin(theory), "k--")
axes[1].plot(sol.t, np.gradient(turns, sol.t), sol.t, np.sqrt(disk.gravity / disk.R / theory) / np.pi, "k--")
for ax, name in zip(axes, ("tilt in rad", "turns of the contact per s"), strict=True):
    ax.set(xlabel="t in s", ylabel=name, title="dashed: slow theory")
figure.savefig("eulers_disk.png")
print(f"tilt {tilt} -> {tilts[-1]:.4f} rad after {turns[-1]:.0f} turns; theory: {np.arcsin(theory[-1]):.4f}")
print(f"without rolling friction the tilt stays: {rigid.inclinations(ideal.q[-1:, 3:])[0]:.5f}")
