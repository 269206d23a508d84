"""Runs of repeated random tokens, on which induction is defined."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from headscope.errors import HeadscopeError
from headscope.measures import repeated_tokens
from headscope.patterns import PATTERNS, Pattern, Tally, TokenRuns
from headscope.record import Record

NAME = "induction"
RUNS, LENGTH, REPEATS, LEAST_LENGTH = 20, 25, 4, 8
"""Olsson et al. take 10 runs of 25 tokens, 4 times; ours are 20: the least p of 10 gives no label
once corrected.
"""
TAIL = 0.1
"""Share of the vocabulary left out at either end, where its most and its least common tokens are
numbered.
"""


def induction_battery(
    model: Any, tokenizer: Any, patterns: tuple[Pattern, ...], stack: str | None
) -> TokenRuns | None:
    """How far heads look at what followed the same token before, on random tokens that are
    repeated.

    On prose, words that come back are mostly of few kinds, and a head that heeds parts of speech
    looks where an induction head would; random tokens have no parts of speech.

    Source: Olsson et al. 2022, appendix. They leave the most and the least common tokens out; ours
    are distinguished by their number in the vocabulary, which tokenizers give roughly by how common
    they are.

    Args:
        model: loaded.
        tokenizer: of the model.
        patterns: what is looked for.
        stack: which stack of the records; by default the first.

    Returns:
        What was measured on the runs; None where induction is not looked for, or the model does not
        read tokens of a vocabulary, or has room for too few.
    """
    wanted = tuple(pattern for pattern in patterns if pattern in PATTERNS and pattern.name == NAME)
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if not wanted or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return None
    tally, cells, values = Tally(wanted, stack=stack), [], []
    try:
        for record in _records(model, tokenizer):
            own, measured = tally.measured(record)
            cells = list(own.cells)
            values.append(measured[0])
    except HeadscopeError:
        # A model that wants a picture with its text, or the like; its texts decide, as they do
        # for records.
        return None
    return TokenRuns(wanted, cells, np.stack(values)) if values else None


def _records(model: Any, tokenizer: Any) -> Iterator[Record]:
    import torch

    from headscope.capturing import capture_encoded
    from headscope.capturing.walk import reads_target

    before, after = _around(tokenizer)
    candidates = _candidates(model, tokenizer)
    length, repeats = _sizes(model, len(before) + len(after), len(candidates))
    if length < LEAST_LENGTH:
        return
    for run in range(RUNS):
        middle = repeated_tokens(
            np.random.default_rng(run), candidates, length=length, repeats=repeats
        )
        ids = torch.tensor([[*before, *middle.tolist(), *after]])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if reads_target(model):
            inputs["decoder_input_ids"] = ids
        yield from capture_encoded(model, tokenizer, inputs, keep="weights")


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text."""
    ids, special = tokenizer("a")["input_ids"], set(tokenizer.all_special_ids)
    before = list(takewhile(lambda number: number in special, ids))
    after = list(takewhile(lambda number: number in special, reversed(ids[len(before) :])))
    return before, after[::-1]


def _candidates(model: Any, tokenizer: Any) -> list[int]:
    """Vocabulary numbers to draw from: tokens that begin a word."""
    size = len(tokenizer)
    rows = size
    # Tokenizers may have more tokens than the model has embeddings, and the other way round.
    if hasattr(model, "get_input_embeddings"):
        rows = model.get_input_embeddings().num_embeddings
    special = set(tokenizer.all_special_ids)
    numbers = [number for number in range(min(size, rows)) if number not in special]
    cut = int(TAIL * len(numbers))
    numbers = numbers[cut : len(numbers) - cut]
    pieces = tokenizer.convert_ids_to_tokens(numbers)
    candidates = []
    for number, piece in zip(numbers, pieces, strict=True):
        # Pieces that continue a word would make one word of the whole run, which cannot be
        # shuffled.
        if isinstance(piece, str) and not piece.startswith("##"):
            candidates.append(number)
    return candidates


def _sizes(model: Any, around: int, candidates: int) -> tuple[int, int]:
    """How many tokens a run has and how often it occurs, as far as the model has room for them."""
    from headscope.capturing import position_limit

    limit = position_limit(model)
    room = LENGTH * REPEATS if limit is None else limit - around
    length = min(LENGTH, candidates, room // 2)
    return length, min(REPEATS, room // max(length, 1))
