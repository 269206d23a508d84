"""headscope mechanism."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._run import ModelOptions, say
from headscope.cli._study import (
    capturing,
    check_results,
    few_texts_as_a_line,
    loaded,
    parse_texts,
    report,
)
from headscope.errors import RecordError

PLACE = re.compile(r"(\d+)-(\d+)")


def mechanism(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    at: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    pattern: str | None = None,
    without: Literal["position", "segment"] | None = None,
    by: Literal["zero", "mean"] = "zero",
    stack: str | None = None,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell how heads do what they do: the neurons that carry it, or what goes with an embedding.

    For each head: how many neurons make up 90 % of the positive score of what a query looks at, and
    how alike these are at different positions of a text. Without --at, for all heads, and then by
    the labels they hold. With --without the model runs without its embedding of positions or
    segments, and patterns are scored before and after.

    Args:
        text: One text.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one a line), .jsonl, .csv, .tsv or .parquet (fields text and
            text_b; group names the document of a text, so that intervals are over documents).
        model: Which model, and what it reads.
        at: Layers and heads, such as 2-0 7-3; all by default.
        pattern: What they look at, such as sep, next, or a rule such as "word -> first"; what they
            do look at by default.
        without: Take the embedding of positions or of segments away and see which labels go.
        by: What is left of the embedding: nothing, or its mean over each text.
        stack: Which stack of the model, such as decoder; by default the first.
        confidence: Of the intervals.
        random_weights: Tell the same of this architecture with random weights, too.
        out: Write the table to this file (.csv, .json or .parquet).
        plot: Draw the neurons by position to this file (.svg, .pdf or .png); of twelve heads at
            most.
    """
    check_results(out, plot, texts)
    cells = [_cell(each) for each in at]
    given, options = parse_texts(text, text_b, texts), model or ModelOptions()
    shared = {"stack": stack, "confidence": confidence, "random_weights": random_weights}
    if without is not None:
        if cells or pattern is not None or plot is not None:
            raise RecordError(
                "--at, --pattern and --plot are about neurons, and --without about labels; give "
                "one of both"
            )
        from headscope.studies import embedding_role

        chosen: dict[str, Any] = {"role": without, "by": by, **shared}
        source = loaded(given, options)
        with few_texts_as_a_line():
            result = embedding_role(*source, given, **chosen, **capturing(given, options, texts))
        report(result, out, None)
        return
    if plot is not None and not 0 < len(cells) <= 12:
        raise RecordError(
            f"--plot has room for 1 to 12 heads, and --at names {len(cells)}; give --at 2-0 7-3"
        )
    more = capturing(given, options, texts)
    _neurons((given, options, more), cells, {"pattern": pattern, **shared}, out=out, plot=plot)


def _neurons(
    reading: tuple[list, ModelOptions, dict],
    cells: list[tuple[int, int]],
    chosen: dict,
    **results: Path | None,
) -> None:
    from headscope.studies import heads as heads_of
    from headscope.studies import mechanism as mechanism_of

    texts, options, more = reading
    source = (*loaded(texts, options), texts)
    result = mechanism_of(*source, at=cells or None, **chosen, **more)
    report(result, results["out"], results["plot"])
    if not cells and len(texts) > 1:
        quietly: dict[str, Any] = more | {"on_error": lambda *_: None, "progress": False}
        with few_texts_as_a_line():
            groups = result.grouped(heads_of(*source, stack=chosen["stack"], **quietly).by_label())
        if groups.all:
            say(f"\n{groups}")


def _cell(place: str) -> tuple[int, int]:
    read = PLACE.fullmatch(place.strip())
    if read is None:
        raise RecordError(f"--at is {place!r}; write layer and head from 0, such as 2-0")
    return int(read[1]), int(read[2])
