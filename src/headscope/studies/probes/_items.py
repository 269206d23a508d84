"""What probes read: sentences of a treebank, with what a model made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import TextError
from headscope.linguistics import Sentence


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeItem:
    """A sentence and what a model made of it; only what a probe asks for is there.

    Args:
        sentence: with its tree.
        maps: attention between words, of all heads of all layers.
        ends: attention of the first and last special token to words, and of words to these: axes
            map, direction, end, word; zeros where there is no such token.
        states: hidden states of pieces, layer 0 the embeddings.
        pieces: which of them each word is made of.
        vectors: of words, that no sentence changes.
    """

    sentence: Sentence
    maps: Float[np.ndarray, "map word word"] | None = None
    ends: Float[np.ndarray, "map direction end word"] | None = None
    states: Float[np.ndarray, "layer piece feature"] | None = None
    pieces: tuple[tuple[int, ...], ...] = ()
    vectors: Float[np.ndarray, "word feature"] | None = None

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def forms(self) -> tuple[str, ...]:
        """The words in lower case: their types."""
        return tuple(word.lower() for word in self.sentence.words)

    @cached_property
    def heads(self) -> Int[np.ndarray, " word"]:
        """Number of each word's head, from 0; -1 at the root."""
        return np.array(self.sentence.heads, int) - 1

    @property
    def relations(self) -> tuple[str, ...]:
        """Universal relation of each word, without subtype."""
        return tuple(relation.partition(":")[0] for relation in self.sentence.relations)

    @cached_property
    def counted(self) -> Bool[np.ndarray, " word"]:
        """The words that are no punctuation."""
        return np.array([relation != "punct" for relation in self.relations])

    @property
    def states_of_words(self) -> Float[np.ndarray, "layer word feature"]:
        """The mean over each word's pieces."""
        if self.states is None:
            raise ValueError("hidden states were not read")
        states = self.states
        return np.stack(
            [states[:, list(pieces)].mean(axis=1, dtype=np.float32) for pieces in self.pieces],
            axis=1,
        )


@dataclass(frozen=True)
class SentenceSplit:
    """Numbers of the sentences to learn from, to choose by, and to report on."""

    train: tuple[int, ...]
    aside: tuple[int, ...]
    test: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter((self.train, self.aside, self.test))


@dataclass(frozen=True)
class ProbeData:
    """The sentences read by a model and, where that is asked for, by its twin with random
    weights.
    """

    items: tuple[ProbeItem, ...]
    twin: tuple[ProbeItem, ...] | None
    parts: SentenceSplit

    @property
    def sides(self) -> dict[str, tuple[ProbeItem, ...]]:
        """Whose items, by the name of the score."""
        return {"probe": self.items} | ({} if self.twin is None else {"random weights": self.twin})

    @property
    def documents(self) -> tuple[str | None, ...] | None:
        """The document of each sentence reported on; None where none has one."""
        documents = tuple(item.sentence.document or None for item in self.test)
        return documents if any(documents) else None

    @property
    def test(self) -> list[ProbeItem]:
        """The sentences reported on."""
        return [self.items[number] for number in self.parts.test]

    @property
    def train(self) -> list[ProbeItem]:
        """The sentences learnt from."""
        return [self.items[number] for number in self.parts.train]


def parts_of(
    sentences: Sequence[Sentence], shares: tuple[float, float, float], seed: int
) -> SentenceSplit:
    """Draw which documents are learnt from, set aside and reported on; no document lies in two
    parts.

    Sentences of one document stay together, and so do equal sentences that are of none. A sentence
    of which an equal one of another document lies in an earlier part is left out of the later ones:
    nothing is reported on that was learnt from.

    Args:
        sentences: to be divided.
        shares: of the sentences that each of the three parts is to have; they sum to 1.
        seed: of the draw.

    Raises:
        TextError: where a part would be empty.
    """
    forms = [tuple(word.lower() for word in sentence.words) for sentence in sentences]
    groups = _together(sentences, forms)
    order = np.random.default_rng(seed).permutation(len(groups))
    divided = []
    seen: set[tuple[str, ...]] = set()
    for part in np.split(order, _ends([len(groups[at]) for at in order], shares)):
        own = sorted(number for at in part for number in groups[at] if forms[number] not in seen)
        divided.append(tuple(own))
        seen.update(forms[number] for number in own)
    if not all(divided):
        raise TextError(
            f"{len(groups)} different documents or sentences are too few to be divided into "
            f"{', '.join(map('{:.0%}'.format, shares))}"
        )
    return SentenceSplit(*divided)


def _together(sentences: Sequence[Sentence], forms: list[tuple[str, ...]]) -> list[list[int]]:
    """Numbers of the sentences of each document; without documents equal sentences are one."""
    groups: dict[object, list[int]] = {}
    for number, (sentence, words) in enumerate(zip(sentences, forms, strict=True)):
        groups.setdefault(sentence.document or words, []).append(number)
    return list(groups.values())


def _ends(sizes: Sequence[int], shares: tuple[float, float, float]) -> Int[np.ndarray, " 2"]:
    """Where the first two parts end, in groups of so many sentences each."""
    # Documents differ in length: parts end where their share of sentences does. 1e-9 is for shares
    # that a sum of rounded numbers puts a little behind the sentence that completes them.
    done = np.cumsum(sizes)
    wanted = np.cumsum(shares)[:2] * sum(sizes)
    ends = np.searchsorted(done, wanted - 1e-9) + 1
    # A long document must not take the place of the parts after it: each part has one document at
    # least.
    ends = np.minimum(ends, [len(sizes) - 2, len(sizes) - 1])
    ends[1] = max(ends[1], ends[0] + 1)
    return ends
