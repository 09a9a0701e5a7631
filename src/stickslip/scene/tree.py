"""Kinematics and inertia of all links at once, in minimal coordinates.

A *link* is a frame that moves by one joint; a body with several joints has a link for each, of which the last
carries it. Link 0 is the world. With T_i the placement of a link in its parent, poses come from pointer
doubling,

    A_i <- A_a(i) A_i,   x_i <- x_a(i) + A_a(i) x_i,   a <- a o a                  (log2 of the depth times),

array operations over all links, whose number does not show in the size of the compiled program. Velocities
are twists (omega, v), v that of the point of a link that is at the root of its tree: there cancellation is
small, wherever the tree is. Each degree of freedom j has a twist S_j, and moves the links of a mask:

    V_i = sum_j mask_ij S_j u_j,      S_dot_j = V_l(j) x S_j,
    M_jk = S_j . I_c(k) S_k           I_c(k): inertia of all that k moves, and j moves k's link,
    h_j  = - S_j . sum_i mask_ij (I_i (sum_k mask_ik S_dot_k u_k - g) + V_i x* I_i V_i).

Coordinates are those of MuJoCo: a free link has (x, p) with a unit quaternion p, scalar first, and velocities
(x_dot in the world, omega in the link); a ball joint has p and omega; a hinge its angle, a slider its way.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..rigid.rotations import quaternion_rate, rotation_matrix

WORLD, HINGE, SLIDE, BALL, FREE, PLANAR, MOVED = "world", "hinge", "slide", "ball", "free", "planar", "moved"
N_Q = {WORLD: 0, HINGE: 1, SLIDE: 1, BALL: 4, FREE: 7, PLANAR: 3, MOVED: 0}
N_U = {WORLD: 0, HINGE: 1, SLIDE: 1, BALL: 3, FREE: 6, PLANAR: 3, MOVED: 0}


class Topology(NamedTuple):
    """What never changes of a tree; entry 0 is the world."""

    parent: tuple[int, ...]
    kind: tuple[str, ...]
    carries: tuple[int, ...]  # by body with mass: its link

    @property
    def q_at(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum([N_Q[kind] for kind in self.kind])])

    @property
    def u_at(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum([N_U[kind] for kind in self.kind])])

    @property
    def tables(self) -> "Tables":
        return _tables(self)


class Tables(NamedTuple):
    """Index arrays and masks that follow from a topology."""

    nq: int
    nu: int
    doubling: tuple[np.ndarray, ...]  # ancestors, by round
    turns: np.ndarray  # (links,) entry of q that is an angle, 0 where none is
    turning: np.ndarray  # (links,) whether one is
    slides: np.ndarray  # the same for ways
    sliding: np.ndarray
    quaternions: np.ndarray  # (k, 4) entries of q
    quaternion_links: np.ndarray  # (k,)
    places: np.ndarray  # (m, 3) entries of q that are positions, -1: zero
    place_links: np.ndarray  # (m,)
    link: np.ndarray  # (nu,) of each degree of freedom
    rotates: np.ndarray  # (nu,) whether it is a rotation
    of_world: np.ndarray  # (nu,) whether its direction is fixed in the world
    unit: np.ndarray  # (nu, 3) its direction, where it is not that of a joint
    of_joint: np.ndarray  # (nu,) whether its direction is the axis of a joint
    moves: np.ndarray  # (links, nu) which links it moves
    root: np.ndarray  # (links,) the first link of the tree
    above: np.ndarray  # (nu, nu) whether j moves the link of k
    base: np.ndarray  # (links,) the prescribed link that carries it, 0 where none does


@functools.cache
def _tables(topology: Topology) -> Tables:
    parent, kinds = np.array(topology.parent), topology.kind
    n, q_at, u_at = len(parent), topology.q_at, topology.u_at
    lineage: list[list[int]] = [[]]
    for i in range(1, n):
        lineage.append([*lineage[parent[i]], i])
    doubling, ancestor = [], parent.copy()
    while np.any(ancestor):
        doubling.append(ancestor)
        ancestor = ancestor[ancestor]
    angle = [q_at[i] + (2 if kind == PLANAR else 0) for i, kind in enumerate(kinds)]
    turning = np.array([kind in (HINGE, PLANAR) for kind in kinds])
    sliding = np.array([kind == SLIDE for kind in kinds])
    with_quaternion = [i for i, kind in enumerate(kinds) if kind in (BALL, FREE)]
    quaternions = [q_at[i] + (3 if kinds[i] == FREE else 0) + np.arange(4) for i in with_quaternion]
    with_place = [i for i, kind in enumerate(kinds) if kind in (FREE, PLANAR)]
    places = [[q_at[i], q_at[i] + 1, q_at[i] + 2 if kinds[i] == FREE else -1] for i in with_place]
    dofs = [dof for i, kind in enumerate(kinds) for dof in _dofs(i, kind)]
    nu = int(u_at[-1])
    link = np.array([dof[0] for dof in dofs], dtype=int)
    moves = np.zeros((n, nu))
    for i in range(n):
        moves[i, np.isin(link, lineage[i])] = 1.0
    prescribed = {i for i, kind in enumerate(kinds) if kind == MOVED}
    # Trees on a prescribed link have their own reference point, as if it were the world.
    own = [[i for i in line if i not in prescribed] for line in lineage]
    base = [next((i for i in line if i in prescribed), 0) for line in lineage]
    return Tables(
        int(q_at[-1]), nu, tuple(doubling), np.where(turning, angle, 0), turning,
        np.where(sliding, q_at[:-1], 0), sliding,
        np.array(quaternions, dtype=int).reshape(-1, 4), np.array(with_quaternion, dtype=int),
        np.array(places, dtype=int).reshape(-1, 3), np.array(with_place, dtype=int), link,
        np.array([dof[1] for dof in dofs], dtype=bool), np.array([dof[2] for dof in dofs], dtype=bool),
        np.array([dof[3] if dof[3] is not None else np.zeros(3) for dof in dofs]).reshape(-1, 3),
        np.array([dof[3] is None for dof in dofs], dtype=bool), moves,
        np.array([line[0] if line else 0 for line in own]), moves[link], np.array(base),
    )  # fmt: skip


def _dofs(i: int, kind: str) -> list[tuple[int, bool, bool, Any]]:
    """(link, is a rotation, direction fixed in the world, direction or None for the joint's axis)"""
    unit = np.eye(3)
    if kind in (HINGE, SLIDE):
        return [(i, kind == HINGE, False, None)]
    if kind == BALL:
        return [(i, True, False, e) for e in unit]
    if kind == FREE:
        return [(i, False, True, e) for e in unit] + [(i, True, False, e) for e in unit]
    if kind == PLANAR:
        return [(i, False, True, unit[0]), (i, False, True, unit[1]), (i, True, False, unit[2])]
    return []


def cross(a: Array, b: Array) -> Array:
    """Of rows; slices rather than `jnp.cross`, which compiles and runs longer."""
    return _next(a) * _last(b) - _last(a) * _next(b)


def _next(a: Array) -> Array:
    return jnp.concatenate([a[..., 1:], a[..., :1]], axis=-1)


def _last(a: Array) -> Array:
    return jnp.concatenate([a[..., 2:], a[..., :2]], axis=-1)


def turned(A: Array, x: Array) -> Array:
    """A x, of rows of matrices and vectors."""
    return jnp.sum(A * x[..., None, :], axis=-1)


def back(A: Array, x: Array) -> Array:
    """A^T x, of rows."""
    return jnp.sum(A * x[..., :, None], axis=-2)


def times(A: Array, B: Array) -> Array:
    """A B, of rows of matrices: a sum, which is differentiated and compiled with less ado than a product."""
    return jnp.sum(A[..., :, :, None] * B[..., None, :, :], axis=-2)


class Poses(NamedTuple):
    """Where the links are."""

    A: Float[Array, "links 3 3"]
    x: Float[Array, "links 3"]


class Twists(NamedTuple):
    """How they can move: (omega, v at the root of the tree) of each degree of freedom,
    and how the world moves them.
    """

    omega: Float[Array, "nu 3"]
    v: Float[Array, "nu 3"]
    root: Float[Array, "links 3"]  # the point that v belongs to
    carried: Any  # (omega, v, alpha, a) of links on prescribed ones; None where there are none


class Velocities(NamedTuple):
    omega: Float[Array, "links 3"]
    v: Float[Array, "links 3"]  # of the point at the root
    root: Float[Array, "links 3"]

    def at(self, links: np.ndarray, points: Array) -> Array:
        """Of points of links, given in the world."""
        return self.v[links] + cross(self.omega[links], points - self.root[links])


class Tree(eqx.Module):
    """Links with their masses; arrays are parameters."""

    offset: Float[Array, "links 3"]  # of the joint's frame in the parent
    turn: Float[Array, "links 3 3"]
    axis: Float[Array, "links 3"]  # of hinge and slider, in the link
    anchor: Float[Array, "links 3"]  # of hinge and ball, in the link
    zero: Float[Array, " links"]  # angle or way at which the link is as its parent has it
    mass: Float[Array, " bodies"]
    centre: Float[Array, "bodies 3"]  # of mass, in the link
    inertia: Float[Array, "bodies 3 3"]  # about it, in the link
    gravity: Float[Array, " 3"]
    constant_M: Any  # (nu, nu) where all links are free and turn about their centres of mass; else None
    motions: tuple[Any, ...] = eqx.field(static=True)  # of prescribed links, functions of t
    topology: Topology = eqx.field(static=True)

    @property
    def tables(self) -> Tables:
        return self.topology.tables

    # -- where things are
    # ------------------------------------------------------------------------------------------
    def poses(self, t, q: Array) -> Poses:
        A, x = self._local(t, q)
        for ancestor in self.tables.doubling:
            A, x = times(A[ancestor], A), x[ancestor] + turned(A[ancestor], x)
        return Poses(A, x)

    def _local(self, t, q: Array) -> tuple[Array, Array]:
        """Of each link in its parent."""
        k = self.tables
        n = len(self.topology.kind)
        if len(k.quaternion_links) == n - 1 and len(k.place_links) == n - 1:  # free bodies alone
            A = jnp.concatenate([jnp.eye(3)[None], rotation_matrix(q[k.quaternions])])
            return A, jnp.concatenate([jnp.zeros((1, 3)), q[k.places]])
        half = jnp.where(k.turning, 0.5 * (q[k.turns] - self.zero), 0.0)
        p = jnp.concatenate([jnp.cos(half)[:, None], jnp.sin(half)[:, None] * self.axis], axis=1)
        p = _put(p, k.quaternion_links, q[k.quaternions])
        A = rotation_matrix(p)
        x = (
            self.anchor
            - turned(A, self.anchor)
            + jnp.where(k.sliding, q[k.slides] - self.zero, 0.0)[:, None] * self.axis
        )
        x = _put(x, k.place_links, jnp.where(k.places < 0, 0.0, q[k.places]))
        A, x = times(self.turn, A), self.offset + turned(self.turn, x)
        moved = [i for i, kind in enumerate(self.topology.kind) if kind == MOVED]
        if moved:
            given = [pose_of(f, t) for f in self.motions]
            A = _put(A, np.array(moved), jnp.stack([A for A, _ in given]))
            x = _put(x, np.array(moved), jnp.stack([x for _, x in given]))
        return A, x

    def centres(self, at: Poses) -> Float[Array, "bodies 3"]:
        links = np.array(self.topology.carries, dtype=int)
        return at.x[links] + turned(at.A[links], self.centre)

    # -- how they move
    # -------------------------------------------------------------------------------------------------
    def twists(self, t, at: Poses) -> Twists:
        k = self.tables
        axis = jnp.where(k.of_joint[:, None], self.axis[k.link], k.unit)
        A = at.A[k.link]
        direction = jnp.where(k.of_world[:, None], axis, turned(A, axis))
        root = at.x[k.root]
        arm = at.x[k.link] + turned(A, self.anchor[k.link]) - root[k.link]
        turns = k.rotates[:, None]
        omega = jnp.where(turns, direction, 0.0)
        return Twists(omega, jnp.where(turns, cross(arm, direction), direction), root, self._carried(t, root))

    def _carried(self, t, root: Array) -> Any:
        """Twist and its rate of links whose tree stands on a prescribed one."""
        if not self.motions:
            return None
        t, k = jnp.asarray(t, dtype=float), self.tables
        of_links = []
        for f in self.motions:

            def pose(t, f=f):
                return pose_of(f, t)

            def rate(t, pose=pose):
                (A, _), (A_dot, x_dot) = jax.jvp(pose, (t,), (jnp.ones(()),))
                spin = A_dot @ A.T
                return jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]]), x_dot

            (omega, v), (alpha, a) = jax.jvp(rate, (t,), (jnp.ones(()),))
            of_links.append((pose(t)[1], omega, v, alpha, a))
        columns = [jnp.stack([jnp.zeros(3), *parts]) for parts in zip(*of_links, strict=True)]
        moved = [i for i, kind in enumerate(self.topology.kind) if kind == MOVED]
        number = np.array([moved.index(b) + 1 if b else 0 for b in k.base])
        x, omega, v, alpha, a = (column[number] for column in columns)
        arm = root - x
        return omega, v + cross(omega, arm), alpha, a + cross(alpha, arm) - cross(omega, v)

    def velocities(self, by: Twists, u: Array) -> Velocities:
        moves = self.tables.moves
        rates = moves @ (jnp.concatenate([by.omega, by.v], axis=1) * u[:, None])
        omega, v = jnp.asarray(rates[:, :3]), jnp.asarray(rates[:, 3:])
        if by.carried is not None:
            omega, v = omega + by.carried[0], v + by.carried[1]
        return Velocities(omega, v, by.root)

    def B(self, q: Array) -> Float[Array, "nq nu"]:
        """q_dot = B u."""
        k = self.tables
        plain = np.zeros((k.nq, k.nu))
        for i, kind in enumerate(self.topology.kind):
            n = 3 if kind == FREE else 0 if kind == BALL else N_U[kind]
            plain[self.topology.q_at[i] + np.arange(n), self.topology.u_at[i] + np.arange(n)] = 1.0
        if not len(k.quaternion_links):
            return jnp.asarray(plain)
        rates = quaternion_rate(q[k.quaternions])  # (k, 4, 3)
        first = self.topology.u_at[k.quaternion_links] + np.array([3 if self.topology.kind[i] == FREE else 0
                                                                    for i in k.quaternion_links])  # fmt: skip
        rows = np.full(k.nq, len(k.quaternion_links) * 4)
        rows[k.quaternions.ravel()] = np.arange(k.quaternions.size)
        columns = np.zeros((k.nq, k.nu), dtype=int)
        inside = np.zeros((k.nq, k.nu))
        for entries, at in zip(k.quaternions, first, strict=True):
            columns[np.ix_(entries, at + np.arange(3))] = np.arange(3)
            inside[np.ix_(entries, at + np.arange(3))] = 1.0
        table = jnp.concatenate([rates.reshape(-1, 3), jnp.zeros((1, 3))])
        return jnp.asarray(plain) + inside * table[rows[:, None], columns]

    def normalize(self, q: Array) -> Array:
        k = self.tables
        p = q[k.quaternions]
        return _put(q, k.quaternions.ravel(), (p / jnp.sqrt(jnp.sum(p * p, axis=1))[:, None]).ravel())

    # -- what it takes to move them
    # ------------------------------------------------------------------------------------
    def M(self, t, q: Array) -> Float[Array, "nu nu"]:
        if self.constant_M is not None:
            return self.constant_M
        at = self.poses(t, q)
        by, k = self.twists(t, at), self.tables
        mass, first, second = self._inertia(at, by)
        moved = k.moves[np.array(self.topology.carries, dtype=int)]  # (bodies, nu)
        total = moved.T @ jnp.concatenate([mass[:, None], first, second.reshape(-1, 9)], axis=1)
        lin, ang = momentum(total[:, 0], total[:, 1:4], total[:, 4:].reshape(-1, 3, 3), by.omega, by.v)
        # entry (j, k): j moves the link of k
        M = by.omega @ ang.T + by.v @ lin.T
        lower = np.tril(np.ones((k.nu, k.nu)))
        half = M * k.above.T * lower.T  # above[k, j]: j moves the link of k; j comes before k
        return half + (half * (1.0 - np.eye(k.nu))).T

    def _inertia(self, at: Poses, by: Twists) -> tuple[Array, Array, Array]:
        """Mass, first moment and inertia of bodies about the roots of their trees, in the world."""
        links = np.array(self.topology.carries, dtype=int)
        arm = self.centres(at) - by.root[links]
        A = at.A[links]
        own = times(times(A, self.inertia), jnp.swapaxes(A, -1, -2))
        steiner = jnp.sum(arm * arm, axis=-1)[:, None, None] * np.eye(3) - arm[:, :, None] * arm[:, None, :]
        return self.mass, self.mass[:, None] * arm, own + self.mass[:, None, None] * steiner

    def inertial_forces(
        self, t, q: Array, u: Array, at: Poses, by: Twists, now: Velocities
    ) -> Float[Array, " nu"]:
        """Weight, and what the motion itself does, as it stands in h."""
        k, links = self.tables, np.array(self.topology.carries, dtype=int)
        omega, v = now.omega[k.link], now.v[k.link]
        fixed = k.of_world[:, None]
        alpha = jnp.where(fixed, 0.0, cross(omega, by.omega))
        a = jnp.where(fixed, 0.0, cross(omega, by.v) + cross(v, by.omega))
        rates = k.moves @ (jnp.concatenate([alpha, a], axis=1) * u[:, None])
        alpha, a = jnp.asarray(rates[:, :3]), jnp.asarray(rates[:, 3:]) - self.gravity
        if by.carried is not None:
            alpha, a = alpha + by.carried[2], a + by.carried[3]
        inertia = self._inertia(at, by)
        lin, ang = momentum(*inertia, now.omega[links], now.v[links])
        force, torque = momentum(*inertia, alpha[links], a[links])
        force = force + cross(now.omega[links], lin)
        torque = torque + cross(now.omega[links], ang) + cross(now.v[links], lin)
        return -self.along(by, k.moves[links].T @ jnp.concatenate([torque, force], axis=1))

    def along(self, by: Twists, wrenches: Float[Array, "nu 6"]) -> Float[Array, " nu"]:
        """Generalized forces of wrenches (torque about the root,
        force) on all that each degree of freedom moves.
        """
        return jnp.sum(by.omega * wrenches[:, :3] + by.v * wrenches[:, 3:], axis=1)

    def of_forces(
        self, by: Twists, links: np.ndarray, points: Array, forces: Array, torques: Any = 0.0
    ) -> Array:
        """Generalized forces of forces at points (in the world) of links, and of torques."""
        about = cross(points - by.root[links], forces) + torques
        return self.along(by, self.tables.moves[links].T @ jnp.concatenate([about, forces], axis=1))

    def kinetic(self, at: Poses, by: Twists, now: Velocities) -> Float[Array, " bodies"]:
        links = np.array(self.topology.carries, dtype=int)
        omega, v = now.omega[links], now.v[links]
        lin, ang = momentum(*self._inertia(at, by), omega, v)
        return 0.5 * jnp.sum(omega * ang + v * lin, axis=1)

    def potential(self, at: Poses) -> Float[Array, " bodies"]:
        return -self.mass * (self.centres(at) @ self.gravity)


def momentum(mass: Array, first: Array, second: Array, omega: Array, v: Array) -> tuple[Array, Array]:
    """Linear, and angular about the root."""
    return mass[:, None] * v + cross(omega, first), turned(second, omega) + cross(first, v)


def pose_of(f: Any, t) -> tuple[Array, Array]:
    """Rotation matrix and position of a prescribed link: f(t) is a position,
    or a position and a quaternion.
    """
    out = f(t)
    x, p = out if isinstance(out, tuple) else (out, jnp.array([1.0, 0.0, 0.0, 0.0]))
    x, p = jnp.asarray(x, dtype=float), jnp.asarray(p, dtype=float)
    if x.shape == (2,):
        x = jnp.concatenate([x, jnp.zeros(1)])
    if p.shape == ():
        p = jnp.stack([jnp.cos(p / 2), 0.0 * p, 0.0 * p, jnp.sin(p / 2)])
    return rotation_matrix(p), x


def _put(x: Array, rows: np.ndarray, values: Array) -> Array:
    """x with some rows replaced: a gather, because scatters break compiled loops into pieces."""
    if not len(rows):
        return x
    source = np.arange(len(x))
    source[rows] = len(x) + np.arange(len(rows))
    return jnp.concatenate([x, values])[source]
