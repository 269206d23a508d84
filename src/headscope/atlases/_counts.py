"""What an atlas counts of a text: arrays that add up, and what is kept of a sample of texts.

The attention of each head, and uniform attention in each layer, is added up in whole numbers: by
distance, by class of tokens, by position from the ends of the text, and by words of query and key.

Texts have millions of different pairs of words. The hash of a pair gives it one cell in each of
three rows, and its weight is added to all three, where other pairs add theirs, too. The smallest of
its three sums is then never too small, and too large only by the weight of pairs that share its
cells in all three rows (Cormode and Muthukrishnan 2005, the count-min sketch).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from headscope.corpus import EXAMPLE, WHOLE, Counts, key_of
from headscope.errors import RecordError
from headscope.evidence import uniform_map
from headscope.measures import token_class
from headscope.record import Tokens

ATLAS = f"{WHOLE}atlas/"
"""Begins the names of what `text_counts` counts."""
STEP = 2.0**30
"""Steps between 0 and 1 of the weights that are added up: int64 then holds 2^33 queries."""
ROOT_STEP = 2.0**18
"""Steps between 0 and 1 of the roots of weights. Sums of their products over 2^17 queries are whole
numbers that float64 holds exactly, so that no sum is rounded.
"""
BINS = 128
"""Number of bins for the scores of a head, from 0 to 1."""
CLASSES = ("first", "special", "punctuation", "number", "word", "rest of a word")
"""The classes of tokens; each token has one: the first of the text, another special token,
punctuation, a number, the beginning of a word, or a later piece of one.
"""
RELATIONS = ("itself", "previous", "next", "same word", "own word")
"""Relations of a key to a query: the token itself, a neighbour, the same word at another position,
or another piece of the query's word. A key may have several of them.
"""
NEAR = 8
"""Largest offset that has a bin of its own."""
FAR = (8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Beyond `NEAR`, bins end at each of these offsets; the last bin has no end."""
SIDE = 12
"""Number of tokens at each end of a text that a mean map shows."""
LINKS = 24
"""Number of the strongest links that are kept for each head and text of the sample."""
WORD_LINKS = 16
"""Number of the strongest links without special tokens that are kept, too."""
NO_LINK = -1
"""Fills the entries of missing links, where a text has fewer."""
ROWS = 3
"""Of the sketch of pairs."""
MOST_WIDTH, MOST_BYTES = 4096, 2**25
"""Largest number of cells in a row, and of bytes of the sketches of all heads: 32 MiB."""
MIXES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd numbers that spread bits: of the golden ratio, of xxHash, and of SplitMix64."""
BITS_OF_ROW = 21
"""Each row uses its own bits of a hash of 64 bits."""


def text_counts(
    tokens: Tokens,
    *,
    weights: Float[np.ndarray, "head query key"],
    visible: Sequence[Bool[np.ndarray, "query key"]],
    scores: Float[np.ndarray, "score head"],
    lengths: Float[np.ndarray, "head key"] | None = None,
) -> Counts:
    """What is counted of one text, see `headscope.corpus.Sums`.

    Args:
        tokens: of the text.
        weights: of all heads, layer after layer.
        visible: the keys that each query of a layer may look at.
        scores: of each head, NaN where it has none.
        lengths: of the vector that each head adds from each key, ``||f(x)||``; None without shares
            of norms.

    Raises:
        RecordError: where queries and keys are different tokens.
    """
    heads, queries, length = weights.shape
    if queries != length or length != len(tokens):
        raise RecordError(
            f"Expected attention from a text to itself, got weights of shape {weights.shape}; "
            "choose a stack of self-attention"
        )
    flat = weights.reshape(heads, -1)
    even = [uniform_map(each).reshape(1, -1) for each in visible]
    whole = np.rint(np.concatenate([flat, *even]) * STEP)
    # Computed as products in float64, which are exact in any order: whole numbers below 2^53.
    classes, count = class_of_tokens(tokens), len(CLASSES)
    related = related_pairs(tokens).reshape(len(RELATIONS), -1).T.astype(np.float64)
    ends = end_rows(length)
    is_end = (ends[:, None] >= 0) & (ends[None, :] >= 0)
    # Each pair has a cell of its own in the map, so nothing is written twice.
    cells = (ends[:, None] * 2 * SIDE + ends[None, :])[is_end]
    ends_map, seen = np.zeros((len(whole), 4 * SIDE * SIDE)), np.zeros(4 * SIDE * SIDE)
    ends_map[:, cells], seen[cells] = whole[:, is_end.reshape(-1)], 1
    of_pair = (classes[:, None] * count + classes[None, :]).reshape(-1)
    added = {
        "totals": np.array([1, length, length * length]),
        "distance": whole @ onto_bins(bin_of_pairs(length).reshape(-1), len(bin_names())),
        "classes": whole @ onto_bins(of_pair, count * count),
        "relations": whole @ related,
        "queries": np.bincount(classes, minlength=count),
        "map": ends_map,
        "map_texts": seen,
        "alike": _alike(weights),
        "spread": _spread(scores),
        "pairs": _sketched(tokens, whole),
    }
    if lengths is not None:
        # Where what a head adds comes from: for each query the share of each key in the sum of
        # ``weight * ||f(x)||`` (Kobayashi et al. 2020).
        parts = weights.astype(np.float64) * lengths[:, None, :]
        sums = parts.sum(axis=2, keepdims=True)
        shares = np.divide(parts, sums, out=np.zeros(parts.shape), where=sums > 0)
        steps = np.rint(shares * STEP)
        added["norm_keys"] = steps.sum(axis=1) @ onto_bins(classes, count)
        added["norm_relations"] = steps.reshape(heads, -1) @ related
    counts = {f"{ATLAS}{each}": numbers.astype(np.int64) for each, numbers in added.items()}
    example = _example(tokens, weights, scores)
    return counts | {f"{EXAMPLE}{each}": array for each, array in example.items()}


def _alike(weights: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head other_head"]:
    """Similarity of heads, summed over queries, in steps of 2^-30: for two rows the sum of the
    square roots of products, 1 where they are equal and 0 where they share no key (Bhattacharyya
    1943).
    """
    roots = np.rint(np.sqrt(weights.astype(np.float64)) * ROOT_STEP).reshape(len(weights), -1)
    # From steps of 2^-36 to the steps of all other sums.
    return np.rint(roots @ roots.T / 2.0**6)


def _spread(scores: Float[np.ndarray, "score head"]) -> Float[np.ndarray, "score head bin"]:
    """1 in the bin of each score; only zeros where a score is NaN."""
    bins = np.clip(np.floor(np.nan_to_num(scores) * BINS), 0, BINS - 1).astype(np.int64)
    spread = np.zeros((*scores.shape, BINS))
    np.put_along_axis(spread, bins[..., None], ~np.isnan(scores)[..., None], axis=2)
    return spread


def class_of_tokens(tokens: Tokens) -> Int[np.ndarray, " token"]:
    """The number in `CLASSES` of each token.

    Example:
        >>> tokens = Tokens(pieces=("[CLS]", "7", "straw", "##berries", ".", "[SEP]"))
        >>> class_of_tokens(tokens).tolist()
        [0, 3, 4, 5, 2, 1]
    """
    # From the most general class to the most specific one: later lines replace earlier ones.
    classes = np.full(len(tokens), CLASSES.index("word"))
    classes[np.array(tokens.continues, bool)] = CLASSES.index("rest of a word")
    is_number = [label.strip().isnumeric() for label in tokens.labels]
    classes[np.array(is_number, bool)] = CLASSES.index("number")
    classes[token_class(tokens, "punctuation")] = CLASSES.index("punctuation")
    classes[np.array(tokens.special, bool)] = CLASSES.index("special")
    classes[:1] = CLASSES.index("first")
    return classes


def related_pairs(tokens: Tokens) -> Bool[np.ndarray, "relation query key"]:
    """The pairs of query and key that have each of `RELATIONS`."""
    offset = np.arange(len(tokens))[None, :] - np.arange(len(tokens))[:, None]
    words = np.array([label.lower() for label in tokens.labels])
    ordinary = ~np.array(tokens.special, bool)
    among = ordinary[:, None] & ordinary[None, :] & (offset != 0)
    # The number of the word that a token belongs to: it grows at each token that begins one.
    of_word = np.cumsum(~np.array(tokens.continues, bool))
    same = (words[:, None] == words[None, :]) & among
    own = (of_word[:, None] == of_word[None, :]) & among
    return np.stack([offset == 0, offset == -1, offset == 1, same, own])


def names_of(tokens: Tokens) -> tuple[str, ...]:
    """The name of each token across texts: its label, marked where it continues a word and is no
    punctuation.
    """
    # One mark for all tokenizers, so that "s" in "cats" and the word "s" are counted apart.
    goes_on = np.array(tokens.continues, bool) & ~token_class(tokens, "punctuation")
    named = zip(tokens.labels, goes_on.tolist(), strict=True)
    return tuple(f"##{label}" if continues else label for label, continues in named)


def offset_bins() -> list[tuple[int, int | None]]:
    """First and last distance of each bin on one side, from 1; the last bin has no end.

    Example:
        >>> offset_bins()[:2], offset_bins()[8:10], offset_bins()[-1]
        ([(1, 1), (2, 2)], [(9, 12), (13, 16)], (513, None))
    """
    near: list[tuple[int, int | None]] = [(distance, distance) for distance in range(1, NEAR + 1)]
    far = [(low + 1, high) for low, high in pairwise(FAR)]
    return [*near, *far, (FAR[-1] + 1, None)]


def bin_names() -> list[str]:
    """Names of all bins, from far before the query to far after it.

    Example:
        >>> bin_names()[0], bin_names()[len(bin_names()) // 2]
        ('513 or more before', 'itself')
    """
    names = []
    for low, high in offset_bins():
        if high is None:
            names.append(f"{low} or more")
        else:
            names.append(str(low) if low == high else f"{low} to {high}")
    before = [f"{name} before" for name in reversed(names)]
    return [*before, "itself", *(f"{name} after" for name in names)]


@lru_cache(maxsize=256)
def bin_of_pairs(length: int) -> Int[np.ndarray, "query key"]:
    """The bin of the offset from each query to each key."""
    firsts = np.array([low for low, _ in offset_bins()])
    offset = np.arange(length)[None, :] - np.arange(length)[:, None]
    side = np.searchsorted(firsts, np.abs(offset), side="right")
    return len(firsts) + np.sign(offset) * side


def end_rows(length: int) -> Int[np.ndarray, " token"]:
    """The row of each token in a map of the ends of texts; -1 for those in the middle.

    The first half of a text counts from its beginning, the other from its end, so that the first
    token is always in row 0 and the last one in the last row.

    Example:
        >>> end_rows(5).tolist()
        [0, 1, 2, 22, 23]
    """
    tokens = np.arange(length)
    from_end = length - 1 - tokens
    rows = np.where(tokens <= from_end, tokens, 2 * SIDE - 1 - from_end)
    return np.where(np.minimum(tokens, from_end) < SIDE, rows, -1)


def onto_bins(bins: Int[np.ndarray, " pair"], count: int) -> Float[np.ndarray, "pair bin"]:
    """The matrix that adds up flat maps by bin, in a product."""
    onto = np.zeros((len(bins), count))
    onto[np.arange(len(bins)), bins] = 1.0
    return onto


def width_for(maps: int) -> int:
    """Number of cells in a row of the sketch of so many maps: a power of two.

    Example:
        >>> width_for(72), width_for(1024)
        (4096, 1024)
    """
    width = MOST_WIDTH
    while width > 64 and maps * ROWS * width * 8 > MOST_BYTES:
        width //= 2
    return width


@lru_cache(maxsize=2**17)
def _key_of_word(word: str) -> int:
    return key_of("word", word)


def pair_hashes(
    queries: Sequence[str], keys: Sequence[str], *, crossed: bool = False
) -> UInt64[np.ndarray, "..."]:
    """The hash of each pair of words, the same on every machine.

    Args:
        queries: the words that attend.
        keys: the words that are attended to.
        crossed: whether every query is paired with every key.
    """
    one, other = (np.array(list(map(_key_of_word, each)), np.uint64) for each in (queries, keys))
    one = one[:, None] if crossed else one
    first, second, *finish = (np.uint64(mix) for mix in MIXES)
    # Rotated, so that a pair and its reverse have different hashes.
    turned = other * second
    turned = (turned << np.uint64(31)) | (turned >> np.uint64(33))
    hashes = (one * first) ^ turned
    for shift, mix in zip((30, 27), finish, strict=True):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * mix
    return hashes ^ (hashes >> np.uint64(31))


def cells_of(hashes: UInt64[np.ndarray, " pair"], width: int) -> Int[np.ndarray, "row pair"]:
    """The index of each pair's cell in every row of the sketch."""
    shifts = np.array([BITS_OF_ROW * row for row in range(ROWS)], np.uint64)
    # The lowest bits are the remainder, because the number of cells is a power of two.
    return ((hashes >> shifts[:, None]) & np.uint64(width - 1)).astype(np.int64)


def _sketched(
    tokens: Tokens, whole: Float[np.ndarray, "map pair"]
) -> Int[np.ndarray, "map row cell"]:
    """The sketch of one text."""
    words = names_of(tokens)
    sketch = np.zeros((len(whole), ROWS, width_for(len(whole))), np.int64)
    hashes = pair_hashes(words, words, crossed=True).reshape(-1)
    # Several pairs may share a cell, and an assignment would keep only one of them: their sums are
    # computed first.
    for row, cells in enumerate(cells_of(hashes, sketch.shape[2])):
        order = np.argsort(cells, kind="stable")
        chosen, starts = np.unique(cells[order], return_index=True)
        sketch[:, row, chosen] = np.add.reduceat(whole[:, order], starts, axis=1)
    return sketch


def _example(
    tokens: Tokens,
    weights: Float[np.ndarray, "head query key"],
    scores: Float[np.ndarray, "score head"],
) -> dict[str, np.ndarray]:
    """What is kept of the text where it is in the sample: the strongest links of each head, with
    and without special tokens.
    """
    special = np.array(tokens.special, bool)
    ordinary = ~special[:, None] & ~special[None, :]
    overall = _strongest(weights, np.arange(ordinary.size), LINKS)
    of_words = _strongest(weights, np.flatnonzero(ordinary), WORD_LINKS)
    links, strengths = (np.concatenate(two, axis=1) for two in zip(overall, of_words, strict=True))
    words = names_of(tokens)
    # A sample of what texts say, whatever their order.
    key = key_of("atlas", *words)
    said = {"name": f"{key:016x}", "words": words, "special": np.flatnonzero(special).tolist()}
    return {
        "key": np.array([key], np.uint64).view(np.int64),
        "text": np.frombuffer(json.dumps(said).encode(), np.uint8),
        "links": links,
        "weights": strengths.astype(np.float16),
        "scores": scores.astype(np.float32),
    }


def _strongest(
    weights: Float[np.ndarray, "head query key"], pairs: Int[np.ndarray, " pair"], count: int
) -> tuple[Int[np.ndarray, "head link 2"], Float[np.ndarray, "head link"]]:
    """Ends and weights of the strongest links, the strongest first; at a tie the earlier query and
    key.
    """
    heads, _, keys = weights.shape
    links = np.full((heads, count, 2), NO_LINK, np.int32)
    strengths = np.zeros((heads, count), weights.dtype)
    flat = weights.reshape(heads, -1)[:, pairs]
    most = min(count, len(pairs))
    for head, row in enumerate(flat if most else ()):
        # A weight of 0 is a masked pair or no attention at all: not a link.
        least = np.partition(row, len(row) - most)[len(row) - most]
        strong = np.flatnonzero((row >= least) & (row > 0))
        chosen = strong[np.argsort(-row[strong], kind="stable")[:most]]
        links[head, : len(chosen)] = np.stack(np.divmod(pairs[chosen], keys), axis=-1)
        strengths[head, : len(chosen)] = row[chosen]
    return links, strengths
