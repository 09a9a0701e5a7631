"""Two cards lean on each other, and fall where friction is too small."""

import sys

import numpy as np

from stickslip.scene import Body, Box, Contact, Plane, Scene

length, thickness, lean = 0.09, 1e-3, 0.35
x = 0.5 * (length * np.sin(lean) + thickness * np.cos(lean))
z = 0.5 * (length * np.cos(lean) + thickness * np.sin(lean))


def card(name, side):
    return Body(name, Box(thickness, length), density=800.0, at=(side * x, z), rotation=side * lean)


scene = Scene(
    card("left", -1), card("right", 1), Body("table", Plane(), fixed=True),
    Contact("*", "table", mu=0.4), Contact("left", "right", mu=0.4),
    planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=0.5, dt=5e-4)
    print(f"the left card moved by {sol['left'].position[-1] - sol['left'].position[0]} m")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "card_house.html", title="house of cards")
