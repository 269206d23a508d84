"""Arguments and classes that were called otherwise before are taken with a warning."""

import pytest

import headscope.record
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


def test_a_class_under_its_old_name_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match="Stored goes away in 0.3; it is called StoredArr"):
        assert headscope.record.Stored is headscope.record.StoredArray
    with pytest.raises(AttributeError, match="headscope.record has no 'Storage'; it has AGAINST"):
        headscope.record.Storage  # noqa: B018
