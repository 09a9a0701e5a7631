"""A coin rolls on a table in an ever smaller circle, falls on its side and comes to rest."""

import sys

from stickslip.scene import Body, Contact, Disc, Plane, Scene

radius, tilt = 0.0125, 0.25  # the axis starts a little below the horizontal

scene = Scene(
    Body(
        "coin", Disc(radius), mass=7.5e-3, at=(0, 0, 0.02), velocity=(0.4, 0, 0),
        rotation=(0.5**0.5, -(0.5**0.5) * (1 - tilt), 0.0, 0.0), spin=(0, 1.0, 32.0),
    ),
    Body("table", Plane(), fixed=True),
    Contact("coin", "table", mu=0.3, e_N=0.1),
).place("coin", on="table")  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate("rattle", t1=1.5, dt=5e-4)
    print(f"smallest gap {sol.g_N().min():.1e} m, the coin came {sol['coin'].position[-1, :2]} m far")
    sol.animate(sys.argv[1] if len(sys.argv) > 1 else "rolling_coin.html", title="rolling coin")
