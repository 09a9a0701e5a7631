"""Shapes that meet each other: gaps against other codes and closed forms, and what they do in motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import curved
import meeting
import motion
import stickslip as ss
from stickslip.linalg import eliminate
from stickslip.scene import (
    Ball,
    Body,
    Box,
    Capsule,
    Contact,
    Cylinder,
    Disc,
    Ellipsoid,
    Hinge,
    Hole,
    Hull,
    Motor,
    NoContact,
    Plane,
    Prescribed,
    Scene,
    SceneError,
    SceneSystem,
    Slider,
    ellipsoids,
)  # fmt: skip
from stickslip.scene.solids import Solids
from stickslip.solvers import problem

SOME = [
    ("ball", "capsule"),
    ("ball", "box"),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
    ("hull", "hull"),
]
names = pytest.mark.parametrize(("first", "second"), SOME)


# ---- gaps
@names
def test_gaps_of_separated_shapes_are_distances(first, second):
    pytest.importorskip("mujoco")
    off, above, told, _ = meeting.gaps(first, second, poses=60)
    assert off < 1e-10
    assert above < 1e-10
    assert told > 10


def test_a_shape_that_is_a_micrometre_too_large_is_told_apart():
    pytest.importorskip("mujoco")
    assert meeting.gaps("ball", "box", poses=5, wrong=1e-6)[0] > 5e-7
    assert meeting.gaps("box", "box", poses=20, wrong=1e-6)[0] > 1e-7


@pytest.mark.parametrize(
    ("first", "second"), [("ball", "box"), ("capsule", "capsule"), ("box", "box"), ("hull", "hull")]
)
def test_penetration_is_that_of_brute_force(first, second):
    assert meeting.depth(first, second, poses=25) < 1e-7


@pytest.mark.parametrize(("first", "second"), [("ball", "box"), ("capsule", "capsule"), ("box", "box")])
def test_derivatives_are_those_of_differences(first, second):
    slope, curvature = meeting.derivatives(first, second, poses=4)
    assert slope < 1e-6
    assert curvature < 1e-5


def test_derivatives_that_leave_rotations_out_are_caught():
    assert meeting.derivatives("box", "box", poses=3, held=True)[0] > 1e-2


CURVED = [("ellipsoid", "needle"), ("ball", "needle"), ("ball", "cylinder"), ("ball", "disc")]


@pytest.mark.parametrize(("first", "second"), CURVED)
def test_gaps_of_ellipsoids_cylinders_and_discs(first, second):
    pytest.importorskip("mujoco")
    off, beyond, wide = curved.gaps(first, second, poses=60)
    assert off < 1e-10
    assert beyond < 1e-10 if wide == 0 else 1e-13
    assert wide < 5
    assert curved.depth(first, second, poses=6) < 1e-10
    assert curved.gaps(first, second, poses=5, wrong=1e-6)[0] > 1e-7, "a micrometre is seen"


def test_a_gap_between_ellipsoids_is_proven_by_its_own_normal_and_points():
    pytest.importorskip("mujoco")
    assert curved.certificate("ellipsoid", "needle", poses=20) < 1e-13


def test_derivatives_between_ellipsoids_are_those_of_differences(monkeypatch):
    slope, curvature = meeting.derivatives("ellipsoid", "needle", poses=4)
    assert slope < 1e-6
    assert curvature < 1e-5
    found = ellipsoids.normal
    monkeypatch.setattr(ellipsoids, "normal", lambda *pair: jax.lax.stop_gradient(found(*pair)))
    assert meeting.derivatives("ellipsoid", "needle", poses=2)[1] > 1e-2, "the normal turns, too"


def test_a_gap_between_ellipsoids_that_was_not_found_is_no_number(monkeypatch):
    monkeypatch.setattr(ellipsoids, "ITERATIONS", 1)
    pair = meeting.pair(meeting.kinds()["ellipsoid"][0], meeting.kinds()["needle"][0])
    gaps = jax.jit(lambda q: pair.g_N(0.0, q))(jnp.asarray(meeting.pose(np.random.default_rng(0), 0.4, 0.8)))
    assert np.isnan(gaps).all()


@pytest.mark.parametrize(
    ("first", "second"), [("disc", "polygon"), ("capsule", "box"), ("polygon", "polygon")]
)
def test_gaps_in_the_plane(first, second):
    off, above, inside, _ = meeting.flat_gaps(first, second, poses=40)
    assert max(off, above) < 1e-10
    assert inside < 1e-9


# ---- holes
@pytest.mark.parametrize("length", [0.0, 0.3])
def test_a_pin_in_a_hole_and_in_a_slot(length):
    pin = Body("pin", Disc(0.04), mass=1.0, at=(0.01, 0.0))
    plate = Body("plate", Hole(0.05, length, axis=(1, 0, 0)), fixed=True)
    system, _, _ = Scene(pin, plate, Contact("pin", "plate"), planar=True).compile()
    for x, y in ((0.003, -0.004), (0.2, 0.003)):
        along = max(abs(x) - 0.5 * length, 0.0)
        assert float(system.g_N(0.0, jnp.array([x, y, 0.3]))[0]) == pytest.approx(
            0.01 - np.hypot(along, y), abs=1e-15
        )


def test_a_pin_hangs_in_its_hole_and_swings():
    pin = Body("pin", Disc(0.04), mass=1.0, at=(0.008, 0.0))
    scene = Scene(pin, Body("plate", Hole(0.05), fixed=True), Contact("pin", "plate"), planar=True)
    sol = scene.simulate("rattle", t1=1.0, dt=1e-3)
    assert sol.g_N().min() > -1e-10
    assert np.diff(sol.energy()).max() < 1e-6
    assert sol["pin"].position[:, 1].min() < -0.009
    hangs = scene.replace("pin", at=(0.0, -0.01)).simulate("rattle", t1=1.0, dt=1e-3)
    assert hangs["pin", "plate"].P_N.sum() == pytest.approx(9.81, rel=1e-12)


# ---- in motion
def test_a_ball_that_meets_another_hands_on_its_velocity():
    scene = Scene(
        Body("a", Ball(0.1), mass=2.0, velocity=(1, 0, 0)), Body("b", Ball(0.1), mass=1.0, at=(0.3, 0, 0)),
        Contact("a", "b", e_N=0.5), gravity=0.0,
    )  # fmt: skip
    sol = scene.simulate("rattle", t1=0.3, dt=1e-3)
    v = 2.0 / 3.0  # of the centre of mass
    assert sol.u[-1, 0] == pytest.approx(v - 0.5 / 3.0, abs=1e-12)
    assert sol.u[-1, 6] == pytest.approx(v + 0.5 * 2.0 / 3.0, abs=1e-12)
    assert sol["a", "b"].P_N.sum() == pytest.approx(sol["b", "a"].P_N.sum())
    assert sol["a", "b"].force.sum(axis=0)[0] * 1e-3 == pytest.approx(-1.0, abs=1e-9), "on a, against x"


@pytest.fixture(scope="module")
def two():
    boxes = [
        Body(f"box{i}", Box(0.2, 0.2, 0.1), mass=1.0, at=(0.04 * i, 0, 0.05 + 0.1 * i)) for i in range(2)
    ]
    return Scene(
        *boxes,
        Body("floor", Plane(), fixed=True),
        Contact("box*", "floor", mu=0.5),
        Contact("box0", "box1", mu=0.5),
    )


def test_a_box_rests_on_another_that_it_does_not_cover(two):
    sol = two.simulate("rattle", t1=0.1, dt=1e-3)
    assert np.abs(sol.q - sol.q[0]).max() < 1e-12
    assert sol["box1", "box0"].P_N[1:].sum() == pytest.approx(0.981, rel=1e-6)
    assert np.count_nonzero(sol["box1", "box0"].P_N[-1] > 1e-9) >= 3


def test_a_box_beyond_the_edge_tips(two):
    tipping = two.replace("box1", at=(0.12, 0.0, 0.15))
    sol = tipping.simulate("rattle", t1=0.2, dt=1e-3)
    assert sol["box1"].position[-1, 2] < 0.149
    assert sol.g_N().min() > -1e-9


# ---- rules
def scene_of(*shapes, rule=None, **options):
    bodies = [Body(f"b{i}", s, mass=1.0, inertia=(1.0, 1.0, 1.0), at=(i, 0, 0)) for i, s in enumerate(shapes)]
    return Scene(*bodies, rule or Contact("b0", "b1"), **options)


def test_what_is_not_named_does_not_touch_and_later_rules_replace_earlier_ones():
    three = scene_of(Ball(0.1), Ball(0.1), Ball(0.1), rule=Contact("b*", "b*"))
    assert len(three.compile()[0].pairs) == 3
    assert len((three + NoContact("b0", "b*")).compile()[0].pairs) == 1
    assert len(scene_of(Ball(0.1), Ball(0.1), Ball(0.1)).compile()[0].pairs) == 1


def test_bodies_on_both_sides_of_a_joint_touch_only_by_name():
    arm = Body("arm", Capsule(0.1, 0.5), fixed=True)
    hand = Body("hand", Capsule(0.1, 0.5), parent="arm", joint=Hinge("wrist", (0, 1, 0)), at=(0, 0, 0.5))
    assert not Scene(arm, hand, Contact("*", "*")).compile()[0].pairs
    assert Scene(arm, hand, Contact("arm", "hand")).compile()[0].pairs


@pytest.mark.parametrize(("wrong", "said"), [
    (Cylinder(0.1, 0.2), "a Cylinder meets balls and planes"), (Disc(0.1), "a Disc meets balls and planes"),
    (Ellipsoid(0.1, 0.2, 0.3), "an Ellipsoid meets ellipsoids, balls and planes"),
])  # fmt: skip
def test_a_pair_that_cannot_be_had_is_refused_by_name(wrong, said):
    with pytest.raises(SceneError, match=f"'b0', 'b1'.*{said}"):
        scene_of(wrong, Box(1.0, 1.0, 1.0)).compile()


@pytest.mark.parametrize(
    ("first", "second"), [(Box(0.2, 0.2, 0.2), Ball(0.1)), (Capsule(0.1, 0.5), Capsule(0.1, 0.3))]
)
def test_normals_point_to_the_body_that_the_rule_names_first(first, second):
    for rule, sign in ((Contact("b0", "b1"), -1.0), (Contact("b1", "b0"), 1.0)):  # b1 is at x = 1
        system, q, u = scene_of(first, second, rule=rule).compile()
        u = np.where(np.arange(12) == 6, 1.0, u)  # and moves along x

        def seen(q, u, system=system):
            at = system.tree.poses(0.0, q)
            here = system.places(at)
            return here, system.meeting.motion(here, system.tree.velocities(system.tree.twists(0.0, at), u))

        here, motion = jax.tree.map(np.asarray, jax.jit(seen)(jnp.asarray(q), jnp.asarray(u)))
        near = here.gap < 1.0
        assert np.all(sign * here.frame[near, 0, 2] > 0.5)
        assert np.allclose(motion[:, 0], sign * here.frame[:, 0, 0], atol=1e-14), "relative to the other one"


def test_a_hole_takes_a_ball_alone():
    with pytest.raises(SceneError, match="what is in a hole is a Ball or a Disc"):
        scene_of(Hole(0.1), Box(0.1, 0.1, 0.1)).compile()


def test_a_start_inside_another_shape_is_refused_with_its_depth():
    with pytest.raises(SceneError, match=r"body 'b0' starts 0.2 m inside 'b1': move it"):
        scene_of(Ball(0.6), Ball(0.6)).simulate("rattle", t1=0.1, dt=1e-2)


def test_sizes_of_shapes_that_meet_are_parameters():
    balls = scene_of(Ball(0.1), Box(0.2, 0.2, 0.2))

    def gap(r):
        system, q0, _ = balls.replace("b1", at=(1.0 + r, 0, 0)).compile()
        return system.g_N(0.0, q0)[0]

    many, slopes = jax.jit(jax.vmap(jax.value_and_grad(gap)))(jnp.array([0.0, 0.1, 0.2]))
    assert np.asarray(slopes) == pytest.approx(1.0)
    assert np.allclose(many, [0.8, 0.9, 1.0], atol=1e-14)


@pytest.mark.parametrize("method", ["moreau", "radau2", "generalized-alpha", "lobatto2"])
def test_methods_know_shapes_that_meet(method):
    scene = Scene(
        Body("a", Ball(0.1), mass=1.0, at=(0.02, 0, 0.4), velocity=(0, 0, -1)),
        Body("b", Box(0.3, 0.3, 0.2), fixed=True), Contact("a", "b", mu=0.3, e_N=0.3),
    )  # fmt: skip
    sol = scene.simulate(method, t1=0.5, dt=2e-3)
    assert sol.g_N().min() > (-1e-2 if method == "moreau" else -1e-8)
    assert sol["a", "b"].P_N.sum() > 1.0


FILE = """<mujoco><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom name="ball" size="0.1" mass="1" {0}/></body>
  <body name="b"><geom name="box" type="box" size="0.2 0.2 0.2" {0}/></body>
  <body name="c" pos="2 0 1"><freejoint/><geom name="can" type="cylinder" size="0.1 0.2" mass="1" {0}/></body>
</worldbody>{1}</mujoco>"""


def loaded(folder, *words, **options):
    pytest.importorskip("mujoco")
    path = folder / "model.xml"
    path.write_text(FILE.format(*words))
    return Scene.load(path, **options)


def test_pairs_of_files_touch_where_they_are_wanted(tmp_path):
    scene = loaded(tmp_path, "", "")
    assert not scene.compile()[0].pairs
    assert any("3 pairs of shapes without a plane" in text for text in scene.ignored)
    scene = loaded(tmp_path, "", "", pairs=True)
    assert [pair[:2] for pair in scene.compile()[0].pairs] == [("a", "b"), ("a", "c")]
    assert sum("do not touch: a Cylinder meets balls and planes" in text for text in scene.ignored) == 1


def test_masks_exclusions_and_pairs_of_files_hold(tmp_path):
    assert not loaded(tmp_path, 'contype="0"', "", pairs=True).compile()[0].pairs
    excluded = '<contact><exclude body1="a" body2="b"/><exclude body1="a" body2="c"/></contact>'
    assert not loaded(tmp_path, "", excluded, pairs=True).compile()[0].pairs
    named = '<contact><pair geom1="ball" geom2="box" friction="0.7 0.7 0 0 0"/></contact>'
    system = loaded(tmp_path, 'contype="0" conaffinity="0"', named).compile()[0]
    assert len(system.pairs) == 1
    assert float(system.laws[0].friction[0].mu) == 0.7


def test_a_hull_that_is_a_box_is_a_box():
    corners = meeting.kinds()["box"][3]
    random = np.random.default_rng(0)
    poses = jnp.stack([jnp.asarray(meeting.pose(random, 0.3, 0.8)) for _ in range(10)])

    def distances(shape):
        pair = meeting.pair(shape, Box(0.3, 0.2, 0.5))
        return jax.jit(jax.vmap(lambda q: pair.g_N(0.0, q).min()))(poses)

    assert np.abs(distances(Hull(corners)) - distances(Box(0.4, 0.3, 0.2))).max() < 1e-14


# ---- fast bodies
@pytest.mark.parametrize("method", ["rattle", "moreau"])
def test_a_bullet_does_not_pass_a_thin_wall(method):
    sol = motion.bullet(method=method)
    assert sol["thrown"].position[:, 0].max() < (-2.5e-3 + 1e-9 if method == "rattle" else 0.1)
    assert sol.u[-1, 0] == pytest.approx(-20.0, abs=1e-9)


def test_a_bullet_beside_the_wall_is_not_touched():
    assert motion.bullet(beside=1e-3)["thrown", "wall"].P_N.sum() == 0.0


def test_a_bullet_passes_where_nobody_looks_at_whole_steps(broken):
    broken(SceneSystem, "_during", lambda self, *_: self)
    assert motion.bullet().u[-1, 0] == 100.0


@pytest.mark.parametrize(("first", "second"), [("box", "box"), ("capsule", "box"), ("capsule", "capsule")])
def test_what_hits_within_a_step_is_stopped_and_what_passes_beside_is_not(first, second):
    pytest.importorskip("mujoco")
    missed, held, hits, beside = motion.swept(first, second, ways=60)
    assert missed == held == 0
    assert min(hits, beside) > 5


def test_who_looks_at_the_end_alone_stops_nothing():
    pytest.importorskip("mujoco")
    missed, _, hits, _ = motion.swept("box", "box", ways=20, blind=True)
    assert missed == hits > 3


def test_a_ball_leaves_a_tables_edge_where_it_must():
    exact = (2.0 + 0.3**2 / (9.81 * 0.1)) / 3.0
    assert motion.over_the_edge(2e-3, speed=0.3) == pytest.approx(exact, abs=6e-3)


# ---- many contacts that share a load
def test_a_stack_stands_on_all_of_its_corners():
    sol = motion.stack(planar=True).simulate("rattle", t1=0.05, dt=1e-3)  # 76 rows
    assert np.abs(sol.q - sol.q[0]).max() < 1e-14
    assert sol.stats.newton_iterations.max() <= 1
    for below in range(9):
        weight = (9 - below) * 9.81e-3
        assert np.sort(sol[f"box{below + 1}", f"box{below}"].P_N[-1])[-2:] == pytest.approx(
            weight / 2, rel=1e-9
        )


def test_round_off_opens_corners_of_a_stack_where_touching_is_not_closed(broken):
    broken(problem, "TOUCHING", 0.0)
    newton = ss.Rattle(solver=ss.SemismoothNewton())
    sol = motion.stack(planar=True).simulate(newton, t1=0.01, dt=1e-3, throw=False)
    assert sol.result != ss.RESULTS.successful or sol.stats.newton_iterations.max() > 1


def test_a_singular_system_of_many_unknowns_has_its_smallest_solution():
    random = np.random.default_rng(0)
    W = random.standard_normal((40, 80))
    A, wanted = W.T @ W, random.standard_normal(80)
    factors = eliminate(jnp.asarray(A), jnp.ones(80, dtype=bool), 1e-11)
    smallest = np.linalg.pinv(W) @ W @ wanted
    assert np.allclose(factors.apply(jnp.asarray(A @ wanted)), smallest, atol=1e-8)
    assert np.allclose(factors.left_open(jnp.asarray(wanted)), wanted - smallest, atol=1e-8)
    regular = A + np.eye(80)
    factors = eliminate(jnp.asarray(regular), jnp.ones(80, dtype=bool), 1e-11)
    assert np.allclose(factors.apply(jnp.asarray(regular @ wanted)), wanted, atol=1e-9)
    assert not np.any(factors.left_open(jnp.asarray(wanted)))


# ---- what touches in a step
def gripped():
    """Two fingers squeeze a box; all of them stand on a table, corner beside corner,
    and the fingers are lifted.
    """
    fingers = [
        Body(
            name,
            Box(0.02, 0.12),
            mass=0.2,
            at=(-0.06 * way, -0.08),
            parent="hand",
            joint=Slider(name, (way, 0, 0)),
        )
        for name, way in (("left", 1), ("right", -1))
    ]
    return Scene(
        Body("hand", Box(0.3, 0.02), mass=1.0, at=(0, 0.14), parent="world", joint=Slider("lift", (0, 1, 0))),
        *fingers, Body("box", Box(0.1, 0.1), mass=1.0, at=(0, 0.05)), Body("table", Plane(), fixed=True),
        Prescribed("lift", lambda t: 0.3 * jnp.maximum(t - 0.05, 0.0) ** 2),
        Motor("from the left", "left", 5.0), Motor("from the right", "right", 5.0),
        Contact(("box", "left", "right"), "table", mu=0.5), Contact("box", ("left", "right"), mu=0.3),
        planar=True,
    )  # fmt: skip


def test_what_touches_in_the_plane_is_known_when_a_step_begins(monkeypatch):
    """A finger goes up beside the box: that its corner holds the load from now on is found in the step
    after.
    """

    def jump():
        system, q, u = gripped().compile()
        gaps = jax.jit(
            lambda up: system._during(0.0, jnp.asarray(q), jnp.asarray(u), 1e-3).g_N(0.0, jnp.asarray(q) + up)
        )
        up = np.zeros(len(q))
        up[0] = 1e-6
        return np.abs(np.asarray(gaps(up)) - np.asarray(gaps(0.0 * up))).max()

    assert jump() < 2e-6
    monkeypatch.setattr(Solids, "_kept", lambda *_: None)
    assert jump() > 0.01  # the control: chosen for every pose anew


def test_fingers_that_squeeze_a_standing_box_are_lifted(broken):
    """Unlike the box, which is too heavy for so little friction."""
    method = ss.Rattle(solver=ss.Automatic(ways=4))

    def lifted():
        return gripped().simulate(method, t1=0.06, dt=1e-3)

    sol = lifted()
    assert sol["hand"].position[-1, 1] == pytest.approx(0.14 + 0.3 * 0.01**2)
    assert np.abs(sol["box"].position - [0, 0.05]).max() < 1e-12
    for name in ("left", "right"):
        # it slides
        assert np.abs(sol["box", name].P_F.sum(axis=1)[-5:]) == pytest.approx(0.3 * 5e-3, rel=1e-9)
    broken(Solids, "_kept", lambda *_: None)
    with pytest.raises(ss.SimulationError, match=r"step 50 .* did not converge"):  # the control
        lifted()
