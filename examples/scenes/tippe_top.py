"""A tippe top: a ball whose centre of mass is below its middle turns over onto its stem when it is spun."""

import math
import sys

from stickslip import CoulombContensou
from stickslip.scene import Ball, Body, Contact, Plane, Scene

R, stem, below = 1.5e-2, 5e-3, 3e-3  # radii of ball and stem, centre of mass below the middle of the ball
lean = 0.1

scene = Scene(
    Body(
        "top", Ball(R, at=(0, 0, below)), Ball(stem, at=(0, 0, below + 1.6e-2), color="#c55a11"), mass=6e-3,
        centre=(0, 0, 0), inertia=(8e-7, 8e-7, 7e-7), at=(0, 0, R), spin=(0, 0, 180.0),
        rotation=(math.cos(lean / 2), math.sin(lean / 2), 0, 0),
    ),
    Body("table", Plane(), fixed=True),
    Contact("top", "table", friction=CoulombContensou(0.3, 5e-4)),
).place("top", on="table")  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=4.0, dt=1e-3)
    axis = sol["top"].matrix[:, 2, 2]  # 1: upright, -1: upside down
    print(
        f"cosine of the inclination: {axis[0]:.3f} at the start, {axis.min():.3f} at the lowest, "
        f"{axis[-1]:.3f} at the end"
    )
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "tippe_top.html", title="tippe top")
