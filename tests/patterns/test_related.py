"""Related words: as near as the nearest of the vocabulary, and not the same word again."""

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.patterns import QueryKeyTokens, related_patterns
from headscope.record import Tokens

PIECES = ("[CLS]", "cat", "of", "kit", "##ten", "[SEP]", "cats", "cat", "of")
VOCABULARY = {"[CLS]": 0, "[SEP]": 1, "cat": 2, "kit": 3, "##ten": 4, "cats": 5, "of": 6, "dog": 7}
VECTORS = np.array(
    [
        [0, 0, 1],
        [0, 0, 1],
        [1, 0, 0],
        [1, 0.1, 0.4],
        [1, 0.1, -0.4],
        [1, 0.2, 0],
        [0, 1, 0],
        [0.9, 0.5, 0],
    ],
    np.float32,
)


def tokens(**changed):
    given = {
        "pieces": PIECES,
        "ids": tuple(VOCABULARY[piece] for piece in PIECES),
        "segments": (0,) * 6 + (1,) * 3,
    }
    return Tokens(**(given | changed))


def pairs(nearest, number=0, **changed):
    side = tokens(**changed)
    return {
        (PIECES[query], PIECES[key], key)
        for query, key in np.argwhere(
            related_patterns(VECTORS, nearest=nearest)[number].wanted(QueryKeyTokens(side, side))
        )
    }


def plainly_near(query, nearest):
    """The tokens of the vocabulary that are near a word, by sorting."""
    vector = VECTORS[query].mean(axis=0)
    order = sorted(
        (index for index in range(len(VECTORS)) if index not in query),
        key=lambda index: (
            -VECTORS[index] @ vector / np.linalg.norm(VECTORS[index]) / np.linalg.norm(vector)
        ),
    )
    return order[:nearest]


def test_related_words_are_the_nearest_of_the_vocabulary():
    assert VOCABULARY["cats"] in plainly_near([VOCABULARY["cat"]], 1)
    assert {key for query, key, _ in pairs(1) if query == "cat"} == {"kit", "##ten"}, (
        "kitten is nearer than cats"
    )
    assert VOCABULARY["dog"] in plainly_near([VOCABULARY["of"]], 1)
    assert not {key for query, key, _ in pairs(1) if query == "of"}


def test_the_same_word_and_the_same_form_are_left_to_another_pattern():
    found = pairs(7)
    assert not {(query, key) for query, key, _ in found if {query, key} <= {"cat", "cats"}}
    assert not {(query, key) for query, key, _ in found if {query, key} <= {"kit", "##ten"}}
    assert not {
        key for query, key, _ in found if "[CLS]" in (query, key) or "[SEP]" in (query, key)
    }


def test_the_other_sentence_is_a_pattern_of_its_own():
    assert {place for _, _, place in pairs(7, 1)} == {1, 2, 3, 4, 6, 7, 8}
    own = {
        (query, place) for query, _, place in pairs(7) if query in ("kit", "##ten") and place < 6
    }
    assert own
    assert not own & {(query, place) for query, _, place in pairs(7, 1)}


@pytest.mark.parametrize("nearest", [0, 8])
def test_more_neighbours_than_there_are_is_refused(nearest):
    with pytest.raises(RecordError, match=f"The {nearest} nearest of 8 tokens were asked for"):
        related_patterns(VECTORS, nearest=nearest)


def test_tokens_without_numbers_or_with_others_are_refused():
    with pytest.raises(RecordError, match="need the vocabulary numbers"):
        pairs(2, ids=None)
    with pytest.raises(RecordError, match="Token 8 has no embedding: 8 were given"):
        pairs(2, ids=(8,) * 9)
