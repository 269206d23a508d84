"""The best tree: maximum spanning trees of many heads at once."""

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
