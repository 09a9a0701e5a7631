"""The map of a step: symplectic where it is said to be, with the momentum maps that symmetries give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.derive import Dynamics
from systems import DoublePendulum

START = jnp.array([0.7, -0.4]), jnp.array([1.5, -2.0])


def step_map(system, method, dt):
    """(q, pi) -> (q, pi) after a step, pi = dT/du."""

    def u_of(q, pi):
        rest = system.momentum(0.0, q, jnp.zeros(2))
        return jnp.linalg.solve(system.M(0.0, q), pi - rest)

    def step(z):
        q, u = z[:2], u_of(z[:2], z[2:])
        sol = ss.simulate(system, method, q, u, t1=dt, dt=dt)
        return jnp.concatenate([sol.q[-1], system.momentum(0.0, sol.q[-1], sol.u[-1])])

    return step


def defect(system, method, dt=0.2):
    """|D^T J D - J| of a step."""
    q, u = START
    z = jnp.concatenate([q, system.momentum(0.0, q, u)])
    D = np.asarray(jax.jacfwd(step_map(system, method, dt))(z))
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    return np.abs(D.T @ J @ D - J).max()


def newton(method):
    return method(solver=ss.SemismoothNewton(atol=1e-15))


@pytest.mark.parametrize("wind", [0.0, 0.5], ids=["", "terms linear in u"])
@pytest.mark.parametrize("stages", [2, 3])
def test_the_momentum_form_is_symplectic_for_any_mass_matrix(stages, wind):
    method = ss.LobattoIIIAB(
        stages, form="momentum", solver=ss.SemismoothNewton(atol=1e-15, max_iterations=100)
    )
    assert defect(DoublePendulum(wind), method) < 1e-11


def test_the_velocity_form_is_not_where_the_mass_matrix_varies():
    """Negative control: the same measure, on schemes for constant M only."""
    system = DoublePendulum()
    assert defect(system, newton(ss.Rattle)) > 1e-4
    assert defect(system, ss.LobattoIIIAB(3, solver=ss.SemismoothNewton(atol=1e-15))) > 1e-7


class Spring(ss.LagrangianSystem):
    """Constant mass: two masses and a spring in the plane of their positions, turned about the origin."""

    def T(self, t, q, u):
        return 0.5 * (u[0] ** 2 + u[1] ** 2)

    def V(self, t, q):
        return 0.5 * (jnp.sqrt(q @ q) - 1.0) ** 2 * 30.0


@pytest.mark.parametrize("method", [ss.Rattle, ss.LobattoIIIAB, ss.RadauIIA], ids=lambda m: m.__name__)
def test_with_constant_mass_the_partitioned_family_is_symplectic_and_radau_is_not(method):
    symplectic = method is not ss.RadauIIA
    assert (defect(Spring(), newton(method)) < 1e-11) == symplectic


@pytest.mark.parametrize(
    "method",
    [ss.Rattle(), ss.LobattoIIIAB(3), ss.LobattoIIIAB(3, form="momentum")],
    ids=["rattle", "lobatto3", "momentum"],
)
def test_angular_momentum_is_a_momentum_map(method):
    """Of the force centre: conserved to round-off over a thousand steps;
    Radau IIA loses some (the control).
    """
    q0, u0 = [1.1, 0.2], [0.3, 1.5]

    def drift(method):
        sol = ss.simulate(Spring(), method, q0, u0, t1=50.0, dt=0.05)
        l = sol.q[:, 0] * sol.u[:, 1] - sol.q[:, 1] * sol.u[:, 0]
        return np.abs(l - l[0]).max()

    assert drift(method) < 1e-11
    if method == ss.Rattle():
        assert drift(ss.RadauIIA(2)) > 1e-6


def test_linear_terms_of_T_belong_to_the_momentum():
    """pi = M u + b(q): with p = M u alone the form would not be variational (nor what `Dynamics.momentum`
    says).
    """
    system, (q, u) = DoublePendulum(0.5), START
    pi = Dynamics.of(system, 0.0, q, u).momentum(0.0, q, u)
    assert np.abs(np.asarray(pi - system.M(0.0, q) @ u)).max() > 0.1
    assert pi == pytest.approx(np.asarray(jax.grad(system.T, argnums=2)(0.0, q, u)))


def test_a_lagrangian_system_with_its_own_kinematics_is_refused():
    class Turned(DoublePendulum):
        def B(self, t, q):
            return 2.0 * jnp.eye(2)

    with pytest.raises(TypeError, match=r"Turned defines B, but an ss\.Lagrangian"):
        Turned()
