"""What a run asks of whatever measures texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from headscope.corpus._text import CorpusText


class Measurer(Protocol):
    """Measures texts; a run decides which, when and where, and adds up what comes.

    A measurer lives in one process and is used by one thread at a time. It holds a loaded model;
    what is sent to other processes is a `Job`, which makes one.

    The numbers of a text must depend on the text alone, to the last bit: not on the texts that are
    measured with it, on their order, or on their number. Random draws are keyed by
    `CorpusText.name`. (What is the same to the last bit: texts of one length in tokens together,
    without padding, at least some 64 tokens in a batch, which may be filled up with copies. A run
    tries it out before it begins.)
    """

    @property
    def rows(self) -> Sequence[str]:
        """Names of the first axis of the values, such as ``"next"`` or ``"measure entropy"``."""
        ...

    @property
    def cells(self) -> Sequence[tuple[int, int]]:
        """Layer and head of the second axis of the values."""
        ...

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """Measure texts, in whatever order and batches suit it.

        Args:
            texts: no two of them say the same; `CorpusText.given` is what `capture_many` takes.
            failed: to be called with place and error of a text that cannot be measured; the others
                go on.

        Yields:
            The place of a text in ``texts``, and its values ``[row, head]`` in float64, NaN where
            it has none. Each place comes once, here or in ``failed``, as soon as it is known: what
            came is not looked for when a text ends the process.
        """
        ...
