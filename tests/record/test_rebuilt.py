import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import headscope as hs
from headscope.patterns import PATTERNS, Pattern
from headscope.record import (
    STATISTICS,
    Contributions,
    Layer,
    Mask,
    Record,
    Rotary,
    Stack,
    Tokens,
    statistics_of,
)
from headscope.testing import random_record, random_weights

from ..close import assert_close

COPIES = {
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.fixture
def record(rng):
    """With everything that is read-only or stays in a file."""
    weights = random_weights(rng, (2, 4, 5))
    query, key = Tokens(pieces=tuple("abcd")), Tokens(pieces=tuple("vwxyz"))
    full = Layer(
        layer=1,
        weights=weights,
        value_norms=rng.random((2, 5)),
        contributions=Contributions(attention=rng.random((4, 5)), missing={"alti": "why"}),
        statistics=statistics_of(weights, key, query, top=2),
        visible=Mask.of(np.ones((4, 5), bool)),
    )
    turned = Rotary(frequencies=np.array([1.0, 0.1]), style="halves")
    plain = Layer(layer=2, queries=rng.random((2, 4, 4)), keys=rng.random((1, 5, 4)), rotary=turned)
    stack = Stack(
        name="cross",
        query=query,
        key=key,
        layers=(full, plain),
        others={0: "linear (x)"},
        routers={1: rng.random((4, 3))},
    )
    return Record(stacks={"cross": stack})


def assert_same(found, wanted):
    ours, theirs = found["cross"], wanted["cross"]
    assert (ours.query, ours.key, dict(ours.others)) == (
        theirs.query,
        theirs.key,
        dict(theirs.others),
    )
    assert_close(ours.routers[1], theirs.routers[1])
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one.weights_of(), other.weights_of())
    one, other = ours.layer(1), theirs.layer(1)
    assert_close(one.value_norms, other.value_norms)
    assert_close(one.contributions.attention, other.contributions.attention)
    assert dict(one.contributions.missing) == {"alti": "why"}
    assert one.visible == other.visible
    for name in STATISTICS:
        assert_close(getattr(one.statistics, name), getattr(other.statistics, name))
    assert_close(ours.layer(2).rotary.frequencies, theirs.layer(2).rotary.frequencies)
    with pytest.raises(ValueError, match="read-only"):
        one.value_norms[0] = 1
    with pytest.raises(TypeError):
        ours.others[5] = "none (y)"


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_record_is_copied(record, copied):
    assert_same(copied(record), record)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_record_of_a_file_is_copied_and_needs_the_file_no_more(record, tmp_path, copied):
    path = hs.save(record, tmp_path / "run.safetensors")
    loaded = hs.load(path)
    found = copied(loaded)
    if copied is not copy.copy:
        del loaded
        path.write_bytes(b"another")
    assert_same(found, record)


def test_a_record_goes_to_another_process():
    record = random_record()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(hs.Record.__getitem__, (record, "cross"))
    assert_close(found.weights(1, 2), record["cross"].weights(1, 2))


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_heads_are_copied(copied):
    own = Pattern(
        name="own", says="a test", source="ours", threshold=0.5, pairs=lambda sides: sides.same_word
    )
    found = hs.heads([random_record(seed=seed) for seed in range(3)], patterns=(*PATTERNS, own))
    again = copied(found)
    assert str(again) == str(found)
    assert [pattern.name for pattern in again.tally.patterns] == [
        *(each.name for each in PATTERNS),
        "own",
    ]
    if copied is COPIES["pickle"]:
        assert again.tally.patterns[:-1] == PATTERNS
        with pytest.raises(
            hs.RecordError, match="'own' was kept without its functions; make it again"
        ):
            again.tally.update("new", random_record())
