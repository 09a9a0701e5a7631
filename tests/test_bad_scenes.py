"""What is wrong with a scene or a file is said in one sentence, with the name of the thing and the value."""

import math

import numpy as np
import pytest

import stickslip as ss
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
    Ellipsoid,
    Force,
    Free,
    Hinge,
    Hull,
    Motor,
    NoContact,
    Plane,
    Prescribed,
    Rod,
    Scene,
    SceneError,
    Slider,
    Spring,
    Universal,
)

BOX = Body("box", Box(0.4, 0.3, 0.2), at=(0, 0, 1))
FLOOR = Body("floor", Plane(), fixed=True)
ARM = Body("arm", Capsule(0.02, 0.3), parent="world", joint=Hinge("hip", (0, 1, 0)))
TILTED = np.array([[1.0, 0.2, 0], [0, 1, 0], [0, 0, 1]])


def scene(*things, **options):
    return lambda: Scene(*things, **options)


BAD = {  # what is wrong: (how it is made, what is said)
    "two bodies of one name": (scene(BOX, BOX), "body 'box': there is another body of that name"),
    "a joint with the name of a body": (scene(BOX, Body("arm", Ball(0.1), parent="box", joint=Hinge("box"))), "joint 'box'"),
    "a motor with the name of a joint": (scene(ARM, Motor("hip", "hip")), "motor 'hip': there is another joint"),
    "a body without a name": (scene(Body("", Ball(0.1))), "its first argument is its name, got ''"),
    "a shape in the place of a name": (scene(Body(Ball(0.1))), "its first argument is its name"),
    "a name that is a pattern": (scene(Body("wheel*", Ball(0.1))), "'wheel*': * ? [ ] are for patterns"),
    "a body called world": (scene(Body("world", Ball(0.1))), "'world': that name is taken"),
    "a negative radius": (scene(Body("ball", Ball(-0.1))), "body 'ball', Ball(-0.1): radius must be positive, got -0.1"),
    "a radius that is nan": (scene(Body("ball", Ball(math.nan))), "'ball', Ball(nan): radius must be positive, got nan"),
    "a length of zero": (scene(Body("leg", Capsule(0.1, 0.0))), "'leg', Capsule(0.1, 0): length must be positive, got 0"),
    "a box of two edges in space": (scene(Body("box", Box(1, 2))), "'box', Box(1, 2): in space a box has three edges"),
    "a semi-axis of zero": (scene(Body("egg", Ellipsoid(1, 0, 1))), "'egg', Ellipsoid(1, 0, 1): y must be positive, got 0"),
    "an ellipsoid in the plane": (scene(Body("egg", Ellipsoid(1, 1, 1)), planar=True), "'egg': a planar scene has no ellipsoids"),
    "an axis of zero": (scene(Body("coin", Disc(0.1, axis=(0, 0, 0)))), "'coin', Disc(0.1): axis must not be zero"),
    "a shape at nowhere": (scene(Body("b", Ball(1, at=(0, math.inf, 0)))), "at must be finite, got [0.0, inf, 0.0]"),
    "a shape at four numbers": (scene(Body("b", Ball(1, at=(0, 0, 0, 0)))), "at must have 3 or 2 numbers, got shape (4,)"),
    "a hull of three points": (scene(Body("h", Hull(np.eye(3)))), "'h', Hull of 3 points: a hull needs at least 4 points"),
    "a flat hull": (scene(Body("h", Hull([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]))), "all points lie in one plane"),
    "a hull with nan": (scene(Body("h", Hull(np.full((5, 3), np.nan)))), "'h', Hull of 5 points: points must be finite"),
    "a normal of zero": (scene(BOX, Body("floor", Plane((0, 0, 0)), fixed=True)), "'floor', Plane([0.0, 0.0, 0.0]): normal"),
    "a negative mass": (scene(Body("box", Box(1, 1, 1), mass=-2)), "body 'box': mass must be positive, got -2"),
    "a free body of no mass": (scene(Body("box", Box(1, 1, 1), mass=0)), "body 'box': mass must be positive, got 0"),
    "a negative density": (scene(Body("box", Box(1, 1, 1), density=-1)), "body 'box': density must be positive, got -1"),
    "a mass in words": (scene(Body("box", Box(1, 1, 1), mass="two")), "body 'box': mass must be a number, got 'two'"),
    "an inertia of no body": (scene(Body("b", Ball(1), inertia=(1, 1, 3))), "'b': no body has the inertia [1.0, 1.0, 3.0]"),
    "an inertia that is not symmetric": (scene(Body("b", Ball(1), inertia=TILTED)), "'b': inertia must be symmetric"),
    "an inertia of two numbers": (scene(Body("b", Ball(1), inertia=(1, 1))), "'b': inertia must be three principal moments"),
    "a rotation of zero": (scene(Body("b", Ball(1), rotation=(0, 0, 0, 0))), "'b': rotation must be a quaternion"),
    "a rotation by angles": (scene(Body("b", Ball(1), rotation=(0, 0, 1))), "'b': rotation must have 4 numbers, got shape (3,)"),
    "a velocity of two numbers": (scene(Body("b", Ball(1), velocity=(1, 2))), "'b': velocity must have 3 numbers, got shape (2,)"),
    "a spin in space in the plane": (scene(Body("b", Ball(1), spin=(0, 0, 1)), planar=True), "'b': in a planar scene spin is a number"),
    "fixed, with a joint": (scene(Body("b", Ball(1), fixed=True, joint=Hinge())), "'b': fixed=True and joint exclude each other"),
    "a joint, with a velocity": (scene(Body("b", Ball(1), joint=Hinge(), velocity=(1, 0, 0))), "'b': velocity and spin are those of a free"),
    "a motion that is no function": (scene(BOX, Body("f", Plane(), motion=3.0)), "'f': motion must be a function of t, got 3.0"),
    "a body in the place of a shape": (scene(Body("b", BOX)), "is not a shape such as Ball(0.1)"),
    "a class in the place of a body": (scene(Ball), "Scene: Ball is a class: give Ball(...)"),
    "a shape in the place of a body": (scene(BOX, Ball(0.1)), "is nothing that a scene has"),
    "nothing": (scene(), "Scene: there is no body in it"),
    "an unknown parent": (scene(Body("arm", Ball(1), parent="torsoo"), Body("torso", Ball(1))), "body 'arm': unknown parent 'torsoo'; did you mean 'torso'"),
    "its own parent": (scene(Body("arm", Ball(1), parent="arm")), "body 'arm': it is its own parent"),
    "a cycle": (scene(Body("a", Ball(1), parent="b"), Body("b", Ball(1), parent="a")), "body 'a': its parent 'b' comes later"),
    "a free joint on a parent": (scene(BOX, Body("b", Ball(1), parent="box", joint=Free())), "'b': a free joint is that of a body without a parent"),
    "a plane that weighs nothing": (scene(BOX, Body("floor", Plane())), "body 'floor', Plane([0.0, 0.0, 1.0]): a plane weighs nothing"),
    "a hinge without an axis": (scene(Body("b", Ball(1), joint=Hinge("hip", (0, 0, 0)))), "joint 'hip': axis must not be zero"),
    "a hinge out of the plane": (scene(Body("b", Ball(1), joint=Hinge("hip", (0, 1, 0))), planar=True), "joint 'hip': in a planar scene a hinge turns about z"),
    "limits the wrong way round": (scene(Body("b", Ball(1), joint=Slider("s", limits=(1, -1)))), "joint 's': limits must be (lower, upper) with lower < upper, got (1.0, -1.0)"),
    "restitution above one": (scene(Body("b", Ball(1), joint=Hinge("h", limits=(0, 1), e_N=2))), "joint 'h': e_N must be between 0 and 1, got 2"),
    "negative damping": (scene(Body("b", Ball(1), joint=Hinge("h", damping=-1))), "joint 'h': damping must not be negative, got -1"),
    "negative joint friction": (scene(Body("b", Ball(1), joint=Hinge("h", friction=-1))), "joint 'h': friction must not be negative, got -1"),
    "parallel axes": (scene(Body("b", Ball(1), joint=Universal("u", ((1, 0, 0), (2, 0, 0))))), "joint 'u': axes must not be parallel"),
    "a ball joint in the plane": (scene(Body("b", Ball(1), joint=BallJoint("j")), planar=True), "joint 'j': a planar scene has no ball joints"),
    "a limit beyond pi": (scene(Body("b", Ball(1), joint=BallJoint("j", limit=4))), "joint 'j': limit must be an angle between 0 and pi, got 4"),
    "a rule for nobody": (scene(BOX, FLOOR, Contact("boxx", "floor")), "Contact('boxx', 'floor'): unknown body or shape 'boxx'; did you mean 'box'"),
    "a pattern for nobody": (scene(BOX, FLOOR, Contact("wheel*", "floor")), "unknown body or shape 'wheel*'"),
    "a rule of planes alone": (scene(BOX, Body("a", Plane(), fixed=True), Body("b", Plane(), fixed=True), Contact("a", "b")), "Contact('a', 'b'): planes do not meet each other"),
    "a rule for a body without shapes": (scene(BOX, Body("p", mass=1, inertia=(1, 1, 1)), FLOOR, Contact("p", "floor")), "body 'p' has no shape"),
    "a negative mu": (scene(BOX, FLOOR, Contact("box", "floor", mu=-0.1)), "Contact('box', 'floor'): Coulomb(mu=-0.1)"),
    "e_N above one": (scene(BOX, FLOOR, Contact("box", "floor", e_N=1.5)), "Contact('box', 'floor'): Contact(e_N=1.5)"),
    "mu and friction": (scene(BOX, FLOOR, Contact("box", "floor", mu=0.1, friction=ss.Pivoting(1.0))), "mu is Coulomb friction already"),
    "planar friction in space": (scene(BOX, FLOOR, Contact("box", "floor", friction=ss.Coulomb(0.1))), "in space Coulomb has two velocities: Coulomb(..., dim=2)"),
    "spatial friction in the plane": (scene(Body("b", Ball(1)), FLOOR, Contact("b", "floor", friction=ss.Coulomb(0.1, dim=2)), planar=True), "Coulomb acts in space"),
    "a rule of NoContact for nobody": (scene(BOX, FLOOR, NoContact("bx", "floor")), "NoContact('bx', 'floor'): unknown body or shape 'bx'"),
    "a motor for no joint": (scene(ARM, Motor("m", "hipp")), "Motor('m'): unknown joint 'hipp'; did you mean 'hip'"),
    "motor limits the wrong way round": (scene(ARM, Motor("m", "hip", limits=(1, 0))), "motor 'm': limits must be (lower, upper)"),
    "a control in words": (scene(ARM, Motor("m", "hip", "full")), "motor 'm': control must be a number, got 'full'"),
    "a spring to nobody": (scene(BOX, Spring("box", "wall", stiffness=1)), "Spring('box', 'wall'): unknown body 'wall'"),
    "a spring from a body to itself": (scene(BOX, Spring("box", "box")), "Spring('box', 'box'): it is between two bodies"),
    "a stiffness that is nan": (scene(BOX, Spring("box", "world", stiffness=math.nan)), "stiffness must be finite, got nan"),
    "a force on nobody": (scene(BOX, Force("bax", (1, 0, 0))), "Force('bax'): unknown body 'bax'"),
    "a force of nothing": (scene(BOX, Force("box")), "Force('box'): give a force, a torque or both"),
    "a rod of no length": (scene(BOX, Rod("box", "world", length=0.0)), "Rod('box', 'world'): length must be positive, got 0"),
    "a loop to nobody": (scene(BOX, Connect("box", "rod")), "Connect('box', 'rod'): unknown body 'rod'"),
    "a coupling of nothing": (scene(ARM, Coupling("hip", "knee")), "Coupling('hip'): unknown joint 'knee'"),
    "a motion of a joint that is a number": (scene(ARM, Prescribed("hip", 3.0)), "Prescribed('hip'): motion must be a function of t, got 3.0"),
    "gravity in words": (scene(BOX, gravity="down"), "gravity"),
    "gravity of two numbers in space": (scene(BOX, gravity=(0, -1)), "gravity must have 3 numbers, got shape (2,)"),
    "no mass and no shapes": (lambda: Scene(Body("p")).compile(), "body 'p': it has no mass: give it one, or shapes"),
    "nothing that moves": (lambda: Scene(FLOOR).simulate(ss.Rattle(), t1=1, dt=0.1), "nothing in it can move"),
    "a start inside the floor": (lambda: Scene(Body("box", Box(1, 1, 1), at=(0, 0, 0.3)), FLOOR, Contact("box", "floor")).simulate(ss.Rattle(), t1=1, dt=0.1), "body 'box' starts 0.2 m inside 'floor'"),
    "a start beyond a limit": (lambda: Scene(Body("b", Ball(1), at=(0, 0, 2), joint=Hinge("h", limits=(0, 1), angle=1.5))).simulate(ss.Rattle(), t1=1, dt=0.1), "joint 'h': it starts at 1.5, beyond its limit by 0.5"),
    "another name in replace": (lambda: Scene(BOX).replace("bax", mass=1.0), "unknown name 'bax'; did you mean 'box'"),
    "another field in replace": (lambda: Scene(BOX).replace("box", weight=1.0), "unknown field of a Body 'weight'"),
    "a negative mass in replace": (lambda: Scene(BOX).replace("box", mass=-1.0), "body 'box': mass must be positive, got -1"),
    "place what is not free": (lambda: Scene(ARM, FLOOR, Contact("arm", "floor")).place("arm", on="floor"), "place('arm', on='floor'): 'arm' is not free"),
    "place what touches nothing": (lambda: Scene(BOX, FLOOR).place("box", on="floor"), "place('box', on='floor'): no contact rule"),
    "place on nobody": (lambda: Scene(BOX, FLOOR).place("box", on="flor"), "unknown body 'flor'; did you mean 'floor'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_scene_is_said_by_name_and_value(what):
    make, said = BAD[what]
    with pytest.raises((SceneError, TypeError)) as error:
        make()
    message = str(error.value)
    assert said in message, message
    assert "\n" not in message
    assert "Traceback" not in message


def test_there_are_sixty_kinds_and_good_scenes_pass():
    assert len(BAD) + len(BAD_FILES) >= 60
    for make in (
        scene(BOX, FLOOR, Contact("box", "floor", mu=0.3)),
        scene(ARM, Motor("m", "hip")),
        scene(Body("c", Cylinder(1, 2))),
    ):
        make().compile()


MUJOCO = "<mujoco><worldbody>{}</worldbody></mujoco>"
LINK = '<link name="{0}"><inertial><mass value="{1}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
JOINT = '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/></joint>'
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><mujoco model="&b;"/>'
BAD_FILES = {  # what is wrong: (name, content, what is said)
    "no XML": ("a.xml", "this is not XML", "a.xml"),
    "cut off": ("a.xml", "<mujoco><worldbody>", "a.xml"),
    "an entity bomb": ("a.xml", BOMB, "it defines entities"),
    "another root": ("a.xml", "<sdf/>", "its root is <sdf>"),
    "another suffix": ("a.stl", "solid", "a.stl: a scene is loaded from MJCF (.xml) or URDF (.urdf)"),
    "bytes": ("a.xml", b"\xff\xfe\x00", "it is not text in UTF-8"),
    "a negative mass": ("a.xml", MUJOCO.format('<body><freejoint/><geom size="1" mass="-1"/></body>'), "a.xml"),
    "an unknown element": ("a.xml", MUJOCO.format("<bodi/>"), "bodi"),
    "a missing mesh": ("a.xml", '<mujoco><asset><mesh name="m" file="gone.stl"/></asset></mujoco>', "gone.stl"),
    "two bodies of one name": ("a.xml", MUJOCO.format('<body name="b"/><body name="b"/>'), "b"),
    "a body that moves and weighs nothing": ("a.xml", MUJOCO.format("<body><freejoint/></body>"), "a.xml"),
    "URDF with a missing mesh": ("a.urdf", '<robot name="r"><link name="l"><collision><geometry><mesh filename="package://p/gone.stl"/></geometry></collision></link></robot>', "mesh 'package://p/gone.stl' was not found"),
    "URDF with a cycle": ("a.urdf", f'<robot name="r">{LINK.format("a", 1)}{LINK.format("b", 1)}{JOINT.format("i", "a", "b")}{JOINT.format("j", "b", "a")}</robot>', "are a cycle"),
    "URDF with two parents": ("a.urdf", f'<robot name="r">{"".join(LINK.format(x, 1) for x in "abc")}{JOINT.format("i", "a", "c")}{JOINT.format("j", "b", "c")}</robot>', "link 'c' has two parents"),
    "URDF with an unknown link": ("a.urdf", f'<robot name="r">{LINK.format("a", 1)}{JOINT.format("i", "a", "x")}</robot>', "joint 'i': its child 'x' is no link"),
    "URDF with a negative mass": ("a.urdf", f'<robot name="r">{LINK.format("a", -3)}</robot>', "link 'a': mass must not be negative, got -3"),
    "URDF with a link twice": ("a.urdf", f'<robot name="r">{LINK.format("a", 1) * 2}</robot>', "link 'a' is there twice"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_FILES)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(what, tmp_path):
    pytest.importorskip("mujoco")
    name, content, said = BAD_FILES[what]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SceneError) as error:
        Scene.load(path)
    message = str(error.value)
    assert said in message, message
    assert "\n" not in message


def test_a_file_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("mujoco")
    with pytest.raises(FileNotFoundError, match=r"gone\.xml"):
        Scene.load(tmp_path / "gone.xml")
