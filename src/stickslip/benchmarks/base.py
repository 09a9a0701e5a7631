"""What a benchmark is."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..methods.base import Method


class Benchmark(eqx.Module):
    """A system with its start, a method that suits it, and answers known from elsewhere."""

    name: str = eqx.field(static=True)
    case: int = eqx.field(static=True)
    system: Any  # a System, each with parameters of its own
    q0: Float[Array, " nq"]
    u0: Float[Array, " nu"]
    t1: float
    dt: float
    method: Method
    source: str = eqx.field(static=True)
    reference: dict[str, Any]  # named exact or converged values; reference["source"] says where they come from
    stepsize: Any = None  # what goes with the method, where it is not dt

    @property
    def steps(self) -> dict[str, Any]:
        """``dt`` or ``stepsize``, as `ss.simulate` takes them."""
        return {"dt": self.dt} if self.stepsize is None else {"stepsize": self.stepsize}
