import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import mass_on, mass_on_pairs, property_share, strongest_column


def test_mass_on_follows_the_definition(weights, keys, queries, close):
    wanted = [
        sum(sum(head[q][k] for k in range(7) if keys[k]) for q in range(5) if queries[q])
        / queries.sum()
        for head in weights
    ]
    close(mass_on(weights, keys, queries=queries), wanted)


def test_mass_on_pairs_leaves_out_queries_without_a_pair(weights, pairs, queries, close):
    rows = [q for q in range(5) if queries[q] and any(pairs[q])]
    assert 1 not in rows
    wanted = [
        sum(head[q][k] for q in rows for k in range(7) if pairs[q][k]) / len(rows)
        for head in weights
    ]
    close(mass_on_pairs(weights, pairs, queries=queries), wanted)


def test_property_share_follows_the_definition(weights, pairs, rng, close):
    among = rng.random((5, 7)) < 0.7
    wanted = []
    for head in weights:
        part = sum(head[q][k] for q in range(5) for k in range(7) if pairs[q][k] and among[q][k])
        wanted.append(part / sum(head[q][k] for q in range(5) for k in range(7) if among[q][k]))
    close(property_share(weights, pairs, among=among), wanted)


def test_strongest_column_follows_the_definition(weights, keys, close):
    wanted = [
        max(sum(head[q][k] for q in range(5)) / 5 for k in range(7) if keys[k]) for head in weights
    ]
    close(strongest_column(weights, keys), wanted)


def test_what_is_not_there_is_not_a_number(weights):
    assert np.isnan(mass_on_pairs(weights, np.zeros((5, 7), bool))).all()
    assert np.isnan(strongest_column(weights, np.zeros(7, bool))).all()
    assert np.isnan(property_share(weights * 0, np.ones((5, 7), bool))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: mass_on(w, np.ones(5, bool)), r"keys has shape \(5,\) .*truth values \[key\]"),
        (lambda w: mass_on_pairs(w, np.ones((7, 5), bool)), r"pairs has shape \(7, 5\) .*\[query"),
        (lambda w: property_share(w, np.ones((5, 1), bool)), r"pairs has shape \(5, 1\)"),
    ],
)
@pytest.mark.usefixtures("in_production")
def test_masks_that_do_not_fit_are_refused(weights, call, message):
    with pytest.raises(RecordError, match=message):
        call(weights)
