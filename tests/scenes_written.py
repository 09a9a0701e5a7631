"""Benchmarks of this package, written as scenes: same coordinates, same start."""

import numpy as np

import stickslip as ss
from stickslip.scene import Ball, Body, Box, Contact, Disc, Hull, Plane, Scene


def _ground(**rule):
    return Body("ground", Plane(), fixed=True), Contact("*", "ground", **rule)


def bouncing_ball(b):
    x, y, phi = b.q0
    s = b.system
    body = Body("ball", Ball(s.R), mass=s.m, at=(x, y), rotation=phi, velocity=b.u0[:2], spin=b.u0[2])
    return Scene(body, *_ground(e_N=s.e_N, mu=s.mu), planar=True, gravity=s.gravity)


def rolling_ball(b):
    s = b.system
    body = Body("ball", Ball(s.R), mass=s.m, at=b.q0[:2], velocity=b.u0[:2], spin=b.u0[2])
    return Scene(
        body, *_ground(friction=(ss.Coulomb(s.mu_T), ss.Rolling(s.mu_R))), planar=True, gravity=s.gravity
    )


def ball_in_corner(b):
    s = b.system
    a, c = float(s.alpha), float(s.beta_angle)
    return Scene(
        Body("ball", Ball(s.R), mass=s.m, at=b.q0[:2]),
        Body("right", Plane((-np.sin(a), np.cos(a))), fixed=True),
        Body("left", Plane((np.sin(c), np.cos(c))), fixed=True),
        Contact("ball", "right", e_N=s.e_N1, mu=s.mu),
        Contact("ball", "left", e_N=s.e_N2, mu=s.mu),
        planar=True, gravity=s.gravity,
    )  # fmt: skip


def _in_space(b):
    return {"at": b.q0[:3], "rotation": b.q0[3:], "velocity": b.u0[:3], "spin": b.u0[3:]}


def sliding_cube(b):
    s = b.system
    body = Body("cube", Box(s.edge, s.edge, s.edge), mass=s.m, **_in_space(b))
    return Scene(body, *_ground(e_N=s.e_N, mu=s.mu), gravity=s.gravity)


def tetrahedron(b):
    s = b.system
    axes = np.array([s.a_x, s.a_y])
    law = ss.RectangularCoulomb(s.mu, axes) if s.rectangular else ss.Coulomb(s.mu, dim=2, axes=axes)
    body = Body("tetrahedron", Hull(s.corners), mass=s.m, **_in_space(b))
    return Scene(body, *_ground(friction=law), gravity=s.gravity)


def tippedisk(b):
    s = b.system
    disc = Disc(s.r, at=(-s.e, 0, 0))
    body = Body(
        "disk", disc, mass=s.m, inertia=(s.theta_x, s.theta_y, s.theta_z), centre=(0, 0, 0), **_in_space(b)
    )
    return Scene(body, *_ground(friction=ss.CoulombContensou(s.mu, s.contact_radius)), gravity=s.gravity)


WRITTEN = {  # by benchmark: its scene, and how long it is compared
    "bouncing-ball": (bouncing_ball, 1.5),
    "rolling-ball": (rolling_ball, 2.5),
    "ball-in-corner": (ball_in_corner, 2.0),
    "sliding-cube": (sliding_cube, 1.3),
    "tetrahedron": (tetrahedron, 2.5),
    "tippedisk": (tippedisk, 0.3),
}
