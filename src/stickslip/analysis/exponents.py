"""Lyapunov exponents: how fast neighbouring motions part,
from exact tangents through impacts and transitions.

A small difference d of states goes over a period into A d, A the monodromy matrix of `flow.py`, whose jumps
at impacts (saltation) are exact. With Q_k R_k = A_k Q_k-1 the exponents are the means of ln |R_ii| over time.
All of them together say how fast volumes shrink: their sum is the mean of the forces' divergence, and 2 ln e
for every impact of one ball on a wall.
"""

import math
import reprlib
from typing import Any, NamedTuple

import numpy as np

from ..extras import need
from ..progress import meter
from ..results import message
from ..system import System
from ..validate import is_count
from .flow import Flow, Periods, length_of
from .orbits import arrived


class Lyapunov(NamedTuple):
    """Exponents of a motion, the largest first."""

    exponents: np.ndarray  # in 1/s; -inf for what friction or a closed contact takes away at once
    history: np.ndarray  # (n, count): what they were after so many periods
    time: float  # over which they are means, in s
    impacts: int  # in this time
    slowest_impact: float  # of all: near a grazing impact a derivative is large
    q: np.ndarray  # at the end, where another call may go on,
    u: np.ndarray  # at a multiple of the period
    system: System  # that moves

    @property
    def chaotic(self) -> bool:
        """Whether the largest is above zero by more than it moved in the second half of the time."""
        moved = np.ptp(self.history[len(self.history) // 2 :, 0])
        return bool(self.exponents[0] > max(moved, 1e-6 / self.time))

    def __repr__(self) -> str:
        values = ", ".join(f"{x:.6g}" for x in self.exponents)
        over = f"over {self.time:.6g} s and {self.impacts} impacts"
        return f"Lyapunov exponents of {type(self.system).__name__}: {values} 1/s, {over}"

    def to_xarray(self) -> Any:
        xr = need("xarray", "files", "lyapunov.to_xarray")
        units = {"units": "1/s"}
        data = {
            "exponent": ("index", self.exponents, units),
            "history": (("period", "index"), self.history, units),
        }
        return xr.Dataset(data, attrs={"time": self.time, "impacts": self.impacts})

    def plot(self, path: Any = None) -> Any:
        """What the exponents were after every period."""
        from .pictures import exponents

        return exponents(self, path)


def lyapunov(
    system: System, q0: Any, u0: Any, *, period: Any, n: int = 1000, transient: int = 100, method: Any = None,
    rtol: float = 1e-9, atol: float | None = None, dt_max: float | None = None, progress: bool | None = None,
) -> Lyapunov:  # fmt: skip
    """All Lyapunov exponents of the motion from (q0, u0) at t = 0,
    over n periods after ``transient`` of them.

    ``period`` is that of what drives the system (a number, or a function of the system); where nothing does,
    the time after which tangents are made orthogonal again, in which the motion should not part by more than
    some powers of ten.
    """
    flow = Flow.of(system, q0, u0, "lyapunov", method=method, rtol=rtol, atol=atol, dt_max=dt_max)
    if not is_count(n):
        raise ValueError(f"n must be a whole number, at least 1, got {n!r}")
    if transient != 0 and not is_count(transient):
        raise ValueError(f"transient must be a whole number, at least 0, got {reprlib.repr(transient)}")
    T, periods = float(length_of(period, flow.system)), Periods(flow)
    x = np.concatenate([np.asarray(q0, dtype=float), np.asarray(u0, dtype=float)])
    logs, Q, impacts, slowest = np.zeros((n, len(x))), np.eye(len(x)), 0, math.inf
    with meter(progress, transient + n, "periods") as bar:
        for k in range(transient + n):
            d = periods(x, T)
            if not arrived(d):
                raise RuntimeError(f"lyapunov: period {k} failed: {message(d.passage.result)}")
            x = np.asarray(d.passage.end)
            # the directions turn to where they belong during the transient
            Q, R = np.linalg.qr(np.asarray(d.by_x) @ Q)
            if k >= transient:
                with np.errstate(divide="ignore"):
                    logs[k - transient] = np.log(np.abs(np.diag(R)))
                impacts, slowest = impacts + int(d.passage.impacts), min(slowest, float(d.passage.slowest))
            bar.update(k + 1)
    history = np.cumsum(logs, axis=0) / (T * np.arange(1, n + 1)[:, None])
    order = np.argsort(-history[-1])
    return Lyapunov(
        history[-1, order],
        history[:, order],
        n * T,
        impacts,
        slowest,
        x[: flow.nq],
        x[flow.nq :],
        flow.system,
    )
