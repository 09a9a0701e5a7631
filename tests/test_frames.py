"""A contact that says where it is: gaps, friction velocities and pictures that follow,
against formulas by hand.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip import rigid
from stickslip.rigid import planar

COULOMB = ss.Contact(friction=ss.Coulomb(0.3))
SPATIAL = ss.Contact(friction=ss.Coulomb(0.3, dim=2))


def states(system, nq, nu, n=100):
    """g_N and gamma_F at random states, by one program."""
    rng = np.random.default_rng(5)
    t, q, u = rng.uniform(size=n), rng.normal(size=(n, nq)), rng.normal(size=(n, nu))
    g_N, gamma_F = jax.jit(jax.vmap(lambda t, q, u: (system.g_N(t, q), system.gamma_F(t, q, u))))(t, q, u)
    return t, q, u, np.asarray(g_N), np.asarray(gamma_F)


def same(a, b):
    return np.abs(a - b).max() <= 1e-13 * np.abs(b).max()


# ---- bodies in space


class Coin(rigid.SpatialBody):
    """A thin disc, rolling, pivoting and with rolling friction on a table."""

    m: float = 1.0
    r: float = 0.1
    gravity: float = 9.81
    mu: float = 0.3

    @property
    def inertia(self):
        return self.m * self.r**2 * jnp.array([0.25, 0.25, 0.5])

    @property
    def law(self):
        return ss.Contact(friction=(ss.Coulomb(self.mu, dim=2), ss.Pivoting(0.001), ss.Rolling(0.002, dim=2)))

    @property
    def touches(self):
        return (ss.ContactFrame("rim", self.law, point=self.lowest),)

    def lowest(self, t, q):
        n = rigid.rotation_matrix(q[3:])[:, 2]
        down = jnp.array([n[0] * n[2], n[1] * n[2], n[2] ** 2 - 1.0])
        return q[:3] + self.r * down / jnp.sqrt(down @ down)


class ByPose(Coin):
    """The same, without closed velocities of the body."""

    @property
    def touches(self):
        return (ss.ContactFrame("rim", self.law, point=self.lowest, body=self.pose),)


class Wandering(Coin):
    """Wrong: the place where it touches is taken for the matter there."""

    @property
    def touches(self):
        return (ss.ContactFrame("rim", SPATIAL, point=self.lowest, body="point"),)


class Sideways(Coin):
    """Wrong: friction along other axes than the formula by hand."""

    @property
    def touches(self):
        return (
            ss.ContactFrame("rim", SPATIAL, point=self.lowest, tangents=[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
        )


def coin_by_hand(q, u):
    """Height of the rim, v_S + omega x r_SC and omega; columns are states."""
    p = q[:, 3:] / np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    w, x, y, z = p.T
    n = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x**2 + y**2)])
    e_1 = np.array([1 - 2 * (y**2 + z**2), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    e_2 = np.array([2 * (x * y - w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z + w * x)])
    sin = np.sqrt(1 - n[2] ** 2)
    arm = 0.1 * np.array([n[0] * n[2], n[1] * n[2], n[2] ** 2 - 1]) / sin
    omega = e_1 * u[:, 3] + e_2 * u[:, 4] + n * u[:, 5]
    v = u[:, :3].T + np.cross(omega.T, arm.T).T
    return q[:, 2] - 0.1 * sin, v, omega


def test_a_rim_rolls_as_a_formula_by_hand_says():
    _, q, u, g_N, gamma_F = states(Coin(), 7, 6)
    height, v, omega = coin_by_hand(q, u)
    assert same(g_N[:, 0], height)
    assert same(gamma_F.T, np.stack([v[0], v[1], omega[2], omega[0], omega[1]]))
    # of any pose the velocities are found by differentiation
    assert same(states(ByPose(), 7, 6)[4], gamma_F)
    # negative controls: another point held, other axes
    assert not same(states(Wandering(), 7, 6)[4], gamma_F[:, :2])
    assert not same(states(Sideways(), 7, 6)[4], gamma_F[:, :2])
    assert same(states(Sideways(), 7, 6)[4][:, ::-1], gamma_F[:, :2])


N = np.array([1.0, -2.0, 2.0]) / 3.0
AXES = np.array([[2.0, 2.0, 1.0], [-2.0, 1.0, 2.0]]) / 3.0


class Lift(rigid.SpatialBody):
    """Two corners of a box, over an inclined platform that turns and rises; they rub in different ways."""

    m: float = 1.0
    gravity: float = 9.81
    corners = np.array([[0.1, 0.2, -0.3], [-0.1, 0.2, -0.3]])

    @property
    def inertia(self):
        return jnp.array([0.1, 0.2, 0.3])

    def platform(self, t, q):
        turn = rigid.rotation_matrix(jnp.stack([jnp.cos(t), *(jnp.sin(t) * N)]))
        return jnp.stack([jnp.sin(t), t**2, 0.3 * t]), turn

    @property
    def touches(self):
        return (
            ss.ContactFrame(
                ("left", "right"), (ss.Contact(friction=ss.CoulombContensou(0.3, 0.01)), SPATIAL),
                point=self.corners,
                normal=N, tangents=AXES, opposite=lambda t, q: self.platform(t, q)[0], against=self.platform,
            ),
        )  # fmt: skip


def lift_by_hand(t, q, u):
    """The platform turns about N with 2 rad/s."""
    A = np.asarray(rigid.rotation_matrix(q[3:]))
    origin, v_O = np.array([np.sin(t), t**2, 0.3 * t]), np.array([np.cos(t), 2 * t, 0.3])
    arms = Lift.corners @ A.T
    points, omega = q[:3] + arms, A @ u[3:]
    gaps = (points - origin) @ N
    below = points - gaps[:, None] * N - origin
    v = u[:3] + np.cross(omega, arms) - v_O - np.cross(2.0 * N, below)
    spin = (omega - 2.0 * N) @ N
    return gaps, np.concatenate([AXES @ v[0], [spin], AXES @ v[1]])


def test_corners_over_a_platform_that_turns():
    t, q, u, g_N, gamma_F = states(Lift(), 7, 6)
    by_hand = [lift_by_hand(*state) for state in zip(t, q, u, strict=True)]
    assert same(g_N, np.stack([gaps for gaps, _ in by_hand]))
    assert same(gamma_F, np.stack([slips for _, slips in by_hand]))
    # chi: what moves while u = 0 is the platform alone
    at_rest = jax.vmap(lambda t, q: Lift().gamma_F(t, q, jnp.zeros(6)))(t, q)
    assert np.abs(at_rest).min(axis=0).max() > 1e-4


# ---- bodies in the plane


class Discs(ss.System):
    """Two discs and a wall that is pushed aside: pairs of bodies, by poses."""

    r: float = 0.2

    def M(self, t, q):
        return jnp.eye(6)

    def h(self, t, q, u):
        return jnp.array([0.0, -9.81, 0.0, 0.0, -9.81, 0.0])

    def first(self, t, q):
        return q[:2], planar.rotation(q[2])

    def second(self, t, q):
        return q[3:5], planar.rotation(q[5])

    def wall(self, t, q):
        return jnp.stack([jnp.sin(t), -0.1 * t]), np.eye(2)

    def normal(self, t, q):
        d = q[3:5] - q[:2]
        return d / jnp.sqrt(d @ d)

    @property
    def touches(self):
        return (
            ss.ContactFrame(
                "discs", COULOMB, point=lambda t, q: q[3:5] - self.r * self.normal(t, q), normal=self.normal,
                opposite=lambda t, q: q[:2] + self.r * self.normal(t, q), body=self.second,
                against=self.first,
            ),
            ss.ContactFrame(
                "wall", ss.Contact(friction=(ss.Coulomb(0.2), ss.Rolling(0.01))), body=self.first,
                point=lambda t, q: q[:2] - jnp.array([0.0, self.r]),
                opposite=lambda t, q: self.wall(t, q)[0], against=self.wall,
            ),
        )  # fmt: skip


def discs_by_hand(t, q, u, r=0.2):
    d = q[:, 3:5] - q[:, :2]
    apart = np.linalg.norm(d, axis=1)
    n = d / apart[:, None]
    across = np.stack([n[:, 1], -n[:, 0]], axis=1)
    slip = ((u[:, 3:5] - u[:, :2]) * across).sum(axis=1) + r * (u[:, 2] + u[:, 5])
    gaps = np.stack([apart - 2 * r, q[:, 1] - r + 0.1 * t], axis=1)
    return gaps, np.stack([slip, u[:, 0] + r * u[:, 2] - np.cos(t), u[:, 2]], axis=1)


def test_discs_touch_each_other_and_a_wall_that_moves():
    t, q, u, g_N, gamma_F = states(Discs(), 6, 6)
    gaps, slips = discs_by_hand(t, q, u)
    assert same(g_N, gaps)
    assert same(gamma_F, slips)


class Wheel(rigid.PlanarBody):
    m: float = 1.0
    R: float = 0.1
    gravity: float = 9.81
    mu: float = 0.3

    @property
    def theta(self):
        return planar.solid_ball(self.m, self.R)

    @property
    def touches(self):
        law = ss.Contact(e_N=0.5, friction=ss.Coulomb(self.mu))
        return (ss.ContactFrame("ground", law, point=lambda t, q: q[:2] - jnp.array([0.0, self.R])),)

    def draw(self, t, q):
        return ss.shapes.disk(q[:2], self.R, q[2])


class Braked(Wheel):
    """With a brake on its turning, behind what follows of its contact."""

    @property
    def laws(self):
        return (*super().laws, ss.FrictionElement(0.01))

    @property
    def contacts(self):
        return (*super().contacts, "brake")

    def gamma_F(self, t, q, u):
        return jnp.concatenate([super().gamma_F(t, q, u), u[2:]])


START = {"q0": [0.0, 0.15, 0.0], "u0": [1.0, 0.0, 5.0], "t1": 0.2, "dt": 0.01}


def test_a_run_is_that_of_the_same_system_by_hand():
    sol = ss.simulate(Wheel(), ss.MoreauMidpoint(), **START)
    by_hand = ss.benchmarks.bouncing_ball.BouncingBall(mu=0.3)
    other = ss.simulate(by_hand, ss.MoreauMidpoint(), **START)
    assert (sol.P_N > 0).any()
    assert np.abs(sol.q - other.q).max() < 1e-13
    assert np.abs(sol.P_F - other.P_F).max() < 1e-13
    assert sol.system.contacts == ("ground",)
    assert len(sol.system.laws) == 1
    # arrows of forces need not be drawn
    (found,) = [s for s in ss.shapes.drawn(sol.system, 0.0, sol.q[3]) if isinstance(s, ss.shapes.Contacts)]
    (stated,) = [s for s in ss.shapes.flat(by_hand.draw(0.0, sol.q[3])) if isinstance(s, ss.shapes.Contacts)]
    assert all(
        np.allclose(a, b, atol=1e-15)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(stated), strict=True)
    )


def test_other_laws_come_behind():
    sol = ss.simulate(Braked(), ss.MoreauMidpoint(), **START)
    assert sol.P_F.shape[1] == 2
    assert sol.u[1, 2] == pytest.approx(5.0 - 0.01 * 0.01 / Braked().theta)


def test_derivatives_both_ways_and_a_batch():
    def end(mu, system=Wheel):
        return ss.simulate(system(mu=mu), ss.MoreauMidpoint(solver=ss.SemismoothNewton()), **START).u[-1, 2]

    forward, backward = jax.jacfwd(end)(0.05), jax.grad(end)(0.05)
    eps = 1e-6
    low, high = jax.vmap(end)(jnp.array([0.05 - eps, 0.05 + eps]))
    assert forward == pytest.approx(float(backward), rel=1e-10)
    assert forward == pytest.approx(float(high - low) / (2 * eps), rel=1e-6)


# ---- what is refused


def wheel(**frame):
    """A wheel whose frame says something else."""
    said = {"name": "ground", "law": COULOMB, "point": lambda t, q: q[:2] - jnp.array([0.0, 0.1])} | frame

    class Other(Wheel):
        touches = property(lambda self: (ss.ContactFrame(**said),))

    return Other()


def changed(base=Wheel, **parts):
    return type(
        "Changed",
        (base,),
        {key: property(f) if key in ("laws", "contacts", "touches") else f for key, f in parts.items()},
    )()


class Mass(ss.System):
    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.zeros(2)


FLAT = ss.ContactFrame("flat", COULOMB, point=lambda t, q: q[:2])
REFUSED = {
    "a gap twice": (lambda: changed(g_N=lambda s, t, q: q[1:2]),
                    "'ground'.* Changed.g_N gives its gap once more.*super"),
    "a slip twice": (lambda: changed(gamma_F=lambda s, t, q, u: u[:1]),
                     "gamma_F gives its friction velocity once more"),
    "a law twice": (lambda: changed(laws=lambda s: (ss.Contact(friction=ss.Coulomb(0.4)),)),
                    "gives its law once more"),
    "a name twice": (lambda: changed(contacts=lambda s: ("floor",)), "contacts names it once more"),
    "another slip before those of others": (
        lambda: changed(Braked, gamma_F=lambda s, t, q, u: u[::2]),
        r"gives gamma_F\[0\] otherwise \(by 1.0e-01\)"
    ),
    "a method": (type("Forgot", (Wheel,), {"touches": lambda self: ()}), "write @property above it"),
    "no frames": (lambda: changed(touches=lambda s: (COULOMB,)),
                  r"touches\[0\] must be an ss.ContactFrame, got Contact"),
    "no name": (lambda: wheel(name=""), "what the contact is called"),
    "a name too many": (lambda: wheel(name=("a", "a"), point=lambda t, q: jnp.zeros((2, 2))),
                        "the name 'a' is taken"),
    "no law": (lambda: wheel(law=ss.Coulomb(0.3)), "law must be an ss.Contact"),
    "two laws for one": (lambda: wheel(law=(COULOMB, COULOMB)), "2 laws for 1 names"),
    "two gaps": (lambda: wheel(gap=lambda t, q: q[1], opposite=[0.0, 0.0]), "gap and opposite both"),
    "what moves below": (lambda: wheel(opposite=lambda t, q: q[:2]),
                         'opposite is a function: say what is there'),
    "a word": (lambda: wheel(body="disc"), "body must be a pose"),
    "a number": (lambda: wheel(gap=0.1), "gap must be a function"),
    "rows": (lambda: wheel(point=lambda t, q: q[:2][None]), r"point has shape \(1, 2\), expected \(2,\)"),
    "no row": (lambda: wheel(name=("a", "b")), r"point has shape \(2,\), expected 2 names: \(2, 2\)"),
    "a long normal": (lambda: wheel(normal=[0.0, 2.0]), "'ground'.*length 1 and be orthogonal.* off by 3"),
    "a skew tangent": (lambda: wheel(normal=[0.0, 1.0], tangents=[[0.8, 0.6]]), "off by 6.0e-01"),
    "a shape": (lambda: wheel(normal=[0.0, 0.0, 1.0]), r"normal has shape \(3,\), expected \(2,\)"),
    "pivoting in the plane": (lambda: wheel(law=ss.Contact(friction=ss.Pivoting(0.1))),
                              "nothing turns about in the plane"),
    "two slips in the plane": (lambda: wheel(law=SPATIAL),
                               "Coulomb has 2 velocities, and with 1 tangent there is 1"),
    "rolling of a point": (lambda: wheel(law=ss.Contact(friction=ss.Rolling(0.1)), body="point"),
                           "needs a body that turns"),
    "a pose that is none": (lambda: wheel(body=lambda t, q: q), r"a pose is \(r, A\)"),
    "a pose that is no rotation": (lambda: wheel(body=lambda t, q: (q[:2], 2.0 * jnp.eye(2))), "off by 3.0e"),
    "whose matter": (lambda: changed(Mass, touches=lambda s: (FLAT,)), "body is missing"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_by_name(what):
    make, words = REFUSED[what]
    system = make()
    n = 2 if isinstance(system, Mass) else 3
    with pytest.raises((TypeError, ValueError), match=words):
        ss.initial_state(system, [0.0, 0.2, 0.0][:n], [0.5, 0.0, 1.0][:n])


# ---- benchmarks


def test_corners_of_a_benchmark():
    """Height of S + A c, and v_S + (A omega) x (A c)."""
    s = ss.benchmarks.load("sliding-cube").system
    _, q, u, g_N, gamma_F = states(s, 7, 6)
    A = np.asarray(rigid.rotation_matrix(q[:, 3:]))
    arms = np.einsum("nij,kj->nki", A, s.corners)
    v = u[:, None, :3] + np.cross(np.einsum("nij,nj->ni", A, u[:, 3:])[:, None], arms)
    assert same(g_N, q[:, 2:3] + arms[:, :, 2])
    assert same(gamma_F, v[:, :, :2].reshape(len(q), -1))
    assert not same(gamma_F, v[:, :, 1:].reshape(len(q), -1))


def test_the_tippedisk_is_that_of_the_paper():
    """(57), (59) with the grinding basis (58), written as there; without the eccentricity it is another."""
    s = ss.benchmarks.load("tippedisk").system
    _, q, u, g_N, gamma_F = states(s, 7, 6)

    def paper(e):
        A = np.asarray(rigid.rotation_matrix(q[:, 3:]))
        e_z = A[:, :, 2]
        e_x = np.cross([0.0, 0.0, 1.0], e_z)
        arm = -e * A[:, :, 0] - s.r * np.cross(e_z, e_x / np.linalg.norm(e_x, axis=1, keepdims=True))
        omega = np.einsum("nij,nj->ni", A, u[:, 3:])
        v = u[:, :3] + np.cross(omega, arm)
        return q[:, 2] + arm[:, 2], np.column_stack([v[:, :2], omega[:, 2]])

    gap, slip = paper(s.e)
    assert same(g_N[:, 0], gap)
    assert same(gamma_F, slip)
    assert not same(gamma_F, paper(0.0)[1])


def test_a_frame_is_no_field_that_is_set():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FLAT.name = "edge"
