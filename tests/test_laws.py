"""Every friction law against its reservoir: where it slips,
the percussion maximises dissipation over the reservoir.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.laws import BallSpec, FrictionLaw
from stickslip.methods import REGISTRY

R = 0.01
A3 = 3.0 * math.pi * R / 16.0
AXES = jnp.array([0.4, 0.8])


class Puck(ss.System):
    """Pressed on a plane by a force and spinning about all axes: u = (v_x, v_y, v_z, w_x, w_y,
    w_z), small rotations.
    """

    laws: tuple
    columns: tuple = eqx.field(static=True, default=())  # which velocities the laws see
    load: tuple = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    pressure: float = 5.0

    def M(self, t, q):
        return jnp.diag(jnp.array([1.0, 1.0, 1.0, 0.5, 0.4, 0.3]))

    def h(self, t, q, u):
        return jnp.asarray(self.load) - jnp.array([0.0, 0.0, self.pressure, 0.0, 0.0, 0.0])

    def g_N(self, t, q):
        return q[2:3]

    def gamma_F(self, t, q, u):
        return u[np.asarray(self.columns)]


def ellipsoid(mu, axes):
    """argmin of P . gamma over the ellipsoid with semi-axes mu a_i: -mu a_i^2 gamma_i/|A gamma|."""
    return lambda g: -mu * np.square(axes) * g / np.linalg.norm(axes * g)


def box(*bounds):
    return lambda g: -np.asarray(bounds) * np.sign(g)


def both(f, n, g):
    return lambda x: np.concatenate([f(x[:n]), g(x[n:])])


# law, the velocities it sees, force per unit of normal force as a function of the velocity
LAWS = {
    "coulomb-1": (ss.Coulomb(0.3), (0,), box(0.3)),
    "coulomb-2": (ss.Coulomb(0.3, dim=2), (0, 1), ellipsoid(0.3, np.ones(2))),
    "elliptical": (ss.Coulomb(0.3, dim=2, axes=AXES), (0, 1), ellipsoid(0.3, np.asarray(AXES))),
    "rectangular": (ss.RectangularCoulomb(0.3, AXES), (0, 1), box(0.12, 0.24)),
    "pivoting": (ss.Pivoting(0.02), (5,), box(0.02)),
    "rolling-1": (ss.Rolling(0.03), (3,), box(0.03)),
    "rolling-2": (ss.Rolling(0.03, dim=2), (3, 4), box(0.03, 0.03)),
    "contensou": (ss.CoulombContensou(0.3, R), (0, 1, 5), ellipsoid(0.3, np.array([1.0, 1.0, A3]))),
    "contensou-elliptical": (
        ss.CoulombContensou(0.3, R, axes=AXES),
        (0, 1, 5),
        ellipsoid(0.3, np.array([0.4, 0.8, A3])),
    ),
    "all on one contact": (
        (ss.Coulomb(0.3, dim=2), ss.Pivoting(0.02), ss.Rolling(0.03, dim=2)),
        (0, 1, 5, 3, 4),
        both(ellipsoid(0.3, np.ones(2)), 2, box(0.02, 0.03, 0.03)),
    ),
}
U0 = np.array([0.8, -0.5, 0.0, 0.7, -0.6, 0.9])


@pytest.mark.parametrize("name", LAWS)
def test_a_slipping_law_takes_the_most_energy_its_reservoir_allows(name):
    law, columns, force = LAWS[name]
    system = Puck((ss.Contact(friction=law),), columns)
    dt = 1e-2
    for method in (
        ("moreau", "rattle", "radau2") if name in ("elliptical", "all on one contact") else ("moreau",)
    ):
        # the law itself, over a whole step: stage by stage a slip that turns has less
        options = {} if method == "moreau" else {"friction": "printed"}
        sol = ss.simulate(system, REGISTRY[method](**options), np.zeros(6), U0, t1=5 * dt, dt=dt)
        assert sol.P_N[1:, 0] == pytest.approx(5.0 * dt)
        for k in range(1, 6):
            # the printed schemes take the direction at the end of the step
            assert sol.P_F[k] == pytest.approx(5.0 * dt * force(sol.u[k][list(columns)]), rel=1e-8, abs=1e-12)
        # the percussions are the true ones: they are what changes the momentum
        M = np.array([1.0, 1.0, 1.0, 0.5, 0.4, 0.3])
        gained = (M * (sol.u[-1] - sol.u[0]))[list(columns)]
        assert gained == pytest.approx(sol.P_F.sum(axis=0), abs=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_what_is_inside_of_its_reservoir_and_lets_go_outside(name):
    law, columns, force = LAWS[name]
    direction = np.array([0.7, -0.5, 0.4, 0.6, -0.3])[: len(columns)]
    bound = -5.0 * force(direction)  # on the boundary, opposite to a slip along `direction`
    for factor, holds in ((0.98, True), (1.05, False)):
        load = np.zeros(6)
        load[list(columns)] = factor * bound
        system = Puck((ss.Contact(friction=law),), columns, load=tuple(load))
        sol = ss.simulate(system, ss.MoreauMidpoint(), np.zeros(6), np.zeros(6), t1=0.1, dt=1e-2)
        slip = np.abs(sol.u[-1][list(columns)])
        assert (slip.max() < 1e-12) == holds
        if holds:
            assert sol.P_F[-1] == pytest.approx(-1e-2 * load[list(columns)], abs=1e-12)


def test_a_constant_reservoir_needs_no_contact():
    system = Puck((ss.Contact(), ss.FrictionElement(0.4, dim=2), ss.FrictionElement(0.1)), (0, 1, 5))
    sol = ss.simulate(system, ss.MoreauMidpoint(), np.zeros(6), U0, t1=0.05, dt=1e-2)
    g = sol.u[-1]
    expected = [*(-0.4e-2 * g[:2] / np.linalg.norm(g[:2])), -0.1e-2 * np.sign(g[5])]
    assert sol.P_F[-1] == pytest.approx(expected, abs=1e-14)


def test_the_smooth_part_of_a_stribeck_curve_lowers_friction_from_static_to_dynamic():
    smooth = [float(ss.stribeck(g, 0.5, 0.3, 3.0, 10.0)) for g in (0.0, 1e9, -1e9)]
    assert smooth == pytest.approx([0.0, 2.0, -2.0], abs=1e-6)  # added to -/+ 5: from 5 to 3


def test_the_mirror_image_of_an_ellipse_is_seen():
    """The control: exchanging the axes must break the check of the elliptical law."""
    law, columns, _ = LAWS["elliptical"]
    sol = ss.simulate(
        Puck((ss.Contact(friction=law),), columns), ss.MoreauMidpoint(), np.zeros(6), U0, t1=1e-2, dt=1e-2
    )
    wrong = ellipsoid(0.3, np.asarray(AXES)[::-1])
    assert sol.P_F[1] != pytest.approx(5e-2 * wrong(sol.u[1][:2]), rel=1e-2)


def test_a_law_of_two_lines_is_enough():
    """It says which balls it has; a check of its coefficients is optional."""

    class Skid(FrictionLaw):
        def balls(self):
            return [BallSpec([1.0], 0.3)]

    sol = ss.simulate(
        Puck((ss.Contact(friction=Skid()),), (0,)), ss.MoreauMidpoint(), np.zeros(6), U0, t1=1e-2, dt=1e-2
    )
    assert sol.P_F[1] == pytest.approx(-0.3 * 5e-2)
