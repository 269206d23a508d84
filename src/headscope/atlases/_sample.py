"""A uniform sample of the texts of a corpus, with the strongest links of every head on each.

The texts with the smallest hashes are kept. They do not depend on the order of the texts or on the
parts of a run, and the smallest hashes of two samples are the sample of both together.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.atlases._classes import names_of
from headscope.record import Tokens

SAMPLED = 128
"""Number of texts that are kept."""
LINKS = 24
"""Number of the strongest links that are kept for each head and text."""
WORD_LINKS = 16
"""Number of the strongest links without special tokens that are kept, too."""
NO_LINK = -1
"""Fills the entries of missing links, where a text has fewer."""


@dataclass(frozen=True, eq=False)
class SampledText:
    """One text of a sample.

    Args:
        key: its hash; texts are drawn by it.
        name: name of the text.
        words: its tokens, marked where one continues a word.
        special: True for special tokens.
        links: query and key of the strongest links of each head; `NO_LINK` where there are fewer.
        weights: weights of these links.
        scores: scores of each head.
    """

    key: int
    name: str
    words: tuple[str, ...]
    special: tuple[bool, ...]
    links: Int[np.ndarray, "head link 2"]
    weights: Float[np.ndarray, "head link"]
    scores: Float[np.ndarray, "score head"]


class TextSample:
    """The texts with the smallest hashes.

    Args:
        most: number of texts that are kept.
    """

    def __init__(self, most: int = SAMPLED) -> None:
        self.most: int = most
        self._texts: dict[int, SampledText] = {}
        # Negated hashes, because heapq gives the smallest entry and the largest hash is removed.
        self._largest: list[int] = []

    def takes(self, key: int) -> bool:
        """Whether a text of this hash would be kept."""
        if key in self._texts:
            return False
        return len(self._texts) < self.most or key < -self._largest[0]

    def add(self, text: SampledText) -> None:
        """Keep a text, if its hash is small enough."""
        if not self.takes(text.key):
            return
        self._texts[text.key] = text
        heapq.heappush(self._largest, -text.key)
        if len(self._texts) > self.most:
            del self._texts[-heapq.heappop(self._largest)]

    def texts(self) -> list[SampledText]:
        """The texts, smallest hash first."""
        return [self._texts[key] for key in sorted(self._texts)]

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The part of a file that JSON can hold."""
        documents = []
        for text in self.texts():
            special = [index for index, each in enumerate(text.special) if each]
            documents.append(
                {"key": text.key, "name": text.name, "words": list(text.words), "special": special}
            )
        return documents

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a file; empty where there is no text."""
        texts = self.texts()
        if not texts:
            return {}
        return {
            name: np.stack([getattr(text, name) for text in texts])
            for name in ("links", "weights", "scores")
        }

    @classmethod
    def of_kept(
        cls, documents: Sequence[Mapping[str, Any]], arrays: Mapping[str, np.ndarray]
    ) -> TextSample:
        """The sample that was written as `documents` and `arrays`."""
        sample = cls()
        for index, text in enumerate(documents):
            special = np.zeros(len(text["words"]), bool)
            special[list(text["special"])] = True
            sample.add(
                SampledText(
                    key=int(text["key"]),
                    name=str(text["name"]),
                    words=tuple(text["words"]),
                    special=tuple(special.tolist()),
                    **{name: arrays[name][index] for name in ("links", "weights", "scores")},
                )
            )
        return sample


def sampled(
    name: tuple[int, str],
    tokens: Tokens,
    weights: Float[np.ndarray, "head query key"],
    scores: Float[np.ndarray, "score head"],
) -> SampledText:
    """A text with this hash and name, and the strongest links of each head."""
    special = np.array(tokens.special, bool)
    ordinary = ~special[:, None] & ~special[None, :]
    overall = _strongest(weights, None, LINKS)
    of_words = _strongest(weights, ordinary, WORD_LINKS)
    links, strengths = (
        np.concatenate(both, axis=1) for both in zip(overall, of_words, strict=True)
    )
    return SampledText(
        key=name[0],
        name=name[1],
        words=names_of(tokens),
        special=tuple(special.tolist()),
        links=links,
        weights=strengths.astype(np.float16),
        scores=scores.astype(np.float32),
    )


def _strongest(
    weights: Float[np.ndarray, "head query key"],
    among: Bool[np.ndarray, "query key"] | None,
    count: int,
) -> tuple[Int[np.ndarray, "head link 2"], Float[np.ndarray, "head link"]]:
    """Ends and weights of the strongest links, the strongest first; at a tie the earlier query and
    key.
    """
    heads, _, keys = weights.shape
    flat = weights.reshape(heads, -1)
    pairs = np.arange(flat.shape[1]) if among is None else np.flatnonzero(among.reshape(-1))
    flat = flat[:, pairs]
    order = np.argsort(-flat, axis=1, kind="stable")[:, :count]
    strengths = np.take_along_axis(flat, order, axis=1)
    at = pairs[order]
    links = np.stack([at // keys, at % keys], axis=-1)
    # A weight of 0 is a masked pair or no attention at all: not a link.
    links = np.where(strengths[..., None] > 0, links, NO_LINK)
    missing = count - links.shape[1]
    links = np.pad(links, ((0, 0), (0, missing), (0, 0)), constant_values=NO_LINK)
    return links.astype(np.int32), np.pad(strengths, ((0, 0), (0, missing)))
