"""The rows of many texts at once are those of each text alone, worked out pattern by pattern."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope import Record
from headscope.evidence import position_map, rng_of, uniform_map
from headscope.patterns import (
    CLASSES,
    MEASURES,
    PATTERNS,
    AttentionMaps,
    Pattern,
    QueryKeyTokens,
    Tally,
    kovaleva_class,
    maps_of,
)
from headscope.record import Layer, Mask, ModelFacts, Stack, TextBatch, Tokens
from headscope.testing import random_record

from ..close import assert_close

WORDS = ("the", "cat", "cats", "saw", "##berry", "a", ".", ",", "river")


def sentence(rng, length, *, pair, words):
    """So many tokens, some of which come twice, in pieces."""
    inner = [str(word) for word in rng.choice(WORDS, length - 2 - pair)]
    cut = len(inner) // 2 if pair else len(inner)
    pieces = ["[CLS]", *inner[:cut], "[SEP]", *inner[cut:], *["[SEP]"] * pair]
    segments = (0,) * (cut + 2) + (1,) * (length - cut - 2)
    numbers, last = [], -1
    for piece in pieces:
        last += not piece.startswith("##")
        numbers.append(None if piece.startswith("[") else last)
    known = {"words": tuple(numbers)} if words else {}
    return Tokens(pieces=tuple(pieces), segments=segments, **known)


def mask_of(kind, length):
    """What the layers of a kind of model see, in turns."""
    causal = Mask.causal(length, length)
    place = np.arange(length)
    window = Mask.of(np.asarray(causal) & (place[:, None] - place < 4))
    masks = {"full": [Mask.full(length, length)], "causal": [causal], "sliding": [window, causal]}
    return masks[kind]


def records(seed, count, length, *, kind, layers=3, heads=2):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        tokens = sentence(rng, length, pair=bool(rng.random() < 0.5), words=rng.random() < 0.5)
        stacked = []
        for layer in range(layers):
            mask = mask_of(kind, length)[layer % len(mask_of(kind, length))]
            scores = np.exp(2 * rng.standard_normal((heads, length, length))) * np.asarray(mask)
            weights = (scores / scores.sum(axis=-1, keepdims=True)).astype(np.float32)
            stacked.append(Layer(layer=layer, weights=weights, visible=mask))
        stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(stacked))
        made.append(Record(stacks={"self": stack}, model=ModelFacts(name="random")))
    return made


def one_by_one(stack, patterns=PATTERNS, mean=None):
    """Rows of `Tally` by their definition: each layer of each text by itself, each draw a text."""
    sides = QueryKeyTokens(stack.query, stack.key)
    drawn = {}
    for seed, alike in ((0, False), (1, True)):
        rng = rng_of(sides.said, seed)
        drawn[alike] = [sides.shuffled(rng, alike=alike) for _ in range(8)]
    parts, first = [], 0
    for layer in stack:
        maps = maps_of(stack, layer, sides)
        even = AttentionMaps(uniform_map(maps.visible), sides, maps.visible)
        heads = len(maps.weights)
        rows = []
        for pattern in patterns:
            nothing = np.full(heads, np.nan)
            rows += [pattern.of(maps), np.broadcast_to(pattern.of(even), heads)]
            if pattern.pairs is None or pattern.by_place:
                at_place = pattern.by_position
                rows += [nothing, nothing if at_place is None else at_place(maps), nothing]
                continue
            on = []
            for alike in (False, True):
                scores = [pattern.on_pairs(maps, pattern.wanted(each)) for each in drawn[alike]]
                with np.errstate(invalid="ignore"):
                    known = ~np.isnan(scores)
                    sums, counts = np.where(known, scores, 0).sum(axis=0), known.sum(axis=0)
                    on.append(np.where(counts > 0, sums / counts, np.nan))
            placed = nothing
            if mean is not None:
                map_ = position_map(mean[first : first + heads], maps.visible)
                placed = pattern.on_pairs(
                    AttentionMaps(map_, sides, maps.visible), pattern.wanted(sides)
                )
            rows += [on[0], placed, on[1] if pattern.by_word else nothing]
        classes = kovaleva_class(maps)
        rows += [(classes == number).astype(float) for number in range(len(CLASSES))]
        rows += [measure.of(maps) for measure in MEASURES.values()]
        rows.append(np.full(heads, len(stack.query)))
        parts.append(np.stack(rows))
        first += heads
    return np.concatenate(parts, axis=1)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**16),
    st.integers(1, 5),
    st.sampled_from([3, 5, 9, 14, 66]),
    st.sampled_from(["full", "causal", "sliding"]),
    st.booleans(),
)
def test_rows_of_a_batch_are_those_of_each_text(seed, count, length, kind, placed):
    length = max(length, 5) if kind == "sliding" else length
    made = records(seed, count, max(length, 4), kind=kind)
    mean = np.random.default_rng(seed).random((6, 70, 70)) if placed else None
    values = Tally(position_mean=mean).measured(TextBatch.of(made))[1]
    for own, record in zip(values, made, strict=True):
        wanted = one_by_one(record["self"], mean=mean)
        np.testing.assert_allclose(own, wanted, rtol=1e-12, atol=1e-14)


def test_cross_attention_and_patterns_of_ones_own_are_measured_text_by_text():
    made = [random_record(seed=seed) for seed in range(3)]
    own = (
        Pattern(name="far", says="", source="", threshold=0.3, score=lambda m: m.weights[:, 0, -1]),
        Pattern(
            name="first",
            says="",
            source="",
            threshold=0.3,
            pairs=lambda sides: np.arange(sides.words.shape[1])[None, :] < 2 * sides.words,
            by_position=lambda m: m.weights[:, 0, 1],
            by_place=True,
        ),
        Pattern(
            name="q1", says="", source="", threshold=0.3, pairs=lambda sides: _called(sides, "q1")
        ),
    )
    patterns = (*PATTERNS, *own)
    values = Tally(patterns).measured(TextBatch.of(made))[1]
    for at, record in enumerate(made):
        np.testing.assert_allclose(values[at], one_by_one(record["cross"], patterns), rtol=1e-12)


def _called(sides, piece):
    """Pairs of a query of this name, which the generic draws have to move."""
    return (np.array(sides.query.pieces) == piece)[:, None] & sides.words


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**16),
    st.permutations(range(7)),
    st.integers(1, 6),
    st.sampled_from([(1, 1), (1, 3), (3, 1), (2, 4)]),
    st.sampled_from([(4, "causal"), (11, "full"), (38, "causal"), (13, "sliding")]),
)
def test_the_numbers_of_a_text_are_the_same_in_any_batch(seed, order, cut, size, kind):
    """However texts are ordered and divided, down to one map alone."""
    layers, heads = size
    made = records(seed, 7, kind[0], kind=kind[1], layers=layers, heads=heads)
    parted, alone = Tally(), Tally()
    for some in (order[:cut], order[cut:]):
        batch = TextBatch.of([made[place] for place in some])
        for place, counted in zip(some, parted.counted(batch), strict=True):
            counted.add_to(parted.sums, str(place), str(place))
    for place, record in enumerate(made):
        alone.update(str(place), record)
    assert_close(parted.sums["sums"], alone.sums["sums"])


def test_documents_and_distances_are_counted_in_batches_too():
    made = records(5, 3, 8, kind="causal")
    together, alone = Tally(distances=True), Tally(distances=True)
    for name, group, counted in zip(
        "abc", "xxy", together.counted(TextBatch.of(made)), strict=True
    ):
        counted.add_to(together.sums, name, group)
    for name, record, group in zip("abc", made, "xxy", strict=True):
        alone.update(name, record, group=group)
    assert together.sums.rows == alone.sums.rows == ("x", "y")
    assert_close(together.distances, alone.distances)
    assert [says for says, _ in together.examples] == [says for says, _ in alone.examples]
