"""Solving nonlinear normal cone inclusions (S3 chapter 6)."""

from .automatic import Automatic as Automatic
from .base import Recorded as Recorded
from .base import Solver as Solver
from .fixed_point import FixedPoint as FixedPoint
from .newton import SemismoothNewton as SemismoothNewton
from .problem import Inclusions as Inclusions
from .problem import Problem as Problem
from .problem import ProxParameters as ProxParameters
from .problem import Solve as Solve
from .problem import VelocityProblem as VelocityProblem
from .relaxation import PJOR as PJOR
from .relaxation import PSOR as PSOR
