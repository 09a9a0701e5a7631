"""Rigid bodies: what a paper writes down about one, as functions, and a free body as a system to build on.

`rigid.planar` and `rigid.spatial` hold the functions. `PlanarBody` and `SpatialBody` are systems of one free
body: a benchmark adds its gaps and friction velocities.
"""

from . import planar as planar
from . import rotations as rotations
from . import spatial as spatial
from .planar import PlanarBody as PlanarBody
from .rotations import inclinations as inclinations
from .rotations import quaternion_rate as quaternion_rate
from .rotations import rotation_matrix as rotation_matrix
from .spatial import SpatialBody as SpatialBody
