"""Trees of words: distances, depths, spanning trees, and points whose squared distances are those
of a tree.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError

Edge = tuple[int, int]
"""Two words, the earlier first."""


def tree_depths(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " word"]:
    """How many edges lie between each word and the root.

    Args:
        heads: number of each word's head, from 0; -1 at the root.

    Raises:
        RecordError: where a head does not exist, or heads go round in a circle.

    Example:
        >>> tree_depths(np.array([1, -1, 1, 2])).tolist()
        [1, 0, 1, 2]
    """
    words = len(heads)
    if words and not (heads.min() >= -1 and heads.max() < words):
        raise RecordError(
            f"Heads are numbers of words from 0 to {words - 1}, or -1 at the root, not "
            f"{heads.tolist()}"
        )
    depths = np.zeros(words, int)
    at = heads.copy()
    # All words go up one step a round; one that is not at the root after `words` of them never is.
    for _ in range(words):
        on = at >= 0
        if not on.any():
            return depths
        depths[on] += 1
        at[on] = heads[at[on]]
    if (at >= 0).any():
        raise RecordError(
            f"The heads {heads.tolist()} go round in a circle; every word must lead to a root (-1)"
        )
    return depths


def tree_distances(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, "word word"]:
    """How many edges lie between every two words.

    Source: Hewitt and Manning 2019, section 2.

    Args:
        heads: number of each word's head, from 0; -1 at the root.

    Raises:
        RecordError: where the heads are no tree with one root.

    Example:
        >>> tree_distances(np.array([1, -1, 1, 2])).tolist()
        [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
    """
    depths, words = tree_depths(heads), len(heads)
    if (heads < 0).sum() != 1:
        raise RecordError(f"A tree has one root (-1), and the heads are {heads.tolist()}")
    distances = np.zeros((words, words), int)
    done: list[int] = []
    # By depth, no word that is done hangs below this one: every path to them leads through its
    # head. The root comes first, when nothing is done, so its head -1 is never read.
    for word in np.argsort(depths, kind="stable"):
        distances[word, done] = distances[done, word] = distances[heads[word], done] + 1
        done.append(int(word))
    return distances


def power2_embedding(heads: Int[np.ndarray, " word"]) -> Float[np.ndarray, "word feature"]:
    """Points whose squared Euclidean distances are the distances in the tree.

    ``f(root) = 0``, ``f(child) = f(parent) + e_child``, with a unit vector of its own for each
    word.

    Source: Coenen et al. 2019, theorem 1 (power-2 embedding); one dimension more than theirs, the
    root's.

    Args:
        heads: number of each word's head, from 0; -1 at the root.

    Raises:
        RecordError: where a head does not exist, or heads go round in a circle.

    Example:
        >>> power2_embedding(np.array([1, -1, 1])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    points = np.zeros((len(heads), len(heads)))
    for word in np.argsort(tree_depths(heads), kind="stable"):
        if heads[word] >= 0:
            points[word] = points[heads[word]]
            points[word, word] = 1
    return points


def spanning_tree(
    distances: Float[np.ndarray, "word word"], chosen: Bool[np.ndarray, " word"] | None = None
) -> frozenset[Edge]:
    """The edges that join all words with the least sum of distances (Kruskal).

    Of equal distances the earlier pair is taken, by its first word, then its second.

    Source: Hewitt and Manning 2019, section 3.2, where punctuation is left out.

    Args:
        distances: between every two words; symmetric.
        chosen: the words that are joined; by default all.

    Example:
        >>> sorted(spanning_tree(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]])))
        [(0, 1), (1, 2)]
    """
    rows, columns = np.triu_indices(len(distances), 1)
    if chosen is not None:
        kept = chosen[rows] & chosen[columns]
        rows, columns = rows[kept], columns[kept]
    # triu_indices lists pairs by their first word, then their second; a stable sort keeps that.
    order = np.argsort(distances[rows, columns], kind="stable")
    # Disjoint sets: words of one tree have one leader, found by going up and halving the way.
    leaders = list(range(len(distances)))

    def leader(word: int) -> int:
        while leaders[word] != word:
            leaders[word] = leaders[leaders[word]]
            word = leaders[word]
        return word

    edges = set()
    for first, second in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        one, other = leader(first), leader(second)
        if one != other:
            leaders[one] = other
            edges.add((first, second))
    return frozenset(edges)
