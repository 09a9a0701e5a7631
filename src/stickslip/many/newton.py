"""Newton's method on the natural map of a contact problem with its matrix: some hundred contacts,
or problems of others.

    gamma = G y + c
    F_N = G_N (y_N - max(0, y_N - gamma_N / G_N)),    F_T = G_T (y_T - prox_C(y_N)(y_T - gamma_T / G_T))

with the ball C of radius mu y_N: zero exactly where y obeys the law, and in velocities. F has a generalised
derivative A + B G with small blocks A and B, whose sparse factors give a step; it is halved until |F| falls.
Redundant contacts make G singular: the derivative has G with a diagonal larger by ``SHIFT``, which changes
how fast it converges and not where to.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

SHIFT = 1e-9
SHORTEST = 2.0**-5  # part of a step; where only shorter ones descend, hardly any problem is solved in the end


class Balls(NamedTuple):
    """Friction in balls of one dimension d: its rows in y, the rows of the normals,
    and radii over normal percussions.
    """

    rows: np.ndarray  # (balls, d)
    normals: np.ndarray  # (balls)
    mu: np.ndarray  # (balls)


class Explicit:
    """A contact problem with its matrix G = W^T M^-1 W; ``normals`` are rows of y,
    friction is in ``balls``.
    """

    def __init__(self, G: Any, c: np.ndarray, normals: np.ndarray, balls: list[Balls]):
        self.G, self.c, self.normals, self.balls = sp.csr_matrix(G), np.asarray(c, float), normals, balls
        # One prox parameter for a ball: the mean of its diagonal.
        self.rho = 1.0 / self.G.diagonal()
        for b in balls:
            self.rho[b.rows] = self.rho[b.rows].mean(axis=1, keepdims=True)
        self.shifted = self.G + sp.diags(SHIFT * self.G.diagonal())

    def settle(
        self, y: np.ndarray, target: float, sweeps: int = 2000, every: int = 50
    ) -> tuple[np.ndarray, float, int, int]:
        """Sweeps from y on, and Newton's method between them: the best y, |F| there,
        sweeps, Newton's steps.
        """
        from .explicit_sweeps import swept

        steps, done = 0, 0
        best, norm = y, float(np.linalg.norm(self.natural_map(y)))
        coulomb = self.balls[0]
        while norm > target and done < sweeps:
            y = swept(self.G.indptr, self.G.indices, self.G.data, self.c, self.rho, coulomb.mu, y, every)
            done += every
            for trial in (
                lambda y=y: (y, float(np.linalg.norm(self.natural_map(y))), 0),
                lambda y=y: self.solve(y, target),
            ):
                found, size, more = trial()
                steps += more
                if size < norm:
                    best, norm = found, size
                if norm <= target:
                    break
        return best, norm, done, steps

    def natural_map(self, y: np.ndarray) -> np.ndarray:
        """F at y, in velocities."""
        F, z = np.empty_like(y), y - self.rho * (self.G @ y + self.c)
        n = self.normals
        F[n] = y[n] - np.maximum(z[n], 0.0)
        for b in self.balls:
            F[b.rows] = y[b.rows] - _ball(z[b.rows], b.mu * np.maximum(y[b.normals], 0.0))[0]
        return F / self.rho

    def derivative(self, y: np.ndarray) -> Any:
        """A + B G, one of the generalised derivatives of F."""
        z, n, size = y - self.rho * (self.G @ y + self.c), self.normals, len(y)
        closed = (z[n] > 0.0).astype(float)
        # F rho = y - prox(z): A has  I - dprox/dz - dprox/dy_N,  B has  rho dprox/dz  row by row.
        A, B = [(n, n, (1.0 - closed) / self.rho[n])], [(n, n, closed)]
        for b in self.balls:
            d = b.rows.shape[1]
            _, by_z, by_radius = _ball(z[b.rows], b.mu * np.maximum(y[b.normals], 0.0))
            rho = self.rho[b.rows[:, 0]]
            row, column = np.repeat(b.rows, d, axis=1), np.tile(b.rows, (1, d))
            A.append((row, column, (np.eye(d) - by_z) / rho[:, None, None]))
            A.append((b.rows, np.repeat(b.normals[:, None], d, axis=1), -by_radius * (b.mu / rho)[:, None]))
            B.append((row, column, by_z))
        return _sparse(A, size) + _sparse(B, size) @ self.shifted

    def solve(self, y: np.ndarray, target: float, max_iterations: int = 40) -> tuple[np.ndarray, float, int]:
        """From y on: the best y, |F| there, iterations."""
        F = self.natural_map(y)
        norm = float(np.linalg.norm(F))
        for k in range(max_iterations):
            if norm <= target:
                return y, norm, k
            try:
                step = splu(sp.csc_matrix(self.derivative(y))).solve(-F)
            except RuntimeError:  # singular
                return y, norm, k
            length = 1.0
            while length >= SHORTEST:
                trial = y + length * step
                F_trial = self.natural_map(trial)
                trial_norm = float(np.linalg.norm(F_trial))
                if trial_norm < (1.0 - 1e-4 * length) * norm:
                    break
                length /= 2.0
            else:
                return y, norm, k
            y, F, norm = trial, F_trial, trial_norm
        return y, norm, max_iterations


def _ball(z: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """prox of rows z onto balls, its derivatives by z and by the radius."""
    size = np.linalg.norm(z, axis=1)
    slips = size > radius
    d, safe = z.shape[1], np.where(size > 0.0, size, 1.0)
    along = z / safe[:, None]
    scale = np.where(slips, radius / safe, 1.0)
    by_z = np.where(
        slips[:, None, None],
        scale[:, None, None] * (np.eye(d) - along[:, :, None] * along[:, None, :]),
        np.eye(d),
    )
    return scale[:, None] * z, by_z, np.where(slips[:, None], along, 0.0)


def _sparse(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], size: int) -> Any:
    row, column, value = (np.concatenate([np.ravel(part[k]) for part in parts]) for k in range(3))
    return sp.csr_matrix((value, (row, column)), shape=(size, size))


class Framed(NamedTuple):
    """A list of contacts of balls as an explicit problem, with the frames that its rows are in."""

    problem: Explicit
    frames: np.ndarray  # (contacts, 3, 3): normal and two tangents
    turns: bool

    def rows_of(self, X: np.ndarray) -> np.ndarray:
        """y of percussions (and torques below them)."""
        frames = np.concatenate([self.frames, self.frames]) if self.turns else self.frames
        return np.einsum("kij,kj->ki", frames, X).ravel()

    def vectors_of(self, y: np.ndarray) -> np.ndarray:
        frames = np.concatenate([self.frames, self.frames]) if self.turns else self.frames
        return np.einsum("kij,ki->kj", frames, y.reshape(-1, 3))


def framed(contacts: tuple[Any, ...], u_free: np.ndarray) -> Framed:
    """G and c of a list of contacts of balls (see `sweeps`)."""
    a, b, n, la, lb, chi, mu, _, _, mu_roll, mu_pivot, _, turns = contacts
    C, bodies = len(a), len(u_free)
    helper = np.eye(3)[np.abs(n).argmin(axis=1)]
    t = np.cross(n, helper)
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    frames = np.stack([n, t, np.cross(n, t)], axis=1)
    lever = np.cross(n[:, None], frames)  # n x d of every direction d
    parts = []
    rows = np.repeat(np.arange(3 * C).reshape(C, 3, 1), 3, axis=2)
    for body, sign, arm in ((a, -1.0, la), (b, 1.0, lb)):
        column = 6 * body[:, None, None] + np.arange(3) + 0 * rows
        parts += [(rows, column, sign * frames), (rows, column + 3, -arm[:, None, None] * lever)]
        if turns:
            parts.append((rows + 3 * C, column + 3, sign * frames))
    size = 3 * C * (2 if turns else 1)
    row, column, value = (np.concatenate([p[k].ravel() for p in parts]) for k in range(3))
    Wt = sp.csr_matrix((value, (row, column)), shape=(size, 6 * bodies))
    inverse = np.repeat(u_free[:, 6:8], 3, axis=1).ravel()
    c = Wt @ u_free[:, :6].ravel()
    c[: 3 * C] += np.einsum("kij,kj->ki", frames, chi).ravel()
    normals, across = 3 * np.arange(C), 3 * np.arange(C)[:, None] + np.array([1, 2])
    balls = [Balls(across, normals, mu)]
    if turns:
        balls += [Balls(across + 3 * C, normals, mu_roll), Balls(normals[:, None] + 3 * C, normals, mu_pivot)]
    return Framed(Explicit(Wt @ sp.diags(inverse) @ Wt.T, c, normals, balls), frames, turns)
