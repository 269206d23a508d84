"""headscope: see what every attention head of a transformer does.

The public names and nothing else. They are loaded on first use, so that ``import headscope`` loads neither torch
nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headscope._version import __version__

if TYPE_CHECKING:
    from headscope.capturing import capture, capture_encoded, capture_many
    from headscope.errors import CaptureError, FileError, HeadscopeError, ModelError, PageError, RecordError, TextError
    from headscope.record import Layer, ModelFacts, Record, Stack, Tokens, from_weights
    from headscope.storage import load, save
    from headscope.views import (
        View,
        head_view,
        matrix_view,
        model_view,
        neuron_view,
        page,
        pair_view,
        text_view,
        view,
    )

_PLACES = {
    "headscope.capturing": ("capture", "capture_encoded", "capture_many"),
    "headscope.errors": (
        "CaptureError",
        "FileError",
        "HeadscopeError",
        "ModelError",
        "PageError",
        "RecordError",
        "TextError",
    ),
    "headscope.record": ("Layer", "ModelFacts", "Record", "Stack", "Tokens", "from_weights"),
    "headscope.storage": ("load", "save"),
    "headscope.views": (
        "View",
        "head_view",
        "matrix_view",
        "model_view",
        "neuron_view",
        "page",
        "pair_view",
        "text_view",
        "view",
    ),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "CaptureError",
    "FileError",
    "HeadscopeError",
    "Layer",
    "ModelError",
    "ModelFacts",
    "PageError",
    "Record",
    "RecordError",
    "Stack",
    "TextError",
    "Tokens",
    "View",
    "__version__",
    "capture",
    "capture_encoded",
    "capture_many",
    "from_weights",
    "head_view",
    "load",
    "matrix_view",
    "model_view",
    "neuron_view",
    "page",
    "pair_view",
    "save",
    "text_view",
    "view",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"headscope has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_PLACE_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
