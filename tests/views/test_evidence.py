"""Evidence of heads in a page, read back as the viewer reads it."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.patterns import CLASSES, PATTERNS, Heads, Pattern, sketch
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights
from headscope.views import _html

from ..contracts import check_page

LAYERS, HEADS = 2, 3
WORDS = ("stone", "river", "lamp", "cloud", "table", "horse", "glass", "paper")


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"run('{name}')")


def text_of(rng, size):
    words = rng.choice(WORDS, size - 3)
    pieces = ("[CLS]", *map(str, words[:3]), "[SEP]", *map(str, words[3:]), "[SEP]")
    return Tokens(pieces=pieces, segments=(0,) * 5 + (1,) * (size - 5))


def record_of(rng, size, heads=HEADS):
    """Head 0-1 looks at the next word, 1-2 rests on [SEP], the others at anything."""
    tokens = text_of(rng, size)
    layers = []
    for number in range(LAYERS):
        weights = random_weights(rng, (heads, size, size))
        special = {
            0: np.eye(size, k=1),
            1: np.broadcast_to(np.array(tokens.special) * 1.0, (size, size)),
        }[number]
        special = np.where(special.any(axis=1, keepdims=True), special, 1.0)
        at = min(number + 1, heads - 1)
        weights[at] = 0.9 * special / special.sum(axis=1, keepdims=True) + 0.1 * weights[at]
        layers.append(Layer(layer=number, weights=weights.astype(np.float32)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    return Record(stacks={"self": stack}, model=ModelFacts(name="planted"))


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    return [record_of(rng, int(size)) for size in rng.integers(9, 14, 20)]


@pytest.fixture(scope="module")
def found(records):
    return hs.heads(records)


def array(view, described):
    values = np.frombuffer(view.chunks[described["chunk"]], described["dtype"])
    return values.reshape(described["shape"])


def test_every_label_comes_back_with_its_numbers(records, found):
    view = hs.view(records[0], evidence=found)
    evidence = view.header["evidence"]
    status, numbers = array(view, evidence["status"]), array(view, evidence["numbers"])
    assert status.shape == (len(PATTERNS), LAYERS, HEADS)
    assert numbers.shape == (7, len(PATTERNS), LAYERS, HEADS)
    names = [pattern["name"] for pattern in evidence["patterns"]]
    assert {(label.pattern, label.layer, label.head) for label in found.labels} == {
        (names[pattern], layer, head) for pattern, layer, head in np.argwhere(status == 2).tolist()
    }
    assert {("next", 0, 1), ("delimiter", 1, 2)} <= {
        (label.pattern, label.layer, label.head) for label in found.labels
    }
    seen = np.zeros(status.shape, bool)
    for label in found.all_labels:
        place = (names.index(label.pattern), label.layer, label.head)
        wanted = (
            label.score,
            label.low,
            label.high,
            label.baseline,
            label.effect,
            label.corrected,
            label.texts,
        )
        np.testing.assert_allclose(numbers[(slice(None), *place)], wanted, rtol=1e-6)
        seen[place] = True
    assert np.isnan(numbers[:, ~seen]).all()


def test_measures_come_back_with_layers_and_classes(records, found):
    view = hs.view(records[0], evidence=found)
    evidence = view.header["evidence"]
    values = array(view, evidence["values"])
    names = [measure["name"] for measure in evidence["measures"]]
    assert names == ["layer", *found.measures, *(f"class {name}" for name in CLASSES)]
    assert values[0].tolist() == [[0] * HEADS, [1] * HEADS]
    for name, wanted in {
        **found.measures,
        **{f"class {name}": found.classes[name] for name in CLASSES},
    }.items():
        np.testing.assert_allclose(values[names.index(name)].ravel(), wanted, rtol=1e-6)
    units = {measure["name"]: measure["unit"] for measure in evidence["measures"]}
    assert (units["entropy"], units["distance"], units["self"]) == ("nats", "tokens", "")
    assert all(measure["says"] for measure in evidence["measures"])


def test_evidence_says_over_what_it_was_measured(records, found):
    evidence = hs.view(records[0], evidence=found).header["evidence"]
    assert (evidence["stack"], evidence["model"], evidence["texts"]) == ("self", "planted", 20)
    assert (evidence["confidence"], evidence["alpha"], evidence["correction"]) == (
        0.95,
        0.05,
        "holm",
    )
    assert evidence["caution"] == ""
    assert evidence["tokens"] == np.median([len(record["self"].query) for record in records])
    induction = next(pattern for pattern in evidence["patterns"] if pattern["name"] == "induction")
    assert (induction["threshold"], induction["against"]) == (0.3, "uniform, shuffled, like words")


def test_the_header_follows_the_contract(records, found):
    header = hs.view(records[0], evidence=found).header
    check_page(header)
    assert json.loads(json.dumps(header, allow_nan=False)) == header


def test_one_text_is_told_as_such(records):
    view = hs.view(records[0], evidence=hs.heads(records[0]))
    evidence = view.header["evidence"]
    assert evidence["texts"] == 1
    assert evidence["caution"] == "Seen on one text only: nothing is known of others"
    assert set(array(view, evidence["status"]).ravel().tolist()) == {0, 1}
    assert evidence["shown"]
    json.dumps(view.header, allow_nan=False)


def test_too_few_texts_are_told_as_such(records):
    view = hs.view(records[0], evidence=hs.heads(records[:4]))
    evidence = view.header["evidence"]
    assert evidence["caution"].startswith("4 texts are too few to tell")
    assert set(array(view, evidence["status"]).ravel().tolist()) == {0, 1}
    assert {
        (each["layer"], each["head"], PATTERNS[each["pattern"]].name) for each in evidence["shown"]
    } >= {(0, 1, "next"), (1, 2, "delimiter")}


def test_a_page_of_some_heads_has_their_evidence(records, found):
    view = hs.view(records[0], evidence=found, include_layers=[1], include_heads=[2, 0])
    evidence = view.header["evidence"]
    whole = hs.view(records[0], evidence=found)
    for name in ("status", "numbers", "values"):
        all_of = array(whole, whole.header["evidence"][name])
        np.testing.assert_array_equal(array(view, evidence[name]), all_of[..., [1], :][..., [0, 2]])
    assert {(shown["layer"], shown["head"]) for shown in evidence["shown"]} <= {(1, 0), (1, 2)}


def test_pairs_are_the_strongest_of_the_shown_text(records, found):
    record = records[5]
    evidence = hs.view(record, evidence=found).header["evidence"]
    places = [
        (PATTERNS[shown["pattern"]].name, shown["layer"], shown["head"])
        for shown in evidence["shown"]
    ]
    shown = evidence["shown"][places.index(("next", 0, 1))]
    weights = record["self"].weights(0, 1)
    segments, special = record["self"].query.segments, record["self"].query.special
    inside = [
        (weights[i, i + 1], i)
        for i in range(len(weights) - 1)
        if segments[i] == segments[i + 1] and not special[i] and not special[i + 1]
    ]
    wanted = sorted(inside, reverse=True)[:3]
    assert [(pair["query"], pair["key"]) for pair in shown["pairs"]] == [
        (i, i + 1) for _, i in wanted
    ]
    assert [pair["weight"] for pair in shown["pairs"]] == pytest.approx(
        [weight for weight, _ in wanted]
    )
    delimiter = evidence["shown"][places.index(("delimiter", 1, 2))]
    assert all(special[pair["key"]] for pair in delimiter["pairs"])


def test_a_pattern_of_ones_own_shows_pairs_where_it_is_made_of_them(records):
    stone = sketch('any -> "stone"')
    score = Pattern(
        name="next", says="a", source="b", threshold=0.5, score=lambda maps: maps.weights[:, 2, 3]
    )
    found = hs.heads(records, patterns=(stone, score))
    found = Heads(found.tally, alpha=0.9999)
    evidence = hs.view(records[2], evidence=found).header["evidence"]
    pieces = records[2]["self"].key.pieces
    for shown in evidence["shown"]:
        if shown["pattern"] == 1:
            assert shown["pairs"] == []
        else:
            assert {pieces[pair["key"]] for pair in shown["pairs"]} <= {"stone"}
    assert {shown["pattern"] for shown in evidence["shown"]} >= {1}


def test_examples_are_the_best_texts_each_kept_once(records, found):
    evidence = hs.view(records[0], evidence=found).header["evidence"]
    assert len(set(evidence["examples"])) == len(evidence["examples"])
    for shown in evidence["shown"]:
        best = found.head(shown["layer"], shown["head"]).examples(PATTERNS[shown["pattern"]].name)
        texts = [evidence["examples"][text] for text in shown["texts"]]
        assert list(zip(texts, shown["scores"], strict=True)) == best


def test_evidence_of_a_second_stack(rng):
    record = hs.from_weights(
        encoder=random_weights(rng, (2, 3, 4, 4)),
        cross=random_weights(rng, (3, 3, 5, 4)),
        encoder_tokens=list("abcd"),
        decoder_tokens=list("vwxyz"),
    )
    view = hs.view(record, evidence=hs.heads(record, stack="cross"))
    assert view.header["evidence"]["stack"] == "cross"
    assert view.header["evidence"]["status"]["shape"][1:] == [3, 3]
    first = hs.heads(record)
    assert (
        hs.view(record, evidence=first, include_layers=[1]).header["evidence"]["stack"] == "encoder"
    )
    with pytest.raises(PageError, match="evidence is of stack 'encoder', which include_layers="):
        hs.view(record, evidence=first, include_layers=[2])


def test_evidence_of_other_heads_is_refused(records, found, rng):
    with pytest.raises(PageError, match="6 heads, 0-0 to 1-2, and stack 'self' of this record has"):
        hs.view(record_of(rng, 9, heads=4), evidence=found)
    with pytest.raises(PageError, match="evidence must be what headscope.heads found, not a list"):
        hs.view(records[0], evidence=[found])


def test_evidence_stays_while_a_view_is_shown(records, found):
    from headscope.views._selection import changed_selection

    header = hs.view(records[0], evidence=found).header
    with pytest.raises(PageError, match="evidence cannot change while a view is shown"):
        changed_selection(header, header["selection"], {"evidence": found})
    plain = hs.view(records[0]).header
    assert changed_selection(plain, plain["selection"], {"view": "scatter"})["order"] == "kind"
