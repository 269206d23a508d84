"""The weights of a few rows of a few heads, from queries and keys or from the model's own
weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from headscope.capturing.calls.attention import scores_of
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.softmax import softmax_of
from headscope.capturing.calls.visibility import RowVisibility

LOG2_E, LN_2 = math.log2(math.e), math.log(2)
LANES = 64
"""Numbers that torch takes at a time at most: four of the widest registers (AVX-512)."""
Rows = torch.Tensor | slice
"""Positions of queries, rising."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """Rows of weights.

    Args:
        weights: ``[text head row key]``, to be multiplied by ``share``.
        start: position of the first key.
        share: ``[text head row]``, what the sinks leave of each row, and 0 for rows that may
            attend to nothing, over the sum of the row where that is not 1; None where it is 1.
        spare: of the shape of the weights, to be written to.
    """

    weights: torch.Tensor
    start: int
    share: torch.Tensor | None
    spare: torch.Tensor

    @property
    def shared(self) -> torch.Tensor:
        """The weights ``[text head row key]`` times ``share``: what the rows hold."""
        return self.weights if self.share is None else self.weights * self.share.unsqueeze(-1)

    def scaled(self, values: torch.Tensor) -> torch.Tensor:
        """Values ``[... text head row]`` that are linear in the weights, times ``share``."""
        return values if self.share is None else values * self.share

    def starting(self, start: int) -> Tile:
        """The same tile, its first key counted otherwise."""
        return self if start == self.start else replace(self, start=start)

    def taking(self, keys: torch.Tensor) -> Tile:
        """Only some keys of the tile, whose indices in it are given."""
        part = self.weights[..., keys]
        return replace(self, weights=part, spare=torch.empty_like(part))


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMeasures:
    """What is known of the rows ``[text head row]`` of a tile, padding included; their entropies
    follow from it (`entropy_of`).

    Args:
        products: ``sum w log2 w`` of the tile's weights w.
        total: sum of the weights, where they are to be divided by it; None where they are not.
        left: what the sinks leave of each row, and 0 for rows that may attend to nothing; None
            where it is 1.
        largest: of the weights; None where it is 1.
    """

    products: torch.Tensor
    total: torch.Tensor | None = None
    left: torch.Tensor | None = None
    largest: torch.Tensor | None = None


def entropy_of(products: torch.Tensor, total: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """Entropy in nats of rows, of what is known of them (`RowMeasures`, with 1 for None).

    With ``p = w / total`` it is ``ln total - sum(w ln w) / total``: no logarithm of a weight that
    became 0. A row a p has the entropy ``a H(p) - a ln a``.
    """
    entropy = (total.log() - products / total * LN_2).clamp_(min=0)
    return left * entropy + torch.special.entr(left)


@dataclass(frozen=True, kw_only=True, eq=False)
class FromScores:
    """Tiles of one example of a call that gave its queries and keys.

    Args:
        call: the call.
        query: ``[text head query feature]``.
        key: ``[text kv_head key feature]``, in at least single precision; several heads may share
            one.
        scratch: ``[2 element]``, memory that all tiles share.
    """

    call: Call
    query: torch.Tensor
    key: torch.Tensor
    scratch: torch.Tensor

    def tile(
        self,
        heads: slice,
        rows: Rows,
        visibility: RowVisibility,
        into: torch.Tensor | None = None,
    ) -> Tile:
        """The weights of these heads and rows; the tile before is written over.

        Args:
            heads: which.
            rows: which.
            visibility: what the rows may attend to.
            into: where the weights are to be written; None for the scratch memory.
        """
        query = self._queries(heads, rows)
        weights, spare = _memory(self.scratch, query.shape[:3], visibility)
        scores = self._scores(heads, query, visibility, out=weights)
        # Without sinks only the shape of this is read, so that no sum over the keys is paid for.
        log_sum = scores[..., 0] if self.call.sinks is None else scores.logsumexp(-1)
        share = self._share(heads, log_sum, visibility)
        weights = weights if into is None else into
        softmax_of(scores, out=weights)
        return Tile(weights=weights, start=visibility.start, share=share, spare=spare)

    def measured(
        self, heads: slice, rows: Rows, visibility: RowVisibility
    ) -> tuple[Tile, RowMeasures]:
        """The same, and what follows from the scores."""
        # Powers of 2, since those of e take torch 30 times as long where they underflow.
        query = self._queries(heads, rows)
        weights, spare = _memory(self.scratch, query.shape[:3], visibility)
        scores = self._scores(heads, query, visibility, out=spare, unit=LOG2_E)
        top = scores.amax(-1)
        # Less the largest score, so that p ln p below is made of small numbers; no row changes by
        # it. The sum of a row is left to ``share``, and so is the largest weight: exp2(0).
        scores.sub_(top.unsqueeze(-1))
        # To the end of a register: torch takes another way for what does not fill the last one, and
        # a weight would differ by rounding with its place.
        filled = _filled(weights.numel())
        torch.exp2(self.scratch[1, :filled], out=self.scratch[0, :filled])
        total = weights.sum(-1)
        products = scores.mul_(weights).sum(-1)
        left = None
        if self.call.sinks is not None or visibility.alive is not None:
            left = self._share(heads, top * LN_2 + total.log(), visibility)
        share = total.reciprocal() if left is None else left / total
        tile = Tile(weights=weights, start=visibility.start, share=share, spare=spare)
        return tile, RowMeasures(products=products, total=total, left=left)

    def _queries(self, heads: slice, rows: Rows) -> torch.Tensor:
        """Queries ``[text head row feature]`` in the precision of the tiles."""
        return self.query[:, heads, rows].to(self.scratch.dtype)

    def _scores(
        self,
        heads: slice,
        query: torch.Tensor,
        visibility: RowVisibility,
        *,
        out: torch.Tensor,
        unit: float = 1.0,
    ) -> torch.Tensor:
        """Scores ``[text head row key]``, times a unit."""
        shared = self.query.shape[1] // self.key.shape[1]
        kv_heads = slice(heads.start // shared, heads.stop // shared)
        key = self.key[:, kv_heads, visibility.start : visibility.stop]
        if self.call.soft_cap is None:
            scores_of(query, key, scale=self.call.scale * unit, soft_cap=None, out=out)
        else:
            # the cap is put on scores as they are
            scores_of(query, key, scale=self.call.scale, soft_cap=self.call.soft_cap, out=out)
            out.mul_(unit)
        if visibility.added is not None:
            since = visibility.added_from - visibility.start
            out[..., since : since + visibility.added.shape[-1]].add_(
                _of_heads(visibility.added, heads), alpha=unit
            )
        return out

    def _share(
        self, heads: slice, log_sum: torch.Tensor, visibility: RowVisibility
    ) -> torch.Tensor | None:
        """What the sinks leave of each row, ``exp(lse) / (exp(lse) + exp(sink))``: 0 where it may
        attend to nothing.
        """
        if self.call.sinks is None:
            return _alive(heads, log_sum, visibility)
        sinks = self.call.sinks.reshape(-1)[heads].to(log_sum.dtype)
        # The sigmoid of the difference is the fraction above, and cannot overflow as its parts can.
        return torch.sigmoid(log_sum - sinks.unsqueeze(-1))


@dataclass(frozen=True, kw_only=True, eq=False)
class FromWeights:
    """Tiles of one example of a call that gave its weights.

    Args:
        weights: ``[text head query key]``.
        scratch: ``[2 element]``, memory that all tiles share.
    """

    weights: torch.Tensor
    scratch: torch.Tensor

    def tile(
        self,
        heads: slice,
        rows: Rows,
        visibility: RowVisibility,
        into: torch.Tensor | None = None,
    ) -> Tile:
        """As `FromScores.tile`; copied from there."""
        given = self.weights[:, heads, rows, visibility.start : visibility.stop]
        weights, spare = _memory(self.scratch, given.shape[:3], visibility)
        weights = weights if into is None else into
        weights.copy_(given)
        return Tile(
            weights=weights,
            start=visibility.start,
            share=_alive(heads, weights[..., 0], visibility),
            spare=spare,
        )

    def measured(
        self, heads: slice, rows: Rows, visibility: RowVisibility
    ) -> tuple[Tile, RowMeasures]:
        """The same, and what follows from the weights."""
        tile = self.tile(heads, rows, visibility)
        products = torch.special.entr(tile.weights, out=tile.spare).sum(-1).mul_(-LOG2_E)
        largest = tile.weights.amax(-1)
        return tile, RowMeasures(products=products, left=tile.share, largest=largest)


def _filled(size: int) -> int:
    """So many numbers, and those that fill the last register."""
    return -(-size // LANES) * LANES


def scratch_memory(size: int, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Memory ``[2 element]`` for tiles of so many weights at most, on the device of a tensor."""
    return torch.empty(2, _filled(size), dtype=dtype, device=like.device)


def _memory(
    scratch: torch.Tensor, size: tuple[int, ...], visibility: RowVisibility
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two arrays ``[text head row key]`` in the scratch memory, for so many heads and rows."""
    shape = (*size, visibility.stop - visibility.start)
    return scratch[0, : math.prod(shape)].view(shape), scratch[1, : math.prod(shape)].view(shape)


def _alive(heads: slice, like: torch.Tensor, visibility: RowVisibility) -> torch.Tensor | None:
    return (
        None
        if visibility.alive is None
        else _of_heads(visibility.alive, heads).to(like.dtype).expand_as(like)
    )


def _of_heads(tensor: torch.Tensor, heads: slice) -> torch.Tensor:
    return tensor if tensor.shape[1] == 1 else tensor[:, heads]
