"""Queries, keys, values and outputs from another run."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import InterventionError
from headscope.testing import tiny_model

from ..close import assert_close

TEXT, OTHER = "the cat sat.", "the dog ran."
ALL = ("queries", "keys", "values", "output")


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gptj", "bloom", "gpt_oss"])
def test_its_own_change_nothing(family, tokenizer, batch, states):
    model, inputs = tiny_model(family), batch("left" if family == "gpt2" else "right")
    intact = states(model, **inputs)
    records = capture_encoded(model, tokenizer, inputs)
    kept = inputs["attention_mask"].bool()
    for what in ALL:
        with hs.intervene(model, hs.Patch(record=records, what=what)):
            found = states(model, **inputs)
        assert (found - intact)[kept].abs().max() <= 1e-6 * intact.abs().max(), what


@pytest.mark.parametrize("family", ["bert", "gpt2", "gptj"])
def test_all_of_another_run_makes_the_other_run(family, tokenizer):
    """Queries, keys and values of the other text in the first layer: from there its weights are the
    other's.
    """
    model = tiny_model(family)
    other = hs.capture(model, tokenizer, OTHER)
    interventions = [
        hs.Patch(record=other, what=what, layer=0) for what in ("queries", "keys", "values")
    ]
    found = hs.capture(model, tokenizer, TEXT, interventions=interventions)
    np.testing.assert_allclose(found["self"].weights(0), other["self"].weights(0), atol=1e-6)
    assert_close(found["self"].layer(0).values, other["self"].layer(0).values)
    assert found.verified < 1e-5
    own = hs.capture(model, tokenizer, TEXT)
    assert np.abs(own["self"].weights(0) - other["self"].weights(0)).max() > 1e-2


def test_queries_alone_give_their_scores_with_the_own_keys(tokenizer):
    model = tiny_model("llama")
    own, other = (hs.capture(model, tokenizer, text)["self"].layer(1) for text in (TEXT, OTHER))
    patch = hs.Patch(record=hs.capture(model, tokenizer, OTHER), what="queries", layer=1, heads=[2])
    found = hs.capture(model, tokenizer, TEXT, interventions=[patch])["self"].layer(1)
    scores = other.queries[2] @ own.keys[0].T * own.scale
    scores[~np.asarray(own.visible)] = -np.inf
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(found.weights[2], raised / raised.sum(-1, keepdims=True), atol=1e-6)
    assert_close(np.delete(found.queries, 2, 0), np.delete(own.queries, 2, 0))


def test_positions_of_the_record_go_where_they_are_put(tokenizer):
    model = tiny_model("bert")
    other = hs.capture(model, tokenizer, "on it she ran home")
    patch = hs.Patch(record=other, what="values", layer=0, heads=1, positions=[3, 1], source=[9, 5])
    own = hs.capture(model, tokenizer, TEXT)["self"].layer(0).values
    found = hs.capture(model, tokenizer, TEXT, interventions=[patch])["self"].layer(0).values
    assert_close(found[1, [3, 1]], other["self"].layer(0).values[1, [9, 5]])
    rest = [at for at in range(own.shape[1]) if at not in (1, 3)]
    assert_close(found[1, rest], own[1, rest])
    assert_close(found[[0, 2]], own[[0, 2]])


def test_outputs_reach_the_projection(tokenizer):
    model = tiny_model("gptj")
    other = hs.capture(model, tokenizer, OTHER)
    layer, seen = other["self"].layer(0), {}
    projection = model.get_submodule(layer.projection)
    hook = projection.register_forward_pre_hook(lambda module, args: seen.update(given=args[0]))
    patch = hs.Patch(record=other, what="output", layer=0, heads=1, positions=4)
    found = hs.capture(model, tokenizer, TEXT, interventions=[patch])
    hook.remove()
    given = seen["given"].unflatten(-1, (layer.heads, -1))[0, :, 1].numpy()
    np.testing.assert_allclose(given[4], (layer.weights[1] @ layer.values[1])[4], atol=1e-6)
    assert not found["self"].weights(0, 1)[4].any()
    assert found.verified < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "values", "heads": 1}, "heads 1 share key/value heads 0 with others; name the"),
        ({"what": "output", "positions": 12, "source": 0}, "There is no token 12: the text has"),
        ({"what": "output", "positions": 0, "source": 40}, "The record has tokens 0 to 11, not 40"),
        ({"what": "values", "kv_heads": 2}, "has key/value heads 0 to 1, not 2"),
    ],
)
def test_what_does_not_fit_is_said(options, message, tokenizer):
    model = tiny_model("llama")
    record = hs.capture(model, tokenizer, OTHER)
    with pytest.raises(InterventionError, match=message):
        hs.capture(
            model, tokenizer, TEXT, interventions=[hs.Patch(record=record, layer=0, **options)]
        )


def test_a_record_of_another_length_or_model_is_refused(tokenizer):
    model = tiny_model("bert")
    longer = hs.capture(model, tokenizer, "on it she ran home")
    with pytest.raises(InterventionError, match="has 12 tokens, and the record 16; say with"):
        hs.capture(model, tokenizer, TEXT, interventions=[hs.Patch(record=longer, what="values")])
    other = hs.capture(tiny_model("llama"), tokenizer, TEXT)
    with pytest.raises(InterventionError, match="is it of this model"):
        hs.capture(
            model, tokenizer, TEXT, interventions=[hs.Patch(record=other, what="values", layer=0)]
        )


@pytest.mark.parametrize("family", ["deberta-v2", "xlnet", "wav2vec2-conformer"])
def test_queries_that_also_meet_positions_are_not_patched_by_half(family, tokenizer):
    from headscope.capturing import capture_encoded
    from headscope.testing._made_up import made_up

    model = tiny_model(family)
    inputs = made_up(model)
    record = capture_encoded(model, None, inputs)[0]
    with (
        pytest.raises(InterventionError, match="makes its scores of more than queries times keys"),
        hs.intervene(model, hs.Patch(record=record, what="queries")),
    ):
        model(**inputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "output", "queries": [1]}, "takes positions=, the tokens to patch"),
        ({"what": "output", "positions": [1, 2], "source": [0]}, "give as many of both"),
        ({"what": "output", "source": [0]}, "give as many of both"),
    ],
)
def test_what_is_no_patch_is_said_at_once(options, message, tokenizer):
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT)
    with pytest.raises(InterventionError, match=message):
        hs.Patch(record=record, **options)


def test_a_record_without_values_is_refused(tokenizer):
    model = tiny_model("bert")
    record = hs.capture(model, tokenizer, TEXT, keep="qk")
    for what in ("values", "output"):
        with pytest.raises(InterventionError, match="holds no values; capture it with keep='auto'"):
            hs.capture(model, tokenizer, TEXT, interventions=[hs.Patch(record=record, what=what)])


def test_torch_is_as_it_was_after_a_patch_that_fails(tokenizer):
    model = tiny_model("bert")
    record = hs.capture(model, tokenizer, "a bee")
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        before = model(**inputs)[0]
        with (
            pytest.raises(InterventionError),
            hs.intervene(model, hs.Patch(record=record, what="values")),
        ):
            model(**inputs)
        assert_close(model(**inputs)[0], before)
