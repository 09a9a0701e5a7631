"""Scenes are systems: what is known of the systems holds of the scenes."""

import dataclasses
import math
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenes as measured  # benchmarks/scenes.py
import stickslip as ss
from scenes_written import WRITTEN
from stickslip.scene import (
    Ball,
    BallJoint,
    Body,
    Box,
    Capsule,
    Connect,
    Contact,
    Coupling,
    Cylinder,
    Disc,
    Force,
    Glue,
    Hinge,
    Hull,
    Motor,
    NoContact,
    Planar,
    Plane,
    Prescribed,
    Rod,
    Scene,
    SceneError,
    Slider,
    Spring,
    Universal,
    Weld,
    servo,
)

FLOOR = Body("floor", Plane(), fixed=True)
G = 9.81


# ---- the same motion as what papers write down


@pytest.mark.parametrize("name", WRITTEN)
def test_a_benchmark_written_as_a_scene_moves_alike(name):
    write, t1 = WRITTEN[name]
    b = ss.benchmarks.load(name)
    own = ss.simulate(b.system, b.method, b.q0, b.u0, t1=t1, dt=b.dt)
    sol = write(b).simulate(b.method, t1=t1, dt=b.dt)
    assert np.abs(sol.q - own.q).max() < 1e-9
    assert np.abs(sol.u - own.u).max() < 1e-9


def test_another_friction_is_another_motion():
    """A control: the comparison above can fail."""
    write, t1 = WRITTEN["rolling-ball"]
    b = ss.benchmarks.load("rolling-ball")
    other = dataclasses.replace(b, system=dataclasses.replace(b.system, mu_T=0.09))
    own = ss.simulate(b.system, b.method, b.q0, b.u0, t1=t1, dt=b.dt)
    assert np.abs(write(other).simulate(b.method, t1=t1, dt=b.dt).q - own.q).max() > 1e-3


def slider_crank(b):
    """In minimal coordinates: three hinges in a row, and a guide of two planes."""
    s, (p1, p2, p3), w = b.system, b.q0[2::3], b.u0[2::3]
    return Scene(
        Body("crank", parent="world", mass=s.m1, inertia=s.theta1, centre=(s.l1 / 2, 0), joint=Hinge(angle=p1, rate=w[0])),
        Body("rod", parent="crank", at=(s.l1, 0), mass=s.m2, inertia=s.theta2, centre=(s.l2 / 2, 0),
             joint=Hinge(angle=p2 - p1, rate=w[1] - w[0])),
        Body("slider", Box(2 * s.a, 2 * s.b), parent="rod", at=(s.l2, 0), mass=s.m3, inertia=s.theta3,
             joint=Hinge(angle=p3 - p2, rate=w[2] - w[1])),
        Body("upper", Plane((0, -1), at=(0, s.d / 2)), fixed=True),
        Body("lower", Plane((0, 1), at=(0, -s.d / 2)), fixed=True),
        Contact("slider", "upper", e_N=s.e_N, mu=s.mu), Contact("slider", "lower", e_N=s.e_N, mu=s.mu),
        planar=True, gravity=s.gravity,
    )  # fmt: skip


def test_the_slider_crank_in_minimal_coordinates_reaches_its_first_impact_alike():
    b = ss.benchmarks.load("slider-crank")
    options = {"t1": 3e-3, "rtol": 1e-10, "atol": 1e-12}
    own = ss.simulate(b.system, None, b.q0, b.u0, **options)
    sol = slider_crank(b).simulate(**options)
    first = [next(e.t for e in s.events if e.kind == "impact") for s in (own, sol)]
    assert abs(first[0] - first[1]) < 1e-10
    rows = [np.flatnonzero(s.t == t)[0] for s, t in zip((own, sol), first, strict=True)]  # before the impact
    assert np.abs(np.cumsum(sol.q[rows[1]]) - own.q[rows[0], 2::3]).max() < 1e-9
    assert np.abs(np.cumsum(sol.u[rows[1]]) - own.u[rows[0], 2::3]).max() < 1e-7


# ---- shapes


@pytest.mark.parametrize("name", measured.shapes_on_planes())
def test_gaps_of_every_shape_are_those_of_mujoco_and_of_brute_force(name):
    pytest.importorskip("mujoco")
    assert measured.gaps(name, poses=60) < 1e-10
    assert measured.depth(name, poses=30) < 1e-10
    first, second = measured.derivatives(name, poses=4)
    assert first < 1e-7
    assert second < 1e-6


def test_a_shape_that_is_a_little_smaller_is_noticed(monkeypatch):
    pytest.importorskip("mujoco")
    known = measured.shapes_on_planes()
    monkeypatch.setattr(
        measured, "shapes_on_planes", lambda: {"ball": (Ball(0.3 - 1e-9), *known["ball"][1:])}
    )
    assert measured.gaps("ball", poses=5) > 5e-10


def on_floor(shape, **body):
    return Scene(Body("body", shape, **body), FLOOR, Contact("body", "floor", mu=0.3))


def test_corners_of_a_face_have_slots_of_their_own_and_no_corner_is_left_out():
    random = np.random.default_rng(0)
    ring = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    drum = np.concatenate(
        [np.column_stack([np.cos(ring), np.sin(ring), np.full(64, z)]) for z in (-0.5, 0.5)]
    )
    for points, most in ((random.standard_normal((50, 3)), 12), (drum, 24)):
        found = Hull(points).hull()
        assert sorted(i for group in found.groups for i in group) == list(range(len(found.vertices)))
        assert len(found.groups) <= most
    assert len(Box(1, 1, 1).slots(False)) == 4
    found = Hull(np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)).hull()
    # opposite corners
    assert all(np.abs(np.diff(found.vertices[list(group)], axis=0)).sum() == 3 for group in found.groups)


def test_masses_and_inertias_of_solids_are_those_of_brute_force():
    random = np.random.default_rng(4)
    cloud = random.uniform(-1, 1, (400_000, 3))
    x, y, z = cloud.T
    inside = [
        (Ball(0.8), x * x + y * y + z * z < 0.64),
        (Cylinder(0.5, 1.2), (x * x + y * y < 0.25) & (abs(z) < 0.6)),
        (Capsule(0.4, 0.8), x * x + y * y + np.maximum(abs(z) - 0.4, 0) ** 2 < 0.16),
    ]
    for shape, there in inside:
        points = cloud[there]
        mass, _, inertia = Body("b", shape, density=1.0).weighed(False)
        assert mass == pytest.approx(8 * there.mean(), rel=0.01)
        second = 8 / len(cloud) * points.T @ points
        assert inertia == pytest.approx(np.trace(second) * np.eye(3) - second, abs=0.01 * mass)
    both = Body("b", Box(1, 2, 3, at=(1, 0, 0)), Box(1, 2, 3, at=(-1, 0, 0)), density=1.0).weighed(False)
    one = Body("b", Box(3, 2, 3), density=1.0).weighed(False)
    hollow = Body("b", Box(1, 2, 3), density=1.0).weighed(False)
    assert both[0] == pytest.approx(12)
    assert both[2] == pytest.approx(one[2] - hollow[2])
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-1, 1) for z in (-1.5, 1.5)])
    for a, b in zip(Body("b", Hull(corners + 3.0), density=1.0).weighed(False), hollow, strict=True):
        assert np.asarray(a) - (3.0 if np.shape(a) == (3,) else 0.0) == pytest.approx(
            np.asarray(b), abs=1e-12
        )


def test_a_disc_that_spins_flat_is_stopped_by_friction_under_even_pressure():
    """2/3 mu m g r against m r^2/2: it stops after 3 omega r/(4 mu g), and stays flat."""
    r, mu, omega = 0.1, 0.3, 20.0
    scene = Scene(Body("coin", Disc(r), mass=0.1, spin=(0, 0, omega)), FLOOR, Contact("coin", "floor", mu=mu))
    stop = 3 * omega * r / (4 * mu * G)
    sol = scene.simulate(ss.Rattle(), t1=1.2 * stop, dt=2e-3)
    spin = sol["coin"].spin[:, 2]
    half = np.searchsorted(sol.t, stop / 2)
    assert spin[half] == pytest.approx(omega * (1 - sol.t[half] / stop), rel=1e-3)
    assert abs(spin[-1]) < 1e-10
    assert np.abs(sol["coin"].position[:, 2]).max() < 1e-9


@pytest.mark.parametrize("shape", [Disc(0.1), Cylinder(0.1, 0.05)])
def test_a_disc_thrown_on_the_floor_never_penetrates_and_comes_to_rest(shape):
    scene = Scene(
        Body("coin", shape, mass=0.1, at=(0, 0, 0.3), velocity=(0.3, 0, 0), rotation=(1, 0.3, 0.1, 0), spin=(3, 2, 1)),
        FLOOR, Contact("coin", "floor", mu=0.4, e_N=0.1),
    )  # fmt: skip
    sol = scene.simulate(ss.Rattle(), t1=1.5, dt=1e-3)
    A = sol["coin"].matrix
    h = getattr(shape, "length", 0.0) / 2
    lowest = (
        sol["coin"].position[:, 2]
        - h * abs(A[:, 2, 2])
        - shape.radius * np.sqrt(A[:, 2, 0] ** 2 + A[:, 2, 1] ** 2)
    )
    assert lowest.min() > -1e-7 * shape.radius
    assert np.diff(sol.energy()).max() < 1e-4 * sol.energy()[0]


def test_a_cylinder_stands_and_rolls():
    stands = on_floor(Cylinder(0.1, 0.3), mass=1.0, at=(0, 0, 0.15)).simulate(ss.Rattle(), t1=0.2, dt=1e-2)
    assert np.abs(stands.q - stands.q[0]).max() < 1e-12
    s = math.sqrt(0.5)
    rolls = on_floor(
        Cylinder(0.1, 0.3),
        mass=1.0,
        at=(0, 0, 0.1),
        rotation=(s, s, 0, 0),
        velocity=(1, 0, 0),
        spin=(0, 0, -10),
    )
    sol = rolls.simulate(ss.Rattle(), t1=0.5, dt=1e-2)
    assert sol["body"].position[-1] == pytest.approx([0.5, 0, 0.1], abs=1e-9)
    assert set(sol["body", "floor"].state[1:, 0]) <= {"stick"}


# ---- models of others


@pytest.mark.parametrize("name", ["hopper", "ant", "humanoid", "swimmer", "pusher"])
def test_M_and_h_of_a_model_are_those_of_mujoco(name):
    pytest.importorskip("mujoco")
    folder = measured.folder_of("gymnasium", None)
    if folder is None:
        pytest.skip("gymnasium is not installed")
    M, h, ignored = measured.compared(folder / "envs/mujoco/assets" / f"{name}.xml")
    assert M < 1e-12
    assert h < 1e-12
    assert not any("shape" in text and "left out" in text for text in ignored)


def test_a_hopper_falls_as_mujoco_lets_it():
    pytest.importorskip("mujoco")
    folder = measured.folder_of("gymnasium", None)
    if folder is None:
        pytest.skip("gymnasium is not installed")
    assert measured.trajectory(folder / "envs/mujoco/assets/hopper.xml", duration=0.05) < 1e-8


MODEL = """
<mujoco><option density="1.2"/><default><geom friction="0.7 0.01 0.002" condim="4"/></default>
<worldbody><geom name="ground" type="plane" size="5 5 1" friction="0.2 0.005 0.001"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="foot" size="0.1"/>
 <body name="b" pos="0.3 0 0"><joint name="knee" type="hinge" axis="0 1 0" range="-60 60" limited="true" damping="0.2"
  frictionloss="0.1" armature="0.01" stiffness="2" springref="10" ref="5"/><geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/></body>
 <body name="c" pos="0 0.3 0"><joint name="twist" type="ball"/><geom type="capsule" size="0.05 0.1"/></body></body></worldbody>
<actuator><motor name="drive" joint="knee" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
 <position name="hold" joint="knee" kp="5"/></actuator>
<tendon><fixed name="t"><joint joint="knee" coef="1"/></fixed></tendon>
<contact><exclude body1="a" body2="c"/></contact></mujoco>
"""


def test_an_import_carries_over_what_a_scene_has_and_says_what_it_has_not(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text(MODEL)
    M, h, _ = measured.compared(path)
    assert M < 1e-12
    assert h < 1e-12
    scene = Scene.load(path, e_N=0.4)
    system, q0, _ = scene.compile()
    text = " | ".join(scene.ignored)
    for said in (
        "1 tendon",
        "softness of contacts",
        "softness of joint limits",
        "restitution is not in such files: e_N = 0.4",
    ):
        assert said in text
    assert {pair[0] for pair in system.pairs if pair[1]} == {"a", "c"}  # b touches nothing
    law = system.laws[0]
    assert float(law.e_N) == 0.4
    assert [type(f).__name__ for f in law.friction] == ["Coulomb", "Pivoting"]
    assert [float(f.mu) for f in law.friction] == [0.7, 0.01]  # the larger of the two
    assert "knee limit" in system.contacts
    assert float(system.laws[-1].force) == 0.1
    assert q0[7] == pytest.approx(math.radians(5))
    assert scene.replace("drive", control=2.0).compile()[0].drives.numbers[0] == 2.0


def test_equalities_of_a_file_hold(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "four_bar.xml"
    path.write_text("""<mujoco><worldbody>
     <body name="a"><joint name="j" type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      <body name="b" pos="0 0 0.3"><joint name="i" type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02"/></body>
     </body><body name="c" pos="0.4 0 0"><joint name="k" type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/></body></worldbody>
     <equality><connect body1="b" body2="c" anchor="0.4 0 0"/></equality></mujoco>""")
    scene = Scene.load(path).replace("j", rate=1.0).replace("i", rate=-1.0).replace("k", rate=1.0)
    assert any(isinstance(thing, Connect) for thing in scene.things)
    sol = scene.simulate(ss.RadauIIA(2), t1=0.3, dt=1e-2)
    assert sol.P_g.shape[1] == 3
    ends = sol["b"].position + np.einsum("rij,j->ri", sol["b"].matrix, [0.4, 0, 0])
    assert ends == pytest.approx(
        sol["c"].position + np.einsum("rij,j->ri", sol["c"].matrix, [0, 0, 0.3]), abs=1e-10
    )
    assert np.abs(sol["j"].angle - sol["k"].angle).max() < 1e-9  # a parallelogram


def test_a_urdf_finds_its_meshes_and_may_float(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "meshes").mkdir()
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    triangles = [
        [0, 2, 3],
        [0, 3, 1],
        [4, 5, 7],
        [4, 7, 6],
        [0, 1, 5],
        [0, 5, 4],
        [2, 6, 7],
        [2, 7, 3],
        [0, 4, 6],
        [0, 6, 2],
        [1, 3, 7],
        [1, 7, 5],
    ]
    faces = "".join(f"f {' '.join(str(i + 1) for i in t)}\n" for t in triangles)
    (tmp_path / "meshes/cube.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners) + faces)
    (tmp_path / "urdf").mkdir()
    path = tmp_path / "urdf/robot.urdf"
    path.write_text("""<robot name="r"><link name="base"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
     iyz="0"/></inertial><visual><geometry><mesh filename="package://r/meshes/gone.dae"/></geometry></visual>
     <collision><geometry><mesh filename="package://r/meshes/cube.obj"/></geometry></collision></link></robot>""")
    assert Scene.load(path).compile()[1].shape == (0,)
    scene = Scene.load(path, floating=True)
    (body,) = scene.bodies
    assert isinstance(body.shapes[0], Hull)
    assert len(scene.compile()[1]) == 7


# ---- joints, drives, springs, loops


def pendulum(**joint):
    return Body(
        "arm",
        mass=1.0,
        centre=(0, 0, -0.5),
        inertia=(1e-9, 1e-9, 1e-9),
        parent="world",
        joint=Hinge("hip", (0, 1, 0), **joint),
    )


def test_a_pendulum_swings_as_it_should():
    sol = Scene(pendulum(angle=0.1)).simulate(ss.RadauIIA(3), t1=1.0, dt=1e-2)
    omega = math.sqrt(G / 0.5)
    period = 2 * math.pi / omega * (1 + 0.1**2 / 16 + 11 / 3072 * 0.1**4)
    turns = sol.t[1:][np.diff(np.sign(sol["hip"].rate)) != 0]
    assert np.abs(np.diff(sol.energy())).max() < 1e-9
    assert turns[1] if len(turns) > 1 else turns[0] == pytest.approx(period / 2, abs=1e-2)


def test_a_limit_is_a_contact_with_its_restitution():
    scene = Scene(pendulum(angle=0.5, limits=(-0.2, 1.0), e_N=0.6))
    sol = scene.simulate(t1=0.6, rtol=1e-9, atol=1e-10)
    hit = next(e for e in sol.events if e.kind == "impact")
    before, after = sol(hit.t - 1e-9)[1][0], sol(hit.t)[1][0]
    assert hit.name == "hip limit"
    assert after == pytest.approx(-0.6 * before, rel=1e-6)
    assert sol["hip"].angle.min() >= -0.2 - 1e-9
    assert sol["hip"].limit.shape == (len(sol.t), 1)


def test_dry_friction_of_a_joint_holds_and_yields():
    """m g l sin(angle) against the torque."""
    torque = G * 0.5 * math.sin(0.3)
    holds = Scene(pendulum(angle=0.3, friction=1.01 * torque)).simulate(ss.Rattle(), t1=0.2, dt=1e-2)
    yields = Scene(pendulum(angle=0.3, friction=0.99 * torque)).simulate(ss.Rattle(), t1=0.2, dt=1e-2)
    assert np.abs(holds["hip"].angle - 0.3).max() < 1e-12
    assert yields["hip"].angle[-1] < 0.3 - 1e-5


def test_a_joint_spring_a_damper_and_an_armature_make_an_oscillator():
    """q_dd (m + a) + d q_d + k (q - q0) = 0"""
    m, a, d, k, rest = 1.0, 0.5, 0.4, 30.0, 0.2
    joint = Slider("s", (1, 0, 0), stiffness=k, damping=d, armature=a, rest=rest)
    sol = Scene(Body("b", mass=m, inertia=(1, 1, 1), parent="world", joint=joint), gravity=0.0).simulate(
        ss.RadauIIA(3), t1=1.0, dt=1e-2
    )
    root = complex(-d / (2 * (m + a)), math.sqrt(k / (m + a) - (d / (2 * (m + a))) ** 2))
    exact = rest - rest * np.exp(root.real * sol.t) * (
        np.cos(root.imag * sol.t) - root.real / root.imag * np.sin(root.imag * sol.t)
    )
    assert sol["s"].position == pytest.approx(exact, abs=1e-7)


def test_springs_between_points_motors_and_forces_balance():
    k, length = 50.0, 0.4
    hung = Scene(
        Body("b", Ball(0.05), mass=1.0, at=(0, 0, -length - G / k)),
        Spring("world", "b", stiffness=k, length=length, damping=1.0),
    )
    sol = hung.simulate(ss.Rattle(), t1=0.2, dt=1e-2)
    assert np.abs(sol.q - sol.q[0]).max() < 1e-12
    held = Scene(pendulum(angle=0.3), Motor("m", "hip", G * 0.5 * math.sin(0.3) / 2.0, gear=2.0))
    assert np.abs(held.simulate(ss.Rattle(), t1=0.2, dt=1e-2)["hip"].angle - 0.3).max() < 1e-12
    pushed = Scene(
        Body("b", Ball(0.1), mass=2.0), Force("b", lambda t, state: -3.0 * state["b"].position), gravity=0.0
    ).replace("b", at=(1.0, 0, 0))
    sol = pushed.simulate(ss.RadauIIA(3), t1=1.0, dt=1e-2)
    assert sol["b"].position[:, 0] == pytest.approx(np.cos(math.sqrt(1.5) * sol.t), abs=1e-8)
    follow = Scene(
        pendulum(), servo("m", "hip", lambda t, state: 0.1, stiffness=500.0, damping=30.0), gravity=0.0
    )
    assert follow.simulate(ss.RadauIIA(2), t1=2.0, dt=1e-2)["hip"].angle[-1] == pytest.approx(0.1, abs=1e-5)


def test_a_ball_joint_is_a_free_body_that_is_connected():
    body = {"mass": 1.0, "centre": (0, 0, -0.5), "inertia": (0.02, 0.03, 0.04)}
    joint = Scene(
        Body("b", **body, parent="world", joint=BallJoint("j", rotation=(1, 0.2, 0, 0), spin=(0.5, 1, 2)))
    )
    p = np.array([1, 0.2, 0, 0]) / math.sqrt(1.04)
    free = Scene(Body("b", **body, rotation=p, spin=(0.5, 1, 2)), Connect("b", "world", second_at=(0, 0, 0)))
    a, b = (s.simulate(ss.RadauIIA(3), t1=0.5, dt=5e-3) for s in (joint, free))
    assert a["b"].matrix == pytest.approx(b["b"].matrix, abs=1e-8)
    assert np.abs(b["b"].position).max() < 1e-10


def test_loops_hold_and_glue_is_a_weld():
    box = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    welded = Scene(
        Body("a", **box, parent="world", joint=Hinge("h", (0, 1, 0), rate=1.0)),
        Body("b", **box, parent="a", at=(0.5, 0, 0), joint=Weld()),
    )
    glued = Scene(
        Body("a", **box, parent="world", joint=Hinge("h", (0, 1, 0), rate=1.0)),
        Body("b", **box, at=(0.5, 0, 0), velocity=(0, 0, -0.5), spin=(0, 1, 0)), Glue("a", "b"),
    )  # fmt: skip
    a, b = (s.simulate(ss.Rattle(), t1=0.4, dt=2e-4) for s in (welded, glued))
    assert a["b"].position == pytest.approx(b["b"].position, abs=1e-7)
    rod = Scene(Body("b", **box, at=(0.3, 0, 0.4)), Rod("world", "b")).simulate(ss.Rattle(), t1=0.5, dt=5e-3)
    assert np.linalg.norm(rod["b"].position, axis=1) == pytest.approx(0.5, abs=1e-12)
    geared = Scene(
        Body("a", **box, joint=Hinge("i", rate=1.0), parent="world"), Body("b", **box, joint=Hinge("j", rate=-2.0), parent="world"),
        Coupling("j", "i", (0.0, -2.0)), Motor("m", "i", 1.0),
    )  # fmt: skip
    sol = geared.simulate(ss.Rattle(), t1=0.5, dt=1e-2)
    assert sol["j"].angle == pytest.approx(-2 * sol["i"].angle, abs=1e-11)
    assert sol["i"].rate[-1] == pytest.approx(1.0 + 0.5 * 1.0 / (0.1 + 4 * 0.1), rel=1e-9)


def test_several_joints_of_a_body_are_those_of_bodies_in_a_row():
    def ends(joint, **more):
        return Scene(
            Body(
                "b",
                mass=1.0,
                inertia=(0.1, 0.2, 0.15),
                centre=(0.1, 0.2, 0.3),
                parent="world",
                joint=joint,
                **more,
            )
        ).simulate(ss.Rattle(), t1=0.2, dt=1e-2)

    pair = (Hinge("x", (1, 0, 0), rate=1.0), Hinge("y", (0, 1, 0), rate=2.0))
    assert ends(Universal("u", rates=(1.0, 2.0))).q == pytest.approx(ends(pair).q, abs=1e-14)
    row = (Slider("x", (1, 0, 0), rate=1.0), Slider("y", (0, 1, 0), rate=0.5), Hinge("z", rate=2.0))
    assert ends(Planar("p", velocity=(1.0, 0.5), rate=2.0)).q == pytest.approx(ends(row).q, abs=1e-14)


# ---- planes that move


def test_a_body_on_a_shaking_floor_leaves_it_where_the_floor_falls_faster_than_it():
    """A omega^2 sin(omega t) = g"""
    A, omega = 0.01, 50.0
    scene = Scene(
        Body("box", Box(0.1, 0.1, 0.1), mass=1.0, at=(0, 0, 0.05), velocity=(0, 0, A * omega)),
        Body("floor", Plane(), motion=lambda t: jnp.array([0.0, 0.0, A * jnp.sin(omega * t)])),
        Contact("box", "floor"),
    )
    sol = scene.simulate(t1=0.02, rtol=1e-10, atol=1e-12)
    left = next(e.t for e in sol.events if e.kind == "lift-off")
    assert left == pytest.approx(math.asin(G / (A * omega**2)) / omega, abs=1e-9)
    assert sol["floor"].position[-1, 2] == pytest.approx(A * math.sin(omega * 0.02))
    assert sol["floor"].velocity[0, 2] == pytest.approx(A * omega)


def test_a_belt_takes_a_box_along():
    scene = Scene(
        Body("box", Box(0.2, 0.1, 0.1), mass=1.0, at=(0, 0, 0.05)),
        Body("belt", Plane(speed=0.5), fixed=True), Contact("box", "belt", mu=0.2),
    )  # fmt: skip
    sol = scene.simulate(ss.Rattle(), t1=0.5, dt=5e-3)
    assert sol["box"].velocity[-1] == pytest.approx([0.5, 0, 0], abs=1e-9)
    t = 0.5 / (0.2 * G)
    assert sol["box"].position[-1, 0] == pytest.approx(0.5 * (0.5 - t / 2), abs=1e-3)


def test_what_stands_on_a_prescribed_body_feels_its_acceleration():
    """A pendulum whose pivot is accelerated sideways at g hangs at 45 degrees."""
    scene = Scene(
        Body("cart", motion=lambda t: jnp.array([0.5 * G * t * t, 0.0, 0.0])),
        Body(
            "arm",
            mass=1.0,
            centre=(0, 0, -0.5),
            inertia=(0.01, 0.01, 0.01),
            parent="cart",
            joint=Hinge("hip", (0, 1, 0)),
        ),
    ).replace("hip", angle=math.pi / 4)
    sol = scene.simulate(ss.RadauIIA(2), t1=0.5, dt=1e-2)
    assert np.abs(sol["hip"].angle - math.pi / 4).max() < 1e-10
    driven = (
        Scene(pendulum(), Prescribed("hip", lambda t: 0.3 * t))
        .replace("hip", rate=0.3)
        .simulate(ss.Rattle(), t1=0.5, dt=1e-2)
    )
    assert driven["hip"].angle == pytest.approx(0.3 * driven.t, abs=1e-12)


# ---- contact rules, and a box


def test_later_rules_replace_earlier_ones_and_what_is_not_named_does_not_touch():
    balls = [Body(f"ball {i}", Ball(0.1), at=(i, 0, 1)) for i in range(3)]
    system, _, _ = Scene(
        *balls, FLOOR, Contact("ball *", "floor", e_N=0.5), Contact("floor", "ball 1", e_N=0.9)
    ).compile()
    assert system.contacts == ("ball 0 floor", "ball 2 floor", "ball 1 floor")
    assert [float(law.e_N) for law in system.laws] == [0.5, 0.5, 0.9]
    system, _, _ = Scene(*balls, FLOOR, Contact("*", "floor"), NoContact("ball 0", "*")).compile()
    assert system.contacts == ("ball 1 floor", "ball 2 floor")
    system, _, _ = Scene(*balls, FLOOR, Contact(("ball 0", "ball 2"), "floor")).compile()
    assert system.contacts == ("ball 0 floor", "ball 2 floor")
    assert Scene(*balls, FLOOR).compile()[0].contacts == ()


def test_a_start_inside_a_plane_is_refused_and_place_lifts_it_out():
    inside = Scene(
        Body("a", Ball(0.1), at=(0, 0, 0.03)), Body("b", Ball(0.2), parent="a", at=(0, 0, -0.1), joint=Hinge("h", (0, 1, 0))),
        FLOOR, Contact("*", "floor"),
    )  # fmt: skip
    with pytest.raises(SceneError, match=r"'b' starts 0\.27 m inside 'floor'"):
        inside.simulate(ss.Rattle(), t1=0.1, dt=1e-2)
    placed = inside.place("a", on="floor")
    system, q0, _ = placed.compile()
    assert np.min(system.g_N(0.0, jnp.asarray(q0))) == pytest.approx(0.0, abs=1e-14)
    placed.simulate(ss.Rattle(), t1=0.02, dt=1e-2)


def test_a_box_thrown_on_a_floor_with_fixed_steps_obeys_all_laws_and_comes_to_rest():
    sol = measured.thrown().simulate(ss.Rattle(), t1=2.0, dt=2e-3)
    assert measured.corners_below(sol) > -1e-12
    still = np.abs(sol.u).max(axis=1) < 1e-12
    assert still[-1]
    assert np.all(still[np.argmax(still) :])
    weight = sol["box", "floor"].force[-1]
    assert weight == pytest.approx([0, 0, 2 * G], abs=1e-9)


@pytest.mark.slow
def test_a_box_thrown_on_a_floor_with_tolerances_neither_penetrates_nor_gains_energy():
    sol = measured.thrown().simulate(t1=1.2, rtol=1e-8, atol=1e-8)
    assert measured.corners_below(sol) >= -1e-7
    assert sol.stats.smallest_gap >= -1e-7
    energy = sol.energy()
    assert np.diff(energy).max() <= 1e-7 * energy[0]


def test_units_and_the_order_of_things_do_not_matter():
    """Until it lies on four corners: how they share friction then is not unique."""

    def thrown(length=1.0, mass=1.0, flip=False):
        box = Body(
            "box",
            Box(0.4 * length, 0.3 * length, 0.2 * length),
            mass=mass,
            at=(0, 0, 0.3 * length),
            spin=(1, 3, 2),
        )
        floor = Body("floor", Plane(), fixed=True)
        things = (box, floor, Contact("floor", "box", e_N=0.3, mu=0.4))
        return Scene(*(things[::-1] if flip else things), gravity=G * length)

    first = thrown().simulate(ss.Rattle(), t1=0.38, dt=2e-3)
    assert (first.P_N > 0).any(axis=1).sum() > 5  # it hits the floor
    for other, length in (
        (thrown(1e6), 1e6),
        (thrown(1e-6), 1e-6),
        (thrown(mass=1e6), 1.0),
        (thrown(flip=True), 1.0),
    ):
        sol = other.simulate(ss.Rattle(), t1=0.38, dt=2e-3)
        assert sol["box"].position / length == pytest.approx(first["box"].position, abs=1e-9)


# ---- by name, in batches, in files, on pages


NEWTON = ss.Rattle(solver=ss.SemismoothNewton())  # inside of tracing all ways of a solver are compiled


def test_a_mass_goes_through_vmap_and_derivatives():
    """v after a push J is J/m."""
    scene = Scene(Body("box", Box(0.1, 0.1, 0.1), mass=2.0), Force("box", (1.0, 0, 0)), gravity=0.0)

    def speed(mass):
        return scene.replace("box", mass=mass).simulate(NEWTON, t1=0.5, dt=1e-2)["box"].velocity[-1, 0]

    masses = jnp.array([1.0, 2.0, 4.0])
    assert np.asarray(jax.vmap(speed)(masses)) == pytest.approx(0.5 / np.asarray(masses))
    assert float(jax.jacfwd(speed)(2.0)) == pytest.approx(-0.5 / 4.0)
    assert float(jax.grad(speed)(2.0)) == pytest.approx(-0.5 / 4.0)


def test_sizes_and_laws_go_through_derivatives():
    """A ball that spins on the spot slips with mu g: its spin falls by 5 mu g t/(2 r)."""

    def spin(r, mu):
        scene = Scene(
            Body("ball", Ball(r), mass=1.0, at=(0, 0, r), spin=(0, 90.0, 0)),
            FLOOR,
            Contact("ball", "floor", mu=mu),
        )
        return scene.simulate(NEWTON, t1=0.1, dt=1e-2)["ball"].spin[-1, 1]

    def exact(r, mu):
        return 90.0 - 5 * mu * G * 0.1 / (2 * r)

    here = (0.1, 0.2)
    by_r, by_mu = jax.jit(jax.jacfwd(lambda x: spin(*x)))(jnp.array(here))
    assert float(spin(*here)) == pytest.approx(exact(*here), abs=1e-9)
    assert float(by_r) == pytest.approx(float(jax.grad(exact, 0)(*here)), rel=1e-9)
    assert float(by_mu) == pytest.approx(float(jax.grad(exact, 1)(*here)), rel=1e-9)


def test_solutions_know_names_also_in_batches_xarray_and_files(tmp_path):
    scene = Scene(
        Body("ball", Ball(0.1), mass=1.0, at=(0, 0, 0.1), velocity=(1, 0, 0)),
        FLOOR,
        Contact("ball", "floor", mu=0.3),
    )
    sol = scene.simulate(ss.Rattle(), t1=0.2, dt=1e-2)
    assert sol["ball"].position == pytest.approx(sol.q[:, :3])
    assert sol["ball"].spin == pytest.approx(sol.u[:, 3:])
    assert sol["ball"].energy == pytest.approx(sol.energy())
    assert sol["ball", "floor"].P_N.sum() == pytest.approx(G * 0.2)
    assert sol["ball", "floor"].force[5] == pytest.approx([-0.3 * G, 0, G])
    for name, said in (
        ("bal", "did you mean 'ball'"),
        (("ball", "wall"), "no contact between 'ball' and 'wall'"),
    ):
        with pytest.raises(KeyError, match=said):
            sol[name]
    with pytest.raises(AttributeError, match="'ball' has no colour: it has position"):
        _ = sol["ball"].colour
    batch = jax.vmap(lambda v: scene.replace("ball", velocity=v).simulate(NEWTON, t1=0.1, dt=1e-2))(
        jnp.eye(3)[:2]
    )
    assert batch["ball"].position.shape == (2, 11, 3)
    data = sol.to_xarray()
    assert data["body_position"].sel(body="ball", axis="x").values == pytest.approx(sol.q[:, 0])
    assert data["P_N"].sel(contact="ball floor").values == pytest.approx(sol.P_N[:, 0])
    sol.save(tmp_path / "run.nc")
    again = ss.load(tmp_path / "run.nc")
    assert type(again.system) is type(sol.system)
    assert again["ball"].velocity == pytest.approx(sol["ball"].velocity)


def test_a_file_of_a_scene_with_functions_has_its_bodies(tmp_path):
    scene = Scene(Body("ball", Ball(0.1), mass=1.0), Force("ball", lambda t, state: jnp.array([t, 0.0, 0.0])))
    sol = scene.simulate(ss.Rattle(), t1=0.1, dt=1e-2)
    sol.save(tmp_path / "run.nc")
    again = ss.load(tmp_path / "run.nc")
    assert again["ball"].position == pytest.approx(sol["ball"].position)
    with pytest.raises(KeyError, match="ball"):
        again["bal"]


def test_a_scene_and_a_run_become_pages(tmp_path):
    scene = measured.thrown()
    scene.show(tmp_path / "scene.html")
    sol = scene.simulate(ss.Rattle(), t1=0.4, dt=5e-3)
    page = sol.animate(tmp_path / "run.html", title="thrown").html()
    assert (tmp_path / "run.html").stat().st_size < 400_000
    assert "thrown" in page
    assert "box floor 1" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    picture = sol.animate().picture()
    assert picture.parts[0].vertices.shape == (8, 3)
    assert picture.forces.shape[1:] == (4, 3)
    assert np.isfinite(picture.forces).all()


@pytest.mark.parametrize("planar", [False, True])
def test_meshes_are_as_large_as_their_shapes(planar):
    from stickslip.scene.picture import mesh

    sizes: list = [(Ball(0.5), (1, 1, 1)), (Capsule(0.2, 1.0, axis=(1, 0, 0)), (1.4, 0.4, 0.4))]
    flat, solid = (
        [(Box(1, 2), (1, 2, 0))],
        [(Box(1, 2, 3), (1, 2, 3)), (Cylinder(0.5, 2), (1, 1, 2)), (Disc(0.5), (1, 1, 0))],
    )
    for shape, size in sizes + (flat if planar else solid):
        vertices, triangles = mesh(shape, planar)
        n = 2 if planar else 3
        assert np.ptp(vertices, axis=0)[:n] == pytest.approx(size[:n], abs=0.03)
        a, b, c = (vertices[triangles[:, i]] for i in range(3))
        volume = np.einsum("ij,ij->i", np.cross(a, b), c).sum() / 6
        assert volume > 0  # seen from outside, all triangles turn the same way


# ---- the gallery

GALLERY = Path(__file__).parents[1] / "examples/scenes"


@pytest.mark.parametrize("name", sorted(path.stem for path in GALLERY.glob("*.py")))
def test_a_scene_of_the_gallery_is_short_and_starts_outside_of_everything(name):
    if name == "ant":
        pytest.importorskip("mujoco")
        pytest.importorskip("gymnasium")
    path = GALLERY / f"{name}.py"
    assert len(path.read_text().splitlines()) <= 40
    scene = runpy.run_path(str(path), run_name="looked at")["scene"]
    system, q0, u0 = scene.compile()
    gaps, h = jax.jit(lambda q, u: (system.g_N(0.0, q), system.h(0.0, q, u)))(
        jnp.asarray(q0), jnp.asarray(u0)
    )
    assert np.min(gaps) > -1e-9
    assert np.isfinite(np.asarray(h)).all()
    assert "canvas" in scene.show().html()


@pytest.mark.long_runs
def test_an_escapement_ticks_as_its_pendulum_swings():
    out = runpy.run_path(str(GALLERY / "escapement.py"), run_name="looked at")
    scene, period = out["scene"], out["period"]

    def beat(scene):
        """Mean time between passages through the middle; the wheel has gone on by half a tooth in each."""
        sol = scene.simulate("rattle", t1=3.0, dt=1e-3)
        swing, t = sol["suspension"].angle, sol.t
        k = np.flatnonzero(np.diff(np.sign(swing)))
        through = t[k] - swing[k] * (t[k + 1] - t[k]) / (swing[k + 1] - swing[k])
        went = -np.diff(sol["arbor"].angle[k]) / (0.5 * out["pitch"])
        # it goes by the instant, not by the beat, in which the wheel is seen
        assert went == pytest.approx(1.0, abs=0.35)
        assert went.sum() == pytest.approx(len(k) - 1, abs=0.35)
        return np.diff(through)[: 2 * ((len(k) - 1) // 2)].mean()  # to and fro may differ

    # however it is driven
    assert beat(scene.replace("weight", control=-0.02)) == pytest.approx(0.5 * period, rel=1e-2)
    # the control: another pendulum
    slower = np.sqrt((out["length"] ** 2 + 0.05) / (out["length"] ** 2 + out["inertia"]))
    assert beat(scene.replace("pendulum", inertia=0.05)) == pytest.approx(0.5 * period * slower, rel=2e-2)


@pytest.mark.long_runs
def test_a_gripper_holds_by_friction_what_friction_can_hold():
    out = runpy.run_path(str(GALLERY / "gripper.py"), run_name="looked at")

    def carried(scene, t1):
        """How high it was lifted, how far it slipped between the fingers on its way, and where it ended."""
        sol = scene.simulate("rattle", t1=t1, dt=1e-3)
        way = (sol.t > 0.2) & (sol.t < 1.7)
        box, hand = sol["box"].position, sol["hand"].position
        return np.ptp(box[:, 1]), np.ptp((box - hand)[way], axis=0).max(), box[-1]

    lifted, slip, end = carried(out["scene"], 2.3)
    assert lifted == pytest.approx(0.1, abs=1e-9)
    assert slip < 1e-9
    assert end == pytest.approx([0.2, 0.05], abs=1e-9)
    # the control: 2 mu squeeze is less than its weight
    lifted, slip, _ = carried(out["scene"].replace("box", mass=3.5), 0.8)
    assert lifted < 1e-3
    assert slip > 0.09


class Ways(ss.Automatic):
    """All of Newton's ways from the start."""

    def first_try(self):
        return self

    crowded_try = first_try


def test_a_root_far_away_is_no_solution():
    """Of a step of the walker: guesses from afar lead to |u| = 2e4, where M - dt/2 h_u has changed its sign."""
    system, _, _ = runpy.run_path(str(GALLERY / "walker_on_a_shaking_floor.py"), run_name="looked at")[
        "scene"
    ].compile()
    q = [0.05292291305453385, 1.01066402096625, -0.06780805948342922, -1.1886417375866452, -0.3873963539321996,
         -1.4085306392535375, -0.4109843851513305]  # fmt: skip
    u = [0.3053636090217277, -0.1872114368015958, -0.20153333844684332, -2.2627901509331325, -0.3358351216396541,
         2.1297939848719807, 0.2621268718600334]  # fmt: skip
    options = {"t0": 0.246, "t1": 0.2465, "dt": 5e-4, "throw": False}
    sol = ss.simulate(system, ss.Rattle(solver=Ways(ways=4)), q, u, **options)
    assert sol.t[-1] == 0.2465
    assert np.abs(sol.u[-1]).max() < 10.0
    assert sol.P_N[-1, 0] > 1.0  # a foot lands
