"""Intervals of differences, against the examples of Newcombe 1998 and independent means."""

import numpy as np
import pytest

from headscope.evidence import difference_interval
from headscope.evidence._interval import wilson_ends


def wilson_of(hits, count):
    return wilson_ends(
        np.array([hits / count]),
        np.array([float(count)]),
        confidence=0.95,
        variance=None,
        groups=(np.array([count]), np.array([float(count)])),
    )


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    # Newcombe 1998, table II, method 10: 56/70 less 48/80, and 9/10 less 3/10.
    [((48, 80), (56, 70), (0.0524, 0.3339)), ((3, 10), (9, 10), (0.1705, 0.8090))],
)
def test_it_is_newcombes_method_of_two_shares(first, second, ends):
    low_high = difference_interval(
        np.array([first[0] / first[1]]),
        wilson_of(*first),
        np.array([second[0] / second[1]]),
        wilson_of(*second),
    )
    assert low_high[0] == pytest.approx(ends, abs=5e-5)


def test_of_symmetric_intervals_it_is_that_of_independent_means():
    first, second = np.array([0.2, 0.7, 0.5]), np.array([0.5, 0.6, 0.5])
    reaches = np.array([0.03, 0.1, 0.0]), np.array([0.04, 0.0, 0.0])
    ends = [
        np.stack([mean - reach, mean + reach], axis=1)
        for mean, reach in zip((first, second), reaches, strict=True)
    ]
    low_high = difference_interval(first, ends[0], second, ends[1])
    wanted = np.hypot(*reaches)
    assert low_high[:, 0] == pytest.approx(second - first - wanted)
    assert low_high[:, 1] == pytest.approx(second - first + wanted)
    ends[1][0, 0] = np.nan
    assert np.isnan(difference_interval(first, ends[0], second, ends[1])[0, 0])
