"""Texts of one length share a batch, and what is found of each is what `capture` finds."""

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import capture_batches
from headscope.capturing.building import _build
from headscope.errors import CaptureError
from headscope.record import Record, TextBatch
from headscope.testing import tiny_model

from ..close import assert_close

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["a", "the cat sat.", ("a dog", "ran"), "she", "the dog sat.", "an owl", "a cat sat by"]


def by_number(found):
    """Weights of each stack and layer by the number of the text."""
    return {
        number: {
            (name, layer.layer): layer.weights[place]
            for name, stack in together.batch.stacks.items()
            for layer in stack.layers
        }
        for together in found
        for place, number in enumerate(together.numbers)
    }


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bloom", "gemma2", "gpt_oss"])
def test_the_weights_of_each_text_are_those_of_its_record(family, tokenizer):
    model = tiny_model(family)
    found = list(capture_batches(model, tokenizer, TEXTS, batch_size=3))
    assert sorted(number for each in found for number in each.numbers) == list(range(len(TEXTS)))
    assert max(len(each.numbers) for each in found) == 2
    for together in found:
        for place, number in enumerate(together.numbers):
            text = TEXTS[number]
            wanted = hs.capture(model, tokenizer, *([text] if isinstance(text, str) else text))
            assert list(together.batch.stacks) == list(wanted.stacks)
            for name, stack in wanted.stacks.items():
                ours = together.batch[name]
                assert (ours.query[place], ours.key[place]) == (stack.query, stack.key)
                for layer, other in zip(stack, ours.layers, strict=True):
                    assert (other.layer, other.visible) == (layer.layer, layer.visible)
                    np.testing.assert_allclose(other.weights[place], layer.weights, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_the_numbers_of_a_text_do_not_depend_on_its_batch(family, tokenizer):
    model = tiny_model(family)
    texts = ["the cat sat.", "the dog sat.", "the cow ran.", "the owl saw a", "all of us."]
    whole = by_number(capture_batches(model, tokenizer, texts))
    turned = by_number(capture_batches(model, tokenizer, texts[::-1]))
    for number, text in enumerate(texts):
        alone = by_number(capture_batches(model, tokenizer, [text]))[0]
        for where, weights in alone.items():
            assert_close(whole[number][where], weights)
            assert_close(turned[len(texts) - 1 - number][where], weights)


def test_an_encoder_decoder_is_run_on_one_text_at_a_time(tokenizer):
    found = list(capture_batches(tiny_model("bart"), tokenizer, ["a cat", "a dog"]))
    assert all(isinstance(each.batch, Record) for each in found)
    assert list(found[0].batch.stacks) == ["encoder", "decoder", "cross"]


@pytest.mark.parametrize("place", [0, 4, 8])
def test_a_wrong_weight_of_any_text_is_seen(place, tokenizer, monkeypatch):
    """Whichever of the texts that are weighed together it is in, and each is then run alone."""
    texts, model, original = ["a cat"] * 10, tiny_model("bert"), _build.fill

    def fill(call, visibility, into):
        original(call, visibility, into)
        if len(into) > 1:
            into[place, -1] = into[place, -1].flip(-1)

    batches = capture_batches(model, tokenizer, texts)
    assert isinstance(next(batches).batch, TextBatch)  # the first text is a batch of its own
    monkeypatch.setattr(_build, "fill", fill)
    assert [type(each.batch) for each in batches] == [Record] * 9


def test_an_option_that_there_is_not_is_named(tokenizer):
    model = tiny_model("bert")
    with pytest.raises(CaptureError, match="no option 'colour'; it has .*batch_tokens"):
        capture_batches(model, tokenizer, ["a"], colour=[0])
    with pytest.raises(CaptureError, match="heads is an option of records, .* pass keep='auto'"):
        capture_batches(model, tokenizer, ["a"], heads=[(0, 1)])
    with pytest.raises(CaptureError, match="heads"):
        capture_batches(model, tokenizer, ["a"], keep="qk", heads=[0])
