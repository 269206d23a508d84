import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import token_class
from headscope.record import Tokens

BERT = Tokens(
    pieces=("[CLS]", "well", ",", "c", "##.", "...", "$", "[SEP]", "no", ".", "[SEP]", "[MASK]")
)
LLAMA = Tokens(pieces=("<s>", "▁a", "▁.", "</s>"))


@pytest.mark.parametrize(
    ("name", "places", "llama"),
    [
        ("cls", [0], [0]),
        ("sep", [7, 10], [3]),
        ("delimiter", [0, 7, 10], [0, 3]),
        ("special", [0, 7, 10, 11], [0, 3]),
        ("first", [0], [0]),
        ("punctuation", [2, 4, 5, 6, 9], [2]),
        ("stop", [2, 4, 9], [2]),
    ],
)
def test_classes(name, places, llama):
    assert np.flatnonzero(token_class(BERT, name)).tolist() == places
    assert np.flatnonzero(token_class(LLAMA, name)).tolist() == llama


def test_words_that_look_like_delimiters_are_words():
    tokens = Tokens(pieces=("[CLS]", "[SEP]"), special=(True, False))
    assert token_class(tokens, "delimiter").tolist() == [True, False]


@pytest.mark.usefixtures("in_production")
def test_unknown_class_is_refused():
    with pytest.raises(RecordError, match="no token class 'verb'; there are cls, sep"):
        token_class(BERT, "verb")
