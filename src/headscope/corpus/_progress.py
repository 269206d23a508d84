"""How far a run is: on a terminal, in a notebook, or in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EVERY = {"terminal": 0.5, "notebook": 1.0, "log": 10.0}
"""Seconds between two looks."""
STEADY = 2.0
"""Seconds after the first text from which the rate leaves out what was before it."""


@dataclass
class RunStatus:
    """How far a run is.

    Args:
        total: texts of the run.
        stage: what the line begins with, where a call makes several runs.
        finished: texts of finished parts.
        failed: texts that were left out so far.
        before: texts that were finished when the call began.
        under_way: tells how many texts of unfinished parts are done.
        begun: when the call began, by the clock that never goes back.
        first: texts and time when the first text of this call was seen to be done.
    """

    total: int
    stage: str = ""
    finished: int = 0
    failed: int = 0
    before: int = 0
    under_way: Callable[[], int] = lambda: 0
    begun: float = field(default_factory=time.monotonic)
    first: tuple[int, float] | None = None

    def line(self) -> str:
        """Done, left, rate, time to go, and failed so far, in one line."""
        done = min(self.total, self.finished + self.under_way())
        rate = self._rate(done, time.monotonic())
        before = f"{self.stage}: " if self.stage else ""
        parts = [f"{before}{done:,} of {self.total:,} texts", f"{self.total - done:,} left"]
        if rate > 0:
            parts.append(f"{rate:.3g} texts/s")
            if done < self.total:
                parts.append(f"{duration((self.total - done) / rate)} to go")
        parts.append(f"{self.failed:,} failed")
        return ", ".join(parts)

    def _rate(self, done: int, now: float) -> float:
        """Texts a second. Loading a model may take longer than hundreds of texts, so that it counts
        only as long as there is little else to go by.
        """
        since, start = self.before, self.begun
        if self.first is None and done > self.before:
            self.first = done, now
        if self.first is not None and self.first[0] < done and now - self.first[1] >= STEADY:
            since, start = self.first
        return (done - since) / (now - start) if now > start else 0.0


class ProgressLine:
    """Shows a line anew while a block runs.

    Args:
        line: what to show.
        shows: whether anything is shown.
    """

    def __init__(self, line: Callable[[], str], *, shows: bool = True) -> None:
        self._line = line
        self._place = place_of() if shows else ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._handle: Any = None
        self._last = ""

    def __enter__(self) -> ProgressLine:
        if self._place:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._place:
            self._ended.set()
            self._thread.join()
            self._show(last=True)

    def _go_on(self) -> None:
        while not self._ended.wait(EVERY[self._place]):
            self._show()

    def _show(self, *, last: bool = False) -> None:
        line = self._line()
        if self._place == "terminal":
            # Over what stood there before; the last one stays.
            sys.stderr.write(f"\r{line:<{len(self._last)}}{chr(10) if last else ''}")
        elif self._place == "notebook":
            self._in_notebook(line)
        elif not last or _counts(line) != _counts(self._last):
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        self._last = line

    def _in_notebook(self, line: str) -> None:
        from IPython.display import display

        shown = {"text/plain": line}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _counts(line: str) -> list[str]:
    """The parts of a line but rate and time to go, which change while nothing is done."""
    return [part for part in line.split(", ") if not part.endswith(("texts/s", "to go"))]


def place_of() -> str:
    """Where progress is read: on a terminal, in a notebook, or in a log."""
    # Only a kernel has loaded it: the library alone says nothing.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "log"


def duration(seconds: float) -> str:
    """Seconds as a reader takes them in.

    Example:
        >>> duration(42.4), duration(600), duration(9000)
        ('42 s', '10 min', '2 h 30 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
