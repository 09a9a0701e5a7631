"""A double pendulum whose joints end in stops: limits are contacts,
with a coefficient of restitution of their own.
"""

import sys

from stickslip.scene import Body, Capsule, Hinge, Scene


def arm():
    return Capsule(0.03, 0.5, at=(0, 0, -0.25))


scene = Scene(
    Body("upper", arm(), parent="world", joint=Hinge("shoulder", (0, 1, 0), angle=1.2, limits=(-0.4, 1.3),
                                                     e_N=0.7)),
    Body(
        "lower", arm(), parent="upper", at=(0, 0, -0.5),
        joint=Hinge("elbow", (0, 1, 0), angle=-0.5, limits=(-2.0, 0.0), e_N=0.3, friction=0.05),
    ),
)  # fmt: skip

if __name__ == "__main__":
    sol = scene.simulate(t1=3.0, rtol=1e-8, atol=1e-10)
    for event in list(sol.events)[:8]:
        print(f"t = {event.t:.6f}  {event.kind} {event.name}")
    sol.animate(
        sys.argv[1] if len(sys.argv) > 1 else "double_pendulum_with_stops.html",
        title="double pendulum with stops",
    )
