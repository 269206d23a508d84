"""Many texts below each other, and what a model reads of one."""

import re
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope import Record
from headscope.answering import AnswerWord
from headscope.errors import FigureError
from headscope.record import Layer, Rotary, Stack, Tokens
from headscope.testing import random_record

from ...answers import made_answer


def made(rng, *words, segments=()):
    tokens = Tokens(pieces=("[CLS]", *words, "[SEP]"), segments=segments)
    weights = rng.dirichlet([0.3] * len(tokens), size=(2, 3, len(tokens)))
    return hs.from_weights(list(weights), tokens)


@pytest.fixture
def records(rng):
    """Three texts of different length."""
    return [made(rng, "no"), made(rng, *("very " * 40).split()), made(rng, "yes", "sir")]


def texts_of(figure):
    return {text.get_text(): text.get_position() for text in figure.matplotlib.axes[0].texts}


def test_texts_stand_below_each_other_with_label_and_prediction(records):
    figure = hs.figure(
        records[0],
        view="texts",
        beside=records[1:],
        layer=1,
        head=2,
        labels=["bad", 1, "good"],
        predictions=["bad", 1, "worse"],
    )
    texts = texts_of(figure)
    assert texts["label"][0] == texts["good"][0] < texts["≠ worse"][0] == texts["prediction"][0]
    assert texts["yes"][1] == pytest.approx(texts["good"][1]) == pytest.approx(texts["≠ worse"][1])
    assert texts["no"][1] < texts["1"][1] < texts["yes"][1]
    words = [text for text in figure.matplotlib.axes[0].texts if text.get_text() == "very"]
    assert max(word.get_position()[0] for word in words) < texts["label"][0]
    assert len({word.get_position()[1] for word in words}) > 1
    bold = [
        text.get_text() for text in figure.matplotlib.axes[0].texts if text.get_weight() == "bold"
    ]
    assert bold == ["Attention received", "≠ worse"]
    assert figure.recipe["view"] == "texts"


def test_all_texts_have_one_scale(rng):
    even, sharp = np.full((1, 4, 4), 0.25), np.zeros((1, 4, 4))
    sharp[..., 1] = 1.0
    tokens = Tokens(pieces=("a", "b", "c", "d"))
    records = [hs.from_weights([weights], tokens) for weights in (even, sharp)]
    fills = {}
    for beside in ([], records[1:]):
        figure = hs.figure(records[0], view="texts", beside=beside)
        fills[len(beside)] = figure.matplotlib.axes[0].patches[0].get_facecolor()
    # Even attention has no colour, alone and beside a sharp text.
    assert sum(fills[1]) == sum(fills[0]) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": ["a"]}, "labels has 1 entries for 3 texts"),
        ({"predictions": "abc"}, "predictions is a str"),
        ({"beside": "other.safetensors"}, "beside is a str; give records"),
        ({"beside": [1]}, "beside has a int; give records"),
        ({"beside": [random_record()] * 60}, "up to 60 texts, got 61"),
        ({"tray": ["0-1"]}, "View 'texts' has no option 'tray'"),
    ],
)
def test_what_is_not_one_for_each_text_is_refused(records, options, said):
    with pytest.raises(FigureError, match=re.escape(said)):
        hs.figure(records[0], view="texts", **{"beside": records[1:]} | options)
    with pytest.raises(FigureError, match="View 'text' has no option 'labels'"):
        hs.figure(records[0], view="text", labels=["a"])


def test_the_input_has_tokens_their_texts_and_positions(rng):
    record = made(rng, "one", "two", "[SEP]", "three", segments=(0, 0, 0, 0, 1, 1))
    texts = [text.get_text() for text in hs.figure(record, view="input").matplotlib.axes[0].texts]
    assert texts.count("A") == 4
    assert texts.count("B") == 2
    assert [text for text in texts if text.isdigit()] == list("012345")
    assert {"token", "+ text", "+ position"} <= {*texts}
    assert any(text.startswith("2 layers of 3 heads") for text in texts)
    alone = [
        text.get_text()
        for text in hs.figure(made(rng, "one"), view="input", colour=False).matplotlib.axes[0].texts
    ]
    assert "+ text" not in alone


def test_positions_that_turn_are_not_added(rng):
    tokens = Tokens(pieces=tuple("abc"))
    queries, keys = rng.normal(size=(2, 2, 3, 8)).astype(np.float32)
    rotary = Rotary(frequencies=np.array([1.0, 0.1]), style="halves")
    layer = Layer(layer=0, queries=queries, keys=keys, scale=0.3, rotary=rotary)
    record = Record(stacks={"self": Stack(name="self", layers=(layer,), query=tokens, key=tokens)})
    texts = [text.get_text() for text in hs.figure(record, view="input").matplotlib.axes[0].texts]
    assert "position" in texts
    assert any("positions are not added" in text for text in texts)


def test_a_picture_has_no_such_view(rng):
    grid = Tokens(pieces=tuple("abcdefg"), grids=((2, 3),), places=(None, *np.ndindex(2, 3)))
    record = hs.from_weights(list(rng.dirichlet([1] * 7, size=(2, 3, 7))), grid)
    for view in ("texts", "input"):
        with pytest.raises(FigureError, match=f"View '{view}' shows texts"):
            hs.figure(record, view=view)


HEBREW = ("\u05d4\u05d7\u05ea\u05d5\u05dc", "\u05d9\u05e9\u05d1", "\u05e2\u05dc", "7", "ok")


@pytest.mark.parametrize(("words", "step"), [(HEBREW, -1), (("sat", "on", "it", "7", "ok"), 1)])
def test_what_is_read_from_the_right_stands_so(words, step, rng):
    """The tokens of view input, the words of an answer about a picture, and its pictures."""
    answer = made_answer(words=5)
    said = tuple(AnswerWord(word, (at,)) for at, word in enumerate(words))
    figures = [hs.figure(made(rng, *words), view="input"), hs.figure(replace(answer, words=said))]
    for figure in figures:
        lines = defaultdict(list)
        for text in figure.matplotlib.axes[0].texts:
            if text.get_text() in words:
                lines[text.get_position()[1]].append((text.get_position()[0], text.get_text()))
        assert lines
        for line in lines.values():
            shown = [word for _, word in sorted(line)]
            assert shown == [word for word in words[::step] if word in shown]
            assert len(shown) > 1
