"""Draws the reservoirs of docs/friction.md from the laws themselves: `python docs/pictures/reservoirs.py`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import stickslip as ss
from stickslip.stacked import StackedLaws

mpl.use("Agg")
import matplotlib.pyplot as plt

BLUE, RED, GREY = "#1f4e79", "#c55a11", "#8a8a8a"


def force(law, gamma):
    """The percussion of a slipping law for P_N = 1, in physical units:
    (3.26) with (3.31), as the library computes it.
    """
    owner = law if isinstance(law, ss.FrictionElement) else ss.Contact(friction=law)
    laws = StackedLaws.of((owner,))
    radius = laws.radii(jnp.ones(laws.n_N), 1.0)
    one = jax.vmap(lambda g: -laws.scale * laws.set.expand(radius) * laws.set.direction(laws.scale * g))
    return np.asarray(one(jnp.atleast_2d(gamma)))


def plane(ax, law, title, labels=("$-P_{F1}$", "$-P_{F2}$"), outline=None, arrows=12):
    angle = np.linspace(0.0, 2 * np.pi, 721)
    edge = -force(law, np.stack([np.cos(angle), np.sin(angle)], axis=1))
    outline = edge if outline is None else outline
    ax.fill(*outline.T, color=BLUE, alpha=0.12)
    ax.plot(*outline.T, color=BLUE, lw=1.4)
    size = 1.25 * np.abs(outline).max()
    for a in np.linspace(0.2, 0.2 + 2 * np.pi, arrows, endpoint=False):
        gamma = np.array([np.cos(a), np.sin(a)])
        foot = -force(law, gamma)[0]
        ax.annotate(
            "", foot + 0.28 * size * gamma, foot, arrowprops={"arrowstyle": "->", "color": RED, "lw": 1.0}
        )
    ax.set(
        title=title,
        xlabel=labels[0],
        ylabel=labels[1],
        xlim=(-1.45 * size, 1.45 * size),
        ylim=(-1.45 * size, 1.45 * size),
    )
    ax.set_aspect("equal")


def rectangle(a, b):
    return np.array([[-a, -b], [a, -b], [a, b], [-a, b], [-a, -b]])


def main() -> None:
    plt.rcParams.update(
        {"axes.grid": True, "grid.alpha": 0.25, "font.size": 8, "axes.titlesize": 9, "figure.dpi": 130}
    )
    figure, axes = plt.subplots(2, 4, figsize=(12.0, 6.2), layout="constrained")
    top, bottom = axes
    plane(top[0], ss.Coulomb(0.3, dim=2), "Coulomb(0.3, dim=2)")
    plane(top[1], ss.Coulomb(0.3, dim=2, axes=(0.5, 1.0)), "Coulomb(0.3, dim=2, axes=(0.5, 1))")
    box = rectangle(0.15, 0.3)
    plane(
        top[2],
        ss.RectangularCoulomb(0.3, (0.5, 1.0)),
        "RectangularCoulomb(0.3, (0.5, 1))",
        outline=box,
        arrows=4,
    )
    torque = ("$-$torque about $t_1$", "$-$torque about $t_2$")
    plane(top[3], ss.Rolling(0.02, dim=2), "Rolling(0.02, dim=2)", torque, rectangle(0.02, 0.02), arrows=4)

    angle = np.linspace(0.0, 2 * np.pi, 361)
    law = ss.CoulombContensou(0.3, radius=0.05)
    section = np.stack([np.cos(angle), 0 * angle, np.sin(angle) / 0.03], axis=1)
    edge = -force(law, section)[:, [0, 2]]
    bottom[0].fill(*edge.T, color=BLUE, alpha=0.12)
    bottom[0].plot(*edge.T, color=BLUE, lw=1.4)
    # in units of its axes the ellipse is a circle, and the velocity normal to it
    for k in range(15, 361, 30):
        bottom[0].annotate(
            "", 1.25 * edge[k], edge[k], arrowprops={"arrowstyle": "->", "color": RED, "lw": 1.0}
        )
    bottom[0].set(
        title="CoulombContensou(0.3, radius=0.05)",
        xlabel="$-P_{F1}$",
        ylabel="$-$torque about $n$",
        xlim=(-0.42, 0.42),
        ylim=(-0.0124, 0.0124),
    )

    v = np.linspace(-1.0, 1.0, 401)
    for ax, law, title, what in (
        (bottom[1], ss.Pivoting(0.02), "Pivoting(0.02)", "torque about $n$"),
        (bottom[2], ss.FrictionElement(2.0), "FrictionElement(2.0)", "force (no contact needed)"),
    ):
        P = force(law, v[:, None])[:, 0].copy()
        P[np.abs(v) < 1e-12] = np.nan
        ax.plot(v, P, color=BLUE, lw=1.4)
        ax.plot([0, 0], [np.nanmin(P), np.nanmax(P)], color=BLUE, lw=1.4)
        ax.set(title=title, xlabel="friction velocity", ylabel=what)
    slip = np.where(v == 0.0, np.nan, -0.5 * np.sign(v))
    smooth = np.asarray(ss.stribeck(v, 0.5, 0.3, 3.0))
    ax = bottom[3]
    ax.plot(v, slip, color=GREY, lw=1.0, label="set-valued part, Coulomb($\\mu_s$)")
    ax.plot(v, smooth, color=GREY, lw=1.0, ls="--", label="stribeck(...), in h")
    ax.plot(v, slip + smooth, color=BLUE, lw=1.6, label="sum")
    ax.plot([0, 0], [-0.5, 0.5], color=BLUE, lw=1.6)
    ax.set(title="Stribeck curve", xlabel="friction velocity", ylabel="force for $P_N = 1$")
    ax.legend(fontsize=6.5, loc="upper right")
    figure.suptitle(
        "Reservoirs for $P_N = 1$ (blue) and, at the percussion it causes, the friction velocity (orange)",
        fontsize=10,
    )
    figure.savefig(Path(__file__).with_name("reservoirs.png"))


if __name__ == "__main__":
    main()
