"""What runs the parts: this process, a pool of processes, Dask, or any other executor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from headscope.corpus._journal import forget_own
from headscope.errors import RunError, check_count

LOCAL = "local"
"""In place of an address: a Dask cluster of processes on this machine, for this run."""
ANSWERS_WITHIN = 20
"""Seconds that a Dask scheduler has to answer."""
PATIENCE = 15
"""Seconds, of which Dask waits four fifths for a worker to end before it kills it with a warning.
By default it is 5, and a process that has loaded torch and a model took 2 to 4 s to end.
"""
DEATHS = ("KilledWorker", "WorkerCrashedError", "OwnerDiedError", "NodeDiedError")
"""What Dask and Ray raise where the worker of a task died; pools raise a `BrokenExecutor`."""
LOST = ("CancelledError", "FutureCancelledError", "CommClosedError", "RayActorError")
"""What they raise where the whole engine is gone."""

_numbers: list[int] = []
"""Of this process among the workers of its pool; empty in a process that is none."""


@dataclass(frozen=True)
class Engine:
    """What runs the parts of a run.

    Args:
        make: gives the executor; once more where a pool broke.
        width: how many parts it may have at once.
        is_own: whether the run makes and ends its executors; else they are somebody else's, and
            cannot be made again.
        name: what it is called in messages.
        link: where it shows what it does; empty where it does not.
        is_alive: whether it can still answer.
        ahead: how many parts it is given for each that it can run at once, so that no worker waits
            for the next.
    """

    make: Callable[[], Executor]
    width: int
    is_own: bool
    name: str
    link: str = ""
    is_alive: Callable[[], bool] = lambda: True
    ahead: int = 2


class ThisProcess(Executor):
    """Runs each task where it is submitted, before `submit` returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it now. Ctrl-C and its like are not caught."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 -- as every executor does; the driver looks at it
            future.set_exception(error)
        return future


def this_process() -> Engine:
    """One part after the other, in the process that asks."""
    # What is submitted runs at once, so progress of the next part would come only after it.
    return Engine(ThisProcess, 1, True, "this process", ahead=1)


def pool(workers: int) -> Engine:
    """A pool of processes on this machine, begun afresh (spawn).

    Raises:
        RunError: where workers is no whole number from 1 on.
    """
    check_count("workers", workers, error=RunError)
    # Not fork, which copies locks that other threads hold, torch's among them.
    spawn = multiprocessing.get_context("spawn")

    def make() -> Executor:
        count = spawn.Value("i", 0)
        return ProcessPoolExecutor(workers, spawn, initializer=_begin_worker, initargs=(count,))

    return Engine(make, workers, True, "a worker" if workers == 1 else f"{workers} workers")


def given(executor: Executor) -> Engine:
    """An executor that somebody else made.

    Raises:
        RunError: where it is none.
    """
    if not callable(getattr(executor, "submit", None)):
        raise RunError(
            f"executor is {type(executor).__name__}; give a concurrent.futures.Executor, such as "
            "client.get_executor() of Dask"
        )
    if hasattr(client := getattr(executor, "_client", None), "dashboard_link"):
        return _of_client(client, executor)
    width = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    return Engine(lambda: executor, width, False, type(executor).__name__)


@contextmanager
def dask_cluster(address: str, workers: int | None = None) -> Generator[Executor]:
    """The executor of a Dask cluster, for a ``with`` block.

    Args:
        address: of its scheduler, such as ``"tcp://10.0.0.1:8786"``, or ``"local"`` for a cluster
            of processes on this machine that ends with the block.
        workers: of a local cluster: how many processes; by default one for each core.

    Raises:
        RunError: where Dask is not installed, or no scheduler answers.
    """
    if find_spec("distributed") is None:
        raise RunError("Dask is not installed: pip install 'headscope[distributed]'")
    from distributed import Client, LocalCluster, Nanny

    class PatientNanny(Nanny):
        """Waits as long as workers with a model take to end."""

        async def close(self, timeout: float = PATIENCE, reason: str = "nanny-close") -> Any:
            return await super().close(timeout=timeout, reason=reason)

    if address == LOCAL:
        cluster = LocalCluster(
            n_workers=workers or os.cpu_count() or 1,
            threads_per_worker=1,
            processes=True,
            worker_class=PatientNanny,
        )
        with cluster, Client(cluster) as client:
            yield _executor_of(client)
        return
    try:
        client = Client(address, timeout=ANSWERS_WITHIN)
    except (OSError, ValueError) as error:
        raise RunError(
            f"No Dask scheduler answers at {address}: {error}; give its address, such as "
            "tcp://10.0.0.1:8786, or local"
        ) from None
    with client:
        yield _executor_of(client)


def _executor_of(client: Any) -> Executor:
    # Dask runs equal calls as one task by default, and the error of a part that failed
    # would be given again. Retries are ours: Dask's run what kills workers for minutes.
    return client.get_executor(pure=False, retries=0)


def _of_client(client: Any, executor: Executor) -> Engine:
    link = ""
    with suppress(Exception):  # a scheduler without its dashboard has no link
        link = client.dashboard_link or ""
    cores = sum((client.nthreads() or {}).values())
    return Engine(
        lambda: executor,
        max(1, cores),
        False,
        f"a Dask cluster of {cores} threads",
        link,
        lambda: client.status == "running",
    )


def is_death(error: BaseException) -> bool:
    """Whether an error means that the worker of a task died."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in DEATHS


def is_loss(error: BaseException) -> bool:
    """Whether an error means that the engine is gone."""
    return type(error).__name__ in LOST


def stop(executor: Executor) -> None:
    """End an executor of our own without waiting for what it does."""
    executor.shutdown(wait=False, cancel_futures=True)
    # What `terminate_workers` of Python 3.14 does.
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        with suppress(OSError, ValueError):
            process.terminate()


def worker_number() -> int:
    """Which worker of its engine this process is, from 0 on, so that each can take a GPU of its
    own; 0 for a process that is none, or where it is not known.
    """
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        # Workers of a local cluster are called by their numbers, others by their addresses.
        with suppress(ValueError):
            name = distributed.get_worker().name
            if isinstance(name, int):
                return name
    return _numbers[-1] if _numbers else 0


def _begin_worker(count: Any) -> None:
    with count.get_lock():
        _numbers.append(count.value)
        count.value += 1
    # The driver gets Ctrl-C and ends its workers; traces of all of them would hide its words.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _leave())
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Workers of a driver that was killed would wait for ever, a model in memory each."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _leave()


def _leave() -> None:
    forget_own()
    os._exit(1)
