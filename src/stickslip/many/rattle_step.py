"""Nonsmooth RATTLE for many balls: contact on position level, then on velocity level; compiled by numba.

    u_n+1/2 = u_n + dt/2 g + M^-1 W_n R                                                             (25a)
    x_n+1 = x_n + dt u_n+1/2                                                                        (27)
    g_N(x_n+1) in N(-R_N),  gamma_F(x_n+1, u_n+1/2) in N_C(R_N)(-R_F)                               (33), (36)

    u_n+1 = u_n+1/2 + dt/2 g + M^-1 W_n+1 S,    P = R + S                                           (25b)
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for active contacts, P = 0 otherwise                  (32), (34)
    xi_N = g_N_dot(x_n+1, u_n+1) + e_N g_N_dot(x_n, u_n),    xi_F = gamma_F(x_n+1, u_n+1)           (30), (35)

R = Delta P^1st and S = Delta P^2nd of J. Breuling, G. Capobianco, S. R. Eugster, R. I. Leine, NAHS 52 (2024),
doi:10.1016/j.nahs.2024.101469 (S0); the scheme of `ss.Rattle(friction="printed")`. Gravity is constant and balls have no
gyroscopic forces, so that (25a) is explicit and gaps do not depend on rotations.

The position stage is one for the sweeps of Moreau's rule, in velocities: with a motion u^l that is known, x^l = x_n + dt u^l,

    gamma = W_n^T u + chi^l,    chi^l = (g_N(x^l) / dt, gamma_F(x^l, u^l)) - W_n^T u^l,

which for u = u^l is (33), (36) as it stands. The matrix W_n^T M^-1 W_n stays, gaps are linearised anew: an error shrinks by
about the angle by which a normal turns in the step. The certificate of the stage is taken at u^l = u: of true gaps.

Which contacts may close follows from the motion itself: those that overlap at the end of free motion, and as long as the
motion found closes others, these too.
"""

from typing import Any, NamedTuple

import numpy as np

from .compiled import compiled
from .contacts import ContactList, Outcome, State
from .methods import Rattle
from .numba_step import OnProcessor, coefficients, drifted, law, pushed, rebound, relative, started, swept
from .search import gap_of
from .solvers import AndersonSOR
from .sweeps import certificate, free_size, moved, velocity

ROUNDS = 20  # of contacts that the motion closes; if there are more still, the certificate shows them

SHARED = 2.0  # a residual this many times that of the linearised gaps is still that of the solver


@compiled()
def geometry(a, b, x, r, walls, n, gap):
    """Normals and gaps of listed contacts."""
    for k in range(len(a)):
        gap[k] = gap_of(a[k], b[k], x, r, walls, n[k])


@compiled()
def laws_at(a, b, n, gap, x, r, rows, of, laws, motion, out, bounce):
    """Levers and coefficients, chi of walls, and e_N g_N_dot at the beginning of the step."""
    for k in range(len(a)):
        law(k, a, b, n, gap, x, r, rows, of, laws, motion, out)
        bounce[k] = rebound(k, a, b, n, out[2], rows, of, laws)


@compiled()
def carried(x, y, z, n, m):
    """A vector turned as the normal n has to be turned to m, on the shortest way."""
    c = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    along = x * n[0] + y * n[1] + z * n[2]
    both = along + x * m[0] + y * m[1] + z * m[2]
    s = both / (1.0 + c) if 1.0 + c > 1e-12 else along
    return (
        x - s * (n[0] + m[0]) + 2.0 * along * m[0],
        y - s * (n[1] + m[1]) + 2.0 * along * m[1],
        z - s * (n[2] + m[2]) + 2.0 * along * m[2],
    )


@compiled()
def linearised(a, b, n, la, lb, u, x1, r, of, laws, walls, motion, dt, n1, gap1, out1, chi):
    """chi of the position stage at the motion u that ends at x1; normals, gaps and coefficients there."""
    for k in range(len(a)):
        i, j = a[k], b[k]
        gap1[k] = gap_of(i, j, x1, r, walls, n1[k])
        law(k, a, b, n1, gap1, x1, r, u, of, laws, motion, out1)
        g1 = velocity(u, i, j, n1[k], out1[0][k], out1[1][k], out1[2][k])
        along = g1[0] * n1[k, 0] + g1[1] * n1[k, 1] + g1[2] * n1[k, 2]
        slip = carried(
            g1[0] - along * n1[k, 0], g1[1] - along * n1[k, 1], g1[2] - along * n1[k, 2], n1[k], n[k]
        )  # fmt: skip
        for d in range(3):
            chi[k, d] = 0.0
        g0 = velocity(u, i, j, n[k], la[k], lb[k], chi[k])
        for d in range(3):
            chi[k, d] = gap1[k] / dt * n[k, d] + slip[d] - g0[d]


@compiled()
def turned_on(X, n, n1, out):
    """Percussions, and torques below them, carried from normals n to n1."""
    count = len(n)
    for s in range(len(X)):
        k = s % count
        out[s, 0], out[s, 1], out[s, 2] = carried(X[s, 0], X[s, 1], X[s, 2], n[k], n1[k])


class Positions(NamedTuple):
    """What the position stage found."""

    a: np.ndarray
    b: np.ndarray
    n: np.ndarray  # at x_n
    n1: np.ndarray  # at x_n+1
    gap: np.ndarray  # at x_n+1
    source: np.ndarray  # where a contact was in the list of the step before, or -1
    la: np.ndarray  # at x_n
    out: tuple[np.ndarray, ...]  # coefficients at x_n+1
    bounce: np.ndarray  # e_N g_N_dot(x_n, u_n)
    R: np.ndarray  # and torques below
    u: np.ndarray  # u_n+1/2
    capacity: int
    residual: float
    error: float
    size: float
    sweeps: int


class OnPositionLevel(OnProcessor):
    """What steps have in common whose gaps are those at the end of the step."""

    linearisations = 1  # of gaps
    share = 1.0  # of the percussions of a step that belong to its motion: where the search starts

    def linearise(self, a, b, n, la, lb, chi, u, x1, end, dt, n1, gap1, out1) -> None:
        """Normals n1, gaps and coefficients at x1, where the motion u ends; and chi, if that is to be linearised there."""
        raise NotImplementedError

    def positions(self, state: State, begin, end, dt, u_free, tolerance) -> Positions:
        """The motion from x_n to the end of the step, with all contacts that it closes."""
        x, rows, bodies = state.x, state.rows, len(state.x)
        walls, before = self.walls_at(begin[0]), state.contacts
        found, capacity = self.found(x + dt * u_free[:bodies, :3], before, end[0], self.margin, self.margin)
        count, a, b, _, _, source = found
        source = origin = source.copy()
        X_before, half, sweeps = self.share * before.X, len(before.a), 0
        for again in range(ROUNDS + 1):
            n, gap, n1, gap1 = np.empty((count, 3)), np.empty(count), np.empty((count, 3)), np.empty(count)
            out, out1, bounce = coefficients(count), coefficients(count), np.empty(count)
            geometry(a, b, x, self.r, walls, n, gap)
            laws_at(a, b, n, gap, x, self.r, rows, self.of, self.laws, begin, out, bounce)
            la, lb, chi, mu, _, _, mu_roll, mu_pivot, _ = out
            chi += (gap / dt)[:, None] * n  # gaps linearised at x_n
            contacts, w = self.listed(a, b, n, out)
            R = np.empty(((1 + self.turns) * count, 3))
            started(count, a, b, n, source, X_before, half, R, mu, mu_roll, mu_pivot, self.turns)
            u = u_free.copy()
            moved(contacts, u_free, u, R[:count], R[count:])

            left, grown = 0.0, False
            for solves in range(self.linearisations + 1):
                x1 = x + dt * u[:bodies, :3]
                self.linearise(a, b, n, la, lb, chi, u, x1, end, dt, n1, gap1, out1)
                residual, error = certificate(contacts, u, R[:count], R[count:])
                size = free_size(contacts, u_free)
                # No more where the true gaps are solved, or where it is the solver that left most of what is missing.
                last = solves == self.linearisations or residual <= max(tolerance * size, SHARED * left)
                if again == ROUNDS:
                    break
                if last or solves == 1:  # early too: what closes changes the rest
                    every = ContactList(a, b, n, gap1, R, np.full(count, np.inf), capacity)
                    margin = self.margin + max(gap1.max(initial=0.0), 0.0)
                    found, capacity = self.found(x1, every, end[0], margin)
                    grown = found[0] > count
                if last or grown:
                    break
                residual, _, size, more = swept(self.solver, contacts, u_free, u, R, w, tolerance, self.room)
                sweeps += more
                left = residual if residual > tolerance * size else 0.0
            if not grown:
                break
            count, a, b, _, _, source = found
            origin, X_before, half = np.where(source >= 0, origin[source], -1), R, len(R) // (1 + self.turns)
        return Positions(
            a, b, n, n1, gap1, origin, la, out1, bounce, R, u, capacity, residual, error, size, sweeps
        )  # fmt: skip

    def active(self, first: Positions, x1, dt):
        """Contacts {r g_N - R_N <= 0} (S1 (67)): gaps are known up to the certified error of the stage, and round-off."""
        zero = dt * first.error + 8.0 * np.finfo(float).eps * float(np.abs(x1).max() + self.r.max())
        count = len(first.a)
        active = np.flatnonzero(((first.R[:count] * first.n).sum(1) > 0.0) | (first.gap <= zero))
        return active, np.concatenate([active, active + count]) if self.turns else active

    def on_walls(self, n, la, a, b, P, x, places):
        """Percussions on walls and their moments, of contacts at x."""
        force, moment = np.empty((len(places), 3)), np.empty((len(places), 3))
        count = len(a)
        pushed(count, a, b, n, la, P[:count], P[count:], x, len(x), places, self.turns, force, moment)
        return force, moment


class RattleStep(OnPositionLevel):
    """A step of RATTLE on the processor; ``__call__`` gives the next state and what the step is worth."""

    share = 0.5

    def __init__(self, system: Any, solver: AndersonSOR, method: Rattle):
        super().__init__(system, solver)
        self.linearisations = method.linearisations

    def __call__(self, state: State, t: float, dt: float, tolerance: float) -> tuple[State, Outcome]:
        x, rotation, bodies, before = state.x.copy(), state.rotation.copy(), len(state.x), state.contacts
        begin, end = self.walls.at(t), self.walls.at(t + dt)
        kick = np.zeros_like(state.rows)
        kick[:bodies, :3] = 0.5 * dt * self.gravity
        first = self.positions(state, begin, end, dt, state.rows + kick, tolerance)
        walls_n = self.on_walls(first.n, first.la, first.a, first.b, first.R, x, begin[0])
        drifted(x, rotation, first.u, dt)  # (27)
        active, both = self.active(first, x, dt)
        count = len(active)
        a, b, n, gap, source, bounce = (
            part[active] for part in (first.a, first.b, first.n1, first.gap, first.source, first.bounce)
        )
        out = tuple(part[active] for part in first.out)
        R = np.empty((len(both), 3))
        turned_on(first.R[both], first.n[active], n, R)
        la, _, chi, mu, _, _, mu_roll, mu_pivot, _ = out
        chi += bounce[:, None] * n  # (30)
        contacts, w = self.listed(a, b, n, out)
        # (25b) with S = P - R, so that it is one for P, and for the sweeps of Moreau's rule.
        u_free = first.u + kick
        moved(contacts, first.u + kick, u_free, -R[:count], -R[count:])
        P = np.empty_like(R)
        started(count, a, b, n, source, before.X, len(before.a), P, mu, mu_roll, mu_pivot, self.turns)
        new = np.concatenate([source < 0] * (1 + self.turns))
        P[new] = R[new]
        u = u_free.copy()
        residual, error, size, sweeps = swept(self.solver, contacts, u_free, u, P, w, tolerance, self.room)
        walls_n1 = self.on_walls(n, la, a, b, P - R, x, end[0])
        force, moment = (one + two for one, two in zip(walls_n, walls_n1, strict=True))
        after = ContactList(a, b, n, gap, P, np.full(count, -np.inf), first.capacity, first.R[both])
        worst = max(relative(first.residual, first.size), relative(residual, size))
        outcome = Outcome(worst, max(first.error, error), first.sweeps + sweeps, count, force, moment)
        return State(state.step + 1, x, rotation, u, after), outcome

    def linearise(self, a, b, n, la, lb, chi, u, x1, end, dt, n1, gap1, out1):
        walls = self.walls_at(end[0])
        linearised(a, b, n, la, lb, u, x1, self.r, self.of, self.laws, walls, end, dt, n1, gap1, out1, chi)
