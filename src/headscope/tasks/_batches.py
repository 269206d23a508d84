"""Texts as padded batches, those of like length together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import torch
from torch import nn

from headscope.errors import TextError

AT_ONCE = 16
"""Examples in a batch: on one core all-MiniLM-L6-v2 takes 1.1 to 1.9 times as long with 32 to 256."""
NO_LIMIT = 10**6
"""Tokenizers without a limit say so by a huge number."""

Text = str | tuple[str, str]


def ids_of(tokenizer: Any, texts: Sequence[Text], *, truncate: bool = False, least: int = 1) -> list[dict[str, Any]]:
    """What the tokenizer makes of each text.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        truncate: whether texts that are too long are cut.
        least: how many tokens a text must have.

    Raises:
        TextError: where there is no text, or one is too long or too short.
    """
    if not texts:
        raise TextError("No text was given; give at least one")
    limit = getattr(tokenizer, "model_max_length", None) or NO_LIMIT
    found = []
    for number, text in enumerate(texts):
        parts = text if isinstance(text, tuple) else (text,)
        cut = truncate and limit < NO_LIMIT
        one = tokenizer(*parts, truncation=True, max_length=limit) if cut else tokenizer(*parts, verbose=False)
        count = len(one["input_ids"])
        if count > limit:
            raise TextError(f"Text {number} has {count} tokens, and the model takes {limit}; cut it, or truncate=True")
        if count < least:
            raise TextError(f"Text {number} has {count} tokens; wanted are {least} at least: leave it out")
        found.append({name: list(one[name]) for name in one if name in tokenizer.model_input_names})
    return found


def by_length(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Numbers of the examples of each batch, from the shortest to the longest.

    Raises:
        TextError: where a batch would hold nothing.
    """
    if batch < 1:
        raise TextError(f"batch is {batch}; a batch holds at least one example")
    order = sorted(range(len(lengths)), key=lambda number: (lengths[number], number))
    return [order[first : first + batch] for first in range(0, len(order), batch)]


def padded(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Rows of one batch, padded with zeros on the right, where no model counts positions from; with their mask."""
    longest = max(len(row["input_ids"]) for row in rows)
    found = {
        name: torch.tensor([[*row[name], *[0] * (longest - len(row[name]))] for row in rows])
        for name in rows[0]
        if name != "attention_mask"
    }
    counts = torch.tensor([len(row["input_ids"]) for row in rows])
    return {**found, "attention_mask": (torch.arange(longest) < counts[:, None]).long()}


def run(model: nn.Module, batch: Mapping[str, Any], *, without: Sequence[str] = ()) -> Any:
    """What the model gives on a batch, without what the score alone reads, and without a cache."""
    arguments = {name: value for name, value in batch.items() if name not in without}
    if hasattr(getattr(model, "config", None), "use_cache"):
        arguments["use_cache"] = False
    return model(**arguments)


def check_counts(texts: Sized, beside: Sized, what: str) -> None:
    """Raise where there is not one for each text.

    Raises:
        TextError: with both numbers.
    """
    if len(texts) != len(beside):
        raise TextError(f"{len(texts)} texts and {len(beside)} {what} were given; give one for each text")
