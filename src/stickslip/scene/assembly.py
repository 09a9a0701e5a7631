"""Bodies, one after the other, into links; joints into entries of q and u."""

import math
from typing import Any, NamedTuple

import numpy as np

from .. import laws
from .acting import Limits, Passive
from .body import Body
from .joints import BallJoint, Free, Hinge, Joint, Link, Planar, Slider
from .numbers import library, number, stacked
from .shapes import rotation_of, space
from .state import JointEntry
from .tree import MOVED, N_Q, N_U, WORLD

EMPTY = np.zeros(3)


class Placed(NamedTuple):
    """A body in the tree."""

    body: Body
    link: int
    x: Any  # of its frame in the link
    A: Any


class Assembly:
    """Links, one after the other, as bodies want them."""

    def __init__(self, bodies: tuple[Body, ...], planar: bool):
        self.planar = planar
        self.parent, self.links = [0], [Link(WORLD)]
        self.offsets: list[tuple[Any, Any]] = [(EMPTY, np.eye(3))]
        self.motions: list[Any] = []
        self.placed: dict[str, Placed] = {}
        self.joints: list[tuple[Joint, JointEntry]] = []
        for body in bodies:
            self.add(body)

    def add(self, body: Body) -> None:
        carrier, x, A = (
            (0, EMPTY, np.eye(3)) if body.parent in (None, "world") else self.placed[body.parent][1:]
        )
        at = EMPTY if body.at is None else space(body.at)
        own = rotation_of(body.rotation, self.planar)
        if body.motion is not None:
            self.motions.append(body.motion)
            place = self._link(0, Link(MOVED), EMPTY, np.eye(3)), EMPTY, np.eye(3)
        elif is_free(body):
            place = self._free(body, at), EMPTY, np.eye(3)
        else:
            place = self._hung(body, carrier, x + A @ at, A @ own)
        self.placed[body.name] = Placed(body, *place)

    def _free(self, body: Body, at: Any) -> int:
        joint: Any = body.joint[0] if body.joint else Free(body.name)
        zeros = np.zeros(3)
        velocity = zeros if body.velocity is None else space(body.velocity)
        if self.planar:
            rotation, spin = (0.0 if x is None else number(x) for x in (body.rotation, body.spin))
        else:
            p = np.array([1.0, 0.0, 0.0, 0.0]) if body.rotation is None else body.rotation
            rotation, spin = p / library(p).sqrt((p * p).sum()), zeros if body.spin is None else body.spin
        link = joint.started(at, rotation, velocity, spin, self.planar)
        self._entry(joint, [link])
        return self._link(0, link, EMPTY, np.eye(3))

    def _hung(self, body: Body, carrier: int, x: Any, A: Any) -> tuple[int, Any, Any]:
        """On joints, one after the other; without a joint it is part of what carries it."""
        for joint in body.joint:
            links = joint.links()
            if links:
                self._entry(joint, links)
            for link in links:
                carrier, x, A = self._link(carrier, link, x, A), EMPTY, np.eye(3)
        return carrier, x, A

    def _link(self, parent: int, link: Link, x: Any, A: Any) -> int:
        self.parent.append(parent)
        self.links.append(link)
        self.offsets.append((x, A))
        return len(self.links) - 1

    def _entry(self, joint: Joint, links: list[Link]) -> None:
        q, u = sum(N_Q[link.kind] for link in self.links), sum(N_U[link.kind] for link in self.links)
        n_q, n_u = sum(N_Q[link.kind] for link in links), sum(N_U[link.kind] for link in links)
        self.joints.append((joint, JointEntry(joint.name, type(joint).__name__, (q, q + n_q), (u, u + n_u))))

    @property
    def moving(self) -> list[bool]:
        """Of links, whether a coordinate moves them."""
        out: list[bool] = []
        for parent, link in zip(self.parent, self.links, strict=True):
            out.append(N_U[link.kind] > 0 or (bool(out) and out[parent]))
        return out

    def entry(self, name: str) -> tuple[Joint, JointEntry]:
        return next((joint, entry) for joint, entry in self.joints if entry.name == name)

    def start(self) -> tuple[Any, Any]:
        q = [x for link in self.links for x in link.q0]
        u = [x for link in self.links for x in link.u0]
        return stacked(q, ()), stacked(u, ())


def is_free(body: Body) -> bool:
    alone = body.parent is None and not body.fixed and body.motion is None
    return alone and (not body.joint or isinstance(body.joint[0], Free))


def of_joints(assembly: Assembly) -> tuple[Passive, Limits, list[Any], tuple[int, ...], Any]:
    """Springs and dampers, limits with their contacts, and dry friction."""
    nu = sum(N_U[link.kind] for link in assembly.links)
    columns: dict[str, list[Any]] = {
        name: [0.0] * nu for name in ("damping", "stiffness", "rest", "armature")
    }
    entries = [0] * nu
    low, high, at, balls, limited, rubbing, torque = [], [], [], [], [], [], []
    joint: Any
    for joint, entry in assembly.joints:
        for j in range(*entry.u):
            columns["damping"][j], columns["armature"][j] = joint.damping, joint.armature
            if not (isinstance(joint.friction, float) and joint.friction == 0.0):
                rubbing.append(j)
                torque.append(joint.friction)
        if isinstance(joint, Hinge | Slider):
            columns["stiffness"][entry.u[0]], columns["rest"][entry.u[0]] = joint.stiffness, joint.rest
            entries[entry.u[0]] = entry.q[0]
        span = joint.limits if isinstance(joint, Hinge | Slider) else _ball_limit(joint)
        if span is not None:
            low.append(span[0])
            high.append(span[1])
            at.append(entry.q[0])
            balls.append(isinstance(joint, BallJoint))
            limited.append((entry.name, laws.Contact(e_N=joint.e_N)))
    arrays = {name: stacked(values, ()) for name, values in columns.items()}
    some = {
        name: any(not (isinstance(x, float) and x == 0.0) for x in values) for name, values in columns.items()
    }
    passive = Passive(
        arrays["damping"], arrays["stiffness"], arrays["rest"], arrays["armature"], tuple(entries),
        some["stiffness"], some["damping"], some["armature"],
    )  # fmt: skip
    limits = Limits(stacked(low, ()), stacked(high, ()), tuple(at), tuple(balls))
    return passive, limits, limited, tuple(rubbing), stacked(torque, ())


def rubbing_names(assembly: Assembly, rubbing: tuple[int, ...]) -> list[str]:
    """Of dry friction, by degree of freedom."""
    out = []
    for joint, entry in assembly.joints:
        own = [j for j in rubbing if entry.u[0] <= j < entry.u[1]]
        out += [f"{joint.name} friction" + (f" {k + 1}" if len(own) > 1 else "") for k in range(len(own))]
    return out


def _ball_limit(joint: Joint) -> tuple[Any, Any] | None:
    if isinstance(joint, BallJoint) and joint.limit is not None:
        return -math.inf, joint.limit
    return None


def labels(assembly: Assembly, planar: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the entries of q and u: the joint's, and what it is of it where there are several."""
    coordinates, velocities = [], []
    for joint, entry in assembly.joints:
        names = Planar.coordinates if planar and isinstance(joint, Free) else joint.coordinates
        own = [_prefixed(entry.name, label, len(names)) for label in names]
        coordinates += own
        if joint.velocities and not (planar and isinstance(joint, Free)):
            velocities += [_prefixed(entry.name, label, 2) for label in joint.velocities]
        else:
            velocities += [f"{label.split(' [')[0]}_dot [{label.split(' [')[1][:-1]}/s]" for label in own]
    return tuple(coordinates), tuple(velocities)


def _prefixed(name: str, label: str, count: int) -> str:
    what, unit = label.split(" [")
    name = name.replace("[", "(").replace("]", ")")
    return f"{name} [{unit}" if count == 1 else f"{name} {what} [{unit}"
