"""Contact rules into slots, in the order of the rules."""

import fnmatch
import itertools
from typing import Any, NamedTuple

import numpy as np

from .. import laws
from ..frames import COLUMNS, columns_of
from . import elements as el
from .assembly import Assembly, Placed
from .body import Body
from .meeting import meeting_of, why_not
from .numbers import is_known, library, stacked
from .shapes import Along, Hole, Plane, Shape, Surface, placed, towards
from .touch import TIE, Touch, none


class Pair(NamedTuple):
    """A shape that may touch a plane, or another shape."""

    on: Placed
    shape: Shape
    ground: Placed
    plane: Any  # or another shape
    rule: el.Contact
    number: int  # of the rule


def matches(patterns: Any, body: Body, shape: Shape) -> bool:
    names = (body.name, shape.name) if shape.name else (body.name,)
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in el.several(patterns))


def slots_of(scene: Any, assembly: Assembly) -> tuple[list[Pair], list[Pair]]:
    """What touches what, by the last rule that says so: shapes on planes, and shapes on shapes."""
    every = [(p, shape) for p in assembly.placed.values() for shape in p.body.shapes]
    solids = [(p, s) for p, s in every if not isinstance(s, Plane)]
    planes = [(p, s) for p, s in every if isinstance(s, Plane)]
    on_planes = [
        (on, shape, *ground)
        for ground in planes
        for on, shape in solids
        if not isinstance(shape, Hole | Surface) or (isinstance(shape, Surface) and ground[0].link)
    ]
    met = [(*a, *b) for a, b in itertools.combinations(solids, 2)]
    out = []
    for candidates in (on_planes, met):
        found = [pair for pair in (_ruled(scene.rules, *names) for names in candidates) if pair is not None]
        out.append(sorted(found, key=lambda pair: pair.number))
    for pair in out[0]:
        if isinstance(pair.shape, Surface):
            raise ValueError(
                f"{pair.rule}: {pair.shape} of {pair.on.body.name!r} on {pair.plane} of"
                f" {pair.ground.body.name!r}: a {type(pair.shape).__name__} meets balls alone"
            )
    moving = assembly.moving
    meeting = [pair for pair in out[1] if moving[pair.on.link] or moving[pair.ground.link]]
    for pair in meeting:
        reason = why_not(pair.shape, pair.plane, scene.planar)
        if reason:
            raise ValueError(f"{pair.rule}: {pair.shape} of {pair.on.body.name!r} on {pair.plane} of"
                             f" {pair.ground.body.name!r}: {reason}")  # fmt: skip
    return out[0], meeting


def _ruled(rules: Any, on: Placed, shape: Shape, ground: Placed, other: Shape) -> Pair | None:
    """The pair, in the order in which its rule names them (a plane comes second), if a rule lets it touch."""
    if on.link == ground.link:
        return None
    for number_, rule in reversed(list(enumerate(rules))):
        forward = matches(rule.first, on.body, shape) and matches(rule.second, ground.body, other)
        backward = matches(rule.second, on.body, shape) and matches(rule.first, ground.body, other)
        if forward or backward:
            if not isinstance(rule, el.Contact) or (
                not isinstance(other, Plane) and _joined(on, ground, rule)
            ):
                return None
            if forward or isinstance(other, Plane):
                return Pair(on, shape, ground, other, rule, number_)
            return Pair(ground, other, on, shape, rule, number_)
    return None


def _joined(a: Placed, b: Placed, rule: el.Contact) -> bool:
    """Bodies on the two sides of a joint overlap as a rule:
    they touch only where a rule names both without a pattern.
    """
    joined = a.body.name == b.body.parent or b.body.name == a.body.parent
    return joined and any(
        c in name for name in (*el.several(rule.first), *el.several(rule.second)) for c in "*?["
    )


def meeting_slots(
    pairs: list[Pair], planar: bool, before: int
) -> tuple[Any, list[el.Contact], list[tuple[int, str]], list[tuple[str, ...]]]:
    """As `touch_of`, of shapes on shapes; their slots are numbered from ``before``."""
    meeting, owners = meeting_of(pairs, planar)
    many = [sum(k == owner for owner, _ in owners) for k in range(len(pairs))]
    first = np.concatenate([[before], before + np.cumsum(many)])
    chosen = [(pairs[k], int(first[k]) + slot, slot if many[k] > 1 else None) for k, slot in owners]
    return (
        meeting, [pair.rule for pair, *_ in chosen],
        [(number_, _slot_name(pair, slot)) for pair, number_, slot in chosen],
        [_bodies(pair) for pair, *_ in chosen],
    )  # fmt: skip


def _bodies(pair: Pair) -> tuple[str, ...]:
    return pair.on.body.name, pair.ground.body.name, pair.shape.name, pair.plane.name


def touch_of(
    pairs: list[Pair], planar: bool
) -> tuple[Touch, list[el.Contact], list[tuple[int, str]], list[tuple[str, ...]]]:
    """Arrays of all slots, points first, and of each its rule, its number and name, and its bodies."""
    points: list[Any] = []
    rounds: list[Any] = []
    planes: dict[int, int] = {}
    grounds: list[Pair] = []
    for pair in pairs:
        if id(pair.plane) not in planes:
            planes[id(pair.plane)] = len(planes)
            grounds.append(pair)
        x, A = placed(pair.shape, planar)
        x, A = pair.on.x + pair.on.A @ x, pair.on.A @ A
        slots = pair.shape.slots(planar)
        for k, slot in enumerate(slots):
            name = _slot_name(pair, k if len(slots) > 1 else None)
            (points if slot.semi is None else rounds).append(
                (pair, slot, x, A, (len(points) + len(rounds), name))
            )
    if not pairs:
        return none(), [], [], []
    most = max((len(slot.points) for _, slot, *_ in points), default=1)
    corners = [_padded((x + slot.points @ A.T), most) for _, slot, x, A, _ in points]
    size = [float(np.ptp(np.asarray(c), axis=0).max()) if is_known(c) else 1.0 for c in corners]
    frames = [_plane(pair, planar) for pair in grounds]
    speeds = [pair.plane.speed for pair in grounds]
    both = points + rounds
    touch = Touch(
        stacked(corners, (1, 3)), stacked([slot.radius for _, slot, *_ in points], ()),
        stacked([TIE * s for s in size], ()),
        stacked([x + A @ slot.points[0] for _, slot, x, A, _ in rounds], (3,)),
        stacked([slot.semi for _, slot, *_ in rounds], (3,)),
        stacked([A @ _axes(pair.shape) for pair, _, _, A, _ in rounds], (3, 3)),
        stacked([x for x, _ in frames], (3,)), stacked([A for _, A in frames], (3, 3)), stacked(speeds, ()),
        tuple(slot.rim for _, slot, *_ in rounds), tuple(pair.on.link for pair, *_ in both),
        tuple(planes[id(pair.plane)] for pair, *_ in both), tuple(pair.ground.link for pair in grounds),
        any(not (isinstance(s, float) and s == 0.0) for s in speeds),
    )  # fmt: skip
    return (
        touch, [pair.rule for pair, *_ in both], [name for *_, name in both],
        [_bodies(pair) for pair, *_ in both],
    )  # fmt: skip


def _axes(shape: Any) -> Any:
    """The frame in which its semi-axes are given: of a disc, its axis is the third."""
    return towards(shape.direction) if isinstance(shape, Along) else np.eye(3)


def _plane(pair: Pair, planar: bool) -> tuple[Any, Any]:
    x, A = placed(pair.plane, planar)
    return pair.ground.x + pair.ground.A @ x, pair.ground.A @ A @ pair.plane.frame(planar)


def _padded(points: Any, most: int) -> Any:
    """The first point again and again: it is the lowest no more often than before."""
    xp = library(points)
    return (
        xp.concatenate([points, xp.repeat(points[:1], most - len(points), axis=0)])
        if len(points) < most
        else points
    )


def _slot_name(pair: Pair, k: int | None) -> str:
    of = _called(pair.on, pair.shape)
    on = pair.ground.body.name if isinstance(pair.plane, Plane) else _called(pair.ground, pair.plane)
    return f"{of} {on}" if k is None else f"{of} {on} {k + 1}"


def _called(on: Placed, shape: Shape) -> str:
    """The body, and its shape if it has several."""
    several = len([s for s in on.body.shapes if not isinstance(s, Plane)]) > 1
    number_ = next(i for i, s in enumerate(on.body.shapes) if s is shape) + 1
    return f"{on.body.name}.{shape.name or number_}" if several else on.body.name


def ordered(
    slot_rules: list[el.Contact],
    names: list[tuple[int, str]],
    owners: list[tuple[str, ...]],
    limited: list[Any],
    planar: bool,
) -> tuple[Any, ...]:
    """Contacts in the order of the rules, then limits: names, slots, laws,
    the law of each, and whose they are.
    """
    distinct = list({id(rule): rule for rule in slot_rules}.values())
    place = {id(rule): i for i, rule in enumerate(distinct)}
    slots = sorted(range(len(slot_rules)), key=lambda i: (place[id(slot_rules[i])], names[i]))
    rules = [rule.law(planar) for rule in distinct]
    order = [*slots, *range(len(slot_rules), len(slot_rules) + len(limited))]
    rule_of = [place[id(slot_rules[i])] for i in slots]
    all_names = [names[i][1] for i in slots] + [f"{joint} limit" for joint, _ in limited]
    for _, law in limited:
        same = [i for i in range(len(distinct), len(rules)) if _same(rules[i], law)]
        rule_of.append(same[0] if same else len(rules))
        if not same:
            rules.append(law)
    seen: dict[str, int] = {}
    for i, name in enumerate(all_names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            all_names[i] = f"{name} ({seen[name]})"
    pairs = [owners[i] for i in slots] + [(joint, "", "", "") for joint, _ in limited]
    return tuple(all_names), tuple(order), tuple(rules), tuple(rule_of), tuple(pairs)


def _same(a: laws.Contact, b: laws.Contact) -> bool:
    return is_known(a, b) and a.e_N == b.e_N and a.friction == b.friction == ()


def friction_rows(rules: Any, rule_of: Any, order: Any, planar: bool) -> tuple[int, ...]:
    return tuple(
        slot * COLUMNS + column
        for slot, rule in zip(order, rule_of, strict=True)
        for law in rules[rule].friction
        for column in columns_of(law, planar)
    )
