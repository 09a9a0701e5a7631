"""A four-bar linkage whose coupler hangs on two pins with clearance: it knocks where the load turns."""

import sys

import jax.numpy as jnp
import numpy as np

from stickslip.scene import Body, Capsule, Contact, Disc, Hinge, Hole, Prescribed, Scene

crank, coupler, rocker, base, pin, clearance = 0.1, 0.26, 0.22, 0.28, 0.012, 0.002
reach = np.hypot(crank, base)  # at the start the crank is upright
turn = np.arctan2(-crank, base)
inner = np.arccos((coupler**2 + reach**2 - rocker**2) / (2 * coupler * reach)) + turn
end = np.array([0.0, crank]) + coupler * np.array([np.cos(inner), np.sin(inner)])
lean = np.arctan2(end[1], end[0] - base)


def bar(length, *more, **look):
    return [Capsule(0.008, length, at=(length / 2, 0), axis=(1, 0, 0), **look), *more]


scene = Scene(
    Body("crank", *bar(crank, Disc(pin, at=(crank, 0), name="crank pin")), density=50.0, parent="world",
         joint=Hinge("motor", angle=np.pi / 2)),
    Body("rocker", *bar(rocker, Disc(pin, at=(rocker, 0), name="rocker pin")), density=50.0, parent="world",
         at=(base, 0), joint=Hinge("pivot", angle=lean)),
    Body("coupler", *bar(coupler, color="#c55a11"), Hole(pin + clearance, name="first eye"),
         Hole(pin + clearance, at=(coupler, 0), name="second eye"), density=50.0, at=(0.0, crank),
         rotation=inner),
    Prescribed("motor", lambda t: jnp.pi / 2 + 12.0 * t**2 / (t + 0.2)),
    Contact("crank pin", "first eye", mu=0.1), Contact("rocker pin", "second eye", mu=0.1), planar=True,
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=2.0, dt=2.5e-4)
    knocks = int(np.sum(np.diff((sol["first eye", "crank pin"].P_N[:, 0] > 0).astype(int)) == 1))
    low, high = sol["pivot"].angle.min(), sol["pivot"].angle.max()
    print(f"the rocker swings from {low:.3f} to {high:.3f}; {knocks} knocks")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "four_bar.html", title="four-bar with clearance")
