"""What happened in a run, and when."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .extras import need
from .stacked import StackedLaws

if TYPE_CHECKING:
    from pandas import DataFrame

KINDS = (
    "",
    "impact",
    "lift-off",
    "stick",
    "slip",
    "reversal",
    "accumulation",
    "force jump",
    "event",
    "printed steps",
)
_, IMPACT, LIFT_OFF, STICK, SLIP, REVERSAL, ACCUMULATION, FORCE_JUMP, EVENT, PRINTED = range(len(KINDS))


class Event(NamedTuple):
    """One of them."""

    t: float  # in s
    kind: str  # a word of `KINDS`: "impact", "lift-off", "stick", "slip", ...; "event" for your own
    contact: int  # index in `laws`; -1 for none
    name: str  # of the contact, or of your function


class Events(eqx.Module):
    """Columns ``t``, ``kind``, ``contact`` and ``name``, in order of time; iterating gives one `Event` each.

    ``contact`` is the index in the system's laws, -1 where an event belongs to none of them. Inside jit, vmap
    and derivatives there are as many records as ``max_events``; those that did not happen have t = inf and
    code 0.
    """

    t: Float[Array, " events"]  # times in s
    code: Int[Array, " events"]  # place in `KINDS`
    source: Int[Array, " events"]  # place in `names`; -1: none
    names: tuple[str, ...] = eqx.field(static=True)  # of the laws, then of the user's functions
    n_laws: int = eqx.field(static=True)  # how many of the names are laws

    @property
    def kind(self) -> np.ndarray:
        return np.array(KINDS, dtype=object)[np.asarray(self.code)]

    @property
    def contact(self) -> Any:
        xp = np if isinstance(self.t, np.ndarray) else jnp
        return xp.where(self.source < self.n_laws, self.source, -1)

    @property
    def name(self) -> np.ndarray:
        return np.array([*self.names, ""], dtype=object)[np.asarray(self.source)]

    def __len__(self) -> int:
        return self.t.shape[0]

    def __iter__(self) -> Iterator[Event]:
        columns = zip(np.asarray(self.t), self.kind, np.asarray(self.contact), self.name, strict=True)
        return (Event(float(t), kind, int(contact), name) for t, kind, contact, name in columns)

    def __getitem__(self, i: Any) -> Any:
        """One event, or those of a slice or a mask."""
        if isinstance(i, int | np.integer):
            return list(self)[i]
        return Events(self.t[i], self.code[i], self.source[i], self.names, self.n_laws)

    def of(self, kind: str) -> "Events":
        """Those of a kind."""
        if kind not in KINDS[1:]:
            raise ValueError(f"unknown kind {kind!r}. Known: {', '.join(KINDS[1:])}")
        return self[np.asarray(self.code) == KINDS.index(kind)]

    def to_pandas(self) -> "DataFrame":
        pd = need("pandas", "files", "sol.events.to_pandas")
        return pd.DataFrame(list(self), columns=Event._fields)

    def __repr__(self) -> str:
        if not isinstance(self.t, np.ndarray):
            return f"Events({self.t}, {self.code}, {self.source})"
        lines = [f"{e.t:<18.12g} {e.kind:<14}{e.name}" for e in self]
        return "\n".join([f"{len(lines)} events", *lines])


def sources(laws: StackedLaws, users: int) -> np.ndarray:
    """Where the event functions come from: contacts, balls, the user;
    and one place for what belongs to none.
    """
    return np.concatenate([np.arange(laws.n_N), laws.law_of, laws.count + np.arange(users), [-1]]).astype(int)


def collected(
    t: Any, code: Any, source: np.ndarray, names: tuple[str, ...], n_laws: int, most: int | None
) -> Events:
    """From the codes of rows; ``most``: how many there are, inside of tracing."""
    row: Any
    slot: Any
    if most is None:
        row, slot = np.nonzero(code)
        # what belongs together in time is ordered by contact
        order = np.lexsort((slot, source[slot], t[row]))
        row, slot = row[order], slot[order]
        origin: Any = source[slot]
        return Events(t[row], code[row, slot], origin, names, n_laws)
    row, slot = jnp.nonzero(code, size=most, fill_value=-1)
    there = row >= 0
    none = jnp.zeros_like(row)
    return Events(
        jnp.where(there, t[row], jnp.inf), jnp.where(there, code[row, slot], none),
        jnp.where(there, jnp.asarray(source)[slot], none - 1), names, n_laws,
    )  # fmt: skip
