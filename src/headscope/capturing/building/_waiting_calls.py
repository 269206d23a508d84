"""Several calls of one form, whose weights are computed and checked together.

For a few texts of a few words, starting an operation of torch takes longer than computing it, so
several layers share one. Arrays of many texts do not stay in the processor's cache: then each layer
is computed as it comes, some texts at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.capturing.building._checks import TOLERANCE
from headscope.capturing.calls.attention import QueryRows, has_own_weights, scores_of, visible_of
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.softmax import softmax_of
from headscope.capturing.calls.visibility import Visibility, state_of
from headscope.errors import CaptureError
from headscope.record import Mask

ROW_SUM_TOLERANCE = 5e-3
"""Largest difference of a row's sum from 1, as in a record."""
AT_ONCE = 3 * 2**20
"""Bytes of queries, keys, values and outputs that are worked on together, so that they stay in the
processor's cache. Between 1.5 and 16 MiB no difference was measured that is larger than the noise.
"""


def is_plain(call: Call, visibility: Visibility) -> bool:
    """Whether weights are the softmax of scaled products in single precision, and nothing else."""
    if has_own_weights(call) or call.query is None or call.key is None or call.output is None:
        return False
    parts = (call.soft_cap, call.sinks, call.added, visibility.bias)
    single = {call.query.dtype, call.key.dtype, call.value.dtype} == {torch.float32}
    return single and call.projection is not None and all(part is None for part in parts)


@dataclass(frozen=True)
class WaitingCall:
    """A call of texts of one length.

    Args:
        call: the call as it was seen.
        visibility: its visibility, the same for all texts.
        rows: the rows at which it is checked.
        output: what the projection was given for these rows.
        layer: takes its weights.
    """

    call: Call
    visibility: Visibility
    rows: QueryRows
    output: torch.Tensor
    layer: dict[str, Any]

    @classmethod
    def of(
        cls, call: Call, visibility: Visibility, rows: QueryRows, layer: dict[str, Any]
    ) -> WaitingCall:
        """The call, with the output that it is checked against."""
        texts, _, queries, _ = call.size
        output = rows.of(call.context.reshape(texts, queries, -1), axis=1)
        return cls(call, visibility, rows, output, layer)

    def kept(self) -> WaitingCall:
        """The call with a copy of the output, which the model may change before it is checked."""
        # Chosen rows are a copy already.
        return self if self.rows.at is not None else replace(self, output=self.output.clone())

    @property
    def form(self) -> tuple:
        """What calls must share to be computed together."""
        call, visibility = self.call, self.visibility
        shapes = (call.size, call.key.shape if call.key is not None else None, call.value.shape)
        seen = (visibility.causal, state_of(visibility.visible))
        return (*shapes, self.output.shape, call.scale, *seen, call.context.device)

    @property
    def bytes(self) -> int:
        """Bytes of the tensors that are held."""
        parts = (self.call.query, self.call.key, self.call.value, self.call.context)
        return sum(part.nbytes for part in parts if part is not None)


def write_weights(waiting: Sequence[WaitingCall]) -> None:
    """Compute the weights of calls of one form, check them, and write them into their layers.

    Raises:
        CaptureError: where they do not give what the model computed.
    """
    first = waiting[0]
    texts = first.call.size[0]
    each_text = max(1, sum(call.bytes for call in waiting) // max(1, texts))
    at_once = max(1, AT_ONCE // each_text)
    visible = visible_of(first.call, first.visibility)
    if visible is not None:
        # Texts of one length that share arrays see alike.
        visible = visible[:1]
    weights = torch.empty(len(waiting), *first.call.size, device=first.call.context.device)
    for begin in range(0, texts, at_once):
        some = slice(begin, min(texts, begin + at_once))
        _weigh(waiting, some, visible, into=weights[:, some])
    for each, own in zip(waiting, weights.cpu().numpy(), strict=True):
        each.layer["weights"] = own


def _weigh(
    waiting: Sequence[WaitingCall],
    some: slice,
    visible: torch.Tensor | None,
    *,
    into: torch.Tensor,
) -> None:
    """Compute and check the weights ``[layer text head query key]`` of some of the texts."""
    first = waiting[0].call
    key = torch.stack([each.call.key[some] for each in waiting if each.call.key is not None])
    value = torch.stack([each.call.value[some] for each in waiting])
    query = torch.stack([each.call.query[some] for each in waiting if each.call.query is not None])
    scores = torch.empty(into.shape, device=into.device)
    # The product is scaled, as in all weights that are kept, so that bits are the same.
    scores_of(
        query.flatten(0, 1),
        key.flatten(0, 1),
        scale=first.scale,
        soft_cap=None,
        out=scores.flatten(0, 1),
    )
    if visible is not None:
        scores.masked_fill_(~visible, torch.finfo(scores.dtype).min)
    softmax_of(scores, out=into)
    mask = waiting[0].layer["visible"]
    if mask.dead.any():
        into *= torch.from_numpy(~mask.dead).to(into.device)[:, None]
    check_rows(into, first, mask)
    _check_outputs(waiting, some, into, value)


def _check_outputs(
    waiting: Sequence[WaitingCall], part: slice, weights: torch.Tensor, value: torch.Tensor
) -> None:
    """Raise where some rows of a text, multiplied with its values, differ from what the model's own
    projection was given.

    Both are not projected: that takes a twelfth of the model's own time, and shows nothing more,
    since the projection was found by being given these very numbers.
    """
    layers, texts, heads = weights.shape[:3]
    rows = waiting[0].rows
    some = weights if rows.at is None else weights.index_select(3, rows.at)
    shared = math.prod(value.shape[:3])
    ours = torch.bmm(some.reshape(shared, -1, some.shape[-1]), value.view(shared, *value.shape[3:]))
    ours = ours.view(layers, texts, heads, some.shape[3], -1)
    apart = []
    for each, of_layer in zip(waiting, ours, strict=True):
        output = each.output[part]
        # Theirs has the heads of a row side by side.
        theirs = output.reshape(texts, -1, heads, of_layer.shape[-1]).transpose(1, 2)
        difference = of_layer.sub_(theirs).flatten(1).abs_()
        flat = output.flatten(1)
        largest = torch.maximum(flat.amax(1), -flat.amin(1))
        apart.append(torch.stack([difference.amax(1), largest]))
    worst, largest = torch.stack(apart, dim=1)
    # not (... <= ...) is true of NaN, too
    if not bool((worst <= TOLERANCE[torch.float32] * largest).all()):
        raise CaptureError(
            f"{waiting[0].call.name}: an output recomputed from weights and values differs from "
            f"the model's own by {float(worst.max()):.3g}"
        )


def check_rows(weights: torch.Tensor, call: Call, visible: Mask) -> None:
    """Raise where a weight is negative or a row does not sum to 1, as a record would refuse it.

    Args:
        weights: ``[... text head query key]``.
        call: their call; with sinks rows may sum to less.
        visible: the keys that queries may look at; rows of queries without any are zero.

    Raises:
        CaptureError: with the sums.
    """
    sums = weights.sum(-1)
    dead = visible.dead
    if dead.any():
        sums = sums[..., torch.from_numpy(~dead).to(sums.device)]
    if not sums.numel():
        return
    least, most, smallest = torch.stack([sums.min(), sums.max(), weights.min()]).tolist()
    low = 0.0 if call.sinks is not None else 1 - ROW_SUM_TOLERANCE
    # not (... <= ...) is true of NaN, too
    if not (low <= least <= most <= 1 + ROW_SUM_TOLERANCE and smallest >= 0):
        raise CaptureError(
            f"{call.name}: rows of weights sum to {least:.4g} to {most:.4g}, not to 1; this "
            "attention is computed in a way that headscope does not know, and is refused"
        )
