"""What a model is to be good at: inputs, and a loss for each example."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from headscope._progress import warn_left_out
from headscope.capturing import check_known, parse_text, several_of
from headscope.capturing.device import device_of
from headscope.capturing.fitness import CLASS, MASKED, NEXT, check_fit, first_ids, logits_of
from headscope.capturing.inputs.tokens import check_tokenizer, tokenized
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.errors import HeadscopeError, InterventionError, TextError

Batch = Mapping[str, torch.Tensor]
BATCH = 16
IGNORED = -100
"""The label that torch's cross_entropy leaves out by default."""


@dataclass(frozen=True, eq=False)
class Objective:
    """Inputs of a model, and the loss of each example; lower is better.

    Args:
        batches: arguments of the model's forward, and whatever else the loss reads.
        loss: gives the loss of each example ``[example]`` from the model and a batch.
        name: of the loss, for tables.
        asks: what it needs the model's head for: ``"next word"``, ``"masked word"`` or ``"class"``;
            empty where that is not known.
        allow_unfit: whether a model whose head was not trained, or that sees the word it is to
            predict, is taken.

    Example:
        >>> objective = Objective(
        ...     batches, lambda model, batch: 1 - cosine(model(**batch)), "distance"
        ... )
    """

    batches: Sequence[Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    name: str = "loss"
    asks: str = ""
    allow_unfit: bool = False

    def check(self, model: nn.Module) -> None:
        """Raise where a model is not fit for this loss.

        Raises:
            ModelError: saying why.
        """
        if self.asks and self.batches and not self.allow_unfit:
            check_fit(model, self.asks, first_ids(self.batches[0]))

    def losses(self, model: nn.Module) -> Iterator[torch.Tensor]:
        """The loss of each example, batch by batch.

        Raises:
            InterventionError: where the loss is not one number for each example.
        """
        for batch in self.batches:
            here = {name: tensor.to(device_of(model)) for name, tensor in batch.items()}
            losses = self.loss(model, here)
            is_tensor = isinstance(losses, torch.Tensor)
            if not is_tensor or losses.ndim != 1:
                shape = list(losses.shape) if is_tensor else type(losses).__name__
                raise InterventionError(
                    f"The loss gave {shape}; expected a tensor with one number for each example"
                )
            yield losses

    def probe(self, model: nn.Module) -> Callable[[], Any]:
        """Runs the model on the first batch."""
        return lambda: next(self.losses(model))


def next_word(tokenizer: Any, texts: Sequence[Any], *, batch: int = BATCH) -> Objective:
    """Mean negative log likelihood, in nats, of each token after the first given those before it.

    Args:
        tokenizer: of a causal language model, loaded with its head.
        texts: one example each, of at least two tokens.
        batch: how many at once.

    Raises:
        TextError: where there is no text that can be read. One of a single token, or that the
            tokenizer cannot take, is left out with a warning.
    """
    return Objective(
        tuple(_batches(_read(tokenizer, texts), batch)), _next_word, "next-word loss", NEXT
    )


def masked_word(
    tokenizer: Any, texts: Sequence[Any], *, share: float = 0.15, seed: int = 0, batch: int = BATCH
) -> Objective:
    """Mean negative log likelihood, in nats, of tokens that are hidden behind the mask token.

    Args:
        tokenizer: of a masked language model, loaded with its head.
        texts: one example each.
        share: of the tokens that are hidden, special ones left out; at least one in each text.
        seed: of the choice.
        batch: how many at once.

    Raises:
        InterventionError: where the tokenizer has no mask token.
        TextError: where there is no text that can be read. One of special tokens only, or that the
            tokenizer cannot take, is left out with a warning.
    """
    generator, special = masking(tokenizer, seed), set(tokenizer.all_special_ids)
    rows = _read(tokenizer, texts, nothing_but=special)
    batches = [masked_batch(tokenizer, one, share, generator) for one in _batches(rows, batch)]
    return Objective(tuple(batches), _labelled, "masked-word loss", MASKED)


def masking(tokenizer: Any, seed: int) -> torch.Generator:
    """What draws the tokens that are hidden.

    Raises:
        InterventionError: where the tokenizer has nothing to hide them behind.
    """
    check_tokenizer(tokenizer)
    if tokenizer.mask_token_id is None:
        raise InterventionError(
            f"{type(tokenizer).__name__} has no mask token; use next_word with causal models"
        )
    return torch.Generator().manual_seed(seed)


def classification(
    tokenizer: Any, texts: Sequence[Any], labels: Sequence[int], *, batch: int = BATCH
) -> Objective:
    """Cross-entropy, in nats, of the right class under a model with a classification head.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        labels: the number of each one's class.
        batch: how many at once.

    Raises:
        TextError: where there are not as many labels as texts, or no text can be read. One that the
            tokenizer cannot take is left out with a warning.
    """
    if len(texts) != len(labels):
        raise TextError(
            f"{len(texts)} texts and {len(labels)} labels were given; give one label for each text"
        )
    batches = []
    rows = _read(tokenizer, texts)
    # Labels of texts that could not be read go with them.
    kept = [labels[number] for number in rows]
    for number, encoded in enumerate(_batches(rows, batch)):
        own = torch.tensor(kept[number * batch : (number + 1) * batch])
        batches.append({**encoded, "labels": own})
    return Objective(tuple(batches), _classified, "classification loss", CLASS)


def _next_word(model: nn.Module, batch: Batch) -> torch.Tensor:
    scores = logits_of(model(**batch), model, NEXT)[:, :-1]
    ids, mask = batch["input_ids"], batch["attention_mask"]
    # A token counts where it and the one before are real, whichever side the padding is on.
    real = mask[:, 1:].bool() & mask[:, :-1].bool()
    return mean_loss(scores, ids[:, 1:].masked_fill(~real, IGNORED))


def _labelled(model: nn.Module, batch: Batch) -> torch.Tensor:
    given = {name: tensor for name, tensor in batch.items() if name != "labels"}
    return mean_loss(logits_of(model(**given), model, MASKED), batch["labels"])


def _classified(model: nn.Module, batch: Batch) -> torch.Tensor:
    given = {name: tensor for name, tensor in batch.items() if name != "labels"}
    logits = logits_of(model(**given), model, CLASS)
    return functional.cross_entropy(logits, batch["labels"], reduction="none")


def mean_loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean over the labelled tokens of each example."""
    losses = functional.cross_entropy(
        scores.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
    )
    return losses.sum(1) / (labels != IGNORED).sum(1)


def _read(
    tokenizer: Any, texts: Sequence[Any], nothing_but: Collection[int] = ()
) -> dict[int, Any]:
    """What the tokenizer makes of each text, by its number; a text that cannot be read costs itself
    alone.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        nothing_but: a text of these tokens alone cannot be read.

    Raises:
        TextError: where there is no text, or none can be read.
    """
    check_tokenizer(tokenizer)
    texts = several_of(texts)
    if not len(texts):
        raise TextError("No text was given; give at least one")
    rows: dict[int, Any] = {}
    failed: dict[int, HeadscopeError] = {}
    for number, text in enumerate(texts):
        try:
            rows[number] = _row(tokenizer, text, nothing_but)
        except OF_ONE_INPUT as error:
            failed[number] = reason_of(error)
    if not rows:
        raise none_of(list(failed.values()))
    for number, error in failed.items():
        warn_left_out(number, error, "text", stacklevel=4)
    ids = chain.from_iterable(row["input_ids"] for row in rows.values())
    check_known(tokenizer, ids, "the texts", None, texts=len(rows))
    return rows


def none_of(errors: list[HeadscopeError]) -> HeadscopeError:
    """What to raise where no example could be read: of a single one its own error."""
    several = TextError(f"None of the {len(errors)} texts can be read: {errors[0]}")
    return several if len(errors) > 1 else errors[0]


def _row(tokenizer: Any, text: Any, nothing_but: Collection[int]) -> dict[str, list[int]]:
    """The arguments that the tokenizer makes of one text, or of a pair."""
    made = tokenized(tokenizer, *parse_text(text).read_with(tokenizer).texts)
    row = {name: list(made[name]) for name in made if name in tokenizer.model_input_names}
    if len(row["input_ids"]) < 2:
        raise TextError("The text has fewer than two tokens")
    if nothing_but and set(row["input_ids"]) <= set(nothing_but):
        raise TextError("The text holds nothing but special tokens")
    return row


def _batches(rows: Mapping[int, Any], batch: int) -> Iterator[dict[str, torch.Tensor]]:
    every = list(rows.values())
    for first in range(0, len(every), batch):
        yield padded(every[first : first + batch])


def padded(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Rows of one batch, padded with zeros on the right, where no model counts positions from; with
    their mask.
    """
    longest = max(len(row["input_ids"]) for row in rows)
    tensors = {}
    for name in rows[0]:
        if name != "attention_mask":
            lists = [[*row[name], *[0] * (longest - len(row[name]))] for row in rows]
            tensors[name] = torch.tensor(lists)
    counts = torch.tensor([len(row["input_ids"]) for row in rows])
    return {**tensors, "attention_mask": (torch.arange(longest) < counts[:, None]).long()}


def masked_batch(
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
