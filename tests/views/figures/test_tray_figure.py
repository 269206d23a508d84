"""Pictures beside each other in print."""

import itertools
from io import BytesIO

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch

import headscope as hs
from headscope.errors import FigureError
from headscope.record import ModelFacts, Tokens
from headscope.views.constants import KIND_COLOURS, KIND_NAMES

WORDS = ("[CLS]", "I", "went", "to", "the", "store", "[SEP]")


@pytest.fixture
def record(rng):
    """Two layers of three heads."""
    return hs.from_weights(
        list(rng.dirichlet([0.3] * len(WORDS), size=(2, 3, len(WORDS)))), Tokens(pieces=WORDS)
    )


def boxes(figure):
    return [axes.get_position().bounds for axes in figure.matplotlib.axes[1:]]


def written(figure):
    return [text.get_text() for axes in figure.matplotlib.axes for text in axes.texts]


def test_pictures_stand_in_one_row(record):
    figure = hs.figure(
        record, tray=["0-1", "1-0,2 view=matrix", {"layer": 1, "head": 2, "query": "store"}]
    )
    placed = boxes(figure)
    assert len(placed) == 3
    tops = [bottom + height for _, bottom, _, height in placed]
    assert np.allclose(tops, tops[0])
    assert all(one[0] + one[2] < other[0] for one, other in itertools.pairwise(placed))
    assert figure.matplotlib.get_size_inches()[0] == pytest.approx(174 / 25.4)
    texts = written(figure)
    assert [text for text in texts if text in "abcdef"] == ["a", "b", "c"]
    assert any("Layer 0 · head 1" in text for text in texts)


def test_notes_are_written_once_with_the_letters_of_what_they_are_of(record):
    texts = " ".join(written(hs.figure(record, tray=["0-1", "0-1 query=5"])))
    assert "b: only from “store”" in texts


def line_of(axes):
    """The colour of the first line."""
    lines = [each for each in axes.patches if isinstance(each, PathPatch)]
    return lines[0].get_edgecolor() if lines else None


def test_one_example_of_each_class_is_one_call(rng):
    size = 12
    heads = [np.eye(size, k=1), np.eye(size, k=-1), np.zeros((size, size))]
    weights = np.stack([0.95 * head + 0.05 for head in heads])
    weights /= weights.sum(axis=-1, keepdims=True)
    record = hs.from_weights([weights], Tokens(pieces=tuple("abcdefghijkl")))
    figure = hs.figure(record, tray="kinds")
    texts = written(figure)
    assert [text for text in texts if text.startswith("Layer")] == [
        f"Layer 0 · head {head}" for head in (0, 1, 2)
    ]
    titles = {
        text.get_text(): (text.get_color(), line_of(axes))
        for axes in figure.matplotlib.axes
        for text in axes.texts
        if text.get_text() in KIND_NAMES.values()
    }
    assert {title: colour for title, (colour, _) in titles.items()} == {
        KIND_NAMES[kind]: KIND_COLOURS[kind][0] for kind in ("next", "previous", "broad")
    }
    # The lines have the colour of the kind too; a head that attends evenly has none.
    assert [line is None for _, line in titles.values()] == [False, False, True]
    assert all(to_rgb(colour) == to_rgb(line) for colour, line in titles.values() if line)


def test_two_models_stand_beside_each_other(record, rng):
    from dataclasses import replace

    one = replace(record, model=ModelFacts(name="one"))
    other = replace(record, model=ModelFacts(name="two"))
    figure = hs.figure(one, tray=["0-1", {"record": other, "layer": 0, "head": 1}])
    texts = " ".join(written(figure))
    assert "a: one" in texts
    assert "b: two" in texts
    assert "'record': ..." in figure.recipe["call"]


def test_a_record_beside_is_drawn_by_its_name(record, rng):
    other = hs.from_weights(
        list(rng.dirichlet([0.5] * 4, size=(2, 3, 4))), Tokens(pieces=tuple("wxyz"))
    )
    named = hs.figure(record, beside=[other], tray=["0-1", "1-2 record=b"])
    given = hs.figure(record, tray=["0-1", {"record": other, "layer": 1, "head": 2}])
    pixels = [matplotlib.image.imread(BytesIO(each.to_bytes("png"))) for each in (named, given)]
    np.testing.assert_array_equal(*pixels)
    with pytest.raises(
        FigureError, match=r"record='c' must be a Record, or the name of one; beside= has b"
    ):
        hs.figure(record, beside=[other], tray=["0 record=c"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "compare"}, r"shows a tray; give tray="),
        ({"tray": []}, "has no picture"),
        ({"tray": ["0-1"], "view": "head"}, "no option 'tray'"),
        ({"tray": ["0 query=1,2"]}, "follows one query"),
        ({"tray": ["0-1"], "layer": 1}, "View 'compare' has no option"),
        ({"tray": [{"record": 3, "layer": 0}]}, "must be a Record"),
        ({"tray": ["0 record=b"]}, "give further records with beside="),
        ({"tray": ["0"], "beside": [3]}, "beside has a int"),
    ],
)
def test_what_cannot_be_drawn_is_refused(record, options, message):
    with pytest.raises(FigureError, match=message):
        hs.figure(record, **options)
