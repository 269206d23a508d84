"""The text of a record is that of `model.generate` with the same settings, whoever gave them."""

from copy import deepcopy
from functools import cache

import pytest
import torch

import headscope as hs
from headscope.errors import TextError
from headscope.interventions import Zero

from ...close import assert_close
from .conftest import PROMPT, assert_equal_to_one_pass, model_of

SETTINGS = [
    {"num_beams": 4},
    {"num_beams": 3, "early_stopping": True, "eos_token_id": [2, *range(10, 40)]},
    {"num_beams": 2, "do_sample": True, "temperature": 1.5},
    {"do_sample": True, "top_k": 5},
    {"forced_bos_token_id": 9, "forced_eos_token_id": 2},
    {"suppress_tokens": list(range(5, 30))},
    {"repetition_penalty": 1.8, "no_repeat_ngram_size": 2},
    {"min_length": 7, "eos_token_id": [2, *range(10, 40)], "num_beams": 2},
    {"sequence_bias": [[[8], 10.0]]},
    {"max_new_tokens": 3},
]


FAMILIES = ["llama", "bart", "t5 (equal)"]


def varied(family, tokenizer):
    """A model that finds another text by four beams than by one."""
    return deepcopy(_varied(family, tokenizer))


@cache
def _varied(family, tokenizer):
    given = {"max_new_tokens": 6, "eos_token_id": 63}
    for seed in range(40):
        model = model_of(family)
        torch.manual_seed(seed)
        head = model.get_output_embeddings().weight
        with torch.no_grad():
            head.copy_(0.3 * torch.randn_like(head))
        one, four = (text_of(model, tokenizer, num_beams=beams, **given) for beams in (1, 4))
        if one != four:
            return model
    raise AssertionError(f"beams of {family} change nothing")


def text_of(model, reads, **options):
    """What the model itself writes, from its first word on."""
    given = reads(PROMPT, return_tensors="pt")
    torch.manual_seed(5)
    ids = model.generate(
        input_ids=given["input_ids"], attention_mask=given["attention_mask"], **options
    )
    before = 1 if model.config.is_encoder_decoder else given["input_ids"].shape[1]
    return tuple(ids[0, before:].tolist())


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: ",".join(each))
@pytest.mark.parametrize(
    ("family", "as_argument"), [*((family, False) for family in FAMILIES), ("llama", True)]
)
def test_every_setting_is_followed(family, settings, as_argument, tokenizer):
    model = varied(family, tokenizer)
    given = {"max_new_tokens": 8} | settings if as_argument else {}
    if not as_argument:
        model.generation_config.update(**{"max_new_tokens": 8} | settings)
    wanted = text_of(model, tokenizer, **given)
    record = hs.generate(model, tokenizer, PROMPT, seed=5, allow_unfit=True, **given)
    assert record.generation.tokens.ids == wanted
    assert record.generation.sampled == settings.get("do_sample", False)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_of_beams_is_recorded_as_one_pass_over_it(family, tokenizer):
    model = varied(family, tokenizer)
    given = {"max_new_tokens": 6, "eos_token_id": 63}
    one, four = (
        hs.generate(model, tokenizer, PROMPT, num_beams=beams, **given) for beams in (1, 4)
    )
    assert one.generation.tokens.ids != four.generation.tokens.ids
    assert_equal_to_one_pass(model, four)
    assert (four.generation.stop, len(four.generation.reads)) == ("length", 6)
    two = hs.generate(model, tokenizer, [PROMPT, "a dog"], num_beams=4, **given)
    assert_close(two[0].generation, four.generation)


def test_beams_of_a_changed_model_are_those_of_the_change(tokenizer):
    model, change = varied("llama", tokenizer), Zero(layer=0, heads=[0, 1, 2])
    given = {"max_new_tokens": 6, "num_beams": 3, "eos_token_id": 63}
    with hs.intervene(model, change):
        wanted = text_of(model, tokenizer, **given)
        record = hs.generate(model, tokenizer, PROMPT, **given)
    assert record.generation.tokens.ids == wanted
    assert wanted != text_of(model, tokenizer, **given)


def test_a_length_of_the_models_own_is_the_default(tokenizer):
    model = varied("bart", tokenizer)
    model.generation_config.max_length = 5
    given = {"eos_token_id": 63}
    record = hs.generate(model, tokenizer, PROMPT, **given)
    assert record.generation.tokens.ids == text_of(model, tokenizer, **given)
    assert len(record.generation) == 4


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_length_of_a_decoders_own_counts_the_prompt(family, tokenizer):
    model = varied(family, tokenizer)
    model.generation_config.update(max_length=12, min_length=11, eos_token_id=63)
    prompts = [PROMPT, "a dog", "the cat"]
    for prompt, record in zip(prompts, hs.generate(model, tokenizer, prompts), strict=True):
        given = tokenizer(prompt, return_tensors="pt")
        whole = model.generate(**given)[0].tolist()
        assert record.generation.tokens.ids == tuple(whole[given["input_ids"].shape[1] :])
        alone = hs.generate(model, tokenizer, prompt).generation
        assert alone.tokens.ids == record.generation.tokens.ids
    model.generation_config.max_length = 2
    with pytest.raises(TextError, match="max_length, which counts them, is 2; give max_new_tokens"):
        hs.generate(model, tokenizer, PROMPT)
    assert len(hs.generate(model, tokenizer, PROMPT, max_new_tokens=3).generation.tokens.ids) == 3


def test_a_capture_reads_the_target_that_beams_choose(tokenizer):
    model = varied("bart", tokenizer)
    model.generation_config.update(num_beams=4, max_new_tokens=6, eos_token_id=63)
    target = hs.capture(model, tokenizer, PROMPT)["decoder"].query.ids
    assert target[1:] == text_of(model, tokenizer)
    model.generation_config.num_beams = 1
    assert target[1:] != text_of(model, tokenizer)
