"""Twelve dominoes: the first one starts beyond its balance."""

import sys

import numpy as np

from stickslip.scene import Body, Box, Contact, Plane, Scene

width, height, apart, tilt, count = 0.01, 0.05, 0.03, 0.25, 12

first = Body(
    "d0", Box(width, height), rotation=-tilt,
    at=(0.5 * width * np.cos(tilt), 0.5 * (height * np.cos(tilt) + width * np.sin(tilt))),
)  # fmt: skip
others = [Body(f"d{i}", Box(width, height), at=(apart * i, 0.5 * height)) for i in range(1, count)]
scene = Scene(
    first, *others, Body("floor", Plane(), fixed=True),
    Contact("d*", "floor", mu=0.6),
    *(Contact(f"d{i}", f"d{i + 1}", mu=0.2) for i in range(count - 1)),
    planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=0.8, dt=1e-3)
    print(f"the last one has turned by {-sol[f'd{count - 1}'].rotation[-1]:.2f}")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "domino_row.html", title="domino row")
