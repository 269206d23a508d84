"""What a loaded model is known by: its name, and the fingerprint of its weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headscope.capturing._hub import PACKAGE
from headscope.capturing.walk import modules_of

SAMPLE = 1024
"""Numbers of each weight that are looked at: every one of a large model would take minutes."""
SHOWN = 16
"""Hexadecimal digits that records keep: of a million models two would share them once in 40
million.
"""

_known: WeakKeyDictionary[nn.Module, tuple[tuple, str]] = WeakKeyDictionary()
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


def fingerprint_of(model: nn.Module) -> str:
    """Tells a model from others: by class, names, shapes and dtypes of its weights, and some
    numbers of each.
    """
    return _digest(model, [*model.named_parameters(), *model.named_buffers()])


def weights_name(model: nn.Module) -> str:
    """A short name of the weights of a model, for records: the same for the same weights, and else
    another one.

    Buffers are left out, since some change from text to text, such as frequencies of rotary
    positions. Worked out once for a model, and again where its weights were changed in place.
    """
    # Hashing reads every weight; this shows in less time whether any changed since the last time.
    weights = [
        weight
        for module in modules_of(model)
        for weight in module._parameters.values()
        if weight is not None
    ]
    state = tuple(map(id, weights)), _changes(weights)
    known = _known.get(model)
    if known is None or known[0] != state:
        known = (state, _digest(model, model.named_parameters())[:SHOWN])
        _known[model] = known
    return known[1]


def _changes(weights: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """How often each weight was changed in place, as torch counts it; not at all for those of
    inference mode.
    """
    try:
        return tuple([weight._version for weight in weights])
    except RuntimeError:
        return tuple([0 if weight.is_inference() else weight._version for weight in weights])


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
        # Steps of equal length reach every part of the weight, where its beginning would not do.
        flat = tensor.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // SAMPLE)].double().cpu().numpy()
        digest.update(some.tobytes())
    return digest.hexdigest()
