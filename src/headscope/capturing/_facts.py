"""What a model tells about itself, beside its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import nn

from headscope.capturing._load import display_name
from headscope.record import Layer, ModelFacts

MIXER = re.compile(r"mamba|delta|linear.?attention|retention|recurrent|rwkv|conv|ssm|mixer|attention", re.IGNORECASE)
LINEAR = re.compile(r"linear|delta|retention", re.IGNORECASE)
LINEAR_WITHIN = 1e-4


def facts_of(model: Any) -> ModelFacts:
    """What a loaded model tells about itself."""
    config = getattr(model, "config", None)
    parameter = next(model.parameters(), None)
    return ModelFacts(
        name=display_name(model),
        revision=getattr(config, "_commit_hash", None),
        model_type=getattr(config, "model_type", ""),
        class_name=type(model).__name__,
        implementation=getattr(config, "_attn_implementation", None) or "",
        dtype="" if parameter is None else str(parameter.dtype).removeprefix("torch."),
        versions={name: version(name) for name in ("headscope", "torch", "transformers")},
    )


def others_of(model: nn.Module, path: str, numbers: Iterable[int]) -> dict[int, str]:
    """The blocks of a list of blocks that computed no softmax attention, and what they are instead.

    Args:
        model: the whole.
        path: of the list, such as ``"model.layers"``.
        numbers: of the blocks that did.
    """
    try:
        blocks = model.get_submodule(path)
    except AttributeError:
        return {}
    numbers = set(numbers)
    if not isinstance(blocks, nn.ModuleList) or not numbers <= set(range(len(blocks))):
        return {}
    return {number: _described(block) for number, block in enumerate(blocks) if number not in numbers}


def positions_of(model: nn.Module, layers: Iterable[Layer]) -> str:
    """How a model tells positions apart: ``rotary``, ``alibi``, ``relative`` or ``absolute``; empty if not known."""
    layers = list(layers)
    if any(layer.rotary is not None for layer in layers):
        return "rotary"
    biases = [layer.bias for layer in layers if layer.bias is not None]
    if biases:
        return "alibi" if all(_falls_with_distance(layer) for layer in layers if layer.bias is not None) else "relative"
    if getattr(getattr(model, "config", None), "rope_parameters", None):
        return "rotary"
    named = (name for name, module in model.named_modules() if isinstance(module, nn.Embedding))
    return "absolute" if any("pos" in name or name.endswith("wpe") for name in named) else ""


def _falls_with_distance(layer: Layer) -> bool:
    """Whether each row of the bias is a straight line over the keys, the same slope for each query (Press et al.)."""
    bias = np.asarray(layer.bias, np.float64)
    if bias.shape[2] < 3:
        return False
    seen = np.ones(bias.shape[1:], bool) if layer.visible is None else np.asarray(layer.visible)
    steps, both = np.diff(bias, axis=2), seen[:, 1:] & seen[:, :-1]
    if not both.any():
        return False
    return all(np.ptp(head[both]) <= LINEAR_WITHIN and np.abs(head[both]).max() > LINEAR_WITHIN for head in steps)


def _described(block: nn.Module) -> str:
    mixers = [type(child).__name__ for child in block.children() if MIXER.search(type(child).__name__)]
    name = mixers[0] if mixers else type(block).__name__
    return f"{'linear' if LINEAR.search(name) else 'none'} ({name})"
