"""Step size adjustment: small steps at switching points, large ones between them (S4 sections 5 and 9.3).

Three steps are at hand: the *accepted* one, which cannot be rejected any more, the *previous* one, computed
but perhaps with a switching point at its end that nobody saw, and the *actual* one, about to be computed from
the end of the previous.

    smooth      every law as in the accepted step: actual -> previous -> accepted; longer steps once past
                t_noInc  (Table IV)
    inaccurate  extrapolation, or an embedded formula, missed its tolerance: the actual step again, in half;
                or it is taken as it is, if that is chosen (section 9.3), and counted
    detected    a law changed its state: back to the accepted step, in half, and no longer before
                t_noInc = t_E  (Table V)
    resolved    the same in a step of dt_min: the actual step is accepted with its new state  (Table VI)

An inaccurate step can make the actual step shorter than the previous one. A law that changes there may have
changed in the previous step already; it is then halved, even if the actual step has dt_min, a case the tables
do not have. A step whose solve fails counts as inaccurate; only at dt_min it ends the run.

Forces that jump at a given time are no laws, and a step over the jump need not notice it: its substeps may
all lie on one side, or see it in just the way that extrapolation expects of a smooth force. A system names
such times (`switching_times`) and steps end there.
"""

import math
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .derive import Dynamics
from .fixed import Row, empty_row, first_forces, row_of
from .loop import Controller
from .methods.base import Method, Tolerances, Work
from .results import RESULTS, unless
from .trees import blank, pick

EDGE = 1e-9  # relative: a step of dt_min is recognised in spite of round-off


class SwitchingPoints(eqx.Module):
    """Steps between dt_min and dt_max; rtol and atol decide the order of `ss.Extrapolation`, and by embedded
    weights the steps of `ss.TRBDF2`, `ss.TRX2` and `ss.TRTheta`. Other methods ignore them."""

    dt_min: Any  # in s: the step in which laws switch
    dt_max: Any  # in s
    rtol: Any = 1e-8  # relative tolerance of a step
    atol: Any = 1e-8  # absolute tolerance of a step
    # a step that misses them: in half
    inaccurate: Literal["repeat", "accept"] = eqx.field(default="repeat", static=True)
    # in which they are meant
    norm: Literal["components", "euclidean"] = eqx.field(default="components", static=True)

    def __check_init__(self):
        for name in ("dt_min", "dt_max", "rtol", "atol"):
            value = getattr(self, name)
            if isinstance(value, jax.core.Tracer):
                continue
            least = 0.0 if name in ("rtol", "atol") else math.ulp(0.0)
            if not isinstance(value, Real | jax.Array) or not math.isfinite(value) or value < least:
                what = "not negative" if least == 0.0 else "positive"
                raise ValueError(f"SwitchingPoints({name}={value!r}): {name} must be finite and {what}")
        for name, known in (("inaccurate", ("repeat", "accept")), ("norm", ("components", "euclidean"))):
            if getattr(self, name) not in known:
                stated = f"{name}={getattr(self, name)!r}"
                raise ValueError(f"SwitchingPoints({stated}): {name} must be {' or '.join(map(repr, known))}")
        traced = isinstance(self.dt_min, jax.core.Tracer) or isinstance(self.dt_max, jax.core.Tracer)
        if not traced and self.dt_min > self.dt_max:
            raise ValueError(f"SwitchingPoints: dt_min = {self.dt_min} is larger than dt_max = {self.dt_max}")

    def as_arrays(self) -> "SwitchingPoints":
        """A new tolerance must not mean a new compilation."""
        return jax.tree.map(lambda x: jnp.asarray(x, dtype=float), self)

    @property
    def tolerances(self) -> Tolerances:
        return Tolerances(self.dt_min, self.rtol, self.atol, self.norm)

    def longer(self, dt: Array) -> Array:
        """Tables IV and VI; extrapolation needs three substeps of dt_min."""
        return jnp.minimum(jnp.maximum(2.0 * dt, 3.0 * self.dt_min), self.dt_max)

    def shorter(self, dt: Array) -> Array:
        """Table V"""
        return jnp.where(dt / 2.0 < 3.0 * self.dt_min, self.dt_min, dt / 2.0)

    def is_shortest(self, dt: Array) -> Array:
        """dt_min, or a little more where a crumb was added to it."""
        return dt <= 1.5 * self.dt_min * (1.0 + EDGE)


class TimeStep(NamedTuple):
    """{q_E, u_E, t_E, P, dt, sigma} of section 9.3, with what the next step and the output need."""

    t_B: Float[Array, ""]
    t_E: Float[Array, ""]
    dt: Float[Array, ""]  # t_E - t_B, without its round-off
    row: Row
    memory: Any
    sigma: Any
    order: Array
    missed: Array  # its tolerance, and was taken nevertheless


class Kept(NamedTuple):
    """What is kept of an accepted step."""

    t: Array
    row: Row
    order: Array
    missed: Array
    state: Array  # of every law at the end: closed, sticking

    @classmethod
    def of(cls, dynamics: Dynamics, step: TimeStep) -> "Kept":
        laws = dynamics.laws
        last = step.sigma[-1]
        state = [last.normal.reshape(-1, laws.n_N)[-1] if laws.n_N else jnp.zeros(0, dtype=bool)]
        count = laws.set.count
        state += [last.stick.reshape(-1, count)[-1] if count else jnp.zeros(0, dtype=bool)]
        return cls(step.t_E, step.row, step.order, step.missed, jnp.concatenate(state))


class State(NamedTuple):
    """Between calculation steps."""

    k: Array  # accepted steps of the run
    accepted: TimeStep
    previous: TimeStep
    pending: Array  # whether the previous step is another one than the accepted
    dt: Array
    t_no_increase: Array
    work: Work  # since the last step that was kept
    attempts: Array
    finished: Array
    result: Any
    rows: Array


def _advance(
    dynamics: Dynamics, method: Method, control: SwitchingPoints, t1: Array, patient: bool, c: State
) -> tuple[State, tuple[tuple[Kept, Array], ...]]:
    """One calculation step, and up to two steps to keep."""
    t, before = c.previous.t_E, c.previous
    stops = jnp.asarray(dynamics.system.switching_times, dtype=float).reshape(-1)
    crumb = 0.5 * control.dt_min
    ahead = (stops > t + crumb) & (stops < t1 - crumb)
    target = jnp.minimum(t1, jnp.min(jnp.where(ahead, stops, jnp.inf), initial=jnp.inf))
    dt = jnp.minimum(c.dt, target - t)
    reached = target - (t + dt) < crumb
    t_E = jnp.where(reached, target, t + dt)
    dt = jnp.where(reached, target - t, dt)
    final = reached & (target == t1)
    q, u, memory = before.row.q, before.row.u, before.memory
    if method.remembers:
        changed = (jnp.abs(dt - before.dt) > 1e-6 * dt) | jnp.any(stops == t)
        memory = jax.lax.cond(changed, lambda: method.resume(dynamics, t, q, u, dt, memory), lambda: memory)
    attempt = method.attempt(dynamics, t, t_E, dt, q, u, memory, c.accepted.sigma, control.tolerances)
    row, result, rows = row_of(dynamics, method, attempt.step, dt)
    solved, shortest = result == RESULTS.successful, control.is_shortest(dt)
    sigma, missed = attempt.step.state, attempt.same & ~attempt.accurate & ~shortest
    actual = TimeStep(t, t_E, dt, row, attempt.step.memory, sigma, attempt.order, missed)

    settled = ~c.pending | control.is_shortest(before.dt)  # the previous step cannot hide the switching point
    smooth = solved & attempt.same & (attempt.accurate | shortest | (control.inaccurate == "accept"))
    resolved = solved & ~attempt.same & shortest & settled
    detected = solved & ~attempt.same & ~resolved
    over = ~solved & shortest
    finished = final & (smooth | resolved)

    accepted = pick(resolved, actual, pick(smooth, before, c.accepted))
    previous = pick(smooth | resolved, actual, pick(detected, c.accepted, before))
    t_no_increase = jnp.where(detected | resolved, t_E, c.t_no_increase)
    grows = resolved | (smooth & attempt.may_grow & (accepted.t_B > c.t_no_increase))
    halved = control.shorter(jnp.where(detected & c.pending, jnp.maximum(dt, before.dt), dt))
    new_dt = jnp.where(grows, control.longer(dt), jnp.where(smooth | over, dt, halved))

    keep_previous = c.pending & (smooth | resolved | over)
    keep_actual = resolved | finished
    spent = c.work + row.work
    nothing = jax.tree.map(jnp.zeros_like, spent)

    def kept(step: TimeStep, work) -> Kept:
        return Kept.of(dynamics, step._replace(row=step.row._replace(work=work)))

    first, second = kept(before, spent), kept(actual, pick(keep_previous, nothing, spent))
    pending = jnp.where(smooth, ~finished, c.pending & ~(resolved | detected | over))
    after = State(
        c.k + keep_previous + keep_actual, accepted, previous, pending, new_dt, t_no_increase,
        pick(keep_previous | keep_actual, nothing, spent), c.attempts + 1, finished, unless(~over, result),
        rows,
    )  # fmt: skip
    if patient:
        return after, ((first, keep_previous), (second, keep_actual))
    # The caller has a better solver: nothing has happened yet.
    waits = c._replace(result=unless(solved, result), rows=rows, attempts=c.attempts + 1, work=spent)
    return pick(solved, after, waits), ((first, keep_previous & solved), (second, keep_actual & solved))


def _first(
    dynamics: Dynamics, method: Method, control: SwitchingPoints, t0: Array, t1: Array, q, u
) -> tuple[State, Any]:
    """The first step: it has dt_min and is accepted, whatever its state.

    Also what the method knows of the start.
    """
    dt = jnp.minimum(control.dt_min, t1 - t0)
    memory = method.init(dynamics, t0, q, u, dt)
    shapes = jax.eval_shape(lambda: method.step(dynamics, t0, t0 + dt, dt, q, u, memory))
    row = empty_row(dynamics, method, q, u)._replace(q=q, u=u)
    start = TimeStep(t0 - dt, t0, dt, row, memory, blank(shapes.state), jnp.asarray(0), jnp.asarray(False))
    none = Work.none(method.n_solves)
    rows = jnp.zeros((method.n_solves, dynamics.n_y))
    carry = State(
        jnp.asarray(0), start, start, jnp.asarray(False), dt, t0, none, jnp.asarray(0), jnp.asarray(False),
        RESULTS.successful, rows,
    )  # fmt: skip
    return carry, first_forces(dynamics, method, memory)


class Adjusted(Controller):
    """Steps as `ss.SwitchingPoints` wants them, up to t1."""

    kept: ClassVar[int] = 2
    chosen: SwitchingPoints
    t0: Any
    t1: Any
    # whether a step whose solve fails is halved; else the caller has a better solver
    patient: bool = eqx.field(default=True, static=True)

    def first(self, dynamics, method, t0, q, u):
        return _first(dynamics, method, self.chosen, t0, self.t1, q, u)

    def nothing(self, dynamics, method, state):
        return Kept.of(dynamics, state.accepted)

    def advance(self, dynamics, method, state):
        return _advance(dynamics, method, self.chosen, self.t1, self.patient, state)

    def unfinished(self, state):
        return ~state.finished

    def attempts(self, state):
        return state.attempts

    def attempts_for(self, rows):
        return 1000 * rows

    def quiet(self, rows, fill):
        row = rows.row._replace(
            P=tuple(fill(P, 0.0) for P in rows.row.P),
            work=Work(*(fill(n, 0) for n in rows.row.work)),
            printed=fill(rows.row.printed, False),
        )
        return rows._replace(row=row, order=fill(rows.order, 0), missed=fill(rows.missed, False))

    def patiently(self, patient):
        return Adjusted(self.chosen, self.t0, self.t1, patient)

    def progress(self, state):
        return int(1000 * (self.time(state) - float(self.t0)) / (float(self.t1) - float(self.t0)))

    def time(self, state):
        return float(state.accepted.t_E)
