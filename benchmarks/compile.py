"""How long a user waits for a first result: importing, tracing, compiling, calling.

    .venv/bin/python benchmarks/compile.py [--against FOLDER] [--repeat N] [CASE ...]

Every figure is that of a fresh process without compiled code on disk; beside another checkout the two take
turns, and the ratio is that of medians. Seconds count from after the import.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

RUN = """
b = ss.benchmarks.load({name!r})
def work():
    return ss.simulate(b.system, by_name({method!r}), b.q0, b.u0, t1=100 * b.dt, dt=b.dt)
"""
DERIVATIVE = """
b = ss.benchmarks.load("mass-on-slope")
def end(u0):
    return jnp.sum(ss.simulate(b.system, ss.Rattle(), b.q0, u0, t1=100 * b.dt, dt=b.dt).q[-1])
def work():
    return jax.block_until_ready(jax.{how}(end)(b.u0))
"""
BOX = """
class Box(ss.rigid.SpatialBody):
    m: float = 1.0
    gravity: float = 9.81
    mu: float = 0.3
    @property
    def inertia(self):
        return self.m / 12.0 * jnp.array([0.05, 0.05, 0.02])
    @property
    def corners(self):
        signs = jnp.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return signs * jnp.array([0.05, 0.05, 0.1])
    def g_N(self, t, q):
        return ss.rigid.spatial.position(q, self.corners)[:, 2]
    def gamma_F(self, t, q, u):
        return ss.rigid.spatial.velocity(q, u, self.corners)[:, :2].reshape(-1)
    @property
    def laws(self):
        return (ss.Contact(e_N=0.2, friction=ss.Coulomb(self.mu, dim=2)),) * 8

# It lands on its bottom, four corners at once, and slides: more than Newton alone can solve.
q0 = jnp.array([0.0, 0.0, 0.12, 1.0, 0.0, 0.0, 0.0])
u0 = jnp.array([0.5, 0.3, -1.0, 0.0, 0.0, 0.0])
def work(solver=ss.Automatic()):
    return ss.simulate(Box(), ss.Rattle(solver=solver), q0, u0, t1=0.1, dt=1e-3)
"""
NEEDED = """
try:
    work(ss.SemismoothNewton())
except ss.SimulationError:
    pass
else:
    raise SystemExit("Newton alone is enough")
"""
LADDER = """
class Whole(ss.Automatic):
    def first_try(self):
        return self
    crowded_try = first_try
def both():
    work()
    return work(Whole())
"""
TIMED = "began = time.perf_counter(); work(); print(time.perf_counter() - began)"
WARM = """
work()
times = []
for _ in range(50):
    began = time.perf_counter(); work(); times.append(time.perf_counter() - began)
print(sorted(times)[len(times) // 2])
"""
BALL = RUN.format(name="bouncing-ball", method="rattle")
CASES = {
    "slider-crank rattle": RUN.format(name="slider-crank", method="rattle") + TIMED,
    "tippedisk rattle": RUN.format(name="tippedisk", method="rattle") + TIMED,
    "tippedisk radau3": RUN.format(name="tippedisk", method="radau3") + TIMED,
    "box, eight corners": BOX + TIMED + NEEDED,
    # as above, then with every rung of the solver compiled, which hardly a run needs
    "box, all rungs": BOX + LADDER + TIMED.replace("work()", "both()"),
    "slope, jacfwd": DERIVATIVE.format(how="jacfwd") + TIMED,
    "slope, grad": DERIVATIVE.format(how="grad") + TIMED,
    "import": "",  # what it adds to jax and equinox
    # with the code of the first on disk
    "second process": RUN.format(name="slider-crank", method="rattle") + TIMED,
    "warm call": BALL + WARM,  # 100 steps of the bouncing ball
}
START = """
import time
import jax, equinox
import jax.numpy as jnp
began = time.perf_counter()
import stickslip as ss
from stickslip.methods import by_name
import_time = time.perf_counter() - began
"""


def seconds(folder: Path, case: str) -> float:
    """nan where the checkout cannot do it."""
    code = START + (CASES[case] or "print(import_time)")
    with tempfile.TemporaryDirectory() as cache:
        kept = case == "second process"
        env = {**os.environ, "PYTHONPATH": str(folder / "src"), "STICKSLIP_CACHE": cache if kept else "off"}
        for _ in range(2 if kept else 1):
            out = subprocess.run(
                [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
            )
    return float(out.stdout.split()[-1]) if out.returncode == 0 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    folders = [HERE, *([chosen.against.resolve()] if chosen.against else [])]
    print(f"{len(os.sched_getaffinity(0))} cores, medians of {chosen.repeat}; {time.strftime('%Y-%m-%d')}")
    for case in chosen.cases:
        times = [[seconds(folder, case) for folder in folders] for _ in range(chosen.repeat)]
        here, *there = (statistics.median(column) for column in zip(*times, strict=True))
        beside = f", there {there[0]:8.4f} s, ratio {here / there[0]:.2f}" if there else ""
        print(f"{case:20s} {here:8.4f} s{beside}", flush=True)


if __name__ == "__main__":
    main()
