"""What a model is known by: name, class, fingerprint of its weights, precision, positions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from headscope.capturing._hub import PACKAGE
from headscope.capturing.device import device_of
from headscope.capturing.options import quantised
from headscope.capturing.walk import parameters_of
from headscope.record import Layer, ModelFacts

LINEAR_WITHIN = 1e-4
ROWS_READ = 16
"""About how many rows of a bias are read to recognise its form."""


_version = cache(version)
"""Read once per process, as that takes as long as a short text does."""


def facts_of(model: Any) -> ModelFacts:
    """The facts about a loaded model that a record keeps."""
    config = getattr(model, "config", None)
    parameter = next(model.parameters(), None)
    device = "" if parameter is None else str(device_of(model))
    dtype = str(getattr(parameter, "dtype", ""))
    if (kind := device.partition(":")[0]) in ("cpu", "cuda") and torch.is_autocast_enabled(kind):
        dtype += f", autocast {torch.get_autocast_dtype(kind)}"
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
        dtype=dtype.replace("torch.", ""),
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
        return "alibi" if all(map(_falls_with_distance, biased)) else "relative"
    # The rotation of queries and keys may not have been seen, but the configuration states it.
    if getattr(getattr(model, "config", None), "rope_parameters", None):
        return "rotary"
    # An embedding named like one of positions, which GPT-2 calls wpe.
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and ("pos" in name or name.endswith("wpe")):
            return "absolute"
    return ""


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


SAMPLE = 1024
"""Numbers of each weight that are looked at one by one, which shows the order of its rows."""
SHOWN = 16
"""Hexadecimal digits that records keep: of a million models two would share them once in 40
million.
"""

_known: WeakKeyDictionary[nn.Module, tuple[list, str]] = WeakKeyDictionary()
_made_up: WeakKeyDictionary[nn.Module, frozenset[str]] = WeakKeyDictionary()
"""Weights that the files of a model lack, and that nothing reads: other ones at each load."""


def display_name(model: Any) -> str:
    """Hub name of a model, or the last part of its folder; never a path of this machine."""
    return name_in(getattr(model, "config", None)) or type(model).__name__


def name_in(config: Any) -> str:
    """The name by which the model of a configuration was loaded, as `display_name` has it; empty
    where it was loaded by none.
    """
    name = str(getattr(config, "_name_or_path", "") or "")
    if not name:
        return ""
    path = Path(name)
    # The demo model lies in the folder of a package, whose name tells a reader nothing.
    if PACKAGE in path.parts:
        return "all-MiniLM-L6-v2"
    return path.name if path.is_dir() or path.is_absolute() else str(path)


def leave_out(model: nn.Module, names: Iterable[str]) -> None:
    """Leave weights out of what distinguishes a model: they are random, and nothing reads them."""
    _made_up[model] = frozenset(names)


def weights_name(model: nn.Module, *, anew: bool = False) -> str:
    """A short name of the weights of a model, for records: the same for the same weights, and else
    another one.

    Buffers are left out, since some change from text to text, such as frequencies of rotary
    positions. Worked out once for a model, and again where its weights were changed in place.

    Args:
        model: any.
        anew: whether to work it out in any case: torch counts no changes through ``.data``.
    """
    # Hashing reads every weight; this shows in less time whether any changed since the last time.
    # Torch does not count the changes of weights of inference mode.
    held = parameters_of(model)
    state = [(id(each), 0 if each.is_inference() else each._version) for each in held]
    known = _known.get(model)
    if anew or known is None or known[0] != state:
        known = _known[model] = (state, _digest(model, model.named_parameters())[:SHOWN])
    return known[1]


def _digest(model: nn.Module, named: Iterable[tuple[str, torch.Tensor]]) -> str:
    digest = hashlib.sha256(type(model).__qualname__.encode())
    made_up = _made_up.get(model, ())
    for name, tensor in named:
        if name in made_up:
            continue
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        if tensor.is_meta:
            # Offloaded: its numbers are elsewhere until its module runs.
            continue
        whole = tensor.detach()
        if type(whole) is torch.Tensor and whole.numel():
            # Exclusive or of the bits of each column: every number counts, in any order of sums.
            rows = whole.cpu().reshape(len(whole) if whole.ndim > 1 else 1, -1).contiguous()
            digest.update(np.bitwise_xor.reduce(rows.view(torch.uint8).numpy(), axis=0).tobytes())
        some = whole.reshape(-1)[:: max(1, whole.numel() // SAMPLE)]
        digest.update(some.double().cpu().numpy().tobytes())
    return digest.hexdigest()
