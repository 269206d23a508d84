"""Planted heads are found with evidence, and nothing else is."""

import dataclasses

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.evidence import mean_map
from headscope.patterns import BASELINES, PATTERNS, Heads, Pattern, Tally, heads, load_tally
from headscope.record import Layer, Stack, Tokens
from headscope.testing import random_record, random_weights

from ..close import assert_close
from .conftest import NAMES, record_of, sentences

ALSO = {
    "next": {"positional-next"},
    "previous": {"positional-previous", "previous-token"},
    "same": {"same-other"},
    "same-other": {"same"},
    "first-token": {"delimiter"},
    "delimiter": {"sink-elsewhere"},
}
"""What a planted head shows beside its own pattern: the same head seen by a second definition."""


@pytest.fixture(scope="module")
def found(planted_records):
    return heads(planted_records)


def counted(record):
    """The scores of one head, judged or not."""
    tally = Tally()
    return dict(zip(tally.rows, tally.measured(record)[1][0, :, 0], strict=True))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "uniform"])
def test_planted_heads_are_found(found, name):
    told = {label.pattern for label in found.labels if label.head == NAMES.index(name)}
    assert name in told
    assert told - {name} <= ALSO.get(name, set()) | {"delimiter", "first-token"}


def test_maps_of_different_numbers_of_heads_have_no_mean():
    with pytest.raises(RecordError, match="maps of 4, then of 1 heads have no mean map"):
        mean_map([np.full((4, 2, 2), 0.5), np.full((1, 2, 2), 0.5)], 2)


def test_a_uniform_head_has_no_label(found):
    assert not [label for label in found.labels if label.head == NAMES.index("uniform")]


def test_evidence_of_a_label(found, planted_records):
    label = next(label for label in found.labels if (label.head, label.pattern) == (0, "next"))
    sizes = [len(record["self"].query) for record in planted_records]
    assert label.score == pytest.approx(0.9 + 0.1 * np.mean([1 / size for size in sizes]), abs=1e-6)
    assert label.low <= label.score <= label.high
    assert label.baseline == pytest.approx(np.mean([1 / size for size in sizes]), abs=1e-9)
    assert (label.texts, label.threshold, label.against) == (24, 0.5, "uniform")
    assert label.corrected < 0.05 < label.effect
    assert label.excess == pytest.approx(label.score - label.baseline)
    assert label.excess_low <= label.excess <= label.excess_high
    assert str(label).startswith("next 0.90 [0.90, 0.90] against 0.04, +0.86 [0.86, 0.86], d ")


def test_content_patterns_are_compared_with_shuffled_words_too(found):
    label = next(label for label in found.all_labels if label.pattern == "induction")
    assert label.against == "uniform, shuffled, like words"


def test_the_position_only_map_is_one_baseline_more(planted_records):
    mean = mean_map([record["self"].weights(0) for record in planted_records], 32)
    found = heads(planted_records, position_mean=mean)
    label = next(label for label in found.all_labels if label.pattern == "same")
    assert label.against == ", ".join(BASELINES)
    assert {label.pattern for label in found.labels if label.head == NAMES.index("same")} >= {
        "same"
    }


def test_random_weights_are_one_baseline_more(planted_records, rng):
    null = [
        record_of(
            list(random_weights(rng, (4, len(record["self"].query), len(record["self"].query)))),
            record["self"].query,
        )
        for record in planted_records
    ]
    null_heads = heads(null)
    assert not null_heads.labels
    found = heads(planted_records, random_weights=null_heads)
    assert found.all_labels[0].against == "uniform, random weights"
    assert heads(planted_records, random_weights=heads(planted_records)).labels != found.labels


def test_one_text_gives_no_label_and_says_so(planted_records):
    found = heads(planted_records[0])
    assert not found.labels
    once = [label for label in found.all_labels if label.only_one_text and label.pattern == "next"]
    assert [label.head for label in once] == [0]
    assert np.isnan(once[0].low)
    assert "Seen on one text only" in str(found)
    assert "seen on one text only" in str(found.head(0, 0))


def test_too_few_texts_are_said(planted_records):
    found = heads(planted_records[:3])
    assert not found.labels
    assert "3 texts are too few to tell" in str(found)
    assert 10 < int(str(found).rsplit("give ", 1)[1].split()[0]) < 24


def test_results_do_not_depend_on_order_or_split(planted_records):
    rows = [(f"t{number}", record) for number, record in enumerate(planted_records)]
    whole, first, second = Tally(), Tally(), Tally()
    for text, record in rows:
        whole.update(text, record)
    for text, record in rows[::-1]:
        (first if int(text[1:]) % 3 else second).update(text, record)
    parts = second + first
    assert_close(parts.sums["sums"], whole.sums["sums"])
    assert [says for says, _ in parts.examples] == [says for says, _ in whole.examples]
    assert str(Heads(Tally() + whole)) == str(Heads(whole))


@pytest.mark.parametrize("distances", [False, True])
def test_a_tally_is_resumed(planted_records, tmp_path, distances):
    whole, part = Tally(distances=distances), Tally(distances=distances)
    for number, record in enumerate(planted_records[:6]):
        whole.update(str(number), record)
        if number < 3:
            part.update(str(number), record)
    resumed = load_tally(part.save(tmp_path / "part.safetensors"))
    for number, record in enumerate(planted_records[3:6], 3):
        resumed.update(str(number), record)
    assert_close(resumed.sums["sums"], whole.sums["sums"])
    assert resumed.cells == whole.cells
    if distances:
        assert_close(resumed.distances, whole.distances)
    assert (resumed.distances is None) is not distances
    with pytest.raises(RecordError, match="made of other patterns"):
        load_tally(tmp_path / "part.safetensors", PATTERNS[:2])


def test_a_head_card_has_labels_measures_and_best_texts(found):
    card = found.head(0, NAMES.index("same"))
    assert "same" in [label.pattern for label in card.labels if label.holds]
    best = card.examples("same", 2)
    assert len(best) == 2
    assert best[0][1] >= best[1][1]
    assert str(card).startswith("Head 0-2 (layer and head from 0)\n  same ")
    with pytest.raises(RecordError, match="no head 1-0; heads go from 0-0 to 0-8"):
        found.head(1, 0)


def test_shares_of_classes_add_up_to_one(found):
    assert sum(found.classes.values()).tolist() == pytest.approx([1.0] * len(NAMES))
    assert sum(found.classes_of_layers()[0].values()) == pytest.approx(1)


def test_cross_attention_has_no_offsets():
    found = heads([random_record(seed=seed) for seed in range(20)])
    assert {label.pattern for label in found.all_labels} == {"first-token"}
    assert "of 6 heads; median 5 tokens, 20 texts" in str(found)


def test_queries_that_see_nothing_do_not_count(rng):
    tokens = Tokens(pieces=("[CLS]", "a", "b", "[SEP]"))
    visible = np.ones((4, 4), bool)
    visible[0] = False
    weights = np.zeros((1, 4, 4))
    weights[0, 1:, 3] = 1
    layer = Layer(layer=0, weights=weights, visible=visible)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    assert counted(hs.Record(stacks={"self": stack}))["delimiter"] == 1


def test_partners_that_cannot_be_seen_do_not_count():
    tokens = Tokens(pieces=("a", "b", "c", "a", "b"), segments=(0, 0, 0, 1, 1))
    visible = np.tril(np.ones((5, 5), bool))
    weights = np.eye(5)
    weights[3:] = np.eye(5)[:2]
    layer = Layer(layer=0, weights=weights[None], visible=visible)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    assert counted(hs.Record(stacks={"self": stack}))["same-other"] == 1


def test_a_pattern_of_ones_own(planted_records):
    green = Pattern(
        name="green",
        says="looks at green",
        source="this test",
        threshold=0.5,
        pairs=lambda sides: (
            sides.words & np.array([label == "green" for label in sides.key.labels])
        ),
    )
    found = heads(planted_records, patterns=(green,))
    assert {label.pattern for label in found.all_labels} == {"green"}
    assert not found.labels


def test_bad_input_is_refused(planted_records, rng):
    with pytest.raises(RecordError, match="no record; capture at least one text"):
        heads([])
    for wrong in ("a text", 3, ["a text"]):
        with pytest.raises(RecordError, match="heads (was given|got) an? (str|int).*give records,"):
            heads(wrong)
    with pytest.raises(RecordError, match="no option 'alpa'; it has confidence, alpha,"):
        heads(planted_records, alpa=0.1)
    with pytest.raises(RecordError, match="give one of holm, benjamini-hochberg"):
        heads(planted_records, correction="bonferroni")
    with pytest.raises(RecordError, match="is of other model than those before it"):
        heads([planted_records[0], random_record()])
    with pytest.raises(RecordError, match="need names of their own"):
        Tally((PATTERNS[0], PATTERNS[0]))
    with pytest.raises(RecordError, match="needs score or pairs"):
        Pattern(name="a", says="b", source="c", threshold=0.5)
    with pytest.raises(RecordError, match="has the threshold 1"):
        Pattern(name="a", says="b", source="c", threshold=1.0, score=len)


def test_single_sentences_cannot_show_patterns_of_pairs(rng):
    tokens = sentences(rng, pair=False)
    record = record_of(list(random_weights(rng, (2, len(tokens), len(tokens)))), tokens)
    assert not {"bag", "same-other"} & {label.pattern for label in heads(record).all_labels}


def of(name, record):
    return dataclasses.replace(record, model=dataclasses.replace(record.model, name=name))


def test_records_of_two_models_are_not_counted_together():
    """However alike their layers and heads are."""
    with pytest.raises(RecordError, match=r"Text 2 .* before it, 'b' and not 'a'"):
        heads([of("a", random_record()), of("b", random_record(seed=1))])
    one, twin = (
        dataclasses.replace(each, model=dataclasses.replace(each.model, class_name=name))
        for each, name in ((random_record(), "One"), (random_record(seed=1), "Other"))
    )
    with pytest.raises(RecordError, match="is of other class than those before it"):
        heads([one, twin])
    stack = dataclasses.replace(random_record(seed=1)["cross"], name="self")
    with pytest.raises(RecordError, match="of other stack than those before it"):
        heads([random_record(), dataclasses.replace(random_record(), stacks={"self": stack})])


def test_any_column_ranks_the_heads(found):
    for name, values in (found.measures | found.classes).items():
        ranked = found.ranked(name)
        assert len(ranked) == len(found.cells)
        known = [(card.measures | card.classes)[name] for card in ranked]
        np.testing.assert_array_equal(known, -np.sort(-values))
    assert found.ranked("next")[0].pattern == "next"
    assert len(repr(found.ranked("entropy")[0])) < 100
    with pytest.raises(RecordError, match="anything of 'height'; .* and entropy, confidence"):
        found.ranked("height")
