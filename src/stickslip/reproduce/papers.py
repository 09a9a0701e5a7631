"""The five papers, and the modules that reproduce them."""

from . import (  # noqa: F401  (they register their entries)
    controls,
    proximal,
    s0_rattle,
    s1_lobatto,
    s1_structure,
    s2_generalized_alpha,
    s2_newton_steps,
    s3_algorithms,
    s3_balls,
    s3_belt_pendulum_crank,
    s3_bodies,
    s3_half_explicit,
    s3_naive_impacts,
    s3_slope,
    s3_tableaus_and_pendulum,
    s3_tables,
    s4_examples,
    s4_mixer,
    s4_relaxation,
    s4_step_size,
)
from .coverage import COVERAGE, STATEMENTS

PAPERS = {
    "S0": "Breuling, Capobianco, Eugster, Leine: A nonsmooth RATTLE algorithm for mechanical systems with"
    " frictional unilateral constraints, Nonlinear Analysis: Hybrid Systems 52, 2024",
    "S1": "Capobianco, Harsch, Leyendecker: Lobatto-type variational integrators for mechanical systems with"
    " frictional contact, CMAME",
    "S2": "Capobianco, Harsch, Eugster, Leine: A nonsmooth generalized-alpha method for mechanical systems"
    " with frictional contact, IJNME 122, 2021",
    "S3": "Breuling: Projected and partitioned Runge-Kutta methods for nonsmooth mechanical systems with"
    " frictional contact and impacts, thesis, Stuttgart 2024",
    "S4": "Studer, Leine, Glocker: Step size adjustment and extrapolation for time-stepping schemes in"
    " non-smooth dynamics, IJNME 76, 2008",
}

# What is made again: numbered figures, tables and algorithms, and statements without a number.
FIGURES = {
    paper: (*(name for name, item in items.items() if item.kind == "entry"), *STATEMENTS[paper])
    for paper, items in COVERAGE.items()
}
