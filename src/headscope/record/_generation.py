"""How the text of a record was written by the model itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from headscope.errors import RecordError
from headscope.record._tokens import Tokens

STOPS = ("end", "length", "criterion")
TOTAL_TOLERANCE = 1e-4
"""By how much probabilities may add up to more than 1, and an entropy be below 0, by rounding."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A token that the model might have written.

    Args:
        id: vocabulary number.
        piece: as the tokenizer names it.
        probability: that the model gave it, between 0 and 1.
    """

    id: int
    piece: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What is known of a text that the model wrote, one entry for each token written.

    Probabilities, entropies and ranks are of the model's own distribution: softmax of its logits,
    before temperature, top-p, penalties or anything else changed it.

    The model reads a token only when it is to write the next one. So the last token written was
    never read: the queries of the record are the prompt and all tokens written but the last, and
    the query that chose token ``t`` is ``prompt + t - 1``, see `chosen_by`.

    Args:
        stack: whose query tokens were written: ``"self"``, or ``"decoder"`` of an encoder-decoder.
        prompt: how many of these tokens were given; in a decoder, the start token.
        reads: how many new tokens each step read: the prompt first (prefill), then one at a time
            (decode).
        tokens: the tokens written, the last one included.
        probabilities: of each token, when it was written.
        entropies: in nats, of the distribution that each token was drawn from.
        ranks: place of each token by probability; 1 is the most probable.
        alternatives: for each token the most probable candidates, in order; empty where they were
            not kept.
        text: what was written, decoded, without special tokens.
        stop: why it ended: ``"end"`` (a token that means so), ``"length"`` (reached
            ``max_new_tokens``), ``"criterion"``.
        sampled: whether tokens were drawn at random.
        seed: of the random numbers, where one was given.

    Raises:
        RecordError: where these do not fit together.
    """

    stack: str
    prompt: int
    reads: tuple[int, ...]
    tokens: Tokens
    probabilities: tuple[float, ...]
    entropies: tuple[float, ...]
    ranks: tuple[int, ...]
    alternatives: tuple[tuple[Candidate, ...], ...] = ()
    text: str = ""
    stop: str = "length"
    sampled: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("reads", "probabilities", "entropies", "ranks"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(
            self, "alternatives", tuple(map(tuple, self.alternatives)) or ((),) * len(self)
        )
        self._check_reads()
        self._check_numbers()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def step_of(self) -> Int[np.ndarray, " query"]:
        """The pass in which each query was read, from 0."""
        return np.repeat(np.arange(len(self.reads)), self.reads)

    @property
    def prefill(self) -> Bool[np.ndarray, " query"]:
        """True for queries of the prompt, which was given; False for those read back one at a time
        (decode).
        """
        return np.arange(sum(self.reads)) < self.prompt

    @property
    def chosen_by(self) -> Int[np.ndarray, " token"]:
        """The query whose row of attention led to each token written."""
        return self.prompt - 1 + np.arange(len(self))

    def check_queries(self, queries: Tokens) -> None:
        """Raise unless these are the prompt and what was written, but the last token.

        Raises:
            RecordError: saying what differs.
        """
        if sum(self.reads) != len(queries):
            raise RecordError(
                f"Generation: {sum(self.reads)} tokens were read, but stack {self.stack!r} has "
                f"{len(queries)} queries"
            )
        if queries.ids is not None and self.tokens.ids is not None:
            read, written = queries.ids[self.prompt :], self.tokens.ids[:-1]
            if read != written:
                raise RecordError(
                    f"Generation: stack {self.stack!r} reads the ids {_short(read)} after its "
                    f"prompt, but written were {_short(written)} and a last token"
                )

    def _check_reads(self) -> None:
        reads = self.reads
        if not reads or any(not _is_whole(count, 1) for count in reads):
            raise RecordError(
                f"Generation: reads must be whole numbers from 1 on, one for each pass, not {reads}"
            )
        if not len(self):
            raise RecordError("Generation: no token was written; a generation has at least one")
        if not _is_whole(self.prompt, 1) or sum(reads) != self.prompt + len(self) - 1:
            raise RecordError(
                f"Generation: {sum(reads)} tokens were read, but a prompt of {self.prompt} and "
                f"{len(self)} written make {self.prompt + len(self) - 1}, for the last one is "
                "never read"
            )
        if self.stop not in STOPS:
            raise RecordError(f"Generation: stop is one of {', '.join(STOPS)}, not {self.stop!r}")

    def _check_numbers(self) -> None:
        for name in ("probabilities", "entropies", "ranks", "alternatives"):
            if len(getattr(self, name)) != len(self):
                raise RecordError(
                    f"Generation: {len(getattr(self, name))} {name} for {len(self)} tokens; give "
                    "one for each"
                )
        # "not low <= x": comparisons of NaN are False, so that NaN is refused, too.
        for probability in (*self.probabilities, *self._offered_probabilities()):
            if not 0 <= probability <= 1 + TOTAL_TOLERANCE:
                raise RecordError(f"Generation: the probability {probability!r} is none")
        for entropy in self.entropies:
            if not -TOTAL_TOLERANCE <= entropy < math.inf:
                raise RecordError(f"Generation: the entropy {entropy!r} is none")
        for rank in self.ranks:
            if not _is_whole(rank, 1):
                raise RecordError(f"Generation: the rank {rank!r} is none")

    def _offered_probabilities(self) -> list[float]:
        """Probabilities of all candidates, and the sum over those of each token: candidates exclude
        each other.
        """
        single, totals = [], []
        for candidates in self.alternatives:
            probabilities = [candidate.probability for candidate in candidates]
            single += probabilities
            totals.append(math.fsum(probabilities))
        return [*single, *totals]


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _short(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values[:8]))}{', ...' if len(values) > 8 else ''}]"
