"""Weights computed after the model has run, when its own temporary memory is free again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.building._weights import kept_weights
from headscope.capturing.calls.attention import has_own_weights
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility
from headscope.errors import CaptureError


@dataclass(frozen=True, eq=False)
class PostponedWeights:
    """The real tokens of a call whose queries and keys are held until its weights are written.

    Args:
        unpadded_texts: the call for each example, with only those tensors that weights need.
        sums: sums of queries and keys at the time of the call.
    """

    unpadded_texts: tuple[RealTokens, ...]
    sums: tuple[torch.Tensor, torch.Tensor]

    def weights(self, dtype: np.dtype) -> tuple[list[np.ndarray], bool]:
        """Weights ``[head query key]`` of each example, and whether they are vouched for.

        Raises:
            CaptureError: where the model wrote into its queries or keys after the call.
        """
        call = self.unpadded_texts[0].call
        if not all(
            torch.equal(now, then) for now, then in zip(_sums(call), self.sums, strict=True)
        ):
            raise CaptureError(
                f"{call.name}: the model wrote over its queries or keys after its attention was "
                "computed; capture it with keep=['weights', 'qk'], which copies them at once"
            )
        return kept_weights(self.unpadded_texts, dtype)


def postponed(
    unpadded_texts: Sequence[RealTokens], visibility: Visibility
) -> PostponedWeights | None:
    """The parts of a call that are needed to write its weights later; None where these are more
    than queries and keys.
    """
    call = unpadded_texts[0].call
    masks_of_heads = call.mask is not None and call.mask.shape[1] > 1
    if call.query is None or has_own_weights(call) or visibility.bias is not None or masks_of_heads:
        return None
    # Only the shapes of values and contexts are needed: one number each, expanded.
    value, context = (
        tensor.new_empty(1).expand(tensor.shape) for tensor in (call.value, call.context)
    )
    heavy = dict.fromkeys(("weights", "output", "added", "query_before", "key_before"))
    light = replace(call, value=value, context=context, **heavy)
    return PostponedWeights(
        unpadded_texts=tuple(replace(unpadded, call=light) for unpadded in unpadded_texts),
        sums=_sums(light),
    )


def _sums(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    if call.query is None or call.key is None:
        raise ValueError(f"{call.name}: queries and keys were not seen")
    return call.query.detach().sum(), call.key.detach().sum()
