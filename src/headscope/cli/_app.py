"""The commands: one file each, thin calls of public functions."""

from __future__ import annotations

from importlib.util import find_spec

from cyclopts import App

from headscope._version import __version__
from headscope.cli._help import HelpFormatter

COMMANDS = {
    "view": "Capture a text, picture or sound and write the viewer page.",
    "support": "Check whether a model is supported.",
    "check": "Check that records and results are undamaged.",
    "capture": "Capture attention and save the record.",
    "generate": "Generate text and record attention at every step.",
    "answer": "Ask about a picture, and see which patches each word of the answer attends to.",
    "export": "Export the weights of a record as .csv, .parquet, .nc or .npz.",
    "figure": "Draw a figure of a record for print: .svg, .pdf or .png.",
    "serve": "Show a record in the browser, layer by layer.",
    "heads": "Classify the heads of a model by their patterns, with evidence.",
    "atlas": "Make an atlas of a model's heads over many texts, with examples.",
    "mechanism": "Find the query/key neurons and embeddings behind a head's pattern.",
    "faithfulness": "Check whether attention agrees with gradients and leave-one-out importance.",
    "compare": "Compare two records head by head.",
    "effect": "Measure what disabling heads changes.",
    "norms": "Compare attention weights with norm-based contributions.",
    "ablate": "Measure how much each head matters for a task.",
    "probe": "Train syntactic probes on attention or hidden states.",
    "relations": "Find the heads that attend along each dependency relation.",
    "align": "Evaluate word alignment by the attention of a translation model.",
    "coref": "Find the heads that attend to a mention's antecedent.",
}
"""What each command does; ``NAME`` is the function of that name in ``headscope.cli._NAME``."""
if find_spec("headscope.headvis") is not None:  # of an extra
    COMMANDS["headvis"] = "Write a tree of HeadVis: what every head of a model attends to."
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
for name, does in COMMANDS.items():
    more = {} if name in READS else {"help_epilogue": FORCE}
    if name == "view":
        # The same line as cyclopts would make, which reads all options once more for it.
        more["usage"] = "Usage: headscope view [OPTIONS] [ARGS]"
    # Named by its path, so that the module of a command is imported only when it is needed.
    app.command(f"headscope.cli._{name}:{name}", name=name, help=does, **more)
