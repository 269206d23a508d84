"""What the numbers of a foreign cache must show of themselves: scale, mask, bias, sinks."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import RecordError
from headscope.record.recompute import softmax_of

TOKENS = ["<|endoftext|>", "Once", " upon", " a", " time"]
CAUSAL = np.tril(np.ones((5, 5), bool))
WINDOW = CAUSAL & ~np.tril(np.ones((5, 5), bool), -3)
SLOPES = 0.5 ** np.arange(1, 7)[:, None, None]


def config(**facts):
    return SimpleNamespace(cfg=SimpleNamespace(**facts))


@pytest.mark.parametrize(("scale", "cap"), [(1.0, None), (0.5, None), (0.83, None), (0.83, 0.7)])
def test_the_scale_is_the_one_that_the_numbers_show(made, scale, cap):
    # A TransformerBridge (4.3.0) says so of T5 and GPT-Neo, which do not scale, and of Gemma 2,
    # which has its own.
    model = config(
        attn_scale=-1.0, use_attn_scale=True, attn_scores_soft_cap=-1.0 if cap is None else cap
    )
    stack = hs.foreign.from_transformer_lens(made(scale=scale, cap=cap), TOKENS, model=model)[
        "self"
    ]
    assert stack.layer(1).scale == pytest.approx(scale, rel=1e-6)


def test_a_scale_that_hardly_matters_is_still_the_right_one(made):
    layer = hs.foreign.from_transformer_lens(made(scale=0.83, sharp=0.02), TOKENS)["self"].layer(1)
    assert layer.scale == pytest.approx(0.83, rel=1e-3)


@pytest.mark.parametrize(
    ("visible", "kind"), [(None, "full"), (CAUSAL, "causal"), (WINDOW, "sliding")]
)
@pytest.mark.parametrize("hooks", ["q k v z pattern attn_scores", "pattern"])
def test_the_mask_is_found(made, visible, kind, hooks):
    cache = {
        name: array
        for name, array in made(visible=visible).items()
        if name.split("hook_")[1] in hooks.split()
    }
    assert hs.foreign.from_transformer_lens(cache, TOKENS)["self"].layer(1).kind == kind


@pytest.mark.parametrize("visible", [None, CAUSAL])
@pytest.mark.parametrize("hooks", ["q k v z pattern attn_scores", "pattern"])
def test_a_weight_too_small_for_float32_is_not_a_mask(made, visible, hooks):
    far = np.where(np.arange(25).reshape(5, 5) == 16, -200.0, 0.0)
    cache = made(visible=visible)
    scores = cache["blocks.1.attn.hook_attn_scores"]
    if hooks == "pattern":
        cache = {"blocks.1.attn.hook_pattern": softmax_of(scores[0] + far).astype(np.float32)[None]}
    else:
        queries, keys = cache["blocks.1.attn.hook_q"], cache["blocks.1.attn.hook_k"]
        queries[:, 3], keys[:, 1] = 20, -20
        products = np.einsum("bqhf,bkhf->bhqk", queries, np.repeat(keys, 3, 2)) * 0.5
        masked = products if visible is None else np.where(visible, products, -np.inf)
        pattern = softmax_of(masked[0].astype(np.float64)).astype(np.float32)[None]
        cache |= {"blocks.1.attn.hook_pattern": pattern, "blocks.1.attn.hook_attn_scores": masked}
        del cache["blocks.1.attn.hook_z"]
    assert (cache["blocks.1.attn.hook_pattern"][0, :, 3, 1] == 0).all()
    layer = hs.foreign.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    assert layer.kind == ("full" if visible is None else "causal")


DISTANCE = np.arange(5)[None, :] - np.arange(5)[:, None]


@pytest.mark.parametrize("visible", [None, CAUSAL])
@pytest.mark.parametrize(
    "row", [0, np.arange(5)[:, None]], ids=["distance (ALiBi)", "place of the key (BLOOM)"]
)
def test_a_bias_by_distance_is_found_in_the_scores(made, visible, row):
    cache = made(bias=SLOPES * (DISTANCE + row), visible=visible)
    layer = hs.foreign.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    np.testing.assert_allclose(layer.bias[:, 4], (SLOPES * (DISTANCE + row))[:, 4], atol=1e-5)
    found = softmax_of(layer.scores_of())
    np.testing.assert_allclose(found, cache["blocks.1.attn.hook_pattern"][0], atol=1e-6)


def test_a_bias_by_distance_is_found_in_half_precision(made):
    cache = {
        name: torch.tensor(array).bfloat16() for name, array in made(bias=SLOPES * DISTANCE).items()
    }
    layer = hs.foreign.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    np.testing.assert_allclose(layer.bias[:, 4], (SLOPES * DISTANCE)[:, 4], atol=0.1)


def test_a_bias_that_is_nearly_by_distance_is_refused(made, rng):
    nearly = SLOPES * DISTANCE + 2e-2 * rng.standard_normal((6, 5, 5))
    with pytest.raises(RecordError, match="differs from the weights kept with them"):
        hs.foreign.from_transformer_lens(made(bias=nearly), TOKENS)


def test_a_text_too_short_to_tell_a_bias_by_distance_is_refused(made, rng):
    cache = made(size=(2, 2), visible=CAUSAL[:2, :2], bias=rng.standard_normal((6, 2, 2)))
    with pytest.raises(RecordError, match="differs from the weights kept with them"):
        hs.foreign.from_transformer_lens(cache, TOKENS[:2])


def test_sinks_are_found_in_what_the_rows_lack(made):
    # A TransformerBridge (4.3.0) over gpt-oss: hook_attn_scores is without the sink, the pattern
    # with it.
    cache, sinks = made(sharp=1.0), np.linspace(-3, 2, 6)
    pattern = softmax_of(cache["blocks.1.attn.hook_attn_scores"][0].astype(np.float64), sinks)
    values = np.repeat(cache["blocks.1.attn.hook_v"][0].swapaxes(0, 1), 3, 0)
    cache["blocks.1.attn.hook_pattern"] = pattern.astype(np.float32)[None]
    cache["blocks.1.attn.hook_z"] = (pattern @ values).swapaxes(0, 1).astype(np.float32)[None]
    record = hs.foreign.from_transformer_lens(cache, TOKENS)
    np.testing.assert_allclose(record["self"].layer(1).sinks, sinks, atol=1e-4)
    assert record.verified < 1e-6
    cache["blocks.1.attn.hook_pattern"] *= np.linspace(0.5, 1, 5, dtype=np.float32)[:, None]
    with pytest.raises(RecordError, match="differs from the weights kept with them"):
        hs.foreign.from_transformer_lens(cache, TOKENS)


def test_what_is_added_but_follows_no_distance_is_refused(made, rng):
    with pytest.raises(RecordError, match=r"softmax\(queries . keys\) differs from the weights"):
        hs.foreign.from_transformer_lens(made(bias=rng.standard_normal((6, 5, 5))), TOKENS)


@pytest.mark.parametrize("visible", [None, CAUSAL])
def test_scores_that_are_the_pattern_are_not_believed(made, visible):
    # So it is in a TransformerBridge (4.3.0) over BERT, BART, GPT-Neo and GPT-J.
    cache = made(visible=visible)
    cache["blocks.1.attn.hook_attn_scores"] = cache["blocks.1.attn.hook_pattern"]
    layer = hs.foreign.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    assert (layer.scale, layer.bias) == (0.5, None)


def test_without_a_pattern_the_output_of_the_heads_is_the_judge(made):
    cache = made()
    pattern = cache.pop("blocks.1.attn.hook_pattern")
    record = hs.foreign.from_transformer_lens(cache, TOKENS)
    np.testing.assert_allclose(record["self"].weights(1), pattern[0], atol=1e-6)
    assert record.verified < 1e-6
    cache["blocks.1.attn.hook_z"][0, 3] += 0.1
    with pytest.raises(RecordError, match="differs from the output kept with them"):
        hs.foreign.from_transformer_lens(cache, TOKENS)


def test_half_precision_is_allowed_its_rounding_and_no_more(made):
    cache = {name: torch.tensor(array).bfloat16() for name, array in made(sharp=1.0).items()}
    record = hs.foreign.from_transformer_lens(cache, TOKENS)
    assert 1e-4 < record.verified < 3e-2
    assert record["self"].layer(1).scale == 0.5  # not one fitted to the rounding
    rounded = {name: array.float() for name, array in cache.items()}
    with pytest.raises(RecordError, match="allowed 0.0001"):
        hs.foreign.from_transformer_lens(rounded, TOKENS)
