"""What is vouched for is not looked at number by number; all else is."""

from dataclasses import fields, replace

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.record import Layer, Tokens, statistics_of
from headscope.record.vouched import vouched_layer, vouched_statistics

from ..close import assert_close

HEADS, QUERIES, KEYS = 2, 3, 4


def arguments(rng):
    weights = rng.dirichlet(np.ones(KEYS), (HEADS, QUERIES)).astype(np.float32)
    values = rng.normal(size=(HEADS, KEYS, 5)).astype(np.float32)
    return {"layer": 1, "weights": weights, "values": values, "module": "attention"}


def test_a_vouched_layer_is_the_same_layer(rng):
    given = arguments(rng)
    ours, theirs = vouched_layer({"weights", "values"}, **given), Layer(**given)
    for field in fields(Layer):
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        assert np.array_equal(one, other), field.name
    assert repr(ours) == repr(theirs)
    assert not ours.weights.flags.writeable
    # What is made of it is looked at again.
    broken = given["weights"].copy()
    broken[0, 0] = 1
    with pytest.raises(RecordError, match="sums to 4"):
        replace(ours, weights=broken)


@pytest.mark.parametrize("name", ["weights", "values"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_only_what_is_vouched_for_is_not_looked_at(name, wrong, rng):
    given = arguments(rng)
    given[name][1, 2, 3] = wrong
    with pytest.raises(RecordError) as plain:
        Layer(**given)
    with pytest.raises(RecordError) as vouched:
        vouched_layer({"weights", "values"} - {name}, **given)
    assert str(vouched.value) == str(plain.value)
    assert vouched_layer({name}, **given).has(name)
    given = arguments(rng) | {"values": np.zeros((HEADS, KEYS + 1, 5), np.float32)}
    with pytest.raises(RecordError, match="values of layer 1 has shape"):
        vouched_layer({"weights", "values"}, **given)


@pytest.mark.parametrize("change", [{"wheights": None}, {"layer": ...}])
def test_arguments_are_those_of_a_layer(change, rng):
    given = arguments(rng) | change
    given = {name: value for name, value in given.items() if value is not ...}
    with pytest.raises(TypeError, match="Layer needs the arguments"):
        vouched_layer(set(), **given)


def test_vouched_statistics_are_the_same_statistics(rng):
    weights = rng.dirichlet(np.ones(KEYS), (HEADS, KEYS)).astype(np.float32)
    wanted = statistics_of(weights, Tokens(pieces=("a", "b", "c", "a")), top=2)
    given = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    ours = vouched_statistics(**given)
    for field in fields(wanted):
        assert_close(getattr(ours, field.name), getattr(wanted, field.name))
    with pytest.raises(RecordError, match="largest has shape"):
        vouched_statistics(**given | {"largest": given["largest"][:1]})
    with pytest.raises(RecordError, match="it must lie in 0 to 1"):
        replace(ours, largest=given["largest"] + 2)
