"""S4 Figure 2 with as many disks as the paper has: a thousand,
with contact lists and a certificate of every step.
"""

from typing import Any

import numpy as np

from ..many import disk_mixer
from ..plot import COLORS
from .entries import Sheet, entry

SLIP = "contacts that slip: |P_F| / (mu P_N), smallest"
DT, EVERY = 2e-3, 5


def mixed(sheet: Sheet, mu: float) -> Any:
    """A turn of the drum, judged by Coulomb's law and by the balance of angular momentum."""
    system = disk_mixer(mu=mu)
    drum = system.walls.walls[0]
    sol = system.simulate(t1=2 * np.pi / drum.rate, dt=DT, save_every=EVERY, progress=False)
    sheet.note(
        f"{sol.summary()}. A bed that is sheared has no unique solution; a step says how far it is from one."
    )
    slip = np.concatenate([ratios(sol, k) for k in range(len(sol.t) // 3, len(sol.t), 40)])
    sheet.at_least("contacts looked at that slip", len(slip), 1000, source="the bed is sheared throughout")
    sheet.at_least(SLIP, slip.min() if len(slip) else 0.0, 1.0 - 1e-2, source="Coulomb's law")
    sheet.at_most("|P_F| / (mu P_N), largest", slip.max(initial=0.0), 1.0 + 1e-12, source="Coulomb's law")
    x, v = np.asarray(sol.position), np.asarray(sol.velocity)
    m, theta = system.mass, system.inertia
    L = [
        (m * (x[k, :, 0] * v[k, :, 1] - x[k, :, 1] * v[k, :, 0])).sum() + (theta * sol.spin[k][:, 2]).sum()
        for k in (0, -1)
    ]
    weight = np.trapezoid((m * x[:, :, 0]).sum(1) * -9.81, sol.t)
    torque = sol.stats.wall_moment[:, 0, 2].sum()
    # What the drum gives is -torque: its moment, and that of the weight, change the angular momentum.
    sheet.close(
        "angular impulse of the drum", -torque, L[1] - L[0] - weight, rtol=1e-2, source="balance, from rows"
    )
    sheet.at_most("residual, largest", sol.stats.residual.max(), 3e-2, source="certificate of every step")
    overlap = -system.gaps(x[-1], 0.0)[2].min(initial=0.0)
    falls = "contacts are seen at midpoints: two disks at the fastest speed there was"
    sheet.at_most(
        "largest overlap at the end over dt", overlap / DT, 2 * np.linalg.norm(v, axis=2).max(), source=falls
    )
    return sol


def ratios(sol: Any, row: int) -> np.ndarray:
    """|P_F| / (mu P_N) of contacts between disks that slip faster than 1 cm/s at the end of the step to a
    row.
    """
    c, s = sol.contacts[row], sol.system
    pushes = (c.b < len(s)) & (c.P_N > 1e-6 * c.P_N.max(initial=0.0))
    a, b, n, gap = c.a[pushes], c.b[pushes], c.normal[pushes], c.gap[pushes, None]
    la, lb = s.radius[a, None] + gap / 2, s.radius[b, None] + gap / 2
    v, w = sol.velocity[row], sol.spin[row]
    gamma = v[b] - v[a] - np.cross(la * w[a] + lb * w[b], n)
    slip = np.linalg.norm(gamma - (gamma * n).sum(1)[:, None] * n, axis=1)
    return (np.linalg.norm(c.P_F[pushes], axis=1) / (0.3 * c.P_N[pushes]))[slip > 1e-2]


@entry("S4", "2", "A thousand disks are mixed", quick=False, cost=70)
def thousand_disks(sheet: Sheet) -> None:
    """As many disks as in the paper, for a turn of the drum;
    judged by Coulomb's law and the balance of angular momentum.
    """
    sol = mixed(sheet, 0.3)
    left = np.asarray(sol.position[0])[:, 0] < 0
    axes = sheet.axes(
        1, 4, r"A thousand disks in a turning drum, Moreau's scheme, $\Delta t = 0.002$", size=(13.0, 3.4)
    )[0]
    for axis, row in zip(axes, (0, len(sol.t) // 3, len(sol.t) - 1), strict=False):
        draw(axis, sol, row, left)
    s = sol.stats
    axes[3].semilogy(s.t, np.maximum(s.residual, 1e-16), ".", ms=1.5)
    axes[3].axhline(sol.tolerance, color="k", lw=0.8, ls=":")
    axes[3].set(xlabel="$t$", ylabel="residual", title="certificate", ylim=(1e-8, 1e-1))


def draw(axis: Any, sol: Any, row: int, left: np.ndarray) -> None:
    from matplotlib.collections import EllipseCollection
    from matplotlib.patches import Circle

    drum, d = sol.system.walls.walls[0], 2 * sol.system.radius
    axis.add_patch(Circle((0, 0), drum.size, fill=False, lw=1.5))
    x = np.asarray(sol.position[row])[:, :2]
    colours = np.where(left, COLORS[0], COLORS[1])
    axis.add_collection(
        EllipseCollection(
            d, d, 0 * d, units="xy", offsets=x, offset_transform=axis.transData, facecolors=list(colours)
        )
    )
    size = 1.05 * drum.size
    axis.set(xlim=(-size, size), ylim=(-size, size), aspect="equal", title=f"$t = {sol.t[row]:.2f}$")
    axis.grid(visible=False)


@entry("S4", "2", "Friction of a thousand disks is left out", control=SLIP, quick=False, cost=20)
def thousand_disks_without_friction(sheet: Sheet) -> None:
    """The same with mu = 0, judged as if it were 0.3."""
    mixed(sheet, 0.0)
