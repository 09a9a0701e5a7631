"""The ant of gymnasium, from its MJCF file: it falls on the ground, and its legs beat."""

import sys
from importlib.util import find_spec
from pathlib import Path

import jax.numpy as jnp

from stickslip.scene import Scene

found = find_spec("gymnasium")
assert found is not None, "the model is that of gymnasium: pip install gymnasium"
assert found.origin is not None
scene = Scene.load(Path(found.origin).parent / "envs/mujoco/assets/ant.xml")
for i, angle in enumerate((1.0, -1.0, -1.0, 1.0), start=1):  # the file starts beyond the limits of its ankles
    scene = scene.replace(f"ankle_{i}", angle=angle)
for i in range(8):
    name = scene.compile()[0].drives.names[i]
    scene = scene.replace(name, control=lambda t, state, i=i: 0.15 * jnp.sin(12.0 * t + 0.8 * i))
scene = scene.place("torso", on="ground", gap=0.1)

if __name__ == "__main__":
    print("\n".join(scene.ignored))
    sol = scene.simulate("rattle", t1=2.0, dt=2e-3)
    print(f"after {sol.t[-1]} s the torso is at {sol['torso'].position[-1]}")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "ant.html", title="ant")
