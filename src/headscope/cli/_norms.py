"""headscope norms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, parse_texts, tell


def norms(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    chat: Path | None = None,
    model: ModelOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    corpus: CorpusOptions | None = None,
) -> None:
    """Compare attention weights with norm-based contributions, for special tokens, punctuation and
    words.

    The tables have one line per layer: shares by weight (a) and by norm (||a f(x)||), the rank
    correlation of weight and ||f(x)||, mixing ratios (W by weights, N by norms, Res with the
    residual, Ln after the norm), and the expansion rate of f.

    Args:
        text: The text to read.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Model, and how it runs.
        out: Write every mean with its interval to this file (.csv, .json or .parquet), besides
            printing it; or keep the finished parts of a run in this folder, so that the same
            command resumes after them.
        plot: Draw the shares by layer to this file (.svg, .pdf or .png).
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        confidence: Confidence level of the intervals.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        corpus: Who measures the texts.
    """
    from headscope.studies import norm_study

    table = table_of(out)
    check_results(table, plot, texts)
    given, options = parse_texts(text, text_b, texts, chat), model or ModelOptions()
    reading = (corpus or CorpusOptions()).reading(options, out, given=given, texts=texts)
    with reading as (source, how):
        study = norm_study(
            *source,
            given,
            **how,
            stack=stack,
            confidence=confidence,
            random_weights=random_weights,
        )
    tell(study, table, plot)
