"""Is the right sentence the more likely one of two that differ in little?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from headscope.tasks._batches import AT_ONCE, by_length, ids_of, padded, run
from headscope.tasks._task import Batch, Task


def minimal_pairs(
    tokenizer: Any,
    pairs: Sequence[tuple[str, str]],
    *,
    masked: bool | None = None,
    batch: int = AT_ONCE,
    truncate: bool = False,
) -> Task:
    """Pairs of a good and a bad sentence; the score is 1 where the good one is more likely, a tie counting half.

    A causal model says how likely a sentence is by the sum of its tokens' log likelihoods; a masked one by the sum of
    each token's when it alone is hidden (pseudo-log-likelihood, one run for each token).

    Source: Warstadt et al. 2020 (BLiMP, full-sentence accuracy); Salazar et al. 2020 for masked models.

    Args:
        tokenizer: of a language model, loaded with its head.
        pairs: the good sentence first.
        masked: whether the model guesses hidden tokens; by default where the tokenizer has a mask token.
        batch: how many pairs at once.
        truncate: whether texts that are too long are cut.

    Raises:
        TextError: where there is no pair, or a text is too long or too short.

    Example:
        >>> task = minimal_pairs(tokenizer, [("The cats sleep.", "The cats sleeps.")])
    """
    masked = tokenizer.mask_token_id is not None if masked is None else masked
    least = 1 if masked else 2
    sides = [ids_of(tokenizer, [pair[side] for pair in pairs], truncate=truncate, least=least) for side in (0, 1)]
    lengths = [max(len(one["input_ids"]), len(two["input_ids"])) for one, two in zip(*sides, strict=True)]
    parts = by_length(lengths, batch)
    batches = [padded([side[number] for side in sides for number in part]) for part in parts]
    if masked:
        batches = [_each_hidden(one, tokenizer) for one in batches]
    score = _apart_masked if masked else _apart_causal
    totals = {"mean difference (nats)": lambda values: float(values[:, 1].mean())}
    order = tuple(number for part in parts for number in part)
    return Task(batches, score, "minimal pairs", "accuracy", ("difference",), order, totals=totals)


def _apart_causal(model: nn.Module, batch: Batch) -> torch.Tensor:
    logits, ids = run(model, batch).logits[:, :-1].float(), batch["input_ids"][:, 1:]
    losses = functional.cross_entropy(logits.transpose(1, 2), ids, reduction="none")
    return _scored(-(losses * batch["attention_mask"][:, 1:]).sum(1))


def _apart_masked(model: nn.Module, batch: Batch) -> torch.Tensor:
    only = ("row", "place", "right", "sentences")
    logits = run(model, batch, without=only).logits.float()
    steps = torch.arange(len(logits), device=logits.device)
    likely = logits[steps, batch["place"]].log_softmax(-1)[steps, batch["right"]]
    sums = torch.zeros(batch["sentences"], dtype=likely.dtype, device=likely.device)
    return _scored(sums.index_add(0, batch["row"], likely))


def _scored(likely: torch.Tensor) -> torch.Tensor:
    good, bad = likely.chunk(2)
    return torch.stack([(good > bad).to(good) + 0.5 * (good == bad).to(good), good - bad], dim=1)


def _each_hidden(batch: dict[str, torch.Tensor], tokenizer: Any) -> dict[str, Any]:
    """A row for each token that is not special, which alone is hidden in it."""
    ids = batch["input_ids"]
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    row, place = ((batch["attention_mask"] == 1) & ~special).nonzero(as_tuple=True)
    found: dict[str, Any] = {name: tensor[row] for name, tensor in batch.items()}
    found["input_ids"] = found["input_ids"].clone()
    found["input_ids"][torch.arange(len(row)), place] = tokenizer.mask_token_id
    return {**found, "row": row, "place": place, "right": ids[row, place], "sentences": len(ids)}
