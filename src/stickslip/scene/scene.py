"""A scene: named bodies, and what holds between them. It compiles to an ordinary `ss.System`."""

import dataclasses
from os import PathLike
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..validate import nearest
from . import elements as el
from .assembly import is_free
from .body import Body
from .compile import system_of
from .contacts import matches
from .joints import Free, Joint
from .numbers import is_known, numbers
from .shapes import Plane, Surface, check_vector, space

EARTH = 9.81
RULES = (el.Contact, el.NoContact)
OTHERS = (el.Motor, el.Spring, el.Force, el.Connect, el.Glue, el.Rod, el.Coupling, el.Prescribed, el.Fluid)


class SceneError(ValueError):
    """What is wrong with a scene, by name."""


class Scene(eqx.Module):
    """A list of named things: bodies, contact rules, drives, springs, loops, forces.

        scene = Scene(
            Body("box", Box(0.4, 0.3, 0.2), mass=2.0, at=(0, 0, 0.6)),
            Body("floor", Plane(), fixed=True),
            Contact("box", "floor", e_N=0.3, mu=0.4),
        )
        sol = scene.simulate(ss.Rattle(), t1=1.5, dt=2e-3)
        sol["box"].position, sol["box", "floor"].P_N

    What no rule names does not touch. In space z points upwards; in a ``planar`` scene y does, where bodies
    have (x, y, angle).
    ``gravity`` is a number (downwards) or a vector.
    """

    things: tuple[Any, ...]
    gravity: Any = eqx.field(converter=numbers)
    planar: bool = eqx.field(static=True)
    ignored_: tuple[str, ...] = eqx.field(static=True)
    t0: float = eqx.field(static=True)

    def __init__(
        self, *things: Any, gravity: Any = EARTH, planar: bool = False, ignored: Any = (), t0: float = 0.0
    ):
        self.things = tuple(
            t for part in things for t in (part if isinstance(part, tuple | list) else (part,))
        )
        self.gravity, self.planar, self.ignored_, self.t0 = gravity, bool(planar), tuple(ignored), float(t0)

    def __check_init__(self):
        _check(self)

    @property
    def bodies(self) -> tuple[Body, ...]:
        return tuple(t for t in self.things if isinstance(t, Body))

    @property
    def rules(self) -> tuple[Any, ...]:
        return tuple(t for t in self.things if isinstance(t, RULES))

    @property
    def ignored(self) -> list[str]:
        """What an import left out or replaced, in words."""
        return list(self.ignored_)

    @property
    def gravity_vector(self) -> Any:
        g = self.gravity
        if np.ndim(g) == 0:
            return g * np.array([0.0, -1.0, 0.0] if self.planar else [0.0, 0.0, -1.0])
        return space(g)

    @classmethod
    def load(
        cls, path: str | PathLike, *, e_N: float = 0.0, floating: bool = False, pairs: bool = False
    ) -> "Scene":
        """From a file in MJCF (.xml) or URDF; ``scene.ignored`` says what it has that a scene has not.

        Files of this kind know no coefficient of restitution: ``e_N`` is that of all their contacts. The root
        of a URDF is fixed, as MuJoCo has it; with ``floating=True`` it is free. Shapes touch planes, and each
        other where the file names the pair, or with ``pairs=True`` wherever it lets them: of a robot these
        are many, and a program has all of them.
        """
        from .load import load

        return load(path, e_N, floating, pairs)

    def compile(self) -> tuple[Any, Any, Any]:
        """(system, q0, u0): an ordinary `ss.System` and its start."""
        try:
            return system_of(self)
        except ValueError as error:
            raise SceneError(str(error)) from None

    def simulate(self, method: Any = None, **options: Any) -> Any:
        """`ss.simulate` from the start of the scene, with its options; ``sol["box"]`` is a body."""
        from ..simulate import simulate

        system, q0, u0 = self.compile()
        if not len(u0):
            raise SceneError("Scene: nothing in it can move: all bodies are fixed or have a given motion")
        options.setdefault("t0", self.t0)
        try:
            return simulate(system, method, q0, u0, **options)
        except ValueError:
            if is_known(system, q0, u0):  # perhaps in words of the scene
                _check_start(system, options["t0"], q0)
            raise

    def replace(self, name: str, **changes: Any) -> "Scene":
        """The scene with other values for the body, joint, motor or pair of that name;
        goes through vmap and derivatives.
        """
        found = False

        def changed(thing: Any) -> Any:
            nonlocal found
            if getattr(thing, "name", None) == name and not isinstance(thing, Joint):
                found = True
                return _changed(thing, name, changes)
            if isinstance(thing, Body) and any(j.name == name for j in thing.joint):
                found = True
                joints = tuple(_changed(j, name, changes) if j.name == name else j for j in thing.joint)
                return _copied(thing, joint=joints)
            if isinstance(thing, Body) and any(s.name == name for s in thing.shapes):
                found = True
                shapes = tuple(_changed(s, name, changes) if s.name == name else s for s in thing.shapes)
                return _copied(thing, shapes=shapes)
            return thing

        own = {t.name: t for t in self.bodies}
        if name in own and not set(changes) <= {f.name for f in dataclasses.fields(Body)} and own[name].joint:
            things = tuple(_joint_of(t, name, changes) if t is own[name] else t for t in self.things)
            found = True
        else:
            things = tuple(changed(thing) for thing in self.things)
        if not found:
            raise SceneError(str(nearest("name", name, _names(self))))
        return Scene(*things, gravity=self.gravity, planar=self.planar, ignored=self.ignored_, t0=self.t0)

    def __add__(self, more: Any) -> "Scene":
        """With more things: ``scene + [Contact("box", "floor")]``."""
        things = (
            more.things if isinstance(more, Scene) else more if isinstance(more, tuple | list) else (more,)
        )
        return Scene(
            *self.things, *things, gravity=self.gravity, planar=self.planar, ignored=self.ignored_, t0=self.t0
        )

    def place(self, name: str, on: str, gap: float = 0.0) -> "Scene":
        """The free body of that name, with all that hangs on it,
        moved along the normal of ``on`` until they touch.
        """
        body = next((b for b in self.bodies if b.name == name), None)
        ground = next((b for b in self.bodies if b.name == on), None)
        for what, found in ((name, body), (on, ground)):
            if found is None:
                raise SceneError(str(nearest("body", what, [b.name for b in self.bodies])))
        assert body is not None
        assert ground is not None
        planes = [s for s in ground.shapes if isinstance(s, Plane)]
        if len(planes) != 1:
            raise SceneError(f"place({name!r}, on={on!r}): {on!r} must have one plane, it has {len(planes)}")
        if not is_free(body):
            raise SceneError(f"place({name!r}, on={on!r}): {name!r} is not free: joints say where it is")
        system, q0, _ = self.compile()
        relatives = _hanging_on(self, name)
        on_planes = len(system.touch.links)
        numbers_ = [i for i, (a, b, *_) in enumerate(system.pairs)
                    if a in relatives and b == on and system.order[i] < on_planes]  # fmt: skip
        if not numbers_:
            raise SceneError(f"place({name!r}, on={on!r}): no contact rule lets them touch")
        gaps = system.g_N(self.t0, jax.numpy.asarray(q0))[np.array(numbers_)]
        slot = system.order[numbers_[0]]
        at = system.tree.poses(self.t0, jax.numpy.asarray(q0))
        normal = system.touch.at(at).frame[slot, :, 2]
        shift = (gap - gaps.min()) * normal
        start = np.zeros(3) if body.at is None else space(body.at)
        moved = start + (np.asarray(shift) if is_known(shift) else shift)
        return self.replace(name, at=moved[:2] if self.planar else moved)

    def show(self, path: Any = None, *, title: str = "") -> Any:
        """The scene as it starts, as a page to turn and look at,
        written to ``path`` (.html) if one is given.
        """
        from .picture import shown

        return shown(self, path, title)


def _hanging_on(scene: Scene, name: str) -> set[str]:
    """A body and all that is joined to it."""
    found = {name}
    for body in scene.bodies:
        if body.parent in found:
            found.add(body.name)
    return found


def _copied(module: Any, **changes: Any) -> Any:
    """A module with other fields; `dataclasses.replace` would call a constructor that has other arguments."""
    out = object.__new__(type(module))
    fields = {f.name: f for f in dataclasses.fields(module)}
    for key, field in fields.items():
        value, converter = changes.get(key, getattr(module, key)), field.metadata.get("converter")
        object.__setattr__(out, key, converter(value) if key in changes and converter else value)
    return out


def _changed(thing: Any, name: str, changes: dict[str, Any]) -> Any:
    known = [f.name for f in dataclasses.fields(thing)]
    for key in changes:
        if key not in known or key in ("name",):
            raise SceneError(
                f"replace({name!r}): {nearest(f'field of a {type(thing).__name__}', key, known)}"
            )
    return _copied(thing, **changes)


def _joint_of(body: Body, name: str, changes: dict[str, Any]) -> Body:
    """Of a body with one joint, that joint's fields count as its own."""
    own = {f.name for f in dataclasses.fields(Body)}
    of_body = {k: v for k, v in changes.items() if k in own}
    of_joint = {k: v for k, v in changes.items() if k not in own}
    joints = tuple(_changed(j, name, of_joint) if i == 0 else j for i, j in enumerate(body.joint))
    return _copied(body, joint=joints, **of_body)


def _names(scene: Scene) -> list[str]:
    out = []
    for thing in scene.things:
        out.append(getattr(thing, "name", ""))
        out += (
            [j.name for j in thing.joint] + [s.name for s in thing.shapes] if isinstance(thing, Body) else []
        )
    return [name for name in dict.fromkeys(out) if name]


# ---- what can be wrong


def _check(scene: Scene) -> None:
    try:
        _check_things(scene)
    except SceneError:
        raise
    except (ValueError, KeyError) as error:
        raise SceneError(error.args[0] if error.args else str(error)) from None


def _check_things(scene: Scene) -> None:
    for thing in scene.things:
        if isinstance(thing, type):
            raise TypeError(f"Scene: {thing.__name__} is a class: give {thing.__name__}(...)")
        if not isinstance(thing, (Body, *RULES, *OTHERS)):
            raise TypeError(
                f"Scene: a {type(thing).__name__} is nothing that a scene has: bodies, contacts, motors, "
                "springs, loops"
            )
    g = scene.gravity
    if np.ndim(g) != 0:
        check_vector("Scene", "gravity", g, (2, 3) if scene.planar else (3,))
    elif isinstance(g, str) or (is_known(g) and not np.isfinite(g)):
        raise ValueError(f"Scene: gravity must be a number (downwards, in m/s^2) or a vector, got {g}")
    _check_names(scene)
    for thing in scene.things:
        thing.check(scene.planar)
    _check_tree(scene)
    _check_references(scene)
    _check_rules(scene)


def _check_names(scene: Scene) -> None:
    seen: dict[str, str] = {}
    for body in scene.bodies:
        if not isinstance(body.name, str) or not body.name:
            raise TypeError(f"Body: its first argument is its name, got {body.name!r}")
        if body.name == "world":
            raise ValueError("body 'world': that name is taken: the world is what fixed bodies are fixed to")
        if any(c in body.name for c in "*?[]"):
            raise ValueError(f"body {body.name!r}: * ? [ ] are for patterns of contact rules, not for names")
        _once(seen, body.name, "body")
        for joint in body.joint:
            if isinstance(joint, Joint) and joint.name != body.name:
                _once(seen, joint.name, "joint")
    for thing in scene.things:
        if isinstance(thing, el.Motor):
            _once(seen, thing.name, "motor")
    if not scene.bodies:
        raise ValueError("Scene: there is no body in it")


def _once(seen: dict[str, str], name: str, kind: str) -> None:
    if name in seen:
        raise ValueError(f"{kind} {name!r}: there is another {seen[name]} of that name")
    seen[name] = kind


def _check_tree(scene: Scene) -> None:
    """Parents come first, and there is something that can move."""
    names = [b.name for b in scene.bodies]
    before: set[str] = {"world"}
    for body in scene.bodies:
        who = f"body {body.name!r}"
        if body.parent == body.name:
            raise ValueError(f"{who}: it is its own parent")
        if body.parent is not None and body.parent not in before:
            if body.parent not in names:
                raise ValueError(f"{who}: {nearest('parent', body.parent, names)}")
            raise ValueError(
                f"{who}: its parent {body.parent!r} comes later: a tree is listed from its root, and has no "
                "cycles"
            )
        before.add(body.name)
        _check_hanging(body, who)
    still = {"world"}
    for body in scene.bodies:
        if not (is_free(body) or body.joint or body.motion is not None) and (body.parent or "world") in still:
            still.add(body.name)
        surface = next((s for s in body.shapes if isinstance(s, Surface)), None)
        if surface is not None and body.name not in still:
            raise ValueError(
                f"body {body.name!r}, {surface}: a {type(surface).__name__} is that of a body that stands "
                "still: fixed=True"
            )
    planes = [(b, s) for b in scene.bodies for s in b.shapes if isinstance(s, Plane)]
    for body, plane in planes:
        if is_free(body) and body.mass is None:
            raise ValueError(
                f"body {body.name!r}, {plane}: a plane weighs nothing: fixed=True, a motion, or a mass is "
                "missing"
            )


def _check_hanging(body: Body, who: str) -> None:
    free = [j for j in body.joint if isinstance(j, Free)]
    if free and (body.parent is not None or len(body.joint) > 1):
        raise ValueError(f"{who}: a free joint is that of a body without a parent, and its only one")
    if body.motion is not None and body.parent is not None:
        raise ValueError(
            f"{who}: a motion is one in the world: leave parent={body.parent!r} away, or use Prescribed on a "
            "joint"
        )


def _check_references(scene: Scene) -> None:
    bodies = ["world", *(b.name for b in scene.bodies)]
    joints = [j.name for b in scene.bodies for j in b.joint]
    for thing in scene.things:
        who = type(thing).__name__
        if isinstance(thing, el.Spring | el.Connect | el.Glue | el.Rod):
            for name in (thing.first, thing.second):
                if name not in bodies:
                    raise ValueError(
                        f"{who}({thing.first!r}, {thing.second!r}): {nearest('body', str(name), bodies)}"
                    )
            if thing.first == thing.second:
                raise ValueError(f"{who}({thing.first!r}, {thing.second!r}): it is between two bodies")
        if isinstance(thing, el.Force) and thing.body not in bodies:
            raise ValueError(f"Force({thing.body!r}): {nearest('body', str(thing.body), bodies)}")
        if isinstance(thing, el.Motor | el.Coupling | el.Prescribed):
            for joint in (thing.joint, getattr(thing, "other", None)):
                if joint is not None and joint not in joints:
                    label = repr(thing.name) if isinstance(thing, el.Motor) else ""
                    raise ValueError(
                        f"{who}({label or repr(thing.joint)}): {nearest('joint', str(joint), joints)}"
                    )


def _check_rules(scene: Scene) -> None:
    """A rule that names nothing is a slip of the pen."""
    shapes = [(b, s) for b in scene.bodies for s in b.shapes]
    known = sorted({b.name for b, _ in shapes} | {s.name for _, s in shapes if s.name})
    for rule in scene.rules:
        sides = [[(b, s) for b, s in shapes if matches(name, b, s)] for name in (rule.first, rule.second)]
        for name in (*el.several(rule.first), *el.several(rule.second)):
            if not any(matches(name, b, s) for b, s in shapes):
                missing = next((b for b in scene.bodies if b.name == name), None)
                if missing is not None:
                    raise ValueError(f"{rule}: body {name!r} has no shape that could touch anything")
                raise ValueError(f"{rule}: {nearest('body or shape', str(name), known)}")
        if isinstance(rule, el.NoContact):
            continue
        pairs = [(a[1], b[1]) for a in sides[0] for b in sides[1]]
        if all(isinstance(a, Plane) and isinstance(b, Plane) for a, b in pairs):
            raise ValueError(
                f"{rule}: planes do not meet each other, and this is {pairs[0][0]} on {pairs[0][1]}"
            )


def _check_start(system: Any, t0: float, q0: Any) -> None:
    """A start inside a plane is refused, with names and depth."""
    gaps = np.asarray(system.g_N(t0, jax.numpy.asarray(q0)))
    if not gaps.size:
        return
    size = max(1.0, float(np.abs(q0).max(initial=0.0)))
    worst = int(np.argmin(gaps))
    if gaps[worst] < -1e-9 * size:
        a, b, *_ = system.pairs[worst]
        if not b:
            entry = next(j for j in system.joints if j.name == a)
            raise SceneError(
                f"joint {a!r}: it starts at {q0[entry.q[0]]:g}, beyond its limit by {-gaps[worst]:.3g}"
            )
        lifted = system.order[worst] < len(system.touch.links)
        remedy = f", or scene.place({a!r}, on={b!r}) lifts it out" if lifted else ""
        raise SceneError(f"body {a!r} starts {-gaps[worst]:.3g} m inside {b!r}: move it{remedy}")
