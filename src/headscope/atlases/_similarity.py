"""How similar the heads of two atlases are, by what both atlases hold of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from headscope.atlases._atlas import Atlas
from headscope.atlases._classes import CLASSES
from headscope.atlases._sample import LINKS, SampledText

PARTS = ("distance", "classes", "map", "scores", "links")
"""What is compared of two heads; their similarity is the mean of these parts."""
Similarity = Float[np.ndarray, "head other_head"]


def part_similarities(a: Atlas, b: Atlas) -> dict[str, Similarity]:
    """How similar each head of one atlas is to each head of another, by each of `PARTS`.

    Distances, classes of keys (query class by query class) and the rows of mean maps are
    distributions of attention: of two of them the sum of the square roots of products is taken, 1
    where they are equal and 0 where they share nothing (Bhattacharyya 1943). Of the scores of
    patterns it is 1 less their mean absolute difference. Links are the strongest between tokens
    that are not special, on the texts that both samples hold with the same tokens; the same sum is
    taken over links, mean over these texts. NaN where an atlas does not know a part.
    """
    return {
        "distance": _shared(_distances(a), _distances(b)),
        "classes": _shared(_class_rows(a), _class_rows(b), _query_classes(a, b)),
        "map": _shared(a.maps, b.maps),
        "scores": _alike_scores(scores_by_pattern(a), scores_by_pattern(b)),
        "links": _shared_links(a, b),
    }


def mean_similarity(parts: Mapping[str, Similarity]) -> Similarity:
    """The mean of the parts that are known of two heads; 0 where none is."""
    stacked = np.stack(list(parts.values()))
    known = ~np.isnan(stacked)
    count = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.zeros(total.shape), where=count > 0)


def one_to_one(similarity: Similarity) -> list[tuple[int, int]]:
    """Pairs of heads, none of them in two pairs, with the largest sum of similarities that can be
    had (the assignment problem: Kuhn 1955); as many pairs as the side with fewer heads has.

    Example:
        >>> one_to_one(np.array([[0.9, 0.8, 0.1], [0.8, 0.2, 0.1]]))
        [(0, 1), (1, 0)]
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def scores_by_pattern(atlas: Atlas) -> dict[str, Float[np.ndarray, " head"]]:
    """The score of each head in each pattern; NaN where no text shows it."""
    number = {cell: at for at, cell in enumerate(atlas.cells)}
    scores: dict[str, np.ndarray] = {}
    for label in atlas.heads.all_labels:
        of_pattern = scores.setdefault(label.pattern, np.full(len(number), np.nan))
        of_pattern[number[label.layer, label.head]] = label.score
    return scores


def _shared(
    one: Float[np.ndarray, "head row key"],
    other: Float[np.ndarray, "other_head row key"],
    weights: Float[np.ndarray, " row"] | None = None,
) -> Similarity:
    """Bhattacharyya coefficient of rows, mean over those that both sides know."""
    known = _known_rows(one) & _known_rows(other)
    if not known.any():
        return np.full((len(one), len(other)), np.nan)
    parts = np.ones(len(known)) if weights is None else weights
    parts = np.where(known, parts, 0.0)
    parts = parts / parts.sum()
    roots = []
    for given in (one, other):
        rows = np.nan_to_num(given)
        whole = rows.sum(axis=2, keepdims=True)
        shares = np.divide(rows, whole, out=np.zeros(rows.shape), where=whole > 0)
        # The root of a row's part on both sides is its part in the product.
        roots.append(np.sqrt(shares * parts[:, None]).reshape(len(rows), -1))
    return roots[0] @ roots[1].T


def _known_rows(rows: Float[np.ndarray, "head row key"]) -> Bool[np.ndarray, " row"]:
    return (np.nan_to_num(rows).sum(axis=2) > 0).any(axis=0)


def _distances(atlas: Atlas) -> Float[np.ndarray, "head row bin"]:
    """As one row for each head."""
    counts = atlas.counts["distance"][: len(atlas.cells), None, :]
    return counts.astype(np.float64)


def _class_rows(atlas: Atlas) -> Float[np.ndarray, "head query_class key_class"]:
    counts = atlas.counts["classes"][: len(atlas.cells)].astype(np.float64)
    return counts.reshape(-1, len(CLASSES), len(CLASSES))


def _query_classes(a: Atlas, b: Atlas) -> Float[np.ndarray, " query_class"]:
    """How frequent the classes are among queries, mean of both atlases."""
    shares = [each.counts["queries"] / max(1, each.tokens) for each in (a, b)]
    return (shares[0] + shares[1]) / 2


def _alike_scores(
    one: Mapping[str, Float[np.ndarray, " head"]],
    other: Mapping[str, Float[np.ndarray, " other_head"]],
) -> Similarity:
    heads = [len(next(iter(scores.values()), ())) for scores in (one, other)]
    total, count = np.zeros(heads), np.zeros(heads)
    for pattern in one.keys() & other.keys():
        apart = np.abs(one[pattern][:, None] - other[pattern][None, :])
        count += ~np.isnan(apart)
        total += np.nan_to_num(apart)
    return 1.0 - np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _shared_links(a: Atlas, b: Atlas) -> Similarity:
    """How much both heads link the same words on the same texts."""
    theirs = {text.name: text for text in b.sample}
    both = [(text, theirs[text.name]) for text in a.sample if text.name in theirs]
    both = [(one, other) for one, other in both if one.words == other.words]
    total = np.zeros((len(a.cells), len(b.cells)))
    for one, other in both:
        roots = [_link_roots(text) for text in (one, other)]
        total += roots[0] @ roots[1].T
    return total / len(both) if both else np.full(total.shape, np.nan)


def _link_roots(text: SampledText) -> Float[np.ndarray, "head pair"]:
    """The root of the share of each pair of tokens in a head's strongest links between words."""
    heads, length = len(text.links), len(text.words)
    links, weights = text.links[:, LINKS:], text.weights[:, LINKS:].astype(np.float64)
    # Links that are missing have a weight of 0, and may be added anywhere.
    pairs = np.maximum(links[..., 0], 0) * length + np.maximum(links[..., 1], 0)
    shares = np.zeros((heads, length * length))
    np.add.at(shares, (np.arange(heads)[:, None], pairs), weights)
    whole = shares.sum(axis=1, keepdims=True)
    return np.sqrt(np.divide(shares, whole, out=np.zeros(shares.shape), where=whole > 0))
