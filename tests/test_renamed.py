"""Arguments that were called otherwise in 0.1 are taken with a warning."""

import pytest

from headscope.measures import alignment_error_rate


def test_an_argument_under_its_old_name_is_taken_with_a_warning():
    links = {(0, 0), (2, 1), (2, 2)}
    now = alignment_error_rate({(0, 0), (1, 1)}, {(2, 1)}, links=links)
    with pytest.warns(DeprecationWarning, match="found= of alignment_error_rate is called links="):
        before = alignment_error_rate({(0, 0), (1, 1)}, {(2, 1)}, found=links)
    assert before == now


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="found"):
        alignment_error_rate(set(), set(), links=set(), found=set())
