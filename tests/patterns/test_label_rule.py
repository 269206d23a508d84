"""When a label is given: a margin above the baseline, enough texts, texts that are long enough; and
how it is told.
"""

import re

import numpy as np
import pytest

from headscope import Record
from headscope.errors import RecordError
from headscope.patterns import PATTERNS, Heads, Pattern, Tally, heads
from headscope.patterns._maps import AttentionMaps, QueryKeyTokens
from headscope.record import Layer, ModelFacts, Stack, Tokens

from .conftest import NAMES, planted, record_of, sentences


def causal_record(weights):
    """A text of words that come once, read by heads that only look back."""
    size = weights.shape[1]
    tokens = Tokens(pieces=tuple(f"w{number}" for number in range(size)))
    layer = Layer(layer=0, weights=weights, visible=np.tril(np.ones((size, size), bool)))
    return Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))},
        model=ModelFacts(name="causal"),
    )


def nearly_even(rng, size, head_count=3):
    """Heads that look at all they may alike, but for a little more at the first token and the one
    before.
    """
    scores = 0.05 * rng.standard_normal((head_count, size, size))
    scores[:, :, 0] += 0.1
    scores[:, np.arange(1, size), np.arange(size - 1)] += 0.1
    raised = np.tril(np.exp(scores))
    return raised / raised.sum(axis=-1, keepdims=True)


def tally_of(records, **options):
    tally = Tally(**options)
    for number, record in enumerate(records):
        tally.update(f"{number:03}", record)
    return tally


@pytest.fixture(scope="module")
def tally(planted_records):
    return tally_of(planted_records)


def test_nearly_even_heads_get_no_label_on_short_texts(rng):
    found = heads([causal_record(nearly_even(rng, 5)) for _ in range(40)])
    scores = found.tally.mean_of("first-token")
    assert scores.min() > 0.3, "the raw score alone would give the label"
    assert not found.labels
    assert not found.candidates
    assert "Not judged, since even rows reach half the threshold: " in str(found)
    assert "first-token on 40" in str(found)


def test_a_label_needs_a_margin_above_its_baseline(planted_records, tally):
    held = {(label.pattern, label.head) for label in Heads(tally).labels}
    beside = tally_of(planted_records, levels={"next": 0.85})
    near = Heads(beside)
    label = next(label for label in near.all_labels if (label.pattern, label.head) == ("next", 0))
    assert label.score > label.threshold
    assert 0 < label.excess_low < 0.1
    assert label.corrected > 0.05
    assert not label.holds
    assert {(label.pattern, label.head) for label in near.labels} == held - {("next", 0)}
    assert {(label.pattern, label.head) for label in Heads(beside, margin=0.01).labels} == held
    with pytest.raises(RecordError, match="margin is 1.5; give what the excess over the baseline"):
        Heads(tally, margin=1.5)


def test_the_margin_is_tested_for_all_heads_together():
    """Of heads whose excess is the margin in truth, the interval of one in forty lies above it."""
    heads, texts, labelled, above = 100, 24, 0, 0
    pattern = Pattern(name="made up", says="", source="", threshold=0.3, score=lambda _: None)
    rows = list(Tally((pattern,)).rows)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.full((texts, len(rows), heads), np.nan)
        values[:, rows.index("made up")] = rng.normal(0.4, 0.1, (texts, heads))
        cells = [(0, head) for head in range(heads)]
        found = Heads(Tally.of_values((pattern,), cells, values, levels={"made up": 0.3}))
        labelled += len(found.labels)
        above += sum(label.excess_low > 0.1 for label in found.all_labels)
    assert labelled <= 1
    assert above > 5


def test_same_leaves_the_word_itself_out():
    """A head that stays on its own word, and one that looks at the others of it."""
    words = "abcdefghijabcdefghij"
    other = (np.arange(22) + 10 - 1) % 20 + 1
    made = []
    for number in range(24):
        tokens = Tokens(pieces=("[CLS]", *(f"{each}{number}" for each in words), "[SEP]"))
        itself, elsewhere = np.eye(22), np.eye(22)[np.where(np.arange(22) % 21, other, 0)]
        made.append(record_of([itself, (elsewhere + np.full((22, 22), 1 / 22)) / 2], tokens))
    found = {label.head: label for label in heads(made).all_labels if label.pattern == "same"}
    assert found[0].score == 0
    assert found[1].score > 0.5
    assert (found[0].holds, found[1].holds) == (False, True)


def test_a_label_needs_its_p_corrected(planted_records):
    """On 8 texts a single p is 2^-8 at least, below alpha; corrected for all that was tried it is
    not.
    """
    found = heads(planted_records[:8])
    label = next(label for label in found.all_labels if (label.pattern, label.head) == ("next", 0))
    assert label.p < found.alpha < label.corrected
    assert label.excess_low > found.margin
    assert not found.labels


def test_too_few_texts_give_candidates(planted_records):
    few, enough = heads(planted_records[:8]), heads(planted_records)
    assert {(label.pattern, label.head) for label in few.candidates} >= {
        (label.pattern, label.head) for label in enough.labels
    } - {("same-other", NAMES.index("same"))}
    assert not enough.candidates
    lines = few.table().splitlines()
    assert lines[0].split()[-1] == "labels"
    assert re.split(r"\s{2,}", lines[1])[-1] == "-"
    assert lines[lines.index("head  candidates") + 1].startswith("0-0   next 0.90 [0.90, 0.90],")
    assert max(map(len, lines)) <= 100
    assert "8 texts are too few" in str(few)
    assert "(candidate: too few texts to tell)" in str(few.head(0, 0))


def test_a_summary_opens_and_ends_the_table(planted_records):
    found = heads(planted_records)
    tokens = np.median([len(record["self"].query) for record in planted_records])
    counts = ", ".join(f"{len(each)} {name}" for name, each in found.by_label().items())
    words = f"planted: {counts} of 9 heads; median {tokens:.0f} tokens, 24 texts"
    assert found.summary == words
    printed = " ".join(str(found).split())
    assert printed.startswith(words)
    assert printed.endswith(words)
    sides = [record["self"].query for record in planted_records]
    nothing = heads([record_of([planted(each, "uniform")], each) for each in sides])
    assert str(nothing).endswith(f"no label of 1 heads; median {tokens:.0f} tokens, 24 texts")


def test_what_one_of_several_texts_shows_is_no_label(rng):
    """18 texts without a word that comes back, and one with: its induction says nothing of the
    others.
    """
    texts = [
        Tokens(pieces=("[CLS]", *(f"w{word}" for word in range(8 + number % 4)), "[SEP]"))
        for number in range(18)
    ]
    texts.append(sentences(rng, pair=False))
    found = heads(
        [
            record_of([planted(tokens, "induction"), planted(tokens, "previous")], tokens)
            for tokens in texts
        ]
    )
    label = next(
        label for label in found.all_labels if (label.pattern, label.head) == ("induction", 0)
    )
    assert (label.texts, label.holds, label.candidate, label.only_one_text) == (
        1,
        False,
        False,
        False,
    )
    assert "induction" not in str(found)
    assert "previous" in {each.pattern for each in found.labels}


def test_a_score_at_two_lengths(rng):
    """A head that rests on delimiters as far as there are few words."""

    def record(size):
        tokens = Tokens(pieces=("[CLS]", *(f"w{word}" for word in range(size - 2)), "[SEP]"))
        share = 0.9 if size < 20 else 0.4
        weights = np.full((size, size), (1 - share) / (size - 2))
        weights[:, [0, -1]] = share / 2
        return record_of([weights], tokens)

    found = heads(
        [record(12 + number % 3) for number in range(20)]
        + [record(40 + number % 3) for number in range(12)]
    )
    label = next(label for label in found.all_labels if label.pattern == "delimiter")
    assert (label.shorter, label.longer) == (
        pytest.approx(0.85, abs=0.06),
        pytest.approx(0.4, abs=1e-6),
    )
    assert (label.shorter_tokens, label.longer_tokens) == (13, 41)
    assert label.holds
    assert "delimiter 0.71 [" in " ".join(str(found).split())
    assert "(0.40 at 41 tokens)" in " ".join(str(found).split())
    assert "at 13 tokens and 0.40 at 41" in str(label)
    alike = heads([record(12 + number % 3) for number in range(20)])
    assert all(np.isnan(each.shorter) for each in alike.all_labels)


def test_a_peak_needs_more_than_a_word_or_two():
    """Of two words the first either has its peak on the next one or has not, in every text
    alike.
    """
    weights = np.full((4, 4), 0.25)
    weights[1] = (0.2, 0.2, 0.4, 0.2)
    found = heads(
        [
            record_of([weights], Tokens(pieces=("[CLS]", "a", f"b{number}", "[SEP]")))
            for number in range(24)
        ]
    )
    assert not found.labels


def test_sink_is_told_of_64_tokens_and_more():
    def scores(size):
        weights = np.zeros((1, size, size))
        weights[0, :, 0] = 1
        return {label.pattern for label in heads([causal_record(weights)] * 24).labels}

    assert scores(63) == {"first-token"}
    assert scores(64) == {"sink"}


@pytest.mark.parametrize(
    ("pieces", "place"),
    [
        (("a",) * 5 + (".",) + ("b",) * 20 + (".",) + ("c",) * 9, 5),
        (("a",) * 7 + ("\n",) + ("b",) * 20, 7),
        (("[CLS]",) + ("a",) * 20 + ("[SEP]",) + ("b",) * 20 + ("[SEP]",), 21),
    ],
)
def test_sinks_that_are_not_the_first_token(pieces, place):
    tokens = Tokens(pieces=pieces)
    weights = np.zeros((len(pieces), len(pieces)))
    weights[:, place] = 1
    first = np.zeros_like(weights)
    first[:, 0] = 1
    found = heads([record_of([weights, first], tokens)] * 24)
    assert [label.head for label in found.labels if label.pattern == "sink-elsewhere"] == [0]


def test_heads_of_chance_score_what_even_rows_do():
    """Nothing that is picked or cut off lifts the score of a head that follows no pattern: p values
    rest on it.
    """
    pieces = ("[CLS]", "a", "b", "a", ".", "c", "\n", "[SEP]", "a", "d", "c", "e", "b", "[SEP]")
    tokens = Tokens(pieces=pieces, segments=(0,) * 8 + (1,) * 6)
    raised = np.exp(2 * np.random.default_rng(7).standard_normal((4000, len(pieces), len(pieces))))
    visible = np.ones((len(pieces), len(pieces)), bool)
    maps = AttentionMaps(
        raised / raised.sum(axis=2, keepdims=True), QueryKeyTokens(tokens, tokens), visible
    )
    even = AttentionMaps(
        np.full((1, len(pieces), len(pieces)), 1 / len(pieces)), maps.tokens, visible
    )
    for pattern in PATTERNS:
        if pattern.name.startswith("positional"):
            continue  # even rows have no peak; their baseline is how many keys there are
        scores, wanted = pattern.of(maps), pattern.of(even)
        if np.isnan(wanted).all():
            continue
        assert abs(scores.mean() - wanted[0]) < 4 * scores.std() / np.sqrt(len(scores)), (
            pattern.name
        )
