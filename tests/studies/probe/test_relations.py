"""Relations from the attention of all heads: planted ones are read, random ones are not."""

from dataclasses import replace

import pytest

from headscope.errors import TextError
from headscope.studies.probe._data import Training
from headscope.studies.probe._spans import BINARY, WHICH, relation_scores

HOW = Training(epochs=20, rate=0.05)


def values(data, **more):
    scores, facts = relation_scores(data, HOW, least=5, **more)
    return {(score.task, score.of): score for score in scores}, facts


@pytest.fixture
def planted_item(random_item):
    """Head k looks from each dependent of relation k to its head."""

    def made(sentence):
        item = random_item(sentence)
        maps = item.maps * 0.2
        for word, head in enumerate(item.heads):
            if head >= 0 and item.relations[word] != "punct":
                maps[("nsubj", "obj", "det").index(item.relations[word]), word, head] = 0.9
        return replace(item, maps=maps)

    return made


def test_planted_relations_are_told_apart(sentences, data_of, planted_item):
    found, facts = values(data_of(sentences, planted_item))
    assert found[WHICH, "probe"].value == 1
    assert found[BINARY, "probe"].value > 0.98
    assert sorted(facts["relations"]) == ["det", "nsubj", "obj"]
    for task in (BINARY, WHICH):
        assert found[task, "control task"].value < 0.75
        assert found[task, "majority"].value < 0.6
        assert found[task, "probe"].value > found[task, "distances"].value + 0.2


def test_random_maps_say_nothing(sentences, data_of, random_item):
    found, _ = values(data_of(sentences, random_item))
    for task in (BINARY, WHICH):
        low, high = found[task, "probe"].interval(0.99)
        assert low < max(found[task, "majority"].value, found[task, "distances"].value)
        assert high < 0.85


def test_classes_of_the_binary_probe_are_balanced(sentences, data_of, random_item):
    found, facts = values(data_of(sentences, random_item))
    assert facts[f"pairs, {BINARY}"] > 1.8 * facts[f"pairs, {WHICH}"]
    assert found[BINARY, "majority"].value == pytest.approx(0.5, abs=0.05)


def test_too_few_of_each_relation_is_said(sentences, data_of, random_item):
    with pytest.raises(TextError, match="0 relations are at least 500 times among 12 sentences"):
        relation_scores(data_of(sentences[:20], random_item), HOW, least=500)
