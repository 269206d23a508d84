"""Sums of a statistic say what the statistic says, and agree with its intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums, interval

SHAPE = (2, 3)


def statistic_of(texts, *, seed=0, documents=0):
    """Values with holes; of documents that texts of a part share."""
    rng = np.random.default_rng(seed)
    statistic = Statistic(SHAPE, ("a", "b", "c"))
    for text in texts:
        values = np.random.default_rng(int(text)).normal(size=SHAPE)
        values[rng.random(SHAPE) < 0.1] = np.nan
        group = int(text) % documents if documents else None
        statistic.update(text, values, group=group, length=int(text) % 7 + 3)
    return statistic


@given(st.lists(st.integers(0, 4), min_size=30, max_size=30), st.randoms(use_true_random=False))
def test_parts_in_any_order_change_no_bit(parts, random):
    texts = [str(number) for number in range(30)]
    whole = StatisticSums.of(statistic_of(texts))
    order = random.sample(range(5), 5)
    total = StatisticSums(SHAPE, ("a", "b", "c"))
    values = statistic_of(texts)
    for part in order:
        own = Statistic(SHAPE, values.names)
        for text, row, length in zip(values.texts, values.values, values.lengths, strict=True):
            if parts[int(text)] == part:
                own.update(text, row, length=int(length))
        total = total + own
    for name, array in whole.kept[1].items():
        assert array.tobytes() == total.kept[1][name].tobytes()
    assert whole.kept[0] == total.kept[0]


@pytest.mark.parametrize("documents", [0, 300])
def test_intervals_are_near_those_of_texts_that_are_drawn_again(documents):
    statistic = statistic_of(map(str, range(1500)), documents=documents)
    sums = StatisticSums.of(statistic)
    assert (len(sums), sums.documents) == (1500, documents or 1500)
    np.testing.assert_allclose(sums.mean, statistic.mean, rtol=1e-14)
    assert (sums.count == statistic.count).all()
    rows = statistic.values.reshape(1500, -1)
    drawn = interval(rows, groups=statistic.groups, method="expanded", resamples=8000)
    ends = sums.interval().reshape(-1, 2)
    apart = np.abs(ends - drawn).max(axis=1) / np.ptp(drawn, axis=1)
    assert apart.max() < 0.05
    # Another level is another width, so that nearness says something.
    assert (np.ptp(sums.interval(0.8), axis=-1) < 0.7 * np.ptp(sums.interval(), axis=-1)).all()


def test_a_file_of_it_says_the_same():
    sums = StatisticSums.of(statistic_of(["1", "2", "9"]))
    again = StatisticSums.of_kept(*sums.kept)
    assert again.lengths == sums.lengths == {4: 1, 5: 2}
    assert again.mean.tobytes() == sums.mean.tobytes()
    assert repr(again) == "<StatisticSums of 3 texts, values [2, 3]>"


def test_sums_of_other_names_are_not_added_up():
    with pytest.raises(RecordError, match="of other names"):
        StatisticSums(SHAPE) + statistic_of(["1"])
