"""Thousands of balls: what every figure asks, what comes out, and whether it is met.

    .venv/bin/python benchmarks/spheres.py [settle] [column] [gas] [bed] [scaling] [fclib] [mixer] [methods]
    [resume]
                                           [--fclib FOLDER] [--steps N] [--turn PART]

settle   1000 balls settle in a box, beside MuJoCo's CG on the same scene in the same run; two minutes
column   20 and 200 balls on top of each other: percussions are (N - i) m g dt
gas      2000 balls that collide in free space: momenta, energy
bed      2000 balls settled, for two seeds: weight on floor and walls, packing fraction
scaling  cost of a step at a fixed number of sweeps, 1000 to 50,000 balls
fclib    contact problems of others (--fclib FOLDER, or the environment variable FCLIB)
mixer    1000 disks for a turn of a drum, at dt and dt/2, and without friction
gpu      100,000 and 1,000,000 balls on the device of JAX; only when asked for
methods  RATTLE and linearised gaps beside Moreau's rule: overlaps, orders, balances, time; three minutes
resume   a run killed at a random moment and resumed, two runs with the same seed

Exit code 1 if one is missed. Loops are compiled before the clock runs. Times depend on who else uses the
machine: they are compared within one run, a block of steps of each in turn.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import stickslip as ss
from stickslip.many import (
    AndersonJacobi,
    AndersonSOR,
    Balls,
    Drum,
    LinearisedGaps,
    ManyBodies,
    Moreau,
    Plane,
    Rattle,
    box,
    disk_mixer,
    load,
    resume,
)
from stickslip.many.newton import Balls as FrictionBalls
from stickslip.many.newton import Explicit
from stickslip.many.run import stepper

G, DT, R = 9.81, 5e-3, 0.05
FRICTION = ss.Contact(friction=ss.Coulomb(0.5, dim=2))
missed = 0


def judge(what, value, asked, ok):
    """One line: the figure, what is asked, met or missed."""
    global missed  # noqa: PLW0603
    missed += not ok
    print(f"  {what:<66} {value:>12}   asked {asked:<16} {'met' if ok else 'MISSED'}", flush=True)


def at_most(what, value, bound):
    judge(what, f"{value:.3g}", f"<= {bound:g}", value <= bound)


def at_least(what, value, bound):
    judge(what, f"{value:.3g}", f">= {bound:g}", value >= bound)


# -- settling
# ----------------------------------------------------------------------------------------------------


def pile(n, seed=0, across=10):
    """Balls of 10 % different radii, loosely above the floor of a box, and the size of the box."""
    rng = np.random.default_rng(seed)
    k, pitch = np.arange(n), 2.3 * R
    x = np.stack(
        [(k % across + 0.5) * pitch, (k // across % across + 0.5) * pitch, (k // across**2 + 0.5) * 3 * R],
        axis=1,
    )
    x += rng.uniform(-1, 1, x.shape) * np.array([0.04, 0.04, 0.3]) * R
    side, high = across * pitch, 1.2 * x[:, 2].max() + 1.0
    balls = Balls(x, R * rng.uniform(0.9, 1.1, n), density=2500.0)
    return ManyBodies(balls, box((0, 0, 0), (side, side, high)), law=FRICTION)


def measured(step, state, count, damping=1.0):
    """Per step: ms, residual, contacts, kinetic energy, largest speed; the last state."""
    out, n = [], len(state.x)
    for _ in range(count):
        began = time.perf_counter()
        state, outcome = step(state, state.step * DT, DT, 1e-6)
        spent = 1e3 * (time.perf_counter() - began)
        v2 = (state.rows[:n, :3] ** 2).sum(1)
        out.append(
            (spent, outcome.residual, outcome.contacts, (v2 / state.rows[:n, 6]).sum(), np.sqrt(v2.max()))
        )
        state.rows[:n, :6] *= damping
    return np.array(out), state


class MuJoCo:
    """The same balls, box and step with MuJoCo's CG."""

    def __init__(self, system):
        import mujoco

        start = system.start()
        text = lambda numbers: " ".join(map(str, numbers))
        walls = "".join(
            f'<geom type="plane" size="0 0 1" pos="{text(w.point)}" zaxis="{text(w.normal)}"/>'
            for w in system.walls.walls
        )
        balls = "".join(
            f'<body pos="{text(x)}"><freejoint/><geom type="sphere" size="{r}" density="2500"/></body>'
            for x, r in zip(start.x, system.radius, strict=True)
        )
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{DT}" solver="CG" cone="elliptic" gravity="0 0 {-G}"/><size '
            'memory="1G"/>'
            '<default><geom condim="3" friction="0.5 0 '
            f'0"/></default><worldbody>{walls}{balls}</worldbody></mujoco>'
        )
        self.data, self.step, o = mujoco.MjData(self.model), mujoco.mj_step, self.model.opt
        self.options = (
            f"MuJoCo {mujoco.__version__}: CG, elliptic cones, condim 3, at most {o.iterations} iterations, "
            "tolerance"
            f" {o.tolerance:g}, ls_iterations {o.ls_iterations}, noslip {o.noslip_iterations}, default "
            "solref and solimp,"
            " semi-implicit Euler"
        )

    def measured(self, count, damping=1.0):
        """ms of each step."""
        spent = []
        for _ in range(count):
            began = time.perf_counter()
            self.step(self.model, self.data)
            spent.append(1e3 * (time.perf_counter() - began))
            self.data.qvel *= damping
        return np.array(spent)

    @property
    def fastest(self):
        return np.linalg.norm(self.data.qvel.reshape(-1, 6)[:, :3], axis=1).max()


def beside(step, state, other, steps, block=20):
    """Both, a block of steps each in turn, so that whoever else uses the machine disturbs both:
    ours, MuJoCo's ms, state.
    """
    own, theirs = [], []
    for first in range(0, steps, block):
        count = min(block, steps - first)
        theirs.append(other.measured(count))
        rows, state = measured(step, state, count)
        own.append(rows)
    return np.concatenate(own), np.concatenate(theirs), state


def settle(options):
    system, steps = pile(1000), options.steps
    step, state, other = stepper(system, AndersonSOR()), system.start(), MuJoCo(system)
    step(state, 0.0, DT, 1e-6)
    print(f"  {other.options}")
    own, theirs, state = beside(step, state, other, steps)
    ms, residual, contacts, kinetic, fastest = own.T
    print(
        f"  after {steps} steps: {contacts[-1]:.0f} contacts, MuJoCo {other.data.ncon}; largest speed",
        end=" ",
    )
    print(
        f"{fastest[-1]:.1e} m/s, MuJoCo {other.fastest:.1e}: without rolling friction some balls roll to and "
        "fro for ever"
    )
    # Impact: until half of the largest kinetic energy is gone.
    number = np.arange(steps)
    half = int(np.argmax((number > kinetic.argmax()) & (kinetic < 0.5 * kinetic.max())))
    impact, jamming = (number < half) & (contacts > 0), number >= half
    for name, part in (("impact", impact), ("jamming and after", jamming)):
        r = residual[part]
        print(
            f"  {name}: {part.sum()} steps, ours {ms[part].mean():.2f} ms, MuJoCo {theirs[part].mean():.2f} "
            "ms; ",
            end="",
        )
        print(
            f"residual median {np.median(r):.1e}, largest {r.max():.1e}, <= 1e-6 in "
            f"{100 * (r <= 1e-6).mean():.0f} %"
        )
    for count in (400, steps):
        at_most(
            f"{count} steps: mean time of a step over MuJoCo's",
            ms[:count].mean() / theirs[:count].mean(),
            1.0,
        )
    at_least("impact: share of steps with a residual <= 1e-6", (residual[impact] <= 1e-6).mean(), 0.8)
    at_most("jamming, to step 400: median residual", np.median(residual[half:400]), 1e-2)
    at_most("jamming and after: largest residual", residual[half:].max(), 3e-2)
    # Rest, for both: velocities are damped by a tenth in each step, then left alone. Some balls lie in
    # shallow troughs.
    other.measured(1000, 0.9)
    damped = 0
    while damped < 6000 and (own[-1, 4] > 1e-5 or not damped):
        own, state = measured(step, state, 500, 0.9)
        damped += 500
    own, theirs, _ = beside(step, state, other, 200)
    ms, residual, _, _, fastest = own.T
    print(
        f"  rest, 200 steps after {damped} damped ones: ours {ms.mean():.2f} ms, MuJoCo {theirs.mean():.2f} "
        "ms"
    )
    at_most("rest: largest speed, in m/s", fastest.max(), 1e-4)
    at_most("rest: mean time of a step over MuJoCo's", ms.mean() / theirs.mean(), 0.45)
    at_most("rest: largest residual", residual.max(), 1e-6)


# -- closed forms and balances
# ----------------------------------------------------------------------------------------------------


def column(options):
    for n in (20, 200):
        z = R * (2.0 * np.arange(n) + 1.0)
        balls = Balls(np.stack([0 * z, 0 * z, z], axis=1), R)
        system = ManyBodies(balls, [Plane((0, 0, 0), (0, 0, 1))], law=FRICTION)
        sol = system.simulate(t1=20 * DT, dt=DT, tolerance=1e-11)
        worst = 0.0
        for k in range(1, len(sol.t)):
            c = sol.contacts[k]
            carried = np.where(c.b == n, n, n - 1 - c.a)
            worst = max(worst, np.abs(c.P_N / (carried * system.mass[0] * G * DT) - 1.0).max())
        at_most(f"{n} balls, 20 steps: largest relative error of a percussion", worst, 1e-6)
        at_most(f"{n} balls: steps that were not solved to 1e-11", sol.stats.accepted.sum(), 0)


def gas(options):
    rng, n = np.random.default_rng(0), 2000
    cells = np.stack(np.meshgrid(*[np.arange(13)] * 3), axis=-1).reshape(-1, 3)[:n] - 6.0
    x = 0.13 * cells
    v = -1.5 * x + 0.2 * rng.standard_normal(x.shape)
    balls = Balls(x, rng.uniform(0.045, 0.055, n), velocity=v, spin=2.0 * rng.standard_normal(x.shape))
    for name, law in (("e_N = 0, mu = 0.5", FRICTION), ("e_N = 0.7, mu = 0", ss.Contact(e_N=0.7))):
        system = ManyBodies(balls, law=law, gravity=(0, 0, 0))
        sol = system.simulate(t1=1.0, dt=DT, tolerance=1e-10)
        print(f"  {name}: {sol.summary()}; {sol.stats.contacts.sum()} contacts in all")
        m, theta = system.mass[:, None], system.inertia[:, None]
        p = [(m * sol.velocity[k]).sum(0) for k in (0, -1)]
        L = [(np.cross(sol.position[k], m * sol.velocity[k]) + theta * sol.spin[k]).sum(0) for k in (0, -1)]
        size, arm = (m * np.abs(sol.velocity[0])).sum(), np.abs(sol.position[0]).max()
        at_most("change of momentum over sum of |m v|", np.abs(p[1] - p[0]).max() / size, 1e-9)
        at_most(
            "change of angular momentum over sum of |m v| times the radius",
            np.abs(L[1] - L[0]).max() / (size * arm),
            1e-9,
        )
        energy = sol.energy()
        at_most("largest rise of energy in a step over the energy", np.diff(energy).max() / energy[0], 1e-12)
        at_least("energy lost over the energy", 1.0 - energy[-1] / energy[0], 0.01)


def bed(options):
    found = []
    for seed in (0, 1):
        system = pile(2000, seed)
        sol = system.simulate(t1=6.0, dt=DT, save_every=100)
        last = sol.stats.wall_percussion[-20:].sum(0)
        down = -last[:, 2].sum() / (20 * DT)
        # one diameter from every boundary; the surface without the few that lie on top
        clear, x = 2.2 * R, sol.position[-1]
        side, top = system.walls.walls[1].point[0], np.sort(x[:, 2])[-len(x) // 50]
        found.append(sol.packing_fraction(-1, (clear,) * 3, (side - clear, side - clear, top - clear)))
        print(f"  seed {seed}: {sol.summary()}")
        at_most(
            "vertical force of floor and walls over the weight, less 1",
            abs(down / (system.mass.sum() * G) - 1.0),
            1e-3,
        )
        judge(
            "packing fraction away from boundaries",
            f"{found[-1]:.4f}",
            "0.55 to 0.64",
            0.55 <= found[-1] <= 0.64,
        )
    at_most("packing fractions of two seeds, relative difference", abs(found[0] / found[1] - 1.0), 0.02)


# -- cost
# ----------------------------------------------------------------------------------------------------


def scaling(options):
    sizes, costs = (1000, 3000, 10_000, 25_000, 50_000), []
    fixed = AndersonSOR(max_sweeps=30, newton_below=0)
    for n in sizes:
        system = pile(n, across=round(10 * (n / 1000) ** (1 / 3)))
        step, state, k = stepper(system, fixed), system.start(), 0
        while state.contacts.a.size < 1.8 * n and k < 150:  # until there are contacts throughout
            state, _ = step(state, k * DT, DT, 1e-14)
            k += 1
        spent = []
        for _ in range(7):
            began = time.perf_counter()
            _, outcome = step(state, k * DT, DT, 1e-14)
            spent.append(time.perf_counter() - began)
        costs.append(np.median(spent))
        print(
            f"  {n:6d} balls, {outcome.contacts:6d} contacts, {outcome.sweeps} sweeps: "
            f"{1e3 * costs[-1]:8.2f} ms a step",
            flush=True,
        )
    at_most(
        "exponent of cost over bodies, 1000 to 50,000", np.polyfit(np.log(sizes), np.log(costs), 1)[0], 1.15
    )


def gpu(options):
    """A whole step of 100,000 balls on the device of JAX,
    sums as they come and in a fixed order; a million in memory.
    """
    import jax

    device = jax.devices()[0]
    print(f"  {device.device_kind}, {device.platform}")
    for n in options.sizes:
        for deterministic in (False, True):
            solver = AndersonJacobi(max_iterations=200, deterministic=deterministic)
            system = pile(n, across=round(10 * (n / 1000) ** (1 / 3)))
            steps = options.device_steps if n <= 100_000 else 40
            runs = [device_run(system, solver, steps) for _ in range(2 if n <= 100_000 else 1)]
            spent, residual, contacts, state, compiling = runs[0]
            words = "sums in a fixed order" if deterministic else "sums as they come"
            print(f"  {n} balls, {words}: {contacts[-1]} contacts, compiling {compiling:.1f} s, ", end="")
            print(
                f"residual of the last steps {np.median(residual[-20:]):.1e}, median step "
                f"{np.median(spent[-20:]):.1f} ms"
            )
            used = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
            if n == 100_000:
                at_most(
                    "a whole step of 200 iterations, median of the last 20, in ms",
                    np.median(spent[-20:]),
                    60.0,
                )
            else:
                judge(f"{n} balls: memory at most, in GiB", f"{used:.1f}", "fits", True)
            if len(runs) == 2:
                equal = all(
                    np.array_equal(np.asarray(a), np.asarray(b))
                    for a, b in zip(state[1:4], runs[1][3][1:4], strict=True)
                )
                if deterministic:
                    judge(
                        "two runs in a fixed order, bit for bit",
                        "equal" if equal else "differ",
                        "equal",
                        equal,
                    )
                else:
                    print(f"  two runs with sums as they come {'are equal' if equal else 'differ'}")


def device_run(system, solver, steps):
    """ms, residual and contacts of every step, the last state, seconds until the first step was done."""
    step, state = stepper(system, solver), system.start()
    began, out = time.perf_counter(), []
    step(state, 0.0, DT, 1e-14)
    compiling = time.perf_counter() - began
    for k in range(steps):
        began = time.perf_counter()
        state, outcome = step(state, k * DT, DT, 1e-14)
        out.append((1e3 * (time.perf_counter() - began), outcome.residual, outcome.contacts))
    spent, residual, contacts = np.array(out).T
    return spent, residual, contacts.astype(int), state, compiling


# -- problems of others
# ----------------------------------------------------------------------------------------------------


def matrix(group):
    """A sparse matrix as FCLIB stores it: nz = -1 compressed columns, -2 compressed rows, else triplets."""
    import scipy.sparse as sp

    m, n, nz = (int(group[name][()].ravel()[0]) for name in ("m", "n", "nz"))
    x, i, p = (np.asarray(group[name][()]).ravel() for name in ("x", "i", "p"))
    if nz == -1:
        return sp.csc_matrix((x[: p[n]], i[: p[n]], p), shape=(m, n)).tocsr()
    if nz == -2:
        return sp.csr_matrix((x[: p[m]], i[: p[m]], p), shape=(m, n))
    return sp.csr_matrix((x[:nz], (i[:nz], p[:nz])), shape=(m, n))


def problem_of(path):
    """W, q, mu of a file: u = W r + q, the normal first in every contact."""
    import h5py
    from scipy.sparse.linalg import splu

    with h5py.File(path, "r") as file:
        if "fclib_local" in file:
            local = file["fclib_local"]
            return matrix(local["W"]), local["vectors/q"][()].ravel(), local["vectors/mu"][()].ravel()
        whole = file["fclib_global"]
        M, H = matrix(whole["M"]).tocsc(), matrix(whole["H"])
        factors, vectors = splu(M), whole["vectors"]
        W = H.T @ factors.solve(H.toarray())
        return (
            W,
            H.T @ factors.solve(vectors["f"][()].ravel()) + vectors["w"][()].ravel(),
            vectors["mu"][()].ravel(),
        )


def fclib(options):
    files = sorted(Path(options.fclib).glob("*.hdf5")) if options.fclib else []
    if not files:
        print("  no files: give a folder with --fclib")
    for path in files:
        W, q, mu = problem_of(path)
        n = 3 * np.arange(len(mu))
        problem = Explicit(W, q, n, [FrictionBalls(n[:, None] + np.array([1, 2]), n, mu)])
        began, size = time.perf_counter(), np.linalg.norm(q)
        y, _, sweeps, steps = problem.settle(np.zeros(len(q)), 1e-8 * size)
        spent = 1e3 * (time.perf_counter() - began)
        F = problem.natural_map(y)  # once more, from percussions alone
        print(f"  {path.stem}: {len(mu)} contacts, {sweeps} sweeps and {steps} Newton steps, {spent:.0f} ms")
        at_most(f"{path.stem[:40]}: residual", np.linalg.norm(F) / size, 1e-8)
        reference = path.with_suffix(".siconos-ref.npz")
        if reference.exists():
            with np.load(reference) as known:
                name = next(key for key in ("u", "velocity") if key in known)
                u, v = W @ y + q, known[name].ravel()
            at_most("  velocities beside those of Siconos, over |q|", np.linalg.norm(u - v) / size, 1e-6)


# -- the mixer
# ----------------------------------------------------------------------------------------------------


def mixed(mu, dt, options):
    system = disk_mixer(mu=mu)
    drum = system.walls.walls[0]
    t1 = options.turn * 2 * np.pi / drum.rate
    began = time.perf_counter()
    sol = system.simulate(t1=t1, dt=dt, save_every=max(round(0.02 / dt), 1))
    return sol, time.perf_counter() - began


def mixer(options):
    sol, spent = mixed(0.3, 1e-3, options)
    print(f"  dt = 1e-3: {sol.summary()}; {spent:.0f} s")
    at_most(f"{options.turn:g} turns of the drum with {len(sol.system)} disks, in s", spent, 300)
    worst, slipping = 0.0, 0
    for k in range(len(sol.t) // 4, len(sol.t), max(len(sol.t) // 40, 1)):
        c = sol.contacts[k]
        speed = slip_speed(sol, k)
        slips = (speed > 1e-2) & (c.P_N > 1e-6 * c.P_N.max())
        slipping += slips.sum()
        ratio = np.linalg.norm(c.P_F, axis=1)[slips] / (0.3 * c.P_N[slips])
        worst = max(worst, np.abs(ratio - 1.0).max(initial=0.0))
    at_least("contacts looked at that slip faster than 1 cm/s", slipping, 1000)
    at_most("there: | |P_F| / (mu P_N) - 1 |, largest", worst, 1e-2)
    late = lambda s: s.stats.t > 0.4 * s.stats.t[-1]
    torque = lambda s: s.stats.wall_moment[late(s), 0, 2].sum() / (s.stats.t[-1] - s.stats.t[late(s)][0])
    size = sol.system.mass.sum() * G * sol.system.walls.walls[0].radius
    at_least("mean torque over the weight times the radius", abs(torque(sol)) / size, 1e-2)
    finer, spent = mixed(0.3, 5e-4, options)
    print(
        f"  dt = 5e-4: {finer.summary()}; {spent:.0f} s;"
        f" torques {torque(sol):.4g} and {torque(finer):.4g} N m"
    )
    at_most("mean torque beside that at dt/2", abs(torque(sol) / torque(finer) - 1.0), 0.05)
    smooth, _ = mixed(0.0, 1e-3, argparse.Namespace(turn=0.1 * options.turn))
    at_most("without friction: largest torque over the weight times the radius",
            np.abs(smooth.stats.wall_moment[:, 0, 2]).max() / 1e-3 / size, 1e-12)  # fmt: skip


def slip_speed(sol, k):
    """Tangential velocities in the contacts of row k, at its end."""
    c, s, n = sol.contacts[k], sol.system, len(sol.system)
    v, w = np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    v[:n], w[:n] = sol.velocity[k], sol.spin[k]
    b, wall = np.minimum(c.b, n), c.b >= n
    r = np.append(s.radius, 0.0)
    la, lb = r[c.a] + np.where(wall, c.gap, c.gap / 2), np.where(wall, 0.0, r[b] + c.gap / 2)
    gamma = v[b] - v[c.a] - np.cross(la[:, None] * w[c.a] + lb[:, None] * w[b], c.normal)
    drum = s.walls.walls[0]
    gamma[wall] += np.cross(drum.turning, drum.radius * c.normal[wall])
    return np.linalg.norm(gamma - (gamma * c.normal).sum(1)[:, None] * c.normal, axis=1)


# -- methods
# ----------------------------------------------------------------------------------------------------


def overlap(system, x):
    """The deepest one, in m."""
    return max(-system.gaps(x, 0.0)[2].min(initial=0.0), 0.0)


def tube():
    """Ten balls in a tube, one just above the other, and their heights when they have come to rest."""
    k = np.arange(10)
    radius = R * np.where(k % 2, 1.0, 0.98)
    x = np.stack([0 * k + R, 0 * k + R, R * (2 * k + 1) + 0.02 * (k + 1)], axis=1)
    heights = radius[0] + np.concatenate([[0.0], np.cumsum(radius[:-1] + radius[1:])])
    return ManyBodies(Balls(x, radius), box((0, 0, 0), (2 * R, 2 * R, 4.0)), law=FRICTION), heights


def settling(system, steps, chosen, block=10):
    """ms, residual, velocity error, overlap, energy of every step of each method, a block of each in turn."""
    steppers, states = [stepper(system, AndersonSOR(), m) for m in chosen], [system.start() for _ in chosen]
    out, n = [[] for _ in chosen], len(system)
    for step, state in zip(steppers, states, strict=True):
        step(state, 0.0, DT, 1e-6)  # compiles
    for first in range(0, steps, block):
        for m, step in enumerate(steppers):
            for _ in range(min(block, steps - first)):
                began = time.perf_counter()
                states[m], worth = step(states[m], states[m].step * DT, DT, 1e-6)
                spent = 1e3 * (time.perf_counter() - began)
                s = states[m]
                energy = system.energy(s.x, s.rows[:n, :3], s.rows[:n, 3:6])
                out[m].append((spent, worth.residual, worth.velocity_error, overlap(system, s.x), energy))
    return [np.array(rows).T for rows in out]


def slid(n, method, t1=0.4, mu=0.15, r=0.1, angle=0.3):
    """A ball that slides across a slope, its slip turning: error of its velocity, by a fine integration."""
    from scipy.integrate import solve_ivp

    down = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    ball = Balls([[0, 0, r]], r, velocity=[[0, 1.5, 0]], spin=[[3.0, 5.0, 2.0]])
    law = ss.Contact(friction=ss.Coulomb(mu, dim=2))

    def smooth(t, y):
        slip = y[:2] + r * np.array([-y[3], y[2]])
        F = -mu * G * np.cos(angle) * slip / np.linalg.norm(slip)
        return np.concatenate([F + np.array([down[0], 0.0]), np.array([F[1], -F[0]]) / (0.4 * r)])

    exact = solve_ivp(smooth, (0, t1), [0, 1.5, 3, 5], rtol=1e-12, atol=1e-13, method="DOP853").y[:2, -1]
    heap = ManyBodies(ball, [Plane((0, 0, 0), (0, 0, 1))], law=law, gravity=down)
    sol = heap.simulate(t1=t1, dt=t1 / n, method=method, tolerance=1e-11, save_every=n)
    return np.abs(sol.velocity[-1, 0, :2] - exact).max()


def rolled(n, method, t1=0.5):
    """Where a ball is that rolls in an upright drum."""
    ball = Balls([[0.8, 0, 0]], 0.2, velocity=[[0, 3.0, 0]], spin=[[4.0, 0, -15.0]])
    heap = ManyBodies(ball, [Drum((0, 0, 0), 1.0)], law=ss.Contact(friction=ss.Coulomb(5.0, dim=2)))
    return heap.simulate(t1=t1, dt=t1 / n, method=method, tolerance=1e-10, save_every=n).position[-1, 0]


def orders():
    printed = Rattle(linearisations=20, friction="printed")
    tried = (
        ("RATTLE", Rattle(linearisations=20)),
        ("RATTLE, printed", printed),
        ("linearised", LinearisedGaps()),
    )
    sizes = np.array([50, 500, 5000])
    for name, method in tried:
        errors = np.array([slid(n, method) for n in sizes])
        order = -np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        words = ", ".join(f"{e:.2e}" for e in errors)
        print(f"  {name}: a slip that turns, 50, 500, 5000 steps: errors {words}")
        if name == "RATTLE":
            at_least(f"{name}: order where a slip turns, two decades", order, 1.95)
        else:
            judge(f"control, {name}: order there", f"{order:.3g}", "< 1.1", order < 1.1)
    for name, method in tried[:2]:
        x = np.array([rolled(n, method) for n in (20, 40, 80, 160, 320, 640, 1280, 2560)])
        errors = np.linalg.norm(np.diff(x, axis=0), axis=1)
        order = -np.polyfit(np.log(2) * np.arange(len(errors)), np.log(errors), 1)[0]
        words = ", ".join(f"{e:.1e}" for e in errors)
        print(f"  {name}: rolling in a drum, differences between dt and dt/2 from 20 steps on: {words}")
        if name == "RATTLE":
            at_least(f"{name}: order of rolling on what is curved, two decades", order, 1.95)
        else:
            judge(f"control, {name}: order there", f"{order:.3g}", "< 1.4", order < 1.4)


def methods(options):
    names, chosen = ("Moreau's rule", "linearised gaps", "RATTLE"), (Moreau(), LinearisedGaps(), Rattle())
    for name, method in zip(names, chosen, strict=True):
        system, heights = tube()
        end = system.simulate(t1=10.0, dt=DT, save_every=2000, method=method).position[-1, :, 2]
        sunk = 1e3 * (heights - end).max()
        if method == Moreau():
            judge("control, ten in a tube for 10 s, Moreau: sunk, in mm", f"{sunk:.3g}", "> 0.5", sunk > 0.5)
        else:
            at_most(f"ten in a tube for 10 s, {name}: sunk, in mm", sunk, 1e-5)
    for n, across, steps in ((200, 5, 600), (1000, 10, 400)):
        found = settling(pile(n, across=across), steps, chosen)
        for name, (ms, residual, error, deep, energy) in zip(names, found, strict=True):
            solved, rise = residual <= 1e-6, max(np.diff(energy).max(), 0.0) / np.ptp(energy)
            print(f"  {n} balls, {steps} steps, {name}: {ms.mean():.1f} ms a step, residual median", end=" ")
            print(f"{np.median(residual):.1e}, largest {residual.max():.1e}, <= 1e-6 in", end=" ")
            print(f"{100 * solved.mean():.0f} %; largest rise of energy over its range {rise:.1e}")
            deepest = 1e3 * deep.max()
            if name == "Moreau's rule":
                judge(f"control, {n} balls: largest overlap, in mm", f"{deepest:.3g}", "> 1", deepest > 1.0)
                continue
            told, over = (deep / (DT * error + 1e-13)).max(), ms.mean() / found[0][0].mean()
            at_most(f"{n} balls, {name}: largest overlap, in mm", deepest, 0.2)
            at_most(f"{n} balls, {name}: overlap over dt times the certified error", told, 1.0)
            at_most(f"{n} balls, {name}: largest overlap where solved, in mm", 1e3 * deep[solved].max(), 1e-4)
            at_most(f"{n} balls, {name}: mean time of a step over Moreau's", over, 6.0)
            if n == 200:
                late = 1e3 * deep[-100:].max()
                at_most(f"{n} balls, {name}: overlap in the last 100 steps, in mm", late, 3e-3)
    rng = np.random.default_rng(0)
    cells = np.stack(np.meshgrid(*[np.arange(8)] * 3), axis=-1).reshape(-1, 3)[:400] - 3.5
    v = -1.5 * 0.13 * cells + 0.2 * rng.standard_normal(cells.shape)
    radius, spin = rng.uniform(0.045, 0.055, 400), 2.0 * rng.standard_normal(v.shape)
    balls = Balls(0.13 * cells, radius, velocity=v, spin=spin)
    for name, law in (("e_N = 0, mu = 0.5", FRICTION), ("e_N = 0.7, mu = 0", ss.Contact(e_N=0.7))):
        free = ManyBodies(balls, law=law, gravity=(0, 0, 0))
        sol = free.simulate(t1=0.6, dt=DT, tolerance=1e-10, method=Rattle(8))
        m, theta = sol.system.mass[:, None], sol.system.inertia[:, None]
        p = [(m * sol.velocity[k]).sum(0) for k in (0, -1)]
        L = [(np.cross(sol.position[k], m * sol.velocity[k]) + theta * sol.spin[k]).sum(0) for k in (0, -1)]
        size, energy = (m * np.abs(v)).sum(), sol.energy()
        print(f"  gas of 400, RATTLE, {name}: {sol.summary()}; {sol.stats.contacts.sum()} contacts in all")
        at_most("change of momentum over sum of |m v|", np.abs(p[1] - p[0]).max() / size, 1e-12)
        at_most("change of angular momentum over that, in m", np.abs(L[1] - L[0]).max() / size, 1e-12)
        at_most("largest rise of energy in a step over the energy", np.diff(energy).max() / energy[0], 1e-12)
    orders()


# -- again, and after a kill
# ----------------------------------------------------------------------------------------------------

CHILD = """
import sys
sys.path.insert(0, {folder!r})
from spheres import DT, pile
pile(300).simulate(t1=2.0, dt=DT, file={file!r}, chunk=25)
"""


def same(one, two):
    rows = all(
        np.array_equal(getattr(one, f)[:], getattr(two, f)[:])
        for f in ("t", "position", "rotation", "velocity", "spin")
    )
    stats = all(np.array_equal(a, getattr(two.stats, name)) for name, a in vars(one.stats).items())
    return rows and stats and all(
        np.array_equal(a, b) for k in range(len(one.t)) for a,
        b in zip(one.contacts[k], two.contacts[k], strict=True)
    )  # fmt: skip


def again(options):
    whole = pile(300).simulate(t1=2.0, dt=DT)
    equal = same(pile(300).simulate(t1=2.0, dt=DT), whole)
    judge("two runs with the same seed, bit for bit", "equal" if equal else "differ", "equal", equal)
    judge(
        "control: another seed",
        "differs",
        "differs",
        not same(pile(300, seed=1).simulate(t1=2.0, dt=DT), whole),
    )
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.zarr"
            code = CHILD.format(folder=str(Path(__file__).parent), file=str(file))
            child = subprocess.Popen([sys.executable, "-c", code])
            while not (file / "checkpoint.npz").exists() and child.poll() is None:
                time.sleep(0.005)
            time.sleep(float(np.random.default_rng().uniform(0.0, 1.0)))
            child.send_signal(signal.SIGKILL)
            child.wait()
            kept = len(load(file, pile(300)).t)
            equal = same(resume(file, pile(300)), whole)
        judge(
            f"killed with {kept} of {len(whole.t)} rows on disk, then resumed",
            "equal" if equal else "differs",
            "equal",
            equal,
        )


COMMANDS = {
    "settle": settle, "column": column, "gas": gas, "bed": bed, "scaling": scaling, "fclib": fclib,
    "mixer": mixer, "methods": methods, "resume": again, "gpu": gpu,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(COMMANDS))
    parser.add_argument(
        "--fclib", type=Path, default=os.environ.get("FCLIB"), help="folder with files of FCLIB"
    )
    parser.add_argument("--steps", type=int, default=1500, help="of settling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000], help="balls on a GPU")
    parser.add_argument("--device-steps", type=int, default=250, help="steps on a GPU")
    parser.add_argument("--turn", type=float, default=1.0, help="part of a turn of the drum")
    options = parser.parse_args()
    unknown = [name for name in options.figures if name not in COMMANDS]
    if unknown:
        parser.error(f"no figure {unknown[0]!r}: there are {', '.join(COMMANDS)}")
    for name in options.figures or [name for name in COMMANDS if name != "gpu"]:
        print(name, flush=True)
        began = time.perf_counter()
        COMMANDS[name](options)
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    print("all met" if not missed else f"{missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
