"""All laws of a system in arrays, and what the solvers ask of them: active sets, residuals, projections."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .laws import Contact, FrictionElement
from .sets import Balls, NonPositive


class ActiveSet(NamedTuple):
    """Which branch of (6.8) holds: contacts whose gap (rate) is zero, balls that stick."""

    normal: Bool[Array, " n_N"]
    stick: Bool[Array, " n_balls"]


class StackedLaws(eqx.Module):
    """All set-valued laws of a system in arrays, ready for the solvers."""

    e_N: Float[Array, " n_N"]
    e_F: Float[Array, " n_F"]
    scale: Float[Array, " n_F"]
    coefficient: Float[Array, " n_balls"]
    set: Balls
    contact_of: tuple[int, ...] = eqx.field(static=True)  # ball -> contact, -1 for a constant reservoir
    # force in the middle of each reservoir, in physical units; None: all zero
    bias: Float[Array, " n_F"] | None = None

    @classmethod
    def of(cls, laws: Sequence[Contact | FrictionElement]) -> "StackedLaws":
        e_N: list[Any] = []
        e_F: list[Any] = []
        scale: list[Any] = []
        coefficient: list[Any] = []
        dimensions: list[int] = []
        contact_of: list[int] = []
        bias: list[Any] = []
        one_way: list[bool] = []
        for law in laws:
            if isinstance(law, Contact):
                e_N.append(law.e_N)
                contact, balls = (
                    len(e_N) - 1,
                    [ball for friction in law.friction for ball in friction.balls()],
                )
            else:
                contact, balls = -1, law.balls()
            for ball in balls:
                dimensions.append(len(ball.scales))
                contact_of.append(contact)
                scale += ball.scales
                e_F += [law.e_F] * len(ball.scales)
                coefficient.append(ball.coefficient)
                bias += [ball.bias] * len(ball.scales)
                one_way.append(ball.one_way)
        biased = any(isinstance(law, FrictionElement) and law.lower is not None for law in laws)
        return cls(
            _array(e_N), _array(e_F), _array(scale), _array(coefficient),
            Balls(tuple(dimensions), tuple(one_way) if any(one_way) else ()), tuple(contact_of),
            _array(bias) if biased else None,
        )  # fmt: skip

    @property
    def n_N(self) -> int:
        return self.e_N.shape[0]

    @property
    def n_F(self) -> int:
        return self.e_F.shape[0]

    @property
    def law_of(self) -> np.ndarray:
        """ball -> law, as a system lists them: contacts, then friction elements, which have one ball each."""
        contact = np.asarray(self.contact_of, dtype=int)
        return np.where(contact < 0, self.n_N - 1 + np.cumsum(contact < 0), contact)

    @property
    def count(self) -> int:
        """Number of laws."""
        return self.n_N + sum(c < 0 for c in self.contact_of)

    @property
    def _one_each(self) -> bool:
        """One ball on every contact, and no others."""
        return self.contact_of == tuple(range(self.n_N))

    @property
    def constant(self) -> np.ndarray:
        """Balls of constant size, which are on no contact."""
        return np.asarray(self.contact_of, dtype=int) < 0

    @property
    def bearing(self) -> Bool[Array, " n_balls"]:
        """Balls that can hold anything at all."""
        return (self.coefficient > 0.0) | self.set.half_lines

    @property
    def without_impulse(self) -> np.ndarray:
        """Balls that have no share in an impact."""
        return self.constant & ~self.set.half_lines

    def of_balls(self, of_contacts: Array, elsewhere: Any = True) -> Array:
        """A value of contacts, for the balls on them; by default, constant reservoirs are always there."""
        if self._one_each:
            return of_contacts
        if not self.set.count:
            return jnp.zeros((*of_contacts.shape[:-1], 0), of_contacts.dtype)
        if not self.constant.any():
            return of_contacts[..., np.asarray(self.contact_of, dtype=int)]
        if self.constant.all():
            return jnp.broadcast_to(
                jnp.asarray(elsewhere, of_contacts.dtype), (*of_contacts.shape[:-1], self.set.count)
            )
        on_contacts = of_contacts[..., np.maximum(np.asarray(self.contact_of, dtype=int), 0)]
        return jnp.where(self.constant, elsewhere, on_contacts)

    def of_contacts(self, of_balls: Bool[Array, "... n_balls"]) -> Bool[Array, "... n_N"]:
        """Whether any ball of a contact has a flag."""
        if self._one_each:
            return of_balls
        mine = np.arange(self.n_N)[:, None] == np.asarray(self.contact_of, dtype=int)
        return jnp.any(mine & of_balls[..., None, :], axis=-1)

    def radii(self, mu_N: Float[Array, "... n_N"], duration: Any) -> Float[Array, "... n_balls"]:
        """Radius of each ball for normal percussions mu_N over a given duration."""
        return self.coefficient * self.of_balls(mu_N, duration)

    def active_set(self, psi_N, psi_F, mu_N, mu_F, rho_N, rho_F, closed, may_stick, duration) -> ActiveSet:
        """The conditions of (6.8): a_N in R_0^-, a_F inside the ball;
        contacts not ``closed`` carry nothing.
        """
        normal = closed & NonPositive.contains(rho_N * psi_N - mu_N)
        radius = self.radii(jnp.where(normal, jnp.maximum(mu_N, 0.0), 0.0), duration)
        a_F = self.set.expand(rho_F) * psi_F - mu_F
        return ActiveSet(normal, may_stick & self.set.interior(a_F, radius))

    def residual(
        self, active: ActiveSet, psi_N, psi_F, mu_N, mu_F, rho_F, may_stick, duration
    ) -> tuple[Array, Array]:
        """(6.8) with the active set held: rows are free of rho except in the slip direction."""
        F_N = jnp.where(active.normal, psi_N, mu_N)
        radius = self.radii(jnp.where(active.normal, mu_N, 0.0), duration)
        # A ball that cannot stick has a given slip velocity psi_F: its own direction is the exact one.
        a_F = jnp.where(self.set.expand(may_stick), self.set.expand(rho_F) * psi_F - mu_F, psi_F)
        slip = mu_F + self.set.expand(radius) * self.set.direction(a_F)
        return F_N, jnp.where(self.set.expand(active.stick), psi_F, slip)

    def project(
        self, psi_N, psi_F, mu_N, mu_F, rho_N, rho_F, closed, may_stick, duration
    ) -> tuple[Array, Array]:
        """-prox(rho psi - mu), (6.14b). The ball takes the new mu_N, so that the cone holds when it ends."""
        mu_N = jnp.where(closed, -NonPositive.prox(rho_N * psi_N - mu_N), 0.0)
        return mu_N, self.project_friction(psi_F, mu_N, mu_F, rho_F, may_stick, duration)

    def project_friction(self, psi_F, mu_N, mu_F, rho_F, may_stick, duration) -> Array:
        """The friction part, for given mu_N."""
        radius = self.radii(mu_N, duration)
        mu_F = -self.set.prox(self.set.expand(rho_F) * psi_F - mu_F, radius)
        slip = -self.set.expand(radius) * self.set.direction(psi_F)
        return jnp.where(self.set.expand(may_stick), mu_F, slip)

    def in_range(self) -> Bool[Array, ""]:
        """What the constructors check, for coefficients that were traced then."""
        fractions = jnp.concatenate([self.e_N, self.e_F])
        ok = jnp.all((fractions >= 0.0) & (fractions <= 1.0))
        ok &= jnp.all((self.coefficient >= 0.0) & jnp.isfinite(self.coefficient))
        ok &= jnp.all(jnp.isfinite(self.bias)) if self.bias is not None else True
        return ok & jnp.all((self.scale != 0.0) & jnp.isfinite(self.scale))


def _array(values: list[Any]) -> Array:
    return jnp.stack([jnp.asarray(v, dtype=float) for v in values]) if values else jnp.zeros(0)
