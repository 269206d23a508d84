"""What an atlas counts, against plain loops over one text after the other."""

import json
from collections import namedtuple

import numpy as np
import pytest

from headscope.atlases import (
    ATLAS,
    CLASSES,
    RELATIONS,
    SIDE,
    STEP,
    atlas_of,
    bin_names,
    text_counts,
)
from headscope.atlases._counts import bin_of_pairs, end_rows
from headscope.corpus import EXAMPLE, Sums
from headscope.errors import RecordError
from headscope.patterns import PATTERNS, Heads, Tally
from headscope.record import Tokens

CELLS = [(0, 0), (0, 1), (0, 2), (2, 0)]
WORDS = ["the", "cat", "straw", "##berry", ",", "7", "sat", "The"]


Text = namedtuple("Text", ("tokens", "weights", "visible"))


def texts_of(count, seed=0, longest=30):
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        length = int(rng.integers(3, longest))
        words = rng.choice(WORDS, length - 2).tolist()
        # A tokenizer continues no mark and no special token.
        for at, before in enumerate(["", *words[:-1]]):
            words[at] = "straw" if before in ("", ",") and words[at] == "##berry" else words[at]
        pieces = ("[CLS]", *words, "[SEP]")
        visible = np.ones((length, length), bool), np.tri(length, dtype=bool)
        weights = rng.dirichlet(np.full(length, 0.3), size=(4, length))
        weights[3] *= visible[1]
        weights = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
        texts.append(Text(Tokens(pieces=pieces), weights, visible))
    return texts


def scores_of(number):
    scores = np.random.default_rng(number).random((2, 4))
    scores[1, number % 4] = np.nan
    return scores


def add(sums, number, text, times=1):
    counts = text_counts(
        text.tokens,
        weights=text.weights,
        visible=text.visible,
        scores=scores_of(number),
    )
    facts = {"heads": [list(cell) for cell in CELLS], "scores": ["next", "confidence"]}
    for copy in range(times):
        name = f"text {number}, {copy}"
        sums.add(name, name, counts, length=len(text.tokens), facts=facts)


def counted(texts, times=1):
    sums = Sums()
    for number, text in enumerate(texts):
        add(sums, number, text, times)
    return sums


def written(sums):
    """As it comes back from a file."""
    document, arrays = sums.kept()
    return Sums.of_kept((json.loads(json.dumps(document)), arrays))


def count(sums, name):
    return sums.total(f"{ATLAS}{name}")


def test_distance_and_ends_are_those_of_plain_loops():
    texts = texts_of(12)
    sums = counted(texts)
    distance = np.zeros((4, len(bin_names())))
    rows, seen = np.zeros((4, 24, 24)), np.zeros((24, 24))
    for text in texts:
        length = len(text.tokens)
        for query in range(length):
            for key in range(length):
                offset = key - query
                name = "itself" if offset == 0 else f"{abs(offset)} "
                side = "before" if offset < 0 else "after"
                for low, high in ((9, 12), (13, 16), (17, 24), (25, 32)):
                    if low <= abs(offset) <= high:
                        name = f"{low} to {high} "
                at = bin_names().index(name if offset == 0 else name + side)
                distance[:, at] += text.weights[:, query, key]
                ends = []
                for token in (query, key):
                    is_first = token <= length - 1 - token
                    ends.append(token if is_first else 24 - (length - token))
                    if min(token, length - 1 - token) >= 12:
                        break
                else:
                    rows[:, *ends] += text.weights[:, query, key]
                    seen[*ends] += 1
    np.testing.assert_allclose((count(sums, "distance") / STEP)[:4], distance, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose((count(sums, "map") / STEP)[:4].reshape(rows.shape), rows, atol=1e-6)
    assert (count(sums, "map_texts").reshape(24, 24) == seen).all()
    # Every query has attention of 1, of heads and of even attention.
    np.testing.assert_allclose(
        (count(sums, "distance") / STEP).sum(axis=1),
        sum(len(text.tokens) for text in texts),
        rtol=1e-6,
    )


def test_classes_and_relations_are_those_of_plain_loops():
    texts = texts_of(6)
    sums = counted(texts, times=3)
    kinds = {"[CLS]": "first", "[SEP]": "special", ",": "punctuation", "7": "number"}
    kinds["##berry"] = "rest of a word"
    classes = np.zeros((6, len(CLASSES), len(CLASSES)))
    relations = np.zeros((6, len(RELATIONS)))
    for text in texts:
        pieces = text.tokens.pieces
        even = [visible / visible.sum(axis=1, keepdims=True) for visible in text.visible]
        maps = np.concatenate([text.weights, np.stack(even)])
        for query, one in enumerate(pieces):
            for key, other in enumerate(pieces):
                ends = [CLASSES.index(kinds.get(piece, "word")) for piece in (one, other)]
                classes[:, *ends] += maps[:, query, key]
                is_text = not {one, other} & {"[CLS]", "[SEP]"} and query != key
                label, another = one.lstrip("#").lower(), other.lstrip("#").lower()
                between = pieces[min(query, key) + 1 : max(query, key) + 1]
                is_own = is_text and all(piece == "##berry" for piece in between)
                holds = [
                    query == key,
                    key == query - 1,
                    key == query + 1,
                    is_text and label == another,
                    is_own,
                ]
                relations[:, np.flatnonzero(holds)] += maps[:, query, key, None]
    made = (count(sums, "classes") / STEP).reshape(classes.shape)
    np.testing.assert_allclose(made, 3 * classes, atol=1e-6)
    np.testing.assert_allclose((count(sums, "relations") / STEP), 3 * relations, atol=1e-6)


def test_heads_are_alike_as_their_rows_are():
    texts = texts_of(8)
    sums = counted(texts)
    wanted = np.zeros((4, 4))
    for text in texts:
        for one in range(4):
            for other in range(4):
                wanted[one, other] += np.sqrt(text.weights[one] * text.weights[other]).sum()
    np.testing.assert_allclose((count(sums, "alike") / STEP), wanted, atol=1e-3)
    assert np.diagonal(count(sums, "alike") / STEP) == pytest.approx(
        sum(len(text.tokens) for text in texts), abs=1e-2
    )


def test_pairs_are_at_least_what_they_are_and_hardly_more():
    texts = texts_of(40, seed=2)
    sums = counted(texts)
    exact = {}
    for text in texts:
        for query, one in enumerate(text.tokens.pieces):
            for key, other in enumerate(text.tokens.pieces):
                before = exact.get((one, other), 0.0)
                exact[one, other] = before + text.weights[3, query, key]
    queries = sum(len(text.tokens) for text in texts)
    tally = Tally.of_values(PATTERNS, CELLS, np.zeros((1, len(Tally().rows), 4)))
    told = atlas_of(Heads(tally), sums).pairs[3]
    assert len(told) >= 30
    for pair in told:
        share = exact[pair.query, pair.key] / queries
        assert share - 1e-6 <= pair.share <= share + 1e-4
    shown = [pair.share for pair in told]
    assert shown == sorted(shown, reverse=True)
    assert not [pair for pair in told if "[" in pair.query + pair.key and pair.is_words]


@pytest.mark.parametrize("cut", [1, 5, 13])
def test_parts_in_any_order_make_the_same_sums(cut):
    texts = texts_of(14, seed=4)
    whole = counted(texts)
    order = np.random.default_rng(cut).permutation(14)
    parts = []
    for chosen in (order[:cut], order[cut:]):
        part = Sums()
        for number in chosen:
            add(part, number, texts[number])
        parts.append(written(part))
    both = parts[1] + parts[0]
    for name in whole.names:
        assert (both[name].sum(axis=0) == whole[name].sum(axis=0)).all(), name
    for name, array in whole.examples.items():
        np.testing.assert_array_equal(both.examples[name], array, name)


def test_a_large_corpus_keeps_the_texts_with_the_smallest_hashes(rng):
    keys = rng.integers(0, 2**64, 200, np.uint64)
    sums = Sums(), Sums()
    for number, key in enumerate(keys):
        example = {"key": np.array([key]).view(np.int64), "words": np.arange(1, 1 + number % 7)}
        counts = {f"{EXAMPLE}{name}": array for name, array in example.items()}
        sums[number % 2].add(str(number), str(number), counts, length=3)
    for both in (sums[0] + sums[1], sums[1] + written(sums[0])):
        chosen = np.argsort(keys)[:128]
        assert both.examples["key"][:, 0].view(np.uint64).tolist() == keys[chosen].tolist()
        assert np.count_nonzero(both.examples["words"], axis=1).tolist() == (chosen % 7).tolist()


def test_the_strongest_links_of_a_text_are_kept():
    (text,) = texts_of(1)
    examples = counted([text]).examples
    strongest = np.sort(text.weights[2].reshape(-1))[::-1][:24]
    assert examples["weights"][0, 2, : len(strongest)] == pytest.approx(strongest, abs=1e-3)
    query, key = examples["links"][0, 2, 0]
    assert text.weights[2, query, key] == text.weights[2].max()


def test_cross_attention_is_refused():
    (text,) = texts_of(1)
    with pytest.raises(RecordError, match="Expected attention from a text to itself"):
        add(Sums(), 0, text._replace(weights=text.weights[:, :-1]))


def test_bins_and_ends_cover_every_pair_once():
    names = bin_names()
    bins = bin_of_pairs(1100)
    assert names[bins[0, 0]] == "itself"
    assert names[bins[1050, 0]] == "513 or more before"
    assert names[bins[0, 12]] == "9 to 12 after"
    for length in (1, 2, 23, 24, 25, 60):
        rows = end_rows(length)
        assert sorted(set(rows) - {-1}) == sorted(rows[rows >= 0])
        assert rows[0] == 0
        assert length == 1 or rows[-1] == 2 * SIDE - 1
