"""Scenes to look at: made up, without a simulation, so that pages are tested by themselves."""

import numpy as np

from stickslip.page3d import Ground, Lines, Panel, Part, Picture, turned

STILL = np.array([1.0, 0, 0, 0])


def about(axis, angle):
    """Unit quaternions, scalar first, of turns about a unit axis."""
    angle = np.asarray(angle, dtype=float)[..., None]
    return np.concatenate([np.cos(angle / 2), np.sin(angle / 2) * np.asarray(axis, dtype=float)], axis=-1)


def times(p, q):
    """One turn after the other."""
    a, u, b, v = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    return np.concatenate([a * b - (u * v).sum(-1, keepdims=True), a * v + b * u + np.cross(u, v)], axis=-1)


def towards(d):
    """The turn of the third axis to d."""
    d = np.asarray(d, dtype=float) / np.linalg.norm(d, axis=-1, keepdims=True)
    half = np.concatenate([1 + d[..., 2:], -d[..., 1:2], d[..., :1], 0 * d[..., :1]], axis=-1)
    return half / np.linalg.norm(half, axis=-1, keepdims=True)


def box(a, b, c):
    vertices = np.array([[x, y, z] for x in (-a, a) for y in (-b, b) for z in (-c, c)]) / 2
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return vertices, np.array([[q[i] for i in t] for q in quads for t in ((0, 1, 2), (0, 2, 3))])


def revolved(profile, sectors=32):
    """About the third axis, (radius, height) from the bottom up."""
    angle = np.linspace(0, 2 * np.pi, sectors, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    vertices = np.concatenate([np.column_stack([r * ring, np.full(sectors, h)]) for r, h in profile])
    i, k = np.meshgrid(np.arange(len(profile) - 1), np.arange(sectors), indexing="ij")
    a, b = i * sectors + k, i * sectors + (k + 1) % sectors
    return vertices, np.stack([a, b, a + sectors, b, b + sectors, a + sectors], axis=-1).reshape(-1, 3)


def ball(r, rings=17, sectors=32):
    angle = np.linspace(0, np.pi, rings)
    return revolved(np.column_stack([r * np.sin(angle), -r * np.cos(angle)]), sectors)


def capsule(r, length):
    angle = np.linspace(0, np.pi / 2, 7)
    low = np.column_stack([r * np.sin(angle), -r * np.cos(angle) - length / 2])
    high = np.column_stack([r * np.cos(angle), r * np.sin(angle) + length / 2])
    return revolved(np.concatenate([low, high]), 20)


def outline(points):
    """A polygon in the plane that is seen whole from its first vertex, with its edges."""
    points = np.column_stack([points, np.zeros(len(points))])
    n = len(points)
    return (
        points,
        np.array([[0, k, k + 1] for k in range(1, n - 1)]),
        np.array([[k, (k + 1) % n] for k in range(n)]),
    )


def lowest(vertices, rotation):
    return turned(rotation[:, None], vertices).min(
        axis=(1, 2), where=np.array([False, False, True]), initial=np.inf
    )


def boxes(n=10, frames=200):
    """They fall, tumble and come to rest, each at its time."""
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 3.0, frames)
    colors = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f"]
    parts, contacts, forces, gaps, events = [], [], [], {}, []
    for k in range(n):
        size = rng.uniform(0.16, 0.3, size=3)
        vertices, triangles = box(*size)
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        rest = rng.uniform(1.2, 2.4)
        angle = 7.0 * np.maximum(rest - t, 0.0) ** 1.5
        rotation = times(about([0, 0, 1.0], rng.uniform(0, 6) + 0 * t), about(axis, angle))
        height = np.abs(np.cos(2.2 * np.pi * (t + rng.uniform()))) * np.maximum(1 - t / rest, 0) ** 1.5
        x, y = 0.42 * (k % 4) - 0.6, 0.42 * (k // 4) - 0.4
        drift = np.minimum(t, rest)
        below = lowest(vertices, rotation)
        position = np.column_stack(
            [x + 0.1 * drift * rng.normal(), y + 0.1 * drift * rng.normal(), height - below]
        )
        parts.append(Part(f"box {k + 1}", vertices, triangles, colors[k % len(colors)], position, rotation))
        corners = position[:, None] + turned(rotation[:, None], vertices)
        near = (corners[..., 2] < 0.004) & (height < 0.02)[:, None]
        mass = 600 * size.prod()
        share = near / np.maximum(near.sum(axis=1, keepdims=True), 1)
        hit = 1 + 6 * np.exp(-np.abs(t - rest)[:, None] / 0.02)
        contacts.append(corners)
        forces.append(np.stack([0.15 * share, 0 * share, share], axis=-1) * 9.81 * mass * hit[..., None])
        gaps[f"box {k + 1}"] = height
        events += [(float(rest), f"rests box {k + 1}")]
        events += [
            (float(s), f"impact box {k + 1}")
            for s in t[1:-1][(height[1:-1] < height[2:]) & (height[1:-1] < height[:-2])]
        ]
    total = np.concatenate(forces, axis=1)[..., 2]
    return Picture(
        "Ten boxes", t, tuple(parts), grounds=(Ground("floor", np.zeros(3), STILL),),
        contacts=np.concatenate(contacts, axis=1), forces=np.concatenate(forces, axis=1),
        panels=(
            Panel("gaps in m", t, dict(list(gaps.items())[:5])),
            Panel("normal forces in N", t, {"sum of normal forces": total.sum(axis=1)}),
        ),
        events=tuple(events),
        facts={"method": "MoreauMidpoint", "steps": "3000 to t = 3", "result": "success",
               "smallest gap": "-1.1e-16"},
    )  # fmt: skip


def coin(frames=240):
    """Rolls on a circle and leans into it."""
    t = np.linspace(0, 4, frames)
    lean, turn, r = 0.35 + 0.06 * np.sin(5 * t), 1.5 * t, 0.2
    vertices, triangles = revolved([[0, -0.015], [r, -0.015], [r, 0.015], [0, 0.015]], 48)
    angle = np.arctan2(vertices[triangles].mean(axis=1)[:, 1], vertices[triangles].mean(axis=1)[:, 0])
    marks = (np.floor(angle / (np.pi / 4)) % 2).astype(int)
    upright = about([1.0, 0, 0], np.pi / 2 + 0 * t)
    p = times(
        times(about([0, 0, 1.0], turn), about([1.0, 0, 0], -lean)),
        times(upright, about([0, 0, 1.0], 4.5 * turn)),
    )
    touch = np.column_stack([0.9 * np.sin(turn), -0.9 * np.cos(turn), 0 * t])
    inward = -touch / 0.9
    position = touch + r * (np.cos(lean)[:, None] * [0, 0, 1.0] + np.sin(lean)[:, None] * inward)
    position[:, 2] += 0.015 * np.sin(lean)
    force = 9.81 * (np.array([0, 0, 1.0]) + 0.35 * inward)
    track = Lines(touch + np.array([0, 0, 1e-3]), "#1f4e79", name="track", trace=True)
    edges = np.array([[k * 48 + s, k * 48 + (s + 1) % 48] for k in (1, 2) for s in range(48)])
    part = Part("coin", vertices, triangles, "#d4a94e", position, p, marks=marks, edges=edges)
    return Picture(
        "Rolling coin", t, (part,), (Ground("table", np.zeros(3), STILL),), (track,), touch[:, None],
        force[:, None],
        panels=(Panel("inclination", t, {"angle": lean}), Panel("normal force in N", t, {"N": 9.81 + 0 * t})),
        facts={"method": "Rattle", "result": "success"},
    )  # fmt: skip


def crank(frames=200):
    """In the plane, with a slider between two walls."""
    t = np.linspace(0, 2, frames)
    a, b = 0.15, 0.36
    phi = np.pi * t
    pin = np.column_stack([a * np.cos(phi), a * np.sin(phi), 0 * t])
    psi = np.arcsin(-pin[:, 1] / b)
    end = pin + b * np.column_stack([np.cos(psi), np.sin(psi), 0 * t])
    tilt = 0.05 * np.sin(3 * phi)
    bar = lambda n: outline(np.array([[0, -0.012], [n, -0.012], [n, 0.012], [0, 0.012]]))
    z = [0, 0, 1.0]
    slider = outline(np.array([[-0.08, -0.05], [0.08, -0.05], [0.08, 0.05], [-0.08, 0.05]]))
    wheel = outline(
        0.04 * np.column_stack([np.cos(np.arange(32) * np.pi / 16), np.sin(np.arange(32) * np.pi / 16)])
    )
    corner = np.stack(
        [end + turned(about(z, tilt), np.array([x, y, 0])) for x, y in ((0.08, 0.05), (-0.08, -0.05))], axis=1
    )
    force = np.array([[[0, -3.0, 0], [0, 3.0, 0]]]) * np.stack([tilt > 0.03, tilt > 0.03], axis=1)[..., None]
    part = lambda name, m, color, r, p: Part(name, m[0], m[1], color, r, p, edges=m[2])
    return Picture(
        "Slider-crank", t,
        (
            part("slider", slider, "#c99a5b", end, about(z, tilt)),
            part("rod", bar(b), "#7d9cb8", pin, about(z, psi)),
            part("crank", bar(a), "#4e79a7", np.zeros(3), about(z, phi)),
            part("hub", wheel, "#33414e", np.zeros(3), about(z, phi)),
        ),
        tuple(Ground("wall", np.array([0, -0.06 * s, 0]), towards([0, s, 0])) for s in (1.0, -1.0)),
        contacts=corner, forces=force,
        panels=(Panel("gaps in m", t, {"upper": 0.06 - corner[:, 0, 1], "lower": 0.06 + corner[:, 1, 1]}),),
        events=((0.25, "closes upper"), (1.2, "opens upper")), flat=True,
    )  # fmt: skip


def ant(frames=160):
    """A body on four legs of two capsules each."""
    t = np.linspace(0, 3, frames)
    body = np.column_stack([0.5 * t, 0 * t, 0.52 + 0.04 * np.sin(8 * t)])
    parts = [Part("torso", *ball(0.25), "#e0a458", body, about([0, 1.0, 0], 0.06 * np.sin(8 * t)))]
    contacts, forces = [], []
    for k, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        swing = 8 * t + np.pi * (k % 2)
        hip = body + np.array([0.17 * x, 0.17 * y, 0])
        knee = (
            hip
            + np.array([0.2 * x, 0.2 * y, 0.06])
            + np.column_stack([0.08 * np.cos(swing), 0 * t, 0.04 * np.sin(swing)])
        )
        foot = np.column_stack(
            [knee[:, 0] + 0.16 * x, knee[:, 1] + 0.16 * y, 0.08 + 0.09 * np.maximum(np.sin(swing), 0)]
        )
        for name, a, b, color in (("thigh", hip, knee, "#c0692f"), ("shin", knee, foot, "#8a4b25")):
            length = float(np.linalg.norm(b - a, axis=1).mean())
            parts.append(Part(f"{name} {k + 1}", *capsule(0.08, length), color, (a + b) / 2, towards(b - a)))
        contacts.append(foot - [0, 0, 0.08])
        forces.append((np.sin(swing) <= 0)[:, None] * np.array([8.0, 0, 40.0]))
    height = np.stack(contacts, axis=1)[..., 2]
    return Picture(
        "Ant", t, tuple(parts), (Ground("floor", np.zeros(3), STILL),),
        contacts=np.stack(contacts, axis=1), forces=np.stack(forces, axis=1),
        panels=(Panel("gaps in m", t, {f"foot {k + 1}": height[:, k] for k in range(4)}),
                Panel("normal forces in N", t, {f"foot {k + 1}": forces[k][:, 2] for k in range(4)})),
        events=tuple((float(s), f"closes foot {k % 2 + 1}") for k,
                     s in enumerate(np.arange(0.4, 3, np.pi / 8))),
        facts={"method": "Moreau", "steps": "1500", "result": "success"},
    )  # fmt: skip


def corner():
    """A still scene: a ball and a glass box in a corner of three planes."""
    normals = {"floor": [0, 0, 1.0], "left": [1.0, 0, 0], "back": [0, 1.0, 0]}
    grounds = [Ground(name, np.zeros(3), towards(n)) for name, n in normals.items()]
    place = lambda *r: (np.array([r], dtype=float), STILL[None])
    return Picture(
        "A corner", np.zeros(1),
        (
            Part("ball", *ball(0.2), "#7d9cb8", *place(0.2, 0.2, 0.2)),
            Part("glass", *box(0.3, 0.3, 0.5), "#59a14f", *place(0.7, 0.3, 0.25), opacity=0.35),
            Part("wood", *box(0.2, 0.3, 0.1), "#c99a5b", *place(0.4, 0.8, 0.05)),
        ),
        tuple(grounds),
    )  # fmt: skip
