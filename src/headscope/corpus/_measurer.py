"""What a run asks of a study: a job, what measures its texts, and what adds them up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from headscope.corpus._text import CorpusText

Kept = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The fields of something that JSON can hold, and its arrays by name."""


@runtime_checkable
class Measurer(Protocol):
    """Measures texts; a run decides which, when and where, and adds up what comes.

    A measurer lives in one process and is used by one thread at a time. It holds a loaded model;
    what is sent to other processes is a `Job`, which makes one.

    The numbers of a text must depend on the text alone, but for rounding: not on the texts that are
    measured with it, on their order, or on their number. Random draws are keyed by what it says.
    """

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """Measure texts, in whatever order and batches suit it.

        Args:
            texts: no two of them say the same; `CorpusText.given` is what `capture_many` takes.
            failed: to be called with place and error of a text that cannot be measured; the others
                go on.

        Yields:
            The place of a text in ``texts``, and what the tally of a part counts of it. Each place
            comes once, here or in ``failed``, as soon as it is known: what came is not looked for
            when a text ends the process.
        """
        ...


@runtime_checkable
class PartTally(Protocol):
    """Adds up the texts of a part."""

    def update(self, text: CorpusText, values: Any) -> None:
        """Count a text as often as it is there, for its document."""
        ...

    def kept(self) -> Kept:
        """What the file of the part holds: the same for the same texts, whatever their order."""
        ...


@runtime_checkable
class Job(Protocol):
    """What is to be done to every text of a run.

    A job travels to the processes of an engine, so it is small, can be pickled and hashed, and
    names its model instead of holding it. A worker begins equal jobs once.
    """

    @property
    def study(self) -> str:
        """What is made, such as ``"heads"``."""
        ...

    @property
    def stage(self) -> str:
        """What progress is of, where a call makes several runs; else empty."""
        ...

    @property
    def beside(self) -> Sequence[str]:
        """Names of parts that are not of the texts, such as ``"battery"``."""
        ...

    def options(self) -> dict[str, Any]:
        """What the numbers depend on and is known before a model is loaded, as JSON takes it."""
        ...

    def begin(self) -> Measurer:
        """Load the model; called often, so it is loaded once in a process."""
        ...

    def facts(self, measurer: Any) -> dict[str, str]:
        """What else the numbers depend on: weights, how the model ran, versions of libraries."""
        ...

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where some texts of the run are unfit for the model; what the driver is to know of
        it else, as JSON takes it.
        """
        ...

    def tally(self, measurer: Any) -> PartTally:
        """A new one, of no text."""
        ...

    def measure_beside(self, name: str, measurer: Any) -> Kept:
        """A part that is not of the texts."""
        ...
