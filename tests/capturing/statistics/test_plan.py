import numpy as np
import pytest
import torch

from headscope.capturing.statistics import StatisticsPlan
from headscope.errors import CaptureError

QUERIES, KEYS = torch.arange(1, 5), torch.arange(2, 8)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sample_depends_on_the_length_and_the_seed_alone(seed):
    plan = StatisticsPlan(rows=6, seed=seed)
    sample = plan.sampled(100)
    np.testing.assert_array_equal(sample, StatisticsPlan(rows=6, seed=seed, top=3).sampled(100))
    assert len(set(sample)) == 6
    assert (np.diff(sample) > 0).all()
    assert set(sample) != set(StatisticsPlan(rows=6, seed=seed + 1).sampled(100))


def test_every_row_is_as_likely():
    counts = np.zeros(5)
    for seed in range(2000):
        counts[StatisticsPlan(rows=2, seed=seed).sampled(5)] += 1
    assert np.abs(counts / 2000 - 2 / 5).max() < 0.05


@pytest.mark.parametrize("rows", [None, 7, 8])
def test_a_text_that_is_short_is_covered_whole(rows):
    assert StatisticsPlan(rows=rows).sampled(7) is None


def test_nothing_known_of_the_tokens_is_nothing_marked():
    marks = StatisticsPlan().marks(slice(0, 1), QUERIES, KEYS)
    assert (marks.special, marks.segments, marks.same, marks.excludes_itself) == (
        None,
        (),
        None,
        True,
    )


def test_marks_are_those_of_the_real_tokens():
    special = torch.arange(10) == 2
    segments, ids = torch.arange(10) // 5, torch.arange(10) * 10
    marks = StatisticsPlan(special=special[None], segments=segments[None], ids=ids[None]).marks(
        slice(0, 1), QUERIES, KEYS
    )
    assert marks.special.tolist() == [[1, 0, 0, 0, 0, 0]]
    assert [segment.tolist() for segment in marks.segments] == [
        [[1, 1, 1, 0, 0, 0]],
        [[0, 0, 0, 1, 1, 1]],
    ]
    assert [side.tolist() for side in marks.same] == [
        [[10, 20, 30, 40]],
        [[20, 30, 40, 50, 60, 70]],
    ]


def test_marks_that_mark_nothing_are_left_out():
    nothing = torch.zeros(1, 10, dtype=torch.int64)
    marks = StatisticsPlan(special=nothing.bool(), segments=nothing).marks(
        slice(0, 1), QUERIES, KEYS
    )
    assert (marks.special, marks.segments) == (None, ())


def test_other_tokens_look_in_cross_attention():
    ids = torch.arange(10)[None]
    marks = StatisticsPlan(ids=ids, query_ids=ids + 100).marks(slice(0, 1), QUERIES, KEYS)
    assert marks.same[0].tolist() == [[101, 102, 103, 104]]
    assert not marks.excludes_itself
    assert StatisticsPlan(ids=ids, cross=True).marks(slice(0, 1), QUERIES, KEYS).same is None


@pytest.mark.parametrize("asked", [{"rows": 1}, {"rows": 0}, {"top": -1}])
def test_numbers_that_cannot_be_are_refused(asked):
    with pytest.raises(CaptureError, match=f"{next(iter(asked))} must be"):
        StatisticsPlan(**asked)
