"""The list of commands: thin calls of public functions; and how their help is formatted."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter
from cyclopts.help import DefaultFormatter

from headscope._version import __version__

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions


COMMANDS = {
    "_page": "view figure",
    "_capture": "capture generate answer effect ablate",
    "_records": "check export compare support",
    "_serve": "serve",
    "_studies": "heads norms mechanism faithfulness atlas probe relations align coref",
}
"""The commands of each module: the function of that name, with its docstring as the help."""
if find_spec("headscope.headvis") is not None:  # of an extra
    COMMANDS["_headvis"] = "headvis"
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
    # What turns an option off is shown where it is on unless it is given.
    given = tuple(
        name
        for name in entry.negative_names
        if entry.default == "True" or not name.startswith("--no-")
    )
    # A default with a parenthesis is the representation of an object and not a value to type.
    default = None if entry.default in OFF or "(" in (entry.default or "") else entry.default
    return entry.copy(negative_names=given, default=default)


app = App(
    name="headscope",
    help="See what every attention head of a transformer does.",
    version=__version__,
    help_format="plaintext",
    help_formatter=HelpFormatter(),
    default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
    suppress_keyboard_interrupt=False,  # cyclopts would exit by itself, without a word
)
for module, names in COMMANDS.items():
    for name in names.split():
        # Named by its path, so that the module of a command is imported only when it is needed.
        # The examples of a command stand where its usage would.
        app.command(f"headscope.cli.{module}:{name}", name=name, usage="")
