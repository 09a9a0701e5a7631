"""The planar beam against closed forms and tabulated locking; clamped at xi = 0, L = 0.2,
EA = 1.89e7, EI = 14.2.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import eigh

import stickslip as ss

L, EI = 0.2, 14.2


def clamped(degree, elements):
    """The beam along x, and which coordinates are free: r(0) and the direction there are held."""
    beam = ss.PlanarBeam(L, 1.89e7, EI, 0.71, degree=degree, elements=elements)
    free = np.setdiff1d(np.arange(beam.size), [0, 1, 3])
    return beam, free


def equilibrium(beam, free, potential, steps):
    """Newton's method on energy + s * potential, s in steps up to 1."""
    q0 = np.asarray(beam.straight((0.0, 0.0), (1.0, 0.0)))

    def total(x, s):
        q = jnp.asarray(q0).at[free].set(x)
        return beam.energy(q) + s * potential(q)

    gradient, hessian = jax.jit(jax.grad(total)), jax.jit(jax.hessian(total))
    x = q0[free]
    for s in np.linspace(0.0, 1.0, steps + 1)[1:]:
        for _ in range(60):
            dx = -np.linalg.solve(hessian(x, s), gradient(x, s))
            x = x + dx
            if np.abs(dx).max() < 1e-13:
                break
    return np.asarray(jnp.asarray(q0).at[free].set(x))


def tip_angle(beam, q):
    t = beam.at(1.0, jnp.asarray(q), 1)
    return jnp.arctan2(t[1], t[0])


@pytest.mark.parametrize(
    ("degree", "elements", "quarter"),
    [(2, 2, 0.487), (2, 8, 1.458), (3, 8, 1.570784), (3, 16, 1.5707957)],
)
def test_a_tip_moment_bends_to_a_circle_unless_the_mesh_locks(degree, elements, quarter):
    """M L/EI = pi/2: the exact rotation is pi/2; coarse quadratic meshes lock, by as much as tabulated."""
    beam, free = clamped(degree, elements)
    moment = np.pi / 2 * EI / L
    q = equilibrium(beam, free, lambda q: -moment * tip_angle(beam, q), steps=8)
    digits = 5e-4 if degree == 2 else 2e-6
    assert float(tip_angle(beam, q)) == pytest.approx(quarter, abs=digits)
    if (degree, elements) == (3, 16):
        a = np.pi / 2
        assert beam.at(1.0, jnp.asarray(q)) == pytest.approx(
            L * np.array([np.sin(a), 1 - np.cos(a)]) / a, abs=1e-6
        )


@pytest.mark.parametrize(
    ("degree", "elements", "ratio"), [(2, 2, 0.9375), (2, 4, 0.984375), (2, 16, 0.9990234), (3, 4, 1.0)]
)
def test_a_small_tip_load_deflects_by_the_textbook(degree, elements, ratio):
    beam, free = clamped(degree, elements)
    P = 1e-3
    q = equilibrium(beam, free, lambda q: -P * beam.at(1.0, q)[1], steps=1)
    assert beam.at(1.0, jnp.asarray(q))[1] / (P * L**3 / (3 * EI)) == pytest.approx(ratio, abs=1e-6)


@pytest.mark.parametrize(
    ("load", "angle", "w", "u"),
    [(1.0, 0.4613519497, 0.3017207738, 0.0564332363), (10.0, 1.4302855388, 0.8106090249, 0.5549955978)],
)
def test_a_large_tip_load_follows_the_elastica(load, angle, w, u):
    beam, free = clamped(3, 16)
    P = load * EI / L**2
    q = equilibrium(beam, free, lambda q: -P * beam.at(1.0, q)[1], steps=10)
    x, y = np.asarray(beam.at(1.0, jnp.asarray(q))) / L
    # the beam stretches a little, the elastica does not: P/EA = 2e-4 at the larger load
    assert [float(tip_angle(beam, q)), y, 1 - x] == pytest.approx([angle, w, u], abs=5e-5 * max(1.0, load))


@pytest.mark.parametrize(
    ("degree", "elements", "factors"), [(2, 2, (3.694819, 37.6003)), (3, 4, (3.516138, 22.07334))]
)
def test_clamped_free_frequencies(degree, elements, factors):
    beam, free = clamped(degree, elements)
    q = beam.straight((0.0, 0.0), (1.0, 0.0))
    K = np.asarray(jax.hessian(beam.energy)(q))[np.ix_(free, free)]
    M = np.asarray(beam.M())[np.ix_(free, free)]
    bending = [np.sqrt(v) * np.sqrt(0.71 * L**4 / EI) for v in eigh(K, M, eigvals_only=True)[:2]]
    assert bending == pytest.approx(factors, rel=2e-6)


def test_mass_and_weight_are_those_of_the_beam():
    beam, _ = clamped(3, 8)
    M = np.asarray(beam.M())
    sideways = np.tile([1.0, 0.0], beam.nodes)
    assert sideways @ M @ sideways == pytest.approx(0.71 * L)
    assert np.asarray(beam.weight(9.81)) @ np.tile([0.0, 1.0], beam.nodes) == pytest.approx(-0.71 * L * 9.81)
    # straight is undeformed, anywhere
    assert np.abs(beam.forces(beam.straight((1.0, 2.0), (3.0, -1.0)))).max() < 1e-6


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="degree >= 2"):
        ss.PlanarBeam(1.0, 1.0, 1.0, 1.0, degree=1)
    with pytest.raises(ValueError, match=r"EI=-1\.0"):
        ss.PlanarBeam(1.0, 1.0, -1.0, 1.0)
