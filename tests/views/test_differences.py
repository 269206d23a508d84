"""The page of a comparison."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_record, random_weights, tiny_model, tiny_tokenizer
from headscope.views._on_demand import OnDemand
from headscope.views.answers import figure_file

LAYERS, HEADS = 2, 3


def decoded(array, chunks):
    stored = (
        np.frombuffer(chunks[array["chunk"]], array["dtype"])
        .reshape(array["shape"])
        .astype(np.float64)
    )
    if array["encoding"] == "signed":
        stored = (stored - 128) / 127
        return stored * np.abs(stored) * array["most"]
    return (stored / 255) ** 2 * array.get("most", 1)


def record_of(pieces, seed):
    rng = np.random.default_rng(seed)
    tokens = Tokens(pieces=tuple(pieces))
    layers = [
        Layer(layer=n, weights=random_weights(rng, (HEADS, len(tokens), len(tokens))))
        for n in range(LAYERS)
    ]
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    return Record(stacks={"self": stack}, model=ModelFacts(name="model"))


def quantities(page, name):
    (stack,) = page.header["stacks"]
    return [decoded(layer["quantities"][name], page.chunks) for layer in stack["layers"]]


def test_the_page_of_a_comparison_holds_both_records_and_their_difference():
    a, b = random_record(seed=1), random_record(seed=2)
    found = hs.compare(a, b)
    page = hs.view(found)
    assert page.record is b
    assert page.header["selection"]["quantity"] == "difference"
    assert [
        (each["name"], each["label"], each["signed"]) for each in page.header["quantities"]
    ] == [
        ("weight", "weight of B", False),
        ("difference", "difference", True),
        ("effect", "effect", False),
        ("other", "weight of A", False),
    ]
    for layer, (difference, parts, other) in enumerate(
        zip(*(quantities(page, name) for name in ("difference", "effect", "other")), strict=True)
    ):
        ours, theirs = a["cross"].weights(layer), b["cross"].weights(layer)
        assert np.abs(difference - (theirs - ours)).max() < 2 / 127
        assert np.abs(other - ours).max() < 2 / 255
        assert np.abs(parts - found["cross"].parts(layer)).max() < 0.4 / 255
    assert page.header["note"].startswith(
        "A: random · B: random · tokens: 5 tokens, the same in both"
    )


def test_a_difference_has_both_signs_even_where_there_is_none():
    record = random_record()
    page = hs.view(hs.compare(record, record))
    assert next(each for each in page.header["quantities"] if each["name"] == "difference")[
        "signed"
    ]
    assert all((array == 0).all() for array in quantities(page, "difference"))
    (stack,) = page.header["stacks"]
    assert stack["moved"]["values"] == [[0.0] * HEADS] * LAYERS
    assert stack["moved"]["within"] == [[True] * HEADS] * LAYERS


def test_a_served_page_sends_the_signs_that_its_header_tells():
    record = random_record()
    view = hs.view(hs.compare(record, record))
    answers = OnDemand(view.record, view.options)
    header = json.loads(answers.chunk("layer/cross/1"))["quantities"]["difference"]
    assert header["encoding"] == "signed"
    assert (np.frombuffer(answers.chunk(header["chunk"]), np.uint8) == 128).all()
    assert answers.header["note"] == view.header["note"]


def test_records_of_other_tokens_stand_on_the_tokens_of_both():
    found = hs.compare(record_of("uvw", 1), record_of("uxvw", 2))
    page = hs.view(found)
    (stack,) = page.header["stacks"]
    assert stack["query"]["labels"] == ["u", "+x", "v", "w"]
    weights = [decoded(layer["weights"], page.chunks) for layer in stack["layers"]]
    for layer, (shown, difference) in enumerate(
        zip(weights, quantities(page, "difference"), strict=True)
    ):
        assert np.abs(shown - found["self"].weights("b", layer)).max() < 2 / 255
        assert np.abs(difference - found["self"].difference(layer)).max() < 2 / 127
    assert "+word: only in B" in page.header["note"]
    layers = [replace(layer, changes=("output zero",)) for layer in found.b["self"]]
    changed = replace(found.b, stacks={"self": replace(found.b["self"], layers=tuple(layers))})
    note = hs.view(hs.compare(found.a, changed)).header["note"]
    assert "B: model (changed: layer 0: output zero" in note
    assert page.header["model"]["name"] == "model"


def pictured(seed, *, picture=None, registers=0, heads=HEADS):
    """A class token, registers and the 2 x 3 patches of a picture of 4 x 9 pixels."""
    rng = np.random.default_rng(seed)
    marks = ["[CLS]", *(f"[REGISTER {n}]" for n in range(registers))]
    tokens = Tokens(
        pieces=(*marks, *(f"r{row}c{column}" for row, column in np.ndindex(2, 3))),
        special=(*[True] * len(marks), *[False] * 6),
        grids=((2, 3),),
        places=(*[None] * len(marks), *np.ndindex(2, 3)),
    )
    layers = [
        Layer(layer=n, weights=random_weights(rng, (heads, len(tokens), len(tokens))))
        for n in range(LAYERS)
    ]
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    seen = rng.integers(0, 256, (4, 9, 3), np.uint8) if picture is None else picture
    return Record(
        stacks={"self": stack},
        pictures=() if seen is False else (seen,),
        model=ModelFacts(name=f"{heads} heads"),
    )


def shown_pictures(page, name):
    """None where a header has none of that name."""
    arrays = page.header.get(name)
    return arrays and [
        np.frombuffer(page.chunks[a["chunk"]], np.uint8).reshape(a["shape"]) for a in arrays
    ]


def test_each_record_keeps_its_own_picture():
    a, b = pictured(1), pictured(2)
    page = hs.view(hs.compare(a, b))
    np.testing.assert_array_equal(shown_pictures(page, "pictures"), b.pictures)
    np.testing.assert_array_equal(shown_pictures(page, "other_pictures"), a.pictures)
    live = OnDemand(page.record, page.options)
    assert live.header["other_pictures"] == page.header["other_pictures"]
    assert live.chunk(page.header["other_pictures"][0]["chunk"]) == a.pictures[0].tobytes()


def test_the_same_picture_is_there_once_and_no_picture_is_told_apart_from_it():
    a, b, bare = pictured(1), pictured(2), pictured(3, picture=False)
    same = hs.view(hs.compare(a, pictured(2, picture=a.pictures[0].copy())))
    assert "other_pictures" not in same.header
    assert hs.view(hs.compare(bare, b)).header["other_pictures"] == []
    without = hs.view(hs.compare(a, bare))
    assert "pictures" not in without.header
    np.testing.assert_array_equal(shown_pictures(without, "other_pictures"), a.pictures)


def test_patches_of_two_models_stay_on_the_picture():
    a, b = pictured(1, heads=2), pictured(2, registers=2)
    page = hs.view(hs.compare(a, b))
    (stack,) = page.header["stacks"]
    assert stack["key"]["grids"] == [[2, 3]]
    assert stack["key"]["areas"] == [
        "",
        "",
        "",
        *(f"{row}/{column}" for row in (1, 2) for column in (1, 2, 3)),
    ]
    assert stack["key"]["runs"] == [[0, 3], [3, 9, 1]]
    np.testing.assert_array_equal(shown_pictures(page, "pictures"), b.pictures)
    np.testing.assert_array_equal(shown_pictures(page, "other_pictures"), a.pictures)


def test_the_figure_of_the_first_record_is_over_its_picture():
    a, b = pictured(1), pictured(2)
    found = hs.compare(a, b)
    options = {"view": "text", "layer": 1, "head": 2, "query": 3}
    given = hs.view(found).options

    def drawn(record, quantity):
        numbers = given["quantities"] if quantity == "other" else {}
        named = {"quantity": quantity, "quantities": numbers} if numbers else {}
        return hs.figure(record, **options, **named).to_bytes("png")

    of_a = figure_file(b, "png", {**options, "quantity": "other"}, given)
    assert of_a == drawn(replace(b, pictures=a.pictures), "other") != drawn(b, "other")
    assert figure_file(b, "png", options, given) == drawn(b, "weight")


def test_a_page_of_some_heads_says_how_far_these_moved():
    found = hs.compare(random_record(seed=1), random_record(seed=2))
    (stack,) = hs.view(found, include_layers=[1], include_heads=[0, 2]).header["stacks"]
    wanted = found["cross"].map()[[1]][:, [0, 2]]
    assert np.array(stack["moved"]["values"]) == pytest.approx(wanted, rel=1e-3)


def test_an_effect_shows_the_changed_model_and_leaves_the_changed_heads_out():
    model, tokenizer = tiny_model("gpt2", writes=True), tiny_tokenizer()
    found = hs.effect(model, tokenizer, "the cat sat.", interventions=[hs.Zero(layer=0, heads=[1])])
    page = found.view(quantity="effect")
    assert page.record is found.changed
    assert page.header["selection"]["quantity"] == "effect"
    (stack,) = page.header["stacks"]
    assert stack["moved"]["values"][0][1] is None
    assert stack["moved"]["changed"][0][:3] == [False, True, False]
    assert (quantities(page, "effect")[0][1] == 0).all()
    assert np.abs(quantities(page, "other")[0] - found.intact["self"].weights(0)).max() < 2 / 255
    assert page.header["note"].startswith(
        "Changed: layer 0: output set to zero (heads 1). Output: KL(intact || changed)"
    )
    assert page.header["quantities"][0]["label"] == "weight after"


def test_what_a_caller_gives_stands_beside_it():
    found = hs.compare(random_record(seed=1), random_record(seed=2))
    mine = [np.ones((HEADS, 5, 7))] * LAYERS
    assert [
        each["name"] for each in hs.view(found, quantities={"mine": mine}).header["quantities"]
    ] == ["weight", "difference", "effect", "other", "mine"]
    with pytest.raises(
        PageError, match=re.escape("quantity='score': this record has 'weight', 'difference'")
    ):
        hs.view(found, view="matrix", quantity="score")


def test_a_comparison_is_no_option_of_another_record():
    found = hs.compare(random_record(seed=1), random_record(seed=2))
    with pytest.raises(PageError, match="give it to view in place of the record"):
        hs.view(random_record(queries=4), comparison=found)
    with pytest.raises(PageError, match="not a str"):
        hs.view(random_record(seed=3), comparison="x")
