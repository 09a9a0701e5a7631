"""Negative controls: entries run with schemes that were broken on purpose.

They must fail, or green would mean nothing.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..methods import MoreauMidpoint, Rattle
from ..methods.base import Method, Tolerances, with_solver
from ..solvers import SemismoothNewton
from ..stepsize import SwitchingPoints
from . import s0_rattle, s2_generalized_alpha, s3_belt_pendulum_crank, s4_examples, s4_step_size
from .entries import Sheet, entry


class Leaking(Rattle):
    """RATTLE, but a tenth of each percussion does not reach the bodies."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        W, _ = dynamics.directions(t1, out.q)
        lost = dynamics.solve_M(t1, out.q, W) @ out.P
        return out._replace(u=out.u - 0.1 * lost)


class Late(Rattle):
    """RATTLE, but positions move a little with the acceleration of the step:
    an error of the order of dt^2 in each.
    """

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        return out._replace(
            q=out.q + 0.02 * dt * (dynamics.q_dot(t1, out.q, out.u) - dynamics.q_dot(t, q, u))
        )


class Pulling(Rattle):
    """RATTLE, but friction is reported a half too strong: outside the cone."""

    def step(self, dynamics, t, t1, dt, q, u, memory):
        out = super().step(dynamics, t, t1, dt, q, u, memory)
        P = dynamics.split(out.P)
        return out._replace(P=dynamics.rows.join(*P._replace(F=1.5 * P.F)))


@entry("S0", "2", "Contact on velocity level only", shows="bouncing-ball", control="smallest gap", cost=3)
def penetrating(sheet: Sheet) -> None:
    """Fig. 2 with Moreau's scheme in the place of RATTLE: gaps become negative."""
    s0_rattle.ball_gap(sheet.breaking(lambda method: MoreauMidpoint()))


@entry(
    "S0",
    "2",
    "A tenth of each percussion gets lost",
    shows="bouncing-ball",
    control="Newton's impact law",
    cost=3,
)
def leaking(sheet: Sheet) -> None:
    """Fig. 2 with a RATTLE whose percussions do not arrive whole: the impact law is not met."""
    s0_rattle.ball_gap(sheet.breaking(lambda method: Leaking()))


@entry("S0", "3", "Friction outside its cone", shows="bouncing-ball", control="case 2: error of P_F", cost=3)
def pulling(sheet: Sheet) -> None:
    """Fig. 3 with a RATTLE that reports too much friction: percussions are not those of the closed form."""
    s0_rattle.ball_percussions(sheet.breaking(lambda method: Pulling()))


@entry("S0", "8", "An order is lost", shows="mass-on-slope", control="case 1: e_q", cost=12)
def late(sheet: Sheet) -> None:
    """Fig. 8 with a RATTLE that makes an error of dt^2 in each step:
    first order where the paper has second.
    """
    s0_rattle.slope_orders(sheet.breaking(lambda method: Late()))


# ---- friction deleted

SLIPS = "|P_F + mu P_N sign(slip)|"


def without_friction(system: Any) -> Any:
    return eqx.tree_at(lambda s: s.mu, system, 0.0)


@entry("S0", "5", "Friction is left out", shows="slider-crank", control=SLIPS, cost=10)
def crank_without_friction(sheet: Sheet) -> None:
    """Fig. 5 with a scheme that has no friction: contacts slip, and nothing opposes it."""
    s0_rattle.slider_crank(sheet.breaking(system=without_friction))


@entry("S3", "7.9", "Friction is left out", shows="slider-crank", control=SLIPS, quick=False, cost=14)
def radau_crank_without_friction(sheet: Sheet) -> None:
    """Fig. 7.9 with a scheme that has no friction."""
    s3_belt_pendulum_crank.slider_crank(sheet.breaking(system=without_friction))


@entry("S4", "2", "Friction is left out", shows="disk-mixer", control=SLIPS, quick=False, cost=45)
def mixer_without_friction(sheet: Sheet) -> None:
    """Fig. 2 with a scheme that has no friction: the drum turns, and mixes nothing."""
    s4_step_size.mixed_disks(sheet.breaking(system=without_friction))


@entry("S2", "6", "Friction is left out", shows="guided-hopper", control=SLIPS, quick=False, cost=45)
def hopper_without_friction(sheet: Sheet) -> None:
    """Fig. 6, whose subject is the friction percussion, without friction."""
    s2_generalized_alpha.guided_hopper(sheet.breaking(system=without_friction))


# ---- nothing solved


def unsolved(method: Method) -> Method:
    return with_solver(method, SemismoothNewton(atol=1e6, rtol=0.0))


@entry("S0", "Table 1", "Nothing is solved", control="largest violation of a law", cost=40,
       shows=("bouncing-ball", "slider-crank", "mass-on-slope", "tippedisk"))  # fmt: skip
def iterations_of_no_solve(sheet: Sheet) -> None:
    """Table 1 with a solver that accepts its guess: no iterations, fewer than printed, and no law is met."""
    s0_rattle.newton_iterations(sheet.breaking(unsolved))


# ---- steps that grow too slowly, extrapolation that stops too early


class Sluggish(SwitchingPoints):
    """Steps grow by a fifth where they may double."""

    def longer(self, dt):
        return jnp.minimum(jnp.maximum(1.2 * dt, 3.0 * self.dt_min), self.dt_max)


class Careless(SwitchingPoints):
    """Extrapolation stops at a thousand times its tolerance."""

    @property
    def tolerances(self):
        return Tolerances(self.dt_min, 1e3 * self.rtol, 1e3 * self.atol)


def turned_into(kind: type[SwitchingPoints]) -> Callable[[SwitchingPoints], SwitchingPoints]:
    return lambda control: kind(control.dt_min, control.dt_max, control.rtol, control.atol)


sluggish, careless = turned_into(Sluggish), turned_into(Careless)


GROWTH, STOPS = "largest ratio of", "largest error over atol"


@entry("S4", "8", "Steps grow by a fifth instead of doubling", shows="falling-mass", control=GROWTH, cost=4)
def sluggish_search(sheet: Sheet) -> None:
    """Fig. 8 with a step size control that hesitates."""
    s4_step_size.switching_point_search(sheet.breaking(stepsize=sluggish))


@entry("S4", "10", "Steps grow by a fifth instead of doubling", shows="falling-mass", control=GROWTH, cost=8)
def sluggish_falling_mass(sheet: Sheet) -> None:
    """Fig. 10 with a step size control that hesitates."""
    s4_examples.falling_mass_with_odd_substeps(sheet.breaking(stepsize=sluggish))


@entry("S4", "13", "Steps grow by a fifth instead of doubling", shows="woodpecker", control=GROWTH, cost=9)
def sluggish_woodpecker(sheet: Sheet) -> None:
    """Fig. 13 with a step size control that hesitates."""
    s4_examples.woodpecker(sheet.breaking(stepsize=sluggish))


@entry(
    "S4",
    "10",
    "Extrapolation stops at a thousand times its tolerance",
    shows="falling-mass",
    control=STOPS,
    cost=8,
)
def careless_falling_mass(sheet: Sheet) -> None:
    """Fig. 10 with an extrapolation that is content too soon."""
    s4_examples.falling_mass_with_odd_substeps(sheet.breaking(stepsize=careless))


@entry(
    "S4",
    "13",
    "Extrapolation stops at a thousand times its tolerance",
    shows="woodpecker",
    control=STOPS,
    cost=9,
)
def careless_woodpecker(sheet: Sheet) -> None:
    """Fig. 13 with an extrapolation that is content too soon."""
    s4_examples.woodpecker(sheet.breaking(stepsize=careless))


# ---- another damping


def less_damped(method: Any) -> Any:
    return dataclasses.replace(method, rho_inf=0.9) if hasattr(method, "rho_inf") else method


DECAY = "decay of a stiff oscillation"


@entry("S2", "2", "rho_inf is not what was asked for", shows="bouncing-ball", control=DECAY, cost=8)
def damped_otherwise(sheet: Sheet) -> None:
    """Fig. 2 with rho_inf = 0.9 in the place of 0.5: the figure hides it, a stiff oscillation does not."""
    s2_generalized_alpha.friction_of_a_spinning_ball(sheet.breaking(less_damped))


@entry("S2", "4", "rho_inf is not what was asked for", shows="ball-in-cylinder", control=DECAY, cost=10)
def damped_otherwise_in_a_cylinder(sheet: Sheet) -> None:
    """Fig. 4 with rho_inf = 0.9 in the place of 0.5."""
    s2_generalized_alpha.ball_in_cylinder(sheet.breaking(less_damped))
