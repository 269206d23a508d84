"""Facts about a model besides its attention: name, class, precision, kinds of layers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.loading.fingerprint import display_name, weights_name
from headscope.capturing.options import quantised
from headscope.record import Layer, ModelFacts, held

LINEAR_WITHIN = 1e-4
ROWS_READ = 16
"""About how many rows of a bias are read to recognise its form."""


_version = cache(version)
"""Read once per process, as that takes as long as a short text does."""


def facts_of(model: Any) -> ModelFacts:
    """The facts about a loaded model that a record keeps."""
    config = getattr(model, "config", None)
    parameter = next(model.parameters(), None)
    dtype = device = ""
    if parameter is not None:
        dtype, device = str(parameter.dtype).removeprefix("torch."), str(device_of(model))
    # Of a model that device_map spread, all places of its weights.
    spread = (getattr(model, "hf_device_map", None) or {}).values()
    devices = {f"cuda:{each}" if isinstance(each, int) else str(each): None for each in spread}
    if len(devices) > 1:
        device = " and ".join(devices)
    return ModelFacts(
        name=display_name(model),
        revision=getattr(config, "_commit_hash", None),
        weights=weights_name(model),
        model_type=getattr(config, "model_type", ""),
        class_name=type(model).__name__,
        implementation=getattr(config, "_attn_implementation", None) or "",
        dtype=dtype,
        device=device,
        quantization=quantised(config),
        versions={name: _version(name) for name in ("headscope", "torch", "transformers")},
    )


def position_kind(model: nn.Module, layers: Iterable[Layer]) -> str:
    """How a model encodes positions: ``rotary``, ``alibi``, ``relative``, ``absolute``, or empty if
    not known.
    """
    layers = list(layers)
    if any(layer.rotary is not None for layer in layers):
        return "rotary"
    biased = [layer for layer in layers if layer.has("bias")]
    if biased:
        # Layers mostly share their bias and mask, which need be looked at once.
        several = {}
        for layer in biased:
            bias = held(layer, "bias")
            known = (
                bias.__array_interface__["data"][0] if isinstance(bias, np.ndarray) else id(bias)
            )
            several[known, bias.shape, id(layer.visible)] = layer
        return "alibi" if all(map(_falls_with_distance, several.values())) else "relative"
    # The rotation of queries and keys may not have been seen, but the configuration states it.
    if getattr(getattr(model, "config", None), "rope_parameters", None):
        return "rotary"
    return "absolute" if _has_positions(model) else ""


def _has_positions(model: nn.Module) -> bool:
    """Whether a model has an embedding named like one of positions; GPT-2 calls it ``wpe``."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and ("pos" in name or name.endswith("wpe")):
            return True
    return False


def _falls_with_distance(layer: Layer) -> bool:
    """Whether rows of the bias are straight lines over the keys, with the same slope for all
    queries of a head: ALiBi (Press et al.).
    """
    queries = layer.size[0]
    step = max(1, queries // ROWS_READ)
    # A few rows are enough if the last is among them: under a causal mask only it sees every key.
    rows = slice((queries - 1) % step, None, step)
    bias = np.asarray(layer.part("bias", slice(None), rows), np.float64)
    # Any two points lie on a straight line, so two keys show nothing.
    if bias.shape[2] < 3:
        return False
    seen = np.asarray(layer.visible)[rows]
    steps, both = np.diff(bias, axis=2), seen[:, 1:] & seen[:, :-1]
    if not both.any():
        return False
    of_heads = steps[:, both]
    is_line = np.ptp(of_heads, axis=1) <= LINEAR_WITHIN
    is_slope = np.abs(of_heads).max(axis=1) > LINEAR_WITHIN
    return bool((is_line & is_slope).all())
