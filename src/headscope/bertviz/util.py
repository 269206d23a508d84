"""BertViz's helpers, for torch tensors and NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.errors import RecordError

__all__ = ["format_attention", "format_special_chars", "num_heads", "num_layers"]


def format_attention(attention: Any, layers: Sequence[int] | None = None, heads: Any = None) -> Any:
    """The weights of all layers, or of those chosen, as one array ``[layer head query key]``.

    Args:
        attention: one array ``[1 head query key]`` for each layer.
        layers: layers that are kept, in this order.
        heads: heads that are kept, in this order.

    Raises:
        RecordError: where a layer is missing, has other axes, or other heads and tokens than the
            rest.
    """
    chosen = range(len(attention)) if layers is None else layers
    formatted = [_one(attention, number, heads) for number in chosen]
    shapes = {tuple(array.shape) for array in formatted}
    if len(shapes) != 1:
        what = f"have the shapes {sorted(shapes)}" if shapes else "are none"
        raise RecordError(
            f"The layers {list(chosen)} {what}; one array needs at least one layer, all with the "
            "same heads and tokens"
        )
    # Tensors are stacked by torch, so that they stay on their device and keep their gradient.
    if hasattr(formatted[0], "detach"):
        import torch

        return torch.stack(formatted)
    return np.stack(formatted)


def num_layers(attention: Any) -> int:
    """Number of layers."""
    return len(attention)


def num_heads(attention: Any) -> int:
    """Number of heads in the first layer that has attention."""
    for layer in attention:
        if layer is not None:
            return layer.shape[1]
    raise RecordError("These layers hold no weights, so the number of their heads is not known")


def format_special_chars(tokens: Sequence[str]) -> list[str]:
    """The tokens with a space in place of their tokenizer's mark for it, and without marks for the
    end of a word.
    """
    return [
        token.replace("\u0120", " ").replace("\u2581", " ").replace("</w>", "") for token in tokens
    ]


def _one(attention: Any, number: int, heads: Any) -> Any:
    if not 0 <= number < len(attention):
        raise RecordError(f"There are the layers 0 to {len(attention) - 1}, not {number}")
    layer = attention[number]
    if layer is None:
        raise RecordError(f"Layer {number} is None: it has no attention; leave it out with layers=")
    if len(layer.shape) != 4 or layer.shape[0] != 1:
        raise RecordError(
            f"Layer {number} has shape {tuple(layer.shape)}; expected [1 head query key], one "
            "text, as models return with output_attentions=True"
        )
    return layer[0] if heads is None else layer[0][list(heads)]
