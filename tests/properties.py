"""Properties that trajectories have, as checks that raise.

Each is seen to fail in `test_negative_controls.py`.
"""

import numpy as np


def no_penetration(sol, tolerance=1e-9):
    worst = sol.g_N().min()
    assert worst >= -tolerance, f"penetrates by {-worst:.3e}"


def bilateral_constraints_hold(sol, tolerance=1e-9):
    g = np.asarray([sol.system.g(t, q) for t, q in zip(sol.t[::37], sol.q[::37], strict=True)])
    assert np.abs(g).max() <= tolerance, f"g = {np.abs(g).max():.3e}"


def cone(sol, mu, tolerance=1e-11):
    """Planar Coulomb friction with one coefficient for all contacts: P_N >= 0, |P_F| <= mu P_N."""
    assert sol.P_N.min() >= -tolerance, f"a contact pulls: {sol.P_N.min():.3e}"
    excess = (np.abs(sol.P_F) - mu * sol.P_N).max()
    assert excess <= tolerance, f"leaves the cone by {excess:.3e}"


def friction_opposes_slip(sol, gamma_F, tolerance=1e-12):
    """Where the percussion is on the boundary it is opposed to the velocity: power is never positive."""
    assert (sol.P_F * gamma_F).max() <= tolerance, f"friction drives: {(sol.P_F * gamma_F).max():.3e}"


def stick_is_stick(sol, gamma_F, mu, tolerance=1e-10):
    inside = np.abs(sol.P_F) < (1 - 1e-6) * mu * sol.P_N
    assert inside.any(), "nothing sticks: the check says nothing"
    assert np.abs(gamma_F[inside]).max() <= tolerance, f"creeps with {np.abs(gamma_F[inside]).max():.3e}"


def energy_is_not_gained(sol, relative=1e-9):
    E = sol.energy()
    excess = (E.max() - E[0]) / abs(E[0])
    assert excess <= relative, f"gains {excess:.3e} of its energy"


def newton_impact_law(before, after, e_N, tolerance=1e-9):
    """after = -e_N before, for a gap rate."""
    assert before < 0.0, "no impact: the check says nothing"
    assert abs(after + e_N * before) <= tolerance, f"{after} instead of {-e_N * before}"
