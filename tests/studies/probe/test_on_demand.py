"""What probes learn from is made when it is asked for: the same numbers, and little memory."""

import pytest

import headscope as hs
from headscope.studies.probe import KINDS, _data
from headscope.testing import tiny_model, tiny_tokenizer

from ...close import assert_close

QUICK = {"epochs": 1, "least": 2, "rank": 3, "seeds": (0, 1), "random_weights": True}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_same_where_hardly_anything_is_held(kind, sentence_of, monkeypatch):
    sentences = [sentence_of(number) for number in range(80)]
    sentences = [each for each in sentences if sum(map(len, each.words)) <= 30][:30]
    tiny = tiny_model("bert"), tiny_tokenizer()
    run = {"part_size": 16, "progress": False} | QUICK
    held = hs.probe(*tiny, sentences, kind=kind, **run)
    monkeypatch.setattr(_data, "HELD", 3000)
    bounded = hs.probe(*tiny, sentences, kind=kind, **run)
    assert len(bounded.scores) == len(held.scores)
    for own, wanted in zip(bounded.scores, held.scores, strict=True):
        assert (own.task, own.measure, own.of) == (wanted.task, wanted.measure, wanted.of)
        assert_close(own.hits, wanted.hits)
        assert own.seeds == wanted.seeds
    # As text: what is not a number is not equal to itself.
    assert repr(bounded.facts) == repr(held.facts)
