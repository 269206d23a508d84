import dataclasses

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.record import OFFSETS, STATISTICS, Statistics, Tokens
from headscope.testing import random_weights

from ..plain_statistics import statistics_of

HEADS, QUERIES, KEYS, TOP = 3, 5, 8, 2
KEY_TOKENS = Tokens(
    pieces=tuple("cababdas"),
    ids=(9, 1, 2, 1, 2, 4, 1, 8),
    special=(True,) + (False,) * 6 + (True,),
    segments=(0, 0, 0, 0, 0, 1, 1, 1),
    texts=("abab", "da"),
)
QUERY_TOKENS = Tokens(pieces=tuple("abxxs"), ids=(1, 2, 7, 7, 8))


@pytest.fixture
def weights(rng):
    return random_weights(rng, (HEADS, QUERIES, KEYS))


@pytest.fixture
def found(weights):
    return statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, top=TOP)


def by_loops(row, query, keys, ids, itself):
    """Every statistic of one row, straight from its definition."""
    order = sorted(range(len(row)), key=lambda key: -row[key])[:TOP]
    return {
        "entropy": -sum(p * np.log(p) for p in row if p > 0),
        "offsets": [row[query + o] if 0 <= query + o < len(row) else 0.0 for o in OFFSETS],
        "first": row[0],
        "special": sum(p for p, marked in zip(row, keys.special, strict=True) if marked),
        "segments": [
            sum(p for p, at in zip(row, keys.segments, strict=True) if at == n) for n in (0, 1)
        ],
        "same_token": sum(
            p
            for key, (p, n) in enumerate(zip(row, keys.ids, strict=True))
            if n == ids[query] and key != itself
        ),
        "largest": max(row),
        "top_keys": order,
        "top_weights": [row[key] for key in order],
    }


@pytest.mark.parametrize("rows", [None, (1, 3, 4)])
def test_every_statistic_is_its_definition(weights, rows):
    covered = range(QUERIES) if rows is None else rows
    found = statistics_of(
        weights, KEY_TOKENS, QUERY_TOKENS, rows=None if rows is None else np.array(rows), top=TOP
    )
    for head in range(HEADS):
        for at, query in enumerate(covered):
            wanted = by_loops(
                weights[head, query].astype(float), query, KEY_TOKENS, QUERY_TOKENS.ids, None
            )
            for name, value in wanted.items():
                np.testing.assert_allclose(
                    getattr(found, name)[head, at], value, atol=1e-12, err_msg=name
                )
    np.testing.assert_allclose(found.received, weights[:, list(covered)].astype(float).mean(1))
    assert set(wanted) | {"received"} == set(STATISTICS)


def test_a_token_is_not_among_its_own_equals(rng):
    weights = random_weights(rng, (HEADS, KEYS, KEYS))
    found = statistics_of(weights, KEY_TOKENS, rows=np.array([1, 3, 5]))
    for at, query in enumerate((1, 3, 5)):
        wanted = by_loops(weights[2, query].astype(float), query, KEY_TOKENS, KEY_TOKENS.ids, query)
        assert found.same_token[2, at] == pytest.approx(wanted["same_token"])
    assert (found.same_token[:, 2] == 0).all()  # token 5 occurs once


def test_tokens_without_numbers_have_no_equals(weights):
    assert statistics_of(weights, Tokens(pieces=KEY_TOKENS.pieces), QUERY_TOKENS).same_token is None
    assert statistics_of(weights, KEY_TOKENS, Tokens(pieces=QUERY_TOKENS.pieces)).same_token is None


def test_one_text_is_one_segment(weights):
    found = statistics_of(weights, Tokens(pieces=KEY_TOKENS.pieces), QUERY_TOKENS)
    assert found.segments.shape == (HEADS, QUERIES, 1)
    np.testing.assert_allclose(found.segments[..., 0], 1, atol=1e-6)


def test_a_row_of_zeros_has_statistics_of_zero(weights):
    weights[:, 2] = 0
    found = statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, top=TOP)
    for name in set(STATISTICS) - {"received", "top_keys"}:
        assert (getattr(found, name)[:, 2] == 0).all(), name
    assert (found.top_keys[:, 2] == -1).all()


def test_sizes(found, weights):
    many = statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, top=99)
    assert many.top_keys.shape == (HEADS, QUERIES, KEYS)
    assert (found.heads, found.size, found.sampled) == (HEADS, (QUERIES, KEYS), False)
    part = statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, rows=np.array([0, 2]))
    assert (part.heads, part.size, part.sampled) == (HEADS, (QUERIES, KEYS), True)


def test_means_are_over_the_rows(found):
    np.testing.assert_allclose(found.mean("entropy"), found.entropy.mean(1))
    assert found.mean("offsets").shape == (HEADS, len(OFFSETS))
    assert found.mean("segments").shape == (HEADS, 2)
    assert (found.error("offsets") == 0).all()


def test_the_error_is_that_of_a_sample_without_replacement(rng):
    """Over all samples there are, the mean square of the deviation equals the mean of the squared
    error.
    """
    from itertools import combinations

    weights = random_weights(rng, (HEADS, QUERIES, KEYS))
    whole = statistics_of(weights, KEY_TOKENS, QUERY_TOKENS)
    for name in ("entropy", "segments"):
        samples = [
            statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, rows=np.array(rows))
            for rows in combinations(range(QUERIES), 3)
        ]
        deviations = np.mean(
            [(sample.mean(name) - whole.mean(name)) ** 2 for sample in samples], axis=0
        )
        np.testing.assert_allclose(
            np.mean([sample.error(name) ** 2 for sample in samples], axis=0), deviations
        )


@pytest.mark.parametrize("name", ["received", "top_keys", "rows", "nonsense"])
def test_no_mean_of_what_is_not_of_rows(found, name):
    with pytest.raises(
        RecordError, match=f"hold entropy, .*largest, top_weights of every row, not '{name}'"
    ):
        found.mean(name)
    with pytest.raises(RecordError, match="not 'same_token'"):
        dataclasses.replace(found, same_token=None).error("same_token")


def test_arrays_are_frozen(found):
    with pytest.raises(ValueError, match="read-only"):
        found.entropy[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.entropy = None


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("entropy", lambda array: array[0], "expected the axes"),
        ("entropy", lambda array: array + 9, "entropy runs from .*; it must lie in 0 to 2.079"),
        ("first", lambda array: array[:, :-1], "first has shape"),
        ("first", lambda array: array - 1, "first runs from"),
        ("special", lambda array: array * np.nan, "special holds nan"),
        ("offsets", lambda array: array[..., :3], "offsets has shape"),
        ("segments", lambda array: array[0], "segments has shape"),
        ("received", lambda array: array * 9, "received runs from"),
        ("received", lambda array: array.astype(int), "received must be a NumPy array of floating"),
        ("top_keys", lambda array: array + KEYS, "top_keys runs from"),
        ("top_keys", lambda array: array - KEYS, "top_keys runs from -"),
        ("top_keys", lambda array: array.astype(float), "top_keys must be whole numbers"),
        ("top_keys", lambda array: None, "together"),
        ("top_weights", lambda array: array[..., :1], "top_keys must be whole numbers"),
        ("queries", lambda count: count + 1, "say which with rows"),
    ],
)
def test_what_statistics_cannot_be_is_refused(found, name, change, message):
    with pytest.raises(RecordError, match=message):
        dataclasses.replace(found, **{name: change(getattr(found, name))})


@pytest.mark.parametrize(
    "rows",
    [[0, 1], [0, 1, 1], [0, 2, 1], [-1, 0, 1], [0, 1, QUERIES], [0.0, 1.0, 2.0], [[0], [1], [2]]],
)
def test_rows_that_cannot_be_are_refused(weights, rows):
    part = statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, rows=np.array([0, 2, 3]))
    with pytest.raises(RecordError, match=r"rows (must be|are two or more)"):
        dataclasses.replace(part, rows=np.array(rows))
    with pytest.raises(RecordError, match="give queries"):
        dataclasses.replace(part, queries=None)


def test_a_single_row_has_no_error(weights):
    with pytest.raises(RecordError, match="two or more"):
        statistics_of(weights, KEY_TOKENS, QUERY_TOKENS, rows=np.array([1]))


def test_the_entropy_of_a_row_that_a_sink_took_from_is_allowed():
    """With one key, e ** -1 of the mass has the entropy e ** -1, although log(1) is 0."""
    share = np.exp([[-1.0]])
    zero = np.zeros_like(share)
    made = Statistics(
        entropy=share,
        offsets=np.zeros((1, 1, 7)),
        first=share,
        special=zero,
        segments=share[..., None],
        largest=share,
        received=share,
    )
    assert made.size == (1, 1)
