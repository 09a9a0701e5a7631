"""RATTLE on the slider-crank as one would write it in an afternoon: the yardstick of `speed.py`.

Plain dense JAX: Newton on all 32 unknowns (q, u, R) of the first stage and on all 23 (u, S) of the second,
the full Jacobian by `jacfwd`, `jnp.linalg.solve` in every iteration, no reuse of anything. Same equations,
same tolerance.
"""

import jax
import jax.numpy as jnp

import stickslip as ss

ATOL = 1e-11
MAX_ITERATIONS = 20


def make(system, dt):
    n_g, n_N = 6, 4
    e_N = jnp.stack([law.e_N for law in system.laws])
    mu = jnp.stack([law.friction[0].mu for law in system.laws])
    g_dot = lambda t, q, u: jax.jvp(lambda q: system.g(t, q), (q,), (u,))[1]
    g_N_dot = lambda t, q, u: jax.jvp(lambda q: system.g_N(t, q), (q,), (u,))[1]

    def velocities(t, q, u):
        return jnp.concatenate([g_dot(t, q, u), g_N_dot(t, q, u), system.gamma_F(t, q, u)])

    def W(t, q):
        return jax.jacfwd(velocities, argnums=2)(t, q, jnp.zeros(9)).T

    def laws(psi_N, psi_F, P_N, P_F, r_N, r_F, closed):
        normal = closed & (r_N * psi_N - P_N <= 0)
        a = r_F * psi_F - P_F
        stick = jnp.abs(a) < mu * jnp.where(normal, jnp.maximum(P_N, 0), 0)
        slip = P_F + mu * jnp.where(normal, P_N, 0) * jnp.sign(a)
        return jnp.concatenate([jnp.where(normal, psi_N, P_N), jnp.where(stick, psi_F, slip)])

    def newton(F, x):
        def unfinished(state):
            _, f, k = state
            return (jnp.max(jnp.abs(f)) > ATOL) & (k < MAX_ITERATIONS)

        def step(state):
            x, f, k = state
            x = x - jnp.linalg.solve(jax.jacfwd(F)(x), f)
            return x, F(x), k + 1

        return jax.lax.while_loop(unfinished, step, (x, F(x), 0))

    def step(state, k):
        q, u, R, S = state
        t, t1 = k * dt, (k + 1) * dt
        M, Wn = system.M(t, q), W(t, q)
        G = jnp.diagonal(Wn.T @ jnp.linalg.solve(M, Wn))
        r_N, r_F = 1 / G[n_g : n_g + n_N], 1 / G[n_g + n_N :]

        def first(x):
            q1, um, R = x[:9], x[9:18], x[18:]
            motion = [q1 - q - dt * um, M @ (um - u) - dt / 2 * system.h(t, q, um) - Wn @ R]
            contact = laws(
                system.g_N(t1, q1),
                system.gamma_F(t1, q1, um),
                R[n_g : n_g + n_N],
                R[n_g + n_N :],
                r_N / dt,
                r_F,
                True,
            )
            return jnp.concatenate([*motion, system.g(t1, q1), contact])

        x, _, k1 = newton(first, jnp.concatenate([q + dt * u, u, R]))
        q1, um, R = x[:9], x[9:18], x[18:]
        M1, W1 = system.M(t1, q1), W(t1, q1)
        closed = r_N / dt * system.g_N(t1, q1) - R[n_g : n_g + n_N] <= 0
        minus = e_N * g_N_dot(t, q, u)

        def second(x):
            u1, S = x[:9], x[9:]
            P = R + S
            motion = M1 @ (u1 - um) - dt / 2 * system.h(t1, q1, um) - W1 @ S
            contact = laws(
                g_N_dot(t1, q1, u1) + minus,
                system.gamma_F(t1, q1, u1),
                P[n_g : n_g + n_N],
                P[n_g + n_N :],
                r_N,
                r_F,
                closed,
            )
            return jnp.concatenate([motion, g_dot(t1, q1, u1), contact])

        x, _, k2 = newton(second, jnp.concatenate([um, S]))
        u1, S = x[:9], x[9:]
        return (q1, u1, R, S), (q1, u1, R + S, k1, k2)

    @jax.jit
    def run(q0, u0, n):
        return jax.lax.scan(step, (q0, u0, jnp.zeros(14), jnp.zeros(14)), jnp.arange(1000))

    return run


if __name__ == "__main__":
    b = ss.benchmarks.load("slider-crank")
    _, (q, *_rest) = make(b.system, b.dt)(b.q0, b.u0, 1000)
    print(q[-1])
