"""Ensembles and analysis: diagrams, workers that die, orbits, exponents, basins, fits.

    .venv/bin/python benchmarks/ensembles.py [diagram workers throughput orbits branches exponents basins fits
    devices]

Every table says what is asked; a line that does not hold ends with "MISSED", and then the exit code is 1.
"""

import dataclasses
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import stickslip as ss
from stickslip.analysis.basins import fractions
from stickslip.benchmarks.forced_impact_oscillator import ForcedImpactOscillator, one_impact

missed: list[str] = []


def line(text: str, ok: bool = True) -> None:
    if not ok:
        missed.append(text)
    print(text if ok else f"{text}  MISSED", flush=True)


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def period(system):
    return 2.0 * np.pi / system.Omega


# -- sweeps
# -------------------------------------------------------------------------------------------------------
def diagram_of(count: int, transient: int = 250, keep: int = 50, **how):
    """The forced oscillator from period one through its flips into chaos."""
    values = np.linspace(2.5, 3.0, count)
    return ss.bifurcation(
        ForcedImpactOscillator(),
        "Omega",
        values,
        [-0.5],
        [0.0],
        period=period,
        transient=transient,
        keep=keep,
        **how,
    )


def same(a, b) -> bool:
    return all(np.array_equal(a[x].values, b[x].values, equal_nan=x in "qu") for x in ("q", "u", "status"))


def diagram() -> None:
    title("Bifurcation diagram: 1000 values x 300 periods, rtol 1e-6 (asked: 60 s on two cores, compiled)")
    diagram_of(2)  # compiles
    began = time.perf_counter()
    made = diagram_of(1000)
    took = time.perf_counter() - began
    done = int((made["status"] == 1).sum())
    line(
        f"{took:.1f} s on {len(os.sched_getaffinity(0))} cores, {done} of 1000 members done",
        took <= 60.0 and done == 1000,
    )


def workers() -> None:
    from dask.distributed import Client, LocalCluster

    title(
        "Two Dask workers: the same bits as threads (asked), one of them killed in the middle: nothing lost "
        "(asked)"
    )
    here = diagram_of(100, 40, 20)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        there = diagram_of(100, 40, 20, executor=client)
        line(f"100 members: {'the same bits' if same(here, there) else 'other bits'}", same(here, there))
        nannies = list(cluster.workers.values())
        victim = nannies[0].process.pid
        killer = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os, time; time.sleep(1.5); os.kill({victim}, {int(signal.SIGKILL)})",
            ]
        )
        there = diagram_of(1000, 60, 20, executor=client)
        assert killer.wait() == 0
    here = diagram_of(1000, 60, 20)
    lost = int((there["status"] != 1).sum())
    line(
        f"a worker killed: {lost} of 1000 members lost, "
        f"{'the same bits' if same(here, there) else 'other bits'}",
        same(here, there),
    )
    title("Killed in the middle, resumed (asked: the same store, no member twice in it)")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "sweep.zarr"
        here_is = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
        code = f"{here_is}; import ensembles; ensembles.diagram_of(1000, 60, 20, out={str(store)!r})"
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        while not (store.exists() and _written(store) > 200):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.kill()
        process.wait()
        before = _written(store)
        there = diagram_of(1000, 60, 20, out=store)
        again = ss.open_sweep(store)
        count = len(np.unique(again["Omega"].values))
    ok = 200 < before < 1000 and same(here, there) and count == 1000 == again["status"].size
    line(f"killed after {before} members, then {again['status'].size} entries, {count} different", ok)


def _written(store: Path) -> int:
    try:
        return int((ss.open_sweep(store)["status"] != 0).sum())
    except (ValueError, OSError):
        return 0


def throughput() -> None:
    title(
        "Throughput (asked: two cores >= 1.7 times one; a member <= 1.1 times a single run of as many "
        "periods)"
    )
    system, T = ForcedImpactOscillator(), 300 * float(period(ForcedImpactOscillator()))

    def single():
        return ss.simulate(
            system, None, [-0.5], [0.0], t1=T, rtol=1e-6, atol=1e-8, t_eval=[0.0, T], progress=False
        )

    def members(Omega):
        sol = ss.simulate(dataclasses.replace(system, Omega=Omega), None, [-0.5], [0.0], t1=T, rtol=1e-6,
                          atol=1e-8, t_eval=[0.0, T], progress=False)  # fmt: skip
        return {"q": sol.q[-1], "steps": sol.stats.steps}

    def seconds(f):
        began = time.perf_counter()
        made = f()
        return time.perf_counter() - began, made

    single()
    values, ratios = {"Omega": np.full(100, 2.5)}, []
    for _ in range(3):  # in turns: a busy moment hits all alike
        alone = np.median([seconds(single)[0] for _ in range(15)])
        one = seconds(lambda: ss.sweep(members, values, executor=ThreadPoolExecutor(1), progress=False))[0]
        two = seconds(lambda: ss.sweep(members, values, executor=ThreadPoolExecutor(2), progress=False))[0]
        ratios.append((one / two, one / 100 / alone))
        print(f"  a run {1e3 * alone:.1f} ms, one core {one:.2f} s, two cores {two:.2f} s")
    faster, dearer = np.median(ratios, axis=0)
    line(f"two cores: {faster:.2f} times one", faster >= 1.7)
    line(f"a member: {dearer:.2f} times a single run", dearer <= 1.1)


def devices() -> None:
    title(
        "Across devices: a batch shared by all of them, threads on this CPU (asked: 1e-9 where not chaotic)"
    )
    if jax.device_count() == 1 and jax.default_backend() == "cpu":  # no other device: this CPU as two of them
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
        code = "import sys, ensembles; ensembles.devices(); sys.exit(bool(ensembles.missed))"
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        if subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode:
            missed.append("devices")
        return
    accelerated = jax.default_backend() != "cpu"
    cpu, periods, count = jax.devices("cpu")[0], 50 if accelerated else 20, 64 if accelerated else 8

    def run(Omega):
        T = periods * 2.0 * np.pi  # of a clock on which all have the same period: steps end at static times
        system = Clocked(Omega=Omega)
        sol = ss.simulate(system, ss.RadauIIA(5), jnp.array([-0.5]), jnp.array([0.0]), t1=T, rtol=1e-10,
                          atol=1e-12, max_steps=20 * periods + 24, t_eval=np.array([0.0, T]))  # fmt: skip
        return {"q": sol.q[-1], "u": sol.u[-1], "result": sol.result}

    def apart(values):
        made = []
        for how in ({"batch": True}, {"executor": ThreadPoolExecutor(2)}):
            with jax.default_device(None if "batch" in how else cpu):
                began = time.perf_counter()
                made.append(ss.sweep(run, values, progress=False, **how))
                took = time.perf_counter() - began
                devices = "  ".join(map(str, jax.devices())) if "batch" in how else "threads"
                print(f"  {count} members, {devices}: {took:.1f} s with compiling")
        assert all((m["status"] == 1).all() for m in made)
        return max(float(abs(made[0][x] - made[1][x]).max()) for x in "qu")

    # before the flip: every member has period one
    worst = apart({"Omega": np.linspace(2.3, 2.65, count)})
    line(f"{jax.device_count()} x {jax.devices()[0].device_kind} against threads: {worst:.1e}", worst <= 1e-9)
    chaotic = apart({"Omega": np.linspace(2.78, 2.82, count)})
    line(f"control, chaos: {chaotic:.1e}, further apart", chaotic > 10.0 * worst)


class Clocked(ForcedImpactOscillator):
    """Its time is the angle of the force."""

    def M(self, t, q):
        return self.Omega**2 * jnp.eye(1)

    def h(self, t, q, u):
        return self.F * jnp.cos(t) - 2.0 * self.zeta * self.omega * self.Omega * u - self.omega**2 * q


# -- orbits
# -------------------------------------------------------------------------------------------------------
def orbits() -> None:
    title(
        "Periodic orbits (asked: closed form 1e-9, multipliers 1e-7, product 1e-9; block: a multiplier 0; "
        "woodpecker 1e-9)"
    )
    for case in (1, 4):
        b = ss.benchmarks.load("forced-impact-oscillator", case)
        for known in b.reference["one_impact"]:
            if not known.clear:
                continue
            orbit = ss.periodic_orbit(b.system, known.start[:1] + 1e-3, known.start[1:], period=period)
            off = np.abs(np.append(orbit.q, orbit.u) - known.start).max()
            by = np.abs(np.sort_complex(orbit.multipliers) - np.sort_complex(known.multipliers)).max()
            product = abs(np.prod(orbit.multipliers) - b.reference["product"])
            text = f"forced, speed {known.speed:.3f}: orbit {off:.1e}, multipliers {by:.1e}"
            line(f"{text}, product {product:.1e}", off <= 1e-9 and by <= 1e-7 and product <= 1e-9)
    b = ss.benchmarks.load("block-on-belt")
    orbit = ss.periodic_orbit(b.system, [0.3], [0.1], period_guess=7.0)
    off = abs(orbit.period - b.reference["period"])
    smallest = np.abs(orbit.multipliers).min()
    text = f"block on belt: period {orbit.period:.10f} (reference to 1e-6: {off:.1e})"
    line(f"{text}, smallest multiplier {smallest:.1e}", off <= 2e-6 and smallest <= 1e-12)
    b = ss.benchmarks.load("woodpecker", 2)
    start = ss.simulate(b.system, None, b.q0, b.u0, t1=0.06, rtol=1e-9, atol=1e-11)
    orbit = ss.periodic_orbit(
        b.system,
        start.q[-1],
        start.u[-1],
        period_guess=0.146,
        drift="y" if b.system.coordinates else 0,
        method=ss.RadauIIA(5),
    )
    off, down = abs(orbit.period - b.reference["period"]), abs(-orbit.drift[0] - b.reference["descent"])
    line(
        f"woodpecker: period off {off:.1e} s, descent off {down:.1e} m, {orbit}", off <= 1e-9 and down <= 1e-9
    )


def branches() -> None:
    title("Branches (asked: flip and fold where multipliers are -1 and 1 to 1e-6; grazing reported)")
    b = ss.benchmarks.load("forced-impact-oscillator")
    known = b.reference["one_impact"][0]
    branch = ss.continuation(
        ss.periodic_orbit(b.system, known.start[:1], known.start[1:], period=period), "Omega", (2.3, 2.8)
    )
    flip = next(s for s in branch.special if s.kind == "flip")
    closed = _multipliers(b.system, flip.value)[0]
    line(
        f"flip at Omega = {flip.value:.9f}: closed form has the multiplier {closed.min():.9f}",
        abs(closed.min() + 1.0) <= 1e-6,
    )
    b = ss.benchmarks.load("forced-impact-oscillator", 4)
    known = b.reference["one_impact"][0]
    branch = ss.continuation(
        ss.periodic_orbit(b.system, known.start[:1], known.start[1:], period=period), "Omega", (1.2, 2.2)
    )
    fold = next(s for s in branch.special if s.kind == "fold")
    off = min(abs(m - 1.0) for m in fold.orbit.multipliers)
    beyond = len(one_impact(dataclasses.replace(b.system, Omega=fold.value + 1e-6)))
    line(
        f"fold at Omega = {fold.value:.9f}: its multiplier is 1 to {off:.1e}, {beyond} orbits at 1e-6 more",
        off <= 1e-6 and not beyond,
    )
    grazing = [s for s in branch.special if s.kind == "grazing"]
    # where the forced vibration alone just reaches the wall
    s = b.system
    x = np.roots([1.0, 4.0 * s.zeta**2 * s.omega**2 - 2.0 * s.omega**2, s.omega**4 - (s.F / s.d) ** 2])
    exact = math.sqrt(max(x.real))
    line(f"grazing at Omega = {grazing[0].value if grazing else math.nan:.7f}, closed form {exact:.7f}",
         bool(grazing) and abs(grazing[0].value - exact) <= 1e-4)  # fmt: skip


def _multipliers(system, Omega):
    return [np.real(o.multipliers) for o in one_impact(dataclasses.replace(system, Omega=Omega))]


# -- exponents
# ----------------------------------------------------------------------------------------------------
def exponents() -> None:
    title("Lyapunov exponents of chaos (asked: sum to 1e-6; the largest within 5 % of how neighbours part)")
    b = ss.benchmarks.load("forced-impact-oscillator", 3)
    n = 20_000  # over 2000 periods such a mean scatters by a tenth
    found = ss.lyapunov(b.system, b.q0, b.u0, period=period, n=n, transient=100)
    s = b.system
    mean = -2.0 * s.zeta * s.omega + 2.0 * math.log(s.e_N) * found.impacts / found.time
    off = abs(found.exponents.sum() - mean)
    line(f"{found}: sum off by {off:.1e}", off <= 1e-6)
    largest = neighbours(b.system, found.q, found.u, n)
    line(f"neighbours part with {largest:.5f} 1/s", abs(largest / found.exponents[0] - 1.0) <= 0.05)


def neighbours(system, q, u, n: int, apart: float = 1e-7) -> float:
    """How fast two runs part that are brought together again once a period: no tangent, no derivative."""
    T, total = float(period(system)), 0.0
    rng = np.random.default_rng(0)
    d = rng.normal(size=2)
    d *= apart / np.linalg.norm(d)
    end = lambda x: ss.simulate(
        system, ss.RadauIIA(5), x[:1], x[1:], t1=T, rtol=1e-12, atol=1e-13, progress=False
    )
    x = np.concatenate([q, u])
    for _ in range(n):
        (a, c) = (end(x), end(x + d))
        x, d = np.concatenate([a.q[-1], a.u[-1]]), np.concatenate([c.q[-1] - a.q[-1], c.u[-1] - a.u[-1]])
        total += math.log(np.linalg.norm(d) / apart)
        d *= apart / np.linalg.norm(d)
    return total / (n * T)


# -- basins
# -------------------------------------------------------------------------------------------------------
def basins(side: int = 50) -> None:
    title(
        f"Basins, {side} x {side} starts (asked: parts of the area within 0.5 % of an event-driven run with "
        "scipy)"
    )
    system = ForcedImpactOscillator(Omega=1.88, d=0.5)
    x, v = np.linspace(-2.0, 0.45, side), np.linspace(-3.0, 3.0, side)
    made = ss.basins(system, {"x": x, "x_dot": v}, [0.0], [0.0], period=period, transient=100)
    parts = fractions(made)
    with ProcessPoolExecutor(2) as pool:
        hits = np.array(
            list(pool.map(event_driven, [(system.Omega, system.d, a, c) for a in x for c in v], chunksize=50))
        )
    impacting = next(
        k for k in parts if k > 0 and abs(made["q"].values[made["attractor"].values == k]).max() > 0.6
    )
    off = abs(parts[impacting] - hits.mean())
    differ = np.mean((made["attractor"].values.ravel() == impacting) != hits)
    line(
        f"parts {[round(p, 4) for p in parts.values()]}, scipy {hits.mean():.4f}; {differ:.2%} of the starts "
        "differ",
        off <= 0.005,
    )


def event_driven(what) -> bool:
    """Whether the oscillator still touches the wall after 100 periods, by scipy."""
    Omega, d, x, v = what
    s = ForcedImpactOscillator()
    wall = lambda t, y: d - y[0]
    wall.terminal, wall.direction = True, -1
    f = lambda t, y: [y[1], s.F * math.cos(Omega * t) - 2.0 * s.zeta * s.omega * y[1] - s.omega**2 * y[0]]
    T = 2.0 * np.pi / Omega
    t, y, last = 0.0, np.array([x, v]), -1.0
    while t < 101 * T:
        sol = solve_ivp(f, (t, 101 * T), y, method="DOP853", rtol=1e-9, atol=1e-11, events=wall)
        t, y = sol.t[-1], sol.y[:, -1]
        if sol.status == 1:
            last, y = t, np.array([d - 1e-14, -s.e_N * y[1]])
    return last > 99 * T


# -- fits
# ---------------------------------------------------------------------------------------------------------
class Spinning(ss.System):
    """q = (x, y, phi) of a ball thrown with spin."""

    e_N: float
    mu: float
    m, R = 0.06, 0.033
    laws = property(lambda self: (ss.Contact(e_N=self.e_N, friction=ss.Coulomb(self.mu)),))

    def M(self, t, q):
        return self.m * jnp.diag(jnp.array([1.0, 1.0, 0.4 * self.R**2]))

    def h(self, t, q, u):
        return jnp.array([0.0, -9.81 * self.m, 0.0])

    def g_N(self, t, q):
        return jnp.array([q[1] - self.R])

    def gamma_F(self, t, q, u):
        return jnp.array([u[0] + self.R * u[2]])


TIMES = np.linspace(0.0, 1.2, 41)


def path(e_N, mu):
    q0, u0 = jnp.array([0.0, 1.0, 0.0]), jnp.array([2.0, 0.0, 200.0])
    sol = ss.simulate(Spinning(e_N, mu), "radau2", q0, u0, t1=1.2, rtol=1e-7, max_steps=128, t_eval=TIMES)
    return sol.q[:, :2]


def fits(count: int = 400) -> None:
    title(f"Fits of a noisy spinning ball, {count} data sets (asked: 95 % intervals cover 92-98 %)")
    true = {"e_N": 0.75, "mu": 0.15}
    clean, rng = np.asarray(path(**true)), np.random.default_rng(2)
    inside = dict.fromkeys(true, 0)
    began = time.perf_counter()
    for _ in range(count):
        found = ss.fit(
            path,
            {"e_N": 0.6, "mu": 0.1},
            clean + 1e-3 * rng.normal(size=clean.shape),
            bounds={"e_N": (0.0, 1.0), "mu": (0.0, 1.0)},
        )
        for name, value in true.items():
            low, high = found.interval(name)
            inside[name] += low <= value <= high
    print(f"  {found}, {(time.perf_counter() - began) / count * 1e3:.0f} ms a fit")
    for name, hits in inside.items():
        line(f"{name}: {hits / count:.1%} of the intervals hold the true value", 0.92 <= hits / count <= 0.98)


TABLES = {
    "diagram": diagram, "workers": workers, "throughput": throughput, "orbits": orbits, "branches": branches,
    "exponents": exponents, "basins": basins, "fits": fits, "devices": devices,
}  # fmt: skip


if __name__ == "__main__":
    for wanted in sys.argv[1:] or TABLES:
        TABLES[wanted]()
    sys.exit(bool(missed))
