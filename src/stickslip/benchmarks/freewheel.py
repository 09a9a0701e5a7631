"""A hub drives a wheel through a freewheel, the one-way force element of S4 section 2: it pushes,
and never pulls.

    Theta_1 u_1_dot = T sin(w t) - la,    Theta_2 u_2_dot = la - d,
    0 <= la,  0 <= u_2 - u_1,  la (u_2 - u_1) = 0

Case 1: the torque changes its sign, so that the wheel is driven, overruns and is caught again. Both phases
are integrated by hand (locked: la = (Theta_2 T sin(w t) + Theta_1 d)/(Theta_1 + Theta_2), which ends where
that is zero); the instants where the hub catches up are roots of a formula. Case 2: without torque the drag
keeps both locked, and the wheel hits a stop. The freewheel passes the impact on: u_2 = u_1 -> -e u_1.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import shapes
from ..laws import Contact, FrictionElement
from ..methods import Rattle
from ..system import System
from .base import Benchmark


class Freewheel(System):
    """q = (angle of the hub, angle of the wheel)."""

    coordinates = ("hub [rad]", "wheel [rad]")
    contacts = ("stop",)

    Theta_1: float = 0.2
    Theta_2: float = 0.5
    torque: float = 1.0
    w: float = 2.0 * math.pi
    drag: float = 0.1
    stop: float = 1e3  # angle of the wheel
    e_N: float = 0.5

    def M(self, t, q):
        return jnp.diag(jnp.array([self.Theta_1, self.Theta_2]))

    def h(self, t, q, u):
        return jnp.array([self.torque * jnp.sin(self.w * t), -self.drag])

    def g_N(self, t, q):
        return jnp.array([self.stop - q[1]])

    def gamma_F(self, t, q, u):
        return jnp.array([u[1] - u[0]])

    @property
    def laws(self):
        return Contact(e_N=self.e_N), FrictionElement(lower=0.0, upper=math.inf)

    def draw(self, t, q):
        def spoke(radius, angle, color, width):
            end = radius * jnp.array([jnp.cos(angle), jnp.sin(angle)])
            return shapes.Line(jnp.stack([jnp.zeros(2), end]), color, width)

        return [
            *shapes.disk((0.0, 0.0), 1.0, q[1]), spoke(1.0, q[1], shapes.GROUND, 3.0),
            *shapes.disk((0.0, 0.0), 0.4, q[0]), spoke(0.4, q[0], shapes.GROUND, 5.0),
        ]  # fmt: skip


CASES = (1, 2)
U_0 = 1.0


class Phase:
    """One phase from a state (t0, q0, u0), by formula."""

    def __init__(self, system: Freewheel, locked: bool, t0: float, q0: np.ndarray, u0: np.ndarray):
        I_1, I_2, self.w = float(system.Theta_1), float(system.Theta_2), float(system.w)
        T, d = float(system.torque), float(system.drag)
        both = I_1 + I_2
        # u_dot = driven sin(w t) + constant
        self.driven = np.array([T, T]) / both if locked else np.array([T / I_1, 0.0])
        self.constant = np.array([-d, -d]) / both if locked else np.array([0.0, -d / I_2])
        self.locked, self.t0, self.q0, self.u0 = locked, t0, q0, u0
        self.la_of = (I_2 * T / both, I_1 * d / both) if locked else (0.0, 0.0)

    def u(self, t: Any) -> np.ndarray:
        t = np.asarray(t, dtype=float)[..., None]
        return (
            self.u0
            - self.driven / self.w * (np.cos(self.w * t) - np.cos(self.w * self.t0))
            + self.constant * (t - self.t0)
        )

    def q(self, t: Any) -> np.ndarray:
        t = np.asarray(t, dtype=float)[..., None]
        s, w = t - self.t0, self.w
        oscillating = (np.sin(w * t) - np.sin(w * self.t0)) / w - s * np.cos(w * self.t0)
        return self.q0 + self.u0 * s - self.driven / w * oscillating + self.constant * s**2 / 2

    def la(self, t: Any) -> np.ndarray | np.floating:
        return self.la_of[0] * np.sin(self.w * np.asarray(t)) + self.la_of[1]

    def end(self) -> float:
        """Where the pressure, or the lead of the wheel, comes to zero."""
        from scipy.optimize import brentq

        f: Any = self.la if self.locked else lambda t: np.diff(self.u(t))[..., 0]
        grid = self.t0 + np.linspace(1e-6, 4 * math.pi / self.w, 4001)
        values = f(grid)
        first = np.flatnonzero((values[:-1] > 0.0) & (values[1:] <= 0.0))[0]
        return float(brentq(lambda t: float(f(t)), grid[first], grid[first + 1], xtol=1e-15, rtol=1e-15))


def phases(system: Freewheel, t1: float) -> list[Phase]:
    """From locked, at angle zero."""
    out = [Phase(system, True, 0.0, np.zeros(2), np.full(2, U_0))]
    while (end := out[-1].end()) < t1:
        out.append(Phase(system, not out[-1].locked, end, out[-1].q(end), out[-1].u(end)))
    return out


def exact(system: Freewheel, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, u and the torque of the freewheel in case 1."""
    known = phases(system, float(np.max(t)))
    which = np.searchsorted([p.t0 for p in known], t, side="right") - 1
    q, u, la = np.empty((len(t), 2)), np.empty((len(t), 2)), np.empty(len(t))
    for k, phase in enumerate(known):
        mine = which == k
        q[mine], u[mine], la[mine] = phase.q(t[mine]), phase.u(t[mine]), phase.la(t[mine])
    return q, u, la


def load(case: int = 1) -> Benchmark:
    system = Freewheel() if case == 1 else Freewheel(torque=0.0, stop=1.0)
    t1 = 3.0 if case == 1 else 2.0
    reference: dict[str, Any] = {"source": "closed form, phase by phase"}
    if case == 1:
        known = phases(system, t1)
        reference |= {
            "exact": lambda t: exact(system, np.asarray(t, dtype=float)),
            "opens": tuple(p.t0 for p in known if not p.locked),
            "locks": tuple(p.t0 for p in known[1:] if p.locked),
        }
    else:
        a = system.drag / (system.Theta_1 + system.Theta_2)
        speed = math.sqrt(U_0**2 - 2.0 * a * system.stop)
        reference |= {"impact_time": (U_0 - speed) / a, "speed": speed, "after": -system.e_N * speed}
    return Benchmark(
        "freewheel", case, system, jnp.zeros(2), jnp.full(2, U_0), t1=t1, dt=1e-2, method=Rattle(),
        source="S4 section 2, a force element with one bound", reference=reference,
    )  # fmt: skip
