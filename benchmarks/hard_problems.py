"""Hard random problems, and which rung of the ladder solves them.

    .venv/bin/python benchmarks/hard_problems.py [systems] [steps]        (1500 and 20 unless said otherwise;
    two minutes)

Each system has six velocities and four spatial contacts with friction coefficients up to one and restitution;
in a third of them a contact is redundant. It is pushed about by random forces, step by step on velocity
level, as Moreau's scheme would. A solution that a solver claims is checked from outside: balance of momentum,
cones, impact law, Coulomb's law. Then the same systems, with linear gaps, are run by methods: how many runs
end before their time.
"""

import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import stickslip as ss
from stickslip.derive import Directions
from stickslip.methods import by_name
from stickslip.results import RESULTS
from stickslip.rows import Layout, StageLayout
from stickslip.solvers import Inclusions, ProxParameters, VelocityProblem
from stickslip.stacked import StackedLaws

NU, N = 6, 4
LAWS = StackedLaws.of([ss.Contact(friction=ss.Coulomb(1.0, dim=2))] * N)


def system(rng):
    """M, W with normals first, mu, e_N: a body on four points, whose normals lean by up to 60 degrees.

    In a third of the systems the last contact is on the same plane and in line with the first two: redundant.
    """
    A = rng.normal(size=(NU, NU))
    M = A @ A.T / NU + 0.1 * np.eye(NU)
    points = rng.normal(size=(N, 3))
    lean, around = rng.uniform(0.0, np.pi / 3, N), rng.uniform(0.0, 2 * np.pi, N)
    normals = np.stack([np.sin(lean) * np.cos(around), np.sin(lean) * np.sin(around), np.cos(lean)], axis=1)
    if rng.random() < 1 / 3:
        normals[[1, 3]] = normals[0]
        points[3] = rng.uniform(0.0, 1.0) * (points[1] - points[0]) + points[0]
    across = np.cross(normals, rng.normal(size=(N, 3)))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    tangents = np.stack([across, np.cross(normals, across)], axis=1)

    def rows(directions, points):
        return np.concatenate([directions, np.cross(points, directions)], axis=-1)

    friction = rows(tangents, points[:, None]).reshape(2 * N, NU)
    return (
        M,
        np.concatenate([rows(normals, points), friction]).T,
        rng.uniform(0.0, 1.0, N),
        rng.uniform(0.0, 0.8, N),
    )


def make(systems, steps, seed=0):
    rng = np.random.default_rng(seed)
    drawn = [system(rng) for _ in range(systems)]
    M, W, mu, e_N = (jnp.asarray(np.stack(a)) for a in zip(*drawn, strict=True))
    forces = jnp.asarray(rng.normal(size=(systems, steps, NU)) - np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    u0 = jnp.asarray(rng.normal(size=(systems, NU)))
    return M, W, mu, e_N, forces, u0


def problem(M, W, mu, e_N, u, force):
    """xi = W^T (u + M^-1 (force + W y)) + e W^T u, y in its cones."""
    laws = StackedLaws(e_N, LAWS.e_F, LAWS.scale, mu, LAWS.set, LAWS.contact_of)
    L, free = jnp.linalg.solve(M, W), u + jnp.linalg.solve(M, force)
    e = jnp.concatenate([e_N, jnp.zeros(2 * N)])
    c = e * (W.T @ u)
    at = Directions(W, c, L, jnp.sum(W * L, axis=0))
    yes, rows = jnp.ones(N, dtype=bool), Layout(0, 0, N, 2 * N)
    inclusions = Inclusions(
        laws, StageLayout(rows), yes, yes, ProxParameters.of(laws, rows, at.G), jnp.ones(()),
        jnp.zeros(3 * N), at.scales(free),
    )  # fmt: skip
    return VelocityProblem(inclusions, free, L, W, c, W.T @ L)


def run(solver, data):
    """Results, iterations and everything a check needs, of all steps; a step that fails is not taken."""

    def one(args):
        M, W, mu, e_N, forces, u0 = args

        def step(carry, force):
            u, y = carry
            p = problem(M, W, mu, e_N, u, force)
            out = solver.solve(p, u, y)
            ok = out.result == RESULTS.successful
            after = jnp.where(ok, out.x, u), jnp.where(ok, out.y, jnp.zeros_like(y))
            return after, (ok, out.x, out.y, u, out.newton_iterations, out.fixed_point_iterations)

        return jax.lax.scan(step, (u0, jnp.zeros(3 * N)), forces)[1]

    return jax.tree.map(np.asarray, jax.jit(lambda data: jax.lax.map(one, data))(data))


def violation(data, out):
    """The largest violation of any law, relative to the velocities of the step, where success is claimed."""
    M, W, mu, e_N, forces, _ = (np.asarray(a) for a in data)
    ok, u1, y, u, *_ = out
    balance = np.einsum("sij,stj->sti", M, u1 - u) - forces - np.einsum("sij,stj->sti", W, y)
    before, after = (np.einsum("sji,stj->sti", W, v) for v in (u, u1))
    xi_N = after[..., :N] + e_N[:, None] * before[..., :N]
    P_N, P_F = y[..., :N], y[..., N:].reshape(*y.shape[:2], N, 2)
    xi_F = after[..., N:].reshape(*y.shape[:2], N, 2)
    radius, size = mu[:, None] * P_N, np.linalg.norm(P_F, axis=-1)
    slip = np.linalg.norm(xi_F, axis=-1)
    worst = [
        np.abs(balance).max(-1),
        np.maximum(-P_N, 0).max(-1),
        np.maximum(-xi_N, 0).max(-1),
        np.minimum(np.abs(P_N), np.abs(xi_N)).max(-1),
        np.maximum(size - radius, 0).max(-1),
        np.minimum(slip, np.linalg.norm(P_F * slip[..., None] + radius[..., None] * xi_F, axis=-1)).max(-1),
    ]
    scale = 1.0 + np.abs(y).max(-1) + np.abs(u).max(-1)
    return np.where(ok, np.max(worst, axis=0) / scale, 0.0)


class Linear(ss.System):
    """Such a system with gaps W_N^T q + g_0 and a force that turns."""

    mass: jax.Array
    directions: jax.Array
    mu: jax.Array
    e_N: jax.Array
    force: jax.Array
    start: jax.Array

    def M(self, t, q):
        return self.mass

    def h(self, t, q, u):
        return self.force[0] + jnp.cos(7.0 * t) * self.force[1] + jnp.sin(5.0 * t) * self.force[2]

    def g_N(self, t, q):
        return self.directions[:, :N].T @ q + self.start

    def gamma_F(self, t, q, u):
        return self.directions[:, N:].T @ u

    @property
    def laws(self):
        return tuple(ss.Contact(self.e_N[k], friction=ss.Coulomb(self.mu[k], dim=2)) for k in range(N))


def runs(method, data, steps, seed=0):
    """Number of steps that each run makes, and the smallest gap."""
    rng = np.random.default_rng(seed)
    M, W, mu, e_N, forces, u0 = data
    start = jnp.asarray(rng.uniform(0.0, 0.1, (len(u0), N)))

    def one(args):
        sol = ss.simulate(Linear(*args[:-1]), method, jnp.zeros(NU), args[-1], t1=0.05 * steps, dt=0.05)
        made = jnp.sum(jnp.isfinite(sol.q[1:, 0]))
        return made, jnp.nanmin(sol.g_N())

    args = (M, W, mu, e_N, 5.0 * forces[:, :3], start, u0)
    return jax.tree.map(np.asarray, jax.jit(lambda args: jax.lax.map(one, args))(args))


SOLVERS = {
    "Newton": ss.SemismoothNewton(),
    "fixed point": ss.FixedPoint(),
    "PSOR": ss.PSOR(),
    "PJOR": ss.PJOR(),
    **{
        f"Automatic, {name}": ss.Automatic(ways=k)
        for k, name in enumerate(
            ("Newton", "sticking", "from nothing", "proximal", "fixed point", "PSOR"), start=1
        )
    },
}


def main():
    systems, steps = (int(a) for a in (*sys.argv[1:], *("1500", "20")[len(sys.argv) - 1 :]))
    data = make(systems, steps)
    print(f"{systems} systems, {steps} steps each")
    for name, solver in SOLVERS.items():
        began = time.perf_counter()
        out = run(solver, data)
        failed, worst = int((~out[0]).sum()), violation(data, out).max()
        spent = f"{out[4].mean():.2f} Newton and {out[5].mean():.1f} other iterations a step"
        took = time.perf_counter() - began
        print(
            f"{name:22s} {failed:5d} not solved, largest violation {worst:.1e}, {spent}, {took:.0f} s",
            flush=True,
        )
    for name in ("moreau", "rattle", "radau2", "lobatto3", "trbdf2", "generalized-alpha"):
        began = time.perf_counter()
        made, gap = runs(by_name(name), data, steps)
        took = time.perf_counter() - began
        print(
            f"{name:22s} {(made < steps).sum():5d} runs end before their time, gap {gap.min():.1e}, "
            f"{took:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
