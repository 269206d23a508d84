"""headscope heads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from headscope.cli._run import ModelOptions, say
from headscope.cli._study import check_tables, parse_texts, records_of, write_table


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
) -> None:
    """Tell what kind of heads a model has, over some texts, and how sure that is.

    The table has one line for each head: measures, the class of its maps, and the labels that hold with their interval
    over texts. One text alone gives no label: what it shows is marked as seen on one text only.

    Args:
        text: One text.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one a line), .jsonl, .csv or .parquet (fields text and text_b).
        model: Which model, and what it reads.
        out: Write every pattern of every head with its evidence to this file (.csv, .json or .parquet) instead.
        stack: Which stack of the model, such as decoder; by default the first.
        confidence: Of the intervals.
        alpha: Chance of a false label that is accepted, over all heads and patterns.
        correction: For trying many heads; holm keeps any false label away, benjamini-hochberg their share.
    """
    from headscope.patterns import heads as heads_of

    check_tables(out, texts)
    records = records_of(parse_texts(text, text_b, texts), model or ModelOptions(), "heads")
    found = heads_of(records, stack=stack, confidence=confidence, alpha=alpha, correction=correction)
    if out is None:
        say(str(found))
        return
    write_table(found, out)
    say(repr(found))
    say(f"Wrote {out.resolve()}")
