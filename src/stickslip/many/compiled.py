"""How loops are compiled by numba: kept on disk, on one core; two runs on one machine agree bit for bit.

Sums may be taken in the order that the processor likes best (``SUMS``), which is the same in every run.
"""

from functools import partial

from ..extras import need

numba = need("numba", "many", "stepping many bodies on the processor")

compiled = partial(numba.njit, cache=True, error_model="numpy")
SUMS = frozenset({"reassoc", "contract", "nsz"})  # never "nnan", "ninf": what is not finite must be seen
summed = partial(numba.njit, cache=True, error_model="numpy", fastmath=set(SUMS))
