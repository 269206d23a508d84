"""Try every model type that transformers knows, and write docs/support.md.

python tools/write_support.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from headscope.testing import Support, every_type, examine_types, support_tables

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
BATCH = 2
INTRODUCTION = """\
# What can be captured

{counts} Yours is not here? `headscope support MODEL` tries it.

Found out by trying every model type that transformers {transformers} has in its mapping of
configurations, with tiny random models (torch {torch}): `make support`. Where
nobody wrote a tiny configuration for a type, its default configuration was made small: widths
divided, a layer of each kind kept. Each model was given a batch of {size} made-up texts, pictures
or sounds; where one can be padded, every second one was shorter and padded.

- **model type**: as in transformers' configurations, after the family (its folder there). A variant
  stands in parentheses.
- **stacks**: layers x heads of each, and what a query may look at. Models that work on ever coarser
  grids of patches have a stack for each, `stage1`, `stage2` ...; a learned query that collects a
  picture is a `probe`.
- **route**: how its attention was seen, through transformers' attention interface, through torch's
  own operators, or from what the model returns where its own matrices prove that
  (docs/capturing.md).
- **layer output**: largest difference between the layer outputs recomputed from what was captured
  and the model's own.
- **weights**: largest difference between the weights captured while the model ran its own attention
  and those that it returns itself under eager attention, with a remark where these are not all
  (LLaVA and its like return those of the text only) or not each head's (WavLM returns the mean over
  heads, which is compared with ours); `-` where it returns none, where asking for them changes its
  output (Falcon made with sdpa: asked with `output_attentions` it looks ahead, and its plain
  forward, which is captured, does not; made with eager it returns what is captured), or where it
  returns something else (SqueezeBERT: scores; Swin: windows of the last layer of each stage).

Models that read pictures or sounds with text were given text alone where a made-up picture did
not fit their small configuration; what reads the pictures then stands under its own type. Large
values (MobileBERT has no norm that holds them down) make both differences large.
"""


def introduction(rows: Sequence[Support], size: int) -> str:
    """The beginning of the page."""
    refused = sum(bool(row.refused) for row in rows)
    untried = sum(bool(row.unbuilt) for row in rows)
    counts = (
        f"{len(rows) - refused - untried} model types and variants are captured exactly, {refused} "
        f"are refused or captured in part, with the reason, and {untried} could not be tried with "
        "a tiny model."
    )
    versions = {name: version(name) for name in ("transformers", "torch")}
    return INTRODUCTION.format(counts=counts, size=size, **versions)


def main() -> None:
    """Write the page."""
    rows = list(examine_types(every_type(), batch_size=BATCH, workers=os.cpu_count() or 1))
    PAGE.write_text(f"{introduction(rows, BATCH)}\n{support_tables(rows)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
