"""What a scene compiles to: an ordinary `ss.System`, whose entries have names."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..laws import FrictionElement
from ..system import System
from .acting import Drag, Drives, Limits, Loop, Passive, Push, Springs, in_space
from .meeting import Meeting
from .numbers import quaternion
from .state import Frames, JointEntry, Moved, State
from .touch import At, Touch
from .tree import FREE, Poses, Tree, Velocities, cross, times, turned


class SceneSystem(System):
    """Bodies, joints and contacts of a scene, by name. Made by `Scene.compile`."""

    tree: Tree
    frames: Frames
    touch: Touch
    meeting: Meeting | None
    passive: Passive
    limits: Limits
    rules: tuple[Any, ...]  # ss.Contact, by rule
    joint_friction: Any  # (n,)
    drives: Drives | None
    springs: Springs | None
    loops: tuple[Loop, ...]
    pushes: tuple[Push, ...]
    drag: Drag | None
    planar: bool = eqx.field(static=True)
    joints: tuple[JointEntry, ...] = eqx.field(static=True)
    rule_of: tuple[int, ...] = eqx.field(static=True)  # by contact: its rule
    order: tuple[int, ...] = eqx.field(static=True)  # by contact: its number among slots, then limits
    friction_rows: tuple[int, ...] = eqx.field(static=True)  # of the columns of all slots
    rubbing: tuple[int, ...] = eqx.field(static=True)  # entries of u with dry friction
    # by contact: bodies and shapes, or a joint and ""
    pairs: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    coordinates: tuple[str, ...] = eqx.field(static=True)
    velocities: tuple[str, ...] = eqx.field(static=True)
    contacts: tuple[str, ...] = eqx.field(static=True)
    picture: Any = None  # how it looks, `picture.Drawing`

    @property
    def laws(self):
        elements = tuple(FrictionElement(self.joint_friction[i]) for i in range(len(self.rubbing)))
        return tuple(self.rules[i] for i in self.rule_of) + elements

    # -- mechanics
    # --------------------------------------------------------------------------------------------------
    def M(self, t, q):
        M = self.tree.M(t, q)
        return M + jnp.diag(self.passive.armature) if self.passive.armatures else M

    def h(self, t, q, u):
        moved = Moved(self, t, q, u)
        out = self._inertial(t, q, u, moved)
        p = self.passive
        if p.dampers:
            out = out - p.damping * u
        if p.springs:
            out = out - p.stiffness * (q[np.array(p.entries)] - p.rest)
        if self.drives is not None:
            out = out + self.drives.forces(t, q, u, State(moved), u.shape[0])
        if self.springs is not None:
            out = out + self.springs.forces(self.tree, moved.poses, moved.twists, moved.velocities)
        if self.drag is not None:
            out = out + self.drag.forces(self.tree, moved.poses, moved.twists, moved.velocities)
        if self.pushes:
            out = out + self._pushed(t, moved)
        return out

    def _inertial(self, t, q, u, moved: "Moved"):
        tree = self.tree
        if tree.constant_M is None:
            return tree.inertial_forces(t, q, u, moved.poses, moved.twists, moved.velocities)
        # free bodies, turning about their centres of mass: weight, and the gyroscopic torque
        k = tree.tables
        mass = jnp.asarray(tree.mass)[np.array([tree.topology.carries.index(i) for i in k.link])]
        weight = jnp.sum(k.unit * tree.gravity, axis=1) * mass
        out = jnp.where(k.rotates, 0.0, weight)
        free = [i for i, kind in enumerate(tree.topology.kind) if kind == FREE]
        if not free:
            return out
        at = tree.topology.u_at[free][:, None] + np.arange(3, 6)
        inertia = jnp.asarray(tree.inertia)[np.array([tree.topology.carries.index(i) for i in free])]
        omega = u[at]
        gyro = -cross(omega, turned(inertia, omega))
        source = np.full(len(u), 3 * len(free))
        source[at.ravel()] = np.arange(3 * len(free))
        return out + jnp.concatenate([gyro.ravel(), jnp.zeros(1)])[source]

    def _pushed(self, t, moved: "Moved"):
        state = State(moved)
        total: Any = 0.0
        for push in self.pushes:
            link = np.array([push.link])
            point = moved.poses.x[link] + turned(moved.poses.A[link], jnp.asarray(push.at)[None])
            given = zip((push.force, push.torque), push.functions, strict=True)
            force, torque = (in_space(constant if f is None else f(t, state)) for constant, f in given)
            total = total + self.tree.of_forces(moved.twists, link, point, force[None], torque[None])
        return total

    def g(self, t, q):
        if not self.loops:
            return jnp.zeros(0)
        at = self.tree.poses(t, q)
        return jnp.concatenate([loop.g(t, q, at, self.planar) for loop in self.loops])

    def g_N(self, t, q):
        parts = []
        if self.touch.links or self.meeting is not None:
            parts.append(self.places(self.tree.poses(t, q)).gap)
        if self.limits.entries:
            parts.append(self.limits.gaps(q))
        if not parts:
            return jnp.zeros(0)
        gaps = jnp.concatenate(parts)
        order = np.array(self.order)
        return gaps if np.array_equal(order, np.arange(len(order))) else gaps[order]

    def gamma_F(self, t, q, u):
        parts = []
        if self.friction_rows:
            at = self.tree.poses(t, q)
            now = self.tree.velocities(self.tree.twists(t, at), u)
            parts.append(self._motion(at, now).reshape(-1)[np.array(self.friction_rows)])
        if self.rubbing:
            parts.append(u[np.array(self.rubbing)])
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def places(self, at: Poses) -> At:
        """Of all slots: those on planes, then those between other shapes."""
        parts = [part.at(at) for part in self._touching]
        return (
            parts[0] if len(parts) == 1 else At(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))
        )

    def _during(self, t, q, u, dt) -> "SceneSystem":
        """What a step that begins with this state holds fixed:
        features of what fast bodies would pass through.
        """
        if self.meeting is None or not self.meeting.sweeps:
            return self
        at = self.tree.poses(t, q)
        now = self.tree.velocities(self.tree.twists(t, at), u)
        return dataclasses.replace(self, meeting=self.meeting.during(at, now, dt))

    @property
    def _holding(self) -> Any:
        return None if self.meeting is None else self.meeting.holding

    def _motion(self, at: Poses, now: Velocities):
        parts = [part.motion(part.at(at), now) for part in self._touching]
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

    @property
    def _touching(self) -> list[Any]:
        met: list[Any] = [] if self.meeting is None else [self.meeting]
        return [self.touch, *met] if self.touch.links else met

    def energy(self, t, q, u):
        moved = Moved(self, t, q, u)
        total = jnp.sum(self.tree.kinetic(moved.poses, moved.twists, moved.velocities))
        total = total + jnp.sum(self.tree.potential(moved.poses))
        p = self.passive
        if p.armatures:
            total = total + 0.5 * jnp.sum(p.armature * u * u)
        if p.springs:
            total = total + 0.5 * jnp.sum(p.stiffness * (q[np.array(p.entries)] - p.rest) ** 2)
        return total if self.springs is None else total + self.springs.energy(moved.poses)

    def body_poses(self, t, q, u):
        """Positions, quaternions and velocities of all bodies, in space."""
        moved, frames = Moved(self, t, q, u), self.frames
        links = np.array(frames.links, dtype=int)
        A = moved.poses.A[links]
        x = moved.poses.x[links] + turned(A, jnp.asarray(frames.x))
        return x, quaternion(times(A, jnp.asarray(frames.A))), moved.velocities.at(links, x)

    # -- by name
    # ------------------------------------------------------------------------------------------------------
    def state(self, t, q, u) -> "State":
        """Everything by name, at an instant."""
        return State(Moved(self, t, q, u))


class SpatialScene(SceneSystem):
    """One with quaternions among its coordinates."""

    def B(self, t, q):
        return self.tree.B(q)

    def normalize(self, q):
        return self.tree.normalize(q)
