"""Traced programs made smaller before they are compiled: what stands in one twice is computed once.

A step asks its system for the same thing from several sides (gaps, rotations, directions), and functions that
JAX has traced as such are calls. The compiler finds out too that two equations are the same, but only after
it has read, checked and inlined them all. Here small functions, and those called once, take the place of
their call, equations with the same operands are one, and those that nobody uses are none: of a step a third
is gone.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

P = ParamSpec("P")
T = TypeVar("T")
SMALL = 30  # equations of a function that takes the place of its call wherever it is called
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr"}
_RULES = {"custom_jvp_call": "call_jaxpr"}  # calls like others, once derivatives were taken
_LOOPS = ("scan", "while", "cond")


def shared(traced: Any) -> Callable[..., Any] | None:
    """The function that was traced, with fewer equations; None where JAX writes programs otherwise."""
    try:
        return jaxpr_as_fun(_smaller(traced.jaxpr))
    except (AttributeError, KeyError, TypeError):
        return None


def smaller(f: Callable[P, T]) -> Callable[P, T]:
    """The same for a function that is traced, and may be differentiated again."""

    @functools.wraps(f)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        program, shapes, rest = eqx.filter_make_jaxpr(f)(*args, **kwargs)
        try:
            fewer = jaxpr_as_fun(_smaller(program, again=True))
        except (AttributeError, KeyError, TypeError):
            return f(*args, **kwargs)
        out = fewer(*jax.tree.leaves(eqx.filter((args, kwargs), eqx.is_array)))
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(shapes), out), rest)

    return called


def equations(jaxpr: Jaxpr) -> int:
    """How many there are, in all functions and loops."""
    return sum(1 + sum(equations(inner.jaxpr) for inner in _inner(e)) for e in jaxpr.eqns)


def _inner(e: JaxprEqn) -> Iterator[ClosedJaxpr]:
    for value in e.params.values():
        yield from (
            x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, ClosedJaxpr)
        )


def _smaller(program: ClosedJaxpr, again: bool = False) -> ClosedJaxpr:
    """``again``: derivatives may be taken of it."""
    return ClosedJaxpr(_Scope(program.jaxpr, _CALLS if again else _CALLS | _RULES).result(), program.consts)


class _Scope:
    """The equations of one function or loop body, read one after the other."""

    def __init__(self, jaxpr: Jaxpr, calls: dict[str, str]) -> None:
        self.jaxpr, self.by = jaxpr, calls
        self.names: dict[Var, Any] = {}  # what stands for a variable now
        self.known: dict[Any, list[Var]] = {}  # results by operation and operands
        self.kept: list[JaxprEqn] = []
        self.calls = Counter(id(body) for e in jaxpr.eqns if (body := self.body(e)) is not None)
        self.read(jaxpr)

    def result(self) -> Jaxpr:
        out = [self.at(v) for v in self.jaxpr.outvars]
        used = {v for v in out if isinstance(v, Var)}
        eqns = []
        for e in reversed(self.kept):
            if e.effects or not used.isdisjoint(e.outvars):
                used.update(v for v in e.invars if isinstance(v, Var))
                eqns.append(e)
        return self.jaxpr.replace(eqns=eqns[::-1], outvars=out)

    def at(self, v: Any) -> Any:
        return v if isinstance(v, Literal) else self.names.get(v, v)

    def body(self, e: JaxprEqn) -> Jaxpr | None:
        """Of a function that is called."""
        name = self.by.get(e.primitive.name)
        called = None if name is None or e.effects else e.params[name]
        return None if called is None or called.consts else called.jaxpr

    def read(self, jaxpr: Jaxpr) -> None:
        for e in jaxpr.eqns:
            body = self.body(e)
            if body is not None and (len(body.eqns) <= SMALL or self.calls[id(body)] == 1):
                self.names |= zip(body.invars, map(self.at, e.invars), strict=True)
                self.calls.update(id(inner) for x in body.eqns if (inner := self.body(x)) is not None)
                self.read(body)
                self.names |= zip(e.outvars, map(self.at, body.outvars), strict=True)
            else:
                self.keep(e)

    def keep(self, e: JaxprEqn) -> None:
        invars = [self.at(v) for v in e.invars]
        key = None if e.effects else _key(e, invars)
        found = None if key is None else self.known.get(key)
        if found is None:
            params = e.params
            if e.primitive.name in (*_LOOPS, *self.by):
                params = {name: self.within(value) for name, value in params.items()}
            found = [Var(v.aval) for v in e.outvars]  # a function may be read more than once
            self.kept.append(e.replace(invars=invars, outvars=found, params=params))
            if key is not None:
                self.known[key] = found
        self.names |= zip(e.outvars, found, strict=True)

    def within(self, value: Any) -> Any:
        """Of an equation's parameters, those that are programs."""
        if isinstance(value, ClosedJaxpr):
            return _smaller(value, again=self.by is _CALLS)
        return tuple(map(self.within, value)) if isinstance(value, tuple) and value else value


def _key(e: JaxprEqn, invars: list[Any]) -> Any:
    """The same for equations that compute the same; None where that cannot be told."""
    key = e.primitive, tuple(e.params.items()), tuple(map(_identity, invars))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _identity(v: Any) -> Any:
    if not isinstance(v, Literal):
        return v
    number = np.asarray(v.val)
    signed = number.dtype.kind == "f" and bool(np.signbit(number).any())  # zeros have signs
    return v.aval, id(v.val) if number.ndim else number.item(), signed
