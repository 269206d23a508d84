"""From a model and texts to labels with all their baselines, in one call."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import ModelError, RecordError
from headscope.patterns import Heads, load_tally
from headscope.patterns import heads as heads_of
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close, assert_same_numbers, numbers_before

TEXTS = ["the cat sat on it", ("a dog ran", "it ran"), "she saw us all", "an owl flew by me"]


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert")


def same(found, wanted):
    assert_close(found.tally.sums["sums"], wanted.tally.sums["sums"])
    assert [label.against for label in found.all_labels] == [
        label.against for label in wanted.all_labels
    ]
    found_p, wanted_p = ([label.p for label in each.all_labels] for each in (found, wanted))
    assert_close(found_p, wanted_p)


def test_a_model_with_texts_is_what_its_records_are(model, tokenizer):
    wanted = heads_of(hs.capture_many(model, tokenizer, TEXTS))
    same(hs.heads(model, tokenizer, TEXTS, battery=False), wanted)
    same(hs.heads(hs.capture_many(model, tokenizer, TEXTS)), wanted)
    assert hs.heads(model, tokenizer, iter(TEXTS)).texts == 4
    assert hs.heads(model, tokenizer, TEXTS[0]).texts == 1


def test_a_model_may_be_named(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    same(hs.heads(str(tmp_path), texts=TEXTS), hs.heads(model, tokenizer, TEXTS))


def test_random_weights_are_one_option(model, tokenizer):
    from headscope.capturing import random_twin

    found = hs.heads(model, tokenizer, TEXTS, random_weights=True, battery=False)
    assert {label.against.rpartition(", ")[2] for label in found.all_labels} == {"random weights"}
    same(
        found,
        hs.heads(
            hs.capture_many(model, tokenizer, TEXTS),
            random_weights=hs.heads(hs.capture_many(random_twin(model), tokenizer, TEXTS)),
        ),
    )


def test_an_encoder_decoder_is_read_by_its_stack(tokenizer):
    found = hs.heads(tiny_model("bart"), tokenizer, TEXTS[:2], stack="encoder", position_mean=True)
    assert found.texts == 2


def test_related_words_are_one_option(model, tokenizer):
    from headscope.patterns import related_patterns
    from headscope.studies.heads import input_embeddings

    found = hs.heads(model, tokenizer, TEXTS, related=True, random_weights=True)
    told = [label for label in found.all_labels if label.pattern == "related"]
    assert len(told) == len(found.cells)
    assert {label.against for label in told} == {"uniform, shuffled, random weights"}
    patterns = related_patterns(input_embeddings(model))
    alone = hs.heads(hs.capture_many(model, tokenizer, TEXTS), patterns=patterns)
    ours, theirs = ([label.score for label in one.ranked("related")] for one in (alone, found))
    assert_close(ours, theirs)


def test_texts_that_cannot_be_read_are_reported_once(model, tokenizer):
    seen = []
    found = hs.heads(
        model,
        tokenizer,
        ["a cat", "", "it sat"],
        random_weights=True,
        position_mean=True,
        on_error=lambda number, error: seen.append(number),
    )
    assert found.texts == 2
    assert seen == [1]
    with pytest.warns(UserWarning, match="the rest is cut off"):
        assert hs.heads(model, tokenizer, ["a " * 99], truncate=True).texts == 1


def test_runs_of_repeated_tokens_decide_induction(model, tokenizer, tmp_path):
    """A model whose second layer looks at what followed before: found whatever the texts are, and
    kept with them.
    """
    found = hs.heads(model, tokenizer, TEXTS)
    told = [label for label in found.all_labels if label.pattern == "induction"]
    assert {(label.texts, label.on) for label in told} == {(20, "runs of repeated tokens")}
    assert "induction: of 20 runs of repeated tokens, not of the texts" in str(found)
    kept = load_tally(found.tally.save(tmp_path / "kept.safetensors"))
    assert_close(kept.runs.values, found.tally.runs.values)
    assert [str(label) for label in Heads(kept).all_labels] == [
        str(label) for label in found.all_labels
    ]
    without = hs.heads(model, tokenizer, TEXTS, battery=False)
    assert {label.on for label in without.all_labels} == {"texts"}
    with pytest.raises(RecordError, match="battery=True needs a model to run"):
        hs.heads(hs.capture(model, tokenizer, "a cat"), battery=True)


def test_bad_input_is_refused(model, tokenizer):
    record = hs.capture(model, tokenizer, "a cat")
    with pytest.raises(RecordError, match=r"random_weights, position_mean, related=True needs"):
        hs.heads(record, random_weights=True, position_mean=True, related=True)
    with pytest.raises(RecordError, match=r"tokenizer, truncate belong to a model and texts"):
        hs.heads(record, tokenizer, truncate=True)
    with pytest.raises(ModelError, match="got Record; give the model first"):
        hs.heads(record, tokenizer, TEXTS)
    with pytest.raises(RecordError, match="The texts need the tokenizer of BertModel"):
        hs.heads(model, texts=TEXTS)
    with pytest.raises(RecordError, match="with none in it"):
        hs.heads(model, tokenizer, [])
    with pytest.raises(RecordError, match="heads was given a BertModel; give records"):
        hs.heads(model)
    with pytest.raises(RecordError, match="has no option 'alhpa'; it has patterns, stack"):
        hs.heads(model, tokenizer, TEXTS, alhpa=1)


def test_the_map_of_heads_is_that_of_their_distances(model, tokenizer):
    from headscope.measures import head_distances

    found = hs.heads(model, tokenizer, TEXTS, distances=True)
    maps = [
        np.concatenate([layer.weights_of() for layer in record["self"]])
        for record in hs.capture_many(model, tokenizer, TEXTS)
    ]
    assert_close(found.distances, sum(map(head_distances, maps)) / len(TEXTS))
    assert found.map.shape == (len(found.cells), 2)
    with pytest.raises(RecordError, match="distances of heads were not added up"):
        _ = hs.heads(model, tokenizer, TEXTS).map


def test_copies_of_a_text_are_one_document(model, tokenizer):
    copies = hs.heads(model, tokenizer, ["the cat sat on the mat"] * 24, battery=False)
    assert not copies.labels
    assert copies.documents == 1
    assert "24 texts, 1 different" in copies.summary
    assert hs.heads(model, tokenizer, [*TEXTS, TEXTS[0]], battery=False).documents == len(TEXTS)
    documents = ["a", "a", "b", "b", "c"]
    grouped = hs.heads(model, tokenizer, [*TEXTS, TEXTS[0]], groups=documents, battery=False)
    assert grouped.documents == 2


def test_copies_of_a_conversation_are_one_document(model):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for one in messages %}{{ one['content'] }} {% endfor %}"
    chat = [{"role": "user", "content": "the cat sat"}, {"role": "assistant", "content": "it sat"}]
    found = hs.heads(model, tokenizer, [chat, chat, TEXTS[0]], battery=False)
    assert (found.texts, found.documents) == (3, 2)


def numbers_of(found, every):
    """Some rows of the table, and all labels and measures, as JSON has them."""

    def told(labels):
        return [[label.layer, label.head, label.pattern] for label in labels]

    return {
        "columns": {name: column[::every] for name, column in found.columns().items()},
        "labels": told(found.labels),
        "candidates": told(found.candidates),
        "summary": found.summary,
        "not judged": found._not_judged(),
        "measures": {name: values.tolist() for name, values in found.measures.items()},
        "classes": {name: values[::5].tolist() for name, values in found.classes.items()},
    }


@pytest.mark.filterwarnings("ignore:.*too few:UserWarning", "ignore:input:UserWarning")
def test_numbers_of_real_texts_stay_what_they_were(minilm, real_texts, tokenizer):
    """As they were before texts had no values of their own: documents, pairs with all baselines,
    records, texts of two lengths, causal and cross-attention, copies.
    """
    (texts, groups), quiet = real_texts, {"progress": False}
    pairs = [(texts[number], texts[number + 1]) for number in range(0, 14, 2)]
    baselines = {"position_mean": True, "random_weights": True, "related": True}
    alike = hs.heads(*minilm, pairs, distances=True, **baselines, **quiet)
    records = hs.capture_many(*minilm, texts[:6], **quiet)
    long = [" ".join(texts[number : number + 6]) for number in (0, 6)]
    rng = np.random.default_rng(0)
    words = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]
    made_up = [" ".join(rng.choice(words, 3 + number % 6)) for number in range(14)]
    rng = np.random.default_rng(0)
    more = [" ".join(rng.choice(words, 3 + number % 6)) for number in range(20)]
    crossed = [(more[number], more[number + 10]) for number in range(10)]
    cross = {"stack": "cross", "battery": False}
    bert, gpt2, bart = (tiny_model(family) for family in ("bert", "gpt2", "bart"))
    found = {
        "documents": numbers_of(hs.heads(*minilm, texts[:14], groups=groups[:14], **quiet), 13),
        "pairs": numbers_of(alike, 17) | {"distances": alike.distances[::17, ::13].tolist()},
        "records": numbers_of(hs.heads(list(records)), 17),
        "lengths": numbers_of(hs.heads(*minilm, [*long, *texts[:4]], **quiet), 17),
        "causal": numbers_of(hs.heads(gpt2, tokenizer, made_up, **quiet), 3),
        "copies": numbers_of(hs.heads(bert, tokenizer, [*made_up, *made_up[:3]], **quiet), 3),
        "cross": numbers_of(hs.heads(bart, tokenizer, crossed, **cross, **quiet), 2),
    }
    assert_same_numbers(found, numbers_before("heads"))
