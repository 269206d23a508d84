"""Heads whose kind is known, in real models and real attention; skipped where the data is
absent.
"""

import csv
import json

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import load_model
from headscope.measures import (
    head_distances,
    head_map,
    mass_at_offsets,
    mass_on,
    property_share,
    repeated_tokens,
    stress,
    token_class,
)
from headscope.patterns import heads


@pytest.fixture(scope="module")
def bert_base(shared):
    """The heads of bert-base-uncased on Vig's demonstration pair."""
    weights = np.load(shared / "attention" / "bert-base-uncased_store-strawberries.npz")["all"]
    tokens = json.loads((shared / "attention" / "tokens.json").read_text())[
        "bert-base-uncased_store-strawberries"
    ]
    return hs.from_weights(
        weights, tokens["tokens"]["all"][0], sentence_b_start=8, model="bert-base-uncased"
    )


def evidence(found, layer, head, pattern):
    return next(label for label in found.head(layer, head).labels if label.pattern == pattern)


def test_bert_base_on_one_text_is_labelled_as_such(bert_base):
    found = heads(bert_base)
    for layer, head, pattern, score in (
        (2, 0, "next", 0.9998),
        (7, 3, "delimiter", 0.908),
        (0, 0, "bag", 0.575),
    ):
        label = evidence(found, layer, head, pattern)
        assert label.score == pytest.approx(score, abs=5e-4)
        assert label.only_one_text
    assert not found.labels


def test_the_separators_of_head_2_0_look_at_cls(bert_base):
    stack = bert_base["self"]
    separators, first = token_class(stack.query, "sep"), token_class(stack.key, "cls")
    rows = stack.weights(2, 0)[separators][:, first].ravel()
    assert rows.tolist() == pytest.approx([0.70, 0.87], abs=0.01)


def test_words_of_head_0_0_stay_in_their_sentence(bert_base):
    from headscope.patterns import QueryKeyTokens

    stack = bert_base["self"]
    sides = QueryKeyTokens(stack.query, stack.key)
    share = property_share(stack.weights(0), sides.own_sentence, among=sides.words)[0]
    assert share == pytest.approx(0.97, abs=0.005)
    on_sep = mass_on(stack.weights(7), token_class(stack.key, "sep"))[3]
    assert on_sep == pytest.approx(0.90, abs=0.005)


def test_heads_that_look_at_the_next_word_lie_together_on_the_map(bert_base):
    stack = bert_base["self"]
    distances = head_distances(np.concatenate([layer.weights_of() for layer in stack]))
    places = head_map(distances)
    apart = np.linalg.norm(places - places[2 * 12], axis=1)
    assert np.argsort(apart)[:2].tolist() == [2 * 12, 2 * 12 + 9]
    assert stress(distances, places) < 0.2


def test_gpt2_head_4_11_looks_back(shared):
    weights = np.load(shared / "attention" / "gpt2_john-smith_qk.npz")["att"]
    found = mass_at_offsets(weights[4], [-1])[:, 0]
    assert found.argmax() == 11
    assert found[11] > 0.995


@pytest.fixture(scope="module")
def induction(shared):
    import torch

    from headscope.capturing import capture_encoded

    model, _ = load_model(shared / "models" / "induction-2l-attn-only")
    rng = np.random.default_rng(0)
    ids = np.stack([repeated_tokens(rng, range(64), length=16, start=64) for _ in range(20)])
    return heads(capture_encoded(model, None, {"input_ids": torch.tensor(ids)}))


def test_layer_1_is_induction_and_layer_0_looks_back(induction):
    assert {(label.layer, label.head, label.pattern) for label in induction.labels} == {
        (1, head, "induction") for head in range(4)
    } | {(0, head, "previous-token") for head in (0, 1, 3)}
    assert evidence(induction, 1, 0, "induction").low > 0.9


@pytest.mark.parametrize(
    ("name", "text", "induction"),
    [
        ("induction-2l-attn-only", "t1 t2 t3 t4", [(1, 0), (1, 1), (1, 2), (1, 3)]),
        ("stories260K", "1 2 3 once upon a time", []),
    ],
)
def test_induction_is_found_by_repeated_tokens_whatever_the_text(name, text, induction, shared):
    found = hs.heads(*load_model(shared / "models" / name), text)
    assert found.by_label().get("induction", []) == induction


@pytest.fixture(scope="module")
def minilm_heads(minilm, shared):
    with (shared / "banking77" / "test.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][::77]
    return heads(hs.capture_many(*minilm, texts))


def test_minilm_over_texts(minilm_heads):
    assert minilm_heads.texts == 40
    assert evidence(minilm_heads, 0, 2, "previous").score == pytest.approx(0.99, abs=0.01)
    following = evidence(minilm_heads, 1, 8, "next")
    assert following.holds
    assert following.score == pytest.approx(0.65, abs=0.06)
    assert [
        (label.layer, label.head) for label in minilm_heads.labels if label.pattern == "next"
    ] == [(1, 8)]
    assert len([label for label in minilm_heads.labels if label.pattern == "first-token"]) > 36


def test_minilm_with_random_weights_has_no_pattern(minilm, shared):
    import torch
    from transformers import AutoModel

    model, tokenizer = minilm
    torch.manual_seed(0)
    random = AutoModel.from_config(model.config).eval()
    with (shared / "banking77" / "test.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][::128]
    assert not heads(hs.capture_many(random, tokenizer, texts)).labels
