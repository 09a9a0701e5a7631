"""Everything that follows from a system by differentiation, in one place.

Rows lie as `rows` says; friction rows are scaled as their balls want them
(`StackedLaws.scale`). Velocities of all rows are affine in u,

    gamma(t, q, u) = W(t, q)^T u + chi(t, q),      gamma_dot = W^T u_dot + zeta(t, q, u).

What does not change along a run is found out once, from the traced program, and computed once: a constant
mass matrix is inverted before the first step.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import Literal
from jaxtyping import Array, Float

from .captured import captured
from .linalg import columns, matmul, spd_solve
from .operators import Dense, Factored, ForceDirections, Inverse, Known
from .rows import Layout, Rows
from .scales import CLOSED, ROUND_OFF, START, Scales
from .stacked import StackedLaws
from .system import LagrangianSystem, System, is_identity, rate
from .trees import held


def depends(f: Callable, *args: Any) -> tuple[bool, ...]:
    """Whether f's value can depend on each (array) argument,
    judged from its traced program; errs towards yes.
    """
    jaxpr = jax.make_jaxpr(f)(*args).jaxpr

    def reached(start: Any) -> bool:
        known = {start}
        for eqn in jaxpr.eqns:
            if any(not isinstance(v, Literal) and v in known for v in eqn.invars):
                known.update(eqn.outvars)
        return any(not isinstance(v, Literal) and v in known for v in jaxpr.outvars)

    return tuple(reached(v) for v in jaxpr.invars)


def _force(system: System, laws: StackedLaws, t, q, u) -> Array:
    """h + W_F c: an interval about c is a force c and an interval about zero."""
    h = jnp.asarray(system.h(t, q, u))
    bias = laws.bias
    if bias is None:
        return h
    # gamma_F is affine in u: its derivative does not depend on u
    return h + jax.grad(lambda u: jnp.asarray(system.gamma_F(t, q, u)) @ bias)(u)


def _gaps(system: System, t, q) -> Array:
    return jnp.concatenate([jnp.asarray(system.g(t, q)), jnp.asarray(system.g_N(t, q))])


def _gap_terms(system: System, t, q) -> Array:
    """|dg/dq| |q| + |g|: what gaps are the sum of."""
    gaps, along = jax.linearize(lambda q: _gaps(system, t, q), q)
    return jnp.abs(columns(along, jnp.eye(q.shape[0]))) @ jnp.abs(q) + jnp.abs(gaps)


class Directions(NamedTuple):
    """Force directions of a position, and how percussions act along them."""

    W: ForceDirections
    chi: Float[Array, " n_y"]
    L: ForceDirections  # M^-1 W
    G: Float[Array, " n_y"]  # diagonal of W^T M^-1 W

    @classmethod
    def at(cls, dynamics: "Dynamics", t, q: Array) -> "Directions":
        return cls.with_force(dynamics, t, q, jnp.zeros((dynamics.nu, 0)))[0]

    @classmethod
    def with_force(
        cls, dynamics: "Dynamics", t, q: Array, h: Float[Array, "nu k"]
    ) -> tuple["Directions", Float[Array, "nu k"]]:
        """The same, and M^-1 h with one factorisation."""
        W, chi = dynamics.force_directions(t, q)
        L, moved = W.through(dynamics.inverse(t, q), h)
        return cls(W, chi, L, W.products(L)), moved

    def velocities(self, u: Array) -> Float[Array, " n_y"]:
        return self.W.T @ u + self.chi

    def scales_after(self, u: Array, before: Array, P: Array) -> Scales:
        """For the next step: with what forces changed u by in this one, beside the percussions P."""
        L, u, before, P = held((self.L, u, before, P))
        return self.scales(jnp.abs(u) + jnp.abs(u - before - L @ P))

    def scales(self, u: Array) -> Scales:
        """Of the velocities of all rows; u may be a sum of magnitudes."""
        # Sizes decide what is zero; no derivative of a run depends on them.
        (W, chi, _, G), u = held((self, u))
        none = jnp.zeros_like(G)
        return Scales(G, none + 1.0, Dense.of(W).terms(u) + jnp.abs(chi), none)


class Near(NamedTuple):
    """What counts as zero at a state that nobody solved for."""

    start: Float[Array, " n_gaps"]  # by how much (g, g_N) of a start may be off
    closed: Float[Array, " n_gaps"]  # gaps up to this are closed
    velocity: Float[Array, " n_y"]

    @classmethod
    def of(
        cls, dynamics: "Dynamics", q: Array, u: Array, at: Directions, k: Array, terms: Array, P: Any, dt: Any
    ) -> "Near":
        """Beside what the rows are the sum of, with the percussions P of a step that ended here;
        and beside the mechanism.

        ``k`` is M^-1 h, and gaps are the sum of ``terms``.
        Its size is that of its coordinates, its speed that of falling so far, and what forces gave it in the
        step: in the energy norm.
        """
        size = jnp.max(jnp.abs(q) / jnp.where(dynamics.reach > 0.0, dynamics.reach, jnp.inf), initial=0.0)
        force = dynamics.energy_norm(k)
        root, rows = jnp.sqrt(at.G), dynamics.rows.gaps
        whole = root[rows] * size
        added = at.scales(u).cancelling(P * jnp.ones_like(root))
        return cls(
            START * (terms + whole),
            CLOSED * terms + ROUND_OFF * whole + START * dt * added[rows],
            START * added + ROUND_OFF * root * (jnp.sqrt(size * force) + dt * force),
        )


class Situation(NamedTuple):
    """A state, as a start or the end of a run looks at it."""

    at: Directions
    k: Float[Array, " nu"]  # M^-1 h
    gaps: Float[Array, " n_gaps"]
    near: Near

    @classmethod
    def of(cls, dynamics: "Dynamics", t, q: Array, u: Array) -> "Situation":
        """Of a start; from several sides it is looked at once (`Dynamics.starting`)."""
        begun = dynamics.begun
        if begun is not None and t is begun.t and q is begun.q and u is begun.u:
            return begun.situation
        return _situation(dynamics, t, q, u, 0.0, 0.0)

    @classmethod
    def after(cls, dynamics: "Dynamics", t, q: Array, u: Array, P: Array, dt) -> "Situation":
        """Of the end of a step with percussions P over dt."""
        return _situation(dynamics, t, q, u, P, dt)


class Begun(NamedTuple):
    """A start, and what was found there."""

    t: Array
    q: Array
    u: Array
    situation: Situation


@eqx.filter_jit
def _situation(dynamics: "Dynamics", t, q: Array, u: Array, P: Any, dt: Any) -> Situation:
    at, force = Directions.with_force(dynamics, t, q, dynamics.h(t, q, u)[:, None])
    k = force[:, 0]
    near = Near.of(dynamics, q, u, at, k, _gap_terms(dynamics.system, t, q), P, dt)
    return Situation(at, k, dynamics.gaps(t, q), near)


class Dynamics(eqx.Module):
    """A system with its derivatives and with what is constant along a run."""

    system: System
    laws: StackedLaws
    M_inverse: Float[Array, "nu nu"] | None  # where M is constant
    # Sizes, taken at the start of a run, by which round-off is told from motion whatever the units:
    mobility: Float[Array, " nu"]  # sqrt((M^-1)_jj): u_j is at most this times sqrt(u^T M u)
    reach: Float[Array, " nq"]  # |B| mobility: q_dot likewise
    gap_terms: Float[Array, " n_gaps"]  # what gaps (g, g_N) are the sum of
    nq: int = eqx.field(static=True)
    nu: int = eqx.field(static=True)
    rows: Layout = eqx.field(static=True)
    h_of_u: bool = eqx.field(static=True)  # whether h depends on u
    k_of_q: bool = eqx.field(static=True)  # whether M^-1 h depends on q
    free: bool = eqx.field(static=True)  # whether M^-1 h is constant but for time
    identity: bool = eqx.field(static=True)  # whether q_dot = u
    flat: bool = eqx.field(static=True)  # whether q_dot = B u + beta with constant B and beta
    moving: bool = eqx.field(static=True)  # whether gaps change while u = 0
    # what the system's functions captured: another value, another program
    captured: str = eqx.field(static=True)
    begun: Begun | None = None  # while a run begins

    @classmethod
    def of(cls, system: System, t: Any, q: Array, u: Array) -> "Dynamics":
        t = jnp.asarray(t, dtype=float)
        laws = StackedLaws.of(system.laws)
        constant_mass = not any(depends(system.M, t, q))
        _, h_of_q, h_of_u = depends(lambda t, q, u: _force(system, laws, t, q, u), t, q, u)
        flat = not any(depends(lambda t, q: (system.B(t, q), system.beta(t, q)), t, q))
        moving = type(system).beta is not System.beta or depends(lambda t, q: _gaps(system, t, q), t, q)[0]
        M_inverse = spd_solve(jnp.asarray(system.M(t, q)), jnp.eye(u.shape[0]))
        mobility = held(jnp.sqrt(jnp.diagonal(M_inverse)))
        return cls(
            system,
            laws,
            M_inverse if constant_mass else None,
            mobility,
            held(jnp.abs(jnp.asarray(system.B(t, q))) @ mobility),
            held(_gap_terms(system, t, q)),
            q.shape[0],
            u.shape[0],
            Layout(
                jax.eval_shape(system.g, t, q).shape[0],
                jax.eval_shape(system.gamma, t, q, u).shape[0],
                laws.n_N,
                laws.n_F,
            ),
            h_of_u,
            h_of_q or not constant_mass,
            constant_mass and not h_of_q and not h_of_u,
            is_identity(system),
            flat,
            moving,
            captured(system),
        )

    def starting(self, t, q: Array, u: Array) -> "Dynamics":
        """While a run begins there: who asks for the `Situation` of this start gets the one."""
        return dataclasses.replace(self, begun=Begun(t, q, u, Situation.of(self, t, q, u)))

    def during(self, t, q: Array, u: Array, dt) -> "Dynamics":
        """In a step that begins with this state: a system may hold something fixed in it."""
        held_fixed = getattr(self.system, "_during", None)
        system = self.system if held_fixed is None else held_fixed(t, q, u, dt)
        return self if system is self.system else dataclasses.replace(self, system=system)

    @property
    def holding(self) -> Array | None:
        """Numbers of what the system holds fixed, where that changes what its contacts are."""
        return getattr(self.system, "_holding", None)

    @property
    def n_y(self) -> int:
        """Number of multipliers."""
        return self.rows.size

    def split(self, y: Array) -> Rows:
        return self.rows.split(y)

    def percussions(self, y: Array, duration: Any) -> Rows:
        """As `split`, with friction in physical units: the true percussion, torque times time for rotations.

        ``duration``: over which constant forces acted; 1 for forces, 0 in an impact.
        """
        P, laws = self.split(y), self.laws
        F = laws.scale * P.F
        return P._replace(F=F if laws.bias is None else F + duration * laws.bias)

    def rows_of_percussions(self, P_N: Array, P_F: Array, duration: Any) -> Float[Array, " n_y"]:
        """Rows of all laws from normal and (physical) friction percussions; zero in bilateral ones."""
        laws = self.laws
        F = (P_F if laws.bias is None else P_F - duration * laws.bias) / laws.scale
        return self.rows.join(jnp.zeros(self.rows.g), jnp.zeros(self.rows.gamma), P_N, F)

    def energy_norm(self, u: Array) -> Float[Array, ""]:
        """About sqrt(u^T M u), at least."""
        return jnp.max(jnp.abs(u) / self.mobility, initial=0.0)

    # -- the system, as arrays
    # ----------------------------------------------------------------------------------
    def h(self, t, q, u):
        """Smooth forces, with those in the middle of friction reservoirs."""
        return _force(self.system, self.laws, t, q, u)

    def M(self, t, q):
        return jnp.asarray(self.system.M(t, q))

    def solve_M(self, t, q, X: Float[Array, "nu k"]) -> Float[Array, "nu k"]:
        """M^-1 X."""
        return self.inverse(t, q).columns(X)

    def inverse(self, t, q) -> Inverse:
        """M^-1."""
        return Factored(self.M(t, q)) if self.M_inverse is None else Known(self.M_inverse)

    def k(self, t, q, u):
        """M^-1 h."""
        return self.solve_M(t, q, self.h(t, q, u)[:, None])[:, 0]

    def momentum(self, t, q, u):
        """pi = dT/du of a Lagrangian system, S1 (44); M u of any other."""
        return (
            self.system.momentum(t, q, u) if isinstance(self.system, LagrangianSystem) else self.M(t, q) @ u
        )

    def q_dot(self, t, q, u):
        """S0 (1)."""
        return rate(self.system, t, q, u)

    def B(self, t, q) -> Float[Array, "nq nu"]:
        return jnp.eye(self.nu) if self.identity else jnp.asarray(self.system.B(t, q))

    def B_times(self, t, q, U: Float[Array, "nu k"]) -> Float[Array, "nq k"]:
        return U if self.identity else matmul(self.system.B(t, q), U)

    def normalize(self, q):
        """Back onto the manifold, where the system says how."""
        normalize = getattr(self.system, "normalize", None)
        return q if normalize is None else normalize(q)

    def gamma_F(self, t, q, u):
        """Friction velocities in the scale of their balls, S3 (3.31)."""
        return self.laws.scale * jnp.asarray(self.system.gamma_F(t, q, u))

    # -- constraint rows
    # ----------------------------------------------------------------------------------------
    def gaps(self, t, q):
        """(g, g_N)"""
        return _gaps(self.system, t, q)

    def positions(self, t, q, u) -> Float[Array, " n_y"]:
        """Rows as a position stage sees them: (g, gamma, g_N, gamma_F)."""
        return self.rows.merge(self.gaps(t, q), self.gammas(t, q, u))

    def velocities(self, t, q, u) -> Float[Array, " n_y"]:
        """Rows on velocity level: (g_dot, gamma, g_N_dot, gamma_F); S0 (6), (10)."""
        t = jnp.asarray(t, dtype=float)
        _, gap_rates = jax.jvp(self.gaps, (t, q), (jnp.ones(()), self.q_dot(t, q, u)))
        return self.rows.merge(gap_rates, self.gammas(t, q, u))

    def directions(self, t, q) -> tuple[Float[Array, "nu n_y"], Float[Array, " n_y"]]:
        """W and chi, S0 (7), (11): gaps differentiated along B u + beta, velocities by u."""
        t = jnp.asarray(t, dtype=float)
        _, along = jax.linearize(self.gaps, t, q)
        W_gaps = columns(lambda q_dot: along(jnp.zeros(()), q_dot), self.B(t, q))
        chi_gaps = (
            along(jnp.ones(()), self.q_dot(t, q, jnp.zeros(self.nu)))
            if self.moving
            else jnp.zeros(len(W_gaps))
        )
        gamma, along = jax.linearize(lambda u: self.gammas(t, q, u), jnp.zeros(self.nu))
        W_gammas = columns(along, jnp.eye(self.nu))
        return self.rows.merge(W_gaps, W_gammas).T, self.rows.merge(chi_gaps, gamma)

    def force_directions(self, t, q) -> tuple[ForceDirections, Float[Array, " n_y"]]:
        """The same, W as an operator."""
        W, chi = self.directions(t, q)
        return Dense(W), chi

    def gammas(self, t, q, u) -> Array:
        """(gamma, gamma_F)"""
        return jnp.concatenate([jnp.asarray(self.system.gamma(t, q, u)), self.gamma_F(t, q, u)])

    def acceleration_rest(self, t, q, u) -> Float[Array, " n_y"]:
        """zeta: the rows' accelerations at u_dot = 0."""
        t = jnp.asarray(t, dtype=float)
        _, zeta = jax.jvp(lambda t, q: self.velocities(t, q, u), (t, q), (jnp.ones(()), self.q_dot(t, q, u)))
        return zeta
