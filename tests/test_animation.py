"""Pages to play: they show what was computed, whole and without a network."""

import base64
import re

import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from browsing import overflow, plays, plays_at_all
from stickslip import animation
from stickslip.reproduce.mechanisms import MECHANISMS


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="module")
def ball():
    b = ss.benchmarks.load("bouncing-ball", 2)
    return ss.simulate(b.system, b.method, b.q0, b.u0, t1=1.0, dt=b.dt)


def unpacked(packed):
    """What the player does with a packed coordinate."""
    whole = np.frombuffer(base64.b64decode(packed["data"]), dtype="<u2").reshape(-1, packed["points"])
    return np.where(whole == animation.NAN, np.nan, packed["low"] + packed["step"] * whole)


def contacts(system, t, q):
    (found,) = [s for s in ss.shapes.flat(system.draw(t, q)) if isinstance(s, ss.shapes.Contacts)]
    return found


# ---- drawings


HEIGHT = {  # how far a drawn contact point is from what it touches
    "slider-crank": lambda s, at: s.d / 2 - jnp.abs(at[:, 1]),
    "woodpecker": lambda s, at: at[:, 0] - s.r_0,
    "tippedisk": lambda s, at: at[:, 2],
    "tippe-top": lambda s, at: at[:, 2],
    "guided-hopper": lambda s, at: at[:, 1],
    "tetrahedron": lambda s, at: at[:, 2],
    "bouncing-ball": lambda s, at: at[:, 1],
}


@pytest.mark.parametrize("name", HEIGHT)
def test_contact_points_are_drawn_where_the_gap_says(name, rng):
    b = ss.benchmarks.load(name)
    q = b.q0 + 1e-3 * rng.normal(size=b.q0.shape)
    at, g_N = contacts(b.system, 0.0, q).at, np.asarray(b.system.g_N(0.0, q))
    assert np.asarray(HEIGHT[name](b.system, at)) == pytest.approx(g_N, abs=1e-12)
    moved = at + 1e-3  # a drawing that is off by a millimetre is found
    assert np.asarray(HEIGHT[name](b.system, moved)) != pytest.approx(g_N, abs=1e-6)


def test_disks_touch_where_they_are_drawn_to():
    b = ss.benchmarks.load("disk-mixer")
    c = contacts(b.system, 0.0, b.q0)
    n_pairs = 435
    centres = b.q0.reshape(30, 3)[:, :2]
    to_drum = b.system.drum_radius - np.linalg.norm(c.at[n_pairs:], axis=1)
    assert to_drum == pytest.approx(np.asarray(b.system.g_N(0.0, b.q0))[n_pairs:], abs=1e-12)
    assert jnp.linalg.norm(c.at[0] - centres[0]) == pytest.approx(b.system.r)


def translations(name, b):
    """Velocities with which what is drawn moves along x, y (, z) as a whole; None where it cannot."""
    n = b.u0.shape[0]
    if name == "slider-crank":
        return [np.eye(n)[6], np.eye(n)[7]]
    if name == "woodpecker":
        return [None, np.eye(n)[0]]
    if name == "guided-hopper":
        return [np.r_[0.0, np.tile([1.0, 0.0], (n - 1) // 2)], np.r_[1.0, np.tile([0.0, 1.0], (n - 1) // 2)]]
    return [np.eye(n)[k] for k in range(3 if n == 6 else 2)]


SIGNS = [
    *(name for name in MECHANISMS if name != "disk-mixer"), "bouncing-ball", "mass-on-slope", "rolling-ball",
    "ball-in-corner", "ball-in-hollow-sphere", "painleve-rod", "rolling-disc", "sliding-cube",
]  # fmt: skip


@pytest.mark.parametrize("name", SIGNS)
def test_forces_are_drawn_along_what_they_act_on(name, rng):
    """A translation changes a gap by its part along the normal,
    a friction velocity by its part along the tangent.
    """
    import jax

    b = ss.benchmarks.load(name)
    t, q = 0.0, b.q0 + 1e-3 * rng.normal(size=b.q0.shape)
    c = contacts(b.system, t, q)
    first = np.cumsum([0] + [sum(f.dimension for f in law.friction) for law in b.system.laws])[:-1]
    for k, u in enumerate(translations(name, b)):
        if u is None:
            continue
        u = jnp.asarray(u)  # noqa: PLW2901
        q_dot = b.system.B(t, q) @ u
        rate = jax.jvp(lambda q: jnp.asarray(b.system.g_N(t, q)), (q,), (q_dot,))[1]
        if name != "mass-on-slope":  # its normal turns as it moves
            assert np.asarray(rate) == pytest.approx(np.asarray(c.normals[:, k]), abs=1e-9)
        slip = np.asarray(b.system.gamma_F(t, q, u) - b.system.gamma_F(t, q, 0 * u))
        for j in range(c.tangents.shape[1]):
            assert slip[first + j] == pytest.approx(np.asarray(c.tangents[:, j, k]), abs=1e-9)
            # a tangent the wrong way round is found
            if np.abs(slip[first + j]).max() > 0.1:
                assert -slip[first + j] != pytest.approx(np.asarray(c.tangents[:, j, k]), abs=1e-9)


# ---- what is shown is what was computed


def test_frames_show_the_positions_of_the_run(ball):
    anim = animation.Animation(ball, frames=50)
    payload = anim.payload()
    t = np.array(payload["t"])
    rows = np.searchsorted(ball.t, t - 1e-9)
    spoke = next(m for m in payload["moving"] if m["x"]["points"] == 3)  # centre, rim, gap
    x, y = unpacked(spoke["x"]), unpacked(spoke["y"])
    assert x[:, 0] == pytest.approx(ball.q[rows, 0], abs=1e-4)
    assert y[:, 0] == pytest.approx(ball.q[rows, 1], abs=1e-4)
    assert np.isnan(x[:, 2]).all()


def test_no_impact_is_missed_between_frames(ball):
    """Percussions of all steps between two frames are in the arrow of the second."""
    anim = animation.Animation(ball, frames=8)
    scene = animation._Scene(ball, anim._rows)
    force = animation._forces(ball, scene.contacts[0], anim._rows)
    total = (force[1:] * np.diff(ball.t[anim._rows])[:, None, None]).sum(axis=(0, 1))
    assert total == pytest.approx([ball.P_F.sum(), ball.P_N.sum()])
    without = ball.P_N[anim._rows].sum()  # what one would see in the rows of the frames alone
    assert without < 0.5 * ball.P_N.sum()


def test_a_resting_ball_is_carried_by_its_weight(ball):
    anim = animation.Animation(ball, frames=20)
    force = animation._forces(ball, animation._Scene(ball, anim._rows).contacts[0], anim._rows)
    assert force[-1, 0] == pytest.approx([0.0, 9.81], abs=1e-9)


def test_long_lines_keep_their_peaks():
    y = np.zeros(100_000)
    y[77_777] = 1.0
    rows = animation._telling(y)
    assert len(rows) <= animation.POINTS + 2
    assert 77_777 in rows


def test_packed_frames_are_finer_than_a_screen(rng):
    rows = rng.normal(size=(7, 11))
    rows[2, 3] = np.nan
    again = unpacked(animation._packed(rows))
    assert again == pytest.approx(rows, abs=np.nanmax(np.abs(rows)) * 1e-4, nan_ok=True)
    flat = np.full((3, 2), 4.2)
    assert unpacked(animation._packed(flat)) == pytest.approx(flat)


def test_a_system_without_a_drawing_shows_its_panels(tmp_path):
    class Bare(ss.System):
        def M(self, t, q):
            return jnp.eye(1)

        def h(self, t, q, u):
            return -q

    sol = ss.simulate(Bare(), ss.Rattle(), [1.0], [0.0], t1=1.0, dt=0.1)
    payload = sol.animate(tmp_path / "bare.html").payload()
    assert [trace["type"] for trace in payload["data"]] == ["scatter"] * 4  # two lines, two cursors
    assert (tmp_path / "bare.html").exists()


def test_late_times_keep_their_digits(ball):
    import dataclasses

    late = dataclasses.replace(ball, t=ball.t + 1e5)
    t = np.array(late.animate(frames=50).payload()["t"])
    assert len(np.unique(t)) == len(t)
    assert t[-1] - t[0] == pytest.approx(1.0, abs=1e-4)


def test_a_run_that_became_nan_is_shown_up_to_there(ball):
    import dataclasses

    q = ball.q.copy()
    q[60:] = np.nan
    payload = dataclasses.replace(ball, q=q).animate(frames=20).payload()
    assert payload["t"][-1] == pytest.approx(ball.t[59])
    q[1:] = np.nan
    with pytest.raises(ValueError, match="1 rows of finite numbers"):
        dataclasses.replace(ball, q=q).animate()


def test_what_a_user_writes_cannot_end_the_script(ball):
    page = ball.animate(title="</script><!--<script>").html()
    data = re.search(r'<script type="application/json">(.*?)</script>', page, flags=re.S)[1]
    assert "<" not in data
    assert "&lt;/script&gt;&lt;!--&lt;script&gt;" in page


def test_a_page_needs_no_network(ball):
    page = ball.animate().html()
    without_plotly = page.replace(re.findall(r"<script>(.*?)</script>", page, flags=re.S)[0], "")
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?https?:|@import|url\(""", without_plotly)
    assert len(page) < 6e6
    assert "srcdoc" in ball.animate(frames=5)._repr_html_()


# ---- bad input


class Odd(ss.System):
    kind: str = "mixed"

    @property
    def laws(self):
        return (ss.Contact(),)

    def M(self, t, q):
        return jnp.eye(1)

    def h(self, t, q, u):
        return -jnp.ones(1)

    def g_N(self, t, q):
        return q

    def draw(self, t, q):
        line = ss.shapes.Line([[0, 0], [1, 1]])
        if self.kind == "mixed":
            return [line, ss.shapes.Line([[0, 0, 0], [1, 1, 1]])]
        if self.kind == "contacts":
            return [line, ss.shapes.Contacts([[0, 0], [1, 1]], [[0, 1], [0, 1]])]
        return "a picture"


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("mixed", ValueError, "all have two or all three"),
        ("contacts", ValueError, "a row for each of the 1 contacts, got .2"),
        ("text", TypeError, "must return a list of ss.shapes, got str"),
    ],
)
def test_drawings_that_make_no_sense_are_refused(kind, error, words):
    sol = ss.simulate(Odd(kind), ss.Rattle(), [1.0], [0.0], t1=0.2, dt=0.1)
    with pytest.raises(error, match=words):
        sol.animate().payload()


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"Contacts\(tangents\)"):
        ss.shapes.Contacts([[0, 0]], [[0, 1]], [[1, 0]])
    with pytest.raises(ValueError, match=r"Contacts\(at, normals\)"):
        ss.shapes.Contacts([[0, 0]], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=r"Mesh\(marks\)"):
        ss.shapes.Mesh(np.eye(3), [[0, 1, 2]], [0, 1])


def test_bad_arguments_of_animate_are_refused(ball, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.html"):
        ball.animate(tmp_path / "ball.gif")
    with pytest.raises(ValueError, match="frames=1"):
        ball.animate(frames=1)
    for duration in (0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"duration={duration}"):
            ball.animate(duration=duration)
    import jax

    b = ss.benchmarks.load("bouncing-ball")
    batch = jax.vmap(lambda w: ss.simulate(b.system, ss.Rattle(), b.q0, b.u0 + w, t1=0.1, dt=0.05))(
        jnp.zeros(2)
    )
    with pytest.raises(ValueError, match=r"batch of shape \(2,\): take one, sol\[0\]"):
        batch.animate()


# ---- in a browser


@pytest.mark.slow
def test_the_page_of_a_run_plays_pauses_and_scrubs_offline(browser, ball, tmp_path):
    ball.animate(tmp_path / "ball.html", duration=3.0)
    assert plays(browser, tmp_path / "ball.html", colours=20) == "t = 1.000 s"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_does_not_scroll_sideways(browser, ball, tmp_path, width):
    ball.animate(tmp_path / "ball.html")
    assert overflow(browser, tmp_path / "ball.html", width) == 0
    wide = (
        (tmp_path / "ball.html").read_text().replace("<body>", '<body><div style="width: 3000px">wide</div>')
    )
    (tmp_path / "wide.html").write_text(wide)
    assert overflow(browser, tmp_path / "wide.html", width) > 0


def test_a_page_has_legends_and_arrows_no_longer_than_the_ball(ball):
    payload = ball.animate().payload()
    named = [trace for trace in payload["data"] if trace.get("name")]
    assert {trace["legend"] for trace in named} == {"legend", "legend2"}
    assert all(trace.get("showlegend") is False for trace in payload["data"] if not trace.get("name"))
    scene = animation.Animation(ball)
    drawn = animation._Scene(scene.sol, scene._rows)
    assert drawn._largest_body() == pytest.approx(0.2, rel=1e-2)


def test_forces_over_time_do_not_depend_on_the_step_size():
    """The weight, whatever the steps; as percussions they would differ by factors."""
    b = ss.benchmarks.load("bouncing-ball")
    for dt in (1e-2, 2e-3):
        sol = ss.simulate(b.system, ss.Rattle(), [0.0, 0.1, 0.0], [0.0, 0.0, 0.0], t1=0.1, dt=dt)
        lower = next(
            trace
            for trace in sol.animate().payload()["data"]
            if trace.get("yaxis") == "y3" and trace.get("name")
        )
        assert lower["y"][-1] == pytest.approx(9.81, rel=1e-3)


@pytest.mark.slow
def test_a_body_in_space_is_drawn(browser, tmp_path):
    b = ss.benchmarks.load("tippedisk")
    sol = ss.simulate(b.system, ss.MoreauMidpoint(), b.q0, b.u0, t1=0.1, dt=1e-3)
    sol.animate(tmp_path / "tippedisk.html", frames=10)
    assert plays(browser, tmp_path / "tippedisk.html", colours=20) == "t = 0.1000 s"


DAMAGE = {
    "a frame": lambda page: re.sub(r'("points":\d+,"data":")\w', r"\1-", page),  # no letter of base64
    "the player": lambda page: page.replace("function player(root)", "function nothing(root)"),
    "the network": lambda page: page.replace("<body>", '<body><img src="https://example.org/a.png">'),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_page_is_noticed(browser, ball, tmp_path, what):
    """The check of a page fails where it must, and not where it must not."""
    page = ball.animate(frames=30).html()
    damaged = DAMAGE[what](page)
    assert damaged != page
    (tmp_path / "damaged.html").write_text(damaged, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"nothing is|player is not defined|atob|asks for|decode"):
        plays_at_all(browser, tmp_path / "damaged.html")
