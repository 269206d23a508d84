"""The commands: one file each, thin calls of public functions."""

from __future__ import annotations

from cyclopts import App

from headscope._version import __version__
from headscope.cli._help import HelpFormatter

FORCE = "Add --force to replace an existing file of another kind."
"""Stands below the options of every command that writes a file; `headscope.cli._main` takes it from
any of them.
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
app.command(
    "headscope.cli._view:view",
    name="view",
    help="Capture a text, picture or sound and write the viewer page.",
    # what cyclopts would find by reading all options once more
    usage="Usage: headscope view [OPTIONS] [ARGS]",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._support:support",
    name="support",
    help="Check whether a model is supported.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._check:check", name="check", help="Check that records and results are undamaged."
)
app.command(
    "headscope.cli._capture:capture",
    name="capture",
    help="Capture attention and save the record.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._generate:generate",
    name="generate",
    help="Generate text and record attention at every step.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._export:export",
    name="export",
    help="Export the weights of a record as .csv, .parquet, .nc or .npz.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._figure:figure",
    name="figure",
    help="Draw a figure of a record for print: .svg, .pdf or .png.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._serve:serve", name="serve", help="Show a record in the browser, layer by layer."
)
app.command(
    "headscope.cli._heads:heads",
    name="heads",
    help="Classify the heads of a model by their patterns, with evidence.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._mechanism:mechanism",
    name="mechanism",
    help="Find the query/key neurons and embeddings behind a head's pattern.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._faithfulness:faithfulness",
    name="faithfulness",
    help="Check whether attention agrees with gradients and leave-one-out importance.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._compare:compare",
    name="compare",
    help="Compare two records head by head.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._effect:effect",
    name="effect",
    help="Measure what disabling heads changes.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._norms:norms",
    name="norms",
    help="Compare attention weights with norm-based contributions.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._ablate:ablate",
    name="ablate",
    help="Measure how much each head matters for a task.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._probe:probe",
    name="probe",
    help="Train syntactic probes on attention or hidden states.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._relations:relations",
    name="relations",
    help="Find the heads that attend along each dependency relation.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._align:align",
    name="align",
    help="Evaluate word alignment by the attention of a translation model.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._coref:coref",
    name="coref",
    help="Find the heads that attend to a mention's antecedent.",
    help_epilogue=FORCE,
)
