"""Statistics of one attention call, tile by tile.

A tile is a few rows of a few heads. Its weights are computed, read off and forgotten, so that
``[query key]`` is never there as a whole, not as a mask either: one product with the keys, one
softmax and half a dozen sums. That takes about as long as the model's own attention at head size
64, and half as long again at 32. The fused kernel, run once more with the keys as values, takes as
long and gives the log-sum-exp and the entropy alone: neither the largest weight nor what the keys
receive, and nothing where there are soft caps, biases or sinks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import torch

from headscope.capturing.calls._tile import Tile
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.tiles import (
    TileSlices,
    scratch_of,
    text_groups,
    tiles_of,
    without_padding,
)
from headscope.capturing.device import full_precision
from headscope.capturing.statistics._accumulator import Accumulator
from headscope.capturing.statistics._plan import StatisticsPlan
from headscope.record import Statistics


class ChosenRows:
    """Rows of the weights of texts without padding, copied from tiles while these are in the
    processor's cache.

    Args:
        call: the call.
        at: positions ``[row]`` of the queries, rising, the same in all texts.

    Attributes:
        weights: ``[text head row key]``.
    """

    def __init__(self, call: Call, at: torch.Tensor) -> None:
        texts, heads, _, keys = call.size
        self._at, self._positions = at, at.tolist()
        self._known: dict[tuple[int, int], tuple[int, int, torch.Tensor]] = {}
        self.weights: torch.Tensor = torch.zeros(texts, heads, len(at), keys, device=at.device)

    def take(self, part: TileSlices, tile: Tile) -> None:
        """Copy the rows that a tile has."""
        first, last, at = self._rows_in(part.covered.start, part.covered.stop)
        if first == last:
            return
        keys = slice(tile.start, tile.start + tile.weights.shape[-1])
        into = self.weights[part.group.texts, part.heads, first:last, keys]
        chosen = tile.weights.index_select(2, at)
        if tile.share is None:
            into.copy_(chosen)
        else:
            into.copy_(chosen.mul_(tile.share.index_select(2, at).unsqueeze(-1)))

    def _rows_in(self, start: int, stop: int) -> tuple[int, int, torch.Tensor]:
        """Which of the rows a tile of these queries has, and where in it they are."""
        if (start, stop) not in self._known:
            first, last = (bisect_left(self._positions, position) for position in (start, stop))
            self._known[start, stop] = first, last, self._at[first:last] - start
        return self._known[start, stop]


@torch.no_grad()
@full_precision()
def statistics_of_call(
    call: Call,
    plan: StatisticsPlan,
    *,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
    chosen: ChosenRows | None = None,
) -> list[Statistics]:
    """Statistics of one call, for each example of the batch; what is cut off is padding.

    Args:
        call: with queries and keys, or with weights, of a model on any device and in any precision.
        plan: what is measured.
        kept_queries: for each example the positions of the queries that are real tokens, rising.
        kept_keys: the same for the keys.
        chosen: takes some rows of the weights, where the statistics cover all rows of texts without
            padding.

    Raises:
        CaptureError: where real tokens attend to padding, so that it cannot be cut off.
    """
    statistics, scratch = [], scratch_of(call)
    for group in text_groups(call, kept_queries, kept_keys, sampled=plan.rows is not None):
        marks = plan.marks(group.texts, *group.kept)
        queries = group.queries(call)
        covered = plan.sampled(len(queries))
        rows = torch.arange(len(queries)) if covered is None else torch.from_numpy(covered)
        rows = rows.to(call.context.device)
        lengths = group.lengths
        if covered is not None:
            lengths = tuple((len(rows), keys) for _, keys in lengths)
        keys = call.size[3] if group.kept[1] is None else len(group.kept[1])
        accumulator = Accumulator(marks, rows, lengths, heads=call.size[1], keys=keys, top=plan.top)
        for part in tiles_of(call, group, queries[rows], scratch):
            tile, measured = part.source.measured(part.heads, part.rows, part.visibility)
            if chosen is not None:
                chosen.take(part, tile)
            real = without_padding(tile, part.group, part.covered, call.name)
            # A tile may lie wholly on padding, such as that on the left of a short text.
            if real.weights.shape[-1]:
                held = part.texts, part.heads, part.covered
                accumulator.enter(real, measured, held, is_cut=real.weights is not tile.weights)
        statistics += accumulator.statistics(covered, len(queries))
    return statistics
