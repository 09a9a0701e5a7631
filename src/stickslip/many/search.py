"""Which bodies touch: a cell grid, compiled by numba.

Cells are as wide as the largest body and a margin, so that partners lie in neighbouring cells; they are
walked through in order of space, and so contacts come in an order of space, which a sweep likes. Work grows
linearly with bodies of like size; with one body a hundred times as large as the others it is that of far too
large cells.

A contact is in the list if its gap is closed,  g_N(q_m) <= 0  but for round-off, or if it was at rest and has
opened by no more than a gap rate of zero allows (``limit``): what rests keeps its gap but for round-off,
whose sign must not decide.
"""

import math

import numpy as np

from .compiled import compiled

PLANE = 0  # the kind of a wall that is a plane; others are drums


@compiled()
def cells(x, width):
    """Number of cells along each axis, their width and origin:
    no more than a few per body, however far bodies fly apart.
    """
    low, high = np.empty(3), np.empty(3)
    for d in range(3):
        low[d], high[d] = x[:, d].min(), x[:, d].max()
    while True:
        shape = np.floor((high - low) / width) + 1.0
        if shape[0] * shape[1] * shape[2] <= 8.0 * len(x) + 64.0:
            return shape.astype(np.int64), width, low
        width *= 1.25


@compiled()
def by_cell(x, shape, width, low):
    """Bodies in the order of their cells: cell c has order[start[c]:start[c + 1]]."""
    n, cell = len(x), np.empty(len(x), np.int64)
    start = np.zeros(shape[0] * shape[1] * shape[2] + 1, np.int64)
    for i in range(n):
        cell[i] = 0
        for d in range(3):
            k = min(int((x[i, d] - low[d]) / width), shape[d] - 1)
            cell[i] = cell[i] * shape[d] + k
        start[cell[i] + 1] += 1
    return cell, _filled(cell, start)


@compiled()
def _filled(cell, start):
    """Counting sort: turns counts into beginnings, in place; bodies of a cell stay in their order."""
    for c in range(len(start) - 1):
        start[c + 1] += start[c]
    at, order = start[:-1].copy(), np.empty(len(cell), np.int64)
    for i in range(len(cell)):
        order[at[cell[i]]] = i
        at[cell[i]] += 1
    return order, start


@compiled()
def index_by_first(a, count, bodies):
    """Contacts of a list by their first body: body i has order[start[i]:start[i + 1]]."""
    start = np.zeros(bodies + 1, np.int64)
    for k in range(count):
        start[a[k] + 1] += 1
    return _filled(a[:count].astype(np.int64), start)


@compiled()
def _found(i, j, before_b, before_order, before_start):
    """Where the contact of i and j was in the list before, or -1."""
    for s in range(before_start[i], before_start[i + 1]):
        if before_b[before_order[s]] == j:
            return before_order[s]
    return -1


@compiled()
def _wall_gap(x, r, kind, place, direction, size, n):
    """Gap of a ball and a wall; n points from the ball into the wall."""
    if kind == PLANE:
        h = 0.0
        for d in range(3):
            h += (x[d] - place[d]) * direction[d]
            n[d] = -direction[d]
        return h - r
    along = 0.0
    for d in range(3):
        along += (x[d] - place[d]) * direction[d]
    rho = 0.0
    for d in range(3):
        n[d] = x[d] - place[d] - along * direction[d]
        rho += n[d] * n[d]
    rho = math.sqrt(rho)
    for d in range(3):
        n[d] = n[d] / rho if rho > 0.0 else 0.0
    return size - rho - r


@compiled()
def _ball_gap(i, j, x, r, n):
    """Gap of two balls; n points from i to j."""
    distance = 0.0
    for d in range(3):
        n[d] = x[j, d] - x[i, d]
        distance += n[d] * n[d]
    distance = math.sqrt(distance)
    for d in range(3):
        n[d] = n[d] / distance if distance > 0.0 else 0.0
    return distance - r[i] - r[j]


@compiled()
def gap_of(i, j, x, r, walls, n):
    """Gap of a ball and another one, or a wall (j from the number of bodies on); n points from i to j."""
    if j < len(x):
        return _ball_gap(i, j, x, r, n)
    kinds, places, directions, sizes = walls
    w = j - len(x)
    return _wall_gap(x[i], r[i], kinds[w], places[w], directions[w], sizes[w], n)


@compiled()
def _partners(i, x, r, margin, grid, out):
    """Bodies j > i in order of space whose gap to i is below the margin."""
    shape, cell, order, start = grid
    c, count = cell[i], 0
    home = (c // (shape[1] * shape[2]), (c // shape[2]) % shape[1], c % shape[2])
    for p in range(max(home[0] - 1, 0), min(home[0] + 2, shape[0])):
        for q in range(max(home[1] - 1, 0), min(home[1] + 2, shape[1])):
            row = (p * shape[1] + q) * shape[2]
            first, last = row + max(home[2] - 1, 0), row + min(home[2] + 1, shape[2] - 1)
            for s in range(start[first], start[last + 1]):
                j = order[s]
                reach = r[i] + r[j] + margin
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                if j > i and dx * dx + dy * dy + dz * dz < reach * reach:
                    out[count] = j
                    count += 1
    return count


@compiled()
def touching(x, r, walls, margin, closed, before, a, b, n, gap, source):
    """Fills the list with closed contacts and says how many there are:
    more than fit if the list is too short.

    ``closed``: gap up to which any contact counts as such;
    ``source``: where a contact was in the list before, or -1.
    """
    kinds, places, directions, sizes = walls
    before_b, limit, before_order, before_start = before
    shape, width, low = cells(x, 2.0 * r.max() + margin)
    cell, (order, start) = by_cell(x, shape, width, low)
    grid = (shape, cell, order, start)
    near, m, count, bodies = np.empty(len(x), np.int64), np.empty(3), 0, len(x)
    for i in order:
        found = _partners(i, x, r, margin, grid, near)
        for s in range(found + len(kinds)):
            j = near[s] if s < found else bodies + s - found
            if s < found:
                g = _ball_gap(i, j, x, r, m)
                size = g + r[i] + r[j]
            else:
                w = s - found
                g = _wall_gap(x[i], r[i], kinds[w], places[w], directions[w], sizes[w], m)
                size = r[i] + sizes[w]
            for d in range(3):
                size = max(size, abs(x[i, d]))
            if g > margin:
                continue
            k = _found(i, j, before_b, before_order, before_start)
            if g > closed + 8.0 * np.finfo(np.float64).eps * size and not (k >= 0 and g <= limit[k]):
                continue
            if count < len(a):
                a[count], b[count], gap[count], source[count] = i, j, g, k
                for d in range(3):
                    n[count, d] = m[d]
            count += 1
    return count
