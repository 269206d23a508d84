"""How likely are the right tokens, and is the right sentence the more likely one of two?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from headscope.capturing import MOST_UNKNOWN, check_known, parse_text
from headscope.capturing.fitness import MASKED, NEXT, TRANSLATION, logits_of
from headscope.capturing.inputs.tokens import check_tokenizer, tokenized
from headscope.errors import InterventionError, TextError
from headscope.tasks._batches import (
    AT_ONCE,
    Encode,
    ReadingOptions,
    Rows,
    check_pair,
    encoded_pair,
    padded,
    read_examples,
    run,
)
from headscope.tasks._task import Batch, Task, mean_of_second

TOTALS = {"accuracy": mean_of_second}
"""Numbers of all texts."""
LIKELY: Any = {"metric": "log likelihood", "columns": ("accuracy",), "totals": TOTALS}
OF_PAIRS = {"mean difference (nats)": mean_of_second}
"""Numbers of all pairs of sentences."""
IGNORED = -100
"""The label that torch's cross_entropy leaves out by default."""


def next_word(tokenizer: Any, texts: Sequence[Any], **reading: Unpack[ReadingOptions]) -> Task:
    """Mean log likelihood, in nats, of each token after the first given those before it: minus the
    next-word loss.

    Args:
        tokenizer: of a causal language model, loaded with its head.
        texts: one example each, of at least two tokens.
        **reading: see `ReadingOptions`.

    Raises:
        TextError: where no text can be read, or most tokens are unknown.

    Example:
        >>> task = next_word(tokenizer, ["Once upon a time", "The cat sat"])
    """
    read = read_examples(tokenizer, texts, lambda text, encode: (encode(text, least=2),), reading)
    batches = []
    for batch in read.padded():
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORED)
        batches.append({**batch, "labels": labels})
    return read.task(batches, _shifted, NEXT, asks=NEXT, **LIKELY)


def masked_word(
    tokenizer: Any,
    texts: Sequence[Any],
    *,
    share: float = 0.15,
    seed: int = 0,
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Mean log likelihood, in nats, of tokens that are hidden behind the mask token: minus the
    masked-word loss.

    Args:
        tokenizer: of a masked language model, loaded with its head.
        texts: one example each.
        share: of the tokens that are hidden, special ones left out; at least one in each text.
        seed: of the choice.
        **reading: see `ReadingOptions`.

    Raises:
        InterventionError: where the tokenizer has no mask token.
        TextError: where no text can be read, or most tokens are unknown.
    """
    check_tokenizer(tokenizer)
    if tokenizer.mask_token_id is None:
        raise InterventionError(
            f"{type(tokenizer).__name__} has no mask token; use next_word with causal models"
        )
    generator = torch.Generator().manual_seed(seed)
    special = set(tokenizer.all_special_ids)

    def row_of(text: Any, encode: Encode) -> Rows:
        row = encode(text)
        if special.issuperset(row["input_ids"]):
            raise TextError("The text holds nothing but special tokens")
        return (row,)

    read = read_examples(tokenizer, texts, row_of, reading)
    batches = [_masked(tokenizer, batch, share, generator) for batch in read.padded()]
    return read.task(batches, _at_masks, MASKED, asks=MASKED, **LIKELY)


def _masked(
    tokenizer: Any, batch: Batch, share: float, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """A batch with a share of its words masked, and ``labels``: what stood there, `IGNORED`
    everywhere else.
    """
    ids = batch["input_ids"].clone()
    labels = torch.full_like(ids, IGNORED)
    padding = batch["attention_mask"] == 0
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids)) | padding
    for row, (own, hidden) in enumerate(zip(ids, special, strict=True)):
        positions = (~hidden).nonzero()[:, 0]
        count = max(1, round(share * len(positions)))
        chosen = positions[torch.randperm(len(positions), generator=generator)[:count]]
        labels[row, chosen] = own[chosen]
        ids[row, chosen] = tokenizer.mask_token_id
    return {**batch, "input_ids": ids, "labels": labels}


def translation(
    tokenizer: Any,
    pairs: Sequence[Any],
    *,
    target_tokenizer: Any = None,
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Mean log likelihood, in nats, of each token of a translation, or summary, given the source
    and those before it.

    Args:
        tokenizer: of an encoder-decoder, loaded with its head.
        pairs: source and target of each example.
        target_tokenizer: of the target side, where it is another one.
        **reading: see `ReadingOptions`.

    Raises:
        TextError: where no pair can be read, or most tokens are unknown.
    """
    check_tokenizer(tokenizer if target_tokenizer is None else target_tokenizer)
    most = 1.0 if reading.get("allow_unfit", False) else MOST_UNKNOWN

    def rows_of(pair: Any, encode: Encode) -> Rows:
        check_pair(pair)
        source = encode(pair[0])
        target = parse_text(pair[1], "target").texts[0]
        if target_tokenizer is None:
            aim = list(tokenized(tokenizer, text_target=target)["input_ids"])
        else:
            aim = list(tokenized(target_tokenizer, target)["input_ids"])
        check_known(target_tokenizer or tokenizer, aim, "the target", most)
        return source, {"input_ids": aim}

    # Unknown tokens of targets were looked for above, as they may have another tokenizer.
    read = read_examples(tokenizer, pairs, rows_of, reading, sides=1)
    batches = []
    for part in read.parts:
        sources, targets = zip(*map(read.rows.__getitem__, part), strict=True)
        aims = padded(targets)
        labels = aims["input_ids"].masked_fill(aims["attention_mask"] == 0, IGNORED)
        batches.append({**padded(sources), "labels": labels})
    return read.task(batches, _translated, TRANSLATION, asks=TRANSLATION, **LIKELY)


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
    """Mean log likelihood, in nats, of repeated random tokens: what induction is for.

    Runs of tokens drawn without replacement, each repeated several times; only the repeats count.

    Source: Olsson et al. 2022, appendix (25 tokens, 4 times); the score is ours.

    Args:
        tokens: ids that are drawn from.
        period: length of a run.
        times: how often a run occurs.
        count: number of examples.
        start: id of a token that stands in front, if any.
        seed: of the draw.
        batch: how many at once.

    Raises:
        TextError: where there are fewer tokens than a run needs, or nothing is repeated.
    """
    if period > len(tokens) or times < 2 or count < 1:
        raise TextError(
            f"{count} runs of {period} of {len(tokens)} tokens, each {times} times; expected as "
            "many tokens as a run has, at least twice"
        )
    rng = np.random.default_rng(seed)
    front = [] if start is None else [start]
    runs = []
    for _ in range(count):
        runs.append([*front, *np.tile(rng.choice(tokens, period, replace=False), times)])
    ids = torch.from_numpy(np.array(runs)).long()
    labels = ids.clone()
    # The first run is random: nothing before it tells what comes next.
    labels[:, : len(front) + period] = IGNORED
    batches = []
    for own, wanted in zip(ids.split(batch), labels.split(batch), strict=True):
        mask = torch.ones_like(own)
        batches.append({"input_ids": own, "attention_mask": mask, "labels": wanted})
    return Task(batches, _shifted, "repeats", asks=NEXT, **LIKELY)


def _shifted(model: nn.Module, batch: Batch) -> torch.Tensor:
    # The logits at a token are about the next one.
    logits = logits_of(run(model, batch, without=("labels",)), model, NEXT)
    return _likely(logits[:, :-1], batch["labels"][:, 1:])


def _at_masks(model: nn.Module, batch: Batch) -> torch.Tensor:
    logits = logits_of(run(model, batch, without=("labels",)), model, MASKED)
    return _likely(logits, batch["labels"])


def _translated(model: nn.Module, batch: Batch) -> torch.Tensor:
    labels = batch["labels"]
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        raise InterventionError(
            f"{type(model).__name__} has no decoder_start_token_id; set it in its configuration"
        )
    # Teacher forcing: the decoder reads the start token and the target but its last token. What
    # stands in for padding is never labelled, and no earlier token sees it.
    before = labels.roll(1, dims=1)
    fed = before.masked_fill(before == IGNORED, 0)
    fed[:, 0] = start
    read = {"decoder_input_ids": fed, "decoder_attention_mask": (labels != IGNORED).long()}
    output = run(model, {**batch, **read}, without=("labels",))
    return _likely(logits_of(output, model, TRANSLATION), labels)


def _likely(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean log likelihood and share of right tokens of each example, over those that are
    labelled.
    """
    there = labels != IGNORED
    right = ((logits.argmax(-1) == labels) & there).sum(1) / there.sum(1)
    losses = functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
    )
    return torch.stack([-losses.sum(1) / there.sum(1), right], dim=1)


def minimal_pairs(
    tokenizer: Any,
    pairs: Sequence[Any],
    *,
    masked: bool | None = None,
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Pairs of a good and a bad sentence; the score is 1 where the good one is more likely, a tie
    counting half.

    A causal model gives the likelihood of a sentence as the sum of its tokens' log likelihoods; a
    masked one by the sum of each token's when it alone is hidden (pseudo-log-likelihood, one run
    for each token).

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
    more: dict[str, Any] = {"columns": ("difference",), "totals": OF_PAIRS, "asks": asks}
    return read.task(batches, score, "minimal pairs", metric="accuracy", **more)


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
    hidden |= {"row": row, "place": position, "right": ids[row, position], "sentences": len(ids)}
    return hidden
