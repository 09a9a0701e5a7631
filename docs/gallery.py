"""Makes the gallery: a run of each benchmark, a picture of it and the page.

.venv/bin/python docs/gallery.py [NAME ...]     # all, or some pictures anew
"""

import sys
from pathlib import Path

import stickslip as ss
from stickslip import plot

HERE = Path(__file__).parent
# Ends that show more than a benchmark's own.
ENDS = {"tippedisk": 1.0, "guided-hopper": 0.3, "block-on-belt": 15.0, "painleve-rod": 0.9}


def picture(name: str) -> None:
    b = ss.benchmarks.load(name)
    sol = ss.simulate(b.system, b.method, b.q0, b.u0, t1=ENDS.get(name, b.t1), progress=False, **b.steps)
    plot.portrait(sol, name, HERE / "pictures" / "gallery" / f"{name}.png")


def page() -> str:
    parts = [
        "# Gallery",
        "",
        "Every benchmark with its own method and step: the mechanism at a few moments (the later, the "
        "darker), its gaps and"
        " its velocities. Made by `docs/gallery.py`. Each is `ss.benchmarks.load(NAME)`, and `stickslip run "
        "NAME --html"
        " page.html` makes a page to play; what every method makes of it is in [the survey](benchmarks.md).",
        "",
    ]
    for name in ss.benchmarks.names():
        b, about = ss.benchmarks.load(name), ss.benchmarks.about(name)
        first, _, rest = about.partition("\n\n")
        cases = ss.benchmarks.cases(name)
        text = " ".join(rest.split())
        facts = f"{type(b.method).__name__}, t = 0 to {ENDS.get(name, b.t1):g}" + (
            f", dt = {b.dt:g}" if b.stepsize is None else ", steps adjusted"
        )
        more = f" Cases {', '.join(map(str, cases))}." if len(cases) > 1 else ""
        parts += [f"## {name}", "", first, "", f"![{name}](pictures/gallery/{name}.png)", ""]
        parts += [f"{text}" if text else "", "", f"*{facts}; source: {b.source}.{more}*", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    for name in sys.argv[1:] or ss.benchmarks.names():
        print(name, flush=True)
        picture(name)
    (HERE / "gallery.md").write_text(page(), encoding="utf-8")
