"""Extrapolation of a first-order method over a step in which no law changes its state.

    T_i,1 = the step in n_i substeps of the base method,    n_i = 1, 3, 5, ...                   (section 8.2)
    T_i,j+1 = T_i,j + (T_i,j - T_i-1,j) / (n_i / n_i-j - 1)                                      (42)

T_i,i has order i. It replaces T_i-1,i-1 until |T_i,i - T_i-1,i-1| <= atol + rtol |T_i,i|, or until the order
is reached, or until substeps would be shorter than dt_min. A substep whose discrete state sigma is not that
of the step before holds a switching point: there is nothing to extrapolate, and the step counts only as one
step of the base method.

Odd numbers of substeps, because the impact law is a map and not a flow: an enduring contact with restitution
takes gamma to (-e)^n gamma in n substeps, and extrapolating alternating signs gains energy (section 8.1;
``substeps="all"`` shows it). The other cure is a restitution e^(dt/dt_min), which only impacts feel
(``enduring="modified"``, section 8.2).

Percussions are those of the finest substeps, not extrapolated. Measured: order i in q and u between switching
points. C. Studer, R. I. Leine, Ch. Glocker, Step size adjustment and extrapolation for time-stepping schemes
in non-smooth dynamics, Int. J. Numer. Meth. Engng 76 (2008), doi:10.1002/nme.2383 (S4).
"""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..results import RESULTS, first_failure
from ..solvers import Automatic, SemismoothNewton
from ..trees import blank, pick
from .base import Attempt, Method, Step, Tolerances, Work, same_state
from .moreau import MoreauMidpoint

MAX_ORDER = 20


def precise_moreau() -> MoreauMidpoint:
    """Percussions of a step of dt_min are as small as dt_min: what counts as solved must be smaller still."""
    return MoreauMidpoint(solver=Automatic(newton=SemismoothNewton(atol=1e-15)))


class Memory(NamedTuple):
    """That of the base method, and the state in which its first step is expected to be."""

    base: Any
    sigma: Any
    known: Array  # False in the first step, which has no predecessor


class _Tableau(NamedTuple):
    """How far the tableau (43) has come: line i, substep j of it, and the state there."""

    i: Array
    j: Array
    at: Step
    P: Array  # over the substeps of this line
    T: Float[Array, "order n"]  # T_i-1,1 ... T_i-1,i-1
    first: Step  # T_1,1
    best: Array  # T_i-1,i-1
    P_best: Array
    work: Work
    result: Any
    same: Bool[Array, ""]
    accurate: Bool[Array, ""]
    done: Bool[Array, ""]
    printed: Any  # of any substep, see `Step`


class Extrapolation(Method):
    """S4's extrapolation over a ``base`` of order 1: of that ``order`` between switching points,
    one base step across them.

    Made for ``stepsize=SwitchingPoints(...)``, which may choose a lower order (not if ``fixed_order``).
    ``substeps``: "odd" or "all" numbers of them; ``enduring="modified"`` has restitution e^(dt/dt_min) in
    place of Newton's e.
    """

    order: int = eqx.field(default=4, static=True)  # type: ignore[misc]
    base: Method = eqx.field(default_factory=precise_moreau)  # the method that is extrapolated
    fixed_order: bool = eqx.field(default=False, static=True)  # whether every smooth step has this order
    substeps: Literal["odd", "all"] = eqx.field(default="odd", static=True)  # how many substeps a stage has
    enduring: Literal["newton", "modified"] = eqx.field(default="newton", static=True)

    if TYPE_CHECKING:  # the solver is the base's

        def __init__(self, order: int = 4, base: Any = None, fixed_order: bool = False, substeps: str = "odd",
                     enduring: str = "newton") -> None: ...  # fmt: skip

    reference = "Studer, Leine, Glocker, IJNME 76 (2008); doi:10.1002/nme.2383 (S4)"

    def __check_init__(self):
        if not isinstance(self.order, int) or not 1 <= self.order <= MAX_ORDER:
            raise ValueError(
                f"Extrapolation(order={self.order!r}): order must be an integer, 1 to {MAX_ORDER}"
            )
        if not isinstance(self.base, Method):
            raise TypeError(
                f"Extrapolation(base={self.base!r}): base must be a method such as ss.MoreauMidpoint()"
            )
        if self.base.order != 1:
            raise ValueError(
                f"Extrapolation(base={type(self.base).__name__}): the base must have order 1, this one has"
                f" {self.base.order}; use ss.MoreauMidpoint()"
            )
        for name, value, known in (
            ("substeps", self.substeps, ("odd", "all")),
            ("enduring", self.enduring, ("newton", "modified")),
        ):
            if value not in known:
                raise ValueError(
                    f"Extrapolation({name}={value!r}): {name} must be {' or '.join(map(repr, known))}"
                )

    @property
    def level(self):
        return self.base.level

    @property
    def n_solves(self):
        return self.base.n_solves

    @property  # type: ignore[misc]
    def solver(self):  # type: ignore[override]
        return self.base.solver

    @property
    def needs_stepsize(self):
        return "enduring='modified' compares dt with dt_min" if self.enduring == "modified" else None

    @property
    def numbers(self) -> np.ndarray:
        """n_i"""
        i = np.arange(self.order)
        return 2 * i + 1 if self.substeps == "odd" else i + 1

    def init(self, dynamics, t, q, u, dt):
        base = self.base.init(dynamics, t, q, u, dt)
        shapes = jax.eval_shape(lambda: self.base.step(dynamics, t, t + dt, dt, q, u, base).state)
        return Memory(base, blank(shapes), jnp.asarray(False))

    def step(self, dynamics, t, t1, dt, q, u, memory):
        """With steps of a fixed size: the full order in smooth steps, the base method in others."""
        return self._attempt(dynamics, t, t1, dt, q, u, memory, None).step

    def attempt(self, dynamics, t, t1, dt, q, u, memory, sigma, tolerances):
        return self._attempt(
            dynamics, t, t1, dt, q, u, Memory(memory.base, sigma, jnp.asarray(True)), tolerances
        )

    def _attempt(self, dynamics, t, t1, dt, q, u, memory: Memory, tolerances: Tolerances | None) -> Attempt:
        numbers, base = jnp.asarray(self.numbers), self.base
        variable = tolerances is not None and not self.fixed_order and self.order > 1
        shortest = 0.0 if tolerances is None else tolerances.dt_min * (1.0 - 1e-9)
        begin = Step(q, u, jnp.zeros(dynamics.n_y), memory.base, ())

        def substep(s: _Tableau) -> Step:
            n = numbers[s.i]
            h = dt / n
            end = jnp.where(s.j + 1 == n, t1, t + (s.j + 1) * h)
            of_step = self._impact_law(dynamics, h, tolerances)
            return base.step(of_step, t + s.j * h, end, h, s.at.q, s.at.u, s.at.memory)

        def advance(s: _Tableau) -> _Tableau:
            out = substep(s)
            sigma = out.state
            first = pick((s.i == 0) & (s.j == 0), out, s.first)
            expected = pick(memory.known, memory.sigma, first.state)
            same = s.same & same_state(sigma, expected)
            P = s.P + out.P
            result = first_failure(s.result, out.result)
            complete = s.j + 1 == numbers[s.i]
            y = jnp.concatenate([out.q, out.u])
            T = self._next_line(s.i, s.T, y)
            small = jnp.asarray(True)
            if variable and tolerances is not None:
                small = (s.i > 0) & tolerances.allow(T[-1] - s.best, T[-1])
            last = (s.i + 1 == self.order) | (dt / numbers[jnp.minimum(s.i + 1, self.order - 1)] < shortest)
            done = ~same | (result != RESULTS.successful) | (complete & (last | (small & variable)))
            at = Step(out.q, out.u, out.P, out.memory, ())
            printed = jax.tree.map(jnp.logical_or, s.printed, out.printed)
            return _Tableau(
                jnp.where(complete, s.i + 1, s.i), jnp.where(complete, 0, s.j + 1), pick(complete, begin, at),
                jnp.where(complete, 0.0, P), jnp.where(complete, T, s.T), first,
                jnp.where(complete, T[-1], s.best), jnp.where(complete, P, s.P_best), s.work + out.spent,
                result, same, small, done, printed,
            )  # fmt: skip

        shapes = jax.eval_shape(lambda: base.step(dynamics, t, t1, dt, q, u, memory.base))
        y, yes = jnp.concatenate([q, u]), jnp.asarray(True)
        start = _Tableau(
            jnp.asarray(0), jnp.asarray(0), begin, begin.P, jnp.zeros((self.order, y.shape[0])),
            blank(shapes), y, begin.P,
            Work.none(base.n_solves), RESULTS.successful, yes, yes, ~yes, blank(shapes.printed),
        )  # fmt: skip

        # a loop whose length is known, which can be differentiated both ways
        def once_more(s: _Tableau, _):
            return jax.lax.cond(s.done, lambda s: s, advance, s), None

        end, _ = jax.lax.scan(once_more, start, length=int(self.numbers.sum()))
        # A switching point leaves the one step of the base method.
        q1 = jnp.where(end.same, dynamics.normalize(end.best[: q.shape[0]]), end.first.q)
        u1 = jnp.where(end.same, end.best[q.shape[0] :], end.first.u)
        P = jnp.where(end.same, end.P_best, end.first.P)
        after = base.resume(dynamics, t1, q1, u1, dt, end.first.memory)
        solves = tuple(s._replace(result=end.result) for s in end.first.solves)
        step = Step(
            q1, u1, P, Memory(after, end.first.state, yes), solves, printed=end.printed, work=end.work
        )
        return Attempt(step, end.same, end.accurate, jnp.where(end.same, end.i, 1))

    def _next_line(self, i: Array, T: Array, y: Array) -> Array:
        """T_i,1 ... T_i,i from T_i,1 = y and the line before, (42); entries beyond T_i,i repeat it."""
        n = self.numbers
        weights = np.zeros((self.order, self.order))
        for line in range(self.order):
            for j in range(1, line + 1):
                weights[line, j] = 1.0 / (n[line] / n[line - j] - 1.0)
        w = jnp.asarray(weights)[i]
        new = [y]
        for j in range(1, self.order):
            new.append(new[-1] + w[j] * (new[-1] - T[j - 1]))
        return jnp.stack(new)

    def _impact_law(self, dynamics, h, tolerances: Tolerances | None):
        if self.enduring == "newton" or tolerances is None:
            return dynamics
        exponent = jnp.maximum(1.0, h / tolerances.dt_min)
        laws = dynamics.laws
        return eqx.tree_at(
            lambda d: (d.laws.e_N, d.laws.e_F), dynamics, (laws.e_N**exponent, laws.e_F**exponent)
        )
