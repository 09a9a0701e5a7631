"""What a newcomer may get wrong: each kind has one sentence, with the name of what is wrong and what to write instead."""

import math
import traceback
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import stickslip as ss
from stickslip.tableaus import ButcherTableau


class Ball(ss.System):
    """Above a floor, with friction."""

    k: float = 1.0
    mu: Any = 0.3
    e: Any = 0.5

    def M(self, t, q):
        return jnp.eye(2)

    def h(self, t, q, u):
        return jnp.array([0.0, -9.81])

    def g_N(self, t, q):
        return q[1:]

    def gamma_F(self, t, q, u):
        return u[:1]

    @property
    def laws(self):
        return (ss.Contact(e_N=self.e, friction=ss.Coulomb(self.mu)),)


START = {"method": ss.MoreauMidpoint(), "q0": [0.0, 1.0], "u0": [0.0, 0.0], "t1": 0.1, "dt": 0.05}


def run(system: Any = None, **options: Any) -> Any:
    """Functions replace those of the ball, everything else is an option of `simulate`."""
    functions = {
        name: options.pop(name)
        for name in list(options)
        if hasattr(ss.System, name) or name in ("energy", "normalize")
    }
    ball = type("Ball", (Ball,), functions | {"__module__": __name__})() if system is None else system
    return ss.simulate(ball, **{key: value for key, value in (START | options).items() if value is not ...})


def located(**options: Any) -> Any:
    return run(**{"method": ss.RadauIIA(2), "dt": ..., "rtol": 1e-6} | options)


class Kept:
    """A place outside of the functions."""

    value: Any = None


def stores(self, t, q, u):
    before, Kept.value = Kept.value, u
    return jnp.array([0.0, -9.81]) + (0.0 if before is None else before)


def branches(self, t, q, u):
    if q[1] > 0:
        return jnp.array([0.0, -9.81])
    return jnp.zeros(2)


def loops(self, t, q, u):
    while q[0] > 1:
        q = q - 1
    return jnp.zeros(2)


def asserts(self, t, q, u):
    assert q[1] > 0
    return jnp.zeros(2)


def assigns(self, t, q, u):
    f = jnp.zeros(2)
    f[1] = -9.81
    return f


def changes(self, t, q, u):
    self.k = 2.0
    return jnp.zeros(2)


def counts(self, t, q, u):
    return jnp.zeros(2) * sum(1.0 for _ in range(q[0]))


class Forgot(ss.System):
    def M(self, t, q):
        return jnp.eye(2)


class OwnInit(Ball):
    def __init__(self, stiffness):
        self.stiffness = stiffness


class WithFunction(Ball):
    force: Any = None


class WithName(Ball):
    h: Any = 3.0  # type: ignore[assignment]


class Lagrange(ss.LagrangianSystem):
    def T(self, t, q, u):
        return 0.5 * u  # a vector


class Turned(ss.LagrangianSystem):
    def T(self, t, q, u):
        return 0.5 * u @ u

    def B(self, t, q):
        return jnp.eye(2)


class Drawn(Ball):
    what: Any = eqx.field(default=None, static=True)

    def draw(self, t, q):
        return self.what


def batch():
    return jax.vmap(lambda mu: ss.simulate(Ball(mu=mu), **START))(jnp.array([0.1, 0.2]))


_made: dict[str, Any] = {}


def made(kind: str = "fixed") -> Any:
    """Solutions to misuse, one each."""
    if kind not in _made:
        _made[kind] = {"fixed": run, "batch": batch, "located": located}[kind]()
    return _made[kind]


Case = tuple[Callable[[], Any], str]
NO_VALUE = "not known yet when the function is compiled"

FUNCTIONS: dict[str, Case] = {
    "if": (lambda: run(h=branches), r"h \(test_bad_input.py, line \d+: `if q\[1\] > 0:`\).*jnp.where"),
    "if, as an expression": (lambda: run(h=lambda s, t, q, u: u if t > 1 else -u), "h .*jnp.where"),
    "while": (lambda: run(h=loops), "h .*while q.*jax.lax.while_loop"),
    "assert": (lambda: run(h=asserts), "h .*assert.*check the solution afterwards"),
    "and": (lambda: run(h=lambda s, t, q, u: u * (q[0] > 0 and q[1] > 0)), "h .*jnp.logical_and"),
    "not": (lambda: run(h=lambda s, t, q, u: u * (not q[0])), "h .*jnp.logical_not"),
    "max": (lambda: run(h=lambda s, t, q, u: u * max(q[0], 0.0)), r"h .*jnp.maximum"),
    "min": (lambda: run(h=lambda s, t, q, u: u * min(q[0], 0.0)), r"h .*jnp.minimum"),
    "np.sin": (lambda: run(h=lambda s, t, q, u: np.sin(q)), f"h .*{NO_VALUE}: write jnp.sin in place of np.sin"),
    "np.array": (lambda: run(h=lambda s, t, q, u: np.array([q[0], 1.0])), "h .*write jnp.array in place of np.array"),
    "np.linalg.norm": (lambda: run(h=lambda s, t, q, u: u * np.linalg.norm(q)), "h .*jnp.norm in place of np.linalg.norm"),
    "math.sin": (lambda: run(h=lambda s, t, q, u: u * math.sin(q[0])), "h .*jnp.sin in place of math.sin"),
    "float": (lambda: run(h=lambda s, t, q, u: u * float(q[0])), r"h .*leave float\(...\) and int\(...\) away"),
    "int": (lambda: run(h=lambda s, t, q, u: u * int(q[0])), r"h .*leave float\(...\) and int\(...\) away"),
    "item": (lambda: run(h=lambda s, t, q, u: u * q[0].item()), f"h .*{NO_VALUE}"),
    "tolist": (lambda: run(h=lambda s, t, q, u: jnp.array(q.tolist())), f"h .*{NO_VALUE}"),
    "range": (lambda: run(h=counts), f"h .*{NO_VALUE}"),
    "list by index": (lambda: run(h=lambda s, t, q, u: u * [1.0, 2.0][q[0].astype(int)]), "h .*index a jnp.array"),
    "entries by condition": (lambda: run(h=lambda s, t, q, u: q[q > 0]), r"h .*keep all and write jnp.where"),
    "format": (lambda: run(h=lambda s, t, q, u: u * len(f"{q[0]:.2f}")), "h .*jax.debug.print"),
    "percent": (lambda: run(h=lambda s, t, q, u: u * len("%f" % q[0])), "h .*jax.debug.print"),  # noqa: UP031
    "assignment": (lambda: run(h=assigns), r"h .*`f\[1\] = -9.81`.*x.at\[i\].set\(value\)"),
    "a field changed": (lambda: run(h=changes), "h .*changes a field of the system"),
    "a value stored": (lambda: [run(h=stores), run(h=stores)], "a function of the system .*an earlier call has stored"),
    "None": (lambda: run(h=lambda s, t, q, u: None), "h returns None: its `return` is missing"),
    "None as M": (lambda: run(M=lambda s, t, q: None), "M returns None: its `return` is missing"),
    "a text": (lambda: run(h=lambda s, t, q, u: "gravity"), "h returns 'gravity': it must return an array of numbers"),
    "a dict": (lambda: run(h=lambda s, t, q, u: {"x": 1.0}), r"h returns \{'x': 1.0\}: it must return an array"),
    "a function": (lambda: run(h=lambda s, t, q, u: jnp.sin), "h returns .*must return an array of numbers"),
    "complex numbers": (lambda: run(h=lambda s, t, q, u: q * 1j), "h returns complex128: it must return real numbers"),
    "truth values": (lambda: run(g_N=lambda s, t, q: q[1:] > 0), "g_N returns bool: it must return real numbers"),
    "ragged": (lambda: run(h=lambda s, t, q, u: [q, 1.0]), r"h returns entries of shapes .*jnp.concatenate"),
    "too few forces": (lambda: run(h=lambda s, t, q, u: u[:1]), r"h returns shape \(1,\), expected \(2,\): q0 has 2 .* u0 has 2"),
    "a matrix of forces": (lambda: run(h=lambda s, t, q, u: u[:, None]), r"h returns shape \(2, 1\), expected \(2,\)"),
    "mass as a number": (lambda: run(M=lambda s, t, q: 1.0), r"M returns shape \(\), expected \(2, 2\)"),
    "mass as a vector": (lambda: run(M=lambda s, t, q: jnp.ones(2)), r"M returns shape \(2,\), expected \(2, 2\)"),
    "a gap too many": (lambda: run(g_N=lambda s, t, q: q), r"g_N returns shape \(2,\), expected \(1,\): there are 1 ss.Contact"),
    "a gap as a number": (lambda: run(g_N=lambda s, t, q: q[1]), r"g_N returns shape \(\), expected \(1,\)"),
    "slip without friction": (
        lambda: run(laws=(ss.Contact(),)), r"gamma_F returns shape \(1,\), expected \(0,\).*contact 0 has no friction; write"
    ),
    "slip without laws": (
        lambda: run(laws=(), g_N=lambda s, t, q: jnp.zeros(0)), r"gamma_F returns .*there are no laws; write laws"
    ),
    "friction without slip": (
        lambda: run(gamma_F=lambda s, t, q, u: jnp.zeros(0)), r"gamma_F returns shape \(0,\), expected \(1,\): .*contact 0 has 1"
    ),
    "slip in the plane": (lambda: run(gamma_F=lambda s, t, q, u: u), r"gamma_F returns shape \(2,\), expected \(1,\)"),
    "constraint as a number": (lambda: run(g=lambda s, t, q: q[0]), r"g returns shape \(\), expected a vector"),
    "velocity constraint as a matrix": (lambda: run(gamma=lambda s, t, q, u: jnp.eye(2)), "gamma returns shape .*a vector"),
    "B of a wrong shape": (lambda: run(B=lambda s, t, q: jnp.eye(3)), r"B returns shape \(3, 3\), expected \(2, 2\)"),
    "beta of a wrong shape": (lambda: run(beta=lambda s, t, q: jnp.zeros(3)), r"beta returns shape \(3,\), expected \(2,\)"),
    "energy as a vector": (lambda: run(energy=lambda s, t, q, u: u), r"energy returns shape \(2,\), expected \(\)"),
    "normalize of a wrong shape": (lambda: run(normalize=lambda s, q: q[:1]), r"normalize returns shape \(1,\), expected \(2,\)"),
    "an argument too few": (lambda: run(h=lambda s, t, q: q), r"h\(t, q\) is called as h\(t, q, u\): it must take these"),
    "an argument too many": (lambda: run(M=lambda s, t, q, u: q), r"M\(t, q, u\) is called as M\(t, q\)"),
    "no self": (lambda: run(h=lambda t, q, u: q), r"h\(q, u\) is called as h\(t, q, u\)"),
    "an entry that is not there": (
        lambda: run(h=lambda s, t, q, u: u * q[2]), r"h \(test_bad_input.*q\[2\].* reads entry 2 of .* shape \(2,\)"
    ),
    "an entry before the first": (lambda: run(g_N=lambda s, t, q: q[-3][None]), r"g_N .*reads entry -1 .* shape \(2,\)"),
    "a column that is not there": (
        lambda: run(h=lambda s, t, q, u: jnp.eye(2)[:, 2]), r"h .*reads entry 2 of axis 1 of an array of shape \(2, 2\)"
    ),
    "shapes that do not fit": (lambda: run(h=lambda s, t, q, u: jnp.ones((2, 3)) @ u), r"h .*`.*@ u.*`.*\(2, 3\)|h .*dot_general"),
    "arrays of different length": (lambda: run(h=lambda s, t, q, u: u + jnp.ones(3)), r"h .*incompatible shapes"),
    "an unknown field": (lambda: run(h=lambda s, t, q, u: u * s.stiffness), "no attribute 'stiffness'"),
    "an unknown name": (lambda: run(h=lambda s, t, q, u: gravity), "name 'gravity' is not defined"),  # noqa: F821
    "a division by zero": (lambda: run(h=lambda s, t, q, u: u / (1 // 0)), "by zero"),
    "an unknown function of jnp": (lambda: run(h=lambda s, t, q, u: jnp.sinus(q)), "no attribute 'sinus'"),
    "no mass": (lambda: run(ss.System()), r"System must define M\(t, q\)"),
    "no forces": (lambda: run(Forgot()), r"Forgot must define h\(t, q, u\)"),
    "no kinetic energy": (lambda: run(ss.LagrangianSystem()), r"must define T\(t, q, u\)"),
    "kinetic energy as a vector": (lambda: run(Lagrange()), r"T returns shape \(2,\), expected \(\)"),
    "a Lagrangian with B": (Turned, "Turned defines B, but an ss.LagrangianSystem has q_dot = u"),
    "h as a property": (lambda: run(h=property(lambda self: jnp.zeros(2))), r"h must be a function h\(t, q, u\)"),
    "slip that is not affine": (
        lambda: run(gamma_F=lambda s, t, q, u: u[:1] * jnp.abs(u[:1])), r"gamma_F\[0\] \(contact 0\) is not affine in u.*belongs to h"
    ),
    "a constraint that is not affine": (
        lambda: run(gamma=lambda s, t, q, u: u[:1] ** 2, u0=[0.0, 0.0]), r"gamma\[0\] is not affine in u"
    ),
    "nan in h": (lambda: run(h=lambda s, t, q, u: u * jnp.nan), r"h is not finite at the start \(t = 0"),
    "nan in M": (lambda: run(M=lambda s, t, q: jnp.eye(2) * jnp.nan), "M is not finite at the start"),
    "infinite gap": (lambda: run(g_N=lambda s, t, q: q[1:] / 0.0), "g_N is not finite"),
    "negative mass": (lambda: run(M=lambda s, t, q: -jnp.eye(2)), "M is not positive definite at the start .*eigenvalue -1"),
    "no mass in one direction": (lambda: run(M=lambda s, t, q: jnp.diag(jnp.array([1.0, 0.0]))), "M is not positive definite|not finite"),
    "M without symmetry": (lambda: run(M=lambda s, t, q: jnp.array([[1.0, 0.3], [0.0, 1.0]])), "M is not symmetric"),
}  # fmt: skip

SYSTEMS: dict[str, Case] = {
    "a class for a system": (lambda: run(Ball), r"system is the class Ball: give an instance of it, Ball\(...\)"),
    "a text for a system": (lambda: run("ball"), "system must be an instance of a subclass of ss.System, got 'ball'"),
    "a benchmark for a system": (
        lambda: run(ss.benchmarks.load("bouncing-ball")), "system must be .* got a Benchmark: give its .system"
    ),
    "nothing for a system": (lambda: ss.simulate(t1=1.0), "system must be an instance"),
    "a function as a field": (lambda: run(WithFunction(force=jnp.sin)), r"WithFunction.force is a function.*static=True"),
    "an object as a field": (lambda: run(WithFunction(force=object())), "WithFunction.force is a object.*static=True"),
    "a field that hides a function": (lambda: run(WithName()), "WithName.h is a value, 3.0, and hides the function h"),
    "an own __init__": (lambda: OwnInit(3.0), r"OwnInit.stiffness cannot be set.*declare it in the class"),
    "a field changed from outside": (lambda: setattr(Ball(), "mu", 0.5), r"Ball.mu cannot be set.*dataclasses.replace\(system, mu=...\)"),
    "laws as a function": (lambda: run(laws=lambda self: ()), "system.laws must be an attribute .*write @property above it"),
    "one law alone": (lambda: run(laws=ss.Contact()), r"system.laws must be .*write \(ss.Contact\(...\),\)"),
    "no law": (lambda: run(laws=("glue",)), r"laws\[0\] must be an ss.Contact or an ss.FrictionElement, got 'glue'"),
    "a friction law alone": (lambda: run(laws=(ss.Coulomb(0.3),)), r"laws\[0\] must be an ss.Contact"),
    "the class of a law": (lambda: run(laws=(ss.Contact,)), r"laws\[0\] must be an ss.Contact"),
    "an element first": (lambda: run(laws=(ss.FrictionElement(1.0), ss.Contact())), "must come before any ss.FrictionElement"),
    "two laws for one gap": (lambda: run(laws=(ss.Contact(), ss.Contact())), "there are 2 ss.Contact in laws"),
    "names of coordinates as a function": (lambda: run(coordinates=lambda s: ("x [m]",)), "system.coordinates must be an attr"),
    "a name too few": (lambda: run(coordinates=("x [m]",)), "system.coordinates = .*1 names, expected 2: q has 2 entries"),
    "a name without unit": (lambda: run(coordinates=("x", "y")), r'coordinates\[0\]: .x. must be "name \[unit\]"'),
    "a name twice": (lambda: run(coordinates=("x [m]", "x [m]")), "the name 'x' is taken"),
    "a number as a name": (lambda: run(contacts=(1,)), r"system.contacts\[0\] must be a name, got 1"),
    "too many contacts named": (lambda: run(contacts=("a", "b")), "system.contacts = .*2 names, expected 1"),
    "switching times as a number": (lambda: run(switching_times=1.0), "switching_times must be an attribute holding a tuple"),
    "a switching time that is nan": (lambda: run(switching_times=(math.nan,)), "switching_times must be finite"),
}  # fmt: skip

LAWS: dict[str, Case] = {
    "negative mu": (lambda: ss.Coulomb(-0.1), r"Coulomb\(mu=-0.1\): mu must be finite and >= 0"),
    "mu in quotes": (lambda: ss.Coulomb("0.2"), r"Coulomb\(mu='0.2'\): mu must be a number"),
    "mu None": (lambda: ss.Coulomb(None), r"Coulomb\(mu=None\): mu must be a number"),
    "mu nan": (lambda: ss.Coulomb(math.nan), r"mu must be finite"),
    "mu infinite": (lambda: ss.Coulomb(math.inf), r"mu must be finite"),
    "two mu": (lambda: ss.Coulomb(jnp.array([0.1, 0.2])), r"mu must be one number, got shape \(2,\).*jax.vmap"),
    "two mu in a system": (lambda: run(Ball(mu=jnp.array([0.1, 0.2]))), r"contact 0: Coulomb.*one number, got shape \(2,\)"),
    "mu as a list": (lambda: ss.Coulomb([0.1, 0.2]), r"mu must be one number, got shape \(2,\)"),
    "complex mu": (lambda: ss.Coulomb(np.array(0.1 + 1j)), "mu must be a number"),
    "negative mu in a system": (lambda: run(Ball(mu=-0.3)), r"contact 0: Coulomb\(mu=-0.3\): mu must be finite and >= 0"),
    "e_N above one": (lambda: ss.Contact(e_N=1.5), r"Contact\(e_N=1.5\): e_N must be finite and >= 0.0 and <= 1.0"),
    "e_N below zero": (lambda: ss.Contact(e_N=-0.5), r"Contact\(e_N=-0.5\): e_N must be finite and >= 0"),
    "e_N in quotes": (lambda: ss.Contact(e_N="half"), r"Contact\(e_N='half'\): e_N must be a number"),
    "e_F above one": (lambda: ss.Contact(e_F=2.0), r"e_F must be finite and >= 0.0 and <= 1.0"),
    "mu for friction": (lambda: ss.Contact(friction=0.3), r"Contact\(friction=0.3\): friction must be a law such as"),
    "a text for friction": (lambda: ss.Contact(friction="coulomb"), r"Contact\(friction='coulomb'\): friction must be a law"),
    "the class for friction": (lambda: ss.Contact(friction=ss.Coulomb), r"friction must be a law such as ss.Coulomb\(mu\)"),
    "numbers for friction": (lambda: ss.Contact(friction=(0.3,)), r"Contact\(friction=...\): 0.3 is not a friction law"),
    "a contact for friction": (lambda: ss.Contact(friction=(ss.Contact(),)), "is not a friction law"),
    "three dimensions": (lambda: ss.Coulomb(0.3, dim=3), r"Coulomb\(dim=3\): dim must be 1 or 2"),
    "rolling in three dimensions": (lambda: ss.Rolling(0.3, dim=3), r"Rolling\(dim=3\): dim must be 1 or 2"),
    "axes too many": (lambda: ss.Coulomb(0.3, dim=2, axes=(1.0, 2.0, 3.0)), r"Coulomb\(axes\): needs 2 semi-axes"),
    "axes of zero": (lambda: ss.Coulomb(0.3, dim=2, axes=(0.0, 1.0)), "axes must be finite and > 0"),
    "no radius": (lambda: ss.CoulombContensou(0.3, radius=0.0), r"radius must be finite and > 0"),
    "negative pivoting": (lambda: ss.Pivoting(-1.0), r"Pivoting\(mu=-1.0\)"),
    "negative reservoir": (lambda: ss.FrictionElement(-1.0), r"FrictionElement\(force=-1.0\)"),
    "an element without dimension": (lambda: ss.FrictionElement(1.0, dim=0), "dim must be at least 1"),
}  # fmt: skip

RUNS: dict[str, Case] = {
    "no method": (lambda: run(method=...), r'method is missing: give one such as ss.Rattle\(\) or "rattle"'),
    "a class for a method": (lambda: run(method=ss.Rattle), r"method is the class Rattle: .* such as ss.Rattle\(\)"),
    "an unknown method": (lambda: run(method="ratle"), "unknown method 'ratle'; did you mean 'rattle'"),
    "a method of another kind": (lambda: run(method="RK45"), "unknown method 'RK45'. Known: generalized-alpha"),
    "a number for a method": (lambda: run(method=3), 'method must be an instance .* or a name such as "rattle", got 3'),
    "q0 for a method": (
        lambda: ss.simulate(Ball(), [0.0, 1.0], [0.0, 0.0], t1=1.0, dt=0.1), r"method must be an instance .*got \[0.0, 1.0\]"
    ),
    "a solver by name": (lambda: ss.Rattle(solver="newton"), r"Rattle\(solver='newton'\): solver must be an instance such as"),
    "the class of a solver": (lambda: ss.RadauIIA(2, solver=ss.FixedPoint), r"RadauIIA\(solver=.*must be an instance"),
    "no stages": (lambda: ss.RadauIIA(0), r"RadauIIA\(stages=0\): needs a whole number of stages, at least 1"),
    "half a stage": (lambda: ss.LobattoIIIAB(2.5), r"stages=2.5.*whole number of stages"),
    "one Lobatto stage": (lambda: ss.LobattoIIIC(1), r"stages=1.*at least 2"),
    "radau0": (lambda: run(method="radau0"), r"stages=0"),
    "rho_inf above one": (lambda: ss.GeneralizedAlpha(1.5), r"GeneralizedAlpha\(rho_inf=1.5\): rho_inf must be between 0 and 1"),
    "rho_inf of TRTheta": (lambda: ss.TRTheta(-1.0), "rho_inf must be between 0 and 1"),
    "an unknown friction option": (lambda: ss.Rattle(friction="exact"), r"Rattle\(friction='exact'\): friction must be"),
    "extrapolation of order zero": (lambda: ss.Extrapolation(0), r"Extrapolation\(order=0\)"),
    "extrapolation of a class": (lambda: ss.Extrapolation(2, base=ss.Rattle), r"Extrapolation\(base=.*must be a method such as"),
    "a tableau whose rows do not sum": (
        lambda: ButcherTableau("mine", np.array([[0.5]]), np.array([1.0]), np.array([1.0])), "rows of A sum to"
    ),
    "no q0": (lambda: run(q0=...), r"q0 is missing: give the position at the start, q0=\[...\]"),
    "no u0": (lambda: run(u0=...), r"u0 is missing: give the velocity at the start, u0=\[...\]"),
    "texts in q0": (lambda: run(q0=["a", "b"]), "q0 must be a vector of real numbers, got .'a', 'b'"),
    "numbers in quotes": (lambda: run(q0=["0", "1"]), "q0 must be a vector of real numbers"),
    "a dict for q0": (lambda: run(q0={"x": 0.0}), "q0 must be a vector of real numbers, got .'x': 0.0"),
    "a number for q0": (lambda: run(q0=1.0), r"q0 must be a vector, got shape \(\)"),
    "a matrix for u0": (lambda: run(u0=[[0.0, 0.0]]), r"u0 must be a vector, got shape \(1, 2\)"),
    "ragged q0": (lambda: run(q0=[[0.0], [1.0, 2.0]]), "q0 must be a vector of numbers"),
    "complex q0": (lambda: run(q0=[1j, 0.0]), "q0 must be a vector of real numbers"),
    "nan in q0": (lambda: run(q0=[0.0, math.nan]), "q0 must be finite"),
    "infinity in u0": (lambda: run(u0=[0.0, math.inf]), "u0 must be finite"),
    "nothing in q0": (lambda: run(q0=[], u0=[]), "q0 is empty: a system has at least one coordinate"),
    "lengths that do not fit": (lambda: run(u0=[0.0]), r"q0 has 2 entries and u0 has 1: they must agree, or .* define B"),
    "no time": (lambda: run(t1=0.0), "t1 must be larger than t0, got t0 = 0.0 and t1 = 0.0"),
    "time backwards": (lambda: run(t1=-1.0), "t1 must be larger than t0"),
    "t1 in quotes": (lambda: run(t1="1"), "t1 must be a number, got '1'"),
    "t1 None": (lambda: run(t1=None), "t1 must be a number, got None"),
    "t1 nan": (lambda: run(t1=math.nan), "t1 must be finite, got nan"),
    "t0 as a list": (lambda: run(t0=[0.0, 1.0]), r"t0 must be a number, got \[0.0, 1.0\]"),
    "dt zero": (lambda: run(dt=0.0), "dt must be positive, got 0"),
    "dt negative": (lambda: run(dt=-0.1), "dt must be positive, got -0.1"),
    "dt nan": (lambda: run(dt=math.nan), "dt must be finite"),
    "dt in quotes": (lambda: run(dt="0.1"), "dt must be a number, got '0.1'"),
    "dt true": (lambda: run(dt=True), "dt must be a number, got True"),
    "dt too small for the clock": (lambda: run(t0=1.0, t1=2.0, dt=1e-17), "dt = 1e-17 vanishes beside"),
    "too many steps": (lambda: run(t1=1e6, dt=1e-6), "1e[+]12 steps of dt = 1e-06: their rows need about .* GB"),
    "neither dt nor tolerances": (lambda: run(dt=...), "neither dt nor stepsize is given, and no tolerances: give dt"),
    "dt and stepsize": (lambda: run(stepsize=ss.SwitchingPoints(1e-3, 1e-2)), "dt and stepsize are both given"),
    "dt and tolerances": (lambda: run(rtol=1e-6), "dt and tolerances are both given: give one of"),
    "stepsize as a number": (lambda: run(dt=..., stepsize=0.1), r"stepsize must be an ss.SwitchingPoints\(...\), got 0.1"),
    "stepsize upside down": (lambda: ss.SwitchingPoints(1e-2, 1e-3), "dt_min = 0.01 is larger than dt_max"),
    "stepsize negative": (lambda: ss.SwitchingPoints(-1e-2, 1e-3), r"SwitchingPoints\(dt_min=-0.01\)"),
    "max_steps zero": (lambda: run(max_steps=0), "max_steps must be a whole number, at least 1, got 0"),
    "max_steps as a text": (lambda: run(max_steps="many"), "max_steps must be a whole number, at least 1, got 'many'"),
    "save_every zero": (lambda: run(save_every=0), "save_every must be a positive integer, got 0"),
    "save_every and a half": (lambda: run(save_every=1.5), "save_every must be a positive integer, got 1.5"),
    "an option that is none": (lambda: run(tol=1e-3), "unexpected keyword argument 'tol'"),
    "no t1": (lambda: run(t1=...), "missing 1 required keyword-only argument: 't1'"),
    "a start inside of the floor": (lambda: run(q0=[0.0, -0.1]), r"the start penetrates: g_N\[0\] = -1.000e-01"),
    "a start that falls into the floor": (
        lambda: run(q0=[0.0, 0.0], u0=[0.0, -1.0]), "contact 0 is closed at the start but approaches.*start after the impact"
    ),
    "a start off the constraint": (
        lambda: run(g=lambda s, t, q: q[:1] - 1.0), r"the start violates g\[0\] = 0: it is -1.000e"
    ),
    "a start with a velocity off the constraint": (
        lambda: run(g=lambda s, t, q: q[:1], u0=[1.0, 0.0]), r"the start violates g_dot\[0\] = 0"
    ),
    "restart from nothing": (lambda: ss.simulate(restart=3, t1=1.0, dt=0.1), "restart must be a solution.*got 3"),
    "restart with q0": (lambda: run(restart=made()), "restart gives q0, u0 and t0: leave these away"),
    "restart into the past": (lambda: ss.simulate(restart=made(), t1=0.05, dt=0.01), "t1 must be larger than t0, got t0 = 0.1"),
    "restart from a batch": (lambda: ss.simulate(restart=made("batch"), t1=1.0, dt=0.1), r"restart takes one run.*sol\[0\]"),
}  # fmt: skip

EVENTS: dict[str, Case] = {
    "rtol negative": (lambda: located(rtol=-1.0), "rtol must be finite and positive, got -1"),
    "rtol in quotes": (lambda: located(rtol="fine"), "rtol must be a number, got 'fine'"),
    "rtol too small": (lambda: located(rtol=1e-17), "rtol = 1e-17 is below what double precision can do"),
    "atol nan": (lambda: located(atol=math.nan), "atol must be finite and positive"),
    "a method without estimate": (lambda: located(method=ss.Rattle()), "Rattle has no error estimate .*use ss.RadauIIA"),
    "one stage": (lambda: located(method=ss.RadauIIA(1)), r"RadauIIA\(1\) is of order 1, too low for tolerances"),
    "locate alone": (lambda: run(dt=..., locate=True), "locate=True needs dt=..., or tolerances"),
    "events with steps": (lambda: run(events=[lambda t, q, u: q[0]]), "events is for runs with located events: give rtol"),
    "t_eval with steps": (lambda: run(t_eval=[0.0]), "t_eval is for runs with located events"),
    "dt_zeno with steps": (lambda: run(dt_zeno=1e-3), "dt_zeno is for runs with located events"),
    "an event that is none": (lambda: located(events=["impact"]), r"events must be functions of \(t, q, u\), got 'impact'"),
    "an event as a vector": (lambda: located(events=[lambda t, q, u: q]), r"events: .* must return one number, got an array"),
    "an event that decides": (lambda: located(events=[lambda t, q, u: 1.0 if q[0] > 0 else -1.0]), "events.*jnp.where"),
    "t_eval out of range": (lambda: located(t_eval=[5.0]), "t_eval must be between t0 = 0 and t1 = 0.1"),
    "t_eval backwards": (lambda: located(t_eval=[0.1, 0.0]), "t_eval must be times in ascending order"),
    "t_eval in quotes": (lambda: located(t_eval="all"), "t_eval must be an array of times, got 'all'"),
    "max_events zero": (lambda: located(max_events=0), "max_events must be a whole number, at least 1, got 0"),
    "save_every with tolerances": (lambda: located(save_every=2), "save_every is for steps of a fixed size .*t_eval"),
    "sol(t) of steps": (lambda: made()(0.05), r"sol\(t\) is there for runs with tolerances"),
    "sol(t) out of range": (lambda: made("located")(5.0), r"t must be between 0 and 0.1, got 5.0"),
    "dissipation of steps": (lambda: made().dissipation(), r"dissipation\(\) is there for runs with tolerances"),
}  # fmt: skip

RESULTS: dict[str, Case] = {
    "a row by index": (lambda: made()[0], r"sol\[i\] takes a run out of a batch.*rows are sol.q\[i\]"),
    "a picture of a batch": (lambda: made("batch").plot("x.png"), r"plot takes one run, .* shape \(2,\): take one, sol\[0\]"),
    "a page of a batch": (lambda: made("batch").animate("x.html"), r"animate takes one run, .*take one, sol\[0\]"),
    "a file of a batch": (lambda: made("batch").save("x.nc"), r"save takes one run, .*take one, sol\[0\]"),
    "a picture as a text file": (lambda: made().plot("x.txt"), r"x.txt: the name must end in .png, .pdf or .svg"),
    "a picture without panels": (lambda: made().plot("x.png", panels=()), r"plot\(panels=\(\)\): name at least one of positions"),
    "an unknown panel": (lambda: made().plot("x.png", panels=("gap",)), "unknown panel 'gap'; did you mean 'gaps'"),
    "an unknown contact": (lambda: made().plot("x.png", contacts=("wall",)), "unknown contact 'wall'. Known: contact 0"),
    "a page as a picture": (lambda: made().animate("x.png"), r"x.png: a page's name ends in .html"),
    "a page of one frame": (lambda: made().animate(frames=1), r"animate\(frames=1.*at least two frames"),
    "a file of another kind": (lambda: made().save("x.csv"), r"x.csv: the name must end in .nc .* or .npz"),
    "a file where none can be": (lambda: made().save("/proc/no/x.nc"), r"/proc/no/x.nc cannot be written: No such file"),
    "a page where none can be": (lambda: made().animate("/proc/no/x.html"), r"/proc/no/x.html cannot be written"),
    "a picture where none can be": (lambda: made().plot("/proc/no/x.png"), r"/proc/no/x.png cannot be written"),
    "a file that is not there": (lambda: ss.load("/tmp/nowhere.nc"), r"nowhere.nc: no such file"),
    "a file of somebody else": (lambda: ss.load(__file__), r"test_bad_input.py is not a netCDF-4 file"),
    "energy that is not there": (lambda: made().energy(), r"Ball does not define energy\(t, q, u\)"),
    "switching points of steps": (lambda: made().switching_points(), r"of runs with stepsize=ss.SwitchingPoints"),
    "a drawing that is none": (lambda: run(Drawn(what=3)).animate("x.html"), r"draw\(t, q\) must return a list of ss.shapes"),
    "an unknown benchmark": (lambda: ss.benchmarks.load("bouncing-bal"), "unknown benchmark .*did you mean 'bouncing-ball'"),
    "an unknown case": (lambda: ss.benchmarks.load("bouncing-ball", 7), "has no case 7; its cases are 1, 2, 3"),
    "a citation of nothing": (lambda: ss.citation(3), "method must be a method, its class or its name, got 3"),
    "an order from two step sizes": (
        lambda: ss.convergence(ss.benchmarks.load("pendulum"), {"rattle": ss.Rattle()}, [0.1, 0.05]), "at least three"
    ),
    "a start for initial_state": (lambda: ss.initial_state(Ball(), [0.0, -1.0], [0.0, 0.0]), "the start penetrates"),
    "a class for initial_state": (lambda: ss.initial_state(Ball, [0.0, 1.0], [0.0, 0.0]), "system is the class Ball"),
}  # fmt: skip

TRACED: dict[str, Case] = {
    "dt in jit": (
        lambda: jax.jit(lambda dt: run(dt=dt).q)(0.1), "dt must be a Python number: it decides how many steps are made"
    ),
    "t1 in vmap": (lambda: jax.vmap(lambda t1: run(t1=t1).q)(jnp.ones(2)), "t1 must be a Python number"),
    "a decision in jit": (lambda: jax.jit(lambda q0: run(h=branches, q0=q0).q)(jnp.array([0.0, 1.0])), "h .*jnp.where"),
    "a wrong shape in vmap": (
        lambda: jax.vmap(lambda mu: run(Ball(mu=mu), u0=[0.0]).q)(jnp.array([0.1])), "q0 has 2 entries and u0 has 1"
    ),
    "two mu in vmap": (lambda: jax.vmap(lambda mu: run(Ball(mu=mu)).q)(jnp.ones((2, 2))), r"one number, got shape \(2,\)"),
    "an unknown method in jit": (lambda: jax.jit(lambda q0: run(q0=q0, method="rk4").q)(jnp.ones(2)), "unknown method 'rk4'"),
    "tolerances in jit": (lambda: jax.jit(lambda q0: located(q0=q0).q)(jnp.ones(2)), "max_steps is missing: inside jit"),
    "stepsize in jit": (
        lambda: jax.jit(
            lambda q0: run(q0=q0, dt=..., method=ss.Extrapolation(2), stepsize=ss.SwitchingPoints(1e-3, 1e-2)).q
        )(jnp.ones(2)),
        "max_steps is missing: inside jit",
    ),
    "words in jit": (lambda: jax.jit(lambda q0: run(q0=q0).state)(jnp.ones(2)), r"sol.state has words, .*sol.state_code\(\)"),
    "a file in jit": (lambda: jax.jit(lambda q0: run(q0=q0).save("x.nc"))(jnp.ones(2)), "inside jit"),
    "restart in jit": (
        lambda: jax.jit(lambda q0: ss.simulate(restart=run(q0=q0), t1=1.0, dt=0.1).q)(jnp.ones(2)), "give q0, u0 and t0"
    ),
}  # fmt: skip

CASES = {f"{kind}: {name}": case for kind, cases in (
    ("functions", FUNCTIONS), ("systems", SYSTEMS), ("laws", LAWS), ("runs", RUNS), ("events", EVENTS),
    ("results", RESULTS), ("traced", TRACED),
) for name, case in cases.items()}  # fmt: skip


REFUSALS = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    OSError,
    NameError,
    ArithmeticError,
    NotImplementedError,
)


def test_there_are_many_kinds():
    assert len(CASES) >= 150


@pytest.mark.parametrize("name", CASES)
def test_bad_input_has_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, words = CASES[name]
    with pytest.raises(Exception, match=words) as info:
        wrong()
    text = str(info.value)
    assert isinstance(info.value, REFUSALS)
    assert len(text) < 700, text
    assert len(text.splitlines()) == 1, text
    assert "Traced<" not in text
    assert "docs.jax.dev" not in text
    assert list(tmp_path.iterdir()) == [], "nothing is written"
    # What a terminal shows last is that sentence, or the user's own line.
    shown = "".join(traceback.format_exception(info.type, info.value, info.value.__traceback__))
    assert "jax" not in shown.strip().splitlines()[-1].split(" ")[0].lower()


CLI: dict[str, tuple[list[str], int, str]] = {
    "an unknown benchmark": (["run", "bouncing-bal"], 2, "did you mean 'bouncing-ball'"),
    "an unknown method": (["run", "bouncing-ball", "--method", "ratle"], 2, "did you mean 'rattle'"),
    "an unknown case": (["run", "bouncing-ball", "--case", "9"], 2, "has no case 9"),
    "dt zero": (["run", "bouncing-ball", "--dt", "0"], 2, "dt must be positive"),
    "a page by another name": (["run", "bouncing-ball", "--html", "x.png"], 2, "must end in .html"),
    "a page where none can be": (["run", "bouncing-ball", "--html", "/proc/no/x.html"], 2, "cannot be written"),
    "a file where none can be": (["run", "bouncing-ball", "--save", "/proc/no/x.nc"], 2, "cannot be written"),
    "a file of another kind": (["run", "bouncing-ball", "--save", "x.csv"], 2, "must end in .nc or .npz"),
    "a method without estimate": (["run", "bouncing-ball", "--method", "rattle", "--rtol", "1e-6"], 2, "no error estimate"),
    "too few step sizes": (["convergence", "pendulum", "--steps", "16,32"], 2, "at least three"),
    "words for steps": (["convergence", "pendulum", "--steps", "few,many"], 2, "--steps few,many"),
    "an unknown paper": (["reproduce", "S9"], 2, "S9"),
    "an unknown figure": (["reproduce", "S0", "--figure", "99"], 2, "99"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLI)
def test_the_command_line_has_one_sentence(name, monkeypatch, tmp_path):
    from stickslip.cli import app

    monkeypatch.chdir(tmp_path)
    arguments, code, words = CLI[name]
    out = CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})
    assert out.exit_code == code, out.output
    said = " ".join(out.output.split())
    assert words in said
    assert "Traceback" not in said


def test_a_run_that_goes_well_says_nothing():
    """The negative control: none of these checks refuses what is right."""
    assert (
        ss.RESULTS.successful
        == run(h=lambda s, t, q, u: jnp.array([jnp.where(q[1] > 0, 0.0, q[-1]), -9.81])).result
    )
    assert run(q0=(0, 1), u0=np.zeros(2, dtype=int)).q.shape == (3, 2)
    assert run(h=lambda s, t, q, u: [0.0, -9.81], M=lambda s, t, q: [[1.0, 0.0], [0.0, 1.0]]).q.shape == (
        3,
        2,
    )


if __name__ == "__main__":  # all sentences, to read
    import os
    import tempfile

    os.chdir(tempfile.mkdtemp())
    for name, (wrong, _) in CASES.items():
        try:
            wrong()
            print(f"{name}\n    NOTHING")
        except Exception as error:
            print(f"{name}\n    {type(error).__name__}: {error}")
