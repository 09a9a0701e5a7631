"""Gaps linearised on velocity level, for many balls: one solve a step, compiled by numba.

    M (u_n+1 - u_n) = dt h + W_n P
    g_N(x_n) / dt + g_N_dot(x_n, u_n+1) in N(-P_N),  gamma_F(x_n, u_n+1) in N_C(P_N)(-P_F)
    x_n+1 = x_n + dt u_n+1

D. E. Stewart, J. C. Trinkle, IJNME 39 (1996) (S0 [8]); M. Anitescu, F. A. Potra, Nonlinear Dynamics 14
(1997). Order 1, without an impact law: what meets stays together. The gap of two balls is a convex
function of their places and so never below its linearisation: balls, and balls and planes, do not overlap
but for what a step is not solved; balls and drums do by O(dt^2).
"""

import numpy as np

from .contacts import ContactList, Outcome, State
from .numba_step import drifted, relative
from .rattle_step import OnPositionLevel, geometry


class LinearisedStep(OnPositionLevel):
    """A step with linearised gaps on the processor: the next state, and what the step is worth."""

    @np.errstate(over="ignore", invalid="ignore")  # the loop over time judges what comes out
    def __call__(self, state: State, t: float, dt: float, tolerance: float) -> tuple[State, Outcome]:
        x, rotation, bodies = state.x.copy(), state.rotation.copy(), len(state.x)
        begin, end = self.walls.at(t), self.walls.at(t + dt)
        u_free = state.rows.copy()
        u_free[:bodies, :3] += dt * self.gravity
        u_free[bodies:, 3:6] = begin[2]
        m = self.motion(state, begin, end, dt, u_free, tolerance)
        c = m.candidates
        force, moment = self.on_walls(c.n, c.out[0], c.a, c.b, m.R, x, begin[0])
        drifted(x, rotation, m.u, dt)
        active, both = self.active(m, x, dt)
        a, b, n, gap = (part[active] for part in (c.a, c.b, c.n, c.gap))
        after = ContactList(a, b, n, gap, m.R[both], np.full(len(a), m.error), m.capacity)
        outcome = Outcome(relative(m.residual, m.size), m.error, m.sweeps, len(a), force, moment)
        return State(state.step + 1, x, rotation, m.u, after), outcome

    def linearise(self, c, u, x1, end, dt):
        geometry(c.a, c.b, x1, self.r, self.walls_at(end[0]), c.n1, c.gap1)
