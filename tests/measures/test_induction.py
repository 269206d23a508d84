import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import prefix_matching, prefix_targets, repeated_tokens

NAMES = ["x", "a", "b", "a", "c", "a", "b"]


@pytest.mark.parametrize(("target", "step"), [("followed", 1), ("preceded", -1)])
def test_targets_and_score_follow_the_definition(rng, close, target, step):
    targets = [
        {p + step for p in range(q) if NAMES[p] == NAMES[q] and p + step >= 0} for q in range(7)
    ]
    found = prefix_targets(NAMES, target)
    assert [set(np.flatnonzero(row).tolist()) for row in found] == targets
    weights = rng.dirichlet(np.ones(7), size=(3, 7))
    rows = [q for q in range(7) if targets[q]]
    wanted = [sum(head[q][k] for q in rows for k in targets[q]) / len(rows) for head in weights]
    close(prefix_matching(weights, NAMES, target=target), wanted)


def test_repeated_tokens_are_one_run_again_and_again(rng):
    ids = repeated_tokens(rng, range(100, 200), start=7)
    assert len(ids) == 101
    assert ids[0] == 7
    assert len(set(ids[1:26].tolist())) == 25
    assert (ids[1:].reshape(4, 25) == ids[1:26]).all()


def test_no_repeat_is_not_a_number_and_bad_input_is_refused(rng, unchecked):
    assert np.isnan(prefix_matching(np.eye(3)[None], ["a", "b", "c"])).all()
    with pytest.raises(RecordError, match="'followed' or 'preceded'"):
        unchecked(prefix_targets)(["a"], "after")
    with pytest.raises(RecordError, match="run of 25 tokens was asked for, with 3 to draw from"):
        repeated_tokens(rng, [1, 2, 3])
