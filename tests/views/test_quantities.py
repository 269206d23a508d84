"""What a page holds beside weights and scores."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_record
from headscope.views._selection import changed_selection

LAYERS, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def with_norms(record, norms):
    """The record with value norms in its layers, as layers that have them keep them."""
    for layer, own in zip(record["cross"].layers, norms, strict=True):
        object.__setattr__(layer, "value_norms", own)
    return record


def decoded(array, chunks):
    """What the viewer reads, from nothing but the header and the bytes."""
    stored = (
        np.frombuffer(chunks[array["chunk"]], array["dtype"])
        .reshape(array["shape"])
        .astype(np.float64)
    )
    if array["encoding"] == "sqrt":
        stored = (stored / 255) ** 2
    elif array["encoding"] == "signed":
        stored = (stored - 128) / 127
        stored *= np.abs(stored)
    return stored * array.get("most", 1)


@pytest.fixture
def given(rng):
    return {
        "rollout": [rng.random((QUERIES, KEYS)) for _ in range(LAYERS)],
        "difference": [rng.normal(size=(HEADS, QUERIES, KEYS)) for _ in range(LAYERS)],
        "my-own": [None, 40 * rng.random((HEADS, QUERIES, KEYS))],
    }


def test_a_number_for_each_head_is_that_of_all_its_pairs():
    theirs = {(0, 2): 0.5, (1, 0): -2.0}
    page = hs.view(random_record(), quantities={"theirs": theirs}, quantity="theirs")
    for layer in page.header["stacks"][0]["layers"]:
        shown = decoded(layer["quantities"]["theirs"], page.chunks)
        for head in range(HEADS):
            number = theirs.get((layer["layer"], head), 0)
            assert shown[head] == pytest.approx(np.full((QUERIES, KEYS), number), abs=0.02)
    one = random_record()
    maps = [np.zeros((HEADS, QUERIES, KEYS)) for _ in range(LAYERS)]
    for (at, head), number in theirs.items():
        maps[at][head] = number
    wanted = hs.view(one, quantities={"theirs": maps}, quantity="theirs")
    given = hs.view(one, quantities={"theirs": {"cross": theirs}}, quantity="theirs")
    assert given.chunks == wanted.chunks


def test_what_is_given_travels_within_a_step_of_its_scale(given):
    page = hs.view(random_record(), quantities=given)
    (stack,) = page.header["stacks"]
    for name, arrays in given.items():
        for layer, array in zip(stack["layers"], arrays, strict=True):
            if array is None:
                assert name not in layer["quantities"]
                continue
            stored = layer["quantities"][name]
            steps = 127 if stored["encoding"] == "signed" else 255
            assert stored["axes"] == ["head", "query", "key"][-array.ndim :]
            assert np.abs(decoded(stored, page.chunks) - array).max() <= np.abs(array).max() / steps


def test_the_page_says_what_its_quantities_are(given):
    found = hs.view(random_record(), quantities=given).header["quantities"]
    assert [(of["name"], of["label"], of["signed"], of["per"]) for of in found] == [
        ("rollout", "rollout", False, "layer"),
        ("difference", "difference", True, "head"),
        ("my-own", "my-own", False, "head"),
    ]
    assert "quantities" not in hs.view(random_record()).header


def test_value_norms_travel_for_the_heads_that_the_page_holds(rng):
    norms = rng.random((LAYERS, HEADS, KEYS)) * 3
    page = hs.view(
        with_norms(random_record(), norms), include_heads=[0, 2], quantity="contribution"
    )
    (stack,) = page.header["stacks"]
    for layer, own in zip(stack["layers"], norms, strict=True):
        assert layer["value_norms"]["axes"] == ["head", "key"]
        assert decoded(layer["value_norms"], page.chunks) == pytest.approx(own[[0, 2]])
    (described,) = page.header["quantities"]
    assert (described["name"], described["signed"], described["per"]) == (
        "contribution",
        False,
        "head",
    )


def test_a_quantity_of_some_heads_is_that_of_these_heads(given):
    page = hs.view(random_record(), quantities=given, include_heads=[2])
    stored = page.header["stacks"][0]["layers"][0]["quantities"]
    assert stored["difference"]["shape"] == [1, QUERIES, KEYS]
    assert decoded(stored["difference"], page.chunks)[0] == pytest.approx(
        given["difference"][0][2], abs=0.05
    )
    assert stored["rollout"]["shape"] == [QUERIES, KEYS]


def test_contributions_of_the_record_travel(rng):
    record = random_record()
    maps = {
        name: rng.random((LAYERS, QUERIES, KEYS))
        for name in ("attention", "residual", "output", "alti")
    }
    for number, layer in enumerate(record["cross"].layers):
        kept = {
            name: arrays[number] for name, arrays in maps.items() if (name, number) != ("output", 1)
        }
        object.__setattr__(layer, "contributions", SimpleNamespace(**kept, globenc=None))
    page = hs.view(record, quantity="alti")
    names = [of["name"] for of in page.header["quantities"]]
    assert names == ["contribution-heads", "contribution-residual", "alti"]
    assert {of["per"] for of in page.header["quantities"]} == {"layer"}
    stored = [layer["quantities"] for layer in page.header["stacks"][0]["layers"]]
    wanted = {
        "contribution-heads": maps["attention"],
        "contribution-residual": [maps["output"][0], maps["residual"][1]],
        "alti": maps["alti"],
    }
    for name, arrays in wanted.items():
        for own, array in zip(stored, arrays, strict=True):
            assert np.abs(decoded(own[name], page.chunks) - array).max() <= array.max() / 255


def test_maps_of_a_damaged_file_give_no_page():
    record = random_record()
    broken = np.full((QUERIES, KEYS), np.nan)
    object.__setattr__(record["cross"].layers[1], "contributions", SimpleNamespace(alti=broken))
    with pytest.raises(PageError, match="alti/cross/1 has numbers that are not finite"):
        hs.view(record)


def test_what_is_given_goes_before_what_the_record_holds(rng):
    record = random_record()
    for layer in record["cross"].layers:
        object.__setattr__(
            layer, "contributions", SimpleNamespace(alti=rng.random((QUERIES, KEYS)))
        )
    page = hs.view(record, quantities={"alti": [np.full((QUERIES, KEYS), 0.5)] * LAYERS})
    stored = page.header["stacks"][0]["layers"][0]["quantities"]["alti"]
    assert np.abs(decoded(stored, page.chunks) - 0.5).max() < 1e-9


def test_a_map_of_zeros_travels_too():
    page = hs.view(random_record(), quantities={"effect": [np.zeros((QUERIES, KEYS))] * LAYERS})
    stored = page.header["stacks"][0]["layers"][1]["quantities"]["effect"]
    assert (stored["most"], decoded(stored, page.chunks).any()) == (1.0, np.False_)


def test_the_quantity_shown_first_and_later_is_one_that_the_page_has(given):
    page = hs.view(random_record(), quantities=given, quantity="rollout")
    assert page.header["selection"]["quantity"] == "rollout"
    now = page.header["selection"]
    assert (
        changed_selection(page.header, now, {"quantity": "difference"})["quantity"] == "difference"
    )
    for unknown in ("score", "mass"):
        wanted = (
            f"quantity={unknown!r}: this record has 'weight', 'rollout', 'difference', 'my-own'"
        )
        with pytest.raises(PageError, match=wanted):
            hs.view(random_record(), quantities=given, quantity=unknown)
        with pytest.raises(PageError, match=wanted):
            changed_selection(page.header, now, {"quantity": unknown})


def test_scores_are_there_where_queries_and_keys_are(rng):
    sides = {"query": Tokens(pieces=tuple("abcde")), "key": Tokens(pieces=tuple("tuvwxyz"))}
    layer = Layer(layer=0, queries=rng.normal(size=(2, 5, 4)), keys=rng.normal(size=(2, 7, 4)))
    record = Record(
        stacks={"cross": Stack(name="cross", layers=(layer,), **sides)}, model=ModelFacts(name="m")
    )
    assert hs.view(record, quantity="score").header["selection"]["quantity"] == "score"
    with pytest.raises(PageError, match="this record has 'weight', 'score'$"):
        hs.view(record, quantity="contribution")
    with pytest.raises(PageError, match="has 'weight'; capture with keep='qk' to have scores"):
        hs.view(random_record(), quantity="score")


WRONG = {
    "a name with a space": ({"my own": [None] * LAYERS}, "small letters, digits and dashes"),
    "a name that is taken": ({"weight": [None] * LAYERS}, "none of weight, score"),
    "too few layers": ({"effect": [None]}, "has 1 layers, and stack 'cross' has 2"),
    "a strange stack": (
        {"effect": {"self": [None] * LAYERS}},
        "has the stack 'self'; the record has 'cross'",
    ),
    "another shape": (
        {"effect": [np.zeros((KEYS, QUERIES))] * LAYERS},
        r"layer 0 has shape \(7, 5\)",
    ),
    "a strange head": ({"effect": {(0, HEADS): 1.0}}, r"has no head \(0, 3\); name"),
    "no numbers": (
        {"effect": [np.full((QUERIES, KEYS), np.nan)] * LAYERS},
        "expected finite numbers",
    ),
    "contributions without heads": (
        {"contribution": [np.zeros((QUERIES, KEYS))] * LAYERS},
        "contribution-heads",
    ),
    "heads in some": (
        {"effect": [np.zeros((QUERIES, KEYS)), np.zeros((HEADS, QUERIES, KEYS))]},
        "all layers have heads, or none has",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_quantity_is_refused(case):
    quantities, message = WRONG[case]
    with pytest.raises(PageError, match=message):
        hs.view(random_record(), quantities=quantities)


def test_one_list_is_not_enough_for_several_stacks(given):
    record = random_record()
    other = dataclasses.replace(record["cross"], name="decoder")
    several = Record(stacks={"cross": record["cross"], "decoder": other}, model=record.model)
    with pytest.raises(PageError, match="stacks 'cross', 'decoder'; give a list for each by name"):
        hs.view(several, quantities=given)
    page = hs.view(several, quantities={"rollout": {"decoder": given["rollout"]}})
    assert [set(stack["layers"][0].get("quantities", {})) for stack in page.header["stacks"]] == [
        set(),
        {"rollout"},
    ]
