import base64
import dataclasses
import gzip
import hashlib
import html
import json
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_record, random_weights
from headscope.views import _html, _page, _selection
from headscope.views._on_demand import OnDemand
from headscope.views.options import PageSelection, declared

from ..contracts import check_page


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    """A stand-in for the viewer's script; the real one is tested in the browser."""
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"console.log('{{{name}}}')")


class Elements(HTMLParser):
    """The elements of a page, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), ""))

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data):
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def scripts(self):
        return [(attributes, text) for tag, attributes, text in self.found if tag == "script"]


def header_of(text):
    return next(
        json.loads(body)
        for attributes, body in Elements(text).scripts()
        if attributes.get("id") == "headscope-page"
    )


def test_the_header_follows_the_contract(rng):
    record = hs.from_weights(random_weights(rng, (2, 3, 5, 5)), list("abcde"), sentence_b_start=2)
    header = header_of(hs.view(record).html)
    check_page(header)
    assert header["stacks"][0]["query"]["segments"] == [0, 0, 1, 1, 1]
    assert header["verified"] is None


def chunk_of(text, name):
    data = next(
        body
        for attributes, body in Elements(text).scripts()
        if attributes.get("data-chunk") == name
    )
    return gzip.decompress(base64.b64decode(data))


@pytest.fixture
def pictured(rng):
    """A class token and the patches of two pictures."""
    places = (None, *((row, column) for row in range(2) for column in range(3)), (0, 0), (0, 1))
    tokens = Tokens(
        pieces=tuple("abcdefghi"),
        grids=((2, 3), (1, 2)),
        places=places,
        pictures=(None, *[0] * 6, 1, 1),
    )
    layer = Layer(layer=0, weights=random_weights(rng, (4, 9, 9)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    pictures = tuple(rng.integers(0, 256, (*size, 3), np.uint8) for size in ((8, 12), (5, 10)))
    return hs.Record(stacks={"self": stack}, pictures=pictures)


def test_patches_have_their_places_and_each_picture_its_tokens(rng):
    places = (None, (0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (0, 1), None)
    pictures = (None, 0, 0, 0, 0, 1, 1, None)
    tokens = Tokens(
        pieces=tuple("abcdefgh"), grids=((2, 2), (1, 2)), places=places, pictures=pictures
    )
    layer = Layer(layer=0, weights=random_weights(rng, (3, 8, 8)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    header = header_of(hs.view(hs.Record(stacks={"self": stack}, model=ModelFacts())).html)
    check_page(header)
    told = header["stacks"][0]["query"]
    assert told["areas"] == ["", "1/1", "2/1", "1/2", "2/2", "1/1", "1/2", ""]
    assert told["runs"] == [[0, 1], [1, 5, 1], [5, 7, 2], [7, 8]]
    assert told["grids"] == [[2, 2], [1, 2]]
    assert "pictures" not in header


def test_pictures_travel_as_they_are(pictured):
    text = hs.view(pictured).html
    header = header_of(text)
    check_page(header)
    later = OnDemand(pictured, {})
    assert later.header["pictures"] == header["pictures"]
    for array, picture in zip(header["pictures"], pictured.pictures, strict=True):
        assert (array["axes"], array["shape"]) == (
            ["row", "column", "channel"],
            list(picture.shape),
        )
        bytes_ = chunk_of(text, array["chunk"])
        np.testing.assert_array_equal(
            np.frombuffer(bytes_, np.uint8).reshape(array["shape"]), picture
        )
        assert later.chunk(array["chunk"]) == bytes_


def test_a_text_has_neither_places_nor_pictures(rng):
    header = header_of(
        hs.view(hs.from_weights(random_weights(rng, (2, 3, 5, 5)), list("abcde"))).html
    )
    assert not {"areas", "runs", "grids"} & set(header["stacks"][0]["query"])
    assert "pictures" not in header


def test_bytes_come_back_as_weights_within_the_stated_error():
    record = random_record(layers=2)
    text = hs.view(record).html
    chunks = {
        attributes["data-chunk"]: body
        for attributes, body in Elements(text).scripts()
        if "data-chunk" in attributes
    }
    (stack,) = header_of(text)["stacks"]
    for layer in stack["layers"]:
        array = layer["weights"]
        assert array["shape"] == [3, 5, 7]
        stored = np.frombuffer(
            gzip.decompress(base64.b64decode(chunks[array["chunk"]])), np.uint8
        ).reshape(array["shape"])
        assert np.abs(
            (stored / 255.0) ** 2 - record["cross"].weights(layer["layer"])
        ).max() == pytest.approx(layer["error"], abs=1e-7)
    assert set(chunks) == {"weights/cross/0", "weights/cross/1", "thumbs/cross", "kinds/cross"}


def test_no_number_of_an_array_stands_in_the_page_as_text():
    assert len(json.dumps(header_of(hs.view(random_record(queries=40, keys=50)).html))) < 12_000


def test_a_long_text_is_no_title():
    stack = random_record()["cross"]
    stack = dataclasses.replace(
        stack, query=dataclasses.replace(stack.query, texts=("word " * 99,))
    )
    title = header_of(hs.view(Record(stacks={"cross": stack})).html)["title"]
    assert title.startswith("word word")
    assert len(title) < 110


@pytest.mark.parametrize("where", ["text", "title model stack"])
def test_hostile_names_stay_inert(where, hostile):
    """Halves of characters become question marks; a stack may not be called what cannot be
    printed. A title hides what is made of the text.
    """
    whole = random_record()["cross"]
    whole = dataclasses.replace(whole, layers=whole.layers[:1])
    harmless = Record(stacks={"cross": whole}, model=ModelFacts(name="m"))
    plain = [tag for tag, _, _ in Elements(hs.view(harmless).html).found]
    for name in hostile:
        called = name if "stack" in where and name.isprintable() else "cross"
        model = name if "model" in where else "m"
        query = dataclasses.replace(whole.query, **{"texts": (name,)} if "text" in where else {})
        stack = dataclasses.replace(whole, query=query, name=called)
        record = Record(stacks={called: stack}, model=ModelFacts(name=model))
        text = hs.view(record, **({"title": name} if "title" in where else {})).html
        text.encode("utf-8")
        page = Elements(text)
        assert [tag for tag, _, _ in page.found] == plain, name
        header, valid = header_of(text), name.encode("utf-8", "replace").decode()
        assert header["stacks"][0]["name"] == called.encode("utf-8", "replace").decode()
        assert header["model"]["name"] == model.encode("utf-8", "replace").decode()
        if valid:
            is_whole = "title" in where or len(valid) <= 100
            assert header["title"] == (valid if is_whole else f"{valid[:100]} …")
        names = {
            attributes["data-chunk"]
            for attributes, _ in page.scripts()
            if "data-chunk" in attributes
        }
        chunks = {
            array["chunk"]
            for layer in header["stacks"][0]["layers"]
            for array in (layer["weights"],)
        }
        assert {quote(chunk, safe="/!'()*") for chunk in chunks} < names


def test_control_characters_survive_a_frame(rng):
    """HTML reads characters 128 to 159 as others where they are given by number, as they would be
    in a frame.
    """
    tokens = ["a\x80b", "\x85", "\x93c"]
    shown = hs.view(hs.from_weights(random_weights(rng, (1, 2, 3, 3)), tokens))._repr_html_()
    page = html.unescape(shown.split('srcdoc="')[1].split('"')[0])
    assert header_of(page)["stacks"][0]["query"]["pieces"] == tokens


def test_only_our_own_script_may_run_and_nothing_may_be_fetched():
    page = Elements(hs.view(random_record()).html)
    policy = next(
        a["content"]
        for tag, a, _ in page.found
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    (script,) = [text for attributes, text in page.scripts() if attributes["type"] == "module"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert not {"connect-src", "frame-src", "font-src"} & set(rules)
    assert "http" not in policy.replace("http-equiv", "")


def test_the_same_record_gives_the_same_bytes():
    assert hs.view(random_record()).html == hs.view(random_record()).html


def test_saving_replaces_the_file_whole(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    assert hs.view(random_record()).save(path) == path
    assert path.read_text(encoding="utf-8") == hs.view(random_record()).html
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_what_is_shown_first_can_be_chosen(rng):
    record = hs.from_weights(
        encoder=random_weights(rng, (2, 3, 4, 4)),
        cross=random_weights(rng, (3, 3, 5, 4)),
        encoder_tokens=list("abcd"),
        decoder_tokens=list("vwxyz"),
    )
    page = hs.view(
        record, stack="cross", layer=2, heads=[2, 0], include_layers=[1, 2], theme="dark", title="T"
    )
    chosen = {"stack": "cross", "layer": 2, "heads": [0, 2], "theme": "dark", "view": "head"}
    assert page.header["selection"].items() >= chosen.items()
    assert [[layer["layer"] for layer in stack["layers"]] for stack in page.header["stacks"]] == [
        [1],
        [1, 2],
    ]
    assert {name for name in page.chunks if name.startswith("weights")} == {
        "weights/encoder/1",
        "weights/cross/1",
        "weights/cross/2",
    }
    first = {"view": "overview", "stack": "encoder", "layer": 0, "heads": None, "theme": "auto"}
    assert hs.view(record).header["selection"].items() >= first.items()


def test_a_causal_text_opens_on_the_token_that_predicts():
    queries = keys = 6
    weights = np.tril(np.ones((1, 2, queries, keys), np.float32))
    record = hs.from_weights(weights / weights.sum(axis=-1, keepdims=True), list("abcdef"))
    both = hs.from_weights(np.full((1, 2, queries, keys), 1 / keys, np.float32), list("abcdef"))
    opened = [
        hs.view(record, view="text"),
        hs.view(record, view="text", query=[]),
        hs.view(record, view="matrix"),
        hs.view(both, view="text"),
    ]
    pinned = [page.header["selection"]["query"] for page in opened]
    assert pinned == [[queries - 1], [], [], []]


def test_every_option_of_the_selection_opens_the_page_with_it():
    chosen = {
        "view": "neuron",
        "stack": "cross",
        "layer": 1,
        "heads": [0],
        "query": [0],
        "key": [0, 6],
        "quantity": "effect",
        "filter": "all",
        "kind": "near",
        "zoom": [1.5, 0.0, 3.0],
        "tray": ["0-1", "1-0,2 view=matrix query=3 hide_special=1"],
        "shown_record": "b",
    }
    # An option of words or a switch needs no line above.
    for name, option in declared(PageSelection).items():
        if name not in chosen and option.choices:
            chosen[name] = option.choices[-1]
        elif name not in chosen and option.type is bool:
            chosen[name] = not option.default.value
    effect = {"effect": [np.zeros((5, 7)), np.ones((5, 7))]}
    assert (
        hs.view(
            random_record(),
            quantities=effect,
            evidence=hs.heads(random_record()),
            beside=[random_record()],
            **chosen,
        ).header["selection"]
        == chosen
    )
    assert set(chosen) == set(PageSelection.__annotations__)
    assert hs.view(random_record(), query=3).header["selection"]["query"] == [3]


def test_layers_without_attention_are_named_with_the_reason(rng):
    layers = tuple(Layer(layer=number, weights=random_weights(rng, (2, 3, 3))) for number in (1, 4))
    tokens = Tokens(pieces=tuple("abc"))
    others = {2: "linear (GatedDeltaNet)", 5: "unseen (MyAttention)", 6: "none (Mlp)"}
    stack = Stack(name="self", query=tokens, key=tokens, layers=layers, others=others)
    (held,) = hs.view(
        Record(stacks={"self": stack}, model=ModelFacts()), include_layers=[4]
    ).header["stacks"]
    assert held["absent"] == [
        {"layer": 0, "why": "its attention is not in the record"},
        {"layer": 2, "why": "it has linear attention, which has no weights (GatedDeltaNet)"},
        {"layer": 3, "why": "its attention is not in the record"},
        {"layer": 5, "why": "its attention has a form that headscope does not know (MyAttention)"},
        {"layer": 6, "why": "it has no attention (Mlp)"},
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": "0-1"}, r"heads=\['0-1'\]: stack 'cross' has heads"),
        ({"mean_heads": True}, r"figures have it: hs.figure\(record, mean_heads=True\)"),
        ({"mean_layers": [0, 1]}, r"figures have it: hs.figure\(record, mean_layers=\[0, 1\]\)"),
        ({"top_percent": 30}, r"figures have it: hs.figure\(record, top_percent=30\)"),
        ({"pinned": "max"}, "pinned must be one of 'mean', 'sum', not 'max'"),
        ({"layout": "circle"}, "layout must be one of 'auto', 'columns', 'rows'"),
        ({"order": "size"}, "order must be one of 'layer', 'kind', "),
    ],
)
def test_what_is_put_together_is_checked(options, message):
    with pytest.raises(PageError, match=message):
        hs.view(random_record(), **options)


def test_one_number_is_taken_for_several():
    page = hs.view(random_record(), stack="cross", view="head", heads=1)
    assert page.header["selection"]["heads"] == [1]


def test_a_page_may_hold_some_heads_which_keep_their_numbers():
    record = random_record(heads=4)
    page = hs.view(record, include_heads=[3, 1], heads=[3])
    (stack,) = page.header["stacks"]
    assert (stack["heads"], stack["head_numbers"], stack["thumbs"]["shape"][:2]) == (
        2,
        [1, 3],
        [2, 2],
    )
    stored = np.frombuffer(page.chunks["weights/cross/1"], np.uint8).reshape(2, 5, 7)
    assert np.abs((stored / 255.0) ** 2 - record["cross"].weights(1)[[1, 3]]).max() < 0.004


def test_one_layer_and_one_head_are_numbers():
    (stack,) = hs.view(random_record(), include_layers=1, include_heads=2).header["stacks"]
    assert [layer["layer"] for layer in stack["layers"]] == [1]
    assert stack["head_numbers"] == [2]


def test_one_head_is_shown_first_where_all_would_be_slow(monkeypatch):
    monkeypatch.setattr(_selection, "QUICK", 3 * 5 * 7 - 1)
    assert hs.view(random_record()).header["selection"]["heads"] == [0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layer": 7}, PageError, "layer=7: this view holds the layers 0 to 1"),
        ({"layer": 0, "include_layers": [1]}, PageError, "layer=0: this view holds the layers 1"),
        ({"include_layers": [1, 9]}, PageError, r"layers=\[1, 9\]: this record has the layers 0"),
        ({"include_layers": []}, PageError, "choose at least one"),
        ({"include_layers": 9}, PageError, r"include_layers=\[9\]: this record has the layers"),
        ({"include_layers": "1"}, PageError, r"include_layers=\['1'\]: this record"),
        ({"include_heads": [[1]]}, PageError, r"include_heads=\[\[1\]\]: stack 'cross' has heads"),
        ({"query": 1.5}, PageError, r"query=\[1.5\]: there are the query tokens 0 to 4"),
        ({"quantities": 1}, PageError, "quantities must be arrays by name, not a int; give"),
        ({"view": ["head"]}, PageError, r"view must be one of 'overview', .*, not \['head'\]"),
        ({"heads": [3]}, PageError, r"heads=\[3\]: stack 'cross' has heads 0 to 2"),
        ({"heads": []}, PageError, "choose at least one"),
        ({"include_heads": [3]}, PageError, r"include_heads=\[3\]: stack 'cross' has heads 0 to 2"),
        ({"include_heads": [1], "heads": [0]}, PageError, "stack 'cross' has heads 1;"),
        ({"query": 5}, PageError, r"query=\[5\]: there are the query tokens 0 to 4"),
        ({"key": [0, -1]}, PageError, r"key=\[0, -1\]: there are the key tokens 0 to 6"),
        ({"view": "film"}, PageError, "view must be one of 'overview', .*'compare', not 'film'"),
        ({"zoom": [1, 2]}, PageError, r"the first key and a count, not \[1, 2\]"),
        ({"zoom": [1, 2, 0]}, PageError, "zoom must be"),
        ({"zoom": "all"}, PageError, "zoom must be"),
        ({"tiles": "dots"}, PageError, "tiles must be one of 'matrices', 'lines', not 'dots'"),
        ({"theme": "blue"}, PageError, "not 'blue'"),
        ({"stack": "self"}, PageError, "this view has the stacks 'cross'"),
        ({"hedas": [1]}, PageError, "view has no option 'hedas'; it has view"),
        ({"head": 3}, PageError, r"heads=\[3\]: stack 'cross' has heads 0 to 2"),
        ({"head": 1, "heads": [1]}, PageError, "head=1 and heads=.*: give one"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_is_not_there_cannot_be_shown(options, error, message):
    with pytest.raises(error, match=message):
        hs.view(random_record(), **options)


def test_more_than_a_page_can_hold_is_refused(monkeypatch):
    monkeypatch.setattr(_page, "LARGEST", 3 * 5 * 7 * 2)
    with pytest.raises(PageError, match="choose about 2 of its 4 layers with include_layers="):
        hs.view(random_record(layers=4)).save("never.html")
    assert hs.view(random_record(layers=4), include_layers=[0, 3]).chunks


def test_a_missing_bundle_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(_html, "files", lambda _: tmp_path)
    _html.bundle.cache_clear()
    with pytest.raises(PageError, match="run `make bundle`"):
        hs.view(random_record()).save(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
    _html.bundle.cache_clear()
