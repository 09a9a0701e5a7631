"""Many bodies, walls and laws as one system, and its state at the start."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..laws import Contact
from .bodies import Balls, Disks, numbers, table
from .contacts import ContactList, State, Walls
from .walls import Drum, Plane

OVERLAP = 1e-8  # of the smallest radius: what a start may overlap by, as elsewhere


class ManyBodies:
    """Balls, or disks in the plane, between walls: ``ManyBodies(Balls(...), box(...), law=ss.Contact(...))``.

    ``law`` holds for all pairs of materials that ``laws`` does not name. ``gravity`` has as many components
    as positions.
    """

    def __init__(
        self,
        bodies: Balls | Disks | Sequence[Balls | Disks],
        walls: Sequence[Plane | Drum] = (),
        *,
        law: Contact | None = None,
        laws: Mapping[tuple[str, str], Contact] | None = None,
        gravity: Any = None,
    ):
        groups = (bodies,) if isinstance(bodies, Balls | Disks) else tuple(bodies)
        if not groups or not all(
            isinstance(g, type(groups[0])) and isinstance(g, Balls | Disks) for g in groups
        ):
            raise TypeError("ManyBodies(bodies): must be Balls, or Disks, or a list of one of them")
        for wall in walls:
            if not isinstance(wall, Plane | Drum):
                raise TypeError(f"ManyBodies(walls): {wall!r} is not a Plane or a Drum")
        self.groups, self.walls = groups, Walls(walls)
        self.dim = 3 if isinstance(groups[0], Balls) else 2
        down = (0.0,) * (self.dim - 1) + (-9.81,)
        if self.dim == 2:
            self._refuse_walls_across()
        self.gravity = self._spatial(
            numbers("ManyBodies", "gravity", down if gravity is None else gravity, (self.dim,))
        )
        names = list(dict.fromkeys([*(g.material for g in groups), *(w.material for w in walls)]))
        self.materials = tuple(names)
        self.laws = table(names, Contact() if law is None else law, laws or {})
        self._refuse_overlap()

    def _spatial(self, a: np.ndarray) -> np.ndarray:
        return a if self.dim == 3 else np.concatenate([a, np.zeros((*a.shape[:-1], 1))], axis=-1)

    def _refuse_walls_across(self) -> None:
        for wall in self.walls.walls:
            across = wall.direction[2] if isinstance(wall, Plane) else abs(wall.direction[2]) - 1.0
            if abs(across) > 1e-12:
                what = (
                    "normal must lie in the plane of the disks"
                    if isinstance(wall, Plane)
                    else "axis must be (0, 0, 1)"
                )
                raise ValueError(f"ManyBodies: wall {wall.name!r} bounds disks, so its {what}")

    def _all(self, name: str) -> np.ndarray:
        return np.concatenate([getattr(group, name) for group in self.groups])

    def __len__(self) -> int:
        return sum(len(group) for group in self.groups)

    @cached_property
    def radius(self) -> np.ndarray:
        return self._all("radius")

    @cached_property
    def mass(self) -> np.ndarray:
        return self._all("mass")

    @cached_property
    def inertia(self) -> np.ndarray:
        return self._all("inertia")

    @cached_property
    def material(self) -> np.ndarray:
        """Number of the material of every body, then of every wall."""
        number = {name: k for k, name in enumerate(self.materials)}
        of = [np.full(len(group), number[group.material]) for group in self.groups]
        return np.concatenate([*of, [number[w.material] for w in self.walls.walls]]).astype(np.int64)

    @property
    def turns(self) -> bool:
        """Whether any contact has rolling or pivoting friction."""
        return bool(np.any(self.laws.rolling > 0.0) or np.any(self.laws.pivoting > 0.0))

    def start(self) -> State:
        """The state at the beginning: positions, velocities, masses; nothing touches yet."""
        n, walls = len(self), len(self.walls.walls)
        rows = np.zeros((n + walls, 8))
        rows[:n, :3] = self._spatial(self._all("velocity"))
        spin = self._all("spin")
        rows[:n, 3:6] = spin if self.dim == 3 else np.stack([0 * spin, 0 * spin, spin], axis=-1)
        rows[:n, 6], rows[:n, 7] = 1.0 / self.mass, 1.0 / self.inertia
        rotation = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        return State(0, self._spatial(self._all("position")), rotation, rows, ContactList.empty(3 * n + 64))

    def gaps(self, x: np.ndarray, margin: float, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs (a, b), a < b, closer than the margin, and their gaps;
        a wall w is the body  number of bodies + w.
        """
        from scipy.spatial import cKDTree

        r = self.radius
        pairs = cKDTree(x).query_pairs(2.0 * r.max() + margin, output_type="ndarray")
        a, b = pairs[:, 0], pairs[:, 1]
        gap = np.linalg.norm(x[b] - x[a], axis=1) - r[a] - r[b]
        parts = [(a, b, gap)]
        for w, (wall, place) in enumerate(zip(self.walls.walls, self.walls.at(t)[0], strict=True)):
            away = x - place
            along = away @ wall.direction
            if wall.kind == Drum.kind:
                gap = wall.size - np.linalg.norm(away - np.outer(along, wall.direction), axis=1) - r
            else:
                gap = along - r
            parts.append((np.arange(len(x)), np.full(len(x), len(x) + w), gap))
        a, b, gap = (np.concatenate([part[k] for part in parts]) for k in range(3))
        near = gap <= margin
        return a[near], b[near], gap[near]

    def name_of(self, b: int) -> str:
        return f"body {b}" if b < len(self) else f"the wall {self.walls.walls[b - len(self)].name!r}"

    def _refuse_overlap(self) -> None:
        a, b, gap = self.gaps(self._spatial(self._all("position")), 0.0)
        if len(gap) and gap.min() < -OVERLAP * self.radius.min():
            k = int(gap.argmin())
            raise ValueError(
                f"ManyBodies: body {a[k]} and {self.name_of(int(b[k]))} overlap by {-gap[k]:.3g} m at the "
                "start:"
                " move them apart"
            )

    def energy(self, x: np.ndarray, velocity: np.ndarray, spin: np.ndarray) -> Any:
        """Kinetic and potential energy; any leading axes."""
        kinetic = 0.5 * (self.mass * (velocity**2).sum(-1) + self.inertia * (spin**2).sum(-1)).sum(-1)
        return kinetic - (self.mass * (x @ self.gravity)).sum(-1)

    def digest(self) -> str:
        """Of everything that decides a run, walls at some times included."""
        h, state = hashlib.sha256(), self.start()
        for array in (
            state.x,
            state.rows,
            self.radius,
            self.material,
            *self.laws,
            self.gravity,
            self.walls.kinds,
        ):
            h.update(np.ascontiguousarray(array).tobytes())
        for part in (self.walls.directions, self.walls.sizes, *self.walls.at(0.0), *self.walls.at(0.7310585)):
            h.update(np.ascontiguousarray(part).tobytes())
        return h.hexdigest()

    def simulate(self, **options: Any) -> Any:
        """A run: see `stickslip.many.simulate`."""
        from .run import simulate

        return simulate(self, **options)
