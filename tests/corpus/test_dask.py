"""A real Dask cluster of two processes gives the same, and survives what dies."""

import atexit
import logging
import time
from concurrent.futures import Executor, Future
from importlib.util import find_spec

import pytest
from study_runs import STUDIES, model_of
from words_job import digest, done, ran

from headscope.corpus import CorpusText, dask_cluster, given, worker_number
from headscope.errors import RunError

from ..close import assert_close

# Looked for, not imported: every worker collects this file, and one runs it.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs the extra distributed"),
]


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
    with local, Client(local) as client:
        yield client


def test_two_processes_give_the_same_bits(cluster, corpus, capsys):
    engine = given(cluster.get_executor())
    assert engine.link.startswith("http")
    assert engine.width == 2
    assert done(corpus, engine=engine, part_size=7) == done(corpus)
    with ran(corpus, engine=engine, part_size=20, progress=True):
        assert f"Dask's dashboard: {engine.link}" in capsys.readouterr().err
    # Equal calls are run again: the error of a part that failed is not given once more.
    assert done(corpus, engine=engine, part_size=7) == done(corpus)


def test_workers_of_a_local_cluster_are_numbered(cluster):
    told = []
    for address in cluster.scheduler_info()["workers"]:
        told.append(cluster.submit(worker_number, workers=[address], pure=False).result())
    assert sorted(told) == [0, 1]
    assert worker_number() == 0


def test_a_study_of_a_model_gives_the_same_numbers(cluster, tmp_path):
    study = STUDIES["capture"]
    for part in model_of(study.needs):
        part.save_pretrained(tmp_path / "model")
    # One of the two loads torch and the model: what two of them do together is seen above, and in
    # tests/corpus/test_study_runs.py of every study.
    one = cluster.get_executor(workers=list(cluster.scheduler_info()["workers"])[:1])
    runs = []
    for name, options in (("here", {}), ("there", {"executor": one})):
        out = tmp_path / name
        run = study.call(tmp_path / "model", None, study.texts(6), out=out, part_size=2, **options)
        runs.append(study.kept(run))
    assert_close(*runs)


def test_a_killed_worker_costs_nothing(cluster, corpus, tmp_path):
    once = CorpusText(f"die-once:{tmp_path / 'died'}")
    engine = given(cluster.get_executor(pure=False))
    with ran([*corpus, once], engine=engine, part_size=12) as finished:
        assert finished.failed == []
    assert (tmp_path / "died").exists()


def test_a_text_that_ends_its_worker_is_named(cluster, corpus, tmp_path):
    engine = given(cluster.get_executor(pure=False))
    with ran([*corpus, CorpusText("die now")], engine=engine, part_size=12) as finished:
        assert [each["text"] for each in finished.failed] == ["die now"]
        assert digest(finished)[1] == done(corpus)[1]


class CommClosedError(Exception):
    """As Dask has it where its scheduler is gone."""


class Gone(Executor):
    """An engine whose scheduler is killed after some parts."""

    parts = 0

    def submit(self, function, /, *args):
        future = Future()
        self.parts += hasattr(args[0], "part")
        if self.parts > 2:
            future.set_exception(CommClosedError("the scheduler is gone"))
        else:
            future.set_result(function(*args))
        return future


def test_a_killed_scheduler_leaves_a_run_that_goes_on(corpus, tmp_path):
    with pytest.raises(RunError, match="the same call with another engine resumes the run"):
        done(corpus, out=tmp_path / "run", engine=given(Gone()), part_size=10)
    assert len(list((tmp_path / "run").glob("parts/*"))) == 2
    assert done(corpus, out=tmp_path / "run") == done(corpus)


def test_workers_that_end_slowly_are_waited_for():
    told = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: told.append(record.getMessage())
    logger = logging.getLogger("distributed.nanny")
    logger.addHandler(handler)
    try:
        with dask_cluster("local", workers=1) as executor:
            # Longer than the 4 s after which Dask kills a worker by default, and warns of it.
            executor.submit(atexit.register, time.sleep, 5).result()
    finally:
        logger.removeHandler(handler)
    assert told == []


def test_an_address_where_nobody_answers_is_an_error(monkeypatch):
    monkeypatch.setattr("headscope.corpus._engines.ANSWERS_WITHIN", 1)
    match = "No Dask scheduler answers at tcp://127.0.0.1:9"
    with pytest.raises(RunError, match=match), dask_cluster("tcp://127.0.0.1:9"):
        pass
