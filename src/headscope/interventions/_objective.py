"""What a model is to be good at: inputs, and a loss for each example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from headscope.errors import InterventionError, TextError

Batch = Mapping[str, torch.Tensor]
BATCH = 16
IGNORED = -100


@dataclass(frozen=True, eq=False)
class Objective:
    """Inputs of a model, and the loss of each example; lower is better.

    Args:
        batches: arguments of the model's forward, and whatever else the loss reads.
        loss: gives the loss of each example ``[example]`` from the model and a batch.
        name: of the loss, for tables.

    Example:
        >>> objective = Objective(batches, lambda model, batch: 1 - cosine(model(**batch)), "distance")
    """

    batches: Sequence[Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    name: str = "loss"

    def losses(self, model: nn.Module) -> Iterator[torch.Tensor]:
        """The loss of each example, batch by batch.

        Raises:
            InterventionError: where the loss is not one number for each example.
        """
        for batch in self.batches:
            found = self.loss(model, {name: tensor.to(_device(model)) for name, tensor in batch.items()})
            if not isinstance(found, torch.Tensor) or found.ndim != 1:
                shape = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
                raise InterventionError(f"The loss gave {shape}; wanted is a tensor with one number for each example")
            yield found

    def probe(self, model: nn.Module) -> Callable[[], Any]:
        """Runs the model on the first batch."""
        return lambda: next(self.losses(model))


def next_word(tokenizer: Any, texts: Sequence[str], *, batch: int = BATCH) -> Objective:
    """Mean negative log likelihood, in nats, of each token after the first given those before it.

    Args:
        tokenizer: of a causal language model, loaded with its head.
        texts: one example each, of at least two tokens.
        batch: how many at once.

    Raises:
        TextError: where there is no text, or one of a single token.
    """
    return Objective(tuple(_encoded(tokenizer, texts, batch)), _next_word, "next-word loss")


def masked_word(
    tokenizer: Any, texts: Sequence[str], *, share: float = 0.15, seed: int = 0, batch: int = BATCH
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
        TextError: where there is no text, or one of special tokens only.
    """
    generator = masking(tokenizer, seed)
    batches = [_masked(tokenizer, one, share, generator) for one in _encoded(tokenizer, texts, batch)]
    return Objective(tuple(batches), _labelled, "masked-word loss")


def masking(tokenizer: Any, seed: int) -> torch.Generator:
    """What draws the tokens that are hidden.

    Raises:
        InterventionError: where the tokenizer has nothing to hide them behind.
    """
    if tokenizer.mask_token_id is None:
        raise InterventionError(f"{type(tokenizer).__name__} has no mask token; use next_word with causal models")
    return torch.Generator().manual_seed(seed)


def classification(
    tokenizer: Any, texts: Sequence[str | tuple[str, str]], labels: Sequence[int], *, batch: int = BATCH
) -> Objective:
    """Cross-entropy, in nats, of the right class under a model with a classification head.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        labels: the number of each one's class.
        batch: how many at once.

    Raises:
        TextError: where there are not as many labels as texts.
    """
    if len(texts) != len(labels):
        raise TextError(f"{len(texts)} texts and {len(labels)} labels were given; give one label for each text")
    batches = []
    for number, encoded in enumerate(_encoded(tokenizer, texts, batch)):
        own = torch.tensor(labels[number * batch : (number + 1) * batch])
        batches.append({**encoded, "labels": own})
    return Objective(tuple(batches), _classified, "classification loss")


def _next_word(model: nn.Module, batch: Batch) -> torch.Tensor:
    scores, ids, mask = model(**batch).logits[:, :-1], batch["input_ids"], batch["attention_mask"]
    # a token counts where it and the one before are real, whichever side the padding is on
    real = mask[:, 1:].bool() & mask[:, :-1].bool()
    return _mean_loss(scores, ids[:, 1:].masked_fill(~real, IGNORED))


def _labelled(model: nn.Module, batch: Batch) -> torch.Tensor:
    given = {name: tensor for name, tensor in batch.items() if name != "labels"}
    return _mean_loss(model(**given).logits, batch["labels"])


def _classified(model: nn.Module, batch: Batch) -> torch.Tensor:
    given = {name: tensor for name, tensor in batch.items() if name != "labels"}
    return functional.cross_entropy(model(**given).logits, batch["labels"], reduction="none")


def _mean_loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean over the labelled tokens of each example."""
    losses = functional.cross_entropy(scores.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return losses.sum(1) / (labels != IGNORED).sum(1)


def _encoded(tokenizer: Any, texts: Sequence[Any], batch: int) -> Iterator[dict[str, torch.Tensor]]:
    if not texts:
        raise TextError("No text was given; give at least one")
    for first in range(0, len(texts), batch):
        part = list(texts[first : first + batch])
        sides = [[text[at] for text in part] for at in (0, 1)] if isinstance(part[0], tuple) else [part]
        found = [tokenizer(*one) for one in zip(*sides, strict=True)]
        longest = max(len(one["input_ids"]) for one in found)
        if min(len(one["input_ids"]) for one in found) < 2:
            raise TextError("A text has fewer than two tokens; leave it out")
        names = [name for name in found[0] if name in tokenizer.model_input_names]
        # padding goes to the right, where no model counts positions from it; its ids are never looked at
        batched = {name: [[*one[name], *[0] * (longest - len(one[name]))] for one in found] for name in names}
        batched["attention_mask"] = [[1] * len(one["input_ids"]) for one in found]
        batched["attention_mask"] = [[*row, *[0] * (longest - len(row))] for row in batched["attention_mask"]]
        yield {name: torch.tensor(rows) for name, rows in batched.items()}


def _masked(tokenizer: Any, batch: Batch, share: float, generator: torch.Generator) -> dict[str, torch.Tensor]:
    ids = batch["input_ids"].clone()
    labels = torch.full_like(ids, IGNORED)
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids)) | (batch["attention_mask"] == 0)
    for row, (own, hidden) in enumerate(zip(ids, special, strict=True)):
        places = (~hidden).nonzero()[:, 0]
        if not len(places):
            raise TextError("A text holds nothing but special tokens; leave it out")
        count = max(1, round(share * len(places)))
        chosen = places[torch.randperm(len(places), generator=generator)[:count]]
        labels[row, chosen] = own[chosen]
        ids[row, chosen] = tokenizer.mask_token_id
    return {**batch, "input_ids": ids, "labels": labels}


def _device(model: nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
