"""Weights in the forms of other libraries: every number is in its place, under its names."""

import dataclasses

import numpy as np
import pytest

import headscope as hs
from headscope.record import Part

LAYERS, HEADS, QUERIES, KEYS = 2, 3, 4, 5


@pytest.fixture
def stack():
    weights = np.random.default_rng(0).random((LAYERS, HEADS, QUERIES, KEYS)).astype(np.float32)
    weights /= weights.sum(-1, keepdims=True)
    pieces = {"decoder_tokens": list("abca"), "encoder_tokens": list("vwxyz")}
    return hs.from_weights(cross=weights, **pieces)["cross"]


def test_xarray_has_named_axes(stack):
    found = stack.to_xarray()
    assert found.dims == ("layer", "head", "query", "key")
    assert np.array_equal(found.values, stack.weights())
    assert float(found.sel(layer=1, head=2, query=3, key=4)) == stack.weights(1, 2)[3, 4]
    assert list(found.query_token.values) == list("abca")
    assert list(found.key_token.values) == list("vwxyz")
    one = stack.to_xarray(layer=1, head=2)
    assert one.dims == ("query", "key")
    assert (int(one["layer"]), int(one["head"])) == (1, 2)
    assert np.array_equal(one.values, stack.weights(1, 2))
    assert stack.to_xarray(head=1).dims == ("layer", "query", "key")


def test_pandas_gives_the_square_of_a_head(stack):
    found = stack.to_pandas(1, 2)
    assert found.shape == (QUERIES, KEYS)
    assert found.loc[(3, "a"), (4, "z")] == stack.weights(1, 2)[3, 4]


@pytest.mark.parametrize("form", ["to_pandas", "to_arrow"])
def test_tables_have_a_row_for_each_weight(form, stack):
    found = getattr(stack, form)()
    found = found if form == "to_pandas" else found.to_pandas()
    assert list(found) == ["layer", "head", "query", "query_token", "key", "key_token", "weight"]
    assert len(found) == LAYERS * HEADS * QUERIES * KEYS
    for row in found.sample(20, random_state=0).itertuples():
        assert row.weight == stack.weights(row.layer, row.head)[row.query, row.key]
        assert (row.query_token, row.key_token) == ("abca"[row.query], "vwxyz"[row.key])
    assert len(getattr(stack, form)(layer=1)) == HEADS * QUERIES * KEYS


def test_parts_are_columns_and_coordinates(stack):
    parts = (
        Part(name="first", kind="document", tokens=(0, 1)),
        Part(name="last", kind="document", tokens=(3, 4)),
        Part(name="last, sentence 1", kind="sentence", level=1, tokens=(4,)),
    )
    stack = dataclasses.replace(stack, key=dataclasses.replace(stack.key, parts=parts))
    table = stack.to_pandas()
    assert list(table)[5:] == ["key_token", "key_part", "key_part_1", "weight"]
    assert list(stack.to_xarray().key_part.values) == ["first", "first", "", "last", "last"]
    shares = table.groupby(["layer", "head", "query", "key_part"])["weight"].sum()
    wanted = stack.weights()[..., :2].sum(-1)
    assert np.allclose(shares.xs("first", level="key_part"), wanted.ravel(), atol=1e-6)
    assert set(table[table["key_part_1"] != ""]["key"]) == {4}
