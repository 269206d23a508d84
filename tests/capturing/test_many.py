import numpy as np
import pytest

import headscope as hs
from headscope import CaptureError
from headscope.capturing import _many
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["a", "the cat sat on it.", ("a dog", "ran"), "she", "b c d e f g h i j k l m", "an owl"]


def same(ours, theirs):
    """Equal up to what the padding of a batch changes in the last digits."""
    assert list(ours.stacks) == list(theirs.stacks)
    for name, stack in theirs.stacks.items():
        assert (ours[name].query, ours[name].key) == (stack.query, stack.key)
        for layer in stack:
            other = ours[name].layer(layer.layer)
            np.testing.assert_allclose(other.weights_of(), layer.weights_of(), atol=1e-5)
            np.testing.assert_allclose(other.values, layer.values, atol=1e-4)
            assert other.kind == layer.kind


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "bloom"])
def test_records_come_in_order_and_are_those_of_each_text_alone(family, batch_tokens):
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    found = list(hs.capture_many(model, tokenizer, TEXTS, batch_tokens=batch_tokens))
    assert len(found) == len(TEXTS)
    for record, text in zip(found, TEXTS, strict=True):
        same(record, hs.capture(model, tokenizer, *([text] if isinstance(text, str) else text)))


def test_a_tokenizer_need_not_know_how_to_pad():
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None
    found = list(hs.capture_many(tiny_model("llama"), tokenizer, ["a", "the cat sat"]))
    assert [len(record["self"].query) for record in found] == [3, 11]


def test_order_holds_over_more_texts_than_are_read_ahead(monkeypatch):
    monkeypatch.setattr(_many, "AT_ONCE", 3)
    texts = ["a " * length for length in (5, 1, 4, 2, 6, 3, 7)]
    found = hs.capture_many(tiny_model("bert"), tiny_tokenizer(), texts)
    assert [len(record["self"].query) for record in found] == [7, 3, 6, 4, 8, 5, 9]


def test_texts_are_read_as_they_are_needed(monkeypatch):
    monkeypatch.setattr(_many, "AT_ONCE", 2)
    taken = []

    def texts():
        for number in range(10):
            taken.append(number)
            yield "a cat"

    stream = hs.capture_many(tiny_model("bert"), tiny_tokenizer(), texts())
    next(stream)
    assert taken == [0, 1]


def test_a_bad_text_is_reported_and_the_rest_goes_on():
    model, tokenizer, seen = tiny_model("bert"), tiny_tokenizer(), []
    texts = ["a", "", "b", "a " * 40, ("c", " "), "d"]
    found = list(
        hs.capture_many(model, tokenizer, texts, on_error=lambda index, error: seen.append((index, str(error))))
    )
    assert [record.texts for record in found] == [("a",), ("b",), ("d",)]
    assert sorted(index for index, _ in seen) == [1, 3, 4]
    assert "42 tokens" in dict(seen)[3]
    with pytest.warns(UserWarning, match="input 1 was left out: The text is empty"):
        assert len(list(hs.capture_many(model, tokenizer, ["a", ""]))) == 1
    assert len(list(hs.capture_many(model, tokenizer, ["a " * 40], truncate=True))) == 1


def test_the_model_comes_back_as_it_was_when_the_stream_is_left():
    model = tiny_model("bert")
    model.train()
    stream = hs.capture_many(model, tiny_tokenizer(), TEXTS)
    next(stream)
    assert model.training
    stream.close()
    assert model.training


def test_an_unknown_option_is_an_error():
    with pytest.raises(CaptureError, match="capture_many has no option 'target'"):
        hs.capture_many(tiny_model("bert"), tiny_tokenizer(), TEXTS, target="x")
