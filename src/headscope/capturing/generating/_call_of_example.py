"""One text's part of a call that a padded batch made."""

from __future__ import annotations

from dataclasses import replace

import torch

from headscope.capturing.calls.call import Call


def call_of_example(call: Call, example: int, *, queries: int, keys: int) -> Call:
    """The call as if the model had read this example alone, without the padding before it.

    Args:
        call: of the whole batch, whose padding stands on the left.
        example: which of the batch.
        queries: how many of its first queries are padding.
        keys: how many of its first keys are padding.
    """
    one, rows, columns = slice(example, example + 1), slice(queries, None), slice(keys, None)
    sizes = call.size[2:]

    def both(tensor: torch.Tensor | None) -> torch.Tensor | None:
        """Of ``[batch head query key]``, where axes may be 1."""
        if tensor is None:
            return None
        tensor = tensor[one] if tensor.shape[0] > 1 else tensor
        if tensor.shape[2] > 1:
            tensor = tensor[:, :, rows]
        # A mask may be longer than the keys, where the cache has empty places.
        return tensor[..., columns] if tensor.shape[3] >= sizes[1] > 1 else tensor

    def of_queries(tensor: torch.Tensor | None) -> torch.Tensor | None:
        return None if tensor is None else tensor[one, :, rows]

    def of_keys(tensor: torch.Tensor | None) -> torch.Tensor | None:
        return None if tensor is None else tensor[one, :, columns]

    # Behind a cache only the new keys have a form before positions, and none of them is padding.
    is_whole = call.key_before is not None and call.key_before.shape[2] == sizes[1]
    output = call.output
    if output is not None:
        output = output.reshape(*call.context.shape[:2], -1)[one, rows]
    return replace(
        call,
        value=call.value[one, :, columns],
        context=call.context[one, rows],
        query=of_queries(call.query),
        key=of_keys(call.key),
        weights=both(call.weights),
        mask=both(call.mask),
        bias=both(call.bias),
        output=output,
        query_before=of_queries(call.query_before),
        key_before=of_keys(call.key_before) if is_whole else None,
        added=None if call.added is None else call.added[one, rows],
    )
