import numpy as np

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on it", ("a dog ran", "it ran"), "she saw us all"]


def test_a_model_with_texts_is_what_its_records_are():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    found = hs.mechanism(model, tokenizer, TEXTS, at=[(1, 0)], pattern="sep")
    wanted = hs.mechanism(hs.capture_many(model, tokenizer, TEXTS), at=[(1, 0)], pattern="sep")
    np.testing.assert_allclose(found.tally.statistic.values, wanted.tally.statistic.values, atol=1e-6)
    assert found.texts == 3
    assert [each.unit for each in found.neurons(1, 0)] == [each.unit for each in wanted.neurons(1, 0)]
