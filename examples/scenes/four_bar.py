"""A four-bar linkage whose last joint is a pin in a hole that is too large."""

import sys

import numpy as np

from stickslip.scene import Body, Capsule, Contact, Disc, Hinge, Hole, Motor, Scene

clearance = 1e-3
ground, crank, coupler, rocker = 0.4, 0.1, 0.4, 0.3
apart = np.hypot(ground, crank)  # the crank starts upwards, the pin in the middle of its hole
coupler_angle = np.arccos((coupler**2 + apart**2 - rocker**2) / (2 * coupler * apart)) - np.arctan2(crank, ground)
height, way = crank + coupler * np.sin(coupler_angle), coupler * np.cos(coupler_angle) - ground


def bar(length):
    return Capsule(0.01, length, axis=(1, 0, 0), at=(0.5 * length, 0))


pin = Disc(0.02, at=(coupler, 0), name="pin")
hole = Hole(0.02 + clearance, at=(rocker, 0), name="hole")
scene = Scene(
    Body("crank", bar(crank), parent="world", joint=Hinge("shaft", angle=np.pi / 2)),
    Body("coupler", bar(coupler), pin, parent="crank", at=(crank, 0), joint=Hinge("elbow", angle=coupler_angle - np.pi / 2)),
    Body("rocker", bar(rocker), hole, parent="world", at=(ground, 0), joint=Hinge("pivot", angle=np.arctan2(height, way))),
    Motor("drive", "shaft", 0.3),
    Contact("pin", "hole", mu=0.1),
    planar=True,
)

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.0, dt=2e-4)
    print(f"smallest gap {sol.g_N().min():.1e} m, largest percussion {sol['pin', 'hole'].P_N.max():.2g} Ns")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "four_bar.html", title="four-bar linkage with clearance")
