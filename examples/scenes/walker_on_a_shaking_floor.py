"""A planar walker with two legs, held by servos, on a floor that shakes up and down."""

import sys

import jax.numpy as jnp

from stickslip.scene import Body, Box, Capsule, Contact, Hinge, Plane, Scene, servo

bar = Capsule(0.03, 0.4, at=(0.2, 0), axis=(1, 0, 0))
things = [Body("torso", Box(0.12, 0.4), mass=8.0, at=(0, 1.0))]
for side, sign in (("left", 1), ("right", -1)):
    hip, knee = Hinge(f"{side} hip", angle=-1.3 + sign * 0.25), Hinge(f"{side} knee", angle=-0.4)
    things += [
        Body(f"{side} thigh", bar, mass=2.0, parent="torso", at=(0, -0.2), joint=hip),
        Body(f"{side} shin", bar, mass=1.0, parent=f"{side} thigh", at=(0.4, 0), joint=knee),
        servo(
            f"{side} hip servo", f"{side} hip", lambda t, state, s=sign: -1.3 + 0.25 * s * jnp.cos(6 * t),
            stiffness=300.0, damping=8.0,
        ),
        servo(f"{side} knee servo", f"{side} knee", -0.4, stiffness=300.0, damping=4.0),
    ]  # fmt: skip

scene = Scene(
    things,
    Body("floor", Plane(), motion=lambda t: jnp.array([0.0, 0.01 * jnp.sin(40.0 * t) ** 2])),
    Contact("* shin", "floor", mu=0.8),
    Contact("torso", "floor", mu=0.5),
    planar=True,
).place("torso", on="floor", gap=0.02)

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.5, dt=5e-4)
    print(f"the torso is at {sol['torso'].position[-1]}, the smallest gap was {sol.g_N().min():.1e} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "walker.html", title="walker on a shaking floor")
