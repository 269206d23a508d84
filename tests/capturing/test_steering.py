"""Hooks of the user's own on the output projection: what a head computed is captured as if they
were not there.
"""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

TEXT = "the cat sat."
PLACES = {
    "bert": "encoder.layer.0.attention.output.dense",
    "gptj": "h.0.attn.out_proj",
    "llama": "layers.0.self_attn.o_proj",
}


@pytest.mark.parametrize("family", PLACES)
def test_a_vector_that_a_hook_adds_is_no_reason_to_refuse(family):
    model, twin, tokenizer = tiny_model(family), tiny_model(family), tiny_tokenizer()
    plain = hs.capture(model, tokenizer, TEXT)
    for steered in (model, twin):
        projection = steered.get_submodule(PLACES[family])
        vector = torch.linspace(-2, 2, projection.weight.shape[0])
        projection.register_forward_hook(
            lambda module, args, output, vector=vector: output + vector
        )
    if family != "gptj":  # which has none but its own
        twin.set_attn_implementation("eager")
    own = twin(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True).attentions
    steered = hs.capture(model, tokenizer, TEXT)
    assert steered.verified < 1e-5
    assert steered["self"].layers[0].projection == PLACES[family]
    assert_close(steered["self"].weights(layer=0), plain["self"].weights(layer=0))
    for layer, theirs in zip(steered["self"], own, strict=True):
        assert np.abs(layer.weights_of() - theirs[0].detach().numpy()).max() < 1e-5
    assert not np.allclose(
        steered["self"].weights(layer=1), plain["self"].weights(layer=1), atol=1e-3
    )


def test_a_vector_that_a_hook_adds_is_in_no_tokens_contribution():
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    projection = model.get_submodule(PLACES["llama"])
    handle = projection.register_forward_hook(lambda module, args, output: output + 1.0)
    layer = hs.capture(model, tokenizer, TEXT, keep="norms")["self"].layers[0]
    handle.remove()
    assert layer.contributions.attention is not None
    assert layer.contributions.verified < 1e-5
    assert "nothing is added to its output" in layer.contributions.missing["residual"]
