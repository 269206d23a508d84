import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.evidence import interval, redrawn_interval, redrawn_ratios, share_interval

TEXTS, HEADS = 9, 4


def test_ratios_are_those_of_the_same_draws(rng):
    parts, wholes = rng.random((TEXTS, HEADS)), rng.random((TEXTS, HEADS)) + 1
    found = redrawn_ratios(parts, wholes, resamples=5, seed=3)
    times = np.random.default_rng(3).multinomial(TEXTS, np.full(TEXTS, 1 / TEXTS), size=5)
    for draw, counts in enumerate(times):
        texts = [text for text, count in enumerate(counts) for _ in range(count)]
        for head in range(HEADS):
            assert found[draw, head] == pytest.approx(
                sum(parts[text, head] for text in texts) / sum(wholes[text, head] for text in texts)
            )


def test_what_is_missing_is_not_counted():
    parts, wholes = (
        np.array([[1.0, np.nan], [3.0, np.nan]]),
        np.array([[2.0, np.nan], [6.0, np.nan]]),
    )
    found = redrawn_ratios(parts, wholes, resamples=8)
    np.testing.assert_allclose(found[:, 0], 0.5)
    assert np.isnan(found[:, 1]).all()
    assert np.isnan(redrawn_ratios(np.zeros((3, 1)), np.zeros((3, 1)), resamples=2)).all()


def test_parts_and_wholes_that_do_not_fit_are_refused():
    with pytest.raises(RecordError, match="miss the same"):
        redrawn_ratios(np.array([[np.nan], [1.0]]), np.ones((2, 1)))


def test_documents_are_drawn_and_not_their_texts(rng):
    documents = np.repeat(np.arange(6), 4)
    parts, wholes = rng.random((24, 2)), 1 + rng.random((24, 2))
    sums = [
        np.stack([each[documents == number].sum(axis=0) for number in range(6)])
        for each in (parts, wholes)
    ]
    np.testing.assert_allclose(
        redrawn_ratios(parts, wholes, groups=documents), redrawn_ratios(*sums)
    )


def test_an_interval_of_what_was_redrawn_is_that_of_the_mean(rng):
    parts = rng.random((9, 2))
    drawn = redrawn_ratios(parts, np.ones_like(parts))
    np.testing.assert_allclose(redrawn_interval(drawn, np.ones_like(parts)), interval(parts))
    assert np.isnan(redrawn_interval(drawn, np.zeros_like(parts))).all()


def test_questions_of_one_document_are_no_many_questions(rng):
    hits = (rng.random((10, 1)) < 0.5) * 20.0
    low, high = share_interval(hits, np.full((10, 1), 20.0))[0]
    # documents in which all or nothing is right say as much as ten questions
    few = interval((hits > 0).astype(float), groups=range(10))[0]
    assert (low, high) == pytest.approx(tuple(few), abs=0.02)
