"""headscope heads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, begun_with, is_folder, table_of
from headscope.cli._run import ModelOptions
from headscope.cli._study import (
    check_results,
    few_texts_as_a_line,
    parse_texts,
    tell,
)
from headscope.errors import FigureError


def heads(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    chat: Path | None = None,
    model: ModelOptions | None = None,
    out: Path | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    correction: Literal["holm", "benjamini-hochberg"] = "holm",
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    position_mean: Annotated[bool, Parameter(negative="")] = False,
    related: Annotated[bool, Parameter(negative="")] = False,
    battery: bool = True,
    margin: float = 0.1,
    plot: Path | None = None,
    classes: Annotated[bool, Parameter(negative="")] = False,
    corpus: CorpusOptions | None = None,
) -> None:
    """Classify the heads of a model by their patterns over some texts, with evidence.

    The table has one line per head: measures, the class of its maps, and the labels that hold, with
    their interval over texts. What scores as high on too few texts is listed as a candidate; a
    single text gives no label.

    Args:
        text: The text to read.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Model, and how it runs.
        out: Write every pattern of every head with its evidence to this file (.csv, .json or
            .parquet), besides printing it; or keep the finished parts of a run in this folder, so
            that the same command resumes after them.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        confidence: Confidence level of the intervals.
        alpha: Significance level, over all tests together.
        correction: Correction for multiple tests: holm controls the family-wise error rate,
            benjamini-hochberg the false discovery rate.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        position_mean: Also compare patterns of content with the mean map by position.
        related: Also look for related words: those with similar input embeddings.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        margin: How far above 0 the interval of score minus baseline must lie.
        plot: Draw labels, measures and the map of all heads to this file (.svg, .pdf or .png).
        classes: With --plot: draw the classes of Kovaleva et al. per layer instead, as stacked
            bars.
        corpus: Who measures the texts.
    """
    from headscope.studies import heads as heads_of

    running = corpus or CorpusOptions()
    table = table_of(out)
    check_results(table, plot, texts)
    if classes and plot is None:
        raise FigureError(
            "--classes needs a file to draw to; add --plot, such as --plot classes.svg"
        )
    given, options = parse_texts(text, text_b, texts, chat), model or ModelOptions()
    judged: dict[str, Any] = {
        "stack": stack,
        "confidence": confidence,
        "alpha": alpha,
        "correction": correction,
        "random_weights": random_weights,
        "position_mean": position_mean,
        "related": related,
        "battery": battery,
        "margin": margin,
    }
    more = {"distances": _adds_distances(out, plot)}
    reading = running.reading(options, out, given=given, texts=texts)
    with few_texts_as_a_line(), reading as (source, how):
        result = heads_of(*source, given, **how, **judged, **more)
    tell(result, table, plot, **({"classes": True} if classes else {}))


def _adds_distances(out: Path | None, plot: Path | None) -> bool:
    """Whether distances of heads are added up, for the map of them in a figure."""
    wanted = plot is not None
    begun = begun_with(out) if out is not None and is_folder(out) else None
    if begun is None:
        return wanted
    # Parts that are kept have them or not, whatever is drawn now.
    has = bool(begun.get("distances"))
    if wanted and not has:
        sys.stderr.write(
            f"headscope: {plot} has no map of all heads, since the run in {out} was begun without "
            "--plot and added up no distances of heads; give another folder to have it\n"
        )
    return has
