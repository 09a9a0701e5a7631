"""Two fingers hold a box between them and lift it."""

import sys

import jax.numpy as jnp

from stickslip.scene import Body, Box, Contact, Motor, Plane, Scene, Slider, servo

fingers = [
    Body(
        name,
        Box(0.02, 0.06, 0.1),
        mass=0.1,
        parent="hand",
        at=(side * 0.09, 0, 0.0),
        joint=Slider(f"{name} slide", (-side, 0, 0)),
    )
    for name, side in (("left", -1), ("right", 1))
]
scene = Scene(
    Body("hand", mass=0.5, inertia=(1e-3, 1e-3, 1e-3), parent="world", at=(0, 0, 0.06), joint=Slider("lift", (0, 0, 1))),
    *fingers,
    Body("box", Box(0.1, 0.06, 0.08), mass=0.3, at=(0, 0, 0.04)),
    Body("floor", Plane(), fixed=True),
    Contact("box", "floor", mu=0.5),
    Contact(("left", "right"), "box", mu=0.6),
    servo("winch", "lift", lambda t, state: 0.1 * jnp.clip(t - 0.5, 0.0, 1.0), stiffness=2000.0, damping=120.0),
    Motor("squeeze left", "left slide", 8.0),
    Motor("squeeze right", "right slide", 8.0),
)

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.5, dt=1e-3)
    print(f"the box is {sol['box'].position[-1, 2] - 0.04:.3f} m above the floor")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "gripper.html", title="gripper")
