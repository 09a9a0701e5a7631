"""A ball jumps down stairs."""

import sys

from stickslip.scene import Ball, Body, Box, Contact, Plane, Scene

depth, height, count = 0.3, 0.15, 5

steps = [
    Box(depth, 1.0, height * (count - i), at=(depth * i, 0, 0.5 * height * (count - i))) for i in range(count)
]
scene = Scene(
    Body("ball", Ball(0.06), mass=0.2, at=(0, 0, height * count + 0.1), velocity=(0.8, 0, 0)),
    Body("stairs", *steps, fixed=True),
    Body("floor", Plane(), fixed=True),
    Contact("ball", ("stairs", "floor"), mu=0.4, e_N=0.7),
)

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=3.0, dt=1e-3)
    print(f"it came {sol['ball'].position[-1, 0]:.2f} m far; smallest gap {sol.g_N().min():.1e} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "ball_on_stairs.html", title="ball on stairs")
