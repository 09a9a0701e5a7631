"""URDF, checked and as MuJoCo takes it."""

import re
from pathlib import Path
from xml.etree import ElementTree

from .scene import SceneError


def root_of(text: str) -> ElementTree.Element | None:
    """None where it is not quite XML, which MuJoCo may read nevertheless."""
    try:
        return ElementTree.fromstring(text.strip())
    except ElementTree.ParseError:
        return None


def as_mujoco_reads_it(root: ElementTree.Element, path: Path, said: list[str]) -> str:
    """URDF as MuJoCo takes it: meshes by their place on this disk, visuals dropped, bodies kept apart."""
    _check_urdf(root, path)
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    said += [
        f"<{tag}> of URDF: left out"
        for tag in ("transmission", "gazebo", "sensor")
        if root.find(tag) is not None
    ]
    for mesh in root.iter("mesh"):
        mesh.set("filename", str(_found(mesh.get("filename", ""), path)))
    extension = root.find("mujoco")
    extension = ElementTree.SubElement(root, "mujoco") if extension is None else extension
    compiler = extension.find("compiler")
    compiler = ElementTree.SubElement(extension, "compiler") if compiler is None else compiler
    for key, value in (
        ("strippath", "false"),
        ("discardvisual", "true"),
        ("fusestatic", "false"),
        ("balanceinertia", "false"),
    ):
        compiler.set(key, value)
    return ElementTree.tostring(root, encoding="unicode")


def _check_urdf(root: ElementTree.Element, path: Path) -> None:
    """What MuJoCo would say in words of its own, or not at all."""
    links = [link.get("name", "") for link in root.findall("link")]
    for name in links:
        if links.count(name) > 1:
            raise SceneError(f"{path.name}: link {name!r} is there twice")
    parents: dict[str, str] = {}
    for joint in root.findall("joint"):
        name = joint.get("name", "")
        ends = {}
        for end in ("parent", "child"):
            element = joint.find(end)
            ends[end] = "" if element is None else element.get("link", "")
            if ends[end] not in links:
                raise SceneError(
                    f"{path.name}: joint {name!r}: its {end} {ends[end]!r} is no link of this file"
                )
        if ends["child"] in parents:
            raise SceneError(f"{path.name}: link {ends['child']!r} has two parents: loops are not for URDF")
        parents[ends["child"]] = ends["parent"]
    for name in links:
        line, at = [name], name
        while at in parents:
            at = parents[at]
            if at in line:
                raise SceneError(f"{path.name}: links {' -> '.join([*line, at])} are a cycle")
            line.append(at)
    for link in root.findall("link"):
        mass = link.find("inertial/mass")
        if mass is not None and not float(mass.get("value", "nan")) >= 0.0:
            raise SceneError(
                f"{path.name}: link {link.get('name')!r}: mass must not be negative, got {mass.get('value')}"
            )


def _found(name: str, path: Path) -> Path:
    """A mesh, given by package://, file:// or a path beside the file or above it."""
    plain = re.sub(r"^(package|model|file)://", "", name)
    package = name.startswith(("package://", "model://"))
    tails = [plain, *(["/".join(plain.split("/")[1:])] if package and "/" in plain else [])]
    for folder in (path.parent, *path.resolve().parents):
        for tail in tails:
            if (folder / tail).is_file():
                return (folder / tail).resolve()
    raise SceneError(f"{path.name}: mesh {name!r} was not found beside the file or above it")
