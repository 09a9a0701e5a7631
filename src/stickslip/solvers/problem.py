"""One problem type: equations of motion subject to normal cone inclusions, S3 (6.1), with one residual.

    phi(x, y) = 0   subject to   psi(x) in K(mu),   mu = offset + A y.

x is the motion (q, u) of a step, y the multipliers, laid out as `rows` says. The motion is eliminated: a
problem knows how to correct x for given y (one Newton step on phi) and how x then moves with y,

    x <- x - H_xx^-1 phi(x, y),    X = dx/dy = -H_xx^-1 H_xy,

so that a solver factors matrices of the size of y only: the Schur complement (6.12), (6.13).
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..linalg import SMALL, Eliminated, columns, eliminate
from ..operators import Dense, Operator
from ..rows import Layout
from ..scales import Scales
from ..stacked import ActiveSet, StackedLaws

# of what cancels in a gap: contacts of many that are open by no more count as closed
TOUCHING = 64.0 * np.finfo(float).eps


class ProxParameters(NamedTuple):
    """rho of every contact and every ball."""

    N: Float[Array, "... n_N"]
    F: Float[Array, "... n_balls"]

    @classmethod
    def of(cls, laws: StackedLaws, layout: Layout, G: Float[Array, " n_y"]) -> "ProxParameters":
        """From the diagonal of W^T M^-1 W: (6.18), and (6.19) with the maximum (not the minimum)."""
        _, G_N, G_F = layout.laws(jax.lax.stop_gradient(G))  # solutions do not depend on rho
        G_F = laws.set.largest(G_F)
        # A contact at which nothing can move has G = 0; any positive rho will do there.
        return cls(1.0 / jnp.where(G_N > 0.0, G_N, 1.0), 1.0 / jnp.where(G_F > 0.0, G_F, 1.0))

    def scaled(self, factor) -> "ProxParameters":
        return ProxParameters(factor * self.N, factor * self.F)

    def on_position_level(self, dt) -> "ProxParameters":
        """A percussion moves a gap by dt G: the footnote to (6.18)."""
        return ProxParameters(self.N / dt, self.F)


class Inclusions(eqx.Module):
    """The right-hand side of (6.1): which laws hold, where, and with which proximal parameters."""

    laws: StackedLaws
    layout: Any = eqx.field(static=True)  # a `StageLayout` or `LevelLayout`
    closed: Bool[Array, "... n_N"]  # contacts that may carry a percussion
    may_stick: Bool[Array, "... n_balls"]  # balls whose velocity is unknown; the others slip with a given one
    rho: ProxParameters
    duration: Float[Array, "..."]  # over which constant reservoirs act; one, or one per ball
    offset: Float[Array, " n_y"]  # percussion that came before y
    scales: Scales
    # whether the caller has another problem to try: not worth more than Newton's method
    optional: Any = False
    # rho in use where they are not the estimates above, which are also what percussions move
    proximal: Any = None

    def split(self, rows: Array | np.ndarray) -> tuple[Array, Array, Array]:
        """(bilateral, N, F), each with the stages as leading axis."""
        return self.layout.split(rows)

    @property
    def stages(self) -> int:
        return self.layout.stages or 1

    @property
    def in_use(self) -> ProxParameters:
        """rho of the natural maps."""
        return self.rho if self.proximal is None else self.proximal

    def none_active(self) -> ActiveSet:
        lead = self.layout.lead
        return ActiveSet(
            jnp.zeros((*lead, self.laws.n_N), dtype=bool), jnp.zeros((*lead, self.laws.set.count), dtype=bool)
        )

    def active_set(self, psi: Array, mu: Array) -> ActiveSet:
        _, psi_N, psi_F = self.split(psi)
        _, mu_N, mu_F = self.split(mu)
        if self.layout.size > SMALL:
            # contacts that share a load: one that touches and carries nothing is told from an open one by
            # round-off alone
            psi_N = psi_N - self.split(TOUCHING * self.scales.cancelling(mu))[1]
        return self.laws.active_set(
            psi_N, psi_F, mu_N, mu_F, *self.in_use, self.closed, self.may_stick, self.duration
        )

    def residual(self, active: ActiveSet, psi: Array, mu: Array) -> Array:
        """(psi of bilateral rows, natural maps (6.8) of the laws), with the active set held."""
        psi_b, psi_N, psi_F = self.split(psi)
        _, mu_N, mu_F = self.split(mu)
        laws = self.laws.residual(
            active, psi_N, psi_F, mu_N, mu_F, self.in_use.F, self.may_stick, self.duration
        )
        return self.layout.join(psi_b, *laws)

    def per_percussion(self) -> Array:
        """What a percussion moves at its own row, G_ii:
        turns percussions into the units of psi (bilateral rows: 1).
        """
        return self.layout.join(1.0, 1.0 / self.rho.N, self.laws.set.expand(1.0 / self.rho.F))

    def percussions(self, y: Array) -> Array:
        """What there is of them, before and now."""
        return jnp.abs(self.offset) + jnp.abs(y)

    def sizes(self, percussions: Array) -> Array:
        """How large rows are that hold percussions: in friction by the whole ball,
        not by a small component.
        """
        b, N, F = self.split(percussions)
        ball = jnp.maximum(self.laws.set.largest(F), self.laws.radii(N, self.duration))
        return self.layout.join(b, N, self.laws.set.expand(ball))

    def of_psi(self, active: ActiveSet) -> Bool[Array, " n_y"]:
        """Rows of `residual` that are psi; the others are percussions."""
        return self.layout.join(True, active.normal, self.laws.set.expand(active.stick))

    def units(self, active: ActiveSet) -> Array:
        """Factors that turn the rows of `residual` into the units of psi."""
        return jnp.where(self.of_psi(active), 1.0, self.per_percussion())

    def sticking(self, active: ActiveSet, attempt: Array) -> ActiveSet:
        """Another active set to start from: every contact that may close sticks,
        from stage ``attempt`` on; 0: as it is.
        """
        stuck = ActiveSet(self.closed, self.may_stick & self.laws.of_balls(self.closed))

        stage = 1 + np.arange(self.stages)[:, None] if self.layout.lead else 1

        def chosen(natural, stuck):
            return jnp.where((attempt > 0) & (stage >= attempt), stuck, natural)

        return jax.tree.map(chosen, active, stuck)

    def coupled(self, active: ActiveSet) -> Bool[Array, " n_y"]:
        """Rows of `residual` that are more than "this multiplier is zero":
        what a linear solver has to look at.
        """
        balls = active.stick | self.laws.of_balls(active.normal)
        return self.layout.join(True, active.normal, self.laws.set.expand(balls))

    def project(self, psi: Array, mu: Array, rho: ProxParameters) -> Array:
        """(6.14b) on the unilateral rows; bilateral rows stay."""
        _, psi_N, psi_F = self.split(psi)
        mu_b, mu_N, mu_F = self.split(mu)
        mu_N, mu_F = self.laws.project(
            psi_N, psi_F, mu_N, mu_F, rho.N, rho.F, self.closed, self.may_stick, self.duration
        )
        return self.layout.join(mu_b, mu_N, mu_F)

    def contracting(self, J: Float[Array, "n_y n_y"]) -> ProxParameters:
        """rho reduced so far that coupled contacts cannot build each other up, for J = d psi/d mu.

        A projection iteration contracts if the eigenvalues of rho J stay below 2, and they are below the
        largest sum of |rho_i J_ij| over a row. A contact on its own keeps (6.18), (6.19).
        """
        _, sum_N, sum_F = self.split(jnp.sum(jnp.where(self.unilateral, jnp.abs(J), 0.0), axis=1))
        sums = sum_N, self.laws.set.largest(sum_F)
        return ProxParameters(
            *(jnp.minimum(r, 1.5 / jnp.where(s > 0.0, s, 1.0)) for r, s in zip(self.rho, sums, strict=True))
        )

    @property
    def unilateral(self) -> Bool[np.ndarray, " n_y"]:
        """Rows that have a law."""
        return np.isin(np.arange(self.layout.size), self.layout.bilateral, invert=True)


class Point(NamedTuple):
    """A problem evaluated at (x, y)."""

    x: Array
    y: Array
    aux: Any  # what X = dx/dy is made of
    phi: Array
    psi: Array
    active: ActiveSet
    F: Array
    units: Array

    @property
    def rows(self) -> Array:
        """Residuals that can be compared: light bodies and short steps have small percussions,
        not small velocities.
        """
        return jnp.concatenate([self.phi, self.units * self.F])


class Anchor(NamedTuple):
    """Proximal term: psi + stiffness (mu - anchor) instead of psi makes redundant rows independent."""

    mu: Array
    stiffness: Array

    @classmethod
    def at(cls, problem: "Problem", y: Array, strength: Any) -> "Anchor":
        """In units of what a percussion moves at its own contact."""
        laws = problem.inclusions
        return cls(problem.mu(y), strength * jnp.where(laws.unilateral, laws.per_percussion(), 0.0))

    def null_pivot(self, without: float) -> Array:
        """The term leaves no pivot null."""
        return jnp.where(jnp.max(self.stiffness, initial=0.0) > 0.0, 1e-13, without)


class Problem(eqx.Module):
    """A step's equations; what a scheme hands to a solver."""

    inclusions: eqx.AbstractVar[Inclusions]

    @property
    def nonlinear(self) -> bool:
        """Whether phi needs iterations even without multipliers."""
        return False

    @property
    def inexact(self) -> bool:
        """Whether `correct` and X are approximate anyway,
        so that one factorisation serves several iterations.
        """
        return False

    @property
    def linearisation(self) -> Any:
        """What `correct` linearises at the start and might better take elsewhere;
        None where there is nothing.
        """
        return None

    def relinearised(self, x: Array) -> Any:
        """The same, taken at x."""
        return None

    def using(self, linearisation: Any) -> "Problem":
        return self

    def sizes(self, at: "Point") -> tuple[Array, Array]:
        """Of every row of `Point.rows`: how large it is, and how large the terms are that cancel in it."""
        inclusions = self.inclusions
        percussions, of_psi = inclusions.percussions(at.y), inclusions.of_psi(at.active)
        moved = inclusions.per_percussion() * inclusions.sizes(percussions)
        own = jnp.where(of_psi, inclusions.scales.own, moved)
        cancelling = jnp.where(of_psi, inclusions.scales.cancelling(percussions), moved)
        motion = self.motion_sizes(at.x, at.y)
        return jnp.concatenate([motion[0], own]), jnp.concatenate([motion[1], cancelling])

    def motion_sizes(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The same of the rows of phi."""
        return jnp.zeros(0), jnp.zeros(0)

    @property
    @abc.abstractmethod
    def motion_rows(self) -> int:
        """Number of rows of phi."""

    def phi(self, x: Array, y: Array) -> Array:
        """The equations of motion themselves;
        asked for only where `correct` is inexact and a derivative is wanted.
        """
        raise NotImplementedError

    @property
    def null_pivot(self) -> Any:
        """Pivots of the Schur complement below this times their row are passed over as null."""
        return 1e-11

    def plausible(self, x: Array) -> Any:
        """Whether a solution that was reached from afar may be the one sought; None where there is only one.

        Forces that grow with the square of velocities let the equations of a step have other roots, far away.
        """
        return None

    @abc.abstractmethod
    def correct(self, x: Array, y: Array) -> tuple[Array, Array, Any]:
        """(x corrected, phi(x, y) before, what `tangent` needs).
        phi is empty where x follows from y exactly.
        """

    def tangent(self, x: Array, aux: Any) -> Array:
        """X = dx/dy."""
        return aux

    @abc.abstractmethod
    def psi(self, x: Array) -> Array:
        """Kinematic quantities of all rows."""

    def sensitivity(self, x: Array, X: Array) -> Array:
        """d psi/d y = psi_x X, by forward differentiation along the columns of X."""
        _, along = jax.linearize(self.psi, x)
        return columns(along, X)

    def schur_complement(self, at: Point, X: Array, anchor: Anchor | None = None) -> Array:
        """dF/dy with x eliminated and the active set held, (6.13)."""
        _, along = jax.linearize(
            lambda psi, mu: self.inclusions.residual(at.active, psi, mu), at.psi, self.mu(at.y)
        )
        psi_y, mu_y = self.sensitivity(at.x, X), self.mu_sensitivity(at.y)
        if anchor is not None:
            psi_y = psi_y + anchor.stiffness[:, None] * mu_y
        return columns(along, psi_y, mu_y)

    def factor(
        self, at: Point, X: Array, null_pivot: Any, anchor: Anchor | None = None, *, exact: bool = False
    ) -> Any:
        """What Newton's method solves with; ``exact``, with an ``apply``, for derivatives."""
        return eliminate(self.schur_complement(at, X, anchor), self.inclusions.coupled(at.active), null_pivot)

    def no_factors(self, n: int, anchor: Anchor | None = None) -> Any:
        """The same, empty, to begin a loop with."""
        return Eliminated.nothing(n)

    def in_units(self, J: Array) -> Array:
        """A matrix of this problem's rows and unknowns, in units in which its entries can be compared."""
        return J

    def newton_step(self, at: Point, X: Array, factors: Any) -> Array:
        """dy; of redundant contacts, to the smallest percussions that will do:
        no step hands self-stress on to the next.
        """
        return factors.apply(-at.F) - factors.left_open(self.mu(at.y))

    def mu(self, y: Array) -> Array:
        """Percussions that enter the laws."""
        return self.inclusions.offset + y

    def y_of(self, mu: Array) -> Array:
        """The inverse of `mu`."""
        return mu - self.inclusions.offset

    def mu_sensitivity(self, y: Array) -> Array:
        """d mu/d y, the matrix A of (6.1)."""
        return jnp.eye(y.shape[0])


class VelocityProblem(Problem):
    """x = u only and all rows affine: u = u_free + L y with L = M^-1 W, psi = W^T u + c.

    Any velocity stage.
    """

    inclusions: Inclusions
    u_free: Float[Array, " nu"]
    L: Operator = eqx.field(converter=Dense.of)  # matrices are dense operators
    W: Operator = eqx.field(converter=Dense.of)
    c: Float[Array, " n_y"]
    G: Operator = eqx.field(converter=Dense.of)

    @property
    def motion_rows(self):
        return 0

    def correct(self, x, y):
        return self.u_free + self.L @ y, jnp.zeros(0), self.L

    def tangent(self, x, aux):
        return aux.dense()

    def psi(self, x):
        return self.W.T @ x + self.c

    def sensitivity(self, x, X):
        return self.G.dense()


class Solve(NamedTuple):
    """What came out of a solver."""

    x: Array
    y: Array
    active: ActiveSet
    newton_iterations: Int[Array, ""]
    fixed_point_iterations: Int[Array, ""]
    rows: Float[Array, " n_y"]  # residual of every row at the end
    tolerance: Float[Array, " n_y"]  # what was asked of each, in the units of psi
    residual: Float[Array, ""]  # its largest entry, the equations of motion included
    result: Any
