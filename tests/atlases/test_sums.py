"""What an atlas counts, against plain loops over one text after the other."""

import json
from collections import namedtuple

import numpy as np
import pytest

from headscope.atlases import ATLAS, STEP, atlas_of, text_counts
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
        text.tokens, weights=text.weights, visible=text.visible, scores=scores_of(number)
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
                exact[one, other] = exact.get((one, other), 0.0) + text.weights[3, query, key]
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
