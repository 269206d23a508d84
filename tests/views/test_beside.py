"""Further records of a page: another text or another model, whose heads the tray shows beside those
of the first.
"""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.record import Tokens
from headscope.testing import random_record
from headscope.views._on_demand import OnDemand


@pytest.fixture
def first(rng):
    """Two layers of three heads over five words."""
    return hs.from_weights(
        list(rng.dirichlet([0.5] * 5, size=(2, 3, 5))), Tokens(pieces=tuple("abcde"))
    )


@pytest.fixture
def other(rng):
    """Four layers of two heads over six words."""
    return hs.from_weights(
        list(rng.dirichlet([0.5] * 6, size=(4, 2, 6))), Tokens(pieces=tuple("uvwxyz"))
    )


def test_a_picture_of_each_record_is_one_line(first, other):
    tray = ["0-1", {"record": "b", "layer": 3, "head": 1, "query": "x"}]
    view = hs.view(first, beside=[other], tray=tray)
    assert view.header["selection"]["tray"] == ["0-1", "3-1 record=b query=3"]
    assert view.header["selection"]["view"] == "compare"
    assert [layer["layer"] for layer in view.header["beside"]["b"]["stacks"][0]["layers"]] == [
        0,
        1,
        2,
        3,
    ]


def test_the_page_holds_the_same_bytes_as_a_page_of_the_other_alone(first, other):
    alone, both = hs.view(other), hs.view(first, beside={"large": other})
    assert {name: both.chunks[f"beside/large/{name}"] for name in alone.chunks} == alone.chunks
    assert both.header["beside"]["large"] == alone.header
    assert 'data-chunk="beside/large/' in both.html


def test_layers_are_left_out_of_every_record(first, other):
    header = hs.view(first, beside=[other], include_layers=[1], include_heads=[0]).header
    assert [layer["layer"] for layer in header["beside"]["b"]["stacks"][0]["layers"]] == [1]
    assert header["beside"]["b"]["stacks"][0]["head_numbers"] == [0]


def test_live_pages_ask_for_the_layers_of_the_other_record(first, other):
    given, alone = OnDemand(first, {"beside": [other]}), OnDemand(other, {})
    assert given.chunk("beside/b/layer/self/3") == alone.chunk("layer/self/3")
    assert json.loads(given.chunk("beside/b/layer/self/3"))["layer"] == 3
    rows = np.frombuffer(given.chunk("beside/b/row-weight/self/3/2"), np.float32)
    np.testing.assert_allclose(rows.reshape(2, 6), other["self"].layer(3).weights[:, 2], rtol=1e-6)
    for name in "beside/c/layer/self/3 beside/b/layer/self/4 beside/b beside/ layer/self/3".split():
        assert given.chunk(name) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beside": 3}, r"beside is a int"),
        ({"beside": ["text"]}, r"beside has a str"),
        ({"beside": "six"}, r"beside is a str"),
        ({"beside": {"two words": random_record()}}, r"'two words': .*: a name has up to 20"),
        ({"tray": ["0-1 record=b"]}, r"record='b'; give further records with beside="),
        ({"tray": [{"layer": 0, "record": "b"}]}, r"record='b'; give further records"),
    ],
)
def test_what_is_no_record_is_refused(first, options, message):
    with pytest.raises(PageError, match=message):
        hs.view(first, **options)


def test_a_record_that_is_not_there_and_a_layer_that_it_has_not(first, other):
    with pytest.raises(PageError, match=r"record='c'; beside= has b$"):
        hs.view(first, beside=[other], tray=["0-1 record=c"])
    with pytest.raises(PageError, match=r"layer=2; this page has 0, 1$"):
        hs.view(first, beside=[other], tray=["2-1"])
    with pytest.raises(PageError, match=r"head=2; this page has 0, 1$"):
        hs.view(first, beside=[other], tray=["2-2 record=b"])
    with pytest.raises(PageError, match="beside has 6 records"):
        hs.view(first, beside=[other] * 6)


def test_the_tray_of_a_widget_changes_within_its_records(first, other):
    widget = hs.view(first, beside=[other]).widget()
    widget.select(view="compare", tray=["0-1", "0-1 record=b"])
    assert widget.selection["tray"] == ["0-1", "0-1 record=b"]
    with pytest.raises(PageError, match="record='c'"):
        widget.select(tray=["0-1 record=c"])
