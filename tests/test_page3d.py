"""Rigid bodies as a page: what is sent is what was given, and a browser shows it,
whole and without a network.
"""

import base64
import dataclasses
import io
import re

import numpy as np
import pytest

import pictures
from browsing import Page
from stickslip import page3d
from stickslip.animation import FORCE
from stickslip.page3d import Ground, Lines, Panel, Part, Picture

HOSTILE = "</script><!--<script><img src=x onerror=alert(1)>\"'&{{ title }}"


@pytest.fixture(scope="module")
def boxes():
    return pictures.boxes()


def coded(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def unpacked(packed):
    whole = coded(packed["data"], "<u2").reshape(-1, packed["points"])
    return np.where(whole == 65535, np.nan, packed["low"] + packed["step"] * whole)


def one(**changes):
    """A picture of one box in three frames."""
    vertices, triangles = pictures.box(1.0, 1.0, 1.0)
    part = {"name": "box", "vertices": vertices, "triangles": triangles, "color": "#123456"}
    pose = {"position": np.eye(3), "rotation": pictures.about([0, 0, 1.0], [0.0, 1.0, 2.0])}
    known = set(part | pose) | {"edges", "marks"}
    given = part | pose | {k: v for k, v in changes.items() if k in known}
    rest = {"title": "one", "t": np.arange(3.0)} | {k: v for k, v in changes.items() if k not in known}
    return Picture(parts=(Part(**given),), **rest)


# ---- what is sent is what was given


def test_poses_are_sent_and_not_meshes(boxes):
    sent = page3d.payload(boxes)
    centre = None
    for given, part in zip(boxes.parts, sent["parts"], strict=True):
        position = coded(part["position"], "<f4").reshape(-1, 3)
        # all are sent from the same origin
        centre = given.position[0] - position[0] if centre is None else centre
        assert position + centre == pytest.approx(given.position, abs=1e-6)
        assert unpacked(part["rotation"]) == pytest.approx(given.rotation, abs=5e-5)
        vertices = coded(sent["shapes"][part["shape"]]["vertices"], "<f4").reshape(-1, 3)
        assert vertices == pytest.approx(given.vertices, abs=1e-7)


def test_ten_boxes_in_two_hundred_frames_are_small(boxes):
    size = len(page3d.page(boxes))
    assert size < 0.3e6  # Plotly alone is 4.8 MB
    longer = len(page3d.page(pictures.boxes(frames=400)))
    assert longer - size < 200 * 10 * 60 + 60_000  # poses, contacts, panels: no mesh for each frame


def test_equal_shapes_are_sent_once():
    picture = one()
    twins = dataclasses.replace(picture, parts=picture.parts * 3)
    sent = page3d.payload(twins)
    assert len(sent["shapes"]) == 1
    assert [p["shape"] for p in sent["parts"]] == [0, 0, 0]


def test_far_away_and_late_things_keep_their_digits():
    away = np.array([1e6, 0, 0])
    sent = page3d.payload(one(position=np.eye(3) * 1e-2 + away, t=1e5 + np.arange(3) * 1e-2))
    position = coded(sent["parts"][0]["position"], "<f4").reshape(-1, 3)
    assert position - position[0] == pytest.approx(np.eye(3) * 1e-2 - np.eye(3)[0] * 1e-2, abs=1e-6)
    assert np.diff(sent["t"]) == pytest.approx([1e-2, 1e-2], abs=1e-6)


@pytest.mark.parametrize(
    ("mesh", "edges", "octants"),
    [
        (pictures.box(1, 2, 3), 12, False),
        (pictures.ball(1.0), 0, True),
        (pictures.capsule(0.1, 1.0), 0, True),
        (pictures.revolved([[0, -1], [1, -1], [1, 1], [0, 1]], 32), 64, True),  # the two rims of a cylinder
    ],
)
def test_turning_is_seen_without_a_word(mesh, edges, octants):
    """Sharp edges, and two tones where it is round; who says what to draw gets just that."""
    sent = page3d.payload(one(vertices=mesh[0], triangles=mesh[1]))["shapes"][0]
    assert len(coded(sent["edges"], "<u4")) == 2 * edges
    assert (sent["marks"] is None) == octants
    plain = page3d.payload(one(vertices=mesh[0], triangles=mesh[1], edges=np.zeros((0, 2))))["shapes"][0]
    assert plain["edges"] == plain["marks"] == ""


def test_a_usual_force_is_half_of_the_longest_arrow_and_an_impact_at_most_one():
    force = np.full((20, 2, 3), [0, 0, 3.0])
    force[7, 0] *= 1e6
    force[3, 1] = np.nan
    force[4, 1] = 0.0
    at = np.tile(np.array([[0.0, 0, 0], [1, 0, 0]]), (20, 1, 1))
    still = {"position": np.linspace([0, 0, 0], [9, 9, 9], 20), "rotation": pictures.STILL}
    sent = page3d.payload(one(t=np.arange(20.0), contacts=at, forces=force, **still))["arrows"]
    assert sent["number"] == [2, 2, 2, 1, 1] + [2] * 15
    length = np.linalg.norm(unpacked(sent["force"]), axis=1) / sent["longest"]
    assert np.median(length) == pytest.approx(0.5, abs=0.01)
    assert length.max() == pytest.approx(1.0, abs=1e-3)
    assert page3d.payload(one(contacts=np.zeros((3, 1, 3)), forces=np.zeros((3, 1, 3))))["arrows"] is None


def test_heights_in_panels_are_fine_beside_an_impact():
    y = np.full(50, 9.81)
    y[10] = 1e7
    sent = page3d.payload(one(panels=(Panel("N", np.linspace(0, 2, 50), {"N": y}, (0, 20)),)))["panels"][0]
    assert coded(sent["lines"][0]["y"], "<f4") == pytest.approx(y, rel=1e-6)
    assert sent["y"] == [0.0, 20.0]


def test_a_camera_that_sees_the_outline_sees_all(boxes):
    cloud = page3d._cloud(boxes)
    few = page3d._outline(cloud)
    assert len(few) <= 120 < len(cloud)
    directions = np.random.default_rng(0).normal(size=(200, 3))
    missing = (cloud @ directions.T).max(axis=0) - (few @ directions.T).max(axis=0)
    assert (missing / np.linalg.norm(directions, axis=1)).max() < 0.02 * np.ptp(cloud)


def test_a_huge_thing_that_stands_still_does_not_make_the_motion_small():
    picture = one()
    vertices, triangles = pictures.box(1000, 1000, 1)
    table = Part("table", vertices, triangles, "#999999", np.array([0, 0, -1.0]), pictures.STILL)
    size = page3d.payload(dataclasses.replace(picture, parts=(*picture.parts, table)))["size"]
    assert size < 4 * page3d.payload(picture)["size"]


# ---- what a page may not do


def test_a_page_needs_no_network(boxes):
    page = page3d.page(boxes)
    assert not re.findall(
        r"""(?:src|href)\s*=\s*["']?https?:|@import|fetch\(|XMLHttpRequest|import\(""", page
    )
    # a name, never loaded
    assert set(re.findall(r"https?://[^\"'\s]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"url\((?!#)", page)


def test_what_a_user_writes_is_only_ever_text():
    line = Lines(np.zeros((2, 3)), name=HOSTILE)
    page = page3d.page(one(
        title=HOSTILE, name=HOSTILE, events=((1.0, HOSTILE),), facts={HOSTILE: HOSTILE}, lines=(line,),
        grounds=(Ground(HOSTILE, np.zeros(3), pictures.STILL),),
        panels=(Panel(HOSTILE, np.arange(3.0), {HOSTILE: np.arange(3.0)}),),
    ))  # fmt: skip
    data = re.search(r'<script type="application/json">(.*?)</script>', page, flags=re.S)[1]
    assert "<" not in data
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2


# ---- what is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"t": np.zeros(3)}, "times that grow"),
        ({"t": np.zeros(0)}, "at least one"),
        ({"duration": 0.0}, "duration=0.0"),
        ({"color": "red"}, "'red'"),
        ({"position": np.zeros((4, 3))}, r"Part\('box'\).position: \(3, 3\) is needed, got \(4, 3\)"),
        ({"position": np.full((3, 3), np.nan)}, "finite"),
        ({"rotation": np.ones(4)}, "unit quaternions"),
        ({"rotation": np.ones((3, 3))}, "rotation"),
        ({"triangles": [[0, 1, 8]]}, "numbers of 8 vertices, got 0 to 8"),
        ({"edges": [[0, -1]]}, "edges"),
        ({"marks": [0, 1]}, "12 triangles, got 2"),
        ({"vertices": np.zeros((3, 2))}, "vertices"),
        ({"contacts": np.zeros((3, 1, 3))}, "both or none"),
        (
            {"contacts": np.zeros((3, 1, 3)), "forces": np.zeros((3, 2, 3))},
            r"\(3, 1, 3\) is needed, got \(3, 2, 3\)",
        ),
        ({"lines": (Lines(np.zeros((2, 5, 3))),)}, "Lines"),
        ({"lines": (Lines(np.zeros((2, 3)), trace=True),)}, "Lines"),
        ({"panels": (Panel("N", np.arange(3.0), {"a": np.arange(4.0)}),)}, "'a'"),
        ({"grounds": (Ground("floor", np.zeros(2), pictures.STILL),)}, "Ground"),
    ],
)
def test_pictures_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        page3d.page(one(**changes))


# ---- in a browser


class Seen(Page):
    """A page of ours, drawn."""

    def __init__(self, browser, tmp_path, picture, width=900):
        file = tmp_path / "page.html"
        file.write_text(page3d.page(picture), encoding="utf-8")
        super().__init__(browser, file)
        self.page.set_viewport_size({"width": width, "height": 520})
        self.drawn()

    def drawn(self):
        """Waits until nothing is left to draw."""
        self.wait_for(
            "document.querySelector('.player').dataset.drawn > 0 && "
            "!document.querySelector('.player').scene.wished"
        )

    def data(self, name):
        return self.player().get_attribute(f"data-{name}")

    def ask(self, what):
        return self.page.evaluate(
            f"(() => {{ const scene = document.querySelector('.player').scene; return {what}; }})()"
        )

    def scrub(self, frame):
        self.page.locator(".time").fill(str(frame))
        self.wait_for(f"document.querySelector('.player').dataset.frame === '{frame}'")

    def image(self):
        from PIL import Image

        self.drawn()
        picture = Image.open(io.BytesIO(self.page.locator(".view").screenshot())).convert("RGB")
        return np.asarray(picture).astype(int)

    def fine(self):
        assert not self.complaints, self.complaints
        beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(beyond) == 0
        self.page.context.close()


def red(image):
    """Pixels in the colour of forces."""
    wanted = [int(FORCE[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(image - wanted).max(axis=-1) < 45).sum())


def test_a_page_plays_pauses_and_scrubs(browser, tmp_path, boxes):
    seen = Seen(browser, tmp_path, dataclasses.replace(boxes, duration=3.0))
    assert seen.frame() == 0
    button = seen.page.locator(".play")
    button.click()
    seen.wait_for("Number(document.querySelector('.player').dataset.frame) > 3")
    assert button.inner_text() == "Pause"
    seen.page.keyboard.press("Space")
    assert button.inner_text() == "Play"
    seen.drawn()
    stopped = seen.frame()
    seen.page.wait_for_timeout(200)
    assert seen.frame() == stopped
    for frame in (150, 40):
        seen.scrub(frame)
        inverse = np.array(seen.ask("Array.from(scene.parts[4].model)")).reshape(4, 4).T
        first = np.array(seen.ask("Array.from(scene.parts[0].model)")).reshape(4, 4).T
        corners = boxes.parts[4].vertices @ inverse[:3, :3].T + inverse[:3, 3] - first[:3, 3]
        given = page3d.turned(boxes.parts[4].rotation[frame], boxes.parts[4].vertices)
        given = given + boxes.parts[4].position[frame] - boxes.parts[0].position[frame]
        assert corners == pytest.approx(given, abs=1e-4)
    assert seen.page.locator(".clock").inner_text() == f"t = {boxes.t[40]:.3f} s"
    seen.page.keyboard.press("ArrowRight")
    seen.wait_for("document.querySelector('.player').dataset.frame === '41'")
    seen.page.keyboard.press("End")
    seen.wait_for("document.querySelector('.player').dataset.frame === '199'")
    seen.fine()


def test_forces_events_panels_and_facts_are_shown(browser, tmp_path, boxes):
    seen = Seen(browser, tmp_path, boxes)
    seen.scrub(150)
    with_arrows = seen.image()
    assert len(np.unique(with_arrows.reshape(-1, 3), axis=0)) > 1000  # shaded, not blank
    assert int(seen.data("arrows")) > 20
    seen.page.locator(".forces").click()
    seen.wait_for("document.querySelector('.player').dataset.arrows === '0'")
    assert red(seen.image()) < 0.2 * red(with_arrows)
    ticks = seen.page.locator(".ticks i")
    assert 10 < ticks.count() <= len(boxes.events)
    when, words = min(boxes.events)
    assert ticks.first.get_attribute("title").startswith(f"{when:.3f} s: {words}")
    seen.page.keyboard.press("Home")
    seen.page.locator(".after").click()
    assert words in seen.page.locator(".happened").inner_text()
    assert seen.page.locator(".chart .line").count() == 6
    cursor = seen.page.locator(".chart .cursor").first
    before = cursor.bounding_box()["x"]
    seen.page.locator(".chart svg").first.click(position={"x": 250, "y": 50})
    assert cursor.bounding_box()["x"] - before > 50
    seen.wait_for("Number(document.querySelector('.player').dataset.frame) > 20")
    assert "MoreauMidpoint" in seen.page.locator("dl").inner_text()
    seen.fine()


def test_the_camera_turns_zooms_follows_and_comes_back(browser, tmp_path):
    seen = Seen(browser, tmp_path, pictures.coin(60))
    where = lambda: seen.ask(
        "[scene.camera.turn, scene.camera.lift, scene.camera.distance, ...scene.camera.target]"
    )

    def settled():
        """The canvas has its size, and a wheel has come to rest."""
        before = None
        while before != (before := where()):
            seen.page.wait_for_timeout(300)
        return before

    home, box = settled(), seen.page.locator("canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.mouse.move(*middle)
    seen.page.mouse.down()
    seen.page.mouse.move(middle[0] + 80, middle[1] + 30, steps=2)
    seen.page.mouse.up()
    turned = where()
    assert turned[0] < home[0] < 0 < home[1] < turned[1]
    seen.page.mouse.wheel(0, -300)
    seen.wait_for(f"document.querySelector('.player').scene.camera.distance < {0.9 * home[2]}")
    settled()
    seen.page.locator(".reset").click()
    assert where() == pytest.approx(home)
    seen.page.locator(".follow").click()
    seen.scrub(45)
    off = seen.ask("norm(add(scene.camera.target, scene.parts[0].at, -1))")
    assert off < 1e-6
    assert seen.ask("scene.nameAt(0, 0)") == "coin"
    seen.fine()


@pytest.mark.parametrize("width", [900, 380])
def test_a_planar_picture_is_seen_from_the_front(browser, tmp_path, width):
    seen = Seen(browser, tmp_path, pictures.crank(40), width=width)
    right, up = seen.ask("[scene.camera.axes().right, scene.camera.axes().up]")
    assert (right, up) == ([1, 0, 0], [0, 1, 0])
    seen.scrub(5)  # the slider touches above and below
    assert red(seen.image()) > 50
    assert seen.page.locator(".time").bounding_box()["width"] > 100
    seen.fine()


def test_a_still_scene_has_no_player(browser, tmp_path):
    seen = Seen(browser, tmp_path, pictures.corner())
    assert seen.page.locator(".controls").count() == seen.page.locator("aside").count() == 0
    assert len(np.unique(seen.image().reshape(-1, 3), axis=0)) > 1000
    assert seen.ask("scene.openSide()") != -0.95  # from there one would look at the walls from behind
    seen.fine()


def test_hostile_words_are_shown_as_they_are(browser, tmp_path):
    seen = Seen(browser, tmp_path, one(
        title=HOSTILE, name=HOSTILE, events=((0.0, HOSTILE),), facts={HOSTILE: HOSTILE},
        panels=(Panel(HOSTILE, np.arange(3.0), {HOSTILE: np.arange(3.0)}),),
    ))  # fmt: skip
    assert seen.page.locator("h1").inner_text() == seen.page.locator("dd").inner_text() == HOSTILE
    assert HOSTILE in seen.page.locator(".happened").inner_text()
    assert seen.page.locator("img").count() == 0
    seen.fine()


@pytest.mark.parametrize("what", ["a frame", "a shader", "the network"])
def test_a_damaged_page_is_noticed(browser, tmp_path, what):
    """The checks above fail where they must."""
    page = page3d.page(one())
    damaged = {
        "a frame": re.sub(r'("position":").', r"\1-", page),  # no letter of base64
        "a shader": page.replace("gl_Position = view * w;", "gl_Position = view;"),
        "the network": page.replace("<body>", '<body><img src="https://example.org/a.png">'),
    }[what]
    assert damaged != page
    (tmp_path / "damaged.html").write_text(damaged, encoding="utf-8")
    seen = Page(browser, tmp_path / "damaged.html")
    seen.page.wait_for_timeout(200)
    assert seen.complaints
