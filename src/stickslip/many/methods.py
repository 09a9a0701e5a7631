"""Which scheme takes the steps of many bodies."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moreau:
    """Moreau's midpoint rule: one solve a step, contact on velocity level, order 1; overlaps of O(dt)."""


@dataclass(frozen=True)
class LinearisedGaps:
    """Gaps linearised on velocity level: one solve a step, order 1, no impact law (e_N must be 0)."""


@dataclass(frozen=True)
class Rattle:
    """Nonsmooth RATTLE: contact on position level, then on velocity level; order 2 while contacts persist."""

    linearisations: int = 3  # of the gaps in a step, at most; fewer where the true gaps are solved before

    friction: str = "stagewise"  # of full order where a slip turns, or "printed" as in the paper

    def __post_init__(self) -> None:
        if self.friction not in ("stagewise", "printed"):
            raise ValueError(f"Rattle(friction={self.friction!r}): friction must be 'stagewise' or 'printed'")
        n = self.linearisations
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ValueError(f"Rattle(linearisations={n!r}): must be a whole number of at least 1")
