"""Each word's head from attention: planted maps are read, random ones are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.studies.probe._data import Training
from headscope.studies.probe._heads import head_scores

HOW = Training(epochs=12, rate=0.1)
PLANTED = 3


def by_name(scores):
    return {score.of.partition(" (")[0]: score.value for score in scores}


@pytest.fixture
def planted_item(random_item):
    """One head looks from each word to its head, the root at the first special token."""

    def made(sentence):
        item = random_item(sentence)
        maps, ends = item.maps.copy(), item.ends.copy()
        maps[PLANTED], ends[PLANTED] = 0, 0
        for word, head in enumerate(item.heads):
            if head < 0:
                ends[PLANTED, 1, 0, word] = 1
            else:
                maps[PLANTED, word, head] = 1
        return replace(item, maps=maps, ends=ends)

    return made


def test_a_planted_tree_is_found_whole(sentences, data_of, planted_item):
    found = by_name(head_scores(data_of(sentences, planted_item), HOW)[0])
    assert found["probe"] == 1
    assert found["control task"] < 0.6
    assert found["distances"] < 0.6


def test_random_maps_say_no_more_than_the_controls(sentences, data_of, random_item):
    scores = head_scores(data_of(sentences, random_item), HOW)[0]
    probe = next(score for score in scores if score.of == "probe")
    low, _ = probe.interval(0.95)
    assert low < by_name(scores)["distances"] + 0.05
    assert probe.value < 0.45


def test_words_that_tell_which_map_to_read_are_used(sentences, data_of, random_item, rng):
    """The head of half of the words is in one map, of the others in another; only their vectors
    tell which.
    """
    kinds = {
        form: rng.integers(0, 2)
        for form in {word.lower() for each in sentences for word in each.words}
    }

    def made(sentence):
        item = random_item(sentence)
        maps, ends = rng.random(item.maps.shape).astype(np.float32), np.zeros_like(item.ends)
        maps[:2] = 0
        for word, (form, head) in enumerate(zip(item.forms, item.heads.tolist(), strict=True)):
            wrong = int(rng.integers(0, len(item)))
            for kind in (0, 1):
                target = head if kind == kinds[form] else wrong
                if target < 0:
                    ends[kind, 1, 0, word] = 1
                else:
                    maps[kind, word, target] = 1
        vectors = np.eye(2, dtype=np.float32)[[kinds[form] for form in item.forms]]
        return replace(item, maps=maps, ends=ends, vectors=vectors)

    data = data_of(sentences, made)
    with_words = by_name(head_scores(data, HOW)[0])
    blind = replace(data, items=tuple(replace(item, vectors=None) for item in data.items))
    without = by_name(head_scores(blind, HOW)[0])
    assert with_words["probe"] > 0.97
    assert without["probe"] < with_words["probe"] - 0.15
    assert "distances and words" in with_words


def test_the_same_seed_gives_the_same_scores(sentences, data_of, random_item):
    data, how = data_of(sentences[:20], random_item), Training(epochs=2, rate=0.01)
    before = torch.random.get_rng_state()
    first, second = (by_name(head_scores(data, how)[0]) for _ in range(2))
    assert first == pytest.approx(second, abs=1e-6)
    assert torch.equal(before, torch.random.get_rng_state())
