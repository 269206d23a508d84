import json
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from headscope.bertviz import head_view, model_view
from headscope.errors import HeadscopeError, PageError, RecordError
from headscope.testing import random_weights
from headscope.views import _html

pytest.importorskip("IPython", reason="needs the extra notebook")


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"run('{name}')")


@pytest.fixture
def weights(rng):
    """Weights as a model returns them: a torch tensor with a batch axis for each layer."""

    def weights(layers=3, heads=4, queries=7, keys=None):
        found = random_weights(rng, (layers, 1, heads, queries, keys or queries))
        return tuple(torch.tensor(layer) for layer in found)

    return weights


TOKENS = ["[CLS]", "straw", "##berries", "\u0120are", "\u2581red", "\u2581now</w>", "[SEP]"]


def header_of(shown):
    """The header of the page in the frame of an `IPython.display.HTML`."""
    found = {}

    class Frames(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found[tag] = dict(attributes)

    Frames().feed(shown.data)
    page = found["iframe"]["srcdoc"]
    return json.loads(page.split('id="headscope-page">')[1].split("</script>")[0])


@pytest.mark.parametrize("call", [head_view, model_view])
def test_return_gives_one_html_and_view_displays_it(call, weights, monkeypatch):
    from IPython.display import HTML

    displayed = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    attention = weights()
    found = call(attention, TOKENS, html_action="return")
    assert isinstance(found, HTML)
    assert displayed == []
    assert call(attention, TOKENS) is None
    assert [shown.data for shown in displayed] == [found.data]


def test_the_weights_are_those_that_were_given(weights):
    header = header_of(head_view(weights(), TOKENS, 4, html_action="return"))
    (stack,) = header["stacks"]
    assert [layer["layer"] for layer in stack["layers"]] == [0, 1, 2]
    assert stack["query"]["pieces"] == TOKENS
    assert stack["query"]["segments"] == [0, 0, 0, 0, 1, 1, 1]
    assert header["selection"]["view"] == "head"


def test_tokens_are_prettified_unless_told_not_to(weights):
    (stack,) = header_of(head_view(weights(), TOKENS, html_action="return"))["stacks"]
    assert stack["query"]["labels"] == ["[CLS]", "straw", "berries", "are", "red", "now", "[SEP]"]
    assert stack["query"]["continues"] == [False, False, True, False, False, False, False]
    (stack,) = header_of(head_view(weights(), TOKENS, prettify_tokens=False, html_action="return"))[
        "stacks"
    ]
    assert stack["query"]["labels"] == TOKENS


def test_position_5_is_a_layer_in_one_view_and_the_colours_in_the_other(weights):
    head = header_of(head_view(weights(), TOKENS, None, True, 2, [1, 3], html_action="return"))[
        "selection"
    ]
    model = header_of(model_view(weights(), TOKENS, None, True, "light", html_action="return"))[
        "selection"
    ]
    assert (head["view"], head["layer"], head["heads"], head["theme"]) == (
        "head",
        2,
        [1, 3],
        "auto",
    )
    assert (model["view"], model["layer"], model["heads"], model["theme"]) == (
        "overview",
        0,
        None,
        "light",
    )
    assert (
        header_of(model_view(weights(), TOKENS, html_action="return"))["selection"]["theme"]
        == "dark"
    )


def test_layers_and_heads_that_are_left_out_keep_the_others_numbers(weights):
    header = header_of(
        model_view(
            weights(), TOKENS, include_layers=[2, 1], include_heads=[3, 0], html_action="return"
        )
    )
    (stack,) = header["stacks"]
    assert [layer["layer"] for layer in stack["layers"]] == [1, 2]
    assert stack["head_numbers"] == [0, 3]


@pytest.mark.parametrize(("encoder", "decoder"), [(4, 2), (3, 6)])
@pytest.mark.parametrize("call", [head_view, model_view])
def test_encoder_and_decoder_may_differ_in_depth(encoder, decoder, call, weights):
    source, target = list("abcde"), list("uvwxyz")
    given = {
        "encoder_attention": weights(encoder, queries=5),
        "decoder_attention": weights(decoder, queries=6),
        "cross_attention": weights(decoder, queries=6, keys=5),
        "encoder_tokens": source,
        "decoder_tokens": target,
    }
    stacks = header_of(call(**given, html_action="return"))["stacks"]
    assert {stack["name"]: len(stack["layers"]) for stack in stacks} == {
        "encoder": encoder,
        "decoder": decoder,
        "cross": decoder,
    }
    assert [stack["query"]["pieces"] for stack in stacks] == [source, target, target]
    assert stacks[2]["key"]["pieces"] == source


def test_a_layer_that_is_none_is_left_out_and_the_others_keep_their_numbers(weights):
    first, _, last = weights()
    (stack,) = header_of(head_view([first, None, last], TOKENS, html_action="return"))["stacks"]
    assert [layer["layer"] for layer in stack["layers"]] == [0, 2]


def test_layers_may_differ_in_heads_and_be_of_numpy_or_half_precision(rng):
    attention = [
        random_weights(rng, (1, 2, 7, 7)),
        torch.tensor(random_weights(rng, (1, 3, 7, 7))).to(torch.float64).requires_grad_(),
    ]
    (stack,) = header_of(head_view(attention, TOKENS, html_action="return"))["stacks"]
    assert stack["heads"] == 3


def test_a_token_cannot_leave_the_frame(rng):
    tokens = ["</script><script>broken()</script>", '"><b>', "&quot;"]
    found = head_view([random_weights(rng, (1, 2, 3, 3))], tokens, html_action="return")
    assert header_of(found)["stacks"][0]["query"]["pieces"] == tokens
    assert "broken()</script>" not in found.data.split("srcdoc=")[0]
    assert found.data.isascii()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": [99]}, PageError, r"heads=\[99\]: stack 'self' has heads 0 to 3"),
        ({"heads": []}, PageError, r"heads=\[\]: .*choose at least one"),
        ({"layer": 9}, PageError, "layer=9: this view holds the layers 0 to 2"),
        ({"layer": 0, "include_layers": [1]}, PageError, "layer=0: this view holds the"),
        ({"include_layers": []}, PageError, r"include_layers=\[\]: this record has the layers 0"),
        ({"include_layers": [99]}, PageError, r"include_layers=\[99\]"),
        ({"include_layers": [-1]}, PageError, r"include_layers=\[-1\]"),
        ({"html_action": "save"}, PageError, "html_action must be 'view' or 'return', not 'save'"),
        ({"tokens": TOKENS[:-1]}, RecordError, "7 queries and 7 keys, but 6 query tokens"),
        ({"tokens": "a string"}, RecordError, "Tokens must be a list of strings"),
        ({"tokens": None}, RecordError, "without tokens"),
        ({"attention": ()}, RecordError, "attention holds no weights. Give outputs.attentions"),
        ({"attention": (None, None)}, RecordError, "attention holds no weights"),
        ({"attention": None}, RecordError, "give weights and tokens"),
        ({"attention": [np.full((2, 3, 7, 7), 1 / 7)]}, RecordError, "holds a batch of 2 texts"),
        ({"sentence_b_start": 7}, RecordError, "must lie between 1 and 6"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_what_crashed_or_stayed_blank_is_one_clear_error(options, error, message, weights):
    given = {"attention": weights(), "tokens": TOKENS, "html_action": "return"} | options
    with pytest.raises(error, match=message):
        head_view(**given)


def test_colours_that_there_are_not(weights):
    with pytest.raises(PageError, match="display_mode must be 'dark' or 'light', not 'blue'"):
        model_view(weights(), TOKENS, display_mode="blue")


def test_without_ipython_it_says_what_to_install(weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(HeadscopeError, match=r"pip install 'headscope\[notebook\]'"):
        head_view(weights(), TOKENS)
