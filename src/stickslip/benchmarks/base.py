"""What a benchmark is."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..methods.base import Method


class Benchmark(eqx.Module):
    """A system with its start, a method that suits it, and answers known from elsewhere."""

    name: str = eqx.field(static=True)  # as `ss.benchmarks.names()` lists it
    case: int = eqx.field(static=True)  # counted from 1
    system: Any  # a System, each with parameters of its own
    q0: Float[Array, " nq"]  # positions at the start,
    u0: Float[Array, " nu"]  # and velocities
    t1: float  # end in s
    dt: float  # step in s
    method: Method  # that suits it
    source: str = eqx.field(static=True)  # where it is from
    # named exact or converged values; reference["source"] says where they come from
    reference: dict[str, Any]
    stepsize: Any = None  # what goes with the method, where it is not dt

    @property
    def steps(self) -> dict[str, Any]:
        """``dt`` or ``stepsize``, as `ss.simulate` takes them."""
        return {"dt": self.dt} if self.stepsize is None else {"stepsize": self.stepsize}
