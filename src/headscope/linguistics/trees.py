"""Trees of words: the best one of scores, distances, depths, spanning trees, and points whose
squared distances are those of a tree.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError

NOWHERE = -1


def decode_tree(
    scores: Float[np.ndarray, "head word other_word"], root: int
) -> Int[np.ndarray, "head word"]:
    """The head of each word in the tree with the largest sum of scores that hangs from a given
    root.

    ``argmax_T sum_w S[w, T(w)]`` over all directed trees of the words, for each of the matrices
    (Chu and Liu 1965, Edmonds 1967). All cycles are contracted at once, round by round, for all
    matrices together.

    Source: Htut et al. 2019, section 3, who take the root of the gold tree and let an edge go from
    the word that looks to the word that is looked at: give the transposed attention for that,
    ``S[w, h] = A[h, w]``.

    Args:
        scores: ``S[word, head]`` of each matrix; the diagonal is not looked at, nor is the root's
            row.
        root: the word that has no head, from 0.

    Returns:
        The head of each word, from 0; -1 for the root. Of equal trees one is taken.

    Raises:
        RecordError: where matrices are not square or not finite, or the root does not exist.

    Example:
        >>> decode_tree(np.array([[[0.0, 0.9, 0.1], [0.8, 0.0, 0.2], [0.0, 0.0, 0.0]]]), 2).tolist()
        [[1, 2, -1]]
    """
    scores = np.asarray(scores, np.float64)
    size = scores.shape[-1]
    if scores.ndim != 3 or scores.shape[1] != size or not np.isfinite(scores).all():
        raise RecordError(
            "Expected finite scores of trees with the axes head, word, word, got the shape "
            f"{scores.shape}"
        )
    if not 0 <= root < size:
        raise RecordError(f"The root is word {root}; there are words 0 to {size - 1}")
    heads = np.full(scores.shape[:2], NOWHERE)
    if size == 1 or not len(scores):
        return heads
    # An edge goes from a head to a word: left[matrix, head, word] is what taking it costs less than
    # the best.
    left = scores.transpose(0, 2, 1).copy()
    groups = np.tile(np.arange(size), (len(scores), 1))
    at_work = np.arange(len(scores))
    rounds = []
    # A round leaves fewer groups in every matrix that has a cycle; the others are done and drop
    # out.
    while len(at_work):
        edges = _entering(left, groups, root)
        rounds.append((at_work, groups, edges))
        merged, circular = _merged(groups, edges[0], root)
        left, groups, at_work = left[circular], merged[circular], at_work[circular]
    # Backwards: the edge that enters a merged cycle says which of its words has its head outside;
    # the other words keep the edges that made the cycle.
    for numbers, members, edges in reversed(rounds):
        heads[numbers] = _expanded(heads[numbers], members, edges, root)
    return heads


def _entering(
    left: Float[np.ndarray, "matrix head word"], groups: Int[np.ndarray, "matrix word"], root: int
) -> Int[np.ndarray, "2 matrix group"]:
    """The best edge into each group, as head and word; its score is taken off all edges into that
    group, in place.
    """
    size = left.shape[-1]
    # An edge within a group would close a cycle, and that of a word to itself is one.
    left[groups[:, :, None] == groups[:, None, :]] = -np.inf
    heads_of_words = left.argmax(axis=1)
    best = np.take_along_axis(left, heads_of_words[:, None], axis=1)[:, 0]
    inside = groups[:, None, :] == np.arange(size)[:, None]
    of_groups = np.where(inside, best[:, None, :], -np.inf)
    words = of_groups.argmax(axis=-1)
    most = np.take_along_axis(best, words, axis=1)
    heads = np.take_along_axis(heads_of_words, words, axis=1)
    here = inside.any(axis=-1)
    is_root = groups[:, root : root + 1] == np.arange(size)
    most = np.where(here & ~is_root, most, 0.0)
    # Edmonds: an edge into a cycle is worth what it brings beyond the edge that it would replace.
    left -= np.take_along_axis(most, groups, axis=1)[:, None, :]
    return np.stack([heads, words])


def _merged(
    groups: Int[np.ndarray, "matrix word"], heads: Int[np.ndarray, "matrix group"], root: int
) -> tuple[Int[np.ndarray, "matrix word"], Bool[np.ndarray, " matrix"]]:
    """Groups after every cycle became one, and which matrices had any."""
    size = groups.shape[1]
    numbers = np.arange(size)
    above = np.take_along_axis(groups, heads, axis=1)
    above = np.where(groups[:, root : root + 1] == numbers, numbers, above)
    lowest, far = np.minimum(numbers, above), above
    # Each round doubles how many steps `far` has gone; `lowest` is the smallest group on the way,
    # which is one and the same for all groups of a cycle and so becomes its name.
    for _ in range(int(size).bit_length()):
        lowest = np.minimum(lowest, np.take_along_axis(lowest, far, axis=1))
        far = np.take_along_axis(far, far, axis=1)
    # After as many steps as there are groups, those in cycles are where some group arrived.
    reached = np.zeros(groups.shape, bool)
    np.put_along_axis(reached, np.take_along_axis(far, groups, axis=1), True, axis=1)
    in_cycle = reached & (groups[:, root : root + 1] != numbers)
    renamed = np.where(in_cycle, lowest, numbers)
    return np.take_along_axis(renamed, groups, axis=1), in_cycle.any(axis=1)


def _expanded(
    heads: Int[np.ndarray, "matrix word"],
    groups: Int[np.ndarray, "matrix word"],
    edges: Int[np.ndarray, "2 matrix group"],
    root: int,
) -> Int[np.ndarray, "matrix word"]:
    """Heads, with one more for every group that no edge enters so far."""
    numbers = np.arange(groups.shape[1])
    inside = groups[:, None, :] == numbers[:, None]
    entered = (inside & (heads != NOWHERE)[:, None, :]).any(axis=-1)
    wanted = inside.any(axis=-1) & ~entered & (groups[:, root : root + 1] != numbers)
    matrix, group = np.nonzero(wanted)
    new_heads, words = edges[:, matrix, group]
    heads = heads.copy()
    heads[matrix, words] = new_heads
    return heads


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
