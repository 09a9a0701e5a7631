"""How long somebody waits who edits a line: a whole process, from the script to the picture.

    .venv/bin/python benchmarks/first_hour.py [runs]

The systems of docs/getting-started.md and docs/rigid-bodies.md with RATTLE and `sol.plot`: after a change of
the physics, with everything else in the cache, and once more unchanged. Asked: half of 11, 19, 11 s, and 3 s.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
ASKED = {"shaken box": 5.5, "coin": 9.5, "double pendulum": 5.5}
AGAIN = 3.0


def script(page: str, number: int, method: str, edit: tuple[str, str]) -> tuple[str, str]:
    """A system from the docs, run with RATTLE and plotted; and the same with another line of physics."""
    text = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)[number]
    text = text[: text.index("\nsol = ")] + re.search(r"\nsol = .*\n", text)[0].replace(method, "ss.Rattle()")
    text += 'sol.plot("run.png")\n'
    old, new = edit
    assert text.count(old) >= 1, old
    return text, text.replace(old, new, 1)


SCRIPTS = {
    "shaken box": script(
        "getting-started.md", 0, "ss.Rattle()", ("-9.81 * self.m", "-9.81 * self.m - 0.1 * u[1]")
    ),
    "coin": script("rigid-bodies.md", 0, "ss.RadauIIA(2)", ("[0.25, 0.25, 0.5]", "[0.25, 0.25, 0.5 + 0.01]")),
    "double pendulum": script("getting-started.md", 2, '"radau2"', ("return 9.81 * sum", "return 9.8 * sum")),
}


def seconds(text: str, folder: Path, cache: Path) -> float:
    (folder / "run.py").write_text(text)
    began = time.perf_counter()
    environment = os.environ | {"STICKSLIP_CACHE": str(cache), "JAX_PLATFORMS": "cpu"}
    subprocess.run(
        [sys.executable, "run.py"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def main() -> int:
    runs, missed = int(sys.argv[1]) if len(sys.argv) > 1 else 3, 0
    print(
        f"{'system':18s} {'edited':>8s} {'asked':>7s} {'again':>8s} {'asked':>7s}    (s, medians of {runs})",
        flush=True,
    )
    for name, (text, edited) in SCRIPTS.items():
        first, again = [], []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as place:
                folder, cache = Path(place), Path(place) / "cache"
                cache.mkdir()
                seconds(text, folder, cache)
                first.append(seconds(edited, folder, cache))
                again.append(seconds(edited, folder, cache))
        a, b = statistics.median(first), statistics.median(again)
        ok = a <= ASKED[name] and b <= AGAIN
        missed += not ok
        print(
            f"{name:18s} {a:8.1f} {ASKED[name]:7.1f} {b:8.1f} {AGAIN:7.1f}{'' if ok else '  MISSED'}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
