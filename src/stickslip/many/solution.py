"""What a run of many bodies gives back: rows, contacts, and what every step is worth."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..results import RESULTS
from . import seeing


@dataclass(frozen=True)
class ManyStats:
    """Of every step, saved or not. Step k ends at ``t[k]``."""

    t: np.ndarray  # (steps) end of the step, in s
    # (steps) 2-norm of the natural map over that of the free velocities, from percussions alone
    residual: np.ndarray
    # (steps) its largest entry: so far off are velocities that obey the law, in m/s
    velocity_error: np.ndarray
    accepted: np.ndarray  # (steps) True: not solved to the tolerance, accepted at its residual
    sweeps: np.ndarray  # (steps) that were spent
    parts: np.ndarray  # (steps) into how many parts an unsolved step was divided; 1: none
    contacts: np.ndarray  # (steps) closed contacts
    energy: np.ndarray  # (steps) total energy at the end of the step, in J
    wall_percussion: np.ndarray  # (steps, walls, 3) on each wall, in N s
    wall_moment: np.ndarray  # (steps, walls, 3) about the place of each wall, in N m s


class Contacts(NamedTuple):
    """Closed contacts of the step that ends at a row; body ``a`` < ``b``, and a wall w is the body  n + w."""

    a: np.ndarray  # (contacts)
    b: np.ndarray  # (contacts)
    normal: np.ndarray  # (contacts, 3) from a to b
    gap: np.ndarray  # (contacts) in m, where the normal is: `Moreau` the middle of the step, `Rattle` its end
    # (contacts, 3) percussion on b, in N s; -P on a (of the last part, where the step was divided)
    P: np.ndarray
    # (contacts, 3) torque times time on b, in N m s; without rolling and pivoting friction (0, 3)
    tau: np.ndarray
    R: np.ndarray = np.zeros((0, 3))  # (contacts, 3) of the position stage of `Rattle`, in N s; others (0, 3)
    R_tau: np.ndarray = np.zeros((0, 3))  # likewise torques

    @property
    def P_N(self) -> np.ndarray:
        return (self.P * self.normal).sum(-1)

    @property
    def P_F(self) -> np.ndarray:
        return self.P - self.P_N[:, None] * self.normal


@dataclass(frozen=True)
class ManySolution:
    """Rows are times; of a run with a file they are read from there when asked for."""

    system: Any  # as it was run, a `ManyBodies`
    t: np.ndarray  # (rows) in s
    position: Any  # (rows, bodies, 3) in m
    rotation: Any  # (rows, bodies, 4) quaternions (w, x, y, z)
    velocity: Any  # (rows, bodies, 3) in m/s
    spin: Any  # (rows, bodies, 3) in rad/s
    contacts: Any  # contacts[k]: `Contacts` of the step that ends at row k; none at row 0
    stats: ManyStats  # of every step
    tolerance: float  # residual up to which a step counts as solved
    interrupted: bool = False  # by the user; what had been computed is here

    @property
    def result(self) -> Any:
        """A member of `ss.RESULTS`; "successful" only where every step was solved to the tolerance."""
        if self.interrupted:
            return RESULTS.interrupted
        return RESULTS.accepted_at_residual if self.stats.accepted.any() else RESULTS.successful

    @property
    def q(self) -> np.ndarray:
        """(rows, bodies, 7): position and rotation of every body."""
        return np.concatenate([self.position[:], self.rotation[:]], axis=-1)

    @property
    def u(self) -> np.ndarray:
        """(rows, bodies, 6): velocity and spin of every body."""
        return np.concatenate([self.velocity[:], self.spin[:]], axis=-1)

    def energy(self) -> np.ndarray:
        """Total energy at the rows, in J."""
        rows = range(len(self.t))
        return np.array([self.system.energy(self.position[k], self.velocity[k], self.spin[k]) for k in rows])

    def coordination(self, row: int) -> float:
        """Mean number of contacts that push, of the bodies that have any."""
        return seeing.coordination(self, row)

    def packing_fraction(self, row: int, low: Any, high: Any) -> float:
        """Part of the box between two corners that bodies fill."""
        return seeing.packing_fraction(self, row, low, high)

    def plot(self, path: Any = None, title: str = "") -> Any:
        """Energy, contacts, residual and velocity error over time, as a picture,
        or as a figure where no path is given.
        """
        return seeing.plot(self, path, title)

    def film(
        self, path: Any, *, frames: int = 100, fps: int = 20, colour: Any = None, chains: bool = False
    ) -> None:
        """A film, .gif or .mp4: see `stickslip.many.seeing.film`."""
        seeing.film(self, path, frames=frames, fps=fps, colour=colour, chains=chains)

    def summary(self) -> str:
        """In words how the run ended, and how many steps were solved."""
        s = self.stats
        steps, open_ = len(s.residual), int(s.accepted.sum())
        ended = f"interrupted after t = {self.t[-1]:g}; " if self.interrupted else ""
        if not open_:
            worst = s.residual.max(initial=0.0)
            return f"{ended}{steps} steps, all solved to {self.tolerance:g} (largest residual {worst:.1e})"
        at = s.residual[s.accepted]
        return (
            f"{ended}{steps} steps: {steps - open_} solved to {self.tolerance:g}, {open_} accepted at "
            "residuals up to"
            f" {at.max():.1e} (median {np.median(at):.1e}; velocities off by up to"
            f" {s.velocity_error[s.accepted].max():.1e} m/s)"
        )
