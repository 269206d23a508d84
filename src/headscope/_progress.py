"""How far long work has come: a bar on terminals and in notebooks, and a line every ten seconds in
a log.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar

EVERY = 10.0
"""Seconds between lines of a log."""
LOOKS_EVERY = 1.0
"""Seconds between two looks at work that others do."""

Each = TypeVar("Each")


class Progress:
    """Counts what is done, not what is begun.

    Args:
        what: is going on, such as ``"Capturing"``.
        unit: of what is counted, such as ``"text"``.
        total: how many there are; None where that is not known.
        done: how many were done before.
        shows: whether anything is shown; or what is called with how many are done, and of how many
            at most.
        stays: whether a full bar stays on the terminal.
    """

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None = None,
        *,
        done: int = 0,
        shows: bool | Callable[[int, int | None], object] = True,
        stays: bool = True,
    ) -> None:
        self._tell, self._done, self._total = shows if callable(shows) else None, done, total
        self._what, self._units = what, unit + ("es" if unit.endswith("ch") else "s")
        self.left_out: int = 0
        """How many of those that are done were left out."""
        self._bars, self._is_log = _bars(stays) if shows is True else (None, False)
        if self._bars is not None:
            self._bars.add_task(what, total=total, completed=done, note="")
            self._task = self._bars.tasks[0]
            self._bars.start()
        self._last, self._shown = time.monotonic(), -1

    def step(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        if self._tell is not None:
            self._tell(self._done, self._total)
        if self._bars is not None:
            self.reach(int(self._task.completed) + count)

    def reach(self, done: int, *, is_last: bool = False) -> None:
        """So many are done.

        Args:
            done: of all.
            is_last: whether nothing more comes, so that a log prints it now.
        """
        if self._bars is None:
            return
        self._bars.update(self._task.id, completed=done, note=self._note)
        is_due = is_last or time.monotonic() - self._last >= EVERY
        if self._is_log and is_due and self._shown != done:
            self._last, self._shown = time.monotonic(), done
            sys.stderr.write(f"{self._line()}\n")
            sys.stderr.flush()

    @contextmanager
    def watching(self, look: Callable[[], tuple[int, int]]) -> Generator[None]:
        """Look while a block runs how many are done, and how many of them were left out."""
        ended = threading.Event()

        def update(*, is_last: bool = False) -> None:
            done, self.left_out = look()
            self.reach(done, is_last=is_last)

        def go_on() -> None:
            while not ended.wait(LOOKS_EVERY):
                update()

        thread = threading.Thread(target=go_on, daemon=True)
        if self._bars is not None:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if self._bars is not None:
                thread.join()
                update(is_last=True)

    @property
    def _note(self) -> str:
        return f"{self.left_out:,} left out" if self.left_out else ""

    def _line(self) -> str:
        """What a log is told. The rate is that of the last half minute: loading a model may take
        longer than hundreds of texts.
        """
        task = self._task
        of = "" if task.total is None else f" of {task.total:,.0f}"
        parts = [f"{self._what}: {task.completed:,.0f}{of} {self._units}"]
        if task.speed:
            parts.append(f"{task.speed:.3g} {self._units}/s")
        if task.time_remaining:
            parts.append(f"{duration(task.time_remaining)} to go")
        return ", ".join([*parts, *([self._note] if self._note else [])])

    def close(self) -> None:
        """Nothing more comes."""
        if self._bars is not None:
            self._bars.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bars(stays: bool) -> tuple[Any, bool]:
    """Bars of rich, and whether they are not shown, since stderr is a log."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    # In a notebook, rich needs the widgets of ipywidgets.
    shows = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}"),
    )
    bars = progress.Progress(*columns, console=console, transient=not stays, disable=not shows)
    return bars, not shows


def counted(
    items: Iterable[Each],
    what: str,
    unit: str,
    *,
    shows: bool,
    stays: bool = True,
    total: int | None = None,
) -> Iterator[Each]:
    """The items, each counted once it is done: when the next is asked for.

    Args:
        items: in order.
        what: is done with them.
        unit: what one is called.
        shows: whether anything is shown.
        stays: whether a full bar stays on the terminal.
        total: how many there are; by default their length, where they have one.
    """
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # ty: ignore[invalid-argument-type]
    with Progress(what, unit, total, shows=shows, stays=stays) as progress:
        for item in items:
            yield item
            progress.step()


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


def warn_left_out(number: int, error: object, what: str = "input", *, stacklevel: int = 5) -> None:
    """Warn of one of several inputs that is left out."""
    warnings.warn(f"{what} {number} (from 0) was left out: {error}", stacklevel=stacklevel)
