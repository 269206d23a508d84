"""Is the right sentence the more likely one of two that differ in little?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import nn
from torch.nn import functional

from headscope.capturing.fitness import MASKED, NEXT, logits_of
from headscope.tasks._batches import (
    ReadingOptions,
    encoded_pair,
    read_examples,
    run,
)
from headscope.tasks._task import Batch, Task, mean_of_second

TOTALS = {"mean difference (nats)": mean_of_second}
"""Numbers of all pairs."""


def minimal_pairs(
    tokenizer: Any,
    pairs: Sequence[Any],
    *,
    masked: bool | None = None,
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Pairs of a good and a bad sentence; the score is 1 where the good one is more likely, a tie
    counting half.

    A causal model says how likely a sentence is by the sum of its tokens' log likelihoods; a masked
    one by the sum of each token's when it alone is hidden (pseudo-log-likelihood, one run for each
    token).

    Source: Warstadt et al. 2020 (BLiMP, full-sentence accuracy); Salazar et al. 2020 for masked
    models.

    Args:
        tokenizer: of a language model, loaded with its head.
        pairs: the good sentence first.
        masked: whether the model predicts hidden tokens; by default where the tokenizer has a mask
            token.
        **reading: see `ReadingOptions`.

    Raises:
        TextError: where no pair can be read, or most tokens are unknown.

    Example:
        >>> task = minimal_pairs(tokenizer, [("The cats sleep.", "The cats sleeps.")])
    """
    if masked is None:
        masked = tokenizer.mask_token_id is not None
    # A causal model guesses nothing before the first token, so a sentence needs a second one.
    least = 1 if masked else 2
    read = read_examples(
        tokenizer, pairs, lambda pair, encode: encoded_pair(encode, pair, least=least), reading
    )
    batches = read.padded()
    score, asks = _apart_causal, NEXT
    if masked:
        batches = [_each_hidden(one, tokenizer) for one in batches]
        score, asks = _apart_masked, MASKED
    task = Task(
        batches,
        score,
        "minimal pairs",
        "accuracy",
        ("difference",),
        read.order,
        totals=TOTALS,
        asks=asks,
    )
    return replace(task, left_out=read.left_out)


def _apart_causal(model: nn.Module, batch: Batch) -> torch.Tensor:
    logits = logits_of(run(model, batch), model, NEXT)[:, :-1].float()
    ids = batch["input_ids"][:, 1:]
    losses = functional.cross_entropy(logits.transpose(1, 2), ids, reduction="none")
    return _scored(-(losses * batch["attention_mask"][:, 1:]).sum(1))


def _apart_masked(model: nn.Module, batch: Batch) -> torch.Tensor:
    only = ("row", "place", "right", "sentences")
    logits = logits_of(run(model, batch, without=only), model, MASKED).float()
    steps = torch.arange(len(logits), device=logits.device)
    likely = logits[steps, batch["place"]].log_softmax(-1)[steps, batch["right"]]
    # index_add and not sums[row] += likely, which would keep one token of each sentence.
    sums = torch.zeros(batch["sentences"], dtype=likely.dtype, device=likely.device)
    return _scored(sums.index_add(0, batch["row"], likely))


def _scored(likely: torch.Tensor) -> torch.Tensor:
    good, bad = likely.chunk(2)
    return torch.stack([(good > bad).to(good) + 0.5 * (good == bad).to(good), good - bad], dim=1)


def _each_hidden(batch: dict[str, torch.Tensor], tokenizer: Any) -> dict[str, Any]:
    """A row for each token that is not special, which alone is hidden in it."""
    ids = batch["input_ids"]
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    row, position = ((batch["attention_mask"] == 1) & ~special).nonzero(as_tuple=True)
    hidden: dict[str, Any] = {name: tensor[row] for name, tensor in batch.items()}
    hidden["input_ids"] = hidden["input_ids"].clone()
    hidden["input_ids"][torch.arange(len(row)), position] = tokenizer.mask_token_id
    return {
        **hidden,
        "row": row,
        "place": position,
        "right": ids[row, position],
        "sentences": len(ids),
    }
