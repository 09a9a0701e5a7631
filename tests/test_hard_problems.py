"""Small versions of `benchmarks/hard_problems.py`:
the ladder solves what its rungs do not, and claims nothing false.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import hard_problems
import stickslip as ss
from stickslip import linalg
from stickslip.methods import REGISTRY


@pytest.fixture(scope="module")
def problems():
    return hard_problems.make(300, 10)


def test_the_ladder_leaves_nothing_unsolved_and_no_success_is_false(problems):
    out = hard_problems.run(ss.Automatic(), problems)
    assert out[0].all()
    assert hard_problems.violation(problems, out).max() < 1e-8


def test_newton_alone_leaves_some(problems):
    """Negative control: the problems are hard."""
    out = hard_problems.run(ss.SemismoothNewton(), problems)
    assert (~out[0]).sum() > 50
    assert hard_problems.violation(problems, out).max() < 1e-8


def test_the_check_from_outside_sees_a_false_success(problems):
    out = hard_problems.run(ss.SemismoothNewton(), problems)
    pretended = (np.ones_like(out[0]), *out[1:])
    assert hard_problems.violation(problems, pretended).max() > 1e-3


# ---- one linear algebra for all sizes and devices


@pytest.fixture(params=["by the library", "in place"])
def path(request, broken):
    broken(linalg, "SMALL", 0 if request.param == "by the library" else 10_000)
    return request.param


def test_null_pivots_are_passed_over_whoever_factors(path):
    rng = np.random.default_rng(0)
    for n in (3, 8, 20):
        B = rng.normal(size=(n, n - 2))
        A, b = jnp.asarray(B @ B.T), jnp.asarray(B @ rng.normal(size=n - 2))
        out = linalg.eliminate(A, jnp.ones(n, dtype=bool), 1e-10)
        assert not out.regular
        assert np.asarray(A @ out.apply(b)) == pytest.approx(np.asarray(b), abs=1e-9)


def test_redundant_contacts_are_solved_whoever_factors(path):
    """Four corners of a cube, which Newton's method alone solves as long as null pivots do not stop it."""
    b = ss.benchmarks.load("sliding-cube")
    sol = ss.simulate(b.system, REGISTRY["rattle"](solver=ss.SemismoothNewton()), b.q0, b.u0, t1=0.1, dt=1e-3)
    assert sol.result == ss.RESULTS.successful
    assert np.abs(sol.q[:, 2] - 0.05).max() < 1e-9
