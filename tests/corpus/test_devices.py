"""Workers are numbered, so that each takes a GPU of its own."""

import os
import time

import pytest
import torch

from headscope import capturing
from headscope.capturing import facts as own_facts
from headscope.corpus import _engines, pool, worker_number
from headscope.record import ModelFacts
from headscope.studies.shared import _corpus_model
from headscope.studies.shared._corpus_model import NamedModel, facts_of_model, own_device


def numbered():
    """Process and number, slowly, so that every worker has one to tell."""
    time.sleep(0.5)
    return os.getpid(), worker_number()


def test_every_worker_of_a_pool_has_a_number_of_its_own():
    executor = pool(3).make()
    try:
        tasks = [executor.submit(numbered) for _ in range(9)]
        told = {task.result() for task in tasks}
    finally:
        executor.shutdown()
    assert len(dict(told)) == len(told) == len(set(dict(told).values()))
    assert set(dict(told).values()) <= {0, 1, 2}
    assert worker_number() == 0


@pytest.fixture
def gpus(monkeypatch):
    """Make believe that there are so many GPUs, and that this is a certain worker."""

    def make_believe(count, number=0):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(_engines, "_numbers", [number])

    return make_believe


def test_workers_take_gpus_in_turn(gpus):
    chosen = []
    for number in range(5):
        gpus(2, number)
        chosen.append(own_device({})["device"])
    assert chosen == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"]


@pytest.mark.parametrize(
    ("count", "loading"), [(0, {}), (1, {}), (2, {"device": "cpu"}), (2, {"device_map": "auto"})]
)
def test_a_device_that_was_named_or_is_alone_stays(gpus, count, loading):
    gpus(count, 1)
    assert own_device(loading) == {}


def test_a_model_is_loaded_on_the_gpu_of_its_worker(gpus, monkeypatch):
    gpus(2, 1)
    given = []
    monkeypatch.setattr(
        capturing, "load_model", lambda name, **how: given.append((name, how)) or (1, 2)
    )
    _corpus_model._loaded.cache_clear()
    assert NamedModel("some", (("dtype", "float16"),)).load() == (1, 2)
    _corpus_model._loaded.cache_clear()
    assert given == [("some", {"dtype": "float16", "device": "cuda:1"})]


def test_parts_of_several_gpus_are_of_one_run(monkeypatch):
    told = []
    for device in ("cuda:0", "cuda:1", "cpu"):
        monkeypatch.setattr(
            own_facts, "facts_of", lambda _, device=device: ModelFacts(name="m", device=device)
        )
        told.append(facts_of_model(torch.nn.Module(), None)["runs on"])
    assert told == ["cuda", "cuda", "cpu"]
