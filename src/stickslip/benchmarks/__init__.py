"""Benchmarks with answers: `names()` and `load(name, case)`."""

from typing import Any

from ..validate import nearest
from . import (
    ball_in_corner,
    ball_in_cylinder,
    ball_in_hollow_sphere,
    block_on_belt,
    bounce,
    bouncing_ball,
    bouncing_ball_1d,
    disk_mixer,
    falling_mass,
    guided_hopper,
    impact_oscillator,
    incline,
    mass_on_slope,
    painleve_rod,
    pendulum,
    puck,
    rolling_ball,
    rolling_disc,
    slider_crank,
    sliding_cube,
    sliding_mass,
    stiff_pendulum,
    tetrahedron,
    tippe_top,
    tippedisk,
    woodpecker,
)
from .base import Benchmark as Benchmark

_MODULES: dict[str, Any] = {
    "bouncing-ball": bouncing_ball,
    "rolling-ball": rolling_ball,
    "ball-in-hollow-sphere": ball_in_hollow_sphere,
    "block-on-belt": block_on_belt,
    "stiff-pendulum": stiff_pendulum,
    "slider-crank": slider_crank,
    "mass-on-slope": mass_on_slope,
    "painleve-rod": painleve_rod,
    "ball-in-corner": ball_in_corner,
    "tippedisk": tippedisk,
    "tetrahedron": tetrahedron,
    "ball-in-cylinder": ball_in_cylinder,
    "guided-hopper": guided_hopper,
    "tippe-top": tippe_top,
    "sliding-mass": sliding_mass,
    "falling-mass": falling_mass,
    "impact-oscillator": impact_oscillator,
    "woodpecker": woodpecker,
    "disk-mixer": disk_mixer,
    "pendulum": pendulum,
    "bouncing-ball-1d": bouncing_ball_1d,
    "rolling-disc": rolling_disc,
    "puck": puck,
    "incline": incline,
    "sliding-cube": sliding_cube,
    "bounce": bounce,
}


def names() -> list[str]:
    return list(_MODULES)


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
    module = _module(name)
    if case not in module.CASES:
        raise ValueError(f"{name} has no case {case}; its cases are {', '.join(map(str, module.CASES))}")
    return module.load(case, **options)


def _module(name: str) -> Any:
    if name not in _MODULES:
        raise nearest("benchmark", name, _MODULES)
    return _MODULES[name]
