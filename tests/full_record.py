"""A record with everything that one can hold, and whether another is the same."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from headscope import Record
from headscope.record import (
    Candidate,
    Contributions,
    Generation,
    Layer,
    ModelFacts,
    Part,
    Rotary,
    Stack,
    Tokens,
)
from headscope.testing import random_weights

from .plain_statistics import statistics_of

HEADS, QUERIES, KEYS = 6, 5, 7


def full_record(rng):
    query = Tokens(
        pieces=("a", "</script>", "", "\u202e\x00", "\U0001f600"),
        texts=("a b", "c"),
        ids=(1, 2, 3, 4, 5),
        offsets=((0, 1), None, (2, 3), (0, 1), None),
        segments=(0, 0, 0, 1, 1),
        words=(0, None, 1, 2, 2),
        parts=(
            Part(name="</script>", kind="turn", spans=((0, 1), (2, 4)), tokens=(0, 2, 3)),
            Part(name="a", kind="sentence", level=1, spans=((0, 1),), tokens=(0,)),
        ),
    )
    key = Tokens(
        pieces=tuple("tuvwxyz"),
        grids=((1, 2), (2, 2)),
        places=(None, (0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 1)),
        pictures=(None, 0, 0, 1, 1, 1, 1),
        times=(None, (0.0, 0.5), *[None] * 5),
        parts=(Part(name="picture 2", kind="picture", tokens=(3, 4, 5, 6)),),
    )
    visible = rng.random((QUERIES, KEYS)) < 0.7
    visible[:, 0] = True
    with_queries = Layer(
        layer=3,
        queries=rng.standard_normal((HEADS, QUERIES, 4)).astype(np.float32),
        keys=rng.standard_normal((2, KEYS, 4)),
        values=rng.standard_normal((2, KEYS, 3)).astype(np.float16),
        scale=0.5,
        visible=visible,
        bias=rng.standard_normal((1, QUERIES, KEYS)),
        soft_cap=30.0,
        sinks=rng.standard_normal(HEADS),
        module="layers.3.attention",
        projection="layers.3.out",
        route="interface",
        verified=1e-7,
        norm="RMSNorm",
        latent=12,
        rotary=Rotary(frequencies=np.array([1.0, 0.3]), style="neighbours", first=1),
    )
    weights = random_weights(rng, (HEADS, QUERIES, KEYS))
    measured = rng.random((QUERIES, KEYS))
    with_weights = Layer(
        layer=4,
        weights=weights,
        value_norms=rng.random((HEADS, KEYS)),
        contributions=Contributions(attention=measured, missing={"alti": "why"}, expansion=2.0),
        statistics=statistics_of(weights, key, query, top=2),
        visible=np.ones((QUERIES, KEYS), bool),
        changes=("head 0 zeroed",),
    )
    stack = Stack(
        name="cross",
        query=query,
        key=key,
        layers=(with_queries, with_weights),
        others={0: "linear (Delta)"},
        routers={1: rng.standard_normal((QUERIES, 8)).astype(np.float32)},
    )
    generation = Generation(
        stack="cross",
        prompt=4,
        reads=(4, 1),
        tokens=Tokens(pieces=("b", "\u202e</script>"), ids=(5, 9)),
        probabilities=(0.5, 1 / 3),
        entropies=(0.1, 2.0),
        ranks=(1, 3),
        alternatives=((Candidate(id=5, piece="\u2581b", probability=0.5),), ()),
        text="b \U0001f600",
        stop="end",
        sampled=True,
        seed=3,
    )
    pictures = tuple(rng.integers(0, 256, (*size, 3), np.uint8) for size in ((4, 6), (7, 5)))
    model = ModelFacts(name="m", versions={"torch": "2"}, dtype="float32")
    return Record(stacks={"cross": stack}, model=model, generation=generation, pictures=pictures)


def assert_same(found, wanted):
    """Fails where a field of two records, or of anything in them, differs."""
    if dataclasses.is_dataclass(wanted):
        for field in dataclasses.fields(wanted):
            assert_same(getattr(found, field.name), getattr(wanted, field.name))
    elif isinstance(wanted, Mapping):
        assert list(found) == list(wanted)
        for name, each in wanted.items():
            assert_same(found[name], each)
    elif isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted
