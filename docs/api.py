"""The API page: every public name with its signature, defaults, fields and what they mean,
read from the code itself.

`mkdocs build` calls it for lines "::: name" of api.md; `python docs/api.py` prints the page. What a field
means stands behind it in the source, as a comment; `tests/test_docs.py` asks for one behind every field.
"""

import dataclasses
import functools
import inspect
import io
import re
import textwrap
import tokenize
import types
from pathlib import Path
from typing import Any

import stickslip as ss
from stickslip.dataset import VARIABLES

COMMON = {  # what fields of many classes mean
    "solver": "of the problem in each step",
    "projected": "whether the end of a step is projected onto constraints and contacts",
    "stages": "their number s, which decides the order",
    "rho_inf": "spectral radius at infinite frequency, 0 (all is damped) to 1 (nothing is)",
    "form": '"velocity" or "momentum"; the second is symplectic where M depends on q',
    "integrated": "laws on differences of the stages, which loses orders",
    "order": "of a smooth step, 1 to 20",
    "enduring": '"newton", or "modified" restitution of contacts that stay closed',
    "atol": "absolute tolerance of the solve",
    "rtol": "relative tolerance of the solve",
    "max_iterations": "before it gives up",
    "max_newton_iterations": "of the motion inside an iteration",
    "relaxation": "factor of each update, 0 to 1",
    "proximal": 'proximal parameters: "diagonal", "method", "contracting", a number, or r_N and r_F',
    "color": "as in CSS",
    "width": "in pixels",
    "opacity": "0 to 1",
}
LINE = re.compile(r"^::: (\S+)$", flags=re.M)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs: a page on its way to the site."""
    return expanded(markdown) if page.file.src_path == "api.md" else markdown


def expanded(markdown: str) -> str:
    return LINE.sub(lambda found: f"{entry(found.group(1))}\n\n", markdown)


def entry(path: str) -> str:
    """One name, as the page shows it."""
    what: Any = functools.reduce(getattr, path.split(".")[1:], ss)
    name = path.replace("stickslip.", "ss.", 1)
    if isinstance(what, types.ModuleType):
        return _module(name, what)
    return _class(name, what) if inspect.isclass(what) else _function(name, what, "###")


def _module(name: str, module: types.ModuleType) -> str:
    own = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", "").startswith(module.__name__)
    }
    parts = [f"### {name}", inspect.getdoc(module) or ""]
    for key, value in own.items():
        show = _class if inspect.isclass(value) else _function
        parts.append(show(f"{name}.{key}", value, "####"))
    parts += [
        _module(f"{name}.{key}", value)
        for key, value in vars(module).items()
        if isinstance(value, types.ModuleType)
        and value.__name__.startswith(f"{module.__name__}.")
        and name == "ss.rigid"
    ]
    return "\n\n".join(parts)


def _signature(name: str, f: Any) -> str:
    """As somebody would write a call, with defaults; one parameter a line where it is long."""
    try:
        parameters = [p for p in inspect.signature(f).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):
        return f"{name}(...)"
    words, keyword_only = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            words.append("*")
            keyword_only = True
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        words.append(f"{star}{p.name}" + ("" if p.default is p.empty else f"={_default(p.default)}"))
    short = f"{name}({', '.join(words)})"
    return short if len(short) <= 100 else f"{name}(\n    " + ",\n    ".join(words) + ",\n)"


def _default(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"ss.{type(value).__name__}()"
    if value is dataclasses.MISSING or "object" in repr(value) or "factory" in repr(value):
        return "..."
    return repr(value)


def _function(name: str, f: Any, level: str) -> str:
    text = inspect.getdoc(f) or ""
    return f"{level} {name}\n\n```\n{_signature(name, f)}\n```\n\n{text}"


def _class(name: str, cls: type, level: str = "###") -> str:
    fields = described(cls)
    parts = [f"{level} {name}", f"```\n{_call(name, cls)}\n```", inspect.getdoc(cls) or ""]
    if fields:
        rows = [f"| `{key}` | {default} | {meaning} |" for key, default, meaning in fields]
        parts.append("\n".join(["| field | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts + [_member(key, value) for key, value in _members(cls)])


def _call(name: str, cls: type) -> str:
    if issubclass(cls, tuple | Exception) or not dataclasses.is_dataclass(cls):
        return name
    return _signature(name, cls)


def _members(cls: type) -> list[tuple[str, Any]]:
    """Methods and properties of the class itself, and of what it inherits within this package."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("stickslip"):
            for key, value in vars(base).items():
                plain = isinstance(value, types.FunctionType | property | classmethod) or hasattr(
                    value, "__wrapped__"
                )
                if (
                    plain
                    and not key.startswith("_")
                    and key not in found
                    and inspect.getdoc(getattr(cls, key))
                ):
                    found[key] = value
    shown = (
        "System",
        "LagrangianSystem",
        "Solution",
        "Events",
        "Stats",
        "Convergence",
        "Method",
        "Solver",
        "FrictionLaw",
    )
    return list(found.items()) if cls.__name__ in shown else []


def _member(key: str, value: Any) -> str:
    text = textwrap.indent(inspect.getdoc(value) or "", "    ")
    call = f"`{key}`" if isinstance(value, property) else f"`{_signature(key, inspect.unwrap(value))}`"
    return f"- {call}\n\n{text}"


def described(cls: type) -> list[tuple[str, str, str]]:
    """Fields with default and meaning, those of base classes first."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        comments = _comments(cls)
        return [(key, "", comments.get(key, "")) for key in cls._fields]
    if not dataclasses.is_dataclass(cls):
        return []
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("stickslip"):
            comments |= _comments(base)
    out = []
    for field in dataclasses.fields(cls):
        default = "" if field.default is dataclasses.MISSING else f"`{_default(field.default)}`"
        if field.default_factory is not dataclasses.MISSING:
            default = f"`{_default(field.default_factory())}`"
        meaning = comments.get(field.name) or COMMON.get(field.name, "")
        if issubclass(cls, ss.Method) and field.name == "friction":
            meaning = '"stagewise", of full order where slip turns, or "printed" as in the papers'
        if field.name in VARIABLES and cls in (ss.Solution, ss.Forces, ss.InitialState, ss.Stats):
            of = VARIABLES[field.name]
            dims = f"({', '.join(of.dims)}): " if cls in (ss.Solution, ss.Stats) else ""
            meaning = f"{dims}{of.meaning}" + (
                f", in {of.unit}" if len(of.unit) > 1 or of.unit in ("s", "m", "N", "J") else ""
            )
        out.append((field.name, default, meaning))
    return out


def _comments(cls: type) -> dict[str, str]:
    """What stands behind the fields of a class, or above them, by name."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    name, depth, above = "", 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type == tokenize.NEWLINE:
            name = above = ""  # a statement ends; its comment came before
        if token.type == tokenize.NAME and token.start[1] == 4 and re.match(r"    \w+:", token.line):
            name = token.string
            if above:
                found.setdefault(name, above)
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(type|fmt|noqa)\b", token.string):
            said = token.string.removeprefix("#").strip()
            if name:
                found.setdefault(name, said)
            elif token.start[1] == 4:
                above = f"{above} {said}".strip()
    return found


if __name__ == "__main__":
    print(expanded((Path(__file__).parent / "api.md").read_text()))
