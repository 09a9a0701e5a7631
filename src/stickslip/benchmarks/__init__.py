"""Benchmarks with answers: `names()` and `load(name, case)`."""

from importlib import import_module
from typing import Any

from ..validate import nearest
from .base import Benchmark as Benchmark

# Each is the module of its name, imported when it is asked for: references may need more than a run does.
_NAMES = (
    "bouncing-ball",
    "rolling-ball",
    "ball-in-hollow-sphere",
    "block-on-belt",
    "stiff-pendulum",
    "slider-crank",
    "mass-on-slope",
    "painleve-rod",
    "ball-in-corner",
    "tippedisk",
    "tetrahedron",
    "ball-in-cylinder",
    "guided-hopper",
    "tippe-top",
    "sliding-mass",
    "falling-mass",
    "impact-oscillator",
    "woodpecker",
    "disk-mixer",
    "pendulum",
    "bouncing-ball-1d",
    "rolling-disc",
    "puck",
    "incline",
    "sliding-cube",
    "bounce",
    "knife-edge",
    "rolling-wheel",
    "super-ball",
    "freewheel",
    "forced-impact-oscillator",
)


def names() -> list[str]:
    """Of all benchmarks."""
    return list(_NAMES)


def cases(name: str) -> tuple[int, ...]:
    """The cases a benchmark has."""
    return _module(name).CASES


def methods(name: str) -> tuple[str, ...] | None:
    """The methods a benchmark is meant for; None: all."""
    return getattr(_module(name), "METHODS", None)


def about(name: str) -> str:
    """What a benchmark is about, in its author's words."""
    return _module(name).__doc__.strip()


def load(name: str, case: int = 1, **options: Any) -> Benchmark:
    """A benchmark by its name; ``options`` are those of its module, such as a radius or g."""
    module = _module(name)
    if case not in module.CASES:
        raise ValueError(f"{name} has no case {case}; its cases are {', '.join(map(str, module.CASES))}")
    return module.load(case, **options)


def _module(name: str) -> Any:
    if name not in _NAMES:
        raise nearest("benchmark", name, _NAMES)
    return import_module(f".{name.replace('-', '_')}", __name__)


def __getattr__(name: str) -> Any:
    if name.replace("_", "-") in _NAMES:
        return _module(name.replace("_", "-"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
