"""The models and tokenizers that BertViz brought along for its neuron view: here, those of
transformers itself.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import transformers

    if name.startswith("_") or not hasattr(transformers, name):
        raise AttributeError(f"transformers has no {name!r}")
    return getattr(transformers, name)
