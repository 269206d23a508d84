"""What a model tells about itself, beside its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.loading.fingerprint import weights_name
from headscope.capturing.loading.load import display_name
from headscope.capturing.loading.options import quantised
from headscope.capturing.watching._routers import block_of
from headscope.record import Layer, ModelFacts

MIXER = re.compile(
    r"mamba|delta|linear.?attention|retention|recurrent|rwkv|conv|ssm|mixer|attention",
    re.IGNORECASE,
)
LINEAR = re.compile(r"linear|delta|retention", re.IGNORECASE)
LINEAR_WITHIN = 1e-4
ROWS_READ = 16
"""Of a bias, to tell its form."""


def facts_of(model: Any) -> ModelFacts:
    """What a loaded model tells about itself."""
    config = getattr(model, "config", None)
    parameter = next(model.parameters(), None)
    return ModelFacts(
        name=display_name(model),
        revision=getattr(config, "_commit_hash", None),
        weights=weights_name(model),
        model_type=getattr(config, "model_type", ""),
        class_name=type(model).__name__,
        implementation=getattr(config, "_attn_implementation", None) or "",
        dtype="" if parameter is None else str(parameter.dtype).removeprefix("torch."),
        device="" if parameter is None else _devices(model),
        quantization=quantised(config),
        versions=dict(_versions()),
    )


@cache
def _versions() -> dict[str, str]:
    """Read once a process: it takes as long as the attention of a short text."""
    return {name: version(name) for name in ("headscope", "torch", "transformers")}


def _devices(model: nn.Module) -> str:
    """Where a model computes: of one spread by ``device_map``, its accelerators and what waits
    elsewhere.
    """
    spread = getattr(model, "hf_device_map", None) or {}
    places = dict.fromkeys(_called(place) for place in spread.values())
    return " and ".join(places) if len(places) > 1 else str(device_of(model))


def _called(place: Any) -> str:
    return f"cuda:{place}" if isinstance(place, int) else str(place)


def others_of(
    model: nn.Module, path: str, numbers: Iterable[int], *, seen: Sequence[str], cross: bool = False
) -> dict[int, str]:
    """The blocks of a list of blocks whose softmax attention was not seen, and what they are.

    A block that has an attention module as the others have, or is of their class where they compute
    attention themselves, is ``unseen``; any other is called by what it does instead.

    Args:
        model: the whole.
        path: of the list, such as ``"model.layers"``.
        numbers: of the blocks whose attention was seen.
        seen: names of the modules that computed it.
        cross: whether it is cross-attention, which a block may well have none of.
    """
    try:
        blocks = model.get_submodule(path)
    except AttributeError:
        return {}
    numbers = set(numbers)
    if not isinstance(blocks, nn.ModuleList) or not numbers <= set(range(len(blocks))):
        return {}
    kinds = dict.fromkeys(
        kind for name in seen if (kind := _kind_of(model, path, name)) is not None
    )
    others = {}
    for number, block in enumerate(blocks):
        unseen = "" if number in numbers else _unseen(block, kinds)
        if unseen or not (number in numbers or cross):
            others[number] = unseen or _described(block)
    return others


def _kind_of(model: nn.Module, path: str, name: str) -> tuple[str, type] | None:
    """Where in its block a module is, and its class; None for modules of other lists, or in no
    block.
    """
    block = block_of(name)
    if block is None or block[0] != path:
        return None
    inside = name.removeprefix(".".join(filter(None, (path, str(block[1]))))).removeprefix(".")
    return inside, type(model.get_submodule(name))


def _unseen(block: nn.Module, kinds: Iterable[tuple[str, type]]) -> str:
    """What a block has where others were seen to compute attention; empty where it is of another
    kind.
    """
    for inside, kind in kinds:
        try:
            own = block.get_submodule(inside)
        except AttributeError:
            continue
        if type(own) is kind:
            return f"unseen ({kind.__name__})"
    return ""


def positions_of(model: nn.Module, layers: Iterable[Layer]) -> str:
    """How a model tells positions apart: ``rotary``, ``alibi``, ``relative`` or ``absolute``; empty
    if not known.
    """
    layers = list(layers)
    if any(layer.rotary is not None for layer in layers):
        return "rotary"
    biases = [layer.bias for layer in layers if layer.bias is not None]
    if biases:
        return (
            "alibi"
            if all(_falls_with_distance(layer) for layer in layers if layer.bias is not None)
            else "relative"
        )
    if getattr(getattr(model, "config", None), "rope_parameters", None):
        return "rotary"
    named = (name for name, module in model.named_modules() if isinstance(module, nn.Embedding))
    return "absolute" if any("pos" in name or name.endswith("wpe") for name in named) else ""


def _falls_with_distance(layer: Layer) -> bool:
    """Whether rows of the bias are straight lines over the keys, the same slope for each query
    (Press et al.).
    """
    queries = layer.size[0]
    step = max(1, queries // ROWS_READ)
    rows = slice((queries - 1) % step, None, step)  # a few, the last among them
    bias = np.asarray(layer.part("bias", slice(None), rows), np.float64)
    if bias.shape[2] < 3:
        return False
    seen = np.asarray(layer.visible)[rows]
    steps, both = np.diff(bias, axis=2), seen[:, 1:] & seen[:, :-1]
    if not both.any():
        return False
    return all(
        np.ptp(head[both]) <= LINEAR_WITHIN and np.abs(head[both]).max() > LINEAR_WITHIN
        for head in steps
    )


def _described(block: nn.Module) -> str:
    mixers = [
        type(child).__name__ for child in block.children() if MIXER.search(type(child).__name__)
    ]
    name = mixers[0] if mixers else type(block).__name__
    return f"{'linear' if LINEAR.search(name) else 'none'} ({name})"
