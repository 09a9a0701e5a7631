"""Newton iterations of one survey over those of another: `stickslip survey --out NEW.md` makes them.

    .venv/bin/python benchmarks/survey_ratio.py docs/benchmarks.md build/benchmarks.md

A ratio for every benchmark and for all, of the iterations a step summed over the methods that work in both.
"""

import sys
from pathlib import Path


def read(file):
    """{(benchmark, method): iterations a step}"""
    out, name = {}, ""
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## "):
            name = line[3:].strip()
        elif line.startswith("|") and len(cells) == 7 and cells[1] == "yes":
            out[name, cells[0]] = float(cells[4])
    return out


def main():
    old, new = (read(file) for file in sys.argv[1:3])
    both = old.keys() & new.keys()
    for name in dict.fromkeys(name for name, _ in old):
        keys = [key for key in both if key[0] == name]
        a, b = (sum(survey[key] for key in keys) for survey in (old, new))
        print(
            f"{name:22s} {a:8.2f} -> {b:8.2f}, ratio {b / a if a else float('nan'):.3f}, {len(keys)} methods"
        )
    a, b = (sum(survey[key] for key in both) for survey in (old, new))
    print(f"{'all':22s} {a:8.2f} -> {b:8.2f}, ratio {b / a:.3f}")
    print("works no more:", sorted(old.keys() - new.keys()), "works now:", sorted(new.keys() - old.keys()))


if __name__ == "__main__":
    main()
