"""Friction stage by stage: the full order where slip turns and where turning bodies roll,
and nothing lost elsewhere.
"""

import dataclasses
from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from conftest import slope
from stickslip.benchmarks.puck import exact
from stickslip.methods import REGISTRY
from stickslip.rigid import rotation_matrix

# At these accuracies the tolerance of the solver must not show.
PRECISE = ss.Automatic(newton=ss.SemismoothNewton(atol=1e-15))
# errors in q at 50, 100, 200 steps of two-stage Radau IIA, from a prototype
PRINTED = (7.4e-4, 3.8e-4, 1.9e-4)


@lru_cache
def tippedisk(method, steps, friction="stagewise"):
    b = ss.benchmarks.load("tippedisk")
    chosen = REGISTRY[method](friction=friction, solver=PRECISE)
    return ss.simulate(b.system, chosen, b.q0, b.u0, t1=0.1, dt=0.1 / steps).q[:: steps // 50]


def tippedisk_errors(method, friction):
    return [np.abs(tippedisk(method, n, friction) - tippedisk("radau3", 800)).max() for n in (50, 100, 200)]


def test_the_reference_of_the_tippedisk_is_the_independent_one():
    q = tippedisk("radau3", 800)[-1]
    assert q[2] == pytest.approx(0.042516205186604, abs=1e-13)
    assert np.arccos(1 - 2 * (q[4] ** 2 + q[5] ** 2)) == pytest.approx(1.562154490482, abs=2e-11)


@pytest.mark.slow
def test_the_printed_law_is_first_order_on_the_tippedisk():
    """Negative control, and `friction="printed"` reproduces the papers' schemes."""
    errors = tippedisk_errors("radau2", "printed")
    assert errors == pytest.approx(PRINTED, rel=0.03)
    assert slope(1.0 / np.array([50, 100, 200]), errors) < 1.6


@pytest.mark.slow
def test_two_stages_at_a_thousandth_beat_moreau_at_a_hundred_thousandth_a_hundred_times():
    b = ss.benchmarks.load("tippedisk")
    moreau = ss.simulate(b.system, ss.MoreauMidpoint(), b.q0, b.u0, t1=0.1, dt=1e-5).q[::200]
    error = np.abs(moreau - tippedisk("radau3", 800)).max()
    for method in ("radau2", "lobatto3"):
        assert np.abs(tippedisk(method, 100) - tippedisk("radau3", 800)).max() < error / 100


# -- rolling: a contact that sticks on a body that turns
# ---------------------------------------------------------------


def disc_error(method, steps):
    b = ss.benchmarks.load("rolling-disc")
    sol = ss.simulate(b.system, method, b.q0, b.u0, t1=b.t1, dt=b.t1 / steps)
    normal = np.asarray(rotation_matrix(jnp.asarray(sol.q[-1, 3:])))[:, 2]
    # well inside its cone
    assert np.linalg.norm(sol.P_F[1:], axis=1) == pytest.approx(0.3786 * sol.P_N[1:, 0], rel=0.02)
    return max(np.abs(sol.q[-1, :3] - b.q0[:3]).max(), np.abs(normal - np.array(b.reference["normal"])).max())


@pytest.mark.slow
def test_rolling_disc_returns_with_the_full_order_and_with_the_printed_law_it_does_not():
    steps = np.array([250, 500, 1000])
    errors, printed = (
        [disc_error(ss.LobattoIIIAB(2, friction=law), n) for n in steps] for law in ("stagewise", "printed")
    )
    assert slope(1 / steps, errors) == pytest.approx(2, abs=0.1)
    assert slope(1 / steps, printed) == pytest.approx(1, abs=0.2)
    assert np.all(np.array(printed) > 5 * np.array(errors))


class KnifeEdge(ss.System):
    """A skate on an incline, q = (x, y, phi): a bilateral constraint on velocity level that turns."""

    def M(self, t, q):
        return jnp.eye(3)

    def h(self, t, q, u):
        return jnp.array([2.0, 0.0, 0.0])

    def gamma(self, t, q, u):
        return jnp.array([jnp.sin(q[2]) * u[0] - jnp.cos(q[2]) * u[1]])


def knife_edge(t, omega):
    return np.array([np.sin(omega * t) ** 2, omega * t - np.sin(2 * omega * t) / 2]) / omega**2


@pytest.mark.parametrize(
    ("make", "order", "printed"),
    [
        (ss.Rattle, 2, 1),
        (lambda **k: ss.LobattoIIIAB(2, **k), 2, 1),
        (lambda **k: ss.LobattoIIIAB(3, **k), 4, 3),
    ],
    ids=["rattle", "lobatto2", "lobatto3"],
)
def test_constraints_on_velocity_level_have_the_full_order(make, order, printed):
    """A skate with given spin omega = 3: x and y in closed form."""
    steps, omega = np.array([16, 32, 64]), 3.0

    def errors(method):
        sols = [ss.simulate(KnifeEdge(), method, [0, 0, 0], [0, 0, omega], t1=1.0, dt=1 / n) for n in steps]
        return [np.abs(s.q[-1, :2] - knife_edge(1.0, omega)).max() for s in sols]

    assert slope(1 / steps, errors(make())) == pytest.approx(order, abs=0.2)
    assert slope(1 / steps, errors(make(friction="printed"))) < order - 0.5


# -- the puck: turning slip in closed form, then rest
# ------------------------------------------------------------------


def test_the_closed_form_of_the_puck_obeys_its_equations():
    b = ss.benchmarks.load("puck")
    assert exact(0.0) == pytest.approx(np.concatenate([b.q0[:2], b.u0[:2]]), abs=1e-12)
    t, h = 0.3, 1e-5
    x, before, after = exact(t), exact(t - h), exact(t + h)
    assert (after[:2] - before[:2]) / (2 * h) == pytest.approx(x[2:], abs=1e-8)
    slip = x[2:] / np.linalg.norm(x[2:])
    g, alpha, mu = 9.81, np.radians(20.0), 0.5
    assert (after[2:] - before[2:]) / (2 * h) == pytest.approx(
        g * np.array([np.sin(alpha), 0]) - mu * g * np.cos(alpha) * slip, abs=1e-7
    )


@pytest.mark.parametrize("name", ["rattle", "lobatto3", "radau2", "generalized-alpha"])
def test_puck_comes_to_rest_where_it_should(name):
    b = ss.benchmarks.load("puck")
    sol = ss.simulate(b.system, REGISTRY[name](solver=PRECISE), b.q0, b.u0, t1=b.t1, dt=b.dt)
    assert sol.q[-1, :2] == pytest.approx(np.array(b.reference["rest"]), abs=1e-5)
    stopped = sol.t > b.reference["stop_time"] + 2 * b.dt
    assert np.abs(sol.u[stopped]).max() < 1e-10
    if name == "lobatto3":  # negative control
        printed = ss.simulate(b.system, REGISTRY[name](friction="printed"), b.q0, b.u0, t1=b.t1, dt=b.dt)
        assert np.abs(printed.q[-1, :2] - np.array(b.reference["rest"])).max() > 1e-3


# -- deciding
# ----------------------------------------------------------------------------------------------------------


def obeys_the_laws(sol):
    """Percussions push, stay in their cones and take energy: true of both laws."""
    laws = sol.system.laws
    mu = laws[0].friction[0].mu
    n = len(laws)
    scale = np.ones(sol.P_F.shape[1] // n)
    if isinstance(laws[0].friction[0], ss.CoulombContensou):
        scale[2] = 1.0 / (3 * np.pi * laws[0].friction[0].radius / 16)
    P_F = np.linalg.norm(sol.P_F.reshape(-1, n, len(scale)) * scale, axis=2)
    return bool(np.all(sol.P_N >= -1e-12) and np.all(P_F <= float(mu) * sol.P_N * (1 + 1e-9) + 1e-13))


def test_the_check_of_the_laws_fails_where_it_must():
    """Negative controls: friction outside of its cone, and a contact that pulls."""
    b = ss.benchmarks.load("puck")
    sol = ss.simulate(b.system, ss.Rattle(), b.q0, b.u0, t1=0.1, dt=b.dt)
    assert obeys_the_laws(sol)
    assert not obeys_the_laws(dataclasses.replace(sol, P_F=1.01 * sol.P_F))
    assert not obeys_the_laws(dataclasses.replace(sol, P_N=-sol.P_N, P_F=0.0 * sol.P_F))


def random_start(name, rng):
    b = ss.benchmarks.load(name)
    q0, u0 = np.array(b.q0), np.array(b.u0)
    if name == "tippedisk":  # another spin, with the contact as slow in normal direction as it is
        u0 = u0 * rng.uniform(0.2, 1.5)
    elif name == "puck":
        u0[:2] = rng.normal(size=2) * 10.0 ** rng.uniform(-3, 1)
        q0[2] = rng.choice([0.0, 0.01])
    else:
        q0[2] += rng.uniform(0.0, 0.02)
        u0 = u0 + rng.normal(size=u0.shape) * np.abs(u0).max() * 0.3
        u0[2] = abs(u0[2]) if name == "tetrahedron" else 0.0
    return b, q0, u0


class SpatialBall(ss.rigid.SpatialBody):
    """A ball on a plane, with sliding friction and, coupled to it or apart from it, pivoting."""

    law: ss.laws.FrictionLaw
    m: float = 1.0
    r: float = 0.1
    gravity: float = 9.81

    @property
    def inertia(self):
        return 0.4 * self.m * self.r**2 * jnp.ones(3)

    def g_N(self, t, q):
        return q[2:3] - self.r

    def gamma_F(self, t, q, u):
        v = ss.rigid.spatial.velocity_at(q, u, jnp.array([0.0, 0.0, -self.r]))
        return jnp.array([v[0], v[1], ss.rigid.spatial.omega(q, u)[2]])

    @property
    def laws(self):
        friction = (
            self.law if isinstance(self.law, ss.CoulombContensou) else (self.law, ss.Pivoting(0.3 * 0.01))
        )
        return (ss.Contact(e_N=0.3, friction=friction),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"),
    [("puck", "rattle"), ("puck", "radau2"), ("tippedisk", "rattle"), ("tetrahedron", "rattle")],
)
def test_every_step_of_random_runs_ends_in_one_of_the_laws(name, method):
    rng = np.random.default_rng(7)
    for _ in range(15):
        b, q0, u0 = random_start(name, rng)
        sol = ss.simulate(b.system, REGISTRY[method](), q0, u0, t1=0.2, dt=2e-3)
        assert sol.result == ss.RESULTS.successful
        assert obeys_the_laws(sol)
        assert sol.g_N().min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [ss.Coulomb(0.3, dim=2), ss.CoulombContensou(0.3, 0.01)], ids=["pivoting", "contensou"]
)
def test_every_step_of_random_rolling_balls_ends_in_one_of_the_laws(law):
    rng = np.random.default_rng(8)
    ball = SpatialBall(law)
    for k in range(15):
        u0 = np.concatenate([rng.normal(size=2), [0.0], 10 * rng.normal(size=3)])
        q0 = [0.0, 0.0, 0.1 + 0.02 * (k % 2), 1.0, 0.0, 0.0, 0.0]
        sol = ss.simulate(ball, ss.Rattle(), q0, u0, t1=0.5, dt=5e-3)
        assert sol.result == ss.RESULTS.successful
        E = sol.energy()
        assert np.all(np.diff(E) < 1e-9)
        v = np.array([ball.gamma_F(0.0, q, u)[:2] for q, u in zip(sol.q[-3:], sol.u[-3:], strict=True)])
        if sol.P_N[-1, 0] > 0 and np.abs(v).max() < 1e-9:  # rolling: stays so
            assert np.abs(v).max() < 1e-10


class Sledge(ss.System):
    """A bar on two feet with friction, in the plane: q = (x, y, phi).

    ``order``: in which order its feet are listed.
    """

    order: tuple = eqx.field(static=True)

    def M(self, t, q):
        return jnp.diag(jnp.array([1.0, 1.0, 0.1]))

    def h(self, t, q, u):
        return jnp.array([4.0 * jnp.sin(5.0 * t), -9.81, 8.0 * jnp.cos(7.0 * t)])

    def _feet(self, q):
        return jnp.array([[-0.5, -0.2], [0.5, -0.2]])[jnp.array(self.order)]

    def g_N(self, t, q):
        f = self._feet(q)
        return q[1] + jnp.sin(q[2]) * f[:, 0] + jnp.cos(q[2]) * f[:, 1]

    def gamma_F(self, t, q, u):
        f = self._feet(q)
        return u[0] - u[2] * (jnp.sin(q[2]) * f[:, 0] + jnp.cos(q[2]) * f[:, 1])

    @property
    def laws(self):
        mus = [0.2, 0.4]
        return tuple(ss.Contact(e_N=0.2, friction=ss.Coulomb(mus[i])) for i in self.order)


@pytest.mark.parametrize("name", ["rattle", "radau2"])
def test_the_order_of_contacts_does_not_matter(name):
    a, b = (
        ss.simulate(Sledge(order), REGISTRY[name](), [0.0, 0.2, 0.0], [0.0, 0.0, 0.0], t1=2.0, dt=5e-3)
        for order in ((0, 1), (1, 0))
    )
    assert a.q == pytest.approx(b.q, abs=1e-8)
    assert a.P_N == pytest.approx(b.P_N[:, ::-1], abs=1e-8)
    assert a.P_N.min(axis=1).max() > 0  # both feet push at times, and at times one has left
    assert a.g_N().max() > 1e-6


def test_iterations_are_about_those_of_the_printed_law(kind):
    if kind in ("moreau", "shifted-moreau"):
        pytest.skip("has no stages")
    b = ss.benchmarks.load("bouncing-ball", 2)
    means = []
    for friction in ("stagewise", "printed"):
        sol = ss.simulate(b.system, REGISTRY[kind](friction=friction), b.q0, b.u0, t1=b.t1, dt=b.dt)
        means.append(sol.stats.newton_iterations.sum(axis=1).mean())
    assert means[0] < 1.3 * means[1]


class Passing(ss.System):
    """A mass slides on the floor into a wall; its inertia passes the impact on to the floor."""

    def M(self, t, q):
        return jnp.array([[1.0, 0.0, -0.5], [0.0, 1.0, 0.0], [-0.5, 0.0, 1.0]])

    def h(self, t, q, u):
        return jnp.array([0.0, 0.0, -9.81])

    def g_N(self, t, q):
        return jnp.array([q[2], 1.0 - q[0]])

    def gamma_F(self, t, q, u):
        return u[:2]

    @property
    def laws(self):
        return ss.Contact(friction=ss.Coulomb(0.3, dim=2)), ss.Contact()


@pytest.mark.parametrize("name", ["rattle", "lobatto3", "radau2", "generalized-alpha"])
def test_an_impact_that_comes_through_another_contact_obeys_the_impact_law(name):
    start = [0.9987, 0.0, 0.0], [3.0, 2.0, 0.0]
    expected = ss.simulate(Passing(), ss.MoreauMidpoint(), *start, t1=0.01, dt=1e-5).u[-1, 1]
    for dt in (1.1e-4, 3.7e-5):
        sol = ss.simulate(Passing(), REGISTRY[name](), *start, t1=0.01, dt=dt)
        assert sol.u[-1, 1] == pytest.approx(expected, abs=5 * dt)


def test_a_law_that_does_not_exist_is_refused():
    for make in (
        ss.Rattle,
        ss.RadauIIA,
        ss.LobattoIIIAB,
        ss.LobattoIIIC,
        ss.SDIRK2,
        ss.TRTheta,
        ss.GeneralizedAlpha,
    ):
        with pytest.raises(ValueError, match="stagewise"):
            make(friction="spatial")


def test_the_old_name_of_the_printed_law_is_understood():
    with pytest.warns(DeprecationWarning, match="friction='printed'"):
        old = ss.RadauIIA(2, friction="integrated")
    assert old.friction == "printed"
    with pytest.raises(ValueError, match="must be 'stagewise' or 'printed'"):
        ss.Rattle(friction="no such law")
