"""Caches as plain mappings, with the names and shapes that transformer-lens 3.9.0 and 4.3.0 were seen to produce."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import RecordError
from headscope.record._recompute import softmax_of

TOKENS = ["<|endoftext|>", "Once", " upon", " a", " time"]
SOURCE = ["the", "cat", "sat", "on", "a", "mat", "</s>"]
TARGET = ["<pad>", "die", "Katze", "saß"]
CAUSAL = np.tril(np.ones((5, 5), bool))
WINDOW = CAUSAL & ~np.tril(np.ones((5, 5), bool), -3)
SLOPES = 0.5 ** np.arange(1, 7)[:, None, None]


@pytest.fixture
def made(rng):
    """A function that makes the hooks of one attention block, batch axis first, as run_with_cache does."""

    def make(block="blocks.1.attn", *, size=(5, 5), scale=0.5, cap=None, visible=CAUSAL, bias=0.0, sharp=2.0, batch=1):
        heads, kv_heads, features = 6, 2, 4
        queries, keys, values = (
            (sharp * rng.standard_normal((batch, length, count, features))).astype(np.float32)
            for length, count in ((size[0], heads), (size[1], kv_heads), (size[1], kv_heads))
        )
        scores = np.einsum("bqhf,bkhf->bhqk", queries, np.repeat(keys, 3, 2), dtype=np.float64) * scale
        scores = (scores if cap is None else cap * np.tanh(scores / cap)) + bias
        scores = scores if visible is None else np.where(visible, scores, -np.inf)
        pattern = np.stack([softmax_of(example) for example in scores])
        z = np.einsum("bhqk,bkhf->bqhf", pattern, np.repeat(values, 3, 2))
        arrays = {"q": queries, "k": keys, "v": values, "attn_scores": scores, "pattern": pattern, "z": z}
        return {f"{block}.hook_{name}": array.astype(np.float32) for name, array in arrays.items()}

    return make


def config(**facts):
    return SimpleNamespace(cfg=SimpleNamespace(**facts))


class ActivationCache:
    """What is asked of the class of that name: keys, items by name, the model; no mapping."""

    def __init__(self, arrays, model):
        self.arrays, self.model = arrays, model

    def keys(self):
        return self.arrays.keys()

    def __getitem__(self, name):
        return torch.tensor(self.arrays[name], requires_grad=True)

    def __iter__(self):
        raise AssertionError("the real one yields names too, but only through its dictionary")


@pytest.mark.parametrize(
    "given",
    [
        lambda cache: cache,
        lambda cache: {name: array[0] for name, array in cache.items()},
        lambda cache: {name: torch.tensor(array) for name, array in cache.items()},
        lambda cache: ActivationCache(cache, config()),
        lambda cache: {name: array.astype(np.float64) for name, array in cache.items()},
    ],
    ids=["arrays", "batch axis removed", "tensors", "ActivationCache", "float64"],
)
def test_every_form_of_a_cache_gives_the_same_record(made, given):
    cache = made()
    record = hs.from_transformer_lens(given(cache), TOKENS, text="Once upon a time")
    layer = record["self"].layer(1)
    np.testing.assert_array_equal(layer.weights, cache["blocks.1.attn.hook_pattern"][0])
    np.testing.assert_array_equal(layer.queries, cache["blocks.1.attn.hook_q"][0].swapaxes(0, 1))
    np.testing.assert_array_equal(layer.keys, cache["blocks.1.attn.hook_k"][0].swapaxes(0, 1))
    np.testing.assert_array_equal(layer.values, cache["blocks.1.attn.hook_v"][0].swapaxes(0, 1))
    np.testing.assert_allclose(
        np.where(CAUSAL, layer.scores_of(), 0),
        np.where(CAUSAL, cache["blocks.1.attn.hook_attn_scores"][0], 0),
        atol=1e-5,
    )
    assert (layer.kind, layer.kv_heads, layer.module) == ("causal", 2, "blocks.1.attn")
    assert layer.scale == 0.5
    assert record.verified < 1e-6
    assert record.texts == ("Once upon a time",)


def test_the_configuration_gives_scale_cap_and_facts(made):
    facts = {"attn_scale": 3.0, "use_attn_scale": True, "attn_scores_soft_cap": 0.7, "model_name": "gemma"}
    model = config(**facts, architecture="Gemma2ForCausalLM", dtype=torch.float32)
    cache = made(scale=1 / 3, cap=0.7)
    for record in (
        hs.from_transformer_lens(cache, TOKENS, model=model),
        hs.from_transformer_lens(cache, TOKENS, model=model.cfg),
        hs.from_transformer_lens(cache, TOKENS, model=vars(model.cfg)),
        hs.from_transformer_lens(ActivationCache(cache, model), TOKENS),
    ):
        layer = record["self"].layer(1)
        assert (layer.scale, layer.soft_cap) == (1 / 3, 0.7)
        assert (record.model.name, record.model.class_name, record.model.dtype) == (
            "gemma",
            "Gemma2ForCausalLM",
            "float32",
        )


@pytest.mark.parametrize(("scale", "cap"), [(1.0, None), (0.5, None), (0.83, None), (0.83, 0.7)])
def test_the_scale_is_the_one_that_the_numbers_show(made, scale, cap):
    # A TransformerBridge (4.3.0) says so of T5 and GPT-Neo, which do not scale, and of Gemma 2, which has its own.
    model = config(attn_scale=-1.0, use_attn_scale=True, attn_scores_soft_cap=-1.0 if cap is None else cap)
    layer = hs.from_transformer_lens(made(scale=scale, cap=cap), TOKENS, model=model)["self"].layer(1)
    assert layer.scale == pytest.approx(scale, rel=1e-6)


def test_a_scale_that_hardly_matters_is_still_the_right_one(made):
    layer = hs.from_transformer_lens(made(scale=0.83, sharp=0.02), TOKENS)["self"].layer(1)
    assert layer.scale == pytest.approx(0.83, rel=1e-3)


@pytest.mark.parametrize(("visible", "kind"), [(None, "full"), (CAUSAL, "causal"), (WINDOW, "sliding")])
@pytest.mark.parametrize("hooks", ["q k v z pattern attn_scores", "pattern"])
def test_the_mask_is_found(made, visible, kind, hooks):
    cache = {name: array for name, array in made(visible=visible).items() if name.split("hook_")[1] in hooks.split()}
    assert hs.from_transformer_lens(cache, TOKENS)["self"].layer(1).kind == kind


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
    layer = hs.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    assert layer.kind == ("full" if visible is None else "causal")


@pytest.mark.parametrize("visible", [None, CAUSAL])
def test_a_bias_by_distance_is_found_in_the_scores(made, visible):
    distance = np.arange(5)[None, :] - np.arange(5)[:, None]
    cache = made(bias=SLOPES * distance, visible=visible)
    layer = hs.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    np.testing.assert_allclose(layer.bias[:, 4], (SLOPES * distance)[:, 4], atol=1e-5)
    found = softmax_of(layer.scores_of())
    np.testing.assert_allclose(found, cache["blocks.1.attn.hook_pattern"][0], atol=1e-6)


def test_what_is_added_but_follows_no_distance_is_refused(made, rng):
    with pytest.raises(RecordError, match=r"softmax\(queries . keys\) differs from the weights kept with them by 0\."):
        hs.from_transformer_lens(made(bias=rng.standard_normal((6, 5, 5))), TOKENS)


@pytest.mark.parametrize("visible", [None, CAUSAL])
def test_scores_that_are_the_pattern_are_not_believed(made, visible):
    # So it is in a TransformerBridge (4.3.0) over BERT, BART, GPT-Neo and GPT-J.
    cache = made(visible=visible)
    cache["blocks.1.attn.hook_attn_scores"] = cache["blocks.1.attn.hook_pattern"]
    layer = hs.from_transformer_lens(cache, TOKENS)["self"].layer(1)
    assert (layer.scale, layer.bias) == (0.5, None)


def test_rotated_queries_and_keys_are_taken_before_plain_ones(made, rng):
    cache = made()
    for name in "qk":
        plain = cache[f"blocks.1.attn.hook_{name}"]
        cache[f"blocks.1.attn.hook_rot_{name}"] = plain
        cache[f"blocks.1.attn.hook_{name}"] = rng.standard_normal(plain.shape).astype(np.float32)
    layer = hs.from_transformer_lens(cache, TOKENS, model=config(positional_embedding_type="rotary"))["self"].layer(1)
    np.testing.assert_array_equal(layer.queries, cache["blocks.1.attn.hook_rot_q"][0].swapaxes(0, 1))


def test_a_rotary_model_without_rotated_queries_keeps_weights_and_values(made):
    # A TransformerBridge (4.3.0) over GPT-NeoX or GPT-J.
    model = config(positional_embedding_type="rotary")
    layer = hs.from_transformer_lens(made(), TOKENS, model=model)["self"].layer(1)
    assert (layer.queries, layer.keys) == (None, None)
    assert layer.values is not None
    assert layer.verified < 1e-6


def test_one_text_of_a_batch_and_its_place_in_the_padding(made):
    cache = made(batch=3, visible=CAUSAL & (np.arange(5) > 1) | np.eye(5, dtype=bool))
    record = hs.from_transformer_lens(cache, TOKENS[2:], example=2, positions=slice(2, None))
    np.testing.assert_array_equal(record["self"].weights(1), cache["blocks.1.attn.hook_pattern"][2][:, 2:, 2:])
    assert record["self"].layer(1).kind == "causal"
    listed = hs.from_transformer_lens(cache, TOKENS[2:], example=2, positions=[2, 3, 4])
    np.testing.assert_array_equal(listed["self"].layer(1).values, record["self"].layer(1).values)


@pytest.mark.parametrize(
    ("encoder", "decoder", "cross"),
    [
        ("encoder.0.attn", "decoder.0.attn", "decoder.0.cross_attn"),
        ("encoder_blocks.0.attn", "decoder_blocks.0.self_attn", "decoder_blocks.0.cross_attn"),
    ],
    ids=["HookedEncoderDecoder 3.9.0", "TransformerBridge 4.3.0"],
)
def test_encoder_and_decoder_have_their_stacks(made, encoder, decoder, cross):
    cache = (
        made(cross, size=(4, 7), visible=None)
        | made(encoder, size=(7, 7), visible=None)
        | made(decoder, size=(4, 4), visible=CAUSAL[:4, :4])
    )
    record = hs.from_transformer_lens(cache, SOURCE, decoder_tokens=TARGET, text="the cat sat on a mat")
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    assert record["cross"].query.pieces == tuple(TARGET)
    assert record["cross"].key.texts == ("the cat sat on a mat",)
    np.testing.assert_array_equal(record["cross"].weights(0), cache[f"{cross}.hook_pattern"][0])
    with pytest.raises(RecordError, match="give decoder_tokens"):
        hs.from_transformer_lens(cache, SOURCE)
    with pytest.raises(RecordError, match="positions are for models with one stack"):
        hs.from_transformer_lens(cache, SOURCE, decoder_tokens=TARGET, positions=[1])


def test_layers_keep_their_numbers_in_order(made):
    cache = made("blocks.10.attn") | made("blocks.9.attn") | {"blocks.2.attn.hook_z": 1, "hook_embed": 2}
    assert [layer.layer for layer in hs.from_transformer_lens(cache, TOKENS)["self"]] == [9, 10]


def test_without_a_pattern_the_output_of_the_heads_is_the_judge(made):
    cache = made()
    pattern = cache.pop("blocks.1.attn.hook_pattern")
    record = hs.from_transformer_lens(cache, TOKENS)
    np.testing.assert_allclose(record["self"].weights(1), pattern[0], atol=1e-6)
    assert record.verified < 1e-6
    cache["blocks.1.attn.hook_z"][0, 3] += 0.1
    with pytest.raises(RecordError, match="differs from the output kept with them"):
        hs.from_transformer_lens(cache, TOKENS)


def test_half_precision_is_allowed_its_rounding_and_no_more(made):
    cache = {name: torch.tensor(array).bfloat16() for name, array in made(sharp=1.0).items()}
    record = hs.from_transformer_lens(cache, TOKENS)
    assert 1e-4 < record.verified < 3e-2
    rounded = {name: array.float() for name, array in cache.items()}
    with pytest.raises(RecordError, match="allowed 0.0001"):
        hs.from_transformer_lens(rounded, TOKENS)


def changed(hook, change):
    def given(cache):
        name = f"blocks.1.attn.hook_{hook}"
        return cache | {name: change(cache[name])}

    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (changed("pattern", lambda a: a[:, ::-1]), r"by (0\.\d+|1) \(allowed 0.0001\). Either the values were changed"),
        (changed("k", lambda a: a[:, :, ::-1]), r"softmax\(queries . keys\) differs"),
        (changed("z", lambda a: a * 1.01), "weights times values differ from the output of the heads"),
        (changed("v", lambda a: a[:, :, ::-1]), "weights times values differ"),
        (changed("v", lambda a: a[:, :4]), r"weights \(6, 5, 5\) do not fit values \(2, 4, 4\)"),
        (changed("q", lambda a: a[..., :3]), r"queries \(6, 5, 3\) and keys \(2, 5, 4\) do not fit"),
        (changed("q", lambda a: a[:, :4]), r"queries and keys give \(6, 4, 5\), but \(6, 5, 5\) weights were kept"),
        (changed("q", lambda a: a[0, 0]), r"hook_q has shape \(6, 4\); wanted are the axes \[query head feature\]"),
        (changed("q", lambda a: a * np.nan), "queries of blocks.1.attn holds nan"),
        (changed("pattern", lambda a: np.repeat(a, 2, 0)), "hook_pattern holds a batch of 2 texts; say which"),
        (changed("pattern", lambda _: "yes"), "hook_pattern is not an array of numbers but str"),
        (lambda c: {"blocks.1.attn.hook_q": 1}, "holds no attention: wanted are names such as 'blocks.0.attn.hook"),
        (lambda c: {}, "given were none"),
        (lambda c: c | {"vision_encoder.0.attn.hook_pattern": 1}, "place of: vision_encoder.0.attn.hook_pattern"),
    ],
)
def test_what_does_not_agree_is_refused(made, given, message):
    with pytest.raises(RecordError, match=message):
        hs.from_transformer_lens(given(made()), TOKENS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": TOKENS[1:]}, "5 queries and 5 keys, but 4 and 4 tokens were given; count the tokens"),
        ({"tokens": "abcde"}, "not the string 'abcde'"),
        ({"tokens": TOKENS, "example": 1}, "holds a batch of 1 texts, numbered from 0; there is no 1"),
        ({"tokens": TOKENS, "example": -1}, "there is no -1"),
        ({"tokens": hs.Tokens(pieces=tuple(TOKENS), texts=("a",)), "text": "b"}, "the tokens hold theirs already"),
    ],
)
def test_what_does_not_fit_the_cache_is_refused(made, arguments, message):
    with pytest.raises(RecordError, match=message):
        hs.from_transformer_lens(made(), **arguments)


def test_a_record_from_a_cache_is_saved_and_drawn_like_any_other(made, tmp_path):
    record = hs.from_transformer_lens(made(), TOKENS)
    hs.save(record, tmp_path / "run.safetensors")
    loaded = hs.load(tmp_path / "run.safetensors")
    np.testing.assert_array_equal(loaded["self"].weights(1), record["self"].weights(1))
    assert loaded["self"].layer(1).route == "TransformerLens"
    hs.page(record).save(tmp_path / "page.html")
    assert "Once" in (tmp_path / "page.html").read_text()
