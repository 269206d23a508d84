import numpy as np
import pytest

import headscope as hs
from headscope.bertviz.neuron_view import (
    format_delimiters,
    format_special_chars,
    get_attention,
    show,
)
from headscope.errors import HeadscopeError, PageError
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views import _html

from ..close import assert_close

pytest.importorskip("IPython", reason="needs the extra notebook")

PAIR = ("The cat sat on the mat", "The cat lay on the rug")


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"run('{name}')")


def header_of(shown):
    import html
    import json

    page = html.unescape(shown.data.split('srcdoc="')[1].split('"')[0])
    return json.loads(page.split('id="headscope-page">')[1].split("</script>")[0])


def test_the_demo_model_is_shown_with_its_neurons(minilm):
    model, tokenizer = minilm
    header = header_of(show(model, "bert", tokenizer, *PAIR, layer=2, head=3, html_action="return"))
    chosen = header["selection"]
    assert (chosen["view"], chosen["layer"], chosen["heads"], chosen["theme"]) == (
        "neuron",
        2,
        [3],
        "dark",
    )
    (stack,) = header["stacks"]
    assert all(layer["scores"] for layer in stack["layers"])
    assert sorted(set(stack["query"]["segments"])) == [0, 1]


def test_head_0_is_a_head_and_no_head_is_all(minilm):
    model, tokenizer = minilm
    assert header_of(show(model, "bert", tokenizer, "a cat", head=0, html_action="return"))[
        "selection"
    ]["heads"] == [0]
    assert (
        header_of(show(model, "bert", tokenizer, "a cat", html_action="return"))["selection"][
            "heads"
        ]
        is None
    )


@pytest.mark.parametrize("name", ["gpt2", "roberta", "llama"])
def test_any_model_that_can_be_captured_is_shown(name):
    assert header_of(
        show(tiny_model(name), name, tiny_tokenizer(), "the cat sat", html_action="return")
    )["stacks"][0]["layers"][0]["scores"]


def test_what_is_not_there_is_one_error(minilm):
    model, tokenizer = minilm
    with pytest.raises(HeadscopeError, match="layer=99: this view holds the layers 0 to 5"):
        show(model, "bert", tokenizer, "a cat", layer=99)
    with pytest.raises(PageError, match="display_mode must be"):
        show(model, "bert", tokenizer, "a cat", display_mode="blue")
    with pytest.raises(HeadscopeError, match="The text is empty"):
        show(model, "bert", tokenizer, "")


def test_the_quadrants_of_a_pair_tile_its_weights(minilm):
    model, tokenizer = minilm
    found = get_attention(model, "bert", tokenizer, *PAIR, include_queries_and_keys=True)
    assert set(found) == {"all", "aa", "ab", "ba", "bb"}
    for layer in range(6):
        part = {name: np.array(of["attn"][layer]) for name, of in found.items()}
        rows = [np.concatenate([part[side + "a"], part[side + "b"]], axis=2) for side in "ab"]
        assert_close(np.concatenate(rows, axis=1), part["all"])
        assert np.allclose(part["all"].sum(axis=2), 1, atol=1e-5)
        scores = np.array(found["ab"]["queries"][layer]) @ np.array(
            found["ab"]["keys"][layer]
        ).swapaxes(1, 2)
        whole = np.array(found["all"]["queries"][layer]) @ np.array(
            found["all"]["keys"][layer]
        ).swapaxes(1, 2)
        assert np.allclose(scores, whole[:, : len(part["aa"][0]), len(part["aa"][0]) :])
        softmax = np.exp(whole / np.sqrt(32))
        assert np.allclose(softmax / softmax.sum(axis=2, keepdims=True), part["all"], atol=1e-5)
    assert found["ab"]["left_text"] == found["aa"]["left_text"]
    assert found["ab"]["right_text"] == found["bb"]["left_text"]
    assert found["all"]["left_text"][0] == "[CLS]"
    assert found["all"]["left_text"].count("[SEP]") == 2


def test_a_single_sentence_has_no_quadrants(minilm):
    model, tokenizer = minilm
    found = get_attention(model, "bert", tokenizer, "a cat")
    assert set(found) == {"all"}
    assert set(found["all"]) == {"attn", "left_text", "right_text"}


def test_a_causal_model_looks_back_only_and_shared_keys_are_there_for_every_head():
    found = get_attention(
        tiny_model("llama"), "llama", tiny_tokenizer(), "the cat sat", include_queries_and_keys=True
    )
    weights = np.array(found["all"]["attn"])
    assert_close(np.triu(weights, 1), np.zeros_like(weights))
    assert np.tril(weights).any()
    assert np.array(found["all"]["keys"]).shape == np.array(found["all"]["queries"]).shape
    record = hs.capture(tiny_model("llama"), tiny_tokenizer(), "the cat sat")
    assert 1 < record["self"].layer(0).kv_heads < record["self"].heads


def test_the_keys_of_grouped_heads_are_those_that_their_weights_come_of():
    """Each group has one key; heads 0 and 1 share the first, and not heads 0 and 2."""
    found = get_attention(
        tiny_model("llama"), "llama", tiny_tokenizer(), "the cat sat", include_queries_and_keys=True
    )["all"]
    queries, keys = np.array(found["queries"]), np.array(found["keys"])
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    assert_close(raised / raised.sum(-1, keepdims=True), np.array(found["attn"]), atol=1e-5)


def test_tokens_are_named_as_bertviz_names_them():
    class Tokenizer:
        sep_token, cls_token = "</s>", None

    assert format_special_chars(["\u0120store", "\u2581a", "x"]) == [" store", " a", "x"]
    assert format_delimiters(["<s>", "a", "</s>"], Tokenizer()) == ["<s>", "a", "[SEP]"]
