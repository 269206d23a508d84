"""Format of the help: paragraphs, whatever the lines of the docstring, without empty defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

OFF = ("False", "()", "None")
"""Defaults that are not shown, because a reader expects them of a switch or a list."""


class HelpFormatter(DefaultFormatter):
    """Shows a panel of arguments, options or commands."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        panel.entries = [_plain(entry) for entry in panel.entries]
        super().__call__(console, options, panel)


def _plain(entry: HelpEntry) -> HelpEntry:
    """The entry with its description in one paragraph."""
    text: Any = getattr(entry.description, "primary_renderable", None)
    if hasattr(text, "plain"):
        text.plain = " ".join(text.plain.split())
    # cyclopts adds --empty-NAME to every list; ours are empty unless they are given.
    given = tuple(name for name in entry.negative_names if not name.startswith("--empty-"))
    # A default with a parenthesis is the representation of an object and not a value to type.
    default = None if entry.default in OFF or "(" in (entry.default or "") else entry.default
    return entry.copy(negative_names=given, default=default)
