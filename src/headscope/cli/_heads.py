"""headscope heads."""

from __future__ import annotations

import csv
import json
import math
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli._run import ModelOptions, check_place, quiet, say, status
from headscope.cli._texts import Text, read_texts
from headscope.errors import FileError, HeadscopeError, TextError

if TYPE_CHECKING:
    from headscope.patterns import Heads

TABLES = (".csv", ".json", ".parquet")


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

    if out is not None:
        check_place(out)
        if out.suffix not in TABLES:
            raise FileError(f"--out is {out}; the table can be written as {', '.join(TABLES)}")
    for path in (out, texts):
        if path is not None and path.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise FileError(f"{path} needs pyarrow, which is not installed: pip install pyarrow, or take .csv")
    records = _records(_parse_texts(text, text_b, texts), model or ModelOptions())
    found = heads_of(records, stack=stack, confidence=confidence, alpha=alpha, correction=correction)
    if out is None:
        say(str(found))
        return
    _write(found, out)
    say(repr(found))
    say(f"Wrote {out.resolve()}")


def _parse_texts(text: str | None, text_b: str | None, texts: Path | None) -> list[Text]:
    if (text is None) == (texts is None):
        raise TextError("Give one text (or a pair), or a file of texts with --texts")
    if texts is not None:
        return read_texts(texts)
    return [text or "" if text_b is None else (text or "", text_b)]


def _records(texts: list[Text], options: ModelOptions) -> Any:
    if options.target is not None or options.target_tokenizer is not None:
        raise TextError("--target and --target-tokenizer belong to one text; headscope heads reads many")
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import capture_many, check_text, load_model
    for each in texts:
        for part in [each] if isinstance(each, str) else each:
            check_text(part)
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_model(options.model, trust_remote_code=options.trust_remote_code)
    report = _stop if len(texts) == 1 else _left_out
    return capture_many(
        model, tokenizer, texts, truncate=options.truncate, progress=sys.stderr.isatty(), on_error=report
    )


def _stop(_: int, error: HeadscopeError) -> None:
    raise error


def _left_out(number: int, error: HeadscopeError) -> None:
    print(f"headscope: text {number + 1} was left out: {error}", file=sys.stderr)  # noqa: T201


def _write(found: Heads, out: Path) -> None:
    from headscope.storage import written_whole

    columns = found.columns()
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(found.to_arrow(), temporary)
        elif out.suffix == ".csv":
            with Path(temporary).open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        else:
            rows = [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]
            Path(temporary).write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: the one is written as text, the other as null."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)
