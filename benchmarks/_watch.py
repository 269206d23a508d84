"""Follow child processes from a thread: note their peak memory, end them past a limit."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 2**30
INTERVAL_S = 0.2


@dataclass(frozen=True)
class Limits:
    """When a process is ended.

    Attributes:
        seconds: Longest wall time.
        gibibytes: Most resident memory of the followed processes together, in GiB.
    """

    seconds: float
    gibibytes: float


class Watch:
    """Context in which some children of this process are followed.

    Attributes:
        peak_bytes: Highest resident memory of any one followed process so far.
        verdict: Why they were ended, in words; None if they were not.
    """

    def __init__(self, is_followed: Callable[[psutil.Process], bool], limits: Limits) -> None:
        self.peak_bytes = 0
        self.verdict: str | None = None
        self._is_followed = is_followed
        self._limits = limits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        deadline = time.monotonic() + self._limits.seconds
        stopped = False
        while not stopped:
            stopped = self._stop.wait(INTERVAL_S)  # sampled once more after the stop
            followed = _children(self._is_followed)
            total = self._sample(followed)
            if stopped:
                return
            if total > self._limits.gibibytes * GIB:
                self.verdict = f"ended at {self._limits.gibibytes:g} GiB of memory"
            elif time.monotonic() > deadline:
                self.verdict = f"nothing within {self._limits.seconds:g} s"
            if self.verdict:
                _end(followed)
                return

    def _sample(self, followed: list[psutil.Process]) -> int:
        sizes = [_resident_bytes(process) for process in followed]
        self.peak_bytes = max(self.peak_bytes, *sizes, 0)
        return sum(sizes)


def _children(is_followed: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    children = []
    for process in psutil.Process().children(recursive=True):
        try:
            if is_followed(process):
                children.append(process)
        except psutil.NoSuchProcess:
            continue  # it ended while the list was read
    return children


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
