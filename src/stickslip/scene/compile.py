"""From named things to arrays."""

import dataclasses
from typing import Any

import numpy as np

from . import elements as el
from .acting import Drag, Drives, Loop, Push, Springs
from .assembly import EMPTY, Assembly, labels, of_joints, rubbing_names
from .contacts import friction_rows, meeting_slots, ordered, slots_of, touch_of
from .numbers import is_known, library, matrix, number, stacked
from .picture import drawing
from .shapes import space
from .state import Frames
from .system import SceneSystem, SpatialScene
from .tree import BALL, FREE, MOVED, PLANAR, WORLD, Topology, Tree


def system_of(scene: Any) -> tuple[SceneSystem, Any, Any]:
    """The system and its start."""
    planar = scene.planar
    assembly = Assembly(scene.bodies, planar)
    tree, frames = _tree(assembly, scene)
    q0, u0 = assembly.start()
    passive, limits, limited, rubbing, torque = of_joints(assembly)
    on_planes, meeting_pairs = slots_of(scene, assembly)
    touch, slot_rules, names, owners = touch_of(on_planes, planar)
    meeting, met_rules, met_names, met_owners = meeting_slots(meeting_pairs, planar, len(names))
    slot_rules, names, owners = slot_rules + met_rules, names + met_names, owners + met_owners
    contact_names, order, rules, rule_of, pair_names = ordered(slot_rules, names, owners, limited, planar)
    law_rows = friction_rows(rules, rule_of, order, planar)
    coordinates, velocities = labels(assembly, planar)
    with_quaternions = any(kind in (BALL, FREE) for kind in tree.topology.kind)
    system = (SpatialScene if with_quaternions else SceneSystem)(
        tree=tree, frames=frames, touch=touch, meeting=meeting, passive=passive, limits=limits, rules=rules,
        joint_friction=torque,
        drives=_drives(scene, assembly), springs=_springs(scene, assembly),
        loops=_loops(scene, assembly, tree, q0, planar),
        pushes=_pushes(scene, assembly), drag=_drag(scene, tree), planar=planar,
        joints=tuple(entry for _, entry in assembly.joints), rule_of=rule_of, order=order,
        friction_rows=law_rows,
        rubbing=rubbing, pairs=pair_names, coordinates=coordinates, velocities=velocities,
        contacts=(*contact_names, *rubbing_names(assembly, rubbing)),
        picture=drawing(assembly.placed.values(), planar),
    )  # fmt: skip
    return system, q0, u0


# ---- bodies and joints


def _tree(assembly: Assembly, scene: Any) -> tuple[Tree, Frames]:
    planar, links = assembly.planar, assembly.links
    heavy = [p for p in assembly.placed.values() if p.link and links[p.link].kind != MOVED]
    weighed = [p.body.weighed(planar) for p in heavy]
    mass = stacked([m for m, _, _ in weighed], ())
    centre = stacked([p.x + p.A @ c for p, (_, c, _) in zip(heavy, weighed, strict=True)], (3,))
    inertia = stacked([p.A @ I @ p.A.T for p, (_, _, I) in zip(heavy, weighed, strict=True)], (3, 3))
    topology = Topology(
        tuple(assembly.parent), tuple(link.kind for link in links), tuple(p.link for p in heavy)
    )
    tree = Tree(
        stacked([x for x, _ in assembly.offsets], (3,)), stacked([A for _, A in assembly.offsets], (3, 3)),
        stacked([link.axis for link in links], (3,)),
        stacked([space(stacked(link.anchor, ())) for link in links], (3,)),
        stacked([link.zero for link in links], ()), mass, centre, inertia, scene.gravity_vector, None,
        tuple(assembly.motions), topology,
    )  # fmt: skip
    numbers = {id(p): i for i, p in enumerate(heavy)}
    every = list(assembly.placed.values())
    frames = Frames(
        stacked([p.x for p in every], (3,)), stacked([p.A for p in every], (3, 3)),
        tuple(p.body.name for p in every),
        tuple(p.link for p in every), tuple(numbers.get(id(p), -1) for p in every),
    )  # fmt: skip
    return dataclasses.replace(tree, constant_M=_constant_M(tree)), frames


def _constant_M(tree: Tree) -> Any:
    """Of free bodies that turn about their centres of mass."""
    kinds, carries = tree.topology.kind, tree.topology.carries
    if not all(kind in (FREE, PLANAR, WORLD) for kind in kinds) or sorted(carries) != list(
        range(1, len(kinds))
    ):
        return None
    if not is_known(tree.centre) or np.any(tree.centre):
        return None
    xp = library(tree.mass, tree.inertia)
    M = xp.zeros((0, 0))
    for i, kind in enumerate(kinds[1:], start=1):
        k = carries.index(i)
        m, I = tree.mass[k], tree.inertia[k]
        n = 3 if kind == FREE else 2
        turning = I if kind == FREE else I[2:, 2:]
        for block in (m * xp.eye(n), turning):
            a, b = M.shape[0], block.shape[0]
            above = xp.concatenate([M, xp.zeros((a, b))], axis=1)
            below = xp.concatenate([xp.zeros((b, a)), block], axis=1)
            M = xp.concatenate([above, below])
    return M


# ---- what acts between them


def _of(scene: Any, *kinds: type) -> list[Any]:
    return [thing for thing in scene.things if isinstance(thing, kinds)]


def _end(assembly: Assembly, name: str, at: Any) -> tuple[int, Any]:
    """A point of a body, in its link."""
    if name == "world":
        return 0, space(at)
    p = assembly.placed[name]
    return p.link, p.x + p.A @ space(at)


def _drives(scene: Any, assembly: Assembly) -> Drives | None:
    motors = _of(scene, el.Motor)
    if not motors:
        return None
    entries = [assembly.entry(m.joint)[1] for m in motors]
    return Drives(
        stacked([m.gear for m in motors], ()), stacked([m.gain for m in motors], ()),
        stacked([m.bias for m in motors], (3,)),
        stacked([m.control_limits for m in motors], (2,)), stacked([m.limits for m in motors], (2,)),
        stacked([0.0 if callable(m.control) else m.control for m in motors], ()),
        tuple(m.control if callable(m.control) else None for m in motors), tuple(m.name for m in motors),
        tuple(e.q[0] for e in entries), tuple(e.u[0] for e in entries),
    )  # fmt: skip


def _springs(scene: Any, assembly: Assembly) -> Springs | None:
    found = _of(scene, el.Spring)
    if not found:
        return None
    first = [_end(assembly, s.first, s.first_at) for s in found]
    second = [_end(assembly, s.second, s.second_at) for s in found]
    return Springs(
        stacked([s.stiffness for s in found], ()), stacked([s.damping for s in found], ()),
        stacked([s.length for s in found], ()),
        stacked([stacked([x for _, x in ends], (3,)) for ends in (first, second)], (len(found), 3)),
        (tuple(l for l, _ in first), tuple(l for l, _ in second)),
    )  # fmt: skip


def _pushes(scene: Any, assembly: Assembly) -> tuple[Push, ...]:
    out = []
    for force in _of(scene, el.Force):
        link, at = _end(assembly, force.body, force.at)
        given = force.force, force.torque
        force_, torque = (np.zeros(3) if x is None or callable(x) else x for x in given)
        functions: Any = tuple(x if callable(x) else None for x in given)
        out.append(Push(at, force_, torque, functions, link))
    return tuple(out)


def _loops(scene: Any, assembly: Assembly, tree: Tree, q0: Any, planar: bool) -> tuple[Loop, ...]:
    found = _of(scene, el.Connect, el.Glue, el.Rod, el.Coupling, el.Prescribed)
    if not found:
        return ()
    at = tree.poses(scene.t0, library(q0).asarray(q0)) if _needs_start(found) else None
    return tuple(_loop(thing, assembly, at) for thing in found)


def _needs_start(found: list[Any]) -> bool:
    open_ends = [x for x in found if isinstance(x, el.Connect | el.Glue) and x.second_at is None]
    return bool(open_ends) or any(isinstance(x, el.Rod) and x.length is None for x in found)


def _loop(thing: Any, assembly: Assembly, at: Any) -> Loop:
    if isinstance(thing, el.Coupling):
        j = -1 if thing.other is None else assembly.entry(thing.other)[1].q[0]
        return Loop("coupling", (0, 0), (assembly.entry(thing.joint)[1].q[0], j), polynomial=thing.polynomial)
    if isinstance(thing, el.Prescribed):
        return Loop("prescribed", (0, 0), (assembly.entry(thing.joint)[1].q[0], -1), motion=thing.motion)
    (i, a), kind = _end(assembly, thing.first, thing.first_at), type(thing).__name__.lower()
    if isinstance(thing, el.Rod):
        j, b = _end(assembly, thing.second, EMPTY if thing.second_at is None else thing.second_at)
        length = thing.length
        if length is None:
            apart = _there(at, j, b) - _there(at, i, a)
            length = number(library(apart).sqrt((apart * apart).sum()))
        return Loop(kind, (i, j), (0, 0), stacked([a, b], (3,)), length=length)
    j, origin = _end(assembly, thing.second, EMPTY)
    if isinstance(thing, el.Glue) and thing.place is not None:
        x, p = thing.place
        own = assembly.placed.get(thing.first)
        A = np.eye(3) if own is None else own.A
        other = np.eye(3) if thing.second == "world" else assembly.placed[thing.second].A
        first = _end(assembly, thing.first, np.asarray(x, dtype=float))[1]
        return Loop(
            kind,
            (i, j),
            (0, 0),
            stacked([first, origin], (3,)),
            A @ matrix(np.asarray(p, dtype=float)) @ other.T,
        )
    if thing.second_at is not None:
        b = _end(assembly, thing.second, thing.second_at)[1]
    else:
        b = _np(at.A[j]).T @ (_there(at, i, a) - _np(at.x[j]))
    turn = _np(at.A[i]).T @ _np(at.A[j]) if at is not None else np.eye(3)
    return Loop(kind, (i, j), (0, 0), stacked([a, b], (3,)), turn)


def _np(x: Any) -> Any:
    return np.asarray(x) if is_known(x) else x


def _there(at: Any, link: int, x: Any) -> Any:
    return _np(at.x[link]) + _np(at.A[link]) @ x


def _drag(scene: Any, tree: Tree) -> Drag | None:
    found = _of(scene, el.Fluid)
    if not found:
        return None
    fluid = found[-1]
    turns, boxes = [], []
    for m, inertia in zip(np.asarray(tree.mass), np.asarray(tree.inertia), strict=True):
        moments, axes = np.linalg.eigh(inertia)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        turns.append(axes)
        boxes.append(np.sqrt(np.maximum(moments.sum() - 2.0 * moments, 0.0) / m * 6.0))
    return Drag(fluid.density, fluid.viscosity, fluid.wind, stacked(turns, (3, 3)), stacked(boxes, (3,)))
