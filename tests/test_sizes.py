"""Any part of the contract may be absent: every combination runs, with every method."""

import itertools
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stickslip as ss
from stickslip.methods import REGISTRY


class Parts(ss.System):
    """A point in space with whatever is asked for: a wall z >= 0, a rail x = 0,
    a blade u_y = 0, a brake on z.
    """

    parts: str = eqx.field(static=True)

    def M(self, t, q):
        return 2.0 * jnp.eye(3)

    def h(self, t, q, u):
        return jnp.array([0.0, 0.0, -20.0])

    def g(self, t, q):
        return q[:1] if "g" in self.parts else jnp.zeros(0)

    def gamma(self, t, q, u):
        return u[1:2] if "v" in self.parts else jnp.zeros(0)

    def g_N(self, t, q):
        return q[2:] if "N" in self.parts else jnp.zeros(0)

    def gamma_F(self, t, q, u):
        slip = [u[:2]] if "F" in self.parts else []
        brake = [u[2:]] if "E" in self.parts else []
        return jnp.concatenate([jnp.zeros(0), *slip, *brake])

    @property
    def laws(self):
        contact = (
            (ss.Contact(friction=ss.Coulomb(0.5, dim=2) if "F" in self.parts else ()),)
            if "N" in self.parts
            else ()
        )
        return contact + ((ss.FrictionElement(1.0),) if "E" in self.parts else ())


PARTS = ["", "g", "v", "N", "E", "NF", "gv", "gN", "vNF", "NFE", "gvNFE"]
FEW = ["", "g", "gv", "vNF", "NFE", "gvNFE"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        *itertools.product(["rattle"], PARTS if os.environ.get("STICKSLIP_TEST_ALL") else FEW),
        *itertools.product(["moreau"], ["", "vNF", "gvNFE"]),
        *itertools.product(["radau2", "lobatto3", "trbdf2"], ["", "gvNFE"]),
    ],
)
def test_any_combination_runs(name, parts):
    system, t1 = Parts(parts), 0.5
    q0, u0 = jnp.array([0.0, 0.0, 0.4]), jnp.array([0.0 if "g" in parts else 1.0, 0.0, 0.0])
    sol = ss.simulate(system, REGISTRY[name](), q0, u0, t1=t1, dt=1e-2)
    assert sol.result == ss.RESULTS.successful
    pull = 10.0 - (0.5 if "E" in parts else 0.0)
    if "N" in parts:
        assert sol.q[-1, 2] == pytest.approx(0.0, abs=5e-2)
        assert sol.u[-1, 2] == pytest.approx(0.0, abs=1e-10)
        # weight less what the brake holds; nobody can tell contact and brake apart at rest
        assert abs(sol.P_N[-1, 0] - 20.0 * 1e-2) <= (1e-2 if "E" in parts else 0.0) + 1e-10
    else:
        assert sol.u[-1, 2] == pytest.approx(-pull * t1, abs=1e-9)
    assert sol.u[-1, 1] == pytest.approx(0.0, abs=1e-10)
    if name in ("rattle", "moreau"):  # forces come from the states, or from the percussions of velocity level
        forces = sol.forces()
        assert forces.la_N.shape == sol.P_N.shape
        assert np.isfinite(forces.u_dot).all()
    if name == "rattle":
        assert ss.initial_state(system, q0, u0).u_dot[2] == pytest.approx(
            -10.0 + (0.5 if "E" in parts else 0.0)
        )
    if (name, parts) in (("rattle", ""), ("radau2", ""), ("rattle", "vNF")):
        batch = jax.vmap(
            lambda z: ss.simulate(system, REGISTRY[name](), jnp.array([0.0, 0.0, z]), u0, t1=0.1, dt=1e-2).q
        )(jnp.array([0.3, 0.4]))
        assert np.asarray(batch[1]) == pytest.approx(sol.q[:11], abs=1e-12)
