"""Many bodies: small versions of what `benchmarks/spheres.py` asks of thousands, each with a control that must fail."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import stickslip as ss

pytest.importorskip("numba", reason="sweeps on the processor")

import jax.numpy as jnp

from stickslip.many import (
    AndersonJacobi,
    AndersonSOR,
    Balls,
    Disks,
    Drum,
    LinearisedGaps,
    ManyBodies,
    Moreau,
    Plane,
    Rattle,
    box,
    load,
    resume,
    simulate,
)

G = 9.81
NOTHING_SOLVED = AndersonSOR(max_sweeps=1, depth=0, newton_below=0)
FRICTION = ss.Contact(friction=ss.Coulomb(0.5, dim=2))


def column(n, r=0.05, mu=0.5):
    """Balls on top of each other on a floor."""
    z = r * (2.0 * np.arange(n) + 1.0)
    balls = Balls(np.stack([0 * z, 0 * z, z], axis=1), r)
    return ManyBodies(balls, [Plane((0, 0, 0), (0, 0, 1))], law=ss.Contact(friction=ss.Coulomb(mu, dim=2)))


def loose(n=64, seed=0, across=4, law=FRICTION, r=0.05, walls=True):
    """A loose lattice of balls of 10 % different radii over the floor of a box."""
    rng = np.random.default_rng(seed)
    pitch, k = 2.3 * r, np.arange(n)
    x = pitch * (np.stack([k % across, k // across % across, k // across**2], axis=1) + 0.5)
    x += rng.uniform(-0.04, 0.04, x.shape) * r
    side = across * pitch
    bounds = box((0, 0, 0), (side, side, 100 * r)) if walls else ()
    return ManyBodies(Balls(x, r * rng.uniform(0.9, 1.1, n), density=2500.0), bounds, law=law)


def gas(law, n=100, seed=1):
    """A cloud that contracts, so that it collides; nothing acts from outside."""
    rng = np.random.default_rng(seed)
    cells = np.stack(np.meshgrid(*[np.arange(5)] * 3), axis=-1).reshape(-1, 3)[:n] - 2.0
    x = 0.15 * cells
    v = -2.0 * x + 0.1 * rng.standard_normal(x.shape)
    balls = Balls(x, rng.uniform(0.045, 0.055, n), velocity=v, spin=2.0 * rng.standard_normal(x.shape))
    return ManyBodies(balls, law=law, gravity=(0, 0, 0))


def momenta(sol, k):
    m, theta = sol.system.mass[:, None], sol.system.inertia[:, None]
    p = (m * sol.velocity[k]).sum(0)
    return p, (np.cross(sol.position[k], m * sol.velocity[k]) + theta * sol.spin[k]).sum(0)


@pytest.fixture(scope="module")
def settled():
    return loose().simulate(t1=3.0, dt=5e-3)


# -- the column: a closed form -----------------------------------------------------------------------------------------


def column_error(n, **options):
    system, dt = column(n), 5e-3
    sol = system.simulate(t1=4 * dt, dt=dt, **options)
    c = sol.contacts[-1]
    above = np.where(c.b == n, n, n - 1 - c.a)  # balls that a contact carries
    return np.abs(c.P_N / (above * system.mass[0] * G * dt) - 1.0).max(), sol


@pytest.mark.parametrize("n", [20, 200])
def test_a_resting_column_carries_its_weight(n):
    error, sol = column_error(n, tolerance=1e-11)
    assert error < 1e-6
    assert not sol.stats.accepted.any()
    assert sol.result == ss.RESULTS.successful


def test_a_column_that_is_not_solved_does_not():
    error, sol = column_error(20, tolerance=1e-11, solver=NOTHING_SOLVED)
    assert error > 1e-2
    assert sol.stats.accepted.all()
    assert sol.result == ss.RESULTS.accepted_at_residual


# -- the gas: balances ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [FRICTION, ss.Contact(e_N=0.7)], ids=["friction", "restitution"])
def test_a_free_gas_keeps_its_momenta_and_gains_no_energy(law):
    sol = gas(law).simulate(t1=0.6, dt=5e-3, tolerance=1e-10)
    assert sol.stats.contacts.sum() > 100
    size = (sol.system.mass[:, None] * np.abs(sol.velocity[0])).sum()
    for before, after, scale in zip(momenta(sol, 0), momenta(sol, -1), (size, 0.3 * size), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-12 * scale)
    energy = sol.energy()
    assert np.diff(energy).max() <= 1e-9 * energy[0]
    assert energy[-1] < 0.95 * energy[0]
    np.testing.assert_allclose(sol.stats.energy, energy[1:], rtol=1e-12)


def test_a_gas_whose_percussions_have_two_points_would_not():
    """The control: with P at the surface of each ball, not at one common point, overlapping balls gain angular momentum."""
    sol = gas(FRICTION).simulate(t1=0.4, dt=5e-3, tolerance=1e-10)
    lost = np.zeros(3)
    for k in range(1, len(sol.t)):
        c = sol.contacts[k]
        # the point on one surface and that on the other differ by it
        lost += (c.gap[:, None] * np.cross(c.normal, c.P)).sum(0)
    assert np.abs(lost).max() > 1e-9 * (sol.system.mass[:, None] * np.abs(sol.velocity[0])).sum()


# -- the pile: certificate and law, from outside ------------------------------------------------------------------------


def natural_map(sol, k, x=None):
    """Residual and largest entry of the step that ends at row k, from rows and percussions alone, by other code.

    ``x``: where contacts are looked at, by default in the middle of the step.
    """
    s, c = sol.system, sol.contacts[k]
    dt, n = sol.t[k] - sol.t[k - 1], len(s)
    x = sol.position[k - 1] + dt / 2 * sol.velocity[k - 1] if x is None else x
    m, theta = np.append(s.mass, [np.inf] * 9), np.append(s.inertia, [np.inf] * 9)
    wall = c.b >= n
    la = s.radius[c.a] + np.where(wall, c.gap, c.gap / 2)
    lb = np.where(wall, 0.0, np.append(s.radius, np.zeros(9))[c.b] + c.gap / 2)
    point = x[c.a] + la[:, None] * c.normal

    def gamma(v, w):
        out = -v[c.a] - np.cross(w[c.a], point - x[c.a])
        between = ~wall
        b = c.b[between]
        out[between] += v[b] + np.cross(w[b], point[between] - x[b])
        return out

    free = gamma(sol.velocity[k - 1] + dt * s.gravity, sol.spin[k - 1])
    after = gamma(sol.velocity[k], sol.spin[k])
    G_N = 1 / m[c.a] + 1 / m[c.b]
    G_T = G_N + la**2 / theta[c.a] + lb**2 / theta[c.b]
    g_N = (after * c.normal).sum(-1)
    F_N = G_N * (c.P_N - np.maximum(c.P_N - g_N / G_N, 0.0))
    y = c.P_F - (after - g_N[:, None] * c.normal) / G_T[:, None]
    size, radius = np.linalg.norm(y, axis=-1), 0.5 * c.P_N
    y *= np.where(size > radius, radius / np.where(size > 0, size, 1.0), 1.0)[:, None]
    F = np.hypot(F_N, G_T * np.linalg.norm(c.P_F - y, axis=-1))
    return np.linalg.norm(F) / np.linalg.norm(free), F.max()


def test_the_certificate_is_that_of_the_law(settled):
    for k in (20, 60, 120, 200, len(settled.t) - 1):
        residual, error = natural_map(settled, k)
        assert settled.stats.residual[k - 1] == pytest.approx(residual, rel=1e-6, abs=1e-12)
        assert settled.stats.velocity_error[k - 1] == pytest.approx(error, rel=1e-6, abs=1e-12)


def test_percussions_are_in_their_cones_and_velocities_balance_them(settled):
    s = settled.system
    for k in range(1, len(settled.t), 7):
        c, dt = settled.contacts[k], settled.t[k] - settled.t[k - 1]
        size = np.abs(c.P).max(initial=0.0)
        assert c.P_N.min(initial=0.0) >= -1e-15 * size
        assert (np.linalg.norm(c.P_F, axis=-1) - 0.5 * c.P_N).max(initial=0.0) <= 1e-14 * size
        change = s.mass[:, None] * (settled.velocity[k] - settled.velocity[k - 1] - dt * s.gravity)
        np.add.at(change, c.a, c.P)
        inside = c.b < len(s)
        np.subtract.at(change, c.b[inside], c.P[inside])
        assert np.abs(change).max() <= 1e-12 * max(size, s.mass.max() * G * dt)


def weight_error(sol):
    down = -sol.stats.wall_percussion[-1, :, 2].sum() / (sol.t[-1] - sol.t[-2])
    return abs(down / (sol.system.mass.sum() * G) - 1.0)


def test_a_settled_pile_weighs_what_it_weighs(settled):
    assert settled.stats.residual[-1] <= 1e-6
    assert weight_error(settled) < 1e-3


def test_a_pile_that_is_not_solved_does_not():
    # one sweep a step solves what is at rest
    hardly = AndersonSOR(max_sweeps=1, depth=0, relaxation=0.02, newton_below=0)
    assert weight_error(loose().simulate(t1=3.0, dt=5e-3, solver=hardly)) > 1e-3


def test_balls_stay_in_the_box_and_apart(settled):
    _, _, gap = settled.system.gaps(settled.position[-1], 0.0)
    # a step at the fastest approach
    assert -gap.min() < 5e-3 * 2.0 * np.linalg.norm(settled.velocity, axis=-1).max()
    slower = loose().simulate(t1=1.0, dt=2.5e-3)
    _, _, finer = slower.system.gaps(slower.position[-1], 0.0)
    assert finer.min() > gap.min()  # velocity level: smaller steps, less overlap


# -- laws of one contact: closed forms ---------------------------------------------------------------------------------


def on_slope(friction, angle, spin=(0, 0, 0), velocity=(0, 0, 0), n=2, t1=0.5, e_N=0.0, method=None):
    """Balls that touch a plane, gravity being inclined by the angle."""
    x = np.stack([np.arange(n), 0 * np.arange(n), 0.1 + 0 * np.arange(n)], axis=1)
    balls = Balls(x, 0.1, velocity=velocity, spin=spin)
    law = ss.Contact(e_N=e_N, friction=friction)
    down = (G * np.sin(angle), 0, -G * np.cos(angle))
    heap = ManyBodies(balls, [Plane((0, 0, 0), (0, 0, 1))], law=law, gravity=down)
    return heap.simulate(t1=t1, dt=1e-3, tolerance=1e-12, method=method)


@pytest.mark.parametrize(
    ("mu", "acceleration"), [(0.5, 5 / 7 * np.sin(0.4)), (0.05, np.sin(0.4) - 0.05 * np.cos(0.4))]
)
def test_a_ball_on_a_slope_rolls_or_slides(mu, acceleration):
    """Rolls if mu >= 2/7 tan, with 5/7 g sin; otherwise slides, with g (sin - mu cos)."""
    sol = on_slope(ss.Coulomb(mu, dim=2), 0.4)
    assert sol.velocity[-1, 0, 0] == pytest.approx(acceleration * G * 0.5, rel=1e-9)


def test_without_friction_nothing_rolls():
    assert on_slope((), 0.4).velocity[-1, 0, 0] == pytest.approx(np.sin(0.4) * G * 0.5, rel=1e-9)


def test_rolling_friction_slows_a_ball_and_holds_it():
    """mu_r N / r as a retarding force, times 5/7, until it stops; on a slope below tan = mu_r / r it does not start."""
    friction = (ss.Coulomb(0.5, dim=2), ss.Rolling(0.002, dim=2))
    sol = on_slope(friction, 0.0, velocity=(1.0, 0, 0), spin=(0, 10.0, 0))
    assert sol.velocity[-1, 0, 0] == pytest.approx(1.0 - 5 / 7 * 0.02 * G * 0.5, rel=1e-9)
    assert np.abs(on_slope(friction, 0.019).velocity[-1]).max() < 1e-12
    assert np.abs(on_slope(friction, 0.021).velocity[-1]).max() > 1e-3


def test_pivoting_friction_stops_a_spinning_ball():
    """theta d omega/dt = -mu_p m g."""
    friction, rate = (ss.Coulomb(0.5, dim=2), ss.Pivoting(0.001)), 0.001 * G / (0.4 * 0.01)
    sol = on_slope(friction, 0.0, spin=(0, 0, 3.0))
    assert sol.spin[-1, 0, 2] == pytest.approx(3.0 - rate * 0.5, rel=1e-9)
    assert np.abs(on_slope(friction, 0.0, spin=(0, 0, 1.0)).spin[-1]).max() < 1e-12


@pytest.mark.parametrize("e_N", [0.0, 0.5, 1.0])
def test_impacts_obey_newton(e_N):
    balls = Balls([[0, 0, 0], [0.3, 0, 0]], 0.1, density=[1000.0, 3000.0], velocity=[[2.0, 0, 0], [0, 0, 0]])
    sol = ManyBodies(balls, law=ss.Contact(e_N=e_N), gravity=(0, 0, 0)).simulate(t1=0.2, dt=1e-3)
    assert sol.velocity[-1, 1, 0] - sol.velocity[-1, 0, 0] == pytest.approx(2.0 * e_N, abs=1e-12)


def test_no_partner_of_a_large_ball_is_forgotten():
    """A ball among a thousand small ones that all touch it: the contacts there are, found by other code."""
    rng = np.random.default_rng(0)
    out = rng.standard_normal((30_000, 3))
    out = 1.0001 * out / np.linalg.norm(out, axis=1)[:, None]
    keep = []
    for k in range(len(out)):  # apart from each other
        if len(keep) == 700:
            break
        if not keep or np.linalg.norm(out[keep] - out[k], axis=1).min() > 0.05:
            keep.append(k)
    balls = [Balls([[0, 0, 0]], 0.98), Balls(out[keep], 0.02, velocity=-0.1 * out[keep])]
    sol = ManyBodies(balls, law=ss.Contact(), gravity=(0, 0, 0)).simulate(
        t1=0.01, dt=0.01, solver=AndersonSOR(newton_below=0)
    )
    assert len(keep) == 700
    assert sol.stats.contacts[0] == 700


def test_materials_have_laws_by_pair():
    balls = [
        Balls([[0, 0, 0.1]], 0.1, velocity=(1, 0, 0), material="ice"),
        Balls([[1, 0, 0.1]], 0.1, velocity=(1, 0, 0), material="wood"),
    ]
    laws = {("floor", "wood"): FRICTION}
    sol = ManyBodies(balls, [Plane((0, 0, 0), (0, 0, 1), material="floor")], laws=laws).simulate(
        t1=0.5, dt=1e-3
    )
    assert sol.velocity[-1, 0, 0] == pytest.approx(1.0)
    assert sol.velocity[-1, 1, 0] == pytest.approx(5 / 7)


def test_a_moving_wall_carries_and_a_belt_drives():
    """A floor that swings pushes a stuck ball sideways; its velocity comes from its motion, by differentiation."""
    import jax.numpy as jnp

    floor = Plane((0, 0, 0), (0, 0, 1), moved=lambda t: jnp.array([0.0, 0.0, 0.05 * jnp.sin(4.0 * t)]))
    sol = ManyBodies(Balls([[0, 0, 0.1]], 0.1), [floor], law=FRICTION).simulate(t1=1.0, dt=1e-3)
    height = 0.1 + 0.05 * np.sin(4.0 * sol.t)
    assert np.abs(sol.position[:, 0, 2] - height).max() < 1e-3
    assert np.ptp(height) > 0.05


# -- disks in a drum ---------------------------------------------------------------------------------------------------


def mixer(mu=0.3, n=40):
    k = np.arange(n)
    x = 0.065 * np.stack([k % 7 - 3.0, k // 7 - 2.5], axis=1)
    drum = Drum((0, 0), 0.3, rate=2.0)
    return ManyBodies(Disks(x, 0.03), [drum], law=ss.Contact(friction=ss.Coulomb(mu)))


def test_a_drum_turns_disks_about():
    sol = mixer().simulate(t1=2.0, dt=2e-3)
    torque = sol.stats.wall_moment[500:, 0, 2].mean() / 2e-3
    assert torque < -0.1 * sol.system.mass.sum() * G * 0.3  # they hold it back
    assert np.linalg.norm(sol.position[-1], axis=1).max() < 0.3
    assert np.abs(sol.position[-1][:, 2]).max() == 0.0
    for k in range(600, 1000, 40):
        c = sol.contacts[k]
        assert (np.linalg.norm(c.P_F, axis=1) <= 0.3 * c.P_N * (1 + 1e-12) + 1e-18).all()


def test_without_friction_the_drum_turns_alone():
    sol = mixer(mu=0.0).simulate(t1=1.0, dt=2e-3)
    assert np.abs(sol.stats.wall_moment[:, 0, 2]).max() < 1e-12
    assert np.abs(sol.spin[-1]).max() < 1e-12


@pytest.mark.parametrize(
    "options", [{}, {"solver": AndersonJacobi()}, {"method": Rattle()}, {"method": LinearisedGaps()}]
)
def test_rolling_friction_takes_part_in_the_turning_of_a_drum(options):
    law = ss.Contact(friction=ss.Rolling(0.01))
    disk = ManyBodies(Disks([[0, -0.25]], 0.05), [Drum((0, 0), 0.3, rate=2.0)], law=law)
    sol = disk.simulate(t1=0.1, dt=1e-3, **options)
    assert sol.spin[10, 0, 2] == pytest.approx(0.01 * G * sol.t[10] / (0.5 * 0.05**2), rel=1e-3)
    assert sol.spin[-1, 0, 2] == pytest.approx(2.0, rel=1e-9)


# -- the third outcome --------------------------------------------------------------------------------------------------


def test_what_is_not_solved_is_counted_and_said():
    sol = loose().simulate(t1=0.5, dt=5e-3, solver=NOTHING_SOLVED)
    count = int(sol.stats.accepted.sum())
    assert 0 < count < 100
    assert (sol.stats.residual[sol.stats.accepted] > 1e-6).all()
    assert f"{100 - count} solved to 1e-06, {count} accepted at residuals up to" in sol.summary()
    assert sol.result != ss.RESULTS.successful


@pytest.mark.parametrize(("method", "speed"), [(Moreau(), 1e200), (Rattle(), 1e200), (Rattle(), 1e308)])
def test_a_motion_without_bounds_ends_with_an_error(method, speed):
    balls = Balls([[0, 0, 0], [1, 0, 0]], 0.1, velocity=[[speed, 0, 0], [-speed, 0, 0]])
    with pytest.raises(ss.SimulationError, match=r"step 1, t = 4: a nan or an infinity appeared"):
        ManyBodies(balls, gravity=(0, 0, 0)).simulate(t1=8.0, dt=4.0, method=method)


def test_on_unsolved_raise_names_step_time_and_remedy():
    with pytest.raises(
        ss.SimulationError, match=r"step \d+, t = .* contacts were not solved to tolerance=1e-06: residual"
    ) as e:
        loose().simulate(t1=0.5, dt=5e-3, solver=NOTHING_SOLVED, on_unsolved="raise")
    assert 0 < len(e.value.solution.t) < 101
    assert not e.value.solution.stats.accepted.any()


def test_on_unsolved_halve_divides_the_steps_that_need_it():
    few = AndersonSOR(max_sweeps=12, newton_below=0)
    plain = loose().simulate(t1=0.3, dt=5e-3, solver=few)
    halved = loose().simulate(t1=0.3, dt=5e-3, solver=few, on_unsolved="halve")
    assert plain.stats.accepted.sum() > halved.stats.accepted.sum()
    assert halved.stats.parts.max() > 1
    assert (halved.stats.parts[~plain.stats.accepted & (np.cumsum(halved.stats.parts > 1) == 0)] == 1).all()
    assert len(halved.t) == len(plain.t)


# -- other methods: contact on position level ---------------------------------------------------------------------------

RATTLE = Rattle(linearisations=20)  # to the tolerance, however small


class FewDisks(ss.System):
    """The dense oracle: disks in the plane between planes, pushed at points in the middle of gaps."""

    r: tuple
    m: tuple
    planes: tuple  # (point, normal)
    law: ss.Contact

    def M(self, t, q):
        both = zip(self.m, self.r, strict=True)
        return jnp.diag(jnp.concatenate([jnp.array([m, m, 0.5 * m * r * r]) for m, r in both]))

    def h(self, t, q, u):
        return jnp.concatenate([m * jnp.array([0.0, -G, 0.0]) for m in self.m])

    def meeting(self, q):
        """Bodies (None: a plane), normals from one to the other, gaps."""
        x, n, out = q.reshape(-1, 3)[:, :2], len(self.r), []
        for i in range(n):
            for j in range(i + 1, n):
                distance = jnp.linalg.norm(x[j] - x[i])
                out.append((i, j, (x[j] - x[i]) / distance, distance - self.r[i] - self.r[j]))
            for point, normal in self.planes:
                away = jnp.array(normal)
                out.append((i, None, -away, (x[i] - jnp.array(point)) @ away - self.r[i]))
        return out

    def g_N(self, t, q):
        return jnp.stack([gap for *_, gap in self.meeting(q)])

    def gamma_F(self, t, q, u):
        v, out = u.reshape(-1, 3), []
        for i, j, n, gap in self.meeting(q):
            across = jnp.array([-n[1], n[0]])
            if j is None:
                out.append(-v[i, :2] @ across - (self.r[i] + gap) * v[i, 2])
            else:
                spins = (self.r[i] + gap / 2) * v[i, 2] + (self.r[j] + gap / 2) * v[j, 2]
                out.append((v[j] - v[i])[:2] @ across - spins)
        return jnp.stack(out)

    @property
    def laws(self):
        n = len(self.r)
        return (self.law,) * (n * (n - 1) // 2 + n * len(self.planes))


def beside_dense(law, method, dense, dt=2e-3, t1=0.3):
    """Largest differences of positions, velocities, spins of four disks between two planes, and contacts."""
    r = np.array([0.1, 0.12, 0.09, 0.11])
    x = np.array([[0.0, 0.1], [0.30, 0.14], [0.12, 0.36], [0.42, 0.40]])
    v, w = np.array([[0.5, 0.0], [-0.3, 0.1], [0.1, -0.5], [-0.4, -0.2]]), np.array([3.0, -2.0, 4.0, 1.0])
    planes = (((0.0, 0.0), (0.0, 1.0)), ((0.75, 0.0), (float(np.cos(2.1)), float(np.sin(2.1)))))
    disks = Disks(x, r, density=10.0, velocity=v, spin=w)
    heap = ManyBodies(disks, [Plane(p, n) for p, n in planes], law=law)
    here = heap.simulate(t1=t1, dt=dt, tolerance=1e-13, method=method)
    system = FewDisks(tuple(map(float, r)), tuple(map(float, heap.mass)), planes, law)
    q0, u0 = np.column_stack([x, 0 * w]).ravel(), np.column_stack([v, w]).ravel()
    there = ss.simulate(system, dense, q0, u0, t1=t1, dt=dt)
    q, u = (np.asarray(part).reshape(len(there.t), -1, 3) for part in (there.q, there.u))
    moved, fast = here.position[..., :2] - q[..., :2], here.velocity[..., :2] - u[..., :2]
    return [np.abs(d).max() for d in (moved, fast, here.spin[..., 2] - u[..., 2])], int(
        here.stats.contacts.sum()
    )


@pytest.mark.parametrize("e_N", [0.0, 0.6])
def test_rattle_is_the_dense_one(e_N):
    """Impacts, slip, stick and rolling of disks: other code, another solver, the same motion."""
    law = ss.Contact(e_N=e_N, friction=ss.Coulomb(0.4))
    for friction in ("stagewise", "printed"):
        worst, contacts = beside_dense(law, Rattle(20, friction), ss.Rattle(friction=friction))
        assert contacts > 100
        assert max(worst) < 1e-9
    off, _ = beside_dense(law, Moreau(), ss.Rattle())  # the control
    assert max(off) > 1e-3


def on_incline(n, method, t1=0.4):
    """A ball that slides across a slope, its slip turning: errors of place and velocity, by a fine integration."""
    from scipy.integrate import solve_ivp

    mu, r, angle = 0.15, 0.1, 0.3
    down = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    ball = Balls([[0, 0, r]], r, velocity=[[0, 1.5, 0]], spin=[[3.0, 5.0, 2.0]])
    law = ss.Contact(friction=ss.Coulomb(mu, dim=2))
    heap = ManyBodies(ball, [Plane((0, 0, 0), (0, 0, 1))], law=law, gravity=down)

    def smooth(t, y):
        slip = y[2:4] + r * np.array([-y[5], y[4]])
        F = -mu * G * np.cos(angle) * slip / np.linalg.norm(slip)
        return np.concatenate([y[2:4], F + np.array([down[0], 0.0]), np.array([F[1], -F[0]]) / (0.4 * r)])

    exact = solve_ivp(smooth, (0, t1), [0, 0, 0, 1.5, 3, 5], rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    sol = heap.simulate(t1=t1, dt=t1 / n, method=method, tolerance=1e-11, save_every=n)
    found = sol.position[-1, 0, :2] - exact[:2], sol.velocity[-1, 0, :2] - exact[2:4]
    return tuple(np.abs(d).max() for d in found)


def test_rattle_has_order_2_where_a_slip_turns():
    for coarse, fine in zip(on_incline(60, RATTLE), on_incline(600, RATTLE), strict=True):
        assert 1.95 < np.log10(coarse / fine) < 2.05
    for method in (Moreau(), LinearisedGaps(), Rattle(20, "printed")):  # controls
        assert np.log10(on_incline(60, method)[1] / on_incline(600, method)[1]) < 1.1


def rolled(n, method, t1=0.5):
    """A ball that rolls inside an upright drum: where it is in the end."""
    law = ss.Contact(friction=ss.Coulomb(5.0, dim=2))
    ball = Balls([[0.8, 0, 0]], 0.2, velocity=[[0, 3.0, 0]], spin=[[4.0, 0, -15.0]])
    heap = ManyBodies(ball, [Drum((0, 0, 0), 1.0)], law=law)
    return heap.simulate(t1=t1, dt=t1 / n, method=method, tolerance=1e-10, save_every=n).position[-1, 0]


def order_of_rolling(method):
    """From three step sizes, so that nothing has to be known."""
    x = [rolled(n, method) for n in (40, 80, 160)]
    return np.log2(np.linalg.norm(x[0] - x[1]) / np.linalg.norm(x[1] - x[2]))


def test_rattle_has_order_2_where_a_ball_rolls_on_what_is_curved():
    assert 1.9 < order_of_rolling(RATTLE) < 2.1
    assert order_of_rolling(Rattle(20, "printed")) < 1.5  # the control


def overlaps(sol):
    """Largest overlap at every row."""
    return np.array(
        [
            -min(sol.system.gaps(x, 0.0, t)[2].min(initial=0.0), 0.0)
            for x, t in zip(sol.position, sol.t, strict=True)
        ]
    )


@pytest.mark.parametrize("method", [Rattle(), LinearisedGaps()])
def test_on_position_level_bodies_overlap_by_what_the_certificate_says(method):
    dt = 5e-3
    sol = loose().simulate(t1=1.0, dt=dt, method=method)
    deep = overlaps(sol)[1:]
    assert (deep <= dt * sol.stats.velocity_error + 1e-14).all()
    assert deep[~sol.stats.accepted].max() < 1e-7
    assert deep.max() < 1e-4
    assert overlaps(loose().simulate(t1=1.0, dt=dt)).max() > 1e-3  # the control: on velocity level


@pytest.mark.parametrize("method", [Rattle(), LinearisedGaps()])
def test_a_tube_of_ten_does_not_sink(method):
    r, k = 0.05, np.arange(10)
    radius = r * np.where(k % 2, 1.0, 0.98)
    x = np.stack([0 * k + r, 0 * k + r, r * (2 * k + 1) + 0.01 * (k + 1)], axis=1)
    tube = ManyBodies(Balls(x, radius), box((0, 0, 0), (2 * r, 2 * r, 4.0)), law=FRICTION)
    for chosen, sinks in ((method, False), (Moreau(), True)):
        end = tube.simulate(t1=1.0, dt=5e-3, method=chosen, save_every=50).position[-1, :, 2]
        closed = radius[0] + np.concatenate([[0.0], np.cumsum(radius[:-1] + radius[1:])])
        assert (np.abs(end - closed).max() > 1e-3) == sinks
        assert sinks or (closed - end).max() < 1e-9


def position_stage(sol, k):
    """Largest entry of the natural map of a position stage, and how far R is off the motion; other code.

    Of the printed law, for balls and planes.
    """
    s, c, n, dt = sol.system, sol.contacts[k], len(sol.system), sol.t[k] - sol.t[k - 1]
    between = c.b < n
    b = np.minimum(c.b, n - 1)
    um = (sol.position[k] - sol.position[k - 1]) / dt
    off = s.mass[:, None] * (um - sol.velocity[k - 1] - dt / 2 * s.gravity)  # (25a)
    np.add.at(off, c.a, c.R)
    np.subtract.at(off, c.b[between], c.R[between])
    spin = np.zeros_like(um)
    directions = np.array([-w.direction for w in s.walls.walls])[np.maximum(c.b - n, 0)]
    places = np.array([w.place for w in s.walls.walls])[np.maximum(c.b - n, 0)]
    sides = []
    for x in (sol.position[k - 1], sol.position[k]):
        away = x[b] - x[c.a]
        distance = np.linalg.norm(away, axis=1)
        normal = np.where(between[:, None], away / np.where(distance > 0, distance, 1.0)[:, None], directions)
        to_wall = ((places - x[c.a]) * directions).sum(1) - s.radius[c.a]
        gap = np.where(between, distance - s.radius[c.a] - s.radius[b], to_wall)
        la = s.radius[c.a] + np.where(between, gap / 2, gap)
        lb = np.where(between, s.radius[b] + gap / 2, 0.0)
        sides.append((normal, gap, la, lb))
    n0, _, la, lb = sides[0]
    arm = np.cross(n0, c.R)
    spin += sol.spin[k - 1]
    np.add.at(spin, c.a, -la[:, None] * arm / s.inertia[c.a][:, None])
    np.add.at(spin, b, -(lb * between)[:, None] * arm / s.inertia[b][:, None])
    n1, gap, la1, lb1 = sides[1]
    v_b, w_b = um[b] * between[:, None], spin[b] * between[:, None]
    gamma = v_b - um[c.a] - np.cross(la1[:, None] * spin[c.a] + lb1[:, None] * w_b, n1)
    slip = gamma - (gamma * n1).sum(1)[:, None] * n1
    axis = np.cross(n1, n0)  # turned back to the normals that R has
    once = np.cross(axis, slip)
    slip = slip + once + np.cross(axis, once) / (1.0 + (n0 * n1).sum(1))[:, None]
    G_N = 1 / s.mass[c.a] + np.where(between, 1 / s.mass[b], 0.0)
    G_T = G_N + la**2 / s.inertia[c.a] + np.where(between, lb**2 / s.inertia[b], 0.0)
    R_N = (c.R * n0).sum(1)
    R_F = c.R - R_N[:, None] * n0
    F_N = G_N * (R_N - np.maximum(R_N - gap / dt / G_N, 0.0))  # (33)
    y = R_F - slip / G_T[:, None]
    size, radius = np.linalg.norm(y, axis=1), 0.5 * np.maximum(R_N, 0.0)
    y *= np.where(size > radius, radius / np.where(size > 0, size, 1.0), 1.0)[:, None]
    return np.hypot(F_N, G_T * np.linalg.norm(R_F - y, axis=1)).max(initial=0.0), np.abs(off).max()  # (36)


def test_the_certificate_covers_both_stages():
    """From rows and percussions alone, by other code; a step that is hardly solved shows it."""
    poor = AndersonSOR(max_sweeps=4, depth=0, newton_below=0)
    largest = np.zeros(2)
    for solver in (AndersonSOR(), poor):
        sol = loose().simulate(t1=0.8, dt=5e-3, method=Rattle(friction="printed"), solver=solver)
        for k in range(40, len(sol.t), 8):
            first, off = position_stage(sol, k)
            _, second = natural_map(sol, k, sol.position[k])  # (32), (34)
            assert off < 1e-12
            assert max(first, second) == pytest.approx(sol.stats.velocity_error[k - 1], rel=1e-5, abs=1e-9)
            largest = np.maximum(largest, [first, second])
        c = sol.contacts[-1]
        assert (np.linalg.norm(c.P_F, axis=1) <= 0.5 * c.P_N * (1 + 1e-12) + 1e-15).all()
    assert largest.min() > 1e-4


@pytest.mark.parametrize("method", [Rattle(), LinearisedGaps()])
def test_closed_forms_hold_for_other_methods(method):
    sliding, rolls = ss.Coulomb(0.5, dim=2), ss.Rolling(0.002, dim=2)
    run = lambda friction, angle=0.0, **start: on_slope(friction, angle, method=method, **start)
    rolled = run((sliding, rolls), velocity=(1.0, 0, 0), spin=(0, 10.0, 0))
    assert rolled.velocity[-1, 0, 0] == pytest.approx(1.0 - 5 / 7 * 0.02 * G * 0.5, rel=1e-9)
    assert np.abs(run((sliding, rolls), 0.019).velocity[-1]).max() < 1e-12
    assert np.abs(run((sliding, rolls), 0.021).velocity[-1]).max() > 1e-3
    spun = run((sliding, ss.Pivoting(0.001)), spin=(0, 0, 3.0))
    assert spun.spin[-1, 0, 2] == pytest.approx(3.0 - 0.001 * G / 0.004 * 0.5, rel=1e-9)
    for mu, acceleration in ((0.5, 5 / 7 * np.sin(0.4)), (0.05, np.sin(0.4) - 0.05 * np.cos(0.4))):
        assert run(ss.Coulomb(mu, dim=2), 0.4).velocity[-1, 0, 0] == pytest.approx(
            acceleration * G * 0.5, rel=1e-9
        )


@pytest.mark.parametrize("e_N", [0.0, 0.5, 1.0])
def test_impacts_of_rattle_obey_newton(e_N):
    balls = Balls([[0, 0, 0], [0.3, 0, 0]], 0.1, density=[1000.0, 3000.0], velocity=[[2.0, 0, 0], [0, 0, 0]])
    pair = ManyBodies(balls, law=ss.Contact(e_N=e_N), gravity=(0, 0, 0))
    sol = pair.simulate(t1=0.2, dt=1e-3, method=Rattle())
    assert sol.velocity[-1, 1, 0] - sol.velocity[-1, 0, 0] == pytest.approx(2.0 * e_N, abs=1e-12)


@pytest.mark.parametrize("method", [Rattle(2), LinearisedGaps()])
def test_other_methods_are_stored_and_resumed_bit_for_bit(method, tmp_path):
    pytest.importorskip("zarr")
    heap = loose(27, across=3)
    options = {"dt": 5e-3, "method": method, "on_unsolved": "halve", "solver": AndersonSOR(newton_below=0)}
    whole = heap.simulate(t1=0.6, **options)
    assert whole.stats.parts.max() > 1
    file = tmp_path / "run.zarr"
    heap.simulate(t1=0.3, file=file, chunk=7, **options)
    same(resume(file, heap, t1=0.6), whole)
    same(load(file, heap), whole)
    assert not np.array_equal(heap.simulate(t1=0.6, dt=5e-3).position[-1], whole.position[-1])


@pytest.mark.parametrize("method", [Rattle(), LinearisedGaps()])
def test_other_methods_in_a_drum_and_on_a_moving_wall(method):
    sol = mixer().simulate(t1=0.6, dt=2e-3, method=method)
    mean = sol.stats.wall_moment[100:, 0, 2].mean() / 2e-3
    assert mean < -0.02 * sol.system.mass.sum() * G * 0.3  # disks hold the drum back
    out = np.linalg.norm(sol.position[-1, :, :2], axis=1).max() - 0.27
    assert out < (1e-6 if isinstance(method, Rattle) else 1e-4)
    floor = Plane((0, 0, 0), (0, 0, 1), moved=lambda t: jnp.array([0.0, 0.0, 0.05 * jnp.sin(4.0 * t)]))
    one = ManyBodies(Balls([[0, 0, 0.1]], 0.1), [floor], law=FRICTION)
    for chosen, rises in ((method, False), (Moreau(), True)):
        sol = one.simulate(t1=1.0, dt=5e-3, method=chosen)
        assert (np.abs(sol.position[:, 0, 2] - 0.1 - 0.05 * np.sin(4.0 * sol.t)).max() > 1e-4) == rises
        down = -sol.stats.wall_percussion[:, 0, 2].sum()
        gained = sol.system.mass[0] * (sol.velocity[-1, 0, 2] + G * 1.0)
        assert down == pytest.approx(gained, rel=1e-9)


def test_methods_that_cannot_be_had_are_refused_by_name():
    one = ManyBodies(Balls([[0.0, 0, 1.0]], 0.1), law=ss.Contact(e_N=0.3))
    with pytest.raises(TypeError, match=r"Moreau, Rattle or LinearisedGaps of stickslip.many, got Rattle of"):
        one.simulate(t1=1.0, dt=0.1, method=ss.Rattle())
    with pytest.raises(ValueError, match=r"no impact law, and e_N=0.3 of default and default needs one"):
        one.simulate(t1=1.0, dt=0.1, method=LinearisedGaps())
    with pytest.raises(ValueError, match=r"on the device of JAX there is Moreau\(\) alone; use AndersonSOR"):
        one.simulate(t1=1.0, dt=0.1, method=Rattle(), solver=AndersonJacobi())
    with pytest.raises(ValueError, match=r"Rattle\(linearisations=0\): must be a whole number"):
        Rattle(0)
    with pytest.raises(ValueError, match=r"Rattle\(friction='none'\): friction must be 'stagewise'"):
        Rattle(friction="none")


# -- on the device of JAX ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_device():
    solver = AndersonJacobi(max_iterations=1000, deterministic=True)
    return loose().simulate(t1=0.25, dt=5e-3, tolerance=1e-9, solver=solver)


def test_the_device_takes_the_same_steps(on_device):
    """Another search, another solver, other sums: the same motion, as far as the tolerance says."""
    there, here = on_device, loose().simulate(t1=0.25, dt=5e-3, tolerance=1e-9)
    assert not there.stats.accepted.any()
    assert here.stats.contacts[-1] > 60
    np.testing.assert_array_equal(there.stats.contacts, here.stats.contacts)
    np.testing.assert_allclose(there.velocity, here.velocity, rtol=0, atol=1e-6)
    np.testing.assert_allclose(there.rotation, here.rotation, rtol=0, atol=1e-7)
    # Which wall bears how much is not unique, what they bear together is.
    together = (run.stats.wall_percussion.sum(axis=1) for run in (there, here))
    np.testing.assert_allclose(*together, rtol=0, atol=1e-6)
    one, two = there.contacts[-1], here.contacts[-1]
    order = np.lexsort((two.b, two.a))
    np.testing.assert_array_equal(np.stack([one.a, one.b]), np.stack([two.a, two.b])[:, order])


def test_its_certificate_is_that_of_the_law(on_device):
    for k in (20, 35, 50):
        residual, error = natural_map(on_device, k)
        assert on_device.stats.residual[k - 1] == pytest.approx(residual, rel=1e-5, abs=1e-12)
        assert on_device.stats.velocity_error[k - 1] == pytest.approx(error, rel=1e-5, abs=1e-12)


def test_it_is_what_there_is_without_numba(monkeypatch):
    from stickslip.many import solvers

    assert isinstance(solvers.default_solver(), AndersonSOR)
    monkeypatch.setattr(solvers, "find_spec", lambda name: None)
    assert isinstance(solvers.default_solver(), AndersonJacobi)


# -- seeing ------------------------------------------------------------------------------------------------------------


def test_packing_fraction_and_coordination_of_a_lattice():
    k = np.stack(np.meshgrid(*[np.arange(5)] * 3), axis=-1).reshape(-1, 3)
    sol = ManyBodies(Balls(0.1 * k, 0.05, velocity=-1e-3 * k), gravity=(0, 0, 0)).simulate(t1=0.01, dt=0.01)
    assert sol.packing_fraction(0, (0.1,) * 3, (0.3,) * 3) == pytest.approx(np.pi / 6, abs=2e-3)
    assert sol.packing_fraction(0, (-0.05,) * 3, (0.45,) * 3) == pytest.approx(np.pi / 6, abs=2e-3)
    assert sol.coordination(1) == pytest.approx(2 * 300 / 125)
    assert sol.coordination(0) == 0.0


def test_pictures_and_films(tmp_path):
    pytest.importorskip("matplotlib")
    sol = mixer().simulate(t1=0.3, dt=2e-3, save_every=10)
    sol.plot(tmp_path / "run.png")
    sol.film(tmp_path / "run.gif", frames=3, chains=True)
    for name in ("run.png", "run.gif"):
        assert (tmp_path / name).stat().st_size > 5000
    with pytest.raises(ValueError, match=r"must end in \.gif or \.mp4"):
        sol.film(tmp_path / "run.avi")


# -- long runs ----------------------------------------------------------------------------------------------------------


def same(one, two):
    for name in ("t", "position", "rotation", "velocity", "spin"):
        assert np.array_equal(getattr(one, name)[:], getattr(two, name)[:]), name
    for name, column in vars(one.stats).items():
        assert np.array_equal(column, getattr(two.stats, name)), name
    assert len(one.contacts) == len(two.contacts)
    for k in range(len(one.contacts)):
        assert all(np.array_equal(a, b) for a, b in zip(one.contacts[k], two.contacts[k], strict=True))


RUN = """
from pathlib import Path
from test_many import loose
loose(27, across=3).simulate(t1=3.0, dt=5e-3, file="run.zarr", chunk=20, save_every=3)
"""


def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    pytest.importorskip("zarr")
    heap = loose(27, across=3)
    whole = heap.simulate(t1=3.0, dt=5e-3, save_every=3)
    paths = f"{Path(__file__).parent}{os.pathsep}{Path(ss.__file__).parent.parent}"
    child = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}
    )
    file = tmp_path / "run.zarr"
    waited = time.monotonic()
    while (
        not (file / "checkpoint.npz").exists() and time.monotonic() - waited < 60.0 and child.poll() is None
    ):
        time.sleep(0.01)
    time.sleep(float(np.random.default_rng().uniform(0.0, 0.1)))
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = load(file, heap)
    assert 20 <= len(before.t) <= 201
    after = resume(file, heap)
    same(after, whole)
    same(load(file, heap), whole)
    assert not after.interrupted
    # The control: a warm start forgotten is seen.
    assert not np.array_equal(
        loose().simulate(t1=3.0, dt=5e-3, solver=AndersonSOR(depth=4)).position[-1], whole.position[-1]
    )


def test_two_runs_agree_bit_for_bit(settled):
    half = loose().simulate(t1=1.0, dt=5e-3)
    assert np.array_equal(half.position, settled.position[:201])
    assert np.array_equal(half.stats.residual, settled.stats.residual[:200])
    assert not np.array_equal(loose(seed=1).simulate(t1=0.2, dt=5e-3).position, settled.position[:41])


def test_lists_grow_by_themselves():
    system = loose()
    start = system.start()
    system.start = lambda: start._replace(contacts=start.contacts._replace(capacity=1))
    assert system.simulate(t1=1.0, dt=5e-3).position[-1] == pytest.approx(
        loose().simulate(t1=1.0, dt=5e-3).position[-1], abs=0
    )


def test_a_file_of_another_system_is_refused(tmp_path):
    pytest.importorskip("zarr")
    file = tmp_path / "run.zarr"
    loose().simulate(t1=0.05, dt=5e-3, file=file)
    with pytest.raises(FileExistsError, match="resume"):
        loose().simulate(t1=0.05, dt=5e-3, file=file)
    with pytest.raises(ss.FileError, match="another system"):
        resume(file, loose(seed=3))
    with pytest.raises(ss.FileError, match="another system"):
        load(file, loose(law=ss.Contact()))
    longer = resume(file, loose(), t1=0.1)
    assert len(longer.t) == 21


# -- bad input ----------------------------------------------------------------------------------------------------------

ONE = Balls([[0.0, 0, 1.0]], 0.1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Balls([[0, 0]], 0.1), r"Balls\(position\): position must have shape \(bodies, 3\)"),
        (lambda: Balls([[0, 0, 0]], -0.1), r"Balls\(radius\): radius must be positive, got -0.1"),
        (lambda: Balls([[0, 0, np.nan]], 0.1), r"Balls\(position\): position must be finite, got nan"),
        (
            lambda: Balls([[0, 0, 0]], 0.1, velocity=[1, 2]),
            r"Balls\(velocity\): velocity must have shape \(1, 3\), got \(2,\)",
        ),
        (lambda: Disks([[0, 0]], 0.1, material=3), r"Disks\(material=3\): material must be a name"),
        (lambda: Plane((0, 0, 0), (0, 0, 0)), r"Plane\(normal\): normal must not be zero"),
        (
            lambda: Plane((0, 0, 0), (0, 0, 1), moved=lambda t: t),
            r"Plane\(moved\): moved\(t\) must have 3 components",
        ),
        (lambda: box((0, 0), (1, -1)), r"high must be above low"),
        (lambda: ManyBodies([]), r"ManyBodies\(bodies\)"),
        (
            lambda: ManyBodies(Balls([[0, 0, 0], [0, 0, 0.19]], 0.1)),
            r"body 0 and body 1 overlap by 0.01 m at the start",
        ),
        (lambda: ManyBodies(ONE, box((0, 0, 0), (1, 1, 1))), r"body 0 and the wall '-x' overlap by 0.1 m"),
        (
            lambda: ManyBodies(ONE, laws={("wood", "wood"): FRICTION}),
            r"laws: nothing is made of 'wood'; materials are default",
        ),
        (lambda: ManyBodies(ONE, law=ss.Contact(e_F=0.5)), r"law of default and default: e_F=0.5"),
        (
            lambda: ManyBodies(ONE, law=ss.Contact(friction=ss.CoulombContensou(0.1, 0.1))),
            "CoulombContensou is not there",
        ),
        (lambda: ManyBodies(ONE, gravity=(0, 1)), r"ManyBodies\(gravity\): gravity must have shape \(3,\)"),
        (
            lambda: ManyBodies(Disks([[0, 0]], 0.1), [Plane((0, 0, -1), (0, 0, 1))]),
            "normal must lie in the plane of the disks",
        ),
        (lambda: simulate(ManyBodies(ONE), t1=1.0, dt=0.0), r"simulate\(dt=0.0\): dt must be positive"),
        (
            lambda: simulate(ManyBodies(ONE), t1=1.0, dt=0.1, on_unsolved="ignore"),
            r"on_unsolved='ignore'\): must be one of 'accept'",
        ),
        (
            lambda: simulate(ManyBodies(ONE), t1=1.0, dt=0.1, tolerance=np.inf),
            r"tolerance must be a finite number",
        ),
        (
            lambda: simulate(ManyBodies(ONE), t1=1.0, dt=0.1, save_every=0),
            r"save_every must be a whole number",
        ),
        (
            lambda: simulate(ManyBodies(ONE), t1=1.0, dt=0.1, solver="newton"),
            r"solver='newton'\): must be an AndersonSOR",
        ),
        (
            lambda: AndersonSOR(max_sweeps=0),
            r"AndersonSOR\(max_sweeps=0\): max_sweeps must be a whole number of at least 1",
        ),
        (lambda: AndersonSOR(relaxation=2.0), r"relaxation must be between 0 and 2"),
    ],
)
def test_bad_input_is_refused_by_name(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
