"""Which scheme takes the steps of many bodies."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moreau:
    """Moreau's midpoint rule: one solve a step, contact on velocity level, order 1; bodies overlap by O(dt)."""


@dataclass(frozen=True)
class LinearisedGaps:
    """Gaps linearised on velocity level: one solve a step, order 1, no impact law (e_N must be 0); on the processor."""


@dataclass(frozen=True)
class Rattle:
    """Nonsmooth RATTLE: contact on position level, then on velocity level; on the processor."""

    linearisations: int = 3  # of the gaps in a step, at most: fewer where the true gaps are solved to the tolerance before

    def __post_init__(self) -> None:
        n = self.linearisations
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ValueError(f"Rattle(linearisations={n!r}): linearisations must be a whole number of at least 1")
