"""An escapement: a pendulum lets a driven wheel go on by half a tooth a beat, and is kept swinging by it."""

import sys

import numpy as np

from stickslip.scene import Body, Capsule, Contact, Disc, Hinge, Hull, Motor, Scene

count, radius, pin, lift, width = 8, 0.05, 0.001, 0.004, 0.28  # of teeth and pins; width and pitch are angles
pitch, length, mass, inertia, start = 2 * np.pi / count, 0.25, 1.0, 4.5e-4, 0.12  # the rest is the pendulum's
half = 1.25 * pitch  # pins are two and a half teeth apart, where they move along the wheel's radii
pivot = radius / np.cos(half)
period = 2 * np.pi * np.sqrt((mass * length**2 + inertia) / (mass * 9.81 * length))


def polar(r, angle):
    return r * np.array([np.cos(angle), np.sin(angle)])


way, face = (0, width, width, 0), (0.6 * radius, 0.6 * radius, radius + 0.5 * lift, radius - 0.5 * lift)
tooth = [polar(r, angle + np.pi / 2 + half + pin / radius) for r, angle in zip(face, way, strict=True)]
turns = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for a in pitch * np.arange(count)]
ends = [polar(radius, np.pi / 2 + side * half) - [0, pivot] for side in (1, -1)]
pins = [Disc(pin, at=end, name="pin", color="#000000") for end in ends]
arms = [Capsule(0.5 * pin, np.hypot(*end), at=0.5 * end, axis=(*end, 0)) for end in ends]
teeth = [Hull(tooth @ a, name="tooth", color="#bf9000") for a in turns]
scene = Scene(
    Body("wheel", Disc(0.6 * radius, color="#bf9000"), *teeth, density=20.0, parent="world",
         joint=Hinge("arbor")),
    Body("pendulum", *pins, *arms, Capsule(0.002, length, at=(0, -0.5 * length), axis=(0, 1, 0)),
         Disc(0.03, at=(0, -length), color="#c55a11"), mass=mass, inertia=inertia, centre=(0, -length),
         at=(0, pivot), parent="world", joint=Hinge("suspension", angle=start, damping=1e-3)),
    Motor("weight", "arbor", -0.01), Contact("pin", "tooth", mu=0.05), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=12.0, dt=5e-4)
    beats = sol.t[1:][np.diff(np.sign(sol["suspension"].angle)) != 0]
    print(f"a beat takes {np.diff(beats).mean():.4f} s, half a period of the pendulum {period / 2:.4f} s")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "escapement.html", title="escapement")
