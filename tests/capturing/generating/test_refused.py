"""What cannot be recorded is refused, or kept in another way, and said."""

import numpy as np
import pytest
from transformers import cache_utils

import headscope as hs
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model

from .conftest import COUNT, NEVER, PROMPT, assert_equal_to_one_pass, full_pass, model_of, written

OTHERWISE = "computes something else where it writes a text step by step than where it reads"


def test_a_cache_that_changes_its_keys_is_refused(tokenizer, monkeypatch):
    update = cache_utils.DynamicLayer.update

    def rounded(self, *arguments, **options):
        keys, values = update(self, *arguments, **options)
        self.keys = (keys * 2).round() / 2
        return keys, values

    monkeypatch.setattr(cache_utils.DynamicLayer, "update", rounded)
    with pytest.raises(CaptureError, match=f"GPT2LMHeadModel {OTHERWISE}"):
        written("gpt2", tokenizer)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("gpt_neo", {"cache_implementation": "static"}),  # it looks at empty places of the cache
        ("bert", {"allow_unfit": True}),  # it looks in both directions
        ("xlm", {}),  # it reads one more word, which stands for the one to be written
    ],
)
def test_a_text_that_one_pass_reads_otherwise_is_refused(family, options, tokenizer):
    with pytest.raises(CaptureError, match=OTHERWISE):
        written(family, tokenizer, **options)


def test_a_wrong_reconstruction_at_a_later_step_is_refused(tokenizer):
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def sharpened(module, query, key, value, mask, **options):
        return sdpa_attention_forward(
            module, query * (1 + (key.shape[2] > 10)), key, value, mask, **options
        )

    AttentionInterface.register("sharpened later", sharpened)
    AttentionMaskInterface.register("sharpened later", sdpa_mask)
    model = model_of("gpt2")
    model.set_attn_implementation("sharpened later")
    with pytest.raises(CaptureError, match="differs from the model's own by .* and is refused"):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=COUNT, eos_token_id=NEVER)
    assert (
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=3, eos_token_id=NEVER).verified < 1e-5
    )


def telling_model(sharp_from):
    """A model that returns its weights, sharpened from so many keys on: they do not follow from
    queries and keys.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask
    from transformers.models.llama.modeling_llama import eager_attention_forward

    def telling(module, query, key, value, mask, **options):
        return eager_attention_forward(
            module, query * (1 + (key.shape[2] >= sharp_from)), key, value, mask, **options
        )

    AttentionInterface.register("telling", telling)
    AttentionMaskInterface.register("telling", eager_mask)
    model = model_of("llama")
    model.set_attn_implementation("telling")
    return model


def test_weights_are_kept_where_they_do_not_follow_from_queries_and_keys(tokenizer):
    model, options = telling_model(sharp_from=1), {"max_new_tokens": COUNT, "eos_token_id": NEVER}
    record = hs.generate(model, tokenizer, PROMPT, keep="qk", **options)
    whole = full_pass(model, record)[0]
    for ours, theirs in zip(record["self"], whole["self"], strict=True):
        assert ours.queries is None
        assert np.abs(ours.weights - theirs.weights).max() < 1e-5


def test_steps_that_are_sharpened_later_are_refused(tokenizer):
    model, options = telling_model(sharp_from=12), {"max_new_tokens": COUNT, "eos_token_id": NEVER}
    with pytest.raises(CaptureError, match=OTHERWISE):
        hs.generate(model, tokenizer, PROMPT, keep="qk", **options)


def test_a_model_without_a_cache_is_recorded(tokenizer):
    model, record = written("openai-gpt", tokenizer)
    assert_equal_to_one_pass(model, record)


def test_a_model_without_attention_is_refused(tokenizer):
    with pytest.raises(CaptureError, match="MambaForCausalLM computed no softmax attention that"):
        written("mamba", tokenizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beam_groups": 2}, "num_beam_groups=2 cannot be recorded: beams in groups"),
        ({"num_return_sequences": 2}, "num_return_sequences=2 .* one text; call generate once"),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup_num_tokens=3 cannot be recorded:"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "penalty_alpha=0.6 cannot be recorded: contrastive"),
        ({"guidance_scale": 1.5}, "guidance_scale=1.5 cannot be recorded: guidance runs"),
        ({"max_length": 30}, "max_length=30 cannot be recorded: give max_new_tokens"),
        ({"output_scores": True}, "output_scores=True cannot be recorded: generate returns"),
        ({"temperatur": 0.5}, "generate has no option 'temperatur'; did you mean temperature?"),
        ({"colour": 1}, "generate has no option 'colour'; there are those"),
        ({"keep": "all"}, "keep must be 'auto', or one or several of"),
        ({"precision": "int8"}, "precision must be 'float32' or 'float16'"),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number from 1 on, not 0"),
        ({"max_new_tokens": True}, "max_new_tokens must be a whole number from 1 on, not True"),
        ({"alternatives": -1}, "alternatives must be a whole number from 0 on, not -1"),
        ({"do_sample": True, "temperature": -1.0}, "GPT2LMHeadModel cannot generate like this:"),
    ],
)
def test_what_cannot_be_recorded_is_one_clear_error(options, message, tokenizer):
    with pytest.raises(CaptureError, match=message):
        hs.generate(model_of("gpt2"), tokenizer, PROMPT, **{"max_new_tokens": 4} | options)


def test_an_assisting_model_is_one_clear_error(tokenizer):
    message = "assistant_model=GPT2LMHeadModel .* tokens that it take"
    model, assistant = model_of("gpt2"), model_of("gpt2")
    with pytest.raises(CaptureError, match=message):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=4, assistant_model=assistant)


@pytest.mark.parametrize(
    "own",
    [
        {"num_return_sequences": 2, "num_beams": 2},
        {"penalty_alpha": 0.6},
        {"prompt_lookup_num_tokens": 3},
        {"num_beam_groups": 2, "num_beams": 4},
        {"dola_layers": "high"},
    ],
)
def test_what_the_models_own_configuration_asks_for_is_refused_by_name(own, tokenizer):
    model = model_of("llama")
    model.generation_config.update(**own)
    with pytest.raises(CaptureError, match=f"{next(iter(own))}=.* cannot be recorded"):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=4)


@pytest.mark.parametrize(
    "own",
    [
        {"num_beam_groups": 2, "num_beams": 4},
        {"penalty_alpha": 0.6, "top_k": 4},
        {"dola_layers": "high"},
    ],
)
def test_a_target_that_cannot_be_written_is_one_clear_error(own, tokenizer):
    model = model_of("bart")
    for name, value in own.items():
        setattr(model.generation_config, name, value)
    with pytest.raises(CaptureError, match=f"with .*{next(iter(own))}=.*; give one with target="):
        hs.capture(model, tokenizer, PROMPT)
    hs.capture(model, tokenizer, PROMPT, target="a dog")


@pytest.mark.parametrize("own", [{"return_dict_in_generate": True}, {"num_return_sequences": 2}])
def test_a_target_is_one_text_whatever_else_is_to_come_back(own, tokenizer):
    model = model_of("bart")
    model.generation_config.num_beams = 2
    wanted = hs.capture(model, tokenizer, PROMPT)["decoder"].query.ids
    for name, value in own.items():
        setattr(model.generation_config, name, value)
    assert hs.capture(model, tokenizer, PROMPT)["decoder"].query.ids == wanted


@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        ("", TextError, "The text is empty"),
        (None, CaptureError, "generate needs a prompt"),
        ("a " * 40, TextError, "positions for 32"),
    ],
)
def test_a_prompt_that_will_not_do(prompt, error, message, tokenizer):
    with pytest.raises(error, match=message):
        hs.generate(model_of("gpt2"), tokenizer, prompt)


def test_a_model_that_cannot_write_is_refused(tokenizer):
    message = "GPT2Model cannot write: it has no head that predicts tokens; load"
    with pytest.raises(CaptureError, match=message):
        hs.generate(tiny_model("gpt2"), tokenizer, PROMPT)


def test_a_text_that_has_no_room_is_said_before_it_is_begun(tokenizer):
    model = model_of("gpt2")
    with pytest.raises(TextError, match="After 8 tokens the model has positions to write 25 more,"):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=26)
    assert (
        len(hs.generate(model, tokenizer, PROMPT, max_new_tokens=25, eos_token_id=NEVER).generation)
        == 25
    )


def test_a_model_may_be_named_by_its_folder(tmp_path, tokenizer):
    model = model_of("llama")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    named = hs.generate(tmp_path, prompt=PROMPT, max_new_tokens=4, eos_token_id=NEVER)
    given = hs.generate(model, tokenizer, PROMPT, max_new_tokens=4, eos_token_id=NEVER)
    assert named.generation.tokens == given.generation.tokens
    np.testing.assert_allclose(
        named.generation.probabilities, given.generation.probabilities, atol=1e-6
    )
    with pytest.raises(CaptureError, match="generate needs the tokenizer of LlamaForCausalLM"):
        hs.generate(model, prompt=PROMPT)


@pytest.mark.parametrize("family", ["falcon (alibi)", "prophetnet"])
def test_a_cache_that_the_model_fails_on_is_one_clear_error(family, tokenizer):
    options = {"max_new_tokens": 4, "cache_implementation": "static", "allow_unfit": True}
    with pytest.raises(CaptureError, match="cannot generate like this: .*size"):
        hs.generate(tiny_model(family, writes=True), tokenizer, PROMPT, **options)
