import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.measures import aligned_words, alignment_counts, alignment_error_rate
from headscope.record import word_maps
from headscope.testing import random_weights

HEADS, QUERIES, KEYS = 2, 6, 7
LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 3)))


def test_the_published_example_of_word_level_attention():
    rows = [
        [0.1, 0.2, 0.3, 0.1, 0.3],
        [0.2, 0.1, 0.1, 0.4, 0.2],
        [0.3, 0.3, 0.1, 0.1, 0.2],
        [0.1, 0.1, 0.5, 0.1, 0.2],
    ]
    maps, words = np.array([[*rows, [0.25, 0.25, 0.25, 0.15, 0.1]]]), [[0], [1], [2, 3], [4]]
    wanted = [
        [0.1, 0.2, 0.4, 0.3],
        [0.2, 0.1, 0.5, 0.2],
        [0.2, 0.2, 0.4, 0.2],
        [0.25, 0.25, 0.4, 0.1],
    ]
    np.testing.assert_allclose(word_maps(maps, words, words)[0], wanted, atol=1e-12)


def test_words_of_tokens_that_are_not_there_are_refused():
    with pytest.raises(RecordError, match=r"key word 1 has token 7; there are tokens 0 to 6"):
        word_maps(np.zeros((HEADS, QUERIES, KEYS)), [[0]], [[0], [7]])


def test_links_are_the_largest_of_each_row(rng):
    maps = random_weights(rng, (HEADS, 4, 6)).astype(float)
    for head, links in enumerate(aligned_words(maps)):
        assert links == {
            (max(range(6), key=lambda key: maps[head, row, key]), row) for row in range(4)
        }


def test_a_row_that_looks_most_at_no_word_or_at_nothing_gives_no_link():
    maps = np.array([[[0.2, 0.1, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [0.4, 0.4, 0.2]]])
    assert aligned_words(maps, words=2) == ({(0, 1), (0, 3)},)
    assert aligned_words(maps) == ({(2, 0), (0, 1), (0, 3)},)
    assert aligned_words(np.zeros((2, 3, 0))) == (frozenset(), frozenset())


@given(LINKS, LINKS, LINKS)
def test_the_error_rate_is_that_counted_by_hand(sure, possible, found):
    allowed = set(possible) | set(sure)
    hits = sum(link in allowed for link in found) + sum(link in sure for link in found)
    size = len(found) + len(sure)
    assert alignment_counts(sure, possible, found) == (hits, size)
    rate = alignment_error_rate(sure, possible, found)
    assert rate == pytest.approx(1 - hits / size) if size else np.isnan(rate)
    assert not size or 0 <= rate <= 1


@given(LINKS, LINKS.filter(bool))
def test_the_error_rate_at_its_ends(possible, sure):
    assert alignment_error_rate(sure, possible, sure) == 0
    assert alignment_error_rate(sure, possible, frozenset()) == 1
    assert alignment_error_rate(sure, possible, sure | possible) == 0
