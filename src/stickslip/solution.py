"""What a run gives back."""

from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from . import contact_states
from .captured import captured
from .compiling import compiled
from .derive import Dynamics
from .initial import acceleration_level
from .laws import Contact, unchecked
from .located import dense
from .methods.base import Method
from .results import RESULTS
from .system import System

if TYPE_CHECKING:
    from xarray import Dataset

BLOCK = 1024


class Stats(eqx.Module):
    """Per step and solve: Moreau and generalized-alpha 1; Rattle, Lobatto, Radau 2;
    diagonally implicit s + 1.

    Where steps are adjusted, iterations are all that were spent since the row before, in substeps and in
    rejected steps too.
    """

    newton_iterations: Int[Array, "steps solves"]
    fixed_point_iterations: Int[Array, "steps solves"]
    residual: Float[Array, "steps solves"]
    mode_failed: Any = (
        # (steps, laws): friction was as printed, and first order where slip turns, though contact persisted
        None
    )
    attempts: Any = None  # of adjusted steps: how many were computed,
    steps: Any = None  # and how many of them were kept (rows beyond repeat the last one)
    smallest_gap: Any = None  # of open contacts, between rows too (where events were located)
    # (steps): of adjusted steps, which missed their tolerance and were accepted nevertheless
    inaccurate: Any = None

    @property
    def mode_failures(self) -> Int[Array, " laws"]:
        """By law, contacts first: in how many steps the friction mode that contact began with did not hold.

        Then the printed law was taken. A few are transitions; many in a row say that the order of the method
        is lost.
        """
        return self.mode_failed.sum(axis=-2)


class Forces(eqx.Module):
    """Multipliers on acceleration level at the saved times; friction in physical units."""

    la_g: Float[Array, "rows n_g"]
    la_gamma: Float[Array, "rows n_gamma"]
    la_N: Float[Array, "rows n_N"]
    la_F: Float[Array, "rows n_F"]
    u_dot: Float[Array, "rows nu"]
    converged: Bool[Array, " rows"]  # whether the forces of a row could be found


class SwitchingPoint(NamedTuple):
    """A law that changed its state in the step that ends at t (row ``step``)."""

    t: float  # in s
    step: int  # row that the step ends at
    law: str  # "contact 0", "friction 0": in the order of `laws`, friction counted by reservoir
    before: str  # "open", "closed", "slip" or "stick"
    after: str  # the same


class Solution(eqx.Module):
    """Rows are times; percussions P_* are those of the step that ends at the row (row 0 is zero).

    What `jax.vmap` makes of it has leading axes, which everything derived has too; ``sol[0]`` is one of its
    runs.
    """

    t: Float[Array, " rows"]
    q: Float[Array, "rows nq"]
    u: Float[Array, "rows nu"]
    P_g: Float[Array, "rows n_g"]
    P_gamma: Float[Array, "rows n_gamma"]
    P_N: Float[Array, "rows n_N"]
    P_F: Float[Array, "rows n_F"]
    result: Any  # how the run ended, a member of `ss.RESULTS`
    stats: Stats  # iterations and residuals, `ss.Stats`
    system: System  # as it was run
    method: Method  # as it was run
    # Forces at the end and impulses of the step, from methods that tell them apart (generalized-alpha); else
    # None.
    la_g: Any = None
    la_gamma: Any = None
    la_N: Any = None
    la_F: Any = None
    Lambda_g: Any = None
    Lambda_gamma: Any = None
    Lambda_N: Any = None
    Lambda_F: Any = None
    # Where steps were adjusted: the order of each step; else None.
    order: Any = None
    # Where the run itself decided them: contacts that are closed, then friction reservoirs that stick; else
    # None.
    modes: Any = None
    # Where events were located: what happened, and rates that `sol(t)` needs. A row has u_dot after its
    # events, and of the step that ends there u_dot at the end and at a quarter.
    events: Any = None  # what happened and when, `ss.Events`, where events were located
    u_dot: Any = None
    u_dot_before: Any = None
    u_dot_quarter: Any = None

    @property
    def is_batch(self) -> bool:
        """Whether there are leading axes."""
        return np.ndim(self.t) > 1

    def __getitem__(self, i: Any) -> Any:
        """One run, or some, of a batch; by name, a body, a joint or a contact of a scene."""
        if isinstance(i, str) or (isinstance(i, tuple) and i and all(isinstance(name, str) for name in i)):
            from .scene.views import named

            return named(self, i)
        if not self.is_batch:
            raise TypeError(
                "sol[i] takes a run out of a batch, and this is a single run: rows are sol.q[i], sol.u[i], "
                "..."
            )
        return jax.tree.map(lambda a: a[i], self)

    def _single(self, what: str) -> "Solution":
        """Self, unless it is a batch."""
        if self.is_batch:
            raise ValueError(
                f"{what} takes one run, and this is a batch of shape {np.shape(self.t)[:-1]}: take one, "
                "sol[0]"
            )
        return self

    @property
    def dt(self) -> Float[Array, " rows"]:
        """The step that ends at each row; row 0 is zero."""
        xp = np if isinstance(self.t, np.ndarray) else jnp
        return xp.diff(self.t, prepend=self.t[..., :1])

    @property
    def by_row(self) -> bool:
        """Whether times may repeat: rows before and after an impact."""
        return self.u_dot_before is not None

    def switching_points(self) -> list[Any]:
        """Where laws switched, of a run with adjusted steps, in the order of time;
        of a batch a list for each run.
        """
        if self.modes is None:
            raise AttributeError(
                "switching points are known of runs with stepsize=ss.SwitchingPoints(...) only"
            )
        if self.is_batch:
            return [self[i].switching_points() for i in range(len(self.t))]
        n_N = self.P_N.shape[1]
        state, points = np.asarray(self.modes), []
        for row, law in np.argwhere(state[1:] != state[:-1]):
            closed = law < n_N
            names = ("open", "closed") if closed else ("slip", "stick")
            name = f"contact {law}" if closed else f"friction {law - n_N}"
            now = int(state[row + 1, law])
            points.append(
                SwitchingPoint(float(self.t[row + 1]), int(row) + 1, name, names[1 - now], names[now])
            )
        return points

    def _rows(self, f: Any, *names: str) -> Any:
        """f(system, row) for all rows; in blocks of one size,
        so that a longer run needs no new compilation.
        """
        if self.is_batch:
            return eqx.filter_vmap(lambda sol: sol._rows(f, *names))(self)
        columns, key = tuple(getattr(self, name) for name in names), captured(self.system)
        if not isinstance(self.t, np.ndarray):
            return _mapped_within(f, self.system, columns, key)
        blocks = []
        for k in range(0, len(self.t), BLOCK):
            part = [c[k : k + BLOCK] for c in columns]
            n = len(part[0])
            padded = tuple(np.concatenate([c, np.repeat(c[-1:], BLOCK - n, axis=0)]) for c in part)
            blocks.append(
                jax.tree.map(lambda a, n=n: np.asarray(a)[:n], _mapped(f, self.system, padded, key))
            )
        return jax.tree.map(lambda *a: np.concatenate(a), *blocks)

    def _from_file(self, name: str) -> Any:
        """Rows that came with a file whose system is not at hand; None where there is one to ask."""
        from .serialize import RecordedSystem

        return self.system.rows.get(name) if isinstance(self.system, RecordedSystem) else None

    def g_N(self) -> Float[Array, "rows n_N"]:
        """Gaps at the saved times."""
        known = self._from_file("g_N")
        return self._rows(_gaps, "t", "q") if known is None else known

    @property
    def state(self) -> np.ndarray:
        """What each law does at each row, in words: "open", "slip" or "stick", (rows, laws),
        in the order of ``laws``.

        As forces are, it is that of the instant, after whatever happened there: a contact that bounces is
        open. Stick is that of sliding, whatever rolling and pivoting do; without friction a contact slips
        wherever it is closed.
        """
        if isinstance(self.t, jax.core.Tracer):
            raise TypeError(
                "sol.state has words, and inside jit, vmap or a derivative there are none: use "
                "sol.state_code()"
            )
        return np.array(contact_states.STATES)[np.asarray(self.state_code())]

    def state_code(self) -> Int[Array, "rows laws"]:
        """`state` as numbers: 0 open, 1 slip, 2 stick."""
        known = self._from_file("state")
        if known is not None:
            return known
        one = self
        while one.is_batch:
            one = one[0]
        with unchecked():
            laws = one.system.laws
        n_N = sum(isinstance(law, Contact) for law in laws)
        if self.modes is not None:
            return contact_states.codes(laws, self.modes[..., :n_N], self.modes[..., n_N:])
        by_percussion, xp = self.method.level == "velocity", np if isinstance(self.t, np.ndarray) else jnp
        rests, stick = self._rows(
            contact_states.rests_by_percussion if by_percussion else contact_states.modes_by_state,
            "t",
            "dt",
            "q",
            "u",
            "P_N",
            "P_F",
        )
        if self.t.shape[-1] < 2:
            return contact_states.codes(laws, rests, stick)
        pushes = xp.asarray(self.P_N) > 0.0
        # A contact that pushes before and after has not opened in between, whatever is left of a bounce;
        # nothing comes after the last row, but something two steps before its end.
        closed = rests | (pushes & xp.concatenate([pushes[..., 1:, :], pushes[..., -2:-1, :]], axis=-2))
        # At rest or touching at the start says little: whether it stays so, the first step knows.
        closed, stick = (
            xp.concatenate([a[..., :1, :] & a[..., 1:2, :], a[..., 1:, :]], axis=-2) for a in (closed, stick)
        )
        return contact_states.codes(laws, closed, stick)

    @property
    def has_energy(self) -> bool:
        """Whether the system defines it."""
        return self._from_file("energy") is not None or hasattr(self.system, "energy")

    def energy(self) -> Float[Array, " rows"]:
        """Total energy at the saved times, where the system defines it."""
        known = self._from_file("energy")
        if known is not None:
            return known
        if not self.has_energy:
            raise AttributeError(f"{type(self.system).__name__} does not define energy(t, q, u)")
        return self._rows(_energy, "t", "q", "u")

    def forces(self) -> Forces:
        """Multipliers from the acceleration level at each saved state, of the order of u (S0 section 5.3).

        Percussions are averages over a step and first order; these are forces at an instant. A contact counts
        as closed where its gap and gap rate are zero; velocity-level methods, whose gaps drift, say so by P_N
        > 0 (which counts a contact that has just bounced as still closed in the row of its impact).
        """
        if self.u_dot is not None:
            ok = (np if isinstance(self.t, np.ndarray) else jnp).isfinite(self.t)
            return Forces(self.la_g, self.la_gamma, self.la_N, self.la_F, self.u_dot, ok)
        f = _forces_by_percussion if self.method.level == "velocity" else _forces_by_state
        return self._rows(f, "t", "dt", "q", "u", "P_N", "P_F")

    def __call__(self, t: Any) -> tuple[Array, Array]:
        """(q, u) at a time, or at an array of times, of a run with located events;
        at an impact those after it.

        Continuous in q, of the order of the method up to order 5 (`stickslip.located.dense`); never across an
        impact.
        """
        if self.events is None:
            raise TypeError(
                "sol(t) is there for runs with tolerances, simulate(..., rtol=..., atol=...), or with "
                "locate=True"
            )
        if self.u_dot_before is None:
            raise TypeError("sol(t): of a run with t_eval=... only the rows asked for were kept")
        self._single("sol(t)")
        if isinstance(self.t, np.ndarray):
            times = np.asarray(t, dtype=float)
            if not np.all((times >= self.t[0]) & (times <= self.t[-1])):
                raise ValueError(f"sol(t): t must be between {self.t[0]:g} and {self.t[-1]:g}, got {t}")
            return jax.tree.map(np.asarray, between(self, times, captured(self.system)))
        return between(self, jnp.asarray(t, dtype=float), captured(self.system))

    def dissipation(self) -> tuple[Array, Array]:
        """What each law has taken out of the system up to each row, by friction and in impacts: (rows,
        laws) each, in J.

        Of runs with located events; the energy of a system that nothing drives falls by their sum.
        """
        if self.u_dot_before is None:
            raise TypeError(
                "dissipation() is there for runs with tolerances, simulate(..., rtol=..., atol=...), or "
                "locate=True"
            )
        from .located.output import dissipated

        return jax.tree.map(np.asarray, dissipated(self._single("dissipation"), captured(self.system)))

    def smooth(self, rows: int) -> "Solution":
        """Of a run with located events another with rows at equal times and at every event, for pictures."""
        if self.u_dot_before is None or not np.all(np.isfinite(self.u_dot_before)):
            return self
        from .located.output import at_times

        even = np.linspace(self.t[0], self.t[-1], rows)
        return at_times(self, np.unique(np.concatenate([even, np.asarray(self.events.t)])), np)

    def to_xarray(self) -> "Dataset":
        """All arrays as an `xarray.Dataset` with the names and units of the system's ``coordinates`` and
        ``contacts``.
        """
        from .dataset import to_xarray

        return to_xarray(self._single("to_xarray"))

    def save(self, path: str | PathLike) -> None:
        """Write everything to a netCDF-4 file (``.nc``) from which `ss.load` makes the solution again.

        A name in ``.npz`` has the arrays alone, for `numpy.load`.
        """
        from .files import save

        save(self._single("save"), path)

    def plot(self, path: Any = None, title: str = "", *, panels: Any = None, contacts: Any = None) -> Any:
        """Positions, velocities, gaps, contact forces, stick and slip, energy and step sizes over time,
        as a picture.

        Written to ``path`` (.png, .pdf, .svg), or a matplotlib figure where none is given. ``panels`` chooses
        some of "positions", "velocities", "gaps", "forces", "states", "energy", "steps", "order";
        ``contacts`` some of the laws, by name or number.
        """
        from .overview import overview

        return overview(self._single("plot"), title or type(self.system).__name__, path, panels, contacts)

    def animate(self, path: Any = None, *, title: str = "", frames: int = 200, duration: float = 8.0) -> Any:
        """A page to play, pause and scrub, written to ``path`` (.html) if one is given; it needs no network.

        The mechanism appears as its system's ``draw(t, q)`` says, see `stickslip.shapes`; a scene knows its
        shapes. ``duration`` is that of the playback in seconds.
        """
        from .animation import Animation

        kind: Any = Animation
        if hasattr(type(self.system), "body_poses"):
            from .scene.picture import SceneAnimation as kind
        animation = kind(self._single("animate"), title=title, frames=frames, duration=duration)
        if path is not None:
            animation.save(path)
        return animation


def _map_rows(f: Any, system: System, columns: tuple[Array, ...], key: str) -> Any:
    columns = tuple(jnp.asarray(c) for c in columns)
    return jax.vmap(lambda *row: f(system, *row))(*columns)


_mapped, _mapped_within = compiled(_map_rows), eqx.filter_jit(_map_rows)  # outside of tracing, and within


def _gaps(system: System, t, q):
    return jnp.asarray(system.g_N(t, q))


def _energy(system: Any, t, q, u):
    return system.energy(t, q, u)


def _forces_by_state(system: System, t, *row) -> Forces:
    return _forces(system, t, row, contact_states.modes_by_state)


def _forces_by_percussion(system: System, t, *row) -> Forces:
    return _forces(system, t, row, contact_states.modes_by_percussion)


def _forces(system: System, t, row: Any, modes: Any) -> Forces:
    _, q, u, *_ = row
    dynamics = Dynamics.of(system, t, q, u)
    out = acceleration_level(dynamics, t, q, u, *modes(system, t, *row))
    return Forces(*dynamics.percussions(out.y, 1.0), out.x, out.result == RESULTS.successful)


def between(sol: Solution, t: Any, key: str) -> tuple[Array, Array]:
    """(q, u) at times between the rows; of several rows of one time, after the last.

    Rows are looked up first: what is compiled knows how many times there are, not how many rows.
    """
    xp: Any = np if isinstance(sol.t, np.ndarray) and isinstance(t, np.ndarray) else jnp
    k = xp.clip(xp.searchsorted(xp.asarray(sol.t), t, side="right"), 1, sol.t.shape[0] - 1)
    start = sol.t[0], sol.q[0], sol.u[0]
    columns = (sol.t, sol.q, sol.u, sol.u_dot), (sol.t, sol.q, sol.u, sol.u_dot_before, sol.u_dot_quarter)
    a, b = (tuple(xp.asarray(x)[j] for x in ends) for ends, j in zip(columns, (k - 1, k), strict=True))
    return _interpolated(sol.system, start, xp.asarray(t), a, b, key)


@eqx.filter_jit
def _interpolated(system: System, start: Any, t: Array, a: Any, b: Any, key: str) -> tuple[Array, Array]:
    """At times t, each between the rows a and b."""
    dynamics = Dynamics.of(system, *map(jnp.asarray, start))

    def one(t, a, b):
        *b, quarter = b
        dt = b[0] - a[0]
        x = jnp.where(dt > 0.0, (t - a[0]) / jnp.where(dt > 0.0, dt, 1.0), 1.0)
        a, b = dense.End.of(dynamics, *a), dense.End.of(dynamics, *b)
        q, u = dense.positions(x, dt, a, b), dense.velocities(x, dt, a, b, quarter)
        return dynamics.normalize(q), u

    return one(t, a, b) if t.ndim == 0 else jax.vmap(one)(t, a, b)
