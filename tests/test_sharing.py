"""Programs are made smaller before they are compiled, and compute the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

import stickslip as ss
from stickslip import compiling, sharing
from stickslip.fixed import FixedSteps
from stickslip.loop import _piece, begin


@jax.jit
def rotated(a, x):
    return jnp.stack([jnp.cos(a) * x[0] - jnp.sin(a) * x[1], jnp.sin(a) * x[0] + jnp.cos(a) * x[1]])


@jax.custom_jvp
def root(x):
    return jnp.sqrt(x)


root.defjvp(lambda x, dx: (root(*x), 0.5 * dx[0] / root(*x)))


def twice(x):
    return rotated(x[0], x) + rotated(x[0], x) @ jnp.ones((2, 2)) + rotated(x[1], x)


def loops(x):
    def body(c):
        return c[0] + 1, c[1] + rotated(c[1][0], c[1]) * rotated(c[1][0], c[1])

    def row(c, _):
        return jax.lax.cond(c[0] > 0.3, lambda c: jnp.sin(c) + jnp.sin(c), lambda c: -c, c), c * c + c * c

    k, y = jax.lax.while_loop(lambda c: c[0] < 5, body, (0, x))
    return k, jax.lax.scan(row, y, length=3)


def unused(x):
    big = jnp.exp(x) @ jnp.outer(x, x)
    return jnp.where(x > 0, x - 1.0, x + 1.0), x[::-1] - x, x - x[::-1] + 0.0 * big[0]


def zeros(x):
    return 1.0 / (0.0 * x), 1.0 / (-0.0 * x), jnp.sign(x) * 1, jnp.sign(x) * 1.0


def derivatives(x):
    return root(x * x + 1.0), jax.jvp(lambda x: root(x * x + 1.0), (x,), (jnp.ones(2),)), root(x * x + 1.0)


FUNCTIONS = [twice, loops, unused, zeros, derivatives]
X = jnp.array([0.4, -1.3])


def smaller(f):
    return sharing.shared(jax.jit(f).trace(X))


def equal(f):
    with np.errstate(all="ignore"):
        expected, found = jax.tree.leaves(jax.jit(f)(X)), jax.jit(smaller(f))(X)
    # the compiler rounds otherwise where it puts other equations together
    return all(np.allclose(a, b, rtol=1e-14, atol=0.0) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_stands_twice_is_computed_once_and_is_the_same(f):
    assert equal(f)
    count = sharing.equations(jax.make_jaxpr(smaller(f))(X).jaxpr)
    assert count < sharing.equations(jax.make_jaxpr(f)(X).jaxpr)


def test_a_check_that_takes_operands_or_signs_for_the_same_fails(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sharing, "_identity", lambda v: getattr(v, "aval", None))
        assert not equal(unused)
    original = sharing._identity

    def unsigned(v):
        return original(v)[:2] if isinstance(v, Literal) else v

    monkeypatch.setattr(sharing, "_identity", unsigned)
    assert not equal(zeros)


def test_what_is_said_while_a_program_runs_is_said_as_often(capsys):
    def f(x):
        jax.debug.print("here")
        jax.debug.print("here")
        return x

    jax.block_until_ready(jax.jit(smaller(f))(X))
    jax.effects_barrier()
    assert capsys.readouterr().out.count("here") == 2


def test_rules_of_derivatives_are_kept_where_derivatives_may_be_taken_again():
    @jax.custom_jvp
    def marked(x):
        return x

    marked.defjvp(lambda x, dx: (marked(*x), 3.0 * dx[0]))

    def f(x):
        return jnp.sum(marked(x) * marked(x))

    assert jax.grad(sharing.smaller(f))(X) == pytest.approx(6.0 * X)
    with pytest.raises(AssertionError):  # unlike in a program that is compiled next
        assert jax.grad(lambda x: smaller(f)(x)[0])(X) == pytest.approx(6.0 * X)


def test_of_a_step_at_least_a_quarter_is_gone():
    b = ss.benchmarks.load("slider-crank")
    method, controller = ss.Rattle(), FixedSteps(*map(np.asarray, (0.0, b.dt, b.dt, 1, 1)))
    start = begin(b.system, method, controller, jnp.asarray(0.0), b.q0, b.u0, "")[:2]

    def step(start):
        return _piece(start[0], method, controller, start[1], np.asarray(1), "")

    traced = jax.jit(step).trace(start)
    fewer = jax.make_jaxpr(sharing.shared(traced))(*jax.tree.leaves(start))
    assert sharing.equations(fewer.jaxpr) < 0.75 * sharing.equations(traced.jaxpr.jaxpr)


def test_programs_of_the_same_content_are_one(monkeypatch):
    """Other functions, captured values and methods make other programs."""
    monkeypatch.setattr(compiling, "_alike", {})

    def programs(mass, method):
        class Ball(ss.System):
            nq: int = 1

            def M(self, t, q):
                return mass * jnp.eye(1)

            def h(self, t, q, u):
                return jnp.array([-9.81])

            def g_N(self, t, q):
                return q

            laws = (ss.Contact(e_N=0.5),)

        sol = ss.simulate(Ball(), method, [0.02], [0.0], t1=0.1, dt=1e-2)
        return sol.q, len(compiling._alike)

    q, both = programs(1.0, ss.MoreauMidpoint())
    again, the_same = programs(1.0, ss.MoreauMidpoint())
    assert both == the_same == 2  # to begin, and to go on
    assert np.array_equal(q, again)
    assert programs(2.0, ss.MoreauMidpoint())[1] > the_same
    assert programs(1.0, ss.Rattle())[1] > the_same + 1
