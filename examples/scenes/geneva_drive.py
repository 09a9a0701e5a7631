"""A Geneva drive: each turn of the driver takes the wheel on by a quarter, and holds it still in between."""

import sys

import jax.numpy as jnp
import numpy as np

from stickslip.scene import Body, Contact, Disc, Hinge, Hull, Prescribed, Scene

apart, pin, play = 0.2, 0.008, 0.0005  # of the axes; radius of the pin, and how much wider the slots are
arm, half = apart * np.sqrt(0.5), pin + play  # of the pin, and of the wheel; half the width of a slot
tip = np.array([np.sqrt(arm**2 - half**2) + half, np.sqrt(arm**2 - half**2) - half]) * np.sqrt(0.5)
notch, root = np.array([0.08, 0.0]), np.array([np.sqrt(2.0) * half, 0.0])
lock = 0.99 * (apart - notch[0]) * tip[1] / np.hypot(*(tip - notch))  # it turns in the notch between two tips
cut = np.arccos(0.05 / lock)
locking = lock * np.array([[np.cos(a), np.sin(a)] for a in np.linspace(cut, 2 * np.pi - cut, 40)])


def turned(points, angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(points) @ np.array([[c, s], [-s, c]])


teeth = [
    Hull(turned([root, notch, tip * [1, side]], k * np.pi / 2), name="tooth", color="#c55a11")
    for k in range(4) for side in (1, -1)
]  # fmt: skip
scene = Scene(
    Body("driver", Disc(pin, at=(arm, 0), name="pin"), Hull(locking, name="lock"), density=20.0,
         parent="world", joint=Hinge("motor", angle=np.pi)),
    Body("wheel", *teeth, density=20.0, parent="world", at=(apart, 0), joint=Hinge("axis", friction=0.02)),
    Prescribed("motor", lambda t: jnp.pi + 8.0 * t**2 / (t + 0.3)),
    Contact("pin", "tooth", mu=0.05), Contact("lock", "tooth", mu=0.05), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.7, dt=1e-3)
    driver, wheel = (np.ptp(sol[name].angle) / (2 * np.pi) for name in ("motor", "axis"))
    print(f"the driver made {driver:.2f} turns, the wheel {wheel:.2f}")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "geneva_drive.html", title="Geneva drive")
