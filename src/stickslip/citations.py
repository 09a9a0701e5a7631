"""What to cite for a method, as BibTeX: the papers it comes from, and this package."""

from typing import Any

from .methods import Extrapolation, Method, MoreauMidpoint, by_name

_SINUM = "SIAM Journal on Numerical Analysis"
_IJNME = "International Journal for Numerical Methods in Engineering"

# Kind and fields by key. Keys stay as they are: people have them in their manuscripts.
ENTRIES: dict[str, tuple[str, dict[str, str]]] = {
    "moreau1988": ("incollection", {
        "author": "Moreau, J. J.",
        "title": "Unilateral Contact and Dry Friction in Finite Freedom Dynamics",
        "booktitle": "Non-Smooth Mechanics and Applications",
        "editor": "Moreau, J. J. and Panagiotopoulos, P. D.",
        "series": "CISM Courses and Lectures",
        "number": "302",
        "pages": "1--82",
        "publisher": "Springer",
        "address": "Wien",
        "year": "1988",
        "doi": "10.1007/978-3-7091-2624-0_1",
    }),
    "breuling2024rattle": ("article", {
        "author": "Breuling, Jonas and Capobianco, Giuseppe and Eugster, Simon R. and Leine, Remco I.",
        "title": (
            "A nonsmooth {RATTLE} algorithm for mechanical systems with frictional unilateral constraints"
        ), "journal": "Nonlinear Analysis: Hybrid Systems",
        "volume": "52",
        "pages": "101469",
        "year": "2024",
        "doi": "10.1016/j.nahs.2024.101469",
    }),
    "capobianco2024lobatto": ("article", {
        "author": "Capobianco, Giuseppe and Harsch, Jonas and Leyendecker, Sigrid",
        "title": "{Lobatto}-type variational integrators for mechanical systems with frictional contact",
        "journal": "Computer Methods in Applied Mechanics and Engineering",
        "volume": "418",
        "pages": "116496",
        "year": "2024",
    }),
    "capobianco2021alpha": ("article", {
        "author": "Capobianco, Giuseppe and Harsch, Jonas and Eugster, Simon R. and Leine, Remco I.",
        "title": "A nonsmooth generalized-alpha method for mechanical systems with frictional contact",
        "journal": _IJNME,
        "volume": "122",
        "number": "22",
        "pages": "6497--6526",
        "year": "2021",
        "doi": "10.1002/nme.6801",
    }),
    "breuling2024thesis": ("phdthesis", {
        "author": "Breuling, Jonas",
        "title": "Projected and Partitioned {Runge}--{Kutta} Methods for Nonsmooth Mechanical Systems"
                 " with Frictional Contact and Impacts",
        "school": "University of Stuttgart",
        "year": "2024",
    }),
    "studer2008extrapolation": ("article", {
        "author": "Studer, Christian and Leine, Remco I. and Glocker, Christoph",
        "title": "Step size adjustment and extrapolation for time-stepping schemes in non-smooth dynamics",
        "journal": _IJNME,
        "volume": "76",
        "number": "11",
        "pages": "1747--1781",
        "year": "2008",
        "doi": "10.1002/nme.2383",
    }),
    "jay1996": ("article", {
        "author": "Jay, L. O.",
        "title": "Symplectic Partitioned {Runge}--{Kutta} Methods for Constrained {Hamiltonian} Systems",
        "journal": _SINUM,
        "volume": "33",
        "number": "1",
        "pages": "368--387",
        "year": "1996",
        "doi": "10.1137/0733019",
    }),
    "alexander1977": ("article", {
        "author": "Alexander, R.",
        "title": "Diagonally Implicit {Runge}--{Kutta} Methods for Stiff {O.D.E.}'s",
        "journal": _SINUM,
        "volume": "14",
        "number": "6",
        "pages": "1006--1021",
        "year": "1977",
        "doi": "10.1137/0714068",
    }),
    "hosea1996": ("article", {
        "author": "Hosea, M. E. and Shampine, L. F.",
        "title": "Analysis and implementation of {TR-BDF2}",
        "journal": "Applied Numerical Mathematics",
        "volume": "20",
        "number": "1",
        "pages": "21--37",
        "year": "1996",
        "doi": "10.1016/0168-9274(95)00115-8",
    }),
    "ostermann1993": ("article", {
        "author": "Ostermann, A.",
        "title": (
            "A class of half-explicit {Runge}--{Kutta} methods for differential-algebraic systems of index "
            "3"
        ), "journal": "Applied Numerical Mathematics",
        "volume": "13",
        "pages": "165--179",
        "year": "1993",
    }),
    "ascher1991": ("article", {
        "author": "Ascher, U. M. and Petzold, L. R.",
        "title": "Projected Implicit {Runge}--{Kutta} Methods for Differential-Algebraic Equations",
        "journal": _SINUM,
        "volume": "28",
        "number": "4",
        "pages": "1097--1120",
        "year": "1991",
        "doi": "10.1137/0728059",
    }),
}  # fmt: skip

_DIAGONAL = ("hosea1996", "breuling2024thesis")
SOURCES: dict[str, tuple[str, ...]] = {
    "MoreauMidpoint": ("moreau1988",),
    "ShiftedMoreau": ("breuling2024thesis", "moreau1988"),
    "Rattle": ("breuling2024rattle",),
    "LobattoIIIAB": ("capobianco2024lobatto", "breuling2024thesis", "jay1996"),
    "RadauIIA": ("breuling2024thesis", "ascher1991"),
    "LobattoIIIC": ("breuling2024thesis", "ascher1991"),
    "SDIRK2": ("alexander1977", "breuling2024thesis"),
    "SDIRK3": ("alexander1977", "breuling2024thesis"),
    "TRBDF2": _DIAGONAL,
    "TRX2": _DIAGONAL,
    "TRTheta": _DIAGONAL,
    "GeneralizedAlpha": ("capobianco2021alpha",),
    "HalfExplicit": ("ostermann1993", "breuling2024thesis"),
    "Extrapolation": ("studer2008extrapolation",),
}


def citation(method: Any) -> str:
    """BibTeX of what to cite for a method (an object, a class,
    or a name such as "rattle"), and of stickslip.
    """
    if isinstance(method, str):
        method = by_name(method)
    elif not (isinstance(method, Method) or (isinstance(method, type) and issubclass(method, Method))):
        raise TypeError(f"method must be a method, its class or its name, got {method!r}")
    entries = {key: ENTRIES[key] for key in _keys(method)} | {"stickslip": _package()}
    return "\n\n".join(_bibtex(key, *entry) for key, entry in entries.items()) + "\n"


def _keys(method: Any) -> list[str]:
    """Of the method, or of the one its class extends; an extrapolation also owes its base."""
    cls = method if isinstance(method, type) else type(method)
    sources = next((SOURCES[c.__name__] for c in cls.__mro__ if c.__name__ in SOURCES), None)
    if sources is None:
        raise ValueError(
            f"{cls.__name__} is not a method of stickslip: what to cite for it, only its author knows"
        )
    if issubclass(cls, Extrapolation):
        sources = (*sources, *_keys(MoreauMidpoint if method is cls else method.base))
    return list(dict.fromkeys(sources))


def _package() -> tuple[str, dict[str, str]]:
    from . import __version__

    title = "stickslip: mechanical systems with impacts and set-valued friction"
    return "misc", {"author": "{The stickslip developers}", "title": title, "note": f"Version {__version__}"}


def _bibtex(key: str, kind: str, fields: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
