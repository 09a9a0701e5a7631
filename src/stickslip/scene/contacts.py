"""Contact rules into slots, in the order of the rules."""

import fnmatch
from typing import Any, NamedTuple

import numpy as np

from .. import laws
from . import elements as el
from .assembly import Assembly, Placed
from .body import Body
from .numbers import is_known, library, stacked
from .shapes import Along, Plane, Shape, placed, towards
from .touch import COLUMNS, TIE, Touch, columns_of, none


class Pair(NamedTuple):
    """A shape that may touch a plane."""

    on: Placed
    shape: Shape
    ground: Placed
    plane: Plane
    rule: el.Contact
    number: int  # of the rule


def matches(patterns: Any, body: Body, shape: Shape) -> bool:
    names = (body.name, shape.name) if shape.name else (body.name,)
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in el.several(patterns))


def slots_of(scene: Any, assembly: Assembly) -> list[Pair]:
    """What touches what, by the last rule that says so."""
    rules = scene.rules
    every = [(p, shape) for p in assembly.placed.values() for shape in p.body.shapes]
    solids = [(p, s) for p, s in every if not isinstance(s, Plane)]
    planes = [(p, s) for p, s in every if isinstance(s, Plane)]
    found = []
    for ground, plane in planes:
        for on, shape in solids:
            if on.link == ground.link:
                continue
            for number_, rule in reversed(list(enumerate(rules))):
                first, second = rule.first, rule.second
                if (matches(first, on.body, shape) and matches(second, ground.body, plane)) or (
                    matches(second, on.body, shape) and matches(first, ground.body, plane)
                ):
                    if isinstance(rule, el.Contact):
                        found.append(Pair(on, shape, ground, plane, rule, number_))
                    break
    return sorted(found, key=lambda pair: pair.number)


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
            (points if slot.semi is None else rounds).append((pair, slot, x, A, (len(points) + len(rounds), name)))
    if not pairs:
        return none(), [], [], []
    most = max((len(slot.points) for _, slot, *_ in points), default=1)
    corners = [_padded((x + slot.points @ A.T), most) for _, slot, x, A, _ in points]
    size = [float(np.ptp(np.asarray(c), axis=0).max()) if is_known(c) else 1.0 for c in corners]
    frames = [_plane(pair, planar) for pair in grounds]
    speeds = [pair.plane.speed for pair in grounds]
    both = points + rounds
    touch = Touch(
        stacked(corners, (1, 3)), stacked([slot.radius for _, slot, *_ in points], ()), stacked([TIE * s for s in size], ()),
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
        [(pair.on.body.name, pair.ground.body.name, pair.shape.name, pair.plane.name) for pair, *_ in both],
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
    return xp.concatenate([points, xp.repeat(points[:1], most - len(points), axis=0)]) if len(points) < most else points


def _slot_name(pair: Pair, k: int | None) -> str:
    of = pair.on.body.name
    if len([s for s in pair.on.body.shapes if not isinstance(s, Plane)]) > 1:
        of += f".{pair.shape.name or pair.on.body.shapes.index(pair.shape) + 1}"
    return f"{of} {pair.ground.body.name}" if k is None else f"{of} {pair.ground.body.name} {k + 1}"


def ordered(
    slot_rules: list[el.Contact],
    names: list[tuple[int, str]],
    owners: list[tuple[str, ...]],
    limited: list[Any],
    planar: bool,
) -> tuple[Any, ...]:
    """Contacts in the order of the rules, then limits: names, slots, laws, the law of each, and whose they are."""
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
