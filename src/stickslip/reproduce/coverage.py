"""Every numbered figure, table and algorithm of the five papers, and what became of it here.

"entry": made again and judged by `stickslip reproduce`; "test": a property that the tests hold (its name);
"sketch": a drawing of a mechanism or a law (where ours is); "not ours": why not. docs/reproduce.md shows this
list, and the tests keep it complete.
"""

from typing import NamedTuple


class Item(NamedTuple):
    kind: str  # "entry", "test", "sketch" or "not ours"
    about: str  # what it shows
    where: str = ""  # name of the test, or place, or reason


def _figures(*about: tuple[str, str]) -> dict[str, Item]:
    return {number: Item("entry", text) for number, text in about}


CRANK_DATA = Item("test", "geometry and inertia of the slider-crank", "test_joint_rates_vanish_too")
# Papers number figures without a gap: so does this list.
COVERAGE: dict[str, dict[str, Item]] = {
    "S0": {
        "1": Item("sketch", "Signorini's law and spatial Coulomb friction", "docs/friction.md"),
        **_figures(("2", "ball: gap"), ("3", "ball: percussions")),
        "4": Item("sketch", "slider-crank", "gallery"),
        **_figures(("5", "slider-crank")),
        "6": Item("sketch", "mass on a slope", "gallery"),
        **_figures(("7", "mass on a slope: trajectories"), ("8", "mass on a slope: orders")),
        "9": Item("sketch", "tippedisk", "gallery"),
        **_figures(("10", "tippedisk"), ("Table 1",
                                         "Newton iterations, also with the printed proximal parameters")),
        "Table 2": CRANK_DATA,
    },
    "S1": {
        "1": Item("sketch", "kinematics of a contact", "docs/rigid-bodies.md"),
        "2": Item("sketch", "contact laws", "docs/friction.md"),
        **_figures(("3", "ball: gap"), ("4", "ball: percussions")),
        "5": Item("sketch", "slider-crank", "gallery"),
        **_figures(("6", "slider-crank")),
        "7": Item("sketch", "mass on a slope", "gallery"),
        **_figures(("8", "mass on a slope: trajectories"), ("9", "mass on a slope: orders")),
        "Table 1": CRANK_DATA,
    },
    "S2": _figures(
        ("1", "ball: gap"), ("2", "ball: percussions"), ("3", "ball in a corner"),
        ("4", "ball in a cylinder"),
        ("5", "Painlevé's rod"), ("6", "guided hopper"), ("7", "tippe top, with Moreau's scheme"),
    ),
    "S3": {
        "1.1": Item("not ours", "photographs of applications", "nets, robots and ropes of other authors"),
        "3.1": Item("sketch", "kinematics of a contact", "docs/rigid-bodies.md"),
        "3.2": Item("test", "Signorini's law", "test_signorini_is_the_zero_of_the_natural_map_for_any_rho"),
        "3.3": Item("test", "spatial Coulomb friction",
                    "test_a_slipping_law_takes_the_most_energy_its_reservoir_allows"),
        "3.4": Item("test", "elliptical reservoirs", "test_the_mirror_image_of_an_ellipse_is_seen"),
        "3.5": Item("test", "x-y table, rectangles",
                    "test_a_law_holds_what_is_inside_of_its_reservoir_and_lets_go_outside"),
        **_figures(
            ("4.1", "pendulum: constraints"), ("4.2", "stability functions"), ("4.3", "pendulum: orders"),
            ("4.4", "naive impacts, one stage"), ("4.5", "naive impacts, two stages"),
            ("4.6", "the six impact laws"), ("4.7", "the same in time"),
        ),
        "4.8": Item("test", "the projected family", "test_sliding_in_one_direction_keeps_the_order"),
        "5.1": Item("test", "the partitioned family",
                    "test_lobatto_iiiab_has_order_2s_minus_2_on_the_pendulum"),
        **_figures(
            ("5.2", "orders of the partitioned family"), ("7.1", "ball: gap"), ("7.2", "ball: percussions"),
            ("7.3", "rolling ball"), ("7.4", "ball in a hollow sphere"),
            ("7.5", "block on a belt: friction law"), ("7.6", "block on a belt"), ("7.7", "stiff pendulum"),
        ),
        "7.8": Item("sketch", "slider-crank", "gallery"),
        **_figures(
            ("7.9", "slider-crank"), ("7.10", "mass on a slope: starts"),
            ("7.11", "mass on a slope: trajectories"),
            ("7.12", "mass on a slope: orders"), ("7.13", "Painlevé's rod"), ("7.14", "ball in a corner"),
            ("7.15", "tippedisk: sketch"), ("7.16", "tippedisk, with generalized-alpha"),
        ),
        "7.17": Item("sketch", "tetrahedron", "gallery"),
        **_figures(
            ("7.18", "tetrahedron"), ("8.1", "decision tree"), ("Table 4.1", "Radau IIA"),
            ("Table 4.2", "Lobatto IIIC"),
            ("Table 4.3", "SDIRK"), ("Table 4.4", "TR-BDF2"), ("Table 5.1", "Lobatto IIIA-IIIB"),
        ),
        "Table 7.1": CRANK_DATA,
        "Algorithm 1": Item("test", "semismooth Newton", "test_newton_finds_what_enumeration_finds"),
        **_figures(("Algorithm 2", "fixed point, with the thesis' own tolerances")),
    },
    "S4": {
        "1": Item("not ours", "a function with a jump", "explains measures; there is nothing to compute"),
        **_figures(("2", "disk mixer, with 30 disks and with 1000")),
        "3": Item("test", "states of laws in time",
                  "test_woodpecker_switches_as_table_vii_at_the_reference_times"),
        "4": Item("not ours", "idea of the search", "a drawing; the search itself is Fig. 8"),
        **_figures(("5", "extrapolation in enduring contact")),
        "6": Item("test", "flow chart of extrapolation",
                  "test_extrapolation_has_its_order_with_a_fixed_step"),
        "7": Item("test", "flow chart of the step size", "test_the_bookkeeping_check_fails_where_it_must"),
        **_figures(
            ("8", "search of a switching point"), ("9", "falling mass, all substeps"),
            ("10", "falling mass, odd substeps"),
            ("11", "sliding mass"), ("12", "impact oscillator"), ("13", "woodpecker"),
            ("14", "woodpecker: orders"),
        ),
        "Table I": Item("test", "time-stepping module", "test_a_pulled_mass_is_held_or_slips"),
        "Table II": Item("test", "extrapolation module", "test_the_tableau_of_the_example_is_made_again"),
        "Table III": Item("test", "step sizes",
                          "test_steps_that_miss_their_tolerance_can_be_accepted_and_are_counted"),
        "Table IV": Item("test", "a smooth step", "test_the_bookkeeping_check_fails_where_it_must"),
        "Table V": Item("test", "a detected switching point",
                        "test_the_bookkeeping_check_fails_where_it_must"),
        "Table VI": Item("test", "a resolved switching point",
                         "test_the_bookkeeping_check_fails_where_it_must"),
        **_figures(("Table VII", "incidents of the woodpecker")),
    },
}  # fmt: skip

# Statements that have no number, made again all the same.
STATEMENTS: dict[str, dict[str, str]] = {
    "S0": {},
    "S1": {
        "symplecticity": "area in phase space", "long-time energy": "no drift",
        "momentum maps": "angular momentum",
        "(13)": "velocity constraints", "(51)": "velocity constraints, discrete",
        "(26)": "tangential restitution", "(58)": "tangential restitution, discrete",
    },
    "S2": {"Newton steps": "iterations of the examples"},
    "S3": {"P-matrices": "unique stages", "8.2": "half-explicit methods"},
    "S4": {"(1)": "force elements: clutches, freewheels, prestress"},
}  # fmt: skip


def table(paper: str) -> str:
    """Of a paper, for the docs."""
    lines = ["| | what it shows | here |", "|---|---|---|"]
    for name, item in COVERAGE[paper].items():
        title = name if name[0].isalpha() else f"Fig. {name}"
        where = {"entry": "entry", "test": f"test: `{item.where}`"}.get(
            item.kind, f"{item.kind}: {item.where}"
        )
        if item.kind == "not ours":
            where = f"not ours, because: {item.where}"
        lines.append(f"| {title} | {item.about} | {where} |")
    lines += [f"| {name} | {about} | entry |" for name, about in STATEMENTS[paper].items()]
    return "\n".join(lines)
