"""How likely are the right tokens?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.errors import InterventionError, TextError
from headscope.interventions._objective import IGNORED, _masked, _mean_loss, masking
from headscope.tasks._batches import AT_ONCE, by_length, ids_of, padded, run
from headscope.tasks._task import Batch, Task

METRIC = "log likelihood"
COLUMNS = ("accuracy",)
Score = Callable[[nn.Module, Batch], torch.Tensor]


def next_word(tokenizer: Any, texts: Sequence[str], *, batch: int = AT_ONCE, truncate: bool = False) -> Task:
    """Mean log likelihood, in nats, of each token after the first given those before it: minus the next-word loss.

    Args:
        tokenizer: of a causal language model, loaded with its head.
        texts: one example each, of at least two tokens.
        batch: how many at once.
        truncate: whether texts that are too long are cut.

    Raises:
        TextError: where there is no text, or one is too short or too long.

    Example:
        >>> task = next_word(tokenizer, ["Once upon a time", "The cat sat"])
    """
    rows = ids_of(tokenizer, texts, truncate=truncate, least=2)
    parts = by_length([len(row["input_ids"]) for row in rows], batch)
    batches = []
    for part in parts:
        found = padded([rows[number] for number in part])
        batches.append({**found, "labels": found["input_ids"].masked_fill(found["attention_mask"] == 0, IGNORED)})
    return _task(batches, _shifted, "next word", tuple(number for part in parts for number in part))


def masked_word(
    tokenizer: Any,
    texts: Sequence[str],
    *,
    share: float = 0.15,
    seed: int = 0,
    batch: int = AT_ONCE,
    truncate: bool = False,
) -> Task:
    """Mean log likelihood, in nats, of tokens that are hidden behind the mask token: minus the masked-word loss.

    Args:
        tokenizer: of a masked language model, loaded with its head.
        texts: one example each.
        share: of the tokens that are hidden, special ones left out; at least one in each text.
        seed: of the choice.
        batch: how many at once.
        truncate: whether texts that are too long are cut.

    Raises:
        InterventionError: where the tokenizer has no mask token.
        TextError: where there is no text, one of special tokens only, or one that is too long.
    """
    generator = masking(tokenizer, seed)
    rows = ids_of(tokenizer, texts, truncate=truncate)
    parts = by_length([len(row["input_ids"]) for row in rows], batch)
    batches = [_masked(tokenizer, padded([rows[number] for number in part]), share, generator) for part in parts]
    return _task(batches, _in_place, "masked word", tuple(number for part in parts for number in part))


def translation(
    tokenizer: Any,
    pairs: Sequence[tuple[str, str]],
    *,
    target_tokenizer: Any = None,
    batch: int = AT_ONCE,
    truncate: bool = False,
) -> Task:
    """Mean log likelihood, in nats, of each token of a translation, or summary, given the source and those before it.

    Args:
        tokenizer: of an encoder-decoder, loaded with its head.
        pairs: source and target of each example.
        target_tokenizer: of the target side, where it is another one.
        batch: how many at once.
        truncate: whether texts that are too long are cut.

    Raises:
        TextError: where there is no pair, or a text is too long.
    """
    rows = ids_of(tokenizer, [source for source, _ in pairs], truncate=truncate)
    aims = [list(_target_ids(tokenizer, target_tokenizer, target)) for _, target in pairs]
    parts = by_length([len(row["input_ids"]) + len(aim) for row, aim in zip(rows, aims, strict=True)], batch)
    batches = []
    for part in parts:
        longest = max(len(aims[number]) for number in part)
        labels = [[*aims[number], *[IGNORED] * (longest - len(aims[number]))] for number in part]
        batches.append({**padded([rows[number] for number in part]), "labels": torch.tensor(labels)})
    return _task(batches, _translated, "translation", tuple(number for part in parts for number in part))


def repeats(
    tokens: Sequence[int],
    *,
    period: int = 20,
    times: int = 3,
    count: int = 64,
    start: int | None = None,
    seed: int = 0,
    batch: int = AT_ONCE,
) -> Task:
    """Mean log likelihood, in nats, of random tokens said again: what induction is for.

    Runs of tokens drawn without replacement, each said several times; only the repeats count.

    Source: Olsson et al. 2022, appendix (25 tokens, 4 times); the score is ours.

    Args:
        tokens: ids that are drawn from.
        period: length of a run.
        times: how often it is said.
        count: number of examples.
        start: id of a token that stands in front, if any.
        seed: of the draw.
        batch: how many at once.

    Raises:
        TextError: where there are fewer tokens than a run needs, or nothing is said again.
    """
    if period > len(tokens) or times < 2 or count < 1:
        raise TextError(
            f"{count} runs of {period} of {len(tokens)} tokens, said {times} times; wanted are as many tokens as a run "
            "has, said twice at least"
        )
    rng = np.random.default_rng(seed)
    runs = np.stack([np.tile(rng.choice(tokens, period, replace=False), times) for _ in range(count)])
    front = np.full((count, 0 if start is None else 1), 0 if start is None else start)
    ids = torch.from_numpy(np.concatenate([front, runs], axis=1)).long()
    labels = ids.clone()
    labels[:, : front.shape[1] + period] = IGNORED
    firsts = range(0, count, batch)
    batches = [
        {
            "input_ids": ids[first : first + batch],
            "attention_mask": torch.ones_like(ids[first : first + batch]),
            "labels": labels[first : first + batch],
        }
        for first in firsts
    ]
    return _task(batches, _shifted, "repeats", None)


def _shifted(model: nn.Module, batch: Batch) -> torch.Tensor:
    return _likely(run(model, batch, without=("labels",)).logits[:, :-1], batch["labels"][:, 1:])


def _in_place(model: nn.Module, batch: Batch) -> torch.Tensor:
    return _likely(run(model, batch, without=("labels",)).logits, batch["labels"])


def _translated(model: nn.Module, batch: Batch) -> torch.Tensor:
    labels = batch["labels"]
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        raise InterventionError(f"{type(model).__name__} has no decoder_start_token_id; set it in its configuration")
    fed = labels.roll(1, dims=1).masked_fill(labels.roll(1, dims=1) == IGNORED, 0)
    fed[:, 0] = start
    found = run(model, {**batch, "decoder_input_ids": fed}, without=("labels",))
    return _likely(found.logits, labels)


def _likely(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean log likelihood and share of right tokens of each example, over those that are labelled."""
    there = labels != IGNORED
    right = ((logits.argmax(-1) == labels) & there).sum(1) / there.sum(1)
    return torch.stack([-_mean_loss(logits.float(), labels), right], dim=1)


def _target_ids(tokenizer: Any, target_tokenizer: Any, text: str) -> Sequence[int]:
    if target_tokenizer is not None:
        return target_tokenizer(text)["input_ids"]
    return tokenizer(text_target=text)["input_ids"]


def _task(batches: list[dict[str, Any]], score: Score, name: str, order: tuple[int, ...] | None) -> Task:
    totals = {"accuracy": lambda values: float(values[:, 1].mean())}
    return Task(batches, score, name, METRIC, COLUMNS, order, totals=totals)
