"""Texts that a command left out: each is named when it happens, and all are counted on the last
line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from headscope.errors import HeadscopeError

PARTLY = 3
"""Exit code of a command that did its work except for some of the texts."""
NAMED = 10


class LeftOut:
    """Texts that a run of the command line left out."""

    def __init__(self) -> None:
        self.what, self.where, self.of = "text", "", 0
        self.names: dict[str, str] = {}
        self.listed = ""

    def begin(self, what: str = "text", of: int = 0, where: str = "") -> None:
        """Start counting from zero.

        Args:
            what: the noun for one of them, such as text.
            of: how many there are; 0 where that is not known.
            where: what they belong to, for messages.
        """
        self.what, self.of, self.where = what, of, where
        self.names.clear()
        self.listed = ""

    def note(self, name: object, error: HeadscopeError | str) -> None:
        """Report one that is left out, on stderr.

        Args:
            name: its name, or its number, counted from 1.
            error: the reason.
        """
        if str(name) in self.names:
            return
        self.names[str(name)] = str(error)
        why = " ".join(str(error).split())
        print(f"headscope: {self.what} {name}{self.where} was left out: {why}", file=sys.stderr)  # noqa: T201

    def number(self, index: int, error: HeadscopeError) -> None:
        """Report one by its number, counted from 0, as `headscope.capture_many` gives it."""
        self.note(index + 1, error)

    def take(self, names: Mapping[str, str]) -> None:
        """Count those that the result itself names, each with its reason."""
        self.names.update(names)

    def count(self, count: int, listed: str) -> None:
        """Count so many that were left out; ``listed`` says where they are named."""
        # The end counts names: here numbers stand in for them.
        self.names.update({str(number): "" for number in range(count)})
        self.listed = listed

    def end(self) -> int:
        """Print how many were left out as the last line of stderr, and return the exit code."""
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
"""The texts that this command left out: one process runs one command, and `run` sets its exit
code.
"""
