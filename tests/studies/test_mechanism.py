"""Neurons that were planted are found, by index, with their share and how fixed they are."""

import re

import numpy as np
import pytest

import headscope as hs
from headscope import Record
from headscope.errors import ModelError, RecordError
from headscope.patterns import painted, sketch
from headscope.record import Layer, ModelFacts, Rotary, Stack, Tokens
from headscope.studies import Coreference, Mechanism
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close, assert_same_numbers, numbers_before
from ..patterns.conftest import sentences

FEATURES = 24
SEP, NEXT, BOTH = 0, 1, 2
"""The planted heads: one neuron knows [SEP]; one neuron a position knows the next word; two neurons
for [SEP].
"""


def vectors(tokens, rng):
    """Queries and keys ``[head token feature]`` of the planted heads, with a little noise."""
    size = len(tokens)
    queries, keys = (0.01 * rng.standard_normal((3, size, FEATURES)) for _ in range(2))
    sep = np.array([piece == "[SEP]" for piece in tokens.pieces])
    queries[SEP, :, 5] = 3
    keys[SEP, sep, 5] = 4
    for place in range(size - 1):
        queries[NEXT, place, place] = 4
        keys[NEXT, place + 1, place] = 4
    queries[BOTH, :, 2], queries[BOTH, :, 7] = 3, -3
    keys[BOTH, sep, 2], keys[BOTH, sep, 7] = 3, -1.5
    queries[BOTH, :, 9], keys[BOTH, :, 9] = 9, 20  # large, but the same for all keys
    return {"queries": queries.astype(np.float32), "keys": keys.astype(np.float32)}


def record_of(tokens, seed, **more):
    layer = Layer(layer=3, **(vectors(tokens, np.random.default_rng(seed)) | more))
    return Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))},
        model=ModelFacts(name="planted"),
    )


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    return [record_of(sentences(rng, least=5, most=8), seed) for seed in range(20)]


@pytest.fixture(scope="module")
def found(records):
    return hs.mechanism(records)


def row(found, head, of):
    columns = found.columns()
    number = next(
        number
        for number, key in enumerate(
            zip(columns["layer"], columns["head"], columns["of"], strict=True)
        )
        if key == (3, head, of)
    )
    return {name: values[number] for name, values in columns.items()}


def test_a_neuron_that_knows_the_separator_is_named(records):
    for pattern in (None, "sep", sketch("word -> sep"), "delimiter"):
        first, second, *_ = hs.mechanism(records, at=[(3, SEP)], pattern=pattern).neurons(3, SEP)
        assert (first.unit, first.features, first.holds, first.stable, first.carries) == (
            5,
            (5,),
            True,
            1,
            1,
        )
        assert first.low > 1 > abs(second.adds)
        assert not second.holds


def test_fixed_and_shifting_neurons_are_told_apart(found):
    fixed, shifting = row(found, SEP, "margin"), row(found, NEXT, "margin")
    assert (fixed["neurons"], fixed["overlap"], fixed["overlap_low"]) == (1, 1, 1)
    assert fixed["chance"] == pytest.approx(1 / FEATURES)
    assert shifting["neurons"] < 1.3
    assert shifting["overlap_high"] < 0.1
    assert fixed["texts"] == shifting["texts"] == 20


def test_what_all_keys_share_is_in_the_score_and_not_in_the_margin(found):
    assert [neuron.unit for neuron in found.neurons(3, BOTH) if neuron.holds] == [2, 7]
    assert found.neurons(3, BOTH, of="score")[0].unit == 9
    assert row(found, BOTH, "margin")["neurons"] == 2
    assert row(found, BOTH, "score")["neurons"] == 1
    assert found.neurons(3, BOTH)[0].share == pytest.approx(2 / 3, abs=0.02)


def test_the_score_reading_sums_to_the_score_met_on_average(records):
    record = records[0]
    layer = record["self"].layer(3)
    found = hs.mechanism(record)
    heads = range(3)
    words = ~np.array(record["self"].query.special)
    scores, weights = layer.scores_of(), layer.weights_of()
    met = (scores * weights).sum(axis=2)[:, words].mean(axis=1)
    adds = {
        of: [sum(each.adds for each in found.neurons(3, head, of=of)) for head in heads]
        for of in ("score", "margin")
    }
    np.testing.assert_allclose(adds["score"], met, rtol=1e-6)
    margin = met - scores.mean(axis=2)[:, words].mean(axis=1)
    np.testing.assert_allclose(adds["margin"], margin, rtol=1e-6)


def test_neurons_by_position(found):
    shares = found.carried_at(3, NEXT)
    assert shares.shape == (64, FEATURES)
    assert (shares[1:5].argmax(axis=1) == np.arange(1, 5)).all()
    assert np.isnan(shares[40:]).all()
    assert (found.carried_at(3, SEP)[1:5, 5] == 1).all()


def test_a_kept_mechanism_goes_on_and_is_added_up(records, tmp_path):
    whole, first, second = (Mechanism([(3, NEXT), (3, SEP)], pattern="sep") for _ in range(3))
    for number, record in enumerate(records):
        whole.update(str(number), record)
        (first if number % 3 else second).update(str(number), record)
    paths = [
        each.save(tmp_path / f"{number}.safetensors") for number, each in enumerate((first, second))
    ]
    parts = Mechanism.load(paths[0]) + hs.load(paths[1])
    assert str(parts) == str(whole)
    assert_close(parts.carried_at(3, NEXT, of="score"), whole.carried_at(3, NEXT, of="score"))
    on = Mechanism.load(paths[0])
    assert str(on) == str(first)
    for number, record in enumerate(records):
        if not number % 3:
            on.update(str(number), record)
    assert str(on) == str(whole)
    with pytest.raises(RecordError, match="Text '1' was counted before"):
        on.update("1", records[1])
    assert Mechanism.load(Mechanism().save(tmp_path / "none.safetensors")).cells == []


def test_a_pattern_of_ones_own_comes_back_without_its_functions(records, tmp_path):
    own = painted(np.eye(3), name="mine")
    found = Mechanism(pattern=own)
    found.update("a", records[0])
    path = found.save(tmp_path / "a.safetensors")
    loaded = Mechanism.load(path)
    assert str(loaded) == str(found)
    with pytest.raises(RecordError, match="'mine' was kept without its functions"):
        loaded.update("b", records[1])
    with pytest.raises(hs.errors.FileError, match=r"a\.safetensors holds no coreference"):
        Coreference.load(path)
    again = Mechanism(pattern=own)
    again.update("b", records[1])
    assert (again + loaded).texts == 2


def test_heads_are_grouped_by_label(found, records):
    labels = hs.heads(records).by_label()
    assert (3, NEXT) in labels["next"]
    groups = found.grouped(labels)
    assert groups.table().splitlines()[0].split() == ["label", "heads", "neurons", "fixed"]
    assert groups.summary.startswith(
        "Neurons that carry a query's score, by label: next (1 heads): "
    )
    assert groups.columns()["label"] == [group.label for group in groups.all]
    with pytest.raises(RecordError, match="No head holds 'bag'; labels held are next"):
        groups["bag"]
    assert groups["delimiter"].heads == 2
    assert groups["delimiter"].neurons == pytest.approx(1.5)
    assert groups["delimiter"].fixed_low == groups["delimiter"].fixed == 1
    assert groups["next"].fixed_high < 0.05


def turned(queries, keys, by):
    rotary = Rotary(frequencies=np.array([0.7, 0.1]), style="neighbours", start=1, first=by)
    return {"queries": rotary.turned(queries), "keys": rotary.turned(keys), "rotary": rotary}


def test_rotary_pairs_are_units_and_do_not_depend_on_where_a_text_begins(rng):
    tokens = Tokens(pieces=("a", "b", "c", "d"))
    queries, keys = rng.standard_normal((2, 1, 4, 6))
    near, far = (
        hs.mechanism(record_of(tokens, 0, **turned(queries, keys, by))).neurons(3, 0)
        for by in (0, 9)
    )
    assert_close([each.adds for each in near], [each.adds for each in far], atol=1e-9)
    by_unit = sorted(near, key=lambda neuron: neuron.unit)
    assert [each.features for each in by_unit] == [(1, 2), (3, 4), (0,), (5,)]
    assert [each.frequency for each in by_unit] == [0.7, 0.1, None, None]


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "deepseek_v3"])
def test_real_architectures(family):
    texts = ["the cat sat", "it ran off", "she saw me"]
    records = list(hs.capture_many(tiny_model(family), tiny_tokenizer(), texts))
    found = hs.mechanism(records, at=[(0, 0), (1, 1)], pattern="any -> first")
    columns = found.columns()
    assert columns["texts"] == [3] * 4
    assert all(
        1 <= neurons <= units
        for neurons, units in zip(columns["neurons"], columns["units"], strict=True)
    )
    assert "Head 1-1:" in str(found)


def test_it_prints_itself(found):
    lines = str(found).splitlines()
    lengths = list(found.sums.lengths.elements())
    length = f"median {np.median(lengths):.0f} tokens"
    assert found.summary.startswith(
        f"planted: 3 heads, 20 texts ({length}), what each query looks at; "
    )
    assert any(
        line.startswith("3-0   1.00  1.0 [1.0, 1.0] of 24  1.00 [1.00, 1.00] (0.04)")
        for line in lines
    )
    assert max(map(len, lines)) <= 100
    assert re.search(r"neuron 5 adds \+[^:]*? in 100% of texts", " ".join(str(found).split()))
    assert repr(found) == "<Mechanism: 3 heads, 20 texts, looking at what each query looks at>"


def test_bad_input_is_refused(records, found, tmp_path):
    weights = record_of(
        records[0]["self"].query, 0, queries=None, keys=None, weights=records[0]["self"].weights(3)
    )
    with pytest.raises(RecordError, match="Queries and keys of layer 3 were not kept.*keep='qk'"):
        hs.mechanism(weights)
    with pytest.raises(ModelError, match="There is no head 3-9; heads go from 3-0 to 3-2"):
        hs.mechanism(records, at=[(3, 9)])
    for given in ({}, {"out": tmp_path / "run", "progress": False}):
        with pytest.raises(ModelError, match="^There is no head 9-9; heads go from 0-0 to 1-"):
            hs.mechanism(
                tiny_model("bert"), tiny_tokenizer(), ["the cat"] * 3, at=[(9, 9)], **given
            )
    with pytest.raises(RecordError, match="Head 1-0 was not looked into; there are 3-0, 3-1, 3-2"):
        found.neurons(1, 0)
    with pytest.raises(RecordError, match="rule 'nowhere' cannot be read"):
        hs.mechanism(records, pattern="nowhere")
    with pytest.raises(RecordError, match="mechanism was given no record"):
        hs.mechanism([])
    with pytest.raises(RecordError, match="No text shows head 3-0 anything of same-other"):
        hs.mechanism(record_of(Tokens(pieces=("a", "b")), 0), pattern="same-other").neurons(3, 0)
    first, other = Mechanism(), Mechanism(pattern="sep")
    first.update("0", records[0])
    other.update("1", records[1])
    with pytest.raises(RecordError, match="counted before"):
        first.update("0", records[0])
    with pytest.raises(RecordError, match="counted with pattern None, the other with 'sep'; they"):
        first + other
    query = records[0]["self"].query
    narrow = np.ones((3, len(query), 2))
    with pytest.raises(RecordError, match="is of other units"):
        first.update("2", record_of(query, 0, queries=narrow, keys=narrow))
    for wrong in ({"share": 0}, {"confidence": 95}):
        with pytest.raises(RecordError, match=f"{next(iter(wrong))} is"):
            Mechanism(**wrong)


def test_numbers_of_real_texts_stay_what_they_were(minilm, real_texts):
    """Some rows of each table, as they were before texts had no values of their own."""
    texts, groups = real_texts
    whole = hs.mechanism(*minilm, texts[:10], groups=groups[:10], progress=False)
    sep = hs.mechanism(*minilm, texts[:10], at=[(4, 5), (3, 3)], pattern="sep", progress=False)
    labels = {"a": [(2, 0), (4, 5)], "b": [(0, 1), (1, 8), (3, 3)]}
    neurons = whole.neurons(4, 5)[::4]
    found = {
        "all": {name: column[::11] for name, column in whole.columns().items()},
        "sep": sep.columns(),
        "summary": [whole.summary, sep.summary],
        "groups": whole.grouped(labels).columns(),
        "neurons": {name: [getattr(each, name) for each in neurons] for name in vars(neurons[0])},
        "carried": whole.carried_at(4, 5)[:6, ::5].tolist(),
    }
    rng = np.random.default_rng(0)
    words = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]
    made_up = [" ".join(rng.choice(words, 3 + number % 6)) for number in range(14)]
    for family in ("gpt2", "llama"):
        given = tiny_model(family), tiny_tokenizer(), made_up
        causal = hs.mechanism(*given, pattern="any -> first", random_weights=True, progress=False)
        found[family] = causal.columns()
        found[f"{family} groups"] = causal.grouped({"x": [(0, 0), (1, 1)]}, of="score").columns()
    assert_same_numbers(found, numbers_before("mechanism"))
