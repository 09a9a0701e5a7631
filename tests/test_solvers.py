"""Semismooth Newton, fixed point and their combination,
against enumeration of contact modes and each other.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickslip as ss
from stickslip.derive import Directions
from stickslip.linalg import basic_solution, eliminate, solve, spd_solve
from stickslip.rows import Layout, StageLayout
from stickslip.solvers import Inclusions, ProxParameters, VelocityProblem
from stickslip.stacked import StackedLaws


def problem(W, M, u_free, c, mu, n_contacts, bilateral=0, dim=1):
    laws = StackedLaws.of([ss.Contact(friction=ss.Coulomb(mu, dim=dim))] * n_contacts)
    L = np.linalg.solve(M, W)
    true, rows = jnp.ones(n_contacts, dtype=bool), Layout(bilateral, 0, laws.n_N, laws.n_F)
    at = Directions(*(jnp.asarray(a) for a in (W, c, L, np.sum(W * L, axis=0))))
    rho = ProxParameters.of(laws, rows, at.G)
    scales = at.scales(jnp.asarray(u_free))
    inclusions = Inclusions(
        laws, StageLayout(rows), true, true, rho, jnp.ones(()), jnp.zeros(W.shape[1]), scales
    )
    return VelocityProblem(inclusions, *(jnp.asarray(a) for a in (u_free, L, W, c, W.T @ L)))


@jax.jit
def newton(p):
    return ss.SemismoothNewton().solve(p, p.u_free, jnp.zeros(p.c.shape))


@jax.jit
def fixed_point(p):
    return ss.FixedPoint().solve(p, p.u_free, jnp.zeros(p.c.shape))


@jax.jit
def automatic(p):
    return ss.Automatic().solve(p, p.u_free, jnp.zeros(p.c.shape))


def enumerate_modes(p, mu, n):
    """All solutions of the planar problem by trying open / stick / slip+ / slip- for every contact."""
    G, free = np.asarray(p.G), np.asarray(p.W).T @ np.asarray(p.u_free) + np.asarray(p.c)
    for modes in itertools.product("o0+-", repeat=n):
        A, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
        for k, mode in enumerate(modes):
            N, F = k, n + k
            if mode == "o":
                A[N, N] = A[F, F] = 1.0
                continue
            A[N], b[N] = G[N], -free[N]
            if mode == "0":
                A[F], b[F] = G[F], -free[F]
            else:
                A[F, F], A[F, N] = 1.0, mu if mode == "+" else -mu
        if np.linalg.cond(A) > 1e12:
            continue
        P = np.linalg.solve(A, b)
        v = free + G @ P
        tol = 1e-9
        ok = True
        for k, mode in enumerate(modes):
            N, F = k, n + k
            ok &= v[N] >= -tol and P[N] >= -tol
            ok &= mode != "0" or abs(P[F]) <= mu * P[N] + tol
            ok &= mode != "+" or v[F] >= -tol
            ok &= mode != "-" or v[F] <= tol
        if ok:
            yield v, P


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_newton_finds_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    n, nu, mu = 2, 6, 0.3
    A = rng.normal(size=(nu, nu))
    p = problem(
        rng.normal(size=(nu, 2 * n)),
        A @ A.T + nu * np.eye(nu),
        rng.normal(size=nu),
        rng.normal(size=2 * n),
        mu,
        n,
    )
    out = automatic(p)
    assert out.result == ss.RESULTS.successful
    velocity = np.asarray(p.psi(out.x))
    solutions = list(enumerate_modes(p, mu, n))
    assert solutions
    assert min(np.abs(velocity - v).max() for v, _ in solutions) < 1e-8


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_newton_and_fixed_point_agree_in_the_velocities(seed):
    rng = np.random.default_rng(seed)
    n, nu, dim = 3, 12, 2
    A = rng.normal(size=(nu, nu))
    W, b = rng.normal(size=(nu, 2 + 3 * n)), 2
    p = problem(W, A @ A.T + nu * np.eye(nu), rng.normal(size=nu), rng.normal(size=2 + 3 * n), 0.2, n, b, dim)
    a, f = automatic(p), fixed_point(p)
    assert a.result == ss.RESULTS.successful
    assert f.result == ss.RESULTS.successful
    assert np.abs(a.x - f.x).max() < 1e-8
    assert np.abs(np.asarray(p.psi(f.x))[:b]).max() < 1e-9
    for out in (a, f):
        P_N, P_F = np.asarray(out.y[b : b + n]), np.asarray(out.y[b + n :]).reshape(n, dim)
        assert (np.linalg.norm(P_F, axis=1) <= 0.2 * P_N + 1e-9).all()


def table(mu=0.5):
    """A block on four legs in the plane z = 0: four contacts, three are enough. Pushed sideways."""
    legs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    W_N = np.array([[0, 0, 1, y, -x, 0] for x, y in legs]).T
    W_F = np.array([row for x, y in legs for row in ([1, 0, 0, 0, 0, -y], [0, 1, 0, 0, 0, x])]).T
    W = np.concatenate([W_N, W_F], axis=1)
    u_free = np.array([0.03, 0.0, -0.1, 0.0, 0.0, 0.0])
    return problem(W, np.eye(6), u_free, np.zeros(12), mu, 4, dim=2)


def test_redundant_contacts_are_solved_by_the_default_solver():
    out = automatic(table())
    assert out.result == ss.RESULTS.successful
    assert np.abs(out.x).max() < 1e-8  # sticks: 0.03 < 0.5 * 0.1
    assert float(out.y[:4].sum()) == pytest.approx(0.1, abs=1e-8)
    assert (out.y[:4] >= -1e-12).all()


def test_redundant_contacts_are_solved_by_the_fixed_point():
    out = fixed_point(table())
    assert out.result == ss.RESULTS.successful
    assert out.fixed_point_iterations > 0
    assert np.abs(out.x).max() < 1e-8


def test_redundant_bilateral_constraints_are_solved():
    """The same constraint twice: multipliers are not unique, the motion is."""
    W = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    p = problem(W, np.eye(3), np.array([1.0, -2.0, 0.5]), np.zeros(4), 0.1, 1, bilateral=2)
    for solver in (automatic, newton, fixed_point):
        out = solver(p)
        assert out.result == ss.RESULTS.successful
        assert out.x == pytest.approx([0.0, 0.0, 0.3], abs=1e-8)  # slips: 0.5 - 0.1 * 2


def test_automatic_falls_back_to_the_fixed_point():
    """A Newton method that may not iterate leaves the table to the fixed point."""
    p = table()
    out = ss.Automatic(newton=ss.SemismoothNewton(max_iterations=0)).solve(p, p.u_free, jnp.zeros(12))
    assert out.result == ss.RESULTS.successful
    assert out.fixed_point_iterations > 0
    assert out.newton_iterations == 0
    assert np.abs(out.x).max() < 1e-8


def wedge(mismatch):
    """The ball in the corner, pressed in and spinning;
    the impact law asks a little more of one contact than of the other.

    Four rows of rank three: sticking at both contacts contradicts itself by ``mismatch``.
    """
    s, R = np.sqrt(0.5), 0.1
    W = np.array([[-s, s, s, s], [s, s, s, -s], [0.0, 0.0, R, R]])
    c = np.array([mismatch, 0.0, 0.0, 0.0])
    return problem(W, np.diag([1.0, 1.0, 0.4 * R**2]), np.array([0.0, -0.1, 0.0]), c, 0.3, 2)


@pytest.mark.parametrize("mismatch", [1e-2, 1e-5, -1e-5])
def test_redundant_contacts_that_contradict_each_other_are_solved_without_the_fixed_point(mismatch):
    p = wedge(mismatch)
    velocities = [v for v, _ in enumerate_modes(p, 0.3, 2)]
    assert velocities
    for start in ([0.05, 0.05, -0.015, 0.015], [0.05, 0.05, 0.015, -0.015], [0.0, 0.0, 0.0, 0.0]):
        out = ss.Automatic().solve(p, p.u_free, jnp.asarray(start))
        assert out.result == ss.RESULTS.successful
        assert out.fixed_point_iterations == 0
        assert min(np.abs(p.psi(out.x) - v).max() for v in velocities) < 1e-10


def test_the_fixed_point_does_not_claim_success_while_percussions_drift():
    """The motion of the wedge stands still after some iterations,
    long before the contact mode is the right one.
    """
    p = wedge(1e-5)
    out = ss.FixedPoint(max_iterations=500).solve(p, p.u_free, jnp.array([0.05, 0.05, -0.015, 0.015]))
    assert (out.residual < 1e-9) == (out.result == ss.RESULTS.successful)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_success_is_never_claimed_for_what_is_no_solution(seed):
    """Three contacts with much friction, often without a solution, from feasible and infeasible guesses."""
    rng = np.random.default_rng(seed)
    n, nu, mu = 3, 4, 1.0
    p = problem(rng.normal(size=(nu, 2 * n)), np.eye(nu), np.zeros(nu), rng.normal(size=2 * n), mu, n)
    out = guessed(p, jnp.asarray(3.0 * rng.normal(size=2 * n)))
    if out.result == ss.RESULTS.successful:
        psi = p.psi(out.x)
        natural = p.inclusions.residual(p.inclusions.active_set(psi, out.y), psi, out.y)
        assert np.abs(natural).max() < 1e-8


@jax.jit
def guessed(p, y):
    return ss.Automatic().solve(p, p.u_free, y)


def test_a_forced_start_is_not_taken_for_a_solution():
    """psi = 0 with a percussion far outside of the cone: sticking would be consistent,
    but it is not allowed.
    """
    p = problem(np.eye(2), np.eye(2), np.zeros(2), np.array([-1.0, -3.0]), 0.5, 1)
    out = ss.Automatic().solve(p, p.u_free, jnp.array([1.0, 3.0]))
    assert out.result == ss.RESULTS.successful
    assert abs(out.y[1]) <= 0.5 * out.y[0] + 1e-12


def test_a_solver_that_does_not_converge_says_so():
    p = table()
    out = ss.FixedPoint(max_iterations=3).solve(p, p.u_free, jnp.zeros(12))
    assert out.result == ss.RESULTS.fixed_point_not_converged
    out = ss.SemismoothNewton(max_iterations=1).solve(p, p.u_free, jnp.zeros(12))
    assert out.result == ss.RESULTS.newton_not_converged


class Rungs(ss.Automatic):
    """Two solvers that never solve anything come before the whole one."""

    def first_try(self):
        return ss.SemismoothNewton(max_iterations=0)

    crowded_try = first_try

    def next_try(self, tried):
        climbed.append(tried)
        hopeless = ss.Automatic(newton=self.first_try(), ways=1)
        return hopeless if isinstance(tried, ss.SemismoothNewton) else self


climbed = []


def test_a_run_goes_on_with_one_rung_of_a_solver_after_another():
    b = ss.benchmarks.load("bouncing-ball-1d")
    climbed.clear()
    sol, known = (
        ss.simulate(b.system, ss.Rattle(solver=solver), b.q0, b.u0, t1=1.2, dt=1e-2)
        for solver in (Rungs(), ss.Automatic())
    )
    assert [type(solver) for solver in climbed] == [ss.SemismoothNewton, ss.Automatic]
    assert sol.q == pytest.approx(known.q, abs=1e-12)
    assert sol.P_N.max() > 0.0
    newton, ways, whole = ss.SemismoothNewton(), ss.Automatic(ways=4), ss.Automatic()
    assert whole.next_try(newton) == ways == whole.crowded_try()
    assert whole.next_try(ways) == whole


def test_tolerances_mean_what_they_say():
    """(6.7): || F / ((m + n)(atol + rtol |F_0|)) ||_2 < 1, so a loose one stops earlier."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6))
    p = problem(rng.normal(size=(6, 6)), A @ A.T + np.eye(6), -np.ones(6), np.zeros(6), 0.3, 2, dim=2)
    k = [
        int(ss.SemismoothNewton(atol=a, rtol=0.0).solve(p, p.u_free, jnp.zeros(6)).newton_iterations)
        for a in (1e-12, 1.0)
    ]
    assert k[1] == 0 < k[0]
    assert ss.SemismoothNewton(atol=0.0, rtol=1.0).solve(p, p.u_free, jnp.zeros(6)).newton_iterations == 0


@pytest.mark.parametrize("n", [1, 5, 14, 50])
def test_dense_solves_agree_with_lapack(n):
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    assert solve(jnp.asarray(A), jnp.asarray(B)) == pytest.approx(np.linalg.solve(A, B), rel=1e-8, abs=1e-8)
    S = A @ A.T + n * np.eye(n)
    assert spd_solve(jnp.asarray(S), jnp.asarray(B)) == pytest.approx(
        np.linalg.solve(S, B), rel=1e-10, abs=1e-10
    )
    indefinite = S - 2 * np.linalg.eigvalsh(S).max() * np.eye(n)
    assert np.isnan(spd_solve(jnp.asarray(indefinite), jnp.asarray(B))).all()


def test_elimination_pivots():
    """A zero on the diagonal, and a tiny one: partial pivoting is there."""
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert solve(jnp.asarray(A), jnp.eye(2)) == pytest.approx(A)
    A = np.array([[1e-20, 1.0], [1.0, 1.0]])
    assert solve(jnp.asarray(A), jnp.eye(2)) == pytest.approx(np.linalg.inv(A))


def test_singular_systems_get_a_solution_if_there_is_one():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 4)) @ rng.normal(size=(4, 6))
    B = A @ rng.normal(size=(6, 2))
    assert A @ np.asarray(basic_solution(jnp.asarray(A), jnp.asarray(B))) == pytest.approx(B, abs=1e-9)
    exact = np.array([[1.0, 1.0], [1.0, 1.0]])  # the plain one has no answer here
    assert not np.isfinite(solve(jnp.asarray(exact), jnp.ones((2, 1)))).all()
    assert exact @ np.asarray(basic_solution(jnp.asarray(exact), jnp.ones((2, 1)))) == pytest.approx(
        np.ones((2, 1))
    )


@pytest.mark.parametrize("n", [1, 5, 14, 42, 70])
def test_elimination_with_unit_rows_agrees_with_lapack(n):
    rng = np.random.default_rng(n)
    A, b, needed = rng.normal(size=(n, n)), rng.normal(size=n), rng.random(n) < 0.7
    A[~needed] = np.eye(n)[~needed]
    out = eliminate(jnp.asarray(A), jnp.asarray(needed), 1e-11).apply(jnp.asarray(b))
    assert np.asarray(out) == pytest.approx(np.linalg.solve(A, b), rel=1e-9, abs=1e-9)


def test_elimination_of_a_singular_matrix_gives_one_of_its_solutions():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 4)) @ rng.normal(size=(4, 6))
    b = A @ rng.normal(size=6)
    out = eliminate(jnp.asarray(A), jnp.ones(6, dtype=bool), 1e-11).apply(jnp.asarray(b))
    assert A @ np.asarray(out) == pytest.approx(b, abs=1e-9)
