"""Caches as plain mappings, with the names and shapes that transformer-lens 3.9.0 and 4.3.0 were
seen to produce.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import RecordError
from headscope.record import Tokens

TOKENS = ["<|endoftext|>", "Once", " upon", " a", " time"]
SOURCE = ["the", "cat", "sat", "on", "a", "mat", "</s>"]
TARGET = ["<pad>", "die", "Katze", "saß"]
CAUSAL = np.tril(np.ones((5, 5), bool))


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
    record = hs.foreign.from_transformer_lens(given(cache), TOKENS, text="Once upon a time")
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
    facts = {
        "attn_scale": 3.0,
        "use_attn_scale": True,
        "attn_scores_soft_cap": 0.7,
        "model_name": "gemma",
    }
    model = config(**facts, architecture="Gemma2ForCausalLM", dtype=torch.float32)
    cache = made(scale=1 / 3, cap=0.7)
    for record in (
        hs.foreign.from_transformer_lens(cache, TOKENS, model=model),
        hs.foreign.from_transformer_lens(cache, TOKENS, model=model.cfg),
        hs.foreign.from_transformer_lens(cache, TOKENS, model=vars(model.cfg)),
        hs.foreign.from_transformer_lens(ActivationCache(cache, model), TOKENS),
    ):
        layer = record["self"].layer(1)
        assert (layer.scale, layer.soft_cap) == (1 / 3, 0.7)
        assert (record.model.name, record.model.class_name, record.model.dtype) == (
            "gemma",
            "Gemma2ForCausalLM",
            "float32",
        )


def test_rotated_queries_and_keys_are_taken_before_plain_ones(made, rng):
    cache = made()
    for name in "qk":
        plain = cache[f"blocks.1.attn.hook_{name}"]
        cache[f"blocks.1.attn.hook_rot_{name}"] = plain
        cache[f"blocks.1.attn.hook_{name}"] = rng.standard_normal(plain.shape).astype(np.float32)
    layer = hs.foreign.from_transformer_lens(
        cache, TOKENS, model=config(positional_embedding_type="rotary")
    )["self"].layer(1)
    np.testing.assert_array_equal(
        layer.queries, cache["blocks.1.attn.hook_rot_q"][0].swapaxes(0, 1)
    )


def test_a_rotary_model_without_rotated_queries_keeps_weights_and_values(made):
    # A TransformerBridge (4.3.0) over GPT-NeoX or GPT-J.
    model = config(positional_embedding_type="rotary")
    layer = hs.foreign.from_transformer_lens(made(), TOKENS, model=model)["self"].layer(1)
    assert (layer.queries, layer.keys) == (None, None)
    assert layer.values is not None
    assert layer.verified < 1e-6


def test_one_text_of_a_batch_and_its_place_in_the_padding(made):
    cache = made(batch=3, visible=CAUSAL & (np.arange(5) > 1) | np.eye(5, dtype=bool))
    record = hs.foreign.from_transformer_lens(
        cache, TOKENS[2:], example=2, positions=slice(2, None)
    )
    np.testing.assert_array_equal(
        record["self"].weights(1), cache["blocks.1.attn.hook_pattern"][2][:, 2:, 2:]
    )
    assert record["self"].layer(1).kind == "causal"
    with pytest.raises(RecordError, match="of the weight of query 0 to keys that positions leave"):
        hs.foreign.from_transformer_lens(cache, TOKENS[3:], example=2, positions=slice(3, None))
    listed = hs.foreign.from_transformer_lens(cache, TOKENS[2:], example=2, positions=[2, 3, 4])
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
    record = hs.foreign.from_transformer_lens(
        cache, SOURCE, decoder_tokens=TARGET, text="the cat sat on a mat"
    )
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    assert record["cross"].query.pieces == tuple(TARGET)
    assert record["cross"].key.texts == ("the cat sat on a mat",)
    np.testing.assert_array_equal(record["cross"].weights(0), cache[f"{cross}.hook_pattern"][0])
    with pytest.raises(RecordError, match="give decoder_tokens"):
        hs.foreign.from_transformer_lens(cache, SOURCE)
    with pytest.raises(RecordError, match="positions are for models with one stack"):
        hs.foreign.from_transformer_lens(cache, SOURCE, decoder_tokens=TARGET, positions=[1])


def test_layers_keep_their_numbers_in_order(made):
    cache = (
        made("blocks.10.attn")
        | made("blocks.9.attn")
        | {"blocks.2.attn.hook_z": 1, "hook_embed": 2}
    )
    assert [layer.layer for layer in hs.foreign.from_transformer_lens(cache, TOKENS)["self"]] == [
        9,
        10,
    ]


def changed(hook, change):
    def given(cache):
        name = f"blocks.1.attn.hook_{hook}"
        return cache | {name: change(cache[name])}

    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (changed("pattern", lambda a: a[:, ::-1]), r"by (0\.\d+|1) \(allowed 0.0001\). Either the"),
        (changed("k", lambda a: a[:, :, ::-1]), r"softmax\(queries . keys\) differs"),
        (changed("z", lambda a: a * 1.01), "weights times values differ from the output of the"),
        (changed("v", lambda a: a[:, :, ::-1]), "weights times values differ"),
        (changed("v", lambda a: a[:, :4]), r"weights \(6, 5, 5\) do not fit values \(2, 4, 4\)"),
        (changed("q", lambda a: a[..., :3]), r"queries \(6, 5, 3\) and keys \(2, 5, 4\) do not"),
        (changed("q", lambda a: a[:, :4]), r"queries and keys give \(6, 4, 5\), but \(6, 5, 5\)"),
        (changed("q", lambda a: a[0, 0]), r"hook_q has shape \(6, 4\); expected the axes \[query"),
        (changed("q", lambda a: a * np.nan), "queries of blocks.1.attn holds nan"),
        (changed("pattern", lambda a: np.repeat(a, 2, 0)), "hook_pattern holds a batch of 2"),
        (changed("pattern", lambda _: "yes"), "hook_pattern is not an array of numbers"),
        (lambda c: {"blocks.1.attn.hook_q": 1}, "holds no attention: expected names such as"),
        (lambda c: {}, "given were none"),
        (
            lambda c: c | {"vision_encoder.0.attn.hook_pattern": 1},
            "place of: vision_encoder.0.attn.hook_pattern",
        ),
    ],
)
def test_what_does_not_agree_is_refused(made, given, message):
    with pytest.raises(RecordError, match=message):
        hs.foreign.from_transformer_lens(given(made()), TOKENS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": TOKENS[1:]}, "but 4 query tokens and 4 key tokens were given; count the"),
        ({"tokens": "abcde"}, "not 'abcde'"),
        ({"tokens": TOKENS, "example": 1}, "holds a batch of 1 texts, numbered from 0; there is"),
        ({"tokens": TOKENS, "example": -1}, "whole number from 0 on, not -1"),
        (
            {"tokens": Tokens(pieces=tuple(TOKENS), texts=("a",)), "text": "b"},
            "the tokens hold theirs already",
        ),
    ],
)
def test_what_does_not_fit_the_cache_is_refused(made, arguments, message):
    with pytest.raises(RecordError, match=message):
        hs.foreign.from_transformer_lens(made(), **arguments)


def test_a_record_from_a_cache_is_saved_and_drawn_like_any_other(made, tmp_path):
    record = hs.foreign.from_transformer_lens(made(), TOKENS)
    hs.save(record, tmp_path / "run.safetensors")
    loaded = hs.load(tmp_path / "run.safetensors")
    np.testing.assert_array_equal(loaded["self"].weights(1), record["self"].weights(1))
    assert loaded["self"].layer(1).route == "TransformerLens"
    hs.view(record).save(tmp_path / "page.html")
    assert "Once" in (tmp_path / "page.html").read_text()
