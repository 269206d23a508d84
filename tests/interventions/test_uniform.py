"""Uniform attention: over what can be seen, and no padding."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model

TEXT = "the cat sat."


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral", "gpt_oss"])
def test_rows_are_even_over_what_the_query_may_look_at(
    family, implementation, side, tokenizer, batch
):
    if family == "gpt_oss" and implementation == "sdpa":
        pytest.skip("learned sinks have no sdpa")
    model, inputs = tiny_model(family, attn_implementation=implementation), batch(side)
    with hs.intervene(model, hs.interventions.Uniform(layer=1, heads=[0, 2])):
        records = capture_encoded(model, tokenizer, inputs)
    for record in records:
        layer = record["self"].layer(1)
        visible = np.ones(layer.size, bool) if layer.visible is None else np.asarray(layer.visible)
        even = visible / visible.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(layer.weights[[0, 2]], [even, even], atol=1e-6)
        assert np.abs(layer.weights[1] - even).max() > 1e-2
        assert record.verified < 1e-5


@pytest.mark.parametrize("family", ["bert", "llama", "gptj"])
def test_over_all_heads_the_layer_gives_the_mean_of_the_visible_values_projected(family, tokenizer):
    """The reference has no attention in it: means of values, written by hand into the input of the
    projection.
    """
    model = tiny_model(family)
    layer = hs.capture(model, tokenizer, TEXT)["self"].layer(0)
    causal = layer.kind == "causal"
    values = layer.values[layer.kv_head_of].astype(np.float64)
    rows = [
        values[:, : query + 1 if causal else None].mean(axis=1) for query in range(layer.size[0])
    ]
    means = torch.tensor(np.stack(rows).reshape(1, len(rows), -1), dtype=torch.float32)
    inputs = tokenizer(TEXT, return_tensors="pt")
    projection = model.get_submodule(layer.projection)
    with torch.no_grad():
        hook = projection.register_forward_pre_hook(lambda module, args: (means, *args[1:]))
        wanted = model(input_ids=inputs["input_ids"])[0]
        hook.remove()
        with hs.intervene(model, hs.interventions.Uniform(layer=0)):
            found = model(input_ids=inputs["input_ids"])[0]
    assert (found - wanted).abs().max() <= 2e-6 * wanted.abs().max()


def test_it_is_not_the_same_as_zero(batch, states):
    model, inputs = tiny_model("bert"), batch()
    found = []
    for intervention in (hs.Zero(layer=0, heads=1), hs.interventions.Uniform(layer=0, heads=1)):
        with hs.intervene(model, intervention):
            found.append(states(model, **inputs))
    assert (found[0] - found[1]).abs().max() > 1e-3
