"""The heads that attention predicts for the words of many sentences, and the true ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.linguistics import OFFSETS, Sentence, decode_tree, offset_heads, predicted_heads
from headscope.linguistics.dependencies import groups_of
from headscope.studies.shared._held_out import DocumentHits

SCORES = ("max", "max undirected", "tree", "tree undirected")
"""How heads are read: the largest value (Clark), the best tree (Htut); undirected, either end may
name the other.
"""
DECODINGS = ("max", "tree")
NO_TREE = -2


@dataclass(frozen=True)
class SentenceHeads:
    """One sentence: what is true, and what every head says.

    Args:
        relations: of each word.
        heads: of each word from 0; -1 for the root.
        predicted: of each word from 0 by the map of each head; negative for none.
        document: that it is of; empty where nobody says.
    """

    relations: tuple[str, ...]
    heads: Int[np.ndarray, " word"]
    predicted: Int[np.ndarray, "decoding direction head word"]
    document: str = ""


def read_heads(
    sentence: Sentence, maps: Float[np.ndarray, "head word word"], *, trees: bool
) -> SentenceHeads:
    """What all heads predict for one sentence, by their maps from word to word."""
    largest = predicted_heads(maps)
    both = np.concatenate([maps, maps.transpose(0, 2, 1)])
    decoded = np.full(largest.shape, NO_TREE)
    if trees:
        decoded = decode_tree(both, sentence.root).reshape(largest.shape)
    # 16 bits: predictions of all heads for all words of a treebank are kept until the end.
    gold = np.array(sentence.heads, np.int16) - 1
    return SentenceHeads(
        sentence.relations, gold, np.stack([largest, decoded]).astype(np.int16), sentence.document
    )


@dataclass(frozen=True, eq=False)
class AllSentences:
    """All words of all sentences in one row; made once, when counting is done.

    Args:
        sentences: in the order of their names.
        universal: whether subtypes are left off.
    """

    sentences: tuple[SentenceHeads, ...]
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
    def document_of_sentence(self) -> Int[np.ndarray, " sentence"]:
        """Which document each sentence is of; one that nobody says is a document of its own."""
        names = [each.document or ("", index) for index, each in enumerate(self.sentences)]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([numbers[name] for name in names])

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.document_of_sentence.max()) + 1

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
            [
                np.concatenate([offset_heads(size, each) for size in self.sizes.tolist()]) - 1
                for each in OFFSETS
            ]
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

    def by_document(
        self, hits: Bool[np.ndarray, "choice word"], words: Int[np.ndarray, " member"]
    ) -> Float[np.ndarray, "choice document"]:
        """How many of some words are hit in each document."""
        document = self.document_of_sentence[self.sentence_of[words]]
        order = np.argsort(document, kind="stable")
        there, starts = np.unique(document[order], return_index=True)
        # Words of one document side by side, so that reduceat sums each document at once.
        counts = np.zeros((len(hits), self.documents))
        if len(words):
            counts[:, there] = np.add.reduceat(
                hits[:, words[order]], starts, axis=1, dtype=np.int64
            )
        return counts

    def _right(
        self, predicted: Int[np.ndarray, "*axes word"], undirected: bool
    ) -> Bool[np.ndarray, "*axes word"]:
        right = predicted == self.gold
        # Undirected, a head is right as well where it names the word for the head of its head.
        if undirected:
            starts = np.cumsum(self.sizes) - self.sizes
            own = np.arange(len(self.gold)) - starts[self.sentence_of]
            above = np.maximum(self.gold, 0) + starts[self.sentence_of]
            right |= predicted[..., above] == own
        return right


def corpus_of(sentences: Iterable[SentenceHeads], *, universal: bool) -> AllSentences:
    """The words of some sentences."""
    return AllSentences(tuple(sentences), universal)


def asked_of(
    corpus: AllSentences, hits: tuple[np.ndarray, np.ndarray], words: np.ndarray
) -> DocumentHits:
    """What heads, by direction, and offsets get right of some words in each document."""
    of_heads, of_offsets = hits
    every = np.ones((1, len(corpus.gold)), bool)
    return DocumentHits(
        wholes=corpus.by_document(every, words)[0],
        hits=corpus.by_document(of_heads.reshape(-1, of_heads.shape[-1]), words),
        baselines=corpus.by_document(of_offsets, words),
    )
