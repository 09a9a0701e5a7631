"""Runs with located events: steps of full order in given contact modes from event to event, and tolerances.

docs/events.md has the algorithm, its orders and its limits; its steps have the numbers that stand in brackets here. One
iteration of the loop is one attempt: a step of some length from the state reached. It is rejected (too long for its error, or
for the events in it), or it is taken and ends before the next event, or it is taken and ends at one, which is then treated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from . import dense
from .compiling import compiled
from .derive import Dynamics, Situation
from .events import ACCUMULATION, EVENT, FORCE_JUMP, IMPACT, LIFT_OFF, REVERSAL, SLIP, STICK
from .initial import acceleration_problem
from .loop import CHUNK
from .methods.base import Method, impact_problem
from .methods.given_modes import GivenModes, Instant, Trial, carried, instant, projected, trial
from .methods.stages import MotionInverse
from .results import RESULTS, unless
from .scales import QUIET
from .solvers import Recorded, SemismoothNewton
from .system import System
from .trees import held, pick, strong
from .validate import start_is_consistent, start_values

DEBUG = False
SAMPLES = np.array([1 / 64, 1 / 8, dense.QUARTER, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1.0])  # where a step is looked at
AT_QUARTER = 2
REFINEMENTS = 10  # of a root on the dense output
SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9
TOGETHER = 1e-9  # of the step size: events so close are one
SHARP = 1e-14  # of the step size: how well an event is located, if round-off allows
LONGEST_SEARCH = 12  # attempts to locate an event
PATIENCE = 12  # treatments without a step in between
CHATTER = 6  # impacts within the time of a bounce that does not count
TINY = 1e-9  # of the step size: a mode that does not hold for longer is wrong


class Control(eqx.Module):
    """What a user asks of the steps. ``dt``: of one size between events, else as rtol and atol want it."""

    rtol: Array
    atol: Array
    dt: Array  # or nan
    dt_max: Array
    dt_zeno: Array  # or nan: bounces lower than the tolerance do not count
    t1: Array
    max_events: Array
    max_steps: Array
    users: tuple[Callable, ...] = eqx.field(static=True, default=())
    directions: tuple[int, ...] = eqx.field(static=True, default=())
    terminal: tuple[bool, ...] = eqx.field(static=True, default=())

    @property
    def fixed(self) -> Bool[Array, ""]:
        return jnp.isfinite(self.dt)


class Row(NamedTuple):
    """A state that is kept: forces and rates are those after what happened there."""

    t: Array
    q: Array
    u: Array
    P: Any  # over the step that ends here
    u_dot: Array
    la: Any
    closed: Array
    stick: Array
    u_dot_before: Array  # at the end of that step,
    u_dot_quarter: Array  # and a quarter through it
    newton_iterations: Array  # since the row before
    code: Int[Array, " slots"]  # events here: of every function, and one place for what belongs to none


class Search(NamedTuple):
    """For an event that lies in the step that was tried."""

    on: Bool[Array, ""]
    target: Int[Array, ""]
    low: Array  # lengths between which it is
    high: Array
    tries: Int[Array, ""]
    length: Array  # of the last try,
    value: Array  # and the function at its end


class Carry(NamedTuple):
    t: Array
    q: Array
    u: Array
    modes: GivenModes
    fresh: Bool[Array, " functions"]  # zero at the state reached: says nothing yet
    ignored: Bool[Array, " functions"]  # negative, but redundant contacts can bear it
    sides: Float[Array, " users"]  # the sign of a user's function
    dt: Array  # as the controller wants it
    taken: tuple[Array, Array]  # length and error of the step before; nan after an event
    length: Array  # of the next attempt
    search: Search
    impacts: Float[Array, " CHATTER"]  # times of the last ones
    due: Bool[Array, " functions"]  # events of the start
    begins: Bool[Array, ""]  # modes of the start are to be decided
    treated: Int[Array, ""]  # times without a step in between
    kept: Row  # of the state reached, without forces
    attempts: Int[Array, ""]
    steps: Int[Array, ""]
    events: Int[Array, ""]
    smallest_gap: Array  # seen between rows
    iterations: Array
    last: Bool[Array, ""]  # nothing to do but to keep the last row
    finished: Bool[Array, ""]
    result: Any


# -- what is looked at --------------------------------------------------------------------------------------------
def functions(dynamics: Dynamics, control: Control, sides: Array, t, q, u, modes: GivenModes, now: Instant) -> Array:
    """(4): one for each contact, ball and function of the user; positive as long as the modes hold."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    la, gamma_F = dynamics.split(now.la), dynamics.split(now.rates).F
    of_contacts = jnp.where(modes.closed, la.N, jnp.asarray(dynamics.system.g_N(t, q)))
    cone = laws.radii(la.N, 1.0) - set_.norm(la.F)
    stop = jnp.where(modes.frozen, set_.dot(modes.direction, gamma_F), 1.0)
    of_balls = jnp.where(carried(dynamics, modes.closed), jnp.where(modes.stick, cone, stop), 1.0)
    of_users = sides * _users(control, t, q, u)
    return jnp.concatenate([of_contacts, of_balls, of_users])


def _users(control: Control, t, q, u) -> Float[Array, " users"]:
    return jnp.stack([jnp.asarray(f(t, q, u), dtype=float) for f in control.users]) if control.users else jnp.zeros(0)


def _slopes(dynamics: Dynamics, control: Control, modes: GivenModes, now: Instant, values: Array, dt) -> Array:
    """Of the functions at the end of a step: kinematic ones as they are, others from the last three samples."""
    rates, accelerations = dynamics.split(now.rates), dynamics.split(now.accelerations)
    n, gap = dynamics.laws.n_N, (SAMPLES[-1] - SAMPLES[-2]) * dt
    differences = (3.0 * values[-1] - 4.0 * values[-2] + values[-3]) / (2.0 * gap)
    balls = dynamics.laws.set.count
    of_contacts = jnp.where(modes.closed, differences[:n], rates.N)
    stop = dynamics.laws.set.dot(modes.direction, accelerations.F)
    kinematic = carried(dynamics, modes.closed) & ~modes.stick & modes.frozen
    of_balls = jnp.where(kinematic, stop, differences[n : n + balls])
    return jnp.concatenate([of_contacts, of_balls, differences[n + balls :]])


def _slack(dynamics: Dynamics, control: Control, modes: GivenModes, now: Instant) -> Array:
    """What is zero of each function: round-off of its terms."""
    laws = dynamics.laws
    root = jnp.sqrt(now.at.G)
    speed, force = now.at.scales(jnp.zeros_like(now.u_dot)).speed, dynamics.energy_norm(now.k)
    del speed
    weight = dynamics.split(force / jnp.where(root > 0.0, root, jnp.inf))  # forces that move a row as h moves the whole
    gaps = dynamics.gap_terms[dynamics.rows.g :]
    of_contacts = jnp.where(modes.closed, QUIET * weight.N, 4.0 * jnp.finfo(float).eps * gaps)
    radius = laws.radii(jnp.maximum(dynamics.split(now.la).N, 0.0), 1.0)
    of_balls = jnp.where(modes.stick, QUIET * (radius + laws.set.largest(weight.F)), 0.0)
    return jnp.concatenate([of_contacts, of_balls, jnp.zeros(len(control.users))])


class Look(NamedTuple):
    """What a step hides."""

    values: Float[Array, "samples functions"]
    quarter: Array  # u_dot
    found: Bool[Array, ""]  # a function that was positive is negative;
    where: Array  # first at this part of the step,
    which: Int[Array, ""]  # this one
    at_start: Bool[Array, ""]  # it was so from the beginning
    stuck: Bool[Array, ""]  # a fresh function never was positive


def _look(
    dynamics: Dynamics, control: Control, c: Carry, modes: GivenModes, dt, a: dense.End, b: dense.End, now: Instant,
    first: Array, last: Array, slack: Array,
) -> Look:  # fmt: skip
    """The functions along the dense output of a step, and the first root (5)."""
    count = len(SAMPLES)

    def at(x) -> tuple[Array, Array]:
        t, q, u = c.t + x * dt, dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b)
        here = instant(dynamics, t, q, u, modes)
        return functions(dynamics, control, c.sides, t, q, u, modes, here), here.u_dot

    rows = np.arange(count + 2)[:, None]
    armed, grid = ~c.ignored & _wanted(dynamics, control, c.sides), jnp.asarray(np.append(0.0, SAMPLES))

    def crossed(values):
        """Where functions are negative that were positive before; row 0 is the start."""
        known = jnp.any(np.tri(count + 1, dtype=bool)[:, :, None] & (values > 0.0), axis=1)
        before = jnp.concatenate([~c.fresh[None], known[:-1] | ~c.fresh])
        return (values < -slack) & before & armed

    def go_on(state):
        return state[0] < jnp.where(state[-1], count + REFINEMENTS, count - 1)

    def look(state):
        """First the samples but for the last, which is known; then the root between two of them, by regula falsi."""
        k, values, quarter, low, high, f_low, f_high, side, which, found = state
        sampling = k < count - 1
        between = jnp.where(f_low > f_high, low + (high - low) * f_low / (f_low - f_high), (low + high) / 2.0)
        x = jnp.where(sampling, jnp.asarray(SAMPLES)[jnp.minimum(k, count - 1)], between)
        value, u_dot = at(x)
        place = jnp.where(sampling, k + 1, count + 1)  # one row that nobody looks at
        values = jnp.where(rows == place, value, values)
        quarter = jnp.where(k == AT_QUARTER, u_dot, quarter)

        def begin():
            over = crossed(values[: count + 1])
            row = jnp.argmax(jnp.any(over, axis=1))
            before, after = values[jnp.maximum(row - 1, 0)], values[row]
            fall = before / jnp.where(before > after, before - after, 1.0)
            which = jnp.argmin(jnp.where(over[row], fall, jnp.inf))
            low, high = grid[jnp.maximum(row - 1, 0)], grid[row]
            return low, high, jnp.maximum(before[which], 0.0), after[which], jnp.asarray(0), which, jnp.any(over)

        def refine():
            f = value[which]
            positive = f > 0.0
            # Illinois: the value at an end that stays for the second time is halved
            staying = jnp.where(side == jnp.where(positive, 1, -1), 0.5, 1.0)
            f_low_, f_high_ = jnp.where(positive, f, staying * f_low), jnp.where(positive, staying * f_high, f)
            ends = jnp.where(positive, x, low), jnp.where(positive, high, x)
            return *ends, f_low_, f_high_, jnp.where(positive, 1, -1), which, found

        kept = low, high, f_low, f_high, side, which, found
        ends = jax.lax.cond(k == count - 2, begin, lambda: jax.lax.cond(sampling, lambda: kept, refine))
        return k + 1, values, quarter, *ends

    n = first.shape[0]
    values = jnp.concatenate([first[None], jnp.zeros((count - 1, n)), last[None], jnp.zeros((1, n))])
    zero, none = jnp.zeros(()), jnp.asarray(0)
    start = none, values, jnp.zeros_like(a.u), zero, zero, zero, zero, none, none, jnp.asarray(False)
    _, values, quarter, low, high, f_low, f_high, _, which, found = jax.lax.while_loop(go_on, look, start)
    values = values[: count + 1]
    over = crossed(values)
    stuck = jnp.any(armed & c.fresh & (last < -slack) & ~jnp.any(values[1:] > 0.0, axis=0))
    fraction = jnp.where(f_low > f_high, f_low / (f_low - f_high), 1.0)
    root = low + (high - low) * fraction
    return Look(values[1:], quarter, found, root, which, jnp.any(over[0]), stuck)


# -- a step that was taken, and its derivative --------------------------------------------------------------------
def _ended(method: Any, solver: Any, control: Control, sides: Array, dynamics: Dynamics, t, dt, q, u, modes: GivenModes):
    """The end of a step, and the functions there."""
    now = held(instant(dynamics, t, q, u, modes))
    moved = modes._replace(starting=jnp.zeros_like(modes.starting))
    out = trial(method, solver, dynamics, t, dt, q, u, moved, now)
    end = instant(dynamics, t + dt, out.q, out.u, moved)
    return (out.q, out.u, out.P), functions(dynamics, control, sides, t + dt, out.q, out.u, moved, end)


@eqx.filter_custom_jvp
def _taken(args: Any, known: Trial, sides: Array, target: Array, at_event: Array, *, method: Any, control: Any) -> Any:
    return known.q, known.u, known.P, args[2]


@_taken.def_jvp
def _taken_jvp(primals, tangents, *, method, control):
    """Of the step itself; where it ends at an event its length follows, from the numerical step and not from a polynomial."""
    args, known, sides, target, at_event = primals
    solver = Recorded((known.solve,), SemismoothNewton())
    dynamic, static = eqx.partition(args, eqx.is_inexact_array)

    def step(dynamic):
        ends, values = _ended(method, solver, control, sides, *eqx.combine(dynamic, static))
        return ends, values[target]

    rates = jax.tree.map(lambda x, r: jnp.zeros_like(x) if r is None else r, dynamic, tangents[0])
    longer = eqx.tree_at(lambda a: a[2], jax.tree.map(jnp.zeros_like, dynamic), jnp.ones(()))
    _, along = jax.linearize(step, dynamic)
    (moved, value), (per_length, slope) = along(rates), along(longer)
    slope = jax.lax.stop_gradient(slope)
    more = jnp.where(at_event, -value / jnp.where(at_event, slope, 1.0), 0.0)
    out = known.q, known.u, known.P, args[2]
    ends = tuple(a + more * b for a, b in zip(moved, per_length, strict=True))
    return out, (*ends, rates[2] + more)


@eqx.filter_custom_jvp
def _moment(args: Any, sides: Array, which: Array, on: Array, *, control: Any) -> Array:
    """Zero: how long after a state a function is zero that is zero there. Its derivative is that of the time of the event."""
    return jnp.zeros(())


@_moment.def_jvp
def _moment_jvp(primals, tangents, *, control):
    args, sides, which, on = primals

    def value(args):
        dynamics, t, q, u, modes = args
        return functions(dynamics, control, sides, t, q, u, modes, instant(dynamics, t, q, u, modes))[which]

    _, rate = eqx.filter_jvp(value, (args,), (tangents[0],))
    dynamics, t, q, u, modes = args
    now = instant(dynamics, t, q, u, modes)
    _, slope = jax.jvp(lambda t, q, u: value((dynamics, t, q, u, modes)), (t, q, u), (jnp.ones(()), now.q_dot, now.u_dot))
    rate = jnp.zeros(()) if rate is None else rate
    falls = on & (slope < 0.0)
    return jnp.zeros(()), jnp.where(falls, -rate / jax.lax.stop_gradient(jnp.where(falls, slope, 1.0)), 0.0)


@eqx.filter_custom_jvp
def _again(args: Any, known: Instant) -> Instant:
    """An instant that is known already; its derivative is that of the instant itself."""
    return known


@_again.def_jvp
def _again_jvp(primals, tangents):
    _, rates = eqx.filter_jvp(lambda args: instant(*args), primals[:1], tangents[:1])
    return primals[1], rates


# -- events -------------------------------------------------------------------------------------------------------
class Treated(NamedTuple):
    u: Array
    P: Array
    modes: GivenModes
    code: Array
    result: Any
    impact: Bool[Array, ""]


def _slip_modes(dynamics: Dynamics, closed, stick, starting, direction) -> GivenModes:
    intervals = jnp.asarray(np.array(dynamics.laws.set.dimensions, dtype=int) == 1)
    return GivenModes(closed, stick, intervals, starting, direction)


def _code(dynamics: Dynamics, control: Control, contacts, balls, users, jump) -> Array:
    return jnp.concatenate([contacts, balls, users, jnp.where(jump, FORCE_JUMP, 0)[None]]).astype(int)


def _treat(
    dynamics: Dynamics, method: Method, control: Control, c: Carry, t, q, u, flags: Array, now: Instant, again: Any, jump: Any,
    start: Any = False,
) -> Treated:  # fmt: skip
    """(9), (10), (13): by flags, never by signs read again. ``again``: decide all modes anew; ``now``: before the event."""
    laws, set_, modes = dynamics.laws, dynamics.laws.set, c.modes
    n, balls = laws.n_N, set_.count
    of_contacts, of_balls, of_users = flags[:n], flags[n : n + balls], flags[n + balls :]
    arrive, leave = of_contacts & ~modes.closed, of_contacts & modes.closed
    broken, stopped = of_balls & modes.stick, of_balls & ~modes.stick
    users = jnp.where(of_users, EVENT, 0)
    la_F = dynamics.split(now.la).F

    def soft():
        """Forces are continuous: this mode alone."""
        closed = modes.closed & ~leave
        stick = modes.stick & ~broken & laws.of_balls(closed)
        direction = jnp.where(set_.expand(broken), -set_.direction(la_F), modes.direction)
        new = _slip_modes(dynamics, closed, stick, broken, direction)
        code = _code(dynamics, control, jnp.where(leave, LIFT_OFF, 0), jnp.where(broken, SLIP, 0), users, False)
        return Treated(u, jnp.zeros(dynamics.n_y), new, code, RESULTS.successful, jnp.asarray(False))

    def hard():
        at, rates = now.at, now.rates
        g_dot = dynamics.split(rates).N
        end = _accumulates(dynamics, control, c, t, q, now, arrive)
        quick, touching = end.quick, arrive | end.near | modes.closed
        # Newton's impact law for what arrives; what is closed bears it.
        bouncing = dynamics.rows.join(
            jnp.zeros(dynamics.rows.g), jnp.zeros(dynamics.rows.gamma), jnp.where(arrive & ~quick, g_dot, 0.0),
            jnp.where(set_.expand(laws.of_balls(touching, False)), dynamics.split(rates).F, 0.0),
        )  # fmt: skip
        impact = jnp.any(arrive)
        problem = impact_problem(dynamics, at, u, bouncing, touching, jnp.zeros(dynamics.n_y), 0.0)
        out = method.solver.solve(problem, u, jnp.zeros(dynamics.n_y))
        u1, P = jnp.where(impact, out.x, u), jnp.where(impact, out.y, 0.0)
        how = RESULTS.where(impact, out.result, RESULTS.successful)
        after = dynamics.split(at.velocities(u1))
        zero = dynamics.split(QUIET * at.scales(jnp.abs(u) + jnp.abs(u1)).cancelling(P) + 2.0 * out.tolerance)
        bears = jnp.where(impact, touching & ((jnp.abs(after.N) <= zero.N) | end.endless), modes.closed)
        slow = set_.norm(after.F) <= jnp.where(end.endless & impact, end.speed, set_.largest(zero.F))
        # A constant reservoir has no share in an impact: what it did it does.
        still = jnp.where(impact & ~laws.constant, slow, jnp.where(start, slow, modes.stick) | stopped)
        still = still & carried(dynamics, bears)
        clamped = _slip_modes(dynamics, bears, still, jnp.zeros_like(still), set_.direction(after.F))
        u2, _ = projected(dynamics, at, u1, clamped)
        k, rest = dynamics.k(t, q, u2) if dynamics.h_of_u else now.k, dynamics.acceleration_rest(t, q, u2)
        problem = acceleration_problem(dynamics, at, k, rest, u2, bears, still)
        accelerated = method.solver.solve(problem, k, jnp.zeros(dynamics.n_y))
        acceleration = dynamics.split(at.W.T @ accelerated.x + rest)
        scales = at._replace(chi=rest).scales(jnp.abs(k) + jnp.abs(accelerated.x))
        quiet = dynamics.split(QUIET * scales.cancelling(accelerated.y) + 2.0 * accelerated.tolerance)
        closed = bears & (jnp.abs(acceleration.N) <= quiet.N)
        stick = still & laws.of_balls(closed) & (set_.norm(acceleration.F) <= set_.largest(quiet.F))
        starting = still & ~stick
        direction = set_.direction(jnp.where(set_.expand(starting), acceleration.F, dynamics.split(at.velocities(u2)).F))
        new = _slip_modes(dynamics, closed, stick, starting, direction)
        bounced = jnp.where(arrive, jnp.where(quick, ACCUMULATION, IMPACT), 0)
        contacts = jnp.where(modes.closed & ~closed, LIFT_OFF, bounced)
        had, has = carried(dynamics, modes.closed), carried(dynamics, closed)
        slid = jnp.where(set_.expand(modes.frozen), modes.direction, set_.direction(dynamics.split(rates).F))
        turned = set_.dot(direction, slid) < 0.0
        changed = jnp.where(stick & ~modes.stick, STICK, jnp.where(modes.stick & ~stick, SLIP, 0))
        changed = jnp.where(~stick & ~modes.stick & turned & (set_.dot(direction, direction) > 0), REVERSAL, changed)
        of_balls = jnp.where(had & has, changed, 0)
        code = _code(dynamics, control, contacts, of_balls, users, jump)
        unsolved = RESULTS.where(how == RESULTS.successful, accelerated.result, how)
        return Treated(u2, P, new, code, unsolved, impact)

    return jax.lax.cond(jnp.any(arrive) | jnp.any(stopped) | again | jump, hard, soft)


class Accumulation(NamedTuple):
    quick: Bool[Array, " n_N"]  # arrives, but does not bounce
    near: Bool[Array, " n_N"]  # counts as arrived
    endless: Bool[Array, ""]  # no end to it: what is left of the velocities is taken away
    speed: Float[Array, ""]  # that is as good as none


def _accumulates(dynamics: Dynamics, control: Control, c: Carry, t, q, now: Instant, arrive: Array) -> Accumulation:
    """(13): a flight shorter than dt_zeno, or lower than the tolerance, is none.

    Contacts may also hand an impact to and fro, with or without bouncing: after some impacts within such a time all that are
    so near come to rest.
    """
    terms, eps, n = dynamics.gap_terms[dynamics.rows.g :], jnp.finfo(float).eps, dynamics.laws.n_N
    g_dot, g_ddot = dynamics.split(now.rates).N, dynamics.split(now.accelerations).N
    fall = jnp.where(g_ddot < 0.0, -g_ddot, jnp.nan)
    usual = dynamics.split(jnp.sqrt(now.at.G)).N * dynamics.energy_norm(now.k)  # what forces can do to a gap
    lowest = 1e3 * eps * terms  # lower ones drown in round-off

    def height(acceleration):
        asked = control.dt_zeno**2 * acceleration / 8.0
        return jnp.maximum(
            jnp.where(jnp.isfinite(control.dt_zeno), asked, 0.1 * (control.atol + control.rtol * terms)), lowest
        )

    low = 2.0 * dynamics.laws.e_N * jnp.abs(g_dot) / fall < jnp.sqrt(8.0 * height(fall) / fall)
    time = jnp.sqrt(8.0 * height(usual) / jnp.where(usual > 0.0, usual, jnp.inf))
    endless = t - c.impacts[0] < jnp.max(jnp.where(arrive, time, 0.0), initial=0.0)
    near = endless & ~c.modes.closed & (jnp.asarray(dynamics.system.g_N(t, q)) <= 10.0 * height(usual))
    quick = arrive & (dynamics.laws.e_N > 0.0) & (low | endless)
    speed = jnp.max(jnp.sqrt(2.0 * usual * height(usual)), initial=0.0) if n else jnp.zeros(())
    return held(Accumulation(quick, near, endless, speed))


# -- one attempt --------------------------------------------------------------------------------------------------
def _weights(method: Any) -> tuple[np.ndarray, float, float, float]:
    """(3): the error is dt (g f(t_n) + sum_i w_i f_i); w, g, gamma_0 and the exponent.

    Radau: gamma_0 (f(t_n) - P'(t_n)), P' through the stages: the embedded method of order s, gamma_0 = 1/|eigenvalue of A^-1|.
    Lobatto IIIC, whose first stage is at t_n: Q_1 - q_n = sum_j a_1j f_j.
    """
    tableau = method.tableau
    gamma_0 = float(1.0 / np.abs(np.linalg.eigvals(np.linalg.inv(tableau.A))).min())
    if tableau.c[0] == 0.0:
        return tableau.A[0], 0.0, gamma_0, 1.0 / tableau.stages
    c = tableau.c
    at_0 = np.array([np.prod([-c[j] / (c[i] - c[j]) for j in range(len(c)) if j != i]) for i in range(len(c))])
    return -gamma_0 * at_0, gamma_0, gamma_0, 1.0 / (tableau.stages + 1)


def _relaxed(method: Any, rtol: Array) -> Array:
    """By how much the estimate, which is of order s, may exceed the tolerance for the error itself to be proportional to it.

    As in RADAU5 (Hairer, Wanner, Solving ODEs II, section IV.8): 1 at rtol = 1e-3, more below.
    """
    s, (_, _, _, exponent) = method.tableau.stages, _weights(method)
    return (1e3 * rtol) ** (1.0 / (exponent * method.order) - 1.0) if s > 1 else jnp.ones(())


def _error(control: Control, start: Any, end: Any, errors: Any) -> Array:
    """In units of the tolerance, as the root of the mean square."""
    total, count = jnp.zeros(()), 0
    for x0, x1, error in zip(start, end, errors, strict=True):
        scale = control.atol + control.rtol * jnp.maximum(jnp.abs(x0), jnp.abs(x1))
        total, count = total + jnp.sum((error / scale) ** 2), count + x0.shape[0]
    return jnp.sqrt(total / count)


def _filtered(dynamics: Dynamics, t, dt, q, u, gamma_0: float, error_q: Array, error_u: Array) -> tuple[Array, Array]:
    """(1 - gamma_0 dt J)^-1 of an error, J that of the smooth forces: what is stiff is damped, as it is in the step."""
    if not dynamics.k_of_q and not dynamics.h_of_u:
        return error_q, error_u
    A = jnp.full((1, 1), gamma_0)
    motion = MotionInverse.at(dynamics, jnp.asarray(t)[None], q[None], u[None], dt, A, A)
    if motion is None:
        return error_q, error_u
    x = motion.apply(error_q[None, :, None], error_u[None, :, None])[:, 0]
    return x[: q.shape[0]], x[q.shape[0] :]


def _stop_in_space(dynamics: Dynamics, control: Control, modes: GivenModes, now: Instant, dt) -> tuple[GivenModes, Array]:
    """(12): a ball that will stop slips along a line once the rest of its way is straight; until then steps are short."""
    set_ = dynamics.laws.set
    if set_.largest_dimension <= 1:
        return modes, jnp.asarray(jnp.inf)
    gamma, rate = dynamics.split(now.rates).F, dynamics.split(now.accelerations).F
    speed, along = set_.norm(gamma), set_.direction(gamma)
    slows = -set_.dot(along, rate)
    slips = carried(dynamics, modes.closed) & ~modes.stick & ~modes.starting & (set_.dot(along, along) > 0)
    tau = jnp.where(slips & (slows > 0.0), speed / jnp.where(slows > 0.0, slows, 1.0), jnp.inf)
    across = set_.norm(rate + set_.expand(slows) * along)
    tolerance = control.atol + control.rtol * dt * speed
    straight = slips & jnp.isfinite(tau) & (across * tau**2 / 2.0 < 0.1 * tolerance)
    intervals = jnp.asarray(np.array(set_.dimensions) == 1)
    frozen = intervals | held(straight)
    direction = jnp.where(set_.expand(frozen & ~intervals & slips), along, modes.direction)
    longest = jnp.where(frozen, 1.1 * tau, tau / 2.0)  # over the stop at once, but not far beyond
    return modes._replace(frozen=frozen, direction=direction), held(jnp.min(jnp.where(slips & ~intervals, longest, jnp.inf)))


class Kept(NamedTuple):
    """What an attempt leaves: up to two rows."""

    first: Row
    keep_first: Array
    second: Row
    keep_second: Array


def _advance(dynamics: Dynamics, method: Method, control: Control, c: Carry) -> tuple[Carry, Kept]:  # noqa: PLR0915
    stops = jnp.asarray(dynamics.system.switching_times, dtype=float).reshape(-1)
    reachable = (stops > c.t + 1e-12 * control.dt_max) & (stops < control.t1)
    stop = held(jnp.minimum(control.t1, jnp.min(jnp.where(reachable, stops, jnp.inf), initial=jnp.inf)))

    # (1), (12)
    now = instant(dynamics, c.t, c.q, c.u, c.modes)
    modes, shorter = _stop_in_space(dynamics, control, c.modes, now, c.length)
    modes = pick(c.search.on, c.modes, modes)
    moved = modes._replace(starting=jnp.zeros_like(modes.starting))
    rest = held(stop - c.t)
    first = functions(held(dynamics), control, c.sides, *held((c.t, c.q, c.u, modes, now)))
    shorter = jnp.minimum(shorter, _flight(dynamics, *held((c, now))))
    length = jnp.where(c.search.on, c.length, jnp.minimum(c.length, jnp.maximum(shorter, TINY * c.dt)))
    # The last steps are alike, and none is a crumb; steps of one size end as they do without events.
    crumb = jnp.where(control.fixed, 1e-3, 1e-2) * length
    lands = rest <= length + crumb
    length = jnp.where(~lands & ~control.fixed & ~c.search.on & (rest < 2.0 * length), rest / 2.0, length)
    lands = lands & ~c.search.on | (c.search.on & (length >= rest))
    # A step up to a jump of the forces ends a hair before it: what they are then belongs to the next.
    hair = jnp.where(stop < control.t1, 8.0 * jnp.finfo(float).eps * jnp.abs(stop), 0.0)
    dt = jnp.where(lands, stop - hair - c.t, held(length))

    # (2)
    start = held((dynamics, c.t, dt, c.q, c.u, moved))
    step = trial(method, SemismoothNewton(), *start, held(now))
    h, now_ = held(dt), held(now)
    t_end = held(c.t) + h

    # (3): rates of the stages and of the end, from their states
    nodes = np.append(method.tableau.c, 1.0)  # type: ignore[attr-defined]
    Q, U = jnp.concatenate([step.Q, step.q[None]]), jnp.concatenate([step.U, step.u[None]])
    held_dynamics = start[0]
    here = jax.lax.map(lambda x: instant(held_dynamics, x[0], x[1], x[2], held(moved)), (held(c.t) + nodes * h, Q, U))
    end = jax.tree.map(lambda a: a[-1], here)
    weights, of_start, gamma_0, exponent = _weights(method)
    errors = [
        h * (of_start * f0 + jnp.asarray(weights) @ f[:-1]) for f0, f in ((now_.q_dot, here.q_dot), (now_.u_dot, here.u_dot))
    ]
    q0, u0 = held(c.q), held(c.u)
    damped = _filtered(held_dynamics, held(c.t), h, q0, u0, gamma_0, *errors)
    ends = (q0, u0), (step.q, step.u)
    # Either is an estimate of its order. Where forces are stiff the plain one is far too large; the other knows no constraints.
    error = jnp.minimum(_error(control, *ends, errors), _error(control, *ends, damped)) / _relaxed(method, control.rtol)
    solved = step.ok & jnp.all(jnp.isfinite(here.u_dot))
    error = jnp.where(solved, error, jnp.inf)
    accurate = solved & ((error <= 1.0) | control.fixed | c.search.on)
    known = jnp.maximum(error, 1e-16)
    factor = SAFETY * known**-exponent
    # Gustafsson's prediction: the error goes on to grow as it did (Hairer, Wanner, Solving ODEs II, section IV.8)
    predicted = SAFETY * h / c.taken[0] * (c.taken[1] / known**2) ** exponent
    factor = jnp.where(error <= 1.0, jnp.fmin(factor, predicted), factor)
    factor = jnp.clip(factor, SHRINK, GROW)

    # (4), (5)
    a, b = (dense.End.of(held_dynamics, *x) for x in ((held(c.t), q0, u0, now_.u_dot), (t_end, step.q, step.u, end.u_dot)))
    values = functions(held_dynamics, control, c.sides, t_end, step.q, step.u, held(moved), end)
    slack = _slack(held_dynamics, control, held(modes), now_)
    look = _look(held_dynamics, control, held(c)._replace(), held(moved), h, a, b, now_, first, values, slack)
    slopes = _slopes(held_dynamics, control, modes, end, look.values, h)

    c_, n = c.search, dynamics.laws.n_N
    target = jnp.where(c_.on, c_.target, look.which)
    at_target, slope = values[target], slopes[target]
    secant = (at_target - c_.value) / jnp.where(h == c_.length, jnp.inf, h - c_.length)
    kinematic = (target < n) & ~modes.closed[jnp.minimum(target, max(n - 1, 0))] if n else jnp.asarray(False)
    slope = jnp.where(c_.on & (c_.tries >= 2) & ~kinematic & (secant < 0.0), secant, slope)
    away = at_target / jnp.where(slope < 0.0, -slope, jnp.nan)  # time until the root, by Newton
    sharp = SHARP * c.dt + 4.0 * jnp.finfo(float).eps * jnp.abs(t_end)
    met = c_.on & (jnp.abs(away) <= TOGETHER * c.dt) & (c_.high - c_.low <= 2.0 * sharp)
    stale = (c_.tries >= 3) & (jnp.abs(away) < 1e-9 * c.dt) & (jnp.abs(at_target) > 0.25 * jnp.abs(c_.value))
    there = c_.on & (
        (jnp.abs(away) <= sharp)
        | (jnp.abs(at_target) <= slack[target])
        | met
        | stale
        | ((c_.tries >= LONGEST_SEARCH) & (jnp.abs(away) <= 1e-6 * c.dt))
    )
    # others that come earlier
    earlier = look.found & (look.where < 1.0 - TOGETHER) & (look.which != target)

    if DEBUG:
        jax.debug.print(
            "   tgt {} val {} slope {} away {} sharp {} there {} met {} stale {} earlier {} found {} where {} which {} stuck {} err {} ok {} vals {} first {}",
            target,
            at_target,
            slope,
            away,
            sharp,
            there,
            met,
            stale,
            earlier,
            look.found,
            look.where,
            look.which,
            look.stuck,
            error,
            solved,
            values,
            first,
        )
    tiny = h <= TINY * c.dt + 16.0 * jnp.finfo(float).eps * jnp.abs(held(c.t))
    fails = ~solved
    rejected = solved & ~accurate
    # at the start already, or so close to it that no step leads there
    from_start = look.at_start | (look.found & (look.where * h <= 1e-3 * TOGETHER * c.dt))
    at_start = c.begins | (accurate & (from_start | (look.stuck & tiny)))
    fails, rejected = fails & ~at_start, rejected & ~at_start
    waits = accurate & ~at_start & look.stuck
    searches = accurate & ~at_start & ~waits & (look.found | c_.on) & ~(there & ~earlier)
    # the bracket has closed and there is no root: a false alarm of the dense output (6)
    low = jnp.where(searches & ~look.found, h, jnp.where(c_.on, c_.low, 0.0))
    high = jnp.where(searches & look.found, h, jnp.where(c_.on, c_.high, h))
    closed_in = searches & ~look.found & (high - low <= jnp.maximum(sharp, jnp.minimum(1e-4 * h, 0.1 * away)))
    searches = searches & ~closed_in
    goes_on = accurate & ~at_start & ~waits & ~searches
    event = goes_on & there
    undecided = (c.treated >= PATIENCE) | (c_.tries >= 3 * LONGEST_SEARCH)

    # the next length of a search
    newton = h + away
    near = c_.on & (jnp.abs(away) < 0.1 * h) & ~earlier
    guess = jnp.where(near, newton, jnp.where(look.found, look.where * h, newton))
    inside = (guess > low) & (guess < high)
    guess = jnp.where(inside, guess, (low + high) / 2.0)
    new_target = jnp.where(earlier | ~c_.on, look.which, c_.target)
    search = Search(
        searches, new_target, low, high, jnp.where(searches, c_.tries + 1, 0), h,
        jnp.where(new_target == target, at_target, values[new_target]),
    )  # fmt: skip

    # the step as it was taken, with its derivative
    q1, u1, P, dt = _taken(
        (dynamics, c.t, dt, c.q, c.u, modes), held(step), c.sides, target, event, method=method, control=control
    )
    t1 = jnp.where(lands & ~event, stop, c.t + dt)

    # (8)
    together = (values + jnp.minimum(slopes, 0.0) * TOGETHER * c.dt <= 0.0) & (slopes < 0.0)
    together = together & ~c.ignored & (~c.fresh | jnp.any(look.values > 0.0, axis=0))
    is_which = jnp.arange(values.shape[0]) == look.which
    begins = (~c.fresh & ~c.ignored & (first < -slack)) | (is_which & ~c.fresh & look.found)
    flags = jnp.where(
        at_start,
        jnp.where(c.begins, c.due, begins & from_start),
        event & (together | (jnp.arange(values.shape[0]) == target)),
    )
    switches = goes_on & lands & (stop < control.t1) & ~event
    flags = flags & _wanted(dynamics, control, c.sides)

    # (11): while redundant contacts bear what looks like an event, the inclusion has the last word on every step
    guarded = goes_on & ~event & ~switches & jnp.any(c.ignored)
    treats = event | at_start | switches | guarded
    late = _moment((dynamics, c.t, c.q, c.u, modes), c.sides, look.which, at_start & look.found & ~c.begins, control=control)
    begun = c.t + late, c.q + late * now_.q_dot, c.u + late * now_.u_dot
    at_t, at_q, at_u = pick(at_start, begun, (t1, q1, u1))
    was = pick(at_start, modes, moved)
    here = pick(at_start, now_, end)

    def treat():
        return _treat(
            dynamics, method, control, c._replace(modes=was), at_t, at_q, at_u, flags,
            _again((dynamics, at_t, at_q, at_u, was), held(here)),
            guarded | ~here.unique | (at_start & (c.begins | (c.treated > 0) | ~jnp.any(flags))), switches, c.begins,
        )  # fmt: skip

    nothing = Treated(
        at_u,
        jnp.zeros(dynamics.n_y),
        moved,
        jnp.zeros(values.shape[0] + 1, dtype=int),
        RESULTS.successful,
        jnp.asarray(False),
    )
    treated = jax.lax.cond(treats, treat, lambda: nothing)
    # What changes at the start is what the start is: only an impact is an event.
    code = jnp.where(c.begins, jnp.where(jnp.append(c.due, False), treated.code, 0), treated.code)
    failed = treats & (treated.result != RESULTS.successful)
    shortest = 1e-3 * TINY * control.dt_max + 4.0 * jnp.finfo(float).eps * jnp.abs(c.t)
    lost = ((fails | rejected | waits) & (h <= shortest)) | undecided
    ok = ~failed & ~lost
    changed, balls_changed = _changes(dynamics, modes, treated.modes)
    too_late = guarded & (jnp.any(changed) | jnp.any(balls_changed)) & ~tiny
    steps_on = goes_on & ok & ~too_late
    decided = at_start & ok

    # what the next attempt knows
    others = flags[n + dynamics.laws.set.count :]
    turned = jnp.concatenate([changed, balls_changed | treated.modes.starting, jnp.zeros_like(others)])
    borne = _borne(flags & _forces_only(dynamics, modes, others), turned, here.unique)
    renewed = (turned | flags) & ~borne
    fresh = jnp.where(treats & ~guarded, renewed, c.fresh & (values <= 0.0))
    before = jnp.where(at_start, first, values)
    borne = borne | _borne(~turned & (before < -slack), turned, here.unique)
    ignored = jnp.where(decided | (event & steps_on), c.ignored | borne, c.ignored) & ((before < -slack) | borne)
    first_user = values.shape[0] - len(control.users)
    # One that was not wanted has changed its side unseen.
    turned = flags[first_user:] | (
        ~at_start & ~_wanted(dynamics, control, c.sides)[first_user:] & (values[first_user:] < 0.0)
    )
    sides = jnp.where(turned, -c.sides, c.sides)

    wanted = jnp.where(control.fixed, control.dt, jnp.minimum(jnp.where(c_.on, c.dt, h * factor), control.dt_max))
    # a step that was cut short says little about the next
    cut = lands | (length < 0.99 * c.length)
    wanted = jnp.where(cut & ~control.fixed, jnp.maximum(wanted, jnp.minimum(c.dt, h * GROW)), wanted)
    new_dt = jnp.where(steps_on, wanted, jnp.where(rejected, h * jnp.minimum(factor, 0.9), c.dt))
    new_length = jnp.where(
        searches, guess, jnp.where(waits | fails | too_late, h / 4.0, jnp.where(rejected | steps_on, new_dt, c.length))
    )
    new_length = jnp.where(decided, jnp.minimum(c.length, new_dt), new_length)

    regular = steps_on & ~c_.on & ~treats
    taken = pick(regular, (h, jnp.maximum(error, 1e-2)), pick(steps_on | decided, (jnp.nan, jnp.nan), c.taken))
    spent = c.iterations + step.solve.newton_iterations
    row = c.kept._replace(
        u_dot=now.u_dot,
        la=dynamics.percussions(now.la),
        closed=modes.closed,
        stick=modes.stick & carried(dynamics, modes.closed),
    )
    at_end = Row(
        t1, q1, u1, dynamics.percussions(P), end.u_dot, dynamics.percussions(end.la), modes.closed,
        modes.stick & carried(dynamics, modes.closed), end.u_dot, look.quarter, spent, jnp.zeros_like(code),
    )  # fmt: skip
    impact, at_once = steps_on & treated.impact, decided & treated.impact
    percussions, none = dynamics.percussions(treated.P), jnp.zeros_like(spent)
    after = at_end._replace(
        t=at_t, q=at_q, u=treated.u, P=pick(treated.impact, percussions, at_end.P),
        newton_iterations=jnp.where(treated.impact, none, spent), code=code,
    )  # fmt: skip
    stays = c.kept._replace(
        t=jnp.where(decided, at_t, c.kept.t), q=jnp.where(decided, at_q, c.kept.q), u=jnp.where(decided, treated.u, c.kept.u), P=pick(at_once, percussions, c.kept.P),
        newton_iterations=jnp.where(at_once, none, c.kept.newton_iterations),
        code=jnp.where(decided & (code > 0), code, jnp.where(at_once, 0, c.kept.code)),
    )  # fmt: skip
    kept_row = pick(steps_on, after, stays)
    happened = jnp.where(treats & ok, jnp.sum(code > 0), 0)
    ends = jnp.any(flags[first_user:] & np.array(control.terminal, dtype=bool))
    reached = (steps_on & lands & (stop >= control.t1) & ~event) | ((steps_on | decided) & ends)
    new = Carry(
        jnp.where(steps_on | decided, at_t, c.t), jnp.where(steps_on | decided, at_q, c.q), jnp.where(steps_on | decided, treated.u, c.u),
        pick(steps_on | decided, treated.modes, pick(lost | failed, c.modes, modes)), jnp.where(steps_on | decided, fresh, c.fresh),
        jnp.where(steps_on | decided, ignored, c.ignored), jnp.where(steps_on | decided, sides, c.sides), new_dt, taken, new_length,
        pick(ok, search, c.search), jnp.where(impact | at_once, jnp.append(c.impacts[1:], at_t), c.impacts),
        jnp.zeros_like(c.due), c.begins & ~decided, jnp.where(steps_on & ~tiny, 0, c.treated + (decided & ~c.begins)), kept_row,
        c.attempts + ~c.begins, c.steps + steps_on,
        c.events + happened, _smallest(dynamics, modes, look, c.smallest_gap, steps_on),
        jnp.where(steps_on, 0, spent), reached, jnp.asarray(False),
        RESULTS.where(failed, treated.result, unless(~lost, RESULTS.modes_undecided)),
    )  # fmt: skip
    # One more round to keep the last row with its forces.
    over = c._replace(finished=jnp.asarray(True))
    out = pick(c.last, over, new)
    return out, Kept(row, steps_on | at_once | c.last, at_end, impact & ~c.last)


def _wanted(dynamics: Dynamics, control: Control, sides: Array) -> Bool[Array, " functions"]:
    """Functions that count when they fall through zero: a user's rising or falling, as asked."""
    directions = jnp.asarray(np.array(control.directions, dtype=float))
    laws = jnp.ones(dynamics.laws.n_N + dynamics.laws.set.count, dtype=bool)
    return jnp.concatenate([laws, (directions == 0.0) | (directions == -sides)])


def _changes(dynamics: Dynamics, old: GivenModes, new: GivenModes) -> tuple[Array, Array]:
    """Contacts and balls that are in another mode."""
    had, has = carried(dynamics, old.closed), carried(dynamics, new.closed)
    return new.closed != old.closed, (had | has) & (new.stick != old.stick)


def _forces_only(dynamics: Dynamics, modes: GivenModes, others: Array) -> Bool[Array, " functions"]:
    """Functions of forces, which redundant contacts may share in many ways: closed contacts, sticking balls."""
    return jnp.concatenate([modes.closed, modes.stick & carried(dynamics, modes.closed), jnp.zeros_like(others)])


def _borne(negative: Array, turned: Array, unique: Array) -> Bool[Array, " functions"]:
    """(11): what is negative, though the inclusion was solved and left its mode, is for redundant contacts to bear."""
    return negative & ~turned & ~unique


def _smallest(dynamics: Dynamics, modes: GivenModes, look: Look, smallest: Array, taken: Array) -> Array:
    n = dynamics.laws.n_N
    open_gaps = jnp.where(modes.closed, jnp.inf, look.values[:, :n])
    return jnp.where(taken, jnp.minimum(smallest, jnp.min(open_gaps, initial=jnp.inf)), smallest)


def _flight(dynamics: Dynamics, c: Carry, now: Instant) -> Array:
    """After an impact a little more than the time until the contact closes again, as after a throw."""
    g_dot, g_ddot = dynamics.split(now.rates).N, dynamics.split(now.accelerations).N
    returns = ~c.modes.closed & c.fresh[: dynamics.laws.n_N] & (g_dot > 0.0) & (g_ddot < 0.0)
    # after lift-off a gap has neither velocity nor acceleration: what there is of them is round-off
    returns = returns & (g_dot**2 > -2e3 * jnp.finfo(float).eps * dynamics.gap_terms[dynamics.rows.g :] * g_ddot)
    return 1.1 * jnp.min(jnp.where(returns, -2.0 * g_dot / g_ddot, jnp.inf), initial=jnp.inf)


def _first_length(control: Control, q, u, now: Instant, order: float) -> Array:
    """Hairer, Norsett, Wanner, Solving ODEs I, section II.4, with the derivatives that are at hand."""
    scales = control.atol + control.rtol * jnp.abs(q), control.atol + control.rtol * jnp.abs(u)

    def size(a, b):
        return jnp.sqrt((jnp.sum((a / scales[0]) ** 2) + jnp.sum((b / scales[1]) ** 2)) / (a.shape[0] + b.shape[0]))

    x, f = size(q, u), size(now.q_dot, now.u_dot)
    rough = jnp.where((x > 1e-5) & (f > 1e-5), 0.01 * x / f, 1e-6)
    fine = (0.01 / jnp.maximum(f, 1e-15)) ** order
    guess = jnp.minimum(100.0 * rough, jnp.maximum(fine, rough))
    return jnp.where(control.fixed, control.dt, jnp.clip(guess, 1e-9 * control.dt_max, control.dt_max))


def _first(dynamics: Dynamics, method: Method, control: Control, t0: Array, q: Array, u: Array) -> Carry:
    """The start, with modes that are yet to be decided; what arrives there has its impact there."""
    laws, set_ = dynamics.laws, dynamics.laws.set
    at = Situation.of(*held((dynamics, t0, q, u)))
    g_dot, slow, gaps = dynamics.split(at.at.velocities(held(u))).N, dynamics.split(at.near.velocity), dynamics.rows.g
    touching = at.gaps[gaps:] <= at.near.closed[gaps:]
    closed, arrive = touching & (jnp.abs(g_dot) <= slow.N), touching & (g_dot < -slow.N)
    gamma_F, none = dynamics.gamma_F(t0, q, u), jnp.zeros(set_.count, dtype=bool)
    slips = set_.norm(held(gamma_F)) > set_.largest(slow.F)
    modes = _slip_modes(dynamics, closed, ~slips, none, set_.direction(gamma_F))
    sides = jnp.where(held(_users(control, t0, q, u)) < 0.0, -1.0, 1.0)
    now = instant(dynamics, t0, q, u, modes)
    length = held(_first_length(control, q, u, now, _weights(method)[3]))
    zero, nan, no = jnp.asarray(0), jnp.asarray(jnp.nan), jnp.asarray(False)
    iterations, others = jnp.asarray(0), jnp.zeros(set_.count + len(control.users), dtype=bool)
    untouched = jnp.zeros(laws.n_N + others.shape[0], dtype=bool)
    row = Row(
        t0, q, u, dynamics.percussions(jnp.zeros(dynamics.n_y)), now.u_dot, dynamics.percussions(now.la), modes.closed,
        modes.stick, now.u_dot, now.u_dot, iterations, jnp.zeros(untouched.shape[0] + 1, dtype=int),
    )  # fmt: skip
    return Carry(
        t0, q, u, modes, untouched, untouched, sides, length, (nan, nan), length,
        Search(no, zero, jnp.zeros(()), jnp.zeros(()), zero, jnp.zeros(()), jnp.zeros(())), jnp.full(CHATTER, -jnp.inf),
        jnp.concatenate([arrive, others]), jnp.asarray(True), zero, row, zero, zero, zero, jnp.asarray(jnp.inf), iterations,
        no, no, RESULTS.successful,
    )  # fmt: skip


def _put(kept: Any, n: Array, row: Any) -> Any:
    return jax.tree.map(lambda a, x: jax.lax.dynamic_update_index_in_dim(a, jnp.asarray(x, a.dtype), n, 0), kept, row)


def _loop(dynamics: Dynamics, method: Method, control: Control, c: Carry, length: int, most: Any, both_ways: bool = False):
    """Until ``length`` rows are kept, the end is reached, or so many attempts were made."""
    rows = jax.tree.map(lambda a: jnp.zeros((length + 2, *a.shape), a.dtype), c.kept)
    until = c.attempts + most

    def unfinished(state):
        c, _, n = state
        within = (c.events <= control.max_events) & (c.steps < control.max_steps) | c.last
        return ~c.finished & (c.result == RESULTS.successful) & (n < length) & (c.attempts < until) & within

    def advance(state):
        c, rows, n = state
        c, kept = _advance(dynamics, method, control, c)
        rows = _put(rows, n, kept.first)
        n = n + kept.keep_first
        return c, _put(rows, n, kept.second), n + kept.keep_second

    start = c, rows, jnp.asarray(0)
    if both_ways:  # differentiable: nested loops of known length, with checkpoints
        return eqxi.while_loop(unfinished, advance, start, max_steps=int(most), kind="bounded")
    return jax.lax.while_loop(unfinished, advance, start)


@eqx.filter_jit
def begin(system: System, method: Method, control: Control, t0, q: Array, u: Array, key: str):
    dynamics = Dynamics.of(system, t0, q, u)
    start = _first(dynamics, method, control, t0, q, u)
    return strong(dynamics), strong(start), start_values(dynamics, t0, q, u), dynamics.laws


@compiled
def chunk(dynamics: Dynamics, method: Method, control: Control, carry: Carry, most, key: str):
    return _loop(dynamics, method, control, carry, CHUNK, most)


@eqx.filter_jit
def whole(system: System, method: Method, control: Control, t0, q: Array, u: Array, n: int, key: str):
    """All at once, for tracing: n rows, of which those past the end repeat it."""
    dynamics = Dynamics.of(system, t0, q, u)
    ok = start_is_consistent(start_values(*held((dynamics, t0, q, u))))
    carry = _first(dynamics, method, control, t0, q, u)._replace(result=unless(ok, RESULTS.inconsistent_start))
    carry, rows, count = _loop(dynamics, method, control, carry, n, 4 * n + 100, both_ways=True)
    return carry, _padded(rows, count, n, carry), dynamics.laws


def _padded(rows: Row, count: Array, n: int, carry: Carry) -> Row:
    """Rows past the end: the last one again, without percussions and events; nan after a failure."""
    last = jnp.maximum(jnp.minimum(jnp.arange(n), count - 1), 0)
    beyond, failed = jnp.arange(n) >= count, carry.result != RESULTS.successful
    rows = jax.tree.map(lambda a: a[last], rows)

    def fill(a, value):
        return jnp.where(beyond.reshape(-1, *[1] * (a.ndim - 1)), value, a)

    quiet = rows._replace(
        P=jax.tree.map(lambda P: fill(P, 0.0), rows.P),
        newton_iterations=fill(rows.newton_iterations, 0),
        code=fill(rows.code, 0),
    )
    return jax.tree.map(lambda a: fill(a, jnp.where(failed, jnp.nan, a)) if eqx.is_inexact_array(a) else a, quiet)
