"""headscope norms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._run import ModelOptions
from headscope.cli._study import capturing, check_results, loaded, parse_texts, tell


def norms(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Tell how much special tokens, punctuation and words add to each layer, beside how much weight
    they get.

    The tables have one line for each layer: shares by weight (a) and by norm (||a f(x)||), the rank
    correlation of weight and ||f(x)||, mixing ratios (W by weights, N by norms, Res with the
    residual, Ln after the norm), and the expansion rate of f.

    Args:
        text: One text.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one a line), .jsonl, .csv, .tsv or .parquet (fields text and
            text_b; group names the document of a text, so that intervals are over documents).
        model: Which model, and what it reads.
        out: Write every mean with its interval to this file (.csv, .json or .parquet) too.
        plot: Draw the shares over the layers to this file (.svg, .pdf or .png) too.
        stack: Which stack of the model, such as decoder; by default the first.
        confidence: Of the intervals.
        random_weights: Tell the same of this architecture with random weights, too.
    """
    from headscope.studies import norm_study

    check_results(out, plot, texts)
    given, options = parse_texts(text, text_b, texts), model or ModelOptions()
    study = norm_study(
        *loaded(given, options),
        given,
        **capturing(given, options, texts),
        stack=stack,
        confidence=confidence,
        random_weights=random_weights,
    )
    tell(study, out, plot)
