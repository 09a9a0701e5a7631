"""Ten boxes, each a little beside the one below, stand still."""

import sys

import numpy as np

from stickslip.scene import Body, Box, Contact, Plane, Scene

count, side, height = 10, 0.2, 0.1

boxes = [
    Body(f"box{i}", Box(side, height), density=500.0, at=(0.03 * np.sin(1.7 * i), (i + 0.5) * height))
    for i in range(count)
]
scene = Scene(
    *boxes, Body("floor", Plane(), fixed=True), Contact("box0", "floor", mu=0.5),
    *(Contact(f"box{i}", f"box{i + 1}", mu=0.5) for i in range(count - 1)), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.0, dt=1e-3)
    moved = max(np.abs(sol[box.name].position - sol[box.name].position[0]).max() for box in boxes)
    print(f"in {sol.t[-1]:g} s no box moved by more than {moved:.0e} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "stack.html", title="stack")
