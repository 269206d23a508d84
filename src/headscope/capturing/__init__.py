"""Model to record; with interventions the only place that knows torch.

Loaded on first use, so that what is wrong with a text or a name is told (`_given`) before torch is
imported.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

for _package in ("torch", "transformers"):
    if find_spec(_package) is None:
        raise ModuleNotFoundError(
            f"headscope needs {_package} to run models, and it is not installed: pip install "
            "'headscope[capture]'",
            name=_package,
        )

if TYPE_CHECKING:
    from headscope.capturing._any_model import watch
    from headscope.capturing._budget import budget
    from headscope.capturing._embeddings import input_embeddings, without_embedding
    from headscope.capturing._masking import Masking, masking_drops
    from headscope.capturing._random_twin import random_twin
    from headscope.capturing.entry import capture, capture_encoded, capture_ids
    from headscope.capturing.facts import facts_of
    from headscope.capturing.fitness import MOST_UNKNOWN, check_known
    from headscope.capturing.generating._generate import generate, generate_many
    from headscope.capturing.inputs._given import check_name, check_revision, check_text, rows_of
    from headscope.capturing.inputs._processor import parse_image
    from headscope.capturing.inputs.inputs import positions_of
    from headscope.capturing.keep import parse_keep
    from headscope.capturing.loading._demo import demo_model
    from headscope.capturing.loading._hub import reached
    from headscope.capturing.loading.load import (
        load_bare_model,
        load_classifier,
        load_for,
        load_masked_model,
        load_model,
        load_tokenizer,
        loader_of,
    )
    from headscope.capturing.loading.options import LOADING, LoadOptions, check_not_loaded
    from headscope.capturing.many import capture_many
    from headscope.capturing.media._sound import parse_sound
    from headscope.capturing.options import CaptureOptions

_PLACES = {
    "_any_model": ("watch",),
    "_budget": ("budget",),
    "entry": ("capture", "capture_encoded", "capture_ids"),
    "loading._demo": ("demo_model",),
    "_embeddings": ("input_embeddings", "without_embedding"),
    "facts": ("facts_of",),
    "fitness": ("MOST_UNKNOWN", "check_known"),
    "generating._generate": ("generate", "generate_many"),
    "inputs._given": ("check_name", "check_revision", "check_text", "rows_of"),
    "inputs.inputs": ("positions_of",),
    "keep": ("parse_keep",),
    "loading._hub": ("reached",),
    "loading.load": (
        "load_bare_model",
        "load_classifier",
        "load_for",
        "load_masked_model",
        "load_model",
        "load_tokenizer",
        "loader_of",
    ),
    "loading.options": ("LOADING", "LoadOptions", "check_not_loaded"),
    "many": ("capture_many",),
    "_masking": ("Masking", "masking_drops"),
    "options": ("CaptureOptions",),
    "inputs._processor": ("parse_image",),
    "_random_twin": ("random_twin",),
    "media._sound": ("parse_sound",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "LOADING",
    "MOST_UNKNOWN",
    "CaptureOptions",
    "LoadOptions",
    "Masking",
    "budget",
    "capture",
    "capture_encoded",
    "capture_ids",
    "capture_many",
    "check_known",
    "check_name",
    "check_not_loaded",
    "check_revision",
    "check_text",
    "demo_model",
    "facts_of",
    "generate",
    "generate_many",
    "input_embeddings",
    "load_bare_model",
    "load_classifier",
    "load_for",
    "load_masked_model",
    "load_model",
    "load_tokenizer",
    "loader_of",
    "masking_drops",
    "parse_image",
    "parse_keep",
    "parse_sound",
    "positions_of",
    "random_twin",
    "reached",
    "rows_of",
    "watch",
    "without_embedding",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"headscope.capturing has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"headscope.capturing.{_PLACE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
