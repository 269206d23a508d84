"""The effect of masking one word on predicting another: for Vig's predictive words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from typing_extensions import Unpack

from headscope.capturing.device import device_of
from headscope.capturing.fitness import MASKED, check_fit
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.parse import parse_call
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.loading.load import load_masked_model, load_tokenizer
from headscope.capturing.loading.options import LoadOptions, check_not_loaded
from headscope.capturing.run import at_rest, uncompiled, unwrapped
from headscope.errors import CaptureError
from headscope.record import Tokens

BATCH_TOKENS = 4096
UNMOVED = 1e-4
"""Difference of log probabilities, in nats, that rounding can cause."""
MUCH_LESS = 0.1
"""Ratio of the two largest drops below which the smaller one counts as zero. A model that hardly
reacts has only rounding errors in both.
"""


def masking_drops(
    model: Any,
    tokenizer: Any,
    text: str,
    text_pair: str | None = None,
    *,
    batch_tokens: int = BATCH_TOKENS,
    **options: Unpack[LoadOptions],
) -> Float[np.ndarray, "query key"]:
    """The loss in log probability of each token when another one is masked, too, in nats.

    ``drops[q, k] = log p(x_q | q masked) - log p(x_q | q and k masked)``: positive where k helps to
    predict q. One pass masks q alone, and one for each pair gives both directions: n (n + 1) / 2
    sequences for n words.

    Source: Vig 2019, pattern 5, "other words predictive of the word"; the statistic is ours.

    Args:
        model: a model with a masked-word head, such as ``BertForMaskedLM``; or its name or folder.
        tokenizer: its tokenizer; may be None where a name is given.
        text: the text.
        text_pair: the second text of a pair.
        batch_tokens: largest number of tokens that run at once.
        **options: `LoadOptions` for a model given by name.

    Returns:
        Nats; 0 on the diagonal, and NaN where the query or key is a special token.

    Raises:
        ModelError: where a named model has no trained head.
        CaptureError: where the model has no masked-word head, or the tokenizer no mask.
        TextError: where the text is empty, or longer than the model allows.

    Example:
        >>> drops = masking_drops("bert-base-uncased", None, "The cat sat.")
    """
    given = parse_call(text, text_pair)
    if isinstance(model, str | Path):
        tokenizer = tokenizer or load_tokenizer(model, **options)
        model = load_masked_model(model, **options)
    else:
        check_not_loaded(model, options)
    masking = Masking(model, tokenizer, batch_tokens=batch_tokens)
    given = given.read_with(tokenizer)
    encoding = encode(masking.model, tokenizer, given.texts)
    return masking(tokens_from_encoding(tokenizer, encoding, given.texts))


@dataclass(eq=False)
class Masking:
    """Masks the words of texts for a model, and remembers the last text.

    Args:
        model: a model with a masked-word head.
        tokenizer: its tokenizer.
        batch_tokens: largest number of tokens that run at once.
        truncate: whether texts are cut to the model's maximum length.

    Raises:
        CaptureError: where the model has no masked-word head, or the tokenizer no mask.
        ModelError: where the masked-word head was not trained.
    """

    model: Any
    tokenizer: Any
    batch_tokens: int = BATCH_TOKENS
    truncate: bool = False
    _last: tuple[Tokens, np.ndarray] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.model = unwrapped(self.model)
        if getattr(self.tokenizer, "mask_token_id", None) is None:
            raise CaptureError(
                f"{type(self.tokenizer).__name__} has no mask; words cannot be masked for this "
                "model"
            )

        check_fit(self.model, MASKED)

    def __call__(self, tokens: Tokens) -> Float[np.ndarray, "query key"]:
        """The drops of all pairs of tokens; see `masking_drops`.

        Raises:
            CaptureError: where these tokens were not made from the text, or the model has no
                masked-word head.
        """
        if self._last is None or self._last[0] is not tokens:
            self._last = tokens, self._drops(tokens)
        return self._last[1]

    def _drops(self, tokens: Tokens) -> np.ndarray:
        if not tokens.texts:
            raise CaptureError(
                "These tokens know no text, and words are masked in a text; capture it with its "
                "tokenizer"
            )
        encoding = encode(self.model, self.tokenizer, tokens.texts, truncate=self.truncate)
        if tuple(encoding["input_ids"]) != tokens.ids:
            raise CaptureError(
                "The tokens are not those of the tokenizer that masks; capture the text with it"
            )
        device = device_of(self.model)
        arguments = {name: torch.tensor(values, device=device) for name, values in encoding.items()}
        words = [index for index, special in enumerate(tokens.special) if not special]
        size = len(tokens)
        drops = np.full((size, size), np.nan)
        alone = np.full(size, np.nan)
        with at_rest(self.model), uncompiled(self.model):
            for sets, logs in self._log_probabilities(arguments, words, tokens):
                for masked, of_tokens in zip(sets, logs, strict=True):
                    if len(masked) == 1:
                        alone[masked[0]] = of_tokens[masked[0]]
                        continue
                    # One pass with both masked shows the effect of each on predicting the other.
                    one, other = masked
                    drops[one, other], drops[other, one] = of_tokens[one], of_tokens[other]
        # So far log p of the query with both masked; subtract it from that with the query alone.
        drops = alone[:, None] - drops
        drops[words, words] = 0.0
        if _looks_back(np.nan_to_num(drops)):
            raise CaptureError(
                f"{type(self.model).__name__} looks back only: it has no "
                "masked-language-modelling head"
            )
        return drops

    def _log_probabilities(
        self, arguments: dict[str, torch.Tensor], words: list[int], tokens: Tokens
    ) -> Iterator[tuple[list[tuple[int, ...]], np.ndarray]]:
        """Sets of masked positions, and log p of every token of the text under each of them."""
        right = torch.tensor(tokens.ids, device=device_of(self.model))
        every: list[tuple[int, ...]] = [*((word,) for word in words), *combinations(words, 2)]
        count = max(1, self.batch_tokens // len(tokens))
        for sets in (every[first : first + count] for first in range(0, len(every), count)):
            given = {name: values.repeat(len(sets), 1) for name, values in arguments.items()}
            for row, masked in enumerate(sets):
                given["input_ids"][row, list(masked)] = self.tokenizer.mask_token_id
            logits = getattr(self.model(**given), "logits", None)
            if (
                logits is None
                or logits.shape[:2] != (len(sets), len(tokens))
                or logits.shape[2] <= int(right.max())
            ):
                raise CaptureError(
                    f"{type(self.model).__name__} has no masked-word head: it gives no logits "
                    "[token word]; load the model with AutoModelForMaskedLM, if it was trained "
                    "with such a head"
                )
            # In double precision, because a drop is the difference of two nearly equal logarithms.
            probabilities = torch.log_softmax(logits.double(), dim=-1)
            yield (
                sets,
                probabilities.gather(2, right.expand(len(sets), -1)[..., None])[..., 0]
                .cpu()
                .numpy(),
            )


def _looks_back(drops: np.ndarray) -> bool:
    """Whether masking a later word changes no prediction, while masking an earlier one does."""
    later, earlier = (
        float(np.abs(part).max(initial=0)) for part in (np.triu(drops), np.tril(drops))
    )
    return later < min(UNMOVED, MUCH_LESS * earlier) and earlier > UNMOVED
