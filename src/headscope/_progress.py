"""How far long work has come: a bar on terminals, and a line every ten seconds where stderr is a
file or a notebook.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

EVERY = 10.0
"""Seconds between lines."""

Each = TypeVar("Each")


class Progress:
    """Counts what is done, not what is begun.

    Args:
        what: is going on, such as ``"Capturing"``.
        unit: of what is counted, such as ``"text"``.
        total: how many there are; None where that is not known.
        done: how many were done before.
        shows: whether anything is shown.
        stays: whether a full bar stays on the terminal.
    """

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None = None,
        *,
        done: int = 0,
        shows: bool = True,
        stays: bool = True,
    ) -> None:
        self._what, self._unit, self._total, self._done, self._shows = (
            what,
            unit,
            total,
            done,
            shows,
        )
        self.left_out: int = 0
        """How many of those that are done were left out."""
        self._begun = self._last = time.monotonic()
        self._bar: Any = None
        if shows and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, desc=what, unit=unit, leave=stays)

    def step(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif self._shows and time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            of = "" if self._total is None else f" of {self._total}"
            took = self._last - self._begun
            units = self._unit + ("es" if self._unit.endswith("ch") else "s")
            sys.stderr.write(f"{self._what}: {self._done}{of} {units} after {took:.0f} s\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Nothing more comes."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
