"""Prompts that are generated from together: each record equals that of its prompt alone."""

import warnings

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import generate_many
from headscope.errors import CaptureError, TextError

from ...close import assert_close
from .conftest import FAMILIES, NEVER, bare_tokenizer, model_of

PROMPTS = ["the cat", "a dog ran there", "c", "the hen sat"]
"""Of 6, 12, 1 and 9 tokens."""
DECODERS = [name for name in FAMILIES if not name.startswith(("t5", "bart", "switch"))]
OPTIONS = {"max_new_tokens": 9, "eos_token_id": NEVER, "do_sample": False}
LOOSE = {"qwen3_next", "jamba"}
"""Their linear layers take another path for several texts; of few tokens a rotation that is just
fitted in one of both runs is not in the other.
"""


def together(model, prompts=PROMPTS, **options):
    """The records, in a run that would warn where prompts are run one at a time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*one at a time")
        return hs.generate(model, bare_tokenizer(), prompts, **OPTIONS | options)


def assert_alike(ours, theirs, within, *, rotary=True):
    assert list(ours.stacks) == list(theirs.stacks)
    for name in ours.stacks:
        for mine, other in zip(ours[name], theirs[name], strict=True):
            assert mine.visible == other.visible
            assert mine.kind == other.kind
            if rotary:
                assert (mine.rotary is None) == (other.rotary is None)
            for head in mine.held_heads.numbers if mine.held_heads else [None]:
                np.testing.assert_allclose(
                    mine.weights_of(head), other.weights_of(head), atol=within
                )
            for array in ("queries", "keys", "values"):
                one, two = getattr(mine, array), getattr(other, array)
                assert (one is None) == (two is None)
                if one is not None:
                    np.testing.assert_allclose(one, two, atol=within * max(1, np.abs(two).max()))
    one, two = ours.generation, theirs.generation
    for fact in ("tokens", "text", "prompt", "reads", "stop", "ranks", "stack"):
        assert getattr(one, fact) == getattr(two, fact)
    np.testing.assert_allclose(one.probabilities, two.probabilities, atol=1e-5)
    np.testing.assert_allclose(one.entropies, two.entropies, atol=1e-4)


@pytest.mark.parametrize("family", DECODERS)
def test_each_prompt_has_the_numbers_that_it_has_alone(family):
    # Five tokens more slide the window of every model that has one (4 tokens).
    model, fewer = model_of(family), {"max_new_tokens": 5}
    records = together(model, batch_size=4, **fewer)
    for prompt, record in zip(PROMPTS, records, strict=True):
        alone = hs.generate(model, bare_tokenizer(), prompt, **OPTIONS | fewer)
        is_loose = family in LOOSE
        assert_alike(record, alone, 1e-4 if is_loose else 1e-5, rotary=not is_loose)


def test_they_are_run_as_many_at_a_time_as_was_asked_for():
    model, sizes = model_of("gpt2"), []
    own = model.generate

    def noted(input_ids, **options):
        sizes.append(tuple(input_ids.shape))
        return own(input_ids=input_ids, **options)

    model.generate = noted
    together(model, batch_size=3)
    # of like length together: 1, 6 and 9 tokens, then 12
    assert sizes == [(3, 9), (1, 12)]
    sizes.clear()
    together(model, batch_size=1)
    assert sorted(sizes) == [(1, 1), (1, 6), (1, 9), (1, 12)]
    sizes.clear()
    together(model)
    assert sizes == [(4, 12)]


def test_a_text_that_ends_early_is_as_long_as_it_is_alone():
    """Others of its batch go on; what the model is fed in its place is not in its record."""
    model, end = model_of("llama"), 23
    records = together(model, eos_token_id=end)
    assert [len(record.generation) for record in records] == [9, 8, 4, 9]
    assert [record.generation.stop for record in records] == ["length", "end", "end", "length"]
    for prompt, record in zip(PROMPTS, records, strict=True):
        alone = hs.generate(model, bare_tokenizer(), prompt, **OPTIONS | {"eos_token_id": end})
        assert_alike(record, alone, 1e-5)


@pytest.mark.parametrize("window", [2, 5, 10, 14])
def test_a_window_may_slide_past_the_padding_at_any_step(window):
    model = model_of("mistral", sliding_window=window)
    for prompt, record in zip(PROMPTS, together(model), strict=True):
        assert_alike(record, hs.generate(model, bare_tokenizer(), prompt, **OPTIONS), 1e-5)


def test_chosen_heads_and_half_precision_are_kept_of_each():
    model, kept = model_of("llama"), {"heads": [(1, 0)], "precision": "float16"}
    for prompt, record in zip(PROMPTS, together(model, **kept), strict=True):
        alone = hs.generate(model, bare_tokenizer(), prompt, **OPTIONS, **kept)
        assert [layer.layer for layer in record["self"]] == [1]
        assert record["self"].layer(1).keys.dtype == np.float16
        assert_alike(record, alone, 2e-3)


def test_a_model_that_counts_the_padding_is_run_on_one_prompt_at_a_time():
    """Its positions count from the padding on, as those of models do that ignore the mask."""
    model = model_of("gpt2")
    own = model.transformer.forward

    def counting(*args, position_ids=None, past_key_values=None, **options):
        ids = options.get("input_ids", args[0] if args else None)
        first = 0 if past_key_values is None else past_key_values.get_seq_length()
        places = torch.arange(first, first + ids.shape[1])[None]
        return own(*args, position_ids=places, past_key_values=past_key_values, **options)

    model.transformer.forward = counting
    with pytest.warns(UserWarning, match="run one at a time: .* computes something else"):
        records = hs.generate(model, bare_tokenizer(), PROMPTS, **OPTIONS)
    for prompt, record in zip(PROMPTS, records, strict=True):
        assert_alike(record, hs.generate(model, bare_tokenizer(), prompt, **OPTIONS), 1e-6)


@pytest.mark.parametrize(
    ("family", "options", "reason"),
    [
        ("t5", {}, "an encoder-decoder reads one source at a time"),
        ("gpt2", {"do_sample": True, "seed": 3}, "sampled with the seed"),
        ("gpt2", {"repetition_penalty": 1.3}, "repetition_penalty may depend on the padding"),
        ("gpt2", {"cache_implementation": "static"}, "cache_implementation may depend"),
    ],
)
def test_what_cannot_share_a_batch_is_said_and_run_alone(family, options, reason):
    model = model_of(family)
    chosen = OPTIONS | options
    with pytest.warns(UserWarning, match=f"one at a time: .*{reason}"):
        records = hs.generate(model, bare_tokenizer(), PROMPTS[:2], batch_size=2, **chosen)
    for prompt, record in zip(PROMPTS, records, strict=False):
        assert_alike(record, hs.generate(model, bare_tokenizer(), prompt, **chosen), 0)


def test_so_are_prompts_inside_an_intervention():
    model = model_of("gpt2")
    with hs.intervene(model, hs.Zero(layer=0, heads=[0])):
        records = hs.generate(model, bare_tokenizer(), PROMPTS[:2], **OPTIONS)
        alone = [hs.generate(model, bare_tokenizer(), prompt, **OPTIONS) for prompt in PROMPTS[:2]]
    for record, other in zip(records, alone, strict=True):
        assert record["self"].layer(0).changes
        assert_alike(record, other, 0)


def test_rows_of_a_data_set_are_prompts_too():
    rows = [{"prompt": "the cat", "label": 1}, {"text": "a dog", "idx": 2}]
    texts = [record["self"].query.texts[0] for record in together(model_of("gpt2"), rows)]
    assert texts[0].startswith("the cat")
    assert texts[1].startswith("a dog")


def test_a_wrong_prompt_is_named_by_its_number():
    model, tokenizer = model_of("gpt2"), bare_tokenizer()
    with pytest.raises(TextError, match="Prompt 1 .from 0.: The text is empty"):
        hs.generate(model, tokenizer, ["a", " "])
    with pytest.raises(TextError, match="Prompt 1 .from 0.: After 30 tokens the model has"):
        hs.generate(model, tokenizer, ["a", "a " * 30], max_new_tokens=9)
    with pytest.raises(TextError, match="no prompt to generate from"):
        hs.generate(model, tokenizer, [])
    with pytest.raises(TextError, match="A prompt is one text"):
        hs.generate(model, tokenizer, [("a", "b")])
    with pytest.raises(CaptureError, match="batch_size must be a whole number from 1 on, not 0"):
        hs.generate(model, tokenizer, "a", batch_size=0)
    with pytest.raises(TextError, match="many inputs and was given one text"):
        generate_many(model, tokenizer, "a")


def test_it_may_be_left_out_instead():
    lost = []
    given = ["a", None, "a " * 30, "the cat"]
    records = generate_many(
        model_of("gpt2"),
        bare_tokenizer(),
        given,
        max_new_tokens=4,
        on_error=lambda index, _: lost.append(index),
    )
    assert [record.generation.prompt for record in records] == [1, 6]
    assert lost == [1, 2]


def test_a_layer_keeps_the_heads_that_its_own_stack_was_asked_for():
    model, tokenizer = model_of("t5 (equal)"), bare_tokenizer()
    chosen = [("encoder", 0, 1), ("decoder", 0, 0), ("decoder", 0, 2), ("cross", 1, 2)]
    own, part = (
        hs.generate(model, tokenizer, "the cat", **OPTIONS, keep="qk", **heads)
        for heads in ({}, {"heads": chosen})
    )
    cells = {(name, *cell) for name, stack in part.stacks.items() for cell in stack.held_heads}
    assert cells == set(chosen)
    for name, layer, head in chosen:
        whole = own[name].weights(layer=layer, head=head)
        assert_close(part[name].weights(layer=layer, head=head), whole)
