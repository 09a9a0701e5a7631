"""Anderson's acceleration of sweeps, safeguarded; compiled by numba.

A sweep is a map P -> S(P) whose fixed points are the solutions. With f = S(P) - P, in velocities, and
differences of the last iterates (five unless said otherwise),

    P_next = S(P) - sum_j c_j dS_j,    c = argmin |f - sum_j c_j dF_j|

D. G. Anderson, J. ACM 12 (1965), doi:10.1145/321296.321305. Near a solution this takes a third of the sweeps.
While a pile collapses there is nothing near: an iterate that is worse than ``TOLERATED`` times the best one
is dropped, the search goes on from the best one without memory, and after ``PATIENCE`` of that in plain
sweeps.
"""

import math

import numpy as np

from .compiled import compiled, summed
from .sweeps import certificate, free_size, moved, sweep

TOLERATED, PATIENCE = 2.0, 4
# sweeps after which the certificate is asked at the latest; where it fell by half in them, there are more,
LOOKED = 20
LONGER = 3  # up to so many times as many as were asked for
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
    f, f_before, X, X_before = f.ravel(), f_before.ravel(), X.ravel(), X_before.ravel()
    dF, dS = dF.ravel(), dS.ravel()
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
def _certified(contacts, u_free, u, X):
    """Velocities from percussions alone, and what they are worth."""
    C = len(contacts[0])
    moved(contacts, u_free, u, X[:C], X[C:])
    return certificate(contacts, u, X[:C], X[C:])


@compiled()
def _mixed(X, f, memory, gram, columns, at, fresh):
    """X - sum_j c_j dS_j in place, after remembering the last difference: how many there are,
    where the next one goes.

    None are left if they depend on each other.
    """
    dF, dS, f_before, X_before = memory
    depth = len(dF)
    if fresh:
        f_before[:], X_before[:] = f, X
        return 0, 0
    _remember(f, f_before, X, X_before, dF[at], dS[at])
    columns = min(columns + 1, depth)
    right = np.empty(columns)
    for j in range(columns):
        gram[at, j] = gram[j, at] = _dot(dF[at], dF[j])
        right[j] = _dot(dF[j], f)
    good, c = _coefficients(gram, right, columns)
    if not good:
        return -1, 0
    _subtract(X, dS, c)
    return columns, (at + 1) % depth


@compiled()
def solve(contacts, u_free, u, X, w, tolerance, max_sweeps, relaxation, depth, room):
    """Percussions (and torques) in place, u with them: residual, largest velocity error,
    its reference, sweeps.

    ``X``: percussions, below them torques; ``w``: their factors to velocities; ``room``: arrays to work in.
    """
    C, size = len(contacts[0]), free_size(contacts, u_free)
    target = tolerance * size
    residual, largest = _certified(contacts, u_free, u, X)
    if residual <= target or C == 0:
        return residual, largest, size, 0
    dF, dS, f, f_before, X_before, start, best, kept = room
    best[:], kept[:], gram = X, X, np.zeros((max(depth, 1), max(depth, 1)))
    best_residual = residual
    columns, at, restarts, fresh, smallest, trigger = 0, 0, 0, True, np.inf, target
    allowed, count, before = max_sweeps, 0, residual
    while count < allowed:
        count += 1
        start[:] = X
        sweep(contacts, u, X[:C], X[C:], relaxation)
        norm = _difference(X, start, w, f)
        if norm <= trigger or count % LOOKED == 0 or count == allowed:
            residual, largest = _certified(contacts, u_free, u, X)
            if residual < best_residual:
                best_residual, best[:] = residual, X
            if residual <= target:
                return residual, largest, size, count
            trigger = 0.9 * norm * min(target / residual, 1.0)
            if count == allowed and best_residual < before / 2.0:  # it converges: some more
                allowed = min(allowed + LOOKED, LONGER * max_sweeps)
            if count % LOOKED == 0:
                before = best_residual
        if depth == 0 or restarts >= PATIENCE:
            continue
        if norm > TOLERATED * smallest:
            restarts, fresh, X[:] = restarts + 1, True, kept
            moved(contacts, u_free, u, X[:C], X[C:])
            continue
        if norm < smallest:
            smallest, kept[:] = norm, X
        columns, at = _mixed(X, f, (dF, dS, f_before, X_before), gram, columns, at, fresh)
        fresh = columns < 0
        if columns > 0:
            moved(contacts, u_free, u, X[:C], X[C:])
    # Percussions of the smallest change, or those that the certificate liked best.
    X[:] = kept
    residual, largest = _certified(contacts, u_free, u, X)
    if best_residual < residual:
        X[:] = best
        residual, largest = _certified(contacts, u_free, u, X)
    return residual, largest, size, count
