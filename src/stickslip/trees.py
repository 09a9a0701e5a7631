"""What loops and derivatives ask of trees again and again."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp


def pick(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, leaf by leaf."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def either(condition: Any, a: Any, b: Any) -> Any:
    """The same for objects that share parts, which stay as they are: static ones among them."""
    return jax.tree.map(lambda x, y: x if x is y else jnp.where(condition, x, y), a, b)


def held(tree: Any) -> Any:
    """The same values, which no derivative goes through."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def strong(tree: Any) -> Any:
    """The same values with types of their own: what a Python number left behind would make a second program."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype) if isinstance(x, jax.Array) else x, tree)


def as_carry(tree: Any) -> Any:
    """What a loop begins with, as it will leave it: a Python number among arrays would make a second program too."""
    return strong(jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, bool | int | float) else x, tree))


def blank(shapes: Any) -> Any:
    """Zeros, from what `jax.eval_shape` gives."""
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)


class Traced:
    """A function that Python runs through once, to be used several times with arguments of the same shapes."""

    def __init__(self, f: Callable[..., Any], *like: Any) -> None:
        closed, self.shapes = jax.make_jaxpr(f, return_shape=True)(*like)
        self.jaxpr, self._call = closed.jaxpr, jax.extend.core.jaxpr_as_fun(closed)

    def __call__(self, *args: Any) -> Any:
        return jax.tree.unflatten(jax.tree.structure(self.shapes), self._call(*jax.tree.leaves(args)))
