"""Texts that a command left out: each is named when it happens, and all are counted on the last
line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from headscope.errors import HeadscopeError

PARTLY = 3
"""Exit code of a command that did its work, but for some of the texts."""
NAMED = 10


class LeftOut:
    """What a run of the command line left out."""

    def __init__(self) -> None:
        self.what, self.where, self.of = "text", "", 0
        self.names: dict[str, str] = {}
        self.listed = ""

    def begin(self, what: str = "text", of: int = 0, where: str = "") -> None:
        """Count anew.

        Args:
            what: is left out.
            of: how many there are; 0 where that is not known.
            where: they belong to.
        """
        self.what, self.of, self.where = what, of, where
        self.names.clear()
        self.listed = ""

    def note(self, name: object, error: HeadscopeError | str) -> None:
        """Name one, on stderr.

        Args:
            name: its name, or its number, counted from 1.
            error: why.
        """
        if str(name) in self.names:
            return
        self.names[str(name)] = str(error)
        why = " ".join(str(error).split())
        print(f"headscope: {self.what} {name}{self.where} was left out: {why}", file=sys.stderr)  # noqa: T201

    def number(self, index: int, error: HeadscopeError) -> None:
        """The same by number, counted from 0, as `headscope.capture_many` reports it."""
        self.note(index + 1, error)

    def take(self, names: Mapping[str, str]) -> None:
        """Those that the result itself names, with the reason of each."""
        self.names.update(names)

    def count(self, count: int, listed: str) -> None:
        """So many were left out, and a file or line says which."""
        self.names.update({str(number): "" for number in range(count)})
        self.listed = listed

    def end(self) -> int:
        """Say how many were left out, on the last line of stderr, and give the exit code."""
        if not self.names:
            return 0
        count = len(self.names)
        listed = [self.listed] if self.listed else list(self.names)[:NAMED]
        more = f" and {count - NAMED} more" if count > NAMED and not self.listed else ""
        of = f" of {self.of}" if self.of else ""
        several = (
            f"{self.what}s{self.where} were"
            if self.of > 1 or count > 1
            else f"{self.what}{self.where} was"
        )
        print(  # noqa: T201
            f"headscope: {count}{of} {several} left out: {', '.join(listed)}{more}", file=sys.stderr
        )
        return PARTLY


left_out = LeftOut()
"""Of the command that runs: one process runs one command, and its exit code is set at the border,
in `run`.
"""
