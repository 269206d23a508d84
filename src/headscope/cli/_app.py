"""The commands: one file each, thin calls of public functions."""

from __future__ import annotations

from cyclopts import App

from headscope._version import __version__

FORCE = "With --force a file of another kind that is there already is replaced."
"""Stands below the options of every command that writes a file; `headscope.cli._main` takes it from
any of them.
"""

app = App(
    name="headscope",
    help="See what every attention head of a transformer does.\n\n"
    "Every command that writes a file takes --force, which lets it replace a file of another kind.",
    version=__version__,
    help_format="plaintext",
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
    help="Find out what can be captured of a model.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._check:check", name="check", help="Tell whether records and results are whole."
)
app.command(
    "headscope.cli._capture:capture",
    name="capture",
    help="Capture a text, picture or sound and keep the record.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._generate:generate",
    name="generate",
    help="Let a model write and keep every step.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._export:export",
    name="export",
    help="Write the weights of a record as .csv, .parquet, .nc or .npz.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._figure:figure",
    name="figure",
    help="Draw a view of a record as a figure for print.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._serve:serve", name="serve", help="Show a record in the browser, layer by layer."
)
app.command(
    "headscope.cli._heads:heads",
    name="heads",
    help="Tell what kind of heads a model has, with evidence.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._mechanism:mechanism",
    name="mechanism",
    help="Tell which neurons and embeddings make what heads do.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._faithfulness:faithfulness",
    name="faithfulness",
    help="Tell what attention agrees with in a classifier.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._compare:compare",
    name="compare",
    help="Set two records beside each other.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._effect:effect",
    name="effect",
    help="Tell what disabling heads moves.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._norms:norms",
    name="norms",
    help="Tell how much tokens add, beside how much they weigh.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._ablate:ablate",
    name="ablate",
    help="Tell what each head matters to a task.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._probe:probe",
    name="probe",
    help="Tell what of syntax can be learnt from heads or states.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._relations:relations",
    name="relations",
    help="Tell which head looks along each dependency relation.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._align:align",
    name="align",
    help="Tell which heads of a translation model align words.",
    help_epilogue=FORCE,
)
app.command(
    "headscope.cli._coref:coref",
    name="coref",
    help="Tell which head looks at what a mention means.",
    help_epilogue=FORCE,
)
