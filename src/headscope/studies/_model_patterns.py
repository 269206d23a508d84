"""Patterns that are made of a loaded model: of its guesses, and of its embeddings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import CaptureError
from headscope.patterns import (
    MissingFunction,
    Pattern,
    named_related,
    predictive_pattern,
    related_patterns,
)
from headscope.studies.shared._corpus_model import RunModel


def patterns_of_model(
    model: Any,
    tokenizer: Any,
    *,
    predictive: bool = False,
    related: bool = False,
    truncate: bool = False,
) -> tuple[Pattern, ...]:
    """The patterns that were chosen in addition to those of the library.

    Args:
        model: loaded; with a masked-word head for ``predictive``.
        tokenizer: its tokenizer.
        predictive: words that a word can be predicted from; see `predictive_pattern`.
        related: words of similar meaning; see `related_patterns`.
        truncate: whether texts are cut to what the model reads.

    Raises:
        CaptureError: where the model has no masked-word head, or no input embeddings.
    """
    from headscope.capturing import Masking

    patterns: tuple[Pattern, ...] = ()
    if predictive:
        patterns += (predictive_pattern(Masking(model, tokenizer, truncate=truncate)),)
    if related:
        patterns += related_patterns(input_embeddings(model))
    return patterns


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


def patterns_without_model(
    *, predictive: bool = False, related: bool = False
) -> tuple[Pattern, ...]:
    """The same patterns by name, source and threshold, to judge scores that others measured."""
    patterns: tuple[Pattern, ...] = ()
    if predictive:
        patterns += (predictive_pattern(MissingFunction("predictive")),)
    if related:
        patterns += named_related(MissingFunction("related"))
    return patterns


# One alone: it holds the model whose guesses it reads, and what is known of words so far.
@lru_cache(maxsize=1)
def patterns_in_worker(
    model: RunModel, *, predictive: bool, related: bool, truncate: bool
) -> tuple[Pattern, ...]:
    """`patterns_of_model` of a model that a worker loads, made once."""
    if not predictive and not related:
        return ()
    return patterns_of_model(
        *model.load(), predictive=predictive, related=related, truncate=truncate
    )
