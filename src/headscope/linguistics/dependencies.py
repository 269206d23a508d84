"""Heads of words read off attention, and off nothing but the position."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

OFFSETS = (-3, -2, -1, 1, 2)
"""Those of Clark et al. 2019, who go from -3 to 2; 0 would make a word its own head, which none
is.
"""
DIRECTIONS = ("dep->head", "head->dep")
"""Which word looks at the other: the dependent at its head (rows of the map), or the head at it
(columns).
"""
ALL, NO_PUNCT, NO_ROOT = "all", "all but punct", "all but punct and root"
SAME = ("det", "amod", "advmod", "ccomp", "xcomp", "cc", "conj", "mark", "aux", "nsubj", "cop")
"""Relations that have one name in both."""
NEAREST_STANFORD: Mapping[str, str] = {
    **dict(zip(SAME, SAME, strict=True)),
    "compound": "nn",
    "obj": "dobj",
    "aux:pass": "auxpass",
    "nmod:poss": "poss",
    "compound:prt": "prt",
    "nsubj:pass": "nsubjpass",
}
"""The Stanford relation (Penn Treebank) that is next to a universal one; ``prep`` and ``pobj`` have
no counterpart.
"""


def predicted_heads(
    maps: Float[np.ndarray, "head word other_word"],
) -> Int[np.ndarray, "direction head word"]:
    """The head that attention predicts for each word: the other word with the largest value.

    ``argmax_{j != i} A[i, j]`` where the dependent looks, ``argmax_{j != i} A[j, i]`` where the
    head does.

    Source: Clark et al. 2019, section 4.2.

    Args:
        maps: attention between the words of a sentence, special tokens cut off.

    Returns:
        Numbers of words from 0, of equal ones the first, for both of `DIRECTIONS`; -1 where a word
        looks at no other.

    Example:
        >>> predicted_heads(
        ...     np.array([[[0.9, 0.1, 0.0], [0.3, 0.1, 0.6], [0.2, 0.8, 0.0]]])
        ... ).tolist()
        [[[1, 2, 1]], [[1, 2, 1]]]
    """
    maps = np.asarray(maps, np.float64)
    heads, size, _ = maps.shape
    if size < 2:
        return np.full((2, heads, size), -1)
    both = np.stack([maps, maps.transpose(0, 2, 1)])
    # Below every weight: a word that looks most at itself gets the word it looks at next.
    both[:, :, np.arange(size), np.arange(size)] = -1
    return np.where(both.max(axis=-1) > 0, both.argmax(axis=-1), -1)


def offset_heads(size: int, offset: int) -> Int[np.ndarray, " word"]:
    """The head of each word if it were always at one offset: its number from 1, 0 for the root.

    ``clamp(i + o + 1, 0, n)`` for the i-th word from 0: so the ends may hit the root, and the last
    word itself.

    Source: Clark et al. 2019, released code.

    Example:
        >>> offset_heads(4, -2).tolist(), offset_heads(4, 1).tolist()
        ([0, 0, 1, 2], [2, 3, 4, 4])
    """
    return np.clip(np.arange(size) + offset + 1, 0, size)


def groups_of(
    relations: np.ndarray, *, universal: bool = False
) -> dict[str, Int[np.ndarray, " member"]]:
    """Which words belong to `ALL`, `NO_PUNCT`, `NO_ROOT` and each relation, the most frequent
    first.
    """
    # Punctuation is left out by its universal name, also where subtypes are kept apart.
    whole = np.array([universal_name(name) for name in relations.tolist()])
    names = whole if universal else relations
    groups = {
        ALL: np.arange(len(names)),
        NO_PUNCT: np.flatnonzero(whole != "punct"),
        NO_ROOT: np.flatnonzero((whole != "punct") & (whole != "root")),
    }
    # np.unique sorts the names, so equally frequent relations stand in order of the alphabet.
    kinds, counts = np.unique(names, return_counts=True)
    for index in np.argsort(-counts, kind="stable"):
        groups[str(kinds[index])] = np.flatnonzero(names == kinds[index])
    return {name: words for name, words in groups.items() if len(words)}


def universal_name(relation: str) -> str:
    """The relation without its subtype."""
    return relation.partition(":")[0]
