"""Which head of one record is set against which of another, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from headscope.comparison._grid import Grid
from headscope.errors import RecordError
from headscope.measures import jensen_shannon_parts, row_entropy
from headscope.record import ModelFacts, Stack

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


def by_number(grid: Grid) -> MatchedHeads:
    """Every head and the one of the same layer and number."""
    distances = [grid.distances(layer.layer, layer.layer) for layer in grid.a]
    cells = cells_of(grid.a)
    return MatchedHeads(cells, cells, np.concatenate(distances))


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
