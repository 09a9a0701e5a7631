"""The mechanisms of the papers, to be looked at: a run of each, drawn and animated."""

import inspect
from typing import Any, NamedTuple

from .. import benchmarks
from ..animation import Animation
from ..results import RESULTS
from ..simulate import simulate


class Mechanism(NamedTuple):
    what: str
    t1: float
    duration: float  # of the playback, in seconds
    cost: float  # seconds on one core
    quick: bool = False


MECHANISMS = {
    "slider-crank": Mechanism(
        "A slider with clearance rattles itself straight, then slides along one wall (S0, S1, S3).",
        0.1,
        12.0,
        6.0,
        True,
    ),
    "woodpecker": Mechanism("The sleeve jams and lets go, the beak pecks (S4).", 0.2, 12.0, 6.0, True),
    "tippedisk": Mechanism(
        "Spun about an in-plane axis, it raises its centre of gravity (S0, S3).", 1.0, 12.0, 8.0, True
    ),
    "tippe-top": Mechanism("Spun on its body, it turns over onto its stem (S2).", 1.5, 12.0, 12.0),
    "guided-hopper": Mechanism(
        "A hopper with a leaf-spring leg: contact of a flexible body (S2).", 0.35, 10.0, 20.0
    ),
    "tetrahedron": Mechanism(
        "Falls flat and slides with anisotropic friction, not straight on (S3).", 2.0, 8.0, 15.0
    ),
    "disk-mixer": Mechanism("Thirty disks in a rotating drum, 465 candidate contacts (S4).", 0.5, 10.0, 25.0),
}


class Film(NamedTuple):
    name: str
    what: str
    animation: dict[str, Any] | None
    error: str = ""  # why there is none


class Script(NamedTuple):
    """How a benchmark is run, and its system."""

    name: str
    about: str
    text: str
    source: str

    @classmethod
    def of(cls, name: str) -> "Script":
        b = benchmarks.load(name)
        t1 = f"{MECHANISMS[name].t1}" if name in MECHANISMS else "b.t1"
        steps = "dt=b.dt" if b.stepsize is None else "stepsize=b.stepsize"
        text = (
            "import stickslip as ss\n\n"
            f'b = ss.benchmarks.load("{name}")\n'
            f"sol = ss.simulate(b.system, b.method, b.q0, b.u0, t1={t1}, {steps})\n"
            f'sol.animate("{name}.html")\n'
        )
        source = inspect.getsource(inspect.getmodule(type(b.system)))  # type: ignore[arg-type]
        return cls(name, benchmarks.about(name).partition("\n\n")[0], text, source)


def film(name: str) -> Film:
    """Run and animate one of them."""
    b, m = benchmarks.load(name), MECHANISMS[name]
    sol = simulate(b.system, b.method, b.q0, b.u0, t1=m.t1, progress=False, **b.steps)
    if sol.result == RESULTS.interrupted:
        raise KeyboardInterrupt
    animation = Animation(sol, title=name, frames=160, duration=m.duration)
    return Film(name, m.what, animation.payload())
