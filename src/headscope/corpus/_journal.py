"""Which texts of a part are being measured: what a worker leaves behind where it dies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from headscope.corpus._folder import UNDER_WAY

DONE, ALONE = "+", "!"
LENGTH = 34
"""Bytes of a line: a mark, 32 digits, the end."""
LONE_DEATHS = 2
"""So often a text must have ended its worker, measured alone, until it is named."""
_open: set[Path] = set()
"""Journals of this process, for those who end it from outside."""


class PartJournal:
    """Notes what is done and what is begun, and reads what workers before this one noted.

    A worker that ends as it should removes its journal. One that is there was left by a worker that
    died, and what was not done by then is measured text by text; a text that twice ends a worker
    while it is measured alone is left out and named.

    Args:
        folder: of the run.
        part: whose texts are measured.
    """

    def __init__(self, folder: Path, part: str) -> None:
        self._folder, self._part = folder / UNDER_WAY, part
        left = [path.read_text(encoding="ascii").splitlines() for path in self._all()]
        self._lines = [[line for line in lines if len(line) == LENGTH - 1] for lines in left]

    @property
    def deaths(self) -> int:
        """How many workers died at this part."""
        return len(self._lines)

    @property
    def killers(self) -> set[str]:
        """Names of the texts that end their workers."""
        last = Counter(lines[-1][1:] for lines in self._lines if lines and lines[-1][0] == ALONE)
        return {name for name, count in last.items() if count >= LONE_DEATHS}

    def suspects(self, names: Iterable[str]) -> set[str]:
        """Of these texts, those that may have ended a worker: begun together and not done."""
        suspected: set[str] = set()
        for lines in self._lines:
            done = {line[1:] for line in lines if line[0] == DONE}
            suspected |= {name for name in names if name not in done}
        return suspected

    @contextmanager
    def open(self) -> Generator[PartJournal]:
        """Write a journal of one's own; all of the part are removed when the part is done or was
        given up, and none where the process dies.
        """
        path = self._folder / f"{self._part}.{self.deaths:03d}.{os.getpid()}"
        # Known before it is there until it is gone: Ctrl-C or SIGTERM may come at any statement.
        _open.add(path)
        try:
            # Not buffered: what was written is there when the process is killed in the next moment.
            with path.open("wb", buffering=0) as self._file:
                yield self
        except BaseException:
            path.unlink(missing_ok=True)
            _open.discard(path)
            raise
        self.remove_all()
        _open.discard(path)

    def remove_all(self) -> None:
        """Remove what workers of this part left: its file is written."""
        for left in self._all():
            left.unlink(missing_ok=True)

    def done(self, name: str) -> None:
        """A text was measured, or could not be."""
        self._note(DONE, name)

    def alone(self, name: str) -> None:
        """A text is measured, and no other with it."""
        self._note(ALONE, name)

    def _note(self, mark: str, name: str) -> None:
        self._file.write(f"{mark}{name}\n".encode("ascii"))

    def _all(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._part}.*"))


def forget_own(folder: Path | None = None) -> None:
    """Remove the journals of this process: it is ended from outside, and no text is to blame.

    Args:
        folder: of the run that is ended; by default all of them.
    """
    for path in list(_open):
        if folder is None or path.parent == folder / UNDER_WAY:
            path.unlink(missing_ok=True)
            _open.discard(path)


def texts_under_way(folder: Path) -> int:
    """How many texts of unfinished parts were measured so far."""
    sizes = Counter()
    for path in (folder / UNDER_WAY).glob("*"):
        try:
            part, size = path.name.partition(".")[0], path.stat().st_size
        except FileNotFoundError:  # finished meanwhile
            continue
        sizes[part] = max(sizes[part], size // LENGTH)
    return sum(sizes.values())
