"""The list of commands: thin calls of public functions; and how their help is formatted."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from cyclopts import App, Parameter

from headscope._version import __version__

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


def _shown(default: Any) -> str | None:
    """A default in the help; nothing where a reader expects it, or where it is no value to type."""
    return None if default in (None, False, ()) or "(" in str(default) else str(default)


app = App(
    name="headscope",
    help="See what every attention head of a transformer does.",
    version=__version__,
    help_format="plaintext",
    default_parameter=Parameter(
        consume_multiple=True, negative_iterable=(), negative_bool=(), show_default=_shown
    ),
    suppress_keyboard_interrupt=False,  # cyclopts would exit by itself, without a word
)
for module, names in COMMANDS.items():
    for name in names.split():
        # Named by its path, so that the module of a command is imported only when it is needed.
        # The examples of a command stand where its usage would.
        app.command(f"headscope.cli.{module}:{name}", name=name, usage="")
