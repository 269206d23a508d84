"""Weights computed after the model has run, when its own temporary memory is free again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.building._weights import kept_weights
from headscope.capturing.calls.attention import has_own_weights
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility
from headscope.errors import CaptureError

WriteWeights = Callable[[np.dtype], list[np.ndarray]]
"""Function that gives the weights ``[head query key]`` of each text of a call, in a precision."""


def postponed(unpadded_texts: Sequence[RealTokens], visibility: Visibility) -> WriteWeights | None:
    """What writes the weights of a call later, and holds its queries and keys until then; None
    where more is needed than these.

    It raises a `CaptureError` where the model wrote into them after the call.
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
    light_texts = [replace(unpadded, call=light) for unpadded in unpadded_texts]
    sums = _sums(light)

    def write(dtype: np.dtype) -> list[np.ndarray]:
        if not all(torch.equal(now, then) for now, then in zip(_sums(light), sums, strict=True)):
            raise CaptureError(
                f"{light.name}: the model wrote over its queries or keys after its attention was "
                "computed; capture it with keep=['weights', 'qk'], which copies them at once"
            )
        return kept_weights(light_texts, dtype)

    return write


def _sums(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    if call.query is None or call.key is None:
        raise ValueError(f"{call.name}: queries and keys were not seen")
    return call.query.detach().sum(), call.key.detach().sum()
