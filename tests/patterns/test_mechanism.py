"""Neurons that were planted are found, by index, with their share and how fixed they are."""

import re

import numpy as np
import pytest

import headscope as hs
from headscope import Layer, ModelFacts, Record, RecordError, Stack
from headscope.patterns import (
    Mechanism,
    MechanismTally,
    heads,
    load_mechanism_tally,
    mechanism,
    painted,
    sketch,
    units_of,
)
from headscope.record import Rotary
from headscope.studies import load_coref
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from .conftest import sentences

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
    return mechanism(records)


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
        first, second, *_ = mechanism(records, [(3, SEP)], pattern=pattern).neurons(3, SEP)
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
    tally = MechanismTally()
    tally.update("a", record)
    words = ~np.array(record["self"].query.special)
    scores, weights = layer.scores_of(), layer.weights_of()
    met = (scores * weights).sum(axis=2)[:, words].mean(axis=1)
    np.testing.assert_allclose(tally.by_unit("adds", "score")[0].sum(axis=1), met, rtol=1e-6)
    margin = met - scores.mean(axis=2)[:, words].mean(axis=1)
    np.testing.assert_allclose(tally.by_unit("adds", "margin")[0].sum(axis=1), margin, rtol=1e-6)


def test_neurons_by_position(found):
    shares = found.carried_at(3, NEXT)
    assert shares.shape == (64, FEATURES)
    inside = shares[1:5]
    assert (inside.argmax(axis=1) == np.arange(1, 5)).all()
    assert np.isnan(shares[40:]).all()
    assert (found.carried_at(3, SEP)[1:5, 5] == 1).all()


def test_results_do_not_depend_on_order_or_split(records):
    whole, first, second = MechanismTally(), MechanismTally(), MechanismTally()
    for number, record in enumerate(records):
        whole.update(str(number), record)
    for number, record in list(enumerate(records))[::-1]:
        (first if number % 3 else second).update(str(number), record)
    parts = second + first
    assert_close(parts.statistic.values, whole.statistic.values)
    assert_close(parts.carried_at(0, "margin"), whole.carried_at(0, "margin"))
    assert (MechanismTally() + whole) is whole
    assert str(Mechanism(parts)) == str(Mechanism(whole))


def test_a_kept_tally_goes_on_and_is_added_up(records, tmp_path):
    whole, first, second = (MechanismTally([(3, NEXT), (3, SEP)], pattern="sep") for _ in range(3))
    for number, record in enumerate(records):
        whole.update(str(number), record)
        (first if number % 3 else second).update(str(number), record)
    paths = [
        tally.save(tmp_path / f"{number}.safetensors")
        for number, tally in enumerate((first, second))
    ]
    parts = load_mechanism_tally(paths[0]) + load_mechanism_tally(paths[1])
    assert str(Mechanism(parts)) == str(Mechanism(whole))
    assert_close(parts.statistic.values, whole.statistic.values)
    assert_close(parts.carried_at(1, "score"), whole.carried_at(1, "score"))
    on = load_mechanism_tally(paths[0])
    for number, record in enumerate(records):
        if not number % 3:
            on.update(str(number), record)
    assert str(Mechanism(on)) == str(Mechanism(whole))
    with pytest.raises(RecordError, match="Text '1' was counted before"):
        on.update("1", records[1])
    assert load_mechanism_tally(MechanismTally().save(tmp_path / "none.safetensors")).cells == []


def test_a_kept_tally_says_what_it_needs(records, tmp_path):
    own = painted(np.eye(3), name="mine")
    tally = MechanismTally(pattern=own)
    tally.update("a", records[0])
    path = tally.save(tmp_path / "a.safetensors")
    loaded = load_mechanism_tally(path, pattern=own)
    assert_close(loaded.statistic.values, tally.statistic.values)
    with pytest.raises(
        RecordError,
        match=r"a\.safetensors was made with a pattern of one's own, 'mine'; give it as pattern=",
    ):
        load_mechanism_tally(path)
    with pytest.raises(RecordError, match="with the pattern 'mine', and given is 'yours'"):
        load_mechanism_tally(path, pattern=painted(np.eye(3), name="yours"))
    with pytest.raises(hs.FileError, match=r"a\.safetensors holds no coreference"):
        load_coref(path)
    other = MechanismTally()
    other.update("b", records[1])
    with pytest.raises(RecordError, match="looked into other heads or patterns"):
        other + load_mechanism_tally(path, pattern=own)


def test_heads_are_grouped_by_label(found, records):
    labels = heads(records).by_label()
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
    tokens = hs.Tokens(pieces=("a", "b", "c", "d"))
    queries, keys = rng.standard_normal((2, 1, 4, 6))
    values = []
    for by in (0, 9):
        tally = MechanismTally()
        tally.update("a", record_of(tokens, 0, **turned(queries, keys, by)))
        values.append(tally.statistic.values)
        assert tally.units[3].members == ((1, 2), (3, 4), (0,), (5,))
    np.testing.assert_allclose(*values, atol=1e-9)
    assert values[0].shape == (1, 1, 7 + 4 * 4)
    first = mechanism(record_of(tokens, 0, **turned(queries, keys, 0))).neurons(3, 0)
    assert {neuron.features: neuron.frequency for neuron in first}[1, 2] == 0.7
    assert {neuron.frequency for neuron in first} == {0.7, 0.1, None}


def test_units_add_up_to_the_score(rng):
    queries, keys = rng.standard_normal((2, 1, 4, 6))
    layer = Layer(layer=0, **turned(queries, keys, 0))
    products = layer.queries * layer.keys
    units = units_of(layer)
    np.testing.assert_allclose(units.summed(products).sum(axis=2), products.sum(axis=2))
    assert [units.name(unit) for unit in (1, 2)] == ["pair 1 (features 3, 4)", "neuron 0"]


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "deepseek_v3"])
def test_real_architectures(family):
    texts = ["the cat sat", "it ran off", "she saw me"]
    records = list(hs.capture_many(tiny_model(family), tiny_tokenizer(), texts))
    found = mechanism(records, [(0, 0), (1, 1)], pattern="any -> first")
    columns = found.columns()
    assert columns["texts"] == [3] * 4
    assert all(
        1 <= neurons <= units
        for neurons, units in zip(columns["neurons"], columns["units"], strict=True)
    )
    assert "Head 1-1:" in str(found)


def test_it_prints_itself(found):
    lines = str(found).splitlines()
    length = f"median {np.median(found.tally.statistic.lengths):.0f} tokens"
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


def test_bad_input_is_refused(records, found):
    weights = record_of(
        records[0]["self"].query, 0, queries=None, keys=None, weights=records[0]["self"].weights(3)
    )
    with pytest.raises(RecordError, match="Queries and keys of layer 3 were not kept.*keep='qk'"):
        mechanism(weights)
    with pytest.raises(RecordError, match="There is no head 3-9; heads go from 3-0 to 3-2"):
        mechanism(records, [(3, 9)])
    with pytest.raises(RecordError, match="Head 1-0 was not looked into; there are 3-0, 3-1, 3-2"):
        found.neurons(1, 0)
    with pytest.raises(RecordError, match="rule 'nowhere' cannot be read"):
        mechanism(records, pattern="nowhere")
    with pytest.raises(RecordError, match="mechanism was given no record"):
        mechanism([])
    with pytest.raises(RecordError, match="No text shows head 3-0 anything of same-other"):
        mechanism(record_of(hs.Tokens(pieces=("a", "b")), 0), pattern="same-other").neurons(3, 0)
    tally, other = MechanismTally(), MechanismTally(pattern="sep")
    tally.update("0", records[0])
    other.update("1", records[1])
    with pytest.raises(RecordError, match="counted before"):
        tally.update("0", records[0])
    with pytest.raises(RecordError, match="other heads or patterns"):
        tally + other
    with pytest.raises(RecordError, match="other heads or neurons"):
        tally.update(
            "2",
            record_of(
                records[0]["self"].query,
                0,
                queries=np.ones((3, len(records[0]["self"].query), 2)),
                keys=np.ones((3, len(records[0]["self"].query), 2)),
            ),
        )
