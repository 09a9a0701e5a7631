"""One attempt: a step of some length from the state reached.

It is rejected (too long for its error, or for the events in it), or it is taken and ends before the next
event, or it is taken and ends at one, which is then treated. Decisions have no derivatives; what is taken has
them (`derivative.py`).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..derive import Dynamics
from ..methods.base import Method
from ..methods.given_modes import GivenModes, Instant, Trial, carried, trial
from ..results import RESULTS, unless
from ..solvers import SemismoothNewton
from ..trees import held, pick
from . import derivative
from .error import GROW, estimate, growth, nodes
from .functions import Look, look_along, slack, slopes, wanted
from .plan import EPS, Plan, planned
from .state import TINY, TOGETHER, Carry, Control, Row, Search
from .treatment import Before, Treated, treat

SHARP = 1e-14  # of the step size: how well an event is located, if round-off allows
LONGEST_SEARCH = 12  # attempts to locate an event
PATIENCE = 12  # treatments without a step in between


class Tried(NamedTuple):
    """A step, its error, and what it hides."""

    step: Trial
    end: Instant
    solved: Bool[Array, ""]
    error: Array
    values: Array  # event functions at the end,
    slopes: Array
    slack: Array  # and what is zero of them
    look: Look


def _try(dynamics: Dynamics, method: Any, control: Control, c: Carry, plan: Plan) -> Tried:
    """(2) to (5); nothing here has derivatives."""
    dynamics, c, plan = held((dynamics, c, plan))
    now, moved, h = plan.now, pick(c.stale, c.modes, plan.moved), plan.dt
    solver = SemismoothNewton().unless(c.stale)
    in_space = dynamics.laws.set.largest_dimension > 1  # else the direction of slip is a sign, and frozen
    step = trial(method, solver, dynamics, c.t, h, c.q, c.u, plan.modes, now, guided=in_space)
    # Stages whose velocities have a low order say nothing about the error: the end alone.
    first = method.stages if step.rest is not None else 0
    times = c.t + np.append(method.coefficients.c[first:], 1.0) * h
    states = (
        times,
        jnp.concatenate([step.Q[first:], step.q[None]]),
        jnp.concatenate([step.U[first:], step.u[None]]),
    )
    states = pick(
        c.stale,
        tuple(jnp.broadcast_to(x, a.shape) for x, a in zip((c.t, c.q, c.u), states, strict=True)),
        states,
    )
    zero = slack(dynamics, control, plan.modes, now)
    look = look_along(dynamics, control, c, moved, h, now, states, plan.first, zero, nodes(method), step.rest)
    step = step._replace(u=look.u, P=step.P + look.P)
    solved = step.ok & jnp.all(jnp.isfinite(look.u_dot))
    error = estimate(method, control, h, (c.q, c.u), step, now, look)
    fall = slopes(dynamics, moved, look.end, look.values, h)
    return Tried(step, look.end, solved, jnp.where(solved, error, jnp.inf), look.values[-1], fall, zero, look)


class Verdict(NamedTuple):
    """What becomes of an attempt; of the first six one holds."""

    fails: Bool[Array, ""]  # could not be solved
    rejected: Bool[Array, ""]  # its error is too large
    at_start: Bool[Array, ""]  # something happens before it
    waits: Bool[Array, ""]  # a fresh function never became positive
    searches: Bool[Array, ""]  # an event lies in it
    goes_on: Bool[Array, ""]  # it is taken,
    event: Bool[Array, ""]  # up to an event
    target: Int[Array, ""]  # the function that is sought
    search: Search
    guess: Array  # the next length of the search
    from_start: Bool[Array, ""]
    tiny: Bool[Array, ""]


def _judge(dynamics: Dynamics, control: Control, c: Carry, plan: Plan, tried: Tried) -> Verdict:
    """(5), (6), (7)"""
    look, values, s, h, n = tried.look, tried.values, c.search, held(plan.dt), dynamics.laws.n_N
    t_end = held(c.t) + h
    target = jnp.where(s.on, s.target, look.which)
    value, slope = values[target], tried.slopes[target]
    # Slopes of gaps are exact; those of forces are better from two real steps than from samples of one.
    secant = (value - s.value) / jnp.where(h == s.length, jnp.inf, h - s.length)
    exact = (target < n) & ~plan.modes.closed[jnp.minimum(target, n - 1)] if n else jnp.asarray(False)
    slope = jnp.where(s.on & (s.tries >= 2) & ~exact & (secant < 0.0), secant, slope)
    away = value / jnp.where(slope < 0.0, -slope, jnp.nan)  # time until the root, by Newton
    sharp = SHARP * c.dt + 4.0 * EPS * jnp.abs(t_end)
    met = (jnp.abs(away) <= TOGETHER * c.dt) & (s.high - s.low <= 2.0 * sharp)
    stale = (s.tries >= 3) & (jnp.abs(away) < TOGETHER * c.dt) & (jnp.abs(value) > 0.25 * jnp.abs(s.value))
    enough = (s.tries >= LONGEST_SEARCH) & (jnp.abs(away) <= 1e-6 * c.dt)
    there = s.on & ((jnp.abs(away) <= sharp) | (jnp.abs(value) <= tried.slack[target]) | met | stale | enough)
    earlier = look.found & (look.where < 1.0 - TOGETHER) & (look.which != target)

    tiny = h <= TINY * c.dt + 16.0 * EPS * jnp.abs(held(c.t))
    accurate = tried.solved & ((tried.error <= 1.0) | control.fixed | s.on)
    # at the start already, or so close to it that no step leads there
    from_start = look.at_start | (look.found & (look.where * h <= 1e-3 * TOGETHER * c.dt))
    at_start = c.begins | (accurate & (from_start | (look.stuck & tiny)))
    waits = accurate & ~at_start & look.stuck
    searches = accurate & ~at_start & ~waits & (look.found | s.on) & (~there | earlier)
    low = jnp.where(searches & ~look.found, h, jnp.where(s.on, s.low, 0.0))
    high = jnp.where(searches & look.found, h, jnp.where(s.on, s.high, h))
    # (6): no root here, and by Newton none near: a false alarm of the dense output
    closed_in = ~look.found & (high - low <= jnp.maximum(sharp, jnp.minimum(1e-4 * h, 0.1 * away)))
    searches = searches & ~closed_in
    goes_on = accurate & ~at_start & ~waits & ~searches

    newton = h + away
    near = s.on & (jnp.abs(away) < 0.1 * h) & ~earlier
    guess = jnp.where(near, newton, jnp.where(look.found, look.where * h, newton))
    guess = jnp.where((guess > low) & (guess < high), guess, (low + high) / 2.0)
    sought = jnp.where(earlier | ~s.on, look.which, s.target)
    search = Search(searches, sought, low, high, jnp.where(searches, s.tries + 1, 0), h, values[sought])
    return Verdict(
        ~tried.solved & ~at_start, tried.solved & ~accurate & ~at_start, at_start, waits, searches, goes_on,
        goes_on & there, target, search, guess, from_start, tiny,
    )  # fmt: skip


def _flags(
    dynamics: Dynamics, control: Control, c: Carry, plan: Plan, tried: Tried, verdict: Verdict
) -> Array:
    """(8): functions whose events are treated now; those that are zero at the same time are among them."""
    functions = jnp.arange(tried.values.shape[0])
    known = ~c.fresh | jnp.any(tried.look.values > 0.0, axis=0)
    soon = (tried.slopes < 0.0) & (tried.values + tried.slopes * TOGETHER * c.dt <= 0.0) & ~c.ignored & known
    at_end = verdict.event & (soon | (functions == verdict.target))
    begun = ~c.ignored & (plan.first < -tried.slack) | (tried.look.found & (functions == tried.look.which))
    at_start = jnp.where(c.begins, c.due, begun & ~c.fresh & verdict.from_start)
    return jnp.where(verdict.at_start, at_start, at_end) & wanted(dynamics, control, c.sides)


class Kept(NamedTuple):
    """What an attempt leaves: up to two rows."""

    first: Row
    keep_first: Array
    second: Row
    keep_second: Array


class Outcome(NamedTuple):
    """What an attempt came to."""

    treated: Treated
    code: Array  # of events
    t: Array  # where it ended, or began if that was treated
    q: Array
    u: Array  # before
    P: Array
    now: Instant  # before
    flags: Array
    treats: Bool[Array, ""]
    guarded: Bool[Array, ""]
    unique: Bool[Array, ""]  # whether forces were
    taken: Bool[Array, ""]  # the step is
    decided: Bool[Array, ""]  # modes of the start were
    too_late: Bool[Array, ""]
    failed: Bool[Array, ""]  # the treatment could not be solved
    lost: Bool[Array, ""]  # no way on
    changed: tuple[Array, Array]  # contacts and balls in another mode


def _carry_out(
    dynamics: Dynamics, method: Method, control: Control, c: Carry, plan: Plan, tried: Tried, verdict: Verdict
) -> Outcome:
    """The step as it is taken, with its derivatives,
    and the treatment of what happens at its end (or before it).
    """
    flags, look = _flags(dynamics, control, c, plan, tried, verdict), tried.look
    event, at_start = verdict.event, verdict.at_start
    args = dynamics, c.t, plan.dt, c.q, c.u, plan.modes
    q, u, P, dt = derivative.taken(
        args, held(tried.step), c.sides, verdict.target, event, method=method, control=control
    )
    t = jnp.where(plan.lands & ~event, plan.stop, c.t + dt)
    state = dynamics, c.t, c.q, c.u, plan.modes
    late = derivative.moment(state, c.sides, look.which, at_start & look.found & ~c.begins, control=control)
    now = held(plan.now)
    t, q, u = pick(at_start, (c.t + late, c.q + late * now.q_dot, c.u + late * now.u_dot), (t, q, u))

    jumps = verdict.goes_on & plan.lands & (plan.stop < control.t1) & ~event
    # (11): while redundant contacts bear what looks like an event, the inclusion has the last word on every
    # step
    guarded = verdict.goes_on & ~event & ~jumps & jnp.any(c.ignored)
    treats = event | at_start | jumps | guarded
    was, here = pick(at_start, plan.modes, plan.moved), held(pick(at_start, now, tried.end))
    again = guarded | ~here.unique | (at_start & (c.begins | (c.treated > 0) | ~jnp.any(flags)))
    known = derivative.again((dynamics, t, q, u, was), here)

    def happens():
        return treat(
            dynamics, method, control, Before(t, q, u, was, c.impacts), flags, known, again, jumps, c.begins
        )

    nothing = Treated(
        u,
        jnp.zeros(dynamics.n_y),
        plan.moved,
        jnp.zeros_like(c.kept.code),
        RESULTS.successful,
        jnp.asarray(False),
    )
    treated = jax.lax.cond(treats, happens, lambda: nothing)
    # What changes at the start of a run is what the start is: only an impact is an event.
    code = jnp.where(c.begins & ~jnp.append(c.due, False), 0, treated.code)
    failed = treats & (treated.result != RESULTS.successful)
    shortest = 1e-3 * TINY * control.dt_max + 4.0 * EPS * jnp.abs(c.t)
    undecided = (c.treated >= PATIENCE) | (c.search.tries >= 3 * LONGEST_SEARCH)
    lost = (verdict.fails | verdict.rejected | verdict.waits) & (held(plan.dt) <= shortest) | undecided
    changed = _changes(dynamics, plan.modes, treated.modes)
    too_late = guarded & (jnp.any(changed[0]) | jnp.any(changed[1])) & ~verdict.tiny
    ok = ~failed & ~lost
    return Outcome(
        treated, code, t, q, u, P, known, flags, treats, guarded, here.unique,
        verdict.goes_on & ok & ~too_late, at_start & ok, too_late, failed, lost, changed,
    )  # fmt: skip


def advance(dynamics: Dynamics, method: Method, control: Control, c: Carry) -> tuple[Carry, Kept]:
    plan = planned(dynamics, control, c)
    tried = _try(dynamics, method, control, c, plan)
    verdict = _judge(dynamics, control, c, plan, tried)
    out = _carry_out(dynamics, method, control, c, plan, tried, verdict)
    treated, moved = out.treated, out.taken | out.decided
    dt, length, taken = _next_length(method, control, c, plan, tried, verdict, out)
    fresh, ignored, sides = _next_functions(dynamics, control, c, plan, tried, verdict, out)
    kept, row = _rows(dynamics, c, plan, tried, out)

    first_user = out.flags.shape[0] - len(control.users)
    ends = jnp.any(out.flags[first_user:] & np.array(control.terminal, dtype=bool))
    reached = out.taken & plan.lands & (plan.stop >= control.t1) & ~verdict.event
    impact, failed = moved & treated.impact, out.lost | out.failed
    new = Carry(
        t=jnp.where(moved, out.t, c.t),
        q=jnp.where(moved, out.q, c.q),
        u=jnp.where(moved, treated.u, c.u),
        modes=pick(moved, treated.modes, pick(failed, c.modes, plan.modes)),
        now=c.now,
        stale=c.stale,
        fresh=jnp.where(moved, fresh, c.fresh),
        ignored=jnp.where(moved, ignored, c.ignored),
        sides=jnp.where(moved, sides, c.sides),
        dt=dt,
        taken=taken,
        length=length,
        search=pick(failed, c.search, verdict.search),
        impacts=jnp.where(impact, jnp.append(c.impacts[1:], out.t), c.impacts),
        due=jnp.zeros_like(c.due),
        begins=c.begins & ~out.decided,
        treated=jnp.where(out.taken & ~verdict.tiny, 0, c.treated + (out.decided & ~c.begins)),
        kept=row,
        attempts=c.attempts + ~c.begins,
        steps=c.steps + out.taken,
        events=c.events + jnp.where(out.treats & ~failed, jnp.sum(out.code > 0), 0),
        smallest_gap=jnp.where(out.taken, _smallest_gap(dynamics, c, plan, tried), c.smallest_gap),
        iterations=jnp.where(out.taken, 0, c.iterations + tried.step.solve.newton_iterations),
        last=reached | (moved & ends),
        finished=jnp.asarray(False),
        result=RESULTS.where(out.failed, treated.result, unless(~out.lost, RESULTS.modes_undecided)),
    )
    # One more round keeps the last row with its forces; one that only looked keeps nothing.
    idle, now = c.stale | c.last, pick(c.stale | moved, tried.end, held(c.now))
    new = pick(idle, c, new)._replace(now=now, stale=moved & out.treats & ~idle, finished=c.last & ~c.stale)
    return new, kept._replace(keep_first=kept.keep_first & ~c.stale, keep_second=kept.keep_second & ~c.stale)


def _next_length(
    method: Method, control: Control, c: Carry, plan: Plan, tried: Tried, verdict: Verdict, out: Outcome
) -> tuple[Array, Array, tuple[Array, Array]]:
    """The step size as the controller wants it, the length of the next attempt,
    and what the controller remembers.
    """
    h = held(plan.dt)
    factor = growth(method, tried.error, h, c.taken)
    dt = jnp.minimum(jnp.where(c.search.on, c.dt, h * factor), control.dt_max)
    # a step that was cut short says little about the next
    cut = plan.lands | (plan.length < 0.99 * c.length)
    dt = jnp.where(cut, jnp.maximum(dt, jnp.minimum(c.dt, h * GROW)), dt)
    dt = jnp.where(control.fixed, control.dt, dt)
    dt = jnp.where(out.taken, dt, jnp.where(verdict.rejected, h * jnp.minimum(factor, 0.9), c.dt))
    shorter = verdict.waits | verdict.fails | out.too_late
    length = jnp.where(shorter, h / 4.0, jnp.where(verdict.rejected | out.taken, dt, c.length))
    length = jnp.where(
        out.decided, jnp.minimum(c.length, dt), jnp.where(verdict.searches, verdict.guess, length)
    )
    regular = out.taken & ~c.search.on & ~out.treats
    forgotten = (jnp.asarray(jnp.nan),) * 2
    remembered = pick(
        regular, (h, jnp.maximum(tried.error, 1e-2)), pick(out.taken | out.decided, forgotten, c.taken)
    )
    return dt, length, remembered


def _next_functions(
    dynamics: Dynamics, control: Control, c: Carry, plan: Plan, tried: Tried, verdict: Verdict, out: Outcome
) -> tuple[Array, Array, Array]:
    """Which functions are fresh and which are ignored from here on, and the sides of the user's."""
    n_users = len(control.users)
    none = jnp.zeros(n_users, dtype=bool)
    contacts, balls = out.changed
    turned = jnp.concatenate([contacts, balls | out.treated.modes.starting, none])
    sticks = plan.modes.stick & carried(dynamics, plan.modes.closed)
    of_forces = jnp.concatenate([plan.modes.closed, sticks, none])
    borne = _borne(out.flags & of_forces, turned, out.unique)
    fresh = jnp.where(
        out.treats & ~out.guarded, (turned | out.flags) & ~borne, c.fresh & (tried.values <= 0.0)
    )
    before = jnp.where(verdict.at_start, plan.first, tried.values)
    borne = borne | _borne(before < -tried.slack, turned, out.unique)
    seen = out.decided | (verdict.event & out.taken)
    ignored = jnp.where(seen, c.ignored | borne, c.ignored) & ((before < -tried.slack) | borne)
    # A user's function that was not wanted changes its side unseen.
    users = slice(out.flags.shape[0] - n_users, None)
    unseen = ~verdict.at_start & ~wanted(dynamics, control, c.sides)[users] & (tried.values[users] < 0.0)
    return fresh, ignored, jnp.where(out.flags[users] | unseen, -c.sides, c.sides)


def _borne(negative: Array, turned: Array, unique: Array) -> Bool[Array, " functions"]:
    """(11): what is negative, though the inclusion was solved and left its mode,
    is for redundant contacts to bear.
    """
    return negative & ~turned & ~unique


def _changes(dynamics: Dynamics, old: GivenModes, new: GivenModes) -> tuple[Array, Array]:
    """Contacts and balls that are in another mode."""
    either = carried(dynamics, old.closed) | carried(dynamics, new.closed)
    return new.closed != old.closed, either & (new.stick != old.stick)


def _smallest_gap(dynamics: Dynamics, c: Carry, plan: Plan, tried: Tried) -> Float[Array, ""]:
    gaps = tried.look.values[:, : dynamics.laws.n_N]
    return jnp.minimum(c.smallest_gap, jnp.min(jnp.where(plan.modes.closed, jnp.inf, gaps), initial=jnp.inf))


def _rows(dynamics: Dynamics, c: Carry, plan: Plan, tried: Tried, out: Outcome) -> tuple[Kept, Row]:
    """Rows to keep, and that of the state reached, which is kept with its forces when a step leaves it."""
    treated, spent, none = out.treated, c.iterations + tried.step.solve.newton_iterations, jnp.asarray(0)
    stick = plan.modes.stick & carried(dynamics, plan.modes.closed)
    left = c.kept._replace(
        u_dot=plan.now.u_dot, la=dynamics.percussions(plan.now.la, 1.0), closed=plan.modes.closed, stick=stick
    )
    arrived = out.now  # where the step is taken
    ends = (c.t, c.q, c.u, plan.now.u_dot), (out.t, out.q, out.u, arrived.u_dot)
    quarter = derivative.at_quarter((dynamics, c.t, out.t - c.t, ends, plan.moved), held(tried.look.quarter))
    end = Row(
        out.t, out.q, out.u, dynamics.percussions(out.P, out.t - c.t), arrived.u_dot,
        dynamics.percussions(arrived.la, 1.0),
        plan.modes.closed, stick, arrived.u_dot, quarter, spent, jnp.zeros_like(out.code),
    )  # fmt: skip
    impact, at_once = out.taken & treated.impact, out.decided & treated.impact
    percussions = dynamics.percussions(treated.P, 0.0)
    after = end._replace(
        u=treated.u, P=pick(treated.impact, percussions, end.P),
        newton_iterations=jnp.where(treated.impact, none, spent), code=out.code,
    )  # fmt: skip
    there = c.kept._replace(
        t=out.t, q=out.q, u=treated.u, P=pick(at_once, percussions, c.kept.P),
        newton_iterations=jnp.where(at_once, none, c.kept.newton_iterations),
        code=jnp.where(out.code > 0, out.code, jnp.where(at_once, 0, c.kept.code)),
    )  # fmt: skip
    row = pick(out.taken, after, pick(out.decided, there, c.kept))
    return Kept(left, out.taken | at_once | c.last, end, impact & ~c.last), row
