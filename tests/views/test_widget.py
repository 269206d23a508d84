"""The live widget without a browser: traitlets and messages."""

import gzip
import json
from urllib.parse import quote

import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.testing import random_record, random_weights
from headscope.views import _html
from headscope.views import contract as _contract
from headscope.views._on_demand import OnDemand

pytest.importorskip("anywidget", reason="needs the extra notebook")


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"export default '{name}'")


@pytest.fixture
def shown():
    return hs.view(random_record(layers=3, heads=4), layer=1)


@pytest.fixture
def sent(monkeypatch):
    """What widgets send to the browser: content and buffers."""
    from headscope.views._widget import ViewWidget

    sent = []
    monkeypatch.setattr(
        ViewWidget, "send", lambda _, content, buffers=(): sent.append((content, list(buffers)))
    )
    return sent


def test_only_header_selection_and_script_travel_at_first(shown):
    state = shown.widget().get_state()
    header = OnDemand(shown.record, shown.options).header
    assert state["_header"] == header
    assert state["selection"] == header["selection"]
    assert state["_esm"] == "export default 'live.js'"
    assert not [name for name, value in state.items() if isinstance(value, bytes)]
    assert set(state) - {"_header", "selection"} <= set(
        "_esm _anywidget_id layout tabbable tooltip".split()
    ) | {name for name in state if name.startswith(("_model", "_view", "_dom"))}


def test_a_chunk_comes_as_one_binary_buffer(shown, sent):
    widget = shown.widget()
    name = "weights/cross/2/3"
    widget._handle_custom_msg({"type": "ask", "id": "7", "path": f"chunk/{name}"}, [])
    ((content, buffers),) = sent
    assert content == {"type": "answer", "id": "7", "status": 200, "more": False}
    assert [gzip.decompress(buffer) for buffer in buffers] == [
        OnDemand(shown.record, shown.options).chunk(name)
    ]


@pytest.mark.parametrize("name", ["weights/gone/0", "", "weights/cross/99"])
def test_a_chunk_that_is_not_there_is_an_answer_too(name, shown, sent):
    shown.widget()._handle_custom_msg({"type": "ask", "id": "7", "path": f"chunk/{name}"}, [])
    ((content, buffers),) = sent
    assert content["status"] == 400
    assert buffers[0].startswith(b"This view holds no data")


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_figure_is_the_one_that_python_draws(kind, shown, sent):
    options = {"view": "matrix", "layer": 1, "head": 2}
    path = f"figure/{kind}?options={quote(json.dumps(options))}"
    shown.widget()._handle_custom_msg({"type": "ask", "id": "3", "path": path}, [])
    ((content, buffers),) = sent
    assert (content["id"], content["status"]) == ("3", 200)
    assert gzip.decompress(buffers[0]) == hs.figure(shown.record, **options).to_bytes(kind)


@pytest.mark.parametrize("content", [None, "chunk", {"type": "other"}, []])
def test_other_messages_are_not_for_it(content, shown, sent):
    shown.widget()._handle_custom_msg(content, [])
    assert sent == []


def test_what_is_shown_is_read_and_set(shown):
    widget = shown.widget()
    seen = []
    widget.observe(lambda change: seen.append(change["new"]["layer"]), "selection")
    widget.select(layer=2, head=3, query=1)
    assert widget.selection == shown.header["selection"] | {"layer": 2, "heads": [3], "query": [1]}
    widget.select(heads=None, view="neuron")
    assert widget.selection == shown.header["selection"] | {
        "layer": 2,
        "query": [1],
        "view": "neuron",
    }
    widget.selection = {"layer": 0}
    assert widget.selection == shown.header["selection"] | {"layer": 0}
    assert seen == [2, 2, 0]
    assert set(widget.selection) == set(_contract.PageSelection.__annotations__)


def test_another_stack_brings_a_layer_that_it_has(rng):
    record = hs.from_weights(
        encoder=random_weights(rng, (4, 3, 5, 5)),
        cross=random_weights(rng, (2, 3, 6, 5)),
        encoder_tokens=list("abcde"),
        decoder_tokens=list("uvwxyz"),
    )
    widget = hs.view(record, layer=3, query=4).widget()
    widget.select(stack="cross", key=4)
    assert [widget.selection[name] for name in ("stack", "layer", "query", "key")] == [
        "cross",
        0,
        [],
        [4],
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer": 7}, r"layer=7: this view holds the layers 0 to 2"),
        ({"heads": [4]}, r"heads=\[4\]: stack 'cross' has heads 0 to 3"),
        ({"heads": []}, "choose at least one"),
        ({"query": 5}, r"query=\[5\]: there are the query tokens 0 to 4"),
        ({"key": -1}, r"key=\[-1\]"),
        ({"stack": "self"}, "this view has the stacks 'cross'"),
        ({"view": "heads"}, "view must be"),
        ({"include_layers": [0]}, "include_layers cannot change while a view is shown"),
        ({"hedas": 1}, "view has no option 'hedas'"),
    ],
    ids=str,
)
def test_what_the_view_does_not_hold_cannot_be_chosen(changes, message, shown):
    widget = shown.widget()
    before = dict(widget.selection)
    with pytest.raises(PageError, match=message):
        widget.select(**changes)
    assert widget.selection == before


def test_widgets_share_nothing(shown):
    first, second = shown.widget(), shown.widget()
    first.select(layer=2)
    assert second.selection["layer"] == 1
    assert shown.header["selection"]["layer"] == 1


def test_as_text_it_says_what_to_do(shown):
    assert repr(shown.widget()) == "<live view of random: run the cell again>"
