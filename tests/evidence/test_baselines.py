import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.evidence import mean_map, position_map, rng_of, shuffled_tokens, uniform_map
from headscope.measures import mass_on_pairs, same_token
from headscope.record import Tokens


def test_uniform_rows_keep_to_what_is_visible(rng):
    visible = rng.random((5, 7)) < 0.5
    visible[2] = False
    found = uniform_map(visible)[0]
    for query in range(5):
        seen = [k for k in range(7) if visible[query, k]]
        assert found[query].tolist() == [1 / len(seen) if k in seen else 0 for k in range(7)]


def test_position_maps_give_a_position_head_back_and_level_a_content_head():
    maps = []
    positions = np.eye(6, k=-1)
    positions[0, 0] = 1
    for number in range(6):
        content = np.zeros((6, 6))
        content[:, number] = 1
        maps.append(np.stack([positions, content]))
    mean = mean_map([*maps, np.ones((2, 3, 2))[:, :0]], 6)
    found = position_map(mean, np.ones((5, 4), bool))
    np.testing.assert_allclose(
        found[0], positions[:5, :4] / np.maximum(positions[:5, :4].sum(1, keepdims=True), 1)
    )
    np.testing.assert_allclose(found[1], np.full((5, 4), 1 / 4))
    assert np.isnan(mean).sum() == 0
    assert np.isnan(mean_map([each[:, :2, :3] for each in maps], 6)).sum() == 2 * 30
    with pytest.raises(RecordError, match="has 7 tokens, the average map 6"):
        position_map(mean, np.ones((5, 7), bool))


PAIR = Tokens(
    pieces=("[CLS]", "the", "straw", "##berries", "taste", "[SEP]", "an", "##y", "store", "[SEP]"),
    segments=(0, 0, 0, 0, 0, 0, 1, 1, 1, 1),
)


def test_words_change_places_within_their_sentence_with_all_their_pieces(rng):
    seen = set()
    for _ in range(60):
        found = shuffled_tokens(PAIR, rng)
        assert (found.segments, found.special) == (PAIR.segments, PAIR.special)
        first, second = " ".join(found.pieces[1:5]), " ".join(found.pieces[6:9])
        assert sorted(first.split()) == ["##berries", "straw", "taste", "the"]
        assert "straw ##berries" in first
        assert "an ##y" in second
        seen.add((first, second))
    assert len(seen) == 6 * 2


def test_words_are_told_by_their_numbers_too(rng):
    tokens = Tokens(pieces=("a", "b", "c", "d"), words=(0, 0, 1, 2))
    assert all("ab" in "".join(shuffled_tokens(tokens, rng).pieces) for _ in range(20))
    only = Tokens(pieces=("[CLS]", "[SEP]"))
    assert shuffled_tokens(only, rng).pieces == only.pieces


def test_shuffling_takes_a_content_head_down(rng):
    tokens = Tokens(pieces=tuple("abcdefghacij"))
    pairs = same_token(tokens, tokens, itself=False)
    content = np.where(pairs.any(1, keepdims=True), pairs, 1 / 12)[None].astype(float)
    drawn = [shuffled_tokens(tokens, rng) for _ in range(200)]
    assert mass_on_pairs(content, pairs).tolist() == [1]
    assert (
        np.mean([mass_on_pairs(content, same_token(each, each, itself=False))[0] for each in drawn])
        < 0.2
    )


def test_randomness_belongs_to_the_text():
    assert rng_of("a").random() != rng_of("b").random()
    assert rng_of("a", 1).random() != rng_of("a").random()
