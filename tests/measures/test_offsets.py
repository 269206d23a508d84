import numpy as np
import pytest

from headscope.measures import OFFSETS, mass_at_offsets, peak_at_offset


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("over_all", [False, True])
def test_offsets_follow_the_definition(weights, pairs, close, start, over_all):
    wanted = np.full((3, 7), np.nan)
    for head in range(3):
        for place, offset in enumerate(OFFSETS):
            found = [
                weights[head, q, q + start + offset]
                for q in range(5)
                if 0 <= q + start + offset < 7 and pairs[q, q + start + offset]
            ]
            count = 5 if over_all else len(found)
            wanted[head, place] = sum(found) / count if count else np.nan
    close(mass_at_offsets(weights, pairs=pairs, over_all=over_all, start=start), wanted)


def test_clark_divides_by_all_queries(close):
    following = np.eye(6, 6, k=1)[None]
    following[0, 5, 0] = 1
    close(mass_at_offsets(following, [1]), [[1.0]])
    close(mass_at_offsets(following, [1], over_all=True), [[5 / 6]])


def test_peaks_follow_the_definition(weights, close):
    for offset in (-1, 1):
        wanted = []
        for head in weights:
            rows = [q for q in range(5) if 0 <= q + offset < 7]
            wanted.append(
                sum(list(head[q]).index(max(head[q])) == q + offset for q in rows) / len(rows)
            )
        close(peak_at_offset(weights, offset), wanted)


def test_keys_that_share_the_peak_share_the_count(close):
    close(peak_at_offset(np.full((1, 5, 8), 1 / 8), 1), [1 / 8])
    close(peak_at_offset(np.array([[[0.1, 0.4, 0.4, 0.1], [0.1, 0.2, 0.6, 0.1]]]), 1), [0.75])


def test_no_key_at_an_offset_is_not_a_number(weights):
    assert np.isnan(mass_at_offsets(weights, [9])).all()
    assert np.isnan(peak_at_offset(weights, -9)).all()
    assert np.isnan(peak_at_offset(weights, 1, pairs=np.zeros((5, 7), bool))).all()
