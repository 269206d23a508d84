"""Seen working on real models and real attention; skipped where the data is absent."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import load_model, load_tokenizer
from headscope.record import Layer


def test_stored_gpt2_weights_follow_from_its_queries_and_keys(shared):
    stored = np.load(shared / "attention" / "gpt2_john-smith_qk.npz")
    size = stored["att"].shape[-1]
    causal = np.tril(np.ones((size, size), bool))
    for layer in range(len(stored["att"])):
        ours = Layer(
            layer=layer,
            queries=stored["queries"][layer],
            keys=stored["keys"][layer],
            scale=1 / 8,
            visible=causal,
        )
        np.testing.assert_allclose(ours.weights_of(), stored["att"][layer], atol=1e-6)


def test_marian_encoder_decoder_and_cross(shared):
    stored = np.load(shared / "attention" / "marian_en-de.npz")
    tokens = json.loads((shared / "attention" / "tokens.json").read_text())["marian_en-de"][
        "tokens"
    ]
    record = hs.from_weights(
        encoder=stored["Encoder"],
        decoder=stored["Decoder"],
        cross=stored["Cross"],
        encoder_tokens=tokens["Encoder"][0],
        decoder_tokens=tokens["Decoder"][0],
    )
    assert {name: stack.layers[0].size for name, stack in record.stacks.items()} == {
        "encoder": (7, 7),
        "decoder": (14, 14),
        "cross": (14, 7),
    }


def test_minilm_on_512_tokens_of_a_novel(minilm, shared, tmp_path):
    novel = (shared / "litbank-books" / "11_alices_adventures_in_wonderland.txt").read_text(
        encoding="utf-8"
    )
    with pytest.warns(UserWarning, match="positions for 512: the rest is cut off"):
        record = hs.capture(*minilm, novel[:6000], truncate=True)
    assert len(record["self"].query) == 512
    assert record.verified < 1e-5
    found = hs.load(hs.save(record, tmp_path / "novel.safetensors"))["self"].weights(5, 11)
    np.testing.assert_array_equal(found, record["self"].weights(5, 11))


@pytest.mark.parametrize(
    ("folder", "text", "size"),
    [
        ("stories260K", "Once upon a time, there was a little girl", (5, 8, 4)),
        ("gpt-nano-sort", "CABBAC", (3, 3, 3)),
        ("induction-2l-attn-only", "t1", (2, 4, 4)),
    ],
)
def test_real_decoders(shared, folder, text, size):
    record = hs.capture(*load_model(shared / "models" / folder), text)
    stack = record["self"]
    assert (len(stack), stack.heads, stack.layers[0].kv_heads) == size
    assert record.verified < 1e-5
    assert {layer.kind for layer in stack} == {"causal"}


def test_a_real_encoder_decoder_reads_letters_and_writes_sounds(shared):
    folder = shared / "models" / "g2p-bart-us"
    model, tokenizer = load_model(folder)
    record = hs.capture(
        model, tokenizer, "strawberry", target_tokenizer=load_tokenizer(folder / "phonemes")
    )
    assert "".join(record["encoder"].query.labels[1:-1]) == "strawberry"
    assert "".join(record["decoder"].query.labels[2:]) == "st\u0279\u02c8\u0254b\u02cc\u025b\u0279i"
    assert record.verified < 1e-5
