"""headscope coref."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._asking import AskingOptions
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, loaded, tell


def coref(
    *,
    data: Path,
    model: ModelOptions | None = None,
    window: int = 128,
    every_window: Annotated[bool, Parameter(negative="")] = False,
    asking: AskingOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell which head looks from a mention at what it means, beside the nearest mention and simple
    rules.

    The tables have one line for each kind of mention, once with the candidate mentions to choose
    among and once with all other words: the best head on all documents, and one chosen on half of
    them and measured on the other half, both ways over several splits.

    Args:
        data: LitBank (a folder of .ann and .txt), GAP or Winogender (.tsv), WinoBias (.txt).
        model: Which model, and what it reads.
        window: How many words of a document of LitBank are read at once.
        every_window: Read every window of a document, not only its first.
        asking: How heads are asked, and how the best one is told.
        out: Write the table to this file (.csv, .json or .parquet), too.
        plot: Draw the held-out accuracies beside their baselines to this file (.svg, .pdf or .png),
            too.
    """
    from headscope.linguistics import read_coreference, source_name
    from headscope.studies import coref as coref_of

    check_results(out, plot, None)
    passages = read_coreference(data, window=window, every_window=every_window)
    options = model or ModelOptions()
    left_out.begin("passage", len(passages))
    result = coref_of(
        *loaded([], options),
        passages,
        **asdict(asking or AskingOptions()),
        truncate=options.truncate,
        allow_unfit=options.allow_unfit,
        **options.read_many(),
        progress=True,
    )
    result.data = source_name(data)
    left_out.take(result.left_out)
    tell(result, out, plot)
