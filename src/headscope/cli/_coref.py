"""headscope coref."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._annotated_texts import AnnotatedTextOptions
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, loaded, tell


def coref(
    *,
    data: Path,
    model: ModelOptions | None = None,
    window: int = 128,
    every_window: Annotated[bool, Parameter(negative="")] = False,
    asking: AnnotatedTextOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Find the heads that attend from a mention to its antecedent, with simple rules as baselines.

    The tables have one line per kind of mention, once with the candidate mentions as choices and
    once with all other words: the best head on all documents, and one chosen on half of them and
    measured on the other half, over several splits.

    Args:
        data: Annotated data: LitBank (a folder of .ann and .txt), GAP or Winogender (.tsv), or
            WinoBias (.txt).
        model: Model, and how it runs.
        window: How many words of a LitBank document are read at once.
        every_window: Read every window of a document, not only its first.
        asking: How heads are scored, and how the best one is chosen.
        out: Write the table of mentions to this file (.csv, .json or .parquet), besides printing
            it.
        plot: Draw the held-out accuracies next to their baselines to this file (.svg, .pdf or
            .png).
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
        **(asking or AnnotatedTextOptions()).options,
        truncate=options.truncate,
        allow_unfit=options.allow_unfit,
        **options.read_many(),
        progress=True,
    )
    result.data = source_name(data)
    left_out.take(result.left_out)
    tell(result, out, plot)
