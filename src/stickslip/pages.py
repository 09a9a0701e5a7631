"""Pages that need no network: templates filled, styles and scripts carried along."""

import json
from importlib.resources import files
from typing import Any

from .extras import need, need_all

NEEDED = {"jinja2": "pages", "plotly.offline": "pages"}


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def fill(template: str, carried: tuple[str, ...], **content: Any) -> str:
    """A template of this package with its content; the files ``carried`` come with it, as ``assets``."""
    jinja2 = need("jinja2", "pages", "a page")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("stickslip", "templates"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, autoescape=jinja2.select_autoescape(["html"]),
    )  # fmt: skip
    environment.filters["embedded"] = embedded
    parts = files("stickslip") / "templates"
    assets = {name: (parts / name).read_text(encoding="utf-8") for name in carried}
    return environment.get_template(template).render(assets=assets, **content)


def render(template: str, **content: Any) -> str:
    """A page with Plotly and its player."""
    _, plotly = need_all(NEEDED, "a page")
    return fill(template, ("page.css", "player.js"), plotly=plotly.get_plotlyjs(), **content)
