import numpy as np
import pytest

import headscope as hs
from headscope import RecordError
from headscope.capturing import random_twin
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on it", ("a dog ran", "it ran"), "she saw us all"]


def test_a_model_with_texts_is_what_its_records_are():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    found = hs.mechanism(model, tokenizer, TEXTS, at=[(1, 0)], pattern="sep")
    wanted = hs.mechanism(hs.capture_many(model, tokenizer, TEXTS), at=[(1, 0)], pattern="sep")
    np.testing.assert_allclose(
        found.tally.statistic.values, wanted.tally.statistic.values, atol=1e-6
    )
    assert found.texts == 3
    assert [each.unit for each in found.neurons(1, 0)] == [
        each.unit for each in wanted.neurons(1, 0)
    ]


def test_random_weights_stand_beside():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    found = hs.mechanism(model, tokenizer, TEXTS, at=[(1, 0)], random_weights=True)
    wanted = hs.mechanism(random_twin(model), tokenizer, TEXTS, at=[(1, 0)])
    assert (
        found.columns()["random_neurons"]
        == wanted.columns()["neurons"]
        != found.columns()["neurons"]
    )
    _, beside = str(found).split("The same with random weights:\n")
    (row,) = [
        line for line in str(wanted).splitlines() if line.startswith("1-0 ") and " of 8" in line
    ]
    assert row in beside.splitlines()
    with pytest.raises(RecordError, match="random_weights=True needs a model to run"):
        hs.mechanism(hs.capture(model, tokenizer, TEXTS[0]), random_weights=True)
