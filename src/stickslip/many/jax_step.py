"""Moreau's midpoint rule for many balls on the device of JAX: broad phase,
matching and solve in one compiled function.

The scheme is that of `numba_step`, the solver that of `jacobi`. Lists have a static capacity, padded and
masked; where one is too short, the step says so, and is taken again with longer ones. Contacts are sorted by
their key, bodies by their cell: a row of three neighbouring cells is one piece of the sorted bodies.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .contacts import ContactList, Outcome, State
from .jacobi import AndersonJacobi, Listed, shrunk, solve, velocities
from .walls import PLANE

EPS = 8.0 * np.finfo(float).eps
# neighbouring rows of cells that come later; the own one first
ROWS = ((0, 0), (0, 1), (1, -1), (1, 0), (1, 1))


class Sizes(NamedTuple):
    """Static lengths of lists."""

    contacts: int
    row: int  # bodies in a row of three cells
    shared: int  # contacts of a body (for sums in a fixed order)

    def grown(self, needed: "Sizes") -> "Sizes":
        return Sizes(
            *(have if want <= have else max(2 * have, want) for have, want in zip(self, needed, strict=True))
        )


class Fixed(NamedTuple):
    """What does not change in a run, on the device."""

    r: Any
    inverse: Any  # (2, bodies)
    material: Any  # of bodies and walls
    laws: Any  # (4, materials, materials)
    kinds: Any
    directions: Any
    sizes: Any
    gravity: Any


class Carried(NamedTuple):
    """The state on the device: component first."""

    x: Any  # (3, bodies)
    rotation: Any  # (4, bodies)
    u: Any  # (6, bodies)
    key: Any  # (C) sorted; of entries that are none the largest one
    X: Any  # (3 or 6, C)
    limit: Any  # (C)


def drifted(x, rotation, u, dt):
    """Half a step with constant velocity."""
    size = jnp.sqrt((u[3:] ** 2).sum(0))
    half = 0.5 * dt * size
    s = jnp.where(size > 0.0, jnp.sin(half) / jnp.where(size > 0.0, size, 1.0), 0.5 * dt) * u[3:]
    w, v, c = rotation[0], rotation[1:], jnp.cos(half)
    turned = jnp.concatenate([(c * w - (s * v).sum(0))[None], c * v + s * w + jnp.cross(s, v, axis=0)])
    return x + dt * u[:3], turned / jnp.sqrt((turned**2).sum(0))


def candidates(x: Any, width: Any, row: int) -> Any:
    """Pairs of bodies in neighbouring cells, (rows, row, bodies) and whether they count;
    most bodies in a row of cells.
    """
    bodies = x.shape[1]
    cell = jnp.floor((x - x.min(1, keepdims=True)) / width).astype(jnp.int64)
    shape = cell.max(1) + 3  # a margin, so that rows do not run into each other
    number = lambda p, q, s: (p * shape[1] + q) * shape[2] + s
    own = number(cell[0] + 1, cell[1] + 1, cell[2] + 1)
    order = jnp.argsort(own)
    ranked = own[order]
    cell = cell[:, order] + 1
    firsts: list[Any] = []
    lasts: list[Any] = []
    for p, q in ROWS:
        middle = number(cell[0] + p, cell[1] + q, cell[2])
        here = (p, q) == (0, 0)
        firsts.append(jnp.arange(bodies) + 1 if here else jnp.searchsorted(ranked, middle - 1, side="left"))
        lasts.append(jnp.searchsorted(ranked, middle + 1, side="right"))
    first, last = jnp.stack(firsts), jnp.stack(lasts)
    at = first[:, None] + jnp.arange(row)[:, None]
    one = jnp.broadcast_to(order, at.shape)
    return one, order[jnp.minimum(at, bodies - 1)], at < last[:, None], (last - first).max()


def geometry(a, b, x, fixed: Fixed, places):
    """Normals from a to b and gaps of pairs; b from the number of bodies on is a wall."""
    bodies, walls = x.shape[1], len(fixed.sizes)
    j, k = jnp.minimum(b, bodies - 1), jnp.clip(b - bodies, 0, max(walls - 1, 0))
    away = x[:, j] - x[:, a]
    distance = jnp.sqrt((away**2).sum(0))
    n, gap = away / jnp.where(distance > 0.0, distance, 1.0), distance - fixed.r[a] - fixed.r[j]
    if not walls:
        return n, gap
    d, rel = fixed.directions[:, k], x[:, a] - places[:, k]
    along = (rel * d).sum(0)
    out = rel - along * d
    rho = jnp.sqrt((out**2).sum(0))
    plane, wall = fixed.kinds[k] == PLANE, b >= bodies
    n_wall = jnp.where(plane, -d, out / jnp.where(rho > 0.0, rho, 1.0))
    gap_wall = jnp.where(plane, along, fixed.sizes[k] - rho) - fixed.r[a]
    return jnp.where(wall, n_wall, n), jnp.where(wall, gap_wall, gap)


def found(x, fixed: Fixed, places, margin, sizes: Sizes):
    """Keys of pairs closer than the margin, sorted, and how many there are;
    how long lists should have been.
    """
    bodies, walls = x.shape[1], len(fixed.sizes)
    one, two, counts, longest = candidates(x, 2.0 * fixed.r.max() + margin, sizes.row)
    parts = [(jnp.minimum(one, two).ravel(), jnp.maximum(one, two).ravel(), counts.ravel())]
    if walls:
        every = jnp.broadcast_to(jnp.arange(bodies), (walls, bodies))
        wall = bodies + jnp.broadcast_to(jnp.arange(walls)[:, None], (walls, bodies))
        parts.append((every.ravel(), wall.ravel(), jnp.ones(walls * bodies, bool)))
    a, b, counts = (jnp.concatenate([part[k] for part in parts]) for k in range(3))
    _, gap = geometry(a, b, x, fixed, places)
    near = counts & (gap <= margin)
    none = (bodies + walls) ** 2
    (at,) = jnp.nonzero(near, size=sizes.contacts, fill_value=len(a))
    key = jnp.where(
        at < len(a), a[jnp.minimum(at, len(a) - 1)] * (bodies + walls) + b[jnp.minimum(at, len(a) - 1)], none
    )
    return jnp.sort(key), near.sum(), longest


def incidence(a, b, used, bodies: int, shared: int):
    """(shared, bodies) entries of [on_a, on_b, 0] of each body in a fixed order; most contacts of a body."""
    C = len(a)
    body = jnp.concatenate([jnp.where(used, a, bodies), jnp.where(used, jnp.minimum(b, bodies), bodies)])
    order = jnp.argsort(body, stable=True)
    ranked = body[order]
    start = jnp.searchsorted(ranked, jnp.arange(bodies + 1))
    rank = jnp.arange(2 * C) - start[jnp.minimum(ranked, bodies)]
    table = jnp.full((shared, bodies), 2 * C)
    table = table.at[jnp.where(ranked < bodies, rank, shared), ranked].set(order, mode="drop")
    return table, jnp.where(ranked < bodies, rank + 1, 0).max(initial=0)


@partial(jax.jit, static_argnames=("sizes", "options"))
def step(s: Carried, fixed: Fixed, walls, dt, tolerance, margin, sizes: Sizes, options: AndersonJacobi):
    """The next state; residual, velocity error, iterations, contacts; what walls receive;
    lengths that lists should have.
    """
    places, v_wall, omega_wall = walls
    bodies, many = s.x.shape[1], len(fixed.sizes)
    total = bodies + many
    x, rotation = drifted(s.x, s.rotation, s.u, 0.5 * dt)
    key, near, longest = found(x, fixed, places, margin, sizes)
    listed = key < total * total
    a, b = jnp.where(listed, key // total, 0), jnp.where(listed, key % total, 0)
    n, gap = geometry(a, b, x, fixed, places)
    before = jnp.minimum(jnp.searchsorted(s.key, key), len(s.key) - 1)
    same = listed & (s.key[before] == key)
    reach = jnp.abs(x).max() + fixed.r.max() + fixed.sizes.max(initial=0.0)
    used = listed & ((gap <= EPS * reach) | (same & (gap <= s.limit[before])))
    table, most = None, jnp.zeros((), int)
    if options.deterministic:
        table, most = incidence(a, b, used, bodies, sizes.shared)
    c = _coefficients(a, b, used, n, gap, x, s, fixed, places, v_wall, omega_wall, table)
    X = jnp.where(same & used, s.X[:, before], 0.0)
    X = _into_cones(c, X)
    u = jnp.concatenate([s.u, jnp.concatenate([jnp.zeros((3, many)), omega_wall])], axis=1)
    u_free = u.at[:3, :bodies].add(dt * fixed.gravity[:, None])
    X, u, residual, error, size, iterations = solve(c, u_free, X, tolerance, options)
    rate = (n * velocities(c, u)[0]).sum(0)
    fast = jnp.abs(u).max()
    zero = error + EPS * (c.G_N * jnp.abs(X[:3]).max(0) + fast)
    limit = jnp.where(
        used & (jnp.abs(rate) <= zero), jnp.maximum(gap, 0.0) + dt * zero + EPS * reach, -jnp.inf
    )
    force, moment = _on_walls(c, X, x, places, bodies, many)
    x, rotation = drifted(x, rotation, u[:, :bodies], 0.5 * dt)
    relative = jnp.where(size > 0.0, residual / jnp.where(size > 0.0, size, 1.0), residual)
    after = Carried(x, rotation, u[:, :bodies], key, X, limit)
    shown = (a, b, used, n, gap)
    return after, shown, (relative, error, iterations, used.sum()), (force, moment), (near, longest, most)


def _coefficients(
    a, b, used, n, gap, x, s: Carried, fixed: Fixed, places, v_wall, omega_wall, table
) -> Listed:
    """Levers, coefficients, diagonal blocks and chi of contacts, as `numba_step` has them."""
    bodies, many = x.shape[1], len(fixed.sizes)
    wall, j = b >= bodies, jnp.minimum(b, bodies - 1)
    la = fixed.r[a] + jnp.where(wall, gap, 0.5 * gap)
    lb = jnp.where(wall, 0.0, fixed.r[j] + 0.5 * gap)
    chi = jnp.zeros_like(n)
    if many:
        k = jnp.clip(b - bodies, 0, many - 1)
        point = x[:, a] + la * n - places[:, k]
        chi = jnp.where(wall, v_wall[:, k] + jnp.cross(omega_wall[:, k], point, axis=0), 0.0)
    e_N, mu, roll, pivot = fixed.laws[:, fixed.material[a], fixed.material[b]]
    before = (n * (jnp.where(wall, 0.0, s.u[:3, j]) - s.u[:3, a] + chi)).sum(0)
    one, two = fixed.inverse[:, a], jnp.where(wall, 0.0, fixed.inverse[:, j])
    blocks = (one[0] + two[0], one[0] + two[0] + la**2 * one[1] + lb**2 * two[1], one[1] + two[1])
    G_N, G_T, G_R = (jnp.where(used, block, 1.0) for block in blocks)
    return Listed(
        a, b, used, n, la, lb, chi + e_N * before * n, mu, roll, pivot, G_N, G_T, G_R, fixed.inverse, table
    )


def _into_cones(c: Listed, X):
    """Percussions of the step before, turned with the normal and within their cones."""
    P_N = jnp.maximum((c.n * X[:3]).sum(0), 0.0)
    across = X[:3] - (c.n * X[:3]).sum(0) * c.n
    parts = [P_N * c.n + shrunk(across, c.mu * P_N)]
    if len(X) == 6:
        along = (c.n * X[3:]).sum(0)
        bound = c.mu_pivot * P_N
        parts.append(jnp.clip(along, -bound, bound) * c.n + shrunk(X[3:] - along * c.n, c.mu_roll * P_N))
    return c.used * jnp.concatenate(parts)


def _on_walls(c: Listed, X, x, places, bodies: int, many: int):
    """Percussions on walls, and moments about their places."""
    forces, moments = [], []
    for w in range(many):
        here = c.used & (c.b == bodies + w)
        arm = x[:, c.a] + c.la * c.n - places[:, w : w + 1]
        moment = jnp.cross(arm, X[:3], axis=0) + (X[3:] if len(X) == 6 else 0.0)
        forces.append(jnp.where(here, X[:3], 0.0).sum(1))
        moments.append(jnp.where(here, moment, 0.0).sum(1))
    return (jnp.stack(forces), jnp.stack(moments)) if many else (jnp.zeros((0, 3)), jnp.zeros((0, 3)))


@partial(jax.jit, static_argnames=("sizes", "options", "turns"))
def stepped(
    x, rotation, rows, listed, fixed: Fixed, walls, dt, tolerance, margin, sizes: Sizes, options, turns
):
    """`step` from and to the arrays of a `State`; of entries of the list that are none, a is -1."""
    bodies, total = x.shape[0], rows.shape[0]
    a, b, X, limit = listed
    if not len(a):  # nothing yet: one entry that is none
        a, b, X = jnp.full(1, -1), jnp.zeros(1, int), jnp.zeros((2 if turns else 1, 3))
        limit = jnp.full(1, -jnp.inf)
    key = jnp.where(a >= 0, a * total + b, total * total)
    parts = X.reshape((2, -1, 3)) if turns else X[None]
    carried = Carried(
        x.T, rotation.T, rows[:bodies, :6].T, key, jnp.concatenate(list(parts.swapaxes(1, 2))), limit
    )
    after, shown, worth, pushed, needed = step(carried, fixed, walls, dt, tolerance, margin, sizes, options)
    a, b, used, n, gap = shown
    rows = rows.at[:bodies, :6].set(after.u.T)
    parts = after.X.reshape((2, 3, -1)) if turns else after.X[None]
    contacts = (jnp.where(used, a, -1), b, n.T, gap, parts.swapaxes(1, 2).reshape(-1, 3), after.limit)
    # The next step finds contacts by their keys, which have to stay in order: those that are none go to the
    # end.
    order = jnp.argsort(~used, stable=True)
    turn = jnp.concatenate([order, order + len(order)]) if turns else order
    contacts = tuple(part[turn if k == 4 else order] for k, part in enumerate(contacts))
    return (after.x.T, after.rotation.T, rows, contacts), worth, pushed, needed


class JaxStep:
    """A step on the device; ``__call__`` gives the next state and what the step is worth."""

    def __init__(self, system: Any, solver: AndersonJacobi):
        walls, put = system.walls, jnp.asarray
        self.walls, self.solver, self.turns = walls, solver, system.turns
        inverse = np.stack([1.0 / system.mass, 1.0 / system.inertia])
        self.fixed = Fixed(
            put(system.radius), put(inverse), put(system.material), put(np.stack(system.laws)),
            put(walls.kinds), put(walls.directions.T), put(walls.sizes), put(system.gravity),
        )  # fmt: skip
        self.margin = 1e-3 * float(system.radius.min())
        self.row, self.shared = 12, 14

    def __call__(self, state: State, t: float, dt: float, tolerance: float) -> tuple[State, Outcome]:
        c = state.contacts
        sizes = Sizes(c.capacity, self.row, self.shared)
        walls = tuple(jnp.asarray(part.T) for part in self.walls.at(t + 0.5 * dt))
        while True:
            after, worth, pushed, needed = stepped(
                state.x, state.rotation, state.rows, (c.a, c.b, c.X, c.limit), self.fixed, walls, dt,
                tolerance, self.margin, sizes, self.solver, self.turns,
            )  # fmt: skip
            worth, pushed, needed = jax.device_get((worth, pushed, needed))
            longer = sizes.grown(Sizes(*(int(v) for v in needed)))
            if longer == sizes:
                break
            sizes = longer
        self.row, self.shared = sizes.row, sizes.shared
        residual, error, iterations, count = worth
        outcome = Outcome(float(residual), float(error), int(iterations), int(count), *pushed)
        x, rotation, rows, contacts = after
        listed = ContactList(*contacts, sizes.contacts)  # type: ignore[call-arg]
        return State(state.step + 1, x, rotation, rows, listed), outcome
