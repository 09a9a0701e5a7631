"""Twenty dominoes: the first one stands askew, and knocks over all others."""

import sys

import numpy as np

from stickslip.scene import Body, Box, Contact, Plane, Scene

count, gap, width, height, lean = 20, 0.03, 0.01, 0.05, 0.25

standing = [
    Body(f"d{i}", Box(width, height), density=1000.0, at=(gap * i, 0.5 * height)) for i in range(1, count)
]
at = 0.5 * width * np.cos(lean), 0.5 * height * np.cos(lean) + 0.5 * width * np.sin(lean)
first = Body("d0", Box(width, height, color="#c55a11"), density=1000.0, at=at, rotation=-lean)

scene = Scene(
    first, standing, Body("table", Plane(), fixed=True), Contact("d*", "table", mu=0.6),
    *(Contact(f"d{i}", f"d{i + 1}", mu=0.2) for i in range(count - 1)), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=0.9, dt=1e-3)
    fallen = [float(sol.t[np.argmax(sol[f"d{i}"].rotation < -0.1)]) for i in (5, 15)]
    print(f"the wave runs with {10 * gap / (fallen[1] - fallen[0]):.3f} m/s")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "domino_row.html", title="domino row")
