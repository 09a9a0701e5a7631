"""Scenes against MuJoCo, against brute force, and against the clock.

    .venv/bin/python benchmarks/scenes.py [models] [trajectories] [shapes] [box] [waiting]
                                          [pairs] [stacks] [fast] [edge] [stairs] [domino] [--folder FOLDER]

models        M and h of MJCF and URDF files, at random states: gymnasium's, and those of dm_control and
              pybullet_data where they are installed or lie unpacked in FOLDER
trajectories  smooth motion against MuJoCo's Runge-Kutta method of order four at 5e-5
shapes        gaps of every shape on planes against mj_geomDistance, penetration against brute force,
              derivatives against differences
box           a box thrown on a floor, with tolerances and with fixed steps, and for a minute
waiting       first results: a chain of fifty joints, a box, an ant, ten boxes on each other
pairs         gaps of shapes on each other against mj_geomDistance, penetration and surfaces against brute
              force, derivatives against differences; controls that must be seen
stacks        ten boxes for ten seconds
fast          a ball, a box, a capsule and a hull at a wall of 1 mm, and past its edge; random ways in one
              step
edge          a ball that leaves a table
stairs        a box down stairs, with tolerances
domino        twenty dominoes: speed of the wave with dt, and listed in another order
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SUITE = ("acrobot", "cartpole", "hopper", "walker")


def folder_of(package: str, extra: Path | None) -> Path | None:
    """Where a package lies, without importing it."""
    found = importlib.util.find_spec(package)
    if found is not None and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    return extra / package if extra is not None and (extra / package).is_dir() else None


def files(extra: Path | None) -> list[Path]:
    gymnasium, control, bullet = (
        folder_of(name, extra) for name in ("gymnasium", "dm_control", "pybullet_data")
    )
    out = sorted((gymnasium / "envs/mujoco/assets").glob("*.xml")) if gymnasium else []
    out += [control / "suite" / f"{name}.xml" for name in SUITE] if control else []
    return out + (sorted(bullet.rglob("*.urdf")) if bullet else [])


def compared(path: Path, states: int = 3, seed: int = 0) -> tuple[float, float, list[str]] | None:
    """Largest relative deviations of M and h, and what was left out;
    None where MuJoCo itself does not load the file.

    h is measured beside the terms that it is the sum of, as far as MuJoCo shows them, and the weight at the
    size of M.
    """
    import jax
    import jax.numpy as jnp
    import mujoco

    from stickslip.scene import Scene

    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return None
    scene = Scene.load(path)
    system, q0, u0 = scene.compile()
    assert (len(q0), len(u0)) == (model.nq, model.nv), path
    assert np.allclose(q0, model.qpos0, rtol=0, atol=1e-15), path
    if not model.nv:
        return 0.0, 0.0, scene.ignored
    # contacts and limits are no part of h
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    both = jax.jit(lambda q, u: (system.M(0.0, q), system.h(0.0, q, u)))
    worst = np.zeros(2)
    for _ in range(states):
        data.qpos[:] = model.qpos0 + 0.3 * random.standard_normal(model.nq)
        data.qvel[:] = random.standard_normal(model.nv)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        M = full_M(model, data)
        h = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
        own_M, own_h = (
            np.asarray(x) for x in both(jnp.asarray(data.qpos.copy()), jnp.asarray(data.qvel.copy()))
        )
        terms = np.abs(data.qfrc_passive) + np.abs(data.qfrc_bias)
        weight = np.sqrt(np.diag(M) * model.body_mass.sum()) * 9.81  # a centre of mass that far away
        size = max(terms.max(), weight.max() if np.any(model.opt.gravity) else 0.0)
        worst = np.maximum(worst, [np.abs(own_M - M).max() / np.abs(M).max(), np.abs(own_h - h).max() / size])
    return float(worst[0]), float(worst[1]), scene.ignored


def full_M(model, data) -> np.ndarray:
    """MuJoCo's mass matrix, whatever the order of arguments in its version."""
    import mujoco

    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, M, data.qM)
    except (TypeError, AttributeError):
        mujoco.mj_fullM(model, data, M)
    return M


def models(extra: Path | None, every: int = 1) -> bool:
    good, count, skipped = True, 0, 0
    for path in files(extra)[::every]:
        found = compared(path)
        if found is None:
            skipped += 1
            continue
        M, h, ignored = found
        count += 1
        fine = M <= 1e-12 and h <= 1e-12
        good &= fine
        soft = [text for text in ignored if not text.startswith(("softness", "restitution"))]
        name = "/".join(path.parts[-2:])
        if not fine or "pybullet" not in str(path):
            print(f"{'' if fine else 'NOT '}equal  {name:55s} M {M:.1e}  h {h:.1e}  {'; '.join(soft)[:140]}")
    print(f"{count} models, {skipped} that MuJoCo does not load; all equal to 1e-12: {good}")
    return good


# ---- trajectories

SMOOTH = ("inverted_double_pendulum", "hopper", "half_cheetah", "ant", "humanoid", "walker2d")


def trajectory(path: Path, duration: float = 0.25, reference_dt: float = 5e-5) -> float:
    """Largest deviation of q from MuJoCo's RK4, without contact, limits, damping and drives."""
    import mujoco

    import stickslip as ss
    from stickslip.scene import Motor, NoContact, Scene

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = reference_dt, int(mujoco.mjtIntegrator.mjINT_RK4)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT) | int(
        mujoco.mjtDisableBit.mjDSBL_ACTUATION
    )
    model.dof_damping[:] = 0.0
    data, random = mujoco.MjData(model), np.random.default_rng(1)
    data.qvel[:] = 2.0 * random.standard_normal(model.nv)
    scene = Scene.load(path)
    things = [thing for thing in scene.things if not isinstance(thing, Motor)]
    joints = [j for body in scene.bodies for j in body.joint]
    scene = Scene(*things, NoContact("*", "*"), gravity=scene.gravity)
    for joint in joints:
        more = {"limits": None} if hasattr(joint, "limits") else {}
        scene = scene.replace(joint.name, damping=0.0, friction=0.0, **more)
    system, q0, _ = scene.compile()
    sol = ss.simulate(system, ss.RadauIIA(2), q0, data.qvel.copy(), t1=duration, dt=5e-4)
    for _ in range(round(duration / reference_dt)):
        mujoco.mj_step(model, data)
    assert np.abs(sol.q[-1] - sol.q[0]).max() > 0.1  # it did move
    return float(np.abs(sol.q[-1] - data.qpos).max())


def trajectories(extra: Path | None) -> bool:
    folder = folder_of("gymnasium", extra)
    good = True
    for name in SMOOTH if folder else ():
        off = trajectory(folder / "envs/mujoco/assets" / f"{name}.xml")
        good &= off <= 1e-6
        print(f"{name:28s} after 0.25 s off by {off:.1e}")
    return good


# ---- shapes


def shapes_on_planes() -> dict[str, tuple]:
    """By name: the shape, and its MJCF; a disc is a cylinder of no height there."""
    from stickslip.scene import Ball, Box, Capsule, Cylinder, Disc, Ellipsoid, Hull

    random = np.random.default_rng(3)
    points = random.standard_normal((40, 3)) * [0.2, 0.3, 0.25]
    vertices = " ".join(f"{x:.17g}" for x in points.astype(np.float32).astype(float).ravel())
    mesh = f'<asset><mesh name="m" vertex="{vertices}"/></asset>'
    return {
        "ball": (Ball(0.3), 'type="sphere" size="0.3"', ""),
        "box": (Box(0.4, 0.3, 0.2), 'type="box" size="0.2 0.15 0.1"', ""),
        "capsule": (Capsule(0.1, 0.5), 'type="capsule" size="0.1 0.25"', ""),
        "cylinder": (Cylinder(0.2, 0.5), 'type="cylinder" size="0.2 0.25"', ""),
        "disc": (Disc(0.2), 'type="cylinder" size="0.2 1e-13"', ""),
        "ellipsoid": (Ellipsoid(0.3, 0.2, 0.1), 'type="ellipsoid" size="0.3 0.2 0.1"', ""),
        "hull": (Hull(points.astype(np.float32).astype(float)), 'type="mesh" mesh="m"', mesh),
    }


def random_rotation(random) -> np.ndarray:
    p = random.standard_normal(4)
    return p / np.linalg.norm(p)


def gaps(name: str, poses: int = 1000, seed: int = 0) -> float:
    """Largest deviation from mj_geomDistance at separated poses, on planes of random directions."""
    import jax
    import jax.numpy as jnp
    import mujoco

    from stickslip.scene import Body, Contact, Hull, Plane, Scene

    shape, geom, asset = shapes_on_planes()[name]
    random = np.random.default_rng(seed)
    normal = random.standard_normal(3)
    normal /= np.linalg.norm(normal)
    foot = 0.3 * random.standard_normal(3)
    z = " ".join(f"{x:.17g}" for x in normal)
    place = " ".join(f"{x:.17g}" for x in foot)
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>{asset}<worldbody>'
        f'<geom name="p" type="plane" size="1 1 1" pos="{place}" zaxis="{z}"/>'
        f'<body><freejoint/><geom name="g" {geom}/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    # MuJoCo moves a mesh to its own centre and axes, and rounds it to single precision there
    if name == "hull":
        shape = Hull(
            model.mesh_vert.astype(float), at=model.geom_pos[1].copy(), rotation=model.geom_quat[1].copy()
        )
    scene = Scene(
        Body("body", shape, mass=1.0, inertia=(1.0, 1.0, 1.0)),
        Body("plane", Plane(normal, at=foot), fixed=True), Contact("body", "plane"),
    )  # fmt: skip
    system, _, _ = scene.compile()
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    worst, fromto, size = 0.0, np.zeros(6), np.zeros(9)
    mujoco.mju_quat2Mat(size, model.geom_quat[0])
    normal = size.reshape(3, 3)[:, 2]  # as MuJoCo has rounded it
    for _ in range(poses):
        q = np.concatenate(
            [
                foot + random.uniform(0.7, 2.0) * normal + 0.3 * random.standard_normal(3),
                random_rotation(random),
            ]
        )
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        theirs = mujoco.mj_geomDistance(model, data, 1, 0, 10.0, fromto)
        if theirs > 1e-3:
            worst = max(worst, abs(theirs - float(smallest(jnp.asarray(q)))))
    return worst


def depth(name: str, poses: int = 200, seed: int = 1) -> float:
    """Largest deviation from the lowest of many points of the surface, at any pose, penetrating or not."""
    import jax
    import jax.numpy as jnp

    from stickslip.scene import Body, Contact, Plane, Scene

    shape, _, _ = shapes_on_planes()[name]
    random = np.random.default_rng(seed)
    system, _, _ = Scene(
        Body("body", shape, mass=1.0, inertia=(1.0, 1.0, 1.0)),
        Body("plane", Plane(), fixed=True),
        Contact("body", "plane"),
    ).compile()
    smallest = jax.jit(lambda q: jnp.min(system.g_N(0.0, q)))
    from stickslip.rigid import rotation_matrix

    worst = 0.0
    for _ in range(poses):
        q = np.concatenate([0.2 * random.standard_normal(3), random_rotation(random)])
        A = np.asarray(rotation_matrix(jnp.asarray(q[3:])))
        lowest = q[2] + lowest_point(shape, A.T @ np.array([0.0, 0.0, -1.0]), random)
        worst = max(worst, abs(lowest - float(smallest(jnp.asarray(q)))))
    return worst


def lowest_point(shape, down: np.ndarray, random) -> float:
    """Height of the lowest of a cloud of surface points, which closes in on it."""
    from stickslip.scene import Ball, Box, Capsule, Cylinder, Disc, Ellipsoid, Hull

    kinds = {
        Ball: lambda d: shape.radius * d,
        Ellipsoid: lambda d: d * np.array([shape.x, shape.y, shape.z]),
        Capsule: lambda d: shape.radius * d + 0.5 * shape.length * np.sign(d[:, 2:]) * [[0, 0, 1]],
    }
    if isinstance(shape, Box):
        corners = 0.5 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return -np.max(corners * [shape.x, shape.y, shape.z] @ down)
    if isinstance(shape, Hull):
        return -np.max(shape.points @ down)
    if isinstance(shape, Cylinder | Disc):
        angle, spread = random.uniform(0, 2 * np.pi, 400), np.pi
        half = 0.5 * shape.length if isinstance(shape, Cylinder) else 0.0
        for _ in range(12):
            rim = shape.radius * np.column_stack([np.cos(angle), np.sin(angle)])
            best = angle[np.argmax(rim @ down[:2])]
            spread *= 0.1
            angle = np.append(best + spread * random.uniform(-1, 1, 400), best)
        return -(np.max(rim @ down[:2]) + half * abs(down[2]))
    of, spread = kinds[type(shape)], 1.0
    d = random.standard_normal((400, 3))
    for _ in range(12):
        d /= np.linalg.norm(d, axis=1)[:, None]
        best = d[np.argmax(of(d) @ down)]
        spread *= 0.2
        d = np.vstack([best, best + spread * random.standard_normal((400, 3))])
    return -float(of(best[None])[0] @ down)


def derivatives(name: str, poses: int = 20, seed: int = 2) -> tuple[float, float]:
    """First and second derivatives of gaps against central differences,
    without slots that change their point there.
    """
    import jax
    import jax.numpy as jnp

    from stickslip.scene import Body, Contact, Plane, Scene

    shape, _, _ = shapes_on_planes()[name]
    random = np.random.default_rng(seed)
    system, _, _ = Scene(
        Body("body", shape, mass=1.0, inertia=(1.0, 1.0, 1.0)),
        Body("plane", Plane(), fixed=True),
        Contact("body", "plane"),
    ).compile()
    first = jax.jit(jax.jacfwd(lambda q: system.g_N(0.0, q)))
    second = jax.jit(jax.jacfwd(jax.jacfwd(lambda q: system.g_N(0.0, q))))
    value = jax.jit(lambda q: system.g_N(0.0, q))
    worst = np.zeros(2)
    for _ in range(poses):
        q = jnp.asarray(np.concatenate([random.standard_normal(3), random_rotation(random)]))
        along = random.standard_normal(7)
        h = 1e-5
        by_difference = (np.asarray(value(q + h * along)) - np.asarray(value(q - h * along))) / (2 * h)
        of_first = (np.asarray(first(q + h * along)) - np.asarray(first(q - h * along))) / (2 * h)
        smooth = np.abs(of_first).max(axis=1) < 100.0  # a slot between two points jumps
        worst[0] = max(worst[0], np.abs(np.asarray(first(q)) @ along - by_difference)[smooth].max())
        worst[1] = max(worst[1], np.abs(np.asarray(second(q)) @ along - of_first)[smooth].max())
    return float(worst[0]), float(worst[1])


def shapes(extra: Path | None) -> bool:
    good = True
    for name in shapes_on_planes():
        off, inside, (first, second) = gaps(name), depth(name), derivatives(name)
        good &= off <= 1e-10 and inside <= 1e-10 and first <= 1e-7 and second <= 1e-6
        print(
            f"{name:10s} mj_geomDistance {off:.1e}  brute force {inside:.1e}  derivatives {first:.1e} "
            f"{second:.1e}"
        )
    return good


# ---- a box


def thrown(e_N: float = 0.3, mu: float = 0.4):
    from stickslip.scene import Body, Box, Contact, Plane, Scene

    return Scene(
        Body("box", Box(0.4, 0.3, 0.2), mass=2.0, at=(0, 0, 0.6), velocity=(2, 0, 0), spin=(1, 3, 2)),
        Body("floor", Plane(), fixed=True),
        Contact("box", "floor", e_N=e_N, mu=mu),
    )


def corners_below(sol, between: int = 1) -> float:
    """The lowest corner of the box, at all rows."""
    half = 0.5 * np.array([0.4, 0.3, 0.2])
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    A = np.asarray(sol["box"].matrix)
    return float((sol["box"].position[:, None, 2] + np.einsum("rj,kj->rk", A[:, 2], signs * half)).min())


def box(extra: Path | None) -> bool:
    import stickslip as ss

    sol = thrown().simulate(t1=3.0, rtol=1e-8, atol=1e-8)
    dense = np.linspace(0.0, 3.0, 3001)
    q = np.asarray(sol(dense)[0])
    lowest = min(corners_below(sol), float(np.asarray(sol.stats.smallest_gap)))
    energy = sol.energy()
    rise = float(np.diff(energy).max() / energy[0])
    good = lowest >= -1e-7 and rise <= 1e-7 and np.isfinite(q).all()
    print(
        f"tolerances 1e-8: lowest corner {lowest:.1e}, largest rise of energy {rise:.1e}, {len(sol.events)} "
        "events"
    )
    for dt in (4e-3, 2e-3, 1e-3, 5e-4):
        sol = thrown().simulate(ss.Rattle(), t1=3.0, dt=dt)
        energy = sol.energy()
        print(
            f"dt {dt:.0e}: lowest corner {corners_below(sol):.1e}, rise of energy "
            f"{np.diff(energy).max() / energy[0]:.1e}"
        )
    sol = thrown().simulate(ss.Rattle(), t1=60.0, dt=2e-3)
    still = np.abs(sol.u).max(axis=1) < 1e-12
    since = sol.t[np.flatnonzero(~still)[-1] + 1] if not still.all() and still[-1] else np.nan
    good &= bool(since < 30.0)
    moved = np.abs(sol.q[-1] - sol.q[np.searchsorted(sol.t, since)]).max() if since < 60 else np.nan
    print(f"at rest (|u| < 1e-12) from t = {since:.3f} to 60, moves by {moved:.1e} after it")
    return good


# ---- waiting

CHAIN = """
import time, numpy as np, jax, jax.numpy as jnp, stickslip as ss
from stickslip.scene import Body, Capsule, Hinge, Scene
links, parent = [], "world"
for i in range(50):
    at = (0, 0, -0.2) if i else (0, 0, 0)
    axis = (0, 1, 0) if i % 2 else (1, 0, 0)
    rod = Capsule(0.02, 0.2, at=(0, 0, -0.1))
    links.append(Body(f"link {i}", rod, parent=parent, at=at, joint=Hinge(axis=axis)))
    parent = f"link {i}"
system, q, u = Scene(*links).compile()
q, u = (jnp.asarray(np.random.default_rng(0).standard_normal(50)) for _ in range(2))
M, h = jax.jit(lambda q: system.M(0.0, q)), jax.jit(lambda q, u: system.h(0.0, q, u))
began = time.perf_counter()
jax.block_until_ready((M(q), h(q, u)))
compiled, times = time.perf_counter() - began, []
for _ in range(200):
    began = time.perf_counter()
    jax.block_until_ready((M(q), h(q, u)))
    times.append(time.perf_counter() - began)
print(f"compile {compiled:.2f} s (asked: 5), M and h {1e3 * np.median(times):.3f} ms (asked: 0.5)")
"""
BOX = """
import time, stickslip as ss, scenes
began = time.perf_counter()
scenes.thrown().simulate(ss.Rattle(), t1=1.5, dt=2e-3)
print(f"first result {time.perf_counter() - began:.1f} s (asked: 10)")
"""
ANT = """
import time, stickslip as ss, scenes
began = time.perf_counter()
sol = scenes.ant().simulate(ss.Rattle(), t1=1.0, dt=2e-3)
print(f"first result {time.perf_counter() - began:.1f} s (asked: 25)")
"""
STACK = """
import time, motion
began = time.perf_counter()
motion.stack().simulate("rattle", t1=0.1, dt=1e-3)
print(f"first result {time.perf_counter() - began:.1f} s (asked: 30)")
"""


def ant():
    from stickslip.scene import Scene

    folder = folder_of("gymnasium", None)
    assert folder is not None, "gymnasium is not installed"
    scene = Scene.load(folder / "envs/mujoco/assets/ant.xml")
    # as gymnasium starts it: the file starts beyond its limits
    for i, angle in enumerate((1.0, -1.0, -1.0, 1.0), start=1):
        scene = scene.replace(f"ankle_{i}", angle=angle)
    return scene.place("torso", on="ground", gap=0.05)


def waiting(extra: Path | None) -> bool:
    programs = {
        "chain of fifty joints": CHAIN,
        "box, RATTLE": BOX,
        "ant, RATTLE": ANT,
        "ten boxes, RATTLE": STACK,
    }
    for name, program in programs.items():
        with tempfile.TemporaryDirectory() as cold:
            surroundings = {**os.environ, "XDG_CACHE_HOME": cold, "JAX_PLATFORMS": "cpu"}
            surroundings["PYTHONPATH"] = os.pathsep.join(
                [
                    str(Path(__file__).parent),
                    str(Path(__file__).parents[1] / "src"),
                    os.environ.get("PYTHONPATH", ""),
                ]
            )
            out = subprocess.run(
                [sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, check=False
            )
        print(f"{name:22s} {out.stdout.strip() or out.stderr[-500:]}")
    return True


def meeting_parts():
    import meeting
    import motion

    return {"pairs": meeting.pairs, **motion.PARTS}


PARTS = {
    "models": models,
    "trajectories": trajectories,
    "shapes": shapes,
    "box": box,
    "waiting": waiting,
    **meeting_parts(),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--folder", type=Path, default=None, help="packages that lie unpacked there")
    given = parser.parse_args()
    good = True
    for name in given.parts or PARTS:
        began = time.perf_counter()
        print(f"-- {name}")
        good &= PARTS[name](given.folder)
        print(f"   {time.perf_counter() - began:.0f} s", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
