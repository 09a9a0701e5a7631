"""Sweeps, sections, periodic orbits, branches, exponents, basins, fits:
small versions of benchmarks/ensembles.py.
"""

import dataclasses
import functools
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.analysis.basins import FAILED, OTHER, grouped
from stickslip.benchmarks.forced_impact_oscillator import ForcedImpactOscillator, one_impact


def period(system):
    return 2.0 * np.pi / system.Omega


# ---- sweeps


def parabola(a, b=0.0):
    if a == 3.0:
        raise RuntimeError("three is too much")
    return {"y": np.array([a * a + b, 0.0 if a != 4.0 else np.nan])}


@pytest.mark.parametrize("block", [None, 1, 7])
def test_a_sweep_has_the_axes_of_its_grid_and_marks_what_fails(block):
    made = ss.sweep(parabola, {"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 0.5]}, block=block)
    assert made["y"].dims == ("a", "b", "y_0")
    assert made["y"].sel(a=2.0, b=0.5).values[0] == 4.5
    assert made["status"].values.tolist() == [[1, 1], [1, 1], [2, 2], [2, 2]]
    assert "three is too much" in str(made["message"].sel(a=3.0, b=0.0).values)
    assert str(made["message"].sel(a=4.0, b=0.5).values) == "not finite"
    assert np.isnan(made["y"].sel(a=3.0).values).all()


def test_a_list_of_members_is_a_sweep_too_and_samples_fill_their_box():
    members = ss.samples(16, a=(0.0, 2.0), b=(-1.0, 1.0))
    made = ss.sweep(parabola, members)
    assert made["y"].dims == ("member", "y_0")
    assert made["y"].values[:, 0] == pytest.approx([m["a"] ** 2 + m["b"] for m in members])
    for name, low, high in (("a", 0.0, 2.0), ("b", -1.0, 1.0)):
        quarters = np.histogram([m[name] for m in members], 4, (low, high))[0]
        assert quarters.tolist() == [4, 4, 4, 4], "Sobol's points are balanced"


def counted(folder, stop_at, a):
    """Leaves a file for each call, and is interrupted in one of them."""
    calls = len(os.listdir(folder))
    (Path(folder) / f"{calls:03d}-{a!r}").touch()
    if calls == stop_at:
        raise KeyboardInterrupt
    return {"y": a * a}


def test_a_store_goes_on_where_it_was_left_and_refuses_what_is_not_its_own(tmp_path):
    store, calls = tmp_path / "s.zarr", tmp_path / "calls"
    calls.mkdir()
    run, grid = functools.partial(counted, str(calls), 12), {"a": np.linspace(10.0, 11.0, 40)}
    one = ThreadPoolExecutor(1)
    with pytest.raises(KeyboardInterrupt):
        ss.sweep(run, grid, out=store, block=2, executor=one)
    done = int((ss.open_sweep(store)["status"] == 1).sum())
    assert 0 < done < 40
    before = len(os.listdir(calls))
    made = ss.sweep(run, grid, out=store, executor=one)
    assert len(os.listdir(calls)) - before == 40 - done, "what is there is not computed again"
    assert np.array_equal(made["y"].values, grid["a"] ** 2)
    assert ss.open_sweep(store).equals(made)
    with pytest.raises(ValueError, match="other values of a"):
        ss.sweep(run, {"a": grid["a"] + 1.0}, out=store)
    for other in (parabola, functools.partial(counted, str(calls), 13)):
        with pytest.raises(ValueError, match="made by another function"):
            ss.sweep(other, grid, out=store)
    (tmp_path / "other.zarr").mkdir()
    with pytest.raises(ValueError, match="is no sweep"):
        ss.sweep(run, grid, out=tmp_path / "other.zarr")


WORKER = """
import sys, time
import numpy as np
import stickslip as ss
def run(a):
    time.sleep(0.01)
    with open(sys.argv[2], "a") as log:
        log.write(f"{a!r}\\n")
    return {"y": a * a}
ss.sweep(run, {"a": np.arange(200.0)}, out=sys.argv[1], block=4)
"""


def test_a_sweep_that_is_killed_goes_on_without_doing_anything_twice(tmp_path):
    store, log = tmp_path / "s.zarr", tmp_path / "log"
    process = subprocess.Popen([sys.executable, "-c", WORKER, store, log])
    while not (log.exists() and len(log.read_text().splitlines()) > 40):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = int((ss.open_sweep(store)["status"] == 1).sum())
    assert 20 < kept < 200
    before = len(log.read_text().splitlines())
    subprocess.run([sys.executable, "-c", WORKER, store, log], check=True)
    made = ss.open_sweep(store)
    assert np.array_equal(made["y"].values, np.arange(200.0) ** 2)
    # only blocks that were under way when it died are computed again
    assert len(log.read_text().splitlines()) == before + 200 - kept
    assert before - kept <= 4 * (os.cpu_count() or 1) + 4


def test_workers_of_dask_give_the_bits_of_threads_and_one_may_die(tmp_path):
    distributed = pytest.importorskip("dask.distributed", reason="the extra cluster")
    values = np.linspace(2.5, 2.8, 6)
    here = small_diagram(values)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = small_diagram(values, executor=client)
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        after = small_diagram(values, executor=client)
    for made in (there, after):
        assert (made["status"] == 1).all()
        assert np.array_equal(made["q"], here["q"])
        assert np.array_equal(made["u"], here["u"])


def small_diagram(values, **how):
    return ss.bifurcation(
        ForcedImpactOscillator(), "Omega", values, [-0.5], [0.0], period=period, transient=20, keep=4, **how
    )


# ---- sections and diagrams


def test_strobed_states_of_a_free_vibration_are_those_of_the_closed_form():
    free = ForcedImpactOscillator(d=50.0)  # a wall that is never reached
    made = ss.poincare(free, [-0.5], [0.0], period=period, n=4, skip=200, rtol=1e-10)
    s = free
    below, damping = s.omega**2 - s.Omega**2, 2.0 * s.zeta * s.omega * s.Omega
    exact = s.F * below / (below**2 + damping**2)
    assert made["q"].values.ravel() == pytest.approx(exact, abs=1e-8)
    assert made["u"].values.ravel() == pytest.approx(
        s.F * damping / (below**2 + damping**2) * s.Omega, abs=1e-8
    )
    upwards = lambda t, q, u: q[0]
    upwards.direction = 1.0
    crossings = ss.poincare(
        free, [-0.5], [0.0], section=upwards, t1=210 * float(period(s)), skip=200, n=5, rtol=1e-10
    )
    assert np.abs(crossings["q"].values).max() < 1e-8
    assert np.diff(crossings["t"].values) == pytest.approx(float(period(s)), abs=1e-7)


def test_a_diagram_flips_where_the_orbit_does_and_both_directions_show_both_motions():
    later = ss.bifurcation(
        ForcedImpactOscillator(), "Omega", [2.6, 2.7], [-0.5], [0.0], period=period, transient=300, keep=8
    )
    ptp = [float(np.ptp(later["q"].sel(Omega=x).values)) for x in (2.6, 2.7)]
    assert ptp[0] < 1e-5
    assert ptp[1] > 0.05
    two = ForcedImpactOscillator(d=0.5)
    both = ss.bifurcation(
        two,
        "Omega",
        np.linspace(1.6, 1.95, 8),
        [0.0],
        [0.0],
        period=period,
        transient=40,
        keep=2,
        direction="both",
    )
    assert bool(both["reached"].all())
    up, down = (both["q"].sel(direction=d).isel(crossing=-1, coordinate=0).values for d in ("up", "down"))
    assert np.abs(up - down).max() > 0.3, "between grazing and fold two motions coexist"
    assert abs(up - down)[0] < 1e-3
    assert abs(up - down)[-1] < 1e-3


# ---- orbits


@pytest.fixture(scope="module")
def orbit():
    b = ss.benchmarks.load("forced-impact-oscillator")
    known = b.reference["one_impact"][0]
    return (
        ss.periodic_orbit(b.system, known.start[:1] + 1e-2, known.start[1:], period=period),
        known,
        b.reference["product"],
    )


def test_an_orbit_and_its_multipliers_are_those_of_the_closed_form(orbit):
    found, known, product = orbit
    assert np.append(found.q, found.u) == pytest.approx(known.start, abs=1e-9)
    assert np.sort_complex(found.multipliers) == pytest.approx(np.sort_complex(known.multipliers), abs=1e-7)
    assert np.prod(found.multipliers) == pytest.approx(product, abs=1e-9)
    assert found.impacts == 1
    assert found.stable
    assert found.slowest_impact == pytest.approx(known.speed, rel=1e-9)
    # without saltation, the jump of a difference at the impact, it is another matrix
    s = found.system
    assert abs(np.prod(found.multipliers) - math.exp(-2.0 * s.zeta * s.omega * found.period)) > 0.1
    assert found.to_xarray()["multiplier"].size == 2


def test_an_orbit_that_is_not_there_is_not_found():
    with pytest.raises(ss.OrbitError, match=r"left|leads nearer|failed"):
        ss.periodic_orbit(
            ForcedImpactOscillator(Omega=2.8, zeta=0.05), [-0.2], [1.5], period=period, max_iterations=2
        )


def test_a_branch_flips_where_a_multiplier_is_minus_one(orbit):
    branch = ss.continuation(orbit[0], "Omega", (2.45, 2.7))
    (flip,) = branch.special
    assert flip.kind == "flip"
    closed = one_impact(dataclasses.replace(orbit[0].system, Omega=flip.value))[0].multipliers
    assert np.real(closed).min() == pytest.approx(-1.0, abs=1e-6)
    assert branch.stable[branch.value < flip.value].all()
    assert not branch.stable[branch.value > flip.value].any()
    for value, q in zip(branch.value[::3], branch.q[::3, 0], strict=True):
        assert q == pytest.approx(
            one_impact(dataclasses.replace(orbit[0].system, Omega=value))[0].start[0], abs=1e-8
        )
    assert branch.to_xarray()["special"].values.tolist() == ["flip"]


def test_a_branch_goes_around_its_fold_and_ends_where_it_grazes():
    b = ss.benchmarks.load("forced-impact-oscillator", 4)
    known = b.reference["one_impact"][0]
    first = ss.periodic_orbit(b.system, known.start[:1], known.start[1:], period=period)
    branch = ss.continuation(first, "Omega", (1.5, 2.0))
    fold, grazing = branch.special
    assert (fold.kind, grazing.kind) == ("fold", "grazing")
    assert np.abs(fold.orbit.multipliers - 1.0).min() < 1e-6
    assert not one_impact(dataclasses.replace(b.system, Omega=fold.value + 1e-6))
    s = b.system  # the forced vibration alone just reaches the wall
    squares = np.roots([1.0, 4.0 * s.zeta**2 * s.omega**2 - 2.0 * s.omega**2, s.omega**4 - (s.F / s.d) ** 2])
    assert grazing.value == pytest.approx(math.sqrt(squares.real.max()), abs=1e-5)
    assert "grazes" in branch.end


def test_a_free_period_is_found_and_a_block_that_sticks_forgets():
    b = ss.benchmarks.load("block-on-belt")
    found = ss.periodic_orbit(b.system, [0.3], [0.1], period_guess=7.0)
    assert found.period == pytest.approx(b.reference["period"], abs=2e-6)
    assert np.abs(found.multipliers).max() < 1e-10, "what has stuck has lost its past"
    assert abs(found.monodromy).max() > 0.1, "though the motion itself has the multiplier 1"


# ---- exponents


def test_exponents_sum_to_what_volumes_lose():
    b = ss.benchmarks.load("forced-impact-oscillator", 3)
    found = ss.lyapunov(b.system, b.q0, b.u0, period=period, n=300, transient=30)
    s = b.system
    lost = lambda impacts: -2.0 * s.zeta * s.omega + 2.0 * math.log(s.e_N) * impacts / found.time
    assert found.exponents.sum() == pytest.approx(lost(found.impacts), abs=1e-6)
    assert abs(found.exponents.sum() - lost(found.impacts + 1)) > 1e-4
    assert 0.1 < found.exponents[0] < 0.25
    assert found.chaotic
    quiet = ss.lyapunov(
        ForcedImpactOscillator(), [-0.78720342], [0.09912436], period=period, n=100, transient=0
    )
    known = np.abs(one_impact(ForcedImpactOscillator())[0].multipliers)
    assert quiet.exponents == pytest.approx(np.log(known) / float(period(quiet.system)), abs=0.02)
    assert not quiet.chaotic


# ---- basins


def test_motions_are_told_apart_by_their_states_in_any_order():
    rng = np.random.default_rng(0)
    one, two = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0], [3.0, 1.0]])
    kinds = rng.integers(0, 3, 60)
    x = np.empty((60, 8, 2))
    for k, kind in enumerate(kinds):
        if kind == 0:
            x[k] = one
        elif kind == 1:
            x[k] = np.roll(two, rng.integers(2), axis=0)[np.arange(8) % 2]
        else:
            x[k] = rng.uniform(0.0, 3.0, (8, 2))
    done = np.ones(60, dtype=bool)
    done[5] = False
    attractor, multiple = grouped(x + 1e-6 * rng.normal(size=x.shape), done, 1e-3)
    assert attractor[5] == FAILED
    for kind, p in ((0, 1), (1, 2), (2, 0)):
        mine = (kinds == kind) & done
        assert len(np.unique(attractor[mine])) == 1
        assert (multiple[mine] == p).all()
        assert (attractor[mine] == OTHER).all() == (kind == 2)
    assert len(np.unique(attractor[done])) == 3


def test_basins_of_two_motions_and_starts_beyond_the_wall(tmp_path):
    system = ForcedImpactOscillator(Omega=1.88, d=0.5)
    starts = {"x": [-1.5, -0.6, 0.6], "x_dot": [-1.2, 0.0, 2.0]}
    made = ss.basins(system, starts, [0.0], [0.0], period=period, transient=60)
    assert made["attractor"].dims == ("x", "x_dot")
    beyond = made["attractor"].sel(x=0.6).values
    assert (beyond == FAILED).all()
    assert "penetrates" in str(made["message"].sel(x=0.6, x_dot=0.0).values)
    inside = made["attractor"].sel(x=[-1.5, -0.6])
    assert set(np.unique(inside)) == {1, 2}
    assert (made["multiple"].values[made["attractor"].values > 0] == 1).all()
    known = one_impact(system)[0].start
    impacting = min(
        abs(float(q) - known[0])
        for q in made["q"].isel(crossing=0, coordinate=0).values.ravel()
        if np.isfinite(q)
    )
    assert impacting < 1e-4
    ss.analysis.pictures.basins(made, tmp_path / "basins.png")
    assert (tmp_path / "basins.png").stat().st_size > 5_000


# ---- fits


def line_of(a, b):
    x = jnp.linspace(0.0, 1.0, 30)
    return {"y": a + b * x, "z": a * jnp.ones(4)}


def test_a_fit_of_a_straight_line_is_that_of_the_normal_equations():
    rng = np.random.default_rng(4)
    clean = line_of(1.0, 2.0)
    measured = {k: np.asarray(v) + 0.1 * rng.normal(size=v.shape) for k, v in clean.items()}
    measured["y"][3] = np.nan  # was not measured
    found = ss.fit(line_of, {"a": 0.0, "b": 0.0}, measured)
    x = np.delete(np.linspace(0.0, 1.0, 30), 3)
    A = np.vstack([np.column_stack([np.ones(29), x]), np.column_stack([np.ones(4), np.zeros(4)])])
    y = np.append(np.delete(measured["y"], 3), measured["z"])
    p, left, *_ = np.linalg.lstsq(A, y, rcond=None)
    assert found.value == pytest.approx(p, abs=1e-8)
    s2 = left[0] / (33 - 2)
    assert found.covariance == pytest.approx(s2 * np.linalg.inv(A.T @ A), rel=1e-8)
    assert found.sigma == pytest.approx(math.sqrt(s2), rel=1e-8)
    known = ss.fit(line_of, {"a": 0.0, "b": 0.0}, measured, sigma=0.1)
    assert known.covariance == pytest.approx(0.01 * np.linalg.inv(A.T @ A), rel=1e-8)
    low, high = found.interval("b")
    assert low < p[1] < high
    assert high - low > 2 * 1.96 * found.error[1], "Student's t is wider than a normal distribution"
    held = ss.fit(line_of, {"a": 0.5, "b": 0.5}, measured, bounds={"b": (0.0, 1.0)})
    assert held.on_bound == ("b",)
    assert held["b"] == pytest.approx(1.0, abs=1e-6)
    assert np.isnan(held.error[1])


def blind(a, b):
    return a * jnp.arange(5.0) + 0.0 * b


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(5.0)), "does not depend on b"),
        (lambda: ss.fit(lambda a: jnp.sqrt(a) * jnp.ones(5), {"a": -1.0}, np.arange(5.0)), "not finite"),
        (
            lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(2.0)),
            "2 measured values cannot tell 2 parameters",
        ),
        (lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(6.0)), "shape"),
        (lambda: ss.fit(blind, {"a": 1.0, "b": "1"}, np.arange(5.0)), "guess: b must be a number"),
        (
            lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(5.0), bounds={"c": (0, 1)}),
            "no parameter 'c'",
        ),
        (
            lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(5.0), bounds={"a": (2, 3)}),
            "must lie between 2 and 3",
        ),
        (lambda: ss.fit(blind, {"a": 1.0, "b": 1.0}, np.arange(5.0), sigma=-1.0), "sigma must be positive"),
        (lambda: ss.sweep(parabola, {"a": ["x"]}), "a must be numbers"),
        (lambda: ss.sweep(parabola, {}), "at least one name"),
        (lambda: ss.sweep(parabola, [{"a": 1.0}, {"b": 1.0}]), "member 1 must have the names a"),
        (lambda: ss.sweep(None, {"a": [1.0]}), "run must be a function"),
        (lambda: ss.sweep(parabola, {"a": [1.0]}, block=0), "block must be a whole number"),
        (lambda: ss.sweep(parabola, {"a": [1.0]}, executor="two"), "executor must be"),
        (lambda: ss.sweep(lambda a: {"a": a}, {"a": [3.0]}), "returns 'a', which is the name of a parameter"),
        (
            lambda: ss.sweep(parabola, {"a": [3.0]}),
            "no member succeeded; the first said: RuntimeError: three",
        ),
        (lambda: ss.samples(4, a=(1.0, 0.0)), "smallest, largest"),
        (lambda: ss.samples(4, sampler="dice", a=(0.0, 1.0)), "Known: sobol"),
        (lambda: ss.poincare(ForcedImpactOscillator(), [0.0], [0.0]), "one of them"),
        (
            lambda: ss.bifurcation(ForcedImpactOscillator(), "omga", [1.0], [0.0], [0.0], period=1.0),
            "no parameter 'omga'",
        ),
        (
            lambda: ss.bifurcation(ForcedImpactOscillator(), "Omega", [1.0], [0.0], [0.0], period=-1.0),
            "no member succeeded",
        ),
        (
            lambda: ss.basins(ForcedImpactOscillator(), {"y": [0.0]}, [0.0], [0.0], period=1.0),
            "no 'y'. It has x, x_dot",
        ),
        (lambda: ss.periodic_orbit(ForcedImpactOscillator(), [-0.5], [0.0]), "one of them"),
        (
            lambda: ss.periodic_orbit(ForcedImpactOscillator(), [-0.5], [0.0], period=1.0, drift="y"),
            "no coordinate 'y'",
        ),
        (
            lambda: ss.lyapunov(ForcedImpactOscillator(), [-0.5], [0.0], period=period, n=0),
            "n must be a whole number",
        ),
        (lambda: ss.lyapunov(*_of("pendulum"), period=1.0), "bilateral constraints"),
        (lambda: ss.lyapunov(*_of("tippedisk"), period=1.0), "more coordinates than velocities"),
    ],
)
def test_what_cannot_be_is_refused_in_words(call, says):
    with pytest.raises((ValueError, TypeError, ss.FitError, ss.SweepError), match=says):
        call()


def _of(name):
    b = ss.benchmarks.load(name)
    return b.system, b.q0, b.u0
