"""Tableaus against tables and theory: S3 Tables 4.1-4.4, 5.1, Propositions 4.6 and 4.8,
(5.11), Examples 4.12 and 5.2.
"""

import numpy as np
import pytest

import stickslip as ss
from stickslip import tableaus as tb
from systems import DoublePendulum

R6, R2 = np.sqrt(6), np.sqrt(2)


def test_printed_tableaus_are_reproduced():
    assert pytest.approx(np.array([[1.0]])) == tb.radau_iia(1).A
    assert pytest.approx(np.array([[5 / 12, -1 / 12], [3 / 4, 1 / 4]]), abs=1e-14) == tb.radau_iia(2).A
    assert pytest.approx(
        np.array([
            [(88 - 7 * R6) / 360, (296 - 169 * R6) / 1800, (-2 + 3 * R6) / 225],
            [(296 + 169 * R6) / 1800, (88 + 7 * R6) / 360, (-2 - 3 * R6) / 225],
            [(16 - R6) / 36, (16 + R6) / 36, 1 / 9],
        ]), abs=1e-13) == tb.radau_iia(3).A  # fmt: skip
    assert pytest.approx(np.array([[1, -1], [1, 1]]) / 2, abs=1e-14) == tb.lobatto_iiic(2).A
    assert (
        pytest.approx(
            np.array([[1 / 6, -1 / 3, 1 / 6], [1 / 6, 5 / 12, -1 / 12], [1 / 6, 2 / 3, 1 / 6]]), abs=1e-14
        )
        == tb.lobatto_iiic(3).A
    )
    assert (
        pytest.approx(np.array([[0, 0, 0], [5 / 24, 1 / 3, -1 / 24], [1 / 6, 2 / 3, 1 / 6]]), abs=1e-14)
        == tb.lobatto_iiia(3).A
    )
    assert (
        pytest.approx(np.array([[1 / 6, -1 / 6, 0], [1 / 6, 1 / 3, 0], [1 / 6, 5 / 6, 0]]), abs=1e-14)
        == tb.lobatto_iiib(3).A
    )
    assert tb.lobatto_iiia(4).c == pytest.approx([0, 0.27639320, 0.72360680, 1], abs=1e-8)
    assert tb.lobatto_iiia(4).b == pytest.approx([1 / 12, 5 / 12, 5 / 12, 1 / 12], abs=1e-13)
    assert tb.sdirk2().A[0, 0] == pytest.approx(0.29289321881, abs=1e-11)
    assert tb.sdirk3().A[0, 0] == pytest.approx(0.43586652151, abs=1e-11)
    g = 2 - R2
    assert (
        pytest.approx(np.array([[0, 0, 0], [g / 2, g / 2, 0], [R2 / 4, R2 / 4, g / 2]]), abs=1e-14)
        == tb.tr_bdf2().A
    )
    assert tb.tr_bdf2().embedded == pytest.approx([(1 - R2 / 4) / 3, (3 * R2 / 4 + 1) / 3, g / 6], abs=1e-14)
    assert pytest.approx(np.array([[0, 0, 0], [1, 1, 0], [1, 2, 1]]) / 4, abs=1e-14) == tb.trx2().A


@pytest.mark.parametrize("s", range(1, 8))
def test_radau_iia_satisfies_its_assumptions(s):
    t = tb.radau_iia(s)
    assert t.satisfies_B(2 * s - 1)
    assert not t.satisfies_B(2 * s)  # and no more
    assert t.satisfies_C(s)
    assert t.satisfies_D(s - 1)
    assert t.stiffly_accurate
    assert t.c[-1] == 1.0


@pytest.mark.parametrize("s", range(2, 8))
def test_lobatto_families_satisfy_their_assumptions(s):
    a, b, c = tb.lobatto_iiia(s), tb.lobatto_iiib(s), tb.lobatto_iiic(s)
    for t in (a, b, c):
        assert t.satisfies_B(2 * s - 2)
        assert not t.satisfies_B(2 * s - 1)
        assert t.c[0] == 0.0
        assert t.c[-1] == 1.0
    assert a.satisfies_C(s)
    assert a.explicit_first_stage
    assert b.satisfies_D(s)
    assert (b.A[:, -1] == 0).all()
    assert b.A[:, 0] == pytest.approx(np.full(s, b.b[0]))
    assert c.satisfies_C(s - 1)
    assert c.satisfies_D(s - 1)
    assert a.stiffly_accurate
    assert c.stiffly_accurate
    assert tb.is_symplectic_pair(a, b)
    assert not tb.is_symplectic_pair(c, c)  # negative control
    assert not tb.is_symplectic_pair(a, a)


INVERTIBLE = [
    *(tb.radau_iia(s) for s in range(1, 6)),
    *(tb.lobatto_iiic(s) for s in range(2, 6)),
    tb.sdirk2(),
    tb.sdirk3(),
]


@pytest.mark.parametrize("t", INVERTIBLE, ids=lambda t: t.name)
def test_stiffly_accurate_methods_with_invertible_A_are_L_stable(t):
    assert t.stiffly_accurate
    assert t.is_L_stable()
    assert abs(t.stability_function(-1e9)) < 1e-6  # Proposition 4.6, seen


@pytest.mark.parametrize("s", range(1, 6))
def test_radau_and_lobatto_iiic_are_B_stable(s):
    assert tb.radau_iia(s).is_B_stable()
    if s > 1:
        assert tb.lobatto_iiic(s).is_B_stable()
        assert not tb.lobatto_iiia(s).is_B_stable()


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_tr_theta_damps_infinity_as_asked(rho):
    t = tb.tr_theta(rho)
    assert t.stability_at_infinity() == pytest.approx(rho, abs=1e-10)
    assert t.is_A_stable()
    assert t.is_L_stable() == (rho == 0.0)
    assert t.satisfies_B(2)
    assert t.satisfies_C(1)
    third = tb.ButcherTableau("embedded", t.A, t.embedded, t.c)
    assert third.satisfies_B(3)
    assert (t.embedded @ t.A @ t.c) == pytest.approx(1 / 6)  # the remaining condition of order three
    theta = t.c[1]
    z = 0.3 - 0.7j
    printed = ((theta**2 - 4 * theta + 2) * z**2 + 4 * (1 - theta) * z + 4) / (2 - theta * z) ** 2
    assert t.stability_function(z) == pytest.approx(printed)  # (4.47)


def test_limits_of_tr_theta_are_tr_bdf2_and_trx2():
    assert pytest.approx(tb.tr_bdf2().A) == tb.tr_theta(0.0).A
    assert pytest.approx(tb.trx2().A) == tb.tr_theta(1.0).A
    assert pytest.approx(tb.trx2().A, abs=1e-6) == tb.tr_theta(1 - 1e-9).A


@pytest.mark.parametrize("s", range(2, 6))
def test_the_stage_complementarity_problem_has_a_P_matrix(s):
    """Example 4.12: with integrated differences M ~ A; Lobatto IIIC with s >= 3 is only P_0 (errata)."""
    assert tb.is_P_matrix(tb.radau_iia(s).A)
    assert tb.is_P_matrix(tb.lobatto_iiic(s).A) == (s == 2)
    assert tb.is_P_matrix(tb.lobatto_iiic(s).A, strictly=False)
    assert not tb.is_P_matrix(np.linalg.matrix_power(tb.radau_iia(s).A, 2))  # (4.65): the law on measures


def test_diagonally_implicit_methods_have_P_matrices():
    for t in (tb.sdirk2(), tb.sdirk3()):
        assert tb.is_P_matrix(t.A)
    for t in (tb.tr_bdf2(), tb.trx2(), tb.tr_theta(0.9)):
        assert tb.is_P_matrix(t.A[1:, 1:])  # (4.83)


@pytest.mark.parametrize("s", range(2, 6))
def test_the_index_shift_makes_partitioned_methods_solvable(s):
    """Example 5.2: (5.54) with the shift is P, without it is not;
    integrated differences (5.56) likewise for s >= 3.
    """
    A, B = tb.lobatto_iiia(s).A, tb.lobatto_iiib(s).A
    b = tb.lobatto_iiib(s).b
    beta, alpha = slice(0, s - 1), slice(1, s)
    assert tb.is_P_matrix(A[alpha] @ B[:, beta])

    def lcp(law):  # (5.50), (5.49) with h = 1: rows Y_2..Y_s, xi; unknowns law @ dPi
        rows = np.vstack([A[alpha] @ B, b])
        return rows @ np.linalg.inv(law)

    def law(stages):
        return np.vstack([stages, b])

    eye = np.eye(s)
    assert tb.is_P_matrix(lcp(law(eye[beta])))  # shifted, (5.41)
    assert not tb.is_P_matrix(lcp(law(eye[alpha])))  # not shifted, (5.55)
    assert tb.is_P_matrix(lcp(law(B[beta])))  # integrated and shifted, (5.42)
    assert tb.is_P_matrix(lcp(law(B[alpha]))) == (s == 2)  # integrated, not shifted, (5.56)


def test_rows_that_do_not_sum_to_c_are_refused():
    with pytest.raises(ValueError, match="rows of A sum to"):
        tb.ButcherTableau(
            "typo", np.array([[0.5, 0.0], [0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.25, 1.0])
        )


def test_diagonals_need_not_be_equal():
    """Second order with the diagonal (1/3, 1/4): b.c = 1/2 and stiffly accurate."""
    A = np.array([[1 / 3, 0.0], [3 / 4, 1 / 4]])
    tableau = tb.ButcherTableau("unequal", A, A[-1], A.sum(axis=1))
    assert tableau.satisfies_B(2)

    class Unequal(ss.TRBDF2):
        tableau = property(lambda self: tableau)

    method = Unequal()
    start = {"q0": [0.5, -0.3], "u0": [0.0, 1.0], "t1": 1.0}
    exact = ss.simulate(DoublePendulum(), ss.RadauIIA(3), **start, dt=1e-2).q[-1]
    steps = np.array([20, 40, 80, 160])
    errors = [
        np.abs(ss.simulate(DoublePendulum(), method, **start, dt=1 / n).q[-1] - exact).max() for n in steps
    ]
    assert np.polyfit(np.log(1 / steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)


def test_nonsense_is_refused():
    for make, stages in ((tb.radau_iia, 0), (tb.lobatto_iiia, 1), (tb.lobatto_iiic, 1), (tb.radau_iia, 1.5)):
        with pytest.raises(ValueError, match="at least"):
            make(stages)
    for rho in (-0.1, 1.1):
        with pytest.raises(ValueError, match="rho_inf"):
            tb.tr_theta(rho)
    with pytest.raises(ValueError, match="sum to"):
        tb.ButcherTableau("wrong", np.zeros((1, 1)), np.array([0.5]), np.zeros(1))
    with pytest.raises(ValueError, match="shapes"):
        tb.ButcherTableau("wrong", np.zeros((2, 2)), np.array([1.0]), np.zeros(1))
