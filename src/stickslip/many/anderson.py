"""Anderson's acceleration of sweeps, safeguarded; compiled by numba.

A sweep is a map P -> S(P) whose fixed points are the solutions. With f = S(P) - P, in velocities, and differences of the
last iterates (five unless said otherwise),

    P_next = S(P) - sum_j c_j dS_j,    c = argmin |f - sum_j c_j dF_j|

D. G. Anderson, J. ACM 12 (1965), doi:10.1145/321296.321305. Near a solution this takes a third of the sweeps. While a pile
collapses there is nothing near: an iterate that is worse than ``TOLERATED`` times the best one is dropped, the search goes
on from the best one without memory, and after ``PATIENCE`` of that in plain sweeps.
"""

import math

import numpy as np

from .compiled import compiled, summed
from .sweeps import certificate, free_size, moved, sweep

TOLERATED, PATIENCE = 2.0, 4
LOOKED = 20  # sweeps after which the certificate is asked at the latest
TINY = 1e-14  # of the trace: below it differences depend on each other


@summed()
def _difference(x, y, w, out):
    """out = w (x - y) row by row, and its norm."""
    total = 0.0
    for i in range(len(x)):
        a, b, c = w[i] * (x[i, 0] - y[i, 0]), w[i] * (x[i, 1] - y[i, 1]), w[i] * (x[i, 2] - y[i, 2])
        out[i, 0], out[i, 1], out[i, 2] = a, b, c
        total += a * a + b * b + c * c
    return math.sqrt(total)


@summed()
def _remember(f, f_before, X, X_before, dF, dS):
    """dF = f - f_before, dS = X - X_before; then those of before are those of now."""
    f, f_before, X, X_before, dF, dS = f.ravel(), f_before.ravel(), X.ravel(), X_before.ravel(), dF.ravel(), dS.ravel()
    for i in range(len(f)):
        dF[i], dS[i] = f[i] - f_before[i], X[i] - X_before[i]
        f_before[i], X_before[i] = f[i], X[i]


@summed()
def _dot(x, y):
    x, y, total = x.ravel(), y.ravel(), 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@summed()
def _subtract(X, dS, c):
    """X -= sum_j c_j dS_j."""
    X = X.ravel()
    for j in range(len(c)):
        d, s = dS[j].ravel(), c[j]
        for i in range(len(X)):
            X[i] -= s * d[i]


@compiled()
def _coefficients(gram, right, m):
    """Solves gram c = right by Cholesky's factors; False if differences depend on each other."""
    L, c = np.zeros((m, m)), np.zeros(m)
    trace = 0.0
    for i in range(m):
        trace = max(trace, gram[i, i])
    for i in range(m):
        for j in range(i + 1):
            s = gram[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if not s > TINY * trace:
                    return False, c
                L[i, i] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    for i in range(m):
        s = right[i]
        for k in range(i):
            s -= L[i, k] * c[k]
        c[i] = s / L[i, i]
    for i in range(m - 1, -1, -1):
        s = c[i]
        for k in range(i + 1, m):
            s -= L[k, i] * c[k]
        c[i] = s / L[i, i]
    return True, c


@compiled()
def solve(contacts, u_free, u, X, w, tolerance, max_sweeps, relaxation, depth, memory):
    """Percussions (and torques) in place, u with them: residual, largest velocity error, its reference, sweeps.

    ``X``: percussions, below them torques; ``w``: their factors to velocities. ``memory``: room for differences.
    """
    C = len(contacts[0])
    P, tau = X[:C], X[C:]
    size = free_size(contacts, u_free)
    target = tolerance * size
    moved(contacts, u_free, u, P, tau)
    residual, largest = certificate(contacts, u, P, tau)
    if residual <= target or C == 0:
        return residual, largest, size, 0
    dF, dS, f, f_before, S_before, start, best, kept = memory
    gram, right = np.zeros((depth, depth)), np.zeros(depth)
    columns, at, restarts = 0, 0, 0
    smallest, trigger, fresh = np.inf, target, True
    best[:] = X
    best_residual, best_largest = residual, largest
    kept[:] = X
    for count in range(1, max_sweeps + 1):
        start[:] = X
        sweep(contacts, u, P, tau, relaxation)
        norm = _difference(X, start, w, f)
        if norm <= trigger or count % LOOKED == 0 or count == max_sweeps:
            # Certified are the percussions, with velocities made of them alone.
            moved(contacts, u_free, u, P, tau)
            residual, largest = certificate(contacts, u, P, tau)
            if residual < best_residual:
                best_residual, best_largest = residual, largest
                best[:] = X
            if residual <= target:
                return residual, largest, size, count
            trigger = 0.9 * norm * min(target / residual, 1.0)
        if norm > TOLERATED * smallest and depth > 0 and restarts < PATIENCE:
            restarts += 1
            X[:] = kept
            moved(contacts, u_free, u, P, tau)
            columns, at, fresh = 0, 0, True
            continue
        if norm < smallest:
            smallest = norm
            kept[:] = X
        if depth == 0 or restarts >= PATIENCE:
            continue
        if not fresh:
            _remember(f, f_before, X, S_before, dF[at], dS[at])
            columns = min(columns + 1, depth)
            for j in range(columns):
                gram[at, j] = gram[j, at] = _dot(dF[at], dF[j])
            at = (at + 1) % depth
        else:
            f_before[:], S_before[:] = f, X
        fresh = False
        if columns:
            for j in range(columns):
                right[j] = _dot(dF[j], f)
            good, c = _coefficients(gram, right, columns)
            if not good:
                columns, at, fresh = 0, 0, True
                continue
            _subtract(X, dS, c[:columns])
            moved(contacts, u_free, u, P, tau)
    # The last sweep's percussions, or those of the smallest change, whichever the certificate likes best.
    X[:] = kept
    moved(contacts, u_free, u, P, tau)
    residual, largest = certificate(contacts, u, P, tau)
    if best_residual < residual:
        X[:] = best
        moved(contacts, u_free, u, P, tau)
        residual, largest = best_residual, best_largest
    return residual, largest, size, max_sweeps
