"""Balls on meshes and height fields: gaps against brute force and MuJoCo's contacts,
and what they do in motion.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surfaces
from stickslip.scene import Ball, Body, Box, Contact, HeightField, Mesh, Plane, Scene, SceneError, SceneSystem

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


@pytest.mark.parametrize("name", ["star", "block", "hills"])
def test_gaps_are_those_of_brute_force_over_all_triangles(name):
    off, inside, count = surfaces.gaps(name, poses=100)
    assert off < 1e-10
    assert inside < 1e-10
    assert count > 3
    assert surfaces.gaps(name, poses=5, wrong=1e-6)[0] > 5e-7, "a micrometre is seen"


def test_a_height_field_is_mujocos():
    pytest.importorskip("mujoco")
    assert surfaces.against_mujoco(50) < 1e-10
    assert surfaces.against_mujoco(20, turned=True) > 1e-3, "the other diagonals are another surface"


def test_derivatives_are_those_of_differences():
    slope, curvature = surfaces.derivatives("star", poses=6)
    assert slope < 1e-6
    assert curvature < 1e-5
    assert surfaces.derivatives("star", poses=3, held=True)[0] > 1e-2, "without rotations"


def on(shape, contacts=4, *rules, **body):
    ball = Body("ball", Ball(0.08), mass=1.0, **body)
    return Scene(Body("ground", shape, fixed=True), ball, *(rules or [Contact("ball", "ground")]))


def test_seams_of_a_flat_floor_are_nothing():
    """Wherever a ball is above it, on seams and corners too, one slot holds the floor,
    and the others nothing.
    """
    floor = HeightField(np.zeros((5, 5)), (4.0, 4.0))
    system, _, _ = on(floor, at=(0, 0, 9)).compile()
    found = jax.jit(lambda q: system.g_N(0.0, q))
    for x, y in ((0.3, 0.1), (0.0, 0.0), (0.5, 0.5), (1.0, 0.3), (-1.0, 1.0)):
        q = jnp.array([x, y, 0.1, 1.0, 0.0, 0.0, 0.0])
        gaps = np.sort(np.asarray(found(q)))
        assert gaps[0] == pytest.approx(0.02, abs=1e-15)
        assert gaps[1] > 1.0
    assert float(found(jnp.array([2.03, 0.0, 0.04, 1.0, 0, 0, 0])).min()) == pytest.approx(
        0.05 - 0.08, abs=1e-15
    )


def valley(slope, flat=False, contacts=2):
    return HeightField(
        np.tile([0.0 if flat else 2 * slope, 0.0, 2.0 * slope], (2, 1)), (4.0, 4.0), contacts=contacts
    )


def planes(angle):
    return [Plane(), Plane((-np.sin(angle), 0.0, np.cos(angle)))]


@pytest.fixture(scope="module")
def crossed():
    """A ball on the floor, over a seam and into a slope, on a field and on two planes."""
    start = {"at": (-0.1, 0.3, 0.08), "velocity": (1.5, 0.0, 0.0)}
    ground = valley(np.tan(0.1), flat=True), planes(0.1)
    return [on(shape, **start).simulate("rattle", t1=0.16, dt=2e-3) for shape in ground]


def test_a_ball_goes_through_a_valley_as_over_two_planes(crossed):
    field, plain = crossed
    assert plain.u[-1, 2] > 0.1, "it is on the slope"
    assert np.abs(field.q - plain.q).max() < 1e-12
    assert np.abs(field.u - plain.u).max() < 1e-12
    assert np.diff(field.energy()).max() < 1e-12


def test_a_memory_of_what_slots_held_before_is_caught(crossed, monkeypatch):
    """The control: forces of a step that begins along the normals of other contacts."""
    field, _ = crossed
    monkeypatch.setattr(SceneSystem, "_holding", None)
    ground = valley(np.tan(0.1), flat=True, contacts=3)  # another program
    forgetful = on(ground, at=(-0.1, 0.3, 0.08), velocity=(1.5, 0.0, 0.0)).simulate(
        "rattle", t1=0.16, dt=2e-3
    )
    assert np.abs(forgetful.u - field.u).max() > 1e-4
    assert np.diff(forgetful.energy()).max() > 1e-4


def test_a_ball_lies_in_a_valley_on_both_sides():
    sol = on(valley(1.0), at=(0.0, 0.3, 0.08 * np.sqrt(2.0))).simulate("rattle", t1=0.16, dt=2e-3)
    assert sol["ball", "ground"].P_N[-1] == pytest.approx([2e-3 * 9.81 / np.sqrt(2.0)] * 2, rel=1e-12)
    assert sol["ball", "ground"].force[-1] == pytest.approx([0.0, 0.0, 9.81], abs=1e-10)


# ---- what is refused
def ground(shape, **options):
    return lambda: on(shape, **options)


BAD = {
    "an open surface": (ground(Mesh(CORNERS, FACES[:3])),
                        "Mesh of 3 faces: it encloses nothing: the side of face"),
    "a face the wrong way round": (
        ground(Mesh(CORNERS, np.vstack([FACES[:3], FACES[3, ::-1]]))), "2 faces go from [0.0, 0.0, 0.0] to"),
    "a surface inside out": (ground(Mesh(CORNERS, FACES[:, ::-1])),
                             "Mesh of 4 faces: its faces are seen from inside"),
    "a face of no area": (
        ground(Mesh(np.vstack([CORNERS, [[2, 0, 0]]]), [*FACES.tolist(), [0, 1, 4]])), "face 4 has no area"),
    "a face without its point": (ground(Mesh(CORNERS, FACES + 1)), "faces must be numbers of points, 0 to 3"),
    "points that are not finite": (ground(Mesh(CORNERS * np.nan, FACES)), "points must be finite"),
    "points in the plane": (ground(Mesh(CORNERS[:, :2], FACES)), "points must be (n, 3), got (4, 2)"),
    "heights in a row": (ground(HeightField(np.zeros(4), (1, 1))), "heights must be (rows, columns)"),
    "a field of no size": (ground(HeightField(np.zeros((2, 2)), (1, 0))),
                           "size must be positive, got [1.0, 0.0]"),
    "a field of no depth": (ground(HeightField(np.zeros((2, 2)), (1, 1), depth=-1)),
                            "depth must be positive, got -1"),
    "no contacts": (ground(Mesh(CORNERS, FACES, contacts=0)),
                    "contacts must be an integer from 1 to 8, got 0"),
    "a mesh that falls": (
        lambda: Scene(Body("m", Mesh(CORNERS, FACES))),
        "body 'm', Mesh of 4 faces: a Mesh is that of a body that stands still"),
    "a field in the plane": (
        lambda: Scene(Body("h", HeightField(np.zeros((2, 2)), (1, 1)), fixed=True), planar=True),
        "a planar scene has none"),
    "a box on a mesh": (
        lambda: Scene(Body("m", Mesh(CORNERS, FACES), fixed=True), Body("b", Box(1, 1, 1)),
                      Contact("b", "m")).compile(),
        "Box(1, 1, 1) of 'b' on Mesh of 4 faces of 'm': a Mesh meets balls alone"),
    "a plane that falls on a mesh": (
        lambda: Scene(Body("m", Mesh(CORNERS, FACES), fixed=True), Body("b", Plane(), mass=1),
                      Contact("b", "m")).compile(),
        "Mesh of 4 faces of 'm' on Plane([0.0, 0.0, 1.0]) of 'b': a Mesh meets balls alone"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_surface_is_said_by_name(what):
    make, said = BAD[what]
    with pytest.raises(SceneError) as error:
        make()
    assert said in str(error.value), str(error.value)


def test_points_that_are_listed_again_for_every_triangle_are_one():
    several = Mesh(CORNERS[FACES].reshape(-1, 3), np.arange(12).reshape(4, 3))
    scene = on(several, at=(0, 0, 9))
    assert scene.compile()[0].picture.parts[0][3:] == (4, 4), "and it is drawn"


FILE = """<mujoco><asset>
<hfield name="h" nrow="2" ncol="3" size="1 1.5 0.4 0.2" elevation="0 0 1  0 1 0"/></asset>
<worldbody>
  <geom name="hills" type="hfield" hfield="h"/><geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
  <body name="ball" pos="0 0 2"><freejoint/><geom size="0.1" mass="1"/></body>
  <body name="box" pos="0 0 3"><freejoint/><geom name="cube" type="box" size="0.1 0.1 0.1" mass="1"/></body>
</worldbody></mujoco>"""


def test_height_fields_are_read_from_files(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text(FILE)
    scene = Scene.load(path, pairs=True)
    (field,) = [s for s in scene.bodies[0].shapes if isinstance(s, HeightField)]
    assert field.heights == pytest.approx(np.array([[0, 0.4, 0], [0, 0, 0.4]]), abs=1e-8)
    assert np.array_equal(field.size, [2.0, 3.0])
    assert field.triangles()[0][:, 2].min() == pytest.approx(-0.2)
    assert any("a HeightField meets balls alone" in text for text in scene.ignored)
    system, q, _ = scene.compile()
    on_hills = [k for k, pair in enumerate(system.pairs) if {"ball", "hills"} <= {*pair}]
    assert len(on_hills) == 4
    points, faces = field.triangles()
    exact = surfaces.distance(np.array([0.0, 0.0, 2.0]), points[faces]) - 0.1
    gaps = jax.jit(lambda q: system.g_N(0.0, q))(jnp.asarray(q))
    assert float(gaps[np.array(on_hills)].min()) == pytest.approx(exact, abs=1e-14)
