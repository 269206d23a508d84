"""Flipping signs against SciPy, McNemar and chance."""

import numpy as np
import pytest
from scipy.stats import binomtest, permutation_test

from headscope.errors import RecordError
from headscope.evidence import effect_size, judged, p_flipped

from ..close import assert_close


@pytest.mark.parametrize("side", ["two-sided", "greater"])
def test_few_texts_are_exact(rng, side):
    values = rng.normal(0.4, 1, size=(8, 3))
    how = {"permutation_type": "samples", "n_resamples": np.inf, "alternative": side}
    wanted = [permutation_test((column,), np.mean, **how).pvalue for column in values.T]
    np.testing.assert_allclose(p_flipped(values, two_sided=side == "two-sided"), wanted)


def test_right_and_wrong_answers_are_mcnemars_test(rng):
    changed = np.concatenate([np.full(13, -1.0), np.full(4, 1.0), np.zeros(60)])
    rng.shuffle(changed)
    wanted = binomtest(4, 17).pvalue
    assert p_flipped(changed[:, None], flips=40_000)[0] == pytest.approx(wanted, abs=0.004)


@pytest.mark.parametrize("two_sided", [True, False])
def test_chance_gives_even_probabilities(rng, two_sided):
    found = p_flipped(rng.normal(size=(30, 400)), two_sided=two_sided)
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.07)


def test_the_least_that_can_be_said():
    assert p_flipped(np.ones((40, 1)), flips=99)[0] == pytest.approx(0.01)
    assert p_flipped(np.zeros((40, 2))).tolist() == [1.0, 1.0]
    assert np.isnan(p_flipped(np.ones((1, 2)))).all()
    with pytest.raises(RecordError, match="A difference is infinite"):
        p_flipped(np.array([[np.inf], [1.0]]))


def test_rounding_does_not_part_what_is_as_far():
    assert p_flipped(np.full((10, 1), 0.1))[0] == 2 / 2**10


def test_texts_without_a_value_are_left_out(rng):
    values = rng.normal(size=(9, 2))
    values[3, 1] = np.nan
    whole, kept = (p_flipped(each) for each in (values, np.delete(values, 3, axis=0)))
    assert whole[1] == kept[1]
    assert p_flipped(np.array([[1.0], [1.0], [np.nan]]), two_sided=False)[0] == 0.25


def test_texts_of_one_document_get_one_sign(rng):
    documents = np.repeat(np.arange(5), 6)
    values = rng.normal(size=(30, 3))
    sums = np.stack([values[documents == number].sum(axis=0) for number in range(5)])
    assert_close(p_flipped(values, groups=documents), p_flipped(sums))
    assert p_flipped(np.ones((30, 1)), groups=documents)[0] == 2 / 2**5


def test_documents_that_are_alike_keep_false_alarms_at_their_rate():
    # Ten documents of twenty texts, intraclass correlation .2, no effect: of texts alone 22 % seem
    # significant.
    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(10), 20)
    own = rng.normal(size=(200, 1000)) * np.sqrt(0.8)
    values = own + (rng.normal(size=(10, 1000)) * np.sqrt(0.2))[documents]
    alone, grouped = (p_flipped(values, groups=own, two_sided=False) for own in (None, documents))
    assert np.mean(alone < 0.05) > 0.15
    assert 0.03 < np.mean(grouped < 0.05) < 0.065


@pytest.mark.parametrize("texts", [12, 24, 60])
def test_of_many_heads_at_the_margin_none_seems_above_it(texts):
    """Heads of one text resemble each other, and their means lie on the margin."""
    single, family, found = [], [], []
    for seed in range(80):
        rng = np.random.default_rng([seed, texts])
        values = 0.1 + rng.normal(0, 0.1, (texts, 50)) + rng.normal(0, 0.05, (texts, 1))
        planted = np.concatenate([values, values[:, :1] + 0.2], axis=1)
        ones = np.ones(planted.shape)
        p, corrected = judged([(values, ones[:, 1:])], margin=0.1, seed=seed)[0]
        single.append(p < 0.05)
        family.append((corrected < 0.05).any())
        found.append(judged([(planted, ones)], margin=0.1, seed=seed)[0][1][-1] < 0.05)
    assert 0.02 < np.mean(single) < 0.075
    # 5 % of 80 are 4, and 10 or more have a chance of 1 %.
    assert np.sum(family) < 10
    assert np.mean(found) > 0.85


def test_corrections_count_what_was_tried(rng):
    values = rng.normal(size=(20, 6)) + np.array([1.5, 0, 0, 0, 0, 0])
    asked = [(values[:, :4], np.ones((20, 4))), (values[:, 4:], np.ones((20, 2)))]
    (first, stepped), (second, _) = judged(asked)
    assert (len(first), len(second)) == (4, 2)
    assert first[0] <= stepped[0] <= 6 * first[0]
    assert judged(asked, tried=30)[0][1][0] == pytest.approx(30 * first[0])
    benjamini = np.concatenate([each[1] for each in judged(asked, correction="benjamini-hochberg")])
    assert benjamini.max() == pytest.approx(max(first.max(), second.max()))
    assert judged([]) == []


def test_effect_sizes_follow_the_definition(rng):
    values = rng.random((9, 3)) - np.array([0.0, 0.3, 0.6])
    wanted = values.mean(axis=0) / values.std(axis=0, ddof=1)
    found = effect_size(values, (values**2).sum(axis=0), np.ones((9, 3)))
    np.testing.assert_allclose(found, wanted)
    alike = np.broadcast_to([0.5, 0.0, -0.5], (4, 3))
    same = effect_size(alike, (alike**2).sum(axis=0), np.ones((4, 3)))
    assert same.tolist() == [np.inf, 0, -np.inf]
    assert np.isnan(effect_size(alike[:1], alike[0] ** 2, np.ones((1, 3)))).all()


def test_a_change_in_one_document_hides_no_other():
    lost = np.where(np.arange(100) < 12, -1.0, 0.0)
    sums = np.stack([lost, np.where(np.arange(100) == 50, 1.0, 0.0)], axis=1), np.ones((100, 2))
    p, corrected = judged([sums], two_sided=True)[0]
    assert p[0] < 0.01
    assert corrected[0] < 0.01
    assert_close(corrected[1], 1.0)
