"""headscope coref."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._annotated_texts import AnnotatedTextOptions
from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, tell


def coref(
    *,
    data: Path,
    model: ModelOptions | None = None,
    window: int = 128,
    every_window: Annotated[bool, Parameter(negative="")] = False,
    asking: AnnotatedTextOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    corpus: CorpusOptions | None = None,
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
            it; or keep the finished parts of a run in this folder, so that the same command resumes
            after them.
        plot: Draw the held-out accuracies next to their baselines to this file (.svg, .pdf or
            .png).
        corpus: Who measures the passages.
    """
    from headscope.linguistics import read_coreference, source_name
    from headscope.studies import coref as coref_of

    table = table_of(out)
    check_results(table, plot, None)
    passages = read_coreference(data, window=window, every_window=every_window)
    left_out.begin("passage", len(passages))
    how_asked = (asking or AnnotatedTextOptions()).options
    running = corpus or CorpusOptions()
    with running.reading(model or ModelOptions(), out) as (source, how):
        result = coref_of(*source, passages, **how_asked, **how)
    result.source = source_name(data)
    if not running.asks(out):
        left_out.take(result.left_out)
    tell(result, table, plot)
