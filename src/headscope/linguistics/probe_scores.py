"""How right a probe is, sentence by sentence: what was hit, and of how many."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.linguistics._probe_tree import spanning_tree
from headscope.measures import spearman

Hits = tuple[float, float]
"""The sum of what was hit, and how much there was to hit."""

LENGTHS = (5, 50)
"""The sentence lengths that rank correlations are averaged over, both included (Hewitt and Manning
2019).
"""


def attached(
    scores: Float[np.ndarray, "candidate word"],
    heads: Int[np.ndarray, " word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """How many words have their highest score at their head: the parts of the unlabelled attachment
    score (UAS).

    Source: Clark et al. 2019, section 5 (without punctuation).

    Args:
        scores: of every candidate for each word's head; the first candidate is the root, the others
            the words.
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words that count; by default all.

    Example:
        >>> attached(np.array([[1.0, 3.0], [0.0, 1.0], [2.0, 0.0]]), np.array([1, -1]))
        (2.0, 2.0)
    """
    # The root is candidate 0, and its dependent's head is -1: both are one off in the same way.
    right = scores.argmax(axis=0) == heads + 1
    counted = np.ones(len(heads), bool) if counted is None else counted
    return float((right & counted).sum()), float(counted.sum())


def edges_hit(
    distances: Float[np.ndarray, "word word"],
    gold: Float[np.ndarray, "word word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """How many edges of the gold tree are in that of the distances: the parts of UUAS.

    Both trees are minimum spanning trees of the words that count.

    Source: Hewitt and Manning 2019, section 3.2 (without punctuation).

    Args:
        distances: that a probe says.
        gold: of the tree.
        counted: the words that count; by default all.

    Example:
        >>> gold = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
        >>> edges_hit(gold[:, [0, 2, 1]][[0, 2, 1]], gold)
        (1.0, 2.0)
    """
    wanted = spanning_tree(gold, counted)
    return float(len(wanted & spanning_tree(distances, counted))), float(len(wanted))


def distance_ranks(
    distances: Float[np.ndarray, "word word"], gold: Float[np.ndarray, "word word"]
) -> Hits:
    """Sum over words of Spearman's rho of the distances to all words, and the number of words: the
    parts of DSpr.

    DSpr is the mean over words of one sentence length, then over the lengths 5 to 50.

    Source: Hewitt and Manning 2019, section 3.2.

    Args:
        distances: that a probe says.
        gold: of the tree.

    Example:
        >>> gold = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
        >>> [round(part, 6) for part in distance_ranks(gold**2, gold)]
        [3.0, 3.0]
    """
    ranks = [spearman(row, wanted) for row, wanted in zip(distances, gold, strict=True)]
    return _known(np.array(ranks))


def depth_ranks(depths: Float[np.ndarray, " word"], gold: Float[np.ndarray, " word"]) -> Hits:
    """Spearman's rho of depths, and 1: the parts of NSpr; both 0 where all are alike.

    Source: Hewitt and Manning 2019, section 3.2.

    Args:
        depths: that a probe says.
        gold: of the tree.

    Example:
        >>> [
        ...     round(part, 6)
        ...     for part in depth_ranks(np.array([0.0, 3.0, 1.0]), np.array([0.0, 2.0, 1.0]))
        ... ]
        [1.0, 1.0]
    """
    return _known(np.array([spearman(depths, gold)]))


def root_hit(
    depths: Float[np.ndarray, " word"],
    heads: Int[np.ndarray, " word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """Whether the least deep word is the root, and 1.

    Source: Hewitt and Manning 2019, section 3.2; the word is sought among those that count, as in
    their release.

    Args:
        depths: that a probe says.
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words that count; by default all.

    Example:
        >>> root_hit(np.array([0.5, 0.25, 1.0]), np.array([1, -1, 1]))
        (1.0, 1.0)
    """
    sought = depths if counted is None or not counted.any() else np.where(counted, depths, np.inf)
    return float(heads[int(sought.argmin())] < 0), 1.0


def centre_of_gravity(weights: Float[np.ndarray, " layer"]) -> float:
    """The mean layer that a scalar mix looks at, ``sum_l l s_l`` with layers numbered from 0, the
    embeddings.

    Source: Tenney et al. 2019 (BERT Rediscovers the Classical NLP Pipeline), equation 2.

    Args:
        weights: of the layers; they sum to 1.

    Example:
        >>> centre_of_gravity(np.array([0.25, 0.25, 0.5]))
        1.25
    """
    return float(np.arange(len(weights)) @ weights)


def expected_layer(scores: Float[np.ndarray, " layer"]) -> float:
    """The layer at which a label is found, ``sum_l l D_l / sum_l D_l`` over l >= 1, ``D_l = score_l
    - score_(l-1)``.

    Source: Tenney et al. 2019 (BERT Rediscovers the Classical NLP Pipeline), equation 4. Scores
    that fall make some ``D_l`` negative, so that it may leave the range of layers; NaN where the
    last score is the first.

    Args:
        scores: of probes that may look at the layers 0 to l.

    Example:
        >>> expected_layer(np.array([0.5, 0.75, 1.0]))
        1.5
    """
    gains = np.diff(scores)
    if not gains.sum():
        return float("nan")
    layers = np.arange(1, len(scores))
    return float(layers @ gains / gains.sum())


def _known(values: np.ndarray) -> Hits:
    # Spearman's rho is NaN where all values of one side are equal; such a row is not counted.
    there = values[~np.isnan(values)]
    return float(there.sum()), float(len(there))
