"""Attention of two records on the tokens that they share, and which of their heads are set against
each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from headscope.comparison._alignment import TokenAlignment
from headscope.errors import RecordError
from headscope.measures import jensen_shannon_parts, row_entropy
from headscope.record import Layer, ModelFacts, Stack, Tokens

Side = Literal["a", "b"]
LOST, ROUNDINGS = 1e-5, 4
"""Mass that a row may lack for rounding, and that in distances of 1 from the next number."""
# Distance of 1 from the next number: float16 has 10 bits of fraction, bfloat16 7, float32 23.
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SINGLE = 2.0**-23
BLANK = "␣"


@dataclass(frozen=True, eq=False)
class Grid:
    """Two stacks on the spans of their tokens.

    Args:
        a: one stack.
        b: the other.
        query: how their query tokens are aligned.
        key: how their key tokens are.
        dtypes: what the models computed in, such as ``"float16"``; for `rounding`.
    """

    a: Stack
    b: Stack
    query: TokenAlignment
    key: TokenAlignment
    dtypes: tuple[str, ...] = ()

    @property
    def identity(self) -> bool:
        """Whether both have the same tokens."""
        return self.query.identity and self.key.identity

    def weights(self, side: Side, layer: int) -> Float[np.ndarray, "head query key"]:
        """Weights of a layer of one of the stacks, spans for tokens: sums over keys, means over
        queries.

        Rows and columns of spans that are only in the other stack are 0. No row is renormalised.

        Source: Clark et al. 2019, section 4.1, from word pieces to words.
        """
        weights = np.asarray(
            (self.a if side == "a" else self.b).layer(layer).weights_of(), np.float64
        )
        if self.identity:
            return weights
        to = _members(self.key, side, weights.shape[2])
        per = _members(self.query, side, weights.shape[1])
        # At least 1: a span that is only in the other stack has no tokens here, and stays 0.
        per /= np.maximum(1, per.sum(axis=1, keepdims=True))
        return per @ (weights @ to.T)

    @cached_property
    def rows(self) -> Int[np.ndarray, " row"]:
        """The query spans that both have."""
        return self.query.span_numbers("both")

    def compared(self, side: Side, layer: int) -> Float[np.ndarray, "head row column"]:
        """Rows of the query spans that both have, as distributions that can be set against each
        other.

        Columns: the keys that both have, those that were replaced, all that only this record has in
        one, and what the row lacks of 1 (learned sinks, heads whose output was replaced).
        """
        weights = self.weights(side, layer)[:, self.rows]
        there = self.key.span_numbers("both", "replaced")
        alone = weights[:, :, self.key.span_numbers("a", "b")].sum(axis=-1, keepdims=True)
        lost = 1 - weights.sum(axis=-1, keepdims=True)
        own = (self.a if side == "a" else self.b).layer(layer)
        rounding = max(LOST, ROUNDINGS * epsilon_of(own, dtypes=self.dtypes))
        return np.concatenate(
            [weights[:, :, there], alone, np.where(lost > rounding, lost, 0.0)], axis=-1
        )

    def rounding(self, layer: int, other: int) -> Float[np.ndarray, " head"]:
        """Distance that rounding alone may make, of each head of a layer of A, in nats; see
        `rounding_distance`.
        """
        rows = self.compared("a", layer)
        distances = rounding_distance(
            rows, epsilon_of(self.a.layer(layer), self.b.layer(other), dtypes=self.dtypes)
        )
        return distances.mean(axis=-1) if len(self.rows) else np.full(len(distances), np.nan)


def rounding_distance(
    weights: Float[np.ndarray, "head query key"], epsilon: float
) -> Float[np.ndarray, "head query"]:
    """Jensen-Shannon distance of each row from itself with rounded scores, in nats; to first order.

    A score s that is rounded to ``s (1 + e)`` changes its weight by the part ``e |s|``, and scores
    lie about ``-ln w`` below the largest; so a weight is off by the part ``d = e (1 - ln w)``,
    twice that between two records, and the distance is ``sum_k w (2 d)^2 / 8``. (Ours. It shows
    nothing of what rounding does in the layers below.)

    Args:
        weights: attention, axes head, query, key.
        epsilon: distance of 1 from the next number.

    Example:
        >>> rounding_distance(np.array([[[1.0, 0.0]]]), 2.0**-10).tolist()
        [[4.76837158203125e-07]]
    """
    # log is left at 0 where a weight is 0: it is multiplied by that weight in the end.
    off = epsilon * (1 - np.log(weights, out=np.zeros_like(weights), where=weights > 0))
    return (weights * off**2 / 2).sum(axis=-1)


def epsilon_of(*layers: Layer, dtypes: Sequence[str] = ()) -> float:
    """Distance of 1 from the next number, in the coarsest numbers that weights of these layers come
    from; under autocast that is its own.
    """
    names = [*dtypes, *(array.dtype.name for layer in layers for array in _sources(layer))]
    return max((EPSILON.get(name.rpartition(" ")[2], SINGLE) for name in names), default=SINGLE)


def grid_tokens(alignment: TokenAlignment, a: Tokens, b: Tokens) -> Tokens:
    """The spans as tokens: ``−word`` only in A, ``+word`` only in B, ``old→new`` replaced; else as
    B calls them.

    Patches stay where they are in their picture.
    """
    labels, special, segments, patches = [], [], [], []
    for span in alignment.spans:
        old, new = _text(a, span.a), _text(b, span.b)
        labels.append(
            {"both": new, "replaced": f"{old}→{new}", "a": f"−{old}", "b": f"+{new}"}[span.kind]
        )
        # Facts of B, which the page calls tokens by, unless only A has any.
        tokens, numbers = (b, span.b) if span.b else (a, span.a)
        special.append(all(tokens.special[number] for number in numbers))
        segments.append(tokens.segments[numbers[0]])
        sides = (tokens.pictures, tokens.places)
        patches.append([side and side[numbers[0]] for side in sides])
    words = Tokens(
        pieces=tuple(labels), labels=tuple(labels), special=tuple(special), segments=tuple(segments)
    )
    if not b.grids:
        return words
    pictures, at = zip(*patches, strict=True)
    return replace(words, grids=b.grids, places=at, pictures=pictures)


def _text(tokens: Tokens, numbers: tuple[int, ...]) -> str:
    return "".join(tokens.labels[number] for number in numbers).strip() or BLANK


def _members(alignment: TokenAlignment, side: Side, count: int) -> Float[np.ndarray, "span token"]:
    members = np.zeros((len(alignment), count))
    for index, span in enumerate(alignment.spans):
        members[index, list(span.a if side == "a" else span.b)] = 1.0
    return members


def _sources(layer: Layer) -> list[np.ndarray]:
    arrays = (layer.weights,) if layer.has("weights") else (layer.queries, layer.keys)
    return [array for array in arrays if array is not None]


Cell = tuple[int, int]
MATCHINGS = ("auto", "number", "best")
MOST_ROWS = 64
"""Rows that are looked at to find the best match of every head; evenly spaced where there are
more.
"""
LEAST = 1e-300
"""Stands for 0 in a logarithm that is then multiplied by 0."""


@dataclass(frozen=True, eq=False)
class MatchedHeads:
    """How far the heads of A are from those of B that they are set against, on one pair of records.

    Args:
        cells: layer and head of every head of A.
        partners: of B, the head that each of them is set against.
        distances: for each head the Jensen-Shannon distance of each row that both have, in nats.
    """

    cells: tuple[Cell, ...]
    partners: tuple[Cell, ...]
    distances: Float[np.ndarray, "head row"]

    @property
    def mean(self) -> Float[np.ndarray, " head"]:
        """Mean over the rows."""
        return self.distances.mean(axis=1)


def cells_of(stack: Stack) -> tuple[Cell, ...]:
    """Layer and head of every head of a stack."""
    return tuple((layer.layer, head) for layer in stack for head in range(layer.heads))


def matching_of(
    wanted: str, grid: Grid, models: tuple[ModelFacts, ModelFacts]
) -> Literal["number", "best"]:
    """Whether heads are set against those of the same number, or the one nearest to each.

    Raises:
        RecordError: where it is none of these, or numbers were asked for and the stacks have other
            heads.
    """
    same = cells_of(grid.a) == cells_of(grid.b)
    if wanted not in MATCHINGS:
        raise RecordError(f"heads={wanted!r}: expected one of {', '.join(map(repr, MATCHINGS))}")
    if wanted == "number" and not same:
        raise RecordError(
            f"heads='number': the stacks have {len(cells_of(grid.a))} heads in {len(grid.a)} "
            f"layers and {len(cells_of(grid.b))} in {len(grid.b)}, not the same ones; take "
            "heads='best'"
        )
    if wanted != "auto":
        return "number" if wanted == "number" else "best"
    return "number" if same and models[0].model_type == models[1].model_type else "best"


def by_partners(grid: Grid, partners: tuple[Cell, ...]) -> MatchedHeads:
    """Every head of A and a given one of B."""
    theirs = {layer.layer: grid.compared("b", layer.layer) for layer in grid.b}
    distances, first = [], 0
    for layer in grid.a:
        own = partners[first : first + layer.heads]
        first += layer.heads
        beside = np.stack([theirs[number][head] for number, head in own])
        parts = jensen_shannon_parts(grid.compared("a", layer.layer), beside)
        distances.append(parts.sum(axis=-1))
    return MatchedHeads(cells_of(grid.a), partners, np.concatenate(distances))


def all_distances(grid: Grid) -> Float[np.ndarray, "head other_head"]:
    """Mean distance of every head of A from every head of B over rows, at most `MOST_ROWS` of them,
    in nats.
    """
    rows = np.unique(
        np.linspace(0, len(grid.rows) - 1, min(MOST_ROWS, len(grid.rows))).round().astype(int)
    )
    ours, theirs = (
        np.concatenate([grid.compared(side, layer.layer)[:, rows] for layer in stack])
        for side, stack in (("a", grid.a), ("b", grid.b))
    )
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2: the entropies of single heads are computed
    # once, those of the middles head by head, as all at once would take A x B maps of memory.
    entropies, their_entropies = row_entropy(ours), row_entropy(theirs)
    distances = []
    for own, entropy in zip(ours, entropies, strict=True):
        apart = _entropy((own + theirs) / 2) - (entropy + their_entropies) / 2
        distances.append(apart.mean(axis=1))
    return np.stack(distances)


def _entropy(rows: np.ndarray) -> np.ndarray:
    """Of rows in which few weights are 0: logarithms without a mask take a third of the time."""
    return -np.einsum("hrk,hrk->hr", rows, np.log(np.maximum(rows, LEAST)))


def best_partners(grids: Sequence[Grid]) -> tuple[Cell, ...]:
    """The head of B that is nearest to each head of A, by the mean distance over texts; the first
    of equals.
    """
    mean = np.mean([all_distances(grid) for grid in grids], axis=0)
    cells = cells_of(grids[0].b)
    return tuple(cells[column] for column in mean.argmin(axis=1))
