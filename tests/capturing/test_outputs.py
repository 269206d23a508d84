"""Families whose attention cannot be seen being computed: what they return, as far as it is
proved.
"""

import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

TEXT = "the cat sat. a dog, it ran"


def test_longformer_is_captured_from_what_it_returns():
    model, tokenizer = tiny_model("longformer"), tiny_tokenizer()
    record = hs.capture(model, tokenizer, TEXT)
    assert [layer.route for layer in record["self"]] == ["outputs", "outputs"]
    assert record["self"].layer(0).kind == "sliding"
    assert record["self"].layer(0).visible.window == (2, 2)
    assert record["self"].layer(0).queries is None
    assert record.verified < 1e-5
    inputs = tokenizer([TEXT], return_tensors="pt")
    with torch.no_grad():
        own = model(**inputs, output_attentions=True).attentions[0][0].numpy()
    assert_close(record["self"].weights(0)[:, 7, 5:10], own[:, 7])


def test_what_hooks_of_others_add_to_an_output_is_not_what_it_is_compared_with():
    model, tokenizer = tiny_model("longformer"), tiny_tokenizer()
    dense = model.encoder.layer[0].attention.output.dense
    with dense.register_forward_hook(lambda _module, _args, output: output + 1):
        record = hs.capture(model, tokenizer, TEXT)
    assert [layer.route for layer in record["self"]] == ["outputs", "outputs"]
    assert record.verified < 1e-5


def test_padding_is_cut_off_what_is_returned():
    model, tokenizer = tiny_model("longformer"), tiny_tokenizer()
    long, short = capture_encoded(
        model, tokenizer, tokenizer([TEXT, "a bee"], padding=True, return_tensors="pt")
    )
    assert len(short["self"].query) < len(long["self"].query)
    for record in (long, short):
        assert record.verified < 1e-5
        assert record["self"].weights(1).shape[1:] == (len(record["self"].query),) * 2


def test_global_attention_is_refused():
    model, tokenizer = tiny_model("longformer"), tiny_tokenizer()
    inputs = tokenizer([TEXT], return_tensors="pt")
    marks = torch.zeros_like(inputs["input_ids"])
    marks[:, 0] = 1
    with pytest.raises(CaptureError, match="Tokens with global attention use values of their own"):
        capture_encoded(model, tokenizer, inputs | {"global_attention_mask": marks})


def test_led_mixes_two_routes():
    record = hs.capture(tiny_model("led"), tiny_tokenizer(), "the cat sat.", target="a dog")
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    routes = {name: {layer.route for layer in stack} for name, stack in record.stacks.items()}
    assert routes == {"encoder": {"outputs"}, "decoder": {"operators"}, "cross": {"operators"}}


def test_what_a_model_returns_is_not_believed_without_proof():
    """BigBird's sparse attention returns rows that sum to less than 1 and do not lead to its own
    output.
    """
    with pytest.raises(CaptureError, match="in pieces of 2 sizes that cannot be put together"):
        hs.capture(tiny_model("big_bird (sparse)"), tiny_tokenizer(), TEXT)
