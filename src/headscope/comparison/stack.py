"""How far the heads of two stacks are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.comparison._alignment import TokenAlignment
from headscope.comparison._grid import Cell, Grid, MatchedHeads, Side, cells_of
from headscope.errors import RecordError
from headscope.evidence import interval, p_text
from headscope.measures import jensen_shannon_parts
from headscope.results import Kept
from headscope.storage import PAIR, Finite, array_of

BASELINE = ("spread", "beyond")
"""Columns that only a baseline fills."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StackComparison:
    """How far each head of a stack of A is from a head of B.

    Args:
        name: of the stack of A.
        grid: the first pair of records on their common tokens.
        matched: for each pair of records the heads that were set against each other.
        spread: distance of each head that is no evidence yet, in nats: the largest in ``nulls``, or
            what rounding makes.
        spread_of: what that is.
        candidates: how many heads of B each was chosen from as the nearest; 1 where heads are
            matched by number.
        changed: heads that were changed on purpose.
        confidence: of the intervals over texts, or over their documents.
        groups: the document that each text is of; None where nobody knows.
        nulls: distances of the heads in each change, or pair, that serves as control; NaN for heads
            that it changes itself.
        can_move: heads that the change can reach, those above it; None for all.
    """

    name: str
    grid: Grid
    matched: tuple[MatchedHeads, ...]
    spread: Float[np.ndarray, " head"]
    spread_of: str
    candidates: int = 1
    changed: frozenset[Cell] = field(default_factory=frozenset)
    confidence: float = 0.95
    groups: tuple[Any, ...] | None = None
    nulls: tuple[Float[np.ndarray, " head"], ...] = ()
    can_move: frozenset[Cell] | None = None

    @property
    def has_baseline(self) -> bool:
        """Whether any change or pair was given as a control; else heads can only be ranked."""
        return bool(self.nulls)

    @cached_property
    def counting(self) -> Bool[np.ndarray, " head"]:
        """The heads that are counted: those that can move and were not changed on purpose."""
        own = np.array([cell not in self.changed for cell in self.cells])
        if self.can_move is None:
            return own
        # What did not move at all, in no run, computes the same to the last bit: nothing reaches
        # it.
        still = (np.nan_to_num([self.moved, *self.nulls]) == 0).all(axis=0)
        return own & ~still & np.array([cell in self.can_move for cell in self.cells])

    @cached_property
    def rank(self) -> tuple[int, float]:
        """Place of the sum over all heads among those of ``nulls``, 1 the largest, and its p: place
        / (k + 1).

        One rank of one sum: heads move together, so that a number of heads is no sum of independent
        chances. Heads that are not counted, or were changed in one of the nulls, are left out on
        all sides.

        Raises:
            RecordError: where there is no null.
        """
        if not self.nulls:
            raise RecordError("There is no baseline to rank it among; give spread= or controls=")
        # The same heads on all sides: a sum over more heads would be larger for that alone.
        shared = self.counting & ~np.isnan(self.nulls).any(axis=0)
        total = self.moved[shared].sum()
        # Ties count against the change, which makes p larger, never smaller than it is.
        rank = 1 + sum(bool(null[shared].sum() >= total) for null in self.nulls)
        return rank, rank / (1 + len(self.nulls))

    @property
    def query(self) -> TokenAlignment:
        """How the query tokens of the first pair are aligned."""
        return self.grid.query

    @property
    def key(self) -> TokenAlignment:
        """How the key tokens of the first pair are aligned."""
        return self.grid.key

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Layer and head of every value, as A counts them."""
        return self.matched[0].cells

    @property
    def partners(self) -> tuple[Cell, ...]:
        """The head of B that each is set against."""
        return self.matched[0].partners

    @cached_property
    def values(self) -> Float[np.ndarray, "text head"]:
        """Mean distance of each head over the rows of each pair of records, in nats."""
        return np.stack([matched.mean for matched in self.matched])

    @cached_property
    def moved(self) -> Float[np.ndarray, " head"]:
        """Jensen-Shannon distance of each head, mean over rows and then over texts, in nats: 0 to
        ln 2 = 0.6931.
        """
        return self.values.mean(axis=0)

    @property
    def rows(self) -> Float[np.ndarray, "head row"]:
        """The same row by row, of the first pair; rows are those of `row_tokens`."""
        return self.matched[0].distances

    @property
    def row_tokens(self) -> tuple[str, ...]:
        """The query tokens that both have, as B calls them."""
        labels = self.grid.b.query.labels
        spans = [span for span in self.query.spans if span.kind == "both"]
        return tuple("".join(labels[index] for index in span.b) for span in spans)

    @cached_property
    def interval(self) -> Float[np.ndarray, "head 2"]:
        """Interval of `moved` over texts, or over their documents; NaN for a single one."""
        return interval(
            self.values, groups=self.groups, method="expanded", confidence=self.confidence
        )

    @cached_property
    def beyond(self) -> Bool[np.ndarray, " head"]:
        """Whether a head moved by more than the spread: the lower end of its interval, or its one
        value, is above.
        """
        # One text has no interval (NaN), and its value stands alone.
        low = self.interval[:, 0]
        return np.where(np.isnan(low), self.moved, low) > self.spread

    def distance(self, layer: int, head: int) -> float:
        """`moved` of one head of A.

        Raises:
            RecordError: where there is no such head.
        """
        return float(self.moved[self._index_of(layer, head)])

    def map(self) -> Float[np.ndarray, "layer head"]:
        """`moved` as a map; NaN where a layer has fewer heads."""
        return self.as_map(self.moved)

    def as_map(self, values: np.ndarray) -> Float[np.ndarray, "layer head"]:
        """One value for each head as a map of layers and heads; NaN where a layer has fewer
        heads.
        """
        layers = list(dict.fromkeys(layer for layer, _ in self.cells))
        grid = np.full((len(layers), max(head for _, head in self.cells) + 1), np.nan)
        for (layer, head), value in zip(self.cells, values, strict=True):
            grid[layers.index(layer), head] = value
        return grid

    def weights(self, side: Side, layer: int) -> Float[np.ndarray, "head query key"]:
        """Weights of the first pair on the spans of both: of a layer of A, or of the heads of B set
        against these.
        """
        if side == "a":
            return self.grid.weights("a", layer)
        pairs = zip(self.cells, self.partners, strict=True)
        theirs = [partner for (own, _), partner in pairs if own == layer]
        # Nearest heads of one layer may be of several layers of B, each computed once.
        made = {number: self.grid.weights("b", number) for number in {each for each, _ in theirs}}
        return np.stack([made[number][head] for number, head in theirs])

    def difference(self, layer: int) -> Float[np.ndarray, "head query key"]:
        """B less A of the heads of a layer, on the spans of both; 0 in rows that not both have."""
        difference = self.weights("b", layer) - self.weights("a", layer)
        difference[:, self.query.span_numbers("a", "b")] = 0.0
        return difference

    def parts(self, layer: int) -> Float[np.ndarray, "head query key"]:
        """What each key adds to the distance of each row of the heads of a layer, on the spans of
        both, in nats.

        0 in rows that not both have, and in those of replaced words. What a row lacks of 1 has no
        key, and keys that only one record has stand apart here while `moved` counts them as one, so
        that sums over keys may differ from it by that.
        """
        parts = jensen_shannon_parts(self.weights("a", layer), self.weights("b", layer))
        parts[:, self.query.span_numbers("replaced", "a", "b")] = 0.0
        return parts

    @property
    def count(self) -> int:
        """How many heads moved by more than the spread, of those that are counted."""
        return int((self.beyond & self.counting).sum())

    def descriptions(self) -> list[str]:
        """What the heads did all together, in words."""
        if not self.has_baseline:
            return [
                f"No baseline given ({self.spread_of}): heads are ranked by how far they moved, "
                "and no more"
            ]
        other = "other " if self.changed else ""
        reached = "" if self.can_move is None else " that the change can reach"
        rank, p = self.rank
        return [
            f"{self.count} of {int(self.counting.sum())} {other}heads{reached} moved by more than "
            f"the spread ({self.spread_of})",
            f"All together they moved further than in {len(self.nulls) + 1 - rank} of "
            f"{len(self.nulls)}: p {p_text(p)} (rank of the sum)",
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Every head as a table, one list for each column; without a baseline without ``spread``
        and ``beyond``.
        """
        heads = len(self.cells)
        layers, numbers = zip(*self.cells, strict=True)
        other_layers, other_numbers = zip(*self.partners, strict=True)
        # Python's own numbers, as a table of NumPy's prints and saves otherwise.
        columns: dict[str, list[Any]] = {
            "stack": [self.name] * heads,
            "layer": list(layers),
            "head": list(numbers),
            "other_layer": list(other_layers),
            "other_head": list(other_numbers),
            "distance": self.moved.tolist(),
            "low": self.interval[:, 0].tolist(),
            "high": self.interval[:, 1].tolist(),
            "spread": np.asarray(self.spread, float).tolist(),
            "beyond": self.beyond.tolist(),
            "texts": [len(self.values)] * heads,
        }
        if self.has_baseline:
            rank, p = self.rank
            return columns | {"rank": [rank] * heads, "rank_p": [p] * heads}
        return {name: columns[name] for name in columns if name not in BASELINE}

    def strongest(self, count: int) -> list[int]:
        """Places of the heads that moved most, the first one most; heads changed on purpose are
        left out.
        """
        order = np.argsort(-self.moved, kind="stable")
        return [int(index) for index in order if self.cells[index] not in self.changed][:count]

    def lines(self, count: int = 10) -> list[tuple[str, ...]]:
        """The heads that moved most, as rows of a table with its header."""
        best, several = self.candidates > 1, len(self.values) > 1
        header = ("head", *["nearest"] * best, "JS (nats)", *["interval"] * several)
        header = (*header, "spread", "") if self.has_baseline else header
        return [header, *(self._line(index, best=best) for index in self.strongest(count))]

    def _line(self, index: int, *, best: bool) -> tuple[str, ...]:
        ends = self.interval[index]
        interval_cells = [f"{ends[0]:.4f}-{ends[1]:.4f}"] if len(self.values) > 1 else []
        (layer, head), partner = self.cells[index], self.partners[index]
        near = [f"{partner[0]}-{partner[1]}"] if best else []
        word = "" if self.beyond[index] else "within the spread"
        beside = (f"{self.spread[index]:.4f}", word) if self.has_baseline else ()
        return (f"{layer}-{head}", *near, f"{self.moved[index]:.4f}", *interval_cells, *beside)

    def _index_of(self, layer: int, head: int) -> int:
        if (layer, head) not in self.cells:
            raise RecordError(
                f"There is no head {layer}-{head}; heads go from {self.cells[0]} to "
                f"{self.cells[-1]}"
            )
        return self.cells.index((layer, head))


STACK: dict[str, Any] = {
    "name": str,
    "other": str,
    "spread_of": str,
    "candidates": int,
    "changed": [PAIR],
    "can_move": ([PAIR], None),
    "confidence": Finite,
    "groups": ([(str, int)], None),
    "texts": int,
}
"""What a file holds of a stack, beside arrays."""
PLAIN = ("name", "spread_of", "candidates", "confidence")
"""What of it is a field as it is."""


def kept_of(stack: StackComparison) -> Kept:
    """What a file holds of a stack: how far every head is from the one that it is set against."""
    entry: dict[str, Any] = {name: getattr(stack, name) for name in PLAIN}
    entry |= {"other": stack.grid.b.name, "changed": sorted(stack.changed), "groups": stack.groups}
    entry["can_move"] = None if stack.can_move is None else sorted(stack.can_move)
    entry["texts"] = len(stack.matched)
    if stack.groups is not None:
        # JSON has no numbers of NumPy.
        whole = (int, np.integer)
        entry["groups"] = [int(of) if isinstance(of, whole) else str(of) for of in stack.groups]
    arrays = {"spread": np.asarray(stack.spread, float), "partners": np.array(stack.partners)}
    arrays["nulls"] = np.array(stack.nulls, float).reshape(-1, len(stack.cells))
    # Texts differ in length, so that their rows do not fit into one array.
    for number, matched in enumerate(stack.matched):
        arrays[f"distances.{number}"] = matched.distances
    return entry, arrays


def stack_of(entry: dict[str, Any], arrays: dict[str, np.ndarray], grid: Grid) -> StackComparison:
    """The stack of what `kept_of` gave.

    Raises:
        ValueError: where its parts do not fit each other.
    """
    cells, matched = cells_of(grid.a), []
    count, distances = len(cells), (len(cells), None)
    partners = _cells(array_of(arrays, "partners", "i", (count, 2)).tolist())
    if not set(partners) <= set(cells_of(grid.b)):
        raise ValueError("its heads are not those of its records")
    for number in range(entry["texts"]):
        own = array_of(arrays, f"distances.{number}", "f", distances)
        matched.append(MatchedHeads(cells, partners, own))
    if not matched or matched[0].distances.shape[1] != len(grid.rows):
        raise ValueError("its distances are of other rows than its records have")
    return StackComparison(
        **{name: entry[name] for name in PLAIN},
        grid=grid,
        matched=tuple(matched),
        spread=array_of(arrays, "spread", "f", (count,)),
        changed=frozenset(_cells(entry["changed"])),
        groups=None if entry["groups"] is None else tuple(entry["groups"]),
        nulls=tuple(array_of(arrays, "nulls", "f", (None, count))),
        can_move=None if entry["can_move"] is None else frozenset(_cells(entry["can_move"])),
    )


def _cells(pairs: Sequence[Sequence[int]]) -> tuple[Cell, ...]:
    # JSON and arrays have lists, and heads are looked up and compared as pairs.
    return tuple((layer, head) for layer, head in pairs)


def counted(count: int, what: str) -> str:
    """A number of things in words."""
    return f"{count} {what}{'s' * (count != 1)}"


def largest_of(count: int, what: str) -> str:
    """The largest of some distances in words, and how often it is exceeded by chance."""
    return (
        f"the largest in {counted(count, what)}; for any one head 1 in {count + 1} of the kind "
        "would look like this"
    )


def joined(tables: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Tables with the same columns, below each other."""
    columns: dict[str, list] = {name: [] for name in tables[0]}
    for table in tables:
        for name, column in columns.items():
            column.extend(table[name])
    return columns
