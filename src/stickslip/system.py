"""The contract: a mechanical system as a paper writes it down."""

import dataclasses
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import frames


class Label(NamedTuple):
    """What a component is called, and its unit; "" where nobody said."""

    name: str
    unit: str = ""

    @classmethod
    def of(cls, text: str) -> "Label":
        """From "name [unit]"."""
        parts = re.fullmatch(r"([^\[\]]+)\[([^\[\]]+)\]", text)
        name, unit = (part.strip() for part in parts.groups()) if parts else ("", "")
        if not (name and unit):
            raise ValueError(
                f'{text!r} must be "name [unit]", such as "x [m]", or "p_0 [1]" for a pure number'
            )
        return cls(name, unit)

    @property
    def rate(self) -> "Label":
        return Label(f"{self.name}_dot", f"{self.unit}/s")


class _FromTouches:
    """What a system that says nothing else has by its ``touches``:
    a default that a field or a property replaces.
    """

    def __init__(self, derived: Any) -> None:
        self.derived = derived

    def __get__(self, system: Any, owner: Any = None) -> Any:
        return () if system is None else self.derived(system)


class System(eqx.Module):
    """What is simulated: fields are parameters, methods are mechanics; nobody writes a derivative.

    ``M`` and ``h`` are required. Everything else defaults to "none" and ``B`` to the identity:

        M(t, q) du = h(t, q, u) dt + W_g dP_g + W_gamma dP_gamma + W_N dP_N + W_F dP_F,    q_dot = B u + beta

    ``laws`` is an attribute (field or property): one ``Contact`` per gap in order, then any
    ``FrictionElement``. So is ``switching_times``, at which forces jump: steps of `ss.SwitchingPoints` end
    there. ``coordinates`` and ``velocities`` name the entries of q and u as "name [unit]", ``contacts`` the
    gaps (or all laws, friction elements too): pictures, `sol.to_xarray()` and files carry the names.

    In place of ``g_N``, ``gamma_F``, ``laws`` and ``contacts``, ``touches`` says where contacts are: an
    attribute, a tuple of `ss.ContactFrame`. What else there is comes behind them: ``laws`` returns
    (*super().laws, ...), ``g_N`` and ``gamma_F`` return jnp.concatenate([super().g_N(t, q), ...]).
    """

    if TYPE_CHECKING:

        @property
        def laws(self) -> Any: ...

        @property
        def switching_times(self) -> Any: ...

        @property
        def coordinates(self) -> Any: ...

        @property
        def velocities(self) -> Any: ...

        @property
        def contacts(self) -> Any: ...

        @property
        def touches(self) -> Any: ...

    else:
        laws = _FromTouches(frames.laws)
        switching_times = ()
        coordinates = ()
        velocities = ()
        contacts = _FromTouches(frames.names)
        touches = ()

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except dataclasses.FrozenInstanceError:
            known = name in {field.name for field in dataclasses.fields(self)}
            remedy = f"make another with dataclasses.replace(system, {name}=...)" if known else (
                f"declare it in the class, `{name}: float`; then no __init__ is needed"
            )  # fmt: skip
            raise dataclasses.FrozenInstanceError(
                f"{type(self).__name__}.{name} cannot be set: fields of a system are its parameters, and "
                f"fixed: {remedy}"
            ) from None

    def M(self, t: Any, q: Array) -> Float[Array, "nu nu"]:
        """Mass matrix, (nu, nu), symmetric and positive definite."""
        raise NotImplementedError(f"{type(self).__name__} must define M(t, q)")

    def h(self, t: Any, q: Array, u: Array) -> Float[Array, " nu"]:
        """All smooth forces, (nu,): what friction and contacts do is not among them."""
        raise NotImplementedError(f"{type(self).__name__} must define h(t, q, u)")

    def B(self, t: Any, q: Array) -> Float[Array, "nq nu"]:
        """Of q_dot = B u + beta, (nq, nu); the identity if it is not defined."""
        return jnp.eye(q.shape[0])

    def beta(self, t: Any, q: Array) -> Float[Array, " nq"]:
        """Of q_dot = B u + beta, (nq,)."""
        return jnp.zeros(q.shape[0])

    def g(self, t: Any, q: Array) -> Float[Array, " n_g"]:
        """Bilateral constraints on position level, (n_g,): zero throughout."""
        return jnp.zeros(0)

    def gamma(self, t: Any, q: Array, u: Array) -> Float[Array, " n_gamma"]:
        """Bilateral constraints on velocity level, (n_gamma,), affine in u: zero throughout."""
        return jnp.zeros(0)

    def g_N(self, t: Any, q: Array) -> Float[Array, " n_N"]:
        """Gaps, (n_N,), one per contact, in m: never negative."""
        return frames.gaps(self, t, q)

    def gamma_F(self, t: Any, q: Array, u: Array) -> Float[Array, " n_F"]:
        """Friction velocities in physical units, flat, in the order of ``laws``; affine in u."""
        return frames.velocities(self, t, q, u, rate)


def is_identity(system: System) -> bool:
    """Whether q_dot = u."""
    return type(system).B is System.B and type(system).beta is System.beta


def rate(system: System, t: Any, q: Array, u: Array) -> Float[Array, " nq"]:
    """q_dot, S0 (1)."""
    return u if is_identity(system) else system.B(t, q) @ u + system.beta(t, q)


class LagrangianSystem(System):
    """Write T(t, q, u), V(t, q) and optionally other forces f(t, q, u); M, h and energy follow by autodiff.

    Lagrange's equations with q_dot = u:  d/dt dT/du - dT/dq + dV/dq = f. T may have terms linear in u.
    """

    def __check_init__(self):
        for name in ("B", "beta"):
            if getattr(type(self), name) is not getattr(System, name):
                raise TypeError(
                    f"{type(self).__name__} defines {name}, but an ss.LagrangianSystem has q_dot = u: its "
                    "equations would be"
                    " wrong. Write M and h of an ss.System instead"
                )

    def T(self, t: Any, q: Array, u: Array) -> Float[Array, ""]:
        """Kinetic energy, a number in J: quadratic in u, terms linear in u allowed."""
        raise NotImplementedError(f"{type(self).__name__} must define T(t, q, u)")

    def V(self, t: Any, q: Array) -> Float[Array, ""]:
        """Potential energy, a number in J."""
        return jnp.zeros(())

    def f(self, t: Any, q: Array, u: Array) -> Float[Array, " nu"]:
        """Forces that have no potential, (nu,)."""
        return jnp.zeros(u.shape[0])

    def M(self, t, q):
        # T is quadratic in u: its Hessian is the same at any u.
        return jax.hessian(lambda u: self.T(t, q, u))(jnp.zeros(q.shape[0]))

    def momentum(self, t: Any, q: Array, u: Array) -> Float[Array, " nu"]:
        """pi = dT/du."""
        return jax.grad(self.T, argnums=2)(jnp.asarray(t, dtype=float), q, u)

    def h(self, t, q, u):
        t = jnp.asarray(t, dtype=float)
        # d/dt dT/du at fixed u: what remains of Lagrange's left-hand side beside M u_dot.
        _, momentum_rate = jax.jvp(lambda t, q: self.momentum(t, q, u), (t, q), (jnp.ones(()), u))
        return (
            jax.grad(self.T, argnums=1)(t, q, u)
            - momentum_rate
            - jax.grad(self.V, argnums=1)(t, q)
            + self.f(t, q, u)
        )

    def energy(self, t: Any, q: Array, u: Array) -> Float[Array, ""]:
        return self.T(t, q, u) + self.V(t, q)
