"""Seen working on real models and real attention; skipped where the data is absent."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import load_model, load_tokenizer
from headscope.record import Layer

PAIR = ("I went to the store.", "At the store, I bought fresh strawberries.")


@pytest.fixture(scope="module")
def bert_base(shared):
    """Stored attention of bert-base-uncased on Vig's demonstration pair."""
    weights = np.load(shared / "attention" / "bert-base-uncased_store-strawberries.npz")["all"]
    tokens = json.loads((shared / "attention" / "tokens.json").read_text())[
        "bert-base-uncased_store-strawberries"
    ]
    return hs.from_weights(
        weights, tokens["tokens"]["all"][0], sentence_b_start=8, model="bert-base-uncased"
    )["self"]


def test_bert_base_head_2_0_looks_at_the_next_word(bert_base):
    weights, special = bert_base.weights(layer=2, head=0), bert_base.query.special
    inside = [i for i in range(len(special) - 1) if not special[i] and not special[i + 1]]
    assert np.mean([weights[i, i + 1] for i in inside]) > 0.999


def test_bert_base_head_7_3_rests_on_separators(bert_base):
    separators = [i for i, piece in enumerate(bert_base.key.pieces) if piece == "[SEP]"]
    assert bert_base.weights(layer=7, head=3)[:, separators].sum(axis=-1).mean() == pytest.approx(
        0.90, abs=0.005
    )


def test_bert_base_head_0_0_spreads_over_its_own_sentence(bert_base):
    weights, segments = bert_base.weights(layer=0, head=0), np.array(bert_base.key.segments)
    words = [i for i, special in enumerate(bert_base.key.special) if not special]
    among = weights[np.ix_(words, words)]
    same = segments[words][:, None] == segments[words][None, :]
    assert (among * same).sum() / among.sum() == pytest.approx(0.97, abs=0.01)


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


def test_minilm_on_the_demonstration_pair(minilm):
    record = hs.capture(*minilm, *PAIR)
    assert record.verified < 1e-5
    assert record["self"].query.pieces[15:17] == ("straw", "##berries")


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
