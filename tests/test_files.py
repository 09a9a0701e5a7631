"""What is saved comes back bit by bit, and nothing else is taken for it."""

import dataclasses
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import stickslip as ss
from stickslip import dataset, serialize
from stickslip.benchmarks.bouncing_ball_1d import Ball1D
from stickslip.methods import REGISTRY
from stickslip.validate import Labels, as_parameters, checked_vectors

BALL = ss.benchmarks.load("bouncing-ball")


def simulated(system=None, method=None, t1=0.5, dt=2e-2, **options):
    return ss.simulate(BALL.system if system is None else system, method or ss.MoreauMidpoint(), BALL.q0,
                       BALL.u0, t1=t1, dt=dt, **options)  # fmt: skip


@pytest.fixture(scope="module")
def sol():
    return simulated()


@pytest.fixture
def file(sol, tmp_path):
    sol.save(tmp_path / "ball.nc")
    return tmp_path / "ball.nc"


def bits(x):
    array = np.asarray(x)
    return array.dtype, array.shape, array.tobytes()


def same(a, b):
    """Two solutions, or two parts of one: the same structure, classes, types and bits."""
    if isinstance(a, ss.Solution):
        assert bool(a.result == b.result)
        a, b = (dataclasses.replace(s, result=None) for s in (a, b))  # its bits may be numpy's or JAX's
    (leaves, structure), (others, other_structure) = jax.tree.flatten(a), jax.tree.flatten(b)
    assert structure == other_structure
    for x, y in zip(leaves, others, strict=True):
        assert type(x) is type(y)
        assert np.ndim(x) or getattr(x, "weak_type", None) == getattr(y, "weak_type", None)  # of parameters
        assert bits(x) == bits(y)


def came_back(sol, folder, **options):
    sol.save(folder / "run.nc")
    back = ss.load(folder / "run.nc", **options)
    same(sol, back)
    return back


def test_same_notices_a_bit_a_type_and_a_parameter(sol):
    u = sol.u.copy()
    u[3, 1] = np.nextafter(u[3, 1], 1.0)
    for other in (
        dataclasses.replace(sol, u=u),
        dataclasses.replace(sol, u=jnp.asarray(sol.u)),
        dataclasses.replace(sol, method=ss.MoreauMidpoint(solver=ss.PSOR())),
        dataclasses.replace(sol, system=as_parameters(type(BALL.system)(mu=0.3))),
        dataclasses.replace(sol, result=ss.RESULTS.interrupted),
    ):
        with pytest.raises(AssertionError):
            same(sol, other)


# Labels


@pytest.mark.parametrize("name", ss.benchmarks.names())
def test_benchmarks_name_their_coordinates_with_units(name):
    for case in ss.benchmarks.cases(name):
        b = ss.benchmarks.load(name, case)
        checked_vectors(as_parameters(b.system), 0.0, b.q0, b.u0)  # would refuse a wrong number
        n_N = sum(isinstance(law, ss.Contact) for law in b.system.laws)
        labels = Labels.of(b.system, len(b.q0), len(b.u0), n_N)
        assert all(label.unit for label in (*labels.coordinates, *labels.velocities))
        assert len(b.system.contacts) == n_N


class Named(Ball1D):
    coordinates: tuple = eqx.field(default=("y [m]",), static=True)
    velocities: tuple = eqx.field(default=(), static=True)
    contacts: tuple = eqx.field(default=("ground",), static=True)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"coordinates": ("x [m]", "y [m]")}, r"coordinates = \('x \[m\]', 'y \[m\]'\): 2 names, expected 1"),
        ({"velocities": ("v [m/s]", "w [m/s]")}, "velocities .* 2 names, expected 1: u has 1"),
        ({"contacts": ("left", "right")}, "contacts .* 2 names, expected 1: there are 1 ss.Contact"),
        ({"coordinates": ("y",)}, r"coordinates\[0\]: 'y' must be \"name \[unit\]\""),
        ({"coordinates": ("y []",)}, r"coordinates\[0\]: 'y \[\]' must be"),
        ({"coordinates": ("[m]",)}, r"coordinates\[0\]: '\[m\]' must be"),
        ({"velocities": ("v [m]/s",)}, r"velocities\[0\]: 'v \[m\]/s' must be"),
        ({"coordinates": ("y [m]", "y [rad]")}, "the name 'y' is taken"),
        ({"coordinates": (1,)}, r"coordinates\[0\] must be a name, got 1"),
        ({"contacts": ("",)}, r"contacts\[0\] must be a name, got ''"),
        ({"contacts": "ground"}, "contacts must be an attribute holding a tuple"),
    ],
)
def test_labels_that_do_not_fit_are_refused_at_the_door(labels, words):
    start = {"t1": 0.2, "dt": 0.1}
    ss.simulate(Named(), ss.MoreauMidpoint(), [1.0], [0.0], **start)
    with pytest.raises((TypeError, ValueError), match=words):
        ss.simulate(Named(**labels), ss.MoreauMidpoint(), [1.0], [0.0], **start)


def test_labels_may_be_class_attributes_fields_or_properties():
    class ByProperty(Ball1D):
        @property
        def coordinates(self):
            return ("z [m]",)

    class ByField(Ball1D):
        coordinates: tuple = ("z [m]",)

    for system in (Ball1D(), ByProperty(), ByField()):
        sol = ss.simulate(system, ss.MoreauMidpoint(), [1.0], [0.0], t1=0.2, dt=0.1)
        assert sol.to_xarray().coordinate_unit == "m"


def test_unnamed_components_are_counted_and_rates_follow_coordinates_only_where_u_is_their_rate():
    class Turned(Named):
        def B(self, t, q):
            return 2.0 * jnp.eye(1)

    def names(system, nq=1, nu=1, n_N=1):
        return [[(label.name, label.unit) for label in part] for part in Labels.of(system, nq, nu, n_N)]

    assert names(ss.System(), 2, 2, 1) == [
        [("q_0", ""), ("q_1", "")],
        [("u_0", ""), ("u_1", "")],
        [("contact 0", "")],
    ]
    assert names(Named())[1] == [("y_dot", "m/s")]
    assert names(Named(velocities=("v [m/s]",)))[1] == [("v", "m/s")]
    assert names(Turned())[1] == [("u_0", "")]


# Datasets


def test_a_dataset_has_the_arrays_by_name_and_unit(sol):
    data = sol.to_xarray()
    assert np.array_equal(data.q.sel(coordinate="phi"), sol.q[:, 2])
    assert np.array_equal(data.P_N.sel(contact="ground"), sol.P_N[:, 0])
    assert data.velocity_unit.sel(velocity="phi_dot") == "rad/s"
    assert data.t.units == "s"
    assert (data.P_N.units, data.P_F.units, data.g_N.units, data.energy.units) == ("N s", "N s", "m", "J")
    assert "units" not in data.q.attrs  # metres and radians
    assert np.array_equal(data.energy, sol.energy())
    assert np.array_equal(data.dt, sol.dt)
    assert data.newton_iterations.dims == ("step", "solve")
    assert data.attrs["result"] == "successful"
    assert data.attrs["method"].startswith(
        "MoreauMidpoint(solver=Automatic(newton=SemismoothNewton(atol=1e-13"
    )
    assert data.attrs["system"] == "stickslip.benchmarks.bouncing_ball.BouncingBall"
    assert all("long_name" in v.attrs for v in data.data_vars.values())


def test_friction_percussions_have_the_unit_of_their_law():
    class Everything(ss.System):
        contacts = ("foot", "hand")

        @property
        def laws(self):
            first = (
                ss.Coulomb(0.1, dim=2),
                ss.Pivoting(0.1),
                ss.Rolling(0.1, dim=2),
                ss.RectangularCoulomb(0.1, (1.0, 2.0)),
            )
            return (
                ss.Contact(friction=first),
                ss.Contact(friction=ss.CoulombContensou(0.1, 0.1)),
                ss.FrictionElement(1.0, dim=2),
            )

    system = Everything()
    labels = list(dataset._friction_labels(system, Labels.of(system, 1, 1, 2).contacts))
    assert [label.name for label in labels] == [
        "foot sliding 0", "foot sliding 1", "foot pivoting 0", "foot rolling 0", "foot rolling 1",
        "foot sliding 2", "foot sliding 3", "hand sliding 0", "hand sliding 1", "hand pivoting 0",
        "element 0 friction 0", "element 0 friction 1",
    ]  # fmt: skip
    torque, force = "N m s", "N s"
    units = [force, force, torque, torque, torque, force, force, force, force, torque, "", ""]
    assert [label.unit for label in labels] == units

    b = ss.benchmarks.load("rolling-ball")
    data = ss.simulate(b.system, b.method, b.q0, b.u0, t1=0.2, dt=0.1).to_xarray()
    assert list(data.friction_unit.values) == [force, torque]
    assert "units" not in data.P_F.attrs


def test_forces_have_the_unit_of_a_force():
    data = simulated(method=ss.GeneralizedAlpha(), t1=0.1).to_xarray()
    assert (data.la_N.units, data.la_F.units, data.Lambda_N.units, data.Lambda_F.units) == (
        "N",
        "N",
        "N s",
        "N s",
    )


def test_a_batch_and_a_trace_are_refused():
    def of(mu):
        return simulated(eqx.tree_at(lambda s: s.mu, BALL.system, mu), t1=0.1)

    batch = jax.vmap(of)(jnp.array([0.1, 0.2, 0.3]))
    for refused in (batch.to_xarray, lambda: batch.save("never.nc")):
        with pytest.raises(ValueError, match=r"batch of shape \(3,\): take one, sol\[0\]"):
            refused()
    with pytest.raises(TypeError, match="inside jit"):
        jax.jit(lambda mu: of(mu).to_xarray())(0.1)
    assert not Path("never.nc").exists()


# There and back


def test_a_loaded_run_can_be_drawn_without_its_system(tmp_path):
    class Mine(Ball1D):
        coordinates = ("height [m]",)

    sol = ss.simulate(Mine(), ss.Rattle(), [1.0], [-1.0], t1=0.5, dt=0.1)
    sol.save(tmp_path / "mine.nc")
    back = ss.load(tmp_path / "mine.nc")
    back.plot(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").stat().st_size > 10_000
    names = [trace.get("name") for trace in back.animate().payload()["data"]]
    assert "ground" in names


def test_runs_of_every_kind_of_method_come_back(kind, tmp_path):
    back = came_back(simulated(method=REGISTRY[kind](), t1=0.5, dt=0.1), tmp_path)
    assert back.g_N().shape == (6, 1)


def test_adjusted_steps_come_back_with_their_switching_points(tmp_path):
    b = ss.benchmarks.load("woodpecker")
    sol = ss.simulate(b.system, b.method, b.q0, b.u0, t1=0.03, stepsize=b.stepsize)
    back = came_back(sol, tmp_path)
    assert back.switching_points() == sol.switching_points() != []
    assert list(sol.to_xarray().law.values[:4]) == ["beak", "lower sleeve", "upper sleeve", "friction 0"]


class Breaks(type(BALL.system)):
    """A system of somebody else, whose forces end at some time."""

    until: float = 0.25

    def h(self, t, q, u):
        return jnp.where(t > self.until, jnp.nan, super().h(t, q, u))


@pytest.mark.parametrize(("until", "rows"), [(0.25, 13), (0.0, 1)])
def test_a_failed_run_comes_back_as_far_as_it_came(until, rows, tmp_path):
    system = Breaks(until=until)
    sol = simulated(system, throw=False)
    assert sol.result == ss.RESULTS.not_finite
    assert abs(len(sol.t) - rows) <= 1
    came_back(sol, tmp_path, system=system)
    assert sol.to_xarray().attrs["result"] == "not_finite"


def test_solutions_of_traces_and_batches_come_back_as_jax_arrays(tmp_path):
    one = jax.jit(lambda mu: simulated(eqx.tree_at(lambda s: s.mu, BALL.system, mu), t1=0.1))(0.1)
    back = came_back(one, tmp_path)
    assert isinstance(back.q, jax.Array)
    batch = jax.vmap(lambda mu: simulated(eqx.tree_at(lambda s: s.mu, BALL.system, mu), t1=0.1))(
        jnp.array([0.1, 0.2])
    )
    second = came_back(jax.tree.map(lambda a: a[1], batch), tmp_path)
    assert second.system.mu == 0.2


def test_systems_without_contacts_and_numbers_that_are_none_come_back(sol, tmp_path):
    b = ss.benchmarks.load("pendulum")
    came_back(ss.simulate(b.system, ss.MoreauMidpoint(), b.q0, b.u0, t1=0.2, dt=0.1), tmp_path)
    u = sol.u.copy()
    u[1] = np.nan, np.inf, -0.0
    u[2, 0] = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]  # a nan with a message
    u[2, 1] = 5e-324
    came_back(dataclasses.replace(sol, u=u), tmp_path)


@pytest.mark.parametrize("name", ss.benchmarks.names())
def test_every_system_of_the_package_can_be_rebuilt(name):
    for case in ss.benchmarks.cases(name):
        b = ss.benchmarks.load(name, case)
        for x in (as_parameters(b.system), b.system, b.method):
            same(serialize.rebuild(json.loads(json.dumps(serialize.describe(x)))), x)


def test_options_of_methods_and_solvers_are_kept():
    for method in (
        ss.MoreauMidpoint(solver=ss.PSOR(atol=1e-9, max_iterations=7)),
        ss.Rattle(friction="printed", solver=ss.FixedPoint(relaxation=0.5)),
        ss.Extrapolation(3, substeps="all", enduring="modified"),
        ss.GeneralizedAlpha(rho_inf=0.25),
        ss.LobattoIIIAB(4, form="momentum"),
    ):
        same(serialize.rebuild(json.loads(json.dumps(serialize.describe(method)))), method)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -0.0, 0.1, float("inf"), "a", (1, (2.0,)), [1, "b"], {"a": (1,)}, np.float32(0.1),
        np.arange(3),
        np.array([[True], [False]]), np.array([np.nan, np.inf]), np.zeros((0, 2)), jnp.asarray(0.1),
        jnp.arange(2.0), jnp.asarray(0.1, dtype=jnp.float32), jnp.asarray(2**62),
    ],
)  # fmt: skip
def test_values_come_back_as_they_are(value):
    same(serialize.rebuild(json.loads(json.dumps(serialize.describe(value), allow_nan=False))), value)
    assert not serialize.rebuildable(serialize.describe((value, np.sin)))


# Systems of somebody else


def test_a_system_of_ones_own_is_recorded_and_what_was_computed_is_there(tmp_path):
    sol = simulated(Breaks(until=9.0))
    sol.save(tmp_path / "own.nc")
    back = ss.load(tmp_path / "own.nc")
    assert np.array_equal(back.g_N(), sol.g_N())
    assert np.array_equal(back.energy(), sol.energy())
    assert float(back.system.parameters["until"]) == 9.0
    assert not hasattr(back.system, "draw")
    for asked in (
        back.forces,
        lambda: back.system.M(0.0, BALL.q0),
        lambda: back.system.g(0.0, BALL.q0),
        lambda: back.system.laws,
        lambda: back.system.mu,
        lambda: simulated(back.system),
    ):
        with pytest.raises(
            (RuntimeError, AttributeError), match=r"ss\.load\('.*own\.nc', system=Breaks\(\.\.\.\)\)"
        ):
            asked()
    xr.testing.assert_identical(back.to_xarray(), sol.to_xarray())
    back.save(tmp_path / "again.nc")
    same(ss.load(tmp_path / "again.nc", system=Breaks(until=9.0)), sol)


def test_a_system_without_energy_has_none_in_the_file_either(tmp_path):
    class Silent(ss.System):
        def M(self, t, q):
            return jnp.eye(1)

        def h(self, t, q, u):
            return jnp.zeros(1)

    sol = ss.simulate(Silent(), ss.MoreauMidpoint(), [0.0], [1.0], t1=0.2, dt=0.1)
    sol.save(tmp_path / "silent.nc")
    back = ss.load(tmp_path / "silent.nc")
    assert "energy" not in back.to_xarray()
    with pytest.raises(AttributeError, match="does not define energy"):
        back.energy()


class Held(Ball1D):
    """Parameters of many kinds."""

    law: ss.Contact = eqx.field(default_factory=lambda: ss.Contact(e_N=0.5, friction=()))
    table: tuple = (1.0, 2.0)
    shape: np.ndarray = eqx.field(default_factory=lambda: np.eye(2))
    profile: object = eqx.field(default=np.sin, static=True)
    mode: str = eqx.field(default="soft", static=True)

    @property
    def laws(self):
        return (self.law,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 2.0}, r"another Held: m is 1\.0 in the file and 2\.0"),
        ({"law": ss.Contact(e_N=0.4)}, r"law\.e_N is 0\.5 in the file and 0\.4"),
        (
            {"law": ss.Contact(e_N=0.5, friction=ss.Coulomb(0.1))},
            r"law\.friction is \(\) in the file and \(Coulomb",
        ),
        ({"table": (1.0, 3.0)}, r"table\[1\] is 2\.0 in the file and 3\.0"),
        (
            {"shape": np.eye(3)},
            r"shape is \[\[1\.0, 0\.0\], \[0\.0, 1\.0\]\] in the file and \[\[1\.0, 0\.0, 0\.0\]",
        ),
        ({"mode": "hard"}, "mode is 'soft' in the file and 'hard'"),
        ({"profile": None}, "profile is ufunc in the file and None"),
    ],
)
def test_another_system_than_the_recorded_one_is_refused(options, words, tmp_path):
    sol = ss.simulate(Held(), ss.MoreauMidpoint(), [1.0], [0.0], t1=0.2, dt=0.1)
    sol.save(tmp_path / "held.nc")
    same(ss.load(tmp_path / "held.nc", system=Held()), sol)
    with pytest.raises(ValueError, match=words):
        ss.load(tmp_path / "held.nc", system=Held(**options))
    with pytest.raises(ValueError, match="its system is a Held, but a BouncingBall was given"):
        ss.load(tmp_path / "held.nc", system=BALL.system)


def test_a_method_of_ones_own_is_recorded_too(tmp_path):
    class Mine(ss.Rattle):
        pass

    sol = simulated(method=Mine(), t1=0.1)
    sol.save(tmp_path / "mine.nc")
    same(ss.load(tmp_path / "mine.nc", method=Mine()), sol)
    back = ss.load(tmp_path / "mine.nc")
    assert back.method.parameters["friction"] == "stagewise"
    with pytest.raises(AttributeError, match=r"method=.*Mine\(\.\.\.\)"):
        back.forces()
    with pytest.raises(ValueError, match="friction is 'stagewise' in the file and 'printed'"):
        ss.load(tmp_path / "mine.nc", method=Mine(friction="printed"))


# Nothing else is taken for a solution


@pytest.mark.parametrize(
    "name",
    [
        "subprocess:Popen", "antigravity:Any", "stickslip.files:Path", "stickslip.files:load",
        "stickslip.nowhere:System", "stickslip.files:FileError", "stickslip:System",
        "stickslip.__main__:System", "stickslip.system:System.M", "stickslip_evil.a:System",
    ],
)  # fmt: skip
def test_only_classes_of_the_package_are_built(name):
    with pytest.raises(ValueError, match="is not a class of"):
        serialize.rebuild({"class": name, "fields": {}})
    assert "antigravity" not in sys.modules


def rewritten(file, change):
    """The file again by xarray, changed."""
    with xr.open_dataset(file, engine="h5netcdf") as data:
        changed = change(data.load())
    changed.to_netcdf(file, engine="h5netcdf")


def with_attribute(file, name, value):
    with h5py.File(file, "r+") as f:
        f.attrs[name] = value


def foreign_netcdf(file):
    xr.Dataset({"q": ("t", [1.0])}).to_netcdf(file, engine="h5netcdf")


def foreign_hdf5(file):
    with h5py.File(file, "w") as f:
        f["x"] = np.arange(3)


def flipped(file, position, bits=0xFF):
    content = bytearray(file.read_bytes())
    content[position] ^= bits
    file.write_bytes(content)


def in_array(file, name="u"):
    with h5py.File(file, "r") as f:
        chunk = f[name].id.get_chunk_info(0)
    return chunk.byte_offset + chunk.size // 2


REFUSED = {
    "empty": (lambda f: f.write_bytes(b""), "is empty"),
    "text": (lambda f: f.write_text("t,q\n0,1\n"), "is not a netCDF-4 file"),
    "pickle": (lambda f: f.write_bytes(pickle.dumps({"t": 0.0})), "is not a netCDF-4 file"),
    "folder": (lambda f: (f.unlink(), f.mkdir()), "is not a file"),
    "foreign netCDF": (foreign_netcdf, "not written by stickslip"),
    "foreign HDF5": (foreign_hdf5, "not written by stickslip"),
    "newer": (lambda f: with_attribute(f, "stickslip_format", 9),
              "has format 9, this stickslip reads formats up to 2"),
    "no number": (lambda f: with_attribute(f, "stickslip_format", "one"), "damaged: stickslip_format is one"),
    "missing": (lambda f: rewritten(f, lambda d: d.drop_vars(["u", "residual"])), "incomplete: u, residual"),
    "no record": (lambda f: rewritten(f, lambda d: d.drop_vars("record")), "damaged: its record"),
    "narrower": (lambda f: rewritten(f, lambda d: d.isel(coordinate=[0])),
                 r"q is t x coordinate = \(26, 1\), expected"),
    "transposed": (lambda f: rewritten(f, lambda d: d.assign(q=d.q.T)), "wrong shape: q is coordinate x t"),
    "shorter": (lambda f: rewritten(f, lambda d: d.isel(t=slice(0, 5))), "wrong shape"),
    "edited": (lambda f: rewritten(f, lambda d: d.assign(u=2.0 * d.u)), "does not fit its digest"),
    "renamed": (lambda f: with_attribute(f, "system", "Another"), "does not fit its digest"),
    "flipped": (lambda f: flipped(f, in_array(f)), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_solution_is_refused_by_name_and_reason(kind, file):
    ss.load(file)
    spoil, words = REFUSED[kind]
    spoil(file)
    with pytest.raises(ss.FileError, match=words) as refused:
        ss.load(file)
    assert str(file) in str(refused.value)


def test_a_variable_of_the_future_is_not_dropped_silently(file, monkeypatch):
    monkeypatch.delitem(dataset.VARIABLES, "residual")
    with pytest.raises(ss.FileError, match="does not know: residual"):
        ss.load(file)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.nc: no such file"):
        ss.load(tmp_path / "nowhere.nc")


def test_the_name_must_end_in_nc(sol, tmp_path):
    for name in ("run.csv", "run", "run.nc.gz"):
        with pytest.raises(ValueError, match=f"{name}: the name must end in .nc"):
            sol.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", [1, 7, 8, 40, 95, 96, 1000, 0.5, 0.9, -1])
def test_a_truncated_file_is_refused(part, file):
    content = file.read_bytes()
    file.write_bytes(content[: int(part * len(content)) if isinstance(part, float) else part])
    with pytest.raises(ss.FileError, match=r"ball\.nc is truncated"):
        ss.load(file)


def test_flipped_bytes_are_found_or_do_not_matter(sol, file):
    content, rng = file.read_bytes(), np.random.default_rng(0)
    arrays = [in_array(file, name) for name in ("t", "q", "u", "P_N", "record", "residual", "g_N")]
    found = set()
    for position in (*arrays, *rng.integers(0, len(content), 40).tolist()):
        file.write_bytes(content)
        flipped(file, position, int(rng.integers(1, 256)))
        try:
            back = ss.load(file)
        except ss.FileError:
            found.add(position)
        else:
            same(sol, back)
    assert found >= set(arrays)


def test_arrays_have_checksums_of_their_own(file):
    with h5py.File(file, "r") as f:
        for name in ("t", "q", "u", "P_N", "record"):
            assert f[name].fletcher32
            assert f[name].compression == "gzip"


# A file is whole or not there


def test_folders_are_made_and_a_file_is_replaced(sol, tmp_path):
    target = tmp_path / "a" / "b" / "run.nc"
    sol.save(target)
    target.chmod(0o640)
    other = dataclasses.replace(sol, u=2.0 * sol.u)
    other.save(str(target))
    same(ss.load(str(target)), other)
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(target.parent) == ["run.nc"]


def test_a_link_stays_a_link(sol, tmp_path):
    (tmp_path / "link.nc").symlink_to(tmp_path / "real.nc")
    sol.save(tmp_path / "link.nc")
    assert (tmp_path / "link.nc").is_symlink()
    same(ss.load(tmp_path / "real.nc"), sol)


def half_a_file(self, path, **_):
    Path(path).write_bytes(b"\x89HDF")
    raise OSError("no space left")


def no_rights(*_):
    raise OSError("not allowed")


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("owner", "name", "broken", "error"),
    [
        (xr.Dataset, "to_netcdf", half_a_file, OSError),
        (os, "fsync", interrupted, KeyboardInterrupt),
        (os, "replace", no_rights, OSError),
    ],
)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    sol, file, monkeypatch, owner, name, broken, error
):
    before, other = file.read_bytes(), dataclasses.replace(sol, u=2.0 * sol.u)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        with pytest.raises(error):
            other.save(file)
    assert os.listdir(file.parent) == ["ball.nc"]
    assert file.read_bytes() == before
    same(ss.load(file), sol)


SLOW = """
import dataclasses, os, sys, time
from pathlib import Path
import stickslip as ss

def slow(handle):
    Path(sys.argv[2]).touch()
    time.sleep(600)

sol = ss.load(sys.argv[1])
if sys.argv[3] == "writing":  # half of the bytes are there
    import xarray as xr
    whole = xr.Dataset.to_netcdf
    def half(self, path, **options):
        whole(self, path, **options)
        os.truncate(path, os.path.getsize(path) // 2)
        slow(None)
    xr.Dataset.to_netcdf = half
else:
    os.fsync = slow
dataclasses.replace(sol, u=2.0 * sol.u).save(sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["writing", "before the new name"])
def test_a_killed_save_leaves_the_old_file(sol, file, moment):
    mark = file.parent / "mark"
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(file), str(mark), moment])
    try:
        began = time.monotonic()
        while not mark.exists():
            assert child.poll() is None, "it ended by itself"
            assert time.monotonic() - began < 120
            time.sleep(0.05)
        assert len(list(file.parent.glob(".ball.nc.*.part"))) == 1  # it is in the middle of it
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    same(ss.load(file), sol)
    dataclasses.replace(sol, u=2.0 * sol.u).save(file)  # and the next save is not in its way
    assert np.array_equal(ss.load(file).u, 2.0 * sol.u)


def test_the_page_about_files_names_every_variable():
    page = (Path(__file__).parent.parent / "docs" / "files.md").read_text()
    for name, variable in dataset.VARIABLES.items():
        row = re.search(rf"\| `{name}`.*", page)
        assert row, name
        assert f"({', '.join(variable.dims)})" in row[0]
