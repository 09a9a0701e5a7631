"""Benchmarks with answers: `names()` and `load(name, case)`."""

from typing import Any

from ..validate import nearest
from . import bouncing_ball, bouncing_ball_1d, mass_on_slope, pendulum, slider_crank, tippedisk
from .base import Benchmark as Benchmark

_MODULES: dict[str, Any] = {
    "bouncing-ball": bouncing_ball,
    "slider-crank": slider_crank,
    "mass-on-slope": mass_on_slope,
    "tippedisk": tippedisk,
    "pendulum": pendulum,
    "bouncing-ball-1d": bouncing_ball_1d,
}


def names() -> list[str]:
    return list(_MODULES)


def cases(name: str) -> tuple[int, ...]:
    """The cases a benchmark has."""
    return _module(name).CASES


def about(name: str) -> str:
    """What a benchmark is about, in its author's words."""
    return _module(name).__doc__.strip()


def load(name: str, case: int = 1, **options: Any) -> Benchmark:
    module = _module(name)
    if case not in module.CASES:
        raise ValueError(f"{name} has no case {case}; its cases are {', '.join(map(str, module.CASES))}")
    return module.load(case, **options)


def _module(name: str) -> Any:
    if name not in _MODULES:
        raise nearest("benchmark", name, _MODULES)
    return _MODULES[name]
