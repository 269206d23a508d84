"""What the user passes reaches the model; what a capture adds is in the record."""

import numpy as np
import pytest
import torch
from transformers import FSMTConfig, FSMTModel

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError
from headscope.storage import load, save
from headscope.testing import tiny_model, tiny_tokenizer

IDS = torch.tensor([[6, 7, 8, 9, 10]])
PACKED = {"input_ids": IDS, "position_ids": torch.tensor([[0, 1, 2, 0, 1]])}


@pytest.mark.parametrize(
    ("cache", "crosses"), [({}, True), ({"use_cache": True}, True), ({"use_cache": False}, False)]
)
def test_packed_texts_are_attended_to_as_in_the_users_call(cache, crosses):
    """transformers keeps packed texts apart where there is no cache."""
    model, eager = tiny_model("llama"), tiny_model("llama")
    eager.set_attn_implementation("eager")
    own = eager(**PACKED, **cache, output_attentions=True).attentions
    (record,) = capture_encoded(model, tiny_tokenizer(), {**PACKED, **cache})
    for layer, theirs in zip(record["self"], own, strict=True):
        assert np.abs(layer.weights - theirs[0].detach().numpy()).max() < 5e-6
        assert bool(layer.weights[:, 3:, :3].any()) == crosses
    assert record.model.called_with == {}


def test_capture_says_that_it_fills_no_cache(tmp_path):
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    record = hs.capture(model, tokenizer, "the cat")
    assert record.model.called_with == {"use_cache": False}
    assert load(save(record, tmp_path / "kept.safetensors")).model.called_with == {
        "use_cache": False
    }
    assert (
        hs.capture(model, tokenizer, "the cat", model_kwargs={"use_cache": True}).model.called_with
        == {}
    )
    assert hs.capture(tiny_model("distilbert"), tokenizer, "the cat").model.called_with == {}


def test_more_arguments_reach_the_model():
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    places = torch.arange(len(tokenizer("the cat")["input_ids"]))[None] * 3
    record = hs.capture(
        model, tokenizer, "the cat", model_kwargs={"position_ids": places, "use_cache": True}
    )
    eager = tiny_model("llama")
    eager.set_attn_implementation("eager")
    own = eager(
        **tokenizer("the cat", return_tensors="pt"), position_ids=places, output_attentions=True
    ).attentions
    assert np.abs(record["self"].weights(layer=1) - own[1][0].detach().numpy()).max() < 5e-6
    with pytest.raises(
        hs.errors.CaptureError, match="model_kwargs holds input_ids, which capture makes"
    ):
        hs.capture(model, tokenizer, "the cat", model_kwargs={"input_ids": places})


def test_a_decoder_that_looks_ahead_with_a_cache_is_shown_so():
    """FSMT masks what comes later only where it fills no cache."""
    parts = {"layers": 1, "attention_heads": 2, "ffn_dim": 8}
    sizes = {
        f"{side}_{part}": size for side in ("encoder", "decoder") for part, size in parts.items()
    }
    torch.manual_seed(0)
    model = FSMTModel(
        FSMTConfig(langs=["en", "de"], src_vocab_size=30, tgt_vocab_size=30, d_model=8, **sizes)
    ).eval()
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS[:, :4]}
    for cache, ahead in (({}, True), ({"use_cache": False}, False)):
        (record,) = capture_encoded(model, tiny_tokenizer(), {**inputs, **cache})
        own = (
            model(**inputs, **cache, output_attentions=True)
            .decoder_attentions[0][0]
            .detach()
            .numpy()
        )
        weights = record["decoder"].weights(layer=0)
        assert np.abs(weights - own).max() < 5e-6
        assert bool(np.triu(weights, 1).any()) == ahead


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "qwen2_5_vl"])
def test_ids_without_a_tokenizer_are_names(name):
    model, ids = tiny_model(name), torch.tensor([[7, 8, 9, 5], [9, 8, 7, 6]])
    encoding = {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])}
    if name == "t5":
        encoding["decoder_input_ids"] = ids[:, :2]
    records = capture_encoded(model, None, encoding)
    own = "encoder" if name == "t5" else next(iter(records[0].stacks))
    assert records[0][own].query.pieces == ("7", "8", "9")
    assert records[1][own].key.ids == (9, 8, 7, 6)
    if name == "t5":
        assert records[1]["cross"].query.labels == ("9", "8")
    for record, example in zip(records, capture_encoded(model, None, encoding), strict=True):
        np.testing.assert_allclose(record[own].weights(1), example[own].weights(1), atol=1e-6)


@pytest.mark.parametrize("of", [list, np.array, torch.tensor])
def test_ids_are_taken_as_lists_arrays_or_tensors(of):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    for ids in (of([7, 8, 9]), of([[7, 8, 9]]), of([[7, 8, 9], [9, 8, 7]])):
        for given in (ids, {"input_ids": ids}):
            for reader in (None, tokenizer):
                records = capture_encoded(model, reader, given)
                assert records[-1]["self"].query.ids in ((7, 8, 9), (9, 8, 7))
    (record,) = capture_encoded(model, tokenizer, tokenizer("a cat sat"))
    wanted = hs.capture(model, tokenizer, "a cat sat")
    np.testing.assert_allclose(record["self"].weights(0), wanted["self"].weights(0), atol=1e-6)


def test_ids_that_are_none_are_refused():
    model = tiny_model("bert")
    for ids in ([7, 10**6], torch.tensor([[-1, 3]])):
        with pytest.raises(CaptureError, match=r"holds (1000000|-1), .* has a vocabulary of \d+"):
            capture_encoded(model, None, ids)
    for ids in ([], [[7, 8], [9]], "cat", [0.5], 7):
        with pytest.raises(CaptureError, match="input_ids must be token ids"):
            capture_encoded(model, None, ids)


def test_a_model_of_another_library_is_to_be_watched():
    model, tokenizer = torch.nn.Linear(3, 3), tiny_tokenizer()
    for act in (
        lambda: capture_encoded(model, None, {"pixel_values": torch.zeros(1, 3, 4, 4)}),
        lambda: hs.capture(model, tokenizer, "a cat"),
        lambda: list(hs.capture_many(model, tokenizer, ["a cat"])),
        lambda: hs.heads(model, tokenizer, ["a cat"]),
    ):
        with pytest.raises(CaptureError, match="Linear has no configuration .* hs.watch"):
            act()


def test_a_cache_is_refused_and_stays_as_it_is():
    """What filled it was not seen."""
    model = tiny_model("llama", writes=True)
    with torch.no_grad():
        cache = model(torch.tensor([[1, 4]]), use_cache=True).past_key_values
    encoding = {"input_ids": torch.tensor([[5, 6]]), "past_key_values": cache}
    with pytest.raises(hs.errors.CaptureError, match=r"past_key_values .* give the whole text"):
        capture_encoded(model, None, encoding)
    assert cache.get_seq_length() == 2
