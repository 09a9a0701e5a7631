"""MJCF and URDF: MuJoCo's parser reads the file, on the host; what a scene has is carried over,
the rest is said.

Nothing of MuJoCo's dynamics is used. Coordinates stay those of the file: q and u are qpos and qvel.
"""

import itertools
import math
import re
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import laws
from ..extras import need
from . import elements as el
from .body import Body
from .joints import BallJoint, Free, Hinge, Joint, Slider
from .meeting import why_not
from .meshes import HeightField
from .numbers import matrix
from .scene import Scene, SceneError
from .shapes import Ball, Box, Capsule, Cylinder, Ellipsoid, Hull, Plane, Shape
from .urdf import as_mujoco_reads_it, root_of

LARGEST_FILE = 64_000_000  # bytes of XML


def load(path: str | PathLike, e_N: float = 0.0, floating: bool = False, pairs: bool = False) -> Scene:
    """See `Scene.load`."""
    mujoco = need("mujoco", "scenes", "Scene.load")
    path = Path(path)
    text = _checked_text(path)
    said: list[str] = []
    try:
        model = _parsed(mujoco, path, text, said)
    except (ValueError, mujoco.FatalError) as error:
        raise SceneError(f"{path.name}: {_first_line(error)}") from None
    return _Import(mujoco, model, said, e_N, pairs).scene(floating)


def _checked_text(path: Path) -> str:
    """The file, if it is one that a parser may be let loose on."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if path.suffix.lower() not in (".xml", ".urdf", ".mjcf"):
        raise SceneError(f"{path.name}: a scene is loaded from MJCF (.xml) or URDF (.urdf)")
    if path.stat().st_size > LARGEST_FILE:
        raise SceneError(
            f"{path.name}: {path.stat().st_size} bytes are more than a description of a mechanism has"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SceneError(f"{path.name}: it is not text in UTF-8") from None
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise SceneError(
            f"{path.name}: it defines entities (<!DOCTYPE ...>), which no mechanism needs: they are not read"
        )
    return text


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _parsed(mujoco: Any, path: Path, text: str, said: list[str]) -> Any:
    root = root_of(text)
    if root is None and "<robot" in text:
        said.append("visuals and meshes by package://: not looked for, because the file is not quite XML")
    if root is not None and root.tag not in ("mujoco", "robot"):
        raise SceneError(
            f"{path.name}: its root is <{root.tag}>: MJCF begins with <mujoco>, URDF with <robot>"
        )
    if root is None or root.tag == "mujoco":
        return mujoco.MjModel.from_xml_path(str(path))
    return mujoco.MjSpec.from_string(as_mujoco_reads_it(root, path, said)).compile()


class _Import:
    """A model of MuJoCo's, thing by thing."""

    def __init__(self, mujoco: Any, model: Any, said: list[str], e_N: float, pairs: bool):
        self.mujoco, self.m, self.said, self.e_N, self.pairs = mujoco, model, said, e_N, pairs
        self.names = self._named("body", model.nbody, "body")
        self.joint_names = self._named("joint", model.njnt, "joint")
        self.geom_names = self._named("geom", model.ngeom, "geom")

    def _named(self, kind: str, count: int, default: str) -> list[str]:
        """Names of all, with numbers for those that have none; the characters of patterns are replaced."""
        wanted = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        out: list[str] = []
        taken = set(getattr(self, "names", ())) | set(getattr(self, "joint_names", ()))
        for i in range(count):
            name = self.mujoco.mj_id2name(self.m, wanted, i) or (f"{default} {i}" if default else "")
            name = re.sub(r"[*?\[\]]", "_", name)
            while name and (name in taken or name in out or (name == "world" and i > 0)):
                name = f"{name} {kind}"
            out.append(name)
        return out

    def scene(self, floating: bool) -> Scene:
        m = self.m
        self._ignore_options()
        bodies = [self._body(i) for i in range(1, m.nbody)]
        ground = [self._shape(g) for g in self._geoms(0)]
        if floating:
            bodies = [_let_go(body) for body in bodies]
        if any(shape is not None for shape in ground) or not bodies:
            bodies.insert(0, Body("ground", *(s for s in ground if s is not None), fixed=True))
        things = [*bodies, *self._rules(), *self._equalities(), *self._motors()]
        if m.opt.density > 0.0 or m.opt.viscosity > 0.0:
            things.append(el.Fluid(m.opt.density, m.opt.viscosity, m.opt.wind))
        try:
            gravity = np.zeros(3) if self._disabled("GRAVITY") else np.array(m.opt.gravity)
            return Scene(*things, gravity=gravity, ignored=tuple(dict.fromkeys(self.said)))
        except SceneError as error:
            raise SceneError(f"{error}; it came from a file") from None

    # -- bodies
    def _geoms(self, body: int) -> range:
        return range(self.m.body_geomadr[body], self.m.body_geomadr[body] + self.m.body_geomnum[body])

    def _body(self, i: int) -> Body:
        m = self.m
        joints = range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i])
        shapes = [shape for shape in (self._shape(g) for g in self._geoms(i)) if shape is not None]
        parent = self.names[m.body_parentid[i]] if m.body_parentid[i] else None
        free = any(m.jnt_type[j] == self.mujoco.mjtJoint.mjJNT_FREE for j in joints)
        if m.body_mocapid[i] >= 0:
            self.said.append(f"body {self.names[i]!r}: mocap bodies are fixed here; give it a motion")
        if m.body_gravcomp[i] != 0.0:
            self.said.append(f"body {self.names[i]!r}: gravcomp is left out")
        place: dict[str, Any] = {"at": m.body_pos[i].copy(), "rotation": m.body_quat[i].copy()}
        if free:
            j = m.jnt_qposadr[joints[0]]
            place = {"at": m.qpos0[j : j + 3].copy(), "rotation": m.qpos0[j + 3 : j + 7].copy()}
        moving = bool(joints) or self._moves(m.body_parentid[i])
        weight: dict[str, Any] = {}
        if moving or m.body_mass[i] > 0.0:
            mass = float(m.body_mass[i])
            weight = {
                "mass": mass,
                "centre": m.body_ipos[i].copy(),
                "inertia": _turned(m.body_inertia[i], m.body_iquat[i]),
            }
        hung = tuple(self._joint(j) for j in joints)
        return Body(
            self.names[i],
            *shapes,
            parent=parent,
            joint=hung,
            fixed=not moving and parent is None,
            **place,
            **weight,
        )

    def _moves(self, i: int) -> bool:
        while i:
            if self.m.body_jntnum[i]:
                return True
            i = self.m.body_parentid[i]
        return False

    def _joint(self, j: int) -> Joint:
        m, kinds = self.m, self.mujoco.mjtJoint
        name, kind, dof = self.joint_names[j], m.jnt_type[j], m.jnt_dofadr[j]
        common = {
            "damping": 0.0 if self._disabled("DAMPER") else float(m.dof_damping[dof]),
            "friction": 0.0 if self._disabled("FRICTIONLOSS") else float(m.dof_frictionloss[dof]),
            "armature": float(m.dof_armature[dof]),
        }
        if np.any(np.asarray(getattr(m, "dof_dampingpoly", 0.0))) or np.any(
            np.asarray(getattr(m, "jnt_stiffnesspoly", 0.0))
        ):
            self.said.append(
                f"joint {name!r}: polynomials of damping and stiffness are taken as their first term"
            )
        limited = bool(m.jnt_limited[j]) and not self._disabled("LIMIT")
        low, high = (float(x) for x in m.jnt_range[j])
        stiffness = 0.0 if self._disabled("SPRING") else float(m.jnt_stiffness[j])
        if limited and float(m.jnt_margin[j]) != 0.0:
            self.said.append(f"joint {name!r}: margin {float(m.jnt_margin[j]):g} of its limits is left out")
        if kind == kinds.mjJNT_FREE:
            return Free(name, **common)
        if kind == kinds.mjJNT_BALL:
            if stiffness:
                self.said.append(f"joint {name!r}: the spring of a ball joint is left out")
            limit = {"limit": high} if limited and high < math.pi else {}
            start = m.qpos0[m.jnt_qposadr[j] :][:4].copy()
            return BallJoint(name, at=m.jnt_pos[j].copy(), rotation=start, e_N=self.e_N, **limit, **common)
        start = float(m.qpos0[m.jnt_qposadr[j]])
        more: dict[str, Any] = {"limits": (low, high), "e_N": self.e_N} if limited else {}
        more |= {"stiffness": stiffness, "rest": float(m.qpos_spring[m.jnt_qposadr[j]]), "zero": start}
        if kind == kinds.mjJNT_HINGE:
            return Hinge(name, m.jnt_axis[j].copy(), at=m.jnt_pos[j].copy(), angle=start, **more, **common)
        return Slider(name, m.jnt_axis[j].copy(), position=start, **more, **common)

    # -- shapes
    def _shape(self, g: int) -> Shape | None:  # noqa: PLR0911 (a list of cases)
        m, kinds = self.m, self.mujoco.mjtGeom
        r = m.geom_size[g]
        rgba = m.geom_rgba[g] if m.geom_matid[g] < 0 else m.mat_rgba[m.geom_matid[g]]
        look: dict[str, Any] = {
            "at": m.geom_pos[g].copy(), "rotation": m.geom_quat[g].copy(), "name": self.geom_names[g],
            "color": "#" + "".join(f"{round(255 * min(max(float(c), 0.0), 1.0)):02x}" for c in rgba[:3]),
        }  # fmt: skip
        kind = m.geom_type[g]
        if kind == kinds.mjGEOM_SPHERE:
            return Ball(r[0], **look)
        if kind == kinds.mjGEOM_BOX:
            return Box(*(2.0 * r), **look)
        if kind == kinds.mjGEOM_CAPSULE:
            return Capsule(r[0], 2.0 * r[1], **look)
        if kind == kinds.mjGEOM_CYLINDER:
            return Cylinder(r[0], 2.0 * r[1], **look)
        if kind == kinds.mjGEOM_ELLIPSOID:
            return Ellipsoid(*r, **look)
        if kind == kinds.mjGEOM_PLANE:
            return Plane(**look, size=float(r[0]) or None)
        if kind == kinds.mjGEOM_MESH:
            mesh = m.geom_dataid[g]
            at = m.mesh_vertadr[mesh]
            return Hull(m.mesh_vert[at : at + m.mesh_vertnum[mesh]].astype(float), **look)
        if kind == kinds.mjGEOM_HFIELD and not self._moves(m.geom_bodyid[g]):
            field = m.geom_dataid[g]
            rows, columns, at = m.hfield_nrow[field], m.hfield_ncol[field], m.hfield_adr[field]
            x, y, top, base = m.hfield_size[field]
            heights = top * m.hfield_data[at : at + rows * columns].reshape(rows, columns).astype(float)
            return HeightField(heights, (2.0 * x, 2.0 * y), depth=base + heights.min(), **look)
        self.said.append(
            f"{self._geom(g)}: {kinds(kind).name.removeprefix('mjGEOM_').lower()} shapes are left out"
        )
        return None

    def _geom(self, g: int) -> str:
        return f"geom {self.geom_names[g]!r} of {self.names[self.m.geom_bodyid[g]]!r}"

    # -- contacts
    def _rules(self) -> list[el.Contact]:
        """One for every pair that the file lets touch; what is left out is counted and said."""
        m, kinds = self.m, self.mujoco.mjtGeom
        if self._disabled("CONTACT"):
            return []
        out, between = [], 0
        excluded = {(s >> 16, s & 0xFFFF) for s in m.exclude_signature}
        explicit = {
            (int(a), int(b)): k for k, (a, b) in enumerate(zip(m.pair_geom1, m.pair_geom2, strict=True))
        }
        for a, b in itertools.combinations(range(m.ngeom), 2):
            pair = explicit.get((a, b), explicit.get((b, a)))
            if pair is None and not self._may_touch(a, b, excluded):
                continue
            planes = [g for g in (a, b) if m.geom_type[g] == kinds.mjGEOM_PLANE]
            fields = any(m.geom_type[g] == kinds.mjGEOM_HFIELD for g in (a, b))
            if (
                len(planes) == 2
                or (planes and fields)
                or any(m.geom_type[g] == kinds.mjGEOM_SDF for g in (a, b))
            ):
                continue
            if planes:
                out.append(self._rule(b if planes[0] == a else a, planes[0], pair))
            elif pair is None and not self.pairs:
                between += 1
            else:
                out += self._meeting(a, b, pair)
        if between:
            self.said.append(
                f"{between} pairs of shapes without a plane: they do not touch (Scene.load(..., pairs=True))"
            )
        return self._merged(out)

    def _meeting(self, a: int, b: int, pair: int | None) -> list[tuple[int, int, tuple[Any, ...]]]:
        """Of two shapes without a plane, if they are of kinds that meet."""
        first, second = self._shape(a), self._shape(b)
        if first is None or second is None:
            return []
        reason = why_not(first, second, False)
        if reason:
            self.said.append(f"{self._geom(a)} and {self._geom(b)} do not touch: {reason}")
        return [] if reason else [self._rule(a, b, pair)]

    def _merged(self, found: list[tuple[int, int, tuple[Any, ...]]]) -> list[el.Contact]:
        """One rule for all shapes that meet a plane by the same law."""
        groups: dict[Any, list[str]] = {}
        for solid, plane, law in found:
            groups.setdefault((self.geom_names[plane], law), []).append(self.geom_names[solid])
        return [
            el.Contact(tuple(solids), plane, e_N=self.e_N, friction=tuple(_law(*part) for part in law))
            for (plane, law), solids in groups.items()
        ]

    def _may_touch(self, a: int, b: int, excluded: set[tuple[int, int]]) -> bool:
        m = self.m
        i, j = int(m.geom_bodyid[a]), int(m.geom_bodyid[b])
        if m.body_weldid[i] == m.body_weldid[j] or (i, j) in excluded or (j, i) in excluded:
            return False
        wi, wj = m.body_weldid[i], m.body_weldid[j]
        up = [m.body_weldid[m.body_parentid[w]] for w in (wi, wj)]
        filtered = not self._disabled("FILTERPARENT")
        if filtered and wi and wj and (up[0] == wj or up[1] == wi):
            return False
        return bool(
            (m.geom_contype[a] & m.geom_conaffinity[b]) or (m.geom_contype[b] & m.geom_conaffinity[a])
        )

    def _rule(self, solid: int, plane: int, pair: int | None) -> tuple[int, int, tuple[Any, ...]]:
        m = self.m
        if pair is not None:
            dim, mu = int(m.pair_dim[pair]), m.pair_friction[pair]
            sliding, torsion, rolling = mu[:2], mu[2], mu[3]
        else:
            higher = np.argmax([m.geom_priority[solid], m.geom_priority[plane]])
            equal = m.geom_priority[solid] == m.geom_priority[plane]
            chosen = [solid, plane] if equal else [(solid, plane)[higher]]
            dim = max(int(m.geom_condim[g]) for g in chosen)
            mu = np.max([m.geom_friction[g] for g in chosen], axis=0)
            sliding, torsion, rolling = np.array([mu[0], mu[0]]), mu[1], mu[2]
        law: list[Any] = []
        if dim >= 3 and sliding[0] == sliding[1]:
            law.append(("coulomb", float(sliding[0])))
        elif dim >= 3:
            law.append(("elliptic", float(sliding[0]), float(sliding[1])))
        if dim >= 4:
            law.append(("pivoting", float(torsion)))
        if dim >= 6:
            law.append(("rolling", float(rolling)))
        return solid, plane, tuple(law)

    # -- loops and drives
    def _equalities(self) -> list[Any]:
        m, kinds = self.m, self.mujoco.mjtEq
        out: list[Any] = []
        for k in range(0 if self._disabled("EQUALITY") else m.neq):
            name = self.mujoco.mj_id2name(m, self.mujoco.mjtObj.mjOBJ_EQUALITY, k) or f"equality {k}"
            if not m.eq_active0[k]:
                self.said.append(f"{name}: not active, left out")
                continue
            kind, data, i = kinds(int(m.eq_type[k])).name, m.eq_data[k], int(m.eq_obj1id[k])
            j = int(m.eq_obj2id[k])
            of_bodies = int(m.eq_objtype[k]) == int(self.mujoco.mjtObj.mjOBJ_BODY)
            if kind == "mjEQ_JOINT":
                out.append(self._coupling(i, j, data, name))
            elif kind in ("mjEQ_CONNECT", "mjEQ_WELD") and of_bodies:
                first, second = (self.names[b] if b else "world" for b in (i, j))
                if kind == "mjEQ_CONNECT":
                    out.append(
                        el.Connect(
                            first, second, first_at=data[:3].copy(), second_at=data[3:6].copy(), name=name
                        )
                    )
                else:
                    place = (data[3:6].copy(), data[6:10].copy())
                    out.append(el.Glue(first, second, place=place, name=name))
            else:
                self.said.append(
                    f"{name}: equalities of the kind {kind.removeprefix('mjEQ_').lower()} are left out"
                )
        return out

    def _coupling(self, i: int, j: int, data: Any, name: str) -> el.Coupling:
        """q_i - q_i0 is a polynomial of q_j - q_j0."""
        m = self.m
        start = float(m.qpos0[m.jnt_qposadr[i]])
        if j < 0:
            return el.Coupling(self.joint_names[i], None, (start + data[0],), name=name)
        shifted = np.poly1d(data[4::-1])(np.poly1d([1.0, -float(m.qpos0[m.jnt_qposadr[j]])]))
        a = np.zeros(5)
        a[: len(shifted.coeffs)] = shifted.coeffs[::-1]
        a[0] += start
        return el.Coupling(self.joint_names[i], self.joint_names[j], a, name=name)

    def _motors(self) -> list[el.Motor]:
        m, mj, out = self.m, self.mujoco, []
        for k in range(0 if self._disabled("ACTUATION") else m.nu):
            name = mj.mj_id2name(m, mj.mjtObj.mjOBJ_ACTUATOR, k) or f"actuator {k}"
            while name in self.names or name in self.joint_names:
                name = f"{name} motor"
            reason = self._unusual(k)
            if reason:
                self.said.append(f"{name}: {reason}, left out")
                continue
            joint = self.joint_names[m.actuator_trnid[k, 0]]
            bias = (
                np.zeros(3)
                if int(m.actuator_biastype[k]) == int(mj.mjtBias.mjBIAS_NONE)
                else m.actuator_biasprm[k, :3].copy()
            )
            limits = {}
            if m.actuator_ctrllimited[k]:
                limits["control_limits"] = m.actuator_ctrlrange[k].copy()
            if m.actuator_forcelimited[k]:
                limits["limits"] = m.actuator_forcerange[k].copy()
            gear, gain = float(m.actuator_gear[k, 0]), float(m.actuator_gainprm[k, 0])
            out.append(el.Motor(name, joint, gear=gear, gain=gain, bias=bias, **limits))
        return out

    def _unusual(self, k: int) -> str:
        m, mj = self.m, self.mujoco
        acts_on = mj.mjtTrn(int(m.actuator_trntype[k])).name.removeprefix("mjTRN_").lower()
        if acts_on not in ("joint", "jointinparent"):
            return f"an actuator on a {acts_on}"
        if mj.mjtJoint(int(m.jnt_type[m.actuator_trnid[k, 0]])).name not in ("mjJNT_HINGE", "mjJNT_SLIDE"):
            return "an actuator on a joint with several degrees of freedom"
        if mj.mjtDyn(int(m.actuator_dyntype[k])).name != "mjDYN_NONE":
            return "an actuator with a state of its own"
        gain = mj.mjtGain(int(m.actuator_gaintype[k])).name
        bias = mj.mjtBias(int(m.actuator_biastype[k])).name
        if gain != "mjGAIN_FIXED" or bias not in ("mjBIAS_NONE", "mjBIAS_AFFINE"):
            return "an actuator with a gain that is not constant"
        return ""

    def _disabled(self, what: str) -> bool:
        """By a flag of the file's options; what a version of MuJoCo does not know is not."""
        bit = getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{what}", 0)
        every = what in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY") and self._disabled("CONSTRAINT")
        return bool(int(self.m.opt.disableflags) & int(bit)) or every

    # -- what is not carried over
    def _ignore_options(self) -> None:
        m, said = self.m, self.said
        count = {"tendon": m.ntendon, "flexible body": m.nflex, "skin": m.nskin, "plugin": m.nplugin,
                 "keyframe": m.nkey, "sensor": m.nsensor, "camera": m.ncam, "light": m.nlight}  # fmt: skip
        said += [f"{n} {what}{'s' if n > 1 else ''}: left out" for what, n in count.items() if n]
        if m.ntendon and (np.any(m.tendon_stiffness) or np.any(m.tendon_damping) or np.any(m.tendon_limited)):
            said.append("springs, dampers and limits of tendons: left out")
        touching = m.ngeom and not self._disabled("CONTACT")
        if touching:
            said.append("softness of contacts (solref, solimp, margin, gap): contacts are rigid here")
        if m.njnt and np.any(m.jnt_limited):
            said.append("softness of joint limits (solreflimit, solimplimit): limits are rigid here")
        if np.any(m.dof_frictionloss):
            said.append("softness of joint friction (solreffriction, solimpfriction): it is dry here")
        if touching or np.any(m.jnt_limited):
            said.append(
                f"restitution is not in such files: e_N = {self.e_N:g} everywhere (Scene.load(..., e_N=...))"
            )
        if m.neq:
            said.append("softness of equalities: they hold exactly here")
        if np.any(m.geom_fluid):
            said.append("fluid forces on ellipsoids (fluidshape): left out")
        if np.any(m.opt.magnetic != np.array([0.0, -0.5, 0.0])):
            said.append("magnetic field: left out")


def _let_go(body: Body) -> Body:
    """A root that is fixed in the file, free."""
    if not body.fixed:
        return body
    weight = {name: getattr(body, name) for name in ("mass", "centre", "inertia", "at", "rotation")}
    return Body(body.name, *body.shapes, **weight)


def _law(kind: str, *mu: float) -> laws.FrictionLaw:
    if kind == "elliptic":
        return laws.Coulomb(max(mu), dim=2, axes=np.array(mu) / max(mu))
    if kind == "coulomb":
        return laws.Coulomb(mu[0], dim=2)
    return laws.Pivoting(mu[0]) if kind == "pivoting" else laws.Rolling(mu[0], dim=2)


def _turned(moments: Any, quaternion: Any) -> np.ndarray:
    A = matrix(np.asarray(quaternion, dtype=float))
    inertia = (A * moments) @ A.T
    return 0.5 * (inertia + inertia.T)
