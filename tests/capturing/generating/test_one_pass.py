"""A generated text is recorded as one full pass over it."""

import dataclasses

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError

from .conftest import (
    COUNT,
    FAMILIES,
    NEVER,
    PROMPT,
    assert_equal_to_one_pass,
    bare_tokenizer,
    full_pass,
    model_of,
    written,
)

STATIC = ("gpt2", "mistral", "gemma2", "qwen3_next", "falcon", "t5 (equal)", "bart")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_is_recorded_as_one_full_pass(family, tokenizer):
    model, record = written(family, tokenizer, keep=("qk", "values"))
    assert_equal_to_one_pass(model, record)
    assert record.verified < 1e-5


@pytest.mark.parametrize(
    "family", ["llama", "gptj", "gemma3_text", "qwen3_next", "deepseek_v3", "bloom"]
)
def test_what_is_read_off_the_model_is_read_off_its_first_step(family, tokenizer):
    model, record = written(family, tokenizer)
    whole = full_pass(model, record)[0]
    assert record.model == dataclasses.replace(whole.model, called_with=record.model.called_with)
    assert record["self"].others == whole["self"].others
    for ours, theirs in zip(record["self"], whole["self"], strict=True):
        assert (ours.norm, ours.latent, ours.rotary is None) == (
            theirs.norm,
            theirs.latent,
            theirs.rotary is None,
        )
        if ours.rotary is not None:
            np.testing.assert_allclose(
                ours.rotary.frequencies, theirs.rotary.frequencies, atol=1e-4
            )
            np.testing.assert_allclose(
                ours.before_positions()[1], theirs.before_positions()[1], atol=2e-3
            )


@pytest.mark.parametrize("family", STATIC)
def test_so_are_those_of_a_static_cache(family, tokenizer):
    model, record = written(family, tokenizer, keep=("qk", "values"), cache_implementation="static")
    assert_equal_to_one_pass(model, record)


def test_a_deep_decoder_is_written_by_with_a_cache(tokenizer):
    """The same text as without any cache, which transformers can do."""
    model, record = written("t5", tokenizer)
    source = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    options = {"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False}
    wanted = model.generate(source, use_cache=False, **options)[0, record.generation.prompt :]
    assert list(record.generation.tokens.ids) == wanted.tolist()
    assert record.generation.reads == (1,) * COUNT


@pytest.mark.parametrize("family", ["gpt2", "mistral", "bloom"])
def test_a_prompt_may_be_read_in_parts(family, tokenizer):
    model, record = written(family, tokenizer, prefill_chunk_size=3)
    assert record.generation.reads[:3] == (3, 3, 2)
    assert record.generation.step_of[:9].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("window", [2, 10, 40])
def test_a_window_may_be_reached_at_any_step(window, tokenizer):
    """8 tokens are given and 10 read back, so that the cache begins to slide before, at or after
    the first step.
    """
    model = model_of("mistral", sliding_window=window)
    options = {"cache_implementation": "static", "prefill_chunk_size": 3}
    record = hs.generate(model, tokenizer, PROMPT, max_new_tokens=11, **options)
    assert len(record["self"].query) == 18
    assert {layer.kind for layer in record["self"]} == {"sliding" if window < 18 else "causal"}
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("family", ["gpt2", "gptj", "mistral"])
def test_a_prompt_may_be_one_token(family):
    model = model_of(family)
    record = hs.generate(model, bare_tokenizer(), "c", max_new_tokens=6)
    assert record.generation.reads == (1,) * 6
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("keep", ["weights", "statistics", "norms", "before"])
def test_all_that_a_capture_keeps_may_be_kept(keep, tokenizer):
    kept = ("qk", keep) if keep == "before" else keep
    model, record = written("llama", tokenizer, keep=kept)
    whole = capture_encoded(model, None, [record["self"].query.ids], keep=kept)[0]
    for ours, theirs in zip(record["self"], whole["self"], strict=True):
        assert ours.has("weights") == theirs.has("weights")
        for name in ("statistics", "contributions", "value_norms", "queries_before"):
            assert (getattr(ours, name, None) is None) == (getattr(theirs, name, None) is None)


def test_half_precision_may_round_otherwise_in_a_step_than_in_a_pass(tokenizer):
    """Also where the model itself gives its logits in single precision, as some do."""
    model = model_of("llama").to(torch.bfloat16)
    with torch.no_grad():
        model.lm_head.weight.mul_(20)
    model.lm_head.register_forward_hook(lambda module, args, output: output.float())
    options = {"max_new_tokens": 20, "eos_token_id": NEVER, "do_sample": True, "seed": 1}
    assert len(hs.generate(model, tokenizer, PROMPT, **options).generation) == 20


class Kinds:
    """A tokenizer that gives more than ids and a mask, a row for each text."""

    def __init__(self, tokenizer, name):
        self.tokenizer, self.name = tokenizer, name

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def __call__(self, *texts, **options):
        encoding = self.tokenizer(*texts, **options)
        encoding[self.name] = [1] * len(encoding["input_ids"])
        return encoding


def test_all_that_the_tokenizer_gives_is_read(tokenizer):
    """GPT-2 adds a vector for each kind of token: a text without them is another text."""
    model, kinds = model_of("gpt2"), Kinds(tokenizer, "token_type_ids")
    record = hs.generate(model, kinds, PROMPT, max_new_tokens=COUNT)
    ids = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    own = model.generate(
        ids, token_type_ids=torch.ones_like(ids), max_new_tokens=COUNT, do_sample=False
    )
    assert record.generation.tokens.ids == tuple(own[0, ids.shape[1] :].tolist())
    assert record.generation.tokens.ids != written("gpt2", tokenizer)[1].generation.tokens.ids
    batch = hs.generate(model, kinds, [PROMPT, "the cat sat. a dog"], max_new_tokens=COUNT)
    assert batch[0].generation.tokens.ids == record.generation.tokens.ids
    np.testing.assert_allclose(
        batch[0]["self"].layer(1).keys, record["self"].layer(1).keys, atol=1e-5
    )


def test_what_the_tokenizer_gives_and_is_not_read_is_named(tokenizer):
    with pytest.warns(UserWarning, match="LlamaForCausalLM does not read token_type_ids"):
        hs.generate(model_of("llama"), Kinds(tokenizer, "token_type_ids"), PROMPT, max_new_tokens=1)
    with pytest.raises(CaptureError, match="reads position_ids of its tokenizer"):
        hs.generate(model_of("gpt2"), Kinds(tokenizer, "position_ids"), PROMPT, max_new_tokens=1)
    with pytest.warns(UserWarning, match="in no stack: 6 of 6 of input 0 .from 0."):
        hs.generate(
            model_of("bart"), tokenizer, PROMPT, max_new_tokens=1, heads=[("decoder", 0, 1)]
        )
