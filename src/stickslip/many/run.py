"""The time loop of many bodies: steps of one size, each with its certificate,
each written down as it comes.
"""

import math
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np

from ..progress import meter
from ..results import SimulationError
from .contacts import Outcome, State
from .methods import LinearisedGaps, Moreau, Rattle
from .recorded import InMemory, Recorder, steps_of
from .solution import ManySolution
from .solvers import AndersonSOR, default_solver
from .system import ManyBodies

METHODS = Moreau, Rattle, LinearisedGaps
UNSOLVED = ("accept", "halve", "raise")
HALVINGS = 4  # a step that cannot be solved is taken in at most two to this power parts


def simulate(
    system: ManyBodies,
    *,
    t1: float,
    dt: float,
    t0: float = 0.0,
    tolerance: float = 1e-6,
    on_unsolved: str = "accept",
    method: Any = None,
    solver: Any = None,
    save_every: int = 1,
    file: str | PathLike | None = None,
    chunk: int = 100,
    progress: bool | None = None,
) -> ManySolution:
    """A run from t0 to t1. Every step carries its residual, computed from its percussions alone.

    ``method``: `Moreau` (the default), on velocity level, or `Rattle`, on position level too.

    A step is solved if that is at most ``tolerance`` (relative to the free velocities in the contacts). What
    to do with one that is not: ``on_unsolved="accept"`` it, marked; "halve" it, up to sixteen times, and
    accept what is unsolved even then, marked; or "raise". Rows are kept every ``save_every`` steps; with
    ``file`` they go to a zarr store in chunks of ``chunk`` rows as they come, with all that `resume` needs.
    """
    _check(system, t0, t1, dt, tolerance, on_unsolved, save_every, chunk)
    solver = default_solver() if solver is None else solver
    method = Moreau() if method is None else method
    step = stepper(system, solver, method)
    settings = {
        "t0": float(t0), "t1": float(t1), "dt": float(dt), "tolerance": float(tolerance),
        "on_unsolved": on_unsolved, "save_every": int(save_every), "chunk": int(chunk),
    }  # fmt: skip
    state = system.start()
    if file is None:
        recorder: Recorder = InMemory(system)
    else:
        from .stored import Store

        recorder = Store.created(file, system, settings, solver, method)
    recorder.row(float(t0), state)
    return _run(system, step, settings, state, recorder, progress)


def resume(
    file: str | PathLike, system: ManyBodies, *, t1: float | None = None, progress: bool | None = None
) -> ManySolution:
    """Goes on where a run that wrote to ``file`` ended or was killed, bit for bit as if nothing had happened.

    ``t1``: a later end than that of the run.
    """
    from .stored import Store

    store, settings, solver, method, state = Store.opened(file, system)
    if t1 is not None:
        if not t1 >= settings["t1"]:
            raise ValueError(
                f"resume(t1={t1}): the run in {file} ends at {settings['t1']}, t1 must not be before"
            )
        # A last step that was shortened was right for its end alone.
        if t1 > settings["t1"] and not math.isclose(
            steps_of(settings) * settings["dt"], settings["t1"] - settings["t0"]
        ):
            raise ValueError(
                f"resume(t1={t1}): the run in {file} ends with a shortened step; only t1={settings['t1']} "
                "fits"
            )
        settings["t1"] = float(t1)
        store.settings(settings)
    return _run(system, stepper(system, solver, method), settings, state, store, progress)


def _check(system, t0, t1, dt, tolerance, on_unsolved, save_every, chunk) -> None:
    if not isinstance(system, ManyBodies):
        raise TypeError(f"simulate(system): must be a ManyBodies, got {type(system).__name__}")
    for name, value in (("t0", t0), ("t1", t1), ("dt", dt), ("tolerance", tolerance)):
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not math.isfinite(value)
        ):
            raise ValueError(f"simulate({name}={value!r}): {name} must be a finite number")
    for name, value in (("dt", dt), ("tolerance", tolerance)):
        if value <= 0.0:
            raise ValueError(f"simulate({name}={value}): {name} must be positive")
    if t1 <= t0:
        raise ValueError(f"simulate(t1={t1}): t1 must be after t0={t0}")
    if on_unsolved not in UNSOLVED:
        raise ValueError(
            f"simulate(on_unsolved={on_unsolved!r}): must be one of {', '.join(map(repr, UNSOLVED))}"
        )
    for name, value in (("save_every", save_every), ("chunk", chunk)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"simulate({name}={value!r}): {name} must be a whole number of at least 1")


Step = Callable[[State, float, float, float], tuple[State, Outcome]]


def stepper(system: ManyBodies, solver: Any, method: Any = Moreau()) -> Step:  # noqa: B008
    """The step that goes with the method and the solver."""
    if not isinstance(method, METHODS):
        got = f"{type(method).__name__} of {type(method).__module__}"
        raise TypeError(f"simulate(method): must be a {names_of(METHODS)} of stickslip.many, got {got}")
    if isinstance(solver, AndersonSOR):
        from .numba_step import NumbaStep

        if isinstance(method, Rattle):
            from .rattle_step import RattleStep

            return RattleStep(system, solver, method)
        if isinstance(method, LinearisedGaps):
            from .linearised_step import LinearisedStep

            _refuse_restitution(system, method)
            return LinearisedStep(system, solver)
        return NumbaStep(system, solver)
    from .jacobi import AndersonJacobi

    if isinstance(solver, AndersonJacobi):
        from .jax_step import JaxStep

        if not isinstance(method, Moreau):
            raise ValueError(
                f"simulate(method={method!r}, solver={solver!r}): on the device of JAX there is Moreau()"
                " alone; use AndersonSOR() as solver, the default where numba is installed"
            )
        return JaxStep(system, solver)
    raise TypeError(
        f"simulate(solver={solver!r}): must be an AndersonSOR or an AndersonJacobi of stickslip.many"
    )


def _refuse_restitution(system: ManyBodies, method: Any) -> None:
    e_N = system.laws.e_N
    if np.any(e_N > 0.0):
        one, two = np.unravel_index(int(e_N.argmax()), e_N.shape)
        pair = f"{system.materials[one]} and {system.materials[two]}"
        raise ValueError(
            f"simulate(method={method!r}): it has no impact law, and e_N={e_N[one, two]:g} of {pair}"
            " needs one; use Moreau() or Rattle()"
        )


def names_of(kinds: tuple[type, ...]) -> str:
    """As words: "A, B or C"."""
    *most, last = (kind.__name__ for kind in kinds)
    return f"{', '.join(most)} or {last}"


def _run(system, step, settings, state, recorder, progress) -> ManySolution:
    n = steps_of(settings)
    t0, t1, dt, tolerance = (settings[name] for name in ("t0", "t1", "dt", "tolerance"))
    interrupted = False
    with meter(progress, n, "steps") as bar:
        try:
            while state.step < n:
                k = state.step
                t, end = t0 + k * dt, t1 if k == n - 1 else t0 + (k + 1) * dt
                done, outcome, parts = advance(step, state, t, end - t, tolerance, settings["on_unsolved"])
                with np.errstate(over="ignore", invalid="ignore"):  # judged in the next line
                    energy = float(system.energy(done.x, *_velocities(done)))
                if not math.isfinite(energy):
                    raise SimulationError(_not_finite(k, end), recorder.solution(settings))
                if settings["on_unsolved"] == "raise" and outcome.residual > tolerance:
                    raise SimulationError(_unsolved(k, end, outcome, tolerance), recorder.solution(settings))
                state = done._replace(step=k + 1)
                recorder.step(end, outcome, parts, energy)
                if (k + 1) % settings["save_every"] == 0 or k + 1 == n:
                    recorder.row(end, state)
                bar.update(k + 1)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            recorder.finish(state)
    return recorder.solution(settings, interrupted)


def _velocities(state: State) -> tuple[np.ndarray, np.ndarray]:
    n = len(state.x)
    return state.rows[:n, :3], state.rows[:n, 3:6]


def advance(
    step: Step, state, t, dt, tolerance, on_unsolved, halvings=HALVINGS
) -> tuple[State, Outcome, int]:
    """A step, or if it cannot be solved and shall be halved, its halves: state,
    what it is worth, how many parts.
    """
    done, outcome = step(state, t, dt, tolerance)
    if outcome.residual <= tolerance or on_unsolved != "halve" or halvings == 0:
        return done, outcome, 1
    half = dt / 2
    middle, one, parts = advance(step, state, t, half, tolerance, on_unsolved, halvings - 1)
    done, two, more = advance(step, middle, t + half, half, tolerance, on_unsolved, halvings - 1)
    worse = one if one.residual >= two.residual else two
    both = worse._replace(
        velocity_error=max(one.velocity_error, two.velocity_error),
        sweeps=outcome.sweeps + one.sweeps + two.sweeps,
        contacts=max(one.contacts, two.contacts),
        wall_percussion=one.wall_percussion + two.wall_percussion,
        wall_moment=one.wall_moment + two.wall_moment,
    )
    return done, both, parts + more


def _not_finite(k: int, t: float) -> str:
    return (
        f"step {k + 1}, t = {t:g}: a nan or an infinity appeared in positions or velocities; use a smaller dt"
    )


def _unsolved(k: int, t: float, outcome: Outcome, tolerance: float) -> str:
    return (
        f"step {k + 1}, t = {t:g}: {outcome.contacts} contacts were not solved to tolerance={tolerance:g}: "
        "residual"
        f" {outcome.residual:.2g}, velocities off by up to {outcome.velocity_error:.2g} m/s after "
        f"{outcome.sweeps} sweeps;"
        ' use a smaller dt, a larger tolerance or max_sweeps, or on_unsolved="halve" or "accept"'
    )
