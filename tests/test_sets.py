"""Projections and natural maps, against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickslip as ss
from stickslip.sets import Balls, NonPositive
from stickslip.stacked import StackedLaws

finite = st.floats(-10, 10, allow_nan=False, width=64)


def vectors(n):
    return st.lists(finite, min_size=n, max_size=n).map(np.array)


BALLS = Balls((2, 1, 3))


@settings(max_examples=60, deadline=None)
@given(vectors(6), st.lists(st.floats(0, 5), min_size=3, max_size=3).map(np.array), vectors(6))
def test_the_projection_is_the_nearest_point_of_the_ball(x, radius, other):
    p = np.asarray(BALLS.prox(jnp.array(x), jnp.array(radius)))
    for ball, members in enumerate(([0, 1], [2], [3, 4, 5])):
        assert np.linalg.norm(p[members]) <= radius[ball] + 1e-12
        candidate = other[members]
        norm = np.linalg.norm(candidate)
        if norm > radius[ball]:
            candidate = candidate * radius[ball] / norm
        assert np.linalg.norm(x[members] - p[members]) <= np.linalg.norm(x[members] - candidate) + 1e-12


@settings(max_examples=40, deadline=None)
@given(finite, st.floats(0.01, 100))
def test_signorini_is_the_zero_of_the_natural_map_for_any_rho(x, rho):
    gap, force = max(x, 0.0), max(-x, 0.0)  # complementary by construction
    assert force + float(NonPositive.prox(jnp.array(rho * gap - force))) == pytest.approx(0.0, abs=1e-12)
    # negative control: a gap that pulls
    assert abs(-1.0 + float(NonPositive.prox(jnp.array(rho * 0.5 + 1.0)))) > 0.5


def test_norm_and_direction_have_derivative_zero_at_zero():
    jac = jax.jacfwd(BALLS.norm)(jnp.zeros(6))
    assert np.all(np.isfinite(jac))
    assert np.all(jac == 0)
    assert np.all(np.isfinite(jax.jacfwd(BALLS.direction)(jnp.zeros(6))))


def test_an_open_contact_does_not_stick():
    laws = StackedLaws.of([ss.Contact(friction=ss.Coulomb(0.3))])
    one, zero, true = jnp.ones(1), jnp.zeros(1), jnp.ones(1, dtype=bool)
    active = laws.active_set(one, zero, zero, zero, one, one, true, true, 1.0)
    assert not active.normal[0]
    assert not active.stick[0]


def test_laws_stack_in_order_with_their_scales():
    laws = StackedLaws.of([
        ss.Contact(e_N=0.1, friction=(ss.Coulomb(0.3, dim=2, axes=[1.0, 0.5]), ss.Pivoting(0.01))),
        ss.Contact(e_N=0.2),
        ss.Contact(e_N=0.3, e_F=0.5, friction=ss.CoulombContensou(0.4, radius=1e-3)),
        ss.FrictionElement(2.0),
    ])  # fmt: skip
    assert laws.contact_of == (0, 0, 2, -1)
    assert laws.set.dimensions == (2, 1, 3, 1)
    assert laws.scale == pytest.approx([1, 0.5, 1, 1, 1, 3 * np.pi * 1e-3 / 16, 1])
    assert laws.e_F == pytest.approx([0, 0, 0, 0.5, 0.5, 0.5, 0])
    radii = laws.radii(jnp.array([1.0, 10.0, 100.0]), 0.5)
    assert radii == pytest.approx([0.3, 0.01, 40.0, 1.0])


def test_the_stribeck_part_lowers_friction_from_static_to_dynamic():
    total = lambda v: 0.5 - float(ss.stribeck(v, 0.5, 0.3, epsilon=3.0))
    assert total(0.0) == pytest.approx(0.5)
    assert total(1e6) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ss.Coulomb(-0.1), "mu"),
        (lambda: ss.Coulomb(float("nan")), "mu"),
        (lambda: ss.Coulomb(0.1, dim=3), "dim"),
        (lambda: ss.Coulomb(0.1, dim=2, axes=[1.0, 0.0]), "axes"),
        (lambda: ss.Coulomb(0.1, dim=2, axes=[1.0]), "axes"),
        (lambda: ss.RectangularCoulomb(0.1, axes=[1.0, -1.0]), "axes"),
        (lambda: ss.CoulombContensou(0.1, radius=-1.0), "radius"),
        (lambda: ss.Rolling(0.1, dim=3), "dim"),
        (lambda: ss.Pivoting(-1.0), "mu"),
        (lambda: ss.Contact(e_N=1.1), "e_N"),
        (lambda: ss.Contact(e_F=-0.1), "e_F"),
        (lambda: ss.FrictionElement(-1.0), "force"),
        (lambda: ss.FrictionElement(1.0, dim=0), "dim"),
    ],
)
def test_coefficients_that_make_no_sense_are_refused_by_name(make, word):
    with pytest.raises(ValueError, match=word):
        make()
    with pytest.raises(TypeError, match="friction"):
        ss.Contact(friction=(0.3,))


def test_two_thousand_spatial_contacts_are_compiled_at_once():
    """A membership matrix of balls and components would be 128 MB of program text."""
    many = Balls((2,) * 2000)
    x = np.random.default_rng(0).normal(size=4000)
    text = jax.jit(many.direction).lower(x).as_text()
    assert len(text) < 20_000
    pairs = x.reshape(2000, 2)
    assert np.asarray(many.direction(jnp.asarray(x))).reshape(2000, 2) == pytest.approx(
        pairs / np.linalg.norm(pairs, axis=1, keepdims=True)
    )


@pytest.mark.parametrize("dimensions", [(1, 1, 1), (2, 2), (2, 1, 3), ()])
def test_components_are_padded_and_flattened_ball_by_ball(dimensions):
    balls = Balls(dimensions)
    x = jnp.arange(1.0, 1.0 + 2 * balls.components).reshape(2, balls.components)  # with a leading axis
    rows = balls.padded(x)
    assert rows.shape == (2, len(dimensions), max(dimensions, default=0))
    assert np.array_equal(balls.flat(rows), x)
    begin = np.cumsum([0, *dimensions])
    for b, d in enumerate(dimensions):
        mine = np.asarray(x)[:, begin[b] : begin[b] + d]
        assert np.array_equal(np.asarray(rows)[:, b, :d], mine)
        assert np.all(np.asarray(rows)[:, b, d:] == 0.0)
        assert np.asarray(balls.norm(x))[:, b] == pytest.approx(np.linalg.norm(mine, axis=1))
