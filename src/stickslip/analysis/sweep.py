"""Many runs: parameters on a grid, in a list or sampled, on all cores or a cluster,
into a store that can be resumed.

On CPUs members are single runs in threads: a compiled run leaves Python alone, so two cores do twice the
work, and a member costs what a run costs. Elsewhere members are one batch (`jax.vmap`), shared by all
devices.
"""

import itertools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..captured import captured
from ..progress import Meter, meter
from ..results import RESULTS, message, succeeded
from ..solution import Solution
from .store import Members, Results

BLOCKS = 200  # into about so many a sweep is divided
BATCH = 1024  # members at a time on a device


class SweepError(RuntimeError):
    """No member of a sweep succeeded, or the workers are gone; says what to do."""


def sweep(
    run: Callable[..., Any], parameters: Any, *, executor: Any = None, out: Any = None,
    batch: bool | None = None, block: int | None = None, progress: bool | None = None,
) -> Any:  # fmt: skip
    """Call ``run(name=value, ...)`` for all parameters and give back an `xarray.Dataset` of what it returns.

    ``parameters`` is a dict of arrays, of which all combinations are taken (a grid), or a list of dicts, such
    as `ss.samples` gives. ``run`` returns a number, an array, or a dict of these, of the same shapes for
    every member. One that fails or is not finite is an entry with its ``status`` (1 done, 2 failed, 0
    missing) and ``message``, and nan for values.

    ``out="sweep.zarr"`` writes results as they come; the same call goes on where another was interrupted or
    killed. ``executor`` is anything with the interface of `concurrent.futures`, or a client of Dask; without
    one, threads on CPUs and one batch (``batch=True``) on GPUs, for which ``run`` must be traceable.
    ``block`` members are computed, and written, at a time.
    """
    members = as_members(parameters)
    if not callable(run):
        raise TypeError(f"run must be a function of the parameters, got {run!r}")
    batch = (jax.default_backend() != "cpu" and executor is None) if batch is None else batch
    if block is not None and (not isinstance(block, int) or block < 1):
        raise ValueError(f"block must be a whole number, at least 1, got {block!r}")
    size = block or (BATCH if batch else max(1, min(64, members.number // BLOCKS)))
    results = Results(members, captured(run), out, size)
    with meter(progress, members.number, "members") as bar:
        if batch:
            _batches(run, results, bar)
        else:
            _singly(run, results, executor, bar)
    if not results.values:
        raise SweepError(f"sweep: no member succeeded; the first said: {results.message[0]}")
    return results.dataset()


def samples(
    n: int, *, seed: int = 0, sampler: str = "sobol", **bounds: tuple[float, float]
) -> list[dict[str, float]]:
    """n points of a box, ``samples(64, mu=(0.1, 0.5), e_N=(0.0, 0.9))``, by a sampler of scipy's qmc.

    "sobol", "halton" or "latin" (Latin hypercube).
    """
    from scipy.stats import qmc

    samplers = {"sobol": qmc.Sobol, "halton": qmc.Halton, "latin": qmc.LatinHypercube}
    if sampler not in samplers:
        raise ValueError(f"unknown sampler {sampler!r}. Known: {', '.join(samplers)}")
    if not bounds:
        raise ValueError("samples: give bounds for at least one parameter, such as mu=(0.1, 0.5)")
    low, high = np.array([tuple(map(float, b)) for b in bounds.values()]).T
    if not np.all(low < high):
        raise ValueError(f"samples: bounds must be (smallest, largest), got {bounds}")
    made = samplers[sampler](len(bounds), rng=seed)
    # Sobol's points are balanced in powers of two: of more than asked for, the first n
    points = made.random_base2((n - 1).bit_length())[:n] if sampler == "sobol" else made.random(n)
    return [dict(zip(bounds, map(float, point), strict=True)) for point in qmc.scale(points, low, high)]


def as_members(parameters: Any) -> Members:
    if isinstance(parameters, Mapping):
        grid = {str(name): np.atleast_1d(np.asarray(values)) for name, values in parameters.items()}
        for name, values in grid.items():
            _numbers(name, values)
            if values.ndim != 1 or not len(values):
                raise ValueError(
                    f"parameters: {name} must be a list of numbers, got an array of shape {values.shape}"
                )
        if not grid:
            raise ValueError("parameters: give at least one name with its values")
        rows = list(itertools.product(*grid.values()))
        return Members({name: np.array([row[i] for row in rows]) for i, name in enumerate(grid)}, grid)
    if not isinstance(parameters, Sequence) or isinstance(parameters, str) or not parameters:
        raise TypeError(
            "parameters must be a dict of arrays (a grid) or a list of dicts, one for each member"
        )
    names = list(parameters[0])
    for k, member in enumerate(parameters):
        if not isinstance(member, Mapping) or list(member) != names:
            raise ValueError(
                f"parameters: member {k} must have the names {', '.join(names)} as the first has"
            )
    columns = {}
    for name in names:
        try:
            columns[name] = np.array([np.asarray(member[name]) for member in parameters])
        except ValueError:
            raise ValueError(f"parameters: {name} must have the same shape for all members") from None
        _numbers(name, columns[name])
    return Members(columns, {})


def _numbers(name: str, values: np.ndarray) -> None:
    if values.dtype.kind not in "fiub":
        raise TypeError(f"parameters: {name} must be numbers, got {values.dtype}")


# ---- one after another, in as many threads or workers as there are


def _singly(run: Callable[..., Any], results: Results, executor: Any, bar: Meter) -> None:
    todo = results.missing
    bar.update(_done(results))
    if executor is None:
        # The first alone, and until one succeeds: it compiles what all others run.
        while todo and not results.values:
            block, rest = todo[0][:1], todo[0][1:]
            todo = ([rest] if len(rest) else []) + todo[1:]
            results.add(block, compute(run, [results.members.member(k) for k in block]))
            bar.update(_done(results))
        with ThreadPoolExecutor(_cores(), thread_name_prefix="stickslip sweeps") as pool:
            _gather(run, results, todo, pool, bar)
        return
    pool = executor.get_executor() if hasattr(executor, "get_executor") else executor
    if not hasattr(pool, "submit"):
        raise TypeError(f"executor must be one of concurrent.futures, or a client of Dask, got {executor!r}")
    _gather(run, results, todo, pool, bar)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # elsewhere than on Linux
        return os.cpu_count() or 1


def _gather(
    run: Callable[..., Any], results: Results, todo: list[np.ndarray], pool: Executor, bar: Meter
) -> None:
    waiting: dict[Future[Any], np.ndarray] = {}
    try:
        for block in todo:
            waiting[pool.submit(compute, run, [results.members.member(k) for k in block])] = block
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                results.add(waiting.pop(future), _result(future))
            bar.update(_done(results))
    except BaseException as error:
        for future in waiting:
            future.cancel()
        if isinstance(error, KeyboardInterrupt):
            there = f"{_done(results)} of {results.members.number} members are there"
            print(f"stickslip: sweep interrupted, {there}", file=sys.stderr)
        raise


def _result(future: Future[Any]) -> list[Any]:
    try:
        return future.result()
    except Exception as error:
        raise SweepError(
            f"sweep: a worker failed outside of the run ({type(error).__name__}: {error}); what was computed "
            "is kept in"
            " out=..., the same call goes on there"
        ) from error


def compute(run: Callable[..., Any], members: list[dict[str, Any]]) -> list[Any]:
    """What a worker does: of each member its values, or a text that says what failed."""
    return [_one(run, member) for member in members]


def _one(run: Callable[..., Any], member: dict[str, Any]) -> Any:
    try:
        made = run(**{name: float(x) if np.ndim(x) == 0 else x for name, x in member.items()})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return _values(made)


def _values(made: Any) -> Any:
    """Arrays by name; a text where a result says that a run failed."""
    if isinstance(made, Solution):
        raise TypeError(_WHOLE)
    values = dict(made) if isinstance(made, Mapping) else {"value": made}
    for name, value in list(values.items()):
        if isinstance(value, Solution):
            raise TypeError(_WHOLE)
        if isinstance(value, type(RESULTS.successful)):
            if not bool(succeeded(value)):
                return message(value)
            del values[name]
    return {name: np.asarray(value) for name, value in values.items()}


_WHOLE = (
    'run must return what is to be kept, such as {"x": sol.q[-1, 0]}: whole solutions have rows of different '
    "number"
)


def _done(results: Results) -> int:
    return int(np.count_nonzero(results.status))


# ---- all at once on a device


def _batches(run: Callable[..., Any], results: Results, bar: Meter) -> None:
    devices = jax.devices()
    together = jax.jit(jax.vmap(lambda member: run(**member)))
    for block in results.missing:
        # the last batch is filled up: one program, and as many members on every device
        size = -(-results.block // len(devices)) * len(devices)
        which = np.concatenate([block, np.repeat(block[-1:], size - len(block))])
        columns = {
            name: jnp.asarray(column[which], dtype=float) for name, column in results.members.columns.items()
        }
        if len(devices) > 1:
            mesh = jax.sharding.Mesh(np.array(devices), ("member",))
            columns = jax.device_put(
                columns, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))
            )
        made = together(columns)
        made = made if isinstance(made, Mapping) else {"value": made}
        if any(isinstance(x, Solution) for x in made.values()):
            raise TypeError(_WHOLE)
        host = jax.tree.map(np.asarray, made)
        results.add(
            block, [_values(jax.tree.map(lambda a, i=i: np.asarray(a[i]), host)) for i in range(len(block))]
        )
        bar.update(_done(results))
