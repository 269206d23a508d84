from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.linguistics import decode_tree


def is_tree(heads, root):
    for word in range(len(heads)):
        place, steps = word, 0
        while place != root:
            place, steps = int(heads[place]), steps + 1
            if place < 0 or steps > len(heads):
                return False
    return heads[root] == -1


def worth(scores, heads):
    return sum(scores[word, head] for word, head in enumerate(heads) if head >= 0)


def best_of_all(scores, root):
    size = len(scores)
    choices = [
        [-1] if word == root else [head for head in range(size) if head != word]
        for word in range(size)
    ]
    return max(
        worth(scores, heads) for heads in product(*choices) if is_tree(np.array(heads), root)
    )


@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 10**6), st.booleans())
def test_no_tree_is_better(size, root, seed, tied):
    root %= size
    rng = np.random.default_rng(seed)
    scores = (
        rng.integers(-2, 3, (3, size, size)).astype(float)
        if tied
        else rng.normal(size=(3, size, size))
    )
    for matrix, heads in zip(scores, decode_tree(scores, root), strict=True):
        assert is_tree(heads, root)
        assert worth(matrix, heads) == pytest.approx(best_of_all(matrix, root))


@pytest.mark.parametrize(("size", "root"), [(9, 0), (24, 7), (60, 59)])
def test_long_sentences_agree_with_networkx(rng, size, root):
    networkx = pytest.importorskip("networkx")
    scores = rng.dirichlet(np.full(size, 0.2), size=(4, size))
    # chains of words that look at each other make cycles within cycles
    scores[3] = np.exp(-np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / 3.0)
    for matrix, heads in zip(scores, decode_tree(scores, root), strict=True):
        assert is_tree(heads, root)
        graph = networkx.DiGraph()
        for word, head in product(range(size), repeat=2):
            if word not in (head, root):
                graph.add_edge(head, word, weight=matrix[word, head])
        tree = networkx.maximum_spanning_arborescence(graph)
        assert worth(matrix, heads) == pytest.approx(tree.size(weight="weight"))


@given(st.integers(2, 14), st.integers(0, 999))
def test_gold_trees_are_found_again(size, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    heads = np.full(size, -1)
    for place in range(1, size):
        heads[order[place]] = order[rng.integers(place)]
    scores = 0.4 * rng.random((2, size, size)) / size
    scores[:, heads >= 0, heads[heads >= 0]] += 1
    np.testing.assert_array_equal(decode_tree(scores, int(order[0])), [heads, heads])


@pytest.mark.parametrize(
    ("scores", "root", "said"),
    [
        (np.zeros((1, 2, 3)), 0, r"got the shape \(1, 2, 3\)"),
        (np.full((1, 2, 2), np.nan), 0, "finite"),
        (np.zeros((1, 2, 2)), 2, "The root is word 2; there are words 0 to 1"),
    ],
)
def test_what_is_no_matrix_of_scores_is_refused(scores, root, said):
    with pytest.raises(RecordError, match=said):
        decode_tree(scores, root)
