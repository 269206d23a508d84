import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

from headscope.errors import RecordError
from headscope.linguistics import control_tree, spanning_tree, tree_depths, tree_distances

from ..power2 import power2_embedding


@st.composite
def trees(draw):
    """Heads of any tree: each word hangs from one before it in some order."""
    size = draw(st.integers(1, 9))
    order = draw(st.permutations(range(size)))
    heads = np.full(size, -1)
    for place in range(1, size):
        heads[order[place]] = order[draw(st.integers(0, place - 1))]
    return heads


def edges_of(heads):
    return {tuple(sorted((word, int(head)))) for word, head in enumerate(heads) if head >= 0}


@given(trees())
def test_distances_are_shortest_paths(heads):
    joined = np.zeros((len(heads), len(heads)))
    for first, second in edges_of(heads):
        joined[first, second] = 1
    assert tree_distances(heads).tolist() == shortest_path(joined, directed=False).tolist()


@given(trees())
def test_squared_distances_of_the_power_2_embedding_are_those_of_the_tree(heads):
    points = power2_embedding(heads)
    assert ((points[:, None] - points) ** 2).sum(-1).tolist() == tree_distances(heads).tolist()
    assert (points**2).sum(-1).tolist() == tree_depths(heads).tolist()


@given(trees())
def test_a_tree_is_the_spanning_tree_of_its_distances(heads):
    assert spanning_tree(tree_distances(heads).astype(float)) == edges_of(heads)


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_the_spanning_tree_is_as_short_as_that_of_scipy(seed, size):
    distances = np.random.default_rng(seed).random((size, size)) + 0.1
    distances += distances.T
    np.fill_diagonal(distances, 0)
    found = sum(distances[edge] for edge in spanning_tree(distances))
    assert found == pytest.approx(minimum_spanning_tree(distances).sum())


def test_words_that_do_not_count_are_joined_to_none():
    distances = tree_distances(np.array([1, -1, 1, 2, 1])).astype(float)
    counted = np.array([True, True, False, True, True])
    assert spanning_tree(distances, counted) == {(0, 1), (1, 3), (1, 4)}


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([1, 2, 0], "go round in a circle"),
        ([3, -1], "numbers of words from 0 to 1"),
        ([-1, 0, -1], "has one root"),
    ],
)
def test_what_is_no_tree_is_refused(heads, said):
    with pytest.raises(RecordError, match=said):
        tree_distances(np.array(heads))


@given(st.lists(st.sampled_from(["the", "cat", "saw", "a", "dog", "it"]), min_size=1, max_size=12))
def test_control_trees_are_trees_that_word_types_alone_decide(forms):
    heads = control_tree(forms)
    assert (tree_depths(heads) == 0).sum() == 1
    kinds = {}
    for place, (form, head) in enumerate(zip(forms, heads.tolist(), strict=True)):
        if place > 2:  # where the three behaviours give three heads
            kinds.setdefault(form, set()).add(
                {place - 1: "previous", place - 2: "before", 0: "first"}[head]
            )
    assert all(len(found) == 1 for found in kinds.values())
