"""What a method is: facts about itself, what it remembers between steps, and one step."""

import abc
import copy
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..derive import Directions, Dynamics
from ..results import RESULTS, first_failure
from ..rows import StageLayout
from ..scales import Scales
from ..solvers import Automatic, Inclusions, ProxParameters, Solve, Solver, VelocityProblem
from ..stacked import ActiveSet
from ..trees import held


class Work(NamedTuple):
    """What was done, in every solve of a step; it adds up."""

    newton_iterations: Int[Array, " solves"]
    fixed_point_iterations: Int[Array, " solves"]

    @classmethod
    def of(cls, solves: tuple[Solve, ...]) -> "Work":
        kinds = zip(*((s.newton_iterations, s.fixed_point_iterations) for s in solves), strict=True)
        return cls(*(jnp.stack(counts) for counts in kinds))

    @classmethod
    def none(cls, n_solves: int) -> "Work":
        return cls(*[jnp.zeros(n_solves, dtype=int)] * 2)

    def __add__(self, more: "Work") -> "Work":  # type: ignore[override]
        return Work(*(a + b for a, b in zip(self, more, strict=True)))


class Step(NamedTuple):
    """A step on trial: its end, and what there is to say about how it was made."""

    q: Float[Array, " nq"]
    u: Float[Array, " nu"]
    P: Float[Array, " n_y"]  # percussions over the step, friction in the scale of the balls
    memory: Any
    solves: tuple[Solve, ...]
    separated: Any = None  # forces and impulses, where the scheme tells them apart
    printed: Any = None  # balls that had the printed friction law where the scheme has a better one
    error: Any = None  # estimate of the local error of (q, u), where the scheme has embedded weights
    work: Work | None = None  # where more was done than these solves

    @property
    def spent(self) -> Work:
        return Work.of(self.solves) if self.work is None else self.work

    @property
    def state(self) -> tuple[ActiveSet, ...]:
        """sigma: for every law whether it is a constraint (closed, sticking) or impressed, in every solve."""
        return tuple(s.active for s in self.solves)

    @property
    def result(self) -> Any:
        """How the solves ended: the first failure, or success."""
        result = RESULTS.successful
        for s in self.solves:
            result = first_failure(result, s.result)
        return result


class Tolerances(NamedTuple):
    """What the step size adjustment asks of an attempt."""

    dt_min: Array
    rtol: Array
    atol: Array
    norm: str = "components"  # or "euclidean"

    def allow(self, error: Array, x: Array) -> Bool[Array, ""]:
        """|error| <= atol + rtol |x|, for every component or in the norm of S4 section 9.2."""
        if self.norm == "euclidean":
            error, x = jnp.linalg.norm(error), jnp.linalg.norm(x)
        return jnp.all(jnp.abs(error) <= self.atol + self.rtol * jnp.abs(x))


class Attempt(NamedTuple):
    """A step that may yet be rejected."""

    step: Step
    same: Bool[Array, ""]  # every law in the state it had in the step before
    accurate: Bool[Array, ""]
    order: Array
    may_grow: Any = True  # whether a step twice as long would be accurate, as far as the scheme can tell


def same_state(a: Any, b: Any) -> Bool[Array, ""]:
    equal = jax.tree.map(lambda x, y: jnp.all(x == y), a, b)
    return jax.tree.reduce(jnp.logical_and, equal, jnp.asarray(True))


class Method(eqx.Module):
    """A one-step scheme. ``order`` is measured on persistent contact,
    ``level`` says where contact is enforced.
    """

    if TYPE_CHECKING:  # class facts, or properties where they depend on options
        order: ClassVar[Any]
        level: ClassVar[Any]  # "position" or "velocity"
        reference: ClassVar[str]
        n_solves: ClassVar[Any]
    separates: ClassVar[bool] = False  # whether the scheme tells forces and impulses apart
    # whether a step uses more of the last one than its end: restarts when dt changes
    remembers: ClassVar[Any] = False
    explicit_forces: ClassVar[Any] = False  # whether smooth forces limit dt by how fast they change
    needs_stepsize: ClassVar[Any] = None  # why it cannot do with steps of one size, if so
    solver: eqx.AbstractVar[Solver]

    def __check_init__(self):
        """Solvers are objects with settings of their own."""
        solver = vars(self).get("solver")
        if solver is not None and not isinstance(solver, Solver):
            raise TypeError(
                f"{type(self).__name__}(solver={solver!r}): solver must be an instance such as "
                "ss.SemismoothNewton()"
            )

    @abc.abstractmethod
    def init(self, dynamics: Dynamics, t, q: Array, u: Array, dt) -> Any:
        """What the first step needs to know; a pytree of arrays."""

    @abc.abstractmethod
    def step(self, dynamics: Dynamics, t, t1, dt, q: Array, u: Array, memory: Any) -> Step: ...

    def resume(self, dynamics: Dynamics, t, q: Array, u: Array, dt, memory: Any) -> Any:
        """The memory where another step size, or a state that no step ended in,
        goes on from here: a new start.
        """
        return self.init(dynamics, t, q, u, dt)

    def attempt(
        self, dynamics: Dynamics, t, t1, dt, q, u, memory: Any, sigma: Any, tolerances: Tolerances
    ) -> Attempt:
        """A step for `ss.SwitchingPoints`, after a step with state sigma."""
        out = self.step(dynamics, t, t1, dt, q, u, memory)
        same, order = same_state(out.state, sigma), self.order
        accurate = may_grow = jnp.asarray(True)
        if out.error is not None:
            end = jnp.concatenate([out.q, out.u])
            accurate = tolerances.allow(out.error, end)
            may_grow = tolerances.allow(2.0 ** (order + 1) * out.error, end)
        return Attempt(out, same, accurate, jnp.asarray(order), may_grow)


def with_solver(method: Method, solver: Any) -> Method:
    """The same method with another solver."""
    if "solver" not in vars(method):  # it is somebody else's
        return eqx.tree_at(lambda m: m.solver, method, solver, is_leaf=lambda x: x is method.solver)
    other = copy.copy(method)
    object.__setattr__(other, "solver", solver)  # nothing that was checked has changed
    return other


@functools.cache
def default_solver() -> Solver:
    return Automatic()


def restitution(dynamics: Dynamics) -> Float[Array, " n_y"]:
    """e of every row: zero on bilateral ones, so that xi = gamma+ + e gamma- covers them all."""
    return StageLayout(dynamics.rows).join(0.0, dynamics.laws.e_N, dynamics.laws.e_F)


def on_position_level(dynamics: Dynamics, scales: Scales, dt) -> Scales:
    """Of rows in which g and N are gaps: velocities act over dt, and the terms of a gap cancel."""
    return scales._replace(span=_spans(dynamics, dt), gap=dynamics.rows.spread(dynamics.gap_terms, 0.0))


def _spans(dynamics: Dynamics, dt) -> Float[Array, " n_y"]:
    """dt for gaps, else 1."""
    return dynamics.rows.spread(jnp.full(len(dynamics.rows.gaps), dt), 1.0)


def percussion_slack(
    dynamics: Dynamics, G: Array, dt, stages: Solve, impact: Solve | None
) -> Float[Array, " n_y"]:
    """By how much percussions may be off, for what the solvers were asked:
    on position level, and in an impact.
    """
    G, dt = held((G, dt))
    allowed = dynamics.rows.worst(stages.tolerance) / _spans(dynamics, dt)
    if impact is not None:
        allowed = allowed + impact.tolerance
    return allowed / jnp.where(G > 0.0, G, jnp.inf)


def impact_problem(
    dynamics: Dynamics,
    at: Directions,
    u_free: Float[Array, " nu"],
    gamma_minus: Float[Array, " n_y"],
    closed: Bool[Array, " n_N"],
    before: Float[Array, " n_y"],
    duration,
    law: Callable[[Inclusions], Inclusions] = lambda printed: printed,
    speed: Any = 0.0,
) -> VelocityProblem:
    """The impact law of a whole step, in normal and tangential direction: xi in N_C(-(before + y)).

    S0 (43), S3 (4.114), (5.60), (5.63):  u = u_free + L y,  xi = W^T u + chi + e gamma_minus. ``law`` may put
    another friction law in the place of the printed one; ``speed``: of the rows at the start of the step.
    """
    laws, layout = dynamics.laws, StageLayout(dynamics.rows)
    may_stick = jnp.ones(laws.set.count, dtype=bool)
    rebound = restitution(dynamics) * gamma_minus
    scales = at.scales(u_free)
    scales = scales._replace(speed=scales.speed + jnp.abs(rebound) + speed)
    rho = ProxParameters.of(laws, dynamics.rows, at.G)
    return VelocityProblem(
        law(Inclusions(laws, layout, closed, may_stick, rho, jnp.asarray(duration), before, scales)),
        u_free, at.L, at.W, at.chi + rebound, at.W.T @ at.L,
    )  # fmt: skip
