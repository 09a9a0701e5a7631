"""A thousand disks are mixed in a rotating drum, S4 Figure 2. Data are ours; S4 states none."""

import numpy as np

from ..laws import Contact, Coulomb
from .bodies import Disks
from .system import ManyBodies
from .walls import Drum


def disk_mixer(
    count: int = 1000, mu: float = 0.3, e_N: float = 0.1, rate: float = 1.0, seed: int = 0
) -> ManyBodies:
    """Disks of 10 % different radii that fill nearly half of a drum of radius 0.5 m,
    which turns with ``rate`` rad/s.
    """
    drum, rng = 0.5, np.random.default_rng(seed)
    filled = 0.42  # of the area of the drum, by disks
    mean = drum * np.sqrt(filled / count)
    radius = mean * rng.uniform(0.9, 1.1, count)
    pitch = 2.25 * mean
    reach = drum - 1.2 * mean
    k = np.arange(-int(reach / pitch), int(reach / pitch) + 1) * pitch
    places = np.stack(np.meshgrid(k, k), axis=-1).reshape(-1, 2)
    places = places[np.linalg.norm(places, axis=1) < reach]
    lowest = places[np.lexsort((places[:, 0], places[:, 1]))][:count]
    if len(lowest) < count:
        raise ValueError(
            f"disk_mixer(count={count}): so many disks do not fit on a lattice in the drum; use at least 100"
        )
    x = lowest + rng.uniform(-0.02, 0.02, lowest.shape) * mean
    law = Contact(e_N=e_N, friction=Coulomb(mu))
    return ManyBodies(Disks(x, radius, density=20.0), [Drum((0.0, 0.0), drum, rate=rate)], law=law)
