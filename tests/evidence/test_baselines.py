import numpy as np
import pytest

from headscope import RecordError
from headscope.evidence import MapSum, null_scores, position_map, rng_of, shuffled_pairs, uniform_map
from headscope.measures import entropy, mass_on_pairs
from headscope.testing import random_record


def test_uniform_rows_keep_to_what_is_visible(rng):
    visible = rng.random((5, 7)) < 0.5
    visible[2] = False
    found = uniform_map(visible)[0]
    for query in range(5):
        seen = [k for k in range(7) if visible[query, k]]
        assert found[query].tolist() == [1 / len(seen) if k in seen else 0 for k in range(7)]


def test_position_maps_give_a_position_head_back_and_level_a_content_head():
    maps = MapSum(2, 6)
    positions = np.eye(6, k=-1)
    positions[0, 0] = 1
    for number in range(6):
        content = np.zeros((6, 6))
        content[:, number] = 1
        maps.update(str(number), np.stack([positions, content]))
    found = position_map(maps.mean, np.ones((5, 4), bool))
    np.testing.assert_allclose(found[0], positions[:5, :4] / np.maximum(positions[:5, :4].sum(1, keepdims=True), 1))
    np.testing.assert_allclose(found[1], np.full((5, 4), 1 / 4))
    with pytest.raises(RecordError, match="has 7 tokens, the average map 6"):
        position_map(maps.mean, np.ones((5, 7), bool))


def test_shuffled_pairs_keep_their_number_and_leave_special_tokens(rng):
    words = np.array([False, True, True, True, True, True, False])
    pairs = np.zeros((7, 7), bool)
    pairs[0, 6] = pairs[2, 4] = pairs[4, 2] = True
    for _ in range(20):
        found = shuffled_pairs(pairs, query_words=words, key_words=words, rng=rng)
        assert found.sum() == 3
        assert found[0, 6]
        np.testing.assert_array_equal(found[1:6, 1:6], found[1:6, 1:6].T)
    across = shuffled_pairs(pairs[:, :5], query_words=words, key_words=words[:5], rng=rng)
    assert across.sum() == 2


def test_shuffling_takes_a_content_head_down_and_a_position_head_not(rng):
    words = np.ones(12, bool)
    pairs = np.zeros((12, 12), bool)
    pairs[3, 8] = pairs[8, 3] = True
    content = np.where(pairs.any(1, keepdims=True), pairs, 1 / 12)[None].astype(float)
    scores = [
        mass_on_pairs(content, shuffled_pairs(pairs, query_words=words, key_words=words, rng=rng))[0]
        for _ in range(200)
    ]
    assert mass_on_pairs(content, pairs).tolist() == [1]
    assert np.mean(scores) < 0.15


def test_randomness_belongs_to_the_text():
    assert rng_of("a").random() != rng_of("b").random()
    assert rng_of("a", 1).random() != rng_of("a").random()


def test_null_scores_take_records_of_a_model_with_random_weights():
    found = null_scores((random_record(seed=s) for s in range(3)), lambda record: entropy(record["cross"].weights(1)))
    assert found.texts == ("0", "1", "2")
    assert found.values.shape == (3, 3)
    with pytest.raises(RecordError, match="No record of the model with random weights"):
        null_scores([], lambda record: np.zeros(1))
