import numpy as np
import pytest

from headscope.errors import TextError
from headscope.linguistics import Sentence
from headscope.studies.probe._data import parts_of

SHARES = (0.7, 0.1, 0.2)


def sentence(number, document="", words=None):
    return Sentence(
        name=str(number),
        words=words or (f"word{number}", "sat"),
        heads=(2, 0),
        relations=("nsubj", "root"),
        document=document,
    )


def test_no_document_lies_on_two_sides(rng):
    bank = [sentence(number, f"text {number // 7}") for number in range(140)]
    parts = parts_of(bank, SHARES, seed=3)
    sides = [{bank[number].document for number in part} for part in parts]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    assert sum(map(len, parts)) == 140
    np.testing.assert_allclose([len(part) / 140 for part in parts], SHARES, atol=7 / 140)


def test_what_was_learnt_is_not_reported_on_though_two_documents_say_it():
    thanks = ("Thanks", "!")
    bank = [
        sentence(number, f"text {number // 2}", thanks if number % 2 else None)
        for number in range(60)
    ]
    parts = parts_of(bank, SHARES, seed=0)
    told = [{bank[number].text.lower() for number in part} for part in parts]
    assert not told[0] & told[1]
    assert not told[0] & told[2]
    assert not told[1] & told[2]


def test_without_documents_equal_sentences_stay_together():
    bank = [sentence(number, words=("the", f"cat{number % 20}")) for number in range(60)]
    parts = parts_of(bank, SHARES, seed=1)
    assert sum(map(len, parts)) == 60
    assert [len(part) % 3 for part in parts] == [0, 0, 0]
    with pytest.raises(TextError, match="too few to be divided into 70%, 10%, 20%"):
        parts_of(bank[:1], SHARES, seed=0)


def test_one_long_document_leaves_something_to_the_parts_after_it():
    long = [sentence(number, "long") for number in range(100)]
    bank = [*long, *(sentence(100 + number, f"text {number}") for number in range(4))]
    for seed in range(20):
        assert all(parts_of(bank, SHARES, seed))
