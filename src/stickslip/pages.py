"""Pages that need no network: templates filled, Plotly and the player carried along."""

import json
from importlib.resources import files
from typing import Any


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def render(template: str, **content: Any) -> str:
    """A template of this package with its content; styles and scripts come with it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("stickslip", "templates"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=select_autoescape(["html"]),
    )  # fmt: skip
    environment.filters["embedded"] = embedded
    parts = files("stickslip") / "templates"
    assets = {name: (parts / name).read_text(encoding="utf-8") for name in ("page.css", "player.js")}
    return environment.get_template(template).render(plotly=get_plotlyjs(), assets=assets, **content)
