"""Packages that simulating does not need.

Whoever asks for what does need one, and has it not, is told what to install.
"""

import importlib
from collections.abc import Mapping
from typing import Any

# where what is imported is installed under another name
DISTRIBUTIONS = {"PIL": "pillow", "mujoco": "mujoco-core"}


class MissingExtra(ImportError):
    """A package of an extra is not there; says what asked for it and which extra brings it."""


def need(package: str, extra: str, what: str) -> Any:
    """The module ``package``, which ``extra`` brings and ``what`` asks for: ``need("matplotlib",
    "plots", "sol.plot")``.
    """
    return need_all({package: extra}, what)[0]


def need_all(packages: Mapping[str, str], what: str) -> list[Any]:
    """Modules by the extras that bring them: one sentence for all that are missing,
    before any work is done.
    """
    modules, missing = [], {}
    for package, extra in packages.items():
        top = package.partition(".")[0]
        try:
            modules.append(importlib.import_module(package))
        except ModuleNotFoundError as error:
            if error.name != top:  # it is there, and what it needs itself is not: its own words are better
                raise
            missing[DISTRIBUTIONS.get(top, top)] = extra
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last}" if others else last
        raise MissingExtra(
            f'{what} needs {names}: pip install "stickslip[{",".join(dict.fromkeys(missing.values()))}]"'
        )
    return modules
