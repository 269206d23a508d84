"""headscope coref."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, loaded, tell


def coref(
    *,
    data: Path,
    model: ModelOptions | None = None,
    window: int = 128,
    every_window: Annotated[bool, Parameter(negative="")] = False,
    rows: Literal["mean", "first", "max"] = "mean",
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    stack: str | None = None,
    confidence: float = 0.95,
    correction: Literal["holm", "benjamini-hochberg"] = "holm",
    seed: int = 0,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell which head looks from a mention at what it means, beside the nearest mention and simple rules.

    The tables have one line for each kind of mention, once with the candidate mentions to choose among and once with
    all other words: the best head on all documents, and one chosen on half of them and measured on the other half.

    Args:
        data: LitBank (a folder of .ann and .txt), GAP or Winogender (.tsv), WinoBias (.txt).
        model: Which model, and what it reads.
        window: How many words of a document of LitBank are read at once.
        every_window: Read every window of a document, not only its first.
        rows: How the rows of a word's tokens become one.
        random_weights: Let the same architecture with random weights read them, too.
        stack: Which stack of the model, such as decoder; by default the first.
        confidence: Of the intervals.
        correction: For trying many kinds; holm keeps any false one away, benjamini-hochberg their share.
        seed: Of how documents are split into halves.
        out: Write the table to this file (.csv, .json or .parquet), too.
        plot: Draw the held-out accuracies beside their baselines to this file (.svg, .pdf or .png), too.
    """
    from headscope.linguistics import read_coreference
    from headscope.studies import coref as coref_of
    from headscope.studies._coref import name_of

    check_results(out, plot, None)
    passages = read_coreference(data, window=window, every_window=every_window)
    options = model or ModelOptions()
    found = coref_of(
        *loaded([], options),
        passages,
        rows=rows,
        random_weights=random_weights,
        stack=stack,
        confidence=confidence,
        correction=correction,
        seed=seed,
        truncate=options.truncate,
        progress=sys.stderr.isatty(),
    )
    found.data = name_of(data)
    tell(found, out, plot)
