import numpy as np
import pytest

from headscope.patterns import CLASSES, AttentionMaps, QueryKeyTokens, kovaleva_class, strengths
from headscope.record import Tokens

from .conftest import onto, planted, sentences


def maps_of(weights, tokens):
    return AttentionMaps(
        np.asarray(weights, float),
        QueryKeyTokens(tokens, tokens),
        np.ones(np.shape(weights)[1:], bool),
    )


@pytest.fixture
def tokens(rng):
    return sentences(rng)


def plain(weights, tokens):
    """Strengths by loops, straight from the rules."""
    size, special = len(tokens), tokens.special
    columns = sorted(
        (sum(weights[i][j] for i in range(size)) / size for j in range(size)), reverse=True
    )
    lines = []
    for offset in (-1, 0, 1):
        rows = [i for i in range(size) if 0 <= i + offset < size]
        lines.append(sum(weights[i][i + offset] for i in rows) / len(rows))
    words = [i for i in range(size) if not special[i]]
    shares = []
    for i in words:
        whole = sum(weights[i][j] for j in words)
        shares.append(
            sum(weights[i][j] for j in words if tokens.segments[j] == tokens.segments[i]) / whole
        )
    expected = sum((sum(tokens.segments[j] == s for j in words) / len(words)) ** 2 for s in (0, 1))
    return sum(columns[: sum(special)]), max(lines), sum(shares) / len(shares) - expected


def test_strengths_follow_the_rules(rng, tokens):
    size = len(tokens)
    weights = rng.dirichlet(np.full(size, 0.3), size=(3, size))
    found = strengths(maps_of(weights, tokens))
    for head in range(3):
        np.testing.assert_allclose(
            [each[head] for each in found], plain(weights[head], tokens), atol=1e-9
        )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("delimiter", "vertical"),
        ("first-token", "vertical"),
        ("bag", "block"),
        ("uniform", "heterogeneous"),
    ],
)
def test_planted_maps_have_their_class(tokens, name, kind):
    assert CLASSES[kovaleva_class(maps_of(planted(tokens, name)[None], tokens))[0]] == kind


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_diagonals_and_their_mixture_with_a_column(tokens, offset):
    size = len(tokens)
    line = onto(np.eye(size, k=offset))
    column = onto(np.arange(size) == np.full((size, 1), size - 1))
    found = kovaleva_class(maps_of(np.stack([line, (line + column) / 2]), tokens))
    assert [CLASSES[number] for number in found] == ["diagonal", "vertical + diagonal"]


def test_without_a_second_sentence_there_is_no_block(rng):
    tokens = sentences(rng, pair=False)
    assert strengths(maps_of(planted(tokens, "bag")[None], tokens))[2].tolist() == [-1]


def test_cross_attention_has_no_diagonal():
    sides = QueryKeyTokens(Tokens(pieces=("a", "b", "c")), Tokens(pieces=("d", "e", "f", "g")))
    maps = AttentionMaps(np.eye(3, 4)[None], sides, np.ones((3, 4), bool))
    assert CLASSES[kovaleva_class(maps)[0]] == "heterogeneous"
