"""Proximal parameters: rho of mu + prox_C(rho psi - mu) = 0. Solutions do not depend on them,
the way there does.

"diagonal"     1/G_ii of the mass matrix, and 1/dt of that for gaps: S3 (6.18), (6.19); S4's 1/D_ii
"method"       1/J_ii with J = d psi/d mu of the scheme itself, with its stages and forces: S3 section 6.4
"contracting"  (6.18), (6.19), less where contacts push each other
a number       the same r for all, as S0 and S1 print it; two numbers: r_N and r_F
"""

import dataclasses
import math
from numbers import Real
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .problem import Inclusions, Problem, ProxParameters

CHOICES = ("diagonal", "method", "contracting")


def checked_proximal(solver: Any) -> None:
    """Refuses what is no choice, and numbers that are not positive."""
    stated, name = solver.proximal, type(solver).__name__
    if isinstance(stated, str):
        if stated not in CHOICES:
            raise ValueError(
                f"{name}(proximal={stated!r}): proximal must be one of {', '.join(CHOICES)}, or numbers"
            )
        return
    numbers = stated if isinstance(stated, tuple) else (stated, stated)
    if len(numbers) != 2 or not all(
        isinstance(r, Real) and math.isfinite(r) and float(r) > 0.0 for r in numbers
    ):
        raise ValueError(
            f"{name}(proximal={stated!r}): proximal must be a positive number, or two: r_N and r_F"
        )


def estimated(problem: Problem, stated: Any, J: Array) -> ProxParameters:
    """rho as stated, for J = d psi/d mu."""
    inclusions, rho = problem.inclusions, problem.inclusions.rho
    if isinstance(stated, str):
        if stated == "diagonal":
            return rho
        return (
            inclusions.contracting(problem.in_units(J))
            if stated == "contracting"
            else _by_method(inclusions, J)
        )
    r_N, r_F = stated if isinstance(stated, tuple) else (stated, stated)
    return ProxParameters(jnp.full_like(rho.N, r_N), jnp.full_like(rho.F, r_F))


def _by_method(inclusions: Inclusions, J: Array) -> ProxParameters:
    _, N, F = inclusions.split(jnp.abs(jnp.diagonal(J)))
    sizes = N, inclusions.laws.set.largest(F)
    # A row that its own percussion does not move keeps (6.18), (6.19).
    own = (
        jnp.where(s > 0.0, 1.0 / jnp.where(s > 0.0, s, 1.0), r)
        for s, r in zip(sizes, inclusions.rho, strict=True)
    )
    return ProxParameters(*own)


def with_proximal(problem: Problem, stated: Any, x: Array, y: Array) -> Problem:
    """The same problem with proximal parameters as stated, estimated at a guess (x, y)."""
    if isinstance(stated, str) and stated == "diagonal":
        return problem
    if isinstance(stated, str):
        x, _, aux = problem.correct(x, y)
        J = problem.sensitivity(x, problem.tangent(x, aux))
    else:
        J = jnp.zeros(0)
    rho = estimated(problem, stated, J)
    inclusions = dataclasses.replace(problem.inclusions, proximal=rho)
    return dataclasses.replace(problem, inclusions=inclusions)  # type: ignore[call-arg]


def as_factors(stated: Any) -> Any:
    """Numbers of all laws as a tuple, which programs can be known by;
    anything else for the check to judge.
    """
    return (
        tuple(np.asarray(stated).tolist()) if np.ndim(stated) == 1 and not isinstance(stated, str) else stated
    )


def checked_relaxation(solver: Any) -> None:
    """Refuses factors that are not positive numbers."""
    stated = solver.relaxation
    numbers = stated if isinstance(stated, tuple) else (stated,)
    if not all(isinstance(x, Real) and math.isfinite(x) and float(x) > 0.0 for x in numbers):
        raise ValueError(
            f"{type(solver).__name__}(relaxation={stated!r}): relaxation must be a positive number, or one "
            "for each law"
        )


def by_law(relaxation: Any, inclusions: Inclusions) -> ProxParameters:
    """Relaxation omega_ii of S4 (27), (28): one number for all,
    or one for each contact and then each ball.
    """
    contacts, balls = inclusions.laws.n_N, inclusions.laws.set.count
    omega = np.asarray(relaxation, dtype=float)
    if omega.ndim == 0:
        return ProxParameters(jnp.full(contacts, omega), jnp.full(balls, omega))
    if omega.shape != (contacts + balls,):
        raise ValueError(
            f"relaxation has {omega.size} entries; this system has {contacts} contacts and {balls} friction "
            "laws:"
            f" {contacts + balls} are needed, contacts first, or one number for all"
        )
    return ProxParameters(jnp.asarray(omega[:contacts]), jnp.asarray(omega[contacts:]))
