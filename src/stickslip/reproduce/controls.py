"""Negative controls: entries run with schemes that were broken on purpose. They must fail, or green would mean nothing."""

from ..methods import MoreauMidpoint, Rattle
from . import s0_rattle
from .sheet import Sheet, entry


class Leaking(Rattle):
    """RATTLE, but a tenth of each percussion does not reach the bodies."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        W, _ = dynamics.directions(t1, out.q)
        lost = dynamics.solve_M(t1, out.q, W) @ out.P
        return out._replace(u=out.u - 0.1 * lost)


class Late(Rattle):
    """RATTLE, but positions move a little with the acceleration of the step: an error of the order of dt^2 in each."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        return out._replace(q=out.q + 0.02 * dt * (dynamics.q_dot(t1, out.q, out.u) - dynamics.q_dot(t, q, u)))


class Pulling(Rattle):
    """RATTLE, but friction is reported a half too strong: outside the cone."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        n = dynamics.n_bilateral + dynamics.laws.n_N
        return out._replace(P=out.P.at[n:].multiply(1.5))


@entry("S0", "2", "Contact on velocity level only", shows="bouncing-ball", control="smallest gap", cost=3)
def penetrating(sheet: Sheet) -> None:
    """Fig. 2 with Moreau's scheme in the place of RATTLE: gaps become negative."""
    s0_rattle.ball_gap(sheet.breaking(lambda method: MoreauMidpoint()))


@entry("S0", "2", "A tenth of each percussion gets lost", shows="bouncing-ball", control="Newton's impact law", cost=3)
def leaking(sheet: Sheet) -> None:
    """Fig. 2 with a RATTLE whose percussions do not arrive whole: the impact law is not met."""
    s0_rattle.ball_gap(sheet.breaking(lambda method: Leaking()))


@entry("S0", "3", "Friction outside its cone", shows="bouncing-ball", control="case 2: error of P_F", cost=3)
def pulling(sheet: Sheet) -> None:
    """Fig. 3 with a RATTLE that reports too much friction: percussions are not those of the closed form."""
    s0_rattle.ball_percussions(sheet.breaking(lambda method: Pulling()))


@entry("S0", "8", "An order is lost", shows="mass-on-slope", control="case 1: e_q", cost=12)
def late(sheet: Sheet) -> None:
    """Fig. 8 with a RATTLE that makes an error of dt^2 in each step: first order where the paper has second."""
    s0_rattle.slope_orders(sheet.breaking(lambda method: Late()))
