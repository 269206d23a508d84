"""Each word's head from attention: planted maps are read, random ones are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.studies.probe._data import Training
from headscope.studies.probe._heads import (
    AttentionOnly,
    AttentionWords,
    batch_of,
    grouped,
    head_scores,
)

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


def test_scores_are_those_of_the_formula(sentences, random_item, rng):
    items = [random_item(sentence) for sentence in sentences[:3]]
    items = [replace(item, vectors=rng.random((len(item), 5)).astype(np.float32)) for item in items]
    maps = len(items[0].maps)
    scale = rng.random(maps) + 0.5
    plain, worded = AttentionOnly(maps), AttentionWords(maps, 5)
    with torch.no_grad():
        plain.weights.uniform_(-1, 1)
        for module in (plain, worded):
            module.ends.uniform_(-1, 1)
    ahead, back = plain.weights.detach().numpy()
    sizes = np.array([len(item) for item in items])
    [numbers] = grouped(sizes, [0, 1, 2])
    batch = batch_of(items, lambda item: item.heads, scale, numbers)
    both = [module(batch).detach().numpy() for module in (plain, worded)]
    for place, number in enumerate(numbers):
        item, size = items[number], len(items[number])
        scaled, ends = item.maps * scale[:, None, None], item.ends * scale[:, None, None, None]
        for word in range(size):
            root = np.einsum("ke,e->k", ends[:, 0, :, word], plain.ends.detach().numpy())
            root_back = np.einsum("ke,e->k", ends[:, 1, :, word], plain.ends.detach().numpy())
            assert both[0][place, 0, word] == pytest.approx(
                ahead @ root + back @ root_back, abs=1e-5
            )
            for head in range(size):
                wanted = ahead @ scaled[:, head, word] + back @ scaled[:, word, head]
                assert both[0][place, 1 + head, word] == pytest.approx(wanted, abs=1e-5)
                joined = torch.from_numpy(np.concatenate([item.vectors[head], item.vectors[word]]))
                dense = (
                    torch.cat([worded.heads.weight, worded.words.weight], dim=1) @ joined
                    + worded.heads.bias
                )
                features = np.concatenate([scaled[:, head, word], scaled[:, word, head]])
                assert both[1][place, 1 + head, word] == pytest.approx(
                    dense.detach().numpy() @ features, abs=1e-5
                )


def test_the_same_seed_gives_the_same_scores(sentences, data_of, random_item):
    data, how = data_of(sentences[:20], random_item), Training(epochs=2, rate=0.01)
    before = torch.random.get_rng_state()
    first, second = (by_name(head_scores(data, how)[0]) for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.random.get_rng_state())
