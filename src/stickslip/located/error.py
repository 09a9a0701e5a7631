"""The error of a step, and how long the next one may be: (3) of docs/events.md."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..methods.given_modes import Instant, Trial
from ..methods.stages import MotionInverse
from ..tableaus import lobatto_iiic
from .functions import SAMPLES
from .state import Control

SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9


def weights(method: Any) -> tuple[np.ndarray, float, float]:
    """(3): the error is dt (g f(t_n) + sum_i w_i f_i); w, g and the exponent. f_i: of stages and nodes,
    then of the end.

    Radau: gamma_0 (f(t_n) - P'(t_n)), P' through the stages: an embedded method of order s; 1/gamma_0 an
    eigenvalue of A^-1. Lobatto IIIC, whose first stage is at t_n: Q_1 - q_n = sum_j a_1j f_j, a difference of
    order s - 1. Lobatto IIIA-IIIB, whose stages have velocities of low order: the same difference, through
    nodes of the dense output.
    """
    s, c = method.stages, method.coefficients.c
    if method.coefficients.rest:
        x = np.concatenate([[0.0], SAMPLES[list(nodes(method))], [1.0]])
        a = lobatto_iiic(s)
        w = np.linalg.solve(
            np.vander(x, increasing=True).T, np.append(np.zeros(s - 1), a.A[0] @ a.c ** (s - 1))
        )
        return w[1:], float(w[0]), 1.0 / s
    A = method.coefficients.A
    if c[0] == 0.0:
        return np.append(A[0], 0.0), 0.0, 1.0 / s
    gamma_0 = float(1.0 / np.abs(np.linalg.eigvals(np.linalg.inv(A))).min())
    # what extrapolates through the stages to t_n: sum_i w_i c_i^k = 0^k
    at_0 = np.linalg.solve(np.vander(c, increasing=True).T, np.eye(s)[0])
    return np.append(-gamma_0 * at_0, 0.0), gamma_0, 1.0 / (s + 1)


NODES: dict[int, tuple[float, ...]] = {2: (), 3: (1 / 2,), 4: (1 / 4, 3 / 4)}  # by number of stages


def nodes(method: Any) -> tuple[int, ...]:
    """Samples of a step whose accelerations its error is made of."""
    if not method.coefficients.rest:
        return ()
    return tuple(int(np.flatnonzero(SAMPLES == x)[0]) for x in NODES[method.stages])


def relaxed(method: Any, rtol: Array | np.ndarray) -> Array:
    """By how much the estimate, which is of order s,
    may exceed the tolerance for the error itself to be proportional to it.

    As in RADAU5 (Hairer, Wanner, Solving ODEs II, section IV.8): 1 at rtol = 1e-3, more below.
    """
    return (1e3 * rtol) ** (1.0 / (weights(method)[2] * method.order) - 1.0)


def error_norm(control: Control, start: Any, end: Any, errors: Any) -> Array:
    """In units of the tolerance, as the root of the mean square."""
    total, count = jnp.zeros(()), 0
    for x0, x1, error in zip(start, end, errors, strict=True):
        scale = control.atol + control.rtol * jnp.maximum(jnp.abs(x0), jnp.abs(x1))
        total, count = total + jnp.sum((error / scale) ** 2), count + x0.shape[0]
    return jnp.sqrt(total / count)


def damped(motion: MotionInverse | None, errors: tuple[Array, Array]) -> tuple[Array, Array]:
    """An error after another step, R(dt J) times it, J that of the smooth forces:
    what is stiff vanishes, as in the step.
    """
    if motion is None:
        return errors
    s, nq = motion.hA.shape[0], errors[0].shape[0]
    x = motion.apply(*(jnp.broadcast_to(e, (s, *e.shape))[..., None] for e in errors))[:, 0]
    return x[(s - 1) * nq : s * nq], x[-errors[1].shape[0] :]


def estimate(method: Any, control: Control, dt, start: Any, step: Trial, now: Instant, stages: Any) -> Array:
    """In units of what is allowed, from accelerations of states: multipliers of stages are too inaccurate.

    ``start``: (q, u); ``stages``: q_dot and u_dot of them, of the nodes, and of the end.
    """
    of_stages, of_start, _ = weights(method)
    error_q, error_u = (
        dt * (of_start * f0 + jnp.asarray(of_stages) @ f)
        for f0, f in ((now.q_dot, stages.q_dot), (now.u_dot, stages.u_dot))
    )
    ends, plain = (start, (step.q, step.u)), (error_q, error_u)
    # Either is an estimate. Where forces are stiff the plain one is much too large; the other knows nothing
    # of constraints.
    less = jnp.minimum(
        error_norm(control, *ends, plain), error_norm(control, *ends, damped(step.motion, plain))
    )
    return less / relaxed(method, control.rtol)


def growth(method: Any, error: Array, dt, taken: tuple[Array, Array]) -> Array:
    """By what the step size changes; Gustafsson's prediction:
    the error goes on to grow as it did since the step ``taken``.

    (Hairer, Wanner, Solving ODEs II, section IV.8)
    """
    exponent, known = weights(method)[2], jnp.maximum(error, 1e-16)
    factor = SAFETY * known**-exponent
    predicted = SAFETY * dt / taken[0] * (taken[1] / known**2) ** exponent
    return jnp.clip(jnp.where(error <= 1.0, jnp.fmin(factor, predicted), factor), SHRINK, GROW)


def first_length(control: Control, q, u, now: Instant, order: float) -> Array:
    """Hairer, Norsett, Wanner, Solving ODEs I, section II.4, with the derivatives that are at hand."""
    scales = control.atol + control.rtol * jnp.abs(q), control.atol + control.rtol * jnp.abs(u)

    def size(a, b):
        return jnp.sqrt(
            (jnp.sum((a / scales[0]) ** 2) + jnp.sum((b / scales[1]) ** 2)) / (a.shape[0] + b.shape[0])
        )

    x, f = size(q, u), size(now.q_dot, now.u_dot)
    rough = jnp.where((x > 1e-5) & (f > 1e-5), 0.01 * x / f, 1e-6)
    fine = (0.01 / jnp.maximum(f, 1e-15)) ** order
    guess = jnp.minimum(100.0 * rough, jnp.maximum(fine, rough))
    return jnp.where(control.fixed, control.dt, jnp.clip(guess, 1e-9 * control.dt_max, control.dt_max))
