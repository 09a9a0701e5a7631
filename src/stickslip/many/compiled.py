"""How loops are compiled by numba: kept on disk, on one core; two runs on one machine agree bit for bit.

Sums may be taken in the order that the processor likes best (``SUMS``), which is the same in every run.
"""

import contextlib
import hashlib
from functools import partial
from pathlib import Path

from ..extras import need

numba = need("numba", "many", "stepping many bodies on the processor")

compiled = partial(numba.njit, cache=True, error_model="numpy")
SUMS = frozenset({"reassoc", "contract", "nsz"})  # never "nnan", "ninf": what is not finite must be seen
summed = partial(numba.njit, cache=True, error_model="numpy", fastmath=set(SUMS))


def _forget_what_is_stale() -> None:
    """numba compiles a function anew where its own file has changed;
    here also where that of a function it calls has.
    """
    here = Path(__file__).parent
    now = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))).hexdigest()
    stamp = here / "__pycache__" / "compiled.sha256"
    with contextlib.suppress(OSError):  # a folder that cannot be written to is not where numba keeps anything
        if stamp.exists() and stamp.read_text() == now:
            return
        for file in stamp.parent.glob("*.nb[ci]"):
            file.unlink(missing_ok=True)
        stamp.write_text(now)


_forget_what_is_stale()
