"""Half-explicit methods for index 3, and the composite tableaus of S3 section 4.4."""

import numpy as np
import pytest

import stickslip as ss
from stickslip.methods.diagonally_implicit import StageByStage
from stickslip.tableaus import ButcherTableau, composite_bdf, half_explicit, im_bdf2, sdirk2

PROBLEMS = {  # benchmark: end, largest step
    "pendulum": (0.5, 1e-2),
    "mass-on-slope": (0.5, 1e-2),
    "knife-edge": (1.0, 2e-2),
    "rolling-disc": (0.5, 1e-2),
}


def order(method, name):
    """Slope over two decades, as far as errors are above round-off."""
    (t1, largest), b = PROBLEMS[name], ss.benchmarks.load(name)
    dts = largest * np.array([1.0, 0.25, 0.05, 0.01])
    ref = ss.simulate(b.system, ss.RadauIIA(3), b.q0, b.u0, t1=t1, dt=dts[1] / 8)
    ends = [ss.simulate(b.system, method, b.q0, b.u0, t1=t1, dt=dt) for dt in dts]
    errors = np.array(
        [max(np.abs(s.q[-1] - ref.q[-1]).max(), np.abs(s.u[-1] - ref.u[-1]).max()) for s in ends]
    )
    seen = errors > 3e-12
    return np.polyfit(np.log(dts[seen]), np.log(errors[seen]), 1)[0]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("stages", [2, 4])
def test_half_explicit_methods_have_order_two_and_three(stages, name):
    method = ss.HalfExplicit(stages)
    assert order(method, name) == pytest.approx(method.order, abs=0.15)


def violations(tableau):
    """Of what `methods/half_explicit.py` asks for order 3."""
    A, b, c = tableau.A, tableau.b, tableau.c
    of_forces = [b.sum() - 1, b @ c - 1 / 2, b @ c**2 - 1 / 3, b @ A @ c - 1 / 6]
    return np.abs([*of_forces, *((A @ c - c**2 / 2)[2:]), *(b @ A - b * (1 - c)), c[-1] - 1]).max()


CLASSICAL = ButcherTableau(
    "classical", np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]]),
    np.array([1, 2, 2, 1]) / 6, np.array([0, 0.5, 0.5, 1.0]),
)  # fmt: skip


class Classical(ss.HalfExplicit):
    """Kutta's tableau: order 4 for forces, without the conditions of index 3."""

    @property
    def tableau(self):
        return CLASSICAL


def test_another_explicit_tableau_does_not_have_the_order():
    """The negative control."""
    assert violations(half_explicit(4)) < 1e-15
    assert violations(CLASSICAL) > 0.05
    assert order(Classical(), "pendulum") < 2.3


def test_constraints_hold_on_both_levels():
    b = ss.benchmarks.load("slider-crank")
    sol = ss.simulate(b.system, ss.HalfExplicit(), b.q0, b.u0, t1=0.02, dt=1e-4)
    g = np.array([b.system.g(t, q) for t, q in zip(sol.t, sol.q, strict=True)])
    assert np.abs(g).max() < 1e-12
    assert sol.g_N().min() > -1e-12
    cone = np.abs(sol.P_F) - b.system.mu * sol.P_N
    assert cone.max() < 1e-12


def test_other_numbers_of_stages_are_refused():
    for stages in (1, 3, 5):
        with pytest.raises(ValueError, match="stages must be 2 or 4"):
            ss.HalfExplicit(stages)


# ---- IM-BDF2, composite BDF


class Composite(StageByStage):
    """Any diagonally implicit tableau is a method."""

    projected: bool = True
    friction: str = "stagewise"
    solver: ss.Solver = ss.Automatic()
    nodes: tuple = (1 / 3, 2 / 3, 1.0)

    order = 2
    reference = "S3 section 4.4"

    @property
    def tableau(self):
        return composite_bdf(self.nodes)


def test_im_bdf2_with_one_coefficient_is_alexanders_method():
    assert im_bdf2().A == pytest.approx(sdirk2().A, abs=1e-15)
    assert np.abs(im_bdf2(0.5).A - sdirk2().A).max() > 0.01


@pytest.mark.parametrize(
    "tableau", [im_bdf2(), im_bdf2(0.5), composite_bdf((1 / 3, 2 / 3, 1.0))], ids=lambda t: t.name
)
def test_composite_tableaus_are_stable_and_of_second_order(tableau):
    assert tableau.is_L_stable()
    assert tableau.stiffly_accurate
    assert tableau.satisfies_B(2)
    assert not tableau.satisfies_B(3)


def test_two_nodes_of_a_composite_formula_are_im_bdf2():
    for gamma in (0.3, 0.5, 0.8):
        assert composite_bdf((gamma, 1.0)).A == pytest.approx(im_bdf2(gamma).A, abs=1e-14)


def test_the_last_stage_of_a_composite_formula_is_bdf3():
    """11/6 x_3 - 3 x_2 + 3/2 x_1 - 1/3 x_0 = h/3 f_3 with nodes at thirds."""
    t = composite_bdf((1 / 3, 2 / 3, 1.0))
    x = [np.zeros(3), np.array([1 / 3, 0.0, 0.0]), t.A[1], t.A[2]]
    assert 11 / 6 * x[3] - 3 * x[2] + 3 / 2 * x[1] == pytest.approx([0.0, 0.0, 1 / 3], abs=1e-14)


@pytest.mark.parametrize("wrong", [(0.5,), (0.6, 0.5, 1.0), (0.0, 1.0), (0.3, 0.9)])
def test_nodes_that_do_not_lead_to_the_end_are_refused(wrong):
    with pytest.raises(ValueError, match="nodes must increase"):
        composite_bdf(wrong)
    with pytest.raises(ValueError, match="gamma must be between"):
        im_bdf2(1.0)


def test_a_composite_tableau_makes_a_method():
    b = ss.benchmarks.load("bouncing-ball", 2)
    sol, ref = (ss.simulate(b.system, m, b.q0, b.u0, t1=1.0, dt=1e-3) for m in (Composite(), ss.TRBDF2()))
    assert sol.g_N().min() > -1e-12
    assert sol.q[-1] == pytest.approx(ref.q[-1], abs=5e-3)
