import pytest

import headscope as hs
from headscope.live._changes import address_of, interventions_of, parse_changes, python_of
from headscope.testing import random_record

ZERO = {"do": "zero", "layer": 2, "heads": [0, 3]}
CUT = {"do": "cut", "layer": 5, "heads": [1], "queries": [4], "keys": [0]}
CROSS = {"do": "uniform", "layer": 0, "stack": "cross; 1:2"}
PATCH = {"do": "patch", "layer": 1, "heads": [2], "from": "a dog; ~ sat"}


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ([], ""),
        ([ZERO, CUT], "zero:2-0,3;cut:5-1q4k0"),
        ([CROSS], "uniform:cross%3B%201%3A2:0"),
        ([PATCH], "patch:1-2~a%20dog%3B%20~%20sat"),
    ],
    ids=["none", "numbers", "stack", "text"],
)
def test_an_address_says_the_same(changes, address):
    assert parse_changes(changes, 64) == changes
    assert address_of(changes) == address


def test_python_is_what_runs():
    line = python_of([ZERO, CUT, {"do": "uniform", "layer": 4}])
    assert line == (
        "interventions=[hs.Zero(layer=2, heads=[0, 3]), "
        "hs.Cut(layer=5, heads=[1], queries=[4], keys=[0]), hs.interventions.Uniform(layer=4)]"
    )
    (zero, cut, uniform) = eval(line.removeprefix("interventions="), {"hs": hs})
    assert isinstance(uniform, hs.interventions.Uniform)
    assert (zero.heads, cut.queries, cut.keys) == ((0, 3), (4,), (0,))


def test_python_of_other_texts_captures_them():
    line = python_of([PATCH | {"queries": [1]}, {"do": "mean", "layer": 0, "from": "a\nb"}])
    assert line == (
        "interventions=[hs.Patch(record=hs.capture(model, tokenizer, 'a dog; ~ sat'), "
        "what='output', layer=1, heads=[2], positions=[1]), "
        "hs.interventions.Mean(records=[hs.capture(model, tokenizer, 'a'), "
        "hs.capture(model, tokenizer, 'b')], layer=0)]"
    )


def test_interventions_are_those_of_the_changes():
    texts = []
    record = random_record()

    def record_of(text):
        texts.append(text)
        return record

    mean = {"do": "mean", "layer": 0, "from": "one\n\n two "}
    made = interventions_of(parse_changes([PATCH, ZERO, CUT, mean], 9), record_of)
    assert [type(each) for each in made] == [hs.Zero, hs.interventions.Mean, hs.Cut, hs.Patch]
    assert texts == ["one", "two", "a dog; ~ sat"]
    assert made[3].what == "output"


def test_heads_of_one_layer_are_one_change_in_any_order():
    first = [{"do": "zero", "layer": 2, "heads": [3]}, ZERO, {"do": "zero", "layer": 1}]
    again = [{"do": "zero", "layer": 1, "heads": [4]}, *reversed(first)]
    merged = [{"do": "zero", "layer": 1}, ZERO]
    assert parse_changes(first, 9) == merged
    assert parse_changes(again, 9) == merged


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "list of at most 3"),
        ([ZERO] * 4, "list of at most 3"),
        ([None], "one of zero, uniform"),
        ([{"do": "explode", "layer": 1}], "one of zero, uniform"),
        ([{"do": ["zero"], "layer": 1}], "one of zero, uniform"),
        ([{"do": "zero"}], "needs a layer"),
        ([{"do": "zero", "layer": True}], "needs a layer"),
        ([{"do": "zero", "layer": -1}], "needs a layer"),
        ([ZERO | {"record": "/etc/passwd"}], "has no 'record'"),
        ([ZERO | {"keys": [1]}], "has no 'keys'"),
        ([ZERO | {"heads": [0.5]}], "heads is a list"),
        ([ZERO | {"heads": []}], "heads is a list"),
        ([ZERO | {"heads": [0] * 5000}], "heads is a list"),
        ([ZERO | {"stack": 3}], "stack is a text"),
        ([{"do": "cut", "layer": 1}], "needs the keys"),
        ([{"do": "patch", "layer": 1}], 'needs "from"'),
        ([{"do": "patch", "layer": 1, "from": "a\nb"}], "patch from one"),
        ([{"do": "mean", "layer": 1, "from": "a\n" * 17}], "at most 16 texts"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_is_said(changes, words):
    with pytest.raises(hs.errors.InterventionError, match=words):
        parse_changes(changes, 3)
