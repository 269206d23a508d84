"""Small real models write, and what is joined equals one pass over what they wrote; skipped where
they are absent.
"""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded, load_model, load_tokenizer


def difference_from_one_pass(model, record):
    source = record.stacks.get("encoder", record[record.generation.stack]).query
    arguments = {"input_ids": torch.tensor([source.ids])}
    if "decoder" in record.stacks:
        arguments["decoder_input_ids"] = torch.tensor([record["decoder"].query.ids])
    whole = capture_encoded(model, None, arguments)[0]
    return max(
        np.abs(ours.weights_of() - theirs.weights_of()).max()
        for name, stack in whole.stacks.items()
        for ours, theirs in zip(record[name], stack, strict=True)
    )


@pytest.mark.parametrize("cache", [None, "static"])
def test_a_story_is_written_and_joined(shared, tmp_path, cache):
    model, tokenizer = load_model(shared / "models" / "stories260K", writes=True)
    options = {"cache_implementation": cache} if cache else {}
    record = hs.generate(
        model, tokenizer, "Once upon a time, there was a little girl", max_new_tokens=30, **options
    )
    generation = record.generation
    assert generation.text.lstrip().startswith("named")
    assert len(generation) == 30
    assert np.mean(generation.probabilities) > 0.5  # it knows its stories
    assert difference_from_one_pass(model, record) < 1e-5
    assert record.verified < 1e-4
    assert record["self"].query.texts[0].startswith("Once upon a time, there was a little girl")
    assert hs.load(hs.save(record, tmp_path / "story.safetensors")).generation == generation


def test_letters_are_sorted(shared):
    model, tokenizer = load_model(shared / "models" / "gpt-nano-sort", writes=True)
    record = hs.generate(model, tokenizer, "CABBAC", max_new_tokens=6)
    assert "".join(record.generation.tokens.pieces) == "AABBCC"
    assert min(record.generation.probabilities) > 0.99
    assert difference_from_one_pass(model, record) < 1e-5


def test_a_word_is_spoken(shared):
    folder = shared / "models" / "g2p-bart-us"
    model, tokenizer = load_model(folder, writes=True)
    record = hs.generate(model, tokenizer, "strawberry", max_new_tokens=20)
    spoken = load_tokenizer(folder / "phonemes").decode(
        list(record.generation.tokens.ids), skip_special_tokens=True
    )
    assert spoken.replace(" ", "") == "st\u0279\u02c8\u0254b\u02cc\u025b\u0279i"
    assert record.generation.stop == "end"
    assert (len(record["cross"].query), len(record["cross"].key)) == (
        len(record["decoder"].query),
        12,
    )
    assert difference_from_one_pass(model, record) < 1e-5
