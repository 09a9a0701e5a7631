"""Scenes: bodies, joints, shapes and contacts by name, which compile to an ordinary `ss.System`."""

from .. import stored as _stored
from .body import Body as Body
from .elements import Connect as Connect
from .elements import Contact as Contact
from .elements import Coupling as Coupling
from .elements import Fluid as Fluid
from .elements import Force as Force
from .elements import Glue as Glue
from .elements import Motor as Motor
from .elements import NoContact as NoContact
from .elements import Prescribed as Prescribed
from .elements import Rod as Rod
from .elements import Spring as Spring
from .elements import servo as servo
from .joints import BallJoint as BallJoint
from .joints import Free as Free
from .joints import Hinge as Hinge
from .joints import Planar as Planar
from .joints import Slider as Slider
from .joints import Universal as Universal
from .joints import Weld as Weld
from .meshes import HeightField as HeightField
from .meshes import Mesh as Mesh
from .scene import Scene as Scene
from .scene import SceneError as SceneError
from .shapes import Ball as Ball
from .shapes import Box as Box
from .shapes import Capsule as Capsule
from .shapes import Cylinder as Cylinder
from .shapes import Disc as Disc
from .shapes import Ellipsoid as Ellipsoid
from .shapes import Hole as Hole
from .shapes import Hull as Hull
from .shapes import Plane as Plane
from .state import State as State
from .system import SceneSystem as SceneSystem

_stored.know_modules("scene.")
