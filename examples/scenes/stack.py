"""Four boxes on each other stand still; a ball comes and hits them."""

import sys

from stickslip.scene import Ball, Body, Box, Contact, Plane, Scene

boxes = [Body(f"box{i}", Box(0.2, 0.2, 0.1), mass=1.0, at=(0, 0, 0.05 + 0.1 * i)) for i in range(4)]
scene = Scene(
    *boxes,
    Body("ball", Ball(0.05), mass=0.5, at=(-0.6, 0.02, 0.35), velocity=(4, 0, 1)),
    Body("floor", Plane(), fixed=True),
    Contact(("box*", "ball"), "floor", mu=0.5),
    *(Contact(f"box{i}", f"box{i + 1}", mu=0.5) for i in range(3)),
    Contact("ball", "box*", mu=0.3, e_N=0.4),
)

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.5, dt=1e-3)
    print(f"the box on top moved by {sol['box3'].position[-1] - sol['box3'].position[0]} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "stack.html", title="stack")
