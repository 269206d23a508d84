"""What probes learn from: sentences of a treebank with what a model made of them, and batches that
are made when they are asked for, so that memory does not grow with the sentences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.errors import TextError
from headscope.linguistics import Sentence
from headscope.record import Array, array_field, held, part_of
from headscope.storage import BoundedArrays

HELD = 2**29
"""Bytes of what sentences are read as that are held, and of batches: what is more stays in files,
and is made anew in each epoch.
"""

Made = TypeVar("Made")


class Room:
    """Bytes that several may hold together: `HELD` of them."""

    def __init__(self) -> None:
        self._left = HELD

    def takes(self, size: int) -> bool:
        """Whether there is room for so many bytes, which are then taken."""
        if size > self._left:
            return False
        self._left -= size
        return True


def bounded_arrays() -> BoundedArrays:
    """A context that holds as many bytes of arrays, and puts the others into a file."""
    return BoundedArrays(HELD)


class LazySequence(Sequence[Made]):
    """A sequence whose entries are made when they are asked for.

    Args:
        count: how many there are.
        make: makes one of its number; the same at any time.
        room: for tensors of entries that are held once they are made. Those that are made first
            stay: where every entry is asked for once an epoch, that saves as many as any other
            choice.
    """

    def __init__(self, count: int, make: Callable[[int], Made], room: Room | None = None) -> None:
        self._count, self._make, self._room = count, make, room
        self._held: dict[int, Made] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Made: ...
    @overload
    def __getitem__(self, number: slice) -> LazySequence[Made]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return self.of(range(self._count)[number])
        if not -self._count <= number < self._count:
            raise IndexError(number)
        number %= self._count
        if number in self._held:
            return self._held[number]
        made = self._make(number)
        if self._room is not None and self._room.takes(_bytes_of(made)):
            self._held[number] = made
        return made

    def of(self, numbers: Sequence[int]) -> LazySequence[Made]:
        """Those of some numbers."""
        return LazySequence(len(numbers), lambda at: self[numbers[at]])


def _bytes_of(made: Any) -> int:
    """Of the tensors of a batch."""
    parts = made if isinstance(made, tuple) else vars(made).values()
    return sum(part.nbytes for part in parts if isinstance(part, Tensor))


ARRAYS = ("maps", "ends", "states", "vectors")
"""What a model made of a sentence, of which there is what a probe asks for."""
AT_ONCE = 4096
"""Spans whose numbers are lists at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeItem:
    """A sentence and what a model made of it; only what a probe asks for is there.

    Arrays may be in a file: they are then read each time that they are asked for.

    Args:
        sentence: with its tree.
        maps: attention between words, of all heads of all layers: axes map, word, word.
        ends: attention of the first and last special token to words, and of words to these: axes
            map, direction, end, word; zeros where there is no such token.
        states: hidden states of pieces, layer 0 the embeddings: axes layer, piece, feature.
        pieces: which of them each word is made of.
        vectors: of words, that no sentence changes: axes word, feature.
    """

    sentence: Sentence
    maps: Array | None = array_field()
    ends: Array | None = array_field()
    states: Array | None = array_field()
    pieces: tuple[tuple[int, ...], ...] = ()
    vectors: Array | None = array_field()

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

    def word_states(self, layer: int) -> Float[np.ndarray, "word feature"]:
        """The mean over each word's pieces, of one layer; no other is read from a file."""
        states = part_of(self._states, layer)
        return np.stack(
            [states[list(pieces)].mean(axis=0, dtype=np.float32) for pieces in self.pieces]
        )

    @property
    def states_shape(self) -> tuple[int, ...]:
        """Sizes of `states`, which are not read."""
        return self._states.shape

    @property
    def _states(self) -> Any:
        states = held(self, "states")
        if states is None:
            raise ValueError("hidden states were not read")
        return states

    def with_arrays(self, **arrays: Any) -> ProbeItem:
        """The same with other arrays, by name; the rest is not read from its file."""
        own = {name: held(self, name) for name in ARRAYS}
        return ProbeItem(sentence=self.sentence, pieces=self.pieces, **(own | arrays))


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

    items: Sequence[ProbeItem]
    twin: Sequence[ProbeItem] | None
    parts: SentenceSplit

    @cached_property
    def sizes(self) -> Int[np.ndarray, " sentence"]:
        """Words of each sentence."""
        return np.array([len(item) for item in self.items])

    @property
    def sides(self) -> dict[str, Sequence[ProbeItem]]:
        """Whose items, by the name of the score."""
        return {"probe": self.items} | ({} if self.twin is None else {"random weights": self.twin})

    @property
    def documents(self) -> tuple[str | None, ...] | None:
        """The document of each sentence reported on; None where none has one."""
        documents = tuple(
            self.items[number].sentence.document or None for number in self.parts.test
        )
        return documents if any(documents) else None

    @property
    def test(self) -> Sequence[ProbeItem]:
        """The sentences reported on."""
        return LazySequence(len(self.parts.test), lambda at: self.items[self.parts.test[at]])

    @property
    def train(self) -> Sequence[ProbeItem]:
        """The sentences learnt from."""
        return LazySequence(len(self.parts.train), lambda at: self.items[self.parts.train[at]])


def span_types(items: Sequence[ProbeItem], at: Int[np.ndarray, "span place"]) -> Iterator[str]:
    """The words of spans in lower case, with a space between them.

    Made when they are asked for: strings take more memory than numbers.

    Args:
        items: the sentences.
        at: number of the sentence, and of one word or two.
    """
    last, forms = -1, ()
    for first in range(0, len(at), AT_ONCE):
        for number, *words in at[first : first + AT_ONCE].tolist():
            if number != last:
                last, forms = number, items[number].forms
            yield " ".join(forms[word] for word in words)


def hits_of(
    right: Bool[np.ndarray, " case"], number: Int[np.ndarray, " case"], data: ProbeData
) -> Float[np.ndarray, "sentence 2"]:
    """Of each sentence reported on, how many cases are right, and how many there are.

    Args:
        right: which are.
        number: of the sentence of each.
        data: says which sentences are reported on.
    """
    test, count = list(data.parts.test), len(data.items)
    hits = np.bincount(number, weights=right, minlength=count)[test]
    return np.stack([hits, np.bincount(number, minlength=count)[test].astype(np.float64)], axis=1)


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
    forms = [_digest(sentence) for sentence in sentences]
    groups = _together(sentences, forms)
    order = np.random.default_rng(seed).permutation(len(groups))
    divided = []
    seen: set[bytes] = set()
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


def _digest(sentence: Sentence) -> bytes:
    """Of its words in lower case, which take more memory."""
    words = json.dumps([word.lower() for word in sentence.words])
    return hashlib.blake2b(words.encode(), digest_size=16).digest()


def _together(sentences: Sequence[Sentence], forms: list[bytes]) -> list[list[int]]:
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
