"""What loops and derivatives ask of trees again and again."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp


def pick(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, leaf by leaf."""
    return jax.tree.map(lambda x, y: _chosen(condition, x, y), a, b)


def either(condition: Any, a: Any, b: Any) -> Any:
    """The same for objects that share parts, which stay as they are: static ones among them."""
    return jax.tree.map(lambda x, y: x if x is y else _chosen(condition, x, y), a, b)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """As `jnp.where`; one condition for arrays that are alike is one equation."""
    if x is y and isinstance(x, jax.Array):
        return x
    alike = (
        all(isinstance(a, jax.Array) for a in (condition, x, y))
        and jnp.shape(x) == jnp.shape(y)
        and x.dtype == y.dtype
    )
    if alike and condition.dtype == bool and not jnp.ndim(condition):
        return jax.lax.select_n(condition, y, x)
    return jnp.where(condition, x, y)


def held(tree: Any) -> Any:
    """The same values, which no derivative goes through."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def moving(args: Any, rates: Any) -> tuple[Any, Any]:
    """What has a rate, and all the rest, of arguments and their tangents:
    only the first is to be differentiated.
    """
    rests = jax.tree.map(lambda r, x: x if r is None else None, rates, args, is_leaf=lambda r: r is None)
    moves = jax.tree.map(lambda r, x: None if r is None else x, rates, args, is_leaf=lambda r: r is None)
    return moves, rests


def strong(tree: Any) -> Any:
    """The same values with types of their own:
    what a Python number left behind would make a second program.
    """
    return jax.tree.map(
        lambda x: jax.lax.convert_element_type(x, x.dtype) if isinstance(x, jax.Array) else x, tree
    )


def as_carry(tree: Any) -> Any:
    """What a loop begins with, as it will leave it:
    a Python number among arrays would make a second program too.
    """
    return strong(jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, bool | int | float) else x, tree))


def blank(shapes: Any) -> Any:
    """Zeros, from what `jax.eval_shape` gives."""
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)


@eqx.filter_custom_jvp
def repeated(args: Any, start: Any, *, loop: Callable[..., Any]) -> Any:
    """``loop(args, start, both_ways)``: the plain loop for who only runs it,
    one that can be transposed for derivatives.

    All numbers of the start get a rate, zero if need be, that is batched as the others are. Else JAX finds
    out what of a loop moves, and what is batched, by going through its body again and again.
    """
    return loop(args, start, False)


@repeated.def_jvp
def _repeated_jvp(primals, tangents, *, loop):
    _, start = primals
    known = jax.tree.leaves(tangents)[0]
    zero = 0.0 * jnp.ravel(known)[0]

    def rate(r: Any, x: Any) -> Any:
        return jnp.broadcast_to(zero, jnp.shape(x)) if r is None and eqx.is_inexact_array(x) else r

    rates = jax.tree.map(rate, tangents[1], start, is_leaf=lambda r: r is None)
    return eqx.filter_jvp(lambda args, start: loop(args, start, True), primals, (tangents[0], rates))


class Traced:
    """A function that Python runs through once,
    to be used several times with arguments of the same shapes.
    """

    def __init__(self, f: Callable[..., Any], *like: Any) -> None:
        closed, self.shapes = jax.make_jaxpr(f, return_shape=True)(*like)
        self.jaxpr, self._call = closed.jaxpr, jax.extend.core.jaxpr_as_fun(closed)

    def __call__(self, *args: Any) -> Any:
        return jax.tree.unflatten(jax.tree.structure(self.shapes), self._call(*jax.tree.leaves(args)))
