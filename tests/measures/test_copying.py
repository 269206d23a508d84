import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import copying


def test_copying_follows_the_definition(rng, close):
    effects, places = rng.standard_normal((3, 5, 11)), [4, 0, 10, 2, 2]
    wanted = []
    for head in effects:
        shares = []
        for row, place in zip(head, places, strict=True):
            centred = [e - sum(row) / 11 for e in row]
            shares.append(max(0, centred[place]) / sum(abs(e) for e in centred))
        wanted.append(4 * sum(shares) / 5 - 1)
    close(copying(effects, places), wanted)


def test_raising_everything_alike_is_no_effect():
    assert np.isnan(copying(np.ones((1, 2, 4)), [0, 1])).all()


@pytest.mark.parametrize("places", [[0], [0, 4], [0, -1]])
def test_places_that_do_not_fit_are_refused(places):
    with pytest.raises(RecordError, match="give one for each, from 0"):
        copying(np.ones((1, 2, 4)), places)
