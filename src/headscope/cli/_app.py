"""The commands: one file each, thin calls of public functions."""

from __future__ import annotations

from cyclopts import App

from headscope import __version__

app = App(
    name="headscope",
    help="See what every attention head of a transformer does.",
    version=__version__,
    help_format="plaintext",
)
app.command("headscope.cli._view:view", name="view", help="Capture a text, picture or sound and write the viewer page.")
app.command("headscope.cli._support:support", name="support", help="Find out what can be captured of a model.")
app.command(
    "headscope.cli._capture:capture", name="capture", help="Capture a text, picture or sound and keep the record."
)
app.command("headscope.cli._generate:generate", name="generate", help="Let a model write and keep every step.")
app.command("headscope.cli._figure:figure", name="figure", help="Draw a view of a record as a figure for print.")
app.command("headscope.cli._serve:serve", name="serve", help="Show a record in the browser, layer by layer.")
app.command("headscope.cli._heads:heads", name="heads", help="Tell what kind of heads a model has, with evidence.")
app.command(
    "headscope.cli._mechanism:mechanism", name="mechanism", help="Tell which neurons and embeddings make what heads do."
)
app.command(
    "headscope.cli._faithfulness:faithfulness",
    name="faithfulness",
    help="Tell what attention agrees with in a classifier.",
)
app.command("headscope.cli._compare:compare", name="compare", help="Set two records beside each other.")
app.command("headscope.cli._effect:effect", name="effect", help="Tell what disabling heads moves.")
app.command("headscope.cli._norms:norms", name="norms", help="Tell how much tokens add, beside how much they weigh.")
app.command("headscope.cli._ablate:ablate", name="ablate", help="Tell what each head matters to a task.")
app.command("headscope.cli._probe:probe", name="probe", help="Tell what of syntax can be learnt from heads or states.")
app.command(
    "headscope.cli._relations:relations", name="relations", help="Tell which head looks along each dependency relation."
)
app.command("headscope.cli._align:align", name="align", help="Tell which heads of a translation model align words.")
app.command("headscope.cli._coref:coref", name="coref", help="Tell which head looks at what a mention means.")
