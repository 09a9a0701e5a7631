"""Nonsmooth RATTLE for many balls: contact on position level, then on velocity level; compiled by numba.

    u_n+1/2 = u_n + dt/2 g + M^-1 W_n R                                                             (25a)
    x_n+1 = x_n + dt u_n+1/2                                                                        (27)
    g_N(x_n+1) in N(-R_N),  gamma_F(x_n+1, u_n+1/2) in N_C(R_N)(-R_F)                               (33), (36)

    u_n+1 = u_n+1/2 + dt/2 g + M^-1 W_n+1 S,    P = R + S                                           (25b)
    xi_N in N(-P_N),  xi_F in N_C(P_N)(-P_F)  for active contacts, P = 0 otherwise                  (32), (34)
    xi_N = g_N_dot(x_n+1, u_n+1) + e_N g_N_dot(x_n, u_n),    xi_F = gamma_F(x_n+1, u_n+1)           (30), (35)

R = Delta P^1st and S = Delta P^2nd of J. Breuling, G. Capobianco, S. R. Eugster, R. I. Leine, NAHS 52
(2024), doi:10.1016/j.nahs.2024.101469 (S0). Gravity is constant and balls have no gyroscopic forces, so
that (25a) is explicit and gaps do not depend on rotations. (34), (36) as they stand are
friction="printed".

Else contacts that rest when the step begins have the friction of `methods/spatial_friction.py`, which
keeps the order where a slip turns, or where a ball rolls on what is curved:

    slip     gamma_F(x_n, u_n+1/2) in N_C(R_N)(-R_F),    S_F = -mu S_N d,    d along gamma_F(x_n+1, u_n+1/2)
    stick    (gamma_F(x_n, u_n+1/2) + gamma_F(x_n+1, u_n+1/2)) / 2 in N_C(R_N)(-R_F),    (34)

and (34) again where a contact of the system closes in the step, the slip changes by more than half, or S_N
< 0. Torques of rolling and pivoting friction have their rows at x_n in the position stage, (34) in the
velocity stage.

The position stage is one for the sweeps of Moreau's rule, in velocities: with a motion u^l that is known and
x^l = x_n + dt u^l,

    gamma = W_n^T u + chi^l,    chi^l = (g_N(x^l) / dt, gamma_F(x^l, u^l)) - W_n^T u^l,

which for u = u^l is (33), (36) as it stands. The matrix W_n^T M^-1 W_n stays, gaps are linearised anew: an
error shrinks by about the angle by which a normal turns in the step. The certificate of the stage is taken
at u^l = u: of true gaps. In the same way S_F along d is made of (34) with xi_F = gamma_F(x_n+1, u) -
gamma_F(x_n+1, u^l) + gamma_F(x_n+1, u_n+1/2).

Which contacts may close follows from the motion itself: those that overlap at the end of free motion, and
as long as the motion found closes others, these too.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .compiled import compiled
from .contacts import ContactList, Outcome, State
from .methods import Rattle
from .numba_step import OnProcessor, coefficients, drifted, law, pushed, rebound, relative, started, swept
from .search import gap_of
from .solvers import AndersonSOR
from .sweeps import certificate, free_size, moved, velocity

EPS = 8.0 * np.finfo(float).eps
ROUNDS = 20  # of contacts that the motion closes; if there are more still, the certificate shows them

LASTING = 0.5  # part of a slip that may change in half a step: then each linearisation halves an error
SETTLING = 12  # linearisations of slips, at most: all but the first ones cost little
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
        bounce[k] = rebound(k, a, b, n, out[2], rows, of, laws[0])


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
def across(g, n):
    """The part of a velocity across the normal."""
    along = g[0] * n[0] + g[1] * n[1] + g[2] * n[2]
    return g[0] - along * n[0], g[1] - along * n[1], g[2] - along * n[2]


@compiled()
def linearised(a, b, n, la, lb, wall, share, u, x1, r, of, laws, walls, motion, dt, n1, gap1, out1, chi):
    """chi of the position stage at the motion u that ends at x1; normals, gaps and coefficients there.

    ``share``: of gamma_F(x_n, u) in the velocity that friction opposes, the rest being gamma_F(x_n+1, u).
    """
    for k in range(len(a)):
        i, j = a[k], b[k]
        gap1[k] = gap_of(i, j, x1, r, walls, n1[k])
        law(k, a, b, n1, gap1, x1, r, u, of, laws, motion, out1)
        g1 = velocity(u, i, j, n1[k], out1[0][k], out1[1][k], out1[2][k])
        t = across(g1, n1[k])
        slip = carried(t[0], t[1], t[2], n1[k], n[k])
        g0 = velocity(u, i, j, n[k], la[k], lb[k], wall[k])
        here = across(g0, n[k])
        for d in range(3):
            wanted = gap1[k] / dt * n[k, d] + share[k] * here[d] + (1.0 - share[k]) * slip[d]
            chi[k, d] = wanted - (g0[d] - wall[k, d])


@compiled()
def shares(a, b, n, gap, la, lb, wall, u, origin, zero, dt, extent, out):
    """1 where a contact rests and slips when the step begins, 1/2 where it rests and sticks, 0 elsewhere.

    ``zero``: velocity up to which a contact counted as at rest in the step before.
    """
    for k in range(len(a)):
        i, j, fast = a[k], b[k], 0.0
        for d in range(3):
            fast = max(fast, abs(u[i, d]), abs(u[j, d]), abs(wall[k, d]))
            fast = max(fast, la[k] * abs(u[i, 3 + d]), lb[k] * abs(u[j, 3 + d]))
        still = EPS * fast + (zero[origin[k]] if origin[k] >= 0 else 0.0)
        g = velocity(u, i, j, n[k], la[k], lb[k], wall[k])
        g_N, t = g[0] * n[k, 0] + g[1] * n[k, 1] + g[2] * n[k, 2], across(g, n[k])
        out[k] = 0.0
        if gap[k] <= dt * still + EPS * extent and abs(g_N) <= still:
            out[k] = 1.0 if math.sqrt(t[0] ** 2 + t[1] ** 2 + t[2] ** 2) > still else 0.5


@compiled()
def slipping(a, b, n, la, lb, wall, mu, um, R, u, P, slips, chi, shift, begins):
    """chi and P - P~ of contacts with S_F along their slip at u_n+1/2; what does not last is given up.

    (34) for P~ with the xi_F of such contacts has P~_F = -mu P_N d, and P_F - P~_F = R_F + mu R_N d then
    leaves S_F = -mu S_N d.
    """
    given_up = False
    for k in range(len(a)):
        for d in range(3):
            chi[k, d] = wall[k, d]
        if not slips[k]:
            continue
        i, j = a[k], b[k]
        g = across(velocity(um, i, j, n[k], la[k], lb[k], wall[k]), n[k])
        now = across(velocity(u, i, j, n[k], la[k], lb[k], wall[k]), n[k])
        R_N, P_N = 0.0, 0.0
        for d in range(3):
            R_N += R[k, d] * n[k, d]
            P_N += P[k, d] * n[k, d]
        size = math.sqrt(g[0] ** 2 + g[1] ** 2 + g[2] ** 2)
        change = math.sqrt((now[0] - g[0]) ** 2 + (now[1] - g[1]) ** 2 + (now[2] - g[2]) ** 2)
        # When the stage begins, u is u_n; its percussions are a guess and say nothing.
        lost = R_N <= 0.0 or size == 0.0 or change > LASTING * size or (P_N < R_N and not begins)
        if lost:
            slips[k], given_up = False, True
            for d in range(3):
                shift[k, d] = 0.0
            continue
        for d in range(3):
            shift[k, d] = R[k, d] - R_N * n[k, d] + mu[k] * R_N * g[d] / size
            if not begins:
                chi[k, d] += g[d] - now[d]
    return given_up


@compiled()
def turned_on(X, n, n1, out):
    """Percussions, and torques below them, carried from normals n to n1."""
    count = len(n)
    for s in range(len(X)):
        k = s % count
        out[s, 0], out[s, 1], out[s, 2] = carried(X[s, 0], X[s, 1], X[s, 2], n[k], n1[k])


class Candidates(NamedTuple):
    """Contacts that may close in a step."""

    a: np.ndarray
    b: np.ndarray
    n: np.ndarray  # at x_n
    gap: np.ndarray  # at x_n
    out: tuple[np.ndarray, ...]  # what `law` says at x_n, chi being that of the position stage
    wall: np.ndarray  # velocity of walls at x_n
    bounce: np.ndarray  # e_N g_N_dot(x_n, u_n)
    origin: np.ndarray  # where a contact was in the list of the step before, or -1
    share: np.ndarray  # see `linearised`
    n1: np.ndarray  # at x_n+1
    gap1: np.ndarray  # at x_n+1
    out1: tuple[np.ndarray, ...]  # what `law` says at x_n+1


class Motion(NamedTuple):
    """The motion to the end of a step, and what it is worth."""

    candidates: Candidates
    R: np.ndarray  # percussions, and torques below them
    u: np.ndarray  # u_n+1/2
    capacity: int
    residual: float
    error: float
    size: float
    sweeps: int


class Impact(NamedTuple):
    """The velocity stage, and what it is worth."""

    a: np.ndarray
    b: np.ndarray
    n: np.ndarray  # at x_n+1, as all that follows
    gap: np.ndarray
    la: np.ndarray
    both: np.ndarray  # where percussions of these contacts, and torques, are in those of the motion
    P: np.ndarray
    R: np.ndarray  # turned with the normals
    u: np.ndarray  # u_n+1
    residual: float
    error: float
    size: float
    sweeps: int


class OnPositionLevel(OnProcessor):
    """What steps have in common whose gaps are those at the end of the step."""

    linearisations = 1  # of gaps, at most
    part = 1.0  # of the percussions of a step that belongs to its motion: where the search starts

    def __init__(self, system: Any, solver: AndersonSOR):
        super().__init__(system, solver)
        self.quick = replace(solver, newton_below=0)

    def found(self, x, before, places, margin, closed=0.0):
        if not np.isfinite(x).all():  # a grid has no cells for it; the loop over time refuses what comes out
            none = np.zeros(0, np.int64)
            return (0, none, none, np.zeros((0, 3)), np.zeros(0), none), before.capacity
        return super().found(x, before, places, margin, closed)

    def linearise(self, c: Candidates, u, x1, end, dt) -> None:
        """Normals, gaps and coefficients at x1, where the motion u ends, and chi, if linearised there."""
        raise NotImplementedError

    def shares(self, c: Candidates, state: State, dt) -> None:
        """Which velocity friction opposes, where there is a choice."""

    def settled(self, contacts, u_free, u, X, w, tolerance, linearise, stop=None, most=None):
        """Linearised and solved in turn: residual, largest entry, size, sweeps, what the last solve left.

        No more where the certificate finds the problem solved that is not linear, or where it is the
        solver that left most of what is missing, or where ``stop`` says so.
        """
        left, sweeps, count = 0.0, 0, len(contacts[0])
        most = self.linearisations if most is None else most
        for solves in range(most + 1):
            linearise(solves)
            residual, error = certificate(contacts, u, X[:count], X[count:])
            size = free_size(contacts, u_free)
            last = solves == most or residual <= max(tolerance * size, SHARED * left)
            if (stop is not None and stop(solves, last)) or last:
                break
            # While the list may grow, without Newton's method, which costs more than all sweeps.
            full = stop is None or solves > 0 or most == 1 or count > self.solver.newton_below
            solver = self.solver if full else self.quick
            residual, _, size, more = swept(solver, contacts, u_free, u, X, w, tolerance, self.room)
            sweeps += more
            left = residual if full and residual > tolerance * size else 0.0
        return residual, error, size, sweeps, left

    def motion(self, state: State, begin, end, dt, u_free, tolerance) -> Motion:
        """The motion from x_n to the end of the step, with all contacts that it closes."""
        x, bodies, before = state.x, len(state.x), state.contacts
        found, capacity = self.found(x + dt * u_free[:bodies, :3], before, end[0], self.margin, self.margin)
        source = origin = found[5].copy()
        X_before, half, sweeps = self.part * before.X, len(before.a), 0
        for again in range(ROUNDS + 1):
            c = self.candidates(state, begin, dt, found[1], found[2], origin)
            count = len(c.a)
            contacts, w = self.listed(c.a, c.b, c.n, c.out)
            R = np.empty(((1 + self.turns) * count, 3))
            _, _, _, mu, _, _, mu_roll, mu_pivot, _ = c.out
            started(count, c.a, c.b, c.n, source, X_before, half, R, mu, mu_roll, mu_pivot, self.turns)
            u, longer = u_free.copy(), None
            moved(contacts, u_free, u, R[:count], R[count:])

            def linearise(solves, c=c, u=u):
                self.linearise(c, u, x + dt * u[:bodies, :3], end, dt)

            def grown(solves, last, c=c, u=u, R=R, again=again):
                nonlocal longer, capacity
                if again < ROUNDS and (last or solves == 1):  # early too: what closes changes the rest
                    every = ContactList(c.a, c.b, c.n, c.gap1, R, np.full(len(c.a), np.inf), capacity)
                    margin = self.margin + max(c.gap1.max(initial=0.0), 0.0)
                    found, capacity = self.found(x + dt * u[:bodies, :3], every, end[0], margin)
                    longer = found if found[0] > len(c.a) else None
                return longer is not None

            most = 0 if again == ROUNDS else None
            residual, error, size, more, _ = self.settled(
                contacts, u_free, u, R, w, tolerance, linearise, grown, most,
            )  # fmt: skip
            sweeps += more
            if longer is None:
                break
            found, source = longer, longer[5]
            origin, X_before, half = np.where(source >= 0, origin[source], -1), R, count
        return Motion(c, R, u, capacity, residual, error, size, sweeps)

    def candidates(self, state: State, begin, dt, a, b, origin) -> Candidates:
        """What is known of listed contacts when the step begins, with gaps linearised there."""
        count = len(a)
        n, n1 = np.empty((count, 3)), np.empty((count, 3))
        gap, gap1, bounce = np.empty(count), np.empty(count), np.empty(count)
        out, out1 = coefficients(count), coefficients(count)
        geometry(a, b, state.x, self.r, self.walls_at(begin[0]), n, gap)
        laws_at(a, b, n, gap, state.x, self.r, state.rows, self.of, self.laws, begin, out, bounce)
        c = Candidates(a, b, n, gap, out, out[2].copy(), bounce, origin, np.zeros(count), n1, gap1, out1)
        self.shares(c, state, dt)
        out[2][:] += (gap / dt)[:, None] * n
        return c

    def active(self, m: Motion, x1, dt):
        """Contacts {r g_N - R_N <= 0} (S1 (67)), gaps known up to the certified error and round-off."""
        c, count = m.candidates, len(m.candidates.a)
        zero = dt * m.error + EPS * float(np.abs(x1).max() + self.r.max())
        active = np.flatnonzero(((m.R[:count] * c.n).sum(1) > 0.0) | (c.gap1 <= zero))
        return active, np.concatenate([active, active + count]) if self.turns else active

    def on_walls(self, n, la, a, b, P, x, places):
        """Percussions on walls and their moments, of contacts at x."""
        force, moment = np.empty((len(places), 3)), np.empty((len(places), 3))
        count = len(a)
        pushed(count, a, b, n, la, P[:count], P[count:], x, len(x), places, self.turns, force, moment)
        return force, moment


class RattleStep(OnPositionLevel):
    """A step of RATTLE on the processor: the next state, and what the step is worth."""

    part = 0.5

    def __init__(self, system: Any, solver: AndersonSOR, method: Rattle):
        super().__init__(system, solver)
        self.linearisations, self.stagewise = method.linearisations, method.friction == "stagewise"

    @np.errstate(over="ignore", invalid="ignore")  # the loop over time judges what comes out
    def __call__(self, state: State, t: float, dt: float, tolerance: float) -> tuple[State, Outcome]:
        x, rotation, bodies = state.x.copy(), state.rotation.copy(), len(state.x)
        begin, end = self.walls.at(t), self.walls.at(t + dt)
        kick = np.zeros_like(state.rows)
        kick[:bodies, :3] = 0.5 * dt * self.gravity
        u_free = state.rows + kick
        u_free[bodies:, 3:6] = begin[2]
        first = self.motion(state, begin, end, dt, u_free, tolerance)  # (25a), (33), (36)
        c = first.candidates
        walls_n = self.on_walls(c.n, c.out[0], c.a, c.b, first.R, x, begin[0])
        drifted(x, rotation, first.u, dt)  # (27)
        second = self.impact(state, first, x, dt, kick, tolerance)
        a, b, n, P = second.a, second.b, second.n, second.P
        walls_n1 = self.on_walls(n, second.la, a, b, P - second.R, x, end[0])
        force, moment = (one + two for one, two in zip(walls_n, walls_n1, strict=True))
        error = max(first.error, second.error)
        rate = np.full(len(a), error)
        after = ContactList(a, b, n, second.gap, P, rate, first.capacity, first.R[second.both])
        worst = max(relative(first.residual, first.size), relative(second.residual, second.size))
        outcome = Outcome(worst, error, first.sweeps + second.sweeps, len(a), force, moment)
        return State(state.step + 1, x, rotation, second.u, after), outcome

    def impact(self, state: State, first: Motion, x1, dt, kick, tolerance) -> Impact:
        """The velocity stage: (25b) with S = P - R is one for P, and for the sweeps of Moreau's rule."""
        c, um, before = first.candidates, first.u, state.contacts
        active, both = self.active(first, x1, dt)
        a, b, n, gap, source = (part[active] for part in (c.a, c.b, c.n1, c.gap1, c.origin))
        out, count = tuple(part[active] for part in c.out1), len(active)
        la, lb, chi, mu, _, _, mu_roll, mu_pivot, _ = out
        wall = chi + c.bounce[active][:, None] * n  # (30)
        R = np.empty((len(both), 3))
        turned_on(first.R[both], c.n[active], n, R)
        # What closes may pass its impact on to any other contact, which then has the impact law to obey.
        share = c.share[active]
        closes = bool(np.any((share == 0.0) & ((R[:count] * n).sum(1) > 0.0)))
        P, shift, slips = np.empty_like(R), np.zeros_like(R), (share == 1.0) & (not closes)
        started(count, a, b, n, source, before.X, len(before.a), P, mu, mu_roll, mu_pivot, self.turns)
        new = np.concatenate([source < 0] * (1 + self.turns))
        P[new] = R[new]
        contacts, w = self.listed(a, b, n, out)
        X, u_free, u = P.copy(), um + kick, um + kick

        def into_cones():
            held = P.copy()
            started(count, a, b, n, np.arange(count), held, count, P, mu, mu_roll, mu_pivot, self.turns)

        def linearise(solves):
            P[:] = X + shift
            seen = u if solves else state.rows
            given_up = slipping(
                a, b, n, la, lb, wall, mu, um, R, seen, P, slips, chi, shift, solves == 0,
            )  # fmt: skip
            if given_up and solves:
                into_cones()
            if given_up or solves == 0:
                X[:] = P - shift
                moved(contacts, um + kick, u_free, (shift - R)[:count], (shift - R)[count:])
                moved(contacts, u_free, u, X[:count], X[count:])

        given = contacts, u_free, u, X, w, tolerance, linearise
        residual, error, size, sweeps, left = self.settled(*given, most=SETTLING if slips.any() else 1)
        if slips.any() and residual > max(tolerance * size, SHARED * left):  # slips that do not settle
            slips[:] = False
            P[:] = X + shift
            into_cones()
            X[:], shift[:] = P, 0.0
            residual, error, size, more, _ = self.settled(*given, most=1)
            sweeps += more
        return Impact(a, b, n, gap, la, both, X + shift, R, u, residual, error, size, sweeps)

    def linearise(self, c, u, x1, end, dt):
        la, lb, chi = c.out[:3]
        at_x1 = x1, self.r, self.of, self.laws, self.walls_at(end[0]), end, dt
        linearised(c.a, c.b, c.n, la, lb, c.wall, c.share, u, *at_x1, c.n1, c.gap1, c.out1, chi)

    def shares(self, c, state, dt):
        if self.stagewise:
            extent = float(np.abs(state.x).max() + self.r.max())
            la, lb, zero = c.out[0], c.out[1], state.contacts.limit
            shares(c.a, c.b, c.n, c.gap, la, lb, c.wall, state.rows, c.origin, zero, dt, extent, c.share)
