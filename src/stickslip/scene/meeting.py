"""Pairs of shapes that meet, sorted into blocks of arrays: what of the one touches what of the other."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .ellipsoids import Ellipsoids
from .features import LINE, POINT, ROOM, ROUND, SOLID, SURFACE, TURNED, Core, core_of, features_of, in_link
from .near import Balls, Crossings, OnTurned, tangents
from .numbers import stacked
from .shapes import Shape
from .solids import Solids
from .surfaces import OnSurface, features_of_surface
from .touch import At, relative_motion
from .tree import Poses, Velocities

LOOKING = Balls | Crossings | Solids | OnSurface  # blocks that look at whole steps


class Meeting(eqx.Module):
    """All slots between shapes that are no planes: of each block, of each pair, one after the other."""

    blocks: tuple[Any, ...]
    firsts: tuple[int, ...] = eqx.field(static=True)  # of all slots: links, in which normals point
    seconds: tuple[int, ...] = eqx.field(static=True)
    backward: tuple[bool, ...] = eqx.field(static=True)  # whether blocks see it the other way round
    planar: bool = eqx.field(static=True)

    def at(self, at: Poses) -> At:
        parts = [block.at(at) for block in self.blocks]
        found = (
            parts[0] if len(parts) == 1 else At(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))
        )
        if not any(self.backward):
            return found
        turned_ = tangents(-found.frame[:, :, 2], self.planar)
        return found._replace(frame=jnp.where(np.array(self.backward)[:, None, None], turned_, found.frame))

    @property
    def sweeps(self) -> bool:
        """Whether something in it looks at whole steps."""
        return any(isinstance(block, LOOKING) for block in self.blocks)

    @property
    def holding(self) -> Any:
        """What slots on surfaces hold in a step; None where there are none."""
        parts = [block.holding for block in self.blocks if isinstance(block, OnSurface)]
        return jnp.concatenate(parts) if parts else None

    def during(self, at: Poses, now: Velocities, dt: Any) -> "Meeting":
        """In a step that begins like this."""
        blocks = tuple(b.during(at, now, dt) if isinstance(b, LOOKING) else b for b in self.blocks)
        return dataclasses.replace(self, blocks=blocks)

    def motion(self, here: At, now: Velocities) -> Any:
        """Of the first bodies relative to the second ones, at their common points."""
        i, j = np.array(self.firsts), np.array(self.seconds)
        v, omega = now.at(i, here.point), now.omega[i]
        if j.any():
            v, omega = v - now.at(j, here.point), omega - now.omega[j]
        return relative_motion(here, v, omega)


class Side(NamedTuple):
    """A shape of a pair."""

    core: Core
    corners: Any  # in its link
    axes: Any
    link: int


class Part(NamedTuple):
    """One row of a block: of which pair it is, and whether normals point to the pair's first body."""

    pair: int
    first: Side
    second: Side
    forward: bool
    end: int  # of a line: which ball


def sides_of(pair: Any, planar: bool) -> tuple[Side, Side]:
    found = []
    for on, shape in ((pair.on, pair.shape), (pair.ground, pair.plane)):
        core = core_of(shape, planar)
        found.append(Side(core, *in_link(core, on, shape, planar), on.link))
    return found[0], found[1]


# kinds that do not meet everything: whom they meet, and how that is said
COMPANY = {
    ROUND: ((ROUND, POINT), "ellipsoids, balls and planes"),
    TURNED: ((POINT,), "balls and planes"),
    SURFACE: ((POINT,), "balls alone"),
}


def why_not(a: Shape, b: Shape, planar: bool) -> str:
    """Why two shapes cannot meet; empty if they can."""
    kinds = [core_of(shape, planar).kind for shape in (a, b)]
    if ROOM in kinds and sorted(kinds) != [POINT, ROOM]:
        return "what is in a hole is a Ball or a Disc"
    for shape, kind, other in zip((a, b), kinds, kinds[::-1], strict=True):
        company, words = COMPANY.get(kind, ((other,), ""))
        if other not in company:
            what = type(shape).__name__
            return f"{'an' if what[0] in 'AEIO' else 'a'} {what} meets {words}"
    return ""


def meeting_of(pairs: list[Any], planar: bool) -> tuple[Any, list[tuple[int, int]]]:
    """The blocks, and of each slot its pair and its number in it; None where nothing meets."""
    sides = [sides_of(pair, planar) for pair in pairs]
    tables: dict[Any, list[Part]] = {}
    for k, (a, b) in enumerate(sides):
        for key, part in _parts(k, a, b, planar):
            same = part.first.core.topology, part.second.core.topology, id(part.second.core.surface)
            tables.setdefault((*key, *same), []).append(part)
    blocks, firsts, seconds, backward, owners = [], [], [], [], []
    counts = [0] * len(pairs)
    for key, parts in tables.items():
        block, many = _MADE[key[0]](parts, planar)
        blocks.append(block)
        for part in parts:
            for _ in range(many):
                links = part.first.link, part.second.link
                firsts.append(links[0 if part.forward else 1])
                seconds.append(links[1 if part.forward else 0])
                backward.append(not part.forward)
                owners.append((part.pair, counts[part.pair]))
                counts[part.pair] += 1
    links_of_slots = tuple(firsts), tuple(seconds), tuple(backward)
    return (Meeting(tuple(blocks), *links_of_slots, planar) if blocks else None), owners


def _parts(k: int, a: Side, b: Side, planar: bool) -> Iterator[tuple[tuple[Any, ...], Part]]:
    kinds = a.core.kind, b.core.kind
    if kinds == (SOLID, SOLID):
        yield ("solids",), Part(k, a, b, True, 0)
        return
    if ROOM in kinds:
        first, second = (a, b) if kinds[1] == ROOM else (b, a)
        yield ("in a room",), Part(k, first, second, first is a, 0)
        return
    for name, kind in (("ellipsoids", ROUND), ("on turned", TURNED), ("on a surface", SURFACE)):
        if kind in kinds:
            first, second = (a, b) if kinds[1] == kind else (b, a)
            yield (name,), Part(k, first, second, first is a, 0)
            return
    for first, second in ((a, b), (b, a)):
        if first.core.kind == SOLID or (
            first.core.kind == POINT and second.core.kind == POINT and first is b
        ):
            continue
        if first.core.kind == POINT and second.core.kind == LINE and kinds[0] == kinds[1]:
            continue
        if second.core.kind == POINT and first.core.kind != POINT:
            continue  # the ball's slot is that of the ball on the line
        for end in range(len(first.corners)):
            yield ("balls",), Part(k, first, second, first is a, end)
        if first.core.kind == LINE and (second.core.kind == SOLID or (first is a and not planar)):
            yield ("crossings",), Part(k, first, second, first is a, 0)


def _balls(parts: list[Part], planar: bool, inside: bool = False) -> tuple[Any, int]:
    points = stacked([part.first.corners[part.end] for part in parts], (3,))
    on = features_of([(part.second.core, part.second.corners) for part in parts])
    own = stacked([part.first.core.radius for part in parts], ())
    radius = on.radius - own if inside else on.radius + own
    return Balls(points, radius, on, inside, planar, *_links(parts)), 1


def _crossings(parts: list[Part], planar: bool) -> tuple[Any, int]:
    lines, on = _features(parts)
    return Crossings(lines, on, parts[0].second.core.kind == SOLID, planar, *_links(parts)), 2


def _solids(parts: list[Part], planar: bool) -> tuple[Any, int]:
    block = Solids(*_features(parts), planar, *_links(parts))
    return block, block.slots


def _ellipsoids(parts: list[Part], planar: bool) -> tuple[Any, int]:
    sides = [[p.first for p in parts], [p.second for p in parts]]
    at_Q, at_P = (stacked([side.corners[0] for side in own], (3,)) for own in sides)
    turn_Q, turn_P = (stacked([side.axes for side in own], (3, 3)) for own in sides)
    semi_Q, semi_P = (stacked([side.core.semi for side in own], (3,)) for own in sides)
    return Ellipsoids(at_Q, at_P, turn_Q, turn_P, semi_Q, semi_P, *_links(parts)), 1


def _on_turned(parts: list[Part], planar: bool) -> tuple[Any, int]:
    semi = stacked([p.second.core.semi for p in parts], (3,))
    return OnTurned(*_centres(parts), *_places(parts), semi, *_links(parts)), 1


def _on_surface(parts: list[Part], planar: bool) -> tuple[Any, int]:
    shape = parts[0].second.core.surface
    on = features_of_surface(shape)
    return OnSurface(*_centres(parts), *_places(parts), on, shape.contacts, *_links(parts)), shape.contacts


def _centres(parts: list[Part]) -> tuple[Any, Any]:
    """Of balls, and their radii."""
    return stacked([p.first.corners[0] for p in parts], (3,)), stacked(
        [p.first.core.radius for p in parts], ()
    )


def _places(parts: list[Part]) -> tuple[Any, Any]:
    """Of what they meet."""
    return stacked([p.second.corners[0] for p in parts], (3,)), stacked(
        [p.second.axes for p in parts], (3, 3)
    )


def _features(parts: list[Part]) -> tuple[Any, Any]:
    firsts, seconds = ([(side.core, side.corners) for side in sides]
                       for sides in ([p.first for p in parts], [p.second for p in parts]))  # fmt: skip
    return features_of(firsts), features_of(seconds)


def _links(parts: list[Part]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(part.first.link for part in parts), tuple(part.second.link for part in parts)


_MADE: dict[str, Callable[[list[Part], bool], tuple[Any, int]]] = {
    "solids": _solids,
    "balls": _balls,
    "in a room": lambda parts, planar: _balls(parts, planar, inside=True),
    "crossings": _crossings,
    "ellipsoids": _ellipsoids,
    "on turned": _on_turned,
    "on a surface": _on_surface,
}
