import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.linguistics import (
    centre_of_gravity,
    control_heads,
    control_labels,
    expected_layer,
    read_vectors,
)
from headscope.linguistics.probes import (
    best_offset,
    depth_ranks,
    distance_ranks,
    edges_hit,
    head_distances,
    pair_distances,
    root_hit,
    unrelated_pairs,
)
from headscope.linguistics.trees import tree_distances

TREE = np.array([2, 0, -1, 2, 3])


def test_control_labels_are_drawn_as_often_as_true_ones_and_once_for_a_type():
    names = [f"word {number}" for number in range(4000)]
    shares = np.array([0.6, 0.3, 0.1])
    found = control_labels(names, shares)
    assert np.bincount(found) / len(found) == pytest.approx(shares, abs=0.03)
    assert control_labels(names[::-1], shares).tolist() == found[::-1].tolist()
    assert control_labels(names, shares, seed=1).tolist() != found.tolist()


def test_control_heads_are_three_behaviours_each_a_third():
    forms = [f"word {number}" for number in range(3000)]
    found = control_heads(forms)
    own = (found == np.arange(len(forms))).mean()
    assert [own, (found == 0).mean(), (found == len(forms) - 1).mean()] == pytest.approx(
        [1 / 3] * 3, abs=0.04
    )


def test_distance_features_are_those_of_the_paper():
    found = head_distances(4)
    assert found.shape == (5, 4, 8)
    assert found[0, 2].tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert found[1 + 1, 3].tolist() == [0.5, 0, 0, 0, 0, 1, 0, 0]
    assert found[1 + 3, 2].tolist() == [0, 0.25, 0, 0, 1, 0, 0, 0]
    assert found[1 + 2, 2].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_the_best_offset_hits_most_heads():
    assert best_offset([np.array([-1, 0, 1, 2])]) == -1
    assert best_offset([np.array([1, 2, -1]), np.array([1, -1])]) == 1


def test_pairs_without_an_edge_have_none_in_either_direction(rng):
    found = {tuple(pair) for pair in unrelated_pairs(TREE, [0, 1, 2, 3, 4], 99, rng).tolist()}
    edges = {(word, head) for word, head in enumerate(TREE.tolist()) if head >= 0}
    every = {(first, second) for first in range(5) for second in range(5) if first != second}
    assert found == every - edges - {(head, word) for word, head in edges}
    assert {
        place for pair in unrelated_pairs(TREE, [0, 1, 4], 99, rng) for place in pair.tolist()
    } == {0, 1, 4}
    assert len(unrelated_pairs(TREE, [0, 1, 2, 3, 4], 3, rng)) == 3


def test_far_offsets_share_a_feature():
    found = pair_distances(np.array([0, 0, 14]), np.array([10, 14, 0]), np.array([20, 20, 20]))
    assert found[0, :-1].tolist() == found[1, :-1].tolist()
    assert found[:, -1].tolist() == [0.5, 0.7, 0.7]
    assert found[2, 0] == 1


def test_the_gold_tree_scores_everything():
    gold = tree_distances(TREE).astype(float)
    assert edges_hit(gold, gold) == (4, 4)
    assert distance_ranks(gold, gold) == pytest.approx((5, 5))
    assert depth_ranks(gold[2], gold[2]) == pytest.approx((1, 1))
    assert depth_ranks(np.ones(5), gold[2]) == (0, 0)
    assert root_hit(gold[2], TREE) == (1, 1)
    assert root_hit(gold[0], TREE) == (0, 1)
    assert root_hit(gold[0] + gold[2] * 0.1, TREE, np.array([False, False, True, True, True])) == (
        1,
        1,
    )


def test_the_layers_of_a_mix():
    assert centre_of_gravity(np.array([0.0, 0.0, 0.0, 1.0])) == 3
    assert expected_layer(np.array([0.2, 0.2, 0.9, 0.9])) == 2
    assert expected_layer(np.array([0.2, 0.4, 0.8])) == pytest.approx((1 * 0.2 + 2 * 0.4) / 0.6)
    assert np.isnan(expected_layer(np.array([0.2, 0.2])))


def test_vectors_are_read_from_text():
    found = read_vectors(["3 2", "the 1 2\n", "cat 0.5 -1\n", ". 0 0\n"], {"cat", "."})
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "cat": [0.5, -1],
        ".": [0, 0],
    }


@pytest.mark.parametrize("lines", [["the 1 2", "cat 1"], ["the 1 2", "cat one 2"]])
def test_a_table_of_vectors_that_is_none_is_refused(lines):
    with pytest.raises(RecordError, match="Line 2 of the word vectors should hold a word and 2"):
        read_vectors(lines, {"cat"})
