"""Butcher tableaus as data, generated from their definitions and checked when built (S3 sections 4.1,
4.4, 5.4).

Nodes are roots of the polynomials (4.38), (4.41) = (5.57); coefficients follow from the simplifying
assumptions

    B(p): sum_i b_i c_i^(k-1) = 1/k,   k = 1..p
    C(r): sum_j a_ij c_j^(k-1) = c_i^k / k,   k = 1..r, all i
    D(r): sum_i b_i c_i^(k-1) a_ij = b_j (1 - c_j^k) / k,   k = 1..r, all j
"""

from dataclasses import dataclass, field
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import Polynomial


@dataclass(frozen=True, eq=False)
class ButcherTableau:
    """c | A over b, with embedded weights where there are any.

    Rows of A sum to c, except in the second tableau of a partitioned pair, which takes the c of the first
    (``paired``).
    """

    name: str
    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    embedded: np.ndarray | None = field(default=None)
    paired: bool = field(default=False)

    def __post_init__(self):
        s = len(self.b)
        if self.A.shape != (s, s) or self.c.shape != (s,):
            raise ValueError(
                f"{self.name}: shapes of A {self.A.shape}, b ({s},) and c {self.c.shape} do not fit"
            )
        if not np.isclose(self.b.sum(), 1.0, atol=1e-12):
            raise ValueError(f"{self.name}: the weights sum to {self.b.sum()}, not to 1")
        sums = self.A.sum(axis=1)
        if not self.paired and not np.allclose(sums, self.c, rtol=0, atol=1e-11):
            raise ValueError(f"{self.name}: the rows of A sum to {sums}, not to c = {self.c}")
        if self.embedded is not None and not np.isclose(self.embedded.sum(), 1.0, atol=1e-12):
            raise ValueError(f"{self.name}: the embedded weights do not sum to 1")

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def stiffly_accurate(self) -> bool:
        """a_sj = b_j, Definition 4.5."""
        return np.allclose(self.A[-1], self.b, atol=1e-13)

    @property
    def diagonally_implicit(self) -> bool:
        return np.allclose(np.triu(self.A, 1), 0.0)

    @property
    def explicit_first_stage(self) -> bool:
        return np.allclose(self.A[0], 0.0)

    def satisfies_B(self, p: int) -> bool:
        return all(np.isclose(self.b @ self.c ** (k - 1), 1 / k, rtol=0, atol=1e-11) for k in range(1, p + 1))

    def satisfies_C(self, r: int) -> bool:
        return all(
            np.allclose(self.A @ self.c ** (k - 1), self.c**k / k, rtol=0, atol=1e-11)
            for k in range(1, r + 1)
        )

    def satisfies_D(self, r: int) -> bool:
        return all(
            np.allclose(
                (self.b * self.c ** (k - 1)) @ self.A, self.b * (1 - self.c**k) / k, rtol=0, atol=1e-11
            )
            for k in range(1, r + 1)
        )

    def stability_function(self, z: complex) -> complex:
        """R(z) of (4.15)."""
        s = self.stages
        return complex(1 + z * self.b @ np.linalg.solve(np.eye(s) - z * self.A, np.ones(s)))

    def stability_at_infinity(self) -> float:
        """lim R(z), from the leading coefficients of (4.16)."""
        # det(1 - zA + z 1 b^T) and det(1 - zA) as polynomials in z
        P, Q = (_determinant(np.outer(np.ones(self.stages), self.b) - self.A), _determinant(-self.A))
        if P.degree() < Q.degree():
            return 0.0
        return P.coef[-1] / Q.coef[-1]

    def is_A_stable(self) -> bool:
        """|R(iy)| <= 1 on the imaginary axis and no pole in the left half-plane."""
        axis = np.concatenate([[0.0], np.logspace(-3, 6, 400)])
        on_axis = max(abs(self.stability_function(1j * y)) for y in axis) <= 1 + 1e-10
        poles = _determinant(-self.A).roots()
        return on_axis and bool(np.all(poles.real > -1e-12))

    def is_L_stable(self) -> bool:
        return self.is_A_stable() and abs(self.stability_at_infinity()) < 1e-10

    def is_B_stable(self) -> bool:
        """The sufficient condition of Proposition 4.8."""
        bA = self.b[:, None] * self.A
        Q = bA + bA.T - np.outer(self.b, self.b)
        return bool(np.all(self.b >= 0) and np.linalg.eigvalsh(Q).min() > -1e-12)


def _determinant(C: np.ndarray) -> Polynomial:
    """det(1 + z C) as a polynomial in z: reversed characteristic polynomial, small leading terms cut."""
    coefficients = np.poly(-C)  # det(x - (-C)) = x^s det(1 + C/x), highest power first
    p = Polynomial(coefficients)  # coefficient of x^(s-k) is that of z^k
    scale = np.abs(p.coef).max()
    return p.trim(tol=1e-12 * scale)


def is_symplectic_pair(first: ButcherTableau, second: ButcherTableau) -> bool:
    """The conditions (5.11) on a partitioned method: b_i â_ij + b^_j a_ji = b_i b^_j, b = b^."""
    b, bh = first.b, second.b
    condition = b[:, None] * second.A + bh[None, :] * first.A.T - np.outer(b, bh)
    return bool(np.allclose(condition, 0.0, atol=1e-12) and np.allclose(b, bh, atol=1e-13))


def _at_least(stages: int, least: int, name: str) -> None:
    if not isinstance(stages, int | np.integer) or isinstance(stages, bool) or stages < least:
        raise ValueError(f"{name}(stages={stages!r}): needs a whole number of stages, at least {least}")


def _nodes(s: int, at_zero: int, at_one: int, derivative: int) -> np.ndarray:
    """Roots of d^derivative/dc^derivative (c^at_zero (c - 1)^at_one), polished by Newton's method."""
    binomial = [comb(at_one, k) * (-1.0) ** (at_one - k) for k in range(at_one + 1)]
    f = (
        Polynomial([0.0] * at_zero + binomial).deriv(derivative)
        if derivative
        else Polynomial([0.0] * at_zero + binomial)
    )
    c = np.sort(f.roots().real)
    for _ in range(3):
        c = c - f(c) / f.deriv()(c)
    c[np.abs(c) < 1e-13] = 0.0
    c[np.abs(c - 1) < 1e-12] = 1.0
    if len(c) != s:
        raise ValueError(f"{len(c)} nodes for {s} stages")
    return c


def _weights(c: np.ndarray) -> np.ndarray:
    """b from B(s)."""
    s = len(c)
    return np.linalg.solve(np.vander(c, s, increasing=True).T, 1 / np.arange(1, s + 1))


def _collocation(c: np.ndarray) -> np.ndarray:
    """A from C(s), (4.39)."""
    s = len(c)
    k = np.arange(1, s + 1)
    return np.linalg.solve(np.vander(c, s, increasing=True).T, (c[:, None] ** k / k).T).T


@cache
def radau_iia(stages: int) -> ButcherTableau:
    """B(2s-1), C(s), D(s-1), c_s = 1; nodes (4.38)."""
    _at_least(stages, 1, "RadauIIA")
    c = _nodes(stages, stages - 1, stages, stages - 1)
    A = _collocation(c)
    return ButcherTableau(f"Radau IIA, s = {stages}", A, A[-1].copy(), c)


@cache
def lobatto_iiia(stages: int) -> ButcherTableau:
    """B(2s-2), C(s); nodes (5.57)."""
    _at_least(stages, 2, "LobattoIIIAB")
    c = _nodes(stages, stages - 1, stages - 1, stages - 2)
    A = _collocation(c)
    return ButcherTableau(f"Lobatto IIIA, s = {stages}", A, A[-1].copy(), c)


@cache
def lobatto_iiib(stages: int) -> ButcherTableau:
    """B(2s-2), D(s); nodes (5.57)."""
    _at_least(stages, 2, "Lobatto IIIB")
    c = _nodes(stages, stages - 1, stages - 1, stages - 2)
    b = _weights(c)
    k = np.arange(1, stages + 1)
    V = np.vander(c, stages, increasing=True).T * b  # V[k, i] = b_i c_i^(k-1)
    A = np.linalg.solve(V, b * (1 - c[None, :] ** k[:, None]) / k[:, None])
    A[:, 0], A[:, -1] = b[0], 0.0  # exact by D(s), (5.20)
    return ButcherTableau(f"Lobatto IIIB, s = {stages}", A, b, c, paired=True)


@cache
def lobatto_iiic(stages: int) -> ButcherTableau:
    """B(2s-2), C(s-1), D(s-1), a_i1 = b_1; nodes (4.41), coefficients (4.42), (4.43)."""
    _at_least(stages, 2, "LobattoIIIC")
    c = _nodes(stages, stages - 1, stages - 1, stages - 2)
    b = _weights(c)
    k = np.arange(1, stages)
    V = np.vander(c, stages - 1, increasing=True).T  # rows k, columns j
    A = np.empty((stages, stages))
    A[:, 0] = b[0]
    A[:, 1:] = np.linalg.solve(V[:, 1:], (c[:, None] ** k / k).T - b[0] * V[:, [0]]).T
    A[-1] = b
    return ButcherTableau(f"Lobatto IIIC, s = {stages}", A, b, c)


@cache
def sdirk2() -> ButcherTableau:
    """Alexander, Table 4.3: alpha the smaller root of alpha^2 - 2 alpha + 1/2."""
    a = 1 - np.sqrt(2) / 2
    A = np.array([[a, 0.0], [1 - a, a]])
    return ButcherTableau("SDIRK2", A, A[-1].copy(), A.sum(axis=1))


@cache
def sdirk3() -> ButcherTableau:
    """Alexander, Table 4.3: beta the root of beta^3 - 3 beta^2 + 3/2 beta - 1/6 in (1/6, 1/2)."""
    roots = Polynomial([-1 / 6, 3 / 2, -3, 1]).roots().real
    (b,) = roots[(roots > 1 / 6) & (roots < 1 / 2)]
    A = np.array([
        [b, 0.0, 0.0],
        [(1 - b) / 2, b, 0.0],
        [-(6 * b**2 - 16 * b + 1) / 4, (6 * b**2 - 20 * b + 5) / 4, b],
    ])  # fmt: skip
    return ButcherTableau("SDIRK3", A, A[-1].copy(), A.sum(axis=1))


@cache
def esdirk(theta: float, name: str) -> ButcherTableau:
    """The family (4.46) of Hosea and Shampine with its embedded third-order weights."""
    t = theta
    b = np.array([(3 * t - t**2 - 1) / (2 * t), (1 - t) / (2 * t), t / 2])
    A = np.array([[0.0, 0.0, 0.0], [t / 2, t / 2, 0.0], b])
    embedded = np.array([(3 * t - 1) / (6 * t), 1 / (6 * t * (1 - t)), (2 - 3 * t) / (6 * (1 - t))])
    return ButcherTableau(name, A, b, np.array([0.0, t, 1.0]), embedded)


def tr_bdf2() -> ButcherTableau:
    """theta = 2 - sqrt 2: the L-stable member."""
    return esdirk(2 - np.sqrt(2), "TR-BDF2")


def trx2() -> ButcherTableau:
    """theta = 1/2: two steps of the trapezoidal rule, (4.48)."""
    return esdirk(0.5, "TRX2")


def tr_theta(rho_inf: float) -> ButcherTableau:
    """R(infinity) = rho_inf, (4.55) with the smaller root."""
    if not 0.0 <= rho_inf <= 1.0:
        raise ValueError(f"TRTheta(rho_inf={rho_inf!r}): rho_inf must be between 0 and 1")
    if rho_inf == 1.0:
        return trx2()
    return esdirk((2 - np.sqrt(2 * (1 + rho_inf))) / (1 - rho_inf), f"TR-theta({rho_inf:g})")


def im_bdf2(gamma: float = 2 - np.sqrt(2)) -> ButcherTableau:
    """Implicit midpoint over gamma h, then BDF2 over t, t + gamma h, t + h: end of section 4.4 of S3.

    With gamma = 2 - sqrt 2 both stages have one coefficient, and this is Alexander's SDIRK2.
    """
    if not 0.0 < gamma < 1.0:
        raise ValueError(f"im_bdf2(gamma={gamma!r}): gamma must be between 0 and 1")
    # x_1 = x_g/(g (2-g)) - (1-g)^2/(g (2-g)) x_0 + (1-g)/(2-g) h f_1, x_g = x_0 + g h f_g/2
    A = np.array([[gamma / 2, 0.0], [1 / (2 - gamma), (1 - gamma) / (2 - gamma)]])
    return ButcherTableau("IM-BDF2", A, A[-1].copy(), A.sum(axis=1))


def composite_bdf(nodes: tuple[float, ...]) -> ButcherTableau:
    """Implicit midpoint to the first of the ``nodes``, then BDF2, BDF3, ... over all points so far, to 1.

    Order 2.
    """
    t = np.asarray(nodes, dtype=float)
    if len(t) < 2 or t[-1] != 1.0 or t[0] <= 0.0 or np.any(np.diff(t) <= 0.0):
        raise ValueError(
            f"composite_bdf(nodes={nodes!r}): nodes must increase from above 0 to 1, at least two"
        )
    s = len(t)
    A = np.zeros((s, s))  # of the slopes f at the midpoint and at the later nodes
    A[0, 0] = t[0] / 2
    reached = np.zeros((s + 1, s))  # x at 0 and at the nodes, as x_0 + h (...) f
    reached[1, 0] = t[0]
    for k in range(1, s):
        points = np.concatenate([[0.0], t[: k + 1]])
        # derivative at the last point of the polynomial through all of them
        others = [np.delete(points, j) for j in range(k + 2)]
        rates = [Polynomial.fromroots(x).deriv()(points[-1]) for x in others]
        weights = np.array([r / np.prod(p - x) for p, x, r in zip(points, others, rates, strict=True)])
        A[k] = -weights[:-1] @ reached[: k + 1] / weights[-1]
        A[k, k] = 1.0 / weights[-1]
        reached[k + 1] = A[k]
    return ButcherTableau(f"composite BDF{s}", A, A[-1].copy(), A.sum(axis=1))


@cache
def half_explicit(stages: int) -> ButcherTableau:
    """Explicit tableaus with what index 3 asks of them, see `methods.half_explicit`:
    those of Heun and of England.
    """
    if stages == 2:
        return ButcherTableau(
            "Heun", np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0.5, 0.5]), np.array([0.0, 1.0])
        )
    if stages == 4:
        A = np.zeros((4, 4))
        A[1, 0], A[2, :2], A[3, 1:3] = 1 / 2, 1 / 4, (-1.0, 2.0)
        return ButcherTableau("England", A, np.array([1, 0, 4, 1]) / 6, np.array([0.0, 0.5, 0.5, 1.0]))
    raise ValueError(f"HalfExplicit(stages={stages!r}): stages must be 2 or 4")


def is_P_matrix(M: np.ndarray, strictly: bool = True) -> bool:
    """All principal minors positive (P), or non-negative (P_0)."""
    n = len(M)
    scale = max(np.abs(M).max(), 1e-300)
    for subset in range(1, 2**n):
        index = [i for i in range(n) if subset >> i & 1]
        minor = np.linalg.det(M[np.ix_(index, index)] / scale)
        if minor < -1e-12 or (strictly and minor < 1e-12):
            return False
    return True
