"""Projected Gauss-Seidel sweeps over a contact problem with its matrix,
three rows a contact, the normal first; by numba.
"""

import math

from .compiled import compiled


@compiled()
def _row(start, columns, entries, y, i):
    total = 0.0
    for s in range(start[i], start[i + 1]):
        total += entries[s] * y[columns[s]]
    return total


@compiled()
def swept(start, columns, entries, c, rho, mu, y, sweeps):
    """P <- prox(P - rho gamma), contact after contact; the ball has the new P_N. Another y."""
    y = y.copy()
    for _ in range(sweeps):
        for k in range(len(mu)):
            i = 3 * k
            y[i] = max(0.0, y[i] - rho[i] * (_row(start, columns, entries, y, i) + c[i]))
            g_1 = _row(start, columns, entries, y, i + 1) + c[i + 1]
            g_2 = _row(start, columns, entries, y, i + 2) + c[i + 2]
            p, q = y[i + 1] - rho[i + 1] * g_1, y[i + 2] - rho[i + 2] * g_2
            size, radius = math.sqrt(p * p + q * q), mu[k] * y[i]
            if size > radius:
                p, q = p * radius / size, q * radius / size
            y[i + 1], y[i + 2] = p, q
    return y
