"""The models and tokenizers of transformers, in place of the copies that BertViz has for its neuron
view.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import transformers

    if name.startswith("_") or not hasattr(transformers, name):
        raise AttributeError(f"transformers has no {name!r}")
    return getattr(transformers, name)
