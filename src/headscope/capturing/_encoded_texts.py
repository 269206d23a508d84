"""Texts that are encoded and wait for their turn, and what a model reads of several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import SpecialTokens, tokens_from_encoding


@dataclass(frozen=True)
class EncodedText:
    """A text that was encoded and waits for its turn.

    Args:
        number: its place among the inputs.
        item: the text.
        encoding: of the text alone, or of several.
        example: which of them it is.
        readable: its place among the inputs that could be read, where these are counted.
    """

    number: int
    item: ParsedInput
    encoding: Any
    example: int = 0
    readable: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> list[int]:
        """Of its tokens."""
        return self.arguments["input_ids"]

    @cached_property
    def arguments(self) -> dict[str, list[int]]:
        """What the model is given for this text."""
        values = dict(self.encoding)
        if isinstance(values["input_ids"][0], list):
            return {name: each[self.example] for name, each in values.items()}
        return values


def batches_of(lengths: Mapping[int, int], tokens: int, most: int | None) -> list[list[int]]:
    """Numbers of texts of neighbouring length, each as many together as fit; the last of a batch is
    its longest, to which the others are padded.

    Args:
        lengths: how many tokens each text takes, by number.
        tokens: most of a batch, padding included; a longer text is a batch of its own.
        most: texts of a batch; None for any number.
    """
    batches: list[list[int]] = []
    for number in sorted(lengths, key=lambda each: lengths[each]):
        last = batches[-1] if batches else []
        is_full = most is not None and len(last) >= most
        if last and not is_full and (len(last) + 1) * lengths[number] <= tokens:
            last.append(number)
        else:
            batches.append([number])
    return batches


def inputs_of_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[EncodedText],
    *,
    copies: int = 0,
    specials: SpecialTokens | None = None,
) -> Inputs:
    """Texts side by side, shorter ones with padding behind their end.

    Args:
        model: that is to read them.
        tokenizer: that encoded them.
        texts: all of them.
        copies: of the first, which come last.
        specials: of the tokenizer, where they are known already.
    """
    rows = [*texts, *[texts[0]] * copies]
    longest, device = max(map(len, rows)), device_of(model)

    # Padding goes to the right, where no model counts positions from it; its ids are never looked
    # at.
    def filled(values: list[int]) -> list[int]:
        return values + [0] * (longest - len(values))

    arguments = {
        name: torch.tensor([filled(row.arguments[name]) for row in rows], device=device)
        for name in texts[0].arguments
    }
    masks = [filled([1] * len(row)) for row in rows]
    arguments["attention_mask"] = torch.tensor(masks, device=device)
    specials = SpecialTokens.of(tokenizer) if specials is None else specials
    tokens = []
    for text in texts:
        given = (text.encoding, text.item.texts, text.example)
        tokens.append(tokens_from_encoding(tokenizer, *given, specials=specials))
    return Inputs(arguments, (*tokens, *tokens[:1] * copies))
