"""Patterns that are made of a loaded model: of its embeddings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import CaptureError
from headscope.patterns import Pattern, related_patterns
from headscope.studies.shared._corpus_model import RunModel


def input_embeddings(model: Any) -> Float[np.ndarray, "vocabulary feature"]:
    """The input embedding of each token of a model's vocabulary, float32.

    Raises:
        CaptureError: where the model reads no tokens.

    Example:
        >>> vectors = input_embeddings(model)
    """
    from headscope.capturing.device import in_memory
    from headscope.capturing.run import unwrapped

    table = unwrapped(model).get_input_embeddings()
    if getattr(getattr(table, "weight", None), "ndim", 0) != 2:
        raise CaptureError(
            f"{type(unwrapped(model)).__name__} has no table of input embeddings: it reads no "
            "tokens"
        )
    with in_memory(table):
        return table.weight.detach().float().cpu().numpy()


# One alone: it holds the vectors of a vocabulary.
@lru_cache(maxsize=1)
def related_in_worker(model: RunModel) -> tuple[Pattern, ...]:
    """The patterns of related words of a model that a worker loads, made once."""
    return related_patterns(input_embeddings(model.load()[0]))
