"""The heads that attention predicts for the words of many sentences, beside the true ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.linguistics import OFFSETS, Sentence, decode_tree, offset_heads, predicted_heads
from headscope.linguistics._dependencies import groups_of

SCORES = ("max", "max undirected", "tree", "tree undirected")
"""How heads are read: the largest value (Clark), the best tree (Htut); undirected, either end may name the other."""
DECODINGS = ("max", "tree")
NO_TREE = -2


@dataclass(frozen=True)
class Read:
    """One sentence: what is true, and what every head says.

    Args:
        relations: of each word.
        heads: of each word from 0; -1 for the root.
        predicted: of each word from 0 by the map of each head; negative for none.
    """

    relations: tuple[str, ...]
    heads: Int[np.ndarray, " word"]
    predicted: Int[np.ndarray, "decoding direction head word"]


def read_heads(sentence: Sentence, maps: Float[np.ndarray, "head word word"], *, trees: bool) -> Read:
    """What all heads predict for one sentence, by their maps from word to word."""
    largest = predicted_heads(maps)
    both = np.concatenate([maps, maps.transpose(0, 2, 1)])
    decoded = decode_tree(both, sentence.root).reshape(largest.shape) if trees else np.full(largest.shape, NO_TREE)
    gold = np.array(sentence.heads, np.int16) - 1
    return Read(sentence.relations, gold, np.stack([largest, decoded]).astype(np.int16))


@dataclass(frozen=True, eq=False)
class Corpus:
    """All words of all sentences in one row; made once, when counting is done.

    Args:
        sentences: in the order of their names.
        universal: whether subtypes are left off.
    """

    sentences: tuple[Read, ...]
    universal: bool

    @cached_property
    def sizes(self) -> Int[np.ndarray, " sentence"]:
        """Number of words."""
        return np.array([len(each.heads) for each in self.sentences])

    @cached_property
    def sentence_of(self) -> Int[np.ndarray, " word"]:
        """Which sentence a word is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def relations(self) -> np.ndarray:
        """Of each word."""
        return np.array([name for each in self.sentences for name in each.relations])

    @cached_property
    def groups(self) -> dict[str, Int[np.ndarray, " member"]]:
        """Words of every relation; see `headscope.linguistics.offset_baseline`."""
        return groups_of(self.relations, universal=self.universal)

    @cached_property
    def gold(self) -> Int[np.ndarray, " word"]:
        """The head of each word within its sentence; -1 for the root."""
        return np.concatenate([each.heads for each in self.sentences])

    @cached_property
    def predicted(self) -> Int[np.ndarray, "decoding direction head word"]:
        """Those that all heads predict."""
        return np.concatenate([each.predicted for each in self.sentences], axis=-1)

    @cached_property
    def offsets(self) -> Int[np.ndarray, "offset word"]:
        """Those that position alone predicts; -1 for the root."""
        return np.stack(
            [np.concatenate([offset_heads(size, each) for size in self.sizes.tolist()]) - 1 for each in OFFSETS]
        )

    def hits(self, score: str) -> Bool[np.ndarray, "direction head word"]:
        """Where a head is right; never for the root, which is no word that could be looked at."""
        decoding, _, undirected = score.partition(" ")
        predicted = self.predicted[DECODINGS.index(decoding)]
        return self._right(predicted, bool(undirected)) & (self.gold >= 0)

    def offset_hits(self, score: str) -> Bool[np.ndarray, "offset word"]:
        """Where an offset is right; it may hit the root, unless edges have no direction."""
        undirected = score.endswith("undirected")
        return self._right(self.offsets, undirected) & ((self.gold >= 0) | (not undirected))

    def by_sentence(self, hits: Bool[np.ndarray, " word"], words: Int[np.ndarray, " member"]) -> np.ndarray:
        """How many of some words are hit in each sentence."""
        return np.bincount(self.sentence_of[words], weights=hits[words], minlength=len(self.sizes))

    def _right(self, predicted: Int[np.ndarray, "*axes word"], undirected: bool) -> Bool[np.ndarray, "*axes word"]:
        found = predicted == self.gold
        if undirected:
            starts = np.cumsum(self.sizes) - self.sizes
            own = np.arange(len(self.gold)) - starts[self.sentence_of]
            above = np.maximum(self.gold, 0) + starts[self.sentence_of]
            found |= predicted[..., above] == own
        return found


def corpus_of(sentences: Iterable[Read], *, universal: bool) -> Corpus:
    """The words of some sentences."""
    return Corpus(tuple(sentences), universal)


@dataclass(frozen=True)
class Chosen:
    """The best head and offset of one relation, on all sentences and on one half; hits by sentence."""

    best: tuple[int, int]
    offset: int
    offset_share: float
    held_best: tuple[int, int] | None
    held_offset: int | None
    wholes: np.ndarray
    same: np.ndarray
    held: np.ndarray
    baseline: np.ndarray


def chosen_for(corpus: Corpus, hits: tuple[np.ndarray, np.ndarray], words: np.ndarray, choosing: np.ndarray) -> Chosen:
    """Choose for some words, among the hits of heads and of offsets."""
    of_heads, of_offsets = hits
    best, offset = _best(of_heads, words), int(of_offsets[:, words].sum(axis=-1).argmax())
    first = words[choosing[corpus.sentence_of[words]]]
    held_best, held_offset = None, None
    held = baseline = np.zeros(len(corpus.sizes))
    if len(first):
        held_best, held_offset = _best(of_heads, first), int(of_offsets[:, first].sum(axis=-1).argmax())
        held = corpus.by_sentence(of_heads[held_best], words)
        baseline = corpus.by_sentence(of_offsets[held_offset], words)
    return Chosen(
        best,
        offset,
        float(of_offsets[offset][words].mean()),
        held_best,
        held_offset,
        corpus.by_sentence(np.ones(len(corpus.gold), bool), words),
        corpus.by_sentence(of_heads[best], words),
        held,
        baseline,
    )


def _best(hits: np.ndarray, words: np.ndarray) -> tuple[int, int]:
    direction, head = np.unravel_index(hits[:, :, words].sum(axis=-1).argmax(), hits.shape[:2])
    return int(direction), int(head)
