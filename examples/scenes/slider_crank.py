"""A slider-crank mechanism whose slider has clearance in its guide, in three angles: crank, rod, slider."""

import sys

from stickslip.scene import Body, Box, Capsule, Contact, Hinge, Plane, Scene

crank, rod, half_length, half_height, guide = 0.153, 0.306, 0.05, 0.025, 0.052


def bar(length):
    return Capsule(0.006, length, at=(length / 2, 0), axis=(1, 0, 0))


scene = Scene(
    Body("crank", bar(crank), mass=0.038, inertia=7.4e-5, parent="world", joint=Hinge(rate=150.0)),
    Body("rod", bar(rod), mass=0.038, inertia=5.9e-4, parent="crank", at=(crank, 0),
         joint=Hinge(rate=-225.0)),
    Body(
        "slider", Box(2 * half_length, 2 * half_height), mass=0.076, inertia=2.7e-6, parent="rod",
        at=(rod, 0), joint=Hinge(rate=75.0),
    ),
    Body("upper wall", Plane((0, -1), at=(0, guide / 2)), fixed=True),
    Body("lower wall", Plane((0, 1), at=(0, -guide / 2)), fixed=True),
    Contact("slider", "* wall", e_N=0.4, mu=0.01),
    planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=0.08, dt=2e-5)
    print(
        f"the crank turned by {sol['crank'].angle[-1]:.2f} rad, the slider is at {sol['slider'].position[-1]}"
    )
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "slider_crank.html", title="slider-crank")
