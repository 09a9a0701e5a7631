"""Annotations of shapes are checked: jaxtyping, with beartype,
while steps of all kinds are traced and a run is made.

In a process of its own: only code that is imported afterwards is checked. What a run gives back (`solution`,
`events`) is left out: its rows may have leading axes of a batch, and be NumPy's.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stickslip as ss

PACKAGE = Path(ss.__file__).parent
UNCHECKED = ("solution", "events", "__init__", "__main__", "_setup")

CHECKED = """
import sys
import jaxtyping
jaxtyping.install_import_hook(sys.argv[1].split(","), "beartype.beartype")
import equinox as eqx
import jax
import jax.numpy as jnp
import stickslip as ss
from stickslip.derive import Dynamics, Situation
from stickslip.methods import by_name
from stickslip.validate import start_values
from stickslip.linalg import matmul

def step(system, method, q, u):
    t, dt = jnp.zeros(()), jnp.asarray(1e-3)
    dynamics = Dynamics.of(system, t, q, u)
    values = start_values(dynamics, t, q, u, Situation.of(dynamics, t, q, u))
    return values, method.step(dynamics, t, dt, dt, q, u, method.init(dynamics, t, q, u, dt))

for name, method in (
    ("tippedisk", "rattle"), ("rolling-ball", "lobatto3"), ("rolling-wheel", "sdirk2"),
    ("slider-crank", "moreau"),
    ("woodpecker", "radau2"), ("freewheel", "generalized-alpha"), ("ball-in-corner", "half-explicit"),
):
    b = ss.benchmarks.load(name)
    eqx.filter_eval_shape(step, b.system, by_name(method), b.q0, b.u0)

b = ss.benchmarks.load("bouncing-ball")
sol = ss.simulate(b.system, "moreau", b.q0, b.u0, t1=0.05, dt=0.01)
sol.state, sol.forces()
print("ran")
try:  # whether anything is checked at all
    matmul(jnp.ones((2, 3)), jnp.ones((2, 3)))
except jaxtyping.TypeCheckError:
    print("refused")
"""


def test_shapes_are_what_annotations_say():
    pytest.importorskip("beartype")
    modules = sorted(
        {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
        - {*UNCHECKED}
    )
    env = {**os.environ, "STICKSLIP_CACHE": "off"}
    command = [sys.executable, "-c", CHECKED, ",".join(f"stickslip.{m}" for m in modules)]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert out.stdout.split() == ["ran", "refused"], out.stderr[-3000:]
