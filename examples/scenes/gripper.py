"""Two fingers squeeze a box, lift it by friction, carry it aside and set it down."""

import sys

import jax.numpy as jnp
import numpy as np

from stickslip.scene import Body, Box, Contact, Coupling, Motor, Plane, Prescribed, Scene, Slider

side, mass, squeeze, mu = 0.1, 1.0, 25.0, 0.5  # 2 mu squeeze is what friction can carry


def step(t, begin, end):
    s = jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
    return s * s * (3.0 - 2.0 * s)


def finger(name, way):
    joint, shape = Slider(name, (way, 0, 0), limits=(0.0, 0.05)), Box(0.02, 0.12, color="#2e75b6")
    return Body(f"{name} finger", shape, mass=0.2, at=(-0.085 * way, -0.09), parent="hand", joint=joint)


scene = Scene(
    Body("hand", Box(0.25, 0.03, color="#2e75b6"), mass=1.0, at=(0, 0.16), parent="world",
         joint=(Slider("aside", (1, 0, 0)), Slider("up", (0, 1, 0)))),
    finger("left", 1), finger("right", -1), Coupling("right", "left"),
    Body("box", Box(side, side, color="#c55a11"), mass=mass, at=(0, 0.5 * side)),
    Body("table", Plane(), fixed=True),
    Prescribed("up", lambda t: 0.1 * (step(t, 0.2, 0.7) - step(t, 1.3, 1.8))),
    Prescribed("aside", lambda t: 0.2 * step(t, 0.6, 1.4)),
    Motor("squeeze", "left", lambda t, state: jnp.where(t < 2.0, 2 * squeeze, -1.0)),
    Contact("box", "table", mu=0.5), Contact("box", "* finger", mu=mu), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=2.3, dt=1e-3)
    box, hand, carried = sol["box"].position, sol["hand"].position, (sol.t > 0.2) & (sol.t < 1.7)
    slip = np.ptp((box - hand)[carried], axis=0).max()
    print(f"it was lifted by {np.ptp(box[:, 1]):.3f} m and slipped by {slip:.0e} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "gripper.html", title="gripper")
