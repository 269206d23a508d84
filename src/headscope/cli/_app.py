"""The list of commands: thin calls of public functions."""

from __future__ import annotations

from importlib.util import find_spec

from cyclopts import App

from headscope._version import __version__
from headscope.cli._help import HelpFormatter

COMMANDS = {
    "_page": ("view", "figure"),
    "_capture": ("capture", "generate", "answer", "effect"),
    "_records": ("check", "export", "compare"),
    "_serve": ("serve",),
    "_texts": ("heads", "norms", "mechanism", "faithfulness", "atlas"),
    "_annotated": ("ablate", "probe", "relations", "align", "coref"),
    "_support": ("support",),
}
"""The commands of each module: the function of that name, with its docstring as the help."""
if find_spec("headscope.headvis") is not None:  # of an extra
    COMMANDS["_headvis"] = ("headvis",)
READS = ("check", "serve")
"""Commands that write no file."""
FORCE = "Add --force to replace an existing file of another kind."
"""Note below the options of every command that writes a file; `headscope.cli._main` reads this
option for all of them.
"""

app = App(
    name="headscope",
    help="See what every attention head of a transformer does.\n\n"
    "Every command that writes a file takes --force, to replace an existing file of another kind.",
    version=__version__,
    help_format="plaintext",
    help_formatter=HelpFormatter(),
    suppress_keyboard_interrupt=False,  # cyclopts would exit by itself, without a word
)
for module, names in COMMANDS.items():
    for name in names:
        more = {} if name in READS else {"help_epilogue": FORCE}
        # Named by its path, so that the module of a command is imported only when it is needed.
        # The examples of a command stand where its usage would.
        app.command(f"headscope.cli.{module}:{name}", name=name, usage="", **more)
