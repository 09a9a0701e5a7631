"""Projected Jacobi and Gauss-Seidel against the other solvers,
and on friction-contact problems written by others.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickslip as ss
from stickslip.derive import Directions
from stickslip.rows import Layout, StageLayout
from stickslip.solvers import Inclusions, ProxParameters, VelocityProblem
from stickslip.stacked import StackedLaws
from test_solvers import problem

FCLIB = Path(__file__).parents[2] / "shared" / "fclib"
SOLVERS = {
    "newton": ss.SemismoothNewton(max_iterations=50),
    "fixed point": ss.FixedPoint(),
    "PJOR": ss.PJOR(atol=1e-11),
    "PSOR": ss.PSOR(atol=1e-11),
}
SOLVE = {
    name: jax.jit(lambda p, s=solver: s.solve(p, p.u_free, jnp.zeros(p.c.shape)))
    for name, solver in SOLVERS.items()
}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_all_solvers_agree_in_the_velocities(seed):
    """Random problems of full column rank with mu <= 0.3: there the velocities are unique."""
    rng = np.random.default_rng(seed)
    contacts, nu = 3, 12
    W = rng.normal(size=(nu, 3 * contacts))
    A = rng.normal(size=(nu, nu))
    p = problem(
        W,
        A @ A.T / nu + np.eye(nu),
        rng.normal(size=nu),
        np.zeros(3 * contacts),
        rng.uniform(0.0, 0.3),
        contacts,
        dim=2,
    )
    outs = {name: solve(p) for name, solve in SOLVE.items()}
    reference = outs["PSOR"]
    assert reference.result == ss.RESULTS.successful
    for out in outs.values():
        if out.result == ss.RESULTS.successful:  # Newton may cycle: then it says so
            assert np.asarray(out.x) == pytest.approx(np.asarray(reference.x), abs=1e-8)
    assert outs["fixed point"].result == ss.RESULTS.successful
    assert outs["PJOR"].result == ss.RESULTS.successful
    # the discrete states are the same
    assert np.all(np.asarray(outs["PJOR"].active.stick) == np.asarray(reference.active.stick))


@pytest.mark.parametrize("solver", [ss.PJOR(), ss.PSOR()], ids=["PJOR", "PSOR"])
def test_moreau_runs_with_relaxation_as_with_newton(solver):
    b = ss.benchmarks.load("bouncing-ball", 2)
    a, c = (
        ss.simulate(b.system, ss.MoreauMidpoint(solver=s), b.q0, b.u0, t1=1.5, dt=1e-2)
        for s in (solver, ss.Automatic())
    )
    assert a.q == pytest.approx(c.q, abs=1e-9)
    assert a.stats.fixed_point_iterations.max() > 0


def test_with_stages_on_position_level_it_is_refused():
    b = ss.benchmarks.load("bouncing-ball")
    with pytest.raises(TypeError, match="velocity level only"):
        ss.simulate(b.system, ss.Rattle(solver=ss.PSOR()), b.q0, b.u0, t1=0.1, dt=1e-2)


def dense_problem(file):
    """W, q, mu of u = W r + q in the text format: dimension, contacts, 0 (dense), rows, columns (twice),
    W, q, mu.
    """
    numbers = np.array(file.read_text().split(), dtype=float)
    dim, n, storage, rows, cols = numbers[:5].astype(int)
    assert storage == 0
    assert rows == cols == dim * n
    W, q, mu = np.split(numbers[7:], [rows * cols, rows * cols + rows])
    W = W.reshape(rows, cols)
    # contacts as (n, t...) -> all n, then all t
    order = np.argsort(np.tile(np.r_[0, np.ones(dim - 1)], n), kind="stable")
    return W[np.ix_(order, order)], q[order], mu[:n], int(dim)


@pytest.mark.parametrize(
    "file", ["FC3D_Example1.dat", "FC2D_SliderCrankLagrangian00000.dat", "FrictionContact3D_1c.dat"]
)
def test_problems_written_by_others_are_solved_to_tolerance(file):
    if not (FCLIB / "text" / file).exists():
        pytest.skip("the fclib problems are not at hand")
    G, c, mu, dim = dense_problem(FCLIB / "text" / file)
    n = len(mu)
    laws = StackedLaws.of([ss.Contact(friction=ss.Coulomb(m, dim=dim - 1)) for m in mu])
    true, none = jnp.ones(n, dtype=bool), jnp.zeros(len(c))
    at = Directions(jnp.eye(len(c)), none, jnp.asarray(G), jnp.diagonal(jnp.asarray(G)))
    rows = Layout(0, 0, laws.n_N, laws.n_F)
    rho = ProxParameters.of(laws, rows, at.G)
    inclusions = Inclusions(
        laws, StageLayout(rows), true, true, rho, jnp.ones(()), none, at.scales(jnp.asarray(c))
    )
    # u itself as the motion: x = W r + q
    p = VelocityProblem(
        inclusions, jnp.asarray(c), jnp.asarray(G), jnp.eye(len(c)), jnp.zeros(len(c)), jnp.asarray(G)
    )
    outs = [
        s.solve(p, p.u_free, jnp.zeros(len(c)))
        for s in (ss.Automatic(), ss.PSOR(), ss.PJOR(max_iterations=200_000))
    ]
    for out in outs:
        assert out.result == ss.RESULTS.successful
        assert out.residual < 1e-9
        assert np.asarray(out.x) == pytest.approx(np.asarray(outs[0].x), abs=1e-7)
