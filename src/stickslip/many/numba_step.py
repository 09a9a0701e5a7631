"""Moreau's midpoint rule for many balls, contact after contact, compiled by numba.

    x_m = x_n + dt/2 v_n,    A = {k : g_N^k(x_m) <= 0}  (and contacts at rest: see `search`)
    M (u_n+1 - u_n) = dt h + W_m P
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for k in A,    xi_N = g_N_dot(u_n+1) + e_N g_N_dot(u_n)
    x_n+1 = x_m + dt/2 v_n+1

The rule of `ss.MoreauMidpoint`; contact is enforced on velocity level, order 1. Balls have no gyroscopic
forces.
"""

import math
from typing import Any

import numpy as np

from .anderson import solve
from .compiled import compiled
from .contacts import ContactList, Outcome, State
from .newton import framed
from .search import index_by_first, touching
from .solvers import AndersonSOR
from .sweeps import certificate, moved


@compiled()
def drifted(x, rotation, rows, dt):
    """Half a step with constant velocity, in place; a rotation is the quaternion (w, x, y, z)."""
    for i in range(len(x)):
        angle = 0.0
        for d in range(3):
            x[i, d] += dt * rows[i, d]
            angle += rows[i, 3 + d] ** 2
        half = 0.5 * dt * math.sqrt(angle)
        c = math.cos(half)
        s = 0.5 * dt * (math.sin(half) / half if half > 1e-8 else 1.0)
        a, b, e = s * rows[i, 3], s * rows[i, 4], s * rows[i, 5]
        w, p, q, r = rotation[i]
        rotation[i, 0] = c * w - a * p - b * q - e * r
        rotation[i, 1] = c * p + a * w + b * r - e * q
        rotation[i, 2] = c * q - a * r + b * w + e * p
        rotation[i, 3] = c * r + a * q - b * p + e * w
        size = math.sqrt((rotation[i] ** 2).sum())
        for d in range(4):
            rotation[i, d] /= size


@compiled()
def law(k, a, b, n, gap, x, r, rows, of, laws, walls, out):
    """Levers, prox parameters, coefficients and chi of contact k: the velocity of a wall where it touches."""
    la, lb, chi, mu, rho_N, rho_T, mu_roll, mu_pivot, rho_R = out
    _, mus, rolls, pivots = laws
    places, v_wall, omega_wall = walls
    bodies, i, j = len(x), a[k], b[k]
    on_wall = j >= bodies
    la[k] = r[i] + gap[k] if on_wall else r[i] + 0.5 * gap[k]
    lb[k] = 0.0 if on_wall else r[j] + 0.5 * gap[k]
    for d in range(3):
        chi[k, d] = 0.0
    if on_wall:  # the velocity of the wall at the point of contact
        o, w = omega_wall[j - bodies], j - bodies
        cx = x[i, 0] + la[k] * n[k, 0] - places[w, 0]
        cy = x[i, 1] + la[k] * n[k, 1] - places[w, 1]
        cz = x[i, 2] + la[k] * n[k, 2] - places[w, 2]
        chi[k, 0] = v_wall[w, 0] + o[1] * cz - o[2] * cy
        chi[k, 1] = v_wall[w, 1] + o[2] * cx - o[0] * cz
        chi[k, 2] = v_wall[w, 2] + o[0] * cy - o[1] * cx
    one, two = of[i], of[j]
    masses, spins = rows[i, 6] + rows[j, 6], rows[i, 7] + rows[j, 7]
    rho_N[k], rho_R[k] = 1.0 / masses, 1.0 / spins
    rho_T[k] = 1.0 / (masses + la[k] ** 2 * rows[i, 7] + lb[k] ** 2 * rows[j, 7])
    mu[k], mu_roll[k], mu_pivot[k] = mus[one, two], rolls[one, two], pivots[one, two]


@compiled()
def rebound(k, a, b, n, chi, rows, of, e_N):
    """e_N g_N_dot of contact k."""
    i, j, before = a[k], b[k], 0.0
    for d in range(3):
        before += n[k, d] * (rows[j, d] - rows[i, d] + chi[k, d])
    return e_N[of[i], of[j]] * before


@compiled()
def started(count, a, b, n, source, X_before, half_before, X, mu, mu_roll, mu_pivot, turns):
    """Percussions of the step before, turned with the normal and within their cones:
    where the search starts.
    """
    for k in range(count):
        s = source[k]
        for d in range(3):
            X[k, d] = 0.0
            if turns:
                X[count + k, d] = 0.0
        if s < 0:
            continue
        P_N = 0.0
        for d in range(3):
            P_N += X_before[s, d] * n[k, d]
        P_N = max(P_N, 0.0)
        _inside(X_before[s], n[k], P_N, mu[k] * P_N, X[k])
        if turns:
            _turned(X_before[half_before + s], n[k], mu_roll[k] * P_N, mu_pivot[k] * P_N, X[count + k])


@compiled()
def _inside(old, n, P_N, radius, new):
    along, size = old[0] * n[0] + old[1] * n[1] + old[2] * n[2], 0.0
    for d in range(3):
        new[d] = old[d] - along * n[d]
        size += new[d] ** 2
    size = math.sqrt(size)
    s = radius / size if size > radius else 1.0
    for d in range(3):
        new[d] = P_N * n[d] + s * new[d]


@compiled()
def _turned(old, n, roll, pivot, new):
    along = old[0] * n[0] + old[1] * n[1] + old[2] * n[2]
    _inside(old, n, min(max(along, -pivot), pivot), roll, new)


@compiled()
def _rested(count, a, b, n, gap, chi, rho_N, P, rows, error, dt, extent, limit):
    """Up to which gap a contact counts as closed in the next step: as far as a gap rate of zero opens it,
    if it rests.

    A rate is zero if it is below the largest velocity error that the solution is certified to have, and
    round-off.
    """
    eps = 8.0 * np.finfo(np.float64).eps
    for k in range(count):
        i, j = a[k], b[k]
        rate, size = 0.0, 0.0
        for d in range(3):
            rate += n[k, d] * (rows[j, d] - rows[i, d] + chi[k, d])
            size += abs(P[k, d]) / rho_N[k] + abs(rows[j, d]) + abs(rows[i, d]) + abs(chi[k, d])
        zero = error + eps * size
        limit[k] = max(gap[k], 0.0) + dt * zero + eps * extent if abs(rate) <= zero else -np.inf


@compiled()
def pushed(count, a, b, n, la, P, tau, x, bodies, places, turns, force, moment):
    """What walls receive: percussions, and moments about the place of the wall."""
    force[:] = 0.0
    moment[:] = 0.0
    for k in range(count):
        w, i = b[k] - bodies, a[k]
        if w < 0:
            continue
        cx = x[i, 0] + la[k] * n[k, 0] - places[w, 0]
        cy = x[i, 1] + la[k] * n[k, 1] - places[w, 1]
        cz = x[i, 2] + la[k] * n[k, 2] - places[w, 2]
        for d in range(3):
            force[w, d] += P[k, d]
            if turns:
                moment[w, d] += tau[k, d]
        moment[w, 0] += cy * P[k, 2] - cz * P[k, 1]
        moment[w, 1] += cz * P[k, 0] - cx * P[k, 2]
        moment[w, 2] += cx * P[k, 1] - cy * P[k, 0]


@compiled()
def _built(count, a, b, n, gap, x, r, rows, of, laws, walls, out):
    chi, e_N = out[2], laws[0]
    for k in range(count):
        law(k, a, b, n, gap, x, r, rows, of, laws, walls, out)
        bounce = rebound(k, a, b, n, chi, rows, of, e_N)
        for d in range(3):
            chi[k, d] += bounce * n[k, d]


class OnProcessor:
    """What steps on the processor have in common: the system as arrays, the search, room to work in."""

    def __init__(self, system: Any, solver: AndersonSOR):
        self.r, self.of, self.gravity = system.radius, system.material, system.gravity
        self.turns, self.laws, self.walls, self.solver = (
            system.turns,
            tuple(system.laws),
            system.walls,
            solver,
        )
        self.margin = 1e-3 * float(system.radius.min())
        self.room = Room()

    def walls_at(self, places):
        return self.walls.kinds, places, self.walls.directions, self.walls.sizes

    def found(self, x, before: ContactList, places, margin, closed=0.0):
        """Closed contacts in lists that grow until all fit: (count, a, b, n, gap, source), capacity."""
        capacity = before.capacity
        order, start = index_by_first(before.a, len(before.a), len(x))
        while True:
            a, b = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            n, gap, source = np.empty((capacity, 3)), np.empty(capacity), np.empty(capacity, np.int64)
            count = touching(
                x, self.r, self.walls_at(places), margin, closed, (before.b, before.limit, order, start),
                a, b, n, gap, source,
            )  # fmt: skip
            if count <= capacity:
                return (count, *(part[:count] for part in (a, b, n, gap, source))), capacity
            capacity = max(2 * capacity, count)

    def listed(self, a, b, n, out):
        """A list of contacts for `sweeps`, and the factors of percussions to velocities."""
        la, lb, chi, mu, rho_N, rho_T, mu_roll, mu_pivot, rho_R = out
        w = 1.0 / rho_N
        if self.turns:
            w = np.concatenate([w, np.maximum(la, lb) / rho_R])
        return (a, b, n, la, lb, chi, mu, rho_N, rho_T, mu_roll, mu_pivot, rho_R, self.turns), w


def coefficients(count):
    """Room for what `law` says."""
    return tuple(np.empty((count, 3)) if d == 2 else np.empty(count) for d in range(9))


class NumbaStep(OnProcessor):
    """A step of Moreau's rule on the processor: the next state, and what the step is worth."""

    def __call__(self, state: State, t: float, dt: float, tolerance: float) -> tuple[State, Outcome]:
        x, rotation, rows = state.x.copy(), state.rotation.copy(), state.rows
        bodies = len(x)
        drifted(x, rotation, rows, 0.5 * dt)
        places, v_wall, omega_wall = self.walls.at(t + 0.5 * dt)
        before = state.contacts
        found, capacity = self.found(x, before, places, self.margin)
        count, a, b, n, gap, source = found
        out = coefficients(count)
        _built(count, a, b, n, gap, x, self.r, rows, self.of, self.laws, (places, v_wall, omega_wall), out)
        la, _, chi, mu, rho_N, _, mu_roll, mu_pivot, _ = out
        contacts, w = self.listed(a, b, n, out)
        X = np.empty(((1 + self.turns) * count, 3))
        started(count, a, b, n, source, before.X, len(before.a), X, mu, mu_roll, mu_pivot, self.turns)
        u_free = rows.copy()
        u_free[:bodies, :3] += dt * self.gravity
        u_free[bodies:, 3:6] = omega_wall  # which rolling and pivoting friction sees
        u = u_free.copy()
        residual, error, size, sweeps = swept(self.solver, contacts, u_free, u, X, w, tolerance, self.room)
        limit = np.empty(count)
        extent = float(np.abs(x).max() + self.r.max()) if bodies else 0.0
        _rested(count, a, b, n, gap, chi, rho_N, X, u, error, dt, extent, limit)
        force, moment = np.empty((len(places), 3)), np.empty((len(places), 3))
        pushed(count, a, b, n, la, X[:count], X[count:], x, bodies, places, self.turns, force, moment)
        drifted(x, rotation, u, 0.5 * dt)
        after = ContactList(a, b, n, gap, X, limit, capacity)
        outcome = Outcome(relative(residual, size), error, sweeps, count, force, moment)
        return State(state.step + 1, x, rotation, u, after), outcome


def relative(residual: float, size: float) -> float:
    return residual / size if size > 0.0 else residual


ROUGH = 1e-2  # relative residual above which there are plain sweeps


class Room:
    """Arrays to work in, which are kept from step to step: memory that is new costs as much as a sweep."""

    def __init__(self) -> None:
        self._numbers = np.empty(0)

    def of(self, shape: tuple[int, ...], depth: int) -> tuple[np.ndarray, ...]:
        """Two lists of ``depth`` arrays of the shape, and six more."""
        one = math.prod(shape)
        if len(self._numbers) < (2 * depth + 6) * one:
            self._numbers = np.empty(2 * (2 * depth + 6) * one)
        ends = one * np.cumsum([0, depth, depth, 1, 1, 1, 1, 1, 1])
        parts = [self._numbers[ends[k] : ends[k + 1]] for k in range(8)]
        return (
            *(part.reshape(depth, *shape) for part in parts[:2]),
            *(part.reshape(shape) for part in parts[2:]),
        )


def swept(solver: AndersonSOR, contacts, u_free, u, X, w, tolerance, room: Room):
    """Percussions X and velocities u in place: residual, largest velocity error,
    size of the free velocities, sweeps.

    The ladder: sweeps with Anderson's mixing, plain ones where these have left much, Newton's method for few
    contacts.
    """
    options = solver.max_sweeps, solver.relaxation, solver.depth, room.of(X.shape, max(solver.depth, 1))
    found = solve(contacts, u_free, u, X, w, tolerance, *options)
    residual, _, size, sweeps = found
    if residual > max(ROUGH, tolerance) * size:
        # Where the mixing has led astray, plain sweeps go on from the best that there was.
        residual, error, size, more = solve(
            contacts, u_free, u, X, w, max(ROUGH, tolerance), *options[:2], 0, options[3]
        )
        sweeps += more
        found = residual, error, size, sweeps
    if residual <= tolerance * size or not 0 < len(contacts[0]) <= solver.newton_below:
        return found
    problem = framed(contacts, u_free)
    y, _, _ = problem.problem.solve(problem.rows_of(X), 0.5 * tolerance * size)
    better, v, C = np.empty_like(X), u_free.copy(), len(contacts[0])
    a, b, n, _, _, _, mu, _, _, mu_roll, mu_pivot, _, turns = contacts
    # into their cones
    started(C, a, b, n, np.arange(C), problem.vectors_of(y), C, better, mu, mu_roll, mu_pivot, turns)
    moved(contacts, u_free, v, better[:C], better[C:])
    residual_n, error_n = certificate(contacts, v, better[:C], better[C:])
    if not residual_n < residual:
        return found
    X[:], u[:] = better, v
    return residual_n, error_n, size, sweeps
