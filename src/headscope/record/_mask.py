"""Which keys each query may look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Int

from headscope.errors import RecordError
from headscope.record._stored import RebuiltWhenCopied


@dataclass(frozen=True, kw_only=True, eq=False)
class Mask(RebuiltWhenCopied):
    """Which keys each query may look at, as runs of neighbouring keys: small however long the text
    is.

    ``np.asarray(mask)`` is the whole of it, ``[query key]``, True where the query may look.

    Args:
        keys: number of keys.
        runs: ``[run 2]``, the first key of each run and the one after its last, in the order of
            queries and keys.
        firsts: ``[query + 1]``, where the runs of each query begin; the last entry is the number of
            runs.

    Raises:
        RecordError: where runs overlap, touch, are empty or leave the keys.
    """

    keys: int
    runs: np.ndarray
    firsts: np.ndarray

    def __post_init__(self) -> None:
        for name in ("runs", "firsts"):
            array = np.ascontiguousarray(getattr(self, name), np.int32)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check()

    @classmethod
    def of(cls, dense: Bool[np.ndarray, "query key"]) -> Mask:
        """The runs of a whole mask."""
        dense = np.asarray(dense, bool)
        queries, keys = dense.shape
        edges = np.zeros((queries, keys + 1), bool)
        edges[:, 0], edges[:, -1] = dense[:, 0], dense[:, -1]
        edges[:, 1:-1] = dense[:, 1:] != dense[:, :-1]
        # In each row edges come in pairs, where a run starts and where it stops.
        rows, ends = np.nonzero(edges)
        counts = np.bincount(rows[::2], minlength=queries)
        return cls(
            keys=keys, runs=ends.reshape(-1, 2), firsts=np.concatenate([[0], np.cumsum(counts)])
        )

    @classmethod
    @lru_cache(maxsize=16)  # most layers of a record see all keys
    def full(cls, queries: int, keys: int) -> Mask:
        """Every query sees all keys."""
        runs = np.broadcast_to([0, keys], (queries if keys else 0, 2))
        return cls(
            keys=keys, runs=runs, firsts=np.arange(queries + 1) if keys else np.zeros(queries + 1)
        )

    @classmethod
    @lru_cache(maxsize=16)  # all layers of a decoder share it, and each asks whether it is this one
    def causal(cls, queries: int, keys: int) -> Mask:
        """Every query sees all keys up to its own place, the last query all of them."""
        stops = np.arange(keys - queries, keys) + 1
        seeing = stops > 0
        runs = np.stack([np.zeros(seeing.sum(), int), stops[seeing]], axis=1)
        return cls(keys=keys, runs=runs, firsts=np.concatenate([[0], np.cumsum(seeing)]))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.dense().astype(bool if dtype is None else dtype, copy=False)  # ty: ignore[no-matching-overload]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        return self.keys == other.keys and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("runs", "firsts")
        )

    def __hash__(self) -> int:
        return hash((self.keys, self.runs.tobytes(), self.firsts.tobytes()))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and of keys."""
        return len(self.firsts) - 1, self.keys

    @property
    def dead(self) -> Bool[np.ndarray, " query"]:
        """True for queries that may look at nothing."""
        return np.diff(self.firsts) == 0

    @cached_property
    def is_full(self) -> bool:
        """Whether every query may look at every key."""
        return (
            len(self.runs) == self.shape[0]
            and bool((self.runs == (0, self.keys)).all())
            and not self.dead.any()
        )

    @property
    def window(self) -> tuple[int, int] | None:
        """How many keys before and after its own place a query of a sliding window sees; None for
        other kinds.
        """
        bounds = self._bounds()
        if bounds is None or self.is_full:
            return None
        queries, starts, stops = bounds
        before, after = int((queries - starts).max()), int((stops - 1 - queries).max())
        if before < 0 or after < 0:
            return None
        # A window that reaches over all keys is none: what it says is causal, or full.
        narrow_before = before < self.keys - 1
        narrow_after = 0 < after < self.keys - 1
        if not narrow_before and not narrow_after:
            return None
        # The text ends before the window does, at both of its ends.
        fits_before = starts == np.maximum(0, queries - before)
        fits_after = stops == np.minimum(self.keys, queries + after + 1)
        return (before, after) if fits_before.all() and fits_after.all() else None

    @property
    def chunk(self) -> int | None:
        """Length of the chunks within which queries look back; None for other kinds."""
        bounds = self._bounds()
        if bounds is None:
            return None
        queries, starts, stops = bounds
        begins = np.unique(starts)
        # Every query sees up to itself; with one chunk alone that is a causal mask.
        if (stops != queries + 1).any() or begins[0] != 0 or len(begins) < 2:
            return None
        lengths = np.diff(begins)
        length = int(lengths.max())
        # The first chunk may be shorter than the others, and the last one ends with the text.
        if (lengths[1:] != length).any() or self.keys - begins[-1] > length:
            return None
        belongs = begins[np.searchsorted(begins, queries, side="right") - 1]
        return length if (starts == belongs).all() else None

    @cached_property
    def kind(self) -> str:
        """``full``, ``causal`` (all that came before), ``sliding`` (the nearest few), ``chunked``
        or ``masked``.
        """
        if self.is_full:
            return "full"
        queries, keys = self.shape
        if queries <= keys and self == Mask.causal(queries, keys):
            return "causal"
        if self.window is not None:
            return "sliding"
        return "masked" if self.chunk is None else "chunked"

    def dense(self, queries: slice = slice(None)) -> Bool[np.ndarray, "query key"]:
        """The whole mask, or the rows of some queries."""
        return self.rows(np.arange(self.shape[0])[queries])

    def rows(self, rows: Int[np.ndarray, " query"]) -> Bool[np.ndarray, "query key"]:
        """The rows of queries at these positions."""
        counts = np.diff(self.firsts)[rows]
        runs = self.runs[_ranges(self.firsts[:-1][rows], counts)]
        owners = np.repeat(np.arange(len(rows)), counts)
        # One up where a run starts, one down where it stops; runs never touch, so that no place is
        # both. The sum so far is 0 or 1, whose bytes are those of False and True.
        steps = np.zeros((len(rows), self.keys + 1), np.int8)
        steps[owners, runs[:, 0]] = 1
        steps[owners, runs[:, 1]] = -1
        return np.cumsum(steps[:, :-1], axis=1, dtype=np.int8).view(bool)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Place among the keys, first key and last key + 1 of every query; None unless each has one
        run.
        """
        queries, keys = self.shape
        if (np.diff(self.firsts) != 1).any() or queries > keys:
            return None
        return np.arange(keys - queries, keys), self.runs[:, 0], self.runs[:, 1]

    def _check(self) -> None:
        runs, firsts = self.runs, self.firsts
        if runs.ndim != 2 or runs.shape[1] != 2 or firsts.ndim != 1 or not len(firsts):
            raise RecordError(
                f"A mask needs runs [run 2] and firsts [query + 1], not {runs.shape} and "
                f"{firsts.shape}"
            )
        if firsts[0] != 0 or firsts[-1] != len(runs) or (np.diff(firsts) < 0).any():
            raise RecordError(f"A mask's firsts must rise from 0 to its {len(runs)} runs")
        starts, stops = runs[:, 0], runs[:, 1]
        if ((starts < 0) | (stops > self.keys) | (starts >= stops)).any():
            raise RecordError(
                f"A mask's runs must lie within its {self.keys} keys and must not be empty"
            )
        # Only runs of one query must follow each other; the next query begins anew.
        query_of_run = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        same = np.diff(query_of_run) == 0
        if (same & (starts[1:] <= stops[:-1])).any():
            raise RecordError("A mask's runs must rise and leave a gap between each other")


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers ``start, start + 1 ...`` of each start, as many as its count says, one after the
    other.
    """
    shifts = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return np.arange(counts.sum()) + shifts
