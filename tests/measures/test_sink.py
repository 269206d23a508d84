import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import sink_rate, sink_strength


@pytest.mark.parametrize("position", [0, 2])
def test_strength_follows_the_definition(weights, close, position):
    wanted = [
        sum(head[q][position] for q in range(position, 5)) / (5 - position) for head in weights
    ]
    close(sink_strength(weights, position=position), wanted)


def test_a_planted_sink_is_one():
    planted = np.zeros((2, 4, 6))
    planted[0, :, 0] = planted[1, :, 3] = 1
    assert sink_strength(planted).tolist() == [1, 0]
    assert sink_strength(planted, position=3).tolist() == [0, 1]
    assert sink_rate(sink_strength(planted)) == 0.5


def test_the_threshold_itself_is_no_sink():
    assert sink_rate(np.array([0.3, 0.300001])) == 0.5


def test_what_is_not_there_is_refused(weights):
    with pytest.raises(RecordError, match="no query and key at position 5; there are 5 and 7"):
        sink_strength(weights, position=5)
    with pytest.raises(RecordError, match="given no head"):
        sink_rate(np.zeros(0))
