"""headscope heads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._run import ModelOptions
from headscope.cli._study import (
    capturing,
    check_results,
    few_texts_as_a_line,
    loaded,
    parse_texts,
    report,
)
from headscope.errors import FigureError


def heads(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    out: Path | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    correction: Literal["holm", "benjamini-hochberg"] = "holm",
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    position_mean: Annotated[bool, Parameter(negative="")] = False,
    predictive: Annotated[bool, Parameter(negative="")] = False,
    related: Annotated[bool, Parameter(negative="")] = False,
    battery: bool = True,
    margin: float = 0.1,
    plot: Path | None = None,
    classes: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Tell what kind of heads a model has, over some texts, and how sure that is.

    The table has one line for each head: measures, the class of its maps, and the labels that hold
    with their interval over texts. What scores as high on too few texts to tell is a candidate; one
    text alone gives no label.

    Args:
        text: One text.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one a line), .jsonl, .csv, .tsv or .parquet (fields text and
            text_b; group names the document of a text, so that intervals are over documents).
        model: Which model, and what it reads.
        out: Write every pattern of every head with its evidence to this file (.csv, .json or
            .parquet) instead.
        stack: Which stack of the model, such as decoder; by default the first.
        confidence: Of the intervals.
        alpha: Chance of a false label that is accepted, over all heads and patterns.
        correction: For trying many heads; holm keeps any false label away, benjamini-hochberg their
            share.
        random_weights: Compare with the same architecture with random weights, too.
        position_mean: Compare patterns of content with the map that positions alone would give,
            too.
        predictive: Look for words that a word can be predicted from, too, by masking both; needs a
            model with a trained masked-word head, which the demo model has not.
        related: Look for related words, too: those whose input embeddings lie near.
        battery: Tell induction by runs of repeated random tokens, not by the texts.
        margin: How far the interval of score less baseline must lie above 0.
        plot: Draw labels, measures and the map of all heads to this file (.svg, .pdf or .png).
        classes: Draw Kovaleva's classes of maps in each layer instead, as stacked bars.
    """
    from headscope.studies import heads as heads_of

    check_results(out, plot, texts)
    if classes and plot is None:
        raise FigureError(
            "--classes says what is drawn; say where with --plot, such as --plot classes.svg"
        )
    given, options = parse_texts(text, text_b, texts), model or ModelOptions()
    source = loaded(given, options, masked=predictive)
    with few_texts_as_a_line():
        result = heads_of(
            *source,
            given,
            **capturing(given, options, texts),
            stack=stack,
            confidence=confidence,
            alpha=alpha,
            correction=correction,
            random_weights=random_weights,
            position_mean=position_mean,
            predictive=predictive,
            related=related,
            battery=battery,
            margin=margin,
            distances=plot is not None,
        )
    report(result, out, plot, **({"classes": True} if classes else {}))
