"""A text as a classifier reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import tokens_from_ids
from headscope.errors import TextError

READ = ("input_ids", "token_type_ids")
"""What a text is to a classifier; the mask of padding is not needed without any."""


@dataclass(frozen=True, eq=False)
class ClassifiedText:
    """A text as the classifier reads it.

    Args:
        given: the text, or the pair.
        inputs: ``[token]`` by name of the argument.
        ranked: positions of the tokens that are not special.
        pieces: these tokens.
    """

    given: ParsedInput
    inputs: dict[str, torch.Tensor]
    ranked: np.ndarray
    pieces: tuple[str, ...]

    @classmethod
    def of(
        cls, model: Any, tokenizer: Any, given: ParsedInput, *, truncate: bool = False
    ) -> ClassifiedText:
        """A text, or a pair.

        Raises:
            TextError: where it is longer than the model's positions, or has fewer than two tokens
                to rank.
        """
        given = given.read_with(tokenizer)
        encoding = encode(model, tokenizer, given.texts, truncate=truncate)
        ids = encoding["input_ids"]
        special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        ranked = np.flatnonzero(~np.array(special, bool))
        # A rank correlation needs two things to put in order.
        if len(ranked) < 2:
            shown = given.text if given.text_pair is None else given.texts
            raise TextError(
                f"{shown!r} has {len(ranked)} tokens that are not special; give at least two"
            )
        pieces = tokenizer.convert_ids_to_tokens([ids[at] for at in ranked])
        return cls(
            given,
            {name: torch.tensor(encoding[name]) for name in READ if name in encoding},
            ranked,
            tuple(pieces),
        )

    def position_of(self, tokenizer: Any, token: int | str) -> int:
        """The position of a token that is given by its position or by its word.

        Raises:
            TextError: where the word is not in the text, or is there several times.
        """
        if not isinstance(token, str):
            return token
        wanted = tokens_from_ids(tokenizer, self.inputs["input_ids"].tolist())
        positions = [
            position
            for position, names in enumerate(zip(wanted.pieces, wanted.labels, strict=True))
            if token in names
        ]
        if len(positions) != 1:
            raise TextError(
                f"Expected a token that is in the text once for query, got {token!r}, which is "
                f"there {len(positions)} times; give a position"
            )
        return positions[0]

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])
