"""headscope mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._layers_and_heads import parse_layer_and_heads
from headscope.cli._run import ModelOptions, say
from headscope.cli._study import (
    capturing,
    check_results,
    few_texts_as_a_line,
    loaded,
    parse_texts,
    tell,
)
from headscope.errors import RecordError

MOST_DRAWN = 12


def mechanism(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    chat: Path | None = None,
    model: ModelOptions | None = None,
    at: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    pattern: str | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    plot: Path | None = None,
    corpus: CorpusOptions | None = None,
) -> None:
    """Find the query/key neurons and embeddings behind the patterns of heads.

    For each head: how many neurons make up 90 % of the positive score of the attended keys, and how
    similar these neurons are at different positions of a text. Without --at, all heads are measured
    and grouped by their labels.

    Args:
        text: The text to read.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Model, and how it runs.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; by default all
            heads.
        pattern: Which keys to explain: a pattern such as sep or next, or a rule such as "word ->
            first"; by default the most attended ones.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        confidence: Confidence level of the intervals.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        out: Write the table of heads to this file (.csv, .json or .parquet), besides printing it;
            or keep the finished parts of a run in this folder, so that the same command resumes
            after them: heads are then named singly, and not grouped.
        plot: Draw the neurons by position to this file (.svg, .pdf or .png), for at most twelve
            heads.
        corpus: Who measures the texts.
    """
    running = corpus or CorpusOptions()
    check_results(table_of(out), plot, texts)
    by_layer = [parse_layer_and_heads(each, "--at") for each in at]
    given, options = parse_texts(text, text_b, texts, chat), model or ModelOptions()
    shared = {"stack": stack, "confidence": confidence, "random_weights": random_weights}
    count = sum(len(heads) for _, heads in by_layer)
    if plot is not None and not (0 < count <= MOST_DRAWN and all(heads for _, heads in by_layer)):
        raise RecordError(
            f"Expected 1 to {MOST_DRAWN} heads with --at for --plot, such as --at 2-0 7-3, got "
            f"{' '.join(at) or 'none'}"
        )
    if running.asks(out):
        over: dict[str, Any] = {"at": _single_heads(by_layer), "pattern": pattern, **shared}
        _over_corpus((given, options, texts), over, running, out=out, plot=plot)
        return
    more = capturing(given, options, texts)
    _neurons((given, options, more), by_layer, {"pattern": pattern, **shared}, out=out, plot=plot)


def _over_corpus(
    reading: tuple[list, ModelOptions, Path | None],
    chosen: dict[str, Any],
    running: CorpusOptions,
    **results: Path | None,
) -> None:
    from headscope.studies import mechanism as mechanism_of

    given, options, texts = reading
    out = results["out"]
    with running.reading(options, out, given=given, texts=texts) as (source, how):
        result = mechanism_of(*source, given, **chosen, **how)
    tell(result, table_of(out), results["plot"])


def _single_heads(by_layer: list[tuple[int, list[int]]]) -> list[tuple[int, int]] | None:
    """The heads that are named; None for all.

    Raises:
        RecordError: where a layer alone is named, whose heads only the model knows.
    """
    whole = [layer for layer, heads in by_layer if not heads]
    if whole:
        raise RecordError(
            f"Expected layer and heads for --at, such as {whole[0]}-0,1, got layer {whole[0]} "
            "alone; a run names its heads before a model is loaded"
        )
    return [(layer, head) for layer, heads in by_layer for head in heads] or None


def _neurons(
    reading: tuple[list, ModelOptions, dict],
    by_layer: list[tuple[int, list[int]]],
    chosen: dict,
    **results: Path | None,
) -> None:
    from headscope.studies import heads as heads_of
    from headscope.studies import mechanism as mechanism_of

    texts, options, more = reading
    source = (*loaded(texts, options), texts)
    cells = [
        (layer, head) for layer, heads in by_layer for head in heads or heads_of_all(source[0])
    ]
    result = mechanism_of(*source, at=cells or None, **chosen, **more)
    tell(result, results["out"], results["plot"])
    if not cells and len(texts) > 1:
        # The texts are read a second time, for the labels: those left out have been named already.
        quietly: dict[str, Any] = more | {"on_error": lambda *_: None, "progress": False}
        with few_texts_as_a_line():
            groups = result.grouped(heads_of(*source, stack=chosen["stack"], **quietly).by_label())
        if groups.all:
            say(f"\n{groups}")


def heads_of_all(model: Any) -> range:
    """The heads of a layer, where only a layer is given."""
    # A model of pictures and text has a configuration for each part.
    config = model.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    return range(config.num_attention_heads)
