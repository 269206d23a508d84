"""Several calls of one form, whose weights are computed and checked together.

For a few texts of a few words, starting an operation of torch takes longer than computing it, so
several layers share one. Arrays of many texts do not stay in the processor's cache: then each layer
is computed as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.capturing.building._checks import verified
from headscope.capturing.calls.attention import ALL, QueryRows, has_own_weights
from headscope.capturing.calls.call import Call, joined_calls
from headscope.capturing.calls.tiles import fill_weights
from headscope.capturing.calls.visibility import state_of
from headscope.errors import CaptureError
from headscope.record import Mask

ROW_SUM_TOLERANCE = 5e-3
"""Largest difference of a row's sum from 1, as in a record."""
AT_ONCE = 3 * 2**20
"""Bytes of queries, keys, values and outputs that are worked on together, so that they stay in the
processor's cache. Between 1.5 and 16 MiB no difference was measured that is larger than the noise.
"""


def may_wait(call: Call) -> bool:
    """Whether weights follow from queries and keys in single precision, and from nothing that a
    text or a layer may have for itself.
    """
    if has_own_weights(call) or call.query is None or call.key is None:
        return False
    is_single = {call.query.dtype, call.key.dtype, call.value.dtype} == {torch.float32}
    return is_single and all(part is None for part in (call.sinks, call.added, call.bias))


@dataclass(frozen=True)
class WaitingCall:
    """A call of texts of one length, which see alike.

    Args:
        call: the call as it was seen.
        rows: the rows at which it is checked.
        layer: takes its weights.
        output: ``[text row head feature]``, the outputs of heads in these rows, where the model may
            write over them before they are compared.
    """

    call: Call
    rows: QueryRows
    layer: dict[str, Any]
    output: torch.Tensor

    @classmethod
    def of(cls, call: Call, rows: QueryRows, layer: dict[str, Any]) -> WaitingCall:
        """A call that waits for others."""
        output = rows.of(call.context, axis=1)
        # Chosen rows are a copy already.
        return cls(call, rows, layer, output.clone() if rows.at is None else output)

    @property
    def form(self) -> tuple:
        """What calls must share to be computed together."""
        call = self.call
        key = None if call.key is None else call.key.shape
        shapes = call.size, key, call.value.shape, self.output.shape
        seen = call.causal, *state_of(call.mask)
        return *shapes, call.scale, call.soft_cap, *seen, call.context.device

    @property
    def bytes(self) -> int:
        """Bytes of the tensors that are held."""
        parts = (self.call.query, self.call.key, self.call.value, self.call.context)
        return sum(part.nbytes for part in parts if part is not None)


def write_waiting(waiting: Sequence[WaitingCall]) -> None:
    """Compute the weights of calls of one form, check them, and write them into their layers.

    Raises:
        CaptureError: where they do not give what the model computed.
    """
    calls, first = [each.call for each in waiting], waiting[0].call
    call = joined_calls(calls, ("query", "key", "value"))
    if call.mask is not None:
        call = replace(call, mask=call.mask[:1])
    outputs = torch.cat([each.output for each in waiting])
    weights = _weights(call, waiting[0].layer["visible"])
    some = waiting[0].rows.of(weights)
    verified(replace(call, context=outputs, projection=None), some, ALL)
    for each, own in zip(waiting, weights.cpu().split(first.size[0]), strict=True):
        each.layer["weights"] = own.numpy()


def write_weights(call: Call, rows: QueryRows, layer: dict[str, Any]) -> None:
    """The same for one call of texts of one length, whatever its weights follow from."""
    weights = _weights(call, layer["visible"])
    verified(replace(call, projection=None), rows.of(weights), rows)
    layer["weights"] = weights.cpu().numpy()


def _weights(call: Call, visible: Mask) -> torch.Tensor:
    """The weights ``[text head query key]`` of texts without padding, as records hold them.

    Outputs of heads are compared with what the projection was given, and not projected: that takes
    a twelfth of the model's own time, and shows nothing more, since the projection was found by
    being given these very numbers.
    """
    texts, _, queries, keys = call.size
    weights = torch.empty(call.size, device=call.context.device)
    every = [torch.arange(size, device=weights.device) for size in (queries, keys)]
    of_texts = ([positions] * texts for positions in every)
    if not fill_weights(call, *of_texts, into=weights, are_zeros=False):
        check_rows(weights, call, visible)
    return weights


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
