"""Everything that one pass over one text computed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from headscope.errors import NoSuchStackError, RecordError, is_whole
from headscope.record._facts import AGAINST, ModelFacts, unverified_of, verification_of
from headscope.record._layer import Layer
from headscope.record._stack import Stack
from headscope.record._stored import RebuiltWhenCopied
from headscope.record._tokens import Tokens

NAMED, NAMED_CHANGES = 6, 3
"""So many chosen heads, and changes of a model, are named in a summary."""


def warn_changed(name: str, changed: Sequence[str]) -> None:
    """Warn where some of the records that a function was given are of a changed model.

    Args:
        name: of the function.
        changed: of each record.
    """
    if changes := [of_record for of_record in changed if of_record]:
        count = f"{len(changes)} of {len(changed)} records are not of the model as it is"
        warnings.warn(f"{name}: {count}; {changes[0]}", stacklevel=3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Record(RebuiltWhenCopied):
    """The attention of one model on one text: no batch axis, no padding. Frozen.

    ``record["self"].weights(layer=2, head=0)`` is one head's ``[query key]``.

    Args:
        stacks: by name: ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``.
        model: what is known about the model.
        generation: how the model wrote the text itself; None where the text was given.
        pictures: those that the patches are equal parts of, as the model saw them (scaled, cut,
            without padding): uint8 ``[height width 3]``, red, green and blue, at most 448 pixels a
            side; `Tokens.pictures` counts them. There are none where pixels are not known: of
            packed patches and of bare tensors.

    Raises:
        RecordError: where a stack is missing or named otherwise than its key, or is not what was
            generated; where pictures are no bytes, or not as many as the grids of patches.
    """

    stacks: Mapping[str, Stack]
    model: ModelFacts = field(default_factory=ModelFacts)
    generation: Generation | None = None
    pictures: tuple[np.ndarray, ...] = ()

    def __post_init__(self) -> None:
        if not self.stacks:
            raise RecordError("A record needs at least one stack")
        for name, stack in self.stacks.items():
            if stack.name != name:
                raise RecordError(f"The stack under {name!r} calls itself {stack.name!r}")
        object.__setattr__(self, "stacks", MappingProxyType(dict(self.stacks)))
        if self.generation is not None:
            self.generation.check_queries(self[self.generation.stack].query)
        object.__setattr__(self, "pictures", tuple(self.pictures))
        self._check_pictures()

    def __getitem__(self, name: Any) -> Stack:
        if not isinstance(name, str) or name not in self.stacks:
            raise NoSuchStackError(
                f"This record has the stacks {', '.join(map(repr, self.stacks))}, not {name!r}; "
                "record.stacks has all of them"
            )
        return self.stacks[name]

    def __contains__(self, name: object) -> bool:
        return name in self.stacks

    @property
    def verified(self) -> float | None:
        """Largest difference between what was recomputed from a layer and the model's own; see
        `verified_against`.

        None for records that no model stands behind.
        """
        differences = [each.verified for each in self._layers if each.verified is not None]
        return max(differences, default=None)

    @property
    def verified_against(self) -> str:
        """What the layers were compared with, of several the weakest: see `Layer`; empty where
        it is not known.
        """
        against = [each.verified_against for each in self._layers if each.verified is not None]
        return min(against, key=AGAINST.index, default="")

    @property
    def verification(self) -> str:
        """One sentence: what the layers were compared with, the largest difference and its limit,
        and what was changed; may be empty.
        """
        return "; ".join(filter(None, [verification_of(self._layers), self.changed]))

    @property
    def _layers(self) -> list[Layer]:
        return [layer for stack in self.stacks.values() for layer in stack]

    @property
    def changes(self) -> tuple[str, ...]:
        """What was done to the model on purpose, in words (see `headscope.intervene`); empty for
        the model as it is.
        """
        changes: dict[str, None] = {}
        for name, stack in self.stacks.items():
            of = "" if name == "self" else f" of {name}"
            for layer in stack:
                own = filter(None, layer.changes)
                changes |= {f"layer {layer.layer}{of}: {change}": None for change in own}
        return tuple(changes)

    @property
    def changed(self) -> str:
        """Whether the weights are unverified; the first of the `changes`, and how many more there
        are. Empty for a model as it is.
        """
        more = len(self.changes) - NAMED_CHANGES
        words = ", ".join(self.changes[:NAMED_CHANGES]) + f" and {more} more" * (more > 0)
        return "; ".join(filter(None, [self.unverified, words and f"changed: {words}"]))

    @property
    def unverified(self) -> str:
        """That the weights are of queries and keys that were given with nothing to check them
        against, and their scale; empty for other records.
        """
        return unverified_of(self._layers)

    @property
    def unseen(self) -> str:
        """Which layers have attention that was not seen, by stack, and which other modules; empty
        where there are none.
        """
        stacks = [(name, stack.unseen) for name, stack in self.stacks.items() if stack.unseen]
        several = len(self.stacks) > 1
        layers = [
            f"layer{'s' * (len(numbers) > 1)} "
            f"{', '.join(map(str, numbers))}{f' of {name!r}' if several else ''}"
            for name, numbers in stacks
        ]
        return "; ".join([*layers, *filter(None, [self.model.unseen])])

    @property
    def numbered(self) -> str:
        """Why some of the tokens are but numbers of positions; empty where all of them have
        names.
        """
        return "; ".join(dict.fromkeys(side.numbered for side in self._sides if side.numbered))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts behind the record, each once, in order."""
        return tuple(dict.fromkeys(text for side in self._sides for text in side.texts))

    @property
    def prompt(self) -> str:
        """The text behind a generation, without what the model wrote; empty without one, or where
        it is not known which characters its tokens come from.
        """
        if self.generation is None:
            return ""
        read = self.stacks[self.generation.stack].query
        behind = [span[0] for span in (read.offsets or ())[self.generation.prompt :] if span]
        return "".join(read.texts)[: min(behind)] if behind else ""

    @property
    def _sides(self) -> Iterator[Tokens]:
        return (side for stack in self.stacks.values() for side in (stack.query, stack.key))

    def _check_pictures(self) -> None:
        for number, picture in enumerate(self.pictures):
            is_rgb = picture.ndim == 3 and picture.shape[2] == 3
            if picture.dtype != np.uint8 or not is_rgb or not picture.size:
                raise RecordError(
                    f"Picture {number} must be uint8 with the axes [height width 3], not "
                    f"{picture.dtype} {list(picture.shape)}"
                )
        for side in self._sides if self.pictures else ():
            # Beside the patches there may be a side of text alone, as in cross-attention.
            if len(side.grids) not in (0, len(self.pictures)):
                raise RecordError(
                    f"{len(self.pictures)} pictures were given for tokens of {len(side.grids)}; "
                    "give one for each grid"
                )

    @property
    def summary(self) -> str:
        """One line: the model, the size of every stack, how much the model wrote itself, and what
        was changed.
        """
        parts = [
            f"{'' if name == 'self' else name + ' '}{_sized(stack)}, {_counted(stack)}"
            for name, stack in self.stacks.items()
        ]
        if self.unseen:
            parts.append(f"attention of {self.unseen} not seen")
        if self.generation is not None:
            parts.append(f"{len(self.generation)} tokens generated")
        parts += filter(None, [self.changed])
        return f"{self.model.name or 'arrays'}: {'; '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Record of {self.summary}>"


def _sized(stack: Stack) -> str:
    if stack.is_whole:
        return f"{len(stack)} layers x {stack._counted_heads}"
    held = [f"{layer}-{head}" for layer, head in stack.held_heads]
    named = ", ".join(held[:NAMED]) + (" ..." if len(held) > NAMED else "")
    return f"{len(held)} chosen head{'s' * (len(held) > 1)} ({named})"


def _counted(stack: Stack) -> str:
    sides = stack.query, stack.key
    query, key = ("numbered positions" if side.numbered else "tokens" for side in sides)
    queries, keys = map(len, sides)
    if stack.query == stack.key:
        return f"{queries} {query}"
    return f"{queries} x {keys} {key}" if query == key else f"{queries} {query} x {keys} {key}"


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
        if not reads or any(not is_whole(count, 1) for count in reads):
            raise RecordError(
                f"Generation: reads must be whole numbers from 1 on, one for each pass, not {reads}"
            )
        if not len(self):
            raise RecordError("Generation: no token was written; a generation has at least one")
        if not is_whole(self.prompt, 1) or sum(reads) != self.prompt + len(self) - 1:
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
            if not is_whole(rank, 1):
                raise RecordError(f"Generation: the rank {rank!r} is none")

    def _offered_probabilities(self) -> list[float]:
        """Probabilities of all candidates, and the sum over those of each token: candidates exclude
        each other.
        """
        each = [[offered.probability for offered in of_token] for of_token in self.alternatives]
        return [value for of_token in each for value in (*of_token, math.fsum(of_token))]


def _short(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values[:8]))}{', ...' if len(values) > 8 else ''}]"
