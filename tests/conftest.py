"""Runs shared between tests: a trajectory is computed once per worker."""

import gc
import os
from functools import lru_cache
from pathlib import Path

import jaxlib

# Tests compile much and run little: half the time is the compiler's optimisation, which `XLA_FLAGS= make
# tests` keeps. Those that run for long are marked so. Two passes over loops copy the module to find out how
# often a loop runs, which for loops within loops takes a third of XLA's time (without them some steps take
# 1.15 times as long). An unknown flag is fatal.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    " --xla_llvm_enable_alias_scope_metadata=false --xla_llvm_enable_noalias_metadata=false"
    " --xla_disable_hlo_passes=while-loop-invariant-code-motion,simplify-while-loops"
    + (
        " --xla_cpu_use_fusion_emitters=false"
        if tuple(map(int, jaxlib.__version__.split(".")[:2])) == (0, 10)
        else ""
    ),
)

# Nor does anybody read in a compiled program who called for what.
os.environ.setdefault("JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS", "0")

import jax
import numpy as np
import pytest

import stickslip as ss
from browsing import browser  # noqa: F401  (a fixture)
from stickslip import compiling, stored
from stickslip.methods import REGISTRY

# Programs are made of many objects that stay: looking for cycles among them would take a tenth of the time.
gc.freeze()
gc.set_threshold(100_000, 20, 20)

# Programs of tests are run once: to write them to the disk would take longer than it saves (test_stored.py
# has its own). Nor does JAX look for those of another day: what is counted here must not depend on them.
stored.cache_folder = None
jax.config.update("jax_enable_compilation_cache", False)

METHODS = sorted(REGISTRY)
# One of each kind, for what is expensive to compile for all.
REPRESENTATIVE = ["moreau", "shifted-moreau", "rattle", "lobatto3", "radau2", "trbdf2", "generalized-alpha"]
if os.environ.get("STICKSLIP_TEST_ALL"):
    REPRESENTATIVE = METHODS


@lru_cache(maxsize=256)
def run(name, case=1, method="rattle", dt=None, t1=None, options=()):
    """A benchmark run to t1 with the method of that name."""
    b = ss.benchmarks.load(name, case, **dict(options))
    return ss.simulate(b.system, REGISTRY[method](), b.q0, b.u0, t1=t1 or b.t1, dt=dt or b.dt)


def at(sol, t):
    """The row of a time on the grid."""
    i = int(np.argmin(np.abs(sol.t - t)))
    assert abs(sol.t[i] - t) < 1e-9, f"{t} is not on the grid"
    return i


def slope(dts, errors):
    """Least-squares order over all step sizes."""
    return np.polyfit(np.log(dts), np.log(errors), 1)[0]


@pytest.fixture(autouse=True)
def _optimised_where_runs_are_long(request, monkeypatch):
    if request.node.get_closest_marker("long_runs"):
        monkeypatch.setattr(compiling, "level", 1)


class _Room:
    """Compiled programs take memory, and memory maps, of which a process has only so many (65530 by default).
    Those that a worker has collected are forgotten in time: on a machine that runs out of either, tests seem
    to hang."""

    maps, memory, after, tests = 45_000, 8e9, 0.0, 0

    def forget_if_short(self):
        self.tests += 1
        if self.tests % 10 or not Path("/proc/self/statm").exists():
            return  # to list thousands of maps takes as long as a small test
        maps = Path("/proc/self/maps").read_bytes().count(b"\n")
        if maps > self.maps or self.resident() > max(self.memory, self.after + 2e9):
            jax.clear_caches()
            compiling.forget()
            gc.collect()
            self.after = self.resident()  # what the allocator keeps is not given back by forgetting again

    def resident(self):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_room = _Room()


@pytest.fixture(autouse=True)
def _room_for_programs():
    yield
    _room.forget_if_short()


@pytest.fixture
def broken(monkeypatch):
    """Replaces a part of the package; what was compiled before is forgotten, and what is compiled now too."""

    def replace(of, name, by):
        monkeypatch.setattr(of, name, by)
        jax.clear_caches()

    yield replace
    monkeypatch.undo()
    jax.clear_caches()


def pytest_collection_modifyitems(items):
    """Tests after which all is compiled anew come last."""
    items.sort(key=lambda item: "broken" in item.fixturenames)


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


@pytest.fixture(params=REPRESENTATIVE)
def kind(request):
    return request.param
