"""What is seen of a short text waits until its pass is over."""

import pytest
import torch

from headscope.capturing.watching import deferred_work
from headscope.capturing.watching.deferred_work import DeferredWork, OverwrittenError


def test_work_is_done_in_order_when_all_was_seen():
    done = []
    deferred = DeferredWork(lambda: done.append("finished"))
    deferred.add(done.append, 1)
    deferred.add(lambda: deferred.add(done.append, deferred.is_running))
    deferred.add(done.append, 2)
    assert not done
    deferred.work()
    # what is added meanwhile is done at once
    assert done == [1, True, 2, "finished"]
    assert not deferred.is_running


def test_afterwards_nothing_waits():
    done = []
    deferred = DeferredWork(lambda: done.append("finished"))
    deferred.work()
    deferred.add(done.append, 1)
    deferred.work()
    assert done == ["finished", 1]


def test_where_it_is_closed_nothing_waits():
    done = []
    DeferredWork(lambda: done.append("finished"), is_open=False).add(done.append, 1)
    assert done == [1]


def test_what_was_written_over_is_found_out():
    tensor, done = torch.zeros(3), []
    deferred = DeferredWork()
    deferred.add(done.append, 1, used=(None, tensor, 2.0))
    tensor.add_(1)
    with pytest.raises(OverwrittenError):
        deferred.work()
    assert not done


def test_a_view_that_is_written_to_counts_too():
    tensor = torch.zeros(3)
    deferred = DeferredWork()
    deferred.add(list, used=(tensor[:2],))
    tensor[2:].fill_(1)
    with pytest.raises(OverwrittenError):
        deferred.work()


@pytest.mark.parametrize("held", ["NUMBERS_OF_CALL", "NUMBERS_HELD"])
def test_too_many_numbers_do_not_wait(held, monkeypatch):
    monkeypatch.setattr(deferred_work, held, 5)
    done = []
    deferred = DeferredWork(lambda: done.append("finished"))
    deferred.add(done.append, 1, used=(torch.zeros(5),))
    assert not done
    deferred.add(done.append, 2, used=(torch.zeros(6),))
    assert done == [1, "finished", 2]
    assert not deferred.is_open


def test_tensors_of_inference_mode_do_not_wait():
    with torch.inference_mode():
        tensor = torch.zeros(3)
    done = []
    DeferredWork().add(done.append, 1, used=(tensor,))
    assert done == [1]
