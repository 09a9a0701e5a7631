"""One contact after the other: a projected Gauss-Seidel sweep, and the certificate of what it found;
compiled by numba.

A contact k of the balls a and b has one point, common to both, the normal n from a to b, and a percussion
P = P_N n + P_F, which acts on b, and -P on a. Its velocity is

    gamma = v_b - v_a - (l_a omega_a + l_b omega_b) x n + chi,

with l the distances of the point from the centres and chi the velocity of a wall (with e_N gamma_N^- n where
it counts). The blocks on the diagonal of G = W^T M^-1 W are multiples of one, G_N along the normal and G_T
across it: balls need no tangents. Rolling and pivoting friction add a torque tau on b and -tau on a, against
the relative spin omega_b - omega_a.

The law is  P_N = max(0, P_N - rho_N xi_N),  P_F = prox_C(P_F - rho_T gamma_F)  with the ball C of radius mu
P_N, S0 (8), (10); prox parameters are 1/G_N and 1/G_T, so that nothing depends on units. A body is a row: v,
omega, 1/m, 1/theta.
"""

import math

import numpy as np

from .compiled import compiled

V, OMEGA, MASS, INERTIA = 0, 3, 6, 7  # columns of a row of a body


@compiled()
def velocity(u, i, j, n, la, lb, chi):
    """gamma of a contact of bodies i and j."""
    sx = la * u[i, 3] + lb * u[j, 3]
    sy = la * u[i, 4] + lb * u[j, 4]
    sz = la * u[i, 5] + lb * u[j, 5]
    return (
        u[j, 0] - u[i, 0] - (sy * n[2] - sz * n[1]) + chi[0],
        u[j, 1] - u[i, 1] - (sz * n[0] - sx * n[2]) + chi[1],
        u[j, 2] - u[i, 2] - (sx * n[1] - sy * n[0]) + chi[2],
    )


@compiled()
def push(u, i, j, n, la, lb, dx, dy, dz):
    """u += M^-1 W dP of one contact."""
    for body, sign in ((i, -1.0), (j, 1.0)):
        w = sign * u[body, 6]
        u[body, 0] += w * dx
        u[body, 1] += w * dy
        u[body, 2] += w * dz
    tx, ty, tz = n[1] * dz - n[2] * dy, n[2] * dx - n[0] * dz, n[0] * dy - n[1] * dx
    for body, lever in ((i, la), (j, lb)):
        w = lever * u[body, 7]
        u[body, 3] -= w * tx
        u[body, 4] -= w * ty
        u[body, 5] -= w * tz


@compiled()
def twist(u, i, j, dx, dy, dz):
    """u += M^-1 W dtau of one contact."""
    for body, sign in ((i, -1.0), (j, 1.0)):
        w = sign * u[body, 7]
        u[body, 3] += w * dx
        u[body, 4] += w * dy
        u[body, 5] += w * dz


@compiled()
def projected(P, k, n, g, step_N, step_T, mu):
    """P_N and P_F of prox(P - rho gamma), the ball having the new P_N."""
    g_N = g[0] * n[0] + g[1] * n[1] + g[2] * n[2]
    P_N = P[k, 0] * n[0] + P[k, 1] * n[1] + P[k, 2] * n[2]
    new = max(0.0, P_N - step_N * g_N)
    c = step_T * g_N - P_N  # leaves the part across the normal
    tx = P[k, 0] - step_T * g[0] + c * n[0]
    ty = P[k, 1] - step_T * g[1] + c * n[1]
    tz = P[k, 2] - step_T * g[2] + c * n[2]
    size, radius = math.sqrt(tx * tx + ty * ty + tz * tz), mu * new
    if size > radius:
        s = radius / size
        tx, ty, tz = s * tx, s * ty, s * tz
    return new, tx, ty, tz


@compiled()
def turned(tau, k, n, spin, step, mu_roll, mu_pivot, P_N):
    """prox(tau - rho spin): along the normal within mu_pivot P_N, across it within mu_roll P_N."""
    x, y, z = tau[k, 0] - step * spin[0], tau[k, 1] - step * spin[1], tau[k, 2] - step * spin[2]
    along = x * n[0] + y * n[1] + z * n[2]
    x, y, z = x - along * n[0], y - along * n[1], z - along * n[2]
    size, radius, most = math.sqrt(x * x + y * y + z * z), mu_roll * P_N, mu_pivot * P_N
    if size > radius:
        s = radius / size
        x, y, z = s * x, s * y, s * z
    along = min(max(along, -most), most)
    return x + along * n[0], y + along * n[1], z + along * n[2]


@compiled()
def sweep(contacts, u, P, tau, relaxation):
    """One projected sweep, in place; P <- prox(P - relaxation rho gamma), contact after contact."""
    a, b, normal, la, lb, chi, mu, rho_N, rho_T, mu_roll, mu_pivot, rho_R, turns = contacts
    for k in range(len(a)):
        i, j, n = a[k], b[k], normal[k]
        g = velocity(u, i, j, n, la[k], lb[k], chi[k])
        new, tx, ty, tz = projected(P, k, n, g, relaxation * rho_N[k], relaxation * rho_T[k], mu[k])
        x, y, z = new * n[0] + tx, new * n[1] + ty, new * n[2] + tz
        push(u, i, j, n, la[k], lb[k], x - P[k, 0], y - P[k, 1], z - P[k, 2])
        P[k, 0], P[k, 1], P[k, 2] = x, y, z
        if turns:
            spin = (u[j, 3] - u[i, 3], u[j, 4] - u[i, 4], u[j, 5] - u[i, 5])
            x, y, z = turned(tau, k, n, spin, relaxation * rho_R[k], mu_roll[k], mu_pivot[k], new)
            twist(u, i, j, x - tau[k, 0], y - tau[k, 1], z - tau[k, 2])
            tau[k, 0], tau[k, 1], tau[k, 2] = x, y, z


@compiled()
def moved(contacts, u_free, u, P, tau):
    """u = u_free + M^-1 W P, from nothing but the percussions."""
    a, b, normal, la, lb, _, _, _, _, _, _, _, turns = contacts
    u[:] = u_free
    for k in range(len(a)):
        push(u, a[k], b[k], normal[k], la[k], lb[k], P[k, 0], P[k, 1], P[k, 2])
        if turns:
            twist(u, a[k], b[k], tau[k, 0], tau[k, 1], tau[k, 2])


@compiled()
def certificate(contacts, u, P, tau):
    """Natural map of the law at (P, u) in velocities: its 2-norm, and its largest entry by contact,
    both in m/s.

    F = (P - prox(P - rho gamma)) / rho; of a torque times the mean distance from the centres, which makes it
    m/s.
    """
    a, b, normal, la, lb, chi, mu, rho_N, rho_T, mu_roll, mu_pivot, rho_R, turns = contacts
    total, largest = 0.0, 0.0
    for k in range(len(a)):
        i, j, n = a[k], b[k], normal[k]
        g = velocity(u, i, j, n, la[k], lb[k], chi[k])
        P_N = P[k, 0] * n[0] + P[k, 1] * n[1] + P[k, 2] * n[2]
        # The ball has the radius mu P_N of the percussion as it is: what the law says of P itself.
        new, _, _, _ = projected(P, k, n, g, rho_N[k], rho_T[k], 0.0)
        x, y, z = across(P, k, n, g, P_N, rho_T[k], mu[k])
        f_N = (P_N - new) / rho_N[k]
        fx = (P[k, 0] - P_N * n[0] - x) / rho_T[k]
        fy = (P[k, 1] - P_N * n[1] - y) / rho_T[k]
        fz = (P[k, 2] - P_N * n[2] - z) / rho_T[k]
        here = f_N * f_N + fx * fx + fy * fy + fz * fz
        if turns:
            spin = (u[j, 3] - u[i, 3], u[j, 4] - u[i, 4], u[j, 5] - u[i, 5])
            x, y, z = turned(tau, k, n, spin, rho_R[k], mu_roll[k], mu_pivot[k], max(P_N, 0.0))
            arm = max(la[k], lb[k]) / rho_R[k]
            here += arm * arm * ((tau[k, 0] - x) ** 2 + (tau[k, 1] - y) ** 2 + (tau[k, 2] - z) ** 2)
        total += here
        largest = max(largest, here)
        if not here < np.inf:
            return np.inf, np.inf
    return math.sqrt(total), math.sqrt(largest)


@compiled()
def across(P, k, n, g, P_N, step, mu):
    """prox of the part across the normal, in the ball of radius mu P_N."""
    g_N = g[0] * n[0] + g[1] * n[1] + g[2] * n[2]
    c = step * g_N - P_N
    x = P[k, 0] - step * g[0] + c * n[0]
    y = P[k, 1] - step * g[1] + c * n[1]
    z = P[k, 2] - step * g[2] + c * n[2]
    size, radius = math.sqrt(x * x + y * y + z * z), mu * max(P_N, 0.0)
    if size > radius:
        s = radius / size
        return s * x, s * y, s * z
    return x, y, z


@compiled()
def free_size(contacts, u_free):
    """2-norm of W^T u_free with the motion of walls: what a relative residual is relative to, in m/s."""
    a, b, normal, la, lb, chi, _, _, _, _, _, _, _ = contacts
    total = 0.0
    for k in range(len(a)):
        g = velocity(u_free, a[k], b[k], normal[k], la[k], lb[k], chi[k])
        total += g[0] * g[0] + g[1] * g[1] + g[2] * g[2]
    return math.sqrt(total)
