import re
from functools import lru_cache

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import many as _many
from headscope.errors import CaptureError
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


@lru_cache
def alone(family):
    """A model, and the record of each text by itself."""
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    texts = [[text] if isinstance(text, str) else text for text in TEXTS]
    return model, [hs.capture(model, tokenizer, *text) for text in texts]


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "bloom"])
def test_records_come_in_order_and_are_those_of_each_text_alone(family, batch_tokens):
    (model, records), tokenizer = alone(family), tiny_tokenizer()
    found = list(hs.capture_many(model, tokenizer, TEXTS, batch_tokens=batch_tokens))
    assert len(found) == len(TEXTS)
    for record, by_itself in zip(found, records, strict=True):
        same(record, by_itself)


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

    next(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), texts()))
    assert taken == [0, 1]


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


BAD = {
    1: ("a\ud800b", r"The text holds half of a character \(U\+D800 at position 1\)"),
    2: (None, "An input is a text"),
    3: (5, "An input is a text"),
    4: (" \n", "The text is empty"),
    6: ({"text": None, "label": 1}, "An input holds nothing to read"),
    7: (("the cat", "\udc00"), "The second text holds half"),
    8: ({"text": "a cat", "text_pari": "it"}, "did you mean 'text_pair'"),
    11: ("a " * 40, "42 tokens"),
}


def test_a_bad_text_costs_one_text(tokenizer):
    good = {
        0: "the cat",
        5: {"text": "it sat", "label": 1, "idx": 3},
        9: {"text": "a", "text_b": "b"},
        10: "a dog",
    }
    texts = [good.get(number, BAD.get(number, (None,))[0]) for number in range(12)]
    model, seen = tiny_model("bert"), {}
    found = list(hs.capture_many(model, tokenizer, texts, on_error=seen.__setitem__))
    assert [record.texts for record in found] == [("the cat",), ("it sat",), ("a", "b"), ("a dog",)]
    assert sorted(seen) == sorted(BAD)
    for number, (_, message) in BAD.items():
        assert re.search(message, str(seen[number]))
    with pytest.warns(UserWarning, match="input 1 .from 0. was left out: The text holds half of a"):
        assert len(list(hs.capture_many(model, tokenizer, ["a", "\udfff"]))) == 1


@pytest.mark.parametrize("fault", ["infinite", "stops"])
def test_a_batch_that_fails_is_run_one_by_one(fault, tokenizer, monkeypatch):
    texts, seen = ["the cat sat", "a zoo went", "it sat down"], {}
    model, poison = tiny_model("bert"), tokenizer.convert_tokens_to_ids("z")
    embed = type(model.embeddings.word_embeddings).forward

    def poisoned(self, ids):
        bad = ids == poison
        if fault == "stops" and bad.any():
            raise IndexError("index out of range in self")
        return embed(self, ids).masked_fill(bad[..., None], float("inf"))

    expected = [
        hs.capture(model, tokenizer, text)["self"].weights(1) for text in (texts[0], texts[2])
    ]
    monkeypatch.setattr(type(model.embeddings.word_embeddings), "forward", poisoned)
    found = list(hs.capture_many(model, tokenizer, texts, on_error=seen.__setitem__))
    assert list(seen) == [1]
    assert isinstance(seen[1], hs.errors.HeadscopeError)
    assert ("index out of range" in str(seen[1])) == (fault == "stops")
    for record, weights in zip(found, expected, strict=True):
        np.testing.assert_allclose(record["self"].weights(1), weights, atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "what"), [("One text.", "one text"), ({"text": "a"}, "dict"), (None, "NoneType")]
)
def test_one_text_is_not_many(texts, what, tokenizer):
    with pytest.raises(
        hs.errors.TextError,
        match=f"reads many inputs and was given {what}; give a list of them, such as",
    ):
        hs.capture_many(tiny_model("bert"), tokenizer, texts)


def test_a_model_may_be_named(tmp_path, tokenizer):
    tiny_model("bert").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for name in (tmp_path, str(tmp_path)):
        found = list(hs.capture_many(name, None, iter(["the cat", "it sat"])))
        assert [record.texts for record in found] == [("the cat",), ("it sat",)]
    assert [len(record["self"]) for record in hs.capture_many(None, texts=["the cat"])] == [6]
    with pytest.raises(
        hs.errors.CaptureError, match="capture_many needs the tokenizer of BertModel"
    ):
        hs.capture_many(tiny_model("bert"), None, ["a"])


def test_texts_of_unknown_tokens_may_be_left_out(tokenizer):
    seen = {}
    found = list(
        hs.capture_many(
            tiny_model("bert"),
            tokenizer,
            ["1 2 3 a", "a b 1"],
            max_unknown=0.5,
            on_error=seen.__setitem__,
        )
    )
    assert len(found) == 1
    assert re.search(r"75% of the tokens of the text are \[UNK\]", str(seen[0]))
    with pytest.warns(UserWarning, match="75% of the tokens of the text"):
        found = list(hs.capture_many(tiny_model("bert"), tokenizer, ["1 2 3 a", "a b 1"]))
    assert len(found) == 2


@pytest.fixture
def most_waiting(monkeypatch):
    """The most bytes of records that ever waited for their turn."""
    seen = [0]
    run = _many._Many._run

    def noted(self, *given):
        run(self, *given)
        seen.append(sum(map(_many.bytes_of, self.waiting.values())))

    monkeypatch.setattr(_many._Many, "_run", noted)
    return lambda: max(seen)


@pytest.mark.parametrize("records", [1, 3, 100])
def test_records_that_wait_take_no_more_than_is_allowed(records, tokenizer, most_waiting):
    model = tiny_model("bert")
    texts = ["the cat sat on it" + " a" * (number % 3) for number in range(12)]
    alone = [hs.capture(model, tokenizer, text) for text in texts]
    size = max(map(_many.bytes_of, alone))
    found = list(hs.capture_many(model, tokenizer, texts, held=records * size))
    assert most_waiting() <= records * size
    assert (
        records < 100 or most_waiting() > 3 * size
    )  # batches are not made smaller than they need be
    for record, other in zip(found, alone, strict=True):
        same(record, other)


@pytest.mark.parametrize("name", ["held", "batch_size"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_limits_that_are_none_are_refused(name, value, tokenizer):
    with pytest.raises(CaptureError, match=f"{name} must be a whole number from 1 on, not {value}"):
        hs.capture_many(tiny_model("bert"), tokenizer, ["a"], **{name: value})
